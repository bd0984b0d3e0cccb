#!/bin/bash
# The clocks of threads take long steps while no thread is born, and short ones while some are. Whatever a program
# does in one window (old threads, threads that are born all the time, many that mostly sleep, one after the other):
# samples are all of the CPU time that the kernel charged, within 1 %, and each function has what it
# took by its own account.
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

bin=$(subject 1.27.4 births) || { fail cpu_births "does not build"; finish; }

# window PHASE...: $out is the profile of all phases, $TMP/told what the program says of itself
window() {
	local rc ours
	start "$bin" "$@" || { wrong "does not start"; return 1; }
	: >"$TMP/err"
	"$GOPROF" -p $PID --cpu -d 300s -o "$TMP" >"$TMP/paths" 2>"$TMP/err" &
	ours=$!
	STARTED+=("$ours")
	has_begun $ours "$TMP/err" ': profiling ' || { wrong "does not begin: $(tail -n 1 "$TMP/err")"; return 1; }
	kill -USR1 $PID
	has_begun $PID "$OUT" "^told" || { wrong "the program ended"; return 1; }
	kill -INT $ours
	wait $ours
	rc=$?
	cp "$OUT" "$TMP/told"
	kill -KILL $PID
	wait $PID 2>/dev/null
	out=$(cat "$TMP/paths")
	[ -s "$out" ] || { wrong "no profile: $(tail -n 1 "$TMP/err")"; return 1; }
	[ $rc = 0 ] || judge small_losses $rc
	"$PPROFCHECK" comments "$out" >"$TMP/comments"
}
small_losses() { [ "$1" = 3 ] && only_small_losses "$TMP/err" "$out"; }

# Each function's share of what all of them took, within 2 % of all of it.
shares() {
	"$PPROFCHECK" cum -type cpu "$out" >"$TMP/cum"
	awk 'NR == FNR { if (/^main\./) { want[$1] = $2; all += $2 } next }
		{ for (f in want) if ($NF == f) { got[f] = $1; seen += $1 } }
		END {
			for (f in want)
				if (all && seen && (got[f] / seen - want[f] / all)^2 > 0.02^2) {
					printf "%s %.4f of all, %.4f by its own account; ", f, got[f] / seen, want[f] / all
					bad = 1
				}
			if (!all || !seen) { print "nothing was seen"; bad = 1 }
			exit bad
		}' "$TMP/told" "$TMP/cum"
}
# For how many seconds steps were long: $1 to $2.
long_for() {
	awk -v low="$1" -v high="$2" '/^steps:/ { for (i = 1; i < NF; i++) if ($i == "for") s = $(i + 1) }
		END { if (s + 0 < low || s + 0 > high) { print "steps were long for " s + 0 " s"; exit 1 } }' "$TMP/comments"
}

# look NAME LOW HIGH PHASE...
look() {
	local name=$1 low=$2 high=$3 try
	shift 3
	for try in 1 2; do
		unjudged
		if window "$@"; then
			judge judge_charged "$TMP/comments" 0.99 1.01
			judge shares
			judge long_for "$low" "$high"
		fi
		grep -E '^(hits|charged|steps|born):' "$TMP/comments" | sed "s/^/# $name: /"
		found_wrong && [ $try = 1 ] || break
		attempt $try "cpu_births/$name" "$FOUND"
	done
	outcome "cpu_births/$name"
}
look steady 2 7 steady:6s
look born 0 1.5 born:6s
look idle 2 11 idle:10s
look all 1 14 steady:3s born:3s idle:3s steady:2s born:2s steady:3s
finish
