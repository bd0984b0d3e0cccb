#!/bin/bash
# Threads that are born and end while we look, fifty a second: none is lost, none is counted
# twice. All of what the kernel charged to the process is in the profile, within 5 % (each
# thread's last half millisecond cannot be seen), below main.burn.
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

bin=$(subject 1.27.4 threads -ldflags='-s -w') || { fail cpu_threads "does not build"; finish; }
start "$bin" || { fail cpu_threads "does not start"; finish; }
total() { "$PPROFCHECK" comments "$1" >"$TMP/comments" && judge_charged "$TMP/comments" 0.95 1.02; }

# A busy machine serves clocks late now and then, so a second look is allowed.
for try in 1 2; do
	out=$("$GOPROF" -p $PID --cpu -d 5s -o "$TMP" 2>"$TMP/err")
	rc=$?
	[ -s "$out" ] || break
	unjudged
	judge total "$out"
	found_wrong && [ $try = 1 ] || break
	attempt $try cpu_threads/total "$FOUND"
done
[ $rc = 3 ] && only_small_losses "$TMP/err" "$out" && rc=0
if [ $rc != 0 ] || [ ! -s "$out" ]; then
	fail cpu_threads "exit $rc: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"
	finish
fi
outcome cpu_threads/total

# One run beside /proc, late in the life of hundreds of threads: what it sampled is between two
# counts, one from well within the window, with what the end of each thread may hide.
cpu_begin
sleep 4
cpu_end
out=$CPU
verdict=$("$PPROFCHECK" comments "$out" | awk -v least=$INNER -v most=$OUTER -v stolen=$STOLEN '
	/^hits:/ { got = $4 }
	END {
		if (got < (0.9 * least - stolen) / 100 || got > (1.1 * most + stolen) / 100)
			printf "%.2f s of %.2f to %.2f s by /proc, %.2f s stolen\n", got, least / 100, most / 100, stolen / 100
	}')
[ -z "$verdict" ] && pass cpu_threads/proc || fail cpu_threads/proc "$verdict"

verdict=$("$PPROFCHECK" cum -type cpu "$out" | awk '$2 == "main.burn" || $NF == "main.burn" { b = $1 }
	{ if ($1 > top) top = $1 } END { if (b < 0.9 * top) print b+0 " of " top }')
[ -z "$verdict" ] && pass cpu_threads/burn || fail cpu_threads/burn "$verdict"
finish
