package main

import (
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// Source: include/uapi/linux/bpf.h, asm/unistd.h.
const (
	mapCreate, mapLookup = 0, 1
	mapArray             = 2
)

func bpf(cmd uintptr, attr unsafe.Pointer, size uintptr) uintptr {
	nr := uintptr(321)
	if runtime.GOARCH == "arm64" {
		nr = 280
	}
	r, _, errno := syscall.Syscall(nr, cmd, uintptr(attr), size)
	if errno != 0 {
		panic(os.NewSyscallError("bpf", errno))
	}
	return r
}

// While the kernel copies a value of a BPF table, no BPF program of a clock runs on that CPU.
func tables() {
	value := make([]byte, 256<<10)
	create := struct{ kind, key, value, max, flags uint32 }{mapArray, 4, uint32(len(value)), 1, 0}
	fd := bpf(mapCreate, unsafe.Pointer(&create), unsafe.Sizeof(create))
	key := new(uint32)
	lookup := struct {
		fd, pad    uint32
		key, value unsafe.Pointer
		flags      uint64
	}{uint32(fd), 0, unsafe.Pointer(key), unsafe.Pointer(&value[0]), 0}
	for {
		bpf(mapLookup, unsafe.Pointer(&lookup), unsafe.Sizeof(lookup))
	}
}
