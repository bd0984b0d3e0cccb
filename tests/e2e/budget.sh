#!/bin/bash
# --budget: what short windows see of programs that write down what they did (testdata/programs/churn,
# relay). Each site's estimate lies as near to the truth as the standard error that
# the profile states and the number of its windows allow (tests/README.md); and most was left alone. Sites with an error above half are not judged by it: of the
# few windows that saw them not even the error is known well.
#
#	judge	the judge itself: a profile that is wrong, or too sure of itself, is refused
#	light	a few thousand allocations a second are all seen: no windows, and not one too few
#	heavy	two goroutines that allocate all the time
#	waits	two goroutines that hand a number to and fro, others with long waits, a mutex
#	kinds	the heap in windows while waits need little: these are observed in full
#	none	--budget 0: no windows, all is seen
#	edges	sizes on both sides of where large objects begin, of one Go or of several in one run (1.22.12+1.27.4)
#	attacher	who holds the probes is killed: no profile that ends early passes for a whole one
#	crowd	others map its file so often that probes would hold up the machine: it is refused, in time
#	stopped	it is stopped itself (SIGSTOP) while it observes everything
#	skewed, bursty, periodic	see testdata/programs/churn
#	ends	a command that ends while it is watched in windows: all that it did is told
#
# VERSIONS="1.19.13 ..." takes other versions, ONLY="heavy waits" some parts, SECONDS_EACH=30 longer
# windows, SE=0.1 asks that no stated error of a site with 1 % or more is larger. RUNS=20 repeats all
# and then asks of all deviations, in standard errors, that their mean is about 0 and their spread about 1.
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

VERSIONS=${VERSIONS:-1.27.4}
RUNS=${RUNS:-1}
# Once, the others are done by tests/e2e/budget_counts.sh.
ONLY=${ONLY:-light heavy skewed bursty periodic ends edges short waits kinds crowd stopped $([ "$RUNS" = 1 ] || echo judge none attacher)}
SECONDS_EACH=${SECONDS_EACH:-8}
Z=$TMP/z

wanted() { case " $ONLY " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }

# begin V PROGRAM [ARG...]: with a log of its own, $LOG
begin() {
	local bin v=$1 name=$2
	shift 2
	bin=$(subject "$v" "$name" -ldflags='-s -w') || return 1
	LOG=$TMP/log.${#STARTED[@]}
	start "$bin" "$@" "$LOG"
}

stop() { kill "$PID"; wait "$PID" 2>/dev/null || [ $? = 143 ]; }

# watch SECONDS FLAG...: for that long, while the log goes on; prints what is wrong. PIDS: of several.
watch() {
	local rc seconds=$1 of=("${PIDS[@]:-$PID}")
	shift
	sleep 0.1
	"$GOPROF" "${of[@]/#/-p}" --source=probe "$@" -d "${seconds}s" -o "$TMP" >"$TMP/paths" 2>"$TMP/err" </dev/null && rc=0 || rc=$?
	sleep 0.2
	sort "$TMP/err" | uniq -d | sed -n '/short windows/s/^/said more than once: /p'
	# A burst that no window met is said; of few windows that can be.
	# shellcheck disable=SC2046
	"$PPROFCHECK" losses -list "$LOSSES" -status $rc ${UNMET:+-allow heap:ALLOCS_UNSEEN=any -allow heap:ALLOCS_UNMET=any} "$TMP/err" $(cat "$TMP/paths") ||
		echo "exit $rc: $(tail -n 3 "$TMP/err" | tr '\n' ' ')"
}

file() { sed -n "/${PIDS:+\\.$PID}\\.$1\\.pb/p" "$TMP/paths"; }
comments() { "$PPROFCHECK" comments "$(file "$1")"; }
windows() { comments "$1" | sed -n 's/^budget: .*[^0-9]\([0-9][0-9]*\) windows.*/\1/p'; }

# judged KIND TYPE FLAG...
judged() {
	local kind=$1 typ=$2 rc
	shift 2
	[ -s "$(file "$kind")" ] || { echo "no $kind profile"; return 1; }
	"$PPROFCHECK" check "$(file "$kind")"
	"$PPROFCHECK" budget -kind "$kind" -type "$typ" "$@" "$LOG" "$(file "$kind")" >"$TMP/verdict" && rc=0 || rc=$?
	sed 's/^/# /' "$TMP/verdict" >&2
	sed -n 's/.* se *\([0-9.]*\)% z *\([-+0-9.]*\):.*/\1 \2/p' "$TMP/verdict" | awk '$1 > 0 { print $2 }' >>"$Z"
	[ $rc = 0 ] || sed -n '/WRONG/p' "$TMP/verdict" | tr -s ' '
	return $rc
}

# in_windows KIND LEAST: there were windows, and no more was seen than a fifth of what the program did.
in_windows() {
	local n
	comments "$1" | sed -nE 's/^(budget|hits|window):/# &/p' >&2
	n=$(windows "$1")
	[ "${n:-0}" -ge "$2" ] || echo "${n:-no} windows"
}

# in_full KIND: there were none
in_full() {
	comments "$1" | has '^budget:.* all of the time observed' || {
		echo "$1 is not observed in full: $(comments "$1" | sed -n 's/^budget: //p')"
		return 1
	}
}

# rarely KIND: of what the program did at most a fifth was hit
rarely() {
	local hits from to done_
	hits=$(comments "$1" | awk '/^hits:/ { print $2 }')
	done_=$("$PPROFCHECK" pace -kind "$1" "$LOG")
	awk -v h="${hits:-x}" -v d="$done_" -v s="$SECONDS_EACH" 'BEGIN {
		if (h == "x") print "no hits are told"; else if (h > 0.2 * d * s) print h " hits, the program did " d " a second"
		else exit 0
		exit 1 }'
}

part_light() {
	begin "$1" churn light
	watch 3 --heap --heap-rate 16k
	judged heap alloc_space
	judged heap alloc_objects
	all_seen
	in_full heap
	# By itself it is sampled as finely as the budget bears: at Go's own rate some ten would be.
	watch 3 --heap
	judged heap alloc_space
	judged heap alloc_objects
	all_seen
	densely 300
	UNMET=yes watch 1 --heap --budget 0.001%
	exceeds
	stop
}

# exceeds: what was taken is above the budget, and that is said with its cause
exceeds() {
	local why='(a program that uses less than a tenth of a CPU counts as using that much, and )?some 10 ms are taken ahead, and more until that is noticed'
	grep -qE "^goprof-bpf: heap: probes took [0-9.]+% of the target's CPU time, and --budget is 0.001%: $why\$" "$TMP/err" ||
		echo "the excess is not said: $(tail -n 2 "$TMP/err")"
	comments heap | has -E "^budget: 0.001%.*; all probes together took [0-9.]*%: $why\$" || echo "the receipt does not say it"
}

# densely LEAST: at least so many samples, and the period is the rate that the comments tell
densely() {
	local n rate period
	n=$(comments heap | sed -n 's/^hits: .* \([0-9]*\) sampled$/\1/p')
	rate=$(comments heap | sed -n 's/^rate: one sample in \([0-9]*\) bytes$/\1/p')
	period=$(go tool pprof -raw "$(file heap)" 2>/dev/null | awk '/^Period:/ { print $2 }')
	echo "# $n sampled, one in $rate bytes" >&2
	[ "${n:-0}" -ge "$1" ] || echo "${n:-none} sampled"
	[ -n "$rate" ] && [ "$rate" = "$period" ] || echo "the period is $period, the rate $rate"
	grep -qx "goprof-bpf: heap: one sample in $rate bytes" "$TMP/err" || echo "the rate $rate is not told on stderr"
}

# all_seen: the program's own allocations, and few of its runtime's
all_seen() {
	local seen
	seen=$(comments heap | awk '/^hits:/ { print $2 }')
	awk -v seen="${seen:-x}" '{ split($5, r, /\.\./); lo += r[1]; hi += r[2] }
		END { if (seen < lo || seen > hi + 50 || !lo) { print seen " seen of " lo " to " hi; exit 1 } }' "$TMP/verdict"
}

# churning V SITES ARG...: at least so many sites must have been seen often enough
churning() {
	begin "$1" churn "${@:3}"
	watch "$SECONDS_EACH" --heap
	if [ -n "${SE:-}" ]; then
		judged heap alloc_space -se "$SE"
	else
		# A few windows may miss a burst altogether, and then its site.
		judged heap alloc_space -sure 0.5 -judged "$2" ${UNMET:+-absent}
	fi
	in_windows heap 3
	rarely heap
	stop
}

part_heavy() { churning "$1" 6 heavy; }
part_skewed() { churning "$1" 4 skewed; }
# With few windows: of most places not even the error is known well. Of 20 runs on a busy machine one had
# no place with an error below one half, and one had a single one, so no number of them can be demanded.
part_bursty() { UNMET=1 churning "$1" 0 -seed $RANDOM -every "${EVERY:-200ms}" bursty; }
part_periodic() {
	churning "$1" 3 -period 250ms periodic
	[ "$RUNS" = 1 ] || churning "$1" 3 -period 100ms periodic
}

# What came after the last window counts, too: all together it is what the program wrote down last.
part_ends() {
	local bin rc
	bin=$(subject "$1" churn -ldflags='-s -w')
	"$GOPROF" --heap --source=probe -o "$TMP" -- "$bin" -for 6s heavy "$TMP/log.ends" >/dev/null 2>"$TMP/paths" </dev/null && rc=0 || rc=$?
	"$PPROFCHECK" losses -list "$LOSSES" -status $rc -allow heap:ALLOCS_UNSEEN=any -allow heap:ALLOCS_UNMET=any "$TMP/paths" "$(file heap)"
	in_windows heap 1
	comments heap >"$TMP/comments"
	judge_whole "$TMP/log.ends" "$TMP/comments"
}

# by_class V: whatever share of it each place got, the whole of a size class is as exact as the runtime's own count.
by_class() {
	local minor=${1#1.}
	awk -v minor="${minor%%.*}" '
		/^main\.(flat|pointers)/ {
			large = $1 ~ /40k$/ || minor >= 22 && $1 ~ /(32761|32k)$/
			split($5, r, /\.\./)
			n[large]++; got[large] += $3; lo[large] += r[1]; hi[large] += r[2]
		}
		END {
			if (n[0] + n[1] != 7) { print n[0] + n[1] " sites"; exit 1 }
			for (c in n) {
				printf "# %s: %.0f of %.0f..%.0f\n", c + 0 ? "large" : "slots", got[c], lo[c], hi[c] >"/dev/stderr"
				if (got[c] < 0.97 * lo[c] || got[c] > 1.03 * hi[c]) {
					printf "%s: %.0f of %.0f..%.0f\n", c + 0 ? "large" : "slots", got[c], lo[c], hi[c]
					bad = 1
				}
			}
			exit bad
		}' "$TMP/verdict"
}

# windows_of N: each of PIDS has so many
windows_of() {
	local PID n
	for PID in "${PIDS[@]}"; do
		n=$(windows heap)
		[ "${n:-0}" -ge "$1" ] || return 1
	done
}

# A machine that is busy with other things leaves too few windows: then once more, for longer.
part_edges() {
	local v=(${1//+/ }) PIDS=() logs=() i try
	for i in "${!v[@]}"; do
		begin "${v[i]}" churn edges
		PIDS+=("$PID") logs+=("$LOG")
	done
	for try in 1 2 3; do
		UNMET=yes watch $(((2 + ${#v[@]}) * try)) --heap --heap-rate 16k >"$TMP/wrong"
		windows_of 3 && break
		attempt $try "budget/edges/$1" "fewer than 3 windows" >&"$STDOUT"
	done
	cat "$TMP/wrong"
	for i in "${!v[@]}"; do
		PID=${PIDS[i]} LOG=${logs[i]}
		judged heap alloc_space -sure 0.5 -judged 0
		by_class "${v[i]}"
		in_windows heap 3
		stop
	done
}

# One that is shorter than the time between two windows has a window all the same.
part_short() {
	begin "$1" churn heavy
	for _ in 1 2 3 4; do
		UNMET=yes watch 0.1 --heap
		in_windows heap 1
	done
	stop
}

# Numbers by windows that are few, of what is rare: only where the error is small is its
# distribution near to what so many of it are meant to say. What else can be off, on a machine where
# all are waiting for a CPU: at first the program does not run, and may seem to bear that all is seen.
part_waits() {
	begin "$1" relay -own
	watch "$SECONDS_EACH" --block --mutex --budget 5%
	judged block contentions -few 2 -sure 0.5 -off 0.1
	judged block delay -few 2 -off 0.1 -within 0.1
	judged mutex contentions -few 2 -sure 0.5 -off 0.1 -judged 0
	judged mutex delay -few 2 -off 0.1
	in_windows block 3
	rarely block
	stop
}

# All together, to one budget: at the start more is paid, and 10 ms may be owed.
part_kinds() {
	local kind
	begin "$1" churn heavy
	watch 5 --heap --block --mutex --wait
	judged heap alloc_space -sure 0.5 -judged 4
	in_windows heap 3
	for kind in block wait; do in_full $kind; done
	for kind in heap block wait; do comments $kind; done | sed -n 's/^budget:.* took \([0-9.]*\) ms of \([0-9.]*\) ms.*/\1 \2/p' |
		awk '{ took += $1; cpu = $2 } END { if (NR != 3 || took > 0.06 * cpu + 30) { print took " ms of " cpu " in " NR " kinds"; exit 1 } }'
	stop
}

part_none() {
	begin "$1" churn heavy
	watch 2 --heap --heap-rate 64k --budget 0
	judged heap alloc_space
	in_full heap
	stop
}

# Wrong on purpose: the truth of twice as much, and errors a hundred times too small.
part_judge() {
	local rc
	begin "$1" churn light
	watch 1 --heap --heap-rate 1 --budget 0
	stop
	awk '$1 == "at" { $4 *= 2; $7 *= 2 } { print }' "$LOG" >"$TMP/twice"
	"$PPROFCHECK" budget "$LOG" "$(file heap)" >/dev/null || echo "it refuses what is right"
	"$PPROFCHECK" budget "$TMP/twice" "$(file heap)" >/dev/null && rc=0 || rc=$?
	[ $rc = 1 ] || echo "it accepts half"
	awk '$1 != "at" || n++ < 5' "$LOG" >"$TMP/short"
	"$PPROFCHECK" budget "$TMP/short" "$(file heap)" >/dev/null 2>&1 && rc=0 || rc=$?
	[ $rc = 1 ] || echo "it accepts a log that ends before the window does"
}

# Its end in a window is an answer that does not come; else nobody waits for one. Another one goes on.
part_attacher() {
	local budget prof rc attachers
	begin "$1" churn light
	for budget in 5% 0; do
		: >"$TMP/err"
		"$GOPROF" -p "$PID" --heap --source=probe --budget $budget -d 30s -o "$TMP" >/dev/null 2>"$TMP/err" &
		prof=$!
		STARTED+=("$prof")
		for ((i = 0; i < 100; i++)); do grep -q profiling "$TMP/err" && break; sleep 0.1; done
		attachers=$(pgrep -P $prof -x uprobe-attacher) || :
		[ -n "$attachers" ] || { echo "no attacher"; kill $prof; continue; }
		# One that was there for a moment only, to measure a price, may be gone.
		# shellcheck disable=SC2086
		kill -KILL $attachers 2>/dev/null || :
		sleep 1
		kill -INT $prof
		wait $prof && rc=0 || rc=$?
		[ $rc = 3 ] || echo "--budget $budget: exit $rc"
		grep -qE 'heap: [1-9][0-9]* times somebody killed the process that keeps the probes' "$TMP/err" ||
			echo "--budget $budget: not said"
	done
	stop
}

# A refusal takes as long as some probes, where a profile would take a hundred times that.
part_crowd() {
	local rc from took exe
	begin "$1" churn heavy
	exe=$(readlink /proc/"$PID"/exe)
	: >"$TMP/mapped"
	mkfifo "$TMP/crowd"
	tests/support/manymaps.py "$exe" 3 60000 <"$TMP/crowd" >"$TMP/mapped" &
	STARTED+=("$!")
	exec 9>"$TMP/crowd"
	for ((i = 0; i < 300; i++)); do grep -q mapped "$TMP/mapped" && break; sleep 0.1; done
	grep -q mapped "$TMP/mapped" || echo "it is not mapped so often"
	from=${EPOCHREALTIME/./}
	"$GOPROF" -p "$PID" --heap --mutex --source=probe -d 3s -o "$TMP" >"$TMP/paths" 2>"$TMP/err" </dev/null && rc=0 || rc=$?
	took=$(((${EPOCHREALTIME/./} - from) / 1000))
	echo "# $took ms: $(sed -n '/heap: putting/s/.*takes/takes/p' "$TMP/err")" >&2
	[ $rc = 1 ] || echo "exit $rc"
	[ ! -s "$TMP/paths" ] || echo "a profile was written"
	[ $took -lt 2500 ] || echo "it took $took ms"
	for kind in heap mutex; do
		grep -qE "$kind: putting in one probe takes the kernel [0-9]+ ms" "$TMP/err" || echo "$kind: not said"
	done
	exec 9>&-
	wait "${STARTED[-1]}" || :
	rm "$TMP/crowd"
	UNMET=yes watch 2 --heap
	[ "$(windows heap)" -ge 1 ] || echo "no windows afterwards"
	stop
}

# links PID: of its attachers
links() {
	local k
	for k in $(pgrep -P "$1" -x uprobe-attacher); do readlink /proc/"$k"/fd/* || :; done | sed -n /bpf_link/p | wc -l
}

# links_are PID N SECONDS
links_are() {
	local i
	for ((i = 0; i < $3 * 10; i++)); do [ "$(links "$1")" = "$2" ] && return; sleep 0.1; done
	return 1
}

# Stopped while it observes everything: its probes go; they come back with it, and what was missed is said.
part_stopped() {
	local prof rc all from took lost
	begin "$1" churn light
	: >"$TMP/err"
	"$GOPROF" -p "$PID" --heap --source=probe --heap-rate 16k -d 60s -o "$TMP" >"$TMP/paths" 2>"$TMP/err" &
	prof=$!
	STARTED+=("$prof")
	for ((i = 0; i < 100; i++)); do grep -q profiling "$TMP/err" && break; sleep 0.1; done
	# Another attacher has probes while a price is measured; when we are stopped then, they stay.
	sleep 0.5
	for ((i = 0; i < 100; i++)); do [ "$(pgrep -c -P $prof -x uprobe-attacher)" = 2 ] && break; sleep 0.1; done
	all=$(links $prof)
	[ "$all" -gt 1 ] || echo "$all links"
	from=$(date +%s%N)
	kill -STOP $prof
	# The one that stays is hit once a GC cycle.
	links_are $prof 1 20 || echo "$(links $prof) links of $all are still there"
	sleep 1
	kill -CONT $prof
	# The first time, the attacher of the many tries its first probe alone: with a link of its own.
	links_are $prof $((all - 1)) 20 || echo "$(links $prof) links of $((all - 1)) came back"
	took=$((($(date +%s%N) - from) / 1000000))
	sleep 1
	kill -INT $prof
	wait $prof && rc=0 || rc=$?
	[ $rc = 3 ] || echo "exit $rc"
	lost=$(sed -n 's/.*heap: \([0-9]*\) milliseconds in which nothing was observed.*/\1/p' "$TMP/err")
	[ "${lost:-0}" -ge 1000 ] && [ "$lost" -le "$took" ] || echo "${lost:-no} ms of at most $took: $(tail -n 3 "$TMP/err")"
	comments heap | sed -n 's/^missed:/taken for allocations that pass no probe: &/p'
	stop
}

part() {
	wanted "$1" || return 0
	echo "## $1 $2" >&2
	steps part_"$1" "$2"
	outcome "budget/$1/$2"
}

: >"$Z"
for ((run = 0; run < RUNS; run++)); do
	for v in $VERSIONS; do
		for name in judge light heavy skewed bursty periodic ends edges short waits kinds none attacher crowd stopped; do part $name "$v"; done
	done
	for v in 1.21.13 1.22.12 1.22.12+1.27.4; do part edges $v; done
done
deviations() {
	awk '{ s += $1; q += $1 * $1 } END {
		if (NR < 30) { print "only " NR; exit 1 }
		m = s / NR; d = sqrt(q / NR - m * m)
		printf "# %d deviations: mean %+.2f, spread %.2f\n", NR, m, d >"/dev/stderr"
		if (m > 4 / sqrt(NR) + 0.1 || m < -4 / sqrt(NR) - 0.1) print "their mean is " m
		if (d > 1.4 || d < 0.6) print "their spread is " d }' "$Z"
}
if [ "$RUNS" -gt 1 ]; then
	steps deviations
	outcome budget/errors
fi
finish
