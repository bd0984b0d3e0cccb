#!/bin/bash
# Software that nobody here wrote, under real load, beside its own /debug/pprof: nats-server,
# installed by name and stripped (REAL="... nats-pie" also as a PIE), and Debian's prometheus.
#
#	CPU		each function's share as in its own profile of the same seconds
#	heap probe	all bytes as its own MemStats count them; shares as in its own profile
#	heap read	every sample equal, between two answers of its own
#
# Both programs and all traffic stay on the loopback interface, bounded in time and rate.
. tests/support/lib.sh
. tests/support/judges.sh
need_root && need_bpf && need_go
REAL=${REAL:-nats prometheus}
DIR=$O/real
LOAD=$O/tools/load
LOOKS="8 8 16" # seconds: longer where something is off
LOAD_PID=

free_port() {
	local p
	while :; do
		p=$((20000 + RANDOM % 10000))
		(exec 3<>"/dev/tcp/127.0.0.1/$p") 2>/dev/null || { echo $p; return; }
	done
}

# ---- the programs: built or unpacked once, started as PID, with PORT for pprof --------------------

# nats_install NAME GO [FLAG...]
nats_install() {
	local out=$DIR/$1 v=$2 root
	shift 2
	[ ! -x "$out/nats-server" ] || return 0
	root=$(goroot "$v") || return 1
	mkdir -p "$out"
	(cd / && thrice go_env "$root" env GOBIN="$out" GO111MODULE=on nice "$root/bin/go" install \
		-trimpath '-ldflags=-s -w' "$@" github.com/nats-io/nats-server/v2@latest)
}

nats_start() {
	ADDR=127.0.0.1:$(free_port)
	PORT=$(free_port)
	"$DIR/$1/nats-server" -a 127.0.0.1 -p "${ADDR#*:}" --profile "$PORT" >"$TMP/$1.log" 2>&1 &
}

# The archive's package, unpacked; nothing of it is installed or started as a service.
prometheus_install() {
	[ ! -x "$DIR/prometheus/usr/bin/prometheus" ] || return 0
	mkdir -p "$DIR/deb" && cd "$DIR/deb" && rm -f prometheus_*.deb || return 1
	fetch_debs prometheus &&
		dpkg-deb -x prometheus_*.deb "$DIR/prometheus.new" &&
		mv "$DIR/prometheus.new" "$DIR/prometheus"
}

# It scrapes itself, and is asked for what it finds.
prometheus_start() {
	PORT=$(free_port)
	cat >"$TMP/prometheus.yml" <<-END
		global: { scrape_interval: 1s }
		scrape_configs: [ { job_name: self, static_configs: [ { targets: [ "127.0.0.1:$PORT" ] } ] } ]
	END
	"$DIR/prometheus/usr/bin/prometheus" --config.file="$TMP/prometheus.yml" \
		--storage.tsdb.path="$TMP/tsdb" --web.listen-address="127.0.0.1:$PORT" \
		>"$TMP/prometheus.log" 2>&1 &
}

nats_load() { "$LOAD" nats -for "$1"s -rate 250000 -clients 8 "$ADDR"; }

prometheus_load() {
	local at=http://127.0.0.1:$PORT
	"$LOAD" http -for "$1"s -rate 120 -clients 2 "$at/metrics" \
		"$at/api/v1/query?query=sum(rate(prometheus_http_requests_total%5B30s%5D))%20by%20(handler)" \
		"$at/api/v1/series?match%5B%5D=%7Bjob%3D%22self%22%7D"
}

# ---- the judgements ------------------------------------------------------------------------------

settled() {
	local i
	for ((i = 0; i < 100; i++)); do
		http_get "$PORT" '/debug/pprof/cmdline' "$TMP/ok" 2>/dev/null && return
		kill -0 "$PID" 2>/dev/null || return 1
		sleep 0.2
	done
	return 1
}

# fine STATUS PROFILES: exit status 3 for what a busy machine does.
fine() {
	[ "$1" = 0 ] || { [ "$1" = 3 ] && only_small_losses "$TMP/err" "$2"; }
}

# Go never samples its own monitor thread: left out on both sides. And the signal that preempts
# and the one that samples often arrive together: then its own profile has the preemption's entry
# for a leaf, which is hidden on both sides.
comparable() {
	gorun 1.27.4 tool pprof -proto -ignore='^runtime\.sysmon$' -hide='^runtime\.asyncPreempt$' \
		-output="$2" "$1" >/dev/null 2>&1
}

# Both profiles of the same seconds under the same load, and what is wrong with them. Go's clocks are
# served on the kernel's tick, which threads that sleep and wake within one evade (tests/e2e/cpu_self.sh
# has numbers), hence five points beside what sampling allows.
both_cpu() {
	local own out rc
	"${1}_load" $(($2 + 2)) >"$TMP/load" 2>&1 &
	LOAD_PID=$!
	STARTED+=("$LOAD_PID")
	sleep 1
	http_get "$PORT" "/debug/pprof/profile?seconds=$2" "$TMP/own.all" &
	own=$!
	out=$("$GOPROF" -p "$PID" --cpu -F 199 -d "$2"s -o "$TMP" 2>"$TMP/err") && rc=0 || rc=$?
	wait $own || { echo "no profile of its own"; return 1; }
	wait $LOAD_PID || { echo "no load: $(cat "$TMP/load")"; return 1; }
	fine $rc "$out" && [ -s "$out" ] || { echo "exit $rc: $(tail -n 2 "$TMP/err")"; return 1; }
	"$PPROFCHECK" check "$out"
	comparable "$out" "$TMP/ours"
	comparable "$TMP/own.all" "$TMP/own"
	cat "$TMP/load" >&2
	judge_own_total "$TMP/ours" "$TMP/own"
	"$PPROFCHECK" share -type cpu -tolerance 0.05 -sampled "$TMP/ours" "$TMP/own" >"$TMP/share" && rc=0 || rc=$?
	sed -n 1,8p "$TMP/share" >&2
	[ $rc = 0 ] || tail -n 1 "$TMP/share" | cut -c 1-300
	return $rc
}

cpu() {
	local try n=0
	unjudged
	for try in $LOOKS; do
		n=$((n + 1))
		steps both_cpu "$1" "$try"
		found_wrong || break
		[ $n = 3 ] || { attempt $n "$NAME/cpu" "in $try s: $FOUND"; unjudged; }
	done
	outcome "$NAME/cpu"
}

# TotalAlloc of its MemStats, bytes since it started.
total_alloc() {
	http_get "$PORT" '/debug/pprof/heap?debug=1' "$TMP/stats" &&
		sed -n 's/^# TotalAlloc = //p' "$TMP/stats"
}

# The load runs within the window. Before and after it the program collects, which publishes what
# was allocated until then.
probe() {
	local prof rc a b i
	http_get "$PORT" '/debug/pprof/heap?gc=1' "$TMP/before" || { fail "$NAME/probe" "no answer"; return; }
	: >"$TMP/err"
	"$GOPROF" -p "$PID" --heap --source=probe --heap-rate=16k --budget=0 -d 120s -o "$TMP" >"$TMP/path" 2>"$TMP/err" &
	prof=$!
	STARTED+=("$prof")
	for ((i = 0; i < 300; i++)); do
		grep -q 'profiling pid' "$TMP/err" && break
		sleep 0.1
	done
	a=$(total_alloc)
	"${1}_load" 5 || { fail "$NAME/probe" "no load"; return; }
	sleep 1 # for what is still on its way through the server
	b=$(total_alloc)
	kill -INT $prof
	wait $prof
	rc=$?
	http_get "$PORT" '/debug/pprof/heap?gc=1' "$TMP/after" || { fail "$NAME/probe" "no answer"; return; }
	fine $rc "$(cat "$TMP/path")" || { fail "$NAME/probe" "exit $rc: $(tail -n 2 "$TMP/err")"; return; }
	probe_judge "$(cat "$TMP/path")" $((b - a))
}

# What was seen is counted one by one, what is shown was sampled: 2 and 4 % of what its own
# statistics say. Its own profile has a sample in 512 KiB, hence the wide bound on shares, and 32
# frames before Go 1.23, so that only leaves can be compared.
probe_judge() {
	"$PPROFCHECK" comments "$1" >"$TMP/comments"
	grep '^hits:' "$TMP/comments"
	judge judge_seen "$TMP/comments" "$1" "$2"
	outcome "$NAME/probe, all bytes"
	if gorun 1.27.4 tool pprof -proto -base "$TMP/before" -output "$TMP/delta" "$TMP/after" >/dev/null 2>&1 &&
		"$PPROFCHECK" share -flat -type alloc_space -tolerance 0.12 "$1" "$TMP/delta" >"$TMP/share"; then
		pass "$NAME/probe, shares"
	else
		fail "$NAME/probe, shares" "$(tail -n 1 "$TMP/share")"
	fi
	head -n 8 "$TMP/share"
}

# Go's writer gives all frames of a package's init function the file of the first; ours have their
# own. No collection may end between its two answers; it runs on, so several tries.
read_() {
	local try path why
	for try in 1 2 3 4 5 6 7 8 9 10; do
		http_get "$PORT" /debug/pprof/heap "$TMP/one" || { fail "$NAME/read" "no answer"; return; }
		path=$("$GOPROF" -p "$PID" --heap --source=read -d 10ms -o "$TMP" 2>"$TMP/err") ||
			{ fail "$NAME/read" "exit $?: $(tail -n 2 "$TMP/err")"; return; }
		http_get "$PORT" /debug/pprof/heap "$TMP/two"
		mv "$path" "$TMP/read"
		"$PPROFCHECK" equal -ignore-zero "$TMP/one" "$TMP/two" >"$TMP/moved" || { sleep 0.3; continue; }
		why=$(judge_read "$TMP/one" "$TMP/read" "$TMP/two" -ignore-initfile) && why= && break
		why=${why:-judge_read died}
	done
	[ -z "${why-it never stood still}" ] || { fail "$NAME/read" "${why-it never stood still}"
		head -n 60 "$TMP/diff"; return; }
	"$PPROFCHECK" equal -ignore-zero "$TMP/one" "$TMP/read" | tail -n 1
	pass "$NAME/read"
}

# run NAME KIND: installed before
run() {
	local log
	NAME=$1
	"$2_start" "$1"
	PID=$!
	STARTED+=("$PID")
	settled || { fail "$NAME" "did not start: $(tail -n 3 "$TMP/$2"*.log)"; return; }
	echo "$NAME: $(go version "/proc/$PID/exe" 2>&1 | sed 's/.*: //')"
	cpu "$2"
	probe "$2"
	read_
	kill "$PID"
}

if [ -n "${INSTALL_ONLY:-}" ]; then # ahead of the measuring; what fails is tried again by then
	nats_install nats 1.27.4
	(prometheus_install)
	finish
fi

# A download that is refused is a failure: nothing was proved.
for name in $REAL; do
	case $name in
	nats)       nats_install nats 1.27.4 >"$TMP/said" 2>&1 && run nats nats && continue ;;
	nats-pie)   nats_install nats-pie 1.26.11 -buildmode=pie >"$TMP/said" 2>&1 && run nats-pie nats && continue ;;
	prometheus) (prometheus_install) >"$TMP/said" 2>&1 && run prometheus prometheus && continue ;;
	*)          echo "there is no $name" >"$TMP/said" ;;
	esac
	fail "$name" "cannot be had: $(tail -n 3 "$TMP/said" | tr '\n' ' ')"
done
finish
