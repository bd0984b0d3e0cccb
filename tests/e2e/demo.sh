#!/bin/bash
# What a newcomer sees first: `make demo` names the functions and lines that its subject is
# about, and leaves files that are accepted.
. tests/support/lib.sh
need_root && need_bpf && need_go

DEMO_SECONDS=3 DEMO_DIR=$TMP/demo tests/support/demo.sh >"$TMP/said" 2>"$TMP/err"
rc=$?
if [ $rc != 0 ]; then
	fail demo/runs "exit status $rc: $(tail -n 3 "$TMP/err" | tr '\n' ' ')"
	finish
fi
pass demo/runs

shows() { # TABLE PATTERN
	if sed -n "/^$1/,/^\$/p" "$TMP/said" | grep -q "$2"; then
		pass "demo/$1 shows $2"
	else
		fail "demo/$1 shows $2" "it does not"
		cat "$TMP/said"
	fi
}
shows cpu main.hashBlock
shows cpu main.divides # inlined into countPrimes
shows cpu main.countPrimes
shows alloc_space main.readBatch
shows alloc_space main.sortWords
shows block 'sync.(\*Mutex).Lock'
shows block main.lookup
shows mutex 'sync.(\*Mutex).Unlock'
shows mutex main.refresh

for kind in cpu heap block mutex; do
	file=$(sed -n "s/^  \(.*\.$kind\.pb\.gz\)\$/\1/p" "$TMP/said")
	if [ -s "$file" ] && "$PPROFCHECK" check "$file" >"$TMP/check" 2>&1; then
		pass "demo/$kind profile is valid"
	else
		fail "demo/$kind profile is valid" "'$file': $(tail -n 2 "$TMP/check" | tr '\n' ' ')"
	fi
done
finish
