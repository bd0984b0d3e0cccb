#!/usr/bin/env python3
"""Judges what the profiles of a trace say of themselves, by its summary and its events.

    profilehead.py SUMMARY.json EVENTS PROFILE...

Of the same time of one trace; EVENTS from its beginning on. A profile has the time that the trace's clock
snapshot ties it to (none: the trace has none), its length and period, and comments. One of type cpu has
10 ms for each sample. Prints what is wrong, and ends with 1.
"""
import gzip
import json
import re
import sys


def varint(b, at):
    v = shift = 0
    while True:
        v |= (b[at] & 0x7F) << shift
        shift += 7
        at += 1
        if b[at - 1] < 0x80:
            return v, at


def fields(b):
    """Source: github.com/google/pprof/proto/profile.proto; it has no other wire types."""
    at = 0
    while at < len(b):
        key, at = varint(b, at)
        v, at = varint(b, at)
        if key & 7 == 2:
            v, at = b[at:at + v], at + v
        yield key >> 3, v


def numbers(b):
    at = 0
    while at < len(b):
        v, at = varint(b, at)
        yield v


def head(path):
    p = {"strings": [], "comments": [], "sums": [], "time": 0, "length": 0, "period": 0}
    for field, v in fields(gzip.open(path).read()):
        if field == 2:
            p["sums"].append([x for f, w in fields(v) if f == 2 for x in numbers(w)])
        elif field == 6:
            p["strings"].append(v.decode())
        elif field == 13:
            p["comments"] += numbers(v) if isinstance(v, bytes) else [v]
        elif field == 11:
            p["type"] = dict(fields(v))[1]
        elif field in (9, 10, 12):
            p[{9: "time", 10: "length", 12: "period"}[field]] = v
    p["comments"] = [p["strings"][i] for i in p["comments"]]
    p["cpu"] = p["strings"][p["type"]] == "cpu"
    p["sums"] = [sum(column) for column in zip(*p["sums"])]
    return p


def main():
    s, first = json.load(open(sys.argv[1])), open(sys.argv[2]).readline()
    wrong = []

    def same(what, got, want):
        if got != want:
            wrong.append(f"{what} is {got}, not {want}")

    unix = re.search(r" unix=(\d+)", first)
    same("a start by the clock", s["start_unix_ns"] is not None, unix is not None)
    if unix and abs(s["start_unix_ns"] - int(unix[1])) > 10**8:
        wrong.append(f"it starts at {s['start_unix_ns']}, and the snapshot is of {unix[1]}")
    length = s["to_ns"] - s["from_ns"]
    for path in sys.argv[3:]:
        p = head(path)
        same(f"{path}: time", p["time"], s["start_unix_ns"] + s["from_ns"] if unix else 0)
        same(f"{path}: length", p["length"], length)
        same(f"{path}: period", p["period"], 10**7 if p["cpu"] else 1)
        at = "{}.{:09d}".format
        for text in (f"source: execution trace, format go 1.{s['version']}",
                     f"window: {at(*divmod(length, 10**9))} s, from {at(*divmod(s['from_ns'], 10**9))} s on"):
            same(f"{path}: comment '{text}'", text in p["comments"], True)
        if p["cpu"] and p["sums"]:
            same(f"{path}: CPU time", p["sums"][1], p["sums"][0] * 10**7)
    if wrong:
        print("; ".join(wrong))
        sys.exit(1)


main()
