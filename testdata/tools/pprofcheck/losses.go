package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// What goprof-bpf says on stderr of what it lost, beside its exit status and its profiles.

// lossTable reads the names and texts of user/profile/loss.h, the one list of all losses.
func lossTable(path string) map[string]string {
	data, err := os.ReadFile(path)
	if err != nil {
		fail(2, "pprofcheck: %v", err)
	}
	row := regexp.MustCompile(`X\(([A-Z_]+),\s*"[a-z_]+",[\s\\]*"([^"]*)"\)`)
	texts := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(string(data), -1) {
		texts[m[2]] = m[1]
	}
	if len(texts) < 20 || len(texts) != strings.Count(string(data), "\tX(") {
		fail(2, "pprofcheck: %s: %d losses understood", path, len(texts))
	}
	return texts
}

// Losses that have no count are facts: a bound on them is 0 or 1.
var lossLine = regexp.MustCompile(`^goprof-bpf: (?:pid \d+ \([^)]*\): )?([a-z]+): (?:(\d+) )?(.*)$`)

// What ends in status 3 beside the losses of profiles (user/cli/run/job.c, profile_run.c).
var otherLosses = regexp.MustCompile(`^goprof-bpf: (the target (exited|became)|.* after .*: writing what was collected|` +
	`\d+ programs of children|more than \d+ programs|it ended before more than|pid \d+ .*it ended before more than)`)

// Stopping it by a signal is what the tests do.
var stoppedLine = regexp.MustCompile(`^goprof-bpf: stopped after `)

// allowance is how many of each loss of each kind of profile may be.
type allowance map[string]float64

// allow reads "KIND:LOSS=N", KIND and LOSS as in loss.h; "any" for N is no bound.
func (a allowance) Set(s string) error {
	var kindLoss, n string
	if i := strings.LastIndex(s, "="); i > 0 {
		kindLoss, n = s[:i], s[i+1:]
	}
	if n == "any" {
		n = "1e300"
	}
	if !strings.Contains(kindLoss, ":") {
		return fmt.Errorf("%q is no KIND:LOSS=N", s)
	}
	a[kindLoss] = number("-allow", n)
	return nil
}

func (a allowance) String() string { return "" }

// A line that counts something of a kind of profile is a loss, but for these (user/collect/cpu/cpu.c, waits/wait/wait.c).
var (
	countLine = regexp.MustCompile(`^goprof-bpf: (?:pid \d+ \([^)]*\): )?(cpu|heap|block|mutex|wait|goroutine): \d+ `)
	notLosses = regexp.MustCompile(`: (cpu: \d+ Hz on \d+ threads|wait: \d+ probes, )`)
)

// lossOf is one kind of profile's loss, by its text.
type lossOf struct{ kind, text string }

type lossLines struct {
	texts map[string]string
	may   allowance
	said  map[lossOf][]string // the counts, "" for a fact
	kept  map[lossOf][]string // those of the profiles
	n     int
}

// read judges each line of what was said.
func (l *lossLines) read(j *judge, path string) {
	data, err := os.ReadFile(path)
	if err != nil {
		fail(2, "pprofcheck: %v", err)
	}
	for _, line := range strings.Split(string(data), "\n") {
		m := lossLine.FindStringSubmatch(line)
		if m == nil || l.texts[m[3]] == "" {
			l.readOther(j, line)
			continue
		}
		l.n++
		n := 1.0
		if m[2] != "" {
			n = number(path, m[2])
		}
		of := lossOf{m[1], m[3]}
		l.said[of] = append(l.said[of], m[2])
		if name := m[1] + ":" + l.texts[m[3]]; n > l.may[name] {
			j.wrong("%s: %.0f %s (%s at most %.0f)", m[1], n, m[3], name, l.may[name])
		}
	}
}

// readOther judges a line that is no loss of loss.h.
func (l *lossLines) readOther(j *judge, line string) {
	switch {
	case otherLosses.MatchString(line) && !stoppedLine.MatchString(line):
		l.n++
		if l.may["run:OTHER"] == 0 {
			j.wrong("%s", line)
		}
	case countLine.MatchString(line) && !notLosses.MatchString(line):
		l.n++
		j.wrong("a loss that is not in the list: %s", line)
	}
}

// profileKind is told by a file's name, PROGRAM.PID.KIND.pb.gz and the like.
func profileKind(path string) string {
	for _, k := range []string{"cpu", "heap", "block", "mutex", "wait", "goroutine"} {
		if strings.Contains(filepath.Base(path), "."+k+".") {
			return k
		}
	}
	return ""
}

var lossComment = regexp.MustCompile(`^loss: (\d+) (.*)$`)

// keep reads the losses that a profile states.
func (l *lossLines) keep(j *judge, path string) {
	kind := profileKind(path)
	for _, c := range load(path).Comments {
		m := lossComment.FindStringSubmatch(c)
		switch {
		case m != nil:
			of := lossOf{kind, m[2]}
			l.kept[of] = append(l.kept[of], m[1])
		case strings.HasPrefix(c, "loss:"):
			j.wrong("%s: not understood: %s", kind, c)
		}
	}
}

// same: what was said is what the profiles state, loss by loss and count by count. That the target
// has gone is said with the time and not as a loss.
func (l *lossLines) same(j *judge) {
	for of, counts := range l.kept {
		for _, n := range counts {
			if !takeOut(l.said, of, n) && l.texts[of.text] != "TARGET_GONE" {
				j.wrong("%s: a loss that was not said: %s %s", of.kind, n, of.text)
			}
		}
	}
	for of, counts := range l.said {
		for _, n := range counts {
			j.wrong("%s: a loss that the profile does not state: %s %s", of.kind, n, of.text)
		}
	}
}

// takeOut takes one such count out of all, or a fact, which is said without.
func takeOut(all map[lossOf][]string, of lossOf, n string) bool {
	for i, said := range all[of] {
		if said == n || said == "" {
			all[of] = append(all[of][:i:i], all[of][i+1:]...)
			return true
		}
	}
	return false
}

// cmdLosses judges ERR, what was said on stderr by a run that ended with -status: 0 without any loss,
// or 3 with losses that are all known and within their bounds. What a busy machine does to any
// profile by clocks and stacks is allowed to a small number: stacks that are sampled in a moment they
// cannot be walked (-ends, of each kind that samples running code), clock ticks served late (-late).
func cmdLosses(args []string) bool {
	var j judge
	may := allowance{}
	fs := flags()
	status := fs.Int("status", -1, "")
	list := fs.String("list", "user/profile/loss.h", "")
	ends := fs.Float64("ends", 10, "")
	late := fs.Float64("late", 500, "")
	fs.Var(may, "allow", "")
	paths := parse(fs, args, 0)
	for k, n := range map[string]float64{"cpu:STACKS_BROKEN": *ends, "heap:STACKS_BROKEN": *ends, "cpu:CLOCK_MISSED": *late} {
		if _, ok := may[k]; !ok {
			may[k] = n
		}
	}
	l := lossLines{texts: lossTable(*list), may: may, said: map[lossOf][]string{}, kept: map[lossOf][]string{}}
	l.read(&j, paths[0])
	j.compared++
	switch {
	case *status != 0 && *status != 3:
		j.wrong("exit status %d", *status)
	case *status == 0 && l.n > 0:
		j.wrong("exit status 0 with %d losses", l.n)
	case *status == 3 && l.n == 0:
		j.wrong("exit status 3, and no loss was said")
	}
	for _, p := range paths[1:] {
		l.keep(&j, p)
	}
	if len(paths) > 1 {
		l.same(&j)
	}
	return j.fine()
}
