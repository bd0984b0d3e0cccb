#!/usr/bin/env python3
"""Judges a part of a trace of version 1 by what Go's reader (testdata/tracejudge/v1.go) says of it and of the whole.

    cutjudge.py WHOLE PART FROM TO

FROM, TO: ns. Each event of that time must be in the part with the same words, place and stacks, at the same time
after its beginning, and nothing else but the states at its beginning: of every goroutine that is there, one that
the whole has too. Prints what is wrong, and ends with 1; else how many events those were.
"""
import re
import sys

# Rounded twice, from ticks of the whole and of the part.
ROUNDING = 2
STATE = re.compile(r'goroutine (\d+) \S+>(\w+)')
# No event: a system call that has not blocked by the end of the part is one that never does.
RETURN = re.compile(r"goroutine \d+ syscall>running")


def lines(path):
    said = open(path).read().splitlines()
    if said[-1:] != ["end"]:
        print(f"{path}: Go says {said[-1:]}")
        sys.exit(1)
    return [(int(at), rest) for at, rest in (line.split(" ", 1) for line in said[:-1])]


def plain(rest):
    """Of what begins a task only its begin tells, of a P that does not run its next start, and of a goroutine that
    waits for the network, by which Go's reader moves its wakeup to a P that there is not, its wait."""
    rest = re.sub(r"^M\S+ P\S+ (G\S+ goroutine \d+ waiting>runnable)", r"\1", rest)
    rest = re.sub(r'(task-end \d+) -?\d+ "[^"]*"', r"\1", rest)
    return re.sub(r"(proc \d+) idle>", r"\1 ?>", rest)


def states(events, until):
    """Goroutines at that time. One in a system call that does not block counts as running."""
    at = {}
    for when, rest in events:
        if when < until and (m := STATE.search(rest)):
            at[m[1]] = m[2]
    return {g: s for g, s in at.items() if s != "none"}


def main():
    whole, part = lines(sys.argv[1]), lines(sys.argv[2])
    begin, end = int(sys.argv[3]), int(sys.argv[4])
    told = [e for e in part if e[0] == 0] if begin else []
    want = sorted((plain(r), t) for t, r in whole if begin <= t <= end and not RETURN.search(r))
    got = sorted((plain(r), t) for t, r in part[len(told):] if not RETURN.search(r))
    # The part begins when it was asked to, or a tick before its first event.
    if not want or not got:
        print(f"{len(got)} events, not {len(want)}")
        sys.exit(1)
    first = min(t for _, t in want)
    shift = first - min(t for _, t in got)
    if not begin - 100 <= shift <= first:
        print(f"it begins at {shift}, not at {begin}")
        sys.exit(1)
    if [r for r, _ in want] != [r for r, _ in got]:
        a, b = set(r for r, _ in want), set(r for r, _ in got)
        print(f"{len(got)} events, not {len(want)}; missing {sorted(a - b)[:3]}, too many {sorted(b - a)[:3]}")
        sys.exit(1)
    for (rest, t), (_, u) in zip(want, got):
        if abs(u + shift - t) > ROUNDING:
            print(f"at {u}, not {t - shift}: {rest}")
            sys.exit(1)
    was, now = states(whole, begin), states(told, 1)
    if begin and was != now:
        print(f"it begins with {set(now.items()) - set(was.items())}, not {set(was.items()) - set(now.items())}")
        sys.exit(1)
    print(len(want))


main()
