// cpuself burns CPU in ways that are hard to attribute, and serves its own CPU profile.
//
//	cpuself [-port N] [-lock] [-work NAME,...]
//
// It prints "ready PORT" and runs until it is killed; 127.0.0.1:PORT has /debug/pprof/, and /steps:
// what labels has done so far, "TENANT outer|inner STEPS", each step the same work.
// Each work has a goroutine of its own (labels has six) whose root is main.NAMEWork; with -lock it
// has a thread of its own, too, and "thread NAME TID" is printed:
//
//	inline	arithmetic through two levels of inlined functions
//	leaf	a frameless leaf called 3:1 from two functions
//	syscall	system calls that enter the kernel, short and long
//	vdso	time.Now and its system-call-free kin
//	gc	allocates pointers, so that the collector runs most of the time
//	system	what the runtime does on its system stack: large spans, runtime.Stack
//	chan	two goroutines hand a value to and fro
//	mapping	map lookups and inserts with string keys
//	copying	memmove and memclr, small and large
//	labels	runtime/pprof.Do: "tenant" red, green and blue, each more than the last; a nested "part"
//	generic	a generic function, from Go 1.18 on
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"serve"
	"sort"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Every work has its own result, so that none waits for a cache line of another.
type result struct {
	n uint64
	_ [56]byte
}

var results [32]result

func step(x uint64) uint64 {
	x ^= x << 13
	x ^= x >> 7
	return x ^ x<<17
}

func twoSteps(x uint64) uint64 { return step(step(x)) }

//go:noinline
func inlineBody(x uint64, n int) uint64 {
	for i := 0; i < n; i++ {
		x = twoSteps(x) + 1
	}
	return x
}

func inlineWork(r *result) {
	for {
		r.n = inlineBody(r.n|1, 100000)
	}
}

//go:noinline
func leaf(x uint64) uint64 {
	for i := 0; i < 300; i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

//go:noinline
func leafThrice(x uint64) uint64 { return leaf(leaf(leaf(x)+1)+1) + 1 }

//go:noinline
func leafOnce(x uint64) uint64 { return leaf(x) + 1 }

func leafWork(r *result) {
	for {
		r.n = leafOnce(leafThrice(r.n | 1))
	}
}

//go:noinline
func shortCalls(n int) {
	for i := 0; i < n; i++ {
		syscall.Getppid()
	}
}

//go:noinline
func readZero(f *os.File, buf []byte) {
	f.Read(buf)
}

func syscallWork(r *result) {
	f, err := os.Open("/dev/zero")
	if err != nil {
		return
	}
	buf := make([]byte, 256<<10)
	for {
		shortCalls(200)
		readZero(f, buf)
		r.n++
	}
}

//go:noinline
func readClock(n int) (last time.Time) {
	for i := 0; i < n; i++ {
		last = time.Now()
	}
	return last
}

func vdsoWork(r *result) {
	for {
		r.n += uint64(readClock(1000).Nanosecond())
	}
}

type tree struct {
	left, right *tree
	pad         [2]int
}

//go:noinline
func plant(depth int) *tree {
	if depth == 0 {
		return &tree{}
	}
	return &tree{left: plant(depth - 1), right: plant(depth - 1)}
}

func gcWork(r *result) {
	kept := plant(16)
	for {
		r.n += uint64(plant(10).pad[0])
		if kept.left == nil {
			return
		}
	}
}

//go:noinline
func largeSpan() []byte { return make([]byte, 100<<10) }

//go:noinline
func ownStack(depth int, buf []byte) int {
	if depth > 0 {
		return ownStack(depth-1, buf) + 1
	}
	return runtime.Stack(buf, false)
}

func systemWork(r *result) {
	buf := make([]byte, 16<<10)
	for {
		r.n += uint64(len(largeSpan()))
		r.n += uint64(ownStack(20, buf))
	}
}

func chanEcho(in <-chan int, out chan<- int) {
	for v := range in {
		out <- v + 1
	}
}

func chanWork(r *result) {
	there, back := make(chan int), make(chan int)
	go chanEcho(there, back)
	for v := 0; ; {
		there <- v
		v = <-back
		r.n++
	}
}

//go:noinline
func lookUp(m map[string]int, keys []string) (sum int) {
	for _, k := range keys {
		sum += m[k]
	}
	return sum
}

//go:noinline
func insertAll(keys []string) map[string]int {
	m := make(map[string]int)
	for i, k := range keys {
		m[k] = i
	}
	return m
}

func mappingWork(r *result) {
	keys := make([]string, 2000)
	for i := range keys {
		keys[i] = "some-key-" + strconv.Itoa(i*7919)
	}
	for {
		m := insertAll(keys)
		for i := 0; i < 5; i++ {
			r.n += uint64(lookUp(m, keys))
		}
	}
}

//go:noinline
func copyBytes(dst, src []byte, n int) {
	for i := 0; i < n; i++ {
		copy(dst, src)
	}
}

//go:noinline
func clearBytes(b []byte) {
	for i := range b {
		b[i] = 0
	}
}

func copyingWork(r *result) {
	a, b := make([]byte, 128<<10), make([]byte, 128<<10)
	for {
		copyBytes(a, b, 20)
		copyBytes(a[:100], b, 5000)
		copyBytes(a[:7], b, 5000)
		clearBytes(b)
		r.n += uint64(a[0])
	}
}

//go:noinline
func burn(x uint64, n int) uint64 {
	for i := 0; i < n; i++ {
		x = step(x)
	}
	return x
}

var tenants = []string{"red", "green", "blue"}

// Of each tenant, without and with a part.
var steps [3][2]int64

// Waits between slices, so that goroutines with labels change threads.
func labelsTenant(i int, r *result) {
	labels, n := pprof.Labels("tenant", tenants[i], "kind", "self"), 100000<<uint(i)
	pprof.Do(context.Background(), labels, func(ctx context.Context) {
		for {
			r.n = burn(r.n|1, n)
			atomic.AddInt64(&steps[i][0], int64(n))
			pprof.Do(ctx, pprof.Labels("part", "inner"), func(context.Context) {
				r.n = burn(r.n|1, n)
			})
			atomic.AddInt64(&steps[i][1], int64(n))
			time.Sleep(time.Millisecond)
		}
	})
}

func labelsWork(r *result) {
	for i := range tenants {
		// Two goroutines each: the same labels on different threads.
		go labelsTenant(i, &results[20+2*i])
		go labelsTenant(i, &results[21+2*i])
	}
}

func tellSteps(string) string {
	var w strings.Builder
	for i, tenant := range tenants {
		for k, part := range []string{"outer", "inner"} {
			fmt.Fprintln(&w, tenant, part, atomic.LoadInt64(&steps[i][k]))
		}
	}
	return w.String()
}

var works = map[string]func(*result){
	"inline": inlineWork, "leaf": leafWork, "syscall": syscallWork, "vdso": vdsoWork,
	"gc": gcWork, "system": systemWork, "chan": chanWork, "mapping": mappingWork,
	"copying": copyingWork, "labels": labelsWork, "generic": genericWork,
}

func main() {
	port := flag.Int("port", 0, "TCP port on 127.0.0.1, 0 for any")
	which := flag.String("work", "", "comma-separated names, all if empty")
	lock := flag.Bool("lock", false, "a thread for each")
	flag.Parse()

	var names []string
	if *which != "" {
		names = strings.Split(*which, ",")
	} else {
		for name := range works {
			names = append(names, name)
		}
		sort.Strings(names)
	}
	server, err := serve.Listen(*port)
	if err != nil {
		fmt.Fprintln(os.Stderr, "cpuself:", err)
		os.Exit(1)
	}
	for i, name := range names {
		work := works[name]
		if work == nil {
			fmt.Fprintln(os.Stderr, "cpuself: there is no work", name)
			os.Exit(2)
		}
		if !*lock {
			go work(&results[i%20])
			continue
		}
		locked := make(chan int)
		go func(r *result) {
			runtime.LockOSThread()
			locked <- syscall.Gettid()
			work(r)
		}(&results[i%20])
		fmt.Println("thread", name, <-locked)
	}
	server.Handle("/steps", tellSteps)
	fmt.Println("ready", server.Port)
	server.Serve()
}
