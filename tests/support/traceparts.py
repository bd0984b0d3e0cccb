#!/usr/bin/env python3
"""Do the parts of a trace add up to the whole?

    traceparts.py GOPROF-BPF TRACE N

What goroutines spent in each state and waiting for each reason, in N parts of equal length, one after another, is
what they spent in the whole, to the nanosecond. Prints what is wrong, and ends with 1; else one line that counts.
"""
import json
import subprocess
import sys


def spent(*time):
    out = subprocess.run([sys.argv[1], "trace", sys.argv[2], "--json", *time], stdout=subprocess.PIPE, check=True)
    s, sums = json.loads(out.stdout), {}
    for g in s["groups"]:
        for state in ("running", "runnable", "syscall"):
            sums[state] = sums.get(state, 0) + g[state + "_ns"]
        for w in g["waits"]:
            key = f"waiting: {w['reason']}"
            sums[key] = sums.get(key, 0) + w["ns"]
    return s["to_ns"], {k: v for k, v in sums.items() if v}


def main():
    end, whole = spent()
    n, parts = int(sys.argv[3]), {}
    edges = [end * i // n for i in range(n + 1)]
    for a, b in zip(edges, edges[1:]):
        for k, v in spent("--from", f"{a / 1e9:.9f}", "--to", f"{b / 1e9:.9f}")[1].items():
            parts[k] = parts.get(k, 0) + v
    wrong = [f"{k}: {parts.get(k)} ns in parts, {whole.get(k)} in the whole" for k in sorted(whole.keys() | parts.keys())
             if parts.get(k) != whole.get(k)]
    if wrong or len(whole) < 4:
        print("; ".join(wrong) or "nothing to compare")
        sys.exit(1)
    print(f"{n} parts, {len(whole)} sums")


main()
