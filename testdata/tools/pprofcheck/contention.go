package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
)

// Block and mutex profiles: how often (value 0) and how long (value 1).

const contentionTypes = "types contentions/count delay/nanoseconds"

// runtimeLocks are leaves of Go's mutex profile that no sync.Mutex makes (Go 1.22 and newer).
var runtimeLocks = []string{"runtime._LostContendedRuntimeLock", "runtime.unlock", "runtime.unlockWithRank"}

func leafName(s *profile.Sample) string {
	if len(s.Location) == 0 {
		return ""
	}
	return names(s.Location[0])[0]
}

// dropRuntimeLocks takes the samples of the runtime's own locks out, and counts them.
func dropRuntimeLocks(p *profile.Profile) (n int64) {
	var keep []*profile.Sample
	for _, s := range p.Sample {
		own := false
		for _, l := range runtimeLocks {
			own = own || leafName(s) == l
		}
		if own {
			n += s.Value[0]
		} else {
			keep = append(keep, s)
		}
	}
	p.Sample = keep
	return n
}

func loadContention(path string) *profile.Profile {
	p := load(path)
	if !strings.HasPrefix(header(p), contentionTypes+",") {
		fail(1, "%s is no block or mutex profile: %s", path, header(p))
	}
	return p
}

// difference is what came to a process's own profile between two readings.
func difference(before, after string) *profile.Profile {
	a, b := loadContention(before), loadContention(after)
	a.Scale(-1)
	d, err := profile.Merge([]*profile.Profile{a, b})
	if err != nil {
		fail(2, "pprofcheck: %s, %s: %v", before, after, err)
	}
	// Merge is for profiles of one program and takes equal addresses together; what is zero goes.
	return d
}

// ---- what a program says it did ----

type fact struct {
	fn, leaf, reason   string
	count, delay       [2]float64
	countVar, delayVar float64
	oneCount, oneDelay float64 // the most that one sample counts
	gotCount, gotDelay int64
	wrongLeaf          map[string]int64
}

func facts(path, kind string) []*fact {
	f, err := os.Open(path)
	if err != nil {
		fail(2, "pprofcheck: %v", err)
	}
	defer f.Close()
	byName := map[string]*fact{}
	var all []*fact
	for in := bufio.NewScanner(f); in.Scan(); {
		word := strings.Fields(in.Text())
		if len(word) != 11 || word[0] != kind {
			continue
		}
		var v [8]float64
		for i := range v {
			if v[i], err = strconv.ParseFloat(word[3+i], 64); err != nil {
				fail(2, "pprofcheck: %s: %s", path, in.Text())
			}
		}
		name := word[1]
		if kind == "wait" {
			name += " " + word[2]
		}
		t := byName[name]
		if t == nil {
			t = &fact{fn: word[1], leaf: word[2], wrongLeaf: map[string]int64{}}
			if kind == "wait" {
				t.leaf, t.reason = "-", strings.ReplaceAll(word[2], "_", " ")
			}
			byName[name] = t
			all = append(all, t)
		}
		t.count[0] += v[0]
		t.count[1] += v[1]
		t.delay[0] += v[2]
		t.delay[1] += v[3]
		t.countVar += v[4]
		t.delayVar += v[5]
		t.oneCount, t.oneDelay = math.Max(t.oneCount, v[6]), math.Max(t.oneDelay, v[7])
	}
	return all
}

// is: a plugin's package main has a path of its own.
func (t *fact) is(name string) bool {
	return t.fn == name ||
		strings.Contains(name, "/") && strings.HasSuffix(name, strings.TrimPrefix(t.fn, "main"))
}

// of finds the fact that a sample is about: its function is in the stack.
func of(all []*fact, s *profile.Sample) *fact {
	for _, l := range s.Location {
		for _, name := range names(l) {
			for _, t := range all {
				if t.is(name) && (t.reason == "" || has(s.Label["reason"], t.reason)) {
					return t
				}
			}
		}
	}
	return nil
}

func has(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

var (
	declared  = regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type )(\w+)`)
	nameParts = regexp.MustCompile(`[A-Za-z_]\w*`)
	closure   = regexp.MustCompile(`^(func|gowrap|deferwrap)\d+$`)
)

// declaredIn are the functions, methods and types of the package in a folder.
func declaredIn(dir string) map[string]bool {
	files, _ := filepath.Glob(filepath.Join(dir, "*.go"))
	all := map[string]bool{}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			fail(2, "pprofcheck: %v", err)
		}
		for _, m := range declared.FindAllStringSubmatch(string(data), -1) {
			all[m[1]] = true
		}
	}
	if len(all) == 0 {
		fail(2, "pprofcheck: no Go source in %s", dir)
	}
	return all
}

// invented is a function of package main in the stack that the source does not have, or "".
func invented(source map[string]bool, s *profile.Sample) string {
	for _, name := range allNames(s) {
		if !strings.HasPrefix(name, "main.") {
			continue
		}
		for _, part := range nameParts.FindAllString(name[len("main."):], -1) {
			if !source[part] && !closure.MatchString(part) {
				return name
			}
		}
	}
	return ""
}

// off is how far outside v is, in per cent and, when there is a variance, in standard errors.
func off(v float64, in [2]float64, variance float64) string {
	d := math.Max(in[0]-v, v-in[1])
	s := fmt.Sprintf("%+.2f%%", 100*d/math.Max(1, in[0]))
	if variance > 0 {
		s += fmt.Sprintf(" %.1f se", d/math.Sqrt(variance))
	}
	return s
}

// limits are relative tolerances. What is sampled may be off by chance, too.
type limits struct {
	count, delay float64
	sampled      bool
}

func (m limits) holds(v float64, in [2]float64, x, variance, heaviest float64) bool {
	slack := 0.0
	if m.sampled && variance > 0 {
		slack = sampledSlack(variance, heaviest)
	}
	return v >= in[0]*(1-x)-slack && v <= in[1]*(1+x)+slack
}

// check says what is wrong with one fact, or nothing.
func (m limits) check(t *fact) (why []string) {
	c, d := float64(t.gotCount), float64(t.gotDelay)
	if !m.holds(c, t.count, m.count, t.countVar, t.oneCount) {
		why = append(why, fmt.Sprintf("%d events (%s)", t.gotCount, off(c, t.count, t.countVar)))
	}
	if !m.holds(d, t.delay, m.delay, t.delayVar, t.oneDelay) {
		why = append(why, fmt.Sprintf("%.6f s (%s)", d/1e9, off(d, t.delay, t.delayVar)))
	}
	for leaf, n := range t.wrongLeaf {
		why = append(why, fmt.Sprintf("%d with leaf %s", n, leaf))
	}
	return why
}

func cmdKnown(args []string) bool {
	var m limits
	fs := flags()
	kind := fs.String("kind", "block", "")
	before := fs.String("before", "", "")
	period := fs.Int64("period", 1, "")
	source := fs.String("source", "testdata/programs/waits", "")
	fs.Float64Var(&m.count, "count", 0.01, "")
	fs.Float64Var(&m.delay, "delay", 0.03, "")
	fs.BoolVar(&m.sampled, "sampled", false, "")
	paths := parse(fs, args, 2)
	all := facts(paths[0], *kind)
	if len(all) == 0 {
		fail(2, "pprofcheck: %s says nothing of kind %s", paths[0], *kind)
	}
	p, has := loadContention(paths[1]), declaredIn(*source)
	good := true
	if p.Period != *period {
		fmt.Printf("a period of %d: WRONG\n", p.Period)
		good = false
	}
	if *before != "" {
		p = difference(*before, paths[1])
	}
	locks := dropRuntimeLocks(p)
	for _, s := range p.Sample {
		if f := invented(has, s); f != "" && (s.Value[0] != 0 || s.Value[1] != 0) {
			fmt.Printf("not a function of the program: %s in %s\n", f, stackNames(s))
			good = false
		}
		t := of(all, s)
		if t == nil {
			// Of waits the program says some: it waits for others too.
			if *kind != "wait" && (s.Value[0] != 0 || s.Value[1] != 0) {
				fmt.Printf("not done by the program: %v %s\n", s.Value, stackNames(s))
				good = false
			}
			continue
		}
		t.gotCount += s.Value[0]
		t.gotDelay += s.Value[1]
		if leaf := leafName(s); t.leaf != "-" && leaf != t.leaf && s.Value[0] != 0 {
			t.wrongLeaf[leaf] += s.Value[0]
		}
	}
	most := 0.0
	for _, t := range all {
		verdict := "ok"
		most = math.Max(most, t.count[1])
		if why := m.check(t); len(why) > 0 {
			verdict = "WRONG: " + strings.Join(why, ", ")
			good = false
		}
		fmt.Printf("%s %s%s: %d of %.0f..%.0f, %.6f of %.6f..%.6f s: %s\n", *kind, t.fn, strings.TrimRight(" "+t.reason, " "), t.gotCount,
			t.count[0], t.count[1], float64(t.gotDelay)/1e9, t.delay[0]/1e9, t.delay[1]/1e9, verdict)
	}
	if locks != 0 {
		fmt.Printf("left out: %d of the runtime's own locks\n", locks)
	}
	if most == 0 {
		fmt.Printf("%s says that nothing of kind %s was done: this shows nothing\n", paths[0], *kind)
	}
	return good && most > 0
}

func stackNames(s *profile.Sample) string {
	var all []string
	for _, l := range s.Location {
		all = append(all, names(l)...)
	}
	return strings.Join(all, " <- ")
}

// ---- Go's own profile of the same time ----

type same struct {
	options
	limits
	few, slack float64
	depth      int
}

// stacks are the samples by the text of their frames.
func (o *same) stacks(p *profile.Profile, known *texts) map[string]*entry {
	all := map[string]*entry{}
	for _, s := range p.Sample {
		var stack []string
		for _, l := range s.Location {
			stack = append(stack, frames(l, !o.ignoreStart, false)...)
		}
		// Go notes a select's wait in selectgo itself, some lines below where it waits.
		if name := leafName(s); name == "runtime.selectgo" {
			stack[0] = name
		}
		if o.depth > 0 && len(stack) > o.depth {
			stack = stack[:o.depth]
		}
		key := strings.Join(stack, "\n")
		if all[key] == nil {
			all[key] = &entry{stack: known.numbers(stack), values: make([]int64, 2), known: known}
		}
		for i := range all[key].values {
			all[key].values[i] += s.Value[i]
		}
	}
	dropZeros(all)
	return all
}

// apart says how two values of one stack differ too much, or nothing. An event more or less at
// the window's edges brings its delay along.
func (o *same) apart(a, b *entry) string {
	ca, cb := float64(a.values[0]), float64(b.values[0])
	da, db := float64(a.values[1]), float64(b.values[1])
	diff := math.Abs(cb - ca)
	if diff > math.Max(o.limits.count*ca, o.few) {
		return fmt.Sprintf("%+.2f%% events", 100*(cb-ca)/math.Max(1, ca))
	}
	if math.Abs(db-da) > o.delay*da+o.slack+diff*da/math.Max(1, ca) {
		return fmt.Sprintf("%+.2f%% delay, %+.0f ns an event", 100*(db-da)/math.Max(1, da),
			(db-da)/math.Max(1, ca))
	}
	return ""
}

// absent are the stacks that this profile has not, whose values are all zeros.
func absent(all map[string]*entry, none *entry) (other []string) {
	for k, e := range all {
		if e == none {
			other = append(other, k)
		}
	}
	return other
}

func total(all map[string]*entry) *entry {
	t := &entry{values: make([]int64, 2)}
	for _, e := range all {
		for i, v := range e.values {
			t.values[i] += v
		}
	}
	return t
}

func cmdContention(args []string) bool {
	var o same
	fs := flags()
	fs.Float64Var(&o.limits.count, "count", 0.01, "")
	fs.Float64Var(&o.delay, "delay", 0.02, "")
	fs.Float64Var(&o.few, "few", 0, "")
	fs.Float64Var(&o.slack, "slack", 0, "")
	fs.IntVar(&o.depth, "depth", 0, "")
	fs.IntVar(&o.max, "max", 5, "")
	fs.BoolVar(&o.ignoreStart, "ignore-startline", false, "")
	paths := parse(fs, args, 3)
	own, ours := difference(paths[0], paths[1]), loadContention(paths[2])
	locks := dropRuntimeLocks(own)
	if h := header(ours); h != header(loadContention(paths[1])) {
		fmt.Println("headers differ:", h)
		return false
	}
	known := newTexts()
	a, b := o.stacks(own, known), o.stacks(ours, known)
	bad := 0
	var keys []string
	none := &entry{values: make([]int64, 2)}
	for k := range a {
		keys = append(keys, k)
		if b[k] == nil {
			b[k] = none
		}
	}
	for k := range b {
		if a[k] == nil {
			keys = append(keys, k)
			a[k] = none
		}
	}
	sort.Slice(keys, func(i, j int) bool { return a[keys[i]].values[1] > a[keys[j]].values[1] })
	onlyB, onlyA := absent(a, none), absent(b, none)
	for _, k := range keys {
		why := o.apart(a[k], b[k])
		if why == "" {
			continue
		}
		bad++
		if bad <= o.max {
			fmt.Printf("%s: Go's own %v, ours %v\n  %s\n", why, a[k].values, b[k].values,
				strings.ReplaceAll(k, "\n", "\n  "))
			if b[k] == none {
				printNearest(a[k], "ours", onlyB, b)
			} else if a[k] == none {
				printNearest(b[k], "Go's own", onlyA, a)
			}
		}
	}
	ta, tb := total(a), total(b)
	why := o.apart(ta, tb)
	fmt.Printf("%d stacks, %d apart; totals: Go's own %v, ours %v (%+.3f%%, %+.3f%%) %s\n", len(keys), bad,
		ta.values, tb.values, 100*float64(tb.values[0]-ta.values[0])/math.Max(1, float64(ta.values[0])),
		100*float64(tb.values[1]-ta.values[1])/math.Max(1, float64(ta.values[1])), why)
	if locks != 0 {
		fmt.Printf("left out: %d of the runtime's own locks\n", locks)
	}
	return bad == 0 && why == "" && ta.values[0] > 0
}

// cmdDelta writes the difference of two readings; wrong ones too, to see that a judge judges.
func cmdDelta(args []string) bool {
	fs := flags()
	count := fs.Float64("count", 1, "")
	delay := fs.Float64("delay", 1, "")
	drop := fs.String("drop", "", "")
	leaf := fs.String("leaf", "", "")
	paths := parse(fs, args, 3)
	p := difference(paths[0], paths[1])
	dropRuntimeLocks(p)
	var keep []*profile.Sample
	for _, s := range p.Sample {
		s.Value[0] = int64(math.Round(float64(s.Value[0]) * *count))
		s.Value[1] = int64(math.Round(float64(s.Value[1]) * *delay))
		if *drop != "" && strings.Contains(stackNames(s), *drop) {
			continue
		}
		if *leaf != "" && leafName(s) == *leaf { // as if a frame had not been hidden or shown
			s.Location = s.Location[1:]
		}
		keep = append(keep, s)
	}
	p.Sample = keep
	out, err := os.Create(paths[2])
	if err == nil {
		err = p.Write(out)
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		fail(2, "pprofcheck: %v", err)
	}
	return true
}

// contentionsBeside counts the contentions of OWN with a stack that OURS has not, by the names of its functions.
func contentionsBeside(ours, own *profile.Profile) (n float64, most string) {
	has := map[string]bool{}
	for _, s := range ours.Sample {
		has[stackNames(s)] = true
	}
	for _, s := range own.Sample {
		if v := float64(s.Value[0]); v != 0 && !has[stackNames(s)] {
			n += v
			most = stackNames(s)
		}
	}
	return n, most
}

// cmdFraction: OURS has all contentions, OWN one in -of of the same time, each of which counts for as
// many: numbers and delays agree, give or take -off for the window's edges, and so many may be of
// stacks that OURS has not. The number taken is
// binomial. How long the single waits of a stack were is not known: their variance is taken to be
// that of an exponential distribution, and the longest five times their mean.
func cmdFraction(args []string) bool {
	var j judge
	fs := flags()
	of := fs.Float64("of", 5, "")
	off := fs.Float64("off", 0.1, "")
	paths := parse(fs, args, 2)
	ours, own := loadContention(paths[0]), loadContention(paths[1])
	var n, delay, variance, heaviest, gotN, gotDelay float64
	for _, s := range ours.Sample {
		c, d := float64(s.Value[0]), float64(s.Value[1])
		if c > 0 {
			n += c
			delay += d
			variance += (*of - 1) * 2 * d * d / c
			heaviest = math.Max(heaviest, *of*5*d/c)
		}
	}
	for _, s := range own.Sample {
		gotN += float64(s.Value[0])
		gotDelay += float64(s.Value[1])
	}
	if other, stack := contentionsBeside(ours, own); other > *off*n {
		j.wrong("%.0f contentions of stacks that are not in ours: %s", other, stack)
	}
	slack := sampledSlack(variance, heaviest)
	fmt.Fprintf(os.Stderr, "%.0f contentions of %.3f s, %.0f of %.3f s by its own (may be off by %.3f s)\n",
		n, delay/1e9, gotN, gotDelay/1e9, slack/1e9)
	j.compared += 2
	low, high := math.Floor(n*(1-*off)), math.Ceil(n*(1+*off))
	taken := math.Round(gotN / *of)
	sampledMade++
	if binomialAtMost(taken, low, 1 / *of) < sampledLevel/2 || binomialAtLeast(taken, high, 1 / *of) < sampledLevel/2 {
		j.wrong("%.0f contentions, %.0f by its own count", n, gotN)
	}
	if math.Abs(gotDelay-delay) > *off*delay+slack {
		j.wrong("%.3f s of waiting, %.3f s by its own count, which may be off by %.3f s", delay/1e9, gotDelay/1e9, slack/1e9)
	}
	return j.fine()
}
