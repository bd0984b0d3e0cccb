#!/bin/bash
# Goroutine profiles read from outside (user/collect/goroutine/goroutine.c) are the target's own.
#
# A program with goroutines parked in every way that Go knows, deeper than the limit and with
# labels, stands still: our profile is /debug/pprof/goroutine sample by sample (the handler's
# own goroutines aside), and our text ?debug=2 block by block: id, state, frames, creator. Then
# programs that never stand still: nothing but stacks that are whole, or counted.
#
#	GO_VERSIONS="1.18.10 ..."	others; all: every minor from 1.18 on
#	GO_KINDS="plain stripped pie cgo cshared plugin"	every kind for each of them
. tests/support/lib.sh
need_root
need_go

ALL="1.18.10 1.19.13 1.20.14 1.21.13 1.22.12 1.23.12 1.24.13 1.25.14 1.26.11 1.27.4"
: "${GO_VERSIONS:=1.18.10 1.22.12 1.25.14 1.27.4}"
[ "$GO_VERSIONS" = all ] && GO_VERSIONS=$ALL
NEWEST=${GO_VERSIONS##* }
# Goroutines of the HTTP handler, and of nothing else: the program itself makes no such connection.
HANDLER='net/http\.\(\*(conn|connReader|Server)\)'
MAY_LOSE='the Go version is not known here'

# start_kind V KIND: the program, made in one of the ways.
start_kind() {
	local v=$1 bin
	case $2 in
	plain) bin=$(subject "$v" goroutines) && start "$bin" ;;
	stripped) bin=$(subject "$v" goroutines -ldflags="-s -w") && start "$bin" ;;
	pie) bin=$(subject "$v" goroutines -buildmode=pie -ldflags="-s -w") && start "$bin" ;;
	cgo) bin=$(CGO=1 subject "$v" goroutines -tags=withcgo -ldflags="-s -w -linkmode=external") && start "$bin" ;;
	cshared) bin=$(library "$v" goroutines cshared -ldflags="-s -w") && start "$(libhost)" "$bin" ;;
	plugin) bin=$(library "$v" goroutines plugin -ldflags=-w) && start "$(pluginhost "$v" -ldflags=-w)" "$bin" ;;
	esac
}

# look OUT FLAG...: one look with goprof-bpf at $PID, files in OUT; prints what is wrong: any loss but
# $MAY_LOSE, and an exit status that is not of it.
look() {
	local out=$1 status
	shift
	rm -rf "$out"
	"$GOPROF" -p "$PID" --goroutine "$@" -o "$out" >"$TMP/paths" 2>"$TMP/err" && status=0 || status=$?
	sed -nE "/source read|$MAY_LOSE/d; /^goprof-bpf: goroutine: [0-9a-z]/p" "$TMP/err"
	case $status in
	0) ;;
	3) grep -qE "$MAY_LOSE" "$TMP/err" || echo "exit status 3: $(tail -n 1 "$TMP/err")" ;;
	*) echo "exit status $status: $(tail -n 1 "$TMP/err")" ;;
	esac
}

own() { http_get "$PORT" "/debug/pprof/goroutine$1" "$2"; }

# same OWN FILE...: sample by sample, the handler's own goroutines aside.
same() {
	local rc
	"$PPROFCHECK" equal -addresses -without "$HANDLER" "$@" >"$TMP/diff" && rc=0 || rc=$?
	[ $rc = 0 ] || sed -n 1,40p "$TMP/diff"
	return $rc
}

# The target's own profile is taken before and after ours: what both have must be in ours, and
# nothing else.
equal() {
	look "$TMP/ours" --format pprof --format text --format folded
	own "" "$TMP/own.pb.gz"
	own "?debug=2" "$TMP/own.txt"
	"$PPROFCHECK" check "$TMP"/ours/*.pb.gz
	same "$TMP/own.pb.gz" "$TMP"/ours/*.pb.gz
	"$PPROFCHECK" goroutines -ignore-labels -without "$HANDLER" "$TMP/own.txt" "$TMP"/ours/*.txt >"$TMP/tdiff" || cat "$TMP/tdiff"
	[ "$(awk '{ n += $NF } END { print n + 0 }' "$TMP"/ours/*.folded)" = "$(grep -c '^goroutine ' "$TMP"/ours/*.txt)" ] ||
		echo "folded and text do not have as many goroutines"
	"$PPROFCHECK" comments "$TMP"/ours/*.pb.gz | has -E '^deeper: [1-9][0-9]* stacks have their first (32|128) calls' ||
		echo "no word of the stacks that are deeper"
	# There must have been something to compare, of each kind.
	awk '/in both:/ && $NF >= 40 { ok = 1 } END { if (!ok) { print "too few samples"; exit 1 } }' "$TMP/diff"
	"$PPROFCHECK" labels "$TMP"/ours/*.pb.gz >"$TMP/labels"
	[ "$(wc -l <"$TMP/labels")" -ge 6 ] || echo "too few sets of labels"
}

standstill() {
	local name=goroutine/$1/$2
	if ! start_kind "$1" "$2" 2>"$TMP/start"; then
		fail "$name" "does not start: $(tail -n 1 "$TMP/start")"
		return
	fi
	steps equal
	# A goroutine of the last request may not have ended yet.
	if found_wrong; then
		attempt 1 "$name" "$FOUND"
		unjudged
		sleep 1
		steps equal
	fi
	outcome "$name"
	tail -n 1 "$TMP/tdiff"
}

# Offsets that nobody read from such a Go: the result must be the same, or refused with a sentence.
unknown() {
	local name=goroutine/$NEWEST/unknown-go old=$GOPROF
	GOPROF=$O/newest/$((${NEWEST:2:2} - 1))/goprof-bpf
	[ -x "$GOPROF" ] || { GOPROF=$old; skip "$name" "no such build"; return; }
	start_kind "$NEWEST" stripped || { GOPROF=$old; fail "$name" "does not start"; return; }
	if "$GOPROF" -p "$PID" --goroutine -o "$TMP/guess" >/dev/null 2>"$TMP/err" || [ $? = 3 ]; then
		steps equal
	elif grep -q 'its structs are not sure' "$TMP/err" && [ -z "$(compgen -G "$TMP/guess/*")" ]; then
		judge true
		name+=" (refused)"
	else
		wrong "$(tail -n 1 "$TMP/err")"
	fi
	GOPROF=$old
	outcome "$name"
}

# One that has waited for all of the window has waited for so long at least, and the runtime
# does not know it before the next GC.
since_when() {
	local began
	start_kind "$NEWEST" plain
	began=$SECONDS
	look "$TMP/ours" -d 1500ms --format text
	awk -v most=$((SECONDS - began + 1)) '
		/^goroutine [0-9]* \[chan receive, at least [1-9][0-9]* seconds\]/ { known++ }
		/^goroutine .*at least [0-9]/ { n = $0; sub(/.*at least /, "", n); if (n + 0 < 1 || n + 0 > most) { print; bad = 1 } }
		END { if (!known) { print "nothing is known"; bad = 1 }; exit bad }' "$TMP"/ours/*.txt
}

# Stacks of goroutines that run all the time: each begins where one can, or is counted.
busy() {
	local i bin MAY_LOSE='moved whenever'
	bin=$(subject "$1" goroutines -ldflags="-s -w")
	start "$bin" -park=false -busy 200
	for ((i = 0; i < 5; i++)); do
		look "$TMP/ours" --format pprof --format text
		"$PPROFCHECK" check "$TMP"/ours/*.pb.gz
		"$PPROFCHECK" stacks "$TMP"/ours/*.pb.gz >"$TMP/stacks"
		[ "$(wc -l <"$TMP/stacks")" -ge 3 ] || echo "$(wc -l <"$TMP/stacks") stacks"
		roots "$TMP/stacks"
		"$PPROFCHECK" comments "$TMP"/ours/*.pb.gz | sed -nE 's/^(hits|running|loss)/# &/p' >&2
	done
}

# The outermost functions that no goroutine of this program begins in (main.grow: deeper than the
# limit). A line: a number, frames
# "FUNCTION FILE:LINE" with "; " between them, leaf first, and {labels}.
roots() {
	sed -E 's/ \{.*\}$//; s/^ *-?[0-9]+ +//; s/.*; //; s/ [^ ]*$//' "$1" | sort -u |
		sed -E '/^(runtime\.main|main\.main\.func1|main\.busy\.[a-z0-9.]+|main\.grow|net\/http\.[^ ]*|\[running\])$/d'
}

# 100,000 goroutines: the time is for people to read, machines differ.
many() {
	local bin
	bin=$(subject "$NEWEST" goroutines -ldflags="-s -w")
	start "$bin" -n 100000
	TIMEFORMAT='# goprof-bpf took %R s from start to end, %U + %S s of CPU time'
	time look "$TMP/ours" --format pprof
	own "" "$TMP/own.pb.gz"
	same "$TMP/own.pb.gz" "$TMP"/ours/*.pb.gz
	"$PPROFCHECK" comments "$TMP"/ours/*.pb.gz | sed -nE 's/^(window|hits)/# &/p' >&2
}

end() { kill -KILL "$1" 2>/dev/null; wait "$1" 2>/dev/null; }

i=0
for v in $GO_VERSIONS; do
	# Without a wish each version in one way, in turn; the newest in all.
	ways=(stripped plain pie)
	kinds=${GO_KINDS:-${ways[i++ % 3]}}
	[ "$v" = "$NEWEST" ] && kinds=${GO_KINDS:-plain stripped pie cgo cshared plugin}
	for kind in $kinds; do
		standstill "$v" "$kind"
		end "$PID"
	done
done
unknown
steps since_when
outcome goroutine/since-when
for v in "$NEWEST" "${GO_VERSIONS%% *}"; do
	steps busy "$v"
	outcome "goroutine/$v/busy"
done
steps many
outcome goroutine/100000
finish
