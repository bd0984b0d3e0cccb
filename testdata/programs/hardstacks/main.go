// hardstacks burns CPU where frame pointers do not tell the callers. It links no pprof, prints
// "ready" and runs until it is killed.
//
//	hardstacks -work NAME,...
//
//	hash	assembly that computes with the frame pointer's register (md5, sha1, sha512)
//	grow	goroutines whose stacks grow, so that they are sampled while they are copied
//	copy	values moved by runtime.duffcopy and cleared by runtime.duffzero
//	fault	nil dereferences in a frameless function, recovered
//	barrier	pointer writes while the collector marks
//	large	frames of 32 KiB
//
// Every sample of a work lies below main.NAMEWork or one of the runtime's own roots.
package main

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha512"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
)

var sink uint64

func hashWork() {
	buf := make([]byte, 4096)
	for {
		a, b, c := md5.Sum(buf), sha1.Sum(buf), sha512.Sum512(buf)
		sink += uint64(a[0]) + uint64(b[0]) + uint64(c[0])
	}
}

//go:noinline
func deep(n int, a [16]int) int {
	if n == 0 {
		return a[3]
	}
	a[n&15] = n
	return deep(n-1, a) + a[0]
}

func growOne(wg *sync.WaitGroup) {
	defer wg.Done()
	sink += uint64(deep(60, [16]int{}))
}

func growWork() {
	for {
		var wg sync.WaitGroup
		wg.Add(10)
		for i := 0; i < 10; i++ {
			go growOne(&wg)
		}
		wg.Wait()
	}
}

type wide struct{ a [64]uint64 }

//go:noinline
func copyOne(w *wide) wide { return *w }

func copyWork() {
	w := wide{}
	for {
		x := copyOne(&w)
		y := x
		sink += y.a[3] + uint64(len(x.a))
		w.a[1]++
	}
}

//go:noinline
func deref(p *uint64) uint64 { return *p }

//go:noinline
func derefCaller(p *uint64) (v uint64) {
	defer func() { recover() }()
	return deref(p) + 1
}

func faultWork() {
	for {
		sink += derefCaller(nil)
	}
}

type links struct{ to [8]*int }

var lists [1024]*links

//go:noinline
func store(l *links, x *int) {
	for i := range l.to {
		l.to[i] = x
	}
}

func barrierWork() {
	for i := range lists {
		lists[i] = &links{}
	}
	var keep [][]*int
	for i := 0; i < 50; i++ {
		keep = append(keep, make([]*int, 100000))
	}
	for n := 0; ; n++ {
		x := new(int)
		for i := 0; i < 10000; i++ {
			store(lists[i&1023], x)
		}
		b := make([]*int, 100000)
		b[0] = x
		keep[n%len(keep)] = b
	}
}

//go:noinline
func fill(words []uint64) uint64 {
	for i := range words {
		words[i] += sink + uint64(i)
	}
	return words[len(words)/2]
}

func largeWork() {
	var words [4096]uint64
	for {
		sink += fill(words[:])
	}
}

func main() {
	works := map[string]func(){"hash": hashWork, "grow": growWork, "copy": copyWork,
		"fault": faultWork, "barrier": barrierWork, "large": largeWork}
	which := flag.String("work", "", "comma-separated names")
	flag.Parse()
	for _, name := range strings.Split(*which, ",") {
		if works[name] == nil {
			fmt.Fprintln(os.Stderr, "hardstacks: there is no work", name)
			os.Exit(2)
		}
		go works[name]()
	}
	fmt.Println("ready")
	select {}
}
