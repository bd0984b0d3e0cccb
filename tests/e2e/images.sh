#!/bin/bash
# Go code in other files than the executable: a library that a C program loaded (c-shared,
# stripped), and plugins of a Go program, loaded before the profile or during it, while the program
# allocates, in full observation and in windows.
set -u
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go
HEAPREAD=$O/tests/heapread
RATE=16384

# leaf NAME LEAST: 3:1, as in cpu_leaf.sh, for the program PID.
leaf() {
	judge leaf_callers "$2"
	outcome "$1"
}

# own_heap NAME: read from memory it equals what the subject PID says of itself at PORT.
own_heap() {
	http_get "$PORT" /debug/pprof/heap "$TMP/one.pb.gz" || { fail "$1" "no answer"; return; }
	"$HEAPREAD" "$PID" "$TMP/read.pb.gz" >"$TMP/said" 2>&1 ||
		{ fail "$1" "exit status $?: $(cat "$TMP/said")"; return; }
	"$PPROFCHECK" equal -addresses -ignore-zero "$TMP/one.pb.gz" "$TMP/read.pb.gz" >"$TMP/diff" 2>&1 &&
		pass "$1" || { fail "$1" "the profiles differ"; head -n 30 "$TMP/diff"; }
}

# truth NAME COMMAND...: alloctruth's known counts, probed: all bytes within 2 %.
truth() {
	local name=$1 fd prof out rc i
	shift
	rm -f "$TMP/in" && mkfifo "$TMP/in"
	: >"$TMP/truth"
	"$@" <"$TMP/in" >"$TMP/truth" 2>&1 &
	PID=$!
	STARTED+=("$PID")
	exec {fd}>"$TMP/in"
	for ((i = 0; i < 100; i++)); do grep -q ready "$TMP/truth" && break; sleep 0.1; done
	: >"$TMP/err"
	"$GOPROF" -p "$PID" --heap --source=probe --heap-rate=$RATE --budget=0 -d 120s -o "$TMP" >"$TMP/path" 2>"$TMP/err" &
	prof=$!
	STARTED+=("$prof")
	for ((i = 0; i < 600; i++)); do grep -q 'profiling pid' "$TMP/err" && break; sleep 0.1; done
	echo go >&"$fd"
	for ((i = 0; i < 900; i++)); do grep -q '^done' "$TMP/truth" && break; sleep 0.1; done
	kill -INT $prof
	wait $prof
	rc=$?
	echo end >&"$fd"
	exec {fd}>&-
	out=$(cat "$TMP/path")
	[ $rc = 3 ] && only_small_losses "$TMP/err" "$out" && rc=0
	[ $rc = 0 ] && [ -s "$out" ] || { fail "$name" "exit $rc: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"; return; }
	judge judge_probe "$TMP/truth" "$out" $RATE
	outcome "$name"
}

# says PATTERN FILE N: waits until so many lines say so.
says() {
	local i
	for ((i = 0; i < 600; i++)); do
		[ "$(grep -c "$1" "$2")" -ge "$3" ] && return
		sleep 0.1
	done
	return 1
}

# found: a plugin's probes are put in.
found() { says 'heap: probing .* allocator entries' "$TMP/err" 2; }

# watch_liveset MEANWHILE BUDGET COMMAND...: liveset's work in a plugin, which with MEANWHILE=1 or 2
# comes while the host allocates and is observed; with 2 it works before it is found. Sets FILE, and
# WHY on failure.
watch_liveset() {
	local meanwhile=$1 budget=$2 fd prof rc unfound=()
	shift 2
	WHY='' FILE=''
	rm -f "$TMP/in" && mkfifo "$TMP/in"
	: >"$TMP/truth"
	"$@" <"$TMP/in" >"$TMP/truth" 2>&1 &
	PID=$!
	STARTED+=("$PID")
	exec {fd}>"$TMP/in"
	says '^ready' "$TMP/truth" 1
	: >"$TMP/err"
	"$GOPROF" -p "$PID" --heap --source=probe --heap-rate=2048 --budget="$budget" -d 120s -o "$TMP" >"$TMP/path" 2>"$TMP/err" &
	prof=$!
	STARTED+=("$prof")
	says 'profiling pid' "$TMP/err" 1
	[ "$meanwhile" = 0 ] || {
		echo busy >&"$fd"
		says '^ready' "$TMP/truth" 2 || WHY="no plugin was loaded; "
		[ "$meanwhile" = 2 ] || found || WHY="no plugin was found; "
	}
	echo go >&"$fd"
	[ "$meanwhile" = 1 ] || [ "$meanwhile" = 0 ] || found || WHY+="no plugin was found; "
	says '^done' "$TMP/truth" 1 || WHY+="the program did not finish; "
	[ "$meanwhile" = 0 ] || says '^# main.allocHost' "$TMP/truth" 1 || WHY+="the host did not finish; "
	kill -INT $prof
	wait $prof
	rc=$?
	echo end >&"$fd"
	exec {fd}>&-
	FILE=$(cat "$TMP/path")
	# Until a plugin is found nothing is known of its code: what that has the host's allocator do then has no caller.
	[ $meanwhile = 0 ] || unfound=(-allow heap:CALLERS_UNKNOWN=5 -allow heap:STACKS_BROKEN=5)
	[ $rc = 3 ] && only_small_losses "$TMP/err" "$FILE" 10 "${unfound[@]}" && rc=0
	[ $rc = 0 ] && [ -s "$FILE" ] || WHY+="exit $rc: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"
	"$PPROFCHECK" comments "$FILE" >"$TMP/comments"
	[ -z "$WHY" ]
}

# comment PATTERN: the number that a comment of the profile has there, or 0.
comment() { awk -v n="$(sed -n "s/$1/\\1/p" "$TMP/comments")" 'BEGIN { print n + 0 }'; }

# liveset_full NAME MEANWHILE COMMAND...: what was allocated, but for the time in which probes were put
# in (the host makes at most 200 objects in a millisecond), and what is in use.
liveset_full() {
	local name=$1 lost
	shift
	watch_liveset "$1" 0 "${@:2}" || { fail "$name" "$WHY"; return; }
	lost=$(($(comment '^in use: \([0-9]*\) sampled objects without.*') + $(comment '^in use:.* stand; \([0-9]*\) not confirmed.*')))
	[ $lost -le $(($(comment '.* \([0-9]*\) sampled objects followed.*') / 100 + 5)) ] || wrong "$lost objects lost"
	sed -n 's/^# //p' "$TMP/truth" >"$TMP/made"
	judge "$PPROFCHECK" allocs -rate 2048 -missed $((200 * $(comment '^unobserved: \([0-9]*\) ms.*'))) "$TMP/made" "$FILE"
	judge "$PPROFCHECK" live -rate 2048 -lost $lost "$TMP/truth" "$FILE"
	outcome "$name"
}

# liveset_late NAME COMMAND...: what a plugin allocates before it is found is told as missed. It is looked
# for once a second, so by chance it may be found immediately: then once more, twice.
liveset_late() {
	local name=$1 try
	shift
	for try in 1 2 3; do
		watch_liveset 2 0 "$@"
		WHY=${WHY//exit 3: */}
		[ "$(comment 'missed: \([0-9]*\) .*')" -lt 1000 ] || break
		attempt $try "$name" "nothing was missed; $WHY"
	done
	[ -z "$WHY" ] || wrong "$WHY"
	judge told_late "$TMP/truth" "$TMP/comments" "$TMP/err"
	outcome "$name"
}

# A machine that is busy with other things gives us few windows, or none for a second: then once
# more, twice.
liveset_windows() {
	local name=$1 try n=0
	shift
	for try in 1 2 3; do
		watch_liveset 1 15% "$@"
		n=$(comment '^budget: .*[^0-9]\([0-9]*\) windows.*')
		[ "$n" -ge 16 ] && [ -z "$WHY" ] && break
		attempt $try "$name" "$n windows; $WHY"
	done
	[ -z "$WHY" ] || { fail "$name" "$WHY"; return; }
	judge "$PPROFCHECK" flow -made -windows "$n" "$TMP/truth" "$TMP/comments"
	outcome "$name"
}

# waits_meanwhile NAME COMMAND...: waits of a plugin that comes while waits are probed. The heap is
# probed, too, for that says when the plugin was found.
waits_meanwhile() {
	local name=$1 fd prof rc
	shift
	rm -f "$TMP/in" && mkfifo "$TMP/in"
	: >"$TMP/truth"
	"$@" <"$TMP/in" >"$TMP/truth" 2>&1 &
	PID=$!
	STARTED+=("$PID")
	exec {fd}>"$TMP/in"
	says '^ready' "$TMP/truth" 1
	: >"$TMP/err"
	"$GOPROF" -p "$PID" --block --heap --source=probe --budget=0 -d 120s -o "$TMP" >"$TMP/path" 2>"$TMP/err" &
	prof=$!
	STARTED+=("$prof")
	says '^ready' "$TMP/truth" 2 && found || wrong "no plugin was found"
	sleep 0.5
	printf 'rate 10000 10\nrun all 40 5\n' >&"$fd"
	says '^done' "$TMP/truth" 2 || wrong "the program did not finish"
	kill -INT $prof
	wait $prof
	rc=$?
	echo end >&"$fd"
	exec {fd}>&-
	[ $rc = 3 ] && only_small_losses "$TMP/err" "$(cat "$TMP/path")" && rc=0
	[ $rc = 0 ] || wrong "exit $rc: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"
	judge "$PPROFCHECK" known -kind block -sampled "$TMP/truth" "$(grep block "$TMP/path")"
	outcome "$name"
}

host=$(libhost)
as_library() {
	# $v, a C program's library
	lib=$(library $v leaf31 cshared -ldflags='-s -w') || { fail "images/$v" "does not build"; return; }
	start_quiet "$host" "$lib" && leaf "images/$v, library, callers" 300
	kill "$PID"
	lib=$(library $v heapself cshared -ldflags='-s -w') && start "$host" "$lib" &&
		own_heap "images/$v, library, heap read"
	lib=$(library $v alloctruth cshared -ldflags='-s -w') &&
		truth "images/$v, library, heap probe" "$host" "$lib"
}

as_plugin() {
	# $v, a Go program's plugin
	phost=$(pluginhost $v -ldflags=-w) || { fail "images/$v" "the host does not build"; return; }
	lib=$(library $v leaf31 plugin -ldflags=-w) || { fail "images/$v" "the plugin does not build"; return; }
	start_quiet "$phost" "$lib" && leaf "images/$v, plugin, callers" 300
	kill "$PID"
	start "$phost" -after 2s "$lib" && leaf "images/$v, plugin loaded meanwhile, callers" 30
	kill "$PID"
	lib=$(library $v alloctruth plugin -ldflags=-w) &&
		truth "images/$v, plugin, heap probe" "$phost" "$lib"
	lib=$(library $v heapself plugin -ldflags=-w) && start "$phost" "$lib" &&
		own_heap "images/$v, plugin, heap read"
	case $ASKED$v in 1.1[67].* | 1.27.*) ;; *) lib=$(library $v waits plugin -ldflags=-w) &&
		waits_meanwhile "images/$v, plugin loaded meanwhile, waits" "$phost" -after 1s "$lib" ;; esac
	case $v in 1.1[678].*) return ;; esac # in use is not told there
	lib=$(library $v liveset plugin -ldflags=-w) || { fail "images/$v" "the plugin does not build"; return; }
	case $ASKED$v in 1.22.*) ;; *) liveset_full "images/$v, plugin, in use" 0 "$phost" "$lib" -scale 4 -gc 5ms -turns 10 ;; esac
	liveset_full "images/$v, plugin loaded meanwhile, in use" 1 "$phost" -busy 4s -after 1s "$lib" -scale 4
	liveset_late "images/$v, plugin that is found late" "$phost" -busy 4s -after 1s "$lib" -scale 4
	case $ASKED$v in 1.22.*) ;; *) liveset_windows "images/$v, plugin loaded in windows" "$phost" -busy 8s -after 2s "$lib" -flow 6s -scale 20 ;; esac
}

# The oldest as a library, a later one as a plugin, the newest as both; with WIDE=1 all as both.
ASKED=${WIDE:+wide}${GO_VERSIONS:+these}
for v in ${GO_VERSIONS:-1.16.15 1.22.12 1.27.4}; do
	case $ASKED$v in 1.22.*) ;; *) as_library ;; esac
	case $ASKED$v in 1.16.*) ;; *) as_plugin ;; esac
done
finish
