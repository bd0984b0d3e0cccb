//go:build records
// +build records

package main

import "runtime"

// A program that can reach runtime.MemProfile keeps records of its heap: the linker leaves runtime.MemProfileRate as it is.
func init() {
	runtime.MemProfile(nil, true)
}
