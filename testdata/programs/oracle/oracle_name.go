//go:build go1.21
// +build go1.21

package main

import (
	"runtime"
	_ "unsafe" // for linkname
)

//go:linkname oracleSymbol runtime/pprof.runtime_FrameSymbolName
func oracleSymbol(f *runtime.Frame) string

func oracleName(f *runtime.Frame) string { return oracleSymbol(f) }
