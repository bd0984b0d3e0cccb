// pingpong has two goroutines wake each other through channels as fast as they can and says what
// one park and its wake take, so that the cost of watching them can be told from the difference.
//
// On one P: each round trip is two waits for a channel, each of them one gopark and one ready,
// and nothing else sleeps or wakes. It links no pprof. After "ready" it prints a line every
// 20 ms until it is killed, or for as long as its argument (4s) says:
//
//	MONOTONIC_MS NS_PER_PAIR PAIRS
//
// where MONOTONIC_MS is the time since "ready", NS_PER_PAIR the process' CPU time (others who use
// the machine lengthen the wall clock's) and PAIRS all of them since "ready". SIGUSR1 sets
// the block and mutex rates of its own profiles to 1, SIGUSR2 to 0; it says "rate 1" or "rate 0"
// when that is so. With -threads each of the two has a thread of its own, so that every wake is one of threads.
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

const batch = 200

//go:noinline
func pong(ping, back chan int) {
	if *threads {
		runtime.LockOSThread()
	}
	for i := range ping {
		back <- i
	}
}

//go:noinline
func rounds(n int, ping, back chan int) {
	for i := 0; i < n; i++ {
		ping <- i
		<-back
	}
}

// CPU time of all threads, user and system. The kernel counts it in nanoseconds and tells it in
// microseconds.
func cpu() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func setRate(rate int) {
	runtime.SetBlockProfileRate(rate)
	runtime.SetMutexProfileFraction(rate)
	fmt.Println("rate", rate)
}

var threads = flag.Bool("threads", false, "a thread for each of the two")

func main() {
	flag.Parse()
	runtime.GOMAXPROCS(1)
	if *threads {
		runtime.LockOSThread()
	}
	length := time.Duration(1<<63 - 1)
	if flag.NArg() > 0 {
		var err error
		if length, err = time.ParseDuration(flag.Arg(0)); err != nil {
			panic(err)
		}
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)
	ping, back := make(chan int), make(chan int)
	go pong(ping, back)
	fmt.Println("ready")
	begin := time.Now()
	all := 0
	for last, used := begin, cpu(); last.Sub(begin) < length; {
		n, now := 0, last
		for now.Sub(last) < 20*time.Millisecond {
			rounds(batch, ping, back)
			n += batch
			now = time.Now()
		}
		all += 2 * n
		fmt.Printf("%d %.2f %d\n", now.Sub(begin)/time.Millisecond,
			float64(cpu()-used)/float64(2*n), all)
		select {
		case s := <-signals:
			if s == syscall.SIGUSR1 {
				setRate(1)
			} else {
				setRate(0)
			}
		default:
		}
		last, used = time.Now(), cpu()
	}
}
