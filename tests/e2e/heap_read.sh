#!/bin/bash
# What is read from a target's memory equals what the target says of itself at the same
# standstill: every sample, its frames with their addresses, its label and all four values.
#
# A request for the profile changes nothing that a heap profile shows, as long as no collection
# ends. But it leaves new buckets for its own allocations behind, which show as samples of zeros.
# So the target is asked before and after: the reading has all samples of the first answer, no
# more than the second, and all values are the same.
set -u
. tests/support/lib.sh
need_root && need_go
HEAPREAD=$O/tests/heapread

# within A B: every sample of A is in B, with the same values, under the same header.
within() {
	"$PPROFCHECK" equal -addresses "$1" "$2" >"$TMP/diff" 2>&1
	[ $? -le 1 ] && ! grep -E '^(only in A|values differ|headers differ)' "$TMP/diff"
}

# same NAME: the reading between the two answers, $TMP/{one,read,two}.pb.gz.
same() {
	if ! "$PPROFCHECK" equal -addresses -ignore-zero "$TMP/one.pb.gz" "$TMP/read.pb.gz" \
		>"$TMP/diff" 2>&1; then
		fail "$1" "the values differ"
	elif ! within "$TMP/one.pb.gz" "$TMP/read.pb.gz"; then
		fail "$1" "samples are missing"
	elif ! within "$TMP/read.pb.gz" "$TMP/two.pb.gz"; then
		fail "$1" "there are samples that the target does not have"
	elif ! "$PPROFCHECK" check "$TMP/read.pb.gz" >"$TMP/diff"; then
		fail "$1" "not a valid profile"
	else
		pass "$1"
		return 0
	fi
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

# by_command NAME: the whole program, over a window of a second.
by_command() {
	local path

	http_get "$PORT" /debug/pprof/heap "$TMP/one.pb.gz"
	path=$("$GOPROF" -p "$PID" --heap --source=read -d 1s -o "$TMP" 2>"$TMP/said") || {
		fail "$1" "exit status $?: $(tail -n 3 "$TMP/said")"
		return
	}
	http_get "$PORT" /debug/pprof/heap "$TMP/two.pb.gz"
	mv "$path" "$TMP/read.pb.gz"
	same "$1"
}

# moves NAME: what is allocated shows after a collection, and not before.
moves() {
	cp "$TMP/read.pb.gz" "$TMP/before.pb.gz"
	http_get "$PORT" /churn "$TMP/ok"
	equal "$1, allocations not yet collected" || return
	"$PPROFCHECK" equal -ignore-zero "$TMP/before.pb.gz" "$TMP/read.pb.gz" >"$TMP/diff" ||
		{ fail "$1: the state of the last cycle stays" "it moved"; head -n 20 "$TMP/diff"; }
	http_get "$PORT" /more "$TMP/ok"
	equal "$1, after two more collections" || return
	"$PPROFCHECK" equal -ignore-zero "$TMP/before.pb.gz" "$TMP/read.pb.gz" >"$TMP/diff" &&
		fail "$1: a new cycle shows" "it did not"
}

# busy NAME: read while it allocates and collects. Nothing is known of the values but that each
# reading is whole: valid, no stack with less than nothing in use, and never a failure.
busy() {
	local i rc bad=

	http_get "$PORT" /more "$TMP/ok" &
	for ((i = 0; i < 20; i++)); do
		"$HEAPREAD" "$PID" "$TMP/read.pb.gz" >"$TMP/said" 2>&1
		rc=$?
		[ $rc = 0 ] || [ $rc = 3 ] || bad="exit status $rc: $(cat "$TMP/said")"
		"$PPROFCHECK" check "$TMP/read.pb.gz" >"$TMP/said" || bad=$(head -n 2 "$TMP/said")
		"$PPROFCHECK" stacks -type inuse_space "$TMP/read.pb.gz" | grep -q '^ *-[0-9]' &&
			bad="less than nothing in use"
	done
	wait $!
	[ -z "$bad" ] && pass "$1" || fail "$1" "$bad"
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
	"$PPROFCHECK" comments "$TMP/read.pb.gz" | grep -q 'before its first GC' ||
		{ fail "$1" "read as if a collection had ended: $(cat "$TMP/said")"; return; }
	same "$1"
	equal "$1, after the first request"
}

for v in ${VERSIONS:-1.19.13 1.22.12 1.27.4}; do
	plain=$(subject $v heapself) || { fail "go$v" "cannot be built"; continue; }
	stripped=$(subject $v heapself '-ldflags=-s -w') || continue
	pie=$(subject $v heapself -buildmode=pie '-ldflags=-s -w') || continue
	# Linked by the C compiler, so that other code surrounds Go's; once is enough, for it
	# takes a while to build.
	cgo=
	case $v in
	1.27.*) cgo=$(CGO=1 subject $v heapself -buildmode=pie '-ldflags=-linkmode=external -s -w') ;;
	esac
	start "$plain" || { fail "go$v" "did not start"; continue; }
	equal "go$v"
	by_command "go$v, goprof-bpf --heap --source=read"
	moves "go$v"
	busy "go$v, while it collects"
	start "$stripped" && equal "go$v, stripped"
	start "$pie" && equal "go$v, stripped PIE"
	[ -z "$cgo" ] || { start "$cgo" -rate 8192 && equal "go$v, stripped PIE with cgo"; }
	start "$plain" -rate 1 -rounds 1 && equal "go$v, every allocation"
	start "$pie" -rate 4096 -rounds 1 && equal "go$v, stripped PIE, rate 4096"
	before_gc "go$v, before the first collection" "$plain"
done
finish
