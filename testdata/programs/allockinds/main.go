// Allocates in every way the compiler and the runtime know, one kind after the other, and
// prints what the runtime counted for each: "KIND INDEX MALLOCS". main.kind tells an observer
// which kind is under way. With an argument it writes a CPU profile there (for go build -pgo).
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const rounds = 5000

type node struct {
	left, right *node
	v           [4]int
}

var kind uint64

var (
	sinkInt    *int64
	sinkBytes  []byte
	sinkNode   *node
	sinkMixed  *struct{ p, q *int }
	sinkBig    *[100]*int
	sinkPtrs   []*int
	sinkHuge   *[5000]*int
	sinkString string
	sinkFunc   func() int
	sinkAny    interface{}
	sinkChan   chan int
	words      = []string{"alpha", "beta", "gamma", "delta"}
)

func tiny(i int)       { sinkInt = new(int64); *sinkInt = int64(i) }
func tinyString(i int) { sinkString = strconv.Itoa(i + 1000) }
func noscan(i int)     { sinkBytes = make([]byte, 20+i%480) }
func noscanConst(int)  { sinkBytes = append([]byte(nil), make([]byte, 64)...) }
func scan(int)         { sinkNode = &node{} }
func scanSmall(int)    { sinkMixed = &struct{ p, q *int }{} }
func scanHeader(int)   { sinkBig = new([100]*int) }
func scanSlice(i int)  { sinkPtrs = make([]*int, 1+i%200) }
func large(i int)      { sinkBytes = make([]byte, 40000+i*10) }
func largeScan(int)    { sinkHuge = new([5000]*int) }
func concat(i int)     { sinkString = words[i%4] + words[(i+1)%4] + words[(i+2)%4] }
func convert(i int)    { sinkString = string(sinkBytes[:i%16]) }
func closure(i int)    { n := i; sinkFunc = func() int { n++; return n } }
func boxed(i int)      { sinkAny = i + 1000 }
func channel(i int)    { sinkChan = make(chan int, i%5) }
func zero(i int)       { sinkBytes = make([]byte, 0*i) }

func grow(i int) {
	var s []int
	for k := 0; k < 20; k++ {
		s = append(s, i)
	}
	sinkAny = s
}

func mapping(i int) {
	m := map[string]int{}
	for k := 0; k < 12; k++ {
		m[words[k%4]+strconv.Itoa(k+i)] = i
	}
	sinkAny = m
}

//go:noinline
func deep(n int) int {
	var pad [200]byte
	if n == 0 {
		sinkNode = &node{}
		sinkBytes = make([]byte, 8)
		return 0
	}
	pad[n%200] = byte(n)
	return deep(n-1) + int(pad[0])
}

// Stacks that grow while they allocate: every check of a stack is met in both ways.
func stacks(i int) {
	if i%10 != 0 {
		return
	}
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		for d := i % 40; d < 60; d++ {
			deep(d)
		}
		wg.Done()
	}()
	wg.Wait()
}

var kinds = []struct {
	name string
	f    func(int)
	gc   int
}{
	{"tiny", tiny, -1}, {"tinystring", tinyString, -1}, {"noscan", noscan, -1},
	{"noscanconst", noscanConst, -1}, {"scan", scan, -1}, {"scansmall", scanSmall, -1},
	{"scanheader", scanHeader, -1}, {"scanslice", scanSlice, -1}, {"large", large, -1},
	{"largescan", largeScan, -1}, {"concat", concat, -1}, {"convert", convert, -1},
	{"closure", closure, -1}, {"boxed", boxed, -1}, {"channel", channel, -1},
	{"zero", zero, -1}, {"grow", grow, -1}, {"map", mapping, -1}, {"stacks", stacks, -1},
	{"scangc", scan, 1}, {"tinygc", tiny, 1}, {"noscangc", noscan, 1}, {"growgc", grow, 1},
	{"mapgc", mapping, 1}, {"headergc", scanHeader, 1}, {"stacksgc", stacks, 1},
}

func run(index int, f func(int)) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	atomic.StoreUint64(&kind, uint64(index))
	for i := 0; i < rounds; i++ {
		f(i)
	}
	atomic.StoreUint64(&kind, 0)
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

func main() {
	again := 1
	if len(os.Args) > 1 {
		f, err := os.Create(os.Args[1])
		if err != nil {
			panic(err)
		}
		defer f.Close()
		pprof.StartCPUProfile(f)
		defer pprof.StopCPUProfile()
		again = 10
	}
	for ; again > 0; again-- {
		for i, k := range kinds {
			runtime.GC()
			debug.SetGCPercent(k.gc)
			time.Sleep(time.Millisecond)
			fmt.Println(k.name, i+1, run(i+1, k.f))
		}
	}
}
