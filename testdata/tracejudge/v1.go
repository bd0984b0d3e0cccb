// Prints what Go 1.21's own reader of execution traces of version 1 makes of one, in the words of version 2.
//
//	v1 events FILE		as traceevents does
//	v1 frames FILE		one line per frame of each event's stack
//	v1 cost FILE		reads it, and says how many events that were
package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"

	"judge/trace"
)

var (
	out     = bufio.NewWriter(os.Stdout)
	threads = map[int]int64{} // of Ps that run
	version int
	born    = map[uint64]bool{} // goroutines whose creation is in the trace
	states  = map[uint64]string{}
	procs   = map[int]string{}
	began   bool // GOMAXPROCS was told
	stw     = map[int]string{}
	tasks   = map[uint64]*trace.Event{}
	starts  = map[uint64][]*trace.Frame{} // where goroutines begin
)

var waits = map[byte]string{
	trace.EvGoStop: "forever", trace.EvGoSleep: "sleep", trace.EvGoBlock: "", trace.EvGoBlockSend: "chan send",
	trace.EvGoBlockRecv: "chan receive", trace.EvGoBlockSelect: "select", trace.EvGoBlockSync: "sync",
	trace.EvGoBlockCond: "sync.(*Cond).Wait", trace.EvGoBlockNet: "network",
	trace.EvGoBlockGC: "GC mark assist wait for work",
}

func text(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c <= 0x20 || c >= 0x7f {
			b[i] = '.'
		}
	}
	return " \"" + string(b) + "\""
}

func pcs(stk []*trace.Frame) string {
	var s []string
	for _, f := range stk {
		s = append(s, fmt.Sprintf("%x", f.PC))
	}
	return " [" + strings.Join(s, ",") + "]"
}

// Go's reader moves some events to Ps that there are not.
func place(ev *trace.Event, g uint64) string {
	m, p := int64(-1), int64(-1)
	if ev.P < trace.FakeP {
		p = int64(ev.P)
		if t, ok := threads[ev.P]; ok {
			m = t
		}
	}
	id := int64(g)
	if g == 0 {
		id = -1
	}
	if ev.P >= trace.FakeP && ev.Type != trace.EvGoSysExit {
		return fmt.Sprintf("%d M* P* G%d", ev.Ts, id)
	}
	return fmt.Sprintf("%d M%d P%d G%d", ev.Ts, m, p, id)
}

func line(ev *trace.Event, what string, stk []*trace.Frame) {
	fmt.Fprintf(out, "%s %s%s\n", place(ev, ev.G), what, pcs(stk))
}

func goes(ev *trace.Event, g uint64, to, reason string, of, at []*trace.Frame) {
	from, ok := states[g]
	if !ok {
		from = "none"
	}
	states[g] = to
	line(ev, fmt.Sprintf("goroutine %d %s>%s%s%s", g, from, to, text(reason), pcs(of)), at)
	if to == "none" {
		delete(states, g)
	}
}

func goroutine(ev *trace.Event, stacks map[uint64][]*trace.Frame) bool {
	if why, ok := waits[ev.Type]; ok {
		goes(ev, ev.G, "waiting", why, ev.Stk, ev.Stk)
		return true
	}
	switch ev.Type {
	case trace.EvGoCreate:
		if !began {
			states[ev.Args[0]] = "?"
		}
		start := stacks[ev.Args[1]]
		if version < 1007 {
			start = []*trace.Frame{{PC: ev.Args[1] + 1}}
		}
		starts[ev.Args[0]] = start
		goes(ev, ev.Args[0], "runnable", "", start, ev.Stk)
	case trace.EvGoStart, trace.EvGoStartLabel:
		goes(ev, ev.G, "running", "", nil, nil)
		if ev.Type == trace.EvGoStartLabel {
			line(ev, "label"+text(ev.SArgs[0]), nil)
		}
	case trace.EvGoEnd:
		goes(ev, ev.G, "none", "", nil, nil)
	case trace.EvGoSched:
		goes(ev, ev.G, "runnable", "runtime.Gosched", ev.Stk, ev.Stk)
	case trace.EvGoPreempt:
		goes(ev, ev.G, "runnable", "preempted", ev.Stk, ev.Stk)
	case trace.EvGoUnblock:
		goes(ev, ev.Args[0], "runnable", "", nil, ev.Stk)
	case trace.EvGoSysCall:
		goes(ev, ev.G, "syscall", "", ev.Stk, ev.Stk)
		if ev.Link == nil && !blocks[ev] {
			goes(ev, ev.G, "running", "", nil, nil)
		}
	case trace.EvGoSysBlock: // told by what came before
	case trace.EvGoSysExit:
		goes(ev, ev.G, "runnable", "", nil, nil)
	case trace.EvGoWaiting:
		goes(ev, ev.G, "waiting", "", nil, nil)
	case trace.EvGoInSyscall:
		goes(ev, ev.G, "syscall", "", nil, nil)
	default:
		return false
	}
	return true
}

func span(ev *trace.Event, begins bool, name string, scope int, id int64, a, b uint64) {
	kind := "range-end"
	if begins {
		kind = "range-begin"
	}
	line(ev, fmt.Sprintf("%s%s %d %d %d %d", kind, text(name), scope, id, a, b), ev.Stk)
}

func stopped(ev *trace.Event) {
	if version < 1010 {
		span(ev, ev.Type == trace.EvSTWStart, "GC scan", 2, int64(ev.P), 0, 0)
		return
	}
	if ev.Type == trace.EvSTWStart {
		why := ev.SArgs[0]
		if version < 1021 {
			why = "GC " + why
		}
		stw[0] = strings.TrimSuffix(strings.Replace(why, "unknown", "", 1), " ")
	}
	span(ev, ev.Type == trace.EvSTWStart, "stop-the-world ("+stw[0]+")", 0, 0, 0, 0)
}

func note(ev *trace.Event) {
	switch ev.Type {
	case trace.EvGomaxprocs:
		began = true
		line(ev, fmt.Sprintf("metric /sched/gomaxprocs:threads %d", ev.Args[0]), ev.Stk)
	case trace.EvHeapAlloc:
		line(ev, fmt.Sprintf("metric /memory/classes/heap/objects:bytes %d", ev.Args[0]), nil)
	case trace.EvHeapGoal:
		line(ev, fmt.Sprintf("metric /gc/heap/goal:bytes %d", ev.Args[0]), nil)
	case trace.EvGCStart, trace.EvGCDone:
		span(ev, ev.Type == trace.EvGCStart, "GC concurrent mark phase", 0, 0, 0, 0)
	case trace.EvSTWStart, trace.EvSTWDone:
		stopped(ev)
	case trace.EvGCSweepStart:
		span(ev, true, "GC incremental sweep", 2, int64(ev.P), 0, 0)
	case trace.EvGCSweepDone:
		span(ev, false, "GC incremental sweep", 2, int64(ev.P), ev.Args[0], ev.Args[1])
	case trace.EvGCMarkAssistStart, trace.EvGCMarkAssistDone:
		span(ev, ev.Type == trace.EvGCMarkAssistStart, "GC mark assist", 1, int64(ev.G), 0, 0)
	case trace.EvUserTaskCreate:
		tasks[ev.Args[0]] = ev
		task(ev, "task-begin", ev)
	case trace.EvUserTaskEnd:
		task(ev, "task-end", tasks[ev.Args[0]])
		delete(tasks, ev.Args[0])
	case trace.EvUserRegion:
		kind := []string{"region-begin", "region-end"}[ev.Args[1]]
		line(ev, fmt.Sprintf("%s %d%s", kind, ev.Args[0], text(ev.SArgs[0])), ev.Stk)
	case trace.EvUserLog:
		line(ev, fmt.Sprintf("log %d%s%s", ev.Args[0], text(ev.SArgs[0]), text(ev.SArgs[1])), ev.Stk)
	case trace.EvCPUSample:
		fmt.Fprintf(out, "%d M-1 P%d G%d sample%s\n", ev.Ts, ev.P, none(ev.G), pcs(ev.Stk))
	}
}

func none(g uint64) int64 {
	if g == 0 {
		return -1
	}
	return int64(g)
}

func task(ev *trace.Event, kind string, of *trace.Event) {
	parent, name := int64(-1), ""
	if of != nil {
		name = of.SArgs[0]
		if of.Args[1] != 0 {
			parent = int64(of.Args[1])
		}
	}
	line(ev, fmt.Sprintf("%s %d %d%s", kind, ev.Args[0], parent, text(name)), ev.Stk)
}

func proc(ev *trace.Event) {
	from, to := procs[ev.P], "idle"
	if from == "" {
		from = "?"
	}
	if ev.Type == trace.EvProcStart {
		to = "running"
		threads[ev.P] = int64(ev.Args[0])
	}
	procs[ev.P] = to
	line(ev, fmt.Sprintf("proc %d %s>%s", ev.P, from, to), nil)
	if ev.Type == trace.EvProcStop {
		delete(threads, ev.P)
	}
}

// System calls behind which their goroutine does nothing but block there.
var blocks = map[*trace.Event]bool{}

func findBlocks(events []*trace.Event) {
	last := map[uint64]*trace.Event{}
	for _, ev := range events {
		if ev.Type == trace.EvGoSysBlock && last[ev.G] != nil && last[ev.G].Type == trace.EvGoSysCall {
			blocks[last[ev.G]] = true
		}
		if ev.G != 0 && ev.Type != trace.EvCPUSample {
			last[ev.G] = ev
		}
	}
}

func main() {
	f, err := os.Open(os.Args[2])
	if err != nil {
		panic(err)
	}
	ver, res, err := trace.ParseVersion(bufio.NewReader(f))
	version = ver
	switch {
	case err != nil:
		fmt.Fprintf(out, "end: %s\n", err)
	case os.Args[1] == "cost":
		fmt.Fprintf(out, "%d events\nend\n", len(res.Events))
	case os.Args[1] == "frames":
		for _, ev := range res.Events {
			for _, f := range ev.Stk {
				fmt.Fprintf(out, "frame %x %s %s %d\n", f.PC, f.Fn, f.File, f.Line)
			}
		}
		fmt.Fprintln(out, "end")
	default:
		findBlocks(res.Events)
		for _, ev := range res.Events {
			if ev.Type == trace.EvProcStart || ev.Type == trace.EvProcStop {
				proc(ev)
			} else if !goroutine(ev, res.Stacks) {
				note(ev)
			}
		}
		fmt.Fprintln(out, "end")
	}
	out.Flush()
}
