package main

import (
	"sync"
	"time"
)

// Contention as it happens, with locks taken over, queued for at the front again and handed over.
// How often somebody waits is for the scheduler to say: to be held against Go's own profile.

//go:noinline
func stormWork(n int) (x int) {
	for i := 0; i < n; i++ {
		x += i * x
	}
	return x
}

//go:noinline
func stormLock(m *sync.Mutex, n, work int) {
	for i := 0; i < n; i++ {
		m.Lock()
		stormWork(work)
		m.Unlock()
		stormWork(work)
	}
}

//go:noinline
func stormRead(m *sync.RWMutex, n, work int) {
	for i := 0; i < n; i++ {
		m.RLock()
		stormWork(work)
		m.RUnlock()
		stormWork(work)
	}
}

//go:noinline
func stormWrite(m *sync.RWMutex, n, work int) {
	for i := 0; i < n; i++ {
		m.Lock()
		stormWork(work)
		m.Unlock()
		time.Sleep(100 * time.Microsecond)
	}
}

//go:noinline
func stormSelect(a, b, stop chan int) {
	for {
		select {
		case <-a:
		case b <- 1:
		case <-stop:
			return
		}
	}
}

//go:noinline
func stormFeed(a, b chan int, n int) {
	for i := 0; i < n; i++ {
		select {
		case a <- 1:
		case <-b:
		}
	}
}

// stormCond: a queue of one with a Cond that several wait for, on a real lock.
func stormCond(n int) {
	var m sync.Mutex
	var g group
	full, c := false, sync.NewCond(&m)
	turn := func(want bool) {
		for i := 0; i < n; i++ {
			m.Lock()
			for full != want {
				c.Wait()
			}
			full = !want
			c.Broadcast()
			m.Unlock()
		}
	}
	for i := 0; i < 3; i++ {
		g.do(func() { turn(true) })
		g.do(func() { turn(false) })
	}
	g.wait()
}

// N is in thousands, MS in microseconds of work with the lock held.
func modeStorm(r *run) {
	var m sync.Mutex
	var rw sync.RWMutex
	var g, g2 group
	n, work := r.n*1000, int(r.d/time.Microsecond)
	a, b, stop := make(chan int), make(chan int), make(chan int)
	t0 := now()
	for i := 0; i < 8; i++ {
		g.do(func() { stormLock(&m, n, work) })
		g.do(func() { stormRead(&rw, n/2, work) })
		g2.do(func() { stormSelect(a, b, stop) })
		g.do(func() { stormFeed(a, b, n/2) })
	}
	g.do(func() { stormWrite(&rw, n/20, work) })
	g.do(func() { stormCond(n / 20) })
	g.wait()
	close(stop)
	g2.wait()
	r.say("time %d", now()-t0)
}
