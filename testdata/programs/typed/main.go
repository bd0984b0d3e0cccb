// Allocates one known type a line. What is behind "type:" on a line is the label that every
// object allocated there must have: "A | B" one of them, as Go versions go, "A & B" both and no
// other, "nothing" none: small objects share a block of 16 bytes, which counts where it begins. It waits for a line on its standard input, makes each of them 200 times, prints
// "done" and waits for the input's end.
//
// Built with Go 1.18 and newer.
package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"sync"
)

const rounds = 200

type node struct {
	left, right *node
	v           [4]int
}

type plain struct{ a, b, c int }

type big struct {
	p    *int
	fill [9000]int
}

type anon = struct {
	name string
	at   *int
}

type inner struct{ p *int }

type outer struct {
	inner
	m  map[string]*inner
	ch chan int
	f  func(int) (string, error)
}

type pair[K comparable, V any] struct {
	key K
	val V
}

type list[T any] struct {
	next *list[T]
	item T
}

type id string

type events chan plain

type shape interface{ area() float64 }

type square struct{ side, other float64 }

type side int

func (s side) area() float64 { return float64(s) }
func (s side) Error() string { return "side" }

type track []*node

func (t track) area() float64 { return float64(len(t)) }

type failure string

func (f failure) Error() string { return string(f) }

func (s square) area() float64 { return s.side * s.other }

var (
	sinkNode    *node
	sinkPlain   *plain
	sinkBig     *big
	sinkOuter   *outer
	sinkPtr     **node
	sinkArray   *[7]plain
	sinkPtrs    *[3]*node
	sinkAnon    *anon
	sinkNodes   []node
	sinkRefs    []*node
	sinkInts    []int
	sinkBytes   []byte
	sinkRunes   []rune
	sinkPlains  []plain
	sinkStrings []string
	sinkNested  [][]plain
	sinkChans   []chan int
	sinkString  string
	sinkID      id
	sinkAny     interface{}
	sinkShape   shape
	sinkErr     error
	sinkBoxes   = make([]interface{}, 2)
	sinkBoxed   = map[int]interface{}{0: nil, 1: nil}
	sinkFunc    func() int
	sinkChan    chan int
	sinkSig     chan struct{}
	sinkRefChan chan *node
	sinkEvents  events
	sinkRecv    <-chan plain
	sinkPair    *pair[string, int]
	sinkNamed   *pair[id, *node]
	sinkList    *list[plain]
	sinkPairs   []pair[string, int]
	sinkFlat    []pair[int, int]
	sinkMap     map[string]int
	sinkRefMap  map[int]*node
	sinkFloat   *float64
	sinkStr     *string
	sinkIface   *interface{}
	sinkPool    = sync.Pool{New: func() interface{} { return new(plain) }} // type: main.plain
	words       = []string{"alpha", "beta", "gamma", "delta"}
)

func structs(i int) {
	sinkNode = &node{v: [4]int{i}}   // type: main.node
	sinkPlain = new(plain)           // type: main.plain
	sinkBig = new(big)               // type: main.big
	sinkOuter = &outer{}             // type: main.outer
	sinkArray = new([7]plain)        // type: [7]main.plain
	sinkPtrs = new([3]*node)         // type: [3]*main.node
	sinkAnon = &anon{name: words[0]} // type: struct { name string; at *int }
	sinkFloat = new(float64)         // type: float64 | nothing
	sinkStr = new(string)            // type: string
	sinkIface = new(interface{})     // type: interface {}
}

func pointers(i int) {
	p := new(*node) // type: *main.node
	sinkPtr = p
}

func slices(i int) {
	sinkNodes = make([]node, 3+i%5)            // type: []main.node
	sinkRefs = make([]*node, 1+i%9)            // type: []*main.node
	sinkInts = make([]int, 5)                  // type: []int
	sinkInts = make([]int, i%7+9)              // type: []int
	sinkBytes = make([]byte, 100, 300+i)       // type: []uint8
	sinkPlains = make([]plain, 2000+i)         // type: []main.plain
	sinkNodes = make([]node, 1)                // type: []main.node
	sinkStrings = make([]string, 4)            // type: []string
	sinkNested = make([][]plain, 2)            // type: [][]main.plain
	sinkChans = make([]chan int, 2)            // type: []chan int
	sinkPlains = []plain{{1, 2, i}, {3, 4, i}} // type: [2]main.plain
	sinkRefs = []*node{sinkNode, nil}          // type: [2]*main.node
}

//go:noinline
func add[T any](s []T, v T) []T {
	return append(s, v) // type: []main.plain & []*main.node & []int32 | []?
}

//go:noinline
func join[T any](s, v []T) []T {
	return append(s, v...) // type: []?
}

//go:noinline
func shaped[K comparable, V any](n int) (map[K]V, chan V, []V) {
	m := make(map[K]V, n) // type: runtime.hmap & map[...]? & runtime.mapextra | runtime.hmap & map[string]int & runtime.mapextra | maps.Map & map[string]int & maps.table & []*maps.table
	c := make(chan V, n)  // type: chan ? | chan int
	s := make([]V, n)     // type: []? | []int
	return m, c, s
}

func growth(i int) {
	sinkInts = append(sinkInts[:1:1], i)                     // type: []int
	sinkBytes = append(sinkBytes[:60:60], words[i%4]...)     // type: []uint8
	sinkPlains = append(sinkPlains[:1:1], plain{})           // type: []main.plain
	sinkRefs = append(sinkRefs[:1:1], sinkNode)              // type: []*main.node
	sinkStrings = append(sinkStrings[:1:1], words...)        // type: []string
	sinkPairs = append(sinkPairs[:0:0], pair[string, int]{}) // type: []main.pair[string,int]
	sinkFlat = append(sinkFlat[:0:0], pair[int, int]{i, i})  // type: []main.pair[int,int]
	sinkNested = append(sinkNested[:1:1], sinkPlains)        // type: [][]main.plain
	sinkPlains = add(sinkPlains[:1:1], plain{})
	sinkRefs = add(sinkRefs[:1:1], sinkNode)
	sinkRunes = add(sinkRunes[:0:0], 'x')
	sinkPlains = join(sinkPlains[:0:0], sinkPlains)
	sinkRefs = join(sinkRefs[:0:0], sinkRefs)
	sinkMap, sinkChan, sinkInts = shaped[string, int](100)
}

func copies(i int) {
	to := make([]*node, len(sinkRefs)+1) // type: []*main.node
	copy(to, sinkRefs)
	sinkRefs = to
	flat := make([]plain, len(words)) // type: []main.plain
	copy(flat, sinkPlains)
	sinkPlains = flat
	same := make([]int, len(sinkInts)) // type: ? | []int
	copy(same, sinkInts)
	sinkInts = same
}

func texts(i int) {
	sinkString = words[i%4] + words[(i+1)%4] + words[(i+2)%4] // type: string
	sinkString = string(sinkBytes[:20])                       // type: string
	sinkString = string(sinkRunes[:1]) + words[i%4]           // type: string | nothing
	sinkBytes = []byte(words[i%4] + strings.Repeat("x", 50))  // type: string & []uint8 | []uint8
	sinkRunes = []rune(words[i%4])                            // type: []int32
	sinkID = id(words[i%4]) + "!"                             // type: string
	sinkString = string(rune(0x4e00 + i))                     // type: string | nothing
}

func interfaces(i int) {
	sinkAny = i + 100000                           // type: interface int
	sinkAny = float64(i) + 1.5                     // type: interface float64 | nothing
	sinkAny = words[i%4]                           // type: interface string
	sinkAny = sinkPlains                           // type: interface []main.plain
	sinkAny = id(words[i%4])                       // type: interface main.id
	sinkAny = track(sinkRefs)                      // type: interface main.track
	sinkShape = track(sinkRefs)                    // type: interface main.track
	sinkShape = side(i + 100000)                   // type: interface main.side
	sinkErr = side(i + 100000)                     // type: interface main.side | nothing
	sinkBoxes[i%2] = sinkStrings                   // type: interface []string
	sinkBoxed[i%2] = sinkInts                      // type: interface []int
	take(sinkID, sinkNodes)                        // type: interface []main.node & interface main.id
	sinkBoxes = append(sinkBoxes[:1:1], sinkRunes) // type: []interface {} & interface []int32
	_, sinkErr = fail(i)
	sinkAny = plain{a: i}               // type: main.plain
	sinkAny = node{left: sinkNode}      // type: main.node
	sinkShape = square{float64(i), 2}   // type: main.square
	sinkAny = pair[string, int]{"k", i} // type: main.pair[string,int]
	sinkAny = [3]int{i}                 // type: [3]int
}

//go:noinline
func take(all ...interface{}) { sinkAny = all[len(all)-1] }

// Two results of which one is an interface, and one that is a panic's.
func fail(i int) (n int, err error) {
	defer func() { err, _ = recover().(error) }()
	if n, err = code(i); err != nil && i%2 == 0 {
		panic(failure(words[i%4])) // type: interface main.failure
	}
	return
}

//go:noinline
func code(i int) (int, error) {
	if i < 0 {
		return i, nil
	}
	return i, failure(words[i%4]) // type: interface main.failure
}

func closures(i int) {
	n := i // type: int
	s := sinkNode
	sinkFunc = func() int { n++; return n } // type: struct { F uintptr; n *int } | struct { F uintptr; X0 *int }
	sinkFunc = func() int { return s.v[0] } // type: struct { F uintptr; s *main.node } | struct { F uintptr; X0 *main.node }
}

func channels(i int) {
	sinkChan = make(chan int)             // type: chan int
	sinkChan = make(chan int, 5)          // type: chan int
	sinkSig = make(chan struct{}, 5)      // type: chan struct {}
	sinkRefChan = make(chan *node, 3+i%3) // type: chan *main.node
	sinkEvents = make(events, 2)          // type: main.events
	sinkRecv = make(<-chan plain, 1+i%2)  // type: <-chan main.plain
}

func generics(i int) {
	sinkPair = &pair[string, int]{words[0], i}   // type: main.pair[string,int]
	sinkNamed = &pair[id, *node]{"x", sinkNode}  // type: main.pair[main.id,*main.node]
	sinkList = &list[plain]{item: plain{a: i}}   // type: main.list[main.plain]
	sinkPairs = make([]pair[string, int], 1+i%3) // type: []main.pair[string,int]
	sinkList.next = push(nil, plain{b: i})
}

//go:noinline
func push[T any](l *list[T], v T) *list[T] {
	return &list[T]{l, v} // type: main.list[...] | main.list[main.plain]
}

func maps(i int) {
	m := make(map[string]int, 100) // type: runtime.hmap & map[string]int | runtime.hmap & map[string]int & runtime.mapextra | maps.Map & map[string]int & maps.table & []*maps.table
	m[words[i%4]] = i
	sinkMap = m
	r := map[int]*node{} // type: runtime.hmap | maps.Map | maps.Map & map[int]*main.node
	r[i] = sinkNode      // type: map[int]*main.node | nothing
	sinkRefMap = r
}

func reflection(i int) {
	sinkAny = reflect.New(reflect.TypeOf(node{})).Interface() // type: main.node
	v := reflect.MakeSlice(reflect.TypeOf([]node{}), 3, 3)    // type: []main.node & unsafeheader.Slice | []main.node & interface []main.node & unsafeheader.Slice
	sinkNodes = v.Interface().([]node)
}

func pooled(i int) {
	sinkPlain = sinkPool.Get().(*plain)
}

// Goroutines that grow slices side by side, on stacks that grow while they do.
func crowd(i int) {
	var wg sync.WaitGroup
	wg.Add(6)
	for k := 0; k < 2; k++ {
		go growInts(&wg)
		go growPlains(&wg)
		go growChans(&wg)
	}
	wg.Wait()
}

//go:noinline
func deep(n int) byte {
	var pad [300]byte
	if n == 0 {
		return pad[0]
	}
	pad[n] = deep(n - 1)
	return pad[n/2]
}

var held sync.Map

func growInts(wg *sync.WaitGroup) {
	var s []int
	for k := 0; k < 20; k++ {
		s = append(s[:len(s):len(s)], k, k+1, k+2, k+3, int(deep(k))) // type: []int
		runtime.Gosched()
	}
	held.Store(0, s)
	wg.Done()
}

func growPlains(wg *sync.WaitGroup) {
	var s []plain
	for k := 0; k < 20; k++ {
		s = append(s[:len(s):len(s)], plain{k, k, int(deep(k))}, plain{}) // type: []main.plain
		runtime.Gosched()
	}
	held.Store(1, s)
	wg.Done()
}

func growChans(wg *sync.WaitGroup) {
	for k := 0; k < 20; k++ {
		c := make(chan plain, k+int(deep(k))) // type: chan main.plain
		held.Store(2, c)
		runtime.Gosched()
	}
	wg.Done()
}

func run() {
	kinds := []func(int){structs, pointers, slices, growth, copies, texts, interfaces, closures, channels,
		generics, maps, reflection, pooled, crowd}
	for i := 0; i < rounds; i++ {
		for _, k := range kinds {
			k(i)
		}
	}
}

func main() {
	in := bufio.NewReader(os.Stdin)
	fmt.Println("ready")
	in.ReadString('\n')
	run()
	fmt.Println("done")
	in.ReadString('\n')
}
