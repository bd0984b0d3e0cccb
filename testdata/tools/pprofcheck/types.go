package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"github.com/google/pprof/profile"
)

// What a line of the source says is allocated there: behind "// type: ", "A & B | C" means the
// types A and B, or C alone. The word "nothing" is the empty set.
var wanted = regexp.MustCompile(`// type: (.*)$`)

func wantedTypes(source string) map[int64][]string {
	f, err := os.Open(source)
	if err != nil {
		fail(2, "pprofcheck: %v", err)
	}
	defer f.Close()
	want := map[int64][]string{}
	in := bufio.NewScanner(f)
	for line := int64(1); in.Scan(); line++ {
		m := wanted.FindStringSubmatch(in.Text())
		if m == nil || strings.HasPrefix(strings.TrimSpace(in.Text()), "//") {
			continue
		}
		for _, set := range strings.Split(m[1], " | ") {
			types := strings.Split(strings.TrimSpace(set), " & ")
			sort.Strings(types)
			want[line] = append(want[line], strings.Join(types, " & "))
		}
	}
	return want
}

// In type arguments a plugin's package main has its path.
var pluginMain = regexp.MustCompile(`_/[^],]*/src-[a-z]+-plugin\.`)

// isSource: the file or a copy of it, in a folder that has the same name, or one with more to it.
func isSource(file, source string) bool {
	return filepath.Base(file) == filepath.Base(source) &&
		strings.Contains(filepath.Base(filepath.Dir(file)), filepath.Base(filepath.Dir(source)))
}

// lineIn is that of the innermost frame in the source, 0 when there is none.
func lineIn(s *profile.Sample, source string) int64 {
	for _, l := range s.Location {
		for _, f := range l.Line {
			if f.Function != nil && isSource(f.Function.Filename, source) {
				return f.Line
			}
		}
	}
	return 0
}

// perLine adds up the samples of each line; types of each, too.
func perLine(p *profile.Profile, source string) (sums map[int64][]int64, types map[int64]map[string]bool) {
	sums, types = map[int64][]int64{}, map[int64]map[string]bool{}
	for _, s := range p.Sample {
		line := lineIn(s, source)
		if sums[line] == nil {
			sums[line] = make([]int64, len(s.Value))
			types[line] = map[string]bool{}
		}
		for i, v := range s.Value {
			sums[line][i] += v
		}
		for _, t := range s.Label["type"] {
			types[line][pluginMain.ReplaceAllString(t, "main.")] = true
		}
		if len(s.Label["type"]) != 1 {
			types[line][fmt.Sprintf("%d labels", len(s.Label["type"]))] = true
		}
	}
	return sums, types
}

func setOf(m map[string]bool) string {
	var all []string
	for t := range m {
		all = append(all, t)
	}
	if len(all) == 0 {
		return "nothing"
	}
	sort.Strings(all)
	return strings.Join(all, " & ")
}

// cmdTypes: types SOURCE FILE [WITHOUT]
func cmdTypes(args []string) bool {
	fs := flags()
	fs.Parse(args)
	if fs.NArg() < 2 || fs.NArg() > 3 {
		fail(2, "%s", usage)
	}
	want, base, ok := wantedTypes(fs.Arg(0)), filepath.Base(fs.Arg(0)), true
	sums, types := perLine(load(fs.Arg(1)), fs.Arg(0))
	var others map[int64][]int64
	if fs.NArg() == 3 {
		others, _ = perLine(load(fs.Arg(2)), fs.Arg(0))
	}
	var lines []int64
	for line := range want {
		lines = append(lines, line)
	}
	sort.Slice(lines, func(i, j int) bool { return lines[i] < lines[j] })
	for _, line := range lines {
		if got := setOf(types[line]); !has(want[line], got) {
			fmt.Printf("%s:%d: %s, and it is %s\n", base, line, got, strings.Join(want[line], " | "))
			ok = false
		}
		if others != nil && fmt.Sprint(sums[line]) != fmt.Sprint(others[line]) {
			fmt.Printf("%s:%d: %v with types, %v without\n", base, line, sums[line], others[line])
			ok = false
		}
	}
	fmt.Printf("%d lines\n", len(lines))
	return ok && len(lines) > 0
}
