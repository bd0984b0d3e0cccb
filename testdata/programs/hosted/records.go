//go:build records
// +build records

package main

// A program that can reach runtime.MemProfile keeps records of its heap.
import _ "runtime/pprof"
