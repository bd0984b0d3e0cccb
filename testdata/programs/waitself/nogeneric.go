//go:build !go1.18
// +build !go1.18

package main

// What there is where Go has no type parameters.
func generics() { receive() }
