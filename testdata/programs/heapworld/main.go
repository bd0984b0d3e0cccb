// heapworld makes a heap that it knows, tells what it knows, and writes a heap dump of it.
//
//	heapworld FILE
//
// Lines that it prints:
//
//	go VERSION
//	layout NAME COUNT SIZE OFFSET...	objects of one type, and where they have pointers
//	global NAME ADDRESS BYTES		a variable that alone holds so many bytes, at least
//	goroutines FUNC COUNT			that wait in it
//	finalizers COUNT, queued COUNT, panics COUNT
//
// Every Go from 1.4 on compiles it. Each type has pointers where no other type in a Go program is
// likely to have them, so that objects can be counted by their layout.
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"
	"unsafe"
)

type node struct { // of a list
	a    uintptr
	next *node
	b    [4]uintptr
	self *node
	c    uintptr
}

type tree struct {
	a           [2]uintptr
	left, right *tree
	b           [3]uintptr
	self        *tree
	c           [2]uintptr
}

type leaf struct { // in a map
	a          [4]uintptr
	self, also *leaf
	b          [3]uintptr
}

type item struct { // in a channel
	a    [3]uintptr
	self *item
	b    [4]uintptr
	also *item
	c    [3]uintptr
}

type shape struct { // in interfaces
	a    uintptr
	self *shape
	b    [3]uintptr
	also *shape
	c    uintptr
}

func (s *shape) String() string { return "" }

type captured struct { // by closures
	a    [4]uintptr
	self *captured
	b    [4]uintptr
	also *captured
	c    uintptr
}

type deferred struct { // by closures that are deferred
	a    [5]uintptr
	self *deferred
	b    [5]uintptr
	also *deferred
	c    uintptr
}

type final struct { // has a finalizer
	a    [2]uintptr
	self *final
	b    [9]uintptr
	also *final
	c    uintptr
}

type queued struct { // has one that is about to run
	a    [6]uintptr
	self *queued
	b    [6]uintptr
	also *queued
	c    uintptr
}

type cause struct { // of a panic
	a    [7]uintptr
	self *cause
	b    [6]uintptr
	also *cause
	c    uintptr
}

type local struct { // on a stack alone
	a    uintptr
	self *local
	b    [13]uintptr
	also *local
	c    uintptr
}

type big struct { // with a header, from Go 1.22 on
	a    [60]uintptr
	self *big
	b    [64]uintptr
	also *big
	c    uintptr
}

const (
	nodes     = 3000
	depth     = 10 // of the tree
	leaves    = 700
	items     = 60
	shapes    = 80
	closures  = 50
	bigs      = 40
	receivers = 5
	lockers   = 3
	finals    = 7
	waiting   = 4 // finalizers
	defers    = 3
)

var (
	list     *node
	root     *tree
	table    = map[int]*leaf{}
	channel  = make(chan *item, 100)
	anything []interface{}
	stringer []fmt.Stringer
	funcs    []func() uintptr
	large    []*big
	kept     []*final

	mutex sync.Mutex
	never = make(chan int)
	ready = make(chan bool)
	used  = make(chan uintptr, 1000)
	texts = map[string]string{}
	bytes [][]byte
)

func plant(depth int) *tree {
	if depth == 0 {
		return nil
	}
	return &tree{left: plant(depth - 1), right: plant(depth - 1)}
}

func closure(c *captured, n int) func() uintptr {
	return func() uintptr { return c.a[0] + uintptr(n) }
}

func fill() {
	for i := 0; i < nodes; i++ {
		list = &node{next: list}
	}
	root = plant(depth)
	for i := 0; i < leaves; i++ {
		table[i] = &leaf{}
	}
	for i := 0; i < items; i++ {
		channel <- &item{}
	}
	for i := 0; i < shapes/2; i++ {
		anything = append(anything, &shape{}, i, "text")
		stringer = append(stringer, &shape{})
	}
	for i := 0; i < closures; i++ {
		funcs = append(funcs, closure(&captured{}, i))
	}
	for i := 0; i < bigs; i++ {
		large = append(large, &big{})
	}
	for i := 0; i < 300; i++ { // without pointers, of many sizes
		texts[fmt.Sprint("key", i)] = fmt.Sprint("value", i)
		bytes = append(bytes, make([]byte, i*i%5000))
	}
	bytes = append(bytes, make([]byte, 300000))
}

//go:noinline
func receiver(l *local) {
	ready <- true
	l.a += uintptr(<-never)
	used <- l.a
}

//go:noinline
func locker() {
	ready <- true
	mutex.Lock()
}

//go:noinline
func selector() {
	ready <- true
	select {}
}

//go:noinline
func panicking() {
	for i := 0; i < defers; i++ {
		d := &deferred{}
		last := i == defers-1
		defer func() {
			if last {
				ready <- true
				<-never
			}
			used <- d.a[0]
		}()
	}
	panic(&cause{})
}

func blocked(f *final) {
	ready <- true
	<-never
}

func finish(q *queued) {}

func finalizers() {
	for i := 0; i < finals; i++ {
		f := &final{}
		runtime.SetFinalizer(f, func(*final) {})
		kept = append(kept, f)
	}
	go func() {
		runtime.SetFinalizer(&final{}, blocked)
		ready <- true
	}()
	<-ready
	collect() // blocked() runs until it waits, in the only goroutine that runs finalizers
	go func() {
		for i := 0; i < waiting; i++ {
			runtime.SetFinalizer(&queued{}, finish)
		}
		ready <- true
	}()
	<-ready
	runtime.GC()
	runtime.GC()
}

func collect() {
	for {
		runtime.GC()
		select {
		case <-ready:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func start() {
	mutex.Lock()
	for i := 0; i < receivers; i++ {
		go receiver(&local{})
		<-ready
	}
	for i := 0; i < lockers; i++ {
		go locker()
		<-ready
	}
	go selector()
	<-ready
	go panicking()
	<-ready
	for n := 0; n < 1000 && !allWait(); n++ {
		time.Sleep(10 * time.Millisecond)
	}
}

// Is nobody but this goroutine running, or about to?
func allWait() bool {
	buf := make([]byte, 1<<18)
	return strings.Count(string(buf[:runtime.Stack(buf, true)]), "[run") == 1
}

func layout(name string, count int, size uintptr, offsets ...uintptr) {
	fmt.Print("layout ", name, " ", count, " ", size)
	for _, o := range offsets {
		fmt.Print(" ", o)
	}
	fmt.Println()
}

func tell() {
	w := unsafe.Sizeof(uintptr(0))
	fmt.Println("go", runtime.Version())
	layout("node", nodes, unsafe.Sizeof(node{}), w, 6*w)
	layout("tree", 1<<depth-1, unsafe.Sizeof(tree{}), 2*w, 3*w, 7*w)
	layout("leaf", leaves, unsafe.Sizeof(leaf{}), 4*w, 5*w)
	layout("item", items, unsafe.Sizeof(item{}), 3*w, 8*w)
	layout("shape", shapes, unsafe.Sizeof(shape{}), w, 5*w)
	layout("captured", closures, unsafe.Sizeof(captured{}), 4*w, 9*w)
	layout("deferred", defers, unsafe.Sizeof(deferred{}), 5*w, 11*w)
	layout("final", finals+1, unsafe.Sizeof(final{}), 2*w, 12*w)
	layout("queued", waiting, unsafe.Sizeof(queued{}), 6*w, 13*w)
	layout("cause", 1, unsafe.Sizeof(cause{}), 7*w, 14*w)
	layout("local", receivers, unsafe.Sizeof(local{}), w, 15*w)
	layout("big", bigs, unsafe.Sizeof(big{}), 60*w, 125*w)
	fmt.Println("global list", uintptr(unsafe.Pointer(&list)), nodes*unsafe.Sizeof(node{}))
	fmt.Println("global root", uintptr(unsafe.Pointer(&root)), (1<<depth-1)*unsafe.Sizeof(tree{}))
	fmt.Println("global table", uintptr(unsafe.Pointer(&table)), leaves*unsafe.Sizeof(leaf{}))
	fmt.Println("global channel", uintptr(unsafe.Pointer(&channel)), items*unsafe.Sizeof(item{}))
	fmt.Println("global anything", uintptr(unsafe.Pointer(&anything)), shapes/2*unsafe.Sizeof(shape{}))
	fmt.Println("global stringer", uintptr(unsafe.Pointer(&stringer)), shapes/2*unsafe.Sizeof(shape{}))
	fmt.Println("global funcs", uintptr(unsafe.Pointer(&funcs)), closures*unsafe.Sizeof(captured{}))
	fmt.Println("global large", uintptr(unsafe.Pointer(&large)), bigs*unsafe.Sizeof(big{}))
	fmt.Println("goroutines main.receiver", receivers)
	fmt.Println("goroutines main.locker", lockers)
	fmt.Println("goroutines main.selector", 1)
	fmt.Println("finalizers", finals)
	fmt.Println("queued", waiting)
	fmt.Println("panics", 1)
}

func main() {
	fill()
	start()
	finalizers()
	tell()
	f, err := os.Create(os.Args[1])
	if err != nil {
		panic(err)
	}
	debug.WriteHeapDump(f.Fd())
	if err := f.Close(); err != nil {
		panic(err)
	}
}
