//go:build cgo
// +build cgo

package main

// static int one(void) { return 1; }
import "C"

var one = C.one()
