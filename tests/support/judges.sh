# shellcheck shell=bash
# What more than one end-to-end test judges by; source it after lib.sh.

# judge_allocs TRUTH PROFILE RATE [FIRSTS]: one line per violation. TRUTH has lines "FUNC COUNT BYTES".
# A sampled object stands for 1/p, and the number sampled is binomial: each line within four
# standard errors, and all bytes too. What the runtime itself allocates below the same lines (a
# sudog when the goroutine waits) has another size. FIRSTS is how many samples may each count RATE
# bytes too much.
judge_allocs() {
	"$PPROFCHECK" stacks -type alloc_objects "$2" >"$TMP/stacks"
	awk -v rate="$3" -v firsts="${4:-0}" -v most="${5:-1}" '
		FNR == NR { if (NF == 3 && $1 ~ /^main\./) { n[$1] = $2; size[$1] = $3 } next }
		{
			# A plugin has a package path of its own for main. The leaf may be inlined.
			for (i = 2; i < NF; i += 2) {
				f = $i; sub(/^.*\.alloc/, "main.alloc", f)
				if (f in n && index($0, "{bytes=" size[f] "}")) { got[f] += $1; break }
			}
		}
		END {
			for (f in n) {
				p = 1 - exp(-size[f] / rate)
				se = sqrt(n[f] * (1 - p) / p)
				want += n[f] * size[f]; have += got[f] * size[f]
				all += se * se * size[f] * size[f]
				d = got[f] - n[f]
				if (d < -4 * se - 2 || d > 4 * se + 2 + firsts * rate / size[f])
					printf "%s: %d for %d (%.1f standard errors); ", f, got[f], n[f], d / (se + 1)
			}
			slack = 4 * sqrt(all) + 4096
			if (slack > most * want) slack = most * want
			if (!want) print "no truth"
			else if (have < want - slack || have > want + slack + firsts * rate)
				printf "all bytes %.4f of the truth, %.1f standard errors; ", have / want, (have - want) / sqrt(all)
		}' "$1" "$TMP/stacks"
}

# judge_probe TRUTH PROFILE RATE: all bytes within 2 %, too.
judge_probe() { judge_allocs "$1" "$2" "$3" 0 0.02; }

# judge_read ONE READ TWO [FLAG]: why READ is not what the target said of itself before and after it:
# the same values, all samples of the first answer, none that the second does not have. A request
# leaves buckets for its own allocations behind, which are samples of zeros.
judge_read() {
	local a b
	if ! "$PPROFCHECK" equal ${4:-} -addresses -ignore-zero "$1" "$2" >"$TMP/diff" 2>&1; then
		echo "the values differ: $(head -n 2 "$TMP/diff" | tr '\n' ' ')"
		return
	fi
	for a in "$1 $2" "$2 $3"; do
		read -r a b <<<"$a"
		"$PPROFCHECK" equal ${4:-} -addresses "$a" "$b" >"$TMP/diff" 2>&1
		[ $? -le 1 ] && ! grep -E '^(only in A|values differ|headers differ)' "$TMP/diff" ||
			{ echo "not all samples of $(basename "$a") are in $(basename "$b")"; return; }
	done
	grep -q '^A has [1-9]' "$TMP/diff" || echo "there are no samples"
	"$PPROFCHECK" check "$2"
}

# three_to_one CPU [LEAST]: of main.leaf's callers. 3/4 of n within four standard errors of a
# binomial; and nobody without a caller.
three_to_one() {
	"$PPROFCHECK" stacks -type samples "$1" | awk -v least="${2:-400}" '
		$2 ~ /\.leaf$/ {
			all += $1
			if (/\.threeTimes /) t += $1
			else if (/\.onceOnly /) o += $1
		}
		END {
			n = t + o; want = 0.75 * n; se = sqrt(n * 0.75 * 0.25)
			if (all < least) print "only " all + 0 " samples of the leaf"
			else if (all - n > 0.002 * all + (least < 400))
				print all - n " of " all " samples without either caller"
			else if (t < want - 4 * se || t > want + 4 * se)
				printf "%d:%d, %.2f standard errors off 3:1\n", t, o, (t - want) / se
		}'
}

# leaf_callers [LEAST]: of PID, which a busy machine may give little time: longer, until there is
# something to judge by. What is wrong.
leaf_callers() {
	local out rc d why
	for d in 3s 9s 30s; do
		out=$("$GOPROF" -p "$PID" --cpu -F 500 -d $d -o "$TMP" 2>"$TMP/err")
		rc=$?
		[ $rc = 3 ] && only_small_losses "$TMP/err" && rc=0
		[ $rc = 0 ] && [ -s "$out" ] || { echo "exit $rc: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"; return; }
		why=$(three_to_one "$out" "$@")
		case $why in "only "*) ;; *) break ;; esac
	done
	echo "$why"
}

# whole_cpu CPU LEAST MOST STOLEN SWITCHES: all CPU time is there, by the kernel's charge and between
# two counts of /proc's ticks. What no thread's clock counted is told, and is of the switches that
# there were, of at most 20 us each: 6 to 11 were measured where a timer is set through a hypervisor.
# Ticks are hundredths, cut off twice. While a CPU is the host's or an interrupt's, by the machine's
# own count, a thread's clock goes on, which /proc charges to nobody (update_rq_clock_task,
# kernel/sched/core.c), and ticks that fall into it may never be served.
whole_cpu() {
	awk -v got="$("$PPROFCHECK" sum "$1" | awk '$2 == "cpu" { print $1 / 1e9 }')" \
		-v least="$2" -v most="$3" -v stolen="$4" -v switches="$5" \
		-v u="$("$PPROFCHECK" comments "$1" | sed -n 's/^unclocked: \([0-9.]*\).*/\1/p')" \
		-v w="$("$PPROFCHECK" comments "$1" | sed -n 's/^charged: \([0-9.]*\).*/\1/p')" '
		BEGIN {
			least /= 100; most /= 100; stolen /= 100
			if (!w) print "the kernel charged nothing"
			else if (got < 0.98 * w - stolen - 0.02 || got > 1.02 * w + 0.02)
				printf "%.3f s sampled, %.3f s charged, %.2f s stolen\n", got, w, stolen
			else if (u > switches * 20e-6)
				printf "%.2f s in %d switches\n", u, switches
			else if (w + u < 0.98 * least - 0.03 || w > 1.02 * most + stolen + 0.03)
				printf "%.3f s charged, %.2f unclocked, %.2f to %.2f s in /proc, %.2f s stolen\n", w, u, least, most, stolen
		}'
}

ticks() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'; }

# Of the threads that there are.
switches() { cat /proc/"$1"/task/*/status 2>/dev/null | awk '/ctxt_switches/ { n += $2 } END { print n + 0 }'; }

# Of the whole machine: what its host took, and interrupts.
stolen() { awk '$1 == "cpu" { print $7 + $8 + $9 }' /proc/stat; }

# cpu_begin FLAG...: a CPU profile of PID begins, and has begun; cpu_end: it ends, and $CPU is its
# file, $CPU_RC how it ended. $INNER is what /proc counted meanwhile in ticks, $OUTER what it counted
# from before to after: start-up takes its time on a busy machine. $STOLEN, $SWITCHES: in that time.
cpu_begin() {
	local i
	: >"$TMP/err" # the shell makes it anew when it comes to it
	OUTER=$(ticks "$PID") STOLEN=$(stolen) SWITCHES=$(switches "$PID")
	"$GOPROF" -p "$PID" --cpu -d 300s -o "$TMP" "$@" >"$TMP/paths" 2>"$TMP/err" &
	CPU_PROF=$!
	STARTED+=("$CPU_PROF")
	for ((i = 0; i < 1200; i++)); do
		grep -q 'profiling pid' "$TMP/err" && break
		kill -0 "$CPU_PROF" 2>/dev/null || break
		sleep 0.05
	done
	INNER=$(ticks "$PID")
}

cpu_end() {
	INNER=$(($(ticks "$PID") - INNER))
	kill -INT "$CPU_PROF" 2>/dev/null
	wait "$CPU_PROF"
	CPU_RC=$?
	# shellcheck disable=SC2034
	CPU=$(cat "$TMP/paths") OUTER=$(($(ticks "$PID") - OUTER)) STOLEN=$(($(stolen) - STOLEN)) SWITCHES=$(($(switches "$PID") - SWITCHES))
}
