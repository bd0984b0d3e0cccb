#!/bin/bash
# `ps`: the right line for each way a Go program can be built, stand and hide; JSON that python
# reads; names that were made to break both.
. tests/support/lib.sh
need_root && need_go
command -v python3 >/dev/null || skip_all "needs python3"

OTHER=42423 # a user nobody has
chmod 755 "$TMP"

# place FILE NAME: a copy anybody may run
place() { cp "$1" "$TMP/$2" && chmod 755 "$TMP/$2"; }
# Most of them never rest: once they run, only with what nobody else wants.
yields() { chrt --all-tasks --idle --pid 0 "$1"; }
launch() { start_quiet "$@" && yields "$PID" || fail ps "$1 does not start"; }

place "$(subject 1.16.15 leaf31)" old && strip -s "$TMP/old"
place "$(subject 1.27.4 leaf31 -buildmode=pie)" pie
place "$(CGO=1 subject 1.22.12 leaf31 -race)" race
place "$(subject 1.22.12 goroutines)" endpoint
place "$(subject 1.27.4 leaf31 -ldflags='-s -w')" gone
place "$(subject 1.27.4 leaf31)" "$(printf 'a\nb\033[2J\377\302\205"')"
launch "$TMP/old"; P_OLD=$PID
launch "$TMP/pie"; P_PIE=$PID
launch "$TMP/race"; P_RACE=$PID
launch "$TMP/endpoint"; P_ENDPOINT=$PID
launch "$TMP/gone"; P_GONE=$PID
rm "$TMP/gone"
launch "$TMP/$(printf 'a\nb\033[2J\377\302\205"')"; P_HOSTILE=$PID
launch setpriv --reuid $OTHER --regid $OTHER --clear-groups "$TMP/old"; P_OTHER=$PID
launch unshare --pid --mount --fork --kill-child "$TMP/pie"
P_NS=$(pgrep -P "$PID" | head -n 1)
yields "$P_NS"
launch sleep 1000; P_SLEEP=$PID
place "$(subject 1.27.4 rtvars -tags=profiles)" rates
launch "$TMP/rates" 1; P_RATES=$PID # it sets its block and mutex rates to 1
start "$(subject 1.27.4 pingpong)" || fail ps "pingpong does not start"
P_OLDER=$PID # it records waits, and then no more
for s in USR1 USR2; do kill -$s $P_OLDER; sleep 0.3; done

"$GOPROF" ps --json >"$TMP/json" 2>"$TMP/said"
rc=$?
# The machine's own processes may refuse (3); ours do not.
[ $rc = 0 ] || [ $rc = 3 ] && pass ps/exit || fail ps/exit "status $rc: $(cat "$TMP/said")"

# holds NAME PID EXPRESSION: of the process p in python
holds() {
	python3 - "$TMP/json" "$2" "$3" >"$TMP/why" 2>&1 <<-'END' && pass "ps/$1" || fail "ps/$1" "$(tail -n 1 "$TMP/why")"
	import json, sys
	found = [p for p in json.load(open(sys.argv[1]))["processes"] if p["pid"] == int(sys.argv[2])]
	if not found: sys.exit("not listed")
	p = found[0]; b = p["build"]; works = lambda k: p["sources"][k]["works"]
	if not eval(sys.argv[3]): sys.exit(json.dumps(p))
	END
}
holds "Go 1.16, stripped, static" $P_OLD 'p["go_version"] == "go1.16.15" and b["stripped"] and not b["pie"] and not b["dynamic"] and not b["cgo"] and b["race"] is False and p["user"] == "root"'
holds "PIE" $P_PIE 'p["go_version"] == "go1.27.4" and b["pie"] and not b["stripped"] and p["endpoint_linked"] is False'
holds "cgo and race" $P_RACE 'b["cgo"] and b["race"] and b["dynamic"]'
holds "an endpoint, and its rate" $P_ENDPOINT 'p["endpoint_linked"] and p["heap_rate"]["value"] > 0 and works("heap_read") and p["block_rate"]["value"] == 0 and p["mutex_rate"]["value"] == 0'
holds "no records are no rate, and the reason" $P_PIE 'p["heap_rate"]["value"] == 0 and not works("heap_read") and "MemProfileRate" in p["sources"]["heap_read"]["reason"]'
holds "a deleted executable" $P_GONE 'p["exe_deleted"] and b["stripped"] and p["go_version"] == "go1.27.4"'
holds "another user's" $P_OTHER 'p["uid"] == 42423'
holds "pid and mount namespaces of its own" "$P_NS" 'b["pie"] and p["go_version"] == "go1.27.4"'
holds "a hostile name in JSON" $P_HOSTILE 'p["comm"].startswith("a\nb\x1b[2J\ufffd") and p["go_version"] == "go1.27.4"'
if bpftool prog list >/dev/null 2>&1; then
	holds "CPU and probe work" $P_PIE 'works("cpu") and all(works(k) for k in ("heap_probe", "block_probe", "mutex_probe", "wait"))'
fi
holds "block and mutex rates" $P_RATES 'p["block_rate"]["value"] == 1 and p["mutex_rate"]["value"] == 1 and works("block_read") and works("mutex_read") and not works("block_enable") and "already" in p["sources"]["mutex_enable"]["reason"]'
holds "no rates, and the reasons" $P_OLD 'p["block_rate"]["value"] == 0 and not works("block_read") and "blockprofilerate" in p["sources"]["block_read"]["reason"] and "mutexprofilerate" in p["sources"]["mutex_read"]["reason"] and works("block_enable") and works("mutex_enable")'
holds "what was recorded before it was switched off" $P_OLDER 'p["block_rate"]["value"] == 0 and works("block_read") and works("block_enable")'
holds "goroutines" $P_OLD 'works("goroutine")'
grep -q "\"pid\": $P_SLEEP," "$TMP/json" && fail "ps/not Go" "sleep is listed" || pass "ps/not Go"

"$GOPROF" ps --wide >"$TMP/table" 2>/dev/null
n=$(grep -c "^[0-9]" "$TMP/table")
want=$(python3 -c 'import json,sys; print(len(json.load(open(sys.argv[1]))["processes"]))' "$TMP/json")
if LC_ALL=C grep -q '[^ -~]' "$TMP/table"; then
	fail "ps/a hostile name in the table" "$(LC_ALL=C grep '[^ -~]' "$TMP/table" | cat -v | head -n 1)"
elif ! grep -q "^$P_HOSTILE .*a?b" "$TMP/table"; then
	fail "ps/a hostile name in the table" "no line for it among $n ($want in JSON)"
else
	pass "ps/a hostile name in the table"
fi
grep -q "^$P_OLD .* 1.16.15 .* static,stripped .* old" "$TMP/table" && pass ps/table ||
	fail ps/table "$(grep "^$P_OLD" "$TMP/table")"

grep -qE "^$P_RATES .* (off|512k),all,1/1 +yes +[R-]P[E-] +RP- +RP- +yes +yes " "$TMP/table" && pass "ps/rates in the table" ||
	fail "ps/rates in the table" "$(grep "^$P_RATES" "$TMP/table")"

# Without privileges: one's own are there, the others are counted; sources say what is missing.
place "$GOPROF" goprof
setpriv --reuid $OTHER --regid $OTHER --clear-groups --inh-caps=-all "$TMP/goprof" ps --json >"$TMP/json" 2>"$TMP/said"
rc=$?
[ $rc = 3 ] && grep -qE '[0-9]+ of [0-9]+ processes could not be looked at: no CAP_SYS_PTRACE' "$TMP/said" &&
	pass "ps/unprivileged: says what it cannot see" || fail "ps/unprivileged: says what it cannot see" "status $rc: $(cat "$TMP/said")"
holds "unprivileged: own process" $P_OTHER 'not works("cpu") and "CAP_BPF" in p["sources"]["cpu"]["reason"] and not works("block_probe") and not works("wait") and works("goroutine") and p["heap_rate"]["value"] is not None'
grep -q "\"pid\": $P_OLD," "$TMP/json" && fail "ps/unprivileged: others are not shown" "root's is" ||
	pass "ps/unprivileged: others are not shown"
"$GOPROF" ps --nonsense >/dev/null 2>&1
[ $? = 2 ] && pass ps/usage || fail ps/usage "not status 2"

# ---- files that are made to be read for hours ----

# hollow BYTES: the subject with so large a table of symbols' names, running as PID.
hollow() {
	python3 tests/support/sparse.py "$(subject 1.27.4 ratewatch)" "$TMP/hollow$1" "$1" 2>"$TMP/said" &&
		start "$TMP/hollow$1" -busy
}
if hollow $((8 << 40)); then
	before=$SECONDS
	timeout 60 "$GOPROF" ps >"$TMP/table" 2>"$TMP/said"
	[ $((SECONDS - before)) -lt 20 ] && grep -q "^$PID .* 1.27.4 " "$TMP/table" && pass "ps/8 TB of symbol names" ||
		fail "ps/8 TB of symbol names" "$((SECONDS - before)) s: $(grep "^$PID" "$TMP/table")"
else
	skip "ps/8 TB of symbol names" "$(tail -n 1 "$TMP/said")"
fi
if hollow $((1 << 30)); then
	"$GOPROF" -p "$PID" --heap --block -d 30s -o "$TMP/hollow" >"$TMP/paths" 2>"$TMP/said" </dev/null &
	PROF=$!
	sleep 0.2
	kill -INT $PROF
	asked=$(date +%s%N)
	wait $PROF
	took=$((($(date +%s%N) - asked) / 1000000))
	[ $took -lt 2000 ] && pass "ps/Ctrl-C while a large file is read" || fail "ps/Ctrl-C while a large file is read" "$took ms: $(tail -n 2 "$TMP/said")"
fi
finish
