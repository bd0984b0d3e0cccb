// storm has two goroutines hand a number to and fro, some thousands of times a second, and a third one that
// sleeps and then does nothing but yield (runtime.Gosched), YIELDS times in some milliseconds: most of all
// runs of goroutines are yields, in a hundredth of the time. On SIGTERM it ends.
//
//	storm YIELDS
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

var sink int

//go:noinline
func ping(a, b chan int) {
	for {
		a <- 1
		<-b
		for i := 0; i < 60000; i++ {
			sink += i
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

func main() {
	n, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	a, b := make(chan int), make(chan int)
	go pong(a, b)
	go ping(a, b)
	go yield(n)
	fmt.Println("ready")
	for {
		time.Sleep(100 * time.Millisecond)
		fmt.Println("at", time.Now().UnixNano(), atomic.LoadInt64(&pings), atomic.LoadInt64(&yields))
	}
}
