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

var (
	swaps []*swapped
	shelf sync.Map
	pairs []*pair[string, int]
)

func init() {
	more = func() {
		fmt.Println("exactly 13 main.pointed")
		fmt.Println("exactly 13 main.swapped")
		fmt.Println("exactly 30 main.kept")
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
		for i := 0; i < 14; i++ {
			pairs = append(pairs, &pair[string, int]{label, i, number})
		}
	}
}
