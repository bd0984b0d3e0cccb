//go:build go1.18
// +build go1.18

package main

type number interface{ ~int | ~float64 }

type list[T any] struct {
	at   []T
	next *list[T]
}

func (l *list[T]) push(v T) *list[T] {
	l.at = append(l.at, v)
	return l
}

func sum[T number](at []T) (s T) {
	for _, v := range at {
		s += twice(v)
	}
	return s
}

func twice[T number](v T) T { return v + v }

func apply[K comparable, V any](m map[K]V, f func(K, V)) {
	for k, v := range m {
		f(k, v)
	}
}

func generic() int {
	ints := (&list[int]{}).push(1).push(2)
	floats := (&list[float64]{next: nil}).push(1.5)
	n := 0
	apply(map[string]struct{ a, b int }{"x": {1, 2}}, func(k string, v struct{ a, b int }) {
		n += len(k) + v.a + twice(v.b)
	})
	return sum(ints.at) + int(sum(floats.at)) + n
}
