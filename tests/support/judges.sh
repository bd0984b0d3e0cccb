# shellcheck shell=bash
# What more than one end-to-end test judges by; source it after lib.sh.

# All of them are judges as `judge` in lib.sh asks them: they end with 0, or say what is wrong.

# judge_allocs TRUTH PROFILE RATE [FIRSTS [MOST]]: lines "FUNC COUNT BYTES" beside alloc_objects.
judge_allocs() { "$PPROFCHECK" allocs -rate "$3" -firsts "${4:-0}" -most "${5:-0}" "$1" "$2"; }

# judge_probe TRUTH PROFILE RATE: all bytes within 2 %, too.
judge_probe() { judge_allocs "$1" "$2" "$3" 0 0.02; }

valid() { "$PPROFCHECK" check "$1"; }

# judge_read ONE READ TWO [FLAG]: why READ is not what the target said of itself before and after it:
# the same values, all samples of the first answer, none that the second does not have. A request
# leaves buckets for its own allocations behind, which are samples of zeros.
judge_read() {
	local a b
	if ! "$PPROFCHECK" equal ${4:-} -addresses -ignore-zero "$1" "$2" >"$TMP/diff" 2>&1; then
		echo "the values differ: $(head -n 2 "$TMP/diff" | tr '\n' ' ')"
		return 1
	fi
	for a in "$1 $2" "$2 $3"; do
		read -r a b <<<"$a"
		"$PPROFCHECK" equal ${4:-} -addresses "$a" "$b" >"$TMP/diff" 2>&1
		[ $? -le 1 ] && grep -q '^A has' "$TMP/diff" &&
			! grep -E '^(only in A|values differ|headers differ)' "$TMP/diff" ||
			{ echo "not all samples of $(basename "$a") are in $(basename "$b")"; return 1; }
	done
	grep -q '^A has [1-9]' "$TMP/diff" || { echo "there are no samples"; return 1; }
	valid "$2"
}

# three_to_one CPU [LEAST]: of main.leaf's callers; and nobody without a caller.
three_to_one() { "$PPROFCHECK" callers -least "${2:-400}" "$1"; }

# leaf_callers [LEAST]: of PID, which a busy machine may give little time: longer, until there is
# something to judge by.
leaf_callers() {
	local out rc d why
	for d in 3s 9s 30s; do
		out=$("$GOPROF" -p "$PID" --cpu -F 500 -d $d -o "$TMP" 2>"$TMP/err")
		rc=$?
		[ $rc = 3 ] && only_small_losses "$TMP/err" && rc=0
		[ $rc = 0 ] && [ -s "$out" ] || { echo "exit $rc: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"; return 1; }
		why=$(three_to_one "$out" "$@") && return
		case $why in "only "*) attempt $d "leaf callers" "$why" >&2 ;; *) break ;; esac
	done
	echo "$why"
	return 1
}

# whole_cpu CPU INNER OUTER STOLEN SWITCHES: all CPU time is there, by the kernel's charge and between
# two counts of /proc's ticks.
whole_cpu() { "$PPROFCHECK" cputotal -inner "$2" -outer "$3" -stolen "$4" -switches "$5" "$1"; }

ticks() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'; }

# Of the threads that there are.
switches() { cat /proc/"$1"/task/*/status 2>/dev/null | awk '/ctxt_switches/ { n += $2 } END { print n + 0 }'; }

# Of the whole machine: what its host took, and interrupts.
stolen() { awk '$1 == "cpu" { print $7 + $8 + $9 }' /proc/stat; }

# cpu_begin FLAG...: a CPU profile of PID begins, and has begun; cpu_end: it ends, and $CPU is its
# file, $CPU_RC how it ended. $INNER is what /proc counted meanwhile in ticks, $OUTER what it counted
# from before to after: start-up takes its time on a busy machine. $STOLEN, $SWITCHES: in that time.
cpu_begin() {
	local i
	: >"$TMP/err" # the shell makes it anew when it comes to it
	OUTER=$(ticks "$PID") STOLEN=$(stolen) SWITCHES=$(switches "$PID")
	"$GOPROF" -p "$PID" --cpu -d 300s -o "$TMP" "$@" >"$TMP/paths" 2>"$TMP/err" &
	CPU_PROF=$!
	STARTED+=("$CPU_PROF")
	for ((i = 0; i < 1200; i++)); do
		grep -q 'profiling pid' "$TMP/err" && break
		kill -0 "$CPU_PROF" 2>/dev/null || break
		sleep 0.05
	done
	INNER=$(ticks "$PID")
}

cpu_end() {
	INNER=$(($(ticks "$PID") - INNER))
	kill -INT "$CPU_PROF" 2>/dev/null
	wait "$CPU_PROF"
	CPU_RC=$?
	# shellcheck disable=SC2034
	CPU=$(cat "$TMP/paths") OUTER=$(($(ticks "$PID") - OUTER)) STOLEN=$(($(stolen) - STOLEN)) SWITCHES=$(($(switches "$PID") - SWITCHES))
}
