// Prints what Go's own reader of execution traces, internal/trace of the newest Go, makes of one.
//
//	v2 events FILE		as traceevents does
//	v2 frames FILE		one line per frame of each event's stack
//	v2 cost FILE		reads it, and says how many events that were
//	v2 fuzzed INPUT OUT	makes a trace of an input that Go's fuzzing found
//	v2 assemble TEXT OUT	makes a trace of a text of Go's own tests, and prints what is expected of it
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"judge/trace"
	"judge/trace/raw"
	"judge/txtar"
)

func text(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c <= 0x20 || c >= 0x7f {
			b[i] = '.'
		}
	}
	return " \"" + string(b) + "\""
}

func stack(s trace.Stack) string {
	var pcs []string
	for f := range s.Frames() {
		pcs = append(pcs, fmt.Sprintf("%x", f.PC))
	}
	return " [" + strings.Join(pcs, ",") + "]"
}

func gstate(s trace.GoState) string {
	switch s {
	case trace.GoUndetermined:
		return "?"
	case trace.GoNotExist:
		return "none"
	case trace.GoRunnable:
		return "runnable"
	case trace.GoRunning:
		return "running"
	case trace.GoSyscall:
		return "syscall"
	case trace.GoWaiting:
		return "waiting"
	}
	return "bad"
}

func pstate(s trace.ProcState) string {
	switch s {
	case trace.ProcUndetermined:
		return "?"
	case trace.ProcNotExist:
		return "none"
	case trace.ProcRunning:
		return "running"
	case trace.ProcIdle:
		return "idle"
	}
	return "bad"
}

func transition(ev trace.Event) string {
	st := ev.StateTransition()
	if st.Resource.Kind == trace.ResourceProc {
		from, to := st.Proc()
		return fmt.Sprintf("proc %d %s>%s", st.Resource.Proc(), pstate(from), pstate(to))
	}
	from, to := st.Goroutine()
	return fmt.Sprintf("goroutine %d %s>%s%s%s", st.Resource.Goroutine(), gstate(from), gstate(to), text(st.Reason), stack(st.Stack))
}

func span(kind string, ev trace.Event) string {
	r := ev.Range()
	scope, id := 0, int64(0)
	switch r.Scope.Kind {
	case trace.ResourceGoroutine:
		scope, id = 1, int64(r.Scope.Goroutine())
	case trace.ResourceProc:
		scope, id = 2, int64(r.Scope.Proc())
	}
	var values [2]uint64
	if kind == "range-end" {
		for i, a := range ev.RangeAttributes() {
			values[i] = a.Value.Uint64()
		}
	}
	return fmt.Sprintf("%s%s %d %d %d %d", kind, text(r.Name), scope, id, values[0], values[1])
}

func details(ev trace.Event) string {
	switch ev.Kind() {
	case trace.EventSync:
		if c := ev.Sync().ClockSnapshot; c != nil {
			return fmt.Sprintf("sync %d %d %d", c.Trace, c.Mono, c.Wall.UnixNano())
		}
		return "sync"
	case trace.EventMetric:
		m := ev.Metric()
		return fmt.Sprintf("metric %s %d", m.Name, m.Value.Uint64())
	case trace.EventLabel:
		return "label" + text(ev.Label().Label)
	case trace.EventStackSample:
		return "sample"
	case trace.EventRangeBegin:
		return span("range-begin", ev)
	case trace.EventRangeActive:
		return span("range-active", ev)
	case trace.EventRangeEnd:
		return span("range-end", ev)
	case trace.EventTaskBegin, trace.EventTaskEnd:
		kind := "task-begin"
		if ev.Kind() == trace.EventTaskEnd {
			kind = "task-end"
		}
		t := ev.Task()
		return fmt.Sprintf("%s %d %d%s", kind, t.ID, int64(t.Parent), text(t.Type))
	case trace.EventRegionBegin, trace.EventRegionEnd:
		kind := "region-begin"
		if ev.Kind() == trace.EventRegionEnd {
			kind = "region-end"
		}
		r := ev.Region()
		return fmt.Sprintf("%s %d%s", kind, r.Task, text(r.Type))
	case trace.EventLog:
		l := ev.Log()
		return fmt.Sprintf("log %d%s%s", l.Task, text(l.Category), text(l.Message))
	case trace.EventStateTransition:
		return transition(ev)
	case trace.EventExperimental:
		x := ev.Experimental()
		s := "experimental " + x.Name
		for i := range x.Args {
			s += fmt.Sprintf(" %d", x.ArgValue(i).Uint64())
		}
		return s
	}
	return "bad"
}

func assemble(in, out string) error {
	ar, err := txtar.ParseFile(in)
	if err != nil {
		return err
	}
	if len(ar.Files) != 2 || ar.Files[0].Name != "expect" || ar.Files[1].Name != "trace" {
		return errors.New(in + ": not a test of a trace")
	}
	tr, err := raw.NewTextReader(bytes.NewReader(ar.Files[1].Data))
	if err != nil {
		return err
	}
	var buf bytes.Buffer
	w, err := raw.NewWriter(&buf, tr.Version())
	if err != nil {
		return err
	}
	for {
		ev, err := tr.ReadEvent()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = w.WriteEvent(ev)
		}
		if err != nil {
			return err
		}
	}
	os.Stdout.Write(ar.Files[0].Data)
	return os.WriteFile(out, buf.Bytes(), 0o666)
}

// An input is a line of Go: []byte("...").
func fuzzed(in, out string) error {
	b, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	lines := strings.Split(string(b), "\n")
	if len(lines) < 2 {
		return errors.New(in + ": not an input")
	}
	s, err := strconv.Unquote(strings.TrimSuffix(strings.TrimPrefix(lines[1], "[]byte("), ")"))
	if err != nil {
		return err
	}
	return os.WriteFile(out, []byte(s), 0o666)
}

func read(what, path string, out io.Writer) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	r, err := trace.NewReader(f)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		ev, err := r.ReadEvent()
		if err == io.EOF {
			if what == "cost" {
				fmt.Fprintf(out, "%d events\n", n)
			}
			return nil
		}
		if err != nil {
			return err
		}
		switch what {
		case "events":
			m, p, g := int64(ev.Thread()), int64(ev.Proc()), int64(ev.Goroutine())
			fmt.Fprintf(out, "%d M%d P%d G%d %s%s\n", ev.Time(), m, p, g, details(ev), stack(ev.Stack()))
		case "frames":
			for f := range ev.Stack().Frames() {
				fmt.Fprintf(out, "frame %x %s %s %d\n", f.PC, f.Func, f.File, f.Line)
			}
		}
	}
}

func main() {
	var err error
	out := &buffered{}
	switch os.Args[1] {
	case "assemble":
		err = assemble(os.Args[2], os.Args[3])
	case "fuzzed":
		err = fuzzed(os.Args[2], os.Args[3])
	default:
		err = read(os.Args[1], os.Args[2], out)
		if err != nil {
			fmt.Fprintf(out, "end: %s\n", strings.SplitN(err.Error(), "\n", 2)[0])
			err = nil
		} else {
			fmt.Fprintln(out, "end")
		}
		out.flush()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type buffered struct{ buf bytes.Buffer }

func (b *buffered) Write(p []byte) (int, error) {
	if b.buf.Len() > 1<<20 {
		b.flush()
	}
	return b.buf.Write(p)
}

func (b *buffered) flush() { b.buf.WriteTo(os.Stdout) }
