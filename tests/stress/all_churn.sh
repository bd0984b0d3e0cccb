#!/bin/bash
# MINUTES of one run of --all while RATE processes a second start, work for 20 ms, sleep for a second and end, and a few stay: memory,
# descriptors and BPF maps of the profiler are as large at the end as when it had settled, a process that starts takes it as much CPU time (less
# than half as much again: machines are noisy), and all were taken in.
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

MINUTES=${MINUTES:-60} RATE=${RATE:-10} KINDS=${KINDS:---cpu --heap}
hosted=$(subject 1.27.4 hosted -tags=records '-ldflags=-s -w') && old=$(subject 1.19.13 hosted) ||
	{ fail all_churn "the subject does not build"; finish; }
mkdir "$TMP/bin"
for ((i = 0; i < 10; i++)); do
	if [ $((i % 5)) = 0 ]; then cp "$old" "$TMP/bin/service$i"; else cp "$hosted" "$TMP/bin/service$i"; fi
done
start "$TMP/bin/service0" busy 3 1 && STAYS=$PID && start "$TMP/bin/service1" idle || { fail all_churn "a process does not start"; finish; }
kill -STOP "$STAYS" # it works now and then, so that the short ones get their time

# shellcheck disable=SC2086 # several options
"$GOPROF" --all --match "cmd=$TMP/bin/" $KINDS -F 250 -d 24h -o "$TMP/out" >"$TMP/paths" 2>"$TMP/err" </dev/null &
PROF=$!
STARTED+=("$PROF")
for ((i = 0; i < 1200; i++)); do
	[ "$(count 'profiling [0-9]* process' "$TMP/err")" = 0 ] && kill -0 "$PROF" 2>/dev/null || break
	sleep 0.05
done

# When, the profiler's resident kB, descriptors, bytes of BPF maps, CPU time (its children's, too, in ticks), and how many have started, now.
sizes() {
	local rss maps cpu child
	cpu=$(for child in $(cat "/proc/$PROF/task/$PROF/children"); do sed 's/.*) //' "/proc/$child/stat" 2>/dev/null; done |
		cat - <(sed 's/.*) //' "/proc/$PROF/stat" | awk '{ $12 += $14; $13 += $15; print }') | awk '{ n += $12 + $13 } END { print n }')
	rss=$(awk '$1 == "VmRSS:" { print $2 }' "/proc/$PROF/status")
	maps=$(cat "/proc/$PROF"/fdinfo/* 2>/dev/null | awk '/^pos:/ { map = 0 } /^map_type:/ { map = 1 } /^memlock:/ && map { sum += $2 } END { print sum + 0 }')
	echo "$((SECONDS - BEGAN)) ${rss:-0} $(command ls "/proc/$PROF/fd" 2>/dev/null | wc -l) ${maps:-0} ${cpu:-0} $n"
}
BEGAN=$SECONDS n=0 next=0
: >"$TMP/sizes"
step_us=$((1000000 / RATE)) due=${EPOCHREALTIME/./}
while [ $((SECONDS - BEGAN)) -lt $((MINUTES * 60)) ] && kill -0 "$PROF" 2>/dev/null; do
	"$TMP/bin/service$((n % 10))" brief 20 1000 >/dev/null 2>&1 </dev/null &
	n=$((n + 1))
	if [ $SECONDS -ge $next ]; then
		sizes >>"$TMP/sizes"
		# The files are not what is judged, and an hour of them is a lot.
		find "$TMP/out" -name '*.pb.gz' -delete 2>/dev/null
		kill -CONT "$STAYS" && sleep 0.05 && kill -STOP "$STAYS"
		next=$((SECONDS + 10))
	fi
	due=$((due + step_us)) now=${EPOCHREALTIME/./}
	[ $due -gt "$now" ] && sleep "$(awk -v us=$((due - now)) 'BEGIN { printf "%.4f", us / 1e6 }')" || due=$now
done
sleep 1
judge kill -0 "$PROF" || wrong "it ended by itself: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"
kill -INT "$PROF"
wait "$PROF"
rc=$?
[ $rc = 0 ] || [ $rc = 3 ] || wrong "exit $rc: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"
outcome "all_churn/$n processes in $MINUTES minutes"

# Medians of the third fifth of the time, when caches and tables of bounded size are full, and of the last one: no larger, but for noise of 3 %.
flat() {
	awk '{ for (k = 2; k <= 6; k++) v[k, NR] = $k }
		# CPU time for each that started, in ms
		function each(from, to) { return 10 * (v[5, to] - v[5, from]) / (v[6, to] - v[6, from]) }
		function middle(k, from, to, i, j, x, n, a) {
			n = 0
			for (i = from; i <= to; i++) a[++n] = v[k, i]
			for (i = 2; i <= n; i++) { x = a[i]; for (j = i - 1; j && a[j] > x; j--) a[j + 1] = a[j]; a[j + 1] = x }
			return a[int((n + 1) / 2)]
		}
		END {
			if (NR < 10) { print "only " NR " looks"; exit 1 }
			split("x kB_resident descriptors bytes_of_BPF_maps", name, " ")
			f = int(NR / 5)
			for (k = 2; k <= 4; k++) {
				before = middle(k, 2 * f + 1, 3 * f); after = middle(k, NR - f + 1, NR)
				printf "# %s: %d settled, %d at the end\n", name[k], before, after >"/dev/stderr"
				if (after > before * 1.03 + (k == 3 ? 4 : 0)) { print name[k] " grew from " before " to " after; bad = 1 }
			}
			before = each(2 * f + 1, 3 * f + 1); after = each(NR - f, NR)
			printf "# CPU time for each that started: %.1f ms settled, %.1f ms at the end\n", before, after >"/dev/stderr"
			if (after > 1.5 * before) { print "a process that starts takes " after " ms, and took " before; bad = 1 }
			exit bad }' "$TMP/sizes"
}
judge flat
outcome all_churn/flat

# All of them were taken in, and told of at the end; one that worked before that has no samples, and so no file.
told() {
	local took files
	took=$(sed -n 's/^goprof-bpf: \([0-9]*\) programs started meanwhile.*/\1/p' "$TMP/err")
	files=$(wc -l <"$TMP/paths")
	echo "# $n started, ${took:-none} were taken in, $files files" >&2
	[ "${took:-0}" -ge $((n * 98 / 100)) ] && [ "$took" -le "$n" ] || { echo "${took:-none} of $n processes were taken in"; return 1; }
	[ "$files" -gt 1 ] || echo "no files"
}
judge told
outcome all_churn/told
finish
