//go:build cgo

package main

import "C"

//export goprofMain
func goprofMain() { Main() }
