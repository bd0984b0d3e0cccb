//go:build profiles
// +build profiles

package main

import (
	"fmt"
	"runtime"
)

func extra(string) {
	runtime.SetBlockProfileRate(1)
	runtime.SetMutexProfileFraction(1)
	m, _ := runtime.MemProfile(nil, true)
	b, _ := runtime.BlockProfile(nil)
	x, _ := runtime.MutexProfile(nil)
	g, _ := runtime.GoroutineProfile(nil)
	fmt.Println(m, b, x, g)
}
