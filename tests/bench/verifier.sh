#!/bin/bash
# What loading our BPF programs takes: instructions that the kernel's verifier goes through, the
# states that it keeps and compares (these are what costs), and the CPU time of loading the object.
# Wanted: at most 50 ms for each.
. tests/support/lib.sh
need_root && need_bpf

echo "Verifying and loading BPF programs, $(uname -r)"
uptime
printf '%-13s %7s %7s %7s %7s\n' program insns states peak load/ms
if said=$("$O/tests/verifier" 2>&1); then
	echo "$said"
	slow=$(awk '$5 > 50 { print $1 " " $5 " ms" }' <<<"$said")
	if [ -z "$slow" ]; then pass verifier; else fail verifier "$slow"; fi
else
	fail verifier "$said"
fi
finish
