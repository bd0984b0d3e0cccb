//go:build !go1.21
// +build !go1.21

package main

import "runtime"

func oracleName(f *runtime.Frame) string { return f.Function }
