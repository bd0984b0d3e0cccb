//go:build go1.18
// +build go1.18

package main

import (
	"sync"
	"time"
)

type box[T any] struct {
	mu sync.Mutex
	c  chan T
}

func (b *box[T]) get() T { return <-b.c }

//go:noinline
func (b *box[T]) locked(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

//go:noinline
func exchange[A, B any](x *box[A], y *box[B]) {
	var a A
	var b B
	w := later(func() { x.c <- a; time.Sleep(pause); y.c <- b })
	x.get()
	y.get()
	w.Wait()
}

type pair struct{ a, b string }

// Instantiated functions and methods: their names hold the type arguments' shape.
func generics() {
	x, y := &box[int]{c: make(chan int)}, &box[pair]{c: make(chan pair)}
	exchange(x, y)
	exchange(y, x)
	w := later(func() { y.locked(func() {}) })
	y.locked(func() { time.Sleep(2 * pause) })
	w.Wait()
}
