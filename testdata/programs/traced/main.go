// Traced writes an execution trace of itself while it does what a trace can tell of: channels, locks, timers,
// the network, system calls that block and such that do not, garbage.
//
//	traced FILE [SECONDS [cpu|flight|small]]
//
// With "cpu" the CPU profiler is on. With "flight" the trace is the cut of a flight recorder, and a "small" one has
// each of these things about once. It is written for Go 1.5 and all newer.
package main

import (
	"io/ioutil"
	"net"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"time"
)

var (
	sink []byte
	mu   sync.Mutex
	cond = sync.NewCond(&mu)
)

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// Two workers pass values to each other, and to anybody.
func talk(any chan int, n int) {
	to, from := make(chan int), make(chan int)
	go func() {
		for v := range to {
			from <- v
		}
		close(from)
	}()
	for i := 0; i < n; i++ {
		to <- i
		<-from
		select {
		case any <- i:
		case <-any:
		}
		mu.Lock()
		sink = make([]byte, 20000)
		mu.Unlock()
	}
	close(to)
	<-from
}

// Some wait for a condition, in a system call that blocks, or for time.
func wait(n int) {
	for i := 0; i < n; i++ {
		time.Sleep(200 * time.Microsecond)
		r, w, err := os.Pipe()
		must(err)
		go func() {
			time.Sleep(100 * time.Microsecond)
			w.Write([]byte("x"))
			w.Close()
		}()
		r.Read(make([]byte, 1))
		r.Close()
		mu.Lock()
		cond.Broadcast()
		mu.Unlock()
		_, err = ioutil.ReadFile("/proc/self/stat")
		must(err)
	}
}

func serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			b := make([]byte, 10)
			n, _ := c.Read(b)
			c.Write(b[:n])
			c.Close()
		}()
	}
}

func ask(l net.Listener, n int) {
	for i := 0; i < n; i++ {
		c, err := net.Dial("tcp", l.Addr().String())
		must(err)
		c.Write([]byte("x"))
		c.Read(make([]byte, 1))
		c.Close()
	}
}

func load(rounds int) {
	var wg, waiters sync.WaitGroup
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	any := make(chan int, 2)
	run := func(f func()) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			f()
		}()
	}
	go serve(l)
	for i := 0; i < 4; i++ {
		run(func() { talk(any, 20*rounds) })
		run(func() { noted(func() { wait(2 * rounds) }) })
		waiters.Add(1)
		go func() {
			mu.Lock()
			cond.Wait()
			mu.Unlock()
			waiters.Done()
		}()
	}
	run(func() { ask(l, 4*rounds) })
	for i := 0; i < 100*rounds; i++ {
		runtime.Gosched()
		sink = make([]byte, 4000)
	}
	runtime.GC()
	wg.Wait()
	l.Close()
	release(&waiters)
}

func smallest() {
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		noted(func() { wait(1) })
		wg.Done()
	}()
	talk(make(chan int, 1), 2)
	runtime.GC()
	wg.Wait()
}

// Who waits for the condition has begun to wait by then, or will.
func release(waiters *sync.WaitGroup) {
	done := make(chan bool)
	go func() {
		waiters.Wait()
		close(done)
	}()
	for {
		select {
		case <-done:
			return
		case <-time.After(time.Millisecond):
			mu.Lock()
			cond.Broadcast()
			mu.Unlock()
		}
	}
}

func main() {
	var how string
	seconds := 0.0
	if len(os.Args) > 2 {
		seconds, _ = strconv.ParseFloat(os.Args[2], 64)
	}
	if len(os.Args) > 3 {
		how = os.Args[3]
	}
	f, err := os.Create(os.Args[1])
	must(err)
	if how == "cpu" {
		must(pprof.StartCPUProfile(ioutil.Discard))
	}
	stop := begin(f, how == "flight")
	start := time.Now()
	if how == "small" {
		smallest()
	}
	for how != "small" {
		load(5)
		if time.Since(start).Seconds() >= seconds {
			break
		}
	}
	stop()
	if how == "cpu" {
		pprof.StopCPUProfile()
	}
	must(f.Close())
}
