//go:build cgo
// +build cgo

package main

// static int one(void) { return 1; }
import "C"

// Run is for a C program that loads this as a library.
//
//export Run
func Run() C.int {
	main()
	return C.one()
}
