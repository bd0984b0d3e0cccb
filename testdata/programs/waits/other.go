package main

import (
	"runtime"
	"runtime/metrics"
	"sync/atomic"
	"syscall"
	"time"
)

// Waits that only a wait profile has.

//go:noinline
func syscallWait(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	for syscall.Nanosleep(&t, &t) == syscall.EINTR {
	}
}

func modeSyscall(r *run) {
	var s sum
	for i := 0; i < r.n; i++ {
		t0 := now()
		syscallWait(r.d)
		s.add(span{t0, t0}, t0+int64(r.d), now())
	}
	s.extra = int64(r.n) // interrupted
	r.wait("syscallWait", "syscall", &s)
}

//go:noinline
func spin(d time.Duration) (end int64) {
	for t0 := now(); end-t0 < int64(d); {
		end = now()
	}
	return end
}

//go:noinline
func runnableWait(c chan int, w *wait) int64 {
	w.begin()
	<-c
	return now()
}

// preempted: who has run for so long may have been, and waited once more (forcePreemptNS in runtime/proc.go,
// Go 1.27). Here that takes a thread that lacks a CPU.
const preempted = int64(10 * time.Millisecond)

// Whoever is woken waits for the only processor, as long as the other goroutine spins.
func modeRunnable(r *run) {
	procs := runtime.GOMAXPROCS(1)
	var s sum
	for i := 0; i < r.n; i++ {
		var g group
		var w wait
		var ran int64
		c := make(chan int)
		started := now()
		g.do(func() { ran = runnableWait(c, &w) })
		w.parked(time.Millisecond)
		lo := now()
		c <- 1
		hi := now()
		end := spin(r.d)
		g.wait()
		if lo-started >= preempted {
			s.extra++
			s.hi += lo - started
		}
		if ran-end >= preempted {
			s.extra++
		}
		if end > ran { // the spinning one was preempted
			end = ran
		}
		s.add(span{hi, hi}, end, ran+hi-lo)
	}
	runtime.GOMAXPROCS(procs)
	r.wait("runnableWait", "runnable", &s)
}

//go:noinline
func preemptSpin(stop, began *int64) {
	atomic.StoreInt64(began, now())
	for atomic.LoadInt64(stop) == 0 {
	}
}

// Two goroutines that never yield share one processor: each is runnable half of the time.
func modePreempt(r *run) {
	procs := runtime.GOMAXPROCS(1)
	var g group
	var stop, first, second int64
	t0 := now()
	g.do(func() { preemptSpin(&stop, &first) })
	g.do(func() { preemptSpin(&stop, &second) })
	time.Sleep(time.Duration(r.n) * r.d)
	atomic.StoreInt64(&stop, 1)
	t1 := now()
	g.wait()
	t2 := now()
	runtime.GOMAXPROCS(procs)
	// Once both have begun one of them runs till t1, but for what Go needs between. The last one learns that it
	// is over when it runs again.
	both := first
	if second > both {
		both = second
	}
	r.say("wait main.preemptSpin runnable 2 %d %d %d %v", (t2-t0)/int64(time.Millisecond), (t1-both)*9/10, t2-t0, sampled{})
}

type tree struct {
	left, right *tree
	pad         [48]byte
}

//go:noinline
func grow(depth int) *tree {
	if depth == 0 {
		return &tree{}
	}
	return &tree{left: grow(depth - 1), right: grow(depth - 1)}
}

//go:noinline
func assistWait(n int) {
	for i := 0; i < n; i++ {
		grow(12)
	}
}

const assistMetric = "/cpu/classes/gc/mark/assist:cpu-seconds" // Go 1.20

func assistTime() int64 {
	runtime.GC()
	sample := []metrics.Sample{{Name: assistMetric}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindFloat64 {
		return -1
	}
	return int64(sample[0].Value.Float64() * 1e9)
}

// Goroutines that allocate have to help the collector. The runtime's own count has also what it
// takes to get there and back, and what a probe takes there.
func modeAssist(r *run) {
	var g group
	live := grow(16)
	before := assistTime()
	for i := 0; i < 4; i++ {
		g.do(func() { assistWait(r.n * 10) })
	}
	g.wait()
	spent := assistTime() - before
	runtime.KeepAlive(live)
	if before < 0 {
		r.say("error: no metric %s", assistMetric)
		return
	}
	r.say("wait main.assistWait GC_assist_marking 1 1000000000 %d %d %v", spent*4/5, spent, sampled{})
}
