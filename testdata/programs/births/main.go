// births burns CPU in threads that are old, new, or mostly idle, and says how much in which function.
//
// Its arguments are phases, one after the other, each KIND:DURATION:
//
//	steady	two threads burn in main.steady
//	born	threads burn 150 ms each in main.born, two at a time, and end
//	idle	24 threads burn 4 ms each in main.idler, and sleep 90 ms, again and again
//
// It prints "ready", and begins at SIGUSR1. After the last phase it prints "FUNCTION NANOSECONDS" for each function, by
// the CPU clocks of its threads, and "told", and waits. It links no pprof.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const rusageThread = 1

var (
	sink  [64]uint64
	spent [3]atomic.Int64 // ns in steady, born, idler
)

//go:noinline
func spin(x uint64) uint64 {
	for i := 0; i < 2000; i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

// CPU time of this thread.
func used() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(rusageThread, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

// burn takes d of the thread's CPU time, at most until the phase ends.
func burn(kind int, d time.Duration, end time.Time) {
	x := uint64(kind) + 88172645463325252
	begin := used()
	for used()-begin < d && time.Now().Before(end) {
		x = spin(x)
	}
	sink[kind] = x
	spent[kind].Add(int64(used() - begin))
}

//go:noinline
func steady(end time.Time) {
	burn(0, time.Hour, end)
	runtime.KeepAlive(end)
}

//go:noinline
func born(end time.Time) {
	burn(1, 150*time.Millisecond, end)
	runtime.KeepAlive(end)
}

//go:noinline
func idler(end time.Time) {
	burn(2, 4*time.Millisecond, end)
	runtime.KeepAlive(end)
}

// A pool of threads that are there before the first phase, so that old threads are old.
var work = make(chan func())

func pool(n int) {
	var up sync.WaitGroup
	up.Add(n)
	for i := 0; i < n; i++ {
		go func() {
			runtime.LockOSThread()
			up.Done()
			for f := range work {
				f()
			}
		}()
	}
	up.Wait()
}

func each(n int, f func()) {
	var done sync.WaitGroup
	done.Add(n)
	for i := 0; i < n; i++ {
		work <- func() { f(); done.Done() }
	}
	done.Wait()
}

func phase(kind string, end time.Time) {
	switch kind {
	case "steady":
		each(2, func() { steady(end) })
	case "idle":
		each(24, func() {
			for time.Now().Before(end) {
				idler(end)
				time.Sleep(90 * time.Millisecond)
			}
		})
	case "born":
		each(2, func() {
			for time.Now().Before(end) {
				done := make(chan bool)
				go func() {
					runtime.LockOSThread() // and never unlocked: the thread ends with it
					born(end)
					close(done)
				}()
				<-done
			}
		})
	default:
		panic(kind)
	}
}

func main() {
	pool(24)
	usr1 := make(chan os.Signal, 1)
	signal.Notify(usr1, syscall.SIGUSR1)
	fmt.Println("ready")
	<-usr1
	for _, arg := range os.Args[1:] {
		kind, length, _ := strings.Cut(arg, ":")
		d, err := time.ParseDuration(length)
		if err != nil {
			panic(err)
		}
		phase(kind, time.Now().Add(d))
	}
	for i, name := range []string{"main.steady", "main.born", "main.idler"} {
		fmt.Println(name, spent[i].Load())
	}
	fmt.Println("told")
	<-usr1
}
