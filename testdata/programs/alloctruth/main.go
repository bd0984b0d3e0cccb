// alloctruth allocates known numbers of objects of known sizes, each kind from a function
// and line of its own, and prints what it did. It links no pprof.
//
//	alloctruth [-goroutines N] [-deep] [-gc] [-scale N] [-part N]
//
// It prints "ready" and waits for a line on stdin, allocates, prints the truth, one line per
// kind, "FUNC COUNT BYTES_EACH" (the slot size the runtime uses), then "done", and
// waits for another line before it exits.
//
//	-goroutines N	the work is cut into pieces that N goroutines take from a channel, each
//			piece passing through a second channel: goroutines change threads
//	-deep		each piece runs below a recursion that deepens, on a fresh goroutine, so
//			that stacks grow in the middle of allocating functions
//	-gc		one goroutine runs runtime.GC all the time
//	-scale N	N times the counts
//	-part N		an N-th of the counts, for slow machines: 1, 2, 4, 5, 10 or 20
//
// Checked against the runtime's own profile at rate 1, Go 1.16 to 1.27: exact, but for up to ten
// 96-byte sudogs a line that a GC assist or a wait allocates below it.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"runtime"
	"sync"
)

// Objects end here, so that each one escapes. One a goroutine.
type out struct {
	slice   []byte
	ptrs    []*int
	text    string
	pointer interface{}
}

type pair struct {
	p *int
	n int
}

type node48 struct {
	next *node48
	data [40]byte
}

type node256 struct {
	next *node256
	data [248]byte
}

type noptr16 struct{ a, b uint64 }
type noptr32 [4]uint64
type noptr64 [8]uint64
type noptr128 [16]uint64
type noptr512 [64]uint64

//go:noinline
func alloc16(n int, o *out) {
	for i := 0; i < n; i++ {
		escape(new(noptr16), o)
	}
}

//go:noinline
func alloc16p(n int, o *out) {
	for i := 0; i < n; i++ {
		escape(&pair{n: i}, o)
	}
}

//go:noinline
func alloc32(n int, o *out) {
	for i := 0; i < n; i++ {
		escape(new(noptr32), o)
	}
}

//go:noinline
func alloc48p(n int, o *out) {
	for i := 0; i < n; i++ {
		escape(new(node48), o)
	}
}

//go:noinline
func alloc64(n int, o *out) {
	for i := 0; i < n; i++ {
		escape(new(noptr64), o)
	}
}

//go:noinline
func alloc128(n int, o *out) {
	for i := 0; i < n; i++ {
		escape(new(noptr128), o)
	}
}

//go:noinline
func alloc256p(n int, o *out) {
	for i := 0; i < n; i++ {
		escape(new(node256), o)
	}
}

//go:noinline
func alloc512(n int, o *out) {
	for i := 0; i < n; i++ {
		escape(new(noptr512), o)
	}
}

// 1000 bytes take a slot of 1024.
//
//go:noinline
func alloc1000(n int, o *out) {
	for i := 0; i < n; i++ {
		o.slice = make([]byte, 1000)
	}
}

// 513 pointers: 4104 bytes, a slot of 4864.
//
//go:noinline
func alloc4104p(n int, o *out) {
	for i := 0; i < n; i++ {
		o.ptrs = make([]*int, 513)
	}
}

//go:noinline
func alloc8k(n int, o *out) {
	for i := 0; i < n; i++ {
		o.slice = make([]byte, 8<<10)
	}
}

//go:noinline
func alloc32k(n int, o *out) {
	for i := 0; i < n; i++ {
		o.slice = make([]byte, 32<<10)
	}
}

// Above 32 KiB an object has a span of its own, in whole pages of 8 KiB.
//
//go:noinline
func alloc64k(n int, o *out) {
	for i := 0; i < n; i++ {
		o.slice = make([]byte, 64<<10)
	}
}

//go:noinline
func alloc512k(n int, o *out) {
	for i := 0; i < n; i++ {
		o.slice = make([]byte, 512<<10)
	}
}

// The length is known only here: a slice of a size the compiler cannot see, 96 bytes.
//
//go:noinline
func allocMake(n int, o *out) {
	size := 90 + len(os.Args[0])%2
	for i := 0; i < n; i++ {
		o.slice = make([]byte, size)
	}
}

// 40 bytes of string, a slot of 48, allocated by the runtime for the conversion.
//
//go:noinline
func allocString(n int, o *out) {
	text := []byte("0123456789012345678901234567890123456789")
	for i := 0; i < n; i++ {
		text[0] = byte(i)
		o.text = string(text)
	}
}

// A pointer in an interface needs no allocation of its own.
func escape(p interface{}, o *out) {
	o.pointer = p
}

type kind struct {
	name  string
	count int // multiple of pieces
	bytes int
	run   func(n int, o *out)
}

const pieces = 40

var kinds = []kind{
	{"main.alloc16", 400000, 16, alloc16},
	{"main.alloc16p", 400000, 16, alloc16p},
	{"main.alloc32", 400000, 32, alloc32},
	{"main.alloc48p", 400000, 48, alloc48p},
	{"main.alloc64", 400000, 64, alloc64},
	{"main.alloc128", 400000, 128, alloc128},
	{"main.alloc256p", 400000, 256, alloc256p},
	{"main.alloc512", 400000, 512, alloc512},
	{"main.alloc1000", 200000, 1024, alloc1000},
	{"main.alloc4104p", 40000, 4864, alloc4104p},
	{"main.alloc8k", 40000, 8 << 10, alloc8k},
	{"main.alloc32k", 8000, 32 << 10, alloc32k},
	{"main.alloc64k", 4000, 64 << 10, alloc64k},
	{"main.alloc512k", 800, 512 << 10, alloc512k},
	{"main.allocMake", 400000, 96, allocMake},
	{"main.allocString", 400000, 48, allocString},
}

// Uses up stack before it calls f: at each call a little more than at the last.
//
//go:noinline
func dive(depth int, f func()) byte {
	var pad [200]byte
	pad[depth%len(pad)] = byte(depth)
	if depth == 0 {
		f()
		return pad[0]
	}
	return dive(depth-1, f) + pad[depth%len(pad)]
}

type piece struct {
	k    *kind
	n    int
	deep int
}

func (p piece) do(o *out) {
	if p.deep == 0 {
		p.k.run(p.n, o)
		return
	}
	// A new goroutine starts with a small stack, which the work below then outgrows; its
	// objects come one by one at ever deeper places.
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		for i := 0; i < p.n; {
			n := p.n / 50
			if n < 1 || i+n > p.n {
				n = p.n - i
			}
			if i == 0 && n > 1 {
				n = 1
			}
			dive(p.deep+i*100/p.n, func() { p.k.run(n, o) })
			i += n
		}
	}()
	wg.Wait()
}

func work(goroutines int, deep bool, scale int) {
	queue := make(chan piece)
	relay := make(chan piece)
	var pass, alloc sync.WaitGroup
	pass.Add(goroutines)
	alloc.Add(goroutines)
	for i := 0; i < goroutines; i++ {
		go func() {
			defer pass.Done()
			for p := range queue {
				relay <- p
			}
		}()
		go func() {
			defer alloc.Done()
			var o out
			for p := range relay {
				p.do(&o)
				runtime.Gosched()
			}
		}()
	}
	for i := 0; i < pieces; i++ {
		for k := range kinds {
			p := piece{k: &kinds[k], n: kinds[k].count / pieces * scale}
			if deep {
				p.deep = 1 + i
			}
			queue <- p
		}
	}
	close(queue)
	pass.Wait()
	close(relay)
	alloc.Wait()
}

func main() {
	goroutines := flag.Int("goroutines", 1, "share the work among N goroutines")
	deep := flag.Bool("deep", false, "allocate while stacks grow")
	gc := flag.Bool("gc", false, "collect garbage all the time")
	scale := flag.Int("scale", 1, "multiply the counts")
	part := flag.Int("part", 1, "divide the counts")
	flag.Parse()
	for i := range kinds {
		kinds[i].count /= *part
	}

	in := bufio.NewReader(os.Stdin)
	fmt.Println("ready")
	if _, err := in.ReadString('\n'); err != nil {
		return
	}
	if *gc {
		go func() {
			for {
				runtime.GC()
			}
		}()
	}
	work(*goroutines, *deep, *scale)
	for _, k := range kinds {
		fmt.Println(k.name, k.count*(*scale), k.bytes)
	}
	fmt.Println("done")
	in.ReadString('\n')
}
