#!/usr/bin/env python3
"""Judges the summary of a trace by its events.

    tracejudge.py [-waits LABELS LATE] SUMMARY.json EVENTS [FROM]

Both of the same trace, up to the same time; EVENTS from its beginning on. FROM, in seconds: the
summary is of what is later. LABELS: what `pprofcheck labels` says of the wait
profile of the same, with --to; LATE: the events behind that. Everything is computed anew and in the plainest way: quantiles from sorted
lists, the utilisation from windows that begin or end at each change. Prints what is wrong, and ends
with 1; else one line that counts.
"""
import bisect
import json
import re
import sys

LINE = re.compile(r"(\d+)\.(\d{9}) M=(\S+) P=(\S+) G=(\S+) (\S+)(.*)")
MOVE = re.compile(r" id=(\d+) (\w+)->(\w+)")
TEXT = r'="((?:[^"\\]|\\.)*)"'
REASON = re.compile(r" reason" + TEXT)
OWN = re.compile(r" its-stack" + TEXT)
STACK = re.compile(r" stack" + TEXT)
NAMED = re.compile(r" (?:name|type|label)" + TEXT)
wrong, looked = [], 0


def bad(what):
    if len(wrong) < 20:
        wrong.append(what)


def same(what, got, want):
    global looked
    looked += 1
    if got != want:
        bad(f"{what}: {got}, not {want}")


def outermost(rest):
    """The function of the last frame of a quoted stack; None: there is none, or it is cut."""
    m = rest and rest.split(" < ")
    return m[-1].rsplit(" ", 1)[0] if m and len(m) < 128 and not m[-1].startswith("0x") else None


class Events:
    def __init__(self, path, begin):
        self.begin, self.now, self.n = begin, 0, 0
        self.live, self.dead, self.latency, self.peak = {}, [], [], 0
        self.open, self.kinds = {}, {"ranges": {}, "tasks": {}, "regions": {}}
        self.procs, self.stopped, self.doing, self.on = 0, 0, {}, {}
        self.steps, self.waits = [], {}
        self.samples = self.logs = 0
        for line in open(path, errors="replace"):
            m = LINE.match(line)
            self.one(int(m[1]) * 10**9 + int(m[2]), m[3], m[4], m[5], m[6], m[7])

    def one(self, when, m, p, g, kind, rest):
        before = when < self.begin
        self.now = max(when, self.begin)
        self.n += not before
        self.samples += kind == "cpu-sample" and not before
        self.logs += kind == "log" and not before
        if kind == "goroutine":
            self.move(p, g, rest, before)
        elif kind.startswith(("range", "task", "region")):
            self.stretch(g, kind, rest, before)
        self.collector(p, g, kind, rest)

    def move(self, p, g, rest, before):
        gid, old, new = MOVE.match(rest).groups()
        reason = REASON.search(rest)
        own, stack = OWN.search(rest), STACK.search(rest)
        unmet = gid not in self.live and old == "undetermined"
        at = self.live.setdefault(gid, {"name": None, "spent": {}, "state": None, "since": self.now,
                                        "born": self.now, "made": old == "none" and not before})
        at["name"] = at["name"] or outermost(own[1] if own else stack[1] if stack and g == gid else "")
        if at["state"] is None and old == "undetermined":
            at["since"] = at["born"] = self.begin
        if at["state"] is not None:
            if old == new:
                return
            self.waited(at, new)
            spent = at["spent"].setdefault(at["state"], [0, 0])
            spent[0] += not before
            spent[1] += self.now - at["since"]
            if at["state"] == "runnable" and new == "running" and not before and at["why"]:
                self.latency.append(self.now - at["since"])
        if old != "undetermined":
            at["since"] = self.now
        at["why"], at["told"] = old != "undetermined", self.now
        at["state"] = new if new != "waiting" else "waiting:" + (reason[1] if reason else "")
        if new == "none":
            del self.live[gid]
        self.peak = len(self.live) if before else self.peak + 1 if unmet else max(self.peak, len(self.live))
        if new == "none":
            if not before:
                self.dead.append(at)
            for key in [k for k in self.open if k[:2] == ("region", gid)]:
                for name, _, _ in self.open.pop(key):
                    self.kinds["regions"].setdefault(name, [[], 0])[1] += 1

    def late(self, path):
        """What the first generation tells behind the time that is asked for: so it was all the time."""
        for line in open(path, errors="replace"):
            _, _, _, p, g, kind, rest = LINE.match(line).groups()
            if kind == "sync":
                return
            if kind == "range-active":
                self.stretch(g, kind, rest, True)
            if kind != "goroutine":
                continue
            gid, old, new = MOVE.match(rest).groups()
            reason, own, stack = REASON.search(rest), OWN.search(rest), STACK.search(rest)
            if gid not in self.live and old == "undetermined":
                self.live[gid] = {"name": None, "spent": {}, "since": self.begin, "born": self.begin, "made": False,
                                  "why": False, "told": self.now,
                                  "state": new if new != "waiting" else "waiting:" + (reason[1] if reason else "")}
                self.peak += 1
            if at := self.live.get(gid):
                at["name"] = at["name"] or outermost(own[1] if own else stack[1] if stack and g == gid else "")

    def waited(self, at, new):
        """In the wait profile; what was runnable and did not run is how old traces begin."""
        able = at["state"] == "runnable"
        if able and new in ("running", None) or at["state"][:7] == "waiting":
            key = "runnable" if able else at["state"][8:] or "not told"
            self.waits[key] = self.waits.get(key, 0) + self.now - at["told"]

    def stretch(self, g, kind, rest, before):
        what, which = kind.split("-")
        name = NAMED.search(rest)[1]
        of = re.match(r" task=(\d+)", rest)[1] if what == "task" else g
        if what == "range":
            of = re.search(r" of=\S+(?: id=\S+)?", rest)[0] + name
        open_ = self.open.setdefault((what, of), [])
        if which == "begin":
            open_.append((name, self.now, before))
        elif which == "active":
            if not open_:
                open_.append((name, self.begin, True))
        else:
            name, since, _ = open_.pop() if open_ else (name, self.begin, True)
            if not before:
                self.kinds[what + "s"].setdefault(name, [[], 0])[0].append(self.now - since)

    # ---- the share of the Ps ----

    def run(self, gid, doing, p):
        was = self.doing.get(gid, set())
        if p != "-" and ("runs" in was) != ("runs" in doing):
            self.on[p] = max(0, self.on.get(p, 0) + (1 if "runs" in doing else -1))
        self.doing[gid] = doing
        if not doing & {"works", "assists"}:
            self.doing.pop(gid)

    def collector(self, p, g, kind, rest):
        if kind == "metric" and "gomaxprocs" in rest:
            self.procs = int(rest.split("value=")[1].split()[0]) or self.procs
        name = NAMED.search(rest)
        name = name[1] if name else ""
        if kind.startswith("range"):
            if name.startswith("stop-the-world"):
                self.stopped += {"range-begin": 1, "range-end": -1}.get(kind, 0)
                self.stopped = max(0, self.stopped)
            elif name.startswith("GC mark assist"):
                of = re.search(r" id=(\S+)", rest)[1]
                doing = self.doing.get(of, set()) | ({"runs"} if of == g else set())
                doing = doing - {"assists"} if kind == "range-end" else doing | {"assists"}
                self.run(of, doing if doing & {"works", "assists"} else set(), p)
        elif kind == "label" and name.startswith("GC (") and name != "GC (idle)":
            of = re.search(r" id=(\S+)", rest)[1]
            self.run(of, self.doing.get(of, set()) | {"works", "runs"}, p)
        elif kind == "goroutine":
            gid, _, new = MOVE.match(rest).groups()
            if gid in self.doing:
                doing = set(self.doing[gid])
                if new in ("running", "syscall"):
                    doing.add("runs")
                else:
                    doing = set() if new == "none" else doing & {"assists"}
                self.run(gid, doing, p)
        if self.procs:
            busy = sum(1 for n in self.on.values() if n)
            lost = self.procs if self.stopped else min(busy, self.procs)
            util = 1 - lost / self.procs
            if not self.steps or self.steps[-1][1] != util:
                self.steps.append((self.now, util))


def utilisation(steps, end, window):
    """The least mean over a window, of those that begin or end at a change."""
    times = [t for t, _ in steps] + [end]
    sums = [0.0]
    for i, (t, u) in enumerate(steps):
        sums.append(sums[-1] + u * (times[i + 1] - t))

    def upto(t):
        i = min(bisect.bisect_right(times, t) - 1, len(steps) - 1)
        return sums[i] + steps[i][1] * (t - times[i])

    if not steps or end - times[0] < window:
        return None
    starts = [t for t in times] + [t - window for t in times]
    return min((upto(t + window) - upto(t)) / window
               for t in starts if times[0] <= t and t + window <= end)


def quantiles(what, got, values):
    values.sort()
    same(f"{what}: count", got["count"], len(values))
    same(f"{what}: total", got["total_ns"], sum(values))
    if not values:
        return
    same(f"{what}: shortest", got["min_ns"], values[0])
    same(f"{what}: longest", got["max_ns"], values[-1])
    for key, p in (("p50_ns", 50), ("p90_ns", 90), ("p99_ns", 99)):
        want = values[max(0, -(-len(values) * p // 100) - 1)]
        if abs(got[key] - want) > want / 128 + 1:
            bad(f"{what}: {key} is {got[key]}, not {want}")


def groups(s, ev):
    want = {}
    for at in ev.dead + list(ev.live.values()):
        if at["state"] != "none":
            spent = at["spent"].setdefault(at["state"], [0, 0])
            spent[0] += 1
            spent[1] += ev.now - at["since"]
        w = want.setdefault(at["name"], {"goroutines": 0, "created": 0, "spent": {}})
        w["goroutines"] += 1
        w["created"] += at["made"]
        for state, (n, ns) in at["spent"].items():
            sum_ = w["spent"].setdefault(state, [0, 0])
            sum_[0] += n
            sum_[1] += ns
    same("functions", {g["function"] for g in s["groups"]}, set(want))
    for g in s["groups"]:
        w = want.get(g["function"])
        if not w:
            continue
        name = g["function"]
        same(f"{name}: goroutines", g["goroutines"], w["goroutines"])
        same(f"{name}: created", g["created"], w["created"])
        for state in ("running", "runnable", "syscall"):
            same(f"{name}: {state}", g[state + "_ns"], w["spent"].get(state, [0, 0])[1])
        waits = {k[8:] or None: tuple(v) for k, v in w["spent"].items() if k.startswith("waiting:")}
        same(f"{name}: waits", {x["reason"]: (x["count"], x["ns"]) for x in g["waits"]}, waits)
        total = g["running_ns"] + g["runnable_ns"] + g["syscall_ns"] + g["waiting_ns"]
        same(f"{name}: the parts", total, g["total_ns"])


def waits(ev, path):
    got = {}
    for line in open(path):
        value, labels = line.rstrip("\n").split(" ", 1)
        got[re.fullmatch(r'{reason="(.*)"}', labels)[1]] = int(value)
    if ev.last < ev.now:  # the trace goes on
        for at in ev.live.values():
            ev.waited(at, None)
    same("the wait profile", got, {k: v for k, v in ev.waits.items() if v})


def main():
    labels = late = None
    if sys.argv[1] == "-waits":
        labels, late, sys.argv[1:] = sys.argv[2], sys.argv[3], sys.argv[4:]
    s = json.load(open(sys.argv[1]))
    begin = round(float(sys.argv[3]) * 1e9) if len(sys.argv) > 3 else 0
    ev = Events(sys.argv[2], begin)
    ev.last, ev.now = ev.now, s["to_ns"]
    if late:
        ev.late(late)
    same("from", s["from_ns"], begin)
    same("events", s["events"], ev.n)
    same("most goroutines", s["goroutines_peak"], ev.peak)
    same("CPU samples", s["cpu_samples"], ev.samples)
    same("logs", s["logs"], ev.logs)
    if labels:
        waits(ev, labels)
    groups(s, ev)
    quantiles("latency", s["scheduler_latency"], ev.latency)
    same("longest latencies", [x["ns"] for x in s["scheduler_latency"]["longest"]],
         sorted(ev.latency, reverse=True)[:10])
    for (what, _), still in ev.open.items():
        for name, _, _ in still:
            ev.kinds[what + "s"].setdefault(name, [[], 0])[1] += 1
    for what, kinds in ev.kinds.items():
        same(what, {k["name"] or "" for k in s[what]["kinds"]}, set(kinds))
        for k in s[what]["kinds"]:
            quantiles(f"{what} {k['name']}", k, kinds.get(k["name"] or "", [[], 0])[0])
            same(f"{what} {k['name']}: unfinished", k["unfinished"], kinds.get(k["name"] or "", [[], 0])[1])
    for w in s["mutator_utilisation"]["windows"]:
        want = utilisation(ev.steps, ev.now, w["window_ns"])
        same(f"window {w['window_ns']} told", w["min"] is None, want is None)
        if want is not None and w["min"] is not None and abs(w["min"] - want) > 1e-6:
            bad(f"worst {w['window_ns']} ns: {w['min']}, not {want}")
    if wrong:
        print("; ".join(wrong))
        sys.exit(1)
    print(f"{ev.n} events, {looked} numbers")


main()
