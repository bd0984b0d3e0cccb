//go:build go1.25
// +build go1.25

package main

import (
	"os"
	"runtime/trace"
	"time"
)

func begin(f *os.File, flight bool) func() {
	if !flight {
		must(trace.Start(f))
		return trace.Stop
	}
	r := trace.NewFlightRecorder(trace.FlightRecorderConfig{MinAge: 100 * time.Millisecond, MaxBytes: 1 << 20})
	must(r.Start())
	return func() {
		_, err := r.WriteTo(f)
		must(err)
		r.Stop()
	}
}
