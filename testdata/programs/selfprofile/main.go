// Selfprofile writes its own CPU and heap profiles, DIR/self.cpu and DIR/self.heap: real input
// for the tests of what is written. Recursion, inlined calls, closures and labels are in it.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"sort"
	"strings"
	"time"
)

var sink []string

func recurse(n int) int {
	if n == 0 {
		sink = append(sink, strings.Repeat("x", 1000))
		return 1
	}
	return recurse(n-1) + sort.SearchInts([]int{1, 2, 3}, n)
}

func work(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		m := map[string]int{}
		for i := 0; i < 300; i++ {
			m[fmt.Sprint(i)] = recurse(i % 20)
		}
		if len(sink) > 50000 {
			sink = nil
		}
	}
}

func create(name string) *os.File {
	f, err := os.Create(filepath.Join(os.Args[1], name))
	if err != nil {
		panic(err)
	}
	return f
}

func main() {
	f := create("self.cpu")
	if err := pprof.StartCPUProfile(f); err != nil {
		panic(err)
	}
	work(500 * time.Millisecond)
	pprof.Do(context.Background(), pprof.Labels("step", "two"), func(context.Context) {
		work(500 * time.Millisecond)
	})
	pprof.StopCPUProfile()
	f.Close()
	f = create("self.heap")
	if err := pprof.WriteHeapProfile(f); err != nil {
		panic(err)
	}
	f.Close()
}
