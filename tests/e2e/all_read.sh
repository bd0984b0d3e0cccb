#!/bin/bash
# What many programs have recorded themselves, read in one run, equals what each of them says of itself at the same
# standstill: heap, block, mutex, and the goroutines that there are. One keeps no records, and one ends meanwhile.
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_go

HANDLER='net/http\.\(\*(conn|connReader|Server)\)'
STILL='(?m)(^| )main\.'
BUT='(?m)(^| )runtime\.(unlock|gcStart) '
KINDS='--source=read --heap --block --mutex --goroutine'

heap=$(subject 1.27.4 heapself) && old=$(subject 1.19.13 heapself -buildmode=pie '-ldflags=-s -w') && waits=$(subject 1.27.4 waitself) &&
	routines=$(subject 1.24.13 goroutines -ldflags="-s -w") && none=$(subject 1.27.4 hosted) ||
	{ fail all_read "does not build"; finish; }
mkdir "$TMP/programs" # other scripts may run the same ones meanwhile
for name in heap old waits routines none; do
	cp "${!name}" "$TMP/programs/" && printf -v $name %s "$TMP/programs/$(basename "${!name}")"
done
ours=exe=$TMP/programs/*

declare -A pid port
launch() { # NAME PROGRAM ARG...
	start "${@:2}" || { fail all_read "$1 does not start"; finish; }
	pid[$1]=$PID port[$1]=$PORT
}
launch heap "$heap"
launch old "$old"
launch waits "$waits" -block 1 -mutex 1
launch routines "$routines"
launch none "$none" idle
launch gone "$none" idle

file_of() { command ls "$TMP"/out/*."${pid[$1]}.$2.pb.gz" 2>/dev/null; }
own() { http_get "${port[$1]}" "/debug/pprof/$2" "$TMP/$3.$1.$2" || { echo "$1 does not answer"; return 1; }; }
# ask WHEN: each for its own profiles
ask() {
	local name
	for name in heap old; do own $name heap "$1" || return 1; done
	own waits block "$1"
	own waits mutex "$1"
	own routines goroutine "$1"
}

# ---- who would have what
table() {
	"$GOPROF" --all --match "$ours" $KINDS --dry-run >"$TMP/table" 2>"$TMP/err"
	[ "$(grep -c "  $(basename "$none" | cut -c 1-15)" "$TMP/table")" = 2 ] || { echo "not all are in the table"; return 1; }
	grep -E "^ *${pid[heap]} " "$TMP/table" | has ' heap,goroutine ' &&
		grep -E "^ *${pid[waits]} " "$TMP/table" | has ' heap,block,mutex,goroutine ' &&
		grep -E "^ *${pid[none]} " "$TMP/table" | has ' goroutine ' || { cat "$TMP/table"; return 1; }
}
judge table
outcome all_read/dry-run

# ---- all of them, in a window in which one ends
ask one || { fail all_read "a program does not answer"; finish; }
"$GOPROF" --all --match "$ours" $KINDS --format pprof --format flame -d 4s -o "$TMP/out" >"$TMP/paths" 2>"$TMP/err" &
PROF=$!
STARTED+=("$PROF")
for ((i = 0; i < 200; i++)); do
	grep -qE 'profiling [0-9]+ processes' "$TMP/err" && break
	sleep 0.05
done
sleep 1 # on a busy machine it begins with five, and the sixth follows
kill -KILL "${pid[gone]}"
wait "${pid[gone]}" 2>/dev/null
wait "$PROF"
RC=$?
ask two

judge judge_read "$TMP/one.heap.heap" "$(file_of heap heap)" "$TMP/two.heap.heap"
outcome all_read/heap/1.27.4
judge judge_read "$TMP/one.old.heap" "$(file_of old heap)" "$TMP/two.old.heap"
outcome all_read/heap/1.19.13

grown() { # KIND
	"$PPROFCHECK" grew -addresses -tolerance 0.01 -still "$STILL" -but "$BUT" "$TMP/one.waits.$1" "$(file_of waits "$1")" "$TMP/two.waits.$1" >"$TMP/diff" ||
		{ head -n 6 "$TMP/diff"; return 1; }
}
judge grown block
judge grown mutex
outcome all_read/contention
routines() {
	"$PPROFCHECK" equal -addresses -without "$HANDLER" "$TMP/two.routines.goroutine" "$(file_of routines goroutine)" >"$TMP/diff" ||
		{ head -n 6 "$TMP/diff"; return 1; }
	awk '/in both:/ && $NF >= 40 { ok = 1 } END { if (!ok) { print "too few samples"; exit 1 } }' "$TMP/diff"
}
judge routines
outcome all_read/goroutine

# ---- what is said
gone() {
	"$PPROFCHECK" comments "$(file_of gone goroutine)" >"$TMP/comments"
	has '^state: as of .*; the target went' "$TMP/comments" && has '^end: the process ended in the window' "$TMP/comments" ||
		{ cat "$TMP/comments"; return 1; }
}
judge gone
outcome all_read/gone
said() {
	[ "$RC" = 3 ] || { echo "exit $RC"; return 1; }
	[ -z "$(file_of none heap)" ] && [ -n "$(file_of none goroutine)" ] || { echo "the one without records has other files"; return 1; }
	grep -qE '^[0-9.]+ [kM]?B in use on heaps, by [34] of [34] Go processes$' "$TMP/err" &&
		grep -qE '^goprof-bpf: 2 processes have no heap profile: pid [0-9]+ \([^)]+\) and [0-9]+ \([^)]+\); the first: the target does not sample its heap' "$TMP/err" &&
		grep -qE '^[0-9]+ goroutines, by 6 of 6 Go processes$' "$TMP/err" || { tail -n 40 "$TMP/err"; return 1; }
	[ "$(sort "$TMP/paths" | uniq | wc -l)" = "$(find "$TMP/out" -type f | wc -l)" ] || { echo "not all files are named"; return 1; }
	grep -q "heapself[^\"]* \[${pid[heap]}\]" "$TMP/out/host.heap.html" || { echo "the page does not name a process"; return 1; }
}
judge said
outcome all_read/said

# ---- those that are named: one keeps no records
"$GOPROF" -p "${pid[heap]}" -p "${pid[none]}" --heap --source=read -d 100ms -o "$TMP/named" >"$TMP/paths" 2>"$TMP/err"
rc=$?
[ $rc = 3 ] && [ "$(wc -l <"$TMP/paths")" = 1 ] && grep -qE "^ *${pid[none]} .* no: it keeps no records" "$TMP/err" &&
	pass all_read/named || fail all_read/named "exit $rc: $(tail -n 3 "$TMP/err" | tr '\n' ' ')"

# ---- what is told goes to a full disk: the files are there, and the exit status tells that something is not
untold() { # RC WHERE
	local rc=0 where=$2
	"$GOPROF" -p "${pid[routines]}" --goroutine -o "$TMP/untold" >"$TMP/paths" 2>"$where" || rc=$?
	[ $rc = "$1" ] || echo "exit $rc to $where"
	[ -s "$(cat "$TMP/paths")" ] || echo "no file"
}
all_untold() { untold 3 /dev/full && untold 0 /dev/null; }
steps all_untold
outcome all_read/untold

# ---- which process it was
identity() { # NAME KIND
	"$PPROFCHECK" comments "$(file_of "$1" "$2")" >"$TMP/comments"
	has "^process: $(readlink "/proc/${pid[$1]}/exe"), started [1-9][0-9]*, cgroup [/?]" "$TMP/comments" || { cat "$TMP/comments"; return 1; }
}
judge identity heap heap
judge identity waits block
judge identity waits mutex
judge identity routines goroutine
outcome all_read/identity

# ---- what a run of many says and writes as one of a single process does
stacks_of() { grep -E '^(goroutine|[0-9]+ @|[0-9]+ goroutine)' "$1" | wc -l; }
as_one() {
	local one many
	mkdir "$TMP/one" "$TMP/many"
	SUDO_UID=42431 SUDO_GID=42431 "$GOPROF" -p "${pid[routines]}" --goroutine --format text -o "$TMP/one" >"$TMP/paths" 2>"$TMP/err.one"
	SUDO_UID=42431 SUDO_GID=42431 "$GOPROF" --all --match "cmd=$routines" --goroutine --format text -d 100ms -o "$TMP/many" >"$TMP/paths" 2>"$TMP/err.many"
	one=$(stacks_of "$TMP"/one/*.txt) many=$(stacks_of "$TMP"/many/*.txt)
	[ "$one" -ge 10 ] && [ "$one" = "$many" ] || echo "$one blocks of goroutines alone, $many among many"
	[ "$(count 'only root can read the files' "$TMP/err.one")" = 1 ] || echo "alone: $(cat "$TMP/err.one")"
	[ "$(count 'only root can read the files' "$TMP/err.many")" = 1 ] || echo "among many: $(cat "$TMP/err.many")"
}
steps as_one
outcome all_read/as_one

# ---- who reads the paths leaves: the run goes on, and ends as with a single process, with 1
reader_leaves() {
	local some=() i prof rc
	mkdir "$TMP/brief" "$TMP/leaves"
	cp "$none" "$TMP/brief/service"
	for ((i = 0; i < 20; i++)); do
		"$TMP/brief/service" idle >/dev/null 2>&1 </dev/null &
		some+=($!)
	done
	STARTED+=("${some[@]}")
	for i in "${some[@]}"; do until [ "$(readlink "/proc/$i/exe")" = "$TMP/brief/service" ]; do sleep 0.05; done; done
	mkfifo "$TMP/pipe"
	"$GOPROF" --all --match "cmd=$TMP/brief/" --goroutine -d 300s -o "$TMP/leaves" >"$TMP/pipe" 2>"$TMP/err" &
	prof=$!
	STARTED+=("$prof")
	exec 9<"$TMP/pipe" 9<&-
	until [ "$(count 'profiling 20 processes' "$TMP/err")" = 1 ]; do sleep 0.05; done
	kill -KILL "${some[@]:0:18}"
	for ((i = 0; i < 600; i++)); do [ "$(count 'cannot write to stdout' "$TMP/err")" = 0 ] || break; sleep 0.05; done
	sleep 0.5
	kill -INT $prof || echo "it has ended: $(tail -n 2 "$TMP/err")"
	wait $prof && rc=0 || rc=$?
	[ $rc = 1 ] || echo "exit $rc"
	[ "$(find "$TMP/leaves" -type f | wc -l)" = 20 ] || echo "$(find "$TMP/leaves" -type f | wc -l) files"
	[ "$(count 'cannot write to stdout' "$TMP/err")" = 1 ] || echo "$(count 'cannot write to stdout' "$TMP/err") complaints"
	has 'goprof-bpf: stopped after' "$TMP/err" || cat "$TMP/err"
	kill -KILL "${some[@]:18}"
}
steps reader_leaves
outcome all_read/reader_leaves

# ---- one that starts meanwhile records its heap itself, and ends: what it recorded goes with it, so it is probed
fresh() {
	local prof rc=0 n=2000
	mkdir "$TMP/fresh"
	cp "$keeps" "$TMP/fresh/service"
	"$GOPROF" --all --match "exe=$TMP/fresh/*" --heap --heap-rate=1 --host-budget=0,0 -d 4s -o "$TMP/fresh/out" >"$TMP/paths" 2>"$TMP/err" &
	prof=$!
	STARTED+=("$prof")
	has_begun $prof "$TMP/err" 'profiling 0 processes'
	"$TMP/fresh/service" allocated $n >/dev/null
	wait $prof || rc=$?
	[ $rc = 0 ] || has 'could not be looked at' "$TMP/err"
	[ "$(wc -l <"$TMP/paths")" = 1 ]
	has '^source: probe' <("$PPROFCHECK" comments "$(cat "$TMP/paths")")
	"$PPROFCHECK" sum "$(cat "$TMP/paths")" | awk -v of=$((n * 65536)) '$2 == "alloc_space" && ($1 < of || $1 > 1.02 * of + 2e6) { print $0 ", and it has allocated " of }'
	has '^125.[0-9]* MB allocated in the window, by 1 of 1 Go processes' "$TMP/err"
}
need_bpf
keeps=$(subject 1.27.4 hosted -tags=records '-ldflags=-s -w') || { fail all_read "does not build"; finish; }
# ---- what was allocated in the window is told also where no garbage collection has published it
unpublished() {
	local server rc=0
	cp "$keeps" "$TMP/fresh/server"
	mkfifo "$TMP/line"
	GOGC=off "$TMP/fresh/server" allocated-at 4000 <"$TMP/line" >/dev/null & server=$!
	STARTED+=("$server")
	exec 8>"$TMP/line"
	until [ "$(readlink "/proc/$server/exe")" = "$TMP/fresh/server" ]; do sleep 0.05; done
	(has_begun $$ "$TMP/err.line" 'profiling 2 processes'; echo >&8) &
	"$GOPROF" -p $server -p "${pid[heap]}" --heap -d 3s -o "$TMP/fresh/out" >"$TMP/paths" 2>"$TMP/err.line" || rc=$?
	exec 8>&-
	kill -KILL $server
	[ $rc = 0 ] || echo "exit $rc"
	# 250 MB; of some 500 samples a standard error is 4.5 %
	awk -v pid=$server '/allocated in the window/ { on = 1 } on && $4 == pid { v = $1 * ($2 == "GB" ? 1000 : 1) } END { if (v < 190 || v > 310) print "allocated: " v + 0 " MB of 250" }' "$TMP/err.line"
}
steps fresh
outcome all_read/fresh
steps unpublished
outcome all_read/unpublished

# Of programs that live for a moment while their file is in windows nothing may be seen; but a profile that has less than half of it tells that.
brief() {
	local prof shell i n=1000 f
	mkdir "$TMP/brief.bin"
	cp "$none" "$TMP/brief.bin/service"
	"$TMP/brief.bin/service" allocates 500 >/dev/null 2>&1 &
	shell=$!
	STARTED+=("$shell")
	"$GOPROF" --all --match "exe=$TMP/brief.bin/*" --heap -d 6s -o "$TMP/brief.out" >"$TMP/paths" 2>"$TMP/err" &
	prof=$!
	STARTED+=("$prof")
	has_begun $prof "$TMP/err" 'profiling 1 process '
	sleep 2
	for i in 1 2 3 4 5 6; do "$TMP/brief.bin/service" allocated $n >/dev/null; done
	wait $prof || true
	kill -KILL $shell
	[ "$(wc -l <"$TMP/paths")" = 7 ]
	"$PPROFCHECK" comments "$TMP/brief.out/service.$shell.heap.pb.gz" | has '[0-9] windows of'
	for f in $(grep -v "service.$shell.heap" "$TMP/paths"); do
		"$PPROFCHECK" comments "$f" >"$TMP/comments"
		"$PPROFCHECK" sum "$f" | awk -v of=$((n * 65536)) -v lost="$(count '^loss: ' "$TMP/comments")" '
			$2 == "alloc_space" && $1 < of / 2 && !lost { print $0 ", it has allocated " of ", and no loss is told" }'
	done
}
steps brief
outcome all_read/brief
finish
