#!/bin/bash
# What is read from a target's memory equals what the target says of itself at the same
# standstill: every sample, its frames with their addresses, its label and all four values.
#
# A request for the profile changes nothing that a heap profile shows, as long as no collection
# ends. But it leaves new buckets for its own allocations behind, which show as samples of zeros.
# So the target is asked before and after: the reading has all samples of the first answer, no
# more than the second, and all values are the same.
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_go
HEAPREAD=$O/tests/heapread

# same NAME: the reading between the two answers, $TMP/{one,read,two}.pb.gz.
same() {
	judge judge_read "$TMP/one.pb.gz" "$TMP/read.pb.gz" "$TMP/two.pb.gz"
	outcome "$1" && return
	head -n 60 "$TMP/diff"
	return 1
}

# equal NAME: the subject PID at PORT, by the reader alone.
equal() {
	http_get "$PORT" /debug/pprof/heap "$TMP/one.pb.gz" || { fail "$1" "no answer"; return 1; }
	"$HEAPREAD" "$PID" "$TMP/read.pb.gz" >"$TMP/said" 2>&1 ||
		{ fail "$1" "exit status $?: $(cat "$TMP/said")"; return 1; }
	http_get "$PORT" /debug/pprof/heap "$TMP/two.pb.gz" || { fail "$1" "no answer"; return 1; }
	same "$1"
}

# started NAME PROGRAM [ARG...]: one of its own
started() {
	start "${@:2}" || { fail "$1" "did not start"; return; }
	equal "$1"
}

# by_command NAME: the whole program, over a window of a second.
by_command() {
	local path

	http_get "$PORT" /debug/pprof/heap "$TMP/one.pb.gz" || { fail "$1" "no answer"; return; }
	path=$("$GOPROF" -p "$PID" --heap --source=read -d 1s -o "$TMP" 2>"$TMP/said") || {
		fail "$1" "exit status $?: $(tail -n 3 "$TMP/said")"
		return
	}
	http_get "$PORT" /debug/pprof/heap "$TMP/two.pb.gz" || { fail "$1" "no answer"; return; }
	mv "$path" "$TMP/read.pb.gz"
	same "$1"
}

# differ A B: they are profiles that say different things.
differ() {
	local rc
	"$PPROFCHECK" equal -ignore-zero "$1" "$2" >"$TMP/diff" && rc=0 || rc=$?
	[ $rc = 1 ] || { echo "pprofcheck equal ended with $rc"; return 1; }
}

# moves NAME: what is allocated shows after a collection, and not before.
moves() {
	cp "$TMP/read.pb.gz" "$TMP/before.pb.gz"
	http_get "$PORT" /churn "$TMP/ok"
	equal "$1, allocations not yet collected" || return
	judge "$PPROFCHECK" equal -ignore-zero "$TMP/before.pb.gz" "$TMP/read.pb.gz"
	outcome "$1: the state of the last cycle stays"
	http_get "$PORT" /more "$TMP/ok"
	equal "$1, after two more collections" || return
	judge differ "$TMP/before.pb.gz" "$TMP/read.pb.gz"
	outcome "$1: a new cycle shows"
}

# busy NAME: read while it allocates and collects. Nothing is known of the values but that each
# reading is whole: valid, no stack with less than nothing in use, and never a failure.
busy() {
	steps busy_readings
	outcome "$1"
}

busy_readings() {
	local i rc some=

	http_get "$PORT" /more "$TMP/ok" &
	for ((i = 0; i < 20; i++)); do
		"$HEAPREAD" "$PID" "$TMP/read.pb.gz" >"$TMP/said" 2>&1 && rc=0 || rc=$?
		[ $rc = 0 ] || [ $rc = 3 ] || echo "exit status $rc: $(cat "$TMP/said")"
		"$PPROFCHECK" check "$TMP/read.pb.gz"
		"$PPROFCHECK" stacks -type inuse_space "$TMP/read.pb.gz" >"$TMP/stacks"
		[ ! -s "$TMP/stacks" ] || some=1
		sed -n 's/^ *-[0-9]/less than nothing in use: &/p' "$TMP/stacks"
	done
	wait $!
	[ -n "$some" ] || echo "nothing was ever in use: this shows nothing"
}

# before_gc NAME PROGRAM: nothing has been published yet, so that everything is added up. The
# request that follows allocates too, and may now and then be sampled itself: three tries.
before_gc() {
	local try

	for try in 1 2 3; do
		start "$2" -nogc || { fail "$1" "did not start"; return; }
		"$HEAPREAD" "$PID" "$TMP/read.pb.gz" >"$TMP/said" 2>&1 &&
			http_get "$PORT" /debug/pprof/heap "$TMP/one.pb.gz" &&
			"$PPROFCHECK" equal -addresses "$TMP/one.pb.gz" "$TMP/read.pb.gz" \
				>"$TMP/diff" && break
	done
	cp "$TMP/one.pb.gz" "$TMP/two.pb.gz"
	"$PPROFCHECK" comments "$TMP/read.pb.gz" | has 'before its first GC' ||
		{ fail "$1" "read as if a collection had ended: $(cat "$TMP/said")"; return; }
	same "$1"
	equal "$1, after the first request"
}

for v in ${VERSIONS:-1.19.13 1.22.12 1.27.4}; do
	plain=$(subject $v heapself) && stripped=$(subject $v heapself '-ldflags=-s -w') &&
		pie=$(subject $v heapself -buildmode=pie '-ldflags=-s -w') || { fail "go$v" "cannot be built"; continue; }
	# Linked by the C compiler, so that other code surrounds Go's; once is enough, for it
	# takes a while to build.
	cgo=
	case $v in
	1.27.*) cgo=$(CGO=1 subject $v heapself -buildmode=pie '-ldflags=-linkmode=external -s -w') || fail "go$v with cgo" "cannot be built" ;;
	esac
	start "$plain" || { fail "go$v" "did not start"; continue; }
	equal "go$v"
	by_command "go$v, goprof-bpf --heap --source=read"
	moves "go$v"
	busy "go$v, while it collects"
	started "go$v, stripped" "$stripped"
	started "go$v, stripped PIE" "$pie"
	[ -z "$cgo" ] || started "go$v, stripped PIE with cgo" "$cgo" -rate 8192
	started "go$v, every allocation" "$plain" -rate 1 -rounds 1
	started "go$v, stripped PIE, rate 4096" "$pie" -rate 4096 -rounds 1
	before_gc "go$v, before the first collection" "$plain"
done
finish
