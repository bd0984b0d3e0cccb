#!/usr/bin/env python3
"""Judges the judge: breaks each rule of perfettojudge.py once, in a trace that follows all.

    perfettodoctor.py TRACE

Prints what was not refused, or not for that reason, and ends with 1; else how many rules there are.
"""
import copy
import itertools
import pickle
import re
import sys
import tempfile
import zlib

import perfettojudge as judge

PACKETS = (2000, 10000, 50000)  # mostly a trace's first ones have all kinds
RULES = []


def rule(reason):
    """The packets that the function has changed are refused for that reason."""
    def add(change):
        RULES.append((change, reason))
        return change
    return add


def judged(packets):
    judge.wrong.clear()
    imp = judge.Importer()
    try:
        for p in packets:
            imp.packet(p)
        imp.finish()
    except (ValueError, IndexError, KeyError) as e:
        judge.bad(repr(e))
    return list(judge.wrong)


def first(packets, wanted):
    return next(i for i, p in enumerate(packets) if wanted(p))


def event(kind=None, **fields):
    """The first event of that type with such fields."""
    def wanted(p):
        e = p.get("event")
        return e and kind in (None, e["type"]) and all((f in e) == there for f, there in fields.items())
    return wanted


def told(kind):
    return lambda p: p.get("interned", {}).get(kind)


# ---- sequences and names ----


@rule("a packet without a sequence")
def no_sequence(ps):
    del ps[5]["sequence"]


@rule("the first packet does not clear")
def not_cleared(ps):
    ps[0]["flags"] = 2


@rule("was not told")
def cleared_in_between(ps):
    i = first(ps, told("names"))
    ps[first(ps[i + 1:], event(name=True, categories=True)) + i + 1]["flags"] = 1


@rule("its packet does not say so")
def flags_missing(ps):
    ps[first(ps, event(1))]["flags"] = 0


@rule("means two things")
def renamed(ps):
    i = first(ps, told("names"))
    iid = ps[i]["interned"]["names"][0]["iid"]
    ps[i + 1].setdefault("interned", {})["names"] = [{"iid": iid, "text": b"other"}]


@rule("a name without a number")
def unnumbered(ps):
    del ps[first(ps, told("names"))]["interned"]["names"][0]["iid"]


@rule("no UTF-8")
def no_text(ps):
    ps[first(ps, told("names"))]["interned"]["names"][0]["text"] = b"\xff"


def forget(kind, reason):
    @rule(reason)
    def not_told(ps):
        del ps[first(ps, told(kind))]["interned"][kind]
    not_told.__name__ += "_" + kind


for each in judge.Importer.KINDS:
    forget(each, f"{each} \\d+ was not told")

# ---- tracks ----

is_track = lambda p: "track" in p


@rule("on track \\d+, which was not told")
def no_descriptor(ps):
    e = ps[first(ps, event(1))]["event"]
    del ps[first(ps, lambda p: is_track(p) and p["track"]["uuid"] == e["track"])]


@rule("is below one that was not told")
def no_parent(ps):
    ps[first(ps, lambda p: is_track(p) and "parent" in p["track"])]["track"]["parent"] = 12345


@rule("is told twice")
def twice(ps):
    i = first(ps, is_track)
    ps.insert(i + 1, copy.deepcopy(ps[i]))
    ps[i + 1]["flags"] = 2


@rule("two tracks .* at one place")
def same_name(ps):
    i = first(ps, is_track)
    ps.insert(i + 1, copy.deepcopy(ps[i]))
    ps[i + 1]["flags"], ps[i + 1]["track"]["uuid"] = 2, 12345


@rule("has too many above it")
def deep(ps):
    for i in range(12):
        ps.insert(1 + i, {"sequence": 1, "flags": 2, "track": {
            "uuid": 100001 + i, "name": b"x", **({"parent": 100000 + i} if i else {})}})


@rule("a track without a number")
def track_unnumbered(ps):
    ps[first(ps, is_track)]["track"]["uuid"] = 0


@rule("a track without a name")
def track_unnamed(ps):
    ps[first(ps, is_track)]["track"]["name"] = b""


@rule("is below one that was not told")
def own_parent(ps):
    t = ps[first(ps, is_track)]["track"]
    t["parent"] = t["uuid"]


# ---- times ----


@rule("time goes back")
def backwards(ps):
    at = {}
    for p in filter(event(), ps):
        if p["timestamp"] > at.setdefault(p["event"]["track"], p["timestamp"]):
            p["timestamp"] = at[p["event"]["track"]] - 1 if at[p["event"]["track"]] else 0
            if p["timestamp"] < at[p["event"]["track"]]:
                return
        at[p["event"]["track"]] = p["timestamp"]


@rule("an event without a time")
def timeless(ps):
    del ps[first(ps, event(1))]["timestamp"]


@rule("an event without a time")
def negative(ps):
    ps[first(ps, event(3))]["timestamp"] = 1 << 63


# ---- slices, counters ----


@rule("an end without a begin")
def no_begin(ps):
    e = ps[first(ps, event(2))]["event"]
    ps[first(ps, lambda p: event(1)(p) and p["event"]["track"] == e["track"])]["event"]["type"] = 3


@rule("an event of type 5")
def unknown_type(ps):
    ps[first(ps, event(1))]["event"]["type"] = 5


@rule("no name on")
def unnamed(ps):
    del ps[first(ps, event(1, name=True))]["event"]["name"]


@rule("an event of type 4 on")
def no_counter(ps):
    del ps[first(ps, lambda p: is_track(p) and "counter" in p["track"])]["track"]["counter"]


@rule("an event of type 1 on")
def slice_on_counter(ps):
    e = ps[first(ps, event(4))]["event"]
    ps[first(ps, event(1))]["event"]["track"] = e["track"]
    t = next(p for p in ps if is_track(p) and p["track"]["uuid"] == e["track"])
    ps.remove(t)
    ps.insert(first(ps, is_track), dict(t, flags=2))


@rule("without a unit")
def no_unit(ps):
    ps[first(ps, lambda p: is_track(p) and "counter" in p["track"])]["track"]["counter"] = {}


@rule("a counter without a value")
def no_value(ps):
    del ps[first(ps, event(4))]["event"]["value"]


@rule("or a value elsewhere")
def value_elsewhere(ps):
    ps[first(ps, event(1))]["event"]["value"] = 1


@rule("a note with two values, or none")
def two_values(ps):
    n = ps[first(ps, event(notes=True))]["event"]["notes"][0]
    n["number"] = n["text"] = 1


# ---- flows ----


@rule("ends, and did not begin before")
def flow_to_nothing(ps):
    ps[first(ps, event(ending=True))]["event"]["ending"] = [12345]


@rule("begins twice")
def flow_twice(ps):
    i = first(ps, event(flows=True))
    other = first(ps[i + 1:], event(flows=True)) + i + 1
    ps[other]["event"]["flows"] = ps[i]["event"]["flows"]


@rule("a flow at the end of a slice")
def flow_from_end(ps):
    ps[first(ps, event(2))]["event"]["flows"] = [12345]


# ---- clocks ----

is_clock = lambda p: "clock_snapshot" in p


@rule("a snapshot of clocks")
def one_clock(ps):
    del ps[first(ps, is_clock)]["clock_snapshot"]["clocks"][1:]


@rule("a snapshot of clocks")
def clock_twice(ps):
    clocks = ps[first(ps, is_clock)]["clock_snapshot"]["clocks"]
    clocks.append(clocks[0])


@rule("a clock goes back")
def clock_back(ps):
    i = first(ps, is_clock)
    ps.insert(i + 1, copy.deepcopy(ps[i]))
    ps[i + 1]["flags"] = 2
    ps[i + 1]["clock_snapshot"]["clocks"][1]["time"] -= 1


# ---- bytes ----

WIRE = [
    ("has no field 99", b"\x98\x06\x01"),
    ("timestamp has wire type 2", b"\x42\x01\x01"),
    ("timestamp twice", b"\x40\x01\x40\x01"),
    ("is cut", b"\x5a\x7f\x01"),
    ("something beside compressed packets", b"\x40\x01\x92\x03" + (lambda z: bytes([len(z)]) + z)(zlib.compress(b""))),
    ("no packet among compressed ones", b"\x92\x03" + (lambda z: bytes([len(z)]) + z)(zlib.compress(b"\x12\x00"))),
]


def bytes_judged(packet):
    judge.wrong.clear()
    with tempfile.NamedTemporaryFile() as f:
        f.write(b"\x0a" + bytes([len(packet)]) + packet)
        f.flush()
        try:
            for _ in judge.packets(f.name):
                pass
        except (ValueError, IndexError, zlib.error) as e:
            judge.bad(repr(e))
    return list(judge.wrong)


def lacks(change, copies):
    """Is there nothing to break?"""
    try:
        change(pickle.loads(copies))
    except StopIteration:
        return True
    return False


def packets_with_all(path):
    for n in PACKETS:
        good = list(itertools.islice(judge.packets(path), n))
        copies = pickle.dumps(good)
        if not any(lacks(change, copies) for change, _ in RULES):
            break
    return good


def main():
    good = packets_with_all(sys.argv[1])
    failed, copies = judged(good), pickle.dumps(good)  # much faster than deepcopy()
    for change, reason in RULES:
        packets = pickle.loads(copies)
        try:
            change(packets)
        except StopIteration:
            failed.append(f"{change.__name__}: the trace has nothing of the kind")
            continue
        said = judged(packets)
        if not any(re.search(reason, s) for s in said):
            failed.append(f"{change.__name__} is not refused: {said[:2]}")
    for reason, packet in WIRE:
        said = bytes_judged(packet)
        if not any(reason in s for s in said):
            failed.append(f"{reason}: not refused: {said[:2]}")
    if failed:
        print("; ".join(failed))
        sys.exit(1)
    print(f"{len(RULES) + len(WIRE)} rules")


main()
