// matrix is the subject of the support matrix: one program, built in every way, whose CPU time,
// heap and frames are known. It links runtime/pprof but no net, so that a build is quick. The
// oracle's files (testdata/programs/oracle/oracle*.go) are put beside it, so that it also answers
// for its frames.
//
// It allocates, collects twice, turns the collector off, prints "ready" and obeys lines on stdin,
// each answered by a last line "done":
//
//	own FILE	write the runtime's heap profile
//	rate [N]	set runtime.MemProfileRate; print "rate N"
//	cpu MS		burn MS milliseconds of CPU time: main.leaf, a frameless leaf, is called three
//			times from main.threeTimes for each call from main.onceOnly
//	truth		allocate known numbers of objects, each kind on a line of its own, print
//			"FUNC COUNT BYTES_EACH" (the slot size) for each, and collect twice
//	end
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"strings"
	"syscall"
)

type tree struct {
	left, right *tree
	val         int
}

// live is what survives the collections before the program stands still.
var live struct {
	tree  *tree
	bytes [][]byte
	table map[string]*tree
	funcs []func() int
	text  []string
}

//go:noinline
func grow(depth int) *tree {
	if depth == 0 {
		return nil
	}
	return &tree{left: grow(depth - 1), right: grow(depth - 1), val: depth}
}

// Inlined: one pc, two or three frames.
func buffer(n int) []byte { return make([]byte, n) }
func longer(n int) []byte { return buffer(n + 1) }

//go:noinline
func buffers(n int) {
	for i := 0; i < n; i++ {
		live.bytes = append(live.bytes, buffer(3000), longer(70<<10))
		_ = append(live.bytes[:0:0], buffer(100<<10)) // garbage
	}
}

//go:noinline
func fill(n int) {
	live.table = make(map[string]*tree)
	for i := 0; i < n; i++ {
		live.table["key-"+strconv.Itoa(i)] = &tree{val: i}
	}
}

//go:noinline
func closures(n int) {
	for i := 0; i < n; i++ {
		pad := [10]int{i}
		live.funcs = append(live.funcs, func() int { pad[0]++; return pad[0] })
	}
}

func inGoroutines(n int) {
	done := make(chan string)
	for i := 0; i < n; i++ {
		go func(i int) { done <- strings.Repeat("x", 1000*i) }(i)
	}
	for i := 0; i < n; i++ {
		live.text = append(live.text, <-done)
	}
}

func populate() {
	live.tree = grow(14)
	buffers(100)
	fill(5000)
	closures(5000)
	inGoroutines(30)
}

func own(path string) {
	f, err := os.Create(path)
	if err == nil {
		err = pprof.Lookup("heap").WriteTo(f, 0)
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		fmt.Println("error", err)
	}
}

// inGoroutine does it away from the stack that reads stdin, which may have begun in C.
func inGoroutine(f func()) {
	done := make(chan bool)
	go func() { f(); done <- true }()
	<-done
}

func cpuTime() int64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}

// No calls and no locals on the stack: the compiler gives it no frame.
//
//go:noinline
func leaf(x uint64) uint64 {
	for i := 0; i < 4000; i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

//go:noinline
func threeTimes(x uint64) uint64 {
	x = leaf(x)
	x = leaf(x + 1)
	return leaf(x + 2)
}

//go:noinline
func onceOnly(x uint64) uint64 {
	return leaf(x) + 1
}

var sink uint64

func burn(ms int64) {
	x := uint64(88172645463325252)
	for end := cpuTime() + ms*1e6; cpuTime() < end; {
		for i := 0; i < 100; i++ {
			x = onceOnly(threeTimes(x))
		}
		sink = x
		callC()
	}
}

func obey(line string) bool {
	word := strings.Fields(line)
	if len(word) == 0 || word[0] == "end" {
		return false
	}
	n := 0
	if len(word) > 1 {
		n, _ = strconv.Atoi(word[1])
	}
	switch word[0] {
	case "own":
		own(word[1])
	case "rate":
		if len(word) > 1 {
			runtime.MemProfileRate = n
		}
		fmt.Println("rate", runtime.MemProfileRate)
	case "cpu":
		inGoroutine(func() { burn(int64(n)) })
	case "truth":
		inGoroutine(truth)
	default:
		fmt.Println("error: unknown command", word[0])
	}
	fmt.Println("done")
	return true
}

// Main is what main is, for those that load this program as a library.
func Main() {
	// Every processor's countdown to its next sample is to be of this rate before it stands. What
	// the first one began with is used up here (Go 1.16: 9.4 MB), the others begin anew.
	procs := runtime.GOMAXPROCS(1)
	runtime.MemProfileRate = 4096
	populate()
	runtime.GOMAXPROCS(procs)
	callC()
	debug.SetGCPercent(-1)
	runtime.GC()
	runtime.GC()
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
