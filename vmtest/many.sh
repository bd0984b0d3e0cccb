# shellcheck shell=bash
# Of vmtest/suite.sh: many processes, and namespaces.

ticks_of() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'; }
ran() {
	local p
	for p in "${!BEFORE[@]}"; do [ $(($(ticks_of "$p") - BEFORE[$p])) -ge 60 ] || return 1; done
}
# Each profile has the CPU time that /proc counted.
many() {
	local p rc file
	declare -A BEFORE=()
	for p; do BEFORE[$p]=$(ticks_of "$p"); done
	: >"$TMP/err" && : >"$TMP/totals"
	rm -rf "$TMP/all"
	"$GOPROF" --all --match "cmd=*/hosted-*" --cpu -F 250 -d 300s -o "$TMP/all" >"$TMP/paths" 2>"$TMP/err" </dev/null &
	PROF=$!
	STARTED+=("$PROF")
	within 60 grep -q 'profiling [0-9]* process' "$TMP/err" || echo "it does not profile: $(last_said)"
	kill -CONT "$@"
	within 60 ran || echo "they get no CPU time"
	kill -STOP "$@"
	sleep 0.1
	kill -INT "$PROF"
	wait "$PROF" && rc=0 || rc=$?
	[ $rc = 0 ] || echo "exit $rc: $(last_said)"
	for p; do
		file=$(command ls "$TMP"/all/*."$p".cpu.pb.gz)
		"$PPROFCHECK" check "$file"
		echo "$p $(($(ticks_of "$p") - BEFORE[$p])) $("$PPROFCHECK" sum "$file" | awk '$2 == "cpu" { print $1 }')" >>"$TMP/totals"
	done
	sed 's/^/# all: /' "$TMP/totals" >&2
	judge_totals "$TMP/totals"
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
}

# watched FILES COMMAND...: a profile of so many files, in each of which the program is
watched() {
	local rc file
	"${@:2}" >"$TMP/paths" 2>"$TMP/err" </dev/null && rc=0 || rc=$?
	[ $rc = 0 ] || [ $rc = 3 ] || echo "exit $rc: $(last_said)"
	while read -r file; do
		"$PPROFCHECK" check "$file"
		"$PPROFCHECK" cum "$file" | has 'main\.' || echo "$file: nothing of the program in it"
	done <"$TMP/paths"
	[ "$(wc -l <"$TMP/paths")" = "$1" ] || echo "$(wc -l <"$TMP/paths") files"
}
TWO="--cpu --heap --source=probe -d 1s -o $TMP/any"
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
