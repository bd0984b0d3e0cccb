// Dumped writes its own heap profile and a dump of its heap, and says what is in the heap.
//
//	dumped PROFILE DUMP N
//
// There are N nodes in a list, N/2 in a tree, N values in a map, and 3 goroutines, each with two buffers of
// its own, one of them in a variable on the stack that it has the address of, and one that they share.
// RATE in the environment is runtime.MemProfileRate.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strconv"
	"unsafe"
)

type node struct {
	next *node
	data []byte
}

type tree struct {
	left, right *tree
	key         [4]int
}

type shared struct {
	data *[1 << 16]byte
}

var (
	list    *node
	root    *tree
	numbers = map[int]*[64]byte{}
	middle  uintptr // an address, and no pointer
)

//go:noinline
func makeList(n int) {
	for i := 0; i < n; i++ {
		list = &node{list, make([]byte, 100)}
		if i == n/2 {
			middle = uintptr(unsafe.Pointer(list))
		}
	}
}

//go:noinline
func makeTree(n int) *tree {
	if n == 0 {
		return nil
	}
	return &tree{left: makeTree((n - 1) / 2), right: makeTree(n - 1 - (n-1)/2)}
}

//go:noinline
func makeNumbers(n int) {
	for i := 0; i < n; i++ {
		numbers[i] = new([64]byte)
	}
}

// On the stack it is known by a pointer to it alone: the frame's pointers tell nothing of its own.
type boxed struct {
	n    int
	data *[1 << 18]byte
}

//go:noinline
func fill(b *boxed) *boxed {
	b.n++
	if b.data == nil {
		b.data = new([1 << 18]byte)
	}
	return b
}

//go:noinline
func hold(s *shared, ready, end chan bool) {
	own := new([1 << 20]byte)
	var b boxed
	p := fill(&b)
	ready <- true
	<-end
	fill(p)
	own[0] = s.data[0]
	runtime.KeepAlive(own)
}

func init() {
	if rate, err := strconv.Atoi(os.Getenv("RATE")); err == nil {
		runtime.MemProfileRate = rate
	}
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func main() {
	n, err := strconv.Atoi(os.Args[3])
	check(err)
	profile, err := os.Create(os.Args[1])
	check(err)
	dump, err := os.Create(os.Args[2])
	check(err)
	makeList(n)
	root = makeTree(n / 2)
	makeNumbers(n)
	ready, end := make(chan bool), make(chan bool)
	s := &shared{new([1 << 16]byte)}
	for i := 0; i < 3; i++ {
		go hold(s, ready, end)
		<-ready
	}
	s = nil
	fmt.Printf("list %p\nroot %p\nmiddle 0x%x\n", &list, &root, middle)
	runtime.GC()
	runtime.GC()
	check(pprof.Lookup("heap").WriteTo(profile, 0))
	debug.WriteHeapDump(dump.Fd())
	check(profile.Close())
	check(dump.Close())
	close(end)
}
