//go:build go1.20
// +build go1.20

package main

import (
	"runtime"
	_ "unsafe" // for linkname
)

//go:linkname oracleFrameLine runtime/pprof.runtime_FrameStartLine
func oracleFrameLine(f *runtime.Frame) int

func oracleStartLine(f *runtime.Frame) int { return oracleFrameLine(f) }
