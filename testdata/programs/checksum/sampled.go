//go:build sampled

package main

import "runtime"

// Where the linker finds this call it leaves runtime.MemProfileRate as it is.
func init() {
	runtime.MemProfile(nil, true)
}
