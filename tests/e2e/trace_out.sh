#!/bin/bash
# The outputs of trace, for programs of three Go versions that traced themselves (testdata/programs/traced):
# profiles beside `go tool trace`, the summary and the Perfetto trace beside the events, and the summary as text beside
# that as JSON.
#
#	WIDE=1		profiles of traces of all versions of Go
set -u
. tests/support/lib.sh
need_go
check=$O/tools/pprofcheck

result() { JUDGES_ASKED=$((JUDGES_ASKED + 1)); outcome "trace_out/$1"; }
# traced V NAME [PERIOD [SECONDS]]: makes $TMP/NAME; of 1.22 and newer with a generation each PERIOD ns.
traced() {
	local p
	p=$(subject "$1" traced) && GODEBUG=${3:+traceadvanceperiod=$3} "$p" "$TMP/$2" "${4:-0.07}" cpu
}
# outputs FILE FROM [--to TO]: all that is made of it, beside its events and those behind it
outputs() {
	local file=$1 from=$2
	shift 2
	: >"$TMP/late"
	[ $# = 0 ] || "$GOPROF" trace "$file" --events --from "$2" >"$TMP/late" || wrong "--events from $2: $?"
	"$GOPROF" trace "$file" --events "$@" >"$TMP/events" || wrong "--events: $?"
	[ "$from" = 0 ] || set -- --from "$from" "$@"
	"$GOPROF" trace "$file" --json --perfetto "$TMP/perfetto" --pprof "wait=$TMP/wait" --pprof "cpu=$TMP/cpu" "$@" >"$TMP/json" 2>"$TMP/err" ||
		wrong "$*: $? $(cat "$TMP/err")"
	judge "$check" check "$TMP/wait"
	"$check" labels -type delay "$TMP/wait" >"$TMP/labels" || wrong "no labels"
	"$GOPROF" trace "$file" "$@" >"$TMP/text" || wrong "$*: $?"
	judge python3 tests/support/tracetext.py "$TMP/json" "$TMP/text"
	judge python3 tests/support/tracejudge.py -waits "$TMP/labels" "$TMP/late" "$TMP/json" "$TMP/events" "$from"
	judge python3 tests/support/profilehead.py "$TMP/json" "$TMP/events" "$TMP/wait" "$TMP/cpu"
	judge python3 tests/support/perfettojudge.py -late "$TMP/late" "$TMP/perfetto" "$TMP/events" "$from"
	[ "$("$check" sum "$TMP/cpu" | sed -n 's/ samples count$//p')" = "$(sed -n 's/.*"cpu_samples": \([0-9]*\).*/\1/p' "$TMP/json")" ] ||
		wrong "CPU samples: $("$check" sum "$TMP/cpu")"
}

samples_of() { "$check" sum "$1" | sed -n 's/ contentions count$//p'; }
# profiles FILE V [PROGRAM]: those of this Go's tool, which wants the program up to Go 1.10. $empty: how many have no
# samples, as that tool says, too: in a part of some ms a busy machine may have let nothing wait for the network.
profiles() {
	local kind
	empty=0
	for kind in net sync syscall sched; do
		gorun "$2" tool trace -pprof=$kind ${3:+"$3"} "$1" >"$TMP/go" 2>"$TMP/err" || wrong "go tool trace: $(cat "$TMP/err")"
		"$GOPROF" trace "$1" ${3:+--exe "$3"} --pprof $kind >"$TMP/own" || wrong "--pprof $kind: $?"
		if [ "$(samples_of "$TMP/go")" = 0 ] && [ "$(samples_of "$TMP/own")" = 0 ]; then
			empty=$((empty + 1))
			continue
		fi
		judge "$check" equal -ignore-startline "$TMP/go" "$TMP/own"
	done
}

# A time between two events in the middle of $TMP/every.
gap() { awk '{ t[NR] = $1 } END { for (i = int(NR / 2); t[i + 1] - t[i] < 1e-5; i++); printf "%.9f %.9f\n", t[i] + 2e-6, t[i] + 4e-6 }' "$TMP/every"; }

samples=0
# An event at the end itself would hide that the trace goes on: no clock of Go has such a time.
for v in 1.21.13 1.24.13 1.27.4; do
	traced $v whole 1000000000 || { fail "trace_out/$v" "no trace"; continue; }
	outputs "$TMP/whole" 0
	samples=$((samples + $(count ' cpu-sample' "$TMP/events")))
	result "all of it, Go $v"
	[ $v != 1.27.4 ] || { judge python3 tests/support/perfettodoctor.py "$TMP/perfetto"; result "a broken rule of Perfetto's is seen"; }
	outputs "$TMP/whole" 0.01 --to 0.030000001
	result "a part, Go $v"
	"$GOPROF" trace "$TMP/whole" --events >"$TMP/every"
	read -r from to < <(gap)
	outputs "$TMP/whole" "$from" --to "$to"
	judge python3 tests/support/perfettojudge.py -late "$TMP/late" "$TMP/perfetto" "$TMP/events" "$from" "$to"
	has '"events": 0,' "$TMP/json" || wrong "from $from to $to: there are events"
	result "a time in which nothing happens, Go $v"
	judge python3 tests/support/traceparts.py "$GOPROF" "$TMP/whole" 5
	result "parts add up to the whole, Go $v"
	[ $v != 1.24.13 ] || continue
	profiles "$TMP/whole" $v
	[ $empty = 0 ] || wrong "$empty kinds have no samples"
	result "profiles as go tool trace has them, Go $v"
	"$GOPROF" trace "$TMP/whole" --from 0.005 -o "$TMP/part" 2>"$TMP/err" >/dev/null || wrong "$(cat "$TMP/err")"
	profiles "$TMP/part" $v
	[ $empty -lt 4 ] || wrong "no samples"
	result "profiles of a part as go tool trace has them, Go $v"
done

# Go 1.8 is the first whose tool has them, and those of Go 1.22 to 1.25 have errors of their own. Traces of Go 1.11 have
# addresses with two names, of which its tool takes one.
if [ -n "${WIDE:-}" ]; then
	for v in 1.5.4 1.6.2 1.7.6 1.8.3 1.9.7 1.10.8 1.12.17 1.13.15 1.14.15 1.15.15 1.16.15 1.17.13 1.18.10 1.19.13 1.20.14 1.26.11; do
		program='' tool=$v
		case $v in 1.5.* | 1.6.* | 1.7.*) tool=1.8.3 ;; esac
		case $tool in 1.8.* | 1.9.* | 1.10.*) program=$(subject $v traced) ;; esac
		traced $v old && profiles "$TMP/old" $tool "$program"
		result "profiles as go tool trace has them, Go $v"
		"$GOPROF" trace "$TMP/old" --from 0.005 -o "$TMP/part" 2>"$TMP/err" >/dev/null || wrong "$(cat "$TMP/err")"
		profiles "$TMP/part" $tool "$program"
		result "profiles of a part as go tool trace has them, Go $v"
	done
fi

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

# A cut in the middle of generations is a trace: Go reads it, and each event in it is on the thread, P and goroutine, with
# the arguments and stacks, that it has in the whole. cut V FROM TO
cut() {
	local file=$TMP/long.$1
	"$GOPROF" trace "$file" --from "$2" --to "$3" -o "$TMP/part" --events >"$TMP/all" 2>"$TMP/err" || cat "$TMP/err"
	has 'has the events from' "$TMP/err" || echo "it does not say what it has: $(cat "$TMP/err")"
	"$GOPROF" trace "$TMP/part" --events >"$TMP/events" || echo "the part: $?"
	gorun 1.27.4 tool trace -d=parsed "$TMP/part" >"$TMP/parsed" || echo "Go does not read it"
	"$GOPROF" trace "$file" --to "$3" --events >"$TMP/before"
	python3 - "$TMP/all" "$TMP/events" "$TMP/parsed" "$TMP/before" "$2" <<-'END'
		import re, sys
		line = re.compile(r"(\d+)\.(\d{9}) M=(\S+) P=(\S+) G=(\S+) (\S+)(.*)")
		def events(path):
		    return [(int(m[1]) * 10**9 + int(m[2]), *m.group(3, 4, 5, 6), rest(m)) for m in map(line.match, open(path))]
		# Of what begins a task only its begin tells.
		rest = lambda m: re.sub(r"( parent=\d+)? type=\"[^\"]*\"", "", m[7]) if m[6] == "task-end" else m[7]
		# What a generation's beginning, or the cut's own, tells anew; times that are equal in the file are 1 ns apart in any order.
		told = lambda e: e[4] == "sync" or e[4] == "range-active" or "undetermined->" in e[5]
		all_, part = events(sys.argv[1]), events(sys.argv[2])
		def own(events, begin): # samples are not their thread's own events
		    return sorted((e[1], e[4] == "cpu-sample", i, e) for i, e in enumerate(events) if not told(e) and e[0] >= begin)
		# A stop of the world that goes on at the cut's beginning has no other note than a begin there.
		stops = {}
		for e in all_:
		    if e[4] in ("range-begin", "range-end") and "stop-the-world" in e[5]:
		        stops.setdefault(e[5], e[4])
		goes_on = next((e for e in part if e[4] == "range-begin" and stops.get(e[5]) == "range-end"), None)
		part_own = [e for e in part if e is not goes_on]
		whole, cut = own(all_, 0), own(part_own, 0)
		told_first = next((i for i, e in enumerate(part) if not told(e) and e is not goes_on), 0)
		if len(cut) < 100 or len(cut) != len(whole):
		    print(f"{len(cut)} events are not those {len(whole)} of the whole")
		def ends(events): # goroutines and Ps, and their last states: those that did nothing are there, too
		    return {(e[4], m[1]): m[2] for e in events if (m := re.match(r" id=(\d+) \w+->(\w+)", e[5]))}
		missing = {i: s for i, s in ends(events(sys.argv[4])).items() if s != "none" and ends(part).get(i) != s}
		if missing:
		    print(f"not in the cut: {missing}")
		# It begins with states, 1 ns apart, in the tick before FROM. They move what is less than that behind it. What the
		# whole has 1 ns apart there had to wait, and has one time in the cut: the threads' order is any.
		TICK = 64
		begin = int(float(sys.argv[5]) * 1e9 + 0.5)
		late = {e[2]: e[3][0] + begin - w[3][0] for w, e in zip(whole, cut)}
		shift = late[max(late)] if cut else 0
		waited = begin
		for e in all_:
		    if e[0] > waited + 1:
		        break
		    waited = e[0]
		if not -2 <= shift <= 2 * TICK:
		    print(f"it begins {shift} ns before {sys.argv[5]} s")
		for a, b in zip(whole, cut):
		    apart = late[b[2]] - shift
		    moved = told_first + TICK if b[3][0] <= told_first + 2 * TICK + b[2] else 0
		    if a[3][0] <= waited and 0 <= b[3][0] <= told_first + 2 * TICK + waited - begin:
		        apart = 0
		    if a[3][1:] != b[3][1:] or not -50 <= apart <= 50 + moved:
		        print(f"{a[3]} is in the cut: {b[3]}, {apart} ns later")
		        break
		go = re.findall(r"^M=(\S+) P=(\S+) G=(\S+) (?!Sync)\S+ Time=(\d+)", open(sys.argv[3]).read(), re.M)
		none = lambda e: tuple(x.replace("-", "-1") for x in e[1:4])
		part = [e for e in part if e[4] != "sync"]
		if not go or [(int(g[3]) - int(go[0][3]), *g[:3]) for g in go] != [(e[0] - part[0][0], *none(e)) for e in part]:
		    print(f"Go reads {len(go)} events in it, and others")
	END
}
# between N I K: the time of the event I tenths of the way from the N-th generation's beginning to that of the next
between() {
	local from to
	from=$(grep -n ' G=- sync' "$TMP/every" | sed -n "$1s/:.*//p")
	to=$(grep -n ' G=- sync' "$TMP/every" | sed -n "$(($1 + 1))s/:.*//p")
	sed -n "$((from + (to - from) * $2 / 10)){s/ .*//p}" "$TMP/every"
}
# in_a_stop: just behind the beginning of a stop of the world, the one in the middle
in_a_stop() { grep -E ' range-begin name="stop-the-world' "$TMP/every" | awk '{ t[NR] = $1 } END { printf "%.9f\n", t[int((NR + 1) / 2)] + 1e-9 }'; }
for v in 1.24.13 1.27.4; do
	traced $v long.$v 20000000 0.25 && "$GOPROF" trace "$TMP/long.$v" --events >"$TMP/every" && [ "$(count ' G=- sync' "$TMP/every")" -ge 6 ] ||
		{ fail "trace_out/cuts, Go $v" "no trace"; continue; }
	steps cut $v "$(between 3 3)" "$(between 3 7)"
	steps cut $v "$(between 1 5)" "$(between 4 5)"
	steps cut $v "$(in_a_stop)" 3600s
	result "a cut is a trace, Go $v"
done
mv "$TMP/long.1.27.4" "$TMP/long"

# Damaged: what is before that counts, a cut leaves it out, and both say so.
damaged() {
	local rc=0 n
	head -c $(($(stat -c %s "$TMP/whole") * 6 / 10)) "$TMP/whole" >"$TMP/broken"
	"$GOPROF" trace "$TMP/broken" --perfetto "$TMP/perfetto" -o "$TMP/none" 2>"$TMP/err" || rc=$?
	[ $rc = 3 ] && [ ! -e "$TMP/none" ] && has 'loss: .*nothing whole' "$TMP/err" || echo "nothing whole: $rc: $(cat "$TMP/err")"
	python3 tests/support/perfettojudge.py "$TMP/perfetto" >/dev/null || python3 tests/support/perfettojudge.py "$TMP/perfetto"
	rc=0
	head -c $(($(stat -c %s "$TMP/long") * 6 / 10)) "$TMP/long" >"$TMP/broken"
	"$GOPROF" trace "$TMP/broken" --json -o "$TMP/saved" >"$TMP/json" 2>"$TMP/err" || rc=$?
	[ $rc = 3 ] || echo "status $rc: $(cat "$TMP/err")"
	has 'loss: offset [0-9]*: the trace ends' "$TMP/err" || echo "it says: $(cat "$TMP/err")"
	has '"whole": false' "$TMP/json" || echo "the summary says that it is whole"
	"$GOPROF" trace "$TMP/broken" --events >"$TMP/every" 2>"$TMP/err" || rc=$?
	rc=0 && "$GOPROF" trace "$TMP/broken" --json --to "$(tail -n 2 "$TMP/every" | awk '{ print $1; exit }')" >"$TMP/json" 2>"$TMP/err" || rc=$?
	[ $rc = 3 ] && has 'loss: offset [0-9]*: the trace ends' "$TMP/err" && has '"whole": false' "$TMP/json" || echo "a time before the last event: $rc $(cat "$TMP/err")"
	rc=0 && "$GOPROF" trace "$TMP/broken" --json --to 0.001 >"$TMP/json" 2>"$TMP/err" || rc=$?
	[ $rc = 0 ] && has '"whole": true' "$TMP/json" || echo "a time in a whole generation: $rc $(cat "$TMP/err")"
	"$GOPROF" trace "$TMP/saved" --events >"$TMP/events" || echo "what was saved: $?"
	gorun 1.27.4 tool trace -d=parsed "$TMP/saved" >"$TMP/parsed"
	n=$(count ' G=- sync' "$TMP/events")
	[ "$n" -ge 3 ] && [ "$(count '^M=' "$TMP/parsed")" = "$(wc -l <"$TMP/events")" ] || echo "$n generations saved"
}
steps damaged
result "a trace that breaks off"

refused() {
	local rc last from to
	"$GOPROF" trace "$TMP/long" --events >"$TMP/every"
	last=$(tail -n 1 "$TMP/every")
	read -r from to < <(gap)
	rc=0 && "$GOPROF" trace /bin/true >"$TMP/out" 2>"$TMP/err" || rc=$?
	[ $rc = 1 ] && has 'no execution trace' "$TMP/err" || echo "/bin/true: $rc $(cat "$TMP/err")"
	rc=0 && "$GOPROF" trace "$TMP/long" -o "$TMP/long" 2>"$TMP/err" || rc=$?
	[ $rc = 1 ] && has 'that is the trace itself' "$TMP/err" || echo "itself: $rc $(cat "$TMP/err")"
	rc=0 && "$GOPROF" trace "$TMP/long" --from 1h 2>"$TMP/err" || rc=$?
	[ $rc = 2 ] || echo "--from 1h: $rc $(cat "$TMP/err")"
	rc=0 && "$GOPROF" trace "$TMP/long" --from 9s 2>"$TMP/err" || rc=$?
	[ $rc = 1 ] && has "nothing of this time: it is ${last%% *} s long" "$TMP/err" || echo "--from 9s, $last: $rc $(cat "$TMP/err")"
	rc=0 && "$GOPROF" trace "$TMP/long" --from "$from" --to "$to" -o "$TMP/none" 2>"$TMP/err" || rc=$?
	[ $rc = 1 ] && [ ! -e "$TMP/none" ] && has 'nothing whole in this time' "$TMP/err" || echo "-o of no event: $rc $(cat "$TMP/err")"
	for what in '' --events --json '--pprof sync' '--perfetto -' '-o -'; do
		rc=0 && "$GOPROF" trace "$TMP/long" $what >&- 2>"$TMP/err" || rc=$?
		[ $rc = 1 ] && [ "$(wc -l <"$TMP/err")" = 1 ] && has 'stdout is closed' "$TMP/err" || echo "$what to nowhere: $rc $(cat "$TMP/err")"
	done
	rc=0 && "$GOPROF" trace "$TMP/whole" --pprof net </dev/null >/dev/full 2>"$TMP/err" || rc=$?
	[ $rc = 1 ] || echo "a full disk: $rc $(cat "$TMP/err")"
	head -c 20000 "$(goroot 1.21.13)/src/internal/trace/testdata/http_1_5_good" >"$TMP/broken"
	rc=0 && "$GOPROF" trace "$TMP/broken" -o "$TMP/oldcut" 2>"$TMP/err" || rc=$?
	[ $rc = 1 ] && [ ! -e "$TMP/oldcut" ] && has 'no part of a damaged trace' "$TMP/err" || echo "a cut of an old, damaged one: $rc $(cat "$TMP/err")"
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
