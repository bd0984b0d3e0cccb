// allocbench allocates 64 pointerless bytes as fast as it can and says what one allocation takes,
// so that the cost of a probe on the allocator can be told from the difference.
//
// It links no pprof. After "ready" it prints a line every 200 ms until it is killed:
//
//	MONOTONIC_MS NS_PER_ALLOCATION
//
// where MONOTONIC_MS is the time since "ready". Collections are few: nothing stays alive and some
// 400 MB of garbage may gather first, so that a line's figure is the allocator's own.
package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"time"
)

const batch = 2000

var sink *[64]byte

//go:noinline
func allocate(n int) {
	for i := 0; i < n; i++ {
		sink = new([64]byte)
	}
}

func main() {
	runtime.GOMAXPROCS(1)
	ballast := make([]byte, 40<<20) // never touched: it costs address space alone
	debug.SetGCPercent(900)
	fmt.Println("ready")
	begin := time.Now()
	for last := begin; ; {
		n, now := 0, last
		for now.Sub(last) < 200*time.Millisecond {
			allocate(batch)
			n += batch
			now = time.Now()
		}
		fmt.Printf("%d %.2f\n", now.Sub(begin)/time.Millisecond, float64(now.Sub(last))/float64(n))
		last = now
		runtime.KeepAlive(ballast)
	}
}
