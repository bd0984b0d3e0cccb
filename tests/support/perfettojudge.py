#!/usr/bin/env python3
"""Judges a Perfetto trace by the rules that Perfetto's importer has, and by the events it was made of.

    perfettojudge.py [-late LATE] TRACE [EVENTS [FROM [TO]]]

EVENTS: what --events said of the same trace up to the same time. FROM, in seconds: TRACE has only what is
later, and TO: it ends there, before the trace that it was made of. LATE: the events behind that.

Prints what is wrong, and ends with 1; else one line that counts what was looked at. Field numbers and
rules are those of protos/perfetto/trace/ and src/trace_processor/importers/ of the Perfetto project:
packets of a sequence need its incremental state, which begins with a packet that clears it; a name's
number is told in the packet that needs it first, or before, and never means two things; a track is
described before its events, below one that is described, and never as two; slices nest; counters have
tracks of their own, with a unit; a flow ends where it began before, and once. The importer sorts packets
by time, so time may go back from one track to another, but not on one: what is equal there stays in order.
perfettodoctor.py breaks each rule once.
"""
import re
import sys
import zlib

VARINT, FIXED64, BYTES = 0, 1, 2
wrong = []


def bad(what):
    if len(wrong) < 30:
        wrong.append(what)


def varint(b, i):
    v = shift = 0
    while True:
        c = b[i]
        i += 1
        v |= (c & 127) << shift
        if c < 128:
            return v, i
        shift += 7


# message -> field number -> (name, wire type, message or None, repeated)
SCHEMA = {
    "Trace": {1: ("packet", BYTES, "TracePacket", True)},
    "TracePacket": {
        6: ("clock_snapshot", BYTES, "ClockSnapshot", False),
        8: ("timestamp", VARINT, None, False),
        10: ("sequence", VARINT, None, False),
        11: ("event", BYTES, "TrackEvent", False),
        12: ("interned", BYTES, "InternedData", False),
        13: ("flags", VARINT, None, False),
        50: ("compressed", BYTES, None, False),
        60: ("track", BYTES, "TrackDescriptor", False),
    },
    "ClockSnapshot": {1: ("clocks", BYTES, "Clock", True)},
    "Clock": {1: ("id", VARINT, None, False), 2: ("time", VARINT, None, False)},
    "TrackDescriptor": {
        1: ("uuid", VARINT, None, False),
        2: ("name", BYTES, None, False),
        5: ("parent", VARINT, None, False),
        8: ("counter", BYTES, "CounterDescriptor", False),
        11: ("ordering", VARINT, None, False),
        12: ("rank", VARINT, None, False),
    },
    "CounterDescriptor": {3: ("unit", VARINT, None, False)},
    "TrackEvent": {
        3: ("categories", VARINT, None, True),
        4: ("notes", BYTES, "DebugAnnotation", True),
        9: ("type", VARINT, None, False),
        10: ("name", VARINT, None, False),
        11: ("track", VARINT, None, False),
        30: ("value", VARINT, None, False),
        47: ("flows", FIXED64, None, True),
        48: ("ending", FIXED64, None, True),
    },
    "DebugAnnotation": {
        1: ("name", VARINT, None, False),
        4: ("number", VARINT, None, False),
        17: ("text", VARINT, None, False),
    },
    "InternedData": {
        1: ("categories", BYTES, "Interned", True),
        2: ("names", BYTES, "Interned", True),
        3: ("note_names", BYTES, "Interned", True),
        29: ("note_texts", BYTES, "Interned", True),
    },
    "Interned": {1: ("iid", VARINT, None, False), 2: ("text", BYTES, None, False)},
}


def parse(kind, b):
    out, i, fields = {}, 0, SCHEMA[kind]
    while i < len(b):
        key, i = varint(b, i)
        number, wire = key >> 3, key & 7
        if number not in fields:
            raise ValueError(f"{kind} has no field {number}")
        name, want, message, repeated = fields[number]
        if wire != want:
            raise ValueError(f"{kind}.{name} has wire type {wire}")
        if wire == VARINT:
            v, i = varint(b, i)
        elif wire == FIXED64:
            v, i = int.from_bytes(b[i:i + 8], "little"), i + 8
        else:
            n, i = varint(b, i)
            if i + n > len(b):
                raise ValueError(f"{kind}.{name} is cut")
            v, i = b[i:i + n], i + n
            if message:
                v = parse(message, v)
        if repeated:
            out.setdefault(name, []).append(v)
        elif name in out:
            raise ValueError(f"{kind}.{name} twice")
        else:
            out[name] = v
    return out


def packets(path):
    """One by one: a trace is large."""
    data = open(path, "rb").read()
    i = 0
    while i < len(data):
        key, i = varint(data, i)
        if key != 0x0a:
            raise ValueError(f"offset {i}: no packet")
        n, i = varint(data, i)
        p, i = parse("TracePacket", data[i:i + n]), i + n
        if "compressed" not in p:
            yield p
            continue
        if n >= 512 << 10:
            bad(f"{n} bytes of compressed packets")
        if len(p) != 1:
            bad("something beside compressed packets")
        inner, k = zlib.decompress(p["compressed"]), 0
        while k < len(inner):
            key, k = varint(inner, k)
            n, k = varint(inner, k)
            q, k = parse("TracePacket", inner[k:k + n]), k + n
            if key != 0x0a or "compressed" in q:
                bad("no packet among compressed ones")
            yield q


def text(b):
    try:
        return b.decode()
    except UnicodeDecodeError:
        bad(f"no UTF-8: {b!r}")
        return repr(b)


class Importer:
    KINDS = ("categories", "names", "note_names", "note_texts")

    def __init__(self):
        self.tables = None  # of the incremental state; None: it is not valid
        self.ever = {k: {} for k in self.KINDS}
        self.tracks, self.events, self.clocks, self.last = {}, [], [], {}
        self.n = 0

    def packet(self, p):
        self.n += 1
        if not p.get("sequence"):
            bad("a packet without a sequence")
        flags = p.get("flags", 0)
        if flags & 1:
            self.tables = {k: {} for k in self.KINDS}
        if (self.n == 1) != bool(flags & 1) and self.n == 1:
            bad("the first packet does not clear the incremental state")
        if flags & 2 and self.tables is None:
            bad("a packet needs the incremental state, which is not valid")
        self.intern(p.get("interned", {}))
        if "clock_snapshot" in p:
            self.clock(p["clock_snapshot"]["clocks"])
        if "track" in p:
            self.track(p["track"])
        if "event" in p:
            if not flags & 3:
                bad("an event refers to numbers, and its packet does not say so")
            self.event(p)

    def intern(self, data):
        for kind in self.KINDS:
            for e in data.get(kind, []):
                if not e.get("iid"):
                    bad("a name without a number")
                elif self.ever[kind].setdefault(e["iid"], e["text"]) != e["text"]:
                    bad(f"{kind} {e['iid']} means two things")
                else:
                    self.tables[kind][e["iid"]] = text(e["text"])

    def get(self, kind, iid):
        if self.tables is None or iid not in self.tables[kind]:
            bad(f"{kind} {iid} was not told")
            return "?"
        return self.tables[kind][iid]

    def clock(self, clocks):
        ids = [c["id"] for c in clocks]
        if sorted(ids) != sorted(set(ids)) or 6 not in ids or len(ids) < 2:
            bad(f"a snapshot of clocks {ids}")
        now = {c["id"]: c["time"] for c in clocks}
        for old in self.clocks[-1:]:
            if any(now[i] < old[i] for i in now):
                bad("a clock goes back")
        self.clocks.append(now)

    def track(self, t):
        t = dict(t, name=text(t["name"]))
        parent = t.get("parent", 0)
        if not t.get("uuid"):
            bad("a track without a number")
        if parent and parent not in self.tracks:
            bad(f"track {t['name']!r} is below one that was not told")
        if t["uuid"] in self.tracks:
            bad(f"track {t['name']!r} is told twice")
        depth, at = 1, parent
        while at and depth <= 10:
            depth, at = depth + 1, self.tracks.get(at, {}).get("parent", 0)
        if depth > 10:
            bad(f"track {t['name']!r} has too many above it")
        if not t["name"]:
            bad("a track without a name")
        if "counter" in t and t["counter"].get("unit") not in (2, 3):
            bad(f"counter {t['name']!r} without a unit")
        self.tracks[t["uuid"]] = t

    def event(self, p):
        e = p["event"]
        kind, track = e.get("type"), self.tracks.get(e.get("track"))
        if "timestamp" not in p or p["timestamp"] >= 1 << 63:
            bad("an event without a time")
        if p.get("timestamp", 0) < self.last.get(e.get("track"), 0):
            bad(f"time goes back on track {e.get('track')}")
        self.last[e.get("track")] = p.get("timestamp", 0)
        if track is None:
            bad(f"an event on track {e.get('track')}, which was not told")
            return
        if kind not in (1, 2, 3, 4):
            bad(f"an event of type {kind}")
        if (kind == 4) != ("counter" in track):
            bad(f"an event of type {kind} on {track['name']!r}")
        if (kind == 4) != ("value" in e):
            bad("a counter without a value, or a value elsewhere")
        name = self.get("names", e["name"]) if "name" in e else None
        if kind in (1, 3):
            if not name:
                bad(f"no name on {track['name']!r}")
            for c in e.get("categories", [0]):
                self.get("categories", c)
        notes = {}
        for n in e.get("notes", []):
            if ("number" in n) == ("text" in n):
                bad("a note with two values, or none")
            value = n["number"] if "number" in n else self.get("note_texts", n.get("text"))
            notes[self.get("note_names", n["name"])] = value
        self.events.append((p["timestamp"], len(self.events), kind, e["track"], name,
                            e.get("value"), e.get("flows", []), e.get("ending", []), notes))

    def finish(self):
        """As the importer does it: all events in the order of their times."""
        names = {}
        for t in self.tracks.values():
            if names.setdefault((t.get("parent", 0), t["name"]), t["uuid"]) != t["uuid"]:
                bad(f"two tracks {t['name']!r} at one place")
        self.events.sort(key=lambda e: e[:2])
        open_, self.slices, flows, done, self.nflows = {}, [], {}, set(), 0
        for when, _, kind, track, name, _, out, into, notes in self.events:
            for f in out:
                if f in flows or f in done or not f:
                    bad(f"flow {f} begins twice")
                flows[f] = (when, track)
            for f in into:
                if f not in flows:
                    bad(f"flow {f} ends, and did not begin before")
                    continue
                flows.pop(f)
                done.add(f)
                self.nflows += 1
            if (out or into) and kind not in (1, 3):
                bad("a flow at the end of a slice")
            if kind == 1:
                open_.setdefault(track, []).append((when, name, notes))
            elif kind == 2:
                if not open_.get(track):
                    bad(f"an end without a begin on {self.tracks[track]['name']!r} at {when}")
                    continue
                began, of, what = open_[track].pop()
                self.slices.append((track, of, began, when, what))
        self.left = sum(map(len, open_.values()))
        for track, still in open_.items():
            for began, of, what in still:
                self.slices.append((track, of, began, None, what))


# ---- what the events say ----

LINE = re.compile(r"(\d+)\.(\d{9}) M=(\S+) P=(\S+) G=(\S+) (\S+)(.*)")
MOVE = re.compile(r" id=(\d+) (\w+)->(\w+)(?: reason=\"((?:[^\"\\]|\\.)*)\")?")
NAMED = re.compile(r' (name|type)="((?:[^"\\]|\\.)*)"')


def read_events(path):
    for line in open(path, errors="replace"):
        m = LINE.match(line)
        if not m:
            raise ValueError(f"no event: {line[:100]}")
        yield (int(m[1]) * 10**9 + int(m[2]), *m.groups()[2:6], m[7])


def slices_of_events(path, late):
    """What there must be: (group, id, name, begin, end) for each slice."""
    states, out, start, opened, counts, threads = {}, [], None, {}, {}, {}
    for when, m, p, g, kind, rest in read_events(path):
        start = when if start is None else start
        counts[kind] = counts.get(kind, 0) + 1
        if kind == "goroutine":
            gid, old, new, reason = MOVE.match(rest).groups()
            if gid in states:
                if old == new and states[gid][1] == new:
                    continue
                since, state, name, at_p, at_m = states.pop(gid)
                out.append(("G", gid, name, since, when))
                if at_p != "-":
                    out.append(("P", at_p, gid, since, when))
                if at_m != "-":
                    out.append(("M", at_m, gid, since, when))
            if new != "none":
                since = start if old == "undetermined" else when
                on = new in ("running", "syscall")
                states[gid] = (since, new, reason if new == "waiting" and reason else new,
                               p if new == "running" else "-", m if on else "-")
                if on and m != "-":  # a thread has one goroutine: the next one ends what it had
                    other = threads.get(m)
                    if other in states and other != gid and states[other][4] == m:
                        out.append(("M", m, other, states[other][0], when))
                        states[other] = states[other][:4] + ("-",)
                    threads[m] = gid
        elif kind in ("region-begin", "task-begin"):
            what = "R" if kind[0] == "r" else "T"
            gid = g if what == "R" else re.match(r" task=(\d+)", rest)[1]
            opened.setdefault((what, gid), []).append((when, NAMED.search(rest)[2]))
        elif kind in ("region-end", "task-end"):
            what = "R" if kind[0] == "r" else "T"
            gid = g if what == "R" else re.match(r" task=(\d+)", rest)[1]
            if opened.get((what, gid)):
                since, name = opened[(what, gid)].pop()
                out.append((what, gid, name, since, when))
    for when, m, p, g, kind, rest in read_events(late) if late else []:
        if kind == "sync":
            break
        if kind == "goroutine":  # so it was all the time, where it is not known
            gid, old, new, reason = MOVE.match(rest).groups()
            if gid not in states and old == "undetermined":
                states[gid] = (start, new, reason if new == "waiting" and reason else new, "-", "-")
    for gid, (since, _, name, at_p, at_m) in states.items():
        out.append(("G", gid, name, since, None))
        if at_p != "-":
            out.append(("P", at_p, gid, since, None))
        if at_m != "-":
            out.append(("M", at_m, gid, since, None))
    for (what, gid), still in opened.items():
        out += [(what, gid, name, since, None) for since, name in still]
    return out, counts


def compare(imp, path, begin, late):
    want, counts = slices_of_events(path, late)
    if begin:
        want = [s[:3] + (max(s[3], begin), s[4]) for s in want if s[4] is None or s[4] >= begin]
    got = []
    for track, name, began, ended, notes in imp.slices:
        t = imp.tracks[track]
        above = imp.tracks.get(t.get("parent"), {})
        if m := re.match(r"G (\d+)", t["name"]):
            got.append(("G", m[1], name, began, ended))
        elif m := re.match(r"(P|thread) (\d+)", t["name"]):
            got.append(("P" if m[1] == "P" else "M", m[2], str(notes.get("goroutine")), began, ended))
        elif m := re.match(r"task (\d+)", t["name"]):
            got.append(("T", m[1], name, began, ended))
        elif t["name"] == "regions":
            got.append(("R", re.match(r"G (\d+)", above["name"])[1], name, began, ended))
    # Where a P or a thread was used before it is not known how long its first goroutine had been there.
    first = lambda s: s if s[0] not in "PM" else s[:3] + s[4:]
    missing = set(map(first, want)) - set(map(first, got))
    extra = set(map(first, got)) - set(map(first, want))
    for s in sorted(missing, key=str)[:5]:
        bad(f"missing: {s}")
    for s in sorted(extra, key=str)[:5]:
        bad(f"not in the events: {s}")
    if len(want) != len(got):
        bad(f"{len(got)} slices, and not {len(want)}")
    if not want or not counts.get("goroutine"):
        bad("nothing to compare")
    return len(want)


def main():
    late = None
    if sys.argv[1] == "-late":
        late, sys.argv[1:] = sys.argv[2], sys.argv[3:]
    imp = Importer()
    try:
        for p in packets(sys.argv[1]):
            imp.packet(p)
    except (ValueError, IndexError, KeyError, zlib.error) as e:
        bad(f"packet {imp.n}: {e!r}")
    imp.finish()
    if not imp.slices:
        bad("no slices")
    compared = 0
    if len(sys.argv) > 2:
        begin = round(float(sys.argv[3]) * 1e9) if len(sys.argv) > 3 else 0
        compared = compare(imp, sys.argv[2], begin, late)
    if len(sys.argv) > 4 and max(imp.last.values()) != round(float(sys.argv[4]) * 1e9):
        bad(f"it ends at {max(imp.last.values())}, not at {sys.argv[4]} s")
    if wrong:
        print("; ".join(wrong))
        sys.exit(1)
    print(f"{imp.n} packets, {len(imp.tracks)} tracks, {len(imp.slices)} slices ({imp.left} open), "
          f"{imp.nflows} flows, {compared} slices compared")


if __name__ == "__main__":
    main()
