//go:build cgo
// +build cgo

package main

/*
static int add(int a, int b) { return a + b; }
*/
import "C"

func callC() { sink += uint64(C.add(1, 2)) }

//export goprofMain
func goprofMain() { Main() }
