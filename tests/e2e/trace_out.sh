#!/bin/bash
# The outputs of trace, for programs of three Go versions that traced themselves (testdata/programs/traced):
# profiles beside `go tool trace`, the summary and the Perfetto trace beside the events.
set -u
. tests/support/lib.sh
need_go
check=$O/tools/pprofcheck

result() { JUDGES_ASKED=$((JUDGES_ASKED + 1)); outcome "trace_out/$1"; }
# traced V NAME [PERIOD [SECONDS]]: makes $TMP/NAME; of 1.22 and newer with a generation each PERIOD ns.
traced() {
	local p
	p=$(subject "$1" traced) && GODEBUG=${3:+traceadvanceperiod=$3} "$p" "$TMP/$2" "${4:-0.1}" cpu
}
# outputs FILE FROM ARG...: all that is made of it, beside its events
outputs() {
	local file=$1 from=$2
	shift 2
	"$GOPROF" trace "$file" --events "$@" >"$TMP/events" || wrong "--events: $?"
	[ "$from" = 0 ] || set -- --from "$from" "$@"
	"$GOPROF" trace "$file" --json --perfetto "$TMP/perfetto" --pprof "wait=$TMP/wait" --pprof "cpu=$TMP/cpu" "$@" >"$TMP/json" 2>"$TMP/err" ||
		wrong "$*: $? $(cat "$TMP/err")"
	judge "$check" check "$TMP/wait"
	"$check" labels -type delay "$TMP/wait" >"$TMP/labels" || wrong "no labels"
	judge python3 tests/support/tracejudge.py -waits "$TMP/labels" "$TMP/json" "$TMP/events" "$from"
	judge python3 tests/support/perfettojudge.py "$TMP/perfetto" "$TMP/events" "$from"
	[ "$("$check" sum "$TMP/cpu" | sed -n 's/ samples count$//p')" = "$(sed -n 's/.*"cpu_samples": \([0-9]*\).*/\1/p' "$TMP/json")" ] ||
		wrong "CPU samples: $("$check" sum "$TMP/cpu")"
}

samples=0
# An event at the end itself would hide that the trace goes on: no clock of Go has such a time.
for v in 1.21.13 1.24.13 1.27.4; do
	traced $v whole 1000000000 || { fail "trace_out/$v" "no trace"; continue; }
	outputs "$TMP/whole" 0
	samples=$((samples + $(count ' cpu-sample' "$TMP/events")))
	result "all of it, Go $v"
	outputs "$TMP/whole" 0.01 --to 0.030000001
	result "a part, Go $v"
	for kind in net sync syscall sched; do
		[ $v != 1.24.13 ] || continue
		gorun $v tool trace -pprof=$kind "$TMP/whole" >"$TMP/go" 2>"$TMP/err" || wrong "go tool trace: $(cat "$TMP/err")"
		"$GOPROF" trace "$TMP/whole" --pprof $kind >"$TMP/own" || wrong "--pprof $kind: $?"
		judge "$check" equal -ignore-startline "$TMP/go" "$TMP/own"
	done
	[ $v = 1.24.13 ] || result "profiles as go tool trace has them, Go $v"
done

[ $samples != 0 ] || wrong "none of the traces has any"
result "CPU samples"

# The least utilisation in windows of three lengths, as Go 1.21 finds it in a trace of its own (that of 1.22 and
# newer counts a marking worker's second run twice, and so finds none after a few ms).
utilisation() {
	local root file page="" port w i
	root=$(goroot 1.21.13)
	file=$root/src/internal/trace/testdata/stress_1_21_good
	"$GOPROF" trace "$file" --json >"$TMP/json"
	GOROOT=$root BROWSER=/bin/true "$root/pkg/tool/linux_$GOARCH_HOST/trace" -http=127.0.0.1:0 "$file" >"$TMP/serve" 2>&1 &
	STARTED+=($!)
	for i in $(seq 300); do
		port=$(sed -n 's|.*http://127.0.0.1:\([0-9]*\).*|\1|p' "$TMP/serve")
		[ -z "$port" ] || break
		sleep 0.1
	done
	for w in 1000000 10000000 100000000; do
		http_get "$port" "/mmuDetails?flags=stw%7Cbackground%7Cassist&window=$w" "$TMP/mmu"
		python3 - "$TMP/mmu" "$TMP/json" $w <<-'END'
			import json, sys
			go = json.load(open(sys.argv[1]))[0]["MutatorUtil"]
			own = [w["min"] for w in json.load(open(sys.argv[2]))["mutator_utilisation"]["windows"]
			       if w["window_ns"] == int(sys.argv[3])][0]
			if abs(go - own) > 1e-4: # labels and starts are one event there, and two here
			    print(f"the worst {sys.argv[3]} ns: {own}, not {go}")
		END
	done
}
steps utilisation
result "utilisation as go tool trace has it"

# A cut: whole generations, which Go reads as it reads any trace.
cut() {
	local n from to
	traced 1.27.4 long 5000000 0.25
	"$GOPROF" trace "$TMP/long" --events >"$TMP/all"
	n=$(count ' G=- sync' "$TMP/all")
	[ "$n" -ge 6 ] || echo "only $n generations"
	# behind the beginning of one to behind that of the next
	from=$(sed -n '/ G=- sync/ { n; s/ .*//; p }' "$TMP/all" | sed -n 3p)
	to=$(sed -n '/ G=- sync/ { n; s/ .*//; p }' "$TMP/all" | sed -n 4p)
	"$GOPROF" trace "$TMP/long" --from "$from" --to "$to" -o "$TMP/part" 2>"$TMP/err"
	has 'has the generations from' "$TMP/err" || echo "it does not say what it has: $(cat "$TMP/err")"
	gorun 1.27.4 tool trace -d=parsed "$TMP/part" >"$TMP/parsed"
	"$GOPROF" trace "$TMP/part" --events >"$TMP/events"
	# Each event that is in it is on the thread, P and goroutine that it is on in the whole, where those are known
	# already; and Go reads the same, with the same times. (In the whole a generation's first events may come after
	# the last ones of the one before.)
	python3 - "$TMP/all" "$TMP/events" "$TMP/parsed" "$TMP/err" "$from" "$to" <<-'END'
		import re, sys
		line = re.compile(r"(\d+)\.(\d{9}) M=(\S+) P=(\S+) G=(\S+) (\S+)")
		def events(path):
		    all_ = [(int(m[1]) * 10**9 + int(m[2]), *(m[i].replace("-", "-1") for i in (3, 4, 5)), m[6]) for m in map(line.match, open(path))]
		    return [e for e in all_ if e[4] != "sync"]
		all_, part = events(sys.argv[1]), events(sys.argv[2])
		m = re.search(r"from ([\d.]+) s to ([\d.]+) s", open(sys.argv[4]).read())
		begin, end = (round(float(t) * 1e9) for t in m.groups())
		if not (begin < float(sys.argv[5]) * 1e9 and float(sys.argv[6]) * 1e9 < end < all_[-1][0]):
		    print(f"from {begin} to {end}")
		went = [e for e in all_ if begin <= e[0] <= end]
		alike = lambda a, b: a[1] == b[1] and a[4] == b[4] and a[2] in (b[2], "-1") and a[3] in (b[3], "-1")
		# Threads may come in another order where their times are the same; samples are not their own events.
		by_thread = lambda events: sorted(events, key=lambda e: (e[1], e[4] == "cpu-sample"))
		if not part or len(part) != len(went) or not all(map(alike, by_thread(part), by_thread(went))):
		    print(f"{len(part)} events are not those {len(went)} of the whole")
		go = re.findall(r"^M=(\S+) P=(\S+) G=(\S+) (?!Sync)\S+ Time=(\d+)", open(sys.argv[3]).read(), re.M)
		if [(int(g[3]) - int(go[0][3]), *g[:3]) for g in go] != [(e[0] - part[0][0], *e[1:4]) for e in part]:
		    print(f"Go reads {len(go)} events in it, and others")
	END
}
steps cut
result "a cut is a trace"

# Damaged: what is before that counts, a cut leaves it out, and both say so.
damaged() {
	local rc=0 n
	head -c $(($(stat -c %s "$TMP/long") * 6 / 10)) "$TMP/long" >"$TMP/broken"
	"$GOPROF" trace "$TMP/broken" --json -o "$TMP/saved" >"$TMP/json" 2>"$TMP/err" || rc=$?
	[ $rc = 3 ] || echo "status $rc: $(cat "$TMP/err")"
	has 'loss: offset [0-9]*: the trace ends' "$TMP/err" || echo "it says: $(cat "$TMP/err")"
	has '"whole": false' "$TMP/json" || echo "the summary says that it is whole"
	"$GOPROF" trace "$TMP/saved" --events >"$TMP/events" || echo "what was saved: $?"
	gorun 1.27.4 tool trace -d=parsed "$TMP/saved" >"$TMP/parsed"
	n=$(count ' G=- sync' "$TMP/events")
	[ "$n" -ge 3 ] && [ "$(count '^M=' "$TMP/parsed")" = "$(wc -l <"$TMP/events")" ] || echo "$n generations saved"
}
steps damaged
result "a trace that breaks off"

refused() {
	local rc
	rc=0 && "$GOPROF" trace /bin/true >"$TMP/out" 2>"$TMP/err" || rc=$?
	[ $rc = 1 ] && has 'no execution trace' "$TMP/err" || echo "/bin/true: $rc $(cat "$TMP/err")"
	rc=0 && "$GOPROF" trace "$TMP/long" -o "$TMP/long" 2>"$TMP/err" || rc=$?
	[ $rc = 1 ] && has 'that is the trace itself' "$TMP/err" || echo "itself: $rc $(cat "$TMP/err")"
	rc=0 && "$GOPROF" trace "$TMP/long" --from 1h 2>"$TMP/err" || rc=$?
	[ $rc = 2 ] || echo "--from 1h: $rc $(cat "$TMP/err")"
	rc=0 && "$GOPROF" trace "$TMP/long" --from 9s 2>"$TMP/err" || rc=$?
	[ $rc = 1 ] && has 'no events in this time' "$TMP/err" || echo "--from 9s: $rc $(cat "$TMP/err")"
	rc=0 && "$GOPROF" trace "$TMP/whole" --pprof net </dev/null >/dev/full 2>"$TMP/err" || rc=$?
	[ $rc = 1 ] || echo "a full disk: $rc $(cat "$TMP/err")"
	rc=0 && "$GOPROF" trace "$(goroot 1.21.13)/src/internal/trace/testdata/http_1_5_good" -o "$TMP/old" 2>"$TMP/err" || rc=$?
	[ $rc = 1 ] && [ ! -e "$TMP/old" ] && has 'cannot be cut' "$TMP/err" || echo "a cut of an old one: $rc $(cat "$TMP/err")"
}
steps refused
result refused

# Pipes say what files do; a first Ctrl-C leaves nothing behind.
pipes() {
	local p rc=0
	"$GOPROF" trace "$TMP/whole" >"$TMP/file"
	cat "$TMP/whole" | "$GOPROF" trace - | sed "1s|^stdin|$TMP/whole|" >"$TMP/pipe"
	cmp "$TMP/file" "$TMP/pipe"
	"$GOPROF" trace "$TMP/whole" --perfetto - >"$TMP/p1"
	cat "$TMP/whole" | "$GOPROF" trace - --perfetto "$TMP/p2" && python3 tests/support/perfettojudge.py "$TMP/p2" >/dev/null
	[ "$(stat -c %a "$TMP/p2")" = 600 ] || echo "mode $(stat -c %a "$TMP/p2")"
	python3 tests/support/perfettojudge.py "$TMP/p1" >/dev/null
	mkfifo "$TMP/fifo"
	"$GOPROF" trace "$TMP/long" --events --perfetto "$TMP/never" >"$TMP/fifo" 2>"$TMP/err" &
	p=$!
	exec 9<"$TMP/fifo"
	head -c 1000 <&9 >/dev/null
	kill -INT $p
	cat <&9 >/dev/null
	exec 9<&-
	wait $p || rc=$?
	[ $rc = 1 ] && [ ! -e "$TMP/never" ] && [ -z "$(find "$TMP" -name '*never*')" ] || echo "SIGINT: $rc $(cat "$TMP/err")"
}
steps pipes
result "pipes, and Ctrl-C"

finish
