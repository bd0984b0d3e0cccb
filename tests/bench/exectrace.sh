#!/bin/bash
# Reading an execution trace of 10 million events and more, beside Go's own reader (internal/trace, built from the
# newest toolchain) and `go tool trace -pprof`, on the same trace in the same run: events a second and peak
# memory, and the profile with them. Nothing is demanded.
#
#	SECONDS_LONG=12		how long the traced program runs
. tests/support/lib.sh
need_go

RUSAGE=$O/tests/rusage
TRACE=$TMP/trace
ROUNDS=${ROUNDS:-3}
# Version 2 by the newest Go, version 1 by the last Go that wrote it.
NEW=1.27.4 OLD=1.21.13

made "$O/tracejudge/v2" testdata/tracejudge tests/support/tracejudge.sh -- tests/support/tracejudge.sh ||
	{ fail exectrace/judges "they do not build"; finish; }

row() { printf '%-40s %8s %8s %9s %12s %7s %7s\n' "$@"; }

# measured ROUNDS WHAT COMMAND...: the best of some rounds by CPU time; the first one is what others are compared with.
measured() {
	local rounds=$1 what=$2 user sys rss wall best='' cpu i
	shift 2
	for ((i = 0; i < rounds; i++)); do
		timeout 1200 "$RUSAGE" "$TMP/use" "$@" >"$TMP/said" 2>&1 || { fail "exectrace/$what" "$(tail -n 1 "$TMP/said")"; return; }
		read -r user sys rss wall <"$TMP/use"
		cpu=$((${user%.*} + ${sys%.*}))
		[ -n "$best" ] && [ "$cpu" -ge "${best%% *}" ] || best="$cpu $wall $rss"
	done
	read -r cpu wall rss <<<"$best"
	BASE_CPU=${BASE_CPU:-$cpu} BASE_RSS=${BASE_RSS:-$rss}
	row "$what" "$wall" "$cpu" "$((rss / 1024))" "$((EVENTS * 1000 / (cpu ? cpu : 1)))" \
		"$(awk -v a="$cpu" -v b="$BASE_CPU" 'BEGIN { printf "%.3f", a / b }')" \
		"$(awk -v a="$rss" -v b="$BASE_RSS" 'BEGIN { printf "%.3f", a / b }')"
	pass "exectrace/$what"
}

# compared V JUDGE: the trace of a program built by that Go.
compared() {
	local v=$1 program tool
	BASE_CPU='' BASE_RSS=''
	program=$(subject "$v" traced) && "$program" "$TRACE" "${SECONDS_LONG:-12}" || { fail "exectrace/$v" "no trace"; return; }
	EVENTS=$("$O/tests/traceevents" "$TRACE" cost | sed -n 's/ events.*//p')
	echo "A trace of $(($(stat -c %s "$TRACE") / 1000000)) MB and $EVENTS events, Go $v"
	row "" wall/ms CPU/ms peak/MB events/s time memory
	measured 1 "go$v: internal/trace" "$O/tracejudge/$2" cost "$TRACE"
	measured "$ROUNDS" "go$v: ours" "$O/tests/traceevents" "$TRACE" cost
	tool=$(goroot "$v")/bin/go
	BASE_CPU='' BASE_RSS=''
	measured 1 "go$v: go tool trace -pprof=sync" "$go_env_sh" "$(goroot "$v")" "$tool" tool trace -pprof=sync "$TRACE"
	if has -e '--pprof' <("$GOPROF" trace --help 2>&1); then
		measured "$ROUNDS" "go$v: goprof-bpf trace --pprof sync" "$GOPROF" trace "$TRACE" --pprof sync="$TMP/out.pb.gz"
	fi
}
# rusage starts programs, not functions.
go_env_sh=$TMP/go_env
cat >"$go_env_sh" <<-END
	#!/bin/bash
	. tests/support/toolchains.sh
	root=\$1
	shift
	go_env "\$root" "\$@"
END
chmod +x "$go_env_sh"

uptime
echo "wanted: a tenth of the time and a twentieth of the memory of Go's"
compared "$NEW" v2
compared "$OLD" v1
finish
