#!/bin/bash
# WINDOWS windows of one engine, one after another, on the same 20 processes: descriptors and memory are flat, and their sums are what
# one long window saw meanwhile. What is read of those that stand still is the same in each.
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

WINDOWS=${WINDOWS:-100} MS=${MS:-400}
hosted=$(subject 1.27.4 hosted) && old=$(subject 1.19.13 hosted -ldflags='-s -w') && records=$(subject 1.27.4 heapself) &&
	churn=$(subject 1.27.4 churn '-ldflags=-s -w') && relay=$(subject 1.27.4 relay '-ldflags=-s -w') ||
	{ fail all_windows "does not build"; finish; }
PIDS=() BUSY=() STILL=()
launch() { start "$@" || { fail all_windows "a process does not start"; finish; }; PIDS+=("$PID"); }
for split in "3 1" "1 1" "1 3" "1 4"; do
	# shellcheck disable=SC2086
	if [ ${#BUSY[@]} = 1 ]; then launch "$old" busy $split; else launch "$hosted" busy $split; fi
	BUSY+=("$PID $split")
done
for i in 1 2; do launch "$records" -rounds 1; STILL+=("$PID"); done
while [ ${#PIDS[@]} -lt 20 ]; do launch "$hosted" idle; done

# As goprof-bpf has it with many processes: four others want these CPUs.
windows() { nice -n -10 "$O/tests/windows" "$@"; }
flat() {
	windows "$WINDOWS" $MS "$TMP" "${PIDS[@]}" >"$TMP/said" 2>"$TMP/err" || { cat "$TMP/err"; return 1; }
	sed -n 's/^[0-9]* windows:/# &/p' "$TMP/said" >&2
}
judge flat
outcome "all_windows/$WINDOWS are flat"

# sums FILE TYPE: lines "PID ALL FIRST SECOND": what main.first and main.second have
sums() {
	"$PPROFCHECK" stacks -type "$2" "$TMP/$1.pb.gz" | awk '
		match($0, /pid-[0-9]+/) { pid = substr($0, RSTART + 4, RLENGTH - 4); all[pid] += $1
			if ($0 ~ /main\.first /) first[pid] += $1
			if ($0 ~ /main\.second /) second[pid] += $1 }
		END { for (pid in all) printf "%d %.0f %.0f %.0f\n", pid, all[pid], first[pid], second[pid] }'
}
sums windows.cpu cpu >"$TMP/short"
sums long.cpu cpu >"$TMP/long"
sums windows.cpu samples >"$TMP/counts"
# The same CPU time a second, within 2 %; between windows is less than one in twenty of the time.
totals() {
	local of
	for of in "${BUSY[@]}"; do
		awk -v pid="${of%% *}" 'FILENAME ~ /said$/ { if ($1 == "window" && $2 == pid) { s = $3; l = $4 } next }
			$1 == pid && FILENAME ~ /short$/ { got = $2 / 1e9 }
			$1 == pid && FILENAME ~ /long$/ { want = $2 / 1e9 }
			END {
				printf "# pid %d: %.3f s in windows of %.1f s, %.3f s in one of %.1f s\n", pid, got, s, want, l >"/dev/stderr"
				if (!got || !want) print pid " has no CPU time"
				else if (s < 0.95 * l) print pid " was observed for " s " of " l " s"
				else if (got / s < 0.98 * want / l || got / s > 1.02 * want / l) print pid ": " got " s in " s " s, " want " s in " l " s"
				else exit 0
				exit 1 }' "$TMP/said" "$TMP/short" "$TMP/long" || return 1
	done
}
judge totals
shares() {
	local of
	for of in "${BUSY[@]}"; do
		awk -v of="$of" 'BEGIN { split(of, o, " "); share = o[2] / (o[2] + o[3]) }
			$1 == o[1] { n = $3 + $4; first = $3 }
			END {
				if (n < 400) { print o[1] ": only " n + 0 " samples"; exit 1 }
				off = first / n - share; may = 4 * sqrt(share * (1 - share) / n)
				if (off > may || off < -may) { print o[1] ": " first / n " of " n " samples, not " share; exit 1 }
			}' "$TMP/counts" || return 1
	done
}
judge shares
outcome all_windows/sums

# A sum of equal readings is one of them, so many times.
heap() {
	local pid got want path
	sums windows.heap inuse_space >"$TMP/read"
	for pid in "${STILL[@]}"; do
		path=$("$GOPROF" -p "$pid" --heap --source=read -d 100ms -o "$TMP" 2>"$TMP/err") || { tail -n 1 "$TMP/err"; return 1; }
		want=$("$PPROFCHECK" sum "$path" | awk '$2 == "inuse_space" { print $1 }')
		got=$(awk -v pid="$pid" '$1 == pid { print $2 }' "$TMP/read")
		[ "${want:-0}" -gt 0 ] && [ "$got" = $((want * WINDOWS)) ] || { echo "$pid: $got bytes in $WINDOWS windows of $want"; return 1; }
	done
}
judge heap
outcome all_windows/heap

launch "$churn" light "$TMP/log"
LIGHT=$PID
launch "$relay" -calm "$TMP/waits"
probed() {
	windows probe "$WINDOWS" $MS "$TMP" "${PIDS[@]:2}" >"$TMP/said" 2>"$TMP/err" || { cat "$TMP/err"; return 1; }
	sed -n 's/^[0-9]* windows:/# &/p' "$TMP/said" >&2
}
judge probed
outcome "all_windows/$WINDOWS are flat, probed"
# Every sample is in some window: within 4 standard errors of sampling (a sample stands for RATE bytes, or for one object that is larger), and
# 1 % at the edges of windows.
RATE=1024 # tests/support/windows_main.c
allocated() {
	sums windows.heap alloc_objects >"$TMP/made"
	sums windows.heap alloc_space >"$TMP/bytes"
	awk -v pid="$LIGHT" -v rate=$RATE -v pace="$("$PPROFCHECK" pace -kind heap "$TMP/log")" '
		FILENAME ~ /said$/ { if ($1 == "window" && $2 == pid) s = $5; next }
		$1 == pid && FILENAME ~ /made$/ { n = $2 }
		$1 == pid && FILENAME ~ /bytes$/ { samples = $2 / rate }
		END {
			want = pace * s
			if (samples > n) samples = n
			if (samples < 100) { print "only " samples + 0 " samples"; exit 1 }
			may = 0.01 + 4 / sqrt(samples)
			printf "# %d objects in %.1f s, of %.0f +- %.1f %%\n", n, s, want, 100 * may >"/dev/stderr"
			if (!want || n < (1 - may) * want || n > (1 + may) * want) { print n + 0 " objects of " want; exit 1 } }' "$TMP/said" "$TMP/made" "$TMP/bytes"
}
judge allocated
outcome all_windows/allocated

# By the program's own log. A wait counts in the window in which it began and ended, so of waits that last D a window of S has as many as
# begin in S - D. Chance is at the edges of windows, where up to 5 ms are not sure either, and in which waits for mutexes are samples. How
# long goroutines waited is judged, and not how often: between windows, when nobody else is at work, waits that take turns are shorter.
EDGE=0.005
# waited KIND COLUMN SITE LEAST ERROR: LEAST waits at least; COLUMN: of the seconds that were observed; ERROR: one standard error for N waits, an awk
# expression.
waited() {
	local kind=$1 truth=block
	[ "$kind" != mutex ] || truth=mutex
	{
		for type in contentions delay; do
			"$PPROFCHECK" stacks -type $type "$TMP/windows.$kind.pb.gz" | awk -v pid="pid-$PID" -v site="$3 " 'index($0, pid) && index($0, site) { n += $1 } END { printf "%.0f\n", n }'
		done
		"$PPROFCHECK" pace -kind $truth -site "$3" "$TMP/waits"
		"$PPROFCHECK" pace -kind $truth -site "$3" -delay "$TMP/waits"
		awk -v pid="$PID" -v column="$2" '$1 == "window" && $2 == pid { print $column }' "$TMP/said"
	} | paste -s -d' ' | awk -v what="$1 $3" -v least="$4" -v windows="$WINDOWS" -v edge=$EDGE '{
		count = $1; got = $2 / 1e9; d = $4 / $3 / 1e9; s = $5 - windows * d; n = $3 * s; want = $4 * s / 1e9
		may = 0.01 + windows * edge / s + 4 * ('"$5"')
		off = got / want - 1
		printf "# %s: %d waits, %.2f of %.2f s (%+.2f %%), +- %.2f %%, of %.2f ms each, in %.1f s\n", what, count, got, want, 100 * off, 100 * may, 1e3 * d, $5 >"/dev/stderr"
		if (!(count >= least)) print what ": only " count + 0 " waits"
		else if (off > may || off < -may) print what ": " got " s of " want
		else exit 0
		exit 1 }'
}
for site in main.wait1:1000 main.wait20:100; do
	judge waited block 7 "${site%:*}" "${site#*:}" 'sqrt(windows / 4) / n'
	judge waited wait 6 "${site%:*}" "${site#*:}" 'sqrt(windows / 4) / n'
done
judge waited block 7 main.want 500 'sqrt(windows / 4) / n'
judge waited mutex 8 main.hold 500 'sqrt(10 / n)'
outcome all_windows/waits
finish
