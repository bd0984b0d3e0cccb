// liveset allocates objects of known sizes, keeps known ones and drops the others, and prints
// what is left of each kind. It links no pprof.
//
//	liveset [-goroutines N] [-gc D] [-scale N] [-turns N] [-pace DURATION] [-flow DURATION]
//
// It prints "ready" and waits for a line on stdin, works, lets the garbage be collected, prints
// the truth, one line per kind, "FUNC COUNT BYTES_EACH" (objects that live; the slot size the
// runtime uses), and, for all that was allocated, "# FUNC COUNT BYTES_EACH". Then "done", and it
// waits for another line, its objects kept, before it exits.
//
//	-goroutines N	that many do all of it, each for itself
//	-gc D		one more goroutine runs runtime.GC, with pauses of D
//	-scale N	N times the counts
//	-turns N	the work is done N times, in the same rings
//	-pace D		a pause after each turn
//	-flow D		instead: for so long, a little of each kind every millisecond; what shrinks grows
//			until the middle, and loses its oldest then
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"runtime"
	"sort"
	"sync"
	"time"
	"unsafe"
)

// None of these has the size of a sudog or of a channel, 96 bytes or, in newer Go, 112. The runtime
// makes such below the program's lines, too, when an allocation starts or assists a GC cycle and
// has to wait for another goroutine there, and keeps the sudogs. Profiles hide the frames that
// would tell them apart.
//
// Sources: gcStart and gcMarkDone in runtime/mgc.go, acquireSudog in runtime/proc.go.
type node48 struct {
	next *node48
	data [40]byte
}

type node80 struct {
	next *node80
	data [72]byte
}

type noptr80 [10]uint64
type noptr1024 [128]uint64

// What one goroutine keeps.
type kept struct {
	growing   *node48      // all that were ever made
	shrinking []*noptr80   // half of them go each turn
	turnover  []*node80    // a ring, every one replaced each turn
	steady    []*noptr1024 // made in the first turn, kept
	large     [][]byte     // a ring of 64 KiB each
	tiny      []*uint64    // two share a block
	made      map[string]int
}

//go:noinline
func allocGrowing(n int, k *kept) {
	for i := 0; i < n; i++ {
		k.growing = &node48{next: k.growing}
	}
	k.made["main.allocGrowing 48"] += n
}

//go:noinline
func allocShrinking(n int, k *kept) {
	for i := 0; i < n; i++ {
		k.shrinking = append(k.shrinking, new(noptr80))
	}
	k.made["main.allocShrinking 80"] += n
}

//go:noinline
func allocTurnover(n int, k *kept) {
	for i := 0; i < n; i++ {
		k.turnover[i%len(k.turnover)] = &node80{}
	}
	k.made["main.allocTurnover 80"] += n
}

//go:noinline
func allocSteady(n int, k *kept) {
	for i := 0; i < n; i++ {
		k.steady = append(k.steady, new(noptr1024))
	}
	k.made["main.allocSteady 1024"] += n
}

//go:noinline
func allocLarge(n int, k *kept) {
	for i := 0; i < n; i++ {
		k.large[i%len(k.large)] = make([]byte, 65536)
	}
	k.made["main.allocLarge 65536"] += n
}

//go:noinline
func allocTiny(n int, k *kept) {
	for i := 0; i < n; i++ {
		k.tiny = append(k.tiny, new(uint64))
	}
}

//go:noinline
func allocGarbage(n int, k *kept, mine []*node80) {
	for i := 0; i < n; i++ {
		mine[i%len(mine)] = &node80{}
	}
	for i := range mine {
		mine[i] = nil
	}
	k.made["main.allocGarbage 80"] += n
}

func turn(t, scale int, k *kept, mine []*node80) {
	allocGrowing(200*scale, k)
	if t == 0 {
		k.shrinking = make([]*noptr80, 0, 4000*scale)
		k.tiny = make([]*uint64, 0, 4000*scale)
		allocShrinking(4000*scale, k)
		k.steady = make([]*noptr1024, 0, 300*scale)
		allocSteady(300*scale, k)
		allocTiny(4000*scale, k)
	} else {
		for i := len(k.shrinking) / 2; i < len(k.shrinking); i++ {
			k.shrinking[i] = nil
		}
		k.shrinking = k.shrinking[:len(k.shrinking)/2]
	}
	allocTurnover(len(k.turnover), k)
	allocLarge(20*scale, k)
	allocGarbage(1000*scale, k, mine)
}

// flow keeps everything of the kind that grows, and the youngest of those that shrink and turn over.
func flow(long time.Duration, scale int, k *kept, mine []*node80) {
	const most = 20000
	begin := time.Now()
	k.turnover = make([]*node80, most*scale)
	k.shrinking = make([]*noptr80, 0, 3*most*scale)
	for at, made := 0, 0; ; made += 20 * scale {
		gone := time.Since(begin)
		if gone > long {
			return
		}
		allocGrowing(5*scale, k)
		allocShrinking(10*scale, k)
		// The number kept falls from all of them in the middle to a third at the end.
		if half := long / 2; gone > half {
			if keep := int(float64(made/2) * (1 - float64(gone)/float64(long)*0.66)); len(k.shrinking) > keep+keep/50 {
				k.shrinking = dropOldest(k.shrinking, keep)
			}
		}
		part := k.turnover[at : at+10*scale]
		whole := k.turnover
		k.turnover = part
		allocTurnover(len(part), k)
		k.turnover = whole
		at = (at + len(part)) % len(whole)
		allocGarbage(20*scale, k, mine)
		// A program that works all the time has a larger budget, and so more windows.
		for step := time.Now(); time.Since(step) < time.Millisecond; {
		}
	}
}

func dropOldest(all []*noptr80, keep int) []*noptr80 {
	n := copy(all, all[len(all)-keep:])
	for i := n; i < len(all); i++ {
		all[i] = nil
	}
	return all[:n]
}

func newKept(scale int) *kept {
	return &kept{
		turnover: make([]*node80, 1500*scale),
		large:    make([][]byte, 16*scale),
		made:     map[string]int{},
	}
}

func (k *kept) live(add func(string, int)) {
	n := 0
	for p := k.growing; p != nil; p = p.next {
		n++
	}
	add("main.allocGrowing 48", n)
	add("main.allocShrinking 80", len(k.shrinking))
	n = 0
	for _, p := range k.turnover {
		if p != nil {
			n++
		}
	}
	add("main.allocTurnover 80", n)
	add("main.allocSteady 1024", len(k.steady))
	n = 0
	for _, p := range k.large {
		if p != nil {
			n++
		}
	}
	add("main.allocLarge 65536", n)
	add("main.allocGarbage 80", 0)
	// The object that opens a block gets its first bytes. The next one may lie in another's block.
	n = 0
	for _, p := range k.tiny {
		if uintptr(unsafe.Pointer(p))&15 == 0 {
			n++
		}
	}
	add("main.allocTiny 16", n)
}

func collectAllTheTime(pause time.Duration, stop chan bool, done *sync.WaitGroup) {
	defer done.Done()
	for {
		select {
		case <-stop:
			return
		default:
			runtime.GC()
			time.Sleep(pause)
		}
	}
}

func show(prefix string, m map[string]int) {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		var name string
		var size int
		fmt.Sscan(k, &name, &size)
		fmt.Printf("%s%s %d %d\n", prefix, name, m[k], size)
	}
}

var ownProfile func()

func main() {
	goroutines := flag.Int("goroutines", 1, "how many do the work")
	gc := flag.Duration("gc", 0, "collect garbage all the time, with such pauses")
	scale := flag.Int("scale", 1, "times the counts")
	turns := flag.Int("turns", 5, "times the work")
	pace := flag.Duration("pace", 0, "pause after each turn")
	long := flag.Duration("flow", 0, "instead, a little of each kind every millisecond, for so long")
	flag.Parse()
	in := bufio.NewReader(os.Stdin)
	all := make([]*kept, *goroutines)
	for i := range all {
		all[i] = newKept(*scale)
	}
	fmt.Println("ready")
	in.ReadString('\n')

	var work, collector sync.WaitGroup
	stop := make(chan bool)
	if *gc > 0 {
		collector.Add(1)
		go collectAllTheTime(*gc, stop, &collector)
	}
	for i := range all {
		work.Add(1)
		go func(k *kept) {
			defer work.Done()
			mine := make([]*node80, 64)
			if *long > 0 {
				flow(*long, *scale, k, mine)
				return
			}
			for t := 0; t < *turns; t++ {
				turn(t, *scale, k, mine)
				time.Sleep(*pace)
			}
		}(all[i])
	}
	work.Wait()
	close(stop)
	collector.Wait()

	// The cycles are apart from each other and from others, so that a profiler can look at each one.
	for i := 0; i < 2; i++ {
		time.Sleep(200 * time.Millisecond)
		runtime.GC()
	}
	time.Sleep(200 * time.Millisecond)
	if ownProfile != nil {
		ownProfile()
	}
	live, made := map[string]int{}, map[string]int{}
	for _, k := range all {
		k.live(func(what string, n int) { live[what] += n })
		for what, n := range k.made {
			made[what] += n
		}
	}
	show("", live)
	show("# ", made)
	fmt.Println("done")
	in.ReadString('\n')
	for _, k := range all {
		runtime.KeepAlive(k)
	}
}
