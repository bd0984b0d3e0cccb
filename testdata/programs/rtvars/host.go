//go:build host
// +build host

package main

import "plugin"

func extra(path string) {
	if _, err := plugin.Open(path); err != nil {
		panic(err)
	}
}
