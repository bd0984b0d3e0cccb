#!/usr/bin/env python3
"""sparse.py IN OUT BYTES: a copy of an executable whose .strtab has so many bytes, nearly all a hole.

It runs as before: nothing of that section is loaded.
"""
import os
import shutil
import struct
import sys

src, out, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
shutil.copy(src, out)
with open(out, "r+b") as f:
    head = f.read(64)
    shoff, = struct.unpack_from("<Q", head, 40)
    shentsize, shnum, shstrndx = struct.unpack_from("<HHH", head, 58)
    f.seek(shoff)
    secs = [bytearray(f.read(shentsize)) for _ in range(shnum)]
    symtab = next(s for s in secs if struct.unpack_from("<I", s, 4)[0] == 2)
    at = struct.unpack_from("<I", symtab, 40)[0]
    sec = secs[at]
    was_off, was_size = struct.unpack_from("<QQ", sec, 24)
    f.seek(was_off)
    names = f.read(was_size)
    end = (os.path.getsize(out) + 4095) & ~4095
    f.seek(end)
    f.write(names)
    struct.pack_into("<QQ", sec, 24, end, size)
    f.seek(shoff + at * shentsize)
    f.write(sec)
    f.truncate(end + size)
