package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
)

type options struct {
	types                                            []string
	ignoreStart, ignoreLabels, ignoreZero, addresses bool
	max                                              int
	without                                          *regexp.Regexp
}

// entry is what all samples with one key say together: frames and labels by their numbers (texts).
type entry struct {
	stack, set []uint32
	values     []int64
	known      *texts
}

func (e *entry) frames() []string { return e.known.list(e.stack) }
func (e *entry) labels() []string { return e.known.list(e.set) }

// texts gives each frame and each label a number, so that stacks of many samples are compared, and
// held, without their text. Profiles that are compared share one.
type texts struct {
	of   map[string]uint32
	all  []string
	sets map[string][]uint32 // of labels, by what stands in the sample
}

func newTexts() *texts {
	return &texts{of: map[string]uint32{}, sets: map[string][]uint32{}}
}

func (t *texts) number(text string) uint32 {
	n, ok := t.of[text]
	if !ok {
		n = uint32(len(t.all))
		t.of[text] = n
		t.all = append(t.all, text)
	}
	return n
}

func (t *texts) numbers(list []string) []uint32 {
	out := make([]uint32, 0, len(list))
	for _, text := range list {
		out = append(out, t.number(text))
	}
	return out
}

func (t *texts) list(numbers []uint32) []string {
	var out []string
	for _, n := range numbers {
		out = append(out, t.all[n])
	}
	return out
}

// setOf is of a sample's labels. Most samples have a single one, a number ("bytes"): its text is made once.
func (t *texts) setOf(s *profile.Sample) []uint32 {
	if len(s.Label) > 0 || len(s.NumLabel) != 1 {
		return t.numbers(labels(s))
	}
	key := ""
	for k, vs := range s.NumLabel {
		for i, v := range vs {
			unit := ""
			if us := s.NumUnit[k]; i < len(us) {
				unit = us[i]
			}
			key += k + "\x00" + strconv.FormatInt(v, 10) + "\x00" + unit + "\x00"
		}
	}
	set, ok := t.sets[key]
	if !ok {
		set = t.numbers(labels(s))
		t.sets[key] = set
	}
	return set
}

// keyOf appends the numbers of a stack and, apart from them, of its labels.
func keyOf(key []byte, stack, set []uint32) []byte {
	key = binary.LittleEndian.AppendUint32(key[:0], uint32(len(stack)))
	for _, n := range stack {
		key = binary.LittleEndian.AppendUint32(key, n)
	}
	for _, n := range set {
		key = binary.LittleEndian.AppendUint32(key, n)
	}
	return key
}

func (o *options) columns(p *profile.Profile) []int {
	var cols []int
	for _, t := range o.types {
		cols = append(cols, column(p, t))
	}
	if o.types == nil {
		for i := range p.SampleType {
			cols = append(cols, i)
		}
	}
	return cols
}

// leavesOut: also what has no frame at all, as a handler's goroutine that is about to end has.
func (o *options) leavesOut(s *profile.Sample) bool {
	if o.without != nil && len(s.Location) == 0 {
		return true
	}
	for _, l := range s.Location {
		for _, ln := range l.Line {
			if o.without != nil && o.without.MatchString(ln.Function.Name) {
				return true
			}
		}
	}
	return false
}

// entries are the samples of a profile by their keys, which compare with those of all profiles that
// share these texts.
func (o *options) entries(p *profile.Profile, known *texts) map[string]*entry {
	cols := o.columns(p)
	all := map[string]*entry{}
	at := map[*profile.Location][]uint32{}
	var stack, set []uint32
	var key []byte
	for _, s := range p.Sample {
		if o.leavesOut(s) {
			continue
		}
		stack, set = stack[:0], nil
		for _, l := range s.Location {
			lines, ok := at[l]
			if !ok {
				lines = known.numbers(frames(l, !o.ignoreStart, o.addresses))
				at[l] = lines
			}
			stack = append(stack, lines...)
		}
		if !o.ignoreLabels {
			set = known.setOf(s)
		}
		key = keyOf(key, stack, set)
		e := all[string(key)]
		if e == nil {
			e = &entry{stack: append([]uint32(nil), stack...), set: set, values: make([]int64, len(cols)), known: known}
			all[string(key)] = e
		}
		for i, c := range cols {
			e.values[i] += s.Value[c]
		}
	}
	if o.ignoreZero {
		dropZeros(all)
	}
	return all
}

func sameValues(a, b []int64) bool {
	for i := range a {
		if i >= len(b) || a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

func dropZeros(all map[string]*entry) {
	for k, e := range all {
		zero := true
		for _, v := range e.values {
			zero = zero && v == 0
		}
		if zero {
			delete(all, k)
		}
	}
}

func header(p *profile.Profile) string {
	var types []string
	for _, t := range p.SampleType {
		types = append(types, t.Type+"/"+t.Unit)
	}
	period := "none"
	if p.PeriodType != nil {
		period = p.PeriodType.Type + "/" + p.PeriodType.Unit
	}
	return fmt.Sprintf("types %s, period %d %s", strings.Join(types, " "), p.Period, period)
}

// only are the keys of a that b has not, largest value first.
func only(a, b map[string]*entry) []string {
	var keys []string
	for k := range a {
		if b[k] == nil {
			keys = append(keys, k)
		}
	}
	sort.Slice(keys, func(i, j int) bool {
		x, y := last(a[keys[i]]), last(a[keys[j]])
		if x != y {
			return x > y
		}
		return a[keys[i]].text() < a[keys[j]].text()
	})
	return keys
}

// text is what entries of the same value are ordered by, to be told.
func (e *entry) text() string {
	return strings.Join(e.frames(), "\n") + "\n\n" + strings.Join(e.labels(), "\n")
}

func last(e *entry) int64 {
	if len(e.values) == 0 {
		return 0
	}
	return e.values[len(e.values)-1]
}

func (e *entry) print() {
	fmt.Printf("    values %v labels %v\n", e.values, e.labels())
	for _, f := range e.frames() {
		fmt.Printf("      %s\n", f)
	}
}

// alike counts the frames that two stacks share at their leaf and root ends.
func alike(a, b *entry) int {
	n, i, j := 0, len(a.stack), len(b.stack)
	for i > 0 && j > 0 && a.stack[i-1] == b.stack[j-1] {
		n, i, j = n+1, i-1, j-1
	}
	for k := 0; k < i && k < j && a.stack[k] == b.stack[k]; k++ {
		n++
	}
	if string(keyOf(nil, nil, a.set)) == string(keyOf(nil, nil, b.set)) {
		n++
	}
	if sameValues(a.values, b.values) {
		n += 2
	}
	return n
}

// printNearest shows where the likest stack of the other profile differs.
func printNearest(e *entry, other string, keys []string, all map[string]*entry) {
	var best *entry
	n := 0
	for _, k := range keys {
		if s := alike(e, all[k]); s > n {
			best, n = all[k], s
		}
	}
	if best == nil {
		return
	}
	fmt.Printf("    nearest among those only in %s: values %v labels %v; frames that differ:\n",
		other, best.values, best.labels())
	printLacking("-", e.frames(), best.frames())
	printLacking("+", best.frames(), e.frames())
	if len(e.stack) != len(best.stack) {
		fmt.Printf("      (%d frames against %d)\n", len(e.stack), len(best.stack))
	}
}

// printLacking prints the frames of a that b has not.
func printLacking(sign string, a, b []string) {
	has := map[string]bool{}
	for _, f := range b {
		has[f] = true
	}
	for _, f := range a {
		if !has[f] {
			fmt.Printf("      %s %s\n", sign, f)
		}
	}
}

func (o *options) printOnly(name, other string, keys, otherKeys []string, a, b map[string]*entry) {
	if len(keys) > 0 {
		fmt.Printf("only in %s: %d samples\n", name, len(keys))
	}
	for i, k := range keys {
		if i == o.max {
			fmt.Printf("  ... and %d more\n", len(keys)-i)
			return
		}
		fmt.Printf("  %d.\n", i+1)
		a[k].print()
		printNearest(a[k], other, otherKeys, b)
	}
}

func (o *options) printValues(a, b map[string]*entry) bool {
	var keys []string
	for k, e := range a {
		if b[k] != nil && !sameValues(e.values, b[k].values) {
			keys = append(keys, k)
		}
	}
	sort.Slice(keys, func(i, j int) bool { return a[keys[i]].text() < a[keys[j]].text() })
	if len(keys) > 0 {
		fmt.Printf("values differ: %d samples\n", len(keys))
	}
	for i, k := range keys {
		if i == o.max {
			fmt.Printf("  ... and %d more\n", len(keys)-i)
			break
		}
		fmt.Printf("  %d. A %v  B %v\n", i+1, a[k].values, b[k].values)
		a[k].print()
	}
	return len(keys) == 0
}

func cmdEqual(args []string) bool {
	var o options
	fs := flags()
	types := fs.String("types", "", "")
	fs.BoolVar(&o.ignoreStart, "ignore-startline", false, "")
	fs.BoolVar(&o.ignoreLabels, "ignore-labels", false, "")
	fs.BoolVar(&o.ignoreZero, "ignore-zero", false, "")
	fs.BoolVar(&o.addresses, "addresses", false, "")
	fs.BoolVar(&ignoreInitFile, "ignore-initfile", false, "")
	fs.IntVar(&o.max, "max", 5, "")
	without := fs.String("without", "", "")
	paths := parse(fs, args, 2)
	if *without != "" {
		o.without = regexp.MustCompile(*without)
	}
	if *types != "" {
		o.types = strings.Split(*types, ",")
	}
	pa, pb := load(paths[0]), load(paths[1])
	good := true
	if o.types == nil && header(pa) != header(pb) {
		fmt.Printf("headers differ\n  A %s\n  B %s\n", header(pa), header(pb))
		good = false
	}
	known := newTexts()
	a, b := o.entries(pa, known), o.entries(pb, known)
	onlyA, onlyB := only(a, b), only(b, a)
	o.printOnly("A", "B", onlyA, onlyB, a, b)
	o.printOnly("B", "A", onlyB, onlyA, b, a)
	good = o.printValues(a, b) && good && len(onlyA)+len(onlyB) == 0
	fmt.Printf("A has %d distinct samples, B %d; in both: %d\n", len(a), len(b), len(a)-len(onlyA))
	if len(a)+len(b) == 0 {
		fmt.Println("there are no samples: this shows nothing")
	}
	return good && len(a)+len(b) > 0
}

type shares struct {
	name                     string
	flatA, flatB, cumA, cumB float64
}

func (s shares) worst() float64 {
	return math.Max(math.Abs(s.flatA-s.flatB), math.Abs(s.cumA-s.cumB))
}

// bound is how far two shares may be apart: X, and when they are of na and nb samples, what sampling
// of both allows besides (level.go).
type bound struct {
	x                 float64
	sampled, flatOnly bool
	na, nb            int64
}

func (o bound) holds(a, b float64) bool {
	if !o.sampled {
		return math.Abs(a-b) <= o.x
	}
	na, nb := math.Max(1, float64(o.na)), math.Max(1, float64(o.nb))
	p := (a*na + b*nb) / (na + nb)
	return math.Abs(a-b) <= o.x+sampledSlack(p*(1-p)*(1/na+1/nb), 1/math.Min(na, nb))
}

// why is in a few words what does not hold; "" when all does.
func (o bound) why(s shares) string {
	switch {
	case o.x < 0:
		return ""
	case !o.holds(s.flatA, s.flatB):
		return fmt.Sprintf("%s flat %.3f for %.3f", s.name, s.flatA, s.flatB)
	case !o.flatOnly && !o.holds(s.cumA, s.cumB):
		return fmt.Sprintf("%s cum %.3f for %.3f", s.name, s.cumA, s.cumB)
	}
	return ""
}

// count is the number of samples behind a profile, if its first column says so.
func count(p *profile.Profile) (n int64) {
	if len(p.SampleType) == 0 || p.SampleType[0].Type != "samples" {
		return 0
	}
	for _, s := range p.Sample {
		n += s.Value[0]
	}
	return n
}

func share(v, total int64) float64 {
	if total == 0 {
		return 0
	}
	return float64(v) / float64(total)
}

// below leaves the samples that a function of this name is in.
func below(p *profile.Profile, fn string) {
	var kept []*profile.Sample
	for _, s := range p.Sample {
		if fn == "" || has(allNames(s), fn) {
			kept = append(kept, s)
		}
	}
	p.Sample = kept
}

func allNames(s *profile.Sample) (all []string) {
	for _, l := range s.Location {
		all = append(all, names(l)...)
	}
	return all
}

// sharesOf are those of each function in either profile, the largest difference first.
func sharesOf(pa, pb *profile.Profile, typ string) (rows []shares, totalA, totalB int64) {
	flatA, cumA, totalA := perFunction(pa, column(pa, typ))
	flatB, cumB, totalB := perFunction(pb, column(pb, typ))
	all := map[string]bool{}
	for name := range cumA {
		all[name] = true
	}
	for name := range cumB {
		all[name] = true
	}
	for name := range all {
		rows = append(rows, shares{name,
			share(flatA[name], totalA), share(flatB[name], totalB),
			share(cumA[name], totalA), share(cumB[name], totalB)})
	}
	sort.Slice(rows, func(i, j int) bool {
		if x, y := rows[i].worst(), rows[j].worst(); x != y {
			return x > y
		}
		return rows[i].name < rows[j].name
	})
	return rows, totalA, totalB
}

func cmdShare(args []string) bool {
	fs := flags()
	typ := fs.String("type", "", "")
	top := fs.Int("top", 25, "")
	fn := fs.String("below", "", "")
	var may bound
	fs.Float64Var(&may.x, "tolerance", -1, "")
	fs.BoolVar(&may.sampled, "sampled", false, "")
	fs.BoolVar(&may.flatOnly, "flat", false, "")
	paths := parse(fs, args, 2)
	pa, pb := load(paths[0]), load(paths[1])
	below(pa, *fn)
	below(pb, *fn)
	may.na, may.nb = count(pa), count(pb)
	if may.sampled && may.na*may.nb == 0 {
		fail(2, "pprofcheck: -sampled is for profiles that count samples, and have some")
	}
	var j judge
	for _, p := range []*profile.Profile{pa, pb} {
		if count(p) > 0 && *typ == "cpu" {
			j.cpuColumnsAgree(p)
		}
	}
	rows, totalA, totalB := sharesOf(pa, pb, *typ)
	fmt.Printf("totals: A %d, B %d; largest difference first\n", totalA, totalB)
	fmt.Printf("%8s %8s %8s %8s %8s %8s\n", "flat A", "flat B", "diff", "cum A", "cum B", "diff")
	var outside []string
	for i, r := range rows {
		if i < *top {
			fmt.Printf("%7.2f%% %7.2f%% %+7.2f  %7.2f%% %7.2f%% %+7.2f  %s\n", 100*r.flatA,
				100*r.flatB, 100*(r.flatB-r.flatA), 100*r.cumA, 100*r.cumB,
				100*(r.cumB-r.cumA), r.name)
		}
		if why := may.why(r); why != "" {
			outside = append(outside, why)
		}
	}
	if len(outside) > 0 {
		fmt.Printf("out of tolerance (n=%d, %d): %s\n", may.na, may.nb, strings.Join(outside, "; "))
	}
	return j.wrongs == 0 && len(outside) == 0 && totalA > 0 && totalB > 0
}
