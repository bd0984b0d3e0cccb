// waitself waits in every way that a block profile knows, lets goroutines contend for locks, then
// stands still and serves its own profiles, so that what a reader of its memory finds can be
// compared with what it says of itself.
//
//	waitself [-port N] [-block NS] [-mutex N] [-rounds N] [-end] [-off]
//
// -block is given to SetBlockProfileRate, -mutex to SetMutexProfileFraction; 0 leaves it off. It
// prints "ready PORT" when it stands: everything that waited has ended, and only HTTP requests to
// 127.0.0.1:PORT make it do anything:
//
//	/debug/pprof/...	the runtime's own profiles
//	/more			waits again, answers "ok" (SIGUSR1 does the same and prints "more")
//	/off			switches both rates off, answers "ok"
//	/rate?mutex=N		sets the fraction, answers "ok"
//
// -end: it ends at once instead of standing; with -off it switches both rates off before it stands.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"serve"
	"strconv"
	"sync"
	"syscall"
	"time"
)

const pause = 3 * time.Millisecond

// later does f on another goroutine in a moment; what it returns waits for its end.
func later(f func()) *sync.WaitGroup {
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		defer wg.Done()
		time.Sleep(pause)
		f()
	}()
	return &wg
}

// ---- channels ----

//go:noinline
func receive() {
	c := make(chan int)
	w := later(func() { c <- 1 })
	<-c
	w.Wait()
	w = later(func() { close(c) })
	_, ok := <-c
	if ok {
		panic("open")
	}
	w.Wait()
}

//go:noinline
func ranged() {
	c := make(chan int)
	go func() {
		for i := 0; i < 4; i++ {
			time.Sleep(pause)
			c <- i
		}
		close(c)
	}()
	for range c {
	}
}

//go:noinline
func send() {
	c := make(chan [40]byte)
	w := later(func() { <-c })
	c <- [40]byte{}
	w.Wait()
	full := make(chan int, 1)
	full <- 1
	w = later(func() { <-full })
	full <- 2
	w.Wait()
}

//go:noinline
func choose() {
	a, b := make(chan int), make(chan string)
	w := later(func() { b <- "b" })
	select {
	case <-a:
	case <-b:
	}
	w.Wait()
	w = later(func() { <-a })
	select {
	case a <- 1:
	case <-b:
	case <-time.After(time.Minute):
	}
	w.Wait()
}

// Inlined into its caller, and that into another.
func take(c chan int) int      { return <-c }
func takeTwice(c chan int) int { return take(c) + take(c) }

//go:noinline
func inlined() {
	c := make(chan int)
	w := later(func() { c <- 1; time.Sleep(pause); c <- 2 })
	takeTwice(c)
	w.Wait()
}

// ---- locks ----

// holders lets n goroutines queue for a lock that is held for a moment by each.
func holders(n int, l sync.Locker, hold time.Duration) {
	var wg sync.WaitGroup
	for i := 0; i < n; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			l.Lock()
			time.Sleep(hold)
			l.Unlock()
		}()
	}
	wg.Wait()
}

//go:noinline
func mutexes() {
	var m sync.Mutex
	holders(2, &m, pause)
	holders(6, &m, pause/3)
}

type guarded struct {
	sync.Mutex
	n int
}

func (g *guarded) add(n int) {
	g.Lock()
	defer g.Unlock()
	time.Sleep(pause / 3)
	g.n += n
}

type adder interface{ add(int) }
type outer struct{ *guarded }

//go:noinline
func embedded() {
	g := &guarded{}
	holders(3, g, pause/3) // Lock and Unlock through wrappers
	var wg sync.WaitGroup
	for _, a := range []adder{g, outer{g}, &outer{g}} {
		wg.Add(1)
		go func(a adder) {
			defer wg.Done()
			a.add(1)
		}(a)
	}
	wg.Wait()
}

//go:noinline
func readersAndWriters() {
	var m sync.RWMutex
	holders(2, m.RLocker(), pause/3)
	m.Lock()
	var wg sync.WaitGroup
	for i := 0; i < 3; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			m.RLock()
			time.Sleep(pause)
			m.RUnlock()
		}()
	}
	time.Sleep(pause)
	m.Unlock()
	time.Sleep(pause / 3)
	holders(2, &m, pause/3) // waits for the readers
	wg.Wait()
}

//go:noinline
func conditions() {
	var m sync.Mutex
	ready := 0
	c := sync.NewCond(&m)
	var wg sync.WaitGroup
	for i := 0; i < 3; i++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			m.Lock()
			for ready == 0 {
				c.Wait()
			}
			m.Unlock()
		}()
	}
	time.Sleep(pause)
	m.Lock()
	ready = 1
	c.Signal()
	m.Unlock()
	time.Sleep(pause)
	c.Broadcast()
	wg.Wait()
}

func once() {
	var o sync.Once
	w := later(func() { o.Do(func() { time.Sleep(pause) }) })
	time.Sleep(pause + pause/2)
	o.Do(func() {})
	w.Wait()
}

// ---- stacks ----

// step is inlined into climb: twice as many calls as physical frames.
func step(n int, f func()) { climb(n-1, f) }

//go:noinline
func climb(n int, f func()) {
	if n == 0 {
		f()
		return
	}
	step(n, f)
}

func deep() {
	for _, n := range []int{10, 20, 40, 70, 140, 400} {
		climb(n, inlined)
		var m sync.Mutex
		m.Lock()
		w := later(func() { m.Lock(); m.Unlock() })
		time.Sleep(2 * pause)
		climb(n, m.Unlock)
		w.Wait()
	}
}

func deferredAndPanics() {
	c := make(chan int)
	w := later(func() { c <- 1; c <- 2; c <- 3 })
	func() {
		defer func() {
			recover()
			<-c
		}()
		defer take(c)
		panic("on purpose")
	}()
	<-c
	w.Wait()
}

// Channels and timers of many goroutines at once: locks of the runtime itself are contended.
func runtimeLocks() {
	c := make(chan int)
	var wg sync.WaitGroup
	for i := 0; i < 8; i++ {
		wg.Add(2)
		go func() {
			defer wg.Done()
			for k := 0; k < 15000; k++ {
				c <- k
			}
		}()
		go func() {
			defer wg.Done()
			for k := 0; k < 15000; k++ {
				<-c
			}
		}()
	}
	wg.Wait()
}

func work() {
	receive()
	ranged()
	send()
	choose()
	inlined()
	mutexes()
	embedded()
	readersAndWriters()
	conditions()
	once()
	deep()
	deferredAndPanics()
	generics()
	runtimeLocks()
}

func main() {
	port := flag.Int("port", 0, "TCP port on 127.0.0.1, 0 for any")
	block := flag.Int("block", 0, "block profile rate, ns")
	mutex := flag.Int("mutex", 0, "mutex profile fraction")
	rounds := flag.Int("rounds", 1, "how often it waits before standing still")
	end := flag.Bool("end", false, "end instead of standing still")
	off := flag.Bool("off", false, "switch the rates off before standing still")
	flag.Parse()

	server, err := serve.Listen(*port)
	if err != nil {
		fmt.Fprintln(os.Stderr, "waitself:", err)
		os.Exit(1)
	}
	runtime.GOMAXPROCS(4)
	runtime.SetBlockProfileRate(*block)
	runtime.SetMutexProfileFraction(*mutex)
	server.Handle("/more", func(string) string {
		work()
		return "ok\n"
	})
	server.Handle("/off", func(string) string {
		runtime.SetBlockProfileRate(0)
		runtime.SetMutexProfileFraction(0)
		return "ok\n"
	})
	server.Handle("/rate", func(query string) string {
		n, _ := strconv.Atoi(serve.Value(query, "mutex"))
		runtime.SetMutexProfileFraction(n)
		return "ok\n"
	})
	usr1 := make(chan os.Signal, 1)
	signal.Notify(usr1, syscall.SIGUSR1)
	go func() {
		for range usr1 {
			work()
			fmt.Println("more")
		}
	}()

	for i := 0; i < *rounds; i++ {
		work()
	}
	if *off {
		runtime.SetBlockProfileRate(0)
		runtime.SetMutexProfileFraction(0)
	}
	if *end {
		time.Sleep(100 * time.Millisecond)
		return
	}
	fmt.Println("ready", server.Port)
	server.Serve()
}
