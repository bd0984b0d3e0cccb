// demo is what `make demo` profiles: CPU in a few functions that one recognises,
// allocations on a few lines, a small steady live set, a lock that others wait for. It links no
// pprof, runs until it is killed and prints nothing.
//
// What a profile must show, roughly: main.hashBlock a third of the CPU, main.countPrimes (with
// the inlined main.divides) a quarter, main.sortWords a fifth; the allocations of
// main.readBatch (32 KiB), main.sortWords (24 KiB), main.newRecord (48 B) and the short strings
// of main.makeWord; a mutex that main.refresh holds for long while main.lookup wants it.
package main

import (
	"sort"
	"strconv"
	"sync"
	"time"
)

type record struct {
	name  string
	sum   uint64
	next  *record
	count [2]uint64
}

var (
	sink  uint64
	words []string
	mu    sync.Mutex
	kept  []*record // the live set: 20,000 records, replaced round about; under mu
)

// Small enough to be inlined into countPrimes.
func divides(n, d uint64) bool {
	return n%d == 0
}

//go:noinline
func countPrimes(limit uint64) uint64 {
	var primes uint64
	for n := uint64(2); n < limit; n++ {
		prime := true
		for d := uint64(2); d*d <= n; d++ {
			if divides(n, d) {
				prime = false
				break
			}
		}
		if prime {
			primes++
		}
	}
	return primes
}

func mix(h uint64, b byte) uint64 {
	h ^= uint64(b)
	return h * 1099511628211
}

//go:noinline
func hashBlock(block []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, b := range block {
		h = mix(h, b)
	}
	return h
}

//go:noinline
func makeWord(i uint64) string {
	return "word-" + strconv.FormatUint(i%100000, 36)
}

//go:noinline
func sortWords(dictionary []string) int {
	words := make([]string, len(dictionary))
	copy(words, dictionary)
	sort.Strings(words)
	return len(words[0])
}

//go:noinline
func newRecord(i int) *record {
	return &record{name: makeWord(uint64(i)), sum: uint64(i)}
}

//go:noinline
func keepRecords(from, n int) {
	for i := from; i < from+n; i++ {
		kept[i%len(kept)] = newRecord(i)
	}
}

// Looks through all records under the lock.
//
//go:noinline
func refresh(round int) uint64 {
	mu.Lock()
	defer mu.Unlock()
	keepRecords(round*50, 50)
	var sum uint64
	for _, r := range kept {
		if r != nil {
			sum += r.sum
		}
	}
	return sum
}

//go:noinline
func lookup(i int) uint64 {
	mu.Lock()
	defer mu.Unlock()
	if r := kept[i%len(kept)]; r != nil {
		return r.sum
	}
	return 0
}

func lookups() {
	for i, sum := 0, uint64(0); ; i++ {
		sum += lookup(i * 7919)
		time.Sleep(300 * time.Microsecond)
	}
}

//go:noinline
func readBatch(seed int) []byte {
	batch := make([]byte, 32<<10)
	for i := range batch {
		batch[i] = byte(i * seed)
	}
	return batch
}

//go:noinline
func serve(round int) {
	for i := 0; i < 6; i++ {
		batch := readBatch(round + i)
		for j := 0; j < 2; j++ {
			sink += hashBlock(batch)
		}
	}
	sink += countPrimes(9000)
	sink += uint64(sortWords(words))
	sink += refresh(round)
}

func main() {
	kept = make([]*record, 20000)
	for i := uint64(0); i < 1500; i++ {
		words = append(words, makeWord(i*2654435761))
	}
	go lookups()
	for round := 0; ; round++ {
		serve(round)
		if round%64 == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}
