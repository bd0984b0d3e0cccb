// heaplabels allocates known numbers of 128-byte objects in goroutines of known ids and labels.
//
// It prints "ready" and waits for a line on stdin, allocates, prints the truth, one line per
// goroutine, "GOID COUNT LABELS", then "done", and waits for another line before it exits.
// LABELS are "k=v" joined by commas and sorted, "-" for none.
//
// The same function allocates for all of them, so that nothing but labels and ids tells them
// apart. Two goroutines share one set; one has a label within a label; one has 12, up to Go 1.23
// a map of more than one bucket. The goroutines change threads between slices.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"sort"
	"strconv"
	"strings"
	"sync"
)

const (
	slices = 200
	each   = 1000 // objects a slice, times the goroutine's share
)

type block [128]byte

//go:noinline
func allocate(n int, out **block) {
	for i := 0; i < n; i++ {
		*out = new(block)
	}
}

// "goroutine 18 [running]: ..."
func goid() int {
	var text [64]byte
	words := strings.Fields(string(text[:runtime.Stack(text[:], false)]))
	id, err := strconv.Atoi(words[1])
	if err != nil {
		panic(err)
	}
	return id
}

type worker struct {
	share  int
	labels []string // key, value, ...
	inner  []string // of the second half of its slices, beside the others
	truth  []string
}

func (w *worker) part(n int, labels []string) {
	var out *block
	for i := 0; i < n; i++ {
		allocate(each*w.share, &out)
		runtime.Gosched()
	}
	w.truth = append(w.truth, fmt.Sprint(goid(), " ", n*each*w.share, " ", text(labels)))
}

func (w *worker) run() {
	// Counted in halves, before and within the inner labels.
	both := func(ctx context.Context) {
		if w.inner == nil {
			w.part(slices, w.labels)
			return
		}
		w.part(slices/2, w.labels)
		pprof.Do(ctx, pprof.Labels(w.inner...), func(context.Context) {
			w.part(slices/2, append(append([]string{}, w.labels...), w.inner...))
		})
	}
	if w.labels == nil {
		both(context.Background())
		return
	}
	pprof.Do(context.Background(), pprof.Labels(w.labels...), both)
}

func text(labels []string) string {
	var out []string
	for i := 0; i < len(labels); i += 2 {
		out = append(out, labels[i]+"="+labels[i+1])
	}
	if len(out) == 0 {
		return "-"
	}
	sort.Strings(out)
	return strings.Join(out, ",")
}

func main() {
	var many []string
	for i := 0; i < 12; i++ {
		many = append(many, fmt.Sprint("key", i), fmt.Sprint("value", i))
	}
	workers := []*worker{
		{share: 1},
		{share: 2, labels: []string{"tenant", "red"}},
		{share: 3, labels: []string{"tenant", "red"}},
		{share: 1, labels: []string{"tenant", "blue", "part", "outer"}, inner: []string{"step", "two"}},
		{share: 2, labels: many},
	}
	in := bufio.NewReader(os.Stdin)
	fmt.Println("ready")
	if _, err := in.ReadString('\n'); err != nil {
		return
	}
	var wg sync.WaitGroup
	for _, w := range workers {
		wg.Add(1)
		go func(w *worker) {
			defer wg.Done()
			w.run()
		}(w)
	}
	wg.Wait()
	for _, w := range workers {
		for _, line := range w.truth {
			fmt.Println(line)
		}
	}
	fmt.Println("done")
	in.ReadString('\n')
}
