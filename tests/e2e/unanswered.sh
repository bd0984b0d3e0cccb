#!/bin/bash
# A process has mapped a file over its own variables, and the file's server never answers. `ps` tells of all
# others; a profile of it ends when it is asked to, and when it is killed.
. tests/support/lib.sh
need_root && need_go
[ -e /dev/fuse ] || skip_all "there is no FUSE here"

mkdir "$TMP/mnt"
start "$(subject 1.27.4 ratewatch)" || { fail unanswered "the other program does not start"; finish; }
OTHER=$PID
start "$O/tests/deaf" "$TMP/mnt" "$(subject 1.27.4 deaf)" "$TMP/mnt/f" || skip_all "FUSE does not work here: $(tail -n 1 "$OUT")"
SERVER=$PID DEAF=$PORT
sleep 0.3

# ended SECONDS PID: is it, by then? Whoever waits here for longer is set free by the server's end.
ended() {
	local i
	for ((i = 0; i < $1 * 20; i++)); do
		[[ $(cut -d' ' -f3 "/proc/$2/stat" 2>/dev/null) =~ ^[^Z]$ ]] || return 0
		sleep 0.05
	done
	kill -KILL "$SERVER"
	return 1
}

# lists OPTION PATTERN-OF-OTHER PATTERN-OF-DEAF: both are told of, and the status is 3.
lists() {
	local ps rc
	# shellcheck disable=SC2086
	"$GOPROF" ps $1 >"$TMP/ps" 2>"$TMP/said" &
	ps=$!
	STARTED+=("$ps")
	ended 12 "$ps" || { echo "it does not end"; return; }
	wait "$ps" && rc=0 || rc=$?
	[ $rc = 3 ] || echo "status $rc"
	grep -q "$2" "$TMP/ps" || echo "the other: $(head -c 300 "$TMP/ps")"
	cat "$TMP/ps" "$TMP/said" | tr -d ' \n' | has "$3" || echo "this one: $(cat "$TMP/said")"
	[ "$(grep -c "^$DEAF " "$TMP/ps")" = 0 ] || echo "it is in the table"
}
steps lists "" "^$OTHER .* 1.27.4 " "pid${DEAF}couldnotbelookedat"
outcome "unanswered/ps tells of the others"
steps lists --json "\"pid\": $OTHER," "\"unanswered\":\[[0-9,]*$DEAF[],]"
outcome "unanswered/and as JSON"

# stops SIGNAL STATUS
stops() {
	local rc profile i
	"$GOPROF" -p "$DEAF" --heap --source=read -d 60s -o "$TMP" >"$TMP/paths" 2>"$TMP/said" &
	profile=$!
	STARTED+=("$profile")
	for ((i = 0; i < 100; i++)); do
		[ "$(cut -d' ' -f3 "/proc/$profile/stat")" != D ] || break
		sleep 0.05
	done
	[ $i -lt 100 ] || echo "it does not wait: $(cat "$TMP/said")"
	kill -"$1" "$profile"
	ended 4 "$profile" || { echo "it does not end"; return; }
	wait "$profile" && rc=0 || rc=$?
	[ $rc = "$2" ] || echo "status $rc: $(cat "$TMP/said")"
}
steps stops KILL 137
outcome "unanswered/a profile can be killed"
steps stops INT 1
steps has 'does not come: nothing was kept' <"$TMP/said"
outcome "unanswered/Ctrl-C ends a profile"
finish
