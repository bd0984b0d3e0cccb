#!/usr/bin/env python3
"""Judges the summary of a trace for people by that for programs.

    tracetext.py SUMMARY.json TEXT

Both of the same trace and time, without --to where --from is missing. Each line of the text is made anew from the numbers of the other;
spaces do not count. Prints the first line that differs, and ends with 1; else how many there are.
"""
import json
import sys


def span(ns):
    if ns < 1000:
        return f"{ns} ns"
    v, units = ns / 1000, ["us", "ms", "s"]
    while v >= 999.5 and len(units) > 1:
        v, units = v / 1000, units[1:]
    return f"{v:.{2 if v < 9.995 else 1 if v < 99.95 else 0}f} {units[0]}"


def size(n):
    v, units = n / 1024, ["kB", "MB", "GB", "TB"]
    while v >= 1024 and len(units) > 1:
        v, units = v / 1024, units[1:]
    return f"{n} B" if n < 1024 else f"{v:.2f} {units[0]}"


def seconds(ns):
    return f"{ns // 10**9}.{ns % 10**9:09d} s"


def quantiles(q):
    return " ".join(span(q[k]) if q["count"] else "-" for k in ("p50_ns", "p90_ns", "p99_ns", "max_ns"))


def totals(s, name):
    length = s["to_ns"] - s["from_ns"]
    yield f"{name}: execution trace, format go 1.{s['version']}" + ("" if s["whole"] else ", broken")
    yield f"{span(length)} long" + (f", from second {span(s['from_ns'])}" if s["from_ns"] else "")
    yield f"{s['events']} events"
    procs = s["gomaxprocs"]
    if procs:
        yield f"{procs['last']} GOMAXPROCS" + (", and others before" if procs["min"] < procs["max"] else "")
    yield f"{s['goroutines']} goroutines, at most {s['goroutines_peak']} at a time"
    yield f"{span(s['running_ns'])} of running: {s['running_ns'] / length:.2f} Ps on average"
    for key, what in (("heap_bytes", "heap"), ("heap_goal_bytes", "heap goal")):
        m = s[key]
        if m:
            yield f"{size(m['last'])} {what} at the end; {size(m['first'])} at the beginning, {size(m['min'])} to {size(m['max'])}"
    if s["cpu_samples"]:
        yield f"{s['cpu_samples']} CPU samples (--pprof cpu)"
    if s["logs"]:
        yield f"{s['logs']} log messages (--events)"


def groups(s):
    yield "Goroutines, by the function they start in"
    yield "goroutines existed running runnable syscall waiting"
    for g in s["groups"][:20]:
        times = " ".join(span(g[k + "_ns"]) for k in ("total", "running", "runnable", "syscall", "waiting"))
        yield f"{g['goroutines']} {times} {g['function'] or '(not told)'}"
        for w in [w for w in g["waits"] if w["ns"]][:4]:
            yield f"{span(w['ns'])} {w['reason'] or '(reason not told)'}, {w['count']} time" + "s" * (w["count"] != 1)
    if len(s["groups"]) > 20:
        yield f"... {len(s['groups']) - 20} more functions"


def latency(s):
    q = s["scheduler_latency"]
    if not q["count"]:
        return
    yield "Scheduler latency: from runnable to running"
    yield "times median 90 % 99 % longest"
    yield f"{q['count']} {quantiles(q)}"
    for x in q["longest"]:
        yield f"{span(x['ns'])} at {seconds(x['at_ns'])}: goroutine {x['goroutine']}, {x['function'] or '(not told)'}, {x['why']}"


def collections(s):
    yield "Garbage collection, and stops of the world"
    u = s["mutator_utilisation"]
    if u["mean"] is not None:
        yield f"{100 * u['mean']:.2f} % of its Ps the program had for itself"
        for w in u["windows"]:
            if w["min"] is not None:
                yield f"{100 * w['min']:.2f} % of them in the worst {span(w['window_ns'])}, at {seconds(w['at_ns'])}"
    yield from kinds(s["ranges"])


def kinds(k):
    if not k["kinds"]:
        return
    yield "times in all median 90 % 99 % longest"
    for q in k["kinds"][:15]:
        cut = f" ({q['began_earlier']} of them began earlier)" if q["began_earlier"] else ""
        more = f" ({q['unfinished']} more had not ended)" if q["unfinished"] else ""
        yield f"{q['count']} {span(q['total_ns']) if q['count'] else '-'} {quantiles(q)} {q['name'] or '(not told)'}{cut}{more}"
    if len(k["kinds"]) > 15:
        yield f"... {len(k['kinds']) - 15} more names"
    if k["others"]:
        yield f"{k['others']} of more names than there is room for"


def notes(s):
    for key in ("tasks", "regions"):
        if s[key]["kinds"]:
            yield "User " + key
            yield from kinds(s[key])


s = json.load(open(sys.argv[1]))
got = [" ".join(line.split()) for line in open(sys.argv[2]) if line.strip()]
want = [" ".join(line.split()) for part in (totals(s, s["file"]), groups(s), latency(s), collections(s), notes(s)) for line in part]
for i in range(max(len(got), len(want))):
    if got[i:i + 1] != want[i:i + 1]:
        print(f"line {i + 1} is {got[i:i + 1]}, not {want[i:i + 1]}")
        sys.exit(1)
print(f"{len(got)} lines")
