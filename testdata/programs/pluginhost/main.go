// pluginhost [-busy DURATION] [-after DURATION] PLUGIN [ARG...] loads a plugin, after a while if
// asked to, and calls its Run, which takes ARG... for the program's own. It prints "ready" before
// it waits.
//
//	-busy DURATION	it prints "ready", waits for a line on stdin, and allocates for so long from
//			then on, also while it loads the plugin; then it prints what it made as
//			liveset does: "# FUNC COUNT BYTES_EACH"
package main

import (
	"flag"
	"fmt"
	"os"
	"plugin"
	"time"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "pluginhost:", err)
		os.Exit(1)
	}
}

type noptr80 [10]uint64

var last *noptr80

//go:noinline
func allocHost(n int) {
	for i := 0; i < n; i++ {
		last = new(noptr80)
	}
}

// At most 200 in a millisecond.
func allocateFor(d time.Duration) {
	made := 0
	for begin := time.Now(); time.Since(begin) < d; made += 200 {
		allocHost(200)
		time.Sleep(time.Millisecond)
	}
	fmt.Println("# main.allocHost", made, 80)
}

// Takes no byte behind the line, for the plugin reads on.
func readLine() {
	for b := []byte{0}; b[0] != '\n'; {
		_, err := os.Stdin.Read(b)
		check(err)
	}
}

func main() {
	busy := flag.Duration("busy", 0, "allocate for so long, after a line on stdin")
	after := flag.Duration("after", 0, "wait for so long before the plugin is loaded")
	flag.Parse()
	if *busy > 0 {
		fmt.Println("ready")
		readLine()
		go allocateFor(*busy)
	} else if *after > 0 {
		fmt.Println("ready")
	}
	time.Sleep(*after)
	p, err := plugin.Open(flag.Arg(0))
	check(err)
	run, err := p.Lookup("Run")
	check(err)
	// The plugin's program has flags of its own, of the same names.
	os.Args = append(os.Args[:1], flag.Args()[1:]...)
	flag.CommandLine = flag.NewFlagSet(os.Args[0], flag.ExitOnError)
	run.(func())()
}
