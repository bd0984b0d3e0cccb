// pluginhost [-after DURATION] PLUGIN [ARG...] loads a plugin, after a while if asked to, and
// calls its Run, which takes ARG... for the program's own. It prints "ready" before it waits.
package main

import (
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

func main() {
	args := os.Args[1:]
	if len(args) > 1 && args[0] == "-after" {
		d, err := time.ParseDuration(args[1])
		check(err)
		fmt.Println("ready")
		time.Sleep(d)
		args = args[2:]
	}
	p, err := plugin.Open(args[0])
	check(err)
	run, err := p.Lookup("Run")
	check(err)
	os.Args = append(os.Args[:1], args[1:]...)
	run.(func())()
}
