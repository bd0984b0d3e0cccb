#!/bin/bash
# A whole host, --all --cpu --heap, beside as many single runs for its busy processes, and beside `perf record -a -g` and `perf script`
# for the CPU part: 200 Go processes of 20 binaries, each a session of its own as services are, 10 seconds. 20 of them use all the CPU
# time that they get, and allocate. All keep records of their heaps; then all are probed (--source=probe), and those 20 in windows.
. tests/support/lib.sh
need_root && need_bpf && need_go
command -v perf >/dev/null || skip_all "needs perf: 'make deps' installs it"

RUSAGE=$O/tests/rusage
WINDOW=10
PROCS=${PROCS:-200} BINARIES=20 BUSY=20 STACKS=500
CPU_MS=2000 RSS_KB=60000 BEGUN_S=3 MAPS_MB=64 FDS=400 # at most so much is wanted
AT_WORK=()

row() { printf '%-15s %8s %8s %8s %9s %8s %8s %8s %8s\n' "$@"; }

bin=$(subject 1.27.4 hosted -tags=records '-ldflags=-s -w') || { fail all_perf "does not build"; finish; }
mkdir "$TMP/bin"
for ((i = 0; i < BINARIES; i++)); do cp "$bin" "$TMP/bin/service$i"; done
for ((i = 0; i < PROCS; i++)); do
	if [ $i -lt $BUSY ]; then set -- allocates $STACKS; else set -- idle; fi
	setsid "$TMP/bin/service$((i % BINARIES))" "$@" >/dev/null 2>&1 </dev/null &
	STARTED+=($!)
	[ $i -ge $BUSY ] || AT_WORK+=($!)
done
sleep 2

# What the profiler holds, in the middle of its window: descriptors, bytes of BPF maps.
held() {
	cat /proc/"$1"/fdinfo/* 2>/dev/null | awk '
		/^pos:/ { n++; map = 0 } /^map_type:/ { map = 1 } /^memlock:/ && map { sum += $2 }
		END { print n + 0, sum + 0 }'
}

ours() { # NAME OPTION...
	local name=$1
	shift
	local began begun pid n bytes user sys rss wall samples files
	rm -f "$TMP/err" # what the last run said must not be taken for this one's
	began=$EPOCHREALTIME
	"$RUSAGE" "$TMP/use" "$GOPROF" --all --match "exe=$TMP/bin/*" --cpu --heap "$@" -F 99 -d ${WINDOW}s -o "$TMP/out.$name" >"$TMP/paths" 2>"$TMP/err" &
	STARTED+=($!)
	has_begun $! "$TMP/err" 'profiling [0-9]* process' || { fail all_perf "$name: $(tail -n 1 "$TMP/err")"; finish; }
	begun=$EPOCHREALTIME
	sleep 5
	pid=$(pgrep -P $! -f -- --match)
	read -r n bytes <<<"$(held "$pid")"
	wait $!
	read -r user sys rss wall <"$TMP/use"
	files=$(wc -l <"$TMP/paths")
	samples=$(for f in $(cat "$TMP/paths"); do "$PPROFCHECK" sum "$f"; done | awk '$2 == "samples" { n += $1 } END { print n + 0 }')
	row "$name" "$user" "$sys" "$rss" "$samples" "$(awk -v a="$began" -v b="$begun" 'BEGIN { printf "%.2f", b - a }')" \
		"$(awk -v b="$bytes" 'BEGIN { printf "%.1f", b / 1e6 }')" "$n" "$files"
	awk -v c="$((${user%.*} + ${sys%.*}))" -v r="$rss" -v m="$bytes" -v n="$n" -v s="$(awk -v a="$began" -v b="$begun" 'BEGIN { print b - a }')" \
		-v cpu=$CPU_MS -v rss=$RSS_KB -v maps=$MAPS_MB -v fds=$FDS -v late=$BEGUN_S 'BEGIN {
		if (c > cpu) print c " ms of CPU time"
		if (r > rss) print r " kB resident"
		if (m > maps * 1e6) print m " bytes of BPF maps"
		if (n > fds) print n " descriptors"
		if (s > late) print s " s before it began" }' | sed "s/^/$name: /" >>"$TMP/missed"
}

# So that the row is about what it says: all that allocate were probed in windows.
in_windows() {
	local pid n=0
	for pid in "${AT_WORK[@]}"; do
		[ "$(for f in $(command grep -- "[-.]$pid[-.].*heap" "$TMP/paths"); do "$PPROFCHECK" comments "$f"; done | command grep -c '[1-9][0-9]* windows of')" = 0 ] || n=$((n + 1))
	done
	[ $n = $BUSY ] || echo "$n of $BUSY that allocate were probed in windows" >>"$TMP/missed"
}

# One run for each busy process, all at once.
singles() {
	local pid began=$EPOCHREALTIME begun i=0 files wait=()
	for pid in "${AT_WORK[@]}"; do
		"$RUSAGE" "$TMP/use.$pid" "$GOPROF" -p "$pid" --cpu --heap --source=read -F 99 -d ${WINDOW}s -o "$TMP/single" >"$TMP/paths.$pid" 2>"$TMP/err.$pid" &
		STARTED+=($!) wait+=($!)
	done
	for pid in "${AT_WORK[@]}"; do
		has_begun "${wait[i++]}" "$TMP/err.$pid" 'profiling pid' || { fail all_perf "pid $pid: $(tail -n 1 "$TMP/err.$pid")"; finish; }
	done
	begun=$EPOCHREALTIME
	wait "${wait[@]}"
	files=$(cat "$TMP"/paths.* | wc -l)
	cat "$TMP"/use.* | awk '{ u += $1; s += $2; r += $3 } END { print u, s, r }' >"$TMP/uses"
	read -r user sys rss <"$TMP/uses"
	row "$BUSY single runs" "$user" "$sys" "$rss" - "$(awk -v a="$began" -v b="$begun" 'BEGIN { printf "%.2f", b - a }')" - - "$files"
}

theirs() {
	local user sys rss wall user2 sys2 rss2 n
	"$RUSAGE" "$TMP/use" perf record -q -F 99 -a -g -o "$TMP/perf.data" -- sleep $WINDOW >/dev/null 2>"$TMP/err" ||
		{ fail all_perf "perf: $(tail -n 1 "$TMP/err")"; finish; }
	read -r user sys rss wall <"$TMP/use"
	"$RUSAGE" "$TMP/use" perf script -i "$TMP/perf.data" >/dev/null 2>&1
	read -r user2 sys2 rss2 _ <"$TMP/use"
	n=$(perf report --stats -i "$TMP/perf.data" 2>/dev/null | awk '/SAMPLE events:/ { print $3; exit }')
	row "perf record -a" "$user" "$sys" "$rss" "$n" - - - -
	row "perf script" "$user2" "$sys2" "$rss2" - - - - -
}

echo "A host of $PROCS Go processes of $BINARIES binaries, $BUSY busy; $WINDOW s at 99 Hz"
uptime
row collector user/ms sys/ms rss/kB samples begun/s maps/MB fds files
row "at most" "$CPU_MS with" sys $RSS_KB - $BEGUN_S $MAPS_MB $FDS -
ours goprof-bpf
ours probing --source=probe
in_windows
singles
theirs
[ ! -s "$TMP/missed" ] && pass all_perf || fail all_perf "$(tr '\n' ';' <"$TMP/missed")"
finish
