// Pprofcheck reads profiles with google/pprof's own library, for the tests: whether one is
// valid, whether two say the same, and what one says.
//
// Exit status: 0 yes, 1 no (invalid, different, out of tolerance), 2 wrong usage or unreadable.
package main

import (
	"flag"
	"fmt"
	"os"
	"sort"
	"strings"

	"github.com/google/pprof/profile"
)

const usage = `usage: pprofcheck COMMAND [FLAGS] FILE...

  check [-merged] FILE... valid for google/pprof and for stricter readers
      -merged             and no two samples are equal
  equal [FLAGS] A B       same samples: frames, labels, values; and there are some
      -types a,b          compare these sample types only, and no header
      -ignore-startline   -ignore-labels   -ignore-zero   -addresses   -max N
      -ignore-initfile    not the file of a package's init function
      -without REGEXP     leave out samples that a function of such a name is in
  grew [FLAGS] A B...     each has the samples of the one before it, with no value less; and there are some
      -addresses          and at the same addresses
      -still REGEXP       samples with a function or file like this are the same in all
      -but REGEXP         but for those with one like this
      -tolerance X        but for that share of the last column
  goroutines [-ignore-labels] [-without REGEXP] A B   same goroutines in two texts (debug=2)
  share [FLAGS] A B       flat and cumulative shares per function, side by side
      -type T   -top N    -tolerance X: fail when a share differs by more than X (0.05: 5 points)
      -sampled            and what sampling allows (level), for profiles with a column "samples"
      -flat               flat shares only    -below FUNC: only samples that this function is in
  sum FILE                total of each sample type
  flat, cum [-type T] FILE   value per function
  labels [-type T] FILE   value per set of labels
  stacks [-type T] FILE   value per stack, leaf first
  comments FILE
  known [FLAGS] TRUTH FILE   a block or mutex profile is what testdata/programs/waits says it did
      -kind block|mutex   -count X -delay X: tolerances (0.01, 0.03)   -before F: less what is in F
      -sampled            and what chance allows by the variances it tells (level)
      -period N           of the profile (1)   -source DIR: has all functions of package main
  contention [FLAGS] BEFORE AFTER FILE   FILE is the difference of Go's own two, stack by stack
      -count X -delay X   tolerances (0.01, 0.02)   -few N: or N events   -slack NS: or NS
      -depth N            leaf frames only   -ignore-startline   -max N
  delta [FLAGS] BEFORE AFTER OUT   write that difference
      -count F -delay F   times F   -drop NAME, -leaf NAME: without such stacks, or leaf frames
  fraction [-of N] [-off X] OURS OWN   OWN has one contention in N of those in OURS
  budget [FLAGS] LOG FILE    estimates of some windows beside the log of testdata/programs/churn or relay
      -kind heap|block|mutex  -type T   what is judged (heap, alloc_space)
      -se X -least S      these errors at most X, for sites with a share of S (0.01) or more
      -within X           and at most X from the truth   -few N: but for N waits   -off X: and a share X
      -sure X -judged N   not those with a larger error, that were seen too seldom; at least N others
                          where the budget ended the observation, of that time alone
      -absent             sites of which no window saw anything may be missing, with bursts
                          what chance allows is by the level, the errors that the profile states
                          and the number of its windows
  pace [-kind K] [-site FUNC] [-delay] [-from NS] [-to NS] LOG   how much a second it did, by its log
  types SOURCE FILE [WITHOUT]   labels "type" are what comments of the source say, line by line
      WITHOUT             and as much of each line as in this profile
  allocs -rate R [FLAGS] TRUTH FILE      objects allocated as lines "FUNC COUNT BYTES" say
      -firsts N           so many samples may each count R bytes too much
      -missed N           so many of each were perhaps made while nobody looked
      -most X             all bytes within X, which the number of samples must be able to show
      -other N            so many bytes of the program's, besides (65536); live has it, too
  live -rate R -lost N [-kinds N] TRUTH FILE        objects in use, the same; N samples are not known
  flow -windows N [-made] [-gap X] TRUTH COMMENTS   objects in use as comments of a profile in windows state
      -made               them; and bytes allocated, by lines "# FUNC COUNT BYTES"
      -gap X              in that share of the time nobody looked
  labelled -rate R [-goid] [-labels] TRUTH FILE     objects by goroutine and labels ("GOID COUNT SET")
  callers [-least N] FILE                testdata/programs/leaf31: 3:1
  cputotal -inner T -outer T -stolen T -switches N FILE   all CPU time is there; T in ticks
  counts [-off X] TRUTH GOT              shares of "NAME VALUE" and "SAMPLES NAME"
  alike [-off X] A B                     shares of two lists of "SAMPLES NAME"
  losses -status RC [FLAGS] ERR [FILE...]   what was said of losses is known and within bounds, and
                          as it is in the profiles
      -ends N  -late N    stacks that end before their root (10), clock ticks (500)
      -allow KIND:LOSS=N  N, or "any", of this one (names of user/profile/loss.h, or -list FILE)
  made TEXT OUT           the profile that a text describes (made.go)
  level                   the level that all comparisons with samples are made at
`

func main() {
	if len(os.Args) < 2 {
		fail(2, "%s", usage)
	}
	commands := map[string]func([]string) bool{
		"check": cmdCheck, "equal": cmdEqual, "share": cmdShare, "sum": cmdSum,
		"flat": cmdFlat, "cum": cmdCum, "labels": cmdLabels, "stacks": cmdStacks,
		"comments": cmdComments, "known": cmdKnown, "contention": cmdContention, "delta": cmdDelta, "fraction": cmdFraction,
		"grew": cmdGrew, "goroutines": cmdGoroutines, "budget": cmdBudget, "pace": cmdPace,
		"types": cmdTypes, "allocs": cmdAllocs, "live": cmdLive, "flow": cmdFlow, "labelled": cmdLabelled,
		"callers": cmdCallers, "cputotal": cmdCPUTotal, "counts": cmdCounts, "alike": cmdAlike,
		"losses": cmdLosses, "made": cmdMade, "level": cmdLevel,
	}
	run := commands[os.Args[1]]
	if run == nil {
		fail(2, "%s", usage)
	}
	good := run(os.Args[2:])
	logComparisons(os.Args[1])
	if !good {
		os.Exit(1)
	}
}

func fail(code int, format string, args ...interface{}) {
	fmt.Fprintf(os.Stderr, strings.TrimSuffix(format, "\n")+"\n", args...)
	os.Exit(code)
}

// parse yields the positional arguments, exactly n of them (at least one when n is 0).
func parse(fs *flag.FlagSet, args []string, n int) []string {
	fs.Usage = func() { fmt.Fprint(os.Stderr, usage) }
	fs.Parse(args)
	if fs.NArg() != n && n > 0 || fs.NArg() == 0 {
		fail(2, "%s", usage)
	}
	return fs.Args()
}

func flags() *flag.FlagSet {
	return flag.NewFlagSet("pprofcheck", flag.ExitOnError)
}

func load(path string) *profile.Profile {
	data, err := os.ReadFile(path)
	if err != nil {
		fail(2, "pprofcheck: %v", err)
	}
	p, err := profile.ParseData(data)
	if err != nil {
		fail(2, "pprofcheck: %s: %v", path, err)
	}
	return p
}

// column is the index of the named sample type; "" is the default, else the last.
func column(p *profile.Profile, name string) int {
	if name == "" {
		name = p.DefaultSampleType
	}
	for i, t := range p.SampleType {
		if t.Type == name {
			return i
		}
	}
	if name != "" || len(p.SampleType) == 0 {
		fail(2, "pprofcheck: no sample type %q", name)
	}
	return len(p.SampleType) - 1
}

// Go's writer has one function per name, with the file of the first frame it meets. A package's
// init function is made of several files: -ignore-initfile compares all but its file.
var ignoreInitFile bool

func fileOf(f *profile.Function) string {
	if ignoreInitFile && strings.HasSuffix(f.Name, ".init") {
		return "*"
	}
	return f.Filename
}

// frames are the lines of a location, innermost first; a pc without function is one frame.
func frames(l *profile.Location, startLine, address bool) []string {
	prefix := ""
	if address {
		prefix = fmt.Sprintf("0x%x ", l.Address)
	}
	if len(l.Line) == 0 {
		file := "?"
		if l.Mapping != nil {
			file = l.Mapping.File
		}
		return []string{fmt.Sprintf("0x%x [%s]", l.Address, file)}
	}
	var out []string
	for _, ln := range l.Line {
		s := fmt.Sprintf("%s%s %s:%d", prefix, ln.Function.Name, fileOf(ln.Function), ln.Line)
		if startLine {
			s += fmt.Sprintf(" (start %d)", ln.Function.StartLine)
		}
		out = append(out, s)
	}
	return out
}

func labels(s *profile.Sample) []string {
	var out []string
	for k, vs := range s.Label {
		for _, v := range vs {
			out = append(out, fmt.Sprintf("%s=%q", k, v))
		}
	}
	for k, vs := range s.NumLabel {
		for i, v := range vs {
			unit := ""
			if us := s.NumUnit[k]; i < len(us) {
				unit = us[i]
			}
			out = append(out, fmt.Sprintf("%s=%d%s", k, v, unit))
		}
	}
	sort.Strings(out)
	return out
}

// perFunction adds up flat and cumulative values by function name.
func perFunction(p *profile.Profile, col int) (flat, cum map[string]int64, total int64) {
	flat, cum = map[string]int64{}, map[string]int64{}
	for _, s := range p.Sample {
		v := s.Value[col]
		total += v
		seen := map[string]bool{}
		for i, l := range s.Location {
			for k, name := range names(l) {
				if i == 0 && k == 0 {
					flat[name] += v
				}
				if !seen[name] {
					cum[name] += v
				}
				seen[name] = true
			}
		}
	}
	return flat, cum, total
}

func names(l *profile.Location) []string {
	var out []string
	for _, ln := range l.Line {
		out = append(out, ln.Function.Name)
	}
	if len(out) == 0 {
		out = []string{frames(l, false, false)[0]}
	}
	return out
}

// print writes "value name" lines, largest first; zeros are left out.
func print(m map[string]int64) bool {
	var keys []string
	for k, v := range m {
		if v != 0 {
			keys = append(keys, k)
		}
	}
	sort.Slice(keys, func(i, j int) bool {
		if m[keys[i]] != m[keys[j]] {
			return m[keys[i]] > m[keys[j]]
		}
		return keys[i] < keys[j]
	})
	for _, k := range keys {
		fmt.Printf("%d %s\n", m[k], k)
	}
	return true
}

// table is the shape of the commands that print one number per something.
func table(args []string, make func(p *profile.Profile, col int) map[string]int64) bool {
	fs := flags()
	typ := fs.String("type", "", "")
	p := load(parse(fs, args, 1)[0])
	return print(make(p, column(p, *typ)))
}

func cmdFlat(args []string) bool {
	return table(args, func(p *profile.Profile, col int) map[string]int64 {
		flat, _, _ := perFunction(p, col)
		return flat
	})
}

func cmdCum(args []string) bool {
	return table(args, func(p *profile.Profile, col int) map[string]int64 {
		_, cum, _ := perFunction(p, col)
		return cum
	})
}

func cmdLabels(args []string) bool {
	return table(args, func(p *profile.Profile, col int) map[string]int64 {
		m := map[string]int64{}
		for _, s := range p.Sample {
			m["{"+strings.Join(labels(s), " ")+"}"] += s.Value[col]
		}
		return m
	})
}

func cmdStacks(args []string) bool {
	return table(args, func(p *profile.Profile, col int) map[string]int64 {
		m := map[string]int64{}
		for _, s := range p.Sample {
			var all []string
			for _, l := range s.Location {
				all = append(all, frames(l, false, false)...)
			}
			m[strings.Join(all, "; ")+" {"+strings.Join(labels(s), " ")+"}"] += s.Value[col]
		}
		return m
	})
}

func cmdSum(args []string) bool {
	p := load(parse(flags(), args, 1)[0])
	for i, t := range p.SampleType {
		var sum int64
		for _, s := range p.Sample {
			sum += s.Value[i]
		}
		fmt.Printf("%d %s %s\n", sum, t.Type, t.Unit)
	}
	return true
}

func cmdComments(args []string) bool {
	for _, c := range load(parse(flags(), args, 1)[0]).Comments {
		fmt.Println(c)
	}
	return true
}
