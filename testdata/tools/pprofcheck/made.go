package main

import (
	"os"
	"strings"

	"github.com/google/pprof/profile"
)

// Profiles made from text, so that a test can write a right one down, and wrong ones by an edit:
//
//	types NAME/UNIT...
//	period NAME/UNIT N
//	time START_NS DURATION_NS
//	comment TEXT
//	mapping START LIMIT                    instead of 0x400000 0x800000; functions are from 0x400010 on
//	skip N                                 so many ids are not used
//	sample V,V... LEAF;CALLER;... [KEY=NUMBER | KEY:TEXT]...    _ in TEXT is a blank

type maker struct {
	p         *profile.Profile
	locations map[string]*profile.Location
	skipped   uint64
}

func (m *maker) valueType(path, s string) *profile.ValueType {
	w := strings.SplitN(s, "/", 2)
	if len(w) != 2 {
		fail(2, "pprofcheck: %s: %q is no NAME/UNIT", path, s)
	}
	return &profile.ValueType{Type: w[0], Unit: w[1]}
}

func (m *maker) location(name string) *profile.Location {
	if l := m.locations[name]; l != nil {
		return l
	}
	id := uint64(len(m.p.Location)+1) + m.skipped
	f := &profile.Function{ID: id, Name: name, SystemName: name, Filename: "made.go"}
	l := &profile.Location{ID: id, Address: 0x400000 + 16*id, Mapping: m.p.Mapping[0], Line: []profile.Line{{Function: f, Line: int64(id)}}}
	m.p.Function, m.p.Location = append(m.p.Function, f), append(m.p.Location, l)
	m.locations[name] = l
	return l
}

func (m *maker) sample(path string, w []string) {
	if len(w) < 3 {
		fail(2, "pprofcheck: %s: %q", path, w)
	}
	s := &profile.Sample{Label: map[string][]string{}, NumLabel: map[string][]int64{}}
	for _, v := range strings.Split(w[1], ",") {
		s.Value = append(s.Value, int64(number(path, v)))
	}
	for _, name := range strings.Split(w[2], ";") {
		s.Location = append(s.Location, m.location(name))
	}
	for _, l := range w[3:] {
		if kv := strings.SplitN(l, "=", 2); len(kv) == 2 {
			s.NumLabel[kv[0]] = []int64{int64(number(path, kv[1]))}
		} else if kv = strings.SplitN(l, ":", 2); len(kv) == 2 {
			s.Label[kv[0]] = []string{strings.ReplaceAll(kv[1], "_", " ")}
		} else {
			fail(2, "pprofcheck: %s: %q is no label", path, l)
		}
	}
	m.p.Sample = append(m.p.Sample, s)
}

func (m *maker) line(path string, w []string) {
	switch {
	case len(w) > 1 && w[0] == "types":
		for _, t := range w[1:] {
			m.p.SampleType = append(m.p.SampleType, m.valueType(path, t))
		}
	case len(w) == 3 && w[0] == "period":
		m.p.PeriodType, m.p.Period = m.valueType(path, w[1]), int64(number(path, w[2]))
	case len(w) == 3 && w[0] == "time":
		m.p.TimeNanos, m.p.DurationNanos = int64(number(path, w[1])), int64(number(path, w[2]))
	case len(w) > 1 && w[0] == "comment":
		m.p.Comments = append(m.p.Comments, strings.Join(w[1:], " "))
	case len(w) == 3 && w[0] == "mapping":
		m.p.Mapping[0].Start, m.p.Mapping[0].Limit = uint64(number(path, w[1])), uint64(number(path, w[2]))
	case len(w) == 2 && w[0] == "skip":
		m.skipped = uint64(number(path, w[1]))
	case len(w) > 0 && w[0] == "sample":
		m.sample(path, w)
	case len(w) > 0:
		fail(2, "pprofcheck: %s: not understood: %q", path, w)
	}
}

// cmdMade: made TEXT OUT
func cmdMade(args []string) bool {
	paths := parse(flags(), args, 2)
	m := maker{&profile.Profile{Mapping: []*profile.Mapping{{ID: 1, Start: 0x400000, Limit: 0x800000, File: "/made"}}},
		map[string]*profile.Location{}, 0}
	for _, w := range linesOf(paths[0]) {
		m.line(paths[0], w)
	}
	out, err := os.Create(paths[1])
	if err == nil {
		err = m.p.Write(out)
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		fail(2, "pprofcheck: %v", err)
	}
	return true
}
