package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/pprof/profile"
)

// complaints gathers what is wrong with one profile.
type complaints []string

func (c *complaints) add(format string, args ...interface{}) {
	*c = append(*c, fmt.Sprintf(format, args...))
}

func (c *complaints) text(what, s string) {
	if !utf8.ValidString(s) {
		c.add("%s is not UTF-8: %q", what, s)
	}
}

// ids must be 1..n in table order: some profile stores demand it.
func (c *complaints) ids(p *profile.Profile) {
	for i, m := range p.Mapping {
		if m.ID != uint64(i+1) {
			c.add("mapping %d has id %d", i+1, m.ID)
		}
	}
	for i, l := range p.Location {
		if l.ID != uint64(i+1) {
			c.add("location %d has id %d", i+1, l.ID)
		}
	}
	for i, f := range p.Function {
		if f.ID != uint64(i+1) {
			c.add("function %d has id %d", i+1, f.ID)
		}
	}
}

func (c *complaints) mappings(p *profile.Profile) {
	for _, l := range p.Location {
		switch m := l.Mapping; {
		case m == nil && len(p.Mapping) > 0:
			c.add("location %d (0x%x) has no mapping", l.ID, l.Address)
		case m != nil && m.Limit > m.Start && (l.Address < m.Start || l.Address >= m.Limit):
			c.add("location %d: 0x%x is outside its mapping %s 0x%x-0x%x", l.ID,
				l.Address, m.File, m.Start, m.Limit)
		}
	}
}

func (c *complaints) strings(p *profile.Profile) {
	for _, f := range p.Function {
		c.text("function name", f.Name)
		c.text("file name", f.Filename)
	}
	for _, m := range p.Mapping {
		c.text("mapping", m.File)
		c.text("build id", m.BuildID)
	}
	for _, s := range p.Comments {
		c.text("comment", s)
		if strings.IndexFunc(s, unicode.IsControl) >= 0 {
			c.add("comment is not printable: %q", s)
		}
	}
	for _, s := range p.Sample {
		for k, vs := range s.Label {
			c.text("label key", k)
			for _, v := range vs {
				c.text("label "+k, v)
			}
		}
		for k := range s.NumLabel {
			c.text("label key", k)
		}
	}
}

// samples that are equal have been added up. Go's own writer does not.
func (c *complaints) samples(p *profile.Profile) {
	seen := map[string]bool{}
	for _, s := range p.Sample {
		key := ""
		for _, l := range s.Location {
			key += fmt.Sprint(l.ID, " ")
		}
		key += fmt.Sprint(labels(s))
		if seen[key] {
			c.add("two samples with the same locations and labels: %s", key)
		}
		seen[key] = true
	}
}

func cmdCheck(args []string) bool {
	good := true
	fs := flags()
	merged := fs.Bool("merged", false, "")
	for _, path := range parse(fs, args, 0) {
		var c complaints

		p := load(path)
		if err := p.CheckValid(); err != nil {
			c.add("%v", err)
		}
		c.ids(p)
		c.mappings(p)
		c.strings(p)
		if *merged {
			c.samples(p)
		}
		for i, s := range c {
			if i == 10 {
				fmt.Printf("%s: ... and %d more\n", path, len(c)-i)
				break
			}
			fmt.Printf("%s: %s\n", path, s)
		}
		good = good && len(c) == 0
	}
	return good
}
