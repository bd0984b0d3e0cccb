package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
)

// Profiles of a few windows beside a program's own log of all it did (testdata/programs/churn and
// relay): each site's estimate, how far it is from the truth, and by what the profile says itself of
// its standard error.

// record is what had happened at some moment between from and to, in ns of the real-time clock.
type record struct {
	from, to int64
	n        []float64
}

type site struct {
	fn, kind string
	bytes    float64 // heap: of a slot
	col      int     // its first in records; block and mutex have COUNT LO_NS HI_NS
}

type diary struct {
	sites   []site
	records []record
}

func readDiary(path string) *diary {
	f, err := os.Open(path)
	if err != nil {
		fail(2, "pprofcheck: %v", err)
	}
	defer f.Close()
	d, cols := &diary{}, 0
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		word := strings.Fields(in.Text())
		switch {
		case len(word) >= 3 && word[0] == "site":
			s := site{fn: word[1], kind: word[2], col: cols}
			cols += 3
			if s.kind == "heap" {
				cols -= 2
				s.bytes = number(path, word[3])
			}
			d.sites = append(d.sites, s)
		case len(word) == cols+3 && word[0] == "at":
			r := record{from: int64(number(path, word[1])), to: int64(number(path, word[2]))}
			for _, w := range word[3:] {
				r.n = append(r.n, number(path, w))
			}
			d.records = append(d.records, r)
		}
	}
	if cols == 0 || len(d.records) < 2 {
		fail(2, "pprofcheck: %s is no log of a program", path)
	}
	return d
}

func number(path, s string) float64 {
	if v, err := strconv.ParseInt(s, 10, 64); err == nil {
		return float64(v)
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		fail(2, "pprofcheck: %s: %q is no number", path, s)
	}
	return v
}

// at is the value of a column at time t: not below, not above, and by a straight line.
func (d *diary) at(col int, t int64) (lo, hi, likely float64) {
	i := sort.Search(len(d.records), func(i int) bool { return d.records[i].from >= t })
	k := sort.Search(len(d.records), func(k int) bool { return d.records[k].to > t }) - 1
	if i == len(d.records) || k < 0 {
		fail(1, "the log does not reach from before the window to after it")
	}
	a, b := d.records[k], d.records[i]
	lo, hi = a.n[col], b.n[col]
	ta, tb := float64(a.from+a.to)/2, float64(b.from+b.to)/2
	x := (float64(t) - ta) / math.Max(1, tb-ta)
	return lo, hi, lo + math.Max(0, math.Min(1, x))*(hi-lo)
}

// during is by how much a column grew.
func (d *diary) during(col int, from, to int64) (lo, hi, likely float64) {
	lo0, hi0, likely0 := d.at(col, from)
	lo1, hi1, likely1 := d.at(col, to)
	return math.Max(0, lo1-hi0), hi1 - lo0, likely1 - likely0
}

// ---- what the profile says of itself ----

type stated struct {
	est, variance float64
	unknown       bool // and that was said
}

var unknownLine = regexp.MustCompile(`^error: ((\S+) .*?(\w+)) ([0-9.e+]+) \+- unknown`)

var errorLine = regexp.MustCompile(`^error: ((\S+) .*?(\w+)) ([0-9.e+]+) \+-\s*([0-9.e+]+) \(([0-9.]+) ?%\)`)

// percentIsOdd: of numbers rounded to whole ones, and one rounded to a tenth.
func percentIsOdd(percent, est, se float64) bool {
	may := 0.051 + 100*(1/est+se/(est*est))
	return math.Abs(percent-100*se/est) > may
}

// statedErrors are by function and sample type; lines of one function are added up. odd is what no
// profile says of itself.
func statedErrors(p *profile.Profile) (all map[string]stated, odd []string) {
	all = map[string]stated{}
	seen := map[string]bool{}
	for _, c := range p.Comments {
		m := errorLine.FindStringSubmatch(c)
		if u := unknownLine.FindStringSubmatch(c); u != nil {
			m = append(u, "0", "0")
		}
		if m == nil {
			continue
		}
		est, e1 := strconv.ParseFloat(m[4], 64)
		se, e2 := strconv.ParseFloat(m[5], 64)
		percent, e3 := strconv.ParseFloat(m[6], 64)
		if e1 != nil || e2 != nil || e3 != nil {
			fail(1, "not understood: %s", c)
		}
		unknown := strings.HasSuffix(c, "unknown")
		if seen[m[1]] {
			odd = append(odd, "stated twice: "+m[1])
		}
		if !unknown && percentIsOdd(percent, est, se) {
			odd = append(odd, "no such percentage: "+c)
		}
		seen[m[1]] = true
		s := all[m[2]+" "+m[3]]
		s.est += est
		s.variance += se * se
		s.unknown = s.unknown || unknown
		all[m[2]+" "+m[3]] = s
	}
	return all, odd
}

var windowsLine = regexp.MustCompile(`^budget: .*?([0-9]+) windows`)

// windows is how many there were, 0 when all the time was watched.
func windows(p *profile.Profile) int {
	for _, c := range p.Comments {
		if m := windowsLine.FindStringSubmatch(c); m != nil {
			n, _ := strconv.Atoi(m[1])
			return n
		}
	}
	return 0
}

// ofSampling is the variance by Go's rule alone of n objects: each is taken with probability
// 1 - exp(-size / rate), and then counts for 1 / p.
func ofSampling(n, size, rate float64) float64 {
	if rate <= 1 {
		return 0
	}
	p := 1 - math.Exp(-size/rate)
	return n * (1 - p) / p
}

// ---- the judgement ----

type estimate struct {
	site
	got, lo, hi, likely float64
	samples             float64 // that got is the sum of
	variance            float64
	known               bool // the variance is
	unknown             bool // and the profile says so
}

func (x *estimate) se() float64 { return math.Sqrt(x.variance) }

// z is how far it is off in standard errors; where the truth is not known as well as the estimate,
// from the nearest that it can be.
func (x *estimate) z() float64 {
	truth := x.likely
	if x.hi-x.lo > x.se() {
		truth = math.Max(x.lo, math.Min(x.hi, x.got))
	}
	if x.got == truth {
		return 0
	}
	return (x.got - truth) / x.se()
}

type budget struct {
	kind, typ     string
	reasons       string  // of a wait profile: those that count, with commas; "" all
	absent        bool    // sites that no window met may be missing
	unseen        bool    // the profile says that no window saw some of it
	windows       int     // of the profile, 0: its errors follow from the sampling rule
	rate          float64 // the heap's period
	se            float64 // relative standard error, at most, where a site has the share least
	least, within float64
	few           float64 // so many of a site may or may not be in the window
	off           float64 // this share of a site is no error
	got, strange  float64 // of all samples, of those of sites that the log has not
	stranger      string
	said          map[string]stated
	odd           []string // what is wrong whatever the truth is
	sure          float64  // sites with a larger relative standard error were seen too seldom to judge by it
}

// siteOf is the site that a sample is of: its function is nearest to the leaf.
func siteOf(est []estimate, s *profile.Sample) *estimate {
	for _, l := range s.Location {
		for _, name := range names(l) {
			for i := range est {
				if est[i].fn == name {
					return &est[i]
				}
			}
		}
	}
	return nil
}

var firstLine = regexp.MustCompile(`^budget: .* the first ([0-9.]+) s observed: `)

// observed is the profile's window, or so much of it as it says.
func observed(p *profile.Profile) (from, to int64) {
	from, to = p.TimeNanos, p.TimeNanos+p.DurationNanos
	for _, c := range p.Comments {
		if m := firstLine.FindStringSubmatch(c); m != nil {
			to = from + int64(number("budget", m[1])*1e9)
		}
	}
	return from, to
}

// The truth of each site in the profile's own window.
func (b *budget) truth(d *diary, p *profile.Profile) (est []estimate) {
	from, to := observed(p)
	for _, s := range d.sites {
		if s.kind != b.kind {
			continue
		}
		x := estimate{site: s}
		switch {
		case b.typ == "alloc_space":
			x.lo, x.hi, x.likely = d.during(s.col, from, to)
			x.lo, x.hi, x.likely = x.lo*s.bytes, x.hi*s.bytes, x.likely*s.bytes
		case b.typ == "alloc_objects" || b.typ == "contentions":
			x.lo, x.hi, x.likely = d.during(s.col, from, to)
		default: // delay: a wait may have begun before the window
			lo, _, l := d.during(s.col+1, from, to)
			_, hi, h := d.during(s.col+2, from, to)
			x.lo, x.hi, x.likely = lo, hi, (l+h)/2
		}
		if b.few > 0 && s.kind != "heap" {
			n, _, _ := d.during(s.col, from, to)
			x.lo = math.Max(0, x.lo-b.few*x.lo/math.Max(1, n))
			x.hi += b.few * x.hi / math.Max(1, n)
		}
		est = append(est, x)
	}
	if len(est) == 0 {
		fail(2, "pprofcheck: the log says nothing of kind %s", b.kind)
	}
	return est
}

func (b *budget) reasoned(s *profile.Sample) bool {
	why := strings.Join(s.Label["reason"], "")
	return b.reasons == "" || strings.Contains(","+b.reasons+",", ","+why+",")
}

func (b *budget) estimates(d *diary, p *profile.Profile) []estimate {
	est, col := b.truth(d, p), column(p, b.typ)
	said, odd := statedErrors(p)
	b.said, b.odd = said, append(b.odd, odd...)
	b.windows, b.rate = windows(p), float64(p.Period)
	for _, c := range p.Comments {
		b.unseen = b.unseen || strings.HasPrefix(c, "unseen:")
	}
	for _, s := range p.Sample {
		if !b.reasoned(s) {
			continue
		}
		v := float64(s.Value[col])
		b.got += v
		if x := siteOf(est, s); x != nil {
			x.got += v
			x.samples++
		} else if inMain(nil, s) {
			b.strange += v
			b.stranger = stackNames(s)
		}
	}
	for i := range est {
		x := &est[i]
		s, ok := said[x.fn+" "+b.typ]
		if !ok && b.typ == "alloc_objects" { // objects of a site are of one size
			s, ok = said[x.fn+" alloc_space"]
		}
		x.unknown = s.unknown
		if ok && s.est > 0 && !s.unknown {
			// Of what it shows: rounding aside that is the sum.
			x.variance = s.variance * (x.got / s.est) * (x.got / s.est)
			x.known = true
		} else if b.windows == 0 {
			x.known = true
			if b.typ == "alloc_space" {
				x.variance = x.bytes * x.bytes * ofSampling(x.likely/x.bytes, x.bytes, float64(p.Period))
			} else if b.kind == "heap" {
				x.variance = ofSampling(x.likely, x.bytes, float64(p.Period))
			}
		}
	}
	return est
}

// judges: of a few windows not even the error is known well. (Its distribution is far from normal.)
func (b *budget) judges(x *estimate) bool {
	return b.sure == 0 || x.known && x.se() <= b.sure*math.Max(x.got, 1)
}

// chance is how far off an estimate may be by chance alone.
func (b *budget) chance(x *estimate) float64 {
	if b.windows > 0 {
		return windowedSlack(b.windows) * x.se()
	}
	weight := x.bytes
	if b.kind == "heap" && b.typ == "alloc_objects" {
		weight = 1
	}
	if b.kind == "heap" {
		weight /= chance(x.bytes, b.rate)
	}
	return sampledSlack(x.variance, weight)
}

func (b *budget) check(x *estimate, share float64) (why []string) {
	slack := b.off*x.likely + 1
	switch {
	case x.likely == 0 && x.got == 0:
		return nil
	case !x.known && share >= b.least && !(b.sure > 0 && (x.unknown || x.got == 0 && (b.unseen || b.absent))):
		return []string{"its error is not stated"}
	case !x.known:
		return nil
	}
	if !b.judges(x) {
		return nil
	}
	slack += b.chance(x)
	if x.got < x.lo-slack || x.got > x.hi+slack {
		why = append(why, fmt.Sprintf("%.1f standard errors off", x.z()))
	}
	if b.se > 0 && share >= b.least && x.se() > b.se*x.got {
		why = append(why, fmt.Sprintf("a standard error of %.1f%%", 100*x.se()/math.Max(1, x.got)))
	}
	if b.within > 0 && (x.got < x.lo*(1-b.within) || x.got > x.hi*(1+b.within)) {
		why = append(why, fmt.Sprintf("%+.1f%%", 100*(x.got/x.likely-1)))
	}
	return why
}

// stray is what sites that the log has not may have: the program around those that it has.
func (b *budget) stray(all float64) float64 {
	if b.kind == "heap" {
		return 0.005*all + 65536
	}
	return 0.005 * all
}

// checkSums: samples are those of the log's sites, and add up to what is stated of them, give or take
// their rounding to whole objects.
func (b *budget) checkSums(est []estimate, all float64) {
	if b.strange > b.stray(all) {
		b.odd = append(b.odd, fmt.Sprintf("%.0f of sites that the program does not have: %s", b.strange, b.stranger))
	}
	if b.reasons != "" || b.windows == 0 {
		return
	}
	rounding := 0.0
	for i := range est {
		x := &est[i]
		may := 4 * x.samples * math.Max(1, x.bytes)
		rounding += may
		if s, ok := b.said[x.fn+" "+b.typ]; ok && math.Abs(s.est-x.got) > may+0.001*x.got {
			b.odd = append(b.odd, fmt.Sprintf("%s: stated %.0f, its samples are %.0f", x.fn, s.est, x.got))
		}
	}
	if s, ok := b.said["all "+b.typ]; ok && math.Abs(s.est-b.got) > rounding+0.001*b.got+b.stray(0) {
		b.odd = append(b.odd, fmt.Sprintf("all sites: stated %.0f, samples are %.0f", s.est, b.got))
	}
}

// checkAll: the sum of all sites is what the program did in all. So a site whose own error is not known
// is bounded, too.
func (b *budget) checkAll(est []estimate) {
	if b.windows == 0 || b.reasons != "" || b.typ == "alloc_objects" {
		return
	}
	s, ok := b.said["all "+b.typ]
	if !ok {
		b.odd = append(b.odd, "the error of all sites is not stated")
		return
	}
	lo, hi := 0.0, 0.0
	for _, x := range est {
		lo, hi = lo+x.lo, hi+x.hi
	}
	if slack := b.stray(hi) + b.off*hi + windowedSlack(b.windows)*math.Sqrt(s.variance); !s.unknown && (b.got < lo-slack || b.got > hi+slack) {
		b.odd = append(b.odd, fmt.Sprintf("all sites: %.0f of %.0f..%.0f, may be off by %.0f", b.got, lo, hi, slack))
	}
}

func cmdBudget(args []string) bool {
	var b budget
	fs := flags()
	fs.StringVar(&b.kind, "kind", "heap", "")
	fs.StringVar(&b.reasons, "reasons", "", "")
	fs.StringVar(&b.typ, "type", "alloc_space", "")
	fs.Float64Var(&b.se, "se", 0, "")
	fs.Float64Var(&b.least, "least", 0.01, "")
	fs.Float64Var(&b.within, "within", 0, "")
	fs.Float64Var(&b.few, "few", 0, "")
	fs.Float64Var(&b.off, "off", 0, "")
	fs.Float64Var(&b.sure, "sure", 0, "")
	fs.BoolVar(&b.absent, "absent", false, "")
	least := fs.Int("judged", 1, "")
	paths := parse(fs, args, 2)
	d, p := readDiary(paths[0]), load(paths[1])
	est := b.estimates(d, p)
	all, good, judged := 0.0, true, 0
	for _, x := range est {
		all += x.likely
	}
	b.checkSums(est, all)
	b.checkAll(est)
	if b.kind == "heap" {
		var j judge
		j.columnsAgree(p, "alloc_objects", "alloc_space", b.windows > 0)
		good = j.wrongs == 0
	}
	for _, why := range b.odd {
		fmt.Println("WRONG:", why)
		good = false
	}
	for i := range est {
		x := &est[i]
		share, verdict := x.likely/math.Max(1, all), "ok"
		if why := b.check(x, share); len(why) > 0 {
			verdict, good = "WRONG: "+strings.Join(why, ", "), false
		}
		if x.likely == 0 && x.got == 0 {
			continue
		}
		if !b.judges(x) && verdict == "ok" {
			verdict = "seen too seldom"
		} else {
			judged++
		}
		fmt.Printf("%-20s %5.1f%% %15.0f of %15.0f..%-15.0f %+7.2f%% se %6.2f%% z %+6.2f: %s\n", x.fn, 100*share,
			x.got, x.lo, x.hi, 100*(x.got/x.likely-1), 100*x.se()/math.Max(1, x.got), x.z(), verdict)
	}
	if judged < *least {
		fmt.Printf("%d sites judged: WRONG\n", judged)
	}
	return good && all > 0 && judged >= *least
}

// cmdPace prints how much a program did a second, by its log, in the second before FROM etc.: all
// heap sites' slots, or all waits; -delay: for how many nanoseconds those lasted.
func cmdPace(args []string) bool {
	fs := flags()
	kind := fs.String("kind", "heap", "")
	fn := fs.String("site", "", "")
	delay := fs.Bool("delay", false, "")
	from := fs.Int64("from", 0, "")
	to := fs.Int64("to", math.MaxInt64, "")
	d := readDiary(parse(fs, args, 1)[0])
	first, last := -1, -1
	for i, r := range d.records {
		if r.from >= *from && first < 0 {
			first = i
		}
		if r.to <= *to {
			last = i
		}
	}
	if first < 0 || last <= first {
		fail(1, "the log has no such time")
	}
	a, b, n := d.records[first], d.records[last], 0.0
	for _, s := range d.sites {
		if s.kind != *kind || (*fn != "" && s.fn != *fn) {
			continue
		}
		if *delay {
			n += (b.n[s.col+1] - a.n[s.col+1] + b.n[s.col+2] - a.n[s.col+2]) / 2
		} else {
			n += b.n[s.col] - a.n[s.col]
		}
	}
	fmt.Printf("%.0f\n", n/(float64(b.from-a.from)/1e9))
	return true
}
