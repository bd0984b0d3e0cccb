#!/bin/bash
# What windows take from processes that nobody profiles. PEERS processes run one binary
# (testdata/programs/bystander); one of them allocates all the time and is profiled in windows
# under defaults. Meanwhile one more of that binary, and one of a copy of it (an unrelated file),
# fork, and map, touch and unmap 16 pages, in turn. Each time is measured without and with the
# profile, for SECONDS_EACH. us; ratio: with / without.
#
# The receipt tells how long putting probes in and out takes in a window. Wanted: medians that stay,
# and times of a few ms at most.
. tests/support/lib.sh
need_root && need_bpf && need_go

PEERS=${PEERS:-1 200}
SECONDS_EACH=${SECONDS_EACH:-6}
VERSIONS=${VERSIONS:-1.27.4}

# median, 99th percentile, maximum, in us
summary() {
	sort -n "$1" | awk '{ v[NR] = $1 / 1000 } END { if (NR) print v[int((NR + 1) / 2)], v[int(NR * 0.99 + 0.5)], v[NR], NR }'
}

# profile: in the background, for longer than it takes to measure; returns when windows begin
profile() {
	local i
	"$GOPROF" -p "$HOT" --heap --source=probe -d $((SECONDS_EACH + 2))s -o "$TMP" >"$TMP/paths" 2>"$TMP/err" </dev/null &
	PROFILER=$!
	STARTED+=("$PROFILER")
	for ((i = 0; i < 100; i++)); do
		grep -q 'in short windows' "$TMP/err" && return
		sleep 0.02
	done
	echo "no windows: $(head -n 2 "$TMP/err")" >&2
	return 1
}

receipt() {
	wait "$PROFILER"
	"$PPROFCHECK" comments "$(grep '\.heap\.pb' "$TMP/paths")" | grep '^budget:'
}

# one BINARY NAME WHAT: a line, to the end
one() {
	local bin=$1 name=$2 what=$3 without with
	"$bin" "$what" "$SECONDS_EACH" >"$TMP/without" || return 1
	profile && "$bin" "$what" "$SECONDS_EACH" >"$TMP/with" || return 1
	receipt >"$TMP/receipt"
	[ -s "$TMP/receipt" ] || { echo "no receipt" >&2; return 1; }
	without=$(summary "$TMP/without") with=$(summary "$TMP/with")
	echo "$without $with" | awk -v who="$name" -v what="$what" '{
		printf "%-10s %-6s", who, what
		for (i = 1; i <= 3; i++) printf "  %9.1f %9.1f %6.2f", $i, $(i + 4), $(i + 4) / $i
		print "  " $4, $8 }'
}

# bench V PEERS
bench() {
	local v=$1 peers=$2 bin i name=bystanders/$1/$2 ok=1
	bin=$(subject "$v" bystander) && cp "$bin" "$TMP/unrelated" || { fail "$name" "does not build"; return; }
	start "$bin" hot || { fail "$name" "does not start"; return; }
	HOT=$PID IDLE=()
	for ((i = 0; i < peers; i++)); do
		"$bin" idle >/dev/null 2>&1 </dev/null &
		IDLE+=($!)
		STARTED+=($!)
	done
	sleep 1
	echo "Go $v, $peers other processes of the binary"
	printf '%-10s %-6s  %28s  %28s  %28s  %s\n' '' '' 'median: without, with, ratio' '99th percentile' maximum turns
	for i in fork fault; do
		one "$bin" bystander $i && one "$TMP/unrelated" unrelated $i || { ok=0; break; }
	done
	cat "$TMP/receipt"
	kill "$HOT" "${IDLE[@]}"
	wait "$HOT" "${IDLE[@]}" 2>/dev/null
	[ $ok = 1 ] && pass "$name" || fail "$name" "not all was measured"
}

uptime
for v in $VERSIONS; do
	for n in $PEERS; do bench "$v" "$n"; done
done
finish
