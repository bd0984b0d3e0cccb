#!/usr/bin/env python3
"""Reads an HPROF file by the format's table, strictly, and gives the heap graph back as text.

usage: hprof.py FILE [OUT]	complains on stderr (exit status 1) of whatever a reader could stumble over;
				prints totals; OUT gets one line for each fact:
	object ADDRESS SIZE CLASS SITE	go objects: SITE is the trace's functions or -
	edge ADDRESS FIELD ADDRESS
	root KIND WHO ADDRESS		KIND: a class of statics, or frame; WHO: field, or thread name and frame
	thread NAME FUNCTION...
	bytes ADDRESS HEX
"""
import mmap
import struct
import sys

WIDTH = {2: 8, 4: 1, 5: 2, 6: 4, 7: 8, 8: 1, 9: 2, 10: 4, 11: 8}
NAMES = {1: "string", 2: "load class", 4: "frame", 5: "trace", 0x1C: "segment", 0x2C: "end"}
problems = []


def wrong(text):
    if len(problems) < 20:
        print(text, file=sys.stderr)
    problems.append(text)


class Class:
    def __init__(self, name, serial):
        self.name, self.serial = name, serial
        self.dumped = False
        self.all_fields = None


class Hprof:
    def __init__(self, data):
        self.d = data
        self.strings, self.classes, self.frames, self.traces = {}, {}, {}, {}
        self.by_serial = {}
        self.ids = set()
        self.roots, self.threads = [], {}
        self.instances, self.arrays = {}, {}
        self.seen = []
        self.phase = 0
        self.segments = self.largest = 0

    def unpack(self, fmt, at):
        return struct.unpack_from(">" + fmt, self.d, at)

    def new_id(self, i, what):
        if not i or i >= 1 << 63 or i in self.ids:
            wrong(f"{what}: the identifier {i:#x} is 0, negative or taken")
        self.ids.add(i)

    def string(self, i, what):
        if i not in self.strings:
            wrong(f"{what}: no string {i:#x} before it")
        return self.strings.get(i, "?")

    def read(self):
        if self.d[:19] != b"JAVA PROFILE 1.0.2\0" or self.unpack("I", 19)[0] != 8:
            raise SystemExit("no header")
        at, ended = 31, False
        while at < len(self.d):
            tag, _, n = self.unpack("BII", at)
            at += 9
            if ended or tag not in NAMES or at + n > len(self.d):
                raise SystemExit(f"{at - 9}: record {tag:#x} of {n} bytes")
            if self.segments and tag not in (0x1C, 0x2C):
                wrong(f"{at - 9}: {NAMES[tag]} after a segment")
            if tag == 0x1C:
                self.segments += 1
                self.largest = max(self.largest, n)
                self.segment(at, at + n)
            elif tag == 0x2C:
                ended = True
            else:
                self.record(tag, at, n)
            if not n and tag != 0x2C:
                wrong(f"{at - 9}: an empty {NAMES[tag]}")
            at += n
        if not ended:
            wrong("no end")

    def record(self, tag, at, n):
        if tag == 1:
            i = self.unpack("Q", at)[0]
            self.new_id(i, "string")
            self.strings[i] = bytes(self.d[at + 8:at + n]).decode("utf-8", "strict")
        elif tag == 2:
            serial, i, trace, name = self.unpack("IQIQ", at)
            self.new_id(i, "class")
            if not serial or serial in self.by_serial or n != 24:
                wrong(f"class {i:#x}: serial {serial}")
            self.classes[i] = self.by_serial[serial] = Class(self.string(name, "class"), serial)
        elif tag == 4:
            i, method, signature, file, serial, line = self.unpack("QQQQIi", at)
            self.new_id(i, "frame")
            if serial not in self.by_serial:
                wrong(f"frame {i:#x}: no class {serial}")
            self.string(signature, "frame")
            self.frames[i] = (self.by_serial[serial].name, self.string(method, "frame"),
                              self.string(file, "frame"), line)
        else:
            serial, thread, count = self.unpack("III", at)
            frames = self.unpack(f"{count}Q", at + 12)
            if not serial or serial in self.traces or n != 12 + 8 * count:
                wrong(f"trace {serial}")
            for f in frames:
                if f not in self.frames:
                    wrong(f"trace {serial}: no frame {f:#x}")
            self.traces[serial] = frames

    def order(self, tag, at):
        phase = 0 if tag not in (0x20, 0x21, 0x23) else 1 if tag == 0x20 else 2
        if phase < self.phase:
            wrong(f"{at}: sub-record {tag:#x} comes too late")
        self.phase = phase

    def segment(self, at, end):
        while at < end:
            tag = self.d[at]
            self.order(tag, at)
            at += 1
            if tag in (0xFF, 5):
                self.roots.append((tag, self.unpack("Q", at)[0], 0, 0))
                at += 8
            elif tag in (3, 8):
                self.roots.append((tag,) + self.unpack("QII", at))
                at += 16
            elif tag == 0x20:
                at = self.class_dump(at)
            elif tag == 0x21:
                i, trace, cls, n = self.unpack("QIQI", at)
                self.new_id(i, "instance")
                if cls not in self.classes or not self.classes[cls].dumped or n >= 1 << 31:
                    raise SystemExit(f"{at}: instance of {cls:#x}, {n} bytes")
                self.instances[i] = (cls, trace, at + 24, n)
                at += 24 + n
            elif tag == 0x23:
                i, trace, n, t = self.unpack("QIIB", at)
                self.new_id(i, "array")
                if n >= 1 << 31:
                    wrong(f"{at}: array of {n}")
                self.arrays[i] = (t, at + 17, n)
                at += 17 + n * WIDTH[t]
            else:
                raise SystemExit(f"{at - 1}: sub-record {tag:#x}")
        if at != end:
            raise SystemExit(f"{at}: a sub-record crosses the end of its segment at {end}")

    def class_dump(self, at):
        i, trace, up = self.unpack("QIQ", at)
        c = self.classes.get(i)
        if not c or c.dumped:
            raise SystemExit(f"{at}: class {i:#x} was not loaded, or comes twice")
        c.dumped, c.super = True, up
        c.size, constants, statics = self.unpack("IHH", at + 60)
        if constants or c.size >= 1 << 31:
            wrong(f"{at}: {constants} constants, size {c.size}")
        at += 68
        c.statics = []
        for _ in range(statics):
            name, t, to = self.unpack("QBQ", at)
            if t != 2:
                raise SystemExit(f"{at}: static of type {t}")
            c.statics.append((self.string(name, c.name), to))
            at += 17
        n = self.unpack("H", at)[0]
        at += 2
        c.fields = []
        for _ in range(n):
            name, t = self.unpack("QB", at)
            c.fields.append((self.string(name, c.name), t))
            at += 9
        return at

    # ---- the whole ----

    def fields_of(self, cls):
        c = self.classes[cls]
        if c.all_fields is None:
            up, c.all_fields, depth = c, [], 0
            while up:
                c.all_fields += [(name if not depth else f"+{depth}:{name}", t) for name, t in up.fields]
                if up.super and up.super not in self.classes:
                    raise SystemExit(f"class {c.name}: no superclass {up.super:#x}")
                up, depth = self.classes.get(up.super), depth + 1
        return c.all_fields

    def frame_text(self, f):
        cls, method, file, line = self.frames[f]
        name = method if cls == "(no package)" else f"{cls}.{method}"
        return name + (f"({file}:{line})" if file else "")

    def thread_name(self, i):
        def value(i, field):
            cls, _, at, n = self.instances[i]
            if self.classes[cls].name.startswith("java/lang/") and n == 8:
                return self.unpack("Q", at)[0]
            raise SystemExit(f"{i:#x} has no {field}")
        t, at, n = self.arrays[value(value(i, "name"), "value")]
        return bytes(self.d[at:at + 2 * n]).decode("utf-16-be") if t == 5 else "?"

    def check_classes(self):
        by_name = {}
        for i, c in self.classes.items():
            by_name.setdefault(c.name, (i, c))
            if not c.dumped and c.serial not in {0}:
                c.fields, c.statics, c.super, c.size = [], [], 0, 0
        for name in ("Object", "Class", "String", "Thread", "ref/Reference", "ref/SoftReference",
                     "ref/WeakReference", "ref/FinalReference", "ref/PhantomReference"):
            i, c = by_name.get("java/lang/" + name, (0, None))
            if not c or not c.dumped:
                wrong(f"no java/lang/{name}")
        if not by_name["java/lang/Object"][1].size:
            wrong("java.lang.Object has size 0")
        if ("referent", 2) not in by_name["java/lang/ref/Reference"][1].fields:
            wrong("no java.lang.ref.Reference.referent")
        for name in "[Z [C [F [D [B [S [I [J [Ljava/lang/Object;".split():
            if name not in by_name or not by_name[name][1].dumped:
                wrong(f"no class {name}")
        for c in self.classes.values():
            if c.dumped and c.name[0] == "[" and c.name not in (
                    "[Z", "[C", "[F", "[D", "[B", "[S", "[I", "[J", "[Ljava/lang/Object;"):
                wrong(f"class {c.name} looks like an array of Java's")

    def graph(self, out):
        go = lambda c: not c.name.startswith("java/lang/")
        objects = size = edges = helpers = 0
        traces = {}
        for i, (cls, trace, at, n) in self.instances.items():
            c = self.classes[cls]
            fields = self.fields_of(cls)
            if n != 8 * len(fields):
                raise SystemExit(f"{i:#x}: {n} bytes for {len(fields)} fields of {c.name}")
            if trace and trace not in self.traces:
                wrong(f"{i:#x}: no trace {trace}")
            if not go(c):
                helpers += 1
                continue
            objects += 1
            size += c.size
            if trace not in traces:
                traces[trace] = ",".join(self.frame_text(f) for f in self.traces.get(trace, ())) or "-"
            print(f"object {i:x} {c.size} {c.name.replace(' ', '_')} {traces[trace]}", file=out)
            for (name, t), to in zip(fields, self.unpack(f"{len(fields)}Q", at)):
                if to in self.arrays:
                    t, where, count = self.arrays[to]
                    print(f"bytes {i:x} {bytes(self.d[where:where + count]).hex()}", file=out)
                elif to:
                    edges += 1
                    if to not in self.instances:
                        wrong(f"{i:#x}: {name} leads to {to:#x}, where nothing is")
                    print(f"edge {i:x} {name.replace(' ', '_')} {to:x}", file=out)
        print(f"objects {objects} bytes {size} edges {edges} threads {len(self.threads)} "
              f"roots {len(self.roots)} helpers {helpers} segments {self.segments} "
              f"largest {self.largest}")

    def put_roots(self, out):
        sticky, last = set(), {}
        for tag, i, serial, more in self.roots:
            if tag == 8:
                if serial != len(self.threads) + 1 or more not in self.traces:
                    wrong(f"thread {serial} with trace {more}")
                self.threads[serial] = (self.thread_name(i), self.traces.get(more, ()))
        for tag, i, serial, more in self.roots:
            if tag == 5:
                if i not in self.classes:
                    wrong(f"sticky class {i:#x} is none")
                sticky.add(i)
            elif tag == 3:
                name, frames = self.threads.get(serial, ("?", ()))
                where = "-" if more == 0xFFFFFFFF else self.frame_text(frames[more])
                print(f"root frame {name.replace(' ', '_')}/{where} {i:x}", file=out)
            if tag != 5 and i not in self.instances:
                wrong(f"root {i:#x} is no instance")
        for i, c in self.classes.items():
            for name, to in c.statics:
                if i not in sticky:
                    wrong(f"class {c.name} with static fields is no root")
                print(f"root {c.name.replace(' ', '_')} {name.replace(' ', '_')} {to:x}", file=out)
        for name, frames in self.threads.values():
            print("thread", name.replace(" ", "_"), *(self.frame_text(f) for f in frames), file=out)


def main():
    with open(sys.argv[1], "rb") as f:
        h = Hprof(mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ))
    h.read()
    h.check_classes()
    with open(sys.argv[2] if len(sys.argv) > 2 else "/dev/null", "w") as out:
        h.put_roots(out)
        h.graph(out)
    sys.exit(1 if problems else 0)


main()
