package main

import (
	"fmt"
	"os"
	"regexp"
	"sort"
	"strings"
)

// block is one goroutine of a text as /debug/pprof/goroutine?debug=2 writes it.
type block struct {
	id, state string // "[chan receive, 5 minutes]" without brackets
	labels    string
	lines     []string
}

var (
	headLine = regexp.MustCompile(`^goroutine (\d+) \[(.*?)\](?: \{(.*)\})?:$`)
	// What Go prints between a function's last parentheses. They may hold braces, never more
	// parentheses: "f({0x1, 0x2}, 0x3?)", "g(...)".
	arguments = regexp.MustCompile(`\([^()]*\)$`)
	atLeast   = regexp.MustCompile(`, at least \d+ seconds`)
)

// blocks reads the goroutines of a text; what comes before the first is its header.
func blocks(path string) map[string]*block {
	data, err := os.ReadFile(path)
	if err != nil {
		fail(2, "pprofcheck: %v", err)
	}
	all := map[string]*block{}
	var b *block
	for _, line := range strings.Split(string(data), "\n") {
		switch m := headLine.FindStringSubmatch(line); {
		case m != nil:
			if all[m[1]] != nil {
				fail(1, "%s: goroutine %s is there twice", path, m[1])
			}
			b = &block{id: m[1], state: atLeast.ReplaceAllString(m[2], ""), labels: m[3]}
			all[b.id] = b
		case strings.HasPrefix(line, "goroutine "):
			fail(1, "%s: not understood: %s", path, line)
		case line == "":
			b = nil
		case b != nil:
			if !strings.HasPrefix(line, "\t") && !strings.HasPrefix(line, "created by ") {
				line = arguments.ReplaceAllString(line, "(...)")
			}
			b.lines = append(b.lines, line)
		}
	}
	return all
}

func (b *block) has(function *regexp.Regexp) bool {
	for _, l := range b.lines {
		if function != nil && !strings.HasPrefix(l, "\t") && function.MatchString(l) {
			return true
		}
	}
	return false
}

func dropBlocks(all map[string]*block, function *regexp.Regexp) {
	for id, b := range all {
		if b.has(function) {
			delete(all, id)
		}
	}
}

// blocksDiffer is what two blocks of one goroutine do not agree in, "" for nothing.
func blocksDiffer(a, b *block, ignoreLabels bool) string {
	if a.state != b.state {
		return fmt.Sprintf("A [%s]  B [%s]", a.state, b.state)
	}
	if a.labels != b.labels && !ignoreLabels {
		return fmt.Sprintf("labels A {%s}  B {%s}", a.labels, b.labels)
	}
	for i := 0; i < len(a.lines) || i < len(b.lines); i++ {
		x, y := "nothing", "nothing"
		if i < len(a.lines) {
			x = a.lines[i]
		}
		if i < len(b.lines) {
			y = b.lines[i]
		}
		if x != y {
			return fmt.Sprintf("line %d: A %q  B %q", i+2, x, y)
		}
	}
	return ""
}

// cmdGoroutines compares two texts goroutine by goroutine.
func cmdGoroutines(args []string) bool {
	fs := flags()
	without := fs.String("without", "", "")
	ignoreLabels := fs.Bool("ignore-labels", false, "")
	paths := parse(fs, args, 2)
	a, b := blocks(paths[0]), blocks(paths[1])
	if *without != "" {
		dropBlocks(a, regexp.MustCompile(*without))
		dropBlocks(b, regexp.MustCompile(*without))
	}
	var ids, wrong []string
	for id := range a {
		ids = append(ids, id)
	}
	for id := range b {
		if a[id] == nil {
			wrong = append(wrong, "only in B: goroutine "+id+" ["+b[id].state+"]")
		}
	}
	sort.Strings(ids)
	for _, id := range ids {
		if b[id] == nil {
			wrong = append(wrong, "only in A: goroutine "+id+" ["+a[id].state+"]")
		} else if d := blocksDiffer(a[id], b[id], *ignoreLabels); d != "" {
			wrong = append(wrong, "goroutine "+id+": "+d)
		}
	}
	for i, w := range wrong {
		if i == 10 {
			fmt.Printf("... and %d more\n", len(wrong)-i)
			break
		}
		fmt.Println(w)
	}
	fmt.Printf("A has %d goroutines, B %d\n", len(a), len(b))
	return len(wrong) == 0 && len(a) > 0
}
