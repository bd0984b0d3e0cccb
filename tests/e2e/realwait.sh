#!/bin/bash
# Waits of software that nobody here wrote: Debian's etcd (stripped), under the load of its own
# client, beside its own /debug/pprof. It samples one contention in 5 of its mutexes by itself.
#
#	mutex probe	all contentions of the same seconds, and each function's share of them
#	mutex read	after the load every sample equal to its own, delays within 1 %
#	goroutines	as many as it says, while they come and go
#	block probe	its logger's lock, which is what its slow requests wait for
#
# Everything stays on the loopback interface, bounded in time.
. tests/support/lib.sh
need_root && need_bpf && need_go
DIR=$O/real
SECONDS_WATCHED=6
SECONDS_MOST=45 # as long as the load lasts
ENOUGH=500      # contentions of its own count, 100 samples: shares are known to 0.05

# The archive's packages, unpacked; nothing of them is installed or started as a service.
etcd_install() {
	[ ! -x "$DIR/etcd/usr/bin/etcdctl" ] || return 0
	mkdir -p "$DIR/deb" && cd "$DIR/deb" && rm -f etcd-*.deb || return 1
	fetch_debs etcd-server etcd-client || return 1
	dpkg-deb -x etcd-server_*.deb "$DIR/etcd" && dpkg-deb -x etcd-client_*.deb "$DIR/etcd"
}

free_port() {
	local p
	while :; do
		p=$((20000 + RANDOM % 10000))
		(exec 3<>"/dev/tcp/127.0.0.1/$p") 2>/dev/null || { echo $p; return; }
	done
}

etcd_start() {
	local peer=http://127.0.0.1:$(free_port)
	PORT=$(free_port)
	mkdir -m 700 "$TMP/etcd"
	"$DIR/etcd/usr/bin/etcd" --enable-pprof --logger=zap --data-dir "$TMP/etcd" \
		--listen-client-urls "http://127.0.0.1:$PORT" --advertise-client-urls "http://127.0.0.1:$PORT" \
		--listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" \
		--initial-cluster "default=$peer" >"$TMP/etcd.log" 2>&1 &
	PID=$!
	STARTED+=("$PID")
}

own() { http_get "$PORT" "/debug/pprof/$1" "$2"; }

sum_of() { "$PPROFCHECK" sum "$1" | awk -v t="$2" '$2 == t { print $1 }'; }

[ -z "${INSTALL_ONLY:-}" ] || { (etcd_install); finish; } # ahead of the measuring
(etcd_install) >"$TMP/said" 2>&1 || { fail realwait "etcd cannot be had: $(tail -n 3 "$TMP/said" | tr '\n' ' ')"; finish; }
etcd_start
for ((i = 0; i < 100; i++)); do own cmdline "$TMP/ok" 2>/dev/null && break; sleep 0.1; done
ETCDCTL_API=3 "$DIR/etcd/usr/bin/etcdctl" --endpoints "127.0.0.1:$PORT" check perf --load=l >"$TMP/load" 2>&1 &
LOAD=$!
STARTED+=("$LOAD")
sleep 3

# ---- the same seconds ----

: >"$TMP/err"
"$GOPROF" -p "$PID" --block --mutex --goroutine --source=probe --mutex-fraction=1 --budget=0 -d 120s -o "$TMP" >"$TMP/paths" 2>"$TMP/err" &
PROF=$!
STARTED+=("$PROF")
for ((i = 0; i < 300; i++)); do grep -q 'profiling pid' "$TMP/err" && break; sleep 0.1; done
own mutex "$TMP/before"
# As long as it takes until its own samples say something of shares.
for ((i = 0; i < SECONDS_MOST; i += SECONDS_WATCHED)); do
	sleep $SECONDS_WATCHED
	own mutex "$TMP/after"
	"$PPROFCHECK" delta "$TMP/before" "$TMP/after" "$TMP/own" >"$TMP/said" 2>&1
	[ "$(sum_of "$TMP/own" contentions | awk '{ n = $1 } END { print n + 0 }')" -lt $ENOUGH ] || break
done
own 'goroutine?debug=1' "$TMP/goroutines"
kill -INT $PROF
wait $PROF
rc=$?
own 'goroutine?debug=1' "$TMP/goroutines2"
kill "$LOAD" 2>/dev/null
mutex=$(grep '\.mutex\.' "$TMP/paths") block=$(grep '\.block\.' "$TMP/paths") goroutine=$(grep '\.goroutine\.' "$TMP/paths")
if [ $rc != 0 ] && ! { [ $rc = 3 ] && only_small_losses "$TMP/err" "$(cat "$TMP/paths")"; }; then
	fail realwait/runs "exit $rc: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"
	finish
fi
for f in "$mutex" "$block" "$goroutine"; do judge "$PPROFCHECK" check "$f"; done
outcome realwait/valid

# Its own is 5 for each that it sampled. Ours began a little before and ended after.
[ "$(sum_of "$mutex" contentions)" -ge 10 ] || wrong "only $(sum_of "$mutex" contentions) contentions under load"
judge "$PPROFCHECK" fraction -of 5 -off 0.1 "$mutex" "$TMP/own"
outcome "realwait/mutex, contentions and delay"
if "$PPROFCHECK" share -type contentions -tolerance 0.2 "$mutex" "$TMP/own" >"$TMP/share"; then
	pass "realwait/mutex, shares"
else
	fail "realwait/mutex, shares" "$(tail -n 1 "$TMP/share")"
fi
head -n 8 "$TMP/share"

"$PPROFCHECK" cum -type delay "$block" | grep 'Mutex).Lock\|lockedWriteSyncer'
if "$PPROFCHECK" stacks -type contentions "$block" | grep -q '^ *[1-9][0-9]* sync\.(\*R*W*Mutex)\.R*Lock .*go\.etcd\.io/etcd'; then
	pass "realwait/block, a lock of its own"
else
	fail "realwait/block, a lock of its own" "no wait for one"
fi

why=$(awk -v ours="$(sum_of "$goroutine" goroutine)" -v a="$(sed -n 's/^goroutine profile: total //p' "$TMP/goroutines")" \
	-v b="$(sed -n 's/^goroutine profile: total //p' "$TMP/goroutines2")" 'BEGIN {
	if (a > b) { t = a; a = b; b = t }
	if (!a || ours < 0.9 * a - 20 || ours > 1.1 * b + 20) print ours + 0 " goroutines, " a " to " b " by its own count" }')
[ -z "$why" ] && pass realwait/goroutines || fail realwait/goroutines "$why"

# ---- afterwards: what it recorded itself ----

sleep 2
own mutex "$TMP/one"
path=$("$GOPROF" -p "$PID" --mutex -d 10ms -o "$TMP" 2>"$TMP/err")
rc=$?
own mutex "$TMP/two"
if ! grep -q 'source read' "$TMP/err" || [ ! -s "$path" ]; then
	fail realwait/read "exit $rc: $(tail -n 2 "$TMP/err" | tr '\n' ' ')"
elif "$PPROFCHECK" grew -tolerance 0.01 "$TMP/one" "$path" "$TMP/two" >"$TMP/grew" 2>&1; then
	pass realwait/read
else
	fail realwait/read "$(tail -n 3 "$TMP/grew" | tr '\n' ' ')"
fi
finish
