// command is started by the profiler and tells what became of it there.
//
//	command [-gc] [-burn D] [-steps N] [-children N] [-after D] [-wait] [-status N]
//
// Before main it allocates 10,000 objects of 1,024 bytes in main.inInit. Then
//
//	-gc		collects garbage twice: then the runtime's heap profile has all of that
//	-children N	starts N copies of itself with the same -burn, and waits for them;
//			with -after that much later, and behind -wait's back
//	-burn D		uses D of CPU time in main.burn, and prints "cpu NS", what the kernel
//			charged to it from exec to here
//	-steps N	N times in main.step: uses a millisecond of CPU time or so, allocates an object, waits
//			for a millisecond
//	-wait		prints "ready", then "got NAME" for each signal; SIGTERM ends it, status 5
//	-status N	its exit status
//
// It links no pprof; with -tags sampled the runtime samples its heap as in a program that does.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

var (
	kept [10000]*[1024]byte
	sink uint64
)

//go:noinline
func inInit() {
	for i := range kept {
		kept[i] = new([1024]byte)
	}
}

func init() { inInit() }

func used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

//go:noinline
func burn(d time.Duration) {
	x := uint64(88172645463325252)
	for used() < d {
		for i := 0; i < 1000000; i++ {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
	}
	sink = x
}

//go:noinline
func step(i int) {
	x := sink | 1
	for n := 0; n < 500000; n++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	sink = x
	kept[i%len(kept)] = new([1024]byte)
	time.Sleep(time.Millisecond)
}

func wait() {
	ch := make(chan os.Signal, 16)
	signal.Notify(ch, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1,
		syscall.SIGUSR2, syscall.SIGALRM, syscall.SIGWINCH, syscall.SIGCONT, syscall.SIGTERM)
	fmt.Println("ready")
	for s := range ch {
		fmt.Println("got", s)
		if s == syscall.SIGTERM {
			os.Exit(5)
		}
	}
}

func startChildren(n int, args ...string) {
	var all []*exec.Cmd
	for i := 0; i < n; i++ {
		c := exec.Command("/proc/self/exe", args...)
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Start(); err != nil {
			panic(err)
		}
		all = append(all, c)
	}
	for _, c := range all {
		if err := c.Wait(); err != nil {
			panic(err)
		}
	}
}

func main() {
	collect := flag.Bool("gc", false, "")
	burnFor := flag.Duration("burn", 0, "")
	children := flag.Int("children", 0, "")
	after := flag.Duration("after", 0, "")
	steps := flag.Int("steps", 0, "")
	waits := flag.Bool("wait", false, "")
	status := flag.Int("status", 0, "")
	flag.Parse()
	if *collect {
		runtime.GC()
		runtime.GC()
	}
	if *after > 0 {
		go func() {
			time.Sleep(*after)
			startChildren(*children, "-burn", burnFor.String())
		}()
	} else if *children > 0 {
		startChildren(*children, "-burn", burnFor.String())
	}
	if *burnFor > 0 && *after == 0 {
		burn(*burnFor)
		fmt.Println("cpu", int64(used()))
	}
	for i := 0; i < *steps; i++ {
		step(i)
	}
	if *waits {
		wait()
	}
	os.Exit(*status)
}
