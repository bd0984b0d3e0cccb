// standing has goroutines that wait for a channel again and again, at the same place, and writes
// down each wait: when it began and between which two moments it ended.
//
//	standing [-many N] LOG
//
//	wait1, wait20, wait300, wait1500	wait for that many ms each time
//	-many N		and N goroutines that wait for 100 to 200 ms each, not written down
//
// It prints "ready". LOG gets lines "FUNC BEGAN LO HI", in ns of CLOCK_MONOTONIC: a wait has begun
// right after BEGAN and ended between LO and HI.
package main

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"runtime/pprof"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

func now() int64 {
	var ts syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&ts)), 0)
	return ts.Nano()
}

// One goroutine that waits, and the one that wakes it.
type pair struct {
	name  string
	each  time.Duration
	c     chan int
	began int64
}

type wait struct {
	name          string
	began, lo, hi int64
}

//go:noinline
func wait1(p *pair) { receive(p) }

//go:noinline
func wait20(p *pair) { receive(p) }

//go:noinline
func wait300(p *pair) { deeper(p, 40) }

//go:noinline
func wait1500(p *pair) { receive(p) }

// Frames of some size, so that the stack is no short one.
//
//go:noinline
func deeper(p *pair, n int) int {
	var pad [64]int
	if n == 0 {
		receive(p)
	} else {
		pad[n] = deeper(p, n-1)
	}
	return pad[n]
}

func receive(p *pair) {
	for {
		atomic.StoreInt64(&p.began, now())
		<-p.c
	}
}

func (p *pair) wake(out chan wait) {
	for {
		began := atomic.LoadInt64(&p.began)
		if began == 0 {
			time.Sleep(20 * time.Microsecond)
			continue
		}
		time.Sleep(time.Duration(began + int64(p.each) - now()))
		atomic.StoreInt64(&p.began, 0)
		lo := now()
		p.c <- 1
		out <- wait{p.name, began, lo, now()}
	}
}

//go:noinline
func oneOfMany(i int) {
	t := time.NewTicker(time.Duration(100+i%100) * time.Millisecond)
	for range t.C {
	}
}

func main() {
	many := flag.Int("many", 0, "that many more")
	flag.Parse()
	log, err := os.Create(flag.Arg(0))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	out := make(chan wait, 1000)
	for _, s := range []struct {
		name string
		run  func(*pair)
		each time.Duration
	}{
		{"main.wait1", wait1, time.Millisecond},
		{"main.wait20", wait20, 20 * time.Millisecond},
		{"main.wait300", wait300, 300 * time.Millisecond},
		{"main.wait1500", wait1500, 1500 * time.Millisecond},
	} {
		s := s
		p := &pair{name: s.name, each: s.each, c: make(chan int)}
		labels := pprof.Labels("site", s.name, "a long key, longer than a word", "and a value")
		go pprof.Do(context.Background(), labels, func(context.Context) { s.run(p) })
		go p.wake(out)
	}
	for i := 0; i < *many; i++ {
		go oneOfMany(i)
	}
	fmt.Println("ready")
	w := bufio.NewWriter(log)
	flush := time.Now()
	for one := range out {
		fmt.Fprintln(w, one.name, one.began, one.lo, one.hi)
		if time.Since(flush) > 50*time.Millisecond {
			w.Flush()
			flush = time.Now()
		}
	}
}
