// relay has goroutines wait for each other, two of them more than a million times a second, and
// writes down how often, how long and when, so that an estimate of any of its seconds can be judged.
//
//	relay [-own] [-only | -calm] LOG
//
//	ping, pong	hand a number to and fro over unbuffered channels: each waits once a round
//	wait1, wait20, wait300	wait for a channel that is written to every 1, 20, 300 ms
//	want		asks for a mutex that hold has, for 2 ms each time
//	-own		have Go's own block profile on, at the usual 10000 ns: how long ping and pong waited
//			is known by that alone, as timing each of their waits would double them
//	-only		ping and pong alone
//	-calm		all but these two
//
// They share one P: with more, and with few others to run, Go hands goroutines that wake each other
// from one thread to the next.
//
// It prints "ready". LOG has a line for each site, "site FUNC block|mutex", then every 10 ms a line
// "at FROM TO (COUNT LO HI)...": what each site had waited at some moment between FROM and TO, in
// ns of the real-time clock. A wait has begun right before the call that waits, and ended between
// right before the call that ends it (LO) and right after (HI).
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var epoch = time.Now()

func now() int64 { return int64(time.Since(epoch)) }

// tally is one site's; only one goroutine writes it, on cache lines of its own.
type tally struct {
	_             [128]byte
	began         int64 // of a wait that is timed and under way
	count, lo, hi int64
	_             [128]byte
}

func (t *tally) add(count, lo, hi int64) {
	atomic.StoreInt64(&t.lo, t.lo+lo)
	atomic.StoreInt64(&t.hi, t.hi+hi)
	atomic.StoreInt64(&t.count, t.count+count)
}

const (
	tPing = iota
	tPong
	tWait1
	tWait20
	tWait300
	tWant
	tHold
	ntallies
)

var sites = [ntallies]string{
	"main.ping block", "main.pong block", "main.wait1 block", "main.wait20 block",
	"main.wait300 block", "main.want block", "main.hold mutex",
}

var tallies [ntallies]tally

//go:noinline
func ping(a, b chan int) {
	t := &tallies[tPing]
	for i := 0; ; i++ {
		a <- i
		<-b
		atomic.StoreInt64(&t.count, t.count+1)
	}
}

//go:noinline
func pong(a, b chan int) {
	t := &tallies[tPong]
	for i := range a {
		atomic.StoreInt64(&t.count, t.count+1)
		b <- i
	}
}

// Each waits in a line of its own: that is what a profile says it is sure of.

//go:noinline
func wait1(t *tally, c chan int) {
	for {
		atomic.StoreInt64(&t.began, now())
		<-c
	}
}

//go:noinline
func wait20(t *tally, c chan int) {
	for {
		atomic.StoreInt64(&t.began, now())
		<-c
	}
}

//go:noinline
func wait300(t *tally, c chan int) {
	for {
		atomic.StoreInt64(&t.began, now())
		<-c
	}
}

// parked returns when the wait has lasted for d, and says when it began.
func (t *tally) parked(d time.Duration) int64 {
	for atomic.LoadInt64(&t.began) == 0 {
		time.Sleep(50 * time.Microsecond)
	}
	time.Sleep(time.Duration(atomic.LoadInt64(&t.began) + int64(d) - now()))
	return atomic.SwapInt64(&t.began, 0)
}

func sendEvery(t *tally, c chan int, d time.Duration) {
	for {
		began := t.parked(d)
		lo := now()
		c <- 1
		t.add(1, lo-began, now()-began)
	}
}

var (
	mu   sync.Mutex
	turn int32 // 0 hold's, 1 want's
)

func setTurn(n int32) { atomic.StoreInt32(&turn, n) }

func waitTurn(n int32) {
	for atomic.LoadInt32(&turn) != n {
		time.Sleep(50 * time.Microsecond)
	}
}

//go:noinline
func want(t *tally) {
	for {
		waitTurn(1)
		atomic.StoreInt64(&t.began, now())
		mu.Lock()
		mu.Unlock()
		setTurn(0)
	}
}

//go:noinline
func hold(asked, t *tally) {
	for {
		mu.Lock()
		setTurn(1)
		began := asked.parked(2 * time.Millisecond)
		lo := now()
		mu.Unlock()
		hi := now()
		asked.add(1, lo-began, hi-began)
		t.add(1, lo-began, hi-began)
		waitTurn(0)
	}
}

// ---- Go's own block profile ----

// Go's clock of a wait begins to run as the goroutine asks: it parks at most so much of its CPU time after.
const parkNS = 30

var (
	ticksPerNS float64 // of BlockProfileRecord.Cycles; 0: it is not on
	records    = make([]runtime.BlockProfileRecord, 1000)
	siteOf     = map[[32]uintptr]int{} // by stack; -1: none
)

func functionIn(r *runtime.BlockProfileRecord, name string) bool {
	frames := runtime.CallersFrames(r.Stack())
	for more := true; more; {
		var f runtime.Frame
		if f, more = frames.Next(); f.Function == name {
			return true
		}
	}
	return false
}

func site(r *runtime.BlockProfileRecord) int {
	i, ok := siteOf[r.Stack0]
	if ok {
		return i
	}
	i = -1
	for _, k := range [...]int{tPing, tPong} {
		if functionIn(r, strings.Fields(sites[k])[0]) {
			i = k
		}
	}
	siteOf[r.Stack0] = i
	return i
}

func readOwn() {
	var ticks [ntallies]int64
	n, ok := runtime.BlockProfile(records)
	if !ok {
		panic("more kinds of waits than were thought of")
	}
	for i := range records[:n] {
		if k := site(&records[i]); k >= 0 {
			ticks[k] += records[i].Cycles
		}
	}
	for _, k := range [...]int{tPing, tPong} {
		tallies[k].hi = int64(float64(ticks[k]) / ticksPerNS)
		tallies[k].lo = tallies[k].hi - int64(float64(parkNS*atomic.LoadInt64(&tallies[k].count))*slowness())
	}
}

// slowness is how much longer all takes than it has CPU time: others want it, too.
func slowness() float64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	cpu := r.Utime.Nano() + r.Stime.Nano()
	if cpu < 1 || now() < cpu {
		return 1
	}
	return float64(now()) / float64(cpu)
}

// calibrate waits once for a known time.
//
//go:noinline
func calibrate() {
	c := make(chan int64)
	runtime.SetBlockProfileRate(1)
	began := now()
	go func() {
		time.Sleep(500 * time.Millisecond)
		c <- now()
	}()
	ns := <-c - began
	runtime.SetBlockProfileRate(10000)
	n, _ := runtime.BlockProfile(records)
	for i := range records[:n] {
		if functionIn(&records[i], "main.calibrate") {
			ticksPerNS = float64(records[i].Cycles) / float64(ns)
		}
	}
}

func appendTally(buf []byte, t *tally) []byte {
	for _, v := range [...]int64{atomic.LoadInt64(&t.count), atomic.LoadInt64(&t.lo), atomic.LoadInt64(&t.hi)} {
		buf = append(buf, ' ')
		buf = strconv.AppendInt(buf, v, 10)
	}
	return buf
}

func record(log *os.File, first, n int) {
	buf, row := make([]byte, 0, 4096), make([]byte, 0, 4096)
	for {
		row = row[:0]
		from := time.Now().UnixNano()
		if ticksPerNS > 0 {
			readOwn()
		}
		for i := first; i < n; i++ {
			row = appendTally(row, &tallies[i])
		}
		to := time.Now().UnixNano()
		buf = append(buf[:0], "at "...)
		buf = strconv.AppendInt(buf, from, 10)
		buf = append(buf, ' ')
		buf = strconv.AppendInt(buf, to, 10)
		buf = append(buf, row...)
		buf = append(buf, '\n')
		if _, err := log.Write(buf); err != nil {
			panic(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func main() {
	own := flag.Bool("own", false, "have Go's own block profile on")
	only := flag.Bool("only", false, "ping and pong alone")
	calm := flag.Bool("calm", false, "all but ping and pong")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: relay [-own] [-only | -calm] LOG")
		os.Exit(2)
	}
	runtime.GOMAXPROCS(1)
	log, err := os.OpenFile(flag.Arg(0), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0666)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	first, n := 0, len(sites)
	if *only {
		n = tWait1
	}
	if *calm {
		first = tWait1
	}
	for _, s := range sites[first:n] {
		fmt.Fprintln(log, "site", s)
	}
	if *own {
		calibrate()
	}
	if !*calm {
		a, b := make(chan int), make(chan int)
		go pong(a, b)
		go ping(a, b)
	}
	if !*only {
		for _, w := range []struct {
			run  func(*tally, chan int)
			t    *tally
			each time.Duration
		}{
			{wait1, &tallies[tWait1], time.Millisecond},
			{wait20, &tallies[tWait20], 20 * time.Millisecond},
			{wait300, &tallies[tWait300], 300 * time.Millisecond},
		} {
			c := make(chan int)
			go w.run(w.t, c)
			go sendEvery(w.t, c, w.each)
		}
		go want(&tallies[tWant])
		go hold(&tallies[tWant], &tallies[tHold])
	}
	fmt.Println("ready")
	record(log, first, n)
}
