#!/bin/bash
# In-use of --source=probe against programs whose live set is known: what grows, shrinks, turns over
# in slots used again, large and tiny objects, and garbage, by one goroutine and by several, the GC
# running all the time. Each line within what chance allows (tests/README.md); with every object
# sampled, exactly, but for losses that are counted; and as the runtime's own profile of every
# object has it. Where it cannot be had the columns are absent.
# GO_VERSIONS="..." runs others.
. tests/support/lib.sh
need_root && need_bpf && need_go

ASKED=${WIDE:+wide}${GO_VERSIONS:+these}
: "${GO_VERSIONS:=1.19.13 1.22.12 1.24.13 1.26.11 1.27.4}"
NEWEST=${GO_VERSIONS##* }

# profile BIN RATE ARG...: watches all that BIN allocates once it works. Sets WHY on failure, FILE.
profile() {
	local bin=$1 rate=$2 fd i prof rc
	shift 2
	WHY='' FILE=''
	rm -f "$TMP/in"
	mkfifo "$TMP/in"
	: >"$TMP/truth"
	LIVESET_PROFILE=$TMP/own "$bin" "$@" <"$TMP/in" >"$TMP/truth" 2>&1 &
	PID=$!
	STARTED+=("$PID")
	exec {fd}<>"$TMP/in" # for reading, too: a program that died must not end the script
	for ((i = 0; i < 100; i++)); do grep -q ready "$TMP/truth" && break; sleep 0.1; done
	: >"$TMP/err"
	"$GOPROF" -p $PID --heap --source=probe --heap-rate="$rate" --budget="${BUDGET:-0}" -d 300s -o "$TMP" >"$TMP/path" 2>"$TMP/err" &
	prof=$!
	STARTED+=("$prof")
	for ((i = 0; i < 600; i++)); do grep -q 'profiling pid' "$TMP/err" && break; sleep 0.1; done
	echo go >&"$fd"
	for ((i = 0; i < 1200; i++)); do grep -qE '^(done|panic)' "$TMP/truth" && break; sleep 0.1; done
	kill -INT $prof
	wait $prof
	rc=$?
	echo end >&"$fd"
	exec {fd}>&-
	FILE=$(cat "$TMP/path")
	grep -q '^done' "$TMP/truth" || { WHY="the program did not finish: $(grep -m 1 '^panic' "$TMP/truth")"; return 1; }
	# What could not be told or confirmed is counted, and judged below.
	[ $rc = 3 ] && only_small_losses "$TMP/err" "$FILE" 0 -allow heap:OBJECTS_UNPLACED=any -allow heap:OBJECTS_UNCONFIRMED=any && rc=0
	[ $rc = 0 ] && [ -s "$FILE" ] || { WHY="exit $rc: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"; return 1; }
	"$PPROFCHECK" check "$FILE" >"$TMP/check" 2>&1 || { WHY="not valid: $(head -n 1 "$TMP/check")"; return 1; }
}

# lost: the objects of which the last profile says that it does not know.
lost() { "$PPROFCHECK" comments "$FILE" | sed -n 's/^in use: \([0-9]*\) sampled objects without.* stand; \([0-9]*\) not confirmed.*/\1 \2/p' | awk '{ print $1 + $2 }'; }

# flow BIN: in windows, under the default budget. Each line within what the standard errors that the
# profile itself states and the number of its windows allow, and these errors small enough to mean something.
flow() {
	local name=heap_live/$1-windows verdict='' n
	BUDGET=5% profile "$2" 4096 -flow 12s -scale 10 || { fail "$name" "$WHY"; return; }
	"$PPROFCHECK" comments "$FILE" | grep -E '^budget:|^error: main.* inuse_objects|^in use|loss'
	n=$("$PPROFCHECK" comments "$FILE" | sed -n 's/^budget: .*[^0-9]\([0-9]*\) windows.*/\1/p')
	[ "${n:-0}" -ge 10 ] || verdict="${n:-0} windows; "
	[ -z "$verdict" ] || wrong "$verdict"
	"$PPROFCHECK" comments "$FILE" >"$TMP/comments"
	judge "$PPROFCHECK" flow -windows "${n:-0}" "$TMP/truth" "$TMP/comments"
	outcome "$name"
}

# arrays ARG...: the bytes of those that hold what liveset keeps, a goroutine's at each scale.
arrays() {
	local scale=1 goroutines=1
	while [ $# -gt 0 ]; do
		case $1 in -scale) scale=$2 ;; -goroutines) goroutines=$2 ;; esac
		shift
	done
	echo $((72 * 1024 * scale * goroutines))
}

# A machine that is busy with other things looks too late at cycles: then once more, twice.
run() {
	local name=heap_live/$1 bin=$2 rate=$3 samples try
	shift 3
	for try in 1 2 3; do
		profile "$bin" "$rate" "$@" || { fail "$name" "$WHY"; return; }
		samples=$("$PPROFCHECK" comments "$FILE" | sed -n 's/.* \([0-9]*\) sampled objects followed.*/\1/p')
		[ "$(lost)" -gt $((${samples:-0} / 100 + 5)) ] || break
		attempt $try "$name" "$(lost) of $samples objects lost"
	done
	"$PPROFCHECK" stacks -type inuse_objects "$FILE" >"$TMP/stacks" 2>"$TMP/err" ||
		{ fail "$name" "no in-use columns: $("$PPROFCHECK" comments "$FILE" | grep absent)"; return; }
	"$PPROFCHECK" comments "$FILE" | grep -E 'in use: (places|.*confirmed)|loss'
	judge "$PPROFCHECK" live -rate "$rate" -lost "$(lost)" -other "$(arrays "$@")" "$TMP/truth" "$FILE"
	# A few objects may get lost, not so many that the judge sleeps.
	[ "$(lost)" -le $((samples / 100 + 5)) ] || wrong "$(lost) of $samples objects lost"
	outcome "$name"
}

for v in $GO_VERSIONS; do
	bin=$(subject "$v" liveset -ldflags='-s -w') || { fail "heap_live/$v" "does not build"; continue; }
	# In one of two ways, the newest in both; with WIDE=1 or GO_VERSIONS both in all of them.
	case $ASKED$v in 1.19.* | 1.24.*) ;; *) run "$v" "$bin" 2048 -scale 4 ;; esac
	case $ASKED$v in 1.22.* | 1.26.*) ;; *) run "$v-gc" "$bin" 2048 -goroutines 4 -gc 20ms -turns 8 ;; esac
done

if bin=$(subject "$NEWEST" liveset -buildmode=pie -ldflags='-s -w'); then
	run "$NEWEST-pie" "$bin" 2048 -scale 2
else
	fail "heap_live/$NEWEST-pie" "does not build"
fi
for v in ${GO_VERSIONS%% *} "$NEWEST"; do
	bin=$(subject "$v" liveset) || { fail "heap_live/$v-every-object" "does not build"; continue; }
	run "$v-every-object" "$bin" 1 -turns 4 -pace 100ms
done

for v in ${ASKED:+${GO_VERSIONS%% *}} "$NEWEST"; do
	bin=$(subject "$v" liveset -ldflags='-s -w') || { fail "heap_live/$v-windows" "does not build"; continue; }
	flow "$v" "$bin"
done

# More objects than can be followed: those that are not came together, so no error is stated.
bin=$(subject "$NEWEST" liveset -ldflags='-s -w') && profile "$bin" 1 -scale 100 &&
	[ "$(lost)" -gt 10000 ] && "$PPROFCHECK" comments "$FILE" | grep -q '^error: main.allocShrinking .*inuse_objects .* +- unknown' &&
	"$PPROFCHECK" comments "$FILE" | grep -q '^loss: .*place in memory' &&
	pass heap_live/too-many || fail heap_live/too-many "$WHY $(lost) $("$PPROFCHECK" comments "$FILE" | grep 'allocShrinking.*inuse_objects')"

# The runtime's own profile of every object says the same of the same lines. The program panics when
# the runtime makes objects that have the size of its own.
bin=$(subject "$NEWEST" liveset -tags sampled) && profile "$bin" 1 -turns 4 -pace 50ms &&
	"$PPROFCHECK" stacks -type inuse_objects "$TMP/own" >"$TMP/own.stacks" &&
	"$PPROFCHECK" stacks -type inuse_objects "$FILE" >"$TMP/stacks" &&
	# What the runtime itself allocates below the same lines has another size (checkSizes in liveset).
	awk '
		FNR == NR { if (NF == 3 && $1 ~ /^main\./) size[$1] = $3; next }
		{ for (i = 2; i < NF; i += 2) if ($i in size && index($0, "{bytes=" size[$i] "}")) { n[$i] += $1; break } }
		END { for (f in n) print f, n[f], size[f] }' "$TMP/truth" "$TMP/own.stacks" | grep -v allocTiny >"$TMP/own.truth"
if [ -s "$TMP/own.truth" ]; then
	verdict=$(awk -v lost="$(lost)" '
		FNR == NR { own[$1] = $2; size[$1] = $3; next }
		{ for (i = 2; i < NF; i += 2) if ($i in own && index($0, "{bytes=" size[$i] "}")) { got[$i] += $1; break } }
		END { for (f in own) if (got[f] - own[f] > lost || own[f] - got[f] > lost) printf "%s: %d for %d of %d; ", f, got[f], own[f], lost }
	' "$TMP/own.truth" "$TMP/stacks")
	[ "$(wc -l <"$TMP/own.truth")" -ge 4 ] || verdict="$verdict the runtime names too few lines"
	[ -z "$verdict" ] && pass heap_live/as-the-runtime || fail heap_live/as-the-runtime "$verdict"
else
	fail heap_live/as-the-runtime "no profile of its own: $WHY"
fi

# Older than Go 1.19: no columns, and why.
bin=$(subject 1.18.10 liveset) && profile "$bin" 65536 &&
	"$PPROFCHECK" comments "$FILE" | grep -q 'in-use columns are absent: .*go1\.18' &&
	"$PPROFCHECK" sum "$FILE" | has alloc_objects && ! "$PPROFCHECK" sum "$FILE" | has inuse_objects &&
	pass heap_live/absent || fail heap_live/absent "$WHY $("$PPROFCHECK" comments "$FILE" 2>/dev/null | grep -i in.use)"
finish
