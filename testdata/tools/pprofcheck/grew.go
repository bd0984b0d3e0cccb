package main

import (
	"flag"
	"fmt"
	"math"
	"regexp"
	"sort"
	"strings"
)

// counters are profiles of one program, one after the other, whose values only grow.
type counters struct {
	still     *regexp.Regexp // samples with such a function have not grown
	but       *regexp.Regexp // unless they have such a one, too
	tolerance float64        // of the last column
	bad       int
	max       int
}

func (c *counters) complain(why string, e *entry, values ...[]int64) {
	c.bad++
	if c.bad > c.max {
		return
	}
	fmt.Printf("%s: %v\n", why, values)
	for _, f := range e.frames() {
		fmt.Printf("      %s\n", f)
	}
}

func (c *counters) isStill(e *entry) bool {
	frames := strings.Join(e.frames(), "\n")
	return c.still != nil && c.still.MatchString(frames) && (c.but == nil || !c.but.MatchString(frames))
}

// near: as large as a, but for the tolerance, which the last column alone has.
func (c *counters) near(a, b int64, last bool) bool {
	if !last {
		return a == b
	}
	return math.Abs(float64(a)-float64(b)) <= c.tolerance*math.Max(float64(a), float64(b))+1
}

func (c *counters) ordered(name string, a, b map[string]*entry) {
	for _, key := range keysOf(a) {
		x, y := a[key], b[key]
		if y == nil {
			c.complain(name+": missing in the later one", x, x.values)
			continue
		}
		for i := range x.values {
			last := i == len(x.values)-1
			if x.values[i] > y.values[i] && !c.near(x.values[i], y.values[i], last) {
				c.complain(name+": shrank", x, x.values, y.values)
				break
			}
			if c.isStill(x) && !c.near(x.values[i], y.values[i], last) {
				c.complain(name+": differ", x, x.values, y.values)
				break
			}
		}
	}
	for _, key := range keysOf(b) {
		if a[key] == nil && c.isStill(b[key]) {
			c.complain(name+": missing in the earlier one", b[key], b[key].values)
		}
	}
}

func keysOf(m map[string]*entry) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool { return m[keys[i]].text() < m[keys[j]].text() })
	return keys
}

func cmdGrew(args []string) bool {
	var o options
	c := counters{max: 5}
	fs := flag.NewFlagSet("pprofcheck", flag.ExitOnError)
	still := fs.String("still", "", "")
	but := fs.String("but", "", "")
	fs.Float64Var(&c.tolerance, "tolerance", 0, "")
	fs.BoolVar(&o.addresses, "addresses", false, "")
	paths := parse(fs, args, 0)
	if *still != "" {
		c.still = regexp.MustCompile(*still)
	}
	if *but != "" {
		c.but = regexp.MustCompile(*but)
	}
	var before map[string]*entry
	known := newTexts()
	compared := 0
	for i, path := range paths {
		p := load(path)
		now := o.entries(p, known)
		if i > 0 {
			if header(p) != header(load(paths[0])) {
				fmt.Printf("headers differ\n  %s\n  %s\n", header(load(paths[0])), header(p))
				c.bad++
			}
			compared += len(before)
			c.ordered(fmt.Sprintf("%s, %s", paths[i-1], path), before, now)
		}
		n := 0
		for _, e := range now {
			if c.isStill(e) {
				n++
			}
		}
		fmt.Printf("%s: %d distinct samples, %d of what stands still\n", path, len(now), n)
		if c.still != nil && n == 0 {
			fmt.Println("nothing stands still: this shows nothing")
			c.bad++
		}
		before = now
	}
	if compared == 0 {
		fmt.Println("no sample has a later one to compare with: this shows nothing")
	}
	return c.bad == 0 && compared > 0
}
