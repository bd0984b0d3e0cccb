#!/bin/bash
# What the program says and how it ends when it cannot do what was asked, compared with
# testdata/golden/cli/NAME: the exit status, stdout and stderr. UPDATE=1 writes them anew.
set -u
. tests/support/lib.sh
WANT=$ROOT/testdata/golden/cli
OUT=$TMP/out
P= # the pid that a case is about; "PID" in the expected text

# Without these what comes out is not what the program says, and must not be written anew.
for tool in "$GOPROF" "$O/tests/mkdump"; do
	[ -x "$tool" ] || { fail cli "$tool is not there: make all ${O#"$ROOT"/}/tests/mkdump"; finish; }
done

# What differs from run to run and from machine to machine.
constant() {
	sed "s|$TMP|TMP|g; s/pid ${P:-none}\>/pid PID/g
		s/ (kernel\.yama.*)//; s/\(is not a Go program\).*/\1/
		s/heal: [0-9]* processes could/heal: N processes could/"
}

# case_of NAME ARG...: runs the program and compares.
case_of() {
	local name=$1 status
	shift
	"$@" >"$TMP/stdout" 2>"$TMP/stderr" </dev/null
	status=$?
	{
		echo "exit $status"
		constant <"$TMP/stdout" | sed 's/^/1: /'
		constant <"$TMP/stderr" | sed 's/^/2: /'
	} >"$TMP/got"
	if [ "${UPDATE:-}" = 1 ]; then
		mkdir -p "$WANT" && cp "$TMP/got" "$WANT/$name"
	fi
	if diff -u "$WANT/$name" "$TMP/got"; then
		pass "cli/$name"
	else
		fail "cli/$name" "not as expected"
	fi
}

# child PROGRAM ARG...: starts it, waits until it is that program; sets P.
child() {
	"$@" </dev/null >/dev/null 2>&1 &
	P=$!
	STARTED+=("$P")
	for _ in $(seq 500); do
		[ "$(readlink "/proc/$P/exe")" != "$(readlink -f "$(command -v "$1")")" ] || break
		sleep 0.01
	done
}

# ---- usage ----

case_of help "$GOPROF" --help
case_of version "$GOPROF" --version
case_of ps_help "$GOPROF" ps --help
case_of ps_unknown_option "$GOPROF" ps --nonsense
case_of ps_argument "$GOPROF" ps 12
case_of doctor_help "$GOPROF" doctor --help
case_of doctor_unknown_option "$GOPROF" doctor -z
case_of heal_help "$GOPROF" heal --help
case_of heal_unknown_option "$GOPROF" heal -z
case_of heal_bad_pid "$GOPROF" heal -p 12x
case_of heal_no_value "$GOPROF" heal -p
case_of heal_argument "$GOPROF" heal 12
case_of heapdump_help "$GOPROF" heapdump --help
case_of heapdump_no_file "$GOPROF" heapdump
case_of heapdump_unknown_option "$GOPROF" heapdump --nonsense
case_of heapdump_no_value "$GOPROF" heapdump x --pprof
case_of heapdump_three "$GOPROF" heapdump a b c
case_of heapdump_bad_rate "$GOPROF" heapdump x --heap-rate much
case_of heapdump_bad_address "$GOPROF" heapdump x --path main.x
case_of heapdump_bad_format "$GOPROF" heapdump x --pprof y --format svg
case_of heapdump_bad_mode "$GOPROF" heapdump x --mode 0755
case_of heapdump_two_to_files "$GOPROF" heapdump a b --pprof y
case_of heapdump_missing "$GOPROF" heapdump "$TMP/none"

# ---- what it tells of heap dumps, in words and to programs ----

for kind in "small" "goroutines 3" "held 9"; do
	# shellcheck disable=SC2086
	"$O/tests/mkdump" $kind >"$TMP/${kind% *}.dump" || { fail cli "no heap dump to tell of"; finish; }
done
head -c 300 "$TMP/small.dump" >"$TMP/cut.dump"
for how in "" --json; do
	case_of "heapdump_summary$how" "$GOPROF" heapdump "$TMP/small.dump" $how
	case_of "heapdump_cut$how" "$GOPROF" heapdump "$TMP/cut.dump" $how
	case_of "heapdump_path$how" "$GOPROF" heapdump "$TMP/small.dump" --path 0xc000000048 $how
	case_of "heapdump_garbage$how" "$GOPROF" heapdump "$TMP/small.dump" --path c000000060 $how
	case_of "heapdump_grew$how" "$GOPROF" heapdump "$TMP/small.dump" "$TMP/goroutines.dump" $how
	case_of "heapdump_shrank$how" "$GOPROF" heapdump "$TMP/held.dump" "$TMP/cut.dump" --heap-rate 1 $how
done
case_of heapdump_dot "$GOPROF" heapdump "$TMP/small.dump" --dot -
case_of heapdump_sites "$GOPROF" heapdump "$TMP/small.dump" --pprof - --format text --heap-rate 1
case_of heapdump_holders "$GOPROF" heapdump "$TMP/small.dump" --holders - --format text

# ---- usage of trace, and of profiles ----

case_of trace_help "$GOPROF" trace --help
case_of trace_no_file "$GOPROF" trace
case_of trace_two_files "$GOPROF" trace a b
case_of trace_unknown_option "$GOPROF" trace --nonsense
case_of trace_no_value "$GOPROF" trace x --perfetto
case_of trace_bad_kind "$GOPROF" trace x --pprof heap
case_of trace_bad_format "$GOPROF" trace x --pprof net --format svg
case_of trace_bad_mode "$GOPROF" trace x --mode 0755
case_of trace_bad_time "$GOPROF" trace x --from soon
case_of trace_backwards "$GOPROF" trace x --from 2s --to 1s
case_of trace_one_stdout "$GOPROF" trace x --pprof net --pprof sync
case_of trace_same_file "$GOPROF" trace x --pprof net=y --perfetto y
case_of trace_missing "$GOPROF" trace "$TMP/none"
case_of no_pid "$GOPROF"
case_of no_value "$GOPROF" --cpu -p
case_of bad_pid "$GOPROF" -p 12x
case_of pid_zero "$GOPROF" -p 0
case_of unknown_option "$GOPROF" -p 1 --nonsense
case_of unknown_letter "$GOPROF" -p 1 -z
case_of ambiguous "$GOPROF" -p 1 --he
case_of extra_argument "$GOPROF" -p 1 sleep
case_of bad_duration "$GOPROF" -p 1 -d 10x
case_of long_duration "$GOPROF" -p 1 -d 25h
case_of bad_frequency "$GOPROF" -p 1 -F 10001
case_of bad_source "$GOPROF" -p 1 --heap --source guess
case_of bad_rate "$GOPROF" -p 1 --heap --heap-rate 1T
case_of bad_format "$GOPROF" -p 1 --format svg
case_of kernel_without_cpu "$GOPROF" -p 1 --heap --kernel
case_of rate_without_heap "$GOPROF" -p 1 --heap-rate 64k
case_of source_without_heap "$GOPROF" -p 1 --goroutine --source probe
case_of block_rate_zero "$GOPROF" -p 1 --block --block-rate 0
case_of block_rate_word "$GOPROF" -p 1 --block --block-rate often
case_of block_rate_long "$GOPROF" -p 1 --block --block-rate 1001s
case_of block_rate_without_block "$GOPROF" -p 1 --mutex --block-rate 10us
case_of block_rate_read "$GOPROF" -p 1 --block --source read --block-rate 10us
case_of mutex_fraction_zero "$GOPROF" -p 1 --mutex --mutex-fraction 0
case_of mutex_fraction_without_mutex "$GOPROF" -p 1 --block --mutex-fraction 5
case_of wait_rate_without_wait "$GOPROF" -p 1 --block --wait-rate 1ms
case_of labels_alone "$GOPROF" -p 1 --cpu --labels
case_of goid_alone "$GOPROF" -p 1 --goroutine --goid
case_of control_characters "$GOPROF" -p "$(printf '1\n\033[2J')"

# ---- an output that takes nothing ----

case_of stdout_full sh -c '"$0" --help >/dev/full' "$GOPROF"
case_of stdout_closed sh -c '"$0" --version >&-' "$GOPROF"
mkfifo "$TMP/unread" && exec 3<>"$TMP/unread" 4>"$TMP/unread" 3>&-
case_of stdout_unread sh -c '"$0" --help >&4' "$GOPROF"
exec 4>&-

# ---- pids that cannot be profiled ----

[ "$(id -u)" = 0 ] || { skip cli/targets "needs root"; finish; }

sleep 0 &
P=$!
wait "$P"
case_of no_such_pid "$GOPROF" -p "$P" -o "$OUT"
child sleep 1000
case_of not_go "$GOPROF" -p "$P" -o "$OUT"
case_of not_go_heap "$GOPROF" -p "$P" --heap -o "$OUT"
P='[0-9][0-9]*'
case_of itself sh -c 'exec "$0" -p $$' "$GOPROF"
P=2
if [ -r /proc/2/stat ] && ! readlink /proc/2/exe >/dev/null; then
	case_of kernel_thread "$GOPROF" -p 2 -o "$OUT"
else
	skip cli/kernel_thread "pid 2 is none here"
fi
if [ -e "$OUT" ]; then
	fail cli/leaves_nothing "$OUT was made though nothing was profiled"
else
	pass cli/leaves_nothing
fi

# ---- privileges ----

# A copy that anybody may run, wherever the tree is.
chmod 755 "$TMP" && cp "$GOPROF" "$TMP/goprof-bpf"
nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all "$@"; }
if nobody "$TMP/goprof-bpf" --version >/dev/null 2>&1; then
	child sleep 1000
	case_of no_privileges nobody "$TMP/goprof-bpf" -p "$P"
	case_of no_privileges_heap nobody "$TMP/goprof-bpf" -p "$P" --heap
	case_of no_privileges_block nobody "$TMP/goprof-bpf" -p "$P" --block --source probe
	case_of no_privileges_wait nobody "$TMP/goprof-bpf" -p "$P" --wait
	case_of no_privileges_goroutine nobody "$TMP/goprof-bpf" -p "$P" --goroutine
	case_of no_privileges_heal nobody "$TMP/goprof-bpf" heal
else
	skip cli/no_privileges "cannot run as another user here"
fi
finish
