//go:build go1.25
// +build go1.25

package main

import (
	"runtime"
	"time"
)

func cleanedUp(int) { <-never }

// A goroutine that runs cleanups stays in this one, and then counts as one of the program's.
func waitInCleanup() {
	in := make(chan bool)
	func() {
		o := &object{p: new(int)}
		runtime.AddCleanup(o, func(n int) {
			close(in)
			cleanedUp(n)
		}, 7)
	}()
	for i := 0; i < 100; i++ {
		runtime.GC()
		select {
		case <-in:
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
	panic("no cleanup ran")
}
