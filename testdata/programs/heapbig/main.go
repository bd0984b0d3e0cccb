// heapbig writes a dump of a heap with a given number of list nodes, each with a text and some bytes,
// of which a map holds every tenth.
//
//	heapbig FILE NODES
package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
)

type node struct {
	next *node
	name string
	data []byte
}

var list *node
var table = map[int]*node{}

func main() {
	n, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	for i := 0; i < n; i++ {
		list = &node{list, string(make([]byte, 20)), make([]byte, i%100)}
		if i%10 == 0 {
			table[i] = list
		}
	}
	runtime.GC()
	f, err := os.Create(os.Args[1])
	if err != nil {
		panic(err)
	}
	debug.WriteHeapDump(f.Fd())
	if err := f.Close(); err != nil {
		panic(err)
	}
}
