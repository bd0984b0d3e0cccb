#!/bin/bash
# Which processes --all means, as its table tells: --match and --exclude by what the machine really says of them.
. tests/support/lib.sh
need_root && need_go

ID=4d1c8f6a0b7e93215f6c0d8e7a9b3c2d1e0f4a5b6c7d8e9f0a1b2c3d4e5f6a7b
chmod 755 "$TMP"
bin=$(subject 1.27.4 hosted -ldflags='-s -w') || { fail all_pick "the subject does not build"; finish; }
cp "$bin" "$TMP/inventory-reconciler"
pad=$(printf 'x%.0s' {1..700})
start "$TMP/inventory-reconciler" idle 1 "--config=$pad" --env=prod || { fail all_pick "it does not start"; finish; }
OURS=$PID

# table ARG...: which of PIDS are in the table, and the exit status.
PIDS=$OURS
table() {
	local rc p
	"$GOPROF" --all --dry-run "$@" >"$TMP/table" 2>"$TMP/err" && rc=0 || rc=$?
	for p in $PIDS; do [ "$(count "^ *$p " "$TMP/table")" = 0 ] || printf '%s ' "$p"; done
	echo $rc
}
# meant WANT ARG...: is that the outcome?
meant() {
	local got
	got=$(table "${@:2}")
	[ "$got" = "$1" ] || echo "${*:2}: '$got', not '$1': $(tail -n 1 "$TMP/err")"
}
in_tmp=(--match "cmd=$TMP/") # known of every process, whoever may look at it

steps meant "$OURS 0" "${in_tmp[@]}"
steps meant "$OURS 0" --match "cmd=--env=prod" --exclude name=goprof-bpf
steps meant "0" "${in_tmp[@]}" --exclude "cmd=--env=prod"
steps meant "0" --match "cmd=--env=test"
outcome all_pick/long_command

steps meant "$OURS 0" --match name=inventory-reconciler
steps meant "0" "${in_tmp[@]}" --exclude name=inventory-reconciler
steps meant "0" "${in_tmp[@]}" --exclude user=0
steps meant "0" "${in_tmp[@]}" --exclude user=root
steps meant "$OURS 0" "${in_tmp[@]}" --exclude user=00
outcome all_pick/names

# Behind 128 KB nobody looks: what could be there is neither meant nor silently left out.
far() {
	local long words
	words=$(printf "%0100000d" 0)
	"$TMP/inventory-reconciler" idle 1 "$words" "$words" --env=prod >/dev/null 2>&1 </dev/null &
	long=$!
	STARTED+=("$long")
	until [ "$(readlink "/proc/$long/exe")" = "$TMP/inventory-reconciler" ]; do sleep 0.05; done
	PIDS=$long
	meant "3" --match "cmd=idle 1 0000" --exclude "cmd=--env=prod"
	has "^goprof-bpf: pid $long (inventory-recon): nobody knows whether it is meant" "$TMP/err" || echo "it is not told: $(cat "$TMP/err")"
	meant "3" --match "cmd=$TMP/*prod"
	meant "$long 0" --match "cmd=idle 1 0000"
	kill "$long"
	wait "$long" || :
	PIDS=$OURS
}
steps far
outcome all_pick/behind_the_limit

# There is room for 63 files with probes: the table says so where it promises more, and not where it does not.
many_files() {
	local i pids=()
	mkdir "$TMP/many"
	for i in {1..64}; do
		cp "$TMP/inventory-reconciler" "$TMP/many/$i"
		"$TMP/many/$i" idle >/dev/null 2>&1 </dev/null &
		pids+=($!)
	done
	STARTED+=("${pids[@]}")
	for i in {1..64}; do until [ "$(readlink "/proc/${pids[i - 1]}/exe")" = "$TMP/many/$i" ]; do sleep 0.05; done; done
	"$GOPROF" --all --dry-run --heap --match "exe=$TMP/many/*" >"$TMP/table" 2>"$TMP/err" || :
	has '^goprof-bpf: 64 executables would be probed, and there is room for 63' "$TMP/err"
	"$GOPROF" --all --dry-run --heap --match "exe=$TMP/many/*" --exclude "exe=$TMP/many/64" >"$TMP/table" 2>"$TMP/err" || :
	[ "$(count 'there is room' "$TMP/err")" = 0 ]
	[ "$(count 'heap(probe)' "$TMP/table")" = 63 ]
	kill "${pids[@]}"
	wait "${pids[@]}" 2>/dev/null || :
}
steps many_files
outcome all_pick/many_files

# Where /proc does not name others' processes, nobody knows how many they are. A /proc of its own, in a pid namespace of its own.
hidepid() {
	cat >"$TMP/inside" <<-'END'
		mount -t proc -o hidepid=2 proc /proc || { echo "$(cat /proc/version): no hidepid"; exit 9; }
		$1/inventory-reconciler idle 1 >/dev/null &
		setpriv --reuid 42431 --regid 42431 --clear-groups $1/inventory-reconciler idle 1 >/dev/null &
		sleep 0.3
		setpriv --reuid 42431 --regid 42431 --clear-groups --bounding-set=-all $1/goprof --all --goroutine --dry-run
		echo "exit $?"
		$1/goprof --all --goroutine --dry-run
		echo "exit $?"
	END
	unshare --mount --propagation private --pid --fork --kill-child sh "$TMP/inside" "$TMP" >"$TMP/hidden" 2>&1 || return
	has "^1 Go process is meant, of [0-9 proces]*; other users' processes are hidden (hidepid)$" "$TMP/hidden" || cat "$TMP/hidden"
	has "^goprof-bpf: /proc hides other users' processes (hidepid), and they are left out" "$TMP/hidden" || echo "it is not told"
	[ "$(grep '^exit' "$TMP/hidden" | tr '\n' ' ')" = "exit 3 exit 0 " ] || echo "$(grep '^exit' "$TMP/hidden")"
	has "^2 Go processes are meant, of [0-9]* processes$" "$TMP/hidden" || echo "root does not see both"
}
cp "$GOPROF" "$TMP/goprof"
chmod 755 "$TMP/goprof" "$TMP/inventory-reconciler"
steps hidepid
outcome all_pick/hidepid

# While a child still looks at a file of which a large table must be read, Ctrl-C ends the run.
asked_early() {
	local prof rc i
	python3 tests/support/sparse.py "$(subject 1.27.4 ratewatch)" "$TMP/hollow" $((1 << 30))
	start "$TMP/hollow" -busy
	"$GOPROF" --all --match "cmd=$TMP/hollow" --goroutine -d 300s -o "$TMP/early" >"$TMP/paths" 2>"$TMP/err" &
	prof=$!
	STARTED+=("$prof")
	for ((i = 0; i < 2000; i++)); do
		[ -z "$(command ls -l /proc/"$(pgrep -P $prof | head -n 1)"/fd 2>/dev/null | command grep "$TMP/hollow")" ] || break
		sleep 0.01
	done
	kill -INT $prof
	wait $prof && rc=0 || rc=$?
	kill "$PID"
	[ $rc = 1 ] || echo "exit $rc"
	has '^goprof-bpf: stopped before anything was collected$' "$TMP/err" || cat "$TMP/err"
}
if command -v python3 >/dev/null; then
	steps asked_early
	outcome all_pick/asked_early
else
	skip all_pick/asked_early "needs python3"
fi

# A container by its cgroup, in one hierarchy of several.
for home in /sys/fs/cgroup/freezer /sys/fs/cgroup/unified /sys/fs/cgroup; do
	[ ! -e $home/cgroup.procs ] || break
done
mkdir -p "$home/docker/$ID" 2>/dev/null
if [ ! -d "$home/docker/$ID" ]; then
	skip all_pick/container "no cgroup can be made in $home"
	finish
fi
"$TMP/inventory-reconciler" idle 1 >/dev/null 2>&1 </dev/null &
BOXED=$!
STARTED+=("$BOXED")
echo "$BOXED" >"$home/docker/$ID/cgroup.procs" || wrong "it cannot be put into its cgroup"
PIDS="$OURS $BOXED"
steps meant "$BOXED 0" --match "container=docker"
steps meant "$BOXED 0" --match "container=${ID:0:6}"
steps meant "$BOXED 0" --match "container=$ID"
steps meant "$BOXED 0" --match "cgroup=$ID"
steps meant "$OURS 0" "${in_tmp[@]}" --exclude container=docker
steps meant "0" --match "container=docker" --exclude "container=docker*"
"$GOPROF" ps >"$TMP/ps" 2>/dev/null
grep -q "^$BOXED .*\[docker ${ID:0:12}\]" "$TMP/ps" || wrong "ps does not show it"
kill "$BOXED"
wait "$BOXED" 2>/dev/null
rmdir "$home/docker/$ID" "$home/docker" 2>/dev/null
outcome all_pick/container
finish
