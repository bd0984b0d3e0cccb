// deaf maps a file over the page of runtime.MemProfileRate. Where the file's server never answers
// (tests/support/deaf_main.c), whoever reads the rate waits for it.
//
//	deaf FILE
//	deaf FILE exec MS
//
// It prints "ready PID" just before that. The second one opens FILE, works for so long, and calls exec: where nobody answers to the
// closing of the file, it waits in there, and whoever opens its memory waits for it.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

var sink []byte

func waitInExec(ms int) {
	if _, err := syscall.Open(os.Args[1], syscall.O_RDONLY|syscall.O_CLOEXEC, 0); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready", os.Getpid())
	for end := time.Now().Add(time.Duration(ms) * time.Millisecond); time.Now().Before(end); {
		sink = make([]byte, 1000)
	}
	fmt.Println(syscall.Exec("/proc/self/exe", []string{"deaf"}, nil))
}

func main() {
	if len(os.Args) > 3 {
		ms, _ := strconv.Atoi(os.Args[3])
		waitInExec(ms)
		return
	}
	page := uintptr(os.Getpagesize())
	at := uintptr(unsafe.Pointer(&runtime.MemProfileRate)) &^ (page - 1)
	fd, err := syscall.Open(os.Args[1], syscall.O_RDONLY, 0)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	runtime.LockOSThread()
	fmt.Println("ready", os.Getpid())
	// PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED
	syscall.RawSyscall6(syscall.SYS_MMAP, at, page, 3, 0x12, uintptr(fd), 0)
	for {
		syscall.RawSyscall(syscall.SYS_PAUSE, 0, 0, 0)
	}
}
