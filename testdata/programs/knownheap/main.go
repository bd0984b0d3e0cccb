// A program that knows its heap: it prints how many objects of which type it holds, and writes a
// heap dump to the file that it is given.
//
// "exactly N T", "at least N T" and "none T", where T is what goprof-bpf heapdump calls them. Names
// that depend on how Go's maps are made say "{bucket}".
package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"unsafe"
)

type node struct {
	next *node
	id   int
	pad  [2]int
}

type tree struct {
	left, right *tree
	name        string
	v           [4]int64
}

type item struct {
	id    int
	label *int
}

type cell struct {
	p *int
	s string
	n int
}

// Larger than 512 bytes: from Go 1.22 on it says itself what it is.
type large struct {
	first *node
	a     [100]int64
}

type job struct {
	done  *bool
	input []byte
}

type boxed struct {
	a, b int
	s    string
}

type shape interface {
	area() int
}

type circle struct {
	r    int
	name *string
}

func (c *circle) area() int { return c.r }

type square struct {
	side int
	name *string
	tags [2]string
}

func (s square) area() int { return s.side }

// What a pointer to its first field leads to is all of it.
type inner struct {
	a, b *int
}

type outer struct {
	inner
	c, d, e *int
}

// A pointer to what both begin with does not tell which one it is.
type base struct {
	p *int
	n [3]int
}

type left struct {
	base
	q *int
	m int
}

type right struct {
	base
	r *int
	m int
}

type captive struct {
	p *int
	n [5]int
}

type bound struct { // methods of it are values
	p *int
	n [43]int
}

type bound2 struct { // of which they keep a copy
	p *bounded
	n [2]int
}

type bounded struct {
	p *int
	n [47]int
}

func (b *bound) count() int { return b.n[0] }
func (b bound2) count() int { return b.n[0] }

type finished struct {
	p *int
	n [7]int
}

type local struct {
	p *int
	n [9]int
}

type boss struct {
	worker *local2
}

type local2 struct {
	up   *boss
	n    [11]int
	deep struct {
		list [3]struct {
			next *node
			n    int
		}
	}
}

type message int

type server struct {
	held []*stacked
	name string
}

type stacked struct {
	p *int
	n [13]int
}

type key struct {
	a, b int32
}

// More than registers take: it is in the frame of the function that calls.
type cargo struct {
	p *passenger
	n [14]int
}

type passenger struct {
	p *int
	n [25]int
}

// So many of them are no whole number of pages above 32 KiB, and do not fill it.
type triple struct {
	p *int
	s string
}

// Only put into interfaces: the DWARF has neither.
type anonymous struct {
	p *int
	n [21]int
}

type unnamed struct {
	n [23]int
	p *int
}

type member struct {
	next, prev *member
	n          [15]int
}

type slot struct {
	p *int
	n int
}

type pool struct {
	n     int
	slots [70000]*slot
}

// Only in maps of one table and few groups: these are too small to say themselves what they are.
type entry struct {
	p *int
	n [29]int
}

// An interface has the pointer of such a value, and not a pointer to it.
type wrapper struct {
	in struct{ to [1]*wrapped }
}

type wrapped struct {
	p *int
	n [33]int
}

// Only in a sync.Pool.
type spare struct {
	p *int
	n [27]int
}

type series struct {
	n      int
	values [100000]*int
}

type wide struct {
	a [20]int64 // more than 128 bytes: maps keep pointers to such values
}

var (
	list    *node
	root    *tree
	items   []map[string]*item
	many    = map[int]*item{}
	numbers = map[int]int{}
	keys    = map[key]string{}
	wides   = map[int]wide{}
	cells   [][]cell
	longest []cell
	triples []triple
	larges  []*large
	jobs    []chan *job
	ints    []chan message
	things  []interface{}
	secrets []interface{}
	shapes  []shape
	squares []shape
	outers  []*outer
	inners  []*inner
	bases   []*base
	lefts   []*left
	rights  []*right
	calls   []func() int
	counts  []func() int // method values
	hidden  []unsafe.Pointer
	bosses  []*boss
	inside  []*int
	texts   []string
	bytes   [][]byte
	wait    = make(chan bool)
	ready   = make(chan bool)
	number  = new(int)
	yes     = new(bool)
	label   = "name"

	// Reached from both of its ends, through one variable.
	ring struct {
		n           int
		first, last *member
	}
	// Very many pointers, in a variable and in an object.
	shards [8]struct {
		n       int
		buckets [9000]*slot
	}
	pooled  *pool
	spares  sync.Pool
	drawers []map[string]*entry
	wraps   []interface{}
	windows [][]*int

	// What only newer Gos have (newer.go).
	fillMore = func() {}
	more     = func() {}
)

func grow(depth int) *tree {
	if depth == 0 {
		return nil
	}
	return &tree{left: grow(depth - 1), right: grow(depth - 1), name: "tree"}
}

//go:noinline
func call(c *captive, n int) func() int { return func() int { return c.n[0] + n } }

// A loop is not inlined by Go 1.4 and 1.5 either, which do not know the pragma.
//
//go:noinline
func locally(n int) *local {
	l := &local{p: number}
	for i := range l.n {
		l.n[i] = n
	}
	return l
}

//go:noinline
func blocked(n int) {
	here := locally(n)
	ready <- true
	<-wait
	fmt.Println(here.n[0])
}

//go:noinline
func newStacked() *stacked { return &stacked{p: number} }

//go:noinline
func (s *server) serve() {
	ready <- true
	<-wait
	fmt.Println(len(s.held))
}

// What it holds, a variable on its stack does, to which a pointer leads.
//
//go:noinline
func host() {
	var s server
	for i := 0; i < 8; i++ {
		s.held = append(s.held, newStacked())
	}
	s.serve()
}

//go:noinline
func newPassenger() *passenger {
	p := &passenger{p: number}
	for i := range p.n {
		p.n[i] = i
	}
	return p
}

//go:noinline
func carry(c cargo) {
	ready <- true
	<-wait
	fmt.Println(c.p.n[0], c.n[3])
}

//go:noinline
func ship() {
	carry(cargo{p: newPassenger()})
}

//go:noinline
func secret(v interface{}) { secrets = append(secrets, v) }

//go:noinline
func finish() {
	for i := 0; i < 6; i++ {
		f := &finished{p: number}
		runtime.SetFinalizer(f, func(f *finished) { fmt.Println(f.n[0]) })
		hidden = append(hidden, unsafe.Pointer(f))
	}
}

//go:noinline
func fill() {
	for i := 0; i < 100; i++ {
		list = &node{next: list, id: i}
	}
	root = grow(7)
	for i := 0; i < 7; i++ {
		m := map[string]*item{}
		for k := 0; k < 5; k++ {
			m[fmt.Sprint(k)] = &item{k, number}
		}
		items = append(items, m)
	}
	for i := 0; i < 1000; i++ {
		many[i] = &item{i, number}
		numbers[i] = i
		keys[key{int32(i), 1}] = "key"
	}
	for i := 0; i < 50; i++ {
		wides[i] = wide{}
	}
	for i := 0; i < 10; i++ {
		cells = append(cells, make([]cell, 20))
	}
	longest = make([]cell, 5000)
	triples = make([]triple, 4500)
	for i := 0; i < 30; i++ {
		larges = append(larges, &large{first: list})
	}
	for i := 0; i < 3; i++ {
		c := make(chan *job, 8)
		for k := 0; k < 8; k++ {
			c <- &job{done: yes}
		}
		jobs = append(jobs, c)
	}
	for i := 0; i < 4; i++ {
		ints = append(ints, make(chan message, 16))
	}
	for i := 0; i < 40; i++ {
		things = append(things, boxed{i, i, "boxed"})
	}
	for i := 0; i < 10; i++ {
		secret(&anonymous{p: number})
	}
	for i := 0; i < 14; i++ {
		secret(unnamed{p: number})
	}
	for i := 0; i < 25; i++ {
		shapes = append(shapes, &circle{i, &label})
	}
	for i := 0; i < 15; i++ {
		squares = append(squares, square{side: i, name: &label})
	}
	for i := 0; i < 20; i++ {
		o := &outer{}
		inners = append(inners, &o.inner)
		outers = append(outers, o)
	}
	for i := 0; i < 16; i++ {
		l, r := &left{q: number}, &right{r: number}
		l.p, r.p = number, number
		bases = append(bases, &l.base, &r.base)
		if len(os.Args) > 2 { // the debug data tell of both
			lefts, rights = append(lefts, l), append(rights, r)
		}
	}
	for i := 0; i < 12; i++ {
		calls = append(calls, call(&captive{p: number}, i))
	}
	for i := 0; i < 14; i++ {
		counts = append(counts, (&bound{p: number}).count, bound2{p: &bounded{p: number}}.count)
	}
	for i := 0; i < 3; i++ {
		m := map[string]*entry{}
		for k := 0; k < 12; k++ {
			m[fmt.Sprint(k)] = &entry{p: number}
		}
		drawers = append(drawers, m)
	}
	for i := 0; i < 18; i++ {
		w := wrapper{}
		w.in.to[0] = &wrapped{p: number}
		wraps = append(wraps, w)
	}
	for i := 0; i < 11; i++ {
		b := &boss{&local2{}}
		b.worker.up = b
		b.worker.deep.list[2].next = list
		inside = append(inside, &b.worker.n[3])
		bosses = append(bosses, b)
	}
	for i := 0; i < 60; i++ {
		texts = append(texts, string(make([]byte, 100)))
		bytes = append(bytes, make([]byte, 200))
	}
}

//go:noinline
func fillWide() {
	for i := 0; i < 200; i++ {
		m := &member{next: ring.first}
		if ring.first == nil {
			ring.last = m
		} else {
			ring.first.prev = m
		}
		ring.first = m
	}
	for i := range shards {
		for k := range shards[i].buckets {
			shards[i].buckets[k] = &slot{p: number}
		}
	}
	pooled = new(pool)
	for i := range pooled.slots {
		pooled.slots[i] = &slot{p: number}
	}
	// One array, to which slices of all of its ends lead.
	s := new(series)
	for i := range s.values {
		s.values[i] = number
	}
	for i := 1; i < len(s.values); i++ {
		windows = append(windows, s.values[i:])
	}
}

// Of a function: a variable of its type leads to a closure, and that begins with the code's address.
func nameOf(f func() int) string {
	return runtime.FuncForPC(**(**uintptr)(unsafe.Pointer(&f))).Name()
}

func truth() {
	more()
	fmt.Println("exactly 200 main.member")
	fmt.Println("exactly 142000 main.slot")
	fmt.Println("exactly 1 main.pool")
	fmt.Println("exactly 100 main.node")
	fmt.Println("exactly 127 main.tree")
	fmt.Println("exactly 1035 main.item")
	fmt.Println("exactly 7 map[string]*main.item")
	fmt.Println("at least 7 {bucket} of map[string]*main.item")
	fmt.Println("exactly 1 map[int]*main.item")
	fmt.Println("at least 1 {bucket} of map[int]*main.item")
	fmt.Println("exactly 1 map[int]int")
	fmt.Println("at least 1 {bucket} of map[int]int")
	fmt.Println("at least 1 {bucket} of map[main.key]string")
	fmt.Println("exactly 50 main.wide")
	fmt.Println("exactly 11 []main.cell")
	fmt.Println("exactly 1 []main.triple")
	fmt.Println("exactly 4 main.passenger")
	fmt.Println("exactly 30 main.large")
	fmt.Println("exactly 3 chan *main.job")
	fmt.Println("exactly 3 chan *main.job buffer")
	fmt.Println("exactly 24 main.job")
	fmt.Println("exactly 4 chan main.message")
	fmt.Println("exactly 40 main.boxed")
	fmt.Println("exactly 10 main.anonymous")
	fmt.Println("exactly 14 main.unnamed")
	fmt.Println("exactly 25 main.circle")
	fmt.Println("exactly 15 main.square")
	fmt.Println("exactly 20 main.outer")
	fmt.Println("none main.inner")
	fmt.Println("none main.left")
	fmt.Println("none main.right")
	fmt.Println("exactly 12 closure", nameOf(calls[0])) // "main.call.func1", or before Go 1.5 "main.func·001"
	fmt.Println("exactly 14 main.bound since 1.5")
	fmt.Println("exactly 14 main.bounded since 1.5")
	fmt.Println("exactly 6 main.finished")
	fmt.Println("exactly 9 main.local")
	fmt.Println("exactly 8 main.stacked")
	fmt.Println("exactly 11 main.boss")
	fmt.Println("exactly 11 main.local2")
	fmt.Println("at least 60 string")
	fmt.Println("at least 60 []uint8")
	fmt.Println("exactly 36 main.entry")
	fmt.Println("exactly 18 main.wrapped")
	fmt.Println("at least 10 main.spare")             // with -race a pool drops some
	fmt.Println("exactly 12 main.captive since 1.23") // only there the DWARF tells what closures hold
}

func main() {
	fill()
	fillMore()
	finish()
	for i := 0; i < 9; i++ {
		go blocked(i)
		<-ready
	}
	go func() { host() }()
	<-ready
	for i := 0; i < 4; i++ {
		go ship()
		<-ready
	}
	// What the others' stacks have of the past is none of these.
	fillWide()
	runtime.GC()
	runtime.GC()
	for i := 0; i < 40; i++ { // a collection would empty it
		spares.Put(&spare{p: number})
	}
	f, err := os.Create(os.Args[1])
	if err != nil {
		panic(err)
	}
	debug.WriteHeapDump(f.Fd())
	f.Close()
	truth()
}
