//go:build go1.18
// +build go1.18

package main

type stack[T any] struct {
	items []T
	next  *stack[T]
}

//go:noinline
func push[T any](s *stack[T], v T) *stack[T] {
	return &stack[T]{items: []T{v}, next: s}
}

func (s *stack[T]) add(v T) {
	s.items = append(s.items, v)
}

type wide struct{ a, b, c, d int }

// Instantiated functions and methods: their names hold the type arguments' shape.
func generics(n int) {
	var ints *stack[int]
	var wides *stack[wide]
	for i := 0; i < n; i++ {
		ints = push(ints, i)
		wides = push(wides, wide{a: i})
		wides.add(wide{b: i})
	}
	live.generic = append(live.generic, ints, wides)
}
