// storm has two goroutines hand a number to and fro, some thousands of times a second, and a third one that
// sleeps and then does nothing but yield (runtime.Gosched), YIELDS times in some milliseconds: most of all
// runs of goroutines are yields, in a hundredth of the time. On SIGTERM it ends.
//
//	storm YIELDS [collect | sleep | turns | paced N US]
//
// With collect a fourth one allocates enough for some tens of GC cycles a second. From Go 1.25 on the background
// sweeper then yields by itself, for milliseconds: while another one sweeps the last span, some thousand times a ms.
//
// With sleep the two begin 2 s after "ready", and 200 others sleep for 500 ms each, all the time: a profile is in full until then.
// With turns these sleep, and the number goes to and fro for 50 ms every 2.5 s, as fast as it can.
//
// With paced there is no number: N goroutines sleep for US microseconds each, again and again, which is counted in its place, and another one
// computes all the time.
//
// It prints "ready", then every 100 ms a line "at NS PINGS YIELDS": the real-time clock, how often the number
// has gone there and back, and how many yields there were.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"
)

var pings, yields int64

//go:noinline
func pong(a, b chan int) {
	for {
		<-a
		atomic.AddInt64(&pings, 1)
		b <- 1
	}
}

// By the clock: on a fast machine there would be more waits than yields.
//
//go:noinline
func ping(a, b chan int) {
	for {
		a <- 1
		<-b
		for t := time.Now(); time.Since(t) < 50*time.Microsecond; {
		}
	}
}

func hurry(a, b chan int) {
	for {
		time.Sleep(2450 * time.Millisecond)
		for t := time.Now(); time.Since(t) < 50*time.Millisecond; {
			a <- 1
			<-b
		}
	}
}

func yield(n int) {
	for {
		time.Sleep(400 * time.Millisecond)
		for i := 0; i < n; i++ {
			runtime.Gosched()
			atomic.AddInt64(&yields, 1)
		}
	}
}

var kept [2000]*[16 << 10]byte
var garbage []byte

func collect() {
	for i := 0; ; i++ {
		for j := 0; j < 200; j++ {
			garbage = make([]byte, 3000)
		}
		kept[i%len(kept)] = new([16 << 10]byte)
		time.Sleep(time.Millisecond)
	}
}

//go:noinline
func sleeper(after time.Duration) {
	time.Sleep(after)
	for {
		time.Sleep(500 * time.Millisecond)
	}
}

//go:noinline
func paced(d time.Duration) {
	for {
		time.Sleep(d)
		atomic.AddInt64(&pings, 1)
	}
}

func compute() {
	for x := 1; ; x = x*1664525 + 1013904223 {
		if x == 0 {
			fmt.Println("computed")
		}
	}
}

func startPaced(n, us string) {
	count, err := strconv.Atoi(n)
	each, err2 := strconv.Atoi(us)
	if err != nil || err2 != nil {
		panic(n + " " + us)
	}
	for i := 0; i < count; i++ {
		go paced(time.Duration(each) * time.Microsecond)
	}
	go compute()
}

func main() {
	n, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	a, b := make(chan int), make(chan int)
	mode := ""
	if len(os.Args) > 2 {
		mode = os.Args[2]
	}
	if mode == "sleep" || mode == "turns" {
		for i := 0; i < 200; i++ {
			go sleeper(time.Duration(i) * 2500 * time.Microsecond)
		}
		time.Sleep(500 * time.Millisecond)
	}
	if mode == "paced" {
		startPaced(os.Args[3], os.Args[4])
	} else if mode == "turns" {
		go pong(a, b)
		go hurry(a, b)
	} else if mode == "sleep" {
		time.AfterFunc(2*time.Second, func() { go pong(a, b); go ping(a, b) })
	} else {
		go pong(a, b)
		go ping(a, b)
	}
	if n > 0 {
		go yield(n)
	}
	if mode == "collect" {
		go collect()
	}
	fmt.Println("ready")
	for {
		time.Sleep(100 * time.Millisecond)
		fmt.Println("at", time.Now().UnixNano(), atomic.LoadInt64(&pings), atomic.LoadInt64(&yields))
	}
}
