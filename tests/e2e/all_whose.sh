#!/bin/bash
# Whose samples are, and of what, of many processes in one run: labels and goids of probed waits, blocks and mutexes, and types of
# probed heaps, each beside what its own program says. Two Go versions, and two that share a binary and have the same label sets.
# Waits in windows, too, where looks from outside read labels from memory: what they keep is bounded (tests/unit/test_demux.c).
. tests/support/lib.sh
. tests/support/judges.sh
. tests/support/waits.sh
need_root && need_bpf && need_go

new=$(subject 1.27.4 waits -tags=self '-ldflags=-s -w') && old=$(subject 1.18.10 waits -tags=self '-ldflags=-s -w') &&
	typednew=$(subject 1.27.4 typed '-ldflags=-s -w') && typedold=$(subject 1.18.10 typed -buildmode=pie '-ldflags=-s -w') &&
	untyped=$(subject 1.16.15 hosted '-ldflags=-s -w') || { fail all_whose "does not build"; finish; }
mkdir "$TMP/bin"
for f in new old typednew typedold untyped; do cp "${!f}" "$TMP/bin/$f"; done

declare -A pid fd answers
launch() { # NAME PROGRAM ARG...
	begin_program "$TMP/bin/$2" "${@:3}" || { fail all_whose "$1 does not start"; finish; }
	pid[$1]=$PID fd[$1]=$FD answers[$1]=$SAID
}
tell() { echo "${*:2}" >&"${fd[$1]}"; }
# answered N NAME...: each has said so often that it is done
answered() {
	local n=$1 name i
	for name in "${@:2}"; do
		for ((i = 0; i < 2400; i++)); do [ "$(count '^done' "${answers[$name]}")" -ge "$n" ] && continue 2; sleep 0.05; done
		fail all_whose "$name does not finish"
		finish
	done
}
file_in() { command ls "$TMP/$1"/*."${pid[$2]}.$3.pb.gz" 2>/dev/null; }

declare -A prof
# profile DIR OPTION...: begins, in the background
profile() {
	local dir=$1 i
	shift
	: >"$TMP/err.$dir"
	"$GOPROF" --all --match "cmd=$TMP/bin/*" -d 300s -o "$TMP/$dir" "$@" >"$TMP/paths.$dir" 2>"$TMP/err.$dir" &
	prof[$dir]=$!
	STARTED+=($!)
	for ((i = 0; i < 600; i++)); do grep -q '^goprof-bpf: profiling' "$TMP/err.$dir" && return; sleep 0.1; done
	fail all_whose "$(tail -n 3 "$TMP/err.$dir" | tr '\n' ' ')"
	finish
}
stop() { kill -INT "${prof[$1]}" && wait "${prof[$1]}"; }
# said NAME N: what it said of the Nth thing that it was told
said() { awk -v n="$2" 'BEGIN { at = 1 } at == n { print } /^done/ { at++ }' "${answers[$1]}" >"$TMP/truth"; }

# ---- waits, blocks and mutexes: all of the time observed
launch a new
launch b new
launch c old
profile full --wait --block --source=probe --wait-rate=1 --block-rate=1 --labels --goid --host-budget=0,0
for n in a b c; do tell $n run labels 10 5; done
answered 1 a b c
stop full || wrong "exit $?: $(grep "^goprof-bpf:" "$TMP/err.full" | tr "\n" " ")"
whose() { # NAME
	said "$1" 1
	judge_labels "$TMP/truth" "$(file_in full "$1" wait)" 'chan receive' || return
	judge_labels "$TMP/truth" "$(file_in full "$1" block)"
}
for n in a b c; do
	judge whose $n
	outcome all_whose/full/$n
done

# ---- in windows: waits of 30 ms, which looks count
profile windows --wait --labels --goid --host-budget=10%,0.001%
for n in a b c; do tell $n run labels 20 30; done
answered 2 a b c
stop windows || [ $? = 3 ] || wrong "exit $?" # a place that no window met, for one
# in_windows NAME: each label set has its number, as windows and looks tell it (wait.sh and budget.sh judge the numbers)
in_windows() {
	local file
	file=$(file_in windows "$1" wait)
	said "$1" 2
	"$PPROFCHECK" comments "$file" >"$TMP/comments" && "$PPROFCHECK" labels -type contentions "$file" >"$TMP/labels" || return
	grep -qE '^budget:.* [1-9][0-9]* windows' "$TMP/comments" || { echo "there were no windows"; return 1; }
	awk -v reason='reason="chan receive"' 'FNR == NR { if (index($0, reason) && index($0, "tier=")) { n[++last] = $1; set[last] = $0 }; next }
		$1 == "label" { seen++; want = $2 "=\"" $3 "\""; got = 0
			for (i = 1; i <= last; i++) if (index(set[i], want) && index(set[i], "tier=\"back\"")) got += n[i]
			if (3 * got < $5 || got > 3 * $6) { print want ": " got " events for " $5; bad = 1 } }
		END { if (seen != 3) { print seen + 0 " labels to judge by"; bad = 1 }; exit bad }' "$TMP/labels" "$TMP/truth"
}
for n in a b c; do
	judge in_windows $n
	outcome all_whose/windows/$n
	tell $n end
done

# ---- types: beside a run without them. The collector allocates too, wherever it is due.
GOGC=off launch typednew typednew
GOGC=off launch typedmore typednew
GOGC=off launch typedold typedold
launch untyped untyped allocflood
for n in typed without; do
	option=--types
	[ $n = typed ] || option=
	# shellcheck disable=SC2086
	profile $n $option --heap --source=probe --heap-rate=1 --host-budget=0,0 --exclude "cmd=*untyped*"
done
profile none --types --heap --source=probe --host-budget=0,0 --exclude "cmd=*typed[nmo]*"
for n in typednew typedmore typedold; do tell $n go; done
answered 1 typednew typedmore typedold
# At rate 1 there are more sampled objects than can be followed, which is the only loss.
followed() { # STATUS NAME
	[ "$1" = 0 ] && return
	[ "$1" = 3 ] && ! grep '^goprof-bpf: pid ' "$TMP/err.$2" | has -v ': [0-9]* sampled objects whose place in memory could not be told: others stand for them$'
}
for n in typed without none; do
	stop $n && rc=0 || rc=$?
	followed $rc $n || wrong "$n: exit $rc: $(grep '^goprof-bpf:' "$TMP/err.$n" | tr '\n' ' ')"
done
for n in typednew typedmore typedold; do
	judge "$PPROFCHECK" check "$(file_in typed $n heap)"
	judge "$PPROFCHECK" types testdata/programs/typed/main.go "$(file_in typed $n heap)" "$(file_in without $n heap)"
	outcome all_whose/types/$n
done
untyped() {
	"$PPROFCHECK" comments "$(file_in none untyped heap)" | grep -q '^types: none: they are told from go1\.18 on' || { echo "it is not said that it has no types"; return 1; }
	[ "$("$PPROFCHECK" sum "$(file_in none untyped heap)" | awk '$2 == "alloc_objects" { print $1 }')" -gt 0 ] || { echo "it has no allocations"; return 1; }
}
judge untyped
outcome all_whose/types/untyped
finish
