//go:build !go1.18
// +build !go1.18

package main

// The same amount of work where Go has no type parameters.
func generics(n int) {
	for i := 0; i < n; i++ {
		live.generic = append(live.generic, &[4]int{i})
	}
}
