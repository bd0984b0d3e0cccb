#!/bin/bash
# Every allocation passes exactly one of the allocator's probe sites (go/probesite): calls
# counted there with the test of the flags, against what the runtime itself counted
# (MemStats.Mallocs) for each kind of allocation, also while stacks grow and the collector
# runs. The last one is a profile-guided build, where the compiler copies leaves into mallocgc.
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

: "${GO_VERSIONS:=1.16.15 1.22.12 1.24.13 1.27.4}"
COUNTSITES=$O/tests/countsites

run() {
	local name=allocsites/$1
	"$COUNTSITES" "$2" >"$TMP/counts" 2>"$TMP/err" || { fail "$name" "$(tail -1 "$TMP/err")"; return; }
	judge judge_hits "$TMP/counts"
	outcome "$name"
	[ -z "${SHOW:-}" ] || cat "$TMP/counts"
}

for v in $GO_VERSIONS; do
	bin=$(subject "$v" allockinds) || { fail "allocsites/$v" "does not build"; continue; }
	run "$v" "$bin"
done
for v in ${PGO_VERSIONS-1.24.13 1.27.4}; do
	# A profile that is kept: what is copied where changes with each.
	profile=$PWD/testdata/profiles/allockinds-$v.pprof
	if [ ! -e "$profile" ]; then
		profile=$TMP/cpu.pprof
		bin=$(subject "$v" allockinds) && "$bin" "$profile" >/dev/null 2>&1
	fi
	if gobuild "$v" "$TMP/pgo" testdata/programs/allockinds -pgo="$profile"; then
		run "$v-pgo" "$TMP/pgo"
	else
		fail "allocsites/$v-pgo" "does not build"
	fi
done
# Where a profile-guided build has copied the allocator, what does not pass the probes is said.
copied() { # NAME EXIT-STATUS BINARY
	local rc
	start "$3" || { fail "copied/$1" "does not start"; return; }
	"$GOPROF" -p "$PID" --heap --source=probe --budget=0 -d 1s -o "$TMP" >"$TMP/path" 2>"$TMP/said"
	rc=$?
	kill "$PID"
	[ $rc = "$2" ] || { fail "copied/$1" "exit $rc, not $2: $(tail -n 1 "$TMP/said")"; return; }
	[ $rc = 0 ] || grep -q ' allocations that did not pass the probes' "$TMP/said" ||
		{ fail "copied/$1" "not said: $(tail -n 1 "$TMP/said")"; return; }
	pass "copied/$1"
}
if gobuild 1.24.13 "$TMP/copied" testdata/programs/copied -pgo="$PWD/testdata/profiles/allockinds-1.24.13-copied.pprof" &&
	gobuild 1.24.13 "$TMP/plain" testdata/programs/copied; then
	copied 1.24.13-pgo 3 "$TMP/copied"
	copied 1.24.13 0 "$TMP/plain"
else
	fail copied "does not build"
fi
finish
