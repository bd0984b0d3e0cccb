// copied makes strings and maps, whose allocations a profile-guided build may copy into the runtime's
// helpers for them. It links no pprof, and runs until it is killed.
package main

import (
	"fmt"
	"time"
)

var (
	text string
	ints map[int]int
)

//go:noinline
func concat(a, b string) string { return a + b }

//go:noinline
func convert(b []byte) string { return string(b) }

func main() {
	b := []byte("longer than the thirty-two bytes that a string may have on a stack")
	fmt.Println("ready")
	for {
		for i := 0; i < 2000; i++ {
			text = concat("abcdefghijklmnopqrstuvwxyz0123456789", "x")
			text = convert(b)
		}
		ints = map[int]int{}
		for i := 0; i < 1000; i++ {
			ints[i] = i
		}
		time.Sleep(20 * time.Millisecond)
	}
}
