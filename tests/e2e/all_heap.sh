#!/bin/bash
# Probed heap profiles of many processes in one run, each beside what its own program says it did: two Go versions and two
# builds, three that share a binary, one of which is nobody's target; one that keeps records, which are read; one that
# starts in the window and one that ends in it; two containers of one image, whose files are one to the kernel; one whose
# stacks are all different, which loses alone; three with labels. Everything observed:
# every line within 4 standard errors, all bytes within 2 %. What is in use of several at once, of three Go versions, the GC running all the
# time in some, each beside its own live set as heap_live.sh has it for one. Then in windows under the host's budget.
# Mounts of its own.
[ -n "${ALL_HEAP_INSIDE:-}" ] || exec unshare --mount env ALL_HEAP_INSIDE=1 bash "$0" "$@"
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

RATE=1024

new=$(subject 1.27.4 alloctruth '-ldflags=-s -w') && old=$(subject 1.19.13 alloctruth -buildmode=pie '-ldflags=-s -w') &&
	reads=$(subject 1.27.4 heapself) && labelsnew=$(subject 1.27.4 heaplabels) && labelsold=$(subject 1.22.12 heaplabels) && host=$(subject 1.27.4 hosted '-ldflags=-s -w') ||
	{ fail all_heap "does not build"; finish; }
mkdir "$TMP/bin"
for f in new old reads host labelsnew labelsold; do cp "${!f}" "$TMP/bin/$f"; done

for f in one two; do
	mkdir -p "$TMP/$f" "$TMP/up.$f" "$TMP/work.$f"
	mount -t overlay overlay -o "lowerdir=$TMP/bin,upperdir=$TMP/up.$f,workdir=$TMP/work.$f" "$TMP/$f" || { fail all_heap "no overlay"; finish; }
done

declare -A pid go
# launch NAME PROGRAM ARG...: it waits for `tell NAME`
launch() {
	local name=$1 fd
	shift
	rm -f "$TMP/in.$name"
	mkfifo "$TMP/in.$name"
	: >"$TMP/truth.$name"
	"$TMP/bin/$1" "${@:2}" <"$TMP/in.$name" >"$TMP/truth.$name" 2>/dev/null &
	pid[$name]=$!
	STARTED+=("$!")
	exec {fd}>"$TMP/in.$name"
	go[$name]=$fd
}
tell() { echo go >&"${go[$1]}"; }
# wait_for FILE TEXT [TENTHS]
wait_for() {
	local i
	for ((i = 0; i < ${3:-600}; i++)); do grep -q "$2" "$1" 2>/dev/null && return 0; sleep 0.1; done
	return 1
}
file_of() { command ls "$TMP/$1"/*."${pid[$2]}.heap.pb.gz" 2>/dev/null; }
comments() { "$PPROFCHECK" comments "$(file_of "$1" "$2")"; }

# profile DIR OPTION...: begins, in the background
profile() {
	local dir=$1
	shift
	: >"$TMP/err.$dir"
	"$GOPROF" --all --match "exe=$TMP/bin/*" --match "exe=$TMP/one/*" --match "exe=$TMP/two/*" --exclude 'cmd=* -part 2' --heap --heap-rate=$RATE -d 300s -o "$TMP/$dir" "$@" >"$TMP/paths.$dir" 2>"$TMP/err.$dir" &
	PROF=$!
	STARTED+=("$PROF")
	wait_for "$TMP/err.$dir" '^goprof-bpf: profiling'
}
stop() { # sets RC
	kill -INT "$PROF"
	wait "$PROF"
	RC=$?
}

# ---- all of the time observed
launch a new -part 4
launch b new -part 5 -goroutines 4
launch by new -part 2 # a bystander: not a target, and busy all the time
launch c old -part 5
launch d old -part 5 -goroutines 2
launch gone new -part 5
launch e ../one/new -part 4
launch f ../two/new -part 5
launch reads reads
launch flood host allocflood
for n in a b by c d e f gone; do wait_for "$TMP/truth.$n" ready || { fail all_heap "$n does not start"; finish; }; done
profile full --host-budget=0,0 || { fail all_heap "$(tail -n 3 "$TMP/err.full" | tr '\n' ' ')"; finish; }
for n in by flood a b c d e f gone; do tell $n; done
launch later old -part 5
wait_for "$TMP/truth.later" ready
sleep 1 # it is found and looked at
tell later
for n in a b c d e f gone later by; do wait_for "$TMP/truth.$n" '^done' 1500 || { fail all_heap "$n does not finish"; finish; }; done
tell gone
sleep 1
stop

for n in a b c d e f gone later; do
	judge judge_probe "$TMP/truth.$n" "$(file_of full $n)" $RATE
	judge valid "$(file_of full $n)"
	outcome all_heap/full/$n
done
[ -z "$(file_of full by)" ] && comments full a | grep -qE ' [1-9][0-9]{5,} hits of processes that are not profiled' &&
	pass all_heap/bystander || fail all_heap/bystander "$(comments full a | grep 'not profiled')"
# Containers share the probes of their file with all that run it.
one_file() {
	local n strangers
	strangers=$(comments full a | grep 'not profiled')
	for n in b e f; do [ "$(comments full $n | grep 'not profiled')" = "$strangers" ] || { echo "$n: $(comments full $n | grep 'not profiled'), a: $strangers"; return 1; }; done
}
judge one_file
outcome all_heap/containers
flooded() {
	local lost
	grep -E "^goprof-bpf: pid [0-9]+ \(.*\): [a-z]+: [0-9]+ samples (dropped|of more)" "$TMP/err.full" | grep -v "pid ${pid[flood]} " && { echo "others lose"; return 1; }
	lost=$(grep -cE "^goprof-bpf: pid ${pid[flood]} " "$TMP/err.full")
	[ "$lost" -gt 0 ] && [ "$RC" = 3 ] || { echo "exit $RC, and the one that floods loses nothing"; return 1; }
}
judge flooded
outcome all_heap/flood
said() {
	comments full reads | grep -q "^source: read" && comments full a | grep -q "^source: probe" || { echo "the sources"; return 1; }
	comments full gone | grep -q '^end: the process ended in the window' || { echo "the end"; return 1; }
	grep -qE "^ *${pid[a]} .* heap\(probe\) " "$TMP/err.full" && grep -qE "^ *${pid[reads]} .* heap  " "$TMP/err.full" || { echo "the table"; return 1; }
	grep -qE 'allocated in the window, by [0-9]+ of [0-9]+ Go processes' "$TMP/err.full" && grep -qE 'in use on heaps, by 1 of 1' "$TMP/err.full" || { echo "the sums"; return 1; }
}
judge said
outcome all_heap/said
kill "${pid[flood]}" "${pid[reads]}"

# ---- whose: three of two Go versions, with the same label sets and some of the same ids; only what is theirs is in each profile
for n in labelsnew labelsmore labelsold; do launch $n ${n/more/new}; done
for n in labelsnew labelsmore labelsold; do wait_for "$TMP/truth.$n" ready || { fail all_heap "$n does not start"; finish; }; done
profile labels --host-budget=0,0 --labels --goid || { fail all_heap "$(tail -n 3 "$TMP/err.labels" | tr '\n' ' ')"; finish; }
for n in labelsnew labelsmore labelsold; do tell $n; done
for n in labelsnew labelsmore labelsold; do wait_for "$TMP/truth.$n" '^done' || { fail all_heap "$n does not finish"; finish; }; done
stop
for n in labelsnew labelsmore labelsold; do
	has "^goprof-bpf: pid ${pid[$n]} " "$TMP/err.labels" && wrong "it has losses: $(grep "^goprof-bpf: pid" "$TMP/err.labels")"
	judge "$PPROFCHECK" labelled -rate $RATE -labels -goid "$TMP/truth.$n" "$(file_of labels $n)"
	judge valid "$(file_of labels $n)"
	comments labels $n | has '^labels: of the goroutine' || wrong "no comment on labels"
	outcome all_heap/labels/$n
	tell $n # it ends
done

# ---- in use: five at once, two of which share a binary; one is too old to tell
live=$(subject 1.27.4 liveset '-ldflags=-s -w') && live22=$(subject 1.22.12 liveset '-ldflags=-s -w') && live16=$(subject 1.16.15 liveset) ||
	{ fail all_heap "liveset does not build"; finish; }
cp "$live" "$TMP/bin/live" && cp "$live22" "$TMP/bin/live22" && cp "$live16" "$TMP/bin/live16"
LIVE="l27 l27gc l22 l22gc"
in_use() { comments "$1" "$2" | sed -n "$3"; }
# lost NAME: the objects of which its profile says that it does not know
lost() { in_use live "$1" 's/^in use: \([0-9]*\) sampled objects without.* stand; \([0-9]*\) not confirmed.*/\1 \2/p' | awk '{ print $1 + $2 }'; }
followed() { in_use live "$1" 's/^in use: .* \([0-9]*\) sampled objects followed.*/\1/p'; }
# How many are too many, of those that were followed.
few() { echo $(($(followed "$1") / 100 + 5)); }

live_run() {
	local n
	rm -rf "$TMP/live"
	launch l27 live -scale 4
	launch l27gc live -goroutines 4 -gc 20ms -turns 8
	launch l22 live22 -scale 4
	launch l22gc live22 -goroutines 4 -gc 20ms -turns 8
	launch l16 live16
	for n in $LIVE l16; do wait_for "$TMP/truth.$n" ready || { fail all_heap "$n does not start"; finish; }; done
	RATE=2048 profile live --source=probe --host-budget=0,0 || { fail all_heap "$(tail -n 3 "$TMP/err.live" | tr '\n' ' ')"; finish; }
	for n in $LIVE l16; do tell $n; done
	for n in $LIVE l16; do wait_for "$TMP/truth.$n" '^done\|^panic' 1200 || { fail all_heap "$n does not finish"; finish; }; done
	stop
	for n in $LIVE l16; do tell $n; done # they end
	for n in $LIVE; do
		[ -n "$(followed $n)" ] || { fail all_heap/live "$n: not followed: $(comments live $n | grep absent)"; finish; }
	done
}
# A machine that is busy with other things looks too late at cycles: then once more, twice.
for try in 1 2 3; do
	live_run
	late=
	for n in $LIVE; do [ "$(lost $n)" -le "$(few $n)" ] || late="$late $n: $(lost $n) of $(followed $n)"; done
	[ -n "$late" ] || break
	attempt $try all_heap/live "objects lost:$late"
done
for n in $LIVE; do
	"$PPROFCHECK" comments "$(file_of live $n)" | grep '^in use'
	# The arrays that hold what it keeps are those of 4 goroutines, or 4 times as large.
	judge "$PPROFCHECK" live -rate 2048 -lost "$(lost $n)" -other $((72 * 1024 * 4)) "$TMP/truth.$n" "$(file_of live $n)"
	judge valid "$(file_of live $n)"
	[ "$(lost $n)" -le "$(few $n)" ] || wrong "$(lost $n) of $(followed $n) objects lost"
	grep "^goprof-bpf: pid ${pid[$n]} " "$TMP/err.live" | grep -vE 'place in memory|confirm' | has . && wrong "$(grep "^goprof-bpf: pid ${pid[$n]} " "$TMP/err.live")"
	outcome all_heap/live/$n
done
too_old() {
	comments live l16 | grep -q 'in-use columns are absent: .*go1\.16' || { echo "it is not said"; return 1; }
	"$PPROFCHECK" sum "$(file_of live l16)" | has alloc_objects || { echo "no allocations"; return 1; }
	! "$PPROFCHECK" sum "$(file_of live l16)" | has inuse_objects || { echo "it tells what it does not know"; return 1; }
}
judge too_old
outcome all_heap/live/l16

# In windows, two of two files: each line within what the standard errors that its profile states and the number of its windows allow, and
# these errors small enough to mean something. Of a machine that is busy with other things they get few windows: then once more, for longer.
windows() { in_use flow "$1" 's/^budget: .*[^0-9]\([0-9]*\) windows.*/\1/p'; }
flow_run() { # SECONDS
	local n
	rm -rf "$TMP/flow"
	launch f27 live -flow "$1s" -scale 10
	launch f22 live22 -flow "$1s" -scale 10
	for n in f27 f22; do wait_for "$TMP/truth.$n" ready || { fail all_heap "$n does not start"; finish; }; done
	RATE=4096 profile flow --host-budget=5%,5% || { fail all_heap "$(tail -n 3 "$TMP/err.flow" | tr '\n' ' ')"; finish; }
	for n in f27 f22; do tell $n; done
	for n in f27 f22; do wait_for "$TMP/truth.$n" '^done\|^panic' 2400 || { fail all_heap "$n does not finish"; finish; }; done
	stop
	for n in f27 f22; do
		tell $n # it ends
		comments flow $n >"$TMP/comments.$n"
	done
}
# A kernel may wait for seconds until probes are in or out (synchronize_srcu() in uprobe_unregister_sync(), Linux 6.18): a second
# without a window, if it is the last, makes an error as large as what it is about, and so do few windows. Usual are 0.3 to 0.6 s.
apart() { in_use flow "$1" 's/^budget: .* windows of .*, at most \([0-9.]*\) s apart.*/\1/p'; }
gap() { awk -v s="${1:-0}" -v of=12 'BEGIN { print (s > 0.6 ? s / of : 0) }'; }
seldom() { [ "${1:-0}" -lt 48 ] || awk -v s="${2:-9}" 'BEGIN { exit !(s > 1) }'; }
for try in 1 2 3 4; do
	flow_run 12
	w27=$(windows f27) w22=$(windows f22)
	seldom "$w27" "$(apart f27)" || seldom "$w22" "$(apart f22)" || break
	attempt $try all_heap/flow "${w27:-0} and ${w22:-0} windows, at most $(apart f27) and $(apart f22) s apart"
done
for n in f27 f22; do
	grep -E '^budget:|^error: main.* inuse_objects|^in use|^lost|loss' "$TMP/comments.$n"
	w=$(windows $n)
	[ "${w:-0}" -ge 10 ] || wrong "${w:-0} windows"
	judge "$PPROFCHECK" flow -windows "${w:-0}" -gap "$(gap "$(apart $n)")" "$TMP/truth.$n" "$TMP/comments.$n"
	outcome all_heap/flow/$n
done

# ---- in windows: two of one file, of which one does all, and one of another
churn=$(subject 1.27.4 churn '-ldflags=-s -w') && older=$(subject 1.19.13 churn '-ldflags=-s -w') || { fail all_heap "churn does not build"; finish; }
cp "$churn" "$TMP/bin/churn" && cp "$older" "$TMP/bin/older"
launch heavy churn heavy "$TMP/log.heavy"
launch light churn light "$TMP/log.light"
launch other older heavy "$TMP/log.other"
for n in heavy light other; do wait_for "$TMP/truth.$n" ready || { fail all_heap "$n does not start"; finish; }; done
"$GOPROF" --all --match 'cmd=* heavy *' --match 'cmd=* light *' --heap --host-budget=5%,5% -d "${SECONDS_EACH:-40}s" -o "$TMP/windows" >"$TMP/paths.windows" 2>"$TMP/err.windows"
sleep 0.3
for n in heavy other; do
	# Of the rarest sites a window sees one in three or four: 10 s of a busy machine, some 13 windows, may miss one.
	judge "$PPROFCHECK" budget -kind heap -type alloc_space -absent "$TMP/log.$n" "$(file_of windows $n)"
	outcome all_heap/windows/$n
done
# The windows of its file meet some samples of it, too few for an error; how many it made the runtime tells. Where there were few windows
# none may have met one of its two sizes: those are not in the profile, and a loss tells how many they are.
light() {
	local made window pace unseen
	made=$("$PPROFCHECK" sum "$(file_of windows light)" | awk '$2 == "alloc_objects" { print $1 }')
	window=$(comments windows light | awk '/^window:/ { print $2 }')
	pace=$("$PPROFCHECK" pace -kind heap "$TMP/log.light")
	unseen=$(sed -n "s/^goprof-bpf: pid ${pid[light]} .* \([0-9]*\) allocations of sizes that no window saw.*/\1/p" "$TMP/err.windows")
	awk -v n="$((${made:-0} + ${unseen:-0}))" -v s="${window:-0}" -v p="$pace" 'BEGIN { if (!(n > 0.9 * p * s && n < 1.1 * p * s)) { print n " objects in " s " s, at " p " a second"; exit 1 } }'
}
judge light
outcome all_heap/windows/light
many() {
	[ "$(comments windows heavy | sed -n 's/^budget: .*[^0-9]\([0-9][0-9]*\) windows.*/\1/p')" -ge 5 ] || comments windows heavy
	comments windows heavy | grep -q '^budget: 4.5% of the CPU time of all that run the file .* of the 5% that --host-budget' || { echo "whose 4.5% is that?"; return 1; }
	grep -q '^goprof-bpf: cost: goprof-bpf itself took ' "$TMP/err.windows" || { echo "whose cost is it?"; return 1; }
}
judge many
outcome all_heap/windows

# ---- the helper is killed: another one probes all files again, which is said once, and in each process' profile. Then the collector is
# killed while it probes: the helper takes the probes out and goes
RATE=65536 profile killed --host-budget=0,0 || { fail all_heap "$(tail -n 3 "$TMP/err.killed" | tr '\n' ' ')"; finish; }
helper() { pgrep -P "$PROF" -x -r R,S,D uprobe-attacher; } # one that was killed is a zombie until each file has another one
sleep 1
first=$(helper)
killed=$(date +%s%N)
kill -KILL $first
for ((i = 0; i < 100; i++)); do second=$(helper); [ -n "$second" ] && [ "$second" != "$first" ] && break; sleep 0.1; done
sleep 2
second=$(helper)
stop
mended() {
	[ "$(wc -w <<<"$first")" = 1 ] && [ "$(wc -w <<<"$second")" = 1 ] && [ "$first" != "$second" ] || { echo "helpers: '$first', then '$second'"; return 1; }
	[ "$RC" = 3 ] || { echo "exit status $RC"; return 1; }
	[ "$(grep -c '^goprof-bpf: all programs that were probed: [0-9]* processes together: 1 times somebody killed the process' "$TMP/err.killed")" = 1 ] || { cat "$TMP/err.killed"; return 1; }
	for n in heavy light other; do
		comments killed "$n" | grep -q '^lost by .*(all that are probed): 1 times somebody killed the process' || { echo "$n: not said"; comments killed "$n"; return 1; }
	done
}
judge mended
# What nobody saw is what is told, at the pace that light had then: without probes, and with less of heavy in its way, it does up to a tenth more.
missing() {
	local told seen pace
	told=$(comments killed light | sed -n 's/^lost by .*: \([0-9]*\) milliseconds in which nothing.*/\1/p')
	seen=$(comments killed light | sed -n 's/^hits: \([0-9]*\) allocations of .*/\1/p')
	pace=$("$PPROFCHECK" pace -kind heap -from "$killed" -to "$((killed + 450000000))" "$TMP/log.light")
	"$PPROFCHECK" budget -kind heap -type alloc_objects "$TMP/log.light" "$(file_of killed light)" | awk -v seen="$seen" -v told="${told:-0}" -v pace="$pace" '
		/^main\./ { split($5, n, "[.]+"); of += (n[1] + n[2]) / 2 }
		END { ms = of > 0 ? (of - seen) / pace * 1000 : -1; if (ms > told + 60 || told > ms + 100 || told < 1) { printf "%.0f ms are missing, %d are told\n", ms, told; exit 1 } }'
}
judge missing
outcome all_heap/helper
RATE=65536 profile killed --host-budget=0,0 || { fail all_heap "$(tail -n 3 "$TMP/err.killed" | tr '\n' ' ')"; finish; }
sleep 1
helper=$(helper)
kill -KILL "$PROF"
wait "$PROF" 2>/dev/null
for ((i = 0; i < 100; i++)); do runs "$helper" || break; sleep 0.1; done
untouched() {
	local n
	runs "$helper" && { echo "a helper is left"; return 1; }
	for n in heavy light other; do
		"$GOPROF" heal -p "${pid[$n]}" 2>&1 | has 'no breakpoints in the code' || { echo "$n has breakpoints"; return 1; }
	done
}
judge untouched
outcome all_heap/killed
for f in one two; do umount -l "$TMP/$f"; done
finish
