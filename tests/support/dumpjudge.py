#!/usr/bin/env python3
"""dumpjudge.py DUMP FACTS SAID: is what dumpfacts SAID of a heap dump right?

It is judged by a second reader, below, which shares nothing with the first one, and by the FACTS
that the dumped program tells of itself (testdata/programs/heapworld). What is wrong is printed, a line
each; the exit status is then 1. What is right is counted on stderr.
"""
import collections
import sys

EOF, OBJECT, OTHER, TYPE, GOROUTINE, FRAME, PARAMS, FINALIZER, ITAB, THREAD, MEMSTATS, QUEUED, \
    DATA, BSS, DEFER, PANIC, MEMPROF, SAMPLE, STACKROOT, DATAROOT = range(20)
DRAFT = {1: OBJECT, 3: EOF, 4: STACKROOT, 5: DATAROOT, 6: OTHER, 7: TYPE, 8: GOROUTINE, 9: FRAME,
         10: PARAMS, 11: FINALIZER, 12: ITAB}
PTR, STRING, SLICE, IFACE, EFACE = 1, 2, 3, 4, 5


class Dump:
    """Every record of a dump, by the tables of the format."""

    def __init__(self, data):
        self.data, self.at = data, 0
        header = self.take(16)
        assert header[:4] == b"go1." and header[5:] == b" heap dump\n", header
        self.version = int(header[4:5])
        self.gccgo = False
        self.draft = self.version == 3 and data[16] == 10
        self.counts, self.fields = collections.Counter(), collections.Counter()
        self.objects, self.goroutines, self.finalizers = [], [], []
        self.types, self.toolchain, self.memstats = {}, "", None
        kind = None
        while kind != EOF:
            kind = self.number()
            kind = DRAFT[kind] if self.draft else kind
            self.counts[kind] += 1
            if kind != EOF:
                self.fields[kind] += len(self.record(kind) or ())

    def take(self, n):
        assert n <= len(self.data) - self.at, "the file ends at %d" % self.at
        self.at += n
        return self.data[self.at - n:self.at]

    def number(self):
        v = shift = 0
        while True:
            b = self.take(1)[0]
            v |= (b & 127) << shift
            shift += 7
            if b < 128:
                return v

    def numbers(self, n):
        return [self.number() for _ in range(n)]

    def text(self):
        return self.take(self.number()).decode("utf-8", "replace")

    def listed(self, length, behind=0):
        """Fields up to the zero: (kind, offset); of Go 1.4 kinds 2 and 3 are interfaces. Those of a
        frame may lie behind it."""
        out = []
        while True:
            kind = self.number()
            if not kind:
                return out
            if self.version == 4 and kind > 1:
                kind += 2
            at = self.number()
            assert at + self.ptr <= length + behind, "a field outside"
            if at + self.ptr <= length:
                out.append((kind, at))

    def typed(self, address, kind, length):
        """The fields of an object of Go 1.3."""
        if kind == 127 or (address and address not in self.types):
            return [(PTR, at) for at in range(0, length - self.ptr + 1, self.ptr)]
        if not address:
            return []
        size, fields = self.types[address]
        if kind == 0:
            starts = [0]
        else:
            first = self.hchan if kind == 2 else 0
            starts = range(first, length - size + 1, size) if fields else []
        return [(k, s + at) for s in starts for k, at in fields if s + at + self.ptr <= length]

    def record(self, kind):
        return getattr(self, "r%d" % kind)()

    def r6(self):
        self.big, self.ptr = self.numbers(2)
        if self.version == 3:
            self.hchan = self.number()
        self.numbers(2)
        if self.draft:
            return
        if self.version < 7:
            self.gccgo = not self.number()
        else:
            self.text()
        self.toolchain = self.text()
        self.number()

    def r1(self):
        addr = self.number()
        type_kind = self.numbers(2) if self.version == 3 else None
        length = self.number()
        self.take(length)
        fields = self.typed(*type_kind, length) if type_kind else self.listed(length)
        # Of an interface the second word is the pointer.
        places = tuple(at + (self.ptr if kind >= IFACE else 0) for kind, at in fields)
        self.objects.append((addr, length, places))
        return fields

    def r3(self):
        addr, size = self.numbers(2)
        self.text()
        pointer = self.number()
        if self.version != 3:
            return None
        if self.gccgo:
            if not pointer:
                self.types[addr] = (size, [])
            return None
        if self.draft:
            pairs = [self.numbers(2) for _ in range(self.number())]
            fields = [(k + 1, at) for k, at in pairs]
        else:
            fields = self.listed(size)
        self.types.setdefault(addr, (size, sorted(fields, key=lambda f: f[1])))
        return fields

    def r8(self):
        self.numbers(2)

    def r4(self):
        goroutine = self.numbers(5)[2:5:2] + [[]]
        self.numbers(3)
        goroutine.append(self.text())
        if not self.draft:
            self.numbers(4)
        self.goroutines.append(goroutine)

    def r5(self):
        if self.draft:
            self.numbers(4)
            self.text()
            return None
        self.numbers(3)
        length = self.number()
        self.take(length)
        self.numbers(3)
        self.goroutines[-1][2].append(self.text())
        return self.listed(length, 65536)

    def r12(self):
        self.number()
        length = self.number()
        self.take(length)
        return self.listed(length)

    r13 = r12

    def r2(self):
        self.text()
        self.number()

    def r7(self):
        self.finalizers.append(self.numbers(5)[0])

    def r11(self):
        self.numbers(5)

    def r9(self):
        self.numbers(3)

    r18 = r9

    def r19(self):
        self.numbers(2)

    def r10(self):
        m = self.numbers(24 + 256 + 1)
        self.memstats = m[11], m[0]

    def r14(self):
        self.numbers(7)

    def r15(self):
        self.numbers(6)

    def r16(self):
        for _ in range(self.numbers(3)[2]):
            self.text()
            self.text()
            self.number()
        self.numbers(2)

    def r17(self):
        self.numbers(2)


class Judge:
    def __init__(self, dump, facts, said):
        self.dump, self.facts, self.asked, self.wrong = dump, facts, 0, 0
        self.said = collections.defaultdict(list)
        for line in said:
            self.said[line.split()[0]].append(line.split()[1:])
        self.layouts = [tuple(map(int, s)) for s in self.said["layout"]]

    def same(self, what, got, want):
        self.asked += 1
        if got != want:
            self.wrong += 1
            if isinstance(got, list):
                got, want = [g for g in got if g not in want], [w for w in want if w not in got]
            print("%s: said %s, is %s" % (what, got, want))

    def pair(self, what):
        return tuple(map(int, self.said[what][0]))

    def reader(self):
        """The two readers agree."""
        d = self.dump
        self.same("the end", d.at, len(d.data))
        self.same("end", self.pair("end"), (d.at, d.at, 1))
        self.same("format", self.pair("format"), (d.version, d.big, d.ptr, int(d.draft)))
        self.same("records", sorted(tuple(map(int, r)) for r in self.said["records"]),
                  sorted((k, n, d.fields[k]) for k, n in d.counts.items()))
        count, size = self.pair("objects")
        if d.memstats:
            self.same("objects and bytes", (count, size), d.memstats)
            self.same("memstats", self.pair("memstats"), d.memstats)
        # The program collects its garbage before it dumps.
        reached = self.pair("reached")[0]
        self.same("reached: %d of %d" % (reached, size), size - size // 100 <= reached <= size, True)
        self.same("phantoms", self.pair("phantoms")[0], len(d.objects) - count)
        # A slot that is no object may seem to have pointers, too.
        more = collections.Counter((n, f) for _, n, f in d.objects if f)
        more.subtract({(s[0], s[3:]): s[1] for s in self.layouts if s[3:]})
        self.same("layouts: %s" % +more, sum(more.values()) <= len(d.objects) - count, True)
        self.same("layouts that are not there", {f: n for f, n in more.items() if n < 0}, {})
        if not d.draft:
            self.same("goroutines", sorted(self.said["goroutine"]),
                      sorted([str(i), str(state)] + names for i, state, names, _ in d.goroutines))

    def layout(self, size, offsets):
        """Objects of a type: count, reached, their size. The allocator rounds up; a header shifts."""
        shifted = tuple(8 + o for o in offsets) if size > 300 else offsets
        found = [s for s in self.layouts
                 if size <= s[0] <= size * 5 // 4 + 24 and s[3:] in (offsets, shifted)]
        return sum(s[1] for s in found), sum(s[2] for s in found), found[0][0] if found else 0

    def program(self):
        """The reader agrees with the program."""
        sizes = {}
        for line in self.facts:
            what, rest = line.split()[0], line.split()[1:]
            if what in ("layout", "garbage"):
                count, size, offsets = int(rest[1]), int(rest[2]), tuple(map(int, rest[3:]))
                got = self.layout(size, offsets)
                if rest[0] == "local" and self.pair("behind")[0] >= count:
                    got = got[0], got[1] or count, got[2]  # their only pointers are not in the dump
                self.same("%s: objects, and those reached" % rest[0], got[:2],
                          (count, count if what == "layout" else 0))
                sizes[rest[0]] = got[2], offsets
            elif what == "global":
                held = [int(h[1]) for h in self.said["global"] if h[0] == rest[1]]
                # The list and the tree hold nothing else; the others a table, too.
                most = {"list": 1, "root": 1}.get(rest[0], 6)
                at_least = int(rest[2])
                rounded = {"list": "node", "root": "tree"}.get(rest[0])
                if rounded:
                    of = [f for f in self.facts if f.startswith("layout %s " % rounded)][0]
                    at_least = int(of.split()[2]) * sizes[rounded][0]
                self.same("%s is told" % rest[0], len(held), 1)
                self.same("%s holds %s of %d" % (rest[0], held, at_least),
                          bool(held) and at_least <= held[0] <= most * at_least, True)
            elif what == "goroutines":
                got = [g for g in self.said["goroutine"] if rest[0] in g[2:]]
                self.same(line, len(got), int(rest[1]))
                self.same("%s: state" % rest[0], {g[1] for g in got}, {"4"})
            elif what == "panics":
                self.same(line, self.dump.counts[PANIC], int(rest[0]))
            elif what == "finalizers":
                of = [a for a, n, f in self.dump.objects
                      if n == sizes["final"][0] and f == sizes["final"][1]]
                self.same(line, len(set(of) & set(self.dump.finalizers)), int(rest[0]))
            elif what == "queued":
                got = [q for q in self.said["queued"] if int(q[1]) == sizes["queued"][0]]
                # The one that runs is there as well, and may be of the same size.
                more = len(got) - int(rest[0]) if sizes["queued"][0] == sizes["final"][0] else 0
                self.same(line, len(got) - (more == 1), int(rest[0]))


def main():
    with open(sys.argv[1], "rb") as f:
        dump = Dump(f.read())
    with open(sys.argv[2]) as facts, open(sys.argv[3]) as said:
        judge = Judge(dump, facts.read().splitlines(), said.read().splitlines())
    judge.reader()
    judge.program()
    print("%d comparisons" % judge.asked, file=sys.stderr)
    return 1 if judge.wrong or judge.asked < 7 else 0


if __name__ == "__main__":
    sys.exit(main())
