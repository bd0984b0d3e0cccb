//go:build sampled
// +build sampled

package main

import (
	"os"
	"runtime"
	"runtime/pprof"
)

// With -tags sampled the runtime's own heap profile of every object goes to $LIVESET_PROFILE
// before the truth is printed.
func init() {
	runtime.MemProfileRate = 1
	ownProfile = func() {
		f, err := os.Create(os.Getenv("LIVESET_PROFILE"))
		if err == nil {
			err = pprof.Lookup("heap").WriteTo(f, 0)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			panic(err)
		}
	}
}
