#!/usr/bin/env python3
"""Judges where probes would sit in a program of arm64 (tests/support/sites_main.c) by its words alone.

    sitejudge.py BINARY SITES

What it knows of instructions is the Arm Architecture Reference Manual, C4.1; what the kernel does not take is
arm_probe_decode_insn in arch/arm64/kernel/probes/decode-insn.c, Linux 5.10 to 7.2; a stack check is whatever goes to
a call of runtime.morestack. Prints what is wrong, and ends with 1; else one line that counts.
"""
import struct
import sys

NOP = 0xD503201F
wrong, counts = [], {}


def bad(what):
    if len(wrong) < 10:
        wrong.append(what)


class Image:
    def __init__(self, path):
        self.data = open(path, "rb").read()
        off, size, n = (struct.unpack_from("<Q", self.data, 32)[0],) + struct.unpack_from("<HH", self.data, 54)
        assert struct.unpack_from("<H", self.data, 18)[0] == 183, "not a program of arm64"
        self.loads = []
        for i in range(n):
            at = off + i * size
            kind, flags, where, addr = struct.unpack_from("<IIQQ", self.data, at)
            if kind == 1 and flags & 1:
                self.loads.append((addr, where, struct.unpack_from("<Q", self.data, at + 32)[0]))

    def words(self, lo, hi):
        for addr, where, size in self.loads:
            if addr <= lo and hi <= addr + size:
                n = (hi - lo) // 4
                return struct.unpack_from(f"<{n}I", self.data, where + lo - addr)
        raise ValueError(f"no code at {lo:#x}")


def signed(value, bits):
    return value - (1 << bits) if value >> (bits - 1) else value


def is_cond(w):
    """b.cond, cbz, cbnz, tbz, tbnz"""
    return w & 0xFF000010 == 0x54000000 or w & 0x7E000000 in (0x34000000, 0x36000000)


def target(w, pc):
    """Where a branch or call goes whose place the instruction has; None: it is another instruction."""
    if w & 0x7C000000 == 0x14000000:
        return pc + 4 * signed(w & 0x3FFFFFF, 26)
    if w & 0xFF000010 == 0x54000000 or w & 0x7E000000 == 0x34000000:
        return pc + 4 * signed(w >> 5 & 0x7FFFF, 19)
    if w & 0x7E000000 == 0x36000000:
        return pc + 4 * signed(w >> 5 & 0x3FFF, 14)
    return None


def is_call(w):
    return w & 0xFC000000 == 0x94000000 or w & 0xFFFFFC1F == 0xD63F0000


def is_exclusive(w):
    """ldxr, stxr and their like; not ldar, stlr and cas."""
    return w & 0x3F800000 == 0x08000000


def is_refused(w):
    if is_exclusive(w) or w & 0xFF000000 == 0xD4000000 or w & 0xFFFFFBFF == 0xD69F03E0:
        return True
    if w & 0xFFFFF01F == 0xD503201F:  # hints
        return w != NOP
    return w & 0xFFF8F01F == 0xD500401F or w <= 0xFFFF  # msr of an immediate, udf


def exclusive_regions(words):
    """From a load to the store that follows it, both of them in it: a list of pairs of indexes."""
    out, began = [], None
    for i, w in enumerate(words):
        if not is_exclusive(w):
            continue
        if w >> 22 & 1:
            began = i
        elif began is not None:
            out.append((began, i))
            began = None
    return out


class Function:
    def __init__(self, image, entry, end, name):
        self.entry, self.end, self.name = entry, end, name
        self.words = image.words(entry, end)
        self.regions = exclusive_regions(self.words)

    def pc(self, i):
        return self.entry + 4 * i

    def has(self, addr):
        return self.entry <= addr < self.end and addr % 4 == 0

    def at(self, addr):
        return self.words[(addr - self.entry) // 4]

    def calls(self, targets):
        return any(w & 0xFC000000 == 0x94000000 and target(w, self.pc(i)) in targets for i, w in enumerate(self.words))

    def grows_at(self, addr, targets):
        """The straight line from there meets a call of morestack before anything else."""
        while self.has(addr):
            w = self.at(addr)
            if w & 0xFC000000 == 0x94000000:
                return target(w, addr) in targets
            if target(w, addr) is not None:
                return False
            addr += 4
        return False

    def met_again(self, addr):
        """Does anything but a call go to the entry or to where the straight line goes on to addr?"""
        return any(
            not is_call(w) and (t := target(w, self.pc(i))) is not None and self.entry <= t <= addr
            for i, w in enumerate(self.words)
        )


def complain(f, kind, addr, why):
    bad(f"{f.name}: {kind} at {addr:#x}: {why}")


def judge_branch(f, addr, morestack):
    w, n = f.at(addr), (addr - f.entry) // 4
    if w & 0xFF00001F != 0x54000009:
        return complain(f, "branch", addr, f"{w:08x} is no b.ls")
    if not f.grows_at(target(w, addr), morestack):
        complain(f, "branch", addr, "it does not go where the stack grows")
    before = [x for x in f.words[:n] if x != NOP]
    # subs xzr,reg,reg (of any form), or subs xzr,reg,#constant
    if not before or before[-1] & 0xFF00001F not in (0xEB00001F, 0xF100001F):
        complain(f, "branch", addr, "nothing is compared right before it")
    for i, x in enumerate(f.words[:n]):
        t = target(x, f.pc(i))
        if is_call(x) or x & 0xFE1F0000 == 0xD61F0000 or (t is not None and t != target(w, addr)):
            complain(f, "branch", addr, f"{x:08x} before it leaves the straight line")


def judge(f, kind, addr, morestack):
    if not f.has(addr):
        return complain(f, kind, addr, "it is not in the function, or not on a word")
    w, at = f.at(addr), (addr - f.entry) // 4
    if any(lo < at <= hi for lo, hi in f.regions):
        complain(f, kind, addr, "it is between an exclusive load and its store")
    if is_refused(w):
        complain(f, kind, addr, f"the kernel refuses {w:08x}")
    if kind == "branch":
        return judge_branch(f, addr, morestack)
    if kind == "ret":
        if w & 0xFFFFFC1F != 0xD65F0000:
            complain(f, kind, addr, f"{w:08x} is no ret")
        return
    if f.calls(morestack):
        complain(f, kind, addr, "it has a stack check that was not found")
    if f.met_again(addr):
        complain(f, kind, addr, "control meets it a second time")
    if kind == "framed" and not is_cond(w):
        complain(f, kind, addr, f"{w:08x} is no branch with a condition")
    if kind == "entry" and addr != f.entry:
        complain(f, kind, addr, "that is not the entry")


def main():
    image, morestack, sites, used = Image(sys.argv[1]), set(), [], []
    for line in open(sys.argv[2]):
        kind, addr, entry, end, name = line.rstrip("\n").split(" ", 4)
        one = (kind, int(addr, 16), int(entry, 16), int(end, 16), name)
        (used if kind == "use" else sites).append(one)
        if name.startswith("runtime.morestack"):
            morestack.add(one[2])
    chosen, checked, unprobed, functions = {}, 0, [], {}
    for kind, addr, entry, end, name in sites:
        f = functions.get(entry) or functions.setdefault(entry, Function(image, entry, end - (end - entry) % 4, name))
        counts[kind] = counts.get(kind, 0) + 1
        chosen[addr] = kind
        if kind != "none":
            judge(f, kind, addr, morestack)
        if kind != "ret" and f.calls(morestack):
            checked += 1
            if kind != "branch":
                unprobed.append(name)
    for _, addr, _, _, name in used:
        if chosen.get(addr) not in ("branch", "framed", "entry"):
            bad(f"{name} is probed at {addr:#x}, which is no site")
    if not morestack or counts.get("branch", 0) < 1000 or len(used) < 2:
        bad(f"too little to judge: {counts}, {len(used)} in use")
    if unprobed:
        bad(f"{len(unprobed)} of {checked} stack checks were not found: {' '.join(unprobed[:5])}")
    print("; ".join(wrong) or ", ".join(f"{n} {k}" for k, n in sorted(counts.items())) + f", {len(used)} in use")
    return 1 if wrong else 0


sys.exit(main())
