package main

import (
	"sort"
	"sync"
	"sync/atomic"
	"time"
)

// since is how long it was from b to a.
func (a span) since(b span) span {
	s := span{a.lo - b.hi, a.hi - b.lo}
	if s.lo < 0 {
		s.lo = 0
	}
	return s
}

// charges are what Go's mutex profile charges to the unlocks of one semaphore, given when each
// waiter came, in order, and when each was let go: semrelease1 and (*semaRoot).dequeue in
// runtime/sema.go. To Go 1.21 each unlock pays for the time its waiter has been the first one.
// From 1.22 on it pays for those behind as well, by the mean of the first and the last. A single
// one behind has its time set to now before it is read, and the last of several is still taken
// for two: its count of waiters is not brought down to 0.
func charges(came, freed []span) []span {
	var out []span
	acquire := append([]span(nil), came...)
	last := len(acquire) - 1
	behind := int64(last)
	for i, t := range freed {
		head := t.since(acquire[i])
		charge := head
		if i < last {
			acquire[i+1] = t
		}
		if minor() >= 22 && behind != 0 {
			tail := t.since(acquire[last])
			if i+1 == last {
				tail = span{}
			}
			charge.lo += (tail.lo + head.lo) / 2 * behind
			charge.hi += (tail.hi + head.hi) / 2 * behind
			acquire[last] = t
		}
		if behind > 1 {
			behind--
		}
		out = append(out, charge)
	}
	return out
}

// unlocks is when waiters of one lock were let go.
type unlocks []span

func (u *unlocks) add(lo, hi int64) { *u = append(*u, span{lo, hi}) }

// charge adds what the unlocks from..to are charged.
func (s *sum) charge(came []span, u unlocks, from, to int) {
	for _, c := range charges(came, u)[from:to] {
		s.lo += c.lo
		s.hi += c.hi
		s.each = append(s.each, (c.lo+c.hi)/2)
	}
}

func inOrder(turns []span) unlocks {
	sort.Slice(turns, func(i, j int) bool { return turns[i].lo < turns[j].lo })
	return turns
}

//go:noinline
func lockTurn(m *sync.Mutex, w *wait, hold time.Duration, h *span) {
	w.begin()
	m.Lock()
	time.Sleep(hold)
	h.lo = now()
	m.Unlock()
	h.hi = now()
}

//go:noinline
func unlockFirst(m *sync.Mutex, h *span) {
	h.lo = now()
	m.Unlock()
	h.hi = now()
}

// So that one stack has one number of waiters.

//go:noinline
func lock1(m *sync.Mutex, w *wait, hold time.Duration, h *span) { lockTurn(m, w, hold, h) }

//go:noinline
func lock3(m *sync.Mutex, w *wait, hold time.Duration, h *span) { lockTurn(m, w, hold, h) }

//go:noinline
func lock100(m *sync.Mutex, w *wait, hold time.Duration, h *span) { lockTurn(m, w, hold, h) }

//go:noinline
func unlock1(m *sync.Mutex, h *span) { unlockFirst(m, h) }

//go:noinline
func unlock3(m *sync.Mutex, h *span) { unlockFirst(m, h) }

//go:noinline
func unlock100(m *sync.Mutex, h *span) { unlockFirst(m, h) }

type lockFunc func(m *sync.Mutex, w *wait, hold time.Duration, h *span)

// mutexes: the lock is held until k waiters have waited for d; they then have it in turn.
func (r *run) mutexes(k int, hold time.Duration, lock lockFunc, unlock func(m *sync.Mutex, h *span),
	locked, first, others *sum) {
	for i := 0; i < r.n; i++ {
		var m sync.Mutex
		var g group
		var h span
		ws := make([]wait, k)
		turns := make([]span, k)
		m.Lock()
		for j := 0; j < k; j++ {
			w, t := &ws[j], &turns[j]
			g.do(func() { lock(&m, w, hold, t) })
		}
		came := allParked(ws, r.d)
		unlock(&m, &h)
		g.wait()
		u := append(unlocks{h}, inOrder(turns)[:k-1]...) // nobody waits for the last one
		locked.addAll(came, u)
		first.charge(came, u, 0, 1)
		others.charge(came, u, 1, k)
	}
}

const (
	lockLeaf     = "sync.(*Mutex).Lock"
	unlockLeaf   = "sync.(*Mutex).Unlock"
	rlockLeaf    = "sync.(*RWMutex).RLock"
	runlockLeaf  = "sync.(*RWMutex).RUnlock"
	rwlockLeaf   = "sync.(*RWMutex).Lock"
	rwunlockLeaf = "sync.(*RWMutex).Unlock"
	groupLeaf    = "sync.(*WaitGroup).Wait"
	condLeaf     = "sync.(*Cond).Wait"
)

func modeMutex1(r *run) {
	var locked, first, others sum
	r.mutexes(1, 0, lock1, unlock1, &locked, &first, &others)
	r.block("lock1", lockLeaf, &locked)
	r.mutex("unlock1", unlockLeaf, &first)
}

func modeMutex3(r *run) {
	var locked, first, others sum
	r.mutexes(3, r.d/2, lock3, unlock3, &locked, &first, &others)
	r.block("lock3", lockLeaf, &locked)
	r.mutex("unlock3", unlockLeaf, &first)
	r.mutex("lock3", unlockLeaf, &others)
}

func modeMutex100(r *run) {
	var locked, first, others sum
	r.n = (r.n + 9) / 10
	r.mutexes(100, r.d/10, lock100, unlock100, &locked, &first, &others)
	r.block("lock100", lockLeaf, &locked)
	r.mutex("unlock100", unlockLeaf, &first)
	r.mutex("lock100", unlockLeaf, &others)
}

// Many locks with one waiter each, for rates that sample.
//
//go:noinline
func lockSpread(m *sync.Mutex, w *wait, hold time.Duration, h *span) {
	lockTurn(m, w, hold, h)
}

//go:noinline
func unlockSpread(m *sync.Mutex, h *span) { unlockFirst(m, h) }

func modeSpreadLock(r *run) {
	var g group
	locked, first, others := make([]sum, spreadPairs), make([]sum, spreadPairs), make([]sum, spreadPairs)
	for p := 0; p < spreadPairs; p++ {
		a, b, c := &locked[p], &first[p], &others[p]
		g.do(func() { r.mutexes(1, 0, lockSpread, unlockSpread, a, b, c) })
	}
	g.wait()
	r.block("lockSpread", lockLeaf, join(locked))
	r.mutex("unlockSpread", unlockLeaf, join(first))
}

//go:noinline
func rlockBehind(m *sync.RWMutex, w *wait) {
	w.begin()
	m.RLock()
	m.RUnlock()
}

//go:noinline
func unlockReaders(m *sync.RWMutex) { m.Unlock() }

const readers = 5

// Readers behind a writer: one unlock lets all of them go.
func modeReaders(r *run) {
	var block, mutex sum
	for i := 0; i < r.n; i++ {
		var m sync.RWMutex
		var g group
		var u unlocks
		ws := make([]wait, readers)
		m.Lock()
		for j := range ws {
			w := &ws[j]
			g.do(func() { rlockBehind(&m, w) })
		}
		came := allParked(ws, r.d)
		lo := now()
		unlockReaders(&m)
		hi := now()
		for range came {
			u.add(lo, hi)
		}
		block.addAll(came, u)
		mutex.charge(came, u, 0, readers)
		g.wait()
	}
	r.block("rlockBehind", rlockLeaf, &block)
	r.mutex("unlockReaders", rwunlockLeaf, &mutex)
}

//go:noinline
func lockBehind(m *sync.RWMutex, w *wait) {
	w.begin()
	m.Lock()
	m.Unlock()
}

//go:noinline
func runlockWriter(m *sync.RWMutex) { m.RUnlock() }

// A writer behind readers: the last of them lets it go.
func modeWriter(r *run) {
	var block, mutex sum
	for i := 0; i < r.n; i++ {
		var m sync.RWMutex
		var g group
		var w wait
		for j := 0; j < readers; j++ {
			m.RLock()
		}
		g.do(func() { lockBehind(&m, &w) })
		t0 := w.parked(r.d)
		for j := 0; j < readers-1; j++ {
			runlockWriter(&m)
			time.Sleep(time.Millisecond)
		}
		lo := now()
		runlockWriter(&m)
		hi := now()
		block.add(t0, lo, hi)
		mutex.add(t0, lo, hi)
		g.wait()
	}
	r.block("lockBehind", rwlockLeaf, &block)
	r.mutex("runlockWriter", runlockLeaf, &mutex)
}

//go:noinline
func lockSecond(m *sync.RWMutex, w *wait) {
	w.begin()
	m.Lock()
	m.Unlock()
}

//go:noinline
func unlockSecond(m *sync.RWMutex) { m.Unlock() }

// A writer behind a writer waits for the mutex inside.
func modeWriters(r *run) {
	var m sync.RWMutex
	var block sum
	for i := 0; i < r.n; i++ {
		var g group
		var w wait
		m.Lock()
		g.do(func() { lockSecond(&m, &w) })
		t0 := w.parked(r.d)
		lo := now()
		unlockSecond(&m)
		block.add(t0, lo, now())
		g.wait()
	}
	r.block("lockSecond", lockLeaf, &block)
	r.mutex("unlockSecond", unlockLeaf, &block)
}

//go:noinline
func onceWait(o *sync.Once, w *wait, f func()) { w.begin(); o.Do(f) }

//go:noinline
func onceFirst(o *sync.Once, f func()) { o.Do(f) }

// Those that come while the function runs wait for a mutex that is unlocked by a defer.
func modeOnce(r *run) {
	var block, first, others sum
	const many = 2
	for i := 0; i < r.n; i++ {
		var o sync.Once
		var g, g2 group
		var u unlocks
		var stop, began, lo, hi int64
		ws := make([]wait, many)
		turns := make([]span, many)
		g.do(func() {
			onceFirst(&o, func() {
				atomic.StoreInt64(&began, 1)
				for atomic.LoadInt64(&stop) == 0 {
					time.Sleep(100 * time.Microsecond)
				}
				lo = now()
			})
			hi = now()
		})
		for atomic.LoadInt64(&began) == 0 {
			time.Sleep(100 * time.Microsecond)
		}
		for j := range ws {
			w, t := &ws[j], &turns[j]
			g2.do(func() {
				onceWait(&o, w, nil)
				t.hi = now()
			})
		}
		came := allParked(ws, r.d)
		atomic.StoreInt64(&stop, 1)
		g.wait()
		g2.wait()
		for j := range turns {
			turns[j].lo = lo
		}
		sort.Slice(turns, func(i, j int) bool { return turns[i].hi < turns[j].hi })
		u.add(lo, hi)
		for _, t := range turns[:many-1] {
			u.add(t.lo, t.hi)
		}
		block.addAll(came, u)
		first.charge(came, u, 0, 1)
		others.charge(came, u, 1, many)
	}
	r.block("onceWait", lockLeaf, &block)
	r.mutex("onceFirst", unlockLeaf, &first)
	r.mutex("onceWait", unlockLeaf, &others)
}

//go:noinline
func groupWait(wg *sync.WaitGroup, w *wait) { w.begin(); wg.Wait() }

func modeWaitGroup(r *run) {
	const many = 4
	var s sum
	for i := 0; i < r.n; i++ {
		var wg sync.WaitGroup
		var g group
		ws := make([]wait, many)
		wg.Add(1)
		for j := range ws {
			w := &ws[j]
			g.do(func() { groupWait(&wg, w) })
		}
		came := allParked(ws, r.d)
		lo := now()
		wg.Done()
		hi := now()
		for _, t := range came {
			s.add(t, lo, hi)
		}
		g.wait()
	}
	r.block("groupWait", groupLeaf, &s)
	r.say("mutex main.groupWait - 0 0 0 0 %v", sampled{})
}

// The lock of a Cond, which nobody ever waits for.
type free struct{}

func (free) Lock()   {}
func (free) Unlock() {}

//go:noinline
func signalWait(c *sync.Cond, w *wait) { w.begin(); c.Wait() }

func modeSignal(r *run) {
	c := sync.NewCond(free{})
	s := r.turns(func(w *wait) { signalWait(c, w) }, func() { c.Signal() })
	r.block("signalWait", condLeaf, s)
}

//go:noinline
func broadcastWait(c *sync.Cond, w *wait) { w.begin(); c.Wait() }

func modeBroadcast(r *run) {
	const many = 10
	var s sum
	c := sync.NewCond(free{})
	for i := 0; i < r.n; i++ {
		var g group
		ws := make([]wait, many)
		for j := range ws {
			w := &ws[j]
			g.do(func() { broadcastWait(c, w) })
		}
		came := allParked(ws, r.d)
		lo := now()
		c.Broadcast()
		hi := now()
		for _, t := range came {
			s.add(t, lo, hi)
		}
		g.wait()
	}
	r.block("broadcastWait", condLeaf, &s)
}

//go:noinline
func starveHog(m *sync.Mutex, stop *int64, d time.Duration) {
	for atomic.LoadInt64(stop) == 0 {
		m.Lock()
		for end := now() + int64(d); now() < end; {
		}
		m.Unlock()
	}
}

//go:noinline
func starveWait(m *sync.Mutex) { m.Lock(); m.Unlock() }

// A loop that holds the lock nearly always: whoever waits finds it locked again when woken, and
// has it handed over after that. How often each side waits is for the scheduler to say.
func modeStarve(r *run) {
	var m sync.Mutex
	var g group
	var stop, hi int64
	g.do(func() { starveHog(&m, &stop, r.d) })
	for i := 0; i < r.n; i++ {
		t0 := now()
		starveWait(&m)
		hi += now() - t0
		time.Sleep(r.d / 2)
	}
	atomic.StoreInt64(&stop, 1)
	g.wait()
	n := r.n
	r.say("block main.starveWait %s %d %d 0 %d %v", lockLeaf, n/2, 3*n, hi, sampled{})
	r.say("block main.starveHog %s 0 %d 0 %d %v", lockLeaf, 2*n, hi, sampled{})
	r.say("mutex main.starveHog %s %d %d 0 %d %v", unlockLeaf, n/2, 3*n, 3*hi, sampled{})
	r.say("mutex main.starveWait %s 0 %d 0 %d %v", unlockLeaf, 2*n, 3*hi, sampled{})
}

//go:noinline
func queueHold(m *sync.Mutex, d time.Duration) {
	m.Lock()
	for end := now() + int64(d); now() < end; {
	}
	m.Unlock()
}

// Four that come back while others wait, so that the queue becomes short and long: who unlocks is charged
// with more than was waited (runtime/sema.go counts a waiter too many). Go's own profile tells with how much.
func modeQueue(r *run) {
	var m sync.Mutex
	var g group
	for i := 0; i < 4; i++ {
		g.do(func() {
			for i := 0; i < r.n; i++ {
				queueHold(&m, r.d)
				time.Sleep(r.d * 3 / 2)
			}
		})
	}
	g.wait()
}
