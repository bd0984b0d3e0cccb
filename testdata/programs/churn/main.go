// churn allocates in one of several rhythms until it is killed, or for so long, and writes down how
// often each of its sites did and when, so that an estimate of any of its seconds can be judged. It
// links no pprof.
//
//	churn [-period D] [-every D] [-seed N] [-for D] MODE LOG
//
//	heavy		two goroutines allocate from all sites in turn, with a little work for each object: some
//			five million a second on two CPUs
//	flood		the same without the work: nothing but allocation, some forty million a second
//	skewed		two goroutines with sites of their own: one does little but allocate, the other
//			works a microsecond for each of its allocations; some slots of theirs are of one size
//	bursty		idle, but for bursts of 50 ms with pauses of random length between them, -every (950ms) on
//			average, each with one of three sets of sites
//	periodic	the quarters of each period D (250ms) have different sites, and one has none
//	edges		two goroutines with sizes on both sides of where large objects begin: from Go 1.22 on at
//			32,761 bytes, which take as much as the largest slots do
//	light		a few thousand allocations a second, and a tenth of a CPU's work
//
// It prints "ready". LOG has a line for each site, "site NAME heap BYTES", BYTES those of a slot, then
// every 10 ms a line "at FROM TO N...": how many slots each site had taken at some moment
// between FROM and TO, in ns of the real-time clock. Objects of the tiny allocator take half a slot.
// Writing the log allocates nothing.
package main

import (
	"flag"
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"
)

type ptr16 struct {
	next *ptr16
	n    int
}

type ptr64 struct {
	next *ptr64
	data [56]byte
}

// Objects end here, so that each one escapes: one of these per goroutine, each on lines of the
// cache of its own.
type out struct {
	_     [128]byte
	word  *uint64
	two   *[2]uint64
	eight *[8]uint64
	p16   *ptr16
	p64   *ptr64
	slice []byte
	ptrs  []*int
	sum   uint64
	n     [nsites]uint64
	_     [128]byte
}

//go:noinline
func tiny8(o *out, n int) {
	for i := 0; i < 2*n; i++ {
		o.word = new(uint64)
	}
}

//go:noinline
func flat16(o *out, n int) {
	for i := 0; i < n; i++ {
		o.two = new([2]uint64)
	}
}

//go:noinline
func pointers16(o *out, n int) {
	for i := 0; i < n; i++ {
		o.p16 = &ptr16{n: i}
	}
}

// Four of one size class, from here on.
//
//go:noinline
func flat64(o *out, n int) {
	for i := 0; i < n; i++ {
		o.eight = new([8]uint64)
	}
}

//go:noinline
func other64(o *out, n int) {
	for i := 0; i < n; i++ {
		o.eight = new([8]uint64)
	}
}

//go:noinline
func third64(o *out, n int) {
	for i := 0; i < n; i++ {
		o.eight = new([8]uint64)
	}
}

//go:noinline
func worked64(o *out, n int) {
	for i := 0; i < n; i++ {
		o.work(1000)
		o.eight = new([8]uint64)
	}
}

//go:noinline
func pointers64(o *out, n int) {
	for i := 0; i < n; i++ {
		o.p64 = new(ptr64)
	}
}

// 1000 bytes take a slot of 1024.
//
//go:noinline
func slice1000(o *out, n int) {
	for i := 0; i < n; i++ {
		o.slice = make([]byte, 1000)
	}
}

//go:noinline
func worked1000(o *out, n int) {
	for i := 0; i < n; i++ {
		o.work(1000)
		o.slice = make([]byte, 1000)
	}
}

// 513 pointers: 4104 bytes, a slot of 4864.
//
//go:noinline
func pointers4104(o *out, n int) {
	for i := 0; i < n; i++ {
		o.ptrs = make([]*int, 513)
	}
}

//go:noinline
func large64k(o *out, n int) {
	for i := 0; i < n; i++ {
		o.slice = make([]byte, 64<<10)
	}
}

//go:noinline
func large128k(o *out, n int) {
	for i := 0; i < n; i++ {
		o.slice = make([]byte, 128<<10)
	}
}

// All but the next to last take 32768 bytes: a slot, or from Go 1.22 on, above 32760, pages.
//
//go:noinline
func flat31k(o *out, n int) {
	for i := 0; i < n; i++ {
		o.slice = make([]byte, 31<<10)
	}
}

//go:noinline
func flat32760(o *out, n int) {
	for i := 0; i < n; i++ {
		o.slice = make([]byte, 32760)
	}
}

//go:noinline
func flat32761(o *out, n int) {
	for i := 0; i < n; i++ {
		o.slice = make([]byte, 32761)
	}
}

//go:noinline
func flat32k(o *out, n int) {
	for i := 0; i < n; i++ {
		o.slice = make([]byte, 32<<10)
	}
}

// 32760 bytes, and from Go 1.22 on 8 more.
//
//go:noinline
func pointers32760(o *out, n int) {
	for i := 0; i < n; i++ {
		o.ptrs = make([]*int, 4095)
	}
}

//go:noinline
func flat40k(o *out, n int) {
	for i := 0; i < n; i++ {
		o.slice = make([]byte, 40<<10)
	}
}

//go:noinline
func pointers32k(o *out, n int) {
	for i := 0; i < n; i++ {
		o.ptrs = make([]*int, 4096)
	}
}

// work takes about a nanosecond for each of n.
//
//go:noinline
func (o *out) work(n int) {
	x := o.sum | 1
	for i := 0; i < n; i++ {
		x = x*6364136223846793005 + 1442695040888963407
	}
	o.sum = x
}

const nsites = 20

var sites = [nsites]struct {
	name  string
	bytes int
	run   func(o *out, n int)
}{
	{"main.tiny8", 16, tiny8},
	{"main.flat16", 16, flat16},
	{"main.pointers16", 16, pointers16},
	{"main.flat64", 64, flat64},
	{"main.other64", 64, other64},
	{"main.third64", 64, third64},
	{"main.worked64", 64, worked64},
	{"main.pointers64", 64, pointers64},
	{"main.slice1000", 1024, slice1000},
	{"main.worked1000", 1024, worked1000},
	{"main.pointers4104", 4864, pointers4104},
	{"main.large64k", 64 << 10, large64k},
	{"main.large128k", 128 << 10, large128k},
	{"main.flat31k", 32 << 10, flat31k},
	{"main.flat32760", 32 << 10, flat32760},
	{"main.flat32761", 32 << 10, flat32761},
	{"main.flat32k", 32 << 10, flat32k},
	{"main.pointers32760", 32 << 10, pointers32760},
	{"main.flat40k", 40 << 10, flat40k},
	{"main.pointers32k", 32 << 10, pointers32k},
}

// step has one site allocate n slots, every times'th time it is asked.
type step struct{ site, n, every int }

const (
	sTiny8 = iota
	sFlat16
	sPointers16
	sFlat64
	sOther64
	sThird64
	sWorked64
	sPointers64
	sSlice1000
	sWorked1000
	sPointers4104
	sLarge64k
	sLarge128k
	sFlat31k
	sFlat32760
	sFlat32761
	sFlat32k
	sPointers32760
	sFlat40k
	sPointers32k
)

var all = []step{
	{sTiny8, 32, 1}, {sFlat16, 64, 1}, {sPointers16, 32, 1}, {sFlat64, 48, 1}, {sOther64, 24, 1},
	{sThird64, 8, 1}, {sPointers64, 32, 1}, {sSlice1000, 4, 1}, {sPointers4104, 1, 4},
	{sLarge64k, 1, 16}, {sLarge128k, 1, 64},
}

var hot = []step{{sFlat64, 64, 1}, {sFlat16, 32, 1}, {sSlice1000, 8, 1}}
var worked = []step{{sWorked64, 16, 1}, {sWorked1000, 4, 1}, {sLarge64k, 1, 16}}

var edges = []step{
	{sFlat31k, 1, 1}, {sFlat32760, 1, 1}, {sFlat32761, 1, 1}, {sFlat32k, 1, 1}, {sPointers32760, 1, 1},
	{sFlat40k, 2, 1}, {sPointers32k, 1, 1}, {sSlice1000, 4, 1},
}

var sets = [3][]step{
	{{sFlat64, 32, 1}, {sFlat16, 32, 1}},
	{{sOther64, 32, 1}, {sPointers16, 32, 1}},
	{{sThird64, 32, 1}, {sSlice1000, 8, 1}, {sFlat16, 16, 1}},
}

var quarters = [4][]step{
	{{sFlat64, 32, 1}, {sFlat16, 16, 1}},
	{{sOther64, 32, 1}},
	nil,
	{{sThird64, 32, 1}, {sSlice1000, 8, 1}},
}

// round goes through the steps once.
func (o *out) round(steps []step, turn int) {
	for _, s := range steps {
		if turn%s.every != 0 {
			continue
		}
		sites[s.site].run(o, s.n)
		atomic.StoreUint64(&o.n[s.site], o.n[s.site]+uint64(s.n))
	}
}

func objects(steps []step) (n int) {
	for _, s := range steps {
		n += s.n / s.every
	}
	return n
}

// forever works for so many ns for each object of a round.
func (o *out) forever(steps []step, work int) {
	n := objects(steps)
	for turn := 0; ; turn++ {
		o.round(steps, turn)
		o.work(n * work)
	}
}

func (o *out) until(end time.Time, steps []step) {
	n := objects(steps)
	for turn := 0; time.Now().Before(end); turn++ {
		o.round(steps, turn)
		o.work(n * 250)
	}
}

func (o *out) bursty(seed int64, pause time.Duration) {
	r := rand.New(rand.NewSource(seed))
	for {
		time.Sleep(time.Duration(r.ExpFloat64() * float64(pause)))
		o.until(time.Now().Add(50*time.Millisecond), sets[r.Intn(len(sets))])
	}
}

func (o *out) periodic(begin time.Time, period time.Duration) {
	quarter := period / 4
	for {
		i := time.Since(begin) / quarter
		end := begin.Add((i + 1) * quarter)
		if steps := quarters[i%4]; steps != nil {
			o.until(end, steps)
		} else {
			time.Sleep(time.Until(end))
		}
	}
}

func (o *out) light() {
	for {
		sites[sFlat64].run(o, 2)
		atomic.StoreUint64(&o.n[sFlat64], o.n[sFlat64]+2)
		sites[sSlice1000].run(o, 1)
		atomic.StoreUint64(&o.n[sSlice1000], o.n[sSlice1000]+1)
		o.work(100000)
		time.Sleep(time.Millisecond)
	}
}

func record(log *os.File, outs []*out, end time.Time) {
	buf := make([]byte, 0, 4096)
	for end.IsZero() || time.Now().Before(end) {
		from := time.Now().UnixNano()
		var n [nsites]uint64
		for _, o := range outs {
			for i := range n {
				n[i] += atomic.LoadUint64(&o.n[i])
			}
		}
		to := time.Now().UnixNano()
		buf = append(buf[:0], "at "...)
		buf = strconv.AppendInt(buf, from, 10)
		buf = append(buf, ' ')
		buf = strconv.AppendInt(buf, to, 10)
		for _, v := range n {
			buf = append(buf, ' ')
			buf = strconv.AppendUint(buf, v, 10)
		}
		buf = append(buf, '\n')
		if _, err := log.Write(buf); err != nil {
			panic(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func main() {
	period := flag.Duration("period", 250*time.Millisecond, "of mode periodic")
	every := flag.Duration("every", 950*time.Millisecond, "mean pause of mode bursty")
	seed := flag.Int64("seed", 1, "of mode bursty")
	lasts := flag.Duration("for", 0, "how long it runs, 0: until it is killed")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: churn [-period D] [-every D] [-seed N] [-for D] heavy|flood|skewed|edges|bursty|periodic|light LOG")
		os.Exit(2)
	}
	log, err := os.OpenFile(flag.Arg(1), os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0666)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, s := range sites {
		fmt.Fprintln(log, "site", s.name, "heap", s.bytes)
	}
	ballast := make([]byte, 40<<20) // never touched: fewer collections at the cost of address space
	debug.SetGCPercent(200)
	outs := []*out{new(out), new(out)}
	switch begin := time.Now(); flag.Arg(0) {
	case "heavy":
		go outs[0].forever(all, 250)
		go outs[1].forever(all, 250)
	case "flood":
		go outs[0].forever(all, 0)
		go outs[1].forever(all, 0)
	case "skewed":
		go outs[0].forever(hot, 100)
		go outs[1].forever(worked, 0)
	case "edges":
		go outs[0].forever(edges, 250)
		go outs[1].forever(edges, 250)
	case "bursty":
		go outs[0].bursty(*seed, *every)
	case "periodic":
		go outs[0].periodic(begin, *period)
	case "light":
		go outs[0].light()
	default:
		fmt.Fprintln(os.Stderr, "unknown mode", flag.Arg(0))
		os.Exit(2)
	}
	fmt.Println("ready")
	var end time.Time
	if *lasts > 0 {
		end = time.Now().Add(*lasts)
	}
	record(log, outs, end)
	runtime.KeepAlive(ballast)
}
