// hosted is one of many processes on a host. It links no pprof but with -tags=records, prints "ready" and runs until it is
// killed.
//
//	hosted idle	sleeps
//	hosted busy A B	burns CPU in one goroutine: the share A/(A+B) of it in main.first, the
//			rest in main.second
//	hosted periodic MS	each MS milliseconds does as much in main.first as in main.second, both for a third of it or so
//	hosted headless	burns CPU, and its first thread ends at once
//	hosted becomes PROGRAM ARG...
//			sleeps for a second, and then calls exec
//	hosted passes MS PROGRAM ARG...
//			the same after MS milliseconds
//	hosted brief MS REST	burns CPU for MS milliseconds, sleeps for REST, and ends
//	hosted tables	copies a BPF table all the time: some of the ticks that would meet it are not delivered
//	hosted flood	burns CPU in one goroutine, in stacks of which hardly two are alike
//	hosted allocflood
//			allocates all the time, in such stacks
//	hosted allocates N
//			allocates all the time, objects of 16 bytes to 2 kB, in N such stacks
//	hosted allocated N
//			half a second later allocates N objects of 64 KiB, and ends
//	hosted allocated-at N
//			once stdin has a line: allocates N such objects, and then waits
//	hosted waitflood
//			once stdin has a line: starts 150,000 goroutines that wait, and then waits all the
//			time, in such stacks
//	hosted goflood N
//			starts N goroutines a second, each of which waits in such a stack and ends
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

var sink uint64

const unit = 20000

//go:noinline
func spin(x uint64) uint64 {
	for i := 0; i < unit; i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

//go:noinline
func first(n int) {
	for i := 0; i < n; i++ {
		sink += spin(88172645463325252)
	}
}

//go:noinline
func second(n int) {
	for i := 0; i < n; i++ {
		sink += spin(1234567)
	}
}

func busy(a, b int) {
	for {
		first(a)
		second(b)
	}
}

// The main goroutine has the first thread.
func init() {
	if len(os.Args) > 1 && os.Args[1] == "headless" {
		runtime.LockOSThread()
	}
}

// How often spin runs in a third of @each.
func third(each time.Duration) int {
	begin, n := time.Now(), 0
	for ; time.Since(begin) < 20*each; n++ {
		sink += spin(uint64(n) | 1)
	}
	return n/60 + 1
}

func periodic(ms int) {
	each := time.Duration(ms) * time.Millisecond
	n := third(each)
	for range time.NewTicker(each).C {
		first(n)
		second(n)
	}
}

var (
	allocates bool
	stacks    uint64 // 0: as many as there are ways
	size      = 2048
	kept      []byte
	asks      chan uint64 // nil: no waits
	answers   = make(chan uint64)
)

// What is done at the end of each way.
//
//go:noinline
func leaf(way uint64) uint64 {
	if asks != nil {
		asks <- way
		return <-answers
	}
	if !allocates {
		return spin(way)
	}
	kept = make([]byte, size)
	return uint64(len(kept))
}

//go:noinline
func left(way uint64, depth int) uint64 {
	if depth == 0 {
		return leaf(way)
	}
	return fork(way>>1, depth-1) + 1
}

//go:noinline
func right(way uint64, depth int) uint64 {
	if depth == 0 {
		return leaf(way)
	}
	return fork(way>>1, depth-1) + 2
}

func fork(way uint64, depth int) uint64 {
	if way&1 == 0 {
		return left(way, depth)
	}
	return right(way, depth)
}

func flood() {
	way := uint64(88172645463325252)
	for {
		way ^= way << 13
		way ^= way >> 7
		way ^= way << 17
		if stacks == 0 {
			sink += left(way, 50)
			continue
		}
		size = 16 + int(way%128)*16
		sink += left(way>>7%stacks, 50)
	}
}

//go:noinline
func forever() { <-make(chan int) }

func answerAll() {
	asks = make(chan uint64)
	go func() {
		for way := range asks {
			answers <- way
		}
	}()
}

func goFlood(n int) {
	answerAll()
	way, made := uint64(88172645463325252), 0
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		for due := int(time.Since(begin).Seconds() * float64(n)); made < due; made++ {
			way ^= way << 13
			way ^= way >> 7
			way ^= way << 17
			go left(way, 50)
		}
	}
}

func awaitLine() {
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		panic(err)
	}
}

func waitFlood() {
	awaitLine()
	answerAll()
	for i := 0; i < 150000; i++ {
		go forever()
	}
	flood()
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func main() {
	fmt.Println("ready")
	switch os.Args[1] {
	case "idle":
		time.Sleep(24 * time.Hour) // a sleep of a second is 0.4 to 1 ms of CPU time: samples
	case "busy":
		busy(number(os.Args[2]), number(os.Args[3]))
	case "headless":
		go busy(1, 1)
		time.Sleep(10 * time.Millisecond)
		syscall.RawSyscall(syscall.SYS_EXIT, 0, 0, 0)
	case "periodic":
		periodic(number(os.Args[2]))
	case "brief":
		for end := time.Now().Add(time.Duration(number(os.Args[2])) * time.Millisecond); time.Now().Before(end); {
			first(1)
		}
		time.Sleep(time.Duration(number(os.Args[3])) * time.Millisecond)
		return
	case "allocated":
		time.Sleep(time.Second / 2)
		for i := number(os.Args[2]); i > 0; i-- {
			kept = make([]byte, 64<<10)
		}
		return
	case "allocated-at":
		awaitLine()
		for i := number(os.Args[2]); i > 0; i-- {
			kept = make([]byte, 64<<10)
		}
		time.Sleep(time.Hour)
	case "becomes":
		time.Sleep(time.Second)
		panic(syscall.Exec(os.Args[2], os.Args[2:], os.Environ()))
	case "passes":
		time.Sleep(time.Duration(number(os.Args[2])) * time.Millisecond)
		panic(syscall.Exec(os.Args[3], os.Args[3:], os.Environ()))
	case "tables":
		tables()
	case "flood":
		flood()
	case "allocflood":
		allocates = true
		flood()
	case "allocates":
		allocates, stacks = true, uint64(number(os.Args[2]))
		flood()
	case "waitflood":
		waitFlood()
	case "goflood":
		goFlood(number(os.Args[2]))
	}
	for {
		time.Sleep(time.Second)
	}
}
