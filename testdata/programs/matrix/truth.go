package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
)

// Objects end here, so that each one escapes.
type out struct {
	slice   []byte
	ptrs    []*int
	text    string
	pointer interface{}
}

// A pointer in an interface needs no allocation of its own.
func escape(p interface{}, o *out) { o.pointer = p }

type noptr16 [2]uint64
type noptr512 [64]uint64
type node48 struct {
	next *node48
	data [40]byte
}

//go:noinline
func alloc16(n int, o *out) {
	for i := 0; i < n; i++ {
		escape(new(noptr16), o)
	}
}

//go:noinline
func alloc48p(n int, o *out) {
	for i := 0; i < n; i++ {
		escape(new(node48), o)
	}
}

//go:noinline
func alloc512(n int, o *out) {
	for i := 0; i < n; i++ {
		escape(new(noptr512), o)
	}
}

// The length is known only here: a slot of 96 bytes.
//
//go:noinline
func allocMake(n int, o *out) {
	size := 90 + len(os.Args)%2
	for i := 0; i < n; i++ {
		o.slice = make([]byte, size)
	}
}

// 40 bytes, a slot of 48, allocated by the runtime for the conversion.
//
//go:noinline
func allocString(n int, o *out) {
	text := []byte("0123456789012345678901234567890123456789")
	for i := 0; i < n; i++ {
		text[0] = byte(i)
		o.text = string(text)
	}
}

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
func alloc32k(n int, o *out) {
	for i := 0; i < n; i++ {
		o.slice = make([]byte, 32<<10)
	}
}

// A span of its own.
//
//go:noinline
func alloc64k(n int, o *out) {
	for i := 0; i < n; i++ {
		o.slice = make([]byte, 64<<10)
	}
}

var kinds = []struct {
	name         string
	count, bytes int
	run          func(n int, o *out)
}{
	{"alloc16", 100000, 16, alloc16},
	{"alloc48p", 100000, 48, alloc48p},
	{"alloc512", 100000, 512, alloc512},
	{"allocMake", 100000, 96, allocMake},
	{"allocString", 100000, 48, allocString},
	{"alloc1000", 50000, 1024, alloc1000},
	{"alloc4104p", 10000, 4864, alloc4104p},
	{"alloc32k", 2000, 32 << 10, alloc32k},
	{"alloc64k", 1000, 64 << 10, alloc64k},
}

func truth() {
	var o out
	debug.SetGCPercent(100)
	for _, k := range kinds {
		k.run(k.count, &o)
	}
	debug.SetGCPercent(-1)
	runtime.GC()
	runtime.GC()
	for _, k := range kinds {
		fmt.Println("main."+k.name, k.count, k.bytes)
	}
}
