#!/bin/bash
# The runtime's own counters, read from outside (go/rtcounters), are what the program's own runtime
# says: every size class to the last object while it stands still, on all Ps; between two
# runtime.MemStats while all Ps allocate, GCs run and runtime/metrics turns the statistics; and
# how often goroutines went on, beside what the program knows. Prints what a reading takes.
# GO_VERSIONS="..." runs others; GO_KINDS="..." other kinds of the newest; COUNTERS_ALL=1 every
# minor from 1.16 in every kind.
. tests/support/lib.sh
need_root
need_go

ALL="1.16.15 1.17.13 1.18.10 1.19.13 1.20.14 1.21.13 1.22.12 1.23.12 1.24.13 1.25.14 1.26.11 1.27.4"
if [ -n "${COUNTERS_ALL:-}" ]; then : "${GO_VERSIONS:=$ALL}"; fi
: "${GO_VERSIONS:=1.18.10 1.19.13 1.22.12 1.27.4}"
: "${GO_KINDS:=exe stripped pie cgo}"
NEWEST=${GO_VERSIONS##* }

# built V KIND: the program's path.
built() {
	local out=$O/programs/counters-$2-$1 cgo=0 flags=()
	case $2 in
	exe) ;;
	stripped) flags=(-ldflags="-s -w") ;;
	pie) flags=(-buildmode=pie -ldflags="-s -w") ;;
	cgo) cgo=1 flags=(-ldflags=-linkmode=external) ;;
	*) echo "no such kind: $2" >&2; return 1 ;;
	esac
	CGO=$cgo made "$out" testdata/programs/counters -- \
		gobuild "$1" "$out" testdata/programs/counters "${flags[@]}" || return 1
	echo "$out"
}

# run V KIND [PS]
run() {
	local name=counters/$1-$2${3:+-$3ps} bin
	bin=$(built "$1" "$2") || { fail "$name" "does not build"; return; }
	GOMAXPROCS=${3:-4} timeout 120 "$O/tests/rtcounts" "$bin" >"$TMP/said" 2>"$TMP/err" || {
		fail "$name" "$(grep ^wrong "$TMP/said" | head -5 | tr '\n' ';') $(cat "$TMP/err")"
		return
	}
	if [ "$(grep -c '^ok exact' "$TMP/said")" != 2 ] || ! grep -q '^ok between' "$TMP/said"; then
		fail "$name" "$(cat "$TMP/said")"
	elif [ "${1%.*}" = 1.16 ] && ! grep -q '^none switches: .*go1.17' "$TMP/said"; then
		fail "$name" "Go 1.16 has no count of switches"
	elif [ "${1%.*}" != 1.16 ] && [ "$(grep -c '^ok switches' "$TMP/said")" != 5 ]; then
		fail "$name" "$(grep switches "$TMP/said" | tr '\n' ';')"
	else
		pass "$name"
		sed -n 's/^time/# '"${name////.}"':/p; s/^ok between/# '"${name////.}"': between/p' "$TMP/said"
	fi
}

for v in $GO_VERSIONS; do
	for kind in $GO_KINDS; do
		if [ "$v" = "$NEWEST" ] || [ "$kind" = exe ] || [ -n "${COUNTERS_ALL:-}" ]; then
			run "$v" "$kind"
		fi
	done
done
run "$NEWEST" stripped 64
finish
