//go:build go1.20
// +build go1.20

package main

import (
	"fmt"
	"sync"
	"sync/atomic"
)

type pointed struct {
	p *int
	n [15]int
}

type kept struct {
	p *int
	n [17]int
}

type swapped struct {
	now atomic.Pointer[pointed]
	n   [3]int
}

type pair[K comparable, V any] struct {
	key   K
	value V
	p     *int
}

// Larger than 512 bytes: its header names the shape that instances share. What V points to is known by
// the instance alone.
type branch[K comparable, V any] struct {
	below *branch[K, V]
	key   K
	value V
	n     [70]int64
}

type fruit struct {
	p *int
	n [19]int
}

//go:noinline
func sprout[K comparable, V any](below *branch[K, V], k K, v V) *branch[K, V] {
	return &branch[K, V]{below: below, key: k, value: v}
}

var (
	names  *branch[string, int]
	fruits *branch[int, *fruit]
	swaps  []*swapped
	shelf  sync.Map
	pairs  []*pair[string, int]
)

func init() {
	more = func() {
		fmt.Println("exactly 13 main.pointed")
		fmt.Println("exactly 13 main.swapped")
		fmt.Println("exactly 30 main.kept")
		fmt.Println("exactly 16 main.branch[string,int]")
		fmt.Println("exactly 17 main.branch[int,*main.fruit]")
		fmt.Println("exactly 17 main.fruit")
		fmt.Println("exactly 14 main.pair[string,int]")
	}
	fillMore = func() {
		for i := 0; i < 13; i++ {
			s := &swapped{}
			s.now.Store(&pointed{p: number})
			swaps = append(swaps, s)
		}
		for i := 0; i < 30; i++ {
			shelf.Store(i, &kept{p: number})
		}
		for i := 0; i < 16; i++ {
			names = sprout(names, label, i)
		}
		for i := 0; i < 17; i++ {
			fruits = sprout(fruits, i, &fruit{p: number})
		}
		for i := 0; i < 14; i++ {
			pairs = append(pairs, &pair[string, int]{label, i, number})
		}
	}
}
