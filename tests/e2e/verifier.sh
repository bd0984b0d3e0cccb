#!/bin/bash
# The verifier's work is most of a short profile's CPU time. It is the same on one kernel each time:
# so a walk that is verified in each turn of a loop (100,000 instructions) is caught here.
. tests/support/lib.sh
need_root && need_bpf

INSNS=30000
STATES=2000

said=$("$O/tests/verifier" 2>&1) || fail verifier "$said"
for p in thread_clock host_clock/many heap_alloc heap_alloc/many sched_probe sched_probe/many wait_status; do
	read -r insns states < <(awk -v p=$p '$1 == p { print $2, $3 }' <<<"$said")
	if [ -z "$states" ]; then
		fail "verifier/$p" "not loaded"
	elif [ "$insns" -gt $INSNS ] || [ "$states" -gt $STATES ]; then
		fail "verifier/$p" "$insns instructions, $states states; at most $INSNS, $STATES"
	else
		pass "verifier/$p"
	fi
done
# Those for kernels before 5.15 load on newer ones, too, and cost more (vmtest/verifier.txt has what they cost there).
if said=$("$O/tests/verifier" old 2>&1); then pass verifier/old; else fail verifier/old "$(head -n 3 <<<"$said" | tr '\n' ' ')"; fi
finish
