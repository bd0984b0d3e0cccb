//go:build withcgo
// +build withcgo

package main

/*
#include <unistd.h>

extern void goParked(void);

static void inC(void) { for (;;) pause(); }
static void backInGo(int n) { if (n) backInGo(n - 1); else goParked(); }
*/
import "C"

//export goParked
func goParked() { <-never }

func parkInC()      { C.inC() }
func parkBackInGo() { C.backInGo(3) }
func parkWithC() {
	park(parkInC)
	park(parkBackInGo)
}
