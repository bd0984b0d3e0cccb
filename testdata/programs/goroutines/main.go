// Goroutines parked in every way that Go knows, which then stand still. Prints "ready PORT" of
// a server of /debug/pprof once all of them do.
//
//	goroutines [-n N] [-busy N]
//
// -n: that many more, in a few dozen ways. -busy: that many that never stand still.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	_ "net/http/pprof"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var (
	never    = make(chan int) // nobody sends, nobody receives
	nilChan  chan int
	sink     int64
	started  sync.WaitGroup
	expected int64
)

// park runs f in a goroutine of its own that will not come back.
func park(f func()) {
	atomic.AddInt64(&expected, 1)
	go f()
}

func receive()    { <-never }
func receiveOk()  { _, ok := <-never; _ = ok }
func send()       { full <- 1 }
func receiveNil() { <-nilChan }
func sendNil()    { nilChan <- 1 }
func selectNone() { select {} }
func sleepLong()  { time.Sleep(100 * time.Hour) }
func rangeForever() {
	for range never {
	}
}

var full = make(chan int)

func selectTwo() {
	select {
	case <-never:
	case full2 <- 1:
	}
}

var full2 = make(chan int)

func selectOne() {
	select {
	case <-never:
	}
}

func selectTimer() {
	select {
	case <-never:
	case <-time.After(100 * time.Hour):
	}
}

func tick() {
	for range time.Tick(100 * time.Hour) {
	}
}

var (
	mu   sync.Mutex
	rw   sync.RWMutex
	rw2  sync.RWMutex
	wg   sync.WaitGroup
	cond = sync.NewCond(new(sync.Mutex))
	once sync.Once
)

func lockMutex()  { mu.Lock() }
func lockRW()     { rw.Lock() }
func readLockRW() { rw2.RLock() }
func waitGroup()  { wg.Wait() }
func waitCond() {
	cond.L.Lock()
	cond.Wait()
}
func doOnce() { once.Do(receive) }

// Nobody accepts connections there, so only this variable keeps the listener: if it were collected it
// would be closed, and connections of those who dial or read would be reset.
var unaccepted net.Listener

func netRead(l net.Listener) {
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		panic(err)
	}
	_, _ = c.Read(make([]byte, 1))
}

func accept() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	_, _ = l.Accept()
}

// A read that the poller does not handle: the thread waits in the kernel.
func blockingRead() {
	var p [2]int
	if err := syscall.Pipe(p[:]); err != nil {
		panic(err)
	}
	_, _ = syscall.Read(p[0], make([]byte, 1))
}

func rawSleep() {
	ts := syscall.Timespec{Sec: 1 << 30}
	_ = syscall.Nanosleep(&ts, nil)
}

func locked() {
	runtime.LockOSThread()
	<-never
}

func lockedInSyscall() {
	runtime.LockOSThread()
	rawSleep()
}

func deep(n int) int {
	if n == 0 {
		<-never
	}
	return deep(n-1) + 1
}

// Calls that the compiler inlines, several in one physical frame.
func inner()  { <-never }
func middle() { inner() }
func outer()  { middle() }

func deepInlined(n int) {
	if n == 0 {
		outer()
	}
	step(n)
}
func step(n int) { deepInlined(n - 1) }

type waiter interface{ wait() }
type byValue struct{ c chan int }

func (b byValue) wait() { <-b.c }

// Called through an interface, on a pointer, it goes through a wrapper.
func throughWrapper(w waiter) { w.wait() }

func deferred() {
	defer func() { <-never }()
}

func panicking() {
	defer func() {
		<-never
	}()
	panic("expected")
}

func panickingByNil() {
	defer func() {
		<-never
	}()
	var p *int
	*p = 1
}

func bigFrame() {
	var a [3000]int64
	a[int(sink)%len(a)] = 1
	<-never
	sink += a[17]
}

func methodValue(b byValue) func() { return b.wait }

type object struct{ p *int }

func finalized(o *object) { <-never }

// The goroutine that runs finalizers stays in this one, and then counts as one of the program's.
func waitInFinalizer() {
	in := make(chan bool)
	func() {
		o := &object{p: new(int)}
		runtime.SetFinalizer(o, func(o *object) {
			close(in)
			finalized(o)
		})
	}()
	for i := 0; i < 100; i++ {
		runtime.GC()
		select {
		case <-in:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
	panic("no finalizer ran")
}

func labelled() {
	for i := 0; i < 3; i++ {
		l := pprof.Labels("request", strconv.Itoa(i), "user", "räv", "empty", "")
		go pprof.Do(context.Background(), l, func(ctx context.Context) {
			pprof.Do(ctx, pprof.Labels("inner", "yes"), func(context.Context) {
				park(receive) // inherited
				<-never
			})
		})
	}
	many := []string{}
	for i := 0; i < 20; i++ {
		many = append(many, fmt.Sprintf("key%02d", i), fmt.Sprintf("value %d", i))
	}
	go pprof.Do(context.Background(), pprof.Labels(many...), func(context.Context) { <-never })
	long := make([]byte, 1000)
	for i := range long {
		long[i] = 'x'
	}
	go pprof.Do(context.Background(), pprof.Labels("long", string(long)), func(context.Context) { <-never })
}

func parkAll(l net.Listener) {
	mu.Lock()
	rw.RLock()
	rw2.Lock()
	wg.Add(1)
	for _, f := range []func(){receive, receive, receiveOk, send, receiveNil, sendNil, selectNone,
		selectTwo, selectOne, selectTimer, sleepLong, rangeForever, tick, lockMutex, lockMutex,
		lockRW, readLockRW, waitGroup, waitCond, doOnce, accept, blockingRead, rawSleep, locked,
		lockedInSyscall, outer, deferred, panicking, panickingByNil, bigFrame,
		methodValue(byValue{never})} {
		park(f)
	}
	park(func() { netRead(l) })
	park(func() { throughWrapper(&byValue{never}) })
	park(func() {
		func() {
			func() { <-never }()
		}()
	})
	for _, n := range []int{20, 27, 28, 29, 30, 31, 32, 33, 50, 96, 97, 98, 99, 100, 101, 120,
		123, 124, 125, 126, 127, 128, 129, 200, 5000} {
		n := n
		park(func() { deep(n) })
		park(func() { deepInlined(n) })
	}
	labelled()
	waitInFinalizer()
	waitInCleanup()
	parkMore()
	parkWithC()
}

func fan(n int) {
	ways := []func(){receive, selectTwo, selectNone, waitGroup, waitCond, outer,
		func() { deep(5) }, func() { deepInlined(3) }, func() { throughWrapper(&byValue{never}) }}
	for i := 0; i < n; i++ {
		go ways[i%len(ways)]()
	}
}

// Goroutines that are never twice in the same place: ping-pong, exits, growing stacks, work.
func busy(n int) {
	for i := 0; i < n; i++ {
		switch i % 4 {
		case 0:
			ping, pong := make(chan int), make(chan int)
			go func() {
				for v := range ping {
					pong <- v
				}
			}()
			go func() {
				for {
					ping <- 1
					<-pong
				}
			}()
		case 1:
			go func() {
				for {
					done := make(chan bool)
					go func() { grow(int(atomic.AddInt64(&sink, 1) % 200)); close(done) }()
					<-done
				}
			}()
		case 2:
			go func() {
				for {
					work()
					time.Sleep(50 * time.Microsecond)
				}
			}()
		case 3:
			go func() {
				var p [2]int
				if err := syscall.Pipe(p[:]); err != nil {
					panic(err)
				}
				b := make([]byte, 1)
				for {
					_, _ = syscall.Write(p[1], b)
					_, _ = syscall.Read(p[0], b)
				}
			}()
		}
	}
}

func grow(n int) int {
	var a [64]byte
	if n == 0 {
		runtime.Gosched()
		return int(a[0])
	}
	return grow(n-1) + int(a[n%64])
}

func work() {
	for i := 0; i < 20000; i++ {
		sink ^= int64(i)
	}
}

func main() {
	n := flag.Int("n", 0, "more goroutines")
	nbusy := flag.Int("busy", 0, "that never stand still")
	still := flag.Bool("park", true, "one in every way")
	flag.Parse()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	unaccepted = silent
	go func() { _ = http.Serve(l, nil) }()
	if *still {
		parkAll(silent)
	}
	fan(*n)
	time.Sleep(300*time.Millisecond + time.Duration(*n)*10*time.Microsecond)
	busy(*nbusy)
	fmt.Println("ready", l.Addr().(*net.TCPAddr).Port)
	<-never
}
