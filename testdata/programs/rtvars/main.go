// rtvars is as little of a Go program as can still be profiled: what it links of the runtime is
// what every Go program links. Tags add to it: "profiles" the runtime's own readers of its
// profiles, "host" what a program that opens plugins needs. Built with cgo it has C in it, and
// can be a shared library.
package main

import (
	"fmt"
	"os"
	"sync"
	"time"
)

var (
	mu   sync.Mutex
	kept [][]byte
)

func work(c chan int) {
	for i := range c {
		mu.Lock()
		kept = append(kept[:i%16], make([]byte, 1000+i))
		mu.Unlock()
	}
}

func run() {
	c := make(chan int)
	go work(c)
	for i := 0; ; i++ {
		select {
		case c <- i:
		case <-time.After(time.Second):
		}
		time.Sleep(time.Millisecond)
	}
}

func main() {
	if len(os.Args) > 1 {
		extra(os.Args[1])
	}
	fmt.Println("ready")
	run()
}
