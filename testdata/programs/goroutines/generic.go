//go:build go1.18
// +build go1.18

package main

type pair[K comparable, V any] struct {
	key K
	c   chan V
}

func (p *pair[K, V]) wait() V { return <-p.c }

func generic[T any](c chan T, deep int) T {
	if deep > 0 {
		return generic(c, deep-1)
	}
	return <-c
}

func parkMore() {
	park(func() { generic(never, 0) })
	park(func() { generic(make(chan string), 3) })
	park(func() { (&pair[string, int]{c: never}).wait() })
	park(func() { (&pair[int, struct{ a, b int }]{c: make(chan struct{ a, b int })}).wait() })
}
