// deaf maps a file over the page of runtime.MemProfileRate. Where the file's server never answers
// (tests/support/deaf_main.c), whoever reads the rate waits for it.
//
//	deaf FILE
//
// It prints "ready PID" just before that.
package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

func main() {
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
