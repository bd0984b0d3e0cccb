//go:build self

package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
)

func profileMyself(rate, fraction int) {
	runtime.SetBlockProfileRate(rate)
	runtime.SetMutexProfileFraction(fraction)
}

func own(prefix string) error {
	for _, kind := range []string{"block", "mutex", "goroutine"} {
		f, err := os.Create(prefix + "." + kind)
		if err == nil {
			err = pprof.Lookup(kind).WriteTo(f, 0)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			return err
		}
	}
	fmt.Println("fraction", runtime.SetMutexProfileFraction(-1))
	return nil
}

func withLabels(f func(), pairs ...string) {
	pprof.Do(context.Background(), pprof.Labels(pairs...), func(context.Context) { f() })
}
