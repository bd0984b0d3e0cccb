#!/bin/bash
# --wait: where goroutines wait, and for what, against a program that knows it (testdata/programs/
# waits): counts within 1 % and time within 3 % at rate 1.
#
#	known	everything that block profiles have, and sleep and network; by reason
#	reasons	system calls, runnable but not running, preempted, helping the collector
#	rates	what is sampled is within what chance allows (tests/README.md)
#	labels	labels and goid of who waited
#	edges	waits that began before the window, or end after it; kill: SIGKILL harms nobody
#	light	few waits under the default budget are observed without windows, as ever
#	heavy	two goroutines that hand a number to and fro, others with long waits, a mutex and sleeps, under
#		the default budget (testdata/programs/relay): in windows, numbers and times within 10 % and five
#		standard errors, by reason
#	storm	most runs of goroutines are yields that come in storms between windows (testdata/programs/storm):
#		waits are not scaled up for them, and they are told, also where a sweeper of garbage yields now and then
#	paced	100 goroutines that sleep for 0.5 ms each, and 300 for 10 ms, beside one that computes: windows meet fewer of the first than
#		there are, as probes make their turns longer, and hardly any of the others, which are too long for them; numbers within 12 %
#	turn	200 goroutines that sleep for half a second each, while full observation turns to windows: their sleeps are whole
#	turns	the same, there and back, twice
#	ended	a command (testdata/programs/pingpong) that is observed in full at first, then in windows until it
#		exits: numbers of waits within 2 % and five standard errors
#
# What is to be exact is watched with --budget=0: at rate 1 a program that does nothing but start
# goroutines that wait is above 5 % of what it uses.
#
# VERSIONS="1.18.10 ..." takes other versions, all of them for "all"; ONLY="known rates" some parts.
. tests/support/lib.sh
. tests/support/judges.sh
. tests/support/waits.sh
need_root && need_bpf && need_go

SOURCE=
ASKED=${WIDE:+wide}${VERSIONS:+these}
VERSIONS=${VERSIONS:-1.18.10 1.22.12 1.27.4}
[ "$VERSIONS" != all ] || VERSIONS=$WAITS_VERSIONS
ONLY=${ONLY:-known reasons rates labels edges kill light heavy storm paced turn turns ended}

part_known() {
	watch --wait --budget=0 --wait-rate 1
	ask run all,mutex100 20 20
	ask run gc 3 10
	unwatch
	judged wait "$WAIT"
}

# The runtime counts the time of assists from Go 1.20 on.
part_reasons() {
	watch --wait --budget=0 --wait-rate 1
	ask run syscall 30 10
	ask run runnable 30 4
	ask run preempt 30 10
	unwatch
	judged wait "$WAIT"
	case $V in 1.18.*|1.19.*) return ;; esac
	watch --wait --budget=0 --wait-rate 1
	mark
	ask run assist 20 1
	unwatch
	judged wait "$WAIT"
}

part_rates() {
	watch --wait --budget=0 --wait-rate 2ms
	ask rate 2000000 1
	ask run spread 100 2
	unwatch
	judged wait "$WAIT" -sampled -period 2000000
	[ "$(go tool pprof -raw "$WAIT" 2>/dev/null | awk '/^Period/ { printf "%s ", $2 " " $3 }')" = "delay nanoseconds 2000000  " ] ||
		echo "its period is not the rate: $(go tool pprof -raw "$WAIT" 2>/dev/null | grep '^Period' | tr '\n' ' ')"
}

part_labels() {
	watch --wait --budget=0 --labels --goid --wait-rate 1
	ask run labels 10 5
	unwatch
	judged wait "$WAIT"
	truth
	judge_labels "$TMP/truth" "$WAIT" 'chan receive'
}

part_edges() {
	local early
	ask park 5
	watch --wait --budget=0 --wait-rate 1
	ask release
	mark
	ask run recv 5 10
	ask park 7
	unwatch
	"$PPROFCHECK" comments "$WAIT" >&2
	judged wait "$WAIT"
	# What has not ended is no sample.
	"$PPROFCHECK" stacks -type contentions "$WAIT" | sed -n '/parkedWait/ { /chan receive/p; }'
	comment "$WAIT" '^waiting: .*chan receive 7\b' "7 waits had not ended"
	early=$(comments | sed -n 's/^early: \([0-9]*\) waits ended that had begun before.*/\1/p')
	[ "${early:-0}" -ge 5 ] || echo "not said that 5 waits had begun before: ${early:-none}"
	ask release
}

part_kill() {
	watch --wait --budget=0 --wait-rate 1
	ask run all 3 5
	ask park 5
	kill -KILL $PROF
	wait $PROF 2>/dev/null || [ $? = 137 ]
	ask release
	ask run all,mutex100,gc,starve 3 5
	watch --wait --budget=0 --wait-rate 1
	mark
	ask run all 10 10
	unwatch
	judged wait "$WAIT"
}

comments() { "$PPROFCHECK" comments "$WAIT"; }
windows() { comments | sed -n 's/^budget: .*[^0-9]\([0-9][0-9]*\) windows.*/\1/p'; }

# densely MOST_NS PART: a rate was chosen that is at least so fine, and such a part of all waits are samples
densely() {
	local rate
	rate=$(comments | sed -n 's/^rate: waits of \([0-9]*\) ns and longer.*/\1/p')
	echo "# rate $rate ns" >&2
	[ "${rate:-999999999}" -le "$1" ] || echo "the rate is ${rate:-not told}"
	grep -q "wait: waits of $rate ns and longer" "$TMP/err" || echo "the rate $rate is not told on stderr"
	comments | awk -v part="$2" '/^hits: ended and sampled:/ { ended = $5 + $12 + $17; got = $7 + $14 + $19 }
		END { if (!ended || got < part * ended) { print got + 0 " of " ended + 0 " waits are samples"; exit 1 } }'
}

part_light() {
	watch --wait --wait-rate 1
	ask run recv,send,none 3 300
	unwatch
	comments | sed -n 's/^budget:/# &/p' >&2
	comment "$WAIT" '^budget: 5% .* all of the time observed' "all of the time was observed"
	judged wait "$WAIT"
	# By itself it is sampled as densely as the budget bears: at 1 ms hardly any time runnable would be a sample.
	watch --wait
	ask run recv,send,none 3 300
	unwatch
	densely 50000 0.7
}

# in_budget TYPE FLAG...: by relay's own log, what goroutines waited for (a mutex is a semaphore in Go 1.19)
in_budget() {
	local typ=$1 rc
	shift
	"$PPROFCHECK" budget -kind block -reasons "chan receive,chan send,sync.Mutex.Lock,semacquire" -type "$typ" "$@" \
		"$TMP/relay" "$WAIT" >"$TMP/verdict" && rc=0 || rc=$?
	sed 's/^/# /' "$TMP/verdict" >&2
	[ $rc = 0 ] || sed -n '/WRONG/p' "$TMP/verdict" | tr -s ' '
	return $rc
}

# Whoever has waited is runnable once, and on one processor others run meanwhile: of the two that
# hand a number to and fro one waits or is runnable while the other one runs, or somebody else.
part_heavy() {
	local bin n
	bin=$(subject "$1" relay -ldflags='-s -w')
	start "$bin" -own "$TMP/relay"
	sleep 0.5
	watch --wait
	sleep "${SECONDS_EACH:-8}"
	unwatch
	sleep 0.2
	kill "$PID"
	grep -q 'from now on in short windows' "$TMP/err" || echo "not said that there are windows"
	comments | sed -nE 's/^(budget|hits|delays)/# &/p' >&2
	n=$(windows)
	[ "${n:-0}" -ge 3 ] || echo "${n:-no} windows"
	comment "$WAIT" '^delays: by [0-9]* looks' "where delays are from"
	comment "$WAIT" '^error: main.ping .* delay [0-9]* +- ' "how large the error of a site is"
	in_budget delay -few 2 -off 0.1 -within 0.1
	in_budget contentions -few 2 -sure 0.5 -off 0.02
	"$PPROFCHECK" labels -type contentions "$WAIT" >"$TMP/labels"
	awk '/"runnable"/ { run += $1; next } !/"syscall"/ { other += $1 }
		END { if (!run || run < 0.9 * other || run > 1.1 * other) {
			print run + 0 " times runnable after " other + 0 " waits"; exit 1 } }' "$TMP/labels"
}

last() { grep -E '^at [0-9]+ [0-9]+ [0-9]+$' "$OUT" | tail -n 1; }

# With two channels each round trip is two waits of one goroutine or the other. A storm may come just in a
# window; how many waits there were is within a half in any case, and yields are seen or told.
part_storm() { # V [collect]
	local bin from to
	bin=$(subject "$1" storm -ldflags='-s -w')
	start "$bin" 20000 ${2:+"$2"}
	sleep 0.5
	watch --wait --budget=1%
	from=$(last)
	sleep "${SECONDS_EACH:-7}"
	to=$(last)
	MAY_LOSE=(-allow wait:RUNS_UNMET=any -allow wait:SAMPLES_DROPPED=any -allow wait:UNWATCHED=2000)
	unwatch
	MAY_LOSE=()
	kill "$PID"
	comments | sed -nE 's/^(budget|unseen|error: all)/# &/p' >&2
	"$PPROFCHECK" labels -type contentions "$WAIT" >"$TMP/labels"
	awk -v from="$from" -v to="$to" -v told="$(comments | sed -n 's/^unseen: goroutines began to run about \([0-9]*\) .*/\1/p')" '
		/"chan (receive|send)"/ { n += $1 } /"runnable"/ { run += $1 }
		END {
			split(from, a); split(to, b)
			waits = 2 * (b[3] - a[3]); runs = waits + b[4] - a[4]
			printf "# waits %d for %d, runs %d and %d told apart for %d\n", n, waits, run, told, runs >"/dev/stderr"
			if (waits < 10000 || runs < 2 * waits) { print "no storms: " waits " waits, " runs " runs"; exit 1 }
			if (n < 0.6 * waits || n > 1.5 * waits) { print n + 0 " waits for " waits; exit 1 }
			if (run + told < 0.6 * runs || run + told > 1.5 * runs) { print run + told " runs for " runs; exit 1 }
		}' "$TMP/labels"
}

# That windows see too few, or hardly any, is known by the runtime's own count of runs.
paced() { # VERSION N US
	local bin from to
	bin=$(subject "$1" storm -ldflags='-s -w')
	start "$bin" 0 paced "$2" "$3"
	sleep 0.5
	watch --wait
	from=$(last)
	sleep "${SECONDS_EACH:-5}"
	to=$(last)
	unwatch
	kill "$PID"
	comments | sed -nE 's/^(budget|unseen|error: all|window)/# &/p' >&2
	comments | has '^budget: .*windows of' || echo "there were no windows"
	"$PPROFCHECK" labels -type contentions "$WAIT" >"$TMP/labels"
	awk -v from="$from" -v to="$to" -v window="$(comments | sed -n 's/^window: \([0-9.]*\) s.*/\1/p')" '
		/"sleep"/ { n += $1 }
		END {
			split(from, a); split(to, b)
			want = (b[3] - a[3]) / (b[2] - a[2]) * 1e9 * window
			printf "# %d sleeps of %d\n", n, want >"/dev/stderr"
			if (want < 1000 || n < 0.88 * want || n > 1.12 * want) print n + 0 " sleeps of " want
		}' "$TMP/labels"
}
part_paced() {
	paced "$1" 100 500
	paced "$1" 300 10000
}

# Of each sleeper the first sleep in the window had begun before it, and the last one ends after it: that is 0.5 s in all.
slept() { # VERSION MODE BUDGET SECONDS OFF
	local bin
	bin=$(subject "$1" storm -ldflags='-s -w')
	start "$bin" 0 "$2"
	until [ -n "$(last)" ]; do sleep 0.05; done
	watch --wait --budget="$3"
	sleep "$4"
	unwatch
	kill "$PID"
	comments | sed -nE 's/^(budget|cut|delays|error: all)/# &/p' >&2
	comments | has '^budget: .*windows of' || echo "there were no windows"
	"$PPROFCHECK" stacks -type delay "$WAIT" | awk -v off="$5" -v window="$(comments | sed -n 's/^window: \([0-9.]*\) s.*/\1/p')" '
		/main\.sleeper/ { s += $1 / 1e9 }
		END {
			want = 200 * (window - 0.5)
			printf "# slept for %.1f s of %.1f\n", s, want >"/dev/stderr"
			if (s < (1 - off) * want || s > (1 + off) * want) print "slept for " s " s of " want
		}'
}
part_turn() { slept "$1" sleep 2% 4 0.02; }

# Looks are there for a third of the time: full observation is tried again a second after each storm. Without what looks know of
# waits that go on in between, 12 s of 100 were missing.
part_turns() {
	local MAY_LOSE=(-allow wait:RUNS_UNMET=any) # a window may not have met a storm
	slept "$1" turns 20% 8 0.02
	comments | sed -nE 's/^delays: by ([0-9]+) looks from outside, every ([0-9.]+) ms.*/\1 \2/p' |
		awk '{ s = $1 * $2 / 1000 } END { if (!(s > 1 && s < 5)) print s + 0 " s in windows: it does not come and go" }'
}

# The runtime's count is read for the last time before the command exits, and what full observation saw is
# none of what windows stand for.
part_ended() {
	local bin rc=0 kind waits
	bin=$(subject "$1" pingpong)
	"$GOPROF" --block --wait -o "$TMP" -- "$bin" 8s >"$TMP/pairs" 2>"$TMP/err" || rc=$?
	grep '\.pb\.gz$' "$TMP/err" >"$TMP/paths"
	BLOCK=$(file_of block) WAIT=$(file_of wait)
	"$PPROFCHECK" losses -list "$LOSSES" -status $rc -ends 0 "$TMP/err" "$BLOCK" "$WAIT" || echo "exit $rc: $(tail -n 3 "$TMP/err" | tr '\n' ' ')"
	grep -q 'from now on in short windows' "$TMP/err" || echo "not said that there are windows"
	waits=$(awk 'NF == 3 && $1 $3 ~ /^[0-9]+$/ { n = $3 } END { print n + 0 }' "$TMP/pairs")
	for kind in "$BLOCK" "$WAIT"; do
		"$PPROFCHECK" comments "$kind" | sed -nE 's/^(budget|error: all)/# &/p' >&2
		# Each wait is followed by a time runnable, and a wait profile has both.
		"$PPROFCHECK" comments "$kind" | awk -v waits="$waits" -v each="$([ "$kind" = "$WAIT" ] && echo 2 || echo 1)" '
			/^error: all sites contentions [0-9]+ \+- [0-9]+ / { n = $5; se = $7 }
			END {
				off = n - each * waits
				if (waits < 100000 || !n || off * off > (0.02 * each * waits + 5 * se) ^ 2) {
					print n + 0 " +- " se + 0 " for " each * waits; exit 1 } }'
	done
}

for V in $VERSIONS; do
	# Each Go in one part, the newest in both; with WIDE=1 or VERSIONS both in all of them.
	case $ASKED$V in 1.22.*) ;; *) part known "$V" ;; esac
	case $ASKED$V in 1.18.*) ;; *) part reasons "$V" ;; esac
done
V=${VERSIONS##* }
part rates "$V"
part labels "$V" -tags=self
part edges "$V"
part kill "$V"
part light "$V"
for p in heavy ended paced turn turns; do
	wanted $p || continue
	echo "## $p $V" >&2
	steps part_$p "$V"
	outcome "wait/$p/$V"
done
if wanted storm; then
	echo "## storm $V" >&2
	steps part_storm "$V"
	outcome "wait/storm/$V"
	echo "## storm $V collect" >&2
	steps part_storm "$V" collect
	outcome "wait/storm-collect/$V"
fi
finish
