// bystander is one of many processes of one binary, of which one is profiled.
//
//	bystander hot		allocates all the time on one CPU
//	bystander idle		does nothing
//	bystander fork SECONDS	forks a child that ends at once, again and again
//	bystander fault SECONDS	maps memory, touches each page and unmaps it, again and again
//
// hot and idle print "ready" first. The other two wait 1 ms between turns and print the times of
// all turns, in ns, one a line, when they end.
//
// fork is a fork that copies the address space; os/exec shares it with the child instead.
package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

type node struct {
	next *node
	to   [40]byte
}

var sink *node

//go:noinline
func allocate() *node { return new(node) }

func hot() {
	for {
		sink = allocate()
	}
}

// The child has one thread, and must do nothing but end.
func fork() {
	pid, _, errno := syscall.RawSyscall6(syscall.SYS_CLONE, uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if pid == 0 && errno == 0 {
		for {
			syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 0, 0, 0)
		}
	}
	if errno != 0 {
		fmt.Fprintln(os.Stderr, "fork:", errno)
		os.Exit(1)
	}
	children = append(children, int(pid))
}

var children []int

// Not part of what is timed.
func reap() {
	for _, pid := range children {
		var status syscall.WaitStatus
		for {
			if _, err := syscall.Wait4(pid, &status, 0, nil); err != syscall.EINTR {
				break
			}
		}
	}
	children = children[:0]
}

const pages = 16

// This memory is not the collector's.
func at(addr uintptr) *byte { return *(**byte)(unsafe.Pointer(&addr)) }

func fault() {
	size := uintptr(pages * os.Getpagesize())
	addr, _, errno := syscall.Syscall6(syscall.SYS_MMAP, 0, size, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON, ^uintptr(0), 0)
	if errno != 0 {
		fmt.Fprintln(os.Stderr, "mmap:", errno)
		os.Exit(1)
	}
	for i := uintptr(0); i < pages; i++ {
		*at(addr + i*size/pages) = 1
	}
	syscall.Syscall(syscall.SYS_MUNMAP, addr, size, 0)
}

func turns(seconds string, turn func()) {
	n, err := strconv.ParseFloat(seconds, 64)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	took := make([]int64, 0, 1<<20)
	children = make([]int, 0, 16)
	debug.SetGCPercent(-1)
	runtime.LockOSThread()
	for end := time.Now().Add(time.Duration(n * 1e9)); time.Now().Before(end); {
		from := time.Now()
		turn()
		took = append(took, time.Since(from).Nanoseconds())
		reap()
		time.Sleep(time.Millisecond)
	}
	out := bufio.NewWriter(os.Stdout)
	for _, ns := range took {
		fmt.Fprintln(out, ns)
	}
	out.Flush()
}

func main() {
	what := ""
	if len(os.Args) > 1 {
		what = os.Args[1]
	}
	switch {
	case what == "hot":
		runtime.GOMAXPROCS(1)
		fmt.Println("ready")
		hot()
	case what == "idle":
		fmt.Println("ready")
		time.Sleep(24 * time.Hour)
	case what == "fork" && len(os.Args) == 3:
		turns(os.Args[2], fork)
	case what == "fault" && len(os.Args) == 3:
		turns(os.Args[2], fault)
	default:
		fmt.Fprintln(os.Stderr, "usage: bystander hot | idle | fork SECONDS | fault SECONDS")
		os.Exit(2)
	}
}
