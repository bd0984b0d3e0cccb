#!/usr/bin/env python3
"""Compares what is held with what is said of it.

usage: hprofjudge.py FACTS [VISUALVM [netbeans]]

FACTS: what hprof.py and heapedges print. What each object retains, by dominators that are found here in
another way than the program's, must be what "retained" lines say. VISUALVM: what VisualVm.java prints; there
garbage retains nothing, but nobody else retains what it points to, and the nearest root is as far as it is by a search from all roots.
netbeans: NetBeans' library printed it. It takes each object for 16 bytes more. It may count an object twice that another
one points to twice, and a frame's root with the one object that points to it; what retains such pointers is
compared by its size and distance alone.
Complains on stdout; prints to stderr what was compared.
"""
import sys

said = 0


def wrong(text):
    global said
    said += 1
    if said < 8:
        print(text)


class Heap:
    def __init__(self, path):
        self.size, self.to, self.frames, self.statics = {}, {}, [], []
        self.retained, self.threads = {}, set()
        self.unsure = set()  # for NetBeans: they point to one object twice, to a root alone, or retain what does
        for line in open(path):
            w = line.split()
            if w[0] == "object":
                self.size[w[1]] = int(w[2])
            elif w[0] == "edge":
                to = self.to.setdefault(w[1], [])
                if w[3] in to:
                    self.unsure.add(w[1])
                to.append(w[3])
            elif w[0] == "root":
                (self.frames if w[1] == "frame" else self.statics).append(w[3])
            elif w[0] == "retained":
                self.retained[w[1]] = int(w[2])
            elif w[0] == "thread":
                self.threads.add(line.strip())
        self.unsure |= self.alone(set(self.frames))

    def alone(self, roots):
        """The objects that are the only ones to point to one of the roots."""
        by = {}
        for n, to in self.to.items():
            for m in roots.intersection(to):
                by.setdefault(m, set()).add(n)
        for m in self.statics:
            by.pop(m, None)
        return {n for ns in by.values() if len(ns) == 1 for n in ns}

    def garbage(self):
        seen = set(self.frames + self.statics)
        todo = list(seen)
        while todo:
            for m in self.to.get(todo.pop(), ()):
                if m not in seen:
                    seen.add(m)
                    todo.append(m)
        return [n for n in self.size if n not in seen]

    def order(self, roots):
        """Numbers in postorder; the root of all is None."""
        index, seen, stack = {}, {None}, [(None, iter(roots))]
        while stack:
            node, more = stack[-1]
            for m in more:
                if m not in seen:
                    seen.add(m)
                    stack.append((m, iter(self.to.get(m, ()))))
                    break
            else:
                index[node] = len(index)
                stack.pop()
        return index

    def dominated(self, roots):
        """Bytes that each object retains. Cooper, Harvey and Kennedy: repeat until nothing changes."""
        index = self.order(roots)
        nodes = sorted(index, key=index.get, reverse=True)
        above = {}
        for n in nodes:
            for m in roots if n is None else self.to.get(n, ()):
                above.setdefault(m, []).append(n)
        up, changed = {None: None}, True
        while changed:
            changed = False
            for n in nodes[1:]:
                known = [p for p in above[n] if p in up]
                new = known[0]
                for p in known[1:]:
                    new = self.join(up, index, p, new)
                if n not in up or up[n] != new:
                    up[n] = new
                    changed = True
        bytes_ = {n: self.size.get(n, 0) for n in nodes}
        for n in reversed(nodes[1:]):
            bytes_[up[n]] += bytes_[n]
            if n in self.unsure:
                self.unsure.add(up[n])
        return bytes_

    @staticmethod
    def join(up, index, a, b):
        while a != b:
            while index[a] < index[b]:
                a = up[a]
            while index[b] < index[a]:
                b = up[b]
        return a

    def distances(self):
        """Steps to a root: frames' locals are roots, static fields a step away from one."""
        found, level, n = {}, list(dict.fromkeys(self.frames)), 0
        while level or not n:
            for m in level:
                found[m] = n
            n += 1
            level = dict.fromkeys(m for at in level for m in self.to.get(at, ()) if m not in found)
            if n == 1:
                level.update(dict.fromkeys(m for m in self.statics if m not in found))
            level = list(level)
        return found


def compare(what, want, got):
    if want.keys() != got.keys():
        wrong(f"{what}: of {len(got)} objects, not {len(want)}")
    for n in want:
        if got.get(n) != want[n]:
            wrong(f"{what} of {n}: {got.get(n)}, not {want[n]}")


def visualvm(h, path, netbeans):
    if netbeans:
        h.size = {n: size + 16 for n, size in h.size.items()}
    got = {"size": {}, "retained": {}, "distance": {}}
    threads = set()
    for line in open(path):
        w = line.split()
        if w[0] in got:
            got[w[0]][w[1]] = int(w[2])
        elif w[0] == "thread":
            threads.add(line.strip())
        elif w[1:] != [str(len(h.size)), str(sum(h.size.values()))]:
            wrong(f"VisualVM: {line.strip()}, not {len(h.size)} {sum(h.size.values())}")
    garbage = h.garbage()
    bytes_ = h.dominated(h.frames + h.statics + garbage)
    bytes_.update(dict.fromkeys(garbage, 0))
    near = h.distances()
    compare("VisualVM: size", h.size, got["size"])
    unsure = h.unsure - {None} if netbeans else ()
    for n in unsure:
        bytes_[n] = got["retained"].get(n)
    compare("VisualVM: retained", {n: bytes_[n] for n in h.size}, got["retained"])
    compare("VisualVM: distance", {n: near.get(n, -1) for n in h.size}, got["distance"])
    # Its names have dots for slashes.
    for t in {t.replace("/", ".") for t in h.threads} ^ {t.replace("/", ".") for t in threads}:
        wrong(f"VisualVM: {t}")
    print(f"{len(threads)} stacks, {len(garbage)} objects of garbage", file=sys.stderr)
    if netbeans:
        print(f"{len(unsure)} not by what they retain", file=sys.stderr)


def main():
    h = Heap(sys.argv[1])
    bytes_ = h.dominated(h.frames + h.statics)
    compare("retained", {n: bytes_.get(n, 0) for n in h.size}, h.retained)
    print(f"{len(h.size)} objects", file=sys.stderr)
    if len(sys.argv) > 2:
        visualvm(h, sys.argv[2], sys.argv[3:] == ["netbeans"])
    sys.exit(1 if said else 0)


main()
