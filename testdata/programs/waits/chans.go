package main

import (
	"reflect"
	"sync/atomic"
	"time"
)

//go:noinline
func recvWait(c chan int, w *wait) { w.begin(); <-c }

func modeRecv(r *run) {
	c := make(chan int)
	r.block("recvWait", "runtime.chanrecv1", r.turns(func(w *wait) { recvWait(c, w) }, func() { c <- 1 }))
}

//go:noinline
func sendWait(c chan int, w *wait) { w.begin(); c <- 1 }

func modeSend(r *run) {
	c := make(chan int)
	r.block("sendWait", "runtime.chansend1", r.turns(func(w *wait) { sendWait(c, w) }, func() { <-c }))
}

//go:noinline
func fullWait(c chan int, w *wait) { w.begin(); c <- 1 }

func modeFull(r *run) {
	c := make(chan int, 3)
	for i := 0; i < cap(c); i++ {
		c <- i
	}
	r.block("fullWait", "runtime.chansend1", r.turns(func(w *wait) { fullWait(c, w) }, func() { <-c }))
}

//go:noinline
func emptyWait(c chan int, w *wait) { w.begin(); <-c }

func modeEmpty(r *run) {
	c := make(chan int, 3)
	r.block("emptyWait", "runtime.chanrecv1", r.turns(func(w *wait) { emptyWait(c, w) }, func() { c <- 1 }))
}

// The comma, and the range, are another entry of the runtime.
//
//go:noinline
func rangeWait(c chan int, w *wait) {
	w.begin()
	for range c {
		break
	}
}

func modeRange(r *run) {
	c := make(chan int)
	r.block("rangeWait", "runtime.chanrecv2", r.turns(func(w *wait) { rangeWait(c, w) }, func() { c <- 1 }))
}

//go:noinline
func selectWait(a, b, c chan int, w *wait) {
	w.begin()
	select {
	case <-a:
	case <-b:
	case c <- 1:
	}
}

func modeSelect(r *run) {
	a, b, c := make(chan int), make(chan int, 2), make(chan int)
	i := 0
	r.block("selectWait", "runtime.selectgo", r.turns(func(w *wait) { selectWait(a, b, c, w) }, func() {
		switch i % 3 {
		case 0:
			a <- 1
		case 1:
			b <- 1
		case 2:
			<-c
		}
		i++
	}))
}

//go:noinline
func reflectSelectWait(cases []reflect.SelectCase, w *wait) {
	w.begin()
	reflect.Select(cases)
}

//go:noinline
func reflectRecvWait(c reflect.Value, w *wait) {
	w.begin()
	c.Recv()
}

func modeReflect(r *run) {
	c := make(chan int)
	v := reflect.ValueOf(c)
	both := []reflect.SelectCase{
		{Dir: reflect.SelectRecv, Chan: v},
		{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(make(chan int))},
	}
	r.block("reflectSelectWait", "runtime.selectgo",
		r.turns(func(w *wait) { reflectSelectWait(both, w) }, func() { c <- 1 }))
	r.block("reflectRecvWait", "reflect.chanrecv",
		r.turns(func(w *wait) { reflectRecvWait(v, w) }, func() { c <- 1 }))
}

// A goroutine that comes too late need not wait; such near misses are kept apart from waits that are certain.
func (s *sum) addTimer(t0 span, fired, t1 int64) {
	switch {
	case fired-int64(time.Millisecond) >= t0.hi:
		s.add(t0, fired, t1)
	case t1-t0.lo > 2000:
		s.extra++
		s.hi += t1 - t0.lo
	}
}

// timers is what turns is, for waits that end by themselves: each says when that was, and when it ran again.
func (r *run) timers(waits func(w *wait) span) *sum {
	var w wait
	var g group
	s := &sum{}
	ended := make([]span, r.n)
	g.do(func() {
		for i := range ended {
			ended[i] = waits(&w)
			for atomic.LoadInt64(&w.noted) != 0 {
				time.Sleep(50 * time.Microsecond)
			}
		}
	})
	var began []span
	for range ended {
		began = append(began, w.taken())
	}
	g.wait()
	for i, e := range ended {
		s.addTimer(began[i], e.lo, e.hi)
	}
	return s
}

// The timer fires d after it was made, at the earliest.
//
//go:noinline
func afterWait(d time.Duration, w *wait) span {
	made := now()
	c := time.After(d)
	w.begin()
	<-c
	return span{made + int64(d), now()}
}

func modeAfter(r *run) {
	r.block("afterWait", "runtime.chanrecv1", r.timers(func(w *wait) span { return afterWait(r.d, w) }))
}

//go:noinline
func tickerWait(c <-chan time.Time, w *wait) time.Time { w.begin(); return <-c }

// The time that a tick brings is when it came, or was to come (Go 1.23 and newer).
func modeTicker(r *run) {
	t := time.NewTicker(r.d)
	s := r.timers(func(w *wait) span {
		tick := tickerWait(t.C, w)
		return span{int64(tick.Sub(epoch)), now()}
	})
	t.Stop()
	r.block("tickerWait", "runtime.chanrecv1", s)
}

//go:noinline
func closeWait(c chan int, w *wait) { w.begin(); <-c }

//go:noinline
func closeSelectWait(c, d chan int, w *wait) {
	w.begin()
	select {
	case <-c:
	case <-d:
	}
}

const closers = 10

func modeClose(r *run) {
	recv, sel := &sum{}, &sum{}
	for i := 0; i < r.n; i++ {
		var g group
		ws := make([]wait, closers)
		ws2 := make([]wait, closers)
		c, d := make(chan int), make(chan int)
		for k := 0; k < closers; k++ {
			w, w2 := &ws[k], &ws2[k]
			g.do(func() { closeWait(c, w) })
			g.do(func() { closeSelectWait(c, d, w2) })
		}
		began, began2 := allTaken(ws), allTaken(ws2)
		time.Sleep(r.d)
		lo := now()
		close(c)
		hi := now()
		for k := 0; k < closers; k++ {
			recv.add(began[k], lo, hi)
			sel.add(began2[k], lo, hi)
		}
		g.wait()
	}
	r.block("closeWait", "runtime.chanrecv1", recv)
	r.block("closeSelectWait", "runtime.selectgo", sel)
}

// Goroutines that end as soon as they are woken: their memory is the next one's.
//
//go:noinline
func exitWait(c chan int, w *wait) { w.begin(); <-c }

func modeExit(r *run) {
	const many = 10
	s := &sum{}
	c := make(chan int)
	for i := 0; i < r.n; i++ {
		ws := make([]wait, many)
		for k := range ws {
			go exitWait(c, &ws[k])
		}
		began := allParked(ws, r.d)
		var u unlocks
		for range ws {
			lo := now()
			c <- 1
			u.add(lo, now())
		}
		s.addAll(began, u)
	}
	r.block("exitWait", "runtime.chanrecv1", s)
}

// One of the two waits for each message, whoever comes first.
//
//go:noinline
func pingPong(c chan int, n int, send bool) {
	for i := 0; i < n; i++ {
		if send {
			c <- i
		} else {
			<-c
		}
		send = !send
	}
}

func modePingPong(r *run) {
	c := make(chan int)
	n := r.n * 1000
	var g group
	t0 := now()
	g.do(func() { pingPong(c, n, true) })
	g.do(func() { pingPong(c, n, false) })
	g.wait()
	r.say("block main.pingPong - %d %d 0 %d %v", n, n, 2*(now()-t0), sampled{})
}

// Waits that are much shorter than d and waits that are longer, in equal shares by magnitude.
//
//go:noinline
func spreadWait(c chan int, w *wait) { w.begin(); <-c }

const spreadPairs = 16

// spreadTimes go from d/32 to 4d.
func spreadTimes(d time.Duration, i int) time.Duration {
	t := 4 * d
	for k := i % 8; k > 0; k-- {
		t /= 2
	}
	return t
}

func modeSpread(r *run) {
	var g group
	sums := make([]sum, spreadPairs)
	for p := range sums {
		s := &sums[p]
		c := make(chan int)
		w := &wait{}
		g.do(func() {
			for i := 0; i < r.n; i++ {
				spreadWait(c, w)
			}
		})
		g.do(func() {
			for i := 0; i < r.n; i++ {
				t0 := w.parked(spreadTimes(r.d, i))
				lo := now()
				c <- 1
				s.add(t0, lo, now())
			}
		})
	}
	g.wait()
	r.block("spreadWait", "runtime.chanrecv1", join(sums))
}

func join(sums []sum) *sum {
	s := &sum{}
	for _, o := range sums {
		s.lo += o.lo
		s.hi += o.hi
		s.each = append(s.each, o.each...)
	}
	return s
}

// Through methods that the compiler makes: of an embedded struct, called by an interface. Go
// shows them in these profiles from 1.23 on.
type inner struct{ c chan int }

type outer struct {
	pad [3]int
	inner
}

//go:noinline
func (i inner) wrapWait(w *wait) { w.begin(); <-i.c }

//go:noinline
func (o *outer) wrapWake() { o.c <- 1 }

type waiter interface {
	wrapWait(w *wait)
	wrapWake()
}

func modeWrap(r *run) {
	var i waiter = &outer{inner: inner{make(chan int)}}
	s := r.turns(func(w *wait) { i.wrapWait(w) }, i.wrapWake)
	r.block("inner.wrapWait", "runtime.chanrecv1", s)
}
