//go:build sampled
// +build sampled

package main

import (
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"unsafe"
)

// waits makes channels and, since each goroutine waits for the next one, sudogs.
func waits(n int) {
	if n == 0 {
		return
	}
	c := make(chan struct{})
	go func() {
		waits(n - 1)
		close(c)
	}()
	<-c
}

func lookLikeOurs(size int64) bool {
	for _, kind := range []uintptr{unsafe.Sizeof(node48{}), unsafe.Sizeof(noptr80{}), unsafe.Sizeof(node80{}), unsafe.Sizeof(noptr1024{})} {
		if int64(kind) == size {
			return true
		}
	}
	return false
}

// checkSizes panics when what waits made cannot be told from what liveset keeps.
func checkSizes() {
	records, sudogs := make([]runtime.MemProfileRecord, 10000), false
	n, _ := runtime.MemProfile(records, true)
	for _, r := range records[:n] {
		all, names := runtime.CallersFrames(r.Stack()), ""
		for more := true; more; {
			var f runtime.Frame
			f, more = all.Next()
			names += f.Function + "; "
		}
		if !strings.Contains(names, "main.waits") {
			continue
		}
		sudogs = sudogs || strings.Contains(names, "runtime.acquireSudog; ")
		if size := r.AllocBytes / r.AllocObjects; lookLikeOurs(size) {
			panic(fmt.Sprintf("the runtime makes objects of %d bytes, too: %s", size, names))
		}
	}
	if !sudogs {
		panic("no sudog was made")
	}
}

// With -tags sampled the runtime's own heap profile of every object goes to $LIVESET_PROFILE
// before the truth is printed.
func init() {
	runtime.MemProfileRate = 1
	waits(200)
	ownProfile = func() {
		checkSizes()
		f, err := os.Create(os.Getenv("LIVESET_PROFILE"))
		if err == nil {
			err = pprof.Lookup("heap").WriteTo(f, 0)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			panic(err)
		}
	}
}
