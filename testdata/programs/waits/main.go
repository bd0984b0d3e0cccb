// waits makes goroutines wait for each other in every way Go knows, a known number of times and
// for a time that it measures itself. What the program needs to arrange that it arranges with
// sleeps and atomics, so that nothing else waits.
//
// It prints "ready" and obeys lines on stdin, each answered by a last line "done":
//
//	run MODE[,MODE...] N MS		N rounds of each mode (mutex100: a tenth), all modes at once, each
//			wait MS long
//	rate NS FRACTION		what the next truth's variances are for (1 1 at first)
//	park N		N goroutines begin to wait; the answer comes once they do
//	release		... and are woken
//	own PREFIX	write Go's own PREFIX.block, PREFIX.mutex and PREFIX.goroutine (built with
//			-tags self: the first two are on as long as the program runs, at the rates
//			above), and say "fraction N", that of mutexes
//	end
//
// Modes are in the table below; "all" stands for those that are exactly known and can run side by
// side. Each prints its truth, one line for each function that is in all stacks of some kind:
//
//	KIND FUNC LEAF COUNT_MIN COUNT_MAX NS_MIN NS_MAX VAR_COUNT VAR_NS ONE_COUNT ONE_NS
//
// KIND is block or mutex, LEAF what Go shows at the leaf ("-": any, or of another function each).
// With KIND wait LEAF is the wait's reason, its blanks turned to "_".
// A wait has begun right before the call that waits, or later where the kernel took the CPU away
// there, and ended between right before the call that ends it and right after: NS_MIN and NS_MAX. It
// ends when the goroutine becomes runnable, not when it runs. VAR are the variances of what is sampled at the given rates by Go's rule, ONE how
// much one sample counts at most.
//
//	label KEY VALUE FUNC COUNT_MIN COUNT_MAX	goroutines with labels of runtime/pprof
//	goid ID FUNC COUNT_MIN COUNT_MAX
//
// Functions named none... wait as well, but not in a way that Go counts: they have a count of 0.
package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

var epoch = time.Now()

func now() int64 { return int64(time.Since(epoch)) }

// What the variances are for.
var rateNS, fraction = int64(1), int64(1)

// allParked does so for many, and says when each began, in that order.
func allParked(ws []wait, d time.Duration) []span {
	began := allTaken(ws)
	time.Sleep(d)
	sort.Slice(began, func(i, j int) bool { return began[i].lo < began[j].lo })
	return began
}

func allTaken(ws []wait) []span {
	var began []span
	for i := range ws {
		began = append(began, ws[i].taken())
	}
	return began
}

// group is what a WaitGroup is, made of sleeps.
type group struct{ running int64 }

func (g *group) do(f func()) {
	atomic.AddInt64(&g.running, 1)
	go func() {
		f()
		atomic.AddInt64(&g.running, -1)
	}()
}

func (g *group) wait() {
	for atomic.LoadInt64(&g.running) != 0 {
		time.Sleep(200 * time.Microsecond)
	}
}

// sum adds up all waits, or all charges, of one kind of stack.
type sum struct {
	lo, hi, extra int64
	each          []int64
}

func (s *sum) add(t0 span, lo, hi int64) {
	s.hi += hi - t0.lo
	if lo < t0.hi { // it may have come too late to wait
		s.extra++
		return
	}
	s.lo += lo - t0.hi
	s.each = append(s.each, (lo+hi)/2-t0.lo)
}

// addAll pairs waits with what ended them: both in order of time.
func (s *sum) addAll(began []span, ended []span) {
	for i := range began {
		s.add(began[i], ended[i].lo, ended[i].hi)
	}
}

// sampled is what sampling does to a sum.
type sampled struct{ count, ns, oneCount, oneNS float64 }

func (v sampled) String() string {
	return fmt.Sprintf("%.6g %.6g %.6g %.6g", v.count, v.ns, v.oneCount, v.oneNS)
}

// variance by the rule of blocksampled and saveblockevent (runtime/mprof.go, Go 1.17 and newer): a
// wait of x < rate is taken with probability x / rate and then counts rate / x, and rate ns.
func (s *sum) blockVariance() (v sampled) {
	r := float64(rateNS)
	for _, ns := range s.each {
		x := math.Max(1, float64(ns))
		if x < r {
			v.count += r/x - 1
			v.ns += r*x - x*x
			v.oneCount = math.Max(v.oneCount, r/x)
			v.oneNS = r
		}
	}
	return v
}

// Each event is taken with probability 1 / fraction, and then counts fraction times.
func (s *sum) mutexVariance() (v sampled) {
	f := math.Max(0, float64(fraction-1))
	if f == 0 {
		return v
	}
	for _, ns := range s.each {
		v.count += f
		v.ns += f * float64(ns) * float64(ns)
		v.oneCount = f + 1
		v.oneNS = math.Max(v.oneNS, (f+1)*float64(ns))
	}
	return v
}

// run is one mode at work.
type run struct {
	n    int
	d    time.Duration
	said []string
}

func (r *run) say(format string, args ...interface{}) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

func (r *run) block(fn, leaf string, s *sum) {
	n := int64(len(s.each))
	r.say("block main.%s %s %d %d %d %d %v", fn, leaf, n, n+s.extra, s.lo, s.hi, s.blockVariance())
	r.wait(fn, reasonOf(leaf), s)
}

func (r *run) wait(fn, reason string, s *sum) {
	n := int64(len(s.each))
	r.say("wait main.%s %s %d %d %d %d %v", fn, strings.ReplaceAll(reason, " ", "_"), n, n+s.extra,
		s.lo, s.hi, s.blockVariance())
}

// reasonOf is what Go calls a wait with this leaf. To Go 1.19 there was one word for all semaphores.
func reasonOf(leaf string) string {
	since := func(m int, reason string) string {
		if minor() < m {
			return "semacquire"
		}
		return reason
	}
	switch leaf {
	case "runtime.chansend1":
		return "chan send"
	case "runtime.selectgo":
		return "select"
	case lockLeaf:
		return since(20, "sync.Mutex.Lock")
	case rwlockLeaf:
		return since(20, "sync.RWMutex.Lock")
	case rlockLeaf:
		return since(20, "sync.RWMutex.RLock")
	case groupLeaf:
		return since(24, "sync.WaitGroup.Wait")
	case condLeaf:
		return "sync.Cond.Wait"
	case fdLeaf:
		return "semacquire"
	}
	return "chan receive"
}

func (r *run) mutex(fn, leaf string, s *sum) {
	n := int64(len(s.each))
	r.say("mutex main.%s %s %d %d %d %d %v", fn, leaf, n, n+s.extra, s.lo, s.hi, s.mutexVariance())
}

func (r *run) none(fn string) {
	r.say("block main.%s - 0 0 0 0 %v", fn, sampled{})
	r.say("mutex main.%s - 0 0 0 0 %v", fn, sampled{})
}

// turns lets one goroutine wait n times, and ends each wait after d.
func (r *run) turns(waits func(w *wait), wakes func()) *sum {
	var w wait
	var g group
	s := &sum{}
	g.do(func() {
		for i := 0; i < r.n; i++ {
			waits(&w)
		}
	})
	for i := 0; i < r.n; i++ {
		t0 := w.parked(r.d)
		lo := now()
		wakes()
		s.add(t0, lo, now())
	}
	g.wait()
	return s
}

// minor is of the Go this is built with: the rules for mutexes depend on it.
func minor() int {
	v := strings.TrimPrefix(runtime.Version(), "go1.")
	if i := strings.IndexFunc(v, func(c rune) bool { return c < '0' || c > '9' }); i >= 0 {
		v = v[:i]
	}
	n, err := strconv.Atoi(v)
	if err != nil {
		return 1000
	}
	return n
}

var modes = map[string]func(r *run){
	"recv": modeRecv, "send": modeSend, "full": modeFull, "empty": modeEmpty, "range": modeRange,
	"select": modeSelect, "reflect": modeReflect, "after": modeAfter, "ticker": modeTicker,
	"close": modeClose, "exit": modeExit, "pingpong": modePingPong, "deep": modeDeep,
	"gc": modeGC, "spread": modeSpread, "wrap": modeWrap, "storm": modeStorm,
	"mutex1": modeMutex1, "mutex3": modeMutex3, "mutex100": modeMutex100,
	"readers": modeReaders, "writer": modeWriter, "writers": modeWriters, "once": modeOnce,
	"waitgroup": modeWaitGroup, "signal": modeSignal, "broadcast": modeBroadcast,
	"starve": modeStarve, "queue": modeQueue, "spreadlock": modeSpreadLock, "fd": modeFd,
	"none": modeNone, "world": modeWorld, "labels": modeLabels, "syscall": modeSyscall,
	"runnable": modeRunnable, "assist": modeAssist, "preempt": modePreempt,
}

// all is what is exactly known and leaves the processors alone.
var all = []string{"recv", "send", "full", "empty", "range", "select", "reflect", "after", "ticker",
	"close", "exit", "deep", "wrap", "mutex1", "mutex3", "readers", "writer", "writers", "once",
	"waitgroup", "signal", "broadcast", "fd", "none"}

func doRun(names string, n int, d time.Duration) {
	var list []string
	for _, name := range strings.Split(names, ",") {
		if name == "all" {
			list = append(list, all...)
		} else {
			list = append(list, name)
		}
	}
	runs := make([]run, len(list))
	var g group
	for i, name := range list {
		mode := modes[name]
		if mode == nil {
			fmt.Println("error: there is no mode", name)
			return
		}
		r := &runs[i]
		r.n, r.d = n, d
		g.do(func() { mode(r) })
	}
	g.wait()
	for i := range runs {
		for _, line := range runs[i].said {
			fmt.Println(line)
		}
	}
}

func obey(line string) bool {
	word := strings.Fields(line)
	num := func(i int) int {
		if i >= len(word) {
			return 0
		}
		n, _ := strconv.Atoi(word[i])
		return n
	}
	if len(word) == 0 || word[0] == "end" {
		return false
	}
	switch {
	case word[0] == "run" && len(word) == 4:
		doRun(word[1], num(2), time.Duration(num(3))*time.Millisecond)
	case word[0] == "rate" && len(word) == 3:
		rateNS, fraction = int64(num(1)), int64(num(2))
		profileMyself(num(1), num(2))
	case word[0] == "park" && len(word) == 2:
		park(num(1))
	case word[0] == "release":
		release()
	case word[0] == "own" && len(word) == 2:
		if err := own(word[1]); err != nil {
			fmt.Println("error:", err)
		}
	default:
		fmt.Println("error: what is", strings.TrimSpace(line))
	}
	fmt.Println("done")
	return true
}

// Main is what main is, for those that load this program as a library.
func Main() {
	profileMyself(1, 1)
	runtime.GC()    // the first one starts its workers, and waits for each to have begun
	<-time.After(1) // the first one reads a setting, for which another first one would wait
	in := bufio.NewReader(os.Stdin)
	fmt.Println("ready")
	for {
		line, err := in.ReadString('\n')
		if err != nil || !obey(line) {
			return
		}
	}
}

func main() { Main() }
