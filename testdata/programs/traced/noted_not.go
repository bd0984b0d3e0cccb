//go:build !go1.11
// +build !go1.11

package main

func noted(f func()) { f() }
