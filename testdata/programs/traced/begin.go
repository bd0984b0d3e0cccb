//go:build !go1.25
// +build !go1.25

package main

import (
	"os"
	"runtime/trace"
)

func begin(f *os.File, flight bool) func() {
	if flight {
		panic("there is no flight recorder before Go 1.25")
	}
	must(trace.Start(f))
	return trace.Stop
}
