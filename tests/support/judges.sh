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

# judge_records ONE READ TWO: of waits, which only grow, READ is between what the target said before and after it;
# what its own functions waited for is the same in all, but for what these wait for the runtime's locks.
judge_records() {
	"$PPROFCHECK" grew -addresses -tolerance 0.01 -still '(?m)(^| )main\.' -but '(?m)(^| )runtime\.(unlock|gcStart) ' "$@" \
		>"$TMP/diff" 2>&1 || { sed -n 1,6p "$TMP/diff"; return 1; }
	valid "$2"
}

# three_to_one CPU [LEAST]: of main.leaf's callers; and nobody without a caller.
three_to_one() { "$PPROFCHECK" callers -least "${2:-400}" "$1"; }

# judge_hard PROFILE WORK LEAST LOST: of the samples that are not the runtime's own the share LEAST is
# below main.WORK, at most the rest of LOST stacks breaks off, no caller is there twice, and the
# program's functions call each other as testdata/programs/hardstacks has them do.
judge_hard() {
	local calls
	case $2 in
	hashWork)    calls='hashWork' ;;
	copyWork)    calls='(copyOne )?copyWork' ;;
	barrierWork) calls='(store )?barrierWork' ;;
	largeWork)   calls='(fill )?largeWork' ;;
	*growWork)   calls='(deep )*growOne|growWork' ;;
	faultWork)   calls='((derefCaller )?deref )?(derefCaller )?faultWork' ;;
	*)           echo "no such work: $2"; return 1 ;;
	esac
	"$PPROFCHECK" stacks -type samples "$1" | awk -v work="main\\\\.$2" -v least="$3" -v lost="$4" -v calls="^($calls) \$" '
		# The functions of package main in a stack, without the number of a closure.
		function of_main(stack, all, f) {
			while (match(stack, /main\.[A-Za-z]+(\.[a-z]+[0-9]+)* /)) {
				f = substr(stack, RSTART + 5, RLENGTH - 6)
				sub(/\..*/, "", f)
				stack = substr(stack, RSTART + RLENGTH)
				if (f != "main") all = all f " "
			}
			return all
		}
		{ n += $1 }
		/runtime\.(mcall|mstart|gcBgMarkWorker|bgsweep|bgscavenge|sysmon|goexit0|forcegchelper|runfinq|runFinalizers|sigtramp |sigreturn)/ { own += $1; next }
		# Where it was preempted, the thread has no goroutine any more (dropg), and looks for another one.
		/runtime\.goschedImpl/ && $0 !~ work { own += $1; next }
		$0 ~ work { w += $1; if (of_main($0) !~ calls) { odd += $1; ex = of_main($0) } }
		/main\.copyOne [^;]*; main\.copyOne/ { twice += $1 }
		END {
			if (n < 200) { print "only " n + 0 " samples"; bad = 1 }
			if (w < least * (n - own)) { printf "%d of %d samples have their work; ", w, n - own; bad = 1 }
			if (lost > (1 - least) * n) { printf "%d of %d stacks break off; ", lost, n; bad = 1 }
			if (odd > (1 - least) * n) { printf "%d samples have callers that the program has not (%s); ", odd, ex; bad = 1 }
			if (twice) { print twice " samples have a caller twice"; bad = 1 }
			exit bad
		}'
}

# judge_ends PROFILE TYPE FUNC PATTERN: of the samples with main.FUNC at least 99 % match PATTERN.
judge_ends() {
	"$PPROFCHECK" stacks -type "$2" "$1" | awk -v f="main.$3" -v pattern="$4" '
		index($0, f) { all += $1; if ($0 ~ pattern) has += $1 }
		END { if (!(all > 0 && has >= 0.99 * all)) { print has + 0 " of " all + 0 " samples"; exit 1 } }'
}

# judge_below STACKS WHICH WHERE [LEAST]: of the samples of `pprofcheck stacks` that match the awk condition
# WHICH the share LEAST also match WHERE. Of few samples one is much.
judge_below() {
	awk -v least="${4:-0.98}" "{ if ($2) { n += \$1; if ($3) m += \$1 } }
		END { if (n < 20) print \"only \" n + 0 \" samples\"; else if (m < least * n) print m + 0 \" of \" n; else exit 0; exit 1 }" "$1"
}

# judge_own_total OURS OWN: ours is what the kernel charged (tests/e2e/cpu_self.sh); Go's own clocks may miss
# up to a quarter.
judge_own_total() {
	local a b
	a=$("$PPROFCHECK" sum "$1" | awk '$2 == "cpu" { print $1 / 1e9 }')
	b=$("$PPROFCHECK" sum "$2" | awk '$2 == "cpu" { print $1 / 1e9 }')
	awk -v a="$a" -v b="$b" 'BEGIN {
		if (b < 0.7) { printf "only %.2f s of CPU time; ", b; bad = 1 }
		if (a < 0.9 * b || a > 1.33 * b) { printf "%.2f s, %.2f s by its own; ", a, b; bad = 1 }
		exit bad }'
}

# judge_charged COMMENTS LOW HIGH: what was sampled is of what the kernel charged the share LOW to HIGH.
judge_charged() {
	awk -v low="$2" -v high="$3" '/^hits:/ { got = $4 } /^charged:/ { want = $2 }
		END { if (!want || got < low * want || got > high * want) { print got + 0 " s of " want + 0 " s"; exit 1 } }' "$1"
}

# judge_seen COMMENTS PROFILE BYTES: what was allocated is seen within 2 % and shown within 4 %.
judge_seen() {
	awk -v own="$3" -v shown="$("$PPROFCHECK" sum "$2" | awk '$2 == "alloc_space" { print $1 }')" '
		/^hits: .* allocations of [0-9]* bytes/ { sub(/.* allocations of /, ""); seen = $1 }
		END {
			if (own < 2e7) print "only " own " bytes were allocated"
			else if (seen < 0.98 * own || seen > 1.02 * own) print seen + 0 " bytes seen of " own
			else if (shown < 0.96 * own || shown > 1.04 * own) print shown + 0 " bytes shown of " own
			else exit 0
			exit 1
		}' "$1"
}

# judge_whole LOG COMMENTS: all bytes that testdata/programs/churn wrote down last, beside those of which
# the comments state an error and those that no window saw; within four errors and 15 %: of some 15 windows,
# as there are, Student's t would ask for 8 errors (tests/README.md), and an error is 2 to 9 % of all.
judge_whole() {
	sed -nE 's/^error: all sites alloc_space ([0-9]+) \+- ([0-9a-z]+).*/got \1 \2/p
		s/^unseen: (about )?[0-9]+ allocations of (at least )?([0-9]+).*/got \3 0/p' "$2" | awk '
		$1 == "site" { size[n++] = $4 }
		$1 == "at" { truth = 0; for (i = 0; i < n; i++) truth += size[i] * $(4 + i) }
		$1 == "got" { got += $2; unknown += $3 == "unknown"; square += $3 * $3; told++ }
		END {
			untouched = 40 * 1024 * 1024
			off = got - truth - untouched; may = 4 * sqrt(square) + 0.15 * truth
			printf "# %.0f of %.0f, se %.0f\n", got, truth + untouched, sqrt(square) >"/dev/stderr"
			if (told && truth && !unknown && off >= -may && off <= may) exit 0
			printf "%.0f of %.0f bytes, told %d times, %d errors unknown\n", got, truth + untouched, told, unknown
			exit 1
		}' "$1" -
}

# judge_hits COUNTS: lines "hits INDEX N" beside "NAME INDEX N" of 26 kinds of allocation. The runtime
# allocates now and then for itself between its own count and the mark.
judge_hits() {
	awk '
		$1 == "hits" { got[$2] = $3; next }
		NF == 3 && $2 ~ /^[0-9]+$/ { name[$2] = $1; want[$2] = $3 }
		END {
			for (k in want) {
				kinds++; total += got[k]
				d = got[k] - want[k]
				if (d < -10 || d > 10) { printf "%s: %d hits for %d allocations; ", name[k], got[k], want[k]; bad = 1 }
			}
			if (kinds != 26 || total < 500000) { printf "%d kinds, %d hits in all; ", kinds, total; bad = 1 }
			exit bad
		}' "$1"
}

# judge_vars WITH FACTS: lines "var NAME SYMBOL DECODED" of a program with symbols, and of the judged.
judge_vars() {
	awk '$1 != "var" { next }
		FNR == NR { n++; have += $3 != "-"; at[$2] = $3; next }
		{ seen++; if ($4 != at[$2]) { printf "%s: %s for %s; ", $2, $4, at[$2]; bad = 1 } }
		END { if (have < n - 2 || have < 10 || seen != n) {
			printf "%d variables, %d with a symbol, %d looked for", n, have, seen; bad = 1 }
			exit bad }' "$1" "$2" && [ "$(grep ^site "$1")" = "$(grep ^site "$2")" ] || { echo "the probes' sites or variables differ"; return 1; }
}

# judge_frames PCS OURS THEIRS LEFT: of all pcs, of which LEFT could not be asked.
judge_frames() {
	local n
	n=$(wc -l <"$3")
	if [ "$n" -lt 1000 ] || [ "$n" != "$(wc -l <"$1")" ] || [ "${4:-99}" -gt 50 ]; then
		echo "$n answers to $(wc -l <"$1") pcs, $4 left out"
		return 1
	fi
	cmp -s "$2" "$3" || { echo "$(diff "$2" "$3" | grep -c '^<') of $n pcs differ"; return 1; }
}

# judge_labels TRUTH PROFILE [REASON]: the events of each label and goid that the truth names, six in all.
judge_labels() {
	"$PPROFCHECK" labels -type contentions "$2" >"$TMP/labels" || return 1
	sed 's/^/# /' "$TMP/labels" >&2
	awk -v reason="${3:+reason=\"$3\"}" 'FNR == NR { if (index($0, reason)) { n[++last] = $1; set[last] = $0 }; next }
		$1 == "label" { seen++; want = $2 "=\"" $3 "\""; got = 0
			for (i = 1; i <= last; i++) if (index(set[i], want) && index(set[i], "tier=\"back\"")) got += n[i]
			if (got < $5 || got > $6) { print want ": " got " events for " $5; bad = 1 } }
		$1 == "goid" { seen++; want = "goid=" $2 "[ }]"; got = 0
			for (i = 1; i <= last; i++) if (set[i] ~ want) got += n[i]
			if (got < $4 || got > $5) { print want ": " got " events for " $4; bad = 1 } }
		END { if (seen != 6) { print seen + 0 " labels and goids to judge by"; bad = 1 }; exit bad }' "$TMP/labels" "$1"
}

# leaf_callers [LEAST]: of PID, which a busy machine may give little time: longer, until there is
# something to judge by. LEAF_TIMES: how long.
leaf_callers() {
	local out rc d why
	for d in ${LEAF_TIMES:-3s 9s 30s}; do
		out=$("$GOPROF" -p "$PID" --cpu -F 500 -d $d -o "$TMP" 2>"$TMP/err")
		rc=$?
		[ $rc = 3 ] && only_small_losses "$TMP/err" "$out" && rc=0
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

# Context switches of the threads that exist now.
switches() { cat /proc/"$1"/task/*/status 2>/dev/null | awk '/ctxt_switches/ { n += $2 } END { print n + 0 }'; }

# Of the whole machine: ticks that its host took, and interrupts.
stolen() { awk '$1 == "cpu" { print $7 + $8 + $9 }' /proc/stat; }

# judge_totals FILE: lines "NAME TICKS NS": each profile has the CPU time that /proc counted, within 2 %
# and what its two readings may differ by.
judge_totals() {
	awk '{ n++; want = $2 / 100; got = $3 / 1e9; off = got > want ? got - want : want - got
			if (want < 0.2) print $1 " ran for only " want " s; "
			else if (off > 0.02 * want + 0.03) print $1 " has " got " s of " want " s; "
			else right++ }
		END { if (!n || right != n) { print right + 0 " of " n + 0 " are right"; exit 1 } }' "$1"
}

# judge_split PROFILE FUNC SHARE: of the samples of testdata/programs/hosted that are work, main.FUNC has
# this share, within four standard errors.
judge_split() {
	"$PPROFCHECK" stacks -type samples "$1" | awk -v f="main.$2 " -v share="$3" '
		/main\.(first|second) / { n += $1; if (index($0, f)) has += $1 }
		END {
			if (n < 60) { print "only " n + 0 " samples"; exit 1 }
			off = has / n - share; may = 4 * sqrt(share * (1 - share) / n)
			if (off > may || off < -may) { printf "%s has %.3f of %d samples, not %.3f\n", f, has / n, n, share; exit 1 }
		}'
}

# judge_unhurt COMMENTS [SHARE]: of a profile of many, no sample was lost, and none lost its caller; or so many
# did, while the program was new.
judge_unhurt() {
	awk -v may="${2:-0}" '
		/^hits:/ { hits = $2 }
		/^loss: [0-9]+ samples whose first caller/ { callers = $2; next }
		/^loss:/ { print; bad = 1 }
		END {
			if (!hits) { print "that is no such profile"; exit 1 }
			if (callers > may * hits) { print callers " of " hits " samples lost their callers"; exit 1 }
			exit bad
		}' "$1"
}

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

# told_late TRUTH COMMENTS SAID: what the probes saw and what is said to be missed is all that was made,
# and at most one in fifty more, by the runtime itself.
told_late() {
	! grep -q '^missed:' "$2" || grep -q 'allocations that did not pass the probes' "$3" || { echo "no loss is told"; return 1; }
	awk 'FILENAME == ARGV[1] && /^# / { made += $3 }
	/^hits: / { hits = $2 }
	/^missed: / { missed = $2 }
	/^unobserved: [0-9]* ms/ { gap = $2 }
	END {
		seen = hits + missed
		if (seen < 0.98 * made - 1000 * gap || seen > 1.02 * made + 1000)
			why = hits " seen and " missed " missed of " made
		if (why) print why
		exit why != ""
	}' "$1" "$2"
}

# ---- a run of goprof-bpf, by what it left ----

# sentences SAID: of its stderr, the lines that not every run says.
sentences() { sed -E '/: (cpu: [0-9]+ Hz|heap: source|heap: probing|profiling pid)/d' "$1"; }

# judge_run SAID PATHS STATUS WANTED FILES [SENTENCE]: its exit status is one of WANTED ("0 3"), FILES paths were
# printed (-: any number), each of a valid profile, and SENTENCE (extended regular expression) was said once.
judge_run() {
	local said=$1 paths=$2 rc=$3 wanted=$4 files=$5 sentence=${6:-} path bad=0
	case " $wanted " in *" $rc "*) ;; *) echo "exit status $rc, not $wanted"; bad=1 ;; esac
	[ -z "$sentence" ] || [ "$(sentences "$said" | grep -cE -- "$sentence")" = 1 ] || { echo "not said once: $sentence"; bad=1; }
	[ "$files" = - ] || [ "$(wc -l <"$paths")" = "$files" ] || { echo "$(wc -l <"$paths") files, not $files"; bad=1; }
	while read -r path; do
		valid "$path" 2>&1 || { echo "$path is no valid profile"; bad=1; }
	done <"$paths" || bad=1
	[ "$(grep -cE 'Sanitizer|runtime error|BUG' "$said")" = 0 ] || { grep -m 1 -E 'Sanitizer|runtime error|BUG' "$said"; bad=1; }
	return $bad
}

# judge_unharmed PID OUT [TRIES]: testdata/programs/checksum, whose output is OUT, still computes, and its sums are right.
judge_unharmed() {
	local before good i
	before=$(grep -c '^good' "$2")
	kill -USR1 "$1" 2>/dev/null || { echo "the target is gone: $(tail -n 1 "$2")"; return 1; }
	for ((i = 0; i < ${3:-100}; i++)); do
		good=$(grep -c '^good' "$2")
		[ "$(grep -c '^wrong' "$2")" = 0 ] || break # what was wrong before this good sum
		[ "$good" -le "$before" ] || return 0
		sleep 0.05
	done
	echo "the target is harmed: $(tail -n 1 "$2")"
	return 1
}
