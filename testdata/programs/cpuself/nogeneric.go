//go:build !go1.18
// +build !go1.18

package main

func genericWork(r *result) {
	for {
		r.n = inlineBody(r.n|1, 1000)
	}
}
