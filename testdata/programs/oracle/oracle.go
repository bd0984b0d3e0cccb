// The oracle: what this program's own runtime says of its pcs.
//
// Put beside any main package. With GOPROF_ORACLE=1 in the environment the program reads
// offsets from the function oracleAnchor, one a line, and prints for each the frames that
// runtime/pprof would write for that pc, innermost first: a tab, then function, file:line
// and start line, tabs between them.
package main

import (
	"bufio"
	"os"
	"reflect"
	"runtime"
	"strconv"
	_ "unsafe" // for linkname
)

//go:linkname oracleExpand runtime/pprof.runtime_expandFinalInlineFrame
func oracleExpand(stk []uintptr) []uintptr

//go:noinline
func oracleAnchor() {}

func init() {
	if os.Getenv("GOPROF_ORACLE") == "" {
		return
	}
	in := bufio.NewScanner(os.Stdin)
	out := bufio.NewWriterSize(os.Stdout, 1<<16)
	anchor := reflect.ValueOf(oracleAnchor).Pointer()
	for in.Scan() {
		off, err := strconv.ParseInt(in.Text(), 10, 64)
		if err != nil {
			panic(err)
		}
		oracleFrames(out, off, anchor+uintptr(off))
	}
	if out.Flush() != nil || in.Err() != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

func oracleFrames(out *bufio.Writer, off int64, pc uintptr) {
	out.WriteString(strconv.FormatInt(off, 10))
	// Return addresses are what the runtime is used to.
	if stk := oracleExpand([]uintptr{pc + 1}); len(stk) > 0 {
		frames := runtime.CallersFrames(stk)
		for more := true; more; {
			var f runtime.Frame
			f, more = frames.Next()
			out.WriteString("\t" + oracleName(&f) + "\t" + f.File + ":" + strconv.Itoa(f.Line) +
				"\t" + strconv.Itoa(oracleStartLine(&f)))
		}
	}
	out.WriteByte('\n')
}
