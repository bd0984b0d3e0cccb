//go:build !withcgo
// +build !withcgo

package main

func parkWithC() {}
