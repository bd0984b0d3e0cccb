#!/bin/bash
# Goroutine profiles read from outside (user/collect/goroutine.c) are the target's own.
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
LOSSES='the Go version is newer'

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

# look OUT FLAG...: one look with goprof-bpf at $PID, files in OUT; prints what is wrong.
look() {
	local out=$1 status
	shift
	rm -rf "$out"
	"$GOPROF" -p "$PID" --goroutine "$@" -o "$out" >"$TMP/paths" 2>"$TMP/err"
	status=$?
	if grep -E '^goprof-bpf: goroutine: [0-9a-z]' "$TMP/err" | grep -vqE "source read|$LOSSES"; then
		grep -E '^goprof-bpf: goroutine: [0-9a-z]' "$TMP/err" | grep -vE "source read|$LOSSES"
	elif [ $status != 0 ] && ! grep -q "$LOSSES" "$TMP/err"; then
		echo "exit status $status: $(tail -n 1 "$TMP/err")"
	fi
}

own() { http_get "$PORT" "/debug/pprof/goroutine$1" "$2" || echo "no profile of its own"; }

# The target's own profile is taken before and after ours: what both have must be in ours, and
# nothing else.
equal() {
	look "$TMP/ours" --format pprof --format text --format folded
	own "" "$TMP/own.pb.gz"
	own "?debug=2" "$TMP/own.txt"
	"$PPROFCHECK" check "$TMP"/ours/*.pb.gz 2>&1 | grep -v '^ok' | head -n 2
	"$PPROFCHECK" equal -addresses -without "$HANDLER" "$TMP/own.pb.gz" "$TMP"/ours/*.pb.gz >"$TMP/diff" 2>&1 ||
		head -n 40 "$TMP/diff"
	"$PPROFCHECK" goroutines -ignore-labels -without "$HANDLER" "$TMP/own.txt" "$TMP"/ours/*.txt >"$TMP/tdiff" 2>&1 ||
		cat "$TMP/tdiff"
	[ "$(awk '{ n += $NF } END { print n + 0 }' "$TMP"/ours/*.folded)" = "$(grep -c '^goroutine ' "$TMP"/ours/*.txt)" ] ||
		echo "folded and text do not have as many goroutines"
	"$PPROFCHECK" comments "$TMP"/ours/*.pb.gz | grep -Eq '^deeper: [1-9][0-9]* stacks have their first (32|128) calls' ||
		echo "no word of the stacks that are deeper"
	# There must have been something to compare, of each kind.
	awk '/in both:/ && $NF >= 40 { ok = 1 } END { if (!ok) print "too few samples" }' "$TMP/diff"
	"$PPROFCHECK" labels "$TMP"/ours/*.pb.gz | grep -c . | awk '$1 < 6 { print "too few sets of labels" }'
}

standstill() {
	local name=goroutine/$1/$2 wrong
	if ! start_kind "$1" "$2" 2>"$TMP/start"; then
		fail "$name" "does not start: $(tail -n 1 "$TMP/start")"
		return
	fi
	wrong=$(equal)
	# A goroutine of the last request may not have ended yet.
	[ -z "$wrong" ] || { sleep 1; wrong=$(equal); }
	if [ -n "$wrong" ]; then fail "$name" "$(tr '\n' ';' <<<"$wrong")"; else pass "$name: $(tail -n 1 "$TMP/tdiff")"; fi
}

# Offsets that nobody read from such a Go: the result must be the same, or refused with a sentence.
unknown() {
	local name=goroutine/$NEWEST/unknown-go wrong old=$GOPROF
	GOPROF=$O/newest/$((${NEWEST:2:2} - 1))/goprof-bpf
	[ -x "$GOPROF" ] || { GOPROF=$old; skip "$name" "no such build"; return; }
	start_kind "$NEWEST" stripped || fail "$name" "does not start"
	if "$GOPROF" -p "$PID" --goroutine -o "$TMP/guess" >/dev/null 2>"$TMP/err" || [ $? = 3 ]; then
		wrong=$(equal)
	elif grep -q 'its structs are not sure' "$TMP/err" && ! ls "$TMP"/guess/* >/dev/null 2>&1; then
		name+=" (refused)"
	else
		wrong=$(tail -n 1 "$TMP/err")
	fi
	GOPROF=$old
	if [ -n "$wrong" ]; then fail "$name" "$(tr '\n' ';' <<<"$wrong")"; else pass "$name"; fi
}

# One that has waited for all of the window has waited for so long at least, and the runtime
# does not know it before the next GC.
since_when() {
	local name=goroutine/since-when wrong began
	start_kind "$NEWEST" plain || { fail "$name" "does not start"; return; }
	began=$SECONDS
	wrong=$(look "$TMP/ours" -d 1500ms --format text)
	grep -q '^goroutine [0-9]* \[chan receive, at least [1-9][0-9]* seconds\]' "$TMP"/ours/*.txt || wrong+="nothing is known;"
	wrong+=$(awk -v most=$((SECONDS - began + 1)) '/^goroutine .*at least [0-9]/ {
		n = $0; sub(/.*at least /, "", n); if (n + 0 < 1 || n + 0 > most) print }' "$TMP"/ours/*.txt | head -n 3)
	if [ -n "$wrong" ]; then fail "$name" "$wrong"; else pass "$name"; fi
}

# Stacks of goroutines that run all the time: each begins where one can, or is counted.
busy() {
	local name=goroutine/$1/busy wrong='' i bin
	bin=$(subject "$1" goroutines -ldflags="-s -w") && start "$bin" -park=false -busy 200 || {
		fail "$name" "does not start"
		return
	}
	for ((i = 0; i < 5 && ${#wrong} == 0; i++)); do
		LOSSES='moved whenever' wrong=$(look "$TMP/ours" --format pprof --format text)
		[ -n "$wrong" ] || wrong=$("$PPROFCHECK" check "$TMP"/ours/*.pb.gz 2>&1 | grep -v '^ok')
		"$PPROFCHECK" stacks "$TMP"/ours/*.pb.gz >"$TMP/stacks"
		wrong+=$(roots "$TMP/stacks")
		"$PPROFCHECK" comments "$TMP"/ours/*.pb.gz | grep -E '^(hits|running|loss)'
	done >"$TMP/said"
	if [ -n "$wrong" ]; then fail "$name" "$wrong"; else pass "$name: $(sort "$TMP/said" | tail -n 3 | tr '\n' ';')"; fi
}

# The outermost functions that no goroutine of this program begins in (main.grow: deeper than the
# limit). A line: a number, frames
# "FUNCTION FILE:LINE" with "; " between them, leaf first, and {labels}.
roots() {
	sed -E 's/ \{.*\}$//; s/^ *-?[0-9]+ +//; s/.*; //; s/ [^ ]*$//' "$1" | sort -u |
		grep -vE '^(runtime\.main|main\.main\.func1|main\.busy\.[a-z0-9.]+|main\.grow|net/http\.[^ ]*|\[running\])$' | head -n 3
}

# 100,000 goroutines: the time is for people to read, machines differ.
many() {
	local name=goroutine/100000 wrong bin began
	bin=$(subject "$NEWEST" goroutines -ldflags="-s -w") && start "$bin" -n 100000 || {
		fail "$name" "does not start"
		return
	}
	TIMEFORMAT='goprof-bpf took %R s from start to end, %U + %S s of CPU time'
	time wrong=$(look "$TMP/ours" --format pprof)
	own "" "$TMP/own.pb.gz"
	"$PPROFCHECK" equal -addresses -without "$HANDLER" "$TMP/own.pb.gz" "$TMP"/ours/*.pb.gz >"$TMP/diff" 2>&1 ||
		wrong+=$(head -n 20 "$TMP/diff")
	"$PPROFCHECK" comments "$TMP"/ours/*.pb.gz | grep -E '^(window|hits)'
	if [ -n "$wrong" ]; then fail "$name" "$(tr '\n' ';' <<<"$wrong")"; else pass "$name"; fi
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
since_when
busy "$NEWEST"
busy "${GO_VERSIONS%% *}"
many
finish
