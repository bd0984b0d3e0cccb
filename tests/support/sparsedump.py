#!/usr/bin/env python3
"""sparsedump.py OUT GB: a heap dump of so many GB that takes no room on the disk.

A list whose nodes hold an object of 1 GiB each; these are holes in the file. A global holds the list,
whose first node comes last. Prints "OBJECTS BYTES": what there is, and all of it can be reached.
"""
import sys

GIB = 1 << 30


def number(*values):
    out = bytearray()
    for v in values:
        while v >= 128:
            out.append(v & 127 | 128)
            v >>= 7
        out.append(v)
    return bytes(out)


def text(s):
    return number(len(s)) + s.encode()


def words(*values):
    return number(8 * len(values)) + b"".join(v.to_bytes(8, "little") for v in values)


def main():
    count = int(sys.argv[2])
    first, large = 0xc000000000, 0xd000000000
    with open(sys.argv[1], "wb") as f:
        f.write(b"go1.7 heap dump\n" + number(6, 0, 8, first, 1 << 47) + text("amd64") + text("go1.21.13") + number(1))
        for i in range(count):
            f.write(number(1, large + i * GIB, GIB))
            f.seek(GIB, 1)
            f.write(number(0))
            # The node before it in the file is the next one of the list.
            f.write(number(1, first + 16 * i) + words(first + 16 * (i - 1) if i else 0, large + i * GIB))
            f.write(number(1, 0, 1, 8, 0))
        f.write(number(12, 0x600000) + words(0, first + 16 * (count - 1)) + number(1, 8, 0))
        stats = [0] * 281
        stats[0], stats[11] = count * (GIB + 16), 2 * count
        f.write(number(10, *stats) + number(0))
    print(2 * count, count * (GIB + 16))


main()
