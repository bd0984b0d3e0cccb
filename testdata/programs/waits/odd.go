package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"
)

// ---- stacks that move ----

//go:noinline
func deepWait(c chan int, w *wait) { w.begin(); <-c }

// Each call has a frame of 12 KiB.
//
//go:noinline
func deepCall(depth int, f func()) byte {
	var pad [12 << 10]byte
	pad[depth*100] = byte(depth)
	if depth == 0 {
		f()
		return pad[1]
	}
	return deepCall(depth-1, f) + pad[depth*100]
}

// deeps: goroutines that begin with a small stack wait below a recursion, or after one.
func (r *run) deeps(before time.Duration) *sum {
	const many = 12
	s := &sum{}
	for i := 0; i < r.n; i++ {
		var g group
		c := make(chan int)
		ws := make([]wait, many)
		for k := range ws {
			k := k
			g.do(func() {
				if k%2 == 0 {
					deepCall(k, func() { deepWait(c, &ws[k]) })
				} else {
					deepCall(k, func() {})
					deepWait(c, &ws[k])
				}
			})
		}
		came := allParked(ws, before)
		var u unlocks
		for range ws {
			lo := now()
			c <- 1
			u.add(lo, now())
		}
		s.addAll(came, u)
		g.wait()
	}
	return s
}

func modeDeep(r *run) { r.block("deepWait", "runtime.chanrecv1", r.deeps(r.d)) }

// The same while the collector shrinks the stacks of those that wait.
func modeGC(r *run) {
	var g group
	var stop int64
	g.do(func() {
		for atomic.LoadInt64(&stop) == 0 {
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
	})
	s := r.deeps(r.d)
	atomic.StoreInt64(&stop, 1)
	g.wait()
	r.block("deepWait", "runtime.chanrecv1", s)
}

// ---- at the window's edges ----

//go:noinline
func parkedWait(c chan int, w *wait) { w.begin(); <-c }

var parkedOn = make(chan int)
var parkedCame []span
var parkedGroup group

func park(n int) {
	ws := make([]wait, n)
	for i := range ws {
		w := &ws[i]
		parkedGroup.do(func() { parkedWait(parkedOn, w) })
	}
	parkedCame = allParked(ws, 20*time.Millisecond)
}

func release() {
	var r run
	var s sum
	lo := now()
	close(parkedOn)
	hi := now()
	parkedGroup.wait()
	for _, t := range parkedCame {
		s.add(t, lo, hi)
	}
	parkedOn, parkedCame = make(chan int), nil
	r.block("parkedWait", "runtime.chanrecv1", &s)
	for _, line := range r.said {
		fmt.Println(line)
	}
}

// ---- what Go does not count ----

//go:noinline
func noneSleep(d time.Duration) { time.Sleep(d) }

//go:noinline
func noneSelect() { select {} }

//go:noinline
func noneNilRecv(c chan int) { <-c }

//go:noinline
func noneNilSend(c chan int) { c <- 1 }

//go:noinline
func nonePoll(f *os.File, w *wait) { w.begin(); f.Read(make([]byte, 1)) }

// What needs not wait is not counted either.
//
//go:noinline
func noneReady(c chan int) {
	for i := 0; i < cap(c); i++ {
		c <- i
	}
	for i := 0; i < cap(c); i++ {
		<-c
	}
	select {
	case <-c:
	default:
	}
}

var forever int64

func modeNone(r *run) {
	var g group
	if atomic.AddInt64(&forever, 1) == 1 {
		go noneSelect()
		go noneNilRecv(nil)
		go noneNilSend(nil)
	}
	in, out, err := os.Pipe()
	if err != nil {
		r.say("error: %v", err)
		return
	}
	c := make(chan int, 100)
	var sleeps, polls sum
	for i := 0; i < r.n; i++ {
		var w wait
		var woken int64
		g.do(func() {
			nonePoll(in, &w)
			woken = now()
		})
		noneReady(c)
		slept := now()
		noneSleep(r.d)
		sleeps.add(span{slept, slept}, slept+int64(r.d), now())
		t0 := w.parked(r.d)
		lo := now()
		out.Write([]byte{1})
		g.wait()
		polls.add(t0, lo, woken)
	}
	in.Close()
	out.Close()
	r.wait("noneSleep", "sleep", &sleeps)
	r.wait("nonePoll", "IO wait", &polls)
	for _, fn := range []string{"noneSleep", "noneSelect", "noneNilRecv", "noneNilSend", "nonePoll", "noneReady"} {
		r.none(fn)
	}
}

// Semaphores of the runtime's own, which have the same wait reason as a mutex had to Go 1.19.
//
//go:noinline
func noneWorld(n int) {
	var m runtime.MemStats
	for i := 0; i < n; i++ {
		runtime.ReadMemStats(&m)
		runtime.GC()
	}
}

func modeWorld(r *run) {
	var g group
	for i := 0; i < 4; i++ {
		g.do(func() { noneWorld(r.n) })
	}
	g.wait()
	r.none("noneWorld")
}

// ---- one more semaphore that counts ----

//go:noinline
func fdWait(f *os.File, w *wait) { w.begin(); f.Read(make([]byte, 1)) }

//go:noinline
func fdFirst(f *os.File) { f.Read(make([]byte, 1)) }

const fdLeaf = "-"

// The poller starts with the first pipe, and whoever opens another one meanwhile waits for that.
func init() {
	if in, out, err := os.Pipe(); err == nil {
		in.Close()
		out.Close()
	}
}

// Of two readers of one file the second waits for the first, which waits for the network poller.
func modeFd(r *run) {
	var s sum
	in, out, err := os.Pipe()
	if err != nil {
		r.say("error: %v", err)
		return
	}
	for i := 0; i < r.n; i++ {
		var g, g2 group
		var w wait
		var first, begun int64
		g.do(func() {
			atomic.StoreInt64(&begun, 1)
			fdFirst(in)
			atomic.StoreInt64(&first, now())
		})
		for atomic.LoadInt64(&begun) == 0 {
			time.Sleep(time.Millisecond)
		}
		time.Sleep(20 * time.Millisecond)
		g2.do(func() { fdWait(in, &w) })
		t0 := w.parked(r.d)
		lo := now()
		out.Write([]byte{1})
		for atomic.LoadInt64(&g.running) != 0 && atomic.LoadInt64(&g2.running) != 0 {
			time.Sleep(200 * time.Microsecond)
		}
		if hi := atomic.LoadInt64(&first); hi != 0 {
			s.add(t0, lo, hi)
		} else { // they came in the other order: it waited for the network, and the first for it
			s.extra++
			s.hi += now() - t0.lo
		}
		out.Write([]byte{1})
		g.wait()
		g2.wait()
	}
	in.Close()
	out.Close()
	r.block("fdWait", fdLeaf, &s)
	r.say("block main.fdFirst - 0 %d 0 %d %v", s.extra, s.hi, sampled{})
	r.say("mutex main.fdWait - 0 0 0 0 %v", sampled{})
	r.say("mutex main.fdFirst - 0 0 0 0 %v", sampled{})
}

// ---- whose wait it was ----

//go:noinline
func labelWait(c chan int, w *wait) { w.begin(); <-c }

func goid() int {
	var buf [64]byte
	word := bytes.Fields(buf[:runtime.Stack(buf[:], false)])
	n, _ := strconv.Atoi(string(word[1]))
	return n
}

// Three goroutines with labels, the i-th of which waits i+1 times a round.
func modeLabels(r *run) {
	s := &sum{}
	for i := 0; i < 3; i++ {
		var g group
		var w wait
		var id int64
		c := make(chan int)
		n := (i + 1) * r.n
		g.do(func() {
			atomic.StoreInt64(&id, int64(goid()))
			withLabels(func() {
				for k := 0; k < n; k++ {
					labelWait(c, &w)
				}
			}, "who", fmt.Sprint("worker-", i), "tier", "back")
		})
		for k := 0; k < n; k++ {
			t0 := w.parked(r.d)
			lo := now()
			c <- 1
			s.add(t0, lo, now())
		}
		g.wait()
		r.say("label who worker-%d main.labelWait %d %d", i, n, n)
		r.say("goid %d main.labelWait %d %d", id, n, n)
	}
	r.block("labelWait", "runtime.chanrecv1", s)
}
