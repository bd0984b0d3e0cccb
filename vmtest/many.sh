# shellcheck shell=bash
# Of vmtest/suite.sh: many processes, and namespaces.

ticks_of() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'; }
ran() {
	local p
	for p in "${!BEFORE[@]}"; do [ $(($(ticks_of "$p") - BEFORE[$p])) -ge 60 ] || return 1; done
}
# profile_all ARG...: as profile
profile_all() {
	: >"$TMP/err"
	rm -rf "$TMP/all"
	"$GOPROF" --all -d 300s -o "$TMP/all" "$@" >"$TMP/paths" 2>"$TMP/err" </dev/null &
	PROF=$!
	STARTED+=("$PROF")
	within 60 grep -q 'profiling [0-9]* process' "$TMP/err" || echo "it does not profile: $(last_said)"
}
# file_in KIND PID
file_in() { command ls "$TMP"/all/*."$2.$1.pb.gz" 2>/dev/null; }
# Each profile has the CPU time that /proc counted.
many() {
	local p rc file
	declare -A BEFORE=()
	for p; do BEFORE[$p]=$(ticks_of "$p"); done
	: >"$TMP/totals"
	profile_all --match "cmd=*/hosted-*" --cpu -F 250
	kill -CONT "$@"
	within 60 ran || echo "they get no CPU time"
	kill -STOP "$@"
	sleep 0.1
	kill -INT "$PROF"
	wait "$PROF" && rc=0 || rc=$?
	[ $rc = 0 ] || echo "exit $rc: $(last_said)"
	for p; do
		file=$(file_in cpu "$p")
		"$PPROFCHECK" check "$file"
		echo "$p $(($(ticks_of "$p") - BEFORE[$p])) $("$PPROFCHECK" sum "$file" | awk '$2 == "cpu" { print $1 }')" >>"$TMP/totals"
	done
	sed 's/^/# all: /' "$TMP/totals" >&2
	judge_totals "$TMP/totals"
}
# Does this kernel probe many processes? From 5.15 on, where probes are links.
probes_many() { [ "$(able perf_link)" = yes ]; }

# Two programs of known allocations, probed by one.
many_heaps() {
	local v fd rc
	local -A pid=() in=()
	for v in $OLD $NEWEST; do
		rm -f "$TMP/in"
		mkfifo "$TMP/in"
		: >"$TMP/truth.$v"
		"$(subject_s $v alloctruth)" -part 20 <"$TMP/in" >"$TMP/truth.$v" 2>&1 &
		pid[$v]=$!
		STARTED+=("$!")
		exec {fd}>"$TMP/in"
		in[$v]=$fd
		within 30 grep -q ready "$TMP/truth.$v"
	done
	profile_all --match 'cmd=*/alloctruth-*' --heap --heap-rate=$RATE --host-budget=0,0
	for v in "${!pid[@]}"; do echo go >&"${in[$v]}"; done
	for v in "${!pid[@]}"; do within 200 grep -q '^done' "$TMP/truth.$v" || echo "$v did not finish"; done
	kill -INT "$PROF"
	wait "$PROF" && rc=0 || rc=$?
	[ $rc = 0 ] || echo "exit $rc: $(last_said)"
	for v in "${!pid[@]}"; do
		"$PPROFCHECK" check "$(file_in heap "${pid[$v]}")"
		judge_allocs "$TMP/truth.$v" "$(file_in heap "${pid[$v]}")" $RATE 0 0.07
		kill "${pid[$v]}"
		fd=${in[$v]}
		exec {fd}>&-
	done
}
# Two that wait as they are told.
many_blocks() {
	local v rc
	local -A pid=() fd=() said=()
	for v in $OLD $NEWEST; do
		begin $v waits '-ldflags=-s -w'
		pid[$v]=$PID fd[$v]=$FD said[$v]=$SAID
	done
	profile_all --match 'cmd=*/waits-*' --block --mutex --block-rate=1 --mutex-fraction=1 --host-budget=0,0
	for v in "${!pid[@]}"; do
		PID=${pid[$v]} FD=${fd[$v]} SAID=${said[$v]}
		ask run all,mutex100 2 100
	done
	kill -INT "$PROF"
	wait "$PROF" && rc=0 || rc=$?
	[ $rc = 0 ] || echo "exit $rc: $(last_said)"
	for v in "${!pid[@]}"; do
		PID=${pid[$v]} FD=${fd[$v]} SAID=${said[$v]} MARK=0
		judged block "$(file_in block "$PID")"
		judged mutex "$(file_in mutex "$PID")"
		end
	done
}
part_all() {
	local one idle
	start "$(subject_s $OLD hosted)" busy 1 1
	one=$PID
	kill -STOP "$one"
	start "$(subject $NEWEST hosted)" idle
	idle=$PID
	start "$(subject $NEWEST hosted)" busy 3 1
	kill -STOP "$PID"
	steps many "$one" "$PID"
	outcome all/cpu
	for PID in "$one" "$idle" "$PID"; do stop; done
	[ -z "${SHORT:-}" ] || return 0
	if ! probes_many; then
		skip "all/heap, block and mutex probed" "doctor says that this kernel has no links of perf events"
		return
	fi
	steps many_heaps
	outcome all/heap
	steps many_blocks
	outcome "all/block and mutex"
}

# watched FILES COMMAND...: a profile of so many files, in each of which the program is
watched() {
	local rc file type
	"${@:2}" >"$TMP/paths" 2>"$TMP/err" </dev/null && rc=0 || rc=$?
	[ $rc = 0 ] || [ $rc = 3 ] || echo "exit $rc: $(last_said)"
	while read -r file; do
		case $file in *.heap.*) type=alloc_space ;; *) type=cpu ;; esac
		"$PPROFCHECK" check "$file"
		"$PPROFCHECK" cum -type $type "$file" | has 'main\.' || echo "$(basename "$file"): nothing of the program in it: $("$PPROFCHECK" comments "$file" | grep -E '^(hits|budget|window|loss)' | tr '\n' ';')"
	done <"$TMP/paths"
	[ "$(wc -l <"$TMP/paths")" = "$1" ] || echo "$(wc -l <"$TMP/paths") files"
}
# All is observed: windows under a budget may miss all that a program which rests does in a second.
TWO="--cpu --heap --source=probe --budget=0 --heap-rate=16k -d 1s -o $TMP/any"
part_spaces() {
	local child
	start setpriv --reuid $OURS --regid $OURS --clear-groups unshare --user --map-root-user --mount --pid --fork --kill-child "$(subject $NEWEST checksum)" -rest 100ms
	while child=$(pgrep -P "$PID" | head -n 1) && [ -n "$child" ]; do PID=$child; done
	# shellcheck disable=SC2086
	steps watched 2 "$GOPROF" -p "$PID" $TWO
	stop
	outcome "spaces/it is in a user, mount and pid namespace"
	steps watched 2 unshare --pid --fork --kill-child --mount-proc bash -c '"$1" -rest 100ms >/dev/null 2>&1 & sleep 0.5; "$0" -p $! "${@:2}"; rc=$?; kill -KILL $!; exit $rc' \
		"$GOPROF" "$(subject $NEWEST checksum)" $TWO
	outcome "spaces/we are in a pid namespace"
}
