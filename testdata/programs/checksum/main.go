// checksum is a subject that notices when it was harmed: its goroutines fill blocks of many
// sizes, keep them while others are made, and add them up again and again. A sum that is not
// what it must be ends the program with status 7.
//
//	checksum [-exec PATH | -rest DURATION]
//
// -rest: each goroutine sleeps so long between two rounds, so that it leaves the processors to others.
//
// It prints "ready". Then, for a signal:
//
//	SIGUSR1	one line "good ROUNDS": so many sums were right, none was wrong
//	SIGUSR2	exec of PATH with the argument "1000" (without -exec: of itself)
//	SIGHUP	it ends by itself, status 0
//
// It links no pprof; with -tags sampled the runtime samples its heap as in a program that does.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

const workers = 4

var rounds, wrong uint64
var rest time.Duration

type node struct {
	block []byte
	want  uint64
	next  *node
}

//go:noinline
func fill(size int, seed uint64) *node {
	n := &node{block: make([]byte, size)}
	for i := range n.block {
		seed = seed*6364136223846793005 + 1442695040888963407
		n.block[i] = byte(seed >> 56)
		n.want = n.want*31 + uint64(n.block[i])
	}
	return n
}

//go:noinline
func sum(block []byte) uint64 {
	var s uint64
	for _, b := range block {
		s = s*31 + uint64(b)
	}
	return s
}

// deep makes the stack grow, so that it is copied while it is being looked at.
//
//go:noinline
func deep(n int, pad [16]uint64) uint64 {
	if n == 0 {
		return pad[3]
	}
	pad[n%16]++
	return deep(n-1, pad) + pad[5] - pad[5]
}

func work(seed uint64) {
	for {
		var list *node
		for i := 0; i < 64; i++ {
			seed++
			n := fill(1<<(seed%13), seed)
			n.next = list
			list = n
		}
		for n := list; n != nil; n = n.next {
			if sum(n.block) != n.want {
				atomic.AddUint64(&wrong, 1)
			}
		}
		done := make(chan uint64)
		go func() { done <- deep(60, [16]uint64{3: seed}) }()
		// pad[3] is counted once for each n with n%16 == 3 on the way down from 60.
		if got := <-done; got != seed+4 {
			atomic.AddUint64(&wrong, 1)
		}
		if atomic.LoadUint64(&wrong) != 0 {
			fmt.Println("wrong")
			os.Exit(7)
		}
		atomic.AddUint64(&rounds, 1)
		if rest != 0 {
			time.Sleep(rest)
		}
	}
}

func main() {
	path := os.Args[0]
	args := []string{path}
	if len(os.Args) == 3 && os.Args[1] == "-exec" {
		path = os.Args[2]
		args = []string{path, "1000"}
	}
	if len(os.Args) == 3 && os.Args[1] == "-rest" {
		var err error
		if rest, err = time.ParseDuration(os.Args[2]); err != nil {
			panic(err)
		}
	}
	ch := make(chan os.Signal, 4)
	signal.Notify(ch, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGHUP)
	for i := 0; i < workers; i++ {
		go work(uint64(i) << 32)
	}
	fmt.Println("ready")
	for s := range ch {
		switch s {
		case syscall.SIGUSR1:
			fmt.Println("good", atomic.LoadUint64(&rounds))
		case syscall.SIGUSR2:
			fmt.Println(syscall.Exec(path, args, os.Environ()))
			os.Exit(1)
		default:
			os.Exit(0)
		}
	}
}
