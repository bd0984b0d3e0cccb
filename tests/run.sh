#!/bin/bash
# Runs suites of tests and counts them.
#
#	tests/run.sh [--show] SUITE...      SUITE: unit asan corpus layering golden e2e bench stress
#
# A script of tests/golden, tests/e2e, tests/bench or tests/stress prints one line per outcome, "ok NAME",
# "not ok NAME - why" or "skip NAME - why", and exits nonzero when something failed. One that
# dies, is stopped by the clock or prints no outcome counts as failed. Everything it says is in
# $O/log/, how long each took in $O/log/times; --show repeats it here. E2E=NAME runs one script of
# a suite. The programs have been built before: see the Makefile.
#
# Scripts run in three groups (BESIDE, PAIRS and the others), see below. An outcome that had more
# than one attempt is in $O/log/attempts and told at the end, with why the earlier ones failed: a
# script that looks again by itself says so in a line "# attempt N of NAME: why". The ten slowest
# scripts follow; the very last line is "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.." || exit 1

O=${O:-build}
case $O in /*) ;; *) O=$PWD/$O ;; esac
export O ROOT=$PWD GOPROF=$O/goprof-bpf
LOG=$O/log
UNIT_LIMIT=120
CORPUS_LIMIT=300
GOLDEN_LIMIT=${SCRIPT_LIMIT:-180}
E2E_LIMIT=${SCRIPT_LIMIT:-900} # one script's toolchains may have to be fetched

# The programs of all scripts are built from the start (tests/support/subjects.sh), with what the
# others leave idle: programs of cmocka, corpora and these scripts, BUSY_JOBS beside each other.
# Scripts that compare exactly: a busy machine does not change their outcomes, and they change
# nothing for others on it. The longest first.
BESIDE=" kernels_arm64 kernels_amd64 bad_binary trace_out frames arm64 heap_read flame package unknown_go trace_readers rtvars goroutine contention_read counters allocsites
	heapdump_bad heapdump_hprof dumps heap_types heapdump_types doctor heapdump_out waitreasons layout_tab verifier lockdown drain all_pick "
# Scripts that judge by counts, shares, callers, files and exit statuses, never by how fast something is: two at a
# time, when nobody builds any more. (Not contention_probe and all_block: of a hundred goroutines that lock at once on a busy machine some are
# preempted between their time stamp and the queue, and Go charges by who is the last one there, 7 % more in one of 13 runs. Not wait, either: its
# storms are fewer beside another one.) Beside heap_live, which must look at each collection in time, run two that sleep.
PAIRS=" images enable cpu_more stress namespaces heap_probe command heal bad_input cpu_hard caps
	callbacks heap_labels cpu_leaf demo ps all_whose budget_counts heap_live contention_enable unanswered
	all_host realsoft all_read realwait "
SLOW_UNITS="attacher binary heap_worlds undercount worker guardian looks buildinfo"
JOBS=${JOBS:-$(nproc)}
[ "$JOBS" -le 3 ] || JOBS=3
BUSY_JOBS=$((JOBS + 1)) # each of them sleeps now and then
PAIR_JOBS=$((JOBS < 2 ? 1 : 2))

AGAIN_MAX=${AGAIN_MAX-${E2E:-4}} # scripts that are run a second time: none when one is asked for
case $AGAIN_MAX in *[!0-9]*) AGAIN_MAX=0 ;; esac
AGAIN_UNTIL=$((30 * 60)) # seconds from our start: a slow machine needs some 28 minutes
SLOWEST=10

passed=0 failed=0 skipped=0 show= BUILDER= rc=0 good=0 bad=0 skips=0 FAILING=()
mkdir -p "$LOG"
: >"$LOG/times"
export JUDGED_LOG=$LOG/comparisons # by judges, with samples (tests/README.md)
: >"$JUDGED_LOG"
: >"$LOG/attempts"
rm -f "$LOG/built_late"

pass() { passed=$((passed + 1)); echo "ok $1"; }
fail() { failed=$((failed + 1)); echo "not ok $1 - $2"; }
skip() { skipped=$((skipped + 1)); echo "skip $1 - $2"; }

# Why a command ended, in words.
ending() {
	case $1 in
	124|137) echo "stopped after its time limit" ;;
	lost)    echo "somebody killed what ran it" ;;
	*)       echo "exit status $1" ;;
	esac
}

# The end of a log, indented so that no line of it can be taken for an outcome or a total.
tail_of() { tail -n "${2:-25}" "$1" | sed 's/^/    | /'; }

# ---- programs, JOBS at a time -------------------------------------------------------------------

# beside N RUN TELL NAME...: RUN NAME in the background, N of them at a time; then TELL NAME RC here, as each ends.
beside() {
	local most=$1 run=$2 tell=$3 name
	local -A STARTED=()
	shift 3
	for name; do
		next_ended "$most"
		mkdir -p "$(dirname "$LOG/$name")"
		rm -f "$LOG/$name.ended"
		STARTED[$name]=1
		{
			"$run" "$name"
			echo $? >"$LOG/$name.ended"
		} &
	done
	next_ended 1
}

# next_ended N: waits while N or more are under way. Without a child left, what has not said how it ended was killed.
next_ended() {
	local name rc
	while [ ${#STARTED[@]} -ge "$1" ]; do
		wait -n
		rc=$?
		for name in "${!STARTED[@]}"; do
			[ -s "$LOG/$name.ended" ] || [ $rc = 127 ] || continue
			"$tell" "$name" "$(cat "$LOG/$name.ended" 2>/dev/null || echo lost)"
			unset "STARTED[$name]"
		done
	done
}

# unit_run SUITE/PROGRAM: one cmocka program. Its TAP goes to a log.
unit_run() {
	local dir=$O bin
	[ "${1%%/*}" = unit ] || dir=$O/${1%%/*}
	bin=$dir/tests/unit/${1#*/}
	[ ! -f "tests/bpfhost/${1#*/}.c" ] || bin=$dir/tests/bpfhost/${1#*/}
	CMOCKA_MESSAGE_OUTPUT=TAP timeout -k 10 $UNIT_LIMIT "$bin" >"$LOG/$1.log" 2>&1 </dev/null
}

# unit_tell SUITE/PROGRAM RC: one line here, every test counted.
unit_tell() {
	local name=$1 rc=$2 log=$LOG/$1.log good bad skips plan
	# What is skipped is "not ok" to some versions of cmocka, and "ok" to others.
	bad=$(grep '^not ok ' "$log" | grep -civ '# skip')
	skips=$(grep -ciE '^(not )?ok .*# skip' "$log")
	good=$(grep '^ok ' "$log" | grep -civ '# skip')
	plan=$(awk -F'[.][.]' '/^1[.][.][0-9]+$/ { n += $2 } END { print n + 0 }' "$log")
	if [ $bad = 0 ] && { [ $rc != 0 ] || [ $plan = 0 ] || [ $plan != $((good + skips)) ]; }; then
		bad=1
		echo "died: $(ending $rc), $good of $plan tests done" >>"$log"
	fi
	passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + skips))
	grep -iE '^(not )?ok .*# skip' "$log" | sed -E "s/^(not )?ok [0-9]+ (- |# skip )?/skip ${name//\//\\/}: /I"
	if [ $bad = 0 ]; then
		echo "ok $name ($good tests)"
	else
		echo "not ok $name - $bad failed, see $log"
		tail_of "$log"
	fi
}

# names SUITE GLOB...: SUITE/NAME of each file there is, in NAMES.
names() {
	local suite=$1 src
	NAMES=()
	shift
	for src; do
		[ ! -f "$src" ] || NAMES+=("$suite/$(basename "$src" .c)")
	done
}

# Those that take seconds first, so that none of them is waited for alone.
units_of() {
	# shellcheck disable=SC2086
	names "$1" $(printf 'tests/unit/test_%s.c ' $SLOW_UNITS) tests/unit/test_*.c tests/bpfhost/test_*.c
	mapfile -t NAMES < <(printf '%s\n' "${NAMES[@]}" | awk '!seen[$0]++')
	beside $BUSY_JOBS unit_run unit_tell "${NAMES[@]}"
	[ ${#NAMES[@]} -gt 0 ] || skip "$1" "there are no unit tests"
}

# corpus_run corpus/fuzz_NAME: all its inputs, through the sanitized target.
corpus_run() {
	local name=${1#*/fuzz_} seeds=()
	[ ! -d "testdata/corpus/$name" ] || seeds=("testdata/corpus/$name")
	timeout -k 10 $CORPUS_LIMIT "$O/asan/tests/fuzz/replay_$name" "${seeds[@]}" >"$LOG/$1.log" 2>&1 </dev/null
}

corpus_tell() {
	local name=${1#*/fuzz_} rc=$2 log=$LOG/$1.log
	if [ ! -d "testdata/corpus/$name" ]; then
		fail "corpus/$name" "testdata/corpus/$name is missing"
	elif [ $rc = 0 ]; then
		pass "corpus/$name ($(tail -n 1 "$log"))"
	else
		fail "corpus/$name" "$(ending $rc), see $log"
		tail_of "$log"
	fi
}

run_corpus() {
	names corpus tests/fuzz/fuzz_*.c
	beside $BUSY_JOBS corpus_run corpus_tell "${NAMES[@]}"
	[ ${#NAMES[@]} -gt 0 ] || skip corpus "there are no fuzz targets"
}

run_layering() {
	local log=$LOG/layering.log
	if sh tests/layering.sh >"$log" 2>&1; then
		pass layering
	else
		fail layering "an include crosses a border"
		tail_of "$log"
	fi
}

# script_run NAME [LOG]: one script into a log, and its seconds, by the clock and of CPU, into
# $LOG/times. Its exit status.
script_run() {
	local log=${2:-$LOG/$1.log} limit=$E2E_LIMIT TIMEFORMAT="%0R %0U %0S" rc
	mkdir -p "$(dirname "$log")"
	case $1 in golden/*) limit=$GOLDEN_LIMIT ;; esac
	{ time timeout -k 10 "$limit" bash "tests/$1.sh" >"$log" 2>&1 </dev/null; } 2>"$log.time"
	rc=$?
	awk -v name="$1" 'END { print name ": " $1 " s, " $2 + $3 " s of CPU" }' "$log.time" >>"$LOG/times"
	return $rc
}

# script_log NAME LOG [RC]: runs it, unless it has run and ended with RC. Sets rc, good, bad, skips.
script_log() {
	rc=${3:-}
	[ -n "$rc" ] || { script_run "$1" "$2"; rc=$?; }
	good=$(grep -c '^ok ' "$2")
	bad=$(grep -c '^not ok ' "$2")
	skips=$(grep -c '^skip ' "$2")
	# Where an outcome failed a script ends with 1.
	if grep -E ': unbound variable$|^panic: ' "$2" >"$2.dead"; then
		echo "not ok $1 - part of it died: $(head -n 1 "$2.dead")" >>"$2"
	elif [ $rc != 0 ] && { [ $bad = 0 ] || [ $rc != 1 ]; }; then
		echo "not ok $1 - $(ending $rc), see $2" >>"$2"
	elif [ $((good + bad + skips)) = 0 ]; then
		echo "not ok $1 - said nothing, see $2" >>"$2"
	fi
	bad=$(grep -c '^not ok ' "$2")
}

# Lets nothing but a log's outcome lines through, unless all is to be seen: $2 failed, called $3.
tell() {
	if [ -n "$show" ]; then
		sed -E 's/^([0-9]+ passed, [0-9]+ failed)/    \1/' "$1"
	else
		grep -E '^(ok|not ok|skip) ' "$1" | sed "s/^not ok /${3:-}/"
	fi
	[ "$2" = 0 ] || [ -n "$show" ] || tail_of "$1" 40
}

# both_runs FIRST SECOND SCRIPT DONE: two runs of a script, each outcome line as it counts. What failed
# once has failed, unless the other run was judged there and found it good. That the first run died is
# mended by a second one that judged something and came to its end (DONE).
both_runs() {
	awk -v script="$3" -v done="$4" '
		# A name may have blanks; it ends where the reason begins.
		{ name = $0; sub(/^(not ok|ok|skip) /, "", name); sub(/ - .*/, "", name) }
		/^not ok / && FILENAME == ARGV[1] { bad[name] = 1; first[++n] = $0; of[n] = name; next }
		/^(ok|skip) / && FILENAME == ARGV[1] { good[name] = 1; print; next }
		/^ok / && FILENAME == ARGV[2] { again[name] = 1; if (!(name in good) && !(name in bad)) print }
		/^not ok / && FILENAME == ARGV[2] { worse[name] = 1; if (!(name in good) && !(name in bad)) print }
		END {
			end = script "/end"
			sub(/.*\//, "", end) # the runner says SUITE/NAME, the script itself NAME
			for (i = 1; i <= n; i++) {
				death = of[i] == script || of[i] == end
				mended = !(of[i] in worse) && (of[i] in again || (death && done))
				print mended ? "ok " of[i] " (in a second run; the first: " first[i] ")" : first[i]
			}
		}' "$1" "$2"
}

# A script of which something failed is run once more, when all else is done; both times are told.
# tests/README.md says what that does to the level of the whole. Not when much has failed, which is
# no chance.
second_looks() {
	local name log
	for name in "${FAILING[@]}"; do
		log=$LOG/$name.log
		cp "$log" "$log.first"
		if [ ${#FAILING[@]} -gt $AGAIN_MAX ] || [ $SECONDS -gt $AGAIN_UNTIL ]; then
			rc=1
		else
			awk '/^not ok / { i = index($0, " - "); print "attempt 1 of " substr($0, 8, i - 8) ": " substr($0, i + 3) }' \
				"$log.first" >>"$LOG/attempts"
			script_log "$name" "$log.again"
			note_attempts "$log.again"
			both_runs "$log.first" "$log.again" "$name" $((rc == 0 && good > 0)) >"$log.both"
			cp "$log.both" "$log"
		fi
		bad=$(grep -c '^not ok ' "$log")
		passed=$((passed + $(grep -c '^ok ' "$log"))) failed=$((failed + bad))
		skipped=$((skipped + $(grep -c '^skip ' "$log")))
		echo "== $name, which had failed once"
		grep -E '^not ok |^ok .*in a second run' "$log"
		[ $bad = 0 ] || [ ! -f "$log.again" ] || tail_of "$log.again" 40
	done
}

# The attempts that a script made by itself, of its log.
note_attempts() { sed -n 's/^# attempt \([0-9]* of .*\)/attempt \1/p' "$1" >>"$LOG/attempts"; }

# run_script NAME [RC]: count its outcome lines. RC is how it ended, if it did.
run_script() {
	local name=$1 log=$LOG/$1.log
	script_log "$name" "$log" "${2:-}"
	note_attempts "$log"
	case $name:$bad in
	*:0)   tell "$log" 0 ;;
	e2e/*) tell "$log" $bad "not yet ok "; FAILING+=("$name"); return ;;
	*)     tell "$log" $bad "not ok " ;;
	esac
	passed=$((passed + good)) failed=$((failed + bad)) skipped=$((skipped + skips))
}

# The programs that the later scripts need, built from now on, at the lowest priority.
build_ahead() {
	[ -z "${E2E:-}" ] && [ -x tests/support/subjects.sh ] && [ -z "$BUILDER" ] || return 0
	nice -n 19 tests/support/subjects.sh build >"$LOG/subjects.log" 2>&1 </dev/null &
	BUILDER=$!
}

# Measuring begins when nobody builds any more. What was not built by now is noted by lib.sh's made().
built() {
	[ -z "$BUILDER" ] || wait "$BUILDER" || echo "# not all programs were built: see $LOG/subjects.log"
	BUILDER=
	[ -n "${E2E:-}" ] || export BUILT_LATE=$LOG/built_late
}

# The scripts of a suite, group by group, each in the order of its list.
scripts_of() {
	local script name n=0 alone='' beside='' pairs='' all=" "
	for script in tests/"$1"/*.sh; do
		[ -f "$script" ] || continue
		name=$(basename "$script" .sh)
		[ -z "${E2E:-}" ] || [[ " $E2E " == *" $name "* ]] || continue
		case $name in lib*|_*) continue ;; esac
		n=$((n + 1)) all="$all$name "
		case $1 in
		golden) beside="$beside $1/$name" ;;
		e2e)    in_list "$BESIDE$PAIRS" "$name" || alone="$alone $1/$name" ;;
		*)      alone="$alone $1/$name" ;;
		esac
	done
	if [ "$1" = e2e ]; then
		for name in $BESIDE; do ! in_list "$all" "$name" || beside="$beside $1/$name"; done
		for name in $PAIRS; do ! in_list "$all" "$name" || pairs="$pairs $1/$name"; done
	fi
	# shellcheck disable=SC2086
	beside $BUSY_JOBS script_run run_script $beside
	[ "$1" != e2e ] || built
	# shellcheck disable=SC2086
	beside $PAIR_JOBS script_run run_script $pairs
	for name in $alone; do run_script "$name"; done
	[ $n -gt 0 ] || skip "$1" "there is no such script"
}

in_list() { case " "$(echo $1)" " in *" $2 "*) return 0 ;; *) return 1 ;; esac; }

run_suite() {
	case $1 in
	unit|asan)        units_of "$1" ;;
	corpus)           run_corpus ;;
	layering)         run_layering ;;
	golden|e2e|bench|stress) scripts_of "$1" ;;
	*)                fail "$1" "there is no such suite" ;;
	esac
}

# What a reader of a run should know before its total.
summary() {
	if [ -s "$LOG/attempts" ]; then
		echo "== needed more than one attempt"
		sed 's/^/# /' "$LOG/attempts"
	fi
	if [ -s "$LOG/built_late" ]; then
		echo "== built by the script that needed it (not in tests/support/subjects.sh)"
		sort -u "$LOG/built_late" | sed 's/^/# /'
	fi
	[ -s "$LOG/times" ] || return 0
	echo "== the slowest scripts"
	sort -t : -k 2 -rn "$LOG/times" | head -n $SLOWEST | sed 's/^/# /'
	echo "# the whole run: $SECONDS s"
}

in_list "$*" e2e && build_ahead
for arg in "$@"; do
	case $arg in
	--show) show=1 ;;
	*)      echo "== $arg"; run_suite "$arg" ;;
	esac
done
second_looks
# The level of each comparison is computed for so many of them.
read -r sampled windowed < <(awk '{ s += $2; w += $3 } END { print s + 0, w + 0 }' "$JUDGED_LOG")
if [ $((sampled + windowed)) != 0 ]; then
	read -r most_sampled most_windowed < <("$O/tools/pprofcheck" level | awk '/^whole/ { print $4, $6 }')
	[ "$sampled" -le "${most_sampled:-0}" ] && [ "$windowed" -le "${most_windowed:-0}" ] &&
		pass "comparisons: $sampled of at most $most_sampled with a known variance, $windowed of $most_windowed in windows" ||
		fail comparisons "$sampled with a known variance, $windowed in windows: the level is for $most_sampled and $most_windowed"
fi
summary
echo "$passed passed, $failed failed, $skipped skipped" | tee "$LOG/total"
[ "$failed" = 0 ]
