#!/bin/bash
# --labels and --goid on probed heap samples, against a program that knows how much each of its
# goroutines allocated: every goroutine and label set is there with its count, within four
# standard errors, and no other; without the options there are none. Go 1.16 and 1.22 (labels
# in a map), 1.24 and 1.27 (in a slice).
. tests/support/lib.sh
need_root && need_bpf && need_go

RATE=4096

# judge TRUTH PROFILE goid|nogoid labels|nolabels: what is wrong.
judge() {
	"$PPROFCHECK" stacks -type alloc_objects "$2" | grep 'main\.allocate ' >"$TMP/stacks"
	awk -v rate=$RATE -v goid="$3" -v labels="$4" '
		function key(id, set) { return (goid == "goid" ? id : "any") " " (labels == "labels" ? set : "any") }
		# What the runtime allocates below (a sudog of a GC assist) has another size.
		FNR != NR && !/[{ ]bytes=128[ }]/ { next }
		FNR == NR { if (NF == 3) want[key($1, $3)] += $2; next }
		{
			id = "none"; set = ""
			s = $0; sub(/.*\{/, "", s); sub(/\}$/, "", s)
			n = split(s, l, " ")
			for (i = 1; i <= n; i++)
				if (l[i] == "bytes=128") continue
				else if (l[i] ~ /^goid=/) id = substr(l[i], 6)
				else { gsub(/"/, "", l[i]); set = set (set == "" ? "" : ",") l[i] }
			if (set == "") set = "-"
			if (goid != "goid") { if (id != "none") lost++; id = "any" }
			if (labels != "labels") { if (set != "-") lost++; set = "any" }
			got[id " " set] += $1
		}
		END {
			if (lost) print lost " samples with labels that were not asked for; "
			for (k in got) if (!(k in want)) printf "%d objects of {%s}, which there is not; ", got[k], k
			p = 1 - exp(-128 / rate)
			for (k in want) {
				kinds++
				se = sqrt(want[k] * (1 - p) / p); d = got[k] - want[k]
				if (d < -4 * se || d > 4 * se) printf "{%s}: %d for %d, %.1f standard errors; ", k, got[k], want[k], d / se
			}
			if (!kinds) print "no truth"
		}' "$1" "$TMP/stacks"
}

# run V goid|nogoid labels|nolabels
run() {
	local v=$1 name=heap_labels/$1-$2-$3 bin fd rc verdict i out options=
	[ "$2" != goid ] || options+=" --goid"
	[ "$3" != labels ] || options+=" --labels"
	bin=$(subject "$v" heaplabels) || { fail "$name" "does not build"; return; }
	rm -f "$TMP/in" && mkfifo "$TMP/in"
	"$bin" <"$TMP/in" >"$TMP/truth" 2>&1 &
	PID=$!
	STARTED+=("$PID")
	exec {fd}>"$TMP/in"
	for ((i = 0; i < 100; i++)); do grep -q ready "$TMP/truth" && break; sleep 0.1; done
	: >"$TMP/err"
	# shellcheck disable=SC2086
	"$GOPROF" -p $PID --heap --source=probe --heap-rate=$RATE --budget=0 $options -d 120s -o "$TMP" >"$TMP/path" 2>"$TMP/err" &
	local prof=$!
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
	if ! grep -q '^done' "$TMP/truth"; then
		fail "$name" "the program did not finish"
	elif [ $rc != 0 ] || [ ! -s "$out" ]; then
		fail "$name" "exit $rc: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"
	else
		verdict=$(judge "$TMP/truth" "$out" "$2" "$3")$("$PPROFCHECK" check "$out" 2>&1 >/dev/null | head -n 1)
		"$PPROFCHECK" comments "$out" >"$TMP/comments"
		[ "$3" != labels ] || grep -q '^labels: of the goroutine' "$TMP/comments" || verdict+="no comment on labels"
		[ -z "$verdict" ] && pass "$name" || fail "$name" "$verdict"
	fi
}

for v in 1.16.15 1.22.12 1.24.13 1.27.4; do
	run $v goid labels
done
run 1.27.4 nogoid labels
run 1.27.4 goid nolabels
run 1.27.4 nogoid nolabels

# What is read has no labels, and that is said.
bin=$(subject 1.27.4 heapself) && start "$bin" || fail heap_labels/read "the subject does not start"
"$GOPROF" -p "$PID" --heap --source=read --labels -d 100ms -o "$TMP" >"$TMP/path" 2>"$TMP/err"
rc=$?
if [ $rc = 0 ] && grep -q 'no goroutine labels' "$TMP/err" && "$PPROFCHECK" comments "$(cat "$TMP/path")" | grep -q '^labels: .* have none'; then
	pass heap_labels/read
else
	fail heap_labels/read "exit $rc: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"
fi
finish
