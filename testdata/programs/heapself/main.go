// heapself allocates in many ways, then stands still and serves its own heap profile, so that
// what a reader of its memory finds can be compared with what it says of itself.
//
//	heapself [-port N] [-rate BYTES] [-rounds N] [-nogc]
//
// It prints "ready PORT" when it stands: two collections have ended (with -nogc: none ever
// began), the collector is off, no timer runs, and only HTTP requests to 127.0.0.1:PORT make it
// do anything:
//
//	/debug/pprof/...	the runtime's own profiles
//	/more			allocates again and collects twice, answers "ok" (SIGUSR1 does the
//				same and prints "more")
//	/churn			allocates without collecting: must not show before the next /more
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"serve"
	"strings"
	"syscall"
)

type leafNode struct {
	left, right *leafNode
	val         int
}

type shape interface{ area() int }

type square struct{ side int }
type labelled struct {
	*square
	name string
}

func (s *square) area() int { return s.side * s.side }

// live holds what survives; everything else is garbage by the time the program stands.
var live struct {
	tiny    []*int32
	tree    *leafNode
	big     [][]byte
	table   map[string]*leafNode
	funcs   []func() int
	text    []string
	shapes  []shape
	grown   []int
	chans   []chan [64]byte
	generic []interface{}
	initial [][]byte
}

// Before main: the stack begins in runtime.doInit.
func init() {
	for i := 0; i < 200; i++ {
		live.initial = append(live.initial, make([]byte, 10000))
	}
}

//go:noinline
func tinyObjects(n int) {
	for i := 0; i < n; i++ {
		p := new(int32)
		*p = int32(i)
		if i%4 == 0 {
			live.tiny = append(live.tiny, p)
		}
	}
}

// Recursion: the same pc many times over.
//
//go:noinline
func growTree(depth int) *leafNode {
	if depth == 0 {
		return nil
	}
	return &leafNode{left: growTree(depth - 1), right: growTree(depth - 1), val: depth}
}

// Inlined into bigOnes: the sample has one pc and two frames, or three.
func newBuffer(n int) []byte    { return make([]byte, n) }
func twiceInlined(n int) []byte { return newBuffer(n + 1) }

//go:noinline
func bigOnes(n int) {
	for i := 0; i < n; i++ {
		live.big = append(live.big, newBuffer(200<<10))
		live.big = append(live.big, twiceInlined(70<<10))
		_ = append(live.big[:0:0], newBuffer(1<<20)) // garbage
	}
}

//go:noinline
func fillMap(n int) {
	if live.table == nil {
		live.table = make(map[string]*leafNode)
	}
	for i := 0; i < n; i++ {
		live.table[fmt.Sprintf("key-%d-%d", len(live.table), i)] = &leafNode{val: i}
	}
}

//go:noinline
func closures(n int) {
	for i := 0; i < n; i++ {
		pad := [10]int{i}
		live.funcs = append(live.funcs, func() int { pad[0]++; return pad[0] })
	}
}

//go:noinline
func joinText(n int) {
	s := ""
	for i := 0; i < n; i++ {
		s += "x" + string(rune('a'+i%26))
		if i%50 == 0 {
			live.text = append(live.text, strings.Repeat(s, 3), strings.ToUpper(s))
		}
	}
	live.text = append(live.text, string([]byte(s)), string([]rune(s)))
}

//go:noinline
func shapes(n int) {
	for i := 0; i < n; i++ {
		live.shapes = append(live.shapes, &labelled{square: &square{i}, name: "s"})
	}
	total := 0
	for _, s := range live.shapes {
		total += s.area() // through a wrapper
	}
	live.grown = append(live.grown, total)
}

//go:noinline
func growSlice(n int) {
	for i := 0; i < n; i++ {
		live.grown = append(live.grown, i)
	}
}

//go:noinline
func channels(n int) {
	for i := 0; i < n; i++ {
		live.chans = append(live.chans, make(chan [64]byte, 20))
	}
}

func inGoroutines(n int) {
	done := make(chan []byte)
	for i := 0; i < n; i++ {
		go func(size int) { done <- make([]byte, size) }(20000 + i*1000)
	}
	for i := 0; i < n; i++ {
		if b := <-done; i%2 == 0 {
			live.big = append(live.big, b)
		}
	}
}

func deferred(n int) {
	for i := 0; i < n; i++ {
		func() {
			defer func() { live.big = append(live.big, make([]byte, 5000)) }()
			if r := recover(); r != nil {
				panic(r)
			}
		}()
	}
}

func labelledWork(n int) {
	for _, tenant := range []string{"red", "blue"} {
		pprof.Do(context.Background(), pprof.Labels("tenant", tenant), func(context.Context) {
			for i := 0; i < n; i++ {
				live.big = append(live.big, make([]byte, 9000))
			}
		})
	}
}

func writer(n int) {
	var b bytes.Buffer
	for i := 0; i < n; i++ {
		fmt.Fprintf(&b, "line %d %v\n", i, []int{i})
	}
	live.text = append(live.text, b.String())
}

func allocate() {
	tinyObjects(200000)
	live.tree = growTree(17)
	bigOnes(20)
	fillMap(20000)
	closures(20000)
	joinText(3000)
	shapes(30000)
	growSlice(300000)
	channels(500)
	inGoroutines(60)
	deferred(300)
	labelledWork(200)
	writer(20000)
	generics(20000)
}

func collect() {
	runtime.GC()
	runtime.GC()
}

func main() {
	port := flag.Int("port", 0, "TCP port on 127.0.0.1, 0 for any")
	rate := flag.Int("rate", 0, "runtime.MemProfileRate, 0 to leave it")
	rounds := flag.Int("rounds", 2, "how often everything is allocated before standing still")
	nogc := flag.Bool("nogc", false, "stand still before the first collection")
	flag.Parse()
	if *rate > 0 {
		runtime.MemProfileRate = *rate
	}
	if *nogc {
		debug.SetGCPercent(-1)
	}

	server, err := serve.Listen(*port)
	if err != nil {
		fmt.Fprintln(os.Stderr, "heapself:", err)
		os.Exit(1)
	}
	server.Handle("/more", func(string) string {
		allocate()
		collect()
		return "ok\n"
	})
	server.Handle("/churn", func(string) string {
		bigOnes(50)
		growTree(16)
		return "ok\n"
	})
	usr1 := make(chan os.Signal, 1)
	signal.Notify(usr1, syscall.SIGUSR1)
	go func() {
		for range usr1 {
			allocate()
			collect()
			fmt.Println("more")
		}
	}()

	for i := 0; i < *rounds; i++ {
		allocate()
	}
	debug.SetGCPercent(-1)
	if !*nogc {
		collect()
	}
	fmt.Println("ready", server.Port)
	server.Serve()
}
