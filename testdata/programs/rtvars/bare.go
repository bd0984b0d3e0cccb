//go:build !profiles && !host
// +build !profiles,!host

package main

func extra(string) {}
