package main

import (
	"bytes"
	"math"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// When a wait begins. Who is about to wait notes the moment, but the kernel may take its CPU away before
// the call that waits. So who wakes it looks at its thread until that sleeps or has run for much longer
// than it takes from the note to the wait: the wait began between the note, and the note and what the
// thread lacked a CPU for till that look.

// span is a time known to lie between two.
type span struct{ lo, hi int64 }

// wait is one goroutine's: noted right before it waits, and taken by who wakes it.
type wait struct {
	noted int64 // when, 0 where it is taken
	tid   int64
	at    usage
}

func (w *wait) begin() {
	tid, _, _ := syscall.RawSyscall(syscall.SYS_GETTID, 0, 0, 0)
	w.tid = int64(tid)
	w.at = usageOf(w.tid)
	atomic.StoreInt64(&w.noted, now())
}

// parked returns when the wait has lasted for d, and says when it began.
func (w *wait) parked(d time.Duration) span {
	t0 := w.taken()
	time.Sleep(time.Duration(t0.lo + int64(d) - now()))
	return t0
}

const (
	longRun = int64(200 * time.Microsecond)
	given   = int64(2 * time.Second)
)

func (w *wait) taken() span {
	for atomic.LoadInt64(&w.noted) == 0 {
		time.Sleep(50 * time.Microsecond)
	}
	noted, tid, at := atomic.LoadInt64(&w.noted), w.tid, w.at
	atomic.StoreInt64(&w.noted, 0)
	for {
		asleep := sleeps(tid)
		u := usageOf(tid)
		if asleep || u.ran-at.ran > longRun {
			return span{noted, noted + u.lacked - at.lacked}
		}
		if now()-noted > given { // the thread has ended
			return span{noted, math.MaxInt64}
		}
		time.Sleep(50 * time.Microsecond)
	}
}

// usage is for how long a thread had a CPU, and lacked one, in ns (the kernel's sched-stats.rst).
type usage struct{ ran, lacked int64 }

func usageOf(tid int64) (u usage) {
	var text [80]byte
	words := bytes.Fields(read(tid, "schedstat", text[:]))
	if len(words) > 1 {
		u.ran, _ = strconv.ParseInt(string(words[0]), 10, 64)
		u.lacked, _ = strconv.ParseInt(string(words[1]), 10, 64)
	}
	return u
}

// sleeps: it waits for an event (proc(5), stat). Its name may have brackets.
func sleeps(tid int64) bool {
	var text [512]byte
	stat := read(tid, "stat", text[:])
	i := bytes.LastIndexByte(stat, ')')
	return i >= 0 && bytes.HasPrefix(stat[i+1:], []byte(" S"))
}

// read reads a file of a thread with raw system calls, of which Go's scheduler, and who watches it, know nothing.
func read(tid int64, file string, text []byte) []byte {
	path := append(strconv.AppendInt([]byte("/proc/self/task/"), tid, 10), "/"+file+"\x00"...)
	cwd := -100 // AT_FDCWD
	fd, _, e := syscall.RawSyscall6(syscall.SYS_OPENAT, uintptr(cwd), uintptr(unsafe.Pointer(&path[0])),
		syscall.O_RDONLY|syscall.O_CLOEXEC, 0, 0, 0)
	if e != 0 {
		return nil
	}
	n, _, e := syscall.RawSyscall(syscall.SYS_READ, fd, uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)))
	syscall.RawSyscall(syscall.SYS_CLOSE, fd, 0, 0)
	if e != 0 {
		return nil
	}
	return text[:n]
}
