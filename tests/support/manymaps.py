#!/usr/bin/env python3
"""manymaps.py FILE PROCESSES MAPPINGS: so many processes map the file so many times each.

Prints a line when they have, and waits for the end of its input; then all of them end.
"""
import ctypes
import os
import sys

path, processes, mappings = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
fd = os.open(path, os.O_RDONLY)
size = os.fstat(fd).st_size
mmap = ctypes.CDLL(None).mmap
mmap.restype = ctypes.c_void_p
mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
PROT_READ, MAP_PRIVATE, MAP_FAILED = 1, 2, ctypes.c_void_p(-1).value
for _ in range(processes):
    out, to = os.pipe()
    if not os.fork():
        if all(mmap(None, size, PROT_READ, MAP_PRIVATE, fd, 0) != MAP_FAILED for _ in range(mappings)):
            os.write(to, b"x")
        os.read(0, 1)
        os._exit(0)
    os.close(to)
    if os.read(out, 1) != b"x":
        sys.exit("the file could not be mapped so often")
    os.close(out)
print("mapped", flush=True)
os.read(0, 1)
