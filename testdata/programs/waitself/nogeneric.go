//go:build !go1.18
// +build !go1.18

package main

// Stands in for the generic functions where Go has no type parameters.
func generics() { receive() }
