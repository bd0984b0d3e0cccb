#!/bin/bash
# Stacks are taken out of the kernel's table while programs count into it, and none is counted twice
# or not at all: 300,000 hits of two threads, each of them a sample of the same stack, and some
# 25,000 takes meanwhile. Four runs: taking what is still being counted loses some in two of three.
. tests/support/lib.sh
need_root && need_bpf

for i in 1 2 3 4; do
	if said=$("$O/tests/drain" 2>&1); then
		pass "drain/$i"
	else
		fail "drain/$i" "$said"
	fi
done
finish
