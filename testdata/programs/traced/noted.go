//go:build go1.11
// +build go1.11

package main

import (
	"context"
	"runtime/trace"
)

// A task with a region, a region in it, and logs.
func noted(f func()) {
	ctx, task := trace.NewTask(context.Background(), "task")
	defer task.End()
	trace.WithRegion(ctx, "outer", func() {
		trace.Log(ctx, "category", "message")
		ctx, inner := trace.NewTask(ctx, "inner task")
		trace.WithRegion(ctx, "inner", f)
		inner.End()
	})
}
