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

// Judges: functions of files alone, so that they can be judged themselves (tests/golden/judges.sh).
// Each prints what it found wrong, a line each, and ends with 1, or with 0 if all is right. One that
// compared nothing found nothing right.

type judge struct {
	compared, wrongs int
}

func (j *judge) wrong(format string, args ...interface{}) {
	j.wrongs++
	fmt.Printf(format+"\n", args...)
}

func (j *judge) fine() bool {
	if j.compared == 0 {
		j.wrong("nothing was compared")
	}
	return j.wrongs == 0
}

// linesOf are the words of each line of a file.
func linesOf(path string) (all [][]string) {
	f, err := os.Open(path)
	if err != nil {
		fail(2, "pprofcheck: %v", err)
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		all = append(all, strings.Fields(in.Text()))
	}
	return all
}

func sortedKeys(m map[string]float64) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// ---- known allocations ----

// allocation is what a program says of one function: how many objects, of how many bytes each.
type allocation struct{ n, size, got float64 }

// allocations reads lines "main.FUNC COUNT BYTES".
func allocations(path string) map[string]*allocation {
	all := map[string]*allocation{}
	for _, w := range linesOf(path) {
		if len(w) == 3 && strings.HasPrefix(w[0], "main.") {
			all[w[0]] = &allocation{n: number(path, w[1]), size: number(path, w[2])}
		}
	}
	return all
}

// ofMain is a function's name as the truth has it: in a plugin the package main has a path of its own.
func ofMain(name string) string {
	if i := strings.LastIndex(name, ".alloc"); i >= 0 {
		return "main" + name[i:]
	}
	return name
}

// known is the allocation that a sample is of, nil if none: the nearest such function to the leaf.
func known(all map[string]*allocation, s *profile.Sample) *allocation {
	bytes := s.NumLabel["bytes"]
	for _, name := range allNames(s) {
		// What the runtime itself allocates below the same lines (a sudog of a goroutine that
		// waits) has another size.
		if a := all[ofMain(name)]; a != nil && len(bytes) == 1 && float64(bytes[0]) == a.size {
			return a
		}
	}
	return nil
}

// takeKnown adds up what the samples stand for. Go's scaling cuts a stack's n / p to a whole number
// (scaleHeapSample, runtime/pprof/protomem.go), half an object of each stack on average, which is
// many of large objects that come from many stacks. Since p is at most 1, the number n of sampled
// objects is the one whole number that gives this value.
func takeKnown(all map[string]*allocation, p *profile.Profile, typ string, rate float64) {
	const inexact = 1e-9
	col := column(p, typ)
	for _, s := range p.Sample {
		if a := known(all, s); a != nil {
			v, p := float64(s.Value[col]), chance(a.size, rate)
			a.got += math.Ceil(v*p*(1-inexact)) / p
		}
	}
}

// inMain: a function of the program itself is in the stack, of its package main or in the truth.
func inMain(all map[string]*allocation, s *profile.Sample) bool {
	for _, name := range allNames(s) {
		if strings.HasPrefix(name, "main.") || all[ofMain(name)] != nil {
			return true
		}
	}
	return false
}

// columnsAgree: a sample's bytes are its objects times their size. Both are rounded by themselves: twice
// where some of the objects are a processor's first, which count as one each (user/collect/heap/heap_enable.c);
// what is scaled from windows is rounded more often, and relatively.
func (j *judge) columnsAgree(p *profile.Profile, objects, space string, windowed bool) {
	n, b := column(p, objects), column(p, space)
	for _, s := range p.Sample {
		size := s.NumLabel["bytes"]
		if len(size) != 1 || s.Value[n] < 0 {
			j.wrong("WRONG: %d objects of the sizes %v: %s", s.Value[n], size, stackNames(s))
			continue
		}
		may := 2 * float64(size[0])
		if windowed {
			may += may + 0.001*float64(s.Value[b])
		}
		if math.Abs(float64(s.Value[b]-s.Value[n]*size[0])) > may {
			j.wrong("WRONG: %d objects of %d bytes, and %d bytes of them: %s", s.Value[n], size[0], s.Value[b], stackNames(s))
		}
	}
}

// strangers judges what is no allocation of the truth and comes from the program: other bytes at
// most, and what sampling them makes of that. The runtime allocates below the program's lines, too
// (a sudog of a goroutine that waits, or a GC assist), and the program around them. An object counts
// for the period or, if it is larger, its size.
func (j *judge) strangers(all map[string]*allocation, p *profile.Profile, space string, rate, other float64) {
	got, most, of := 0.0, 0.0, ""
	for _, s := range p.Sample {
		if known(all, s) == nil && inMain(all, s) {
			v := float64(s.Value[column(p, space)])
			got += v
			if v > most {
				most, of = v, stackNames(s)
			}
		}
	}
	const large = 8192 // of the program's own small things
	may := other
	if rate > 1 {
		may += sampledSlack(other*rate, rate+large)
	}
	if got > may {
		j.wrong("%.0f bytes of what the program says nothing of (at most %.0f), %.0f of them: %s", got, may, most, of)
	}
}

// chance is that of one object to be sampled.
func chance(size, rate float64) float64 {
	if rate <= 1 {
		return 1
	}
	return 1 - math.Exp(-size/rate)
}

// countIsOdd says that got is no estimate of n objects, each of which is sampled with the chance p and
// then counts for 1/p. few too few and many too many have other reasons.
func countIsOdd(got, n, p, few, many float64) bool {
	const rounding = 0.1 // of a sample: values are whole numbers
	sampledMade++
	return binomialAtMost(math.Floor((got+few)*p+rounding), n, p) < sampledLevel/2 ||
		binomialAtLeast(math.Ceil((got-many)*p-rounding), n, p) < sampledLevel/2
}

// standardErrors is how far got is from n of what is sampled in this way, for people.
func standardErrors(got, n, p float64) float64 { return (got - n) / math.Sqrt(n*(1-p)/p+1) }

// atEdges: so many objects may be allocated while the window begins or ends.
const atEdges = 2

// cmdAllocs judges alloc_objects by known counts. The number of sampled objects is binomial, and each
// counts for 1/p objects. -missed objects of each kind may have been made while nobody looked.
func cmdAllocs(args []string) bool {
	var j judge
	fs := flags()
	rate := fs.Float64("rate", 0, "")
	firsts := fs.Float64("firsts", 0, "")
	missed := fs.Float64("missed", 0, "")
	most := fs.Float64("most", 0, "")
	other := fs.Float64("other", 65536, "")
	paths := parse(fs, args, 2)
	if *rate <= 0 {
		fail(2, "%s", usage)
	}
	all, profile := allocations(paths[0]), load(paths[1])
	takeKnown(all, profile, "alloc_objects", *rate)
	j.columnsAgree(profile, "alloc_objects", "alloc_space", false)
	j.strangers(all, profile, "alloc_space", *rate, *other+*firsts**rate)
	names := map[string]float64{}
	want, have, variance, heaviest, unseen := 0.0, 0.0, 0.0, 0.0, 0.0
	for f, a := range all {
		p := chance(a.size, *rate)
		names[f] = 0
		want += a.n * a.size
		have += a.got * a.size
		variance += a.n * (1 - p) / p * a.size * a.size
		heaviest = math.Max(heaviest, a.size/p)
		unseen += math.Min(*missed, a.n) * a.size
	}
	for _, f := range sortedKeys(names) {
		a, p := all[f], chance(all[f].size, *rate)
		j.compared++
		if countIsOdd(a.got, a.n, p, atEdges+*missed, atEdges+*firsts**rate/a.size) {
			j.wrong("%s: %.0f for %.0f (%.1f standard errors)", f, a.got, a.n, standardErrors(a.got, a.n, p))
		}
	}
	slack := sampledSlack(variance, heaviest) + 4096
	fmt.Fprintf(os.Stderr, "all bytes %.4f of the truth, may be off by %.4f\n", have/math.Max(1, want), slack/math.Max(1, want))
	if *most > 0 && slack > *most*want {
		j.wrong("too few samples to know all bytes within %g: within %.4f", *most, slack/want)
	}
	if have < want-slack-unseen || have > want+slack+*firsts**rate {
		j.wrong("all bytes %.4f of the truth, which may be off by %.4f", have/want, slack/want)
	}
	return j.fine()
}

// cmdLive judges inuse_objects by known counts: -lost sampled objects are not known, each of which
// stands for 1/p; one more may have been asked to yield just behind the probe (bpf/go/heap_slot.bpf.h).
func cmdLive(args []string) bool {
	var j judge
	fs := flags()
	rate := fs.Float64("rate", 0, "")
	lost := fs.Float64("lost", -1, "")
	kinds := fs.Int("kinds", 7, "")
	other := fs.Float64("other", 65536, "")
	paths := parse(fs, args, 2)
	if *rate <= 0 || *lost < 0 {
		fail(2, "%s", usage)
	}
	all, profile := allocations(paths[0]), load(paths[1])
	takeKnown(all, profile, "inuse_objects", *rate)
	j.columnsAgree(profile, "inuse_objects", "inuse_space", false)
	j.strangers(all, profile, "inuse_space", *rate, *other)
	names := map[string]float64{}
	for f := range all {
		names[f] = 0
	}
	for _, f := range sortedKeys(names) {
		a := all[f]
		p := chance(a.size, *rate)
		slack := *lost / p
		if *rate > 1 {
			slack += 2 + 1/p
		}
		j.compared++
		if countIsOdd(a.got, a.n, p, slack, slack) {
			j.wrong("%s: %.0f for %.0f (%.1f standard errors, %.0f lost)", f, a.got, a.n,
				standardErrors(a.got, a.n, p), *lost)
		}
	}
	if j.compared < *kinds {
		j.wrong("only %d kinds", j.compared)
	}
	return j.fine()
}

// claim is what comments of a profile say of one function: a value, and its standard error.
type claim struct{ value, se float64 }

// claimsOf are those of this sample type. A function has other lines, too, which allocate little.
func claimsOf(path, typ string) map[string]claim {
	line := regexp.MustCompile(`^error: (\S+) .*` + typ + ` ([0-9]+) \+- ([0-9]+)`)
	data, err := os.ReadFile(path)
	if err != nil {
		fail(2, "pprofcheck: %v", err)
	}
	all := map[string]claim{}
	for _, c := range strings.Split(string(data), "\n") {
		m := line.FindStringSubmatch(c)
		if m == nil {
			continue
		}
		f, got := ofMain(m[1]), claim{number(c, m[2]), number(c, m[3])}
		if all[f].se == 0 || got.value > all[f].value {
			all[f] = got
		}
	}
	return all
}

// flowLives judges one kind of testdata/programs/liveset, of which a are in use: within the error that
// is claimed, and this one small enough to mean something: with 60 windows and more as large as what it is about, and with
// fewer larger, as chance has it. Of what was made while nobody looked nobody knows whether it is in use, and the error
// says up to twice that.
func (j *judge) flowLives(kind string, a *allocation, got claim, windows int, unseen float64) {
	j.compared++
	off, may, most := math.Abs(got.value-a.n), windowedSlack(windows)*got.se, a.n
	if kind == "Growing" {
		most /= 2
	}
	most = most*math.Sqrt(math.Max(1, 60/float64(windows))) + 2*unseen
	switch {
	case a.n == 0: // of garbage a sample may be left that another one's slot was taken for
		if off > may+4096/a.size {
			j.wrong("%s: %.0f of 0", kind, got.value)
		}
	case off > may:
		j.wrong("%s: %.0f +- %.0f for %.0f", kind, got.value, got.se, a.n)
	case got.se <= 0 || got.se > most:
		j.wrong("%s: an error of %.0f for %.0f", kind, got.se, a.n)
	}
}

// madeOf is how many objects a function of testdata/programs/liveset made: lines "# FUNC COUNT BYTES" of the truth.
func madeOf(truth, function string) float64 {
	n := 0.0
	for _, w := range linesOf(truth) {
		if len(w) == 4 && w[0] == "#" && w[1] == function {
			n += number(truth, w[2])
		}
	}
	return n
}

// flowMade judges what was allocated: lines "# FUNC COUNT BYTES" of the truth.
func (j *judge) flowMade(truth, comments string, windows int) {
	got := claimsOf(comments, "alloc_space")
	for _, w := range linesOf(truth) {
		if len(w) != 4 || w[0] != "#" || !strings.HasPrefix(w[1], "main.") {
			continue
		}
		want, g := number(truth, w[2])*number(truth, w[3]), got[w[1]]
		j.compared++
		if math.Abs(g.value-want) > windowedSlack(windows)*g.se || g.se <= 0 || g.se > want/2 {
			j.wrong("%s: %.0f +- %.0f bytes for %.0f", w[1], g.value, g.se, want)
		}
	}
}

// cmdFlow judges what the comments of a profile in windows claim of testdata/programs/liveset: what
// is in use, and with -made what was allocated, too.
func cmdFlow(args []string) bool {
	var j judge
	fs := flags()
	windows := fs.Int("windows", 0, "")
	made := fs.Bool("made", false, "")
	gap := fs.Float64("gap", 0, "")
	paths := parse(fs, args, 2)
	if *windows < 2 {
		fail(2, "pprofcheck: flow: %d windows", *windows)
	}
	truth, got := allocations(paths[0]), claimsOf(paths[1], "inuse_objects")
	for _, kind := range []string{"Growing", "Shrinking", "Turnover", "Garbage"} {
		f := "main.alloc" + kind
		if a := truth[f]; a != nil {
			j.flowLives(kind, a, got[f], *windows, *gap*madeOf(paths[0], f))
		} else {
			j.wrong("the truth says nothing of %s", f)
		}
	}
	if before := j.compared; *made {
		j.flowMade(paths[0], paths[1], *windows)
		if j.compared == before {
			j.wrong("the truth does not say what was made")
		}
	}
	return j.fine()
}

// cmdLabelled judges alloc_objects of testdata/programs/heaplabels by goroutine and label set: lines
// "GOID COUNT SET" of the truth.
func cmdLabelled(args []string) bool {
	var j judge
	fs := flags()
	rate := fs.Float64("rate", 0, "")
	goid := fs.Bool("goid", false, "")
	labelled := fs.Bool("labels", false, "")
	paths := parse(fs, args, 2)
	if *rate <= 0 {
		fail(2, "%s", usage)
	}
	const size = 128
	key := func(id, set string) string {
		if !*goid {
			id = "any"
		}
		if !*labelled {
			set = "any"
		}
		return id + " " + set
	}
	want, got := map[string]float64{}, map[string]float64{}
	for _, w := range linesOf(paths[0]) {
		if len(w) == 3 {
			want[key(w[0], w[2])] += number(paths[0], w[1])
		}
	}
	p := load(paths[1])
	col := column(p, "alloc_objects")
	for _, s := range p.Sample {
		if !has(allNames(s), "main.allocate") || len(s.NumLabel["bytes"]) != 1 || s.NumLabel["bytes"][0] != size {
			continue
		}
		id, set := "none", []string{}
		for _, l := range labels(s) {
			switch {
			case strings.HasPrefix(l, "goid="):
				id = l[len("goid="):]
			case !strings.HasPrefix(l, "bytes="):
				set = append(set, strings.ReplaceAll(l, `"`, ""))
			}
		}
		if len(set) == 0 {
			set = []string{"-"}
		}
		if !*goid && id != "none" || !*labelled && set[0] != "-" {
			j.wrong("%d objects with labels that were not asked for", s.Value[col])
		}
		got[key(id, strings.Join(set, ","))] += float64(s.Value[col])
	}
	for _, k := range sortedKeys(got) {
		if _, ok := want[k]; !ok {
			j.wrong("%.0f objects of {%s}, which there is not", got[k], k)
		}
	}
	c := chance(size, *rate)
	for _, k := range sortedKeys(want) {
		j.compared++
		if countIsOdd(got[k], want[k], c, 0, 0) {
			j.wrong("{%s}: %.0f for %.0f, %.1f standard errors", k, got[k], want[k], standardErrors(got[k], want[k], c))
		}
	}
	return j.fine()
}

// ---- CPU ----

// cpuColumnsAgree: each sample of a CPU profile is one period, in ours and in Go's own.
func (j *judge) cpuColumnsAgree(p *profile.Profile) {
	n, ns := column(p, "samples"), column(p, "cpu")
	for _, s := range p.Sample {
		if s.Value[ns] != s.Value[n]*p.Period {
			j.wrong("%d samples of %d ns, and %d ns of them: %s", s.Value[n], p.Period, s.Value[ns], stackNames(s))
		}
	}
}

// leafCaller is the function that main.leaf has been called from, if it is the only one of the two
// that could, and the very next one; else "".
func leafCaller(s *profile.Sample) string {
	names := allNames(s)
	if len(names) < 2 {
		return ""
	}
	for i, name := range names {
		if isCaller := strings.HasSuffix(name, ".threeTimes") || strings.HasSuffix(name, ".onceOnly"); isCaller != (i == 1) {
			return ""
		}
	}
	return names[1][strings.LastIndex(names[1], "."):]
}

// cmdCallers judges testdata/programs/leaf31: main.leaf is called 3:1 from two functions, and never
// from another.
func cmdCallers(args []string) bool {
	var j judge
	fs := flags()
	least := fs.Float64("least", 400, "")
	p := load(parse(fs, args, 1)[0])
	j.cpuColumnsAgree(p)
	col := column(p, "samples")
	all, three, once := 0.0, 0.0, 0.0
	for _, s := range p.Sample {
		if !strings.HasSuffix(leafName(s), ".leaf") {
			continue
		}
		v := float64(s.Value[col])
		all += v
		switch leafCaller(s) {
		case ".threeTimes":
			three += v
		case ".onceOnly":
			once += v
		}
	}
	n, lone := three+once, 0.002*all
	if *least < 400 {
		lone++
	}
	j.compared++
	switch {
	case all < *least:
		j.wrong("only %.0f samples of the leaf", all)
	case all-n > lone:
		j.wrong("%.0f of %.0f samples without either caller", all-n, all)
	case binomialOdd(three, n, 0.75, 0.75):
		j.wrong("%.0f:%.0f, %.2f standard errors off 3:1", three, once, (three-0.75*n)/math.Sqrt(n*0.75*0.25))
	}
	return j.fine()
}

// seconds of a comment "WORD: 1.234 ...", 0 when there is none.
func commentSeconds(p *profile.Profile, word string) float64 {
	line := regexp.MustCompile("^" + word + `: ([0-9.]+)`)
	for _, c := range p.Comments {
		if m := line.FindStringSubmatch(c); m != nil {
			v, _ := strconv.ParseFloat(m[1], 64)
			return v
		}
	}
	return 0
}

// cmdCPUTotal: all CPU time is there, by the kernel's charge and between two counts of /proc's ticks,
// -inner of which began and ended within the window and -outer around it. What no thread's clock
// counted is told, and is of the switches that there were, of at most 20 us each: 6 to 11 were
// measured where a timer is set through a hypervisor. Ticks are hundredths, cut off twice. While a CPU
// is the host's or an interrupt's (-stolen, by the machine's own count), a thread's clock goes on,
// which /proc charges to nobody (update_rq_clock_task, kernel/sched/core.c), and ticks that fall into
// it may never be served.
func cmdCPUTotal(args []string) bool {
	var j judge
	fs := flags()
	inner := fs.Float64("inner", -1, "")
	outer := fs.Float64("outer", -1, "")
	stolen := fs.Float64("stolen", -1, "")
	switches := fs.Float64("switches", -1, "")
	p := load(parse(fs, args, 1)[0])
	if *inner < 0 || *outer < 0 || *stolen < 0 || *switches < 0 {
		fail(2, "pprofcheck: cputotal: -inner, -outer, -stolen and -switches must be given, and not negative")
	}
	j.cpuColumnsAgree(p)
	got, col := 0.0, column(p, "cpu")
	for _, s := range p.Sample {
		got += float64(s.Value[col]) / 1e9
	}
	charged, unclocked := commentSeconds(p, "charged"), commentSeconds(p, "unclocked")
	least, most, gone := *inner/100, *outer/100, *stolen/100
	j.compared++
	if charged == 0 {
		j.wrong("the kernel charged nothing")
		return false
	}
	if got < 0.98*charged-gone-0.02 || got > 1.02*charged+0.02 {
		j.wrong("%.3f s sampled, %.3f s charged, %.2f s stolen", got, charged, gone)
	}
	if unclocked > *switches*20e-6 {
		j.wrong("%.2f s unclocked in %.0f switches", unclocked, *switches)
	}
	if charged+unclocked < 0.98*least-0.03 || charged > 1.02*most+gone+0.03 {
		j.wrong("%.3f s charged, %.2f unclocked, %.2f to %.2f s in /proc, %.2f s stolen", charged, unclocked,
			least, most, gone)
	}
	return j.fine()
}

// named reads lines "NAME VALUE" (or "VALUE NAME"); a name may have blanks.
func named(path string, valueFirst bool) map[string]float64 {
	all := map[string]float64{}
	for _, w := range linesOf(path) {
		if len(w) < 2 {
			continue
		}
		if valueFirst {
			all[strings.Join(w[1:], " ")] += number(path, w[0])
		} else {
			all[strings.Join(w[:len(w)-1], " ")] += number(path, w[len(w)-1])
		}
	}
	return all
}

func sumOf(m map[string]float64) (sum float64) {
	for _, v := range m {
		sum += v
	}
	return sum
}

// cmdCounts: TRUTH has lines "NAME VALUE", GOT "SAMPLES NAME": each name's share of the samples of all
// names of the truth is its share of the truth, give or take -off and what sampling allows.
func cmdCounts(args []string) bool {
	var j judge
	fs := flags()
	off := fs.Float64("off", 0, "")
	paths := parse(fs, args, 2)
	want, got := named(paths[0], false), named(paths[1], true)
	all, n := sumOf(want), 0.0
	for k := range want {
		n += got[k]
	}
	if all == 0 || n == 0 {
		j.wrong("nothing to compare")
		return false
	}
	for _, k := range sortedKeys(want) {
		p := want[k] / all
		j.compared++
		fmt.Fprintf(os.Stderr, "# %s %.3f for %.3f (n=%.0f)\n", k, got[k]/n, p, n)
		if binomialOdd(got[k], n, p-*off, p+*off) {
			j.wrong("%s %.3f for %.3f (n=%.0f)", k, got[k]/n, p, n)
		}
	}
	return j.fine()
}

// cmdAlike: two lists of "SAMPLES NAME" have the same shares, give or take -off and what sampling of
// both allows.
func cmdAlike(args []string) bool {
	var j judge
	fs := flags()
	off := fs.Float64("off", 0, "")
	paths := parse(fs, args, 2)
	a, b := named(paths[0], true), named(paths[1], true)
	may := bound{x: *off, sampled: true, na: int64(sumOf(a)), nb: int64(sumOf(b))}
	if may.na*may.nb == 0 {
		j.wrong("nothing to compare")
		return false
	}
	names := map[string]float64{}
	for k := range a {
		names[k] = 0
	}
	for k := range b {
		names[k] = 0
	}
	for _, k := range sortedKeys(names) {
		x, y := a[k]/float64(may.na), b[k]/float64(may.nb)
		j.compared++
		fmt.Fprintf(os.Stderr, "# own %s %.3f for %.3f\n", k, x, y)
		if !may.holds(x, y) {
			j.wrong("%s %.3f for %.3f (n=%d, %d)", k, x, y, may.na, may.nb)
		}
	}
	return j.fine()
}
