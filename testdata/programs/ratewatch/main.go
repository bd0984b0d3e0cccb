// ratewatch does on request what a program may do while somebody else has switched its heap
// sampling on. It links no pprof, so that the runtime leaves the sampling off (Go 1.17 and newer).
//
//	ratewatch [-busy] [-rate N] [-keep]
//
// It prints "ready", then obeys signals, and allocates nothing meanwhile:
//
//	SIGUSR1	allocate one object of 16 bytes, in main.one
//	SIGUSR2	set runtime.MemProfileRate to N (100000)
//	SIGHUP	exec of itself, with the same arguments
//	SIGTERM	it ends by itself, status 0
//
//	-busy	two goroutines allocate all the time, in main.churn
//	-keep	SIGUSR1 does something else: 20000 objects of 1024 bytes in main.kept, which live on, and
//		20000 in main.dropped, which do not; then collections, and "collected"
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

var sink [4]interface{}

type sixteen struct{ a, b uint64 }

//go:noinline
func one() {
	sink[0] = new(sixteen)
}

type kilo [128]uint64

var keeping []*kilo

//go:noinline
func kept(n int) {
	for i := 0; i < n; i++ {
		keeping = append(keeping, new(kilo))
	}
}

//go:noinline
func dropped(n int) {
	for i := 0; i < n; i++ {
		sink[3] = new(kilo)
	}
	sink[3] = nil
}

func keep() {
	keeping = make([]*kilo, 0, len(keeping)+20000)
	kept(20000)
	dropped(20000)
	// What is allocated now is published by the second cycle from here; a third for the frees.
	runtime.GC()
	runtime.GC()
	runtime.GC()
	fmt.Println("collected")
}

//go:noinline
func churn(i int) {
	for {
		for k := 0; k < 1000; k++ {
			sink[i] = new([32]uint64)
		}
		time.Sleep(time.Millisecond)
	}
}

func main() {
	busy := flag.Bool("busy", false, "allocate all the time")
	keeps := flag.Bool("keep", false, "keep objects")
	rate := flag.Int("rate", 100000, "what SIGUSR2 sets")
	flag.Parse()
	ch := make(chan os.Signal, 4)
	signal.Notify(ch, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGHUP, syscall.SIGTERM)
	if *busy {
		go churn(1)
		go churn(2)
	}
	fmt.Println("ready")
	for s := range ch {
		switch s {
		case syscall.SIGUSR1:
			if *keeps {
				keep()
			} else {
				one()
			}
		case syscall.SIGUSR2:
			runtime.MemProfileRate = *rate
		case syscall.SIGHUP:
			fmt.Println(syscall.Exec(os.Args[0], os.Args, os.Environ()))
			os.Exit(1)
		default:
			os.Exit(0)
		}
	}
}
