// threads burns CPU in threads that end: a goroutine that exits locked takes its thread along.
// Each burns some 20 ms in main.burn, two at a time, for ever. It links no pprof and prints
// "ready".
package main

import (
	"fmt"
	"runtime"
	"time"
)

var sink [64]uint64

//go:noinline
func burn(slot int, d time.Duration) {
	x := uint64(slot) + 88172645463325252
	for end := time.Now().Add(d); time.Now().Before(end); {
		for i := 0; i < 20000; i++ {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
	}
	sink[slot%len(sink)] = x
}

func oneThread(slot int, done chan<- bool) {
	runtime.LockOSThread()
	burn(slot, 20*time.Millisecond)
	done <- true
}

func main() {
	runtime.GOMAXPROCS(2)
	done := make(chan bool)
	for i := 0; i < 2; i++ {
		go oneThread(i, done)
	}
	fmt.Println("ready")
	for i := 2; ; i++ {
		<-done
		go oneThread(i, done)
	}
}
