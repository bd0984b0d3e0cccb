#!/usr/bin/env python3
"""mkdump13.py OUT go13|draft|gccgo [BIG_ENDIAN PTRSIZE]: a heap dump as Go 1.3 wrote them.

No toolchain of Go 1.3 can be had, and the draft of its format was never released, so such dumps are
made here, from the tables of the formats. What is in them is told on stdout, as testdata/programs/heapworld
does it; "garbage NAME ..." is a layout whose objects nothing holds.
"""
import sys

PTR, STRING, SLICE, IFACE, EFACE = 1, 2, 3, 4, 5
NODE, PAIR, LINK, NUMBER, WIDE = 0x500200, 0x500300, 0x500380, 0x500400, 0x500480
ITAB_LINK, ITAB_NUMBER = 0x500100, 0x500110
# What a record's number is: in all releases, and in the draft.
NUMBERS = {"object": (1, 1), "eof": (0, 3), "other": (2, 6), "type": (3, 7), "goroutine": (4, 8),
           "frame": (5, 9), "params": (6, 10), "finalizer": (7, 11), "itab": (8, 12), "thread": (9,),
           "memstats": (10,), "queued": (11,), "data": (12,), "bss": (13,), "defer": (14,),
           "panic": (15,), "memprof": (16,), "sample": (17,), "stackroot": (0, 4), "dataroot": (0, 5)}
NODES, PAIRS, WIDES = 300, 40, 25


class Writer:
    def __init__(self, how, big, ptr):
        self.how, self.big, self.w = how, big, ptr
        self.draft = how == "draft"
        self.out = bytearray(b"go1.3 heap dump\n")
        self.hchan = 12 * ptr
        self.next = 0xc208000000 if ptr == 8 else 0x18400000
        self.heap = self.next
        self.count = self.size = 0
        self.roots = []

    def number(self, *values):
        for v in values:
            while v >= 128:
                self.out.append(v & 127 | 128)
                v >>= 7
            self.out.append(v)

    def text(self, s):
        self.number(len(s))
        self.out += s.encode()

    def kind(self, name):
        self.number(NUMBERS[name][self.draft])

    def words(self, words):
        data = b"".join(v.to_bytes(self.w, "big" if self.big else "little") for v in words)
        self.number(len(data))
        self.out += data

    def type(self, addr, words, name, pointer, fields):
        """fields: (kind, offset in words)"""
        self.kind("type")
        self.number(addr, words * self.w)
        self.text(name)
        self.number(pointer)
        if self.how == "gccgo":
            return
        if self.draft:
            self.number(len(fields))
        for kind, at in fields:
            self.number(kind - self.draft, at * self.w)
        if not self.draft:
            self.number(0)

    def place(self, words):
        """Where the next object will be."""
        addr = self.next
        self.next += words * self.w
        return addr

    def object(self, addr, type_, kind, words):
        self.kind("object")
        self.number(addr, type_, kind)
        self.words(words)
        self.count += 1
        self.size += len(words) * self.w

    # ---- the world ----

    def params(self):
        self.kind("params")
        self.number(self.big, self.w, self.hchan, self.heap, self.heap + (1 << 20))
        if self.draft:
            return
        self.number(0 if self.how == "gccgo" else 54)
        self.text("")
        self.number(4)

    def types(self):
        # Fields come in any order.
        self.type(NODE, 9, "main.node", 1, [(EFACE, 5), (PTR, 0), (STRING, 1), (IFACE, 7), (SLICE, 3)])
        self.type(PAIR, 3, "main.pair", 1, [(PTR, 1), (PTR, 2)])
        self.type(LINK, 1, "*main.node", 1, [(PTR, 0)])
        self.type(NUMBER, 1, "int", 0, [])
        self.type(WIDE, 20, "main.wide", 1, [(PTR, 11)])

    def itabs(self):
        if self.how == "gccgo":
            return
        self.kind("itab")
        self.number(ITAB_LINK, 1)
        self.kind("itab")
        self.number(ITAB_NUMBER, 0)

    def nodes(self):
        """A list. Each node holds a text and an array without pointers; by interfaces every second
        holds a wide one, and every third has a number there that is the address of garbage."""
        at = [self.place(9) for _ in range(NODES)]
        texts = [self.place(2) for _ in range(NODES)]
        wides = [self.place(20) for _ in range(WIDES)]
        trap = self.place(13)
        for i in range(NODES):
            if i % 50 == 0:
                self.types()  # the runtime forgets which it has told
            words = [at[i + 1] if i + 1 < NODES else 0, texts[i], 3, texts[i] + self.w, 1]
            words += [NUMBER, trap] if i % 3 == 0 else [WIDE, wides[i % WIDES]]
            words += [ITAB_NUMBER, trap] if i % 3 == 1 else [0, 0]
            self.object(at[i], NODE, 0, words)
        for t in texts:
            self.object(t, 0, 0, [trap, 1])
        for i, t in enumerate(wides):
            self.object(t, WIDE, 0, [trap] * 11 + [wides[i]] + [trap] * 8)
        self.object(trap, 0, 127, [7] * 13)
        return at[0]

    def pairs(self):
        """An array of links to pairs, a channel with pairs in it, and an array of pairs."""
        w = self.w
        links = [self.place(3) for _ in range(PAIRS)]
        array, chan, many = self.place(PAIRS), self.place(self.hchan // w + 3 * 5), self.place(3 * 7 + 1)
        for p in links:
            self.object(p, PAIR, 0, [1, links[0], links[1]])
        self.object(array, LINK, 1, links)
        self.object(chan, PAIR, 2, [5] * (self.hchan // w) + [2, array, many] * 5)
        self.object(many, PAIR, 1, [3, links[2], links[3]] * 7 + [links[4]])
        return chan

    def scanned(self):
        """One that is scanned as a whole, and holds another one by its third word."""
        inner, outer = self.place(14), self.place(15)
        self.object(inner, 0, 127, [1] * 14)
        self.object(outer, 0, 127, [0, 1, inner + 8] + [0] * 12)
        return outer

    def stack(self, goid, names, roots):
        """Frames from the innermost one on, which holds the roots."""
        sp = self.heap + (8 << 20) + goid * 65536
        self.kind("goroutine")
        self.number(self.heap + goid * 512, sp, goid, 0x401000, 4, 0, 0, 0)
        self.text("chan receive")
        if not self.draft:
            self.number(0, 0, 0, 0)
        if self.how == "gccgo":
            return
        for depth, name in enumerate(names):
            at = sp + depth * 256
            words = [1] + (roots if depth == 0 else [2])
            if self.draft:
                for i, root in enumerate(roots if depth == 0 else []):
                    self.kind("stackroot")
                    self.number(at + i * self.w, root, at)
            elif depth == 1:
                self.types()  # may come between frames
            self.kind("frame")
            if self.draft:
                self.number(at, at + 256 if depth + 1 < len(names) else 0)
            else:
                self.number(at, depth, at - 256 if depth else 0)
                self.words(words)
            self.number(0x402000, 0x402010)
            if not self.draft:
                self.number(0x402014)
            self.text(name)
            if not self.draft:
                for i in range(len(roots) if depth == 0 else 0):
                    self.number(PTR, (1 + i) * self.w)
                self.number(0)

    def segment(self, name, addr, words, fields):
        if self.draft:
            for _, at in fields:
                self.kind("dataroot")
                self.number(addr + at * self.w, words[at])
            return
        self.kind(name)
        self.number(addr)
        self.words(words)
        for kind, at in fields:
            self.number(kind, at * self.w)
        self.number(0)

    def other(self, name, addr):
        self.kind("other")
        self.text(name)
        self.number(addr)

    def end(self):
        if not self.draft:
            self.kind("memstats")
            self.number(*[self.size if i == 0 else self.count if i == 11 else i for i in range(281)])
            self.kind("memprof")
            self.number(0x7f0000, 48, 1)
            self.text("main.main")
            self.text("/src/main.go")
            self.number(7, 3, 1)
            self.kind("sample")
            self.number(self.heap, 0x7f0000)
        self.kind("eof")


def main():
    how = sys.argv[2]
    w = Writer(how, int((sys.argv + [0] * 4)[3]), int((sys.argv[4:] + [8])[0]))
    word = w.w
    w.params()
    w.itabs()
    w.types()
    head, chan, scanned = w.nodes(), w.pairs(), w.scanned()
    lone, quiet = w.place(16), w.place(17)
    w.object(lone, 0, 127, [0] * 16)
    w.object(quiet, 0, 127, [0] * 17)
    w.stack(1, ["main.wait", "main.main", "runtime.main"], [lone])
    w.stack(2, ["main.wait", "runtime.goexit"], [chan])
    if how == "gccgo":
        w.other("a root", head)
        w.other("a root", chan)
        w.other("a root", lone)
    else:
        w.segment("data", 0x600000, [0, head], [(PTR, 1)])
        w.segment("bss", 0x700000, [0, 0, 0], [])
    w.other("runtime type info", scanned)
    w.kind("finalizer")
    w.number(head, 0, 0x403000, 0x500480, 0x500200)
    if not w.draft:
        w.kind("queued")
        w.number(quiet, 0, 0x403000, 0x500480, 0x500200)
    w.end()
    with open(sys.argv[1], "wb") as f:
        f.write(w.out)

    def layout(what, name, count, words, *offsets):
        print(what, name, count, words * word, *[o * word for o in offsets])

    if how == "gccgo":  # what has a type is scanned as a whole
        layout("layout", "node", NODES, 9, *range(9))
        return
    layout("layout", "node", NODES, 9, 0, 1, 3, 6, 8)
    layout("layout", "wide", WIDES, 20, 11)
    layout("layout", "pair", PAIRS, 3, 1, 2)
    layout("layout", "links", 1, PAIRS, *range(PAIRS))
    layout("layout", "channel", 1, 27, *[12 + 3 * i + k for i in range(5) for k in (1, 2)])
    layout("layout", "pairs", 1, 22, *[3 * i + k for i in range(7) for k in (1, 2)])
    layout("layout", "inner", 1, 14, *range(14))
    layout("layout", "outer", 1, 15, *range(15))
    layout("layout", "lone", 1, 16, *range(16))
    layout("garbage" if w.draft else "layout", "quiet", 1, 17, *range(17))
    layout("garbage", "trap", 1, 13, *range(13))
    held = (NODES * 9 + NODES * 2 + WIDES * 20) * word
    print("global head", 0x600000 + word, held)
    print("goroutines main.wait 2")


main()
