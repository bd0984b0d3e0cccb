#!/bin/bash
# What --budget leaves to two programs that do nothing but what is probed: one allocates all the time
# (testdata/programs/churn heavy), in the other two goroutines wake each other all the time (relay
# -only). Each is left alone, profiled under defaults, profiled with --budget 0 and watched by a
# bpftrace script in turn, for SECONDS_EACH; ROUNDS rounds. Pace is what it did a second by its own log,
# and a second of its CPU time (others who use the machine slow the first more than the second); kept,
# the share of the mean of the turns alone before and after. Medians of all rounds.
#
# Then estimates of LONG seconds beside what the program wrote down, in windows and of everything.
#
# Wanted: under defaults at least 0.90 of the pace is kept, each site's estimate is within four of its
# stated standard errors of the truth, and these are at most 10 %; waits within 10 %.
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go

ROUNDS=${ROUNDS:-5}
SECONDS_EACH=${SECONDS_EACH:-8}
LONG=${LONG:-30}
VERSIONS=${VERSIONS:-1.27.4}

median() { sort -n | awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : "" }'; }
now() { date +%s%N; }

# pace_of COMMAND...: while it runs, "A_SECOND A_CPU_SECOND"
pace_of() {
	local from to pace before after
	from=$(now)
	before=$(ticks "$PID")
	"$@" || return 1
	after=$(ticks "$PID")
	to=$(now)
	pace=$("$PPROFCHECK" pace -kind "$KIND" -from "$from" -to "$to" "$LOG") || return 1
	awk -v p="$pace" -v ns=$((to - from)) -v t=$((after - before)) 'BEGIN { print p, p * ns / 1e9 / (t / 100) }'
}

alone() { sleep "$SECONDS_EACH"; }

# ours FLAG...: the time to understand the binary is not in it
ours() {
	"$GOPROF" -p "$PID" --source=probe "${KINDS[@]}" "$@" -d "${SECONDS_EACH}s" -o "$TMP" >"$TMP/paths" 2>"$TMP/err" </dev/null
	[ $? = 0 ] || [ $? = 3 ]
}

# The script that a person would write. mallocgc's first argument is the size, in ax; g is in r14.
declare -A SCRIPT=(
	[heap]='uprobe:BIN:runtime.mallocgc* { @[ustack(4)] = count(); }'
	[block]='uprobe:BIN:runtime.gopark { @parked[reg("r14")] = nsecs; }
		uprobe:BIN:runtime.ready /@parked[reg("ax")]/ { @waited = hist(nsecs - @parked[reg("ax")]); delete(@parked[reg("ax")]); }'
)

theirs() {
	local i trace
	: >"$TMP/trace"
	bpftrace -p "$PID" -e "${SCRIPT[$KIND]//BIN/$BIN}" >"$TMP/trace" 2>&1 &
	trace=$!
	STARTED+=("$trace")
	for ((i = 0; i < 400; i++)); do grep -q Attaching "$TMP/trace" && break; sleep 0.05; done
	sleep 1 # it says so before it has
	sleep "$SECONDS_EACH"
	kill -INT $trace
	wait $trace
	grep -qE '^(]|@.*): *[1-9]|^@waited:' "$TMP/trace" || { head -n 3 "$TMP/trace" >&2; return 1; }
}

# begin V NAME ARG...
begin() {
	local v=$1 name=$2
	shift 2
	BIN=$(subject "$v" "$name") || return 1
	LOG=$TMP/log.${#STARTED[@]}
	start "$BIN" "$@" "$LOG" && sleep 1
}

# kept NAME COMMAND...: to $TMP/NAME; a turn alone is before it and after it
kept() {
	local name=$1 pace after
	shift
	pace=$(pace_of "$@") || { echo "$name failed: $(tail -n 2 "$TMP/err")" >&2; return 1; }
	after=$(pace_of alone)
	echo "$BEFORE $pace $after" | awk '{ print $3 / (($1 + $5) / 2), $4 / (($2 + $6) / 2) }' >>"$TMP/$name"
	BEFORE=$after
	echo "$after" >>"$TMP/alone"
}

bench() {
	local v=$1 i f
	shift
	begin "$v" "$@" || { fail "budget_cost/$1/$v" "does not start"; return; }
	rm -f "$TMP"/{alone,default,all,theirs}
	BEFORE=$(pace_of alone)
	for ((i = 0; i < ROUNDS; i++)); do
		kept default ours || break
		kept all ours --budget 0 || break
		! command -v bpftrace >/dev/null || kept theirs theirs || break
	done
	stop
	[ $i = "$ROUNDS" ] || { fail "budget_cost/$1/$v" "not all rounds"; return; }
	printf '%-8s %-6s %9.0f' "$v" "$1" "$(cut -d' ' -f1 "$TMP/alone" | median)"
	for f in default all theirs; do
		for i in 1 2; do
			[ -s "$TMP/$f" ] && printf ' %9.3f' "$(cut -d' ' -f$i "$TMP/$f" | median)" || printf ' %9s' -
		done
	done
	echo
	pass "budget_cost/$1/$v"
}

stop() { kill "$PID"; wait "$PID" 2>/dev/null; }

# errors V NAME ARG...
errors() {
	local v=$1 name=$2 typ file budget off
	begin "$@" || { fail "budget_errors/$2/$v" "does not start"; return; }
	for budget in 5% 0; do
		SECONDS_EACH=$LONG ours --budget $budget || { fail "budget_errors/$2/$v" "$(tail -n 2 "$TMP/err")"; break; }
		sleep 0.1
		[ $budget = 0 ] && off=${WITHIN:-0} || off=0 # all is seen: no standard error is stated
		for typ in "${TYPES[@]}"; do
			file=$(grep "\.$KIND\.pb" "$TMP/paths")
			echo "Go $v $name --budget $budget, $LONG s, $typ: estimate, truth, off, stated standard error, off in those"
			"$PPROFCHECK" comments "$file" | grep -E '^(budget|hits):'
			"$PPROFCHECK" budget -kind "$KIND" -type "$typ" ${WITHIN:+-within "$WITHIN"} -off "$off" -few 1 "$LOG" "$file"
		done
	done
	stop
	pass "budget_errors/$2/$v"
}

uptime
echo "Pace kept: of a second, and of a second of the program's CPU (wanted: 0.9 under defaults)"
printf '%-8s %-6s %9s %9s %9s %9s %9s %9s %9s\n' '' '' alone, defaults '' '--budget 0' '' bpftrace '' \
	Go program 'a second' kept /CPU kept /CPU kept /CPU
for v in $VERSIONS; do
	KIND=heap KINDS=(--heap)
	bench "$v" churn heavy
	KIND=block KINDS=(--block --mutex)
	bench "$v" relay -only
done
for v in $VERSIONS; do
	KIND=heap KINDS=(--heap) TYPES=(alloc_space) WITHIN=
	errors "$v" churn heavy
	KIND=block KINDS=(--block --mutex) TYPES=(contentions delay) WITHIN=0.1
	errors "$v" relay -own
done
finish
