#!/bin/bash
# Block and mutex profiles read from a target's memory equal what the target says of itself at
# the same standstill: every sample, its frames with their addresses, its contentions, and its
# delay within 1 %.
#
# A request for a profile waits too, and leaves records of that behind: these only grow. So the
# target is asked before and after: the reading has all samples of the first answer, with no value
# less, and no more than the second one; what the program itself waited for is the same in all.
#
#	VERSIONS	of Go; all minors: 1.16.15 1.17.13 1.18.10 1.19.13 1.20.14 1.21.13 1.22.12
#			1.23.12 1.24.13 1.25.14 1.26.11 1.27.4
. tests/support/lib.sh
need_root && need_go

STILL='(?m)(^| )main\.'
# What stands still may call the runtime, which has locks of its own and waits for its collector.
BUT='(?m)(^| )runtime\.(unlock|gcStart) '
comments() { "$PPROFCHECK" comments "$1"; }
last_said() { tail -n 3 "$TMP/said" | tr '\n' ' '; }
minor() { local v=${1#1.}; echo "${v%%.*}"; }

# reading KIND [ARG...]: into $TMP/read.KIND; RC.
reading() {
	local kind=$1 path
	shift
	rm -f "$TMP/read.$kind"
	path=$("$GOPROF" -p "$PID" --"$kind" -d 10ms -o "$TMP/out" "$@" 2>"$TMP/said") && RC=0 || RC=$?
	[ -z "$path" ] || mv "$path" "$TMP/read.$kind"
}

# grew NAME FILE...: in this order; passes, or shows where not.
grew() {
	local name=$1
	shift
	if "$PPROFCHECK" grew -addresses -tolerance 0.01 -still "$STILL" -but "$BUT" "$@" >"$TMP/diff" &&
		"$PPROFCHECK" check "$TMP/read.$KIND" >>"$TMP/diff"; then
		pass "$name"
	else
		fail "$name" "they differ"
		head -n 60 "$TMP/diff"
	fi
}

# gone: the program, if it has not ended
gone() { { kill -KILL "$PID"; wait "$PID"; } 2>/dev/null || :; }

# equal NAME KIND CLOCK [ARG...]: by the whole program. CLOCK must be said in the comments.
equal() {
	local name="$1: $2" clock=$3
	KIND=$2
	shift 3
	[ "$clock" = first ] || http_get "$PORT" /debug/pprof/"$KIND" "$TMP/one" || { fail "$name" "no answer"; return; }
	reading "$KIND" "$@"
	[ $RC = 0 ] || { fail "$name" "exit status $RC: $(last_said)"; return; }
	http_get "$PORT" /debug/pprof/"$KIND" "$TMP/two" || { fail "$name" "no answer"; return; }
	case $clock in
	first) # nobody has asked before: the clock of the program is what it will find
		grew "$name, before it was ever asked" "$TMP/read.$KIND" "$TMP/two"
		comments "$TMP/read.$KIND" | grep '^clock: .*\(as it would measure\|measured here; the program has not\)' ||
			fail "$name" "$(comments "$TMP/read.$KIND" | grep clock)" ;;
	*)
		grew "$name" "$TMP/one" "$TMP/read.$KIND" "$TMP/two"
		comments "$TMP/read.$KIND" | grep -q '^clock: .* as the program itself measured it' ||
			fail "$name" "$(comments "$TMP/read.$KIND" | grep clock)" ;;
	esac
}

# The runtime's own locks, which are in mutex profiles from Go 1.22 on: how many readings had some.
LOCKS=0
count_locks() {
	if "$PPROFCHECK" stacks -type contentions "$TMP/read.mutex" | has '^[0-9]* runtime\.\(unlock\|_Lost\)'; then
		LOCKS=$((LOCKS + 1))
	fi
}

# both NAME PROGRAM [ARG...]
both() {
	local name=$1 first=
	shift
	start "$@" || { fail "$name" "did not start"; return; }
	# Before its first profile: only with rates of 1 it has not had to measure.
	case " $* " in *" -block 1 "*) first=1 ;; esac
	[ -z "$first" ] || equal "$name" block first
	equal "$name" block own
	equal "$name" mutex own
	count_locks
	gone
}

# grown FILE...: each has what the one before it had, and what stands still is the same.
grown() {
	local rc
	"$PPROFCHECK" grew -addresses -tolerance 0.01 -still "$STILL" -but "$BUT" "$@" >"$TMP/diff" && rc=0 || rc=$?
	[ $rc = 0 ] || sed -n 1,6p "$TMP/diff"
	return $rc
}

said_in() { comments "$1" | has "$2" || { echo "not said: $2"; return 1; }; }

# Read again and again while it waits: nothing is ever less than it was, and nothing fails.
busy() {
	local i kind
	start "$1" -block 1 -mutex 1
	http_get "$PORT" /more "$TMP/ok" &
	for kind in block mutex; do
		for i in 0 1 2 3 4 5; do
			reading $kind
			[ $RC = 0 ] || only_torn || echo "exit status $RC: $(last_said)"
			mv "$TMP/read.$kind" "$TMP/busy.$i"
			"$PPROFCHECK" check "$TMP/busy.$i"
		done
		"$PPROFCHECK" grew -addresses -tolerance 0.0001 "$TMP"/busy.{0,1,2,3,4,5} >"$TMP/diff" ||
			{ echo "they did not grow:"; sed '/distinct/d' "$TMP/diff"; }
	done
	wait $!
}
only_torn() {
	[ $RC = 3 ] && grep '^goprof-bpf: .*: [0-9]* [a-z]' "$TMP/said" >"$TMP/losses" && ! grep -qv 'changed while being read' "$TMP/losses"
}

# A command: what it recorded until just before its end. It may end at any moment of a reading.
command_ends() {
	local path rc
	"$GOPROF" --block --source=read -d 60s -o "$TMP" -- "$1" -block 1 -rounds 3 -end >/dev/null 2>"$TMP/said" && rc=0 || rc=$?
	[ $rc = 0 ] || [ $rc = 3 ] || echo "exit status $rc"
	path=$(grep '\.block\.pb' "$TMP/said")
	[ -s "$path" ] || { cat "$TMP/said"; return 1; }
	said_in "$path" '^state: as of [0-9.]* s after its start'
	"$PPROFCHECK" stacks "$path" | has main.work || echo "nothing of it is there"
	grep -q 'source read: what the command records' "$TMP/said" || cat "$TMP/said"
}

# It records no more: what there is can be asked for, and is not taken for the present.
switched_off() {
	start "$1" -block 1 -mutex 1 -off
	reading block --source=read
	[ $RC = 0 ] || echo "exit status $RC: $(last_said)"
	said_in "$TMP/read.block" '^rate: none .* now; what is here was recorded before'
	http_get "$PORT" /debug/pprof/block "$TMP/one"
	grown "$TMP/read.block" "$TMP/one"
	"$GOPROF" -p "$PID" --block --mutex -d 10ms -o "$TMP/out" >/dev/null 2>"$TMP/said" || last_said
	[ "$(grep -c 'source probe: the target does not record it' "$TMP/said")" = 2 ] || last_said
	gone
	start "$1"
	reading mutex --source=read
	[ $RC = 1 ] && grep -q 'does not record it (runtime.mutexprofilerate is 0); --source=enable or probe works' "$TMP/said" ||
		echo "never on: exit status $RC: $(last_said)"
}

# Up to Go 1.19 what was recorded is worth what the fraction is when it is shown.
fraction_changes() {
	local prof path i
	start "$1" -mutex 2
	: >"$TMP/said"
	"$GOPROF" -p "$PID" --mutex -d 60s -o "$TMP/out" >"$TMP/path" 2>"$TMP/said" &
	prof=$!
	STARTED+=("$prof")
	for ((i = 0; i < 100; i++)); do grep -q 'profiling pid' "$TMP/said" && break; sleep 0.1; done
	http_get "$PORT" /debug/pprof/mutex "$TMP/one"
	http_get "$PORT" "/rate?mutex=20" "$TMP/ok"
	kill -INT $prof
	wait $prof && RC=0 || RC=$?
	[ $RC = 3 ] || echo "exit status $RC, not 3: $(last_said)"
	path=$(cat "$TMP/path")
	said_in "$path" 'since then runtime.mutexprofilerate went from 2 to 20'
	grown "$path" "$TMP/one"
	http_get "$PORT" "/rate?mutex=0" "$TMP/ok"
	reading mutex --source=read
	[ $RC = 1 ] || echo "read with a fraction of 0: $(last_said)"
}

# A Go newer than any known, stripped: equal, with a warning; and nothing is written.
unknown() {
	local bin=$2 GOPROF=$O/newest/$1/goprof-bpf kind
	[ -x "$GOPROF" ] || { echo "no $GOPROF: make it"; return 1; }
	start "$bin" -block 1 -mutex 1
	for kind in block mutex; do
		http_get "$PORT" /debug/pprof/$kind "$TMP/one"
		reading $kind --source=read
		[ $RC = 3 ] && grep -q 'the Go version is not known here' "$TMP/said" || echo "exit status $RC: $(last_said)"
		http_get "$PORT" /debug/pprof/$kind "$TMP/two"
		grown "$TMP/one" "$TMP/read.$kind" "$TMP/two"
	done
	http_get "$PORT" /off "$TMP/ok"
	reading block --source=enable
	[ $RC = 1 ] && grep -q 'nothing is written in a Go that is not known here' "$TMP/said" ||
		echo "enable: exit status $RC: $(last_said)"
}

# part NAME FUNCTION ARG...
part() {
	steps "${@:2}"
	gone
	outcome "$1"
}

# Each of 1.16 to 1.19, 1.20 to 1.22, 1.23 to 1.26 and 1.27 on has rules of its own.
for v in ${VERSIONS:-1.19.13 1.22.12 1.26.11 1.27.4}; do
	plain=$(subject "$v" waitself) && stripped=$(subject "$v" waitself -buildmode=pie '-ldflags=-s -w') ||
		{ fail "go$v" "cannot be built"; continue; }
	both "go$v" "$plain" -block 1 -mutex 1
	both "go$v, stripped PIE, sampled" "$stripped" -block 2000000 -mutex 3 -rounds 2
	[ "$(minor "$v")" -lt 22 ] || [ "$(minor "$v")" -gt 24 ] ||
		both "go$v, stacks of runtime locks" \
			env GODEBUG=runtimecontentionstacks=1 "$plain" -block 1 -mutex 1
	[ "$(minor "$v")" -lt 23 ] ||
		both "go$v, deeper stacks" env GODEBUG=profstackdepth=300 "$plain" -block 1 -mutex 1
	[ "$(minor "$v")" -lt 23 ] || [ "$(minor "$v")" -gt 23 ] && [ -z "${VERSIONS:-}" ] ||
		both "go$v, by tables" env GODEBUG=tracefpunwindoff=1 "$plain" -block 1 -mutex 1
done
case " ${VERSIONS:-1.27.4} " in
*" 1.2"[2-9]*) [ $LOCKS -gt 0 ] && pass "locks of the runtime were among them ($LOCKS readings)" ||
	fail "locks of the runtime" "none was ever contended: nothing was shown of them" ;;
esac

new=$(subject 1.27.4 waitself) && stripped=$(subject 1.27.4 waitself -buildmode=pie '-ldflags=-s -w') &&
	old=$(subject 1.19.13 waitself) || { fail "programs" "cannot be built"; finish; }
part "read while it waits" busy "$new"
part "a command that ends" command_ends "$new"
part "switched off" switched_off "$new"
part "go1.19, another fraction meanwhile" fraction_changes "$old"
part "known to 1.26, go1.27" unknown 26 "$stripped"
finish
