#!/bin/bash
# Capabilities instead of root: each minimal set of docs/privileges.md is enough for an ordinary user,
# with each of its capabilities left out the run fails and the sentence names that one. At every
# kernel.perf_event_paranoid; with capabilities handed on (ambient) and on the file (setcap).
. tests/support/lib.sh
need_root && need_bpf && need_go

OURS=42421 OTHER=42422 # users nobody has
PARANOID=/proc/sys/kernel/perf_event_paranoid
KPTR=/proc/sys/kernel/kptr_restrict
WAS_PARANOID=$(cat $PARANOID) WAS_KPTR=$(cat $KPTR)
restore() { echo "$WAS_PARANOID" >$PARANOID; echo "$WAS_KPTR" >$KPTR; cleanup; }
trap restore EXIT

chmod 755 "$TMP" && mkdir -m 777 "$TMP/any" && cp "$GOPROF" "$TMP/goprof" && chmod 755 "$TMP/goprof"
bin=$(subject 1.27.4 checksum -tags sampled) || { fail caps "the subject does not build"; finish; }

# start_as UID PROGRAM [ARG...]: no shell in between, so that PID is the program.
start_as() {
	start env GOMAXPROCS=1 setpriv --reuid "$1" --regid "$1" --clear-groups --inh-caps=-all "${@:2}" ||
		fail caps "$2 does not start as $1"
}

# with CAPS ARG...: the profiler as an ordinary user with just those, "a,b" or none.
with() {
	local caps=-all
	[ "$1" = none ] || caps=-all,+${1//,/,+}
	shift
	rm -rf "$TMP/any/out"
	setpriv --reuid $OURS --regid $OURS --clear-groups --bounding-set=$caps --inh-caps=$caps \
		--ambient-caps=$caps "$TMP/goprof" -d 300ms -o "$TMP/any/out" "$@" >"$TMP/paths" 2>"$TMP/said"
}

# In 300 ms there is one window or none. It may not meet what rtvars does in bursts when it is a minute old and collects
# garbage 14 times a second (5,000 to 50,000 runs in 300 ms). That this is told is right, and no matter of capabilities.
UNMET=()
for kind in block mutex wait; do UNMET+=(-allow $kind:RUNS_UNMET=any); done

# right N: after a run: N files, each of them valid, with the program's own functions in them.
right() {
	local rc=$? p n=0 type
	[ $rc = 3 ] && only_small_losses "$TMP/said" "$(cat "$TMP/paths")" 10 "${UNMET[@]}" && rc=0
	[ $rc = 0 ] || { echo "exit status $rc: $(tail -n 2 "$TMP/said" | tr '\n' ' ')"; return; }
	while read -r p; do
		n=$((n + 1))
		"$PPROFCHECK" check "$p" >"$TMP/check" 2>&1 || { echo "$p: $(head -n 1 "$TMP/check")"; return; }
		case $p in
		*.cpu.*) type=cpu ;;
		*.heap.*) type=alloc_space ;;
		*.goroutine.*) type=goroutine ;;
		*.mutex.*) continue ;; # it may be that nobody contended
		*) type=contentions ;;
		esac
		"$PPROFCHECK" cum -type $type "$p" 2>/dev/null | grep -q 'main\.' || { echo "$p: nothing of the program in it"; return; }
	done <"$TMP/paths"
	[ $n = "$1" ] || echo "$n files"
}

works() { # NAME N CAPS ARG...
	local name=$1 n=$2 verdict
	shift 2
	with "$@"
	verdict=$(right "$n")
	[ -z "$verdict" ] && pass "caps/$name" || fail "caps/$name" "$verdict"
}

refused() { # NAME SENTENCE CAPS ARG...
	local name=$1 sentence=$2 rc
	shift 2
	with "$@"
	rc=$?
	if [ $rc = 1 ] && [ ! -s "$TMP/paths" ] && grep -qE "$sentence" "$TMP/said" &&
		! grep -qE '([a-z]+): (\1|[a-z]+ and [a-z]+):' "$TMP/said"; then
		pass "caps/$name is refused, with its name"
	else
		fail "caps/$name is refused, with its name" "exit status $rc: $(tail -n 2 "$TMP/said" | tr '\n' ' ')"
	fi
}

cp "$bin" "$TMP/checksum" && chmod 755 "$TMP/checksum"
start_as $OURS "$TMP/checksum"
MINE=$PID
start_as $OTHER "$TMP/checksum"
THEIRS=$PID
bpf='run as root, or with CAP_BPF and CAP_PERFMON \(missing: '
ptrace='run as root or add CAP_SYS_PTRACE'
both="--cpu --heap --source=probe --budget=0"

# 3 and 4 mean 2 on an unpatched kernel and forbid more on Debian's and Ubuntu's.
for level in 2 3 4; do
	echo $level >$PARANOID
	works "own process, paranoid $level: bpf,perfmon" 2 bpf,perfmon -p "$MINE" $both
	works "another user's, paranoid $level: bpf,perfmon,sys_ptrace" 2 bpf,perfmon,sys_ptrace -p "$THEIRS" $both
	grep -q 'not searched for breakpoints left behind: .*: run as root, or with CAP_DAC_READ_SEARCH$' "$TMP/said" &&
		pass "caps/another user's, paranoid $level: what would search it is named" ||
		fail "caps/another user's, paranoid $level: what would search it is named" "$(tail -n 3 "$TMP/said" | tr '\n' ' ')"
	works "own process, paranoid $level: reading needs nothing" 1 none -p "$MINE" --heap --source=read
done
works "another user's, reading: sys_ptrace" 1 sys_ptrace -p "$THEIRS" --heap --source=read
for kind in "--cpu" "--heap --source=probe"; do
	refused "$kind without bpf" "${bpf}CAP_BPF\)" perfmon -p "$MINE" $kind
	refused "$kind without perfmon" "${bpf}CAP_PERFMON\)" bpf -p "$MINE" $kind
	refused "$kind without sys_ptrace" "$ptrace" bpf,perfmon -p "$THEIRS" $kind
done
refused "another user's, reading without sys_ptrace" "$ptrace" none -p "$THEIRS" --heap --source=read
# Where there is nothing to read, probing is what would come next.
plain=$(subject 1.27.4 checksum) && cp "$plain" "$TMP/plain" && chmod 755 "$TMP/plain"
start_as $OURS "$TMP/plain"
refused "--heap of a program without records, without bpf" "${bpf}CAP_BPF\)" perfmon -p "$PID" --heap
kill "$PID"

# Waits and goroutines: of a program whose block and mutex rates are 1.
waits=$(subject 1.27.4 rtvars -tags=profiles) && cp "$waits" "$TMP/waits" && chmod 755 "$TMP/waits"
start_as $OURS "$TMP/waits" 1
W_MINE=$PID
start_as $OTHER "$TMP/waits" 1
W_THEIRS=$PID
watched="--block --mutex --source=probe" kept="--goroutine --block --mutex --source=read"
works "own process, waits: bpf,perfmon" 2 bpf,perfmon -p "$W_MINE" $watched
works "another user's, waits: bpf,perfmon,sys_ptrace" 2 bpf,perfmon,sys_ptrace -p "$W_THEIRS" $watched
works "own process, goroutines and records of waits need nothing" 3 none -p "$W_MINE" $kept
works "another user's, goroutines and records of waits: sys_ptrace" 3 sys_ptrace -p "$W_THEIRS" $kept
for kind in "--block --source=probe" "--mutex --source=probe" "--wait"; do
	refused "$kind without bpf" "${bpf}CAP_BPF\)" perfmon -p "$W_MINE" $kind
	refused "$kind without perfmon" "${bpf}CAP_PERFMON\)" bpf -p "$W_MINE" $kind
	refused "$kind without sys_ptrace" "$ptrace" bpf,perfmon -p "$W_THEIRS" $kind
done
refused "another user's goroutines without sys_ptrace" "$ptrace" none -p "$W_THEIRS" --goroutine
works "own process, --wait: bpf,perfmon" 1 bpf,perfmon -p "$W_MINE" --wait
kill "$W_MINE" "$W_THEIRS"

# Names of kernel functions, and only they, need CAP_SYSLOG, or a paranoia below 2.
kernel() { # NAME CAPS SENTENCE: what is said about names; - for nothing
	local rc said
	with "$2" -p "$MINE" --cpu --kernel -F 1000 -d 1s
	rc=$?
	said=$(grep -o 'kernel functions have no names.*' "$TMP/said")
	if [ $rc != 0 ] && [ $rc != 3 ]; then
		fail "caps/$1" "exit status $rc: $(tail -n 1 "$TMP/said")"
	elif [ "$3" = - ]; then
		[ -z "$said" ] && ! grep -q 'shown by address' "$TMP/said" &&
			"$PPROFCHECK" cum "$(cat "$TMP/paths")" | grep -q 'entry_SYSCALL_64\|asm_\|el0t_64' &&
			pass "caps/$1" || fail "caps/$1" "$(tail -n 3 "$TMP/said" | tr '\n' ' ')"
	elif [[ $said == *"$3"* ]] && [ $rc = 3 ] && grep -q 'shown by address' "$TMP/said"; then
		pass "caps/$1"
	else
		fail "caps/$1" "exit status $rc: $(tail -n 3 "$TMP/said" | tr '\n' ' ')"
	fi
}
kernels() {
	echo 2 >$PARANOID
	echo 0 >$KPTR
	kernel "--kernel: bpf,perfmon,syslog" bpf,perfmon,syslog -
	kernel "--kernel without syslog says so" bpf,perfmon "run as root, or with CAP_SYSLOG"
	echo 2 >$KPTR
	kernel "--kernel with kptr_restrict 2 says so" bpf,perfmon,syslog "kernel.kptr_restrict is 2"
	echo "$WAS_KPTR" >$KPTR
}
by_turns kptr_restrict kernels

# An executable that only its owner may read.
cp "$bin" "$TMP/secret" && chown $OTHER "$TMP/secret" && chmod 700 "$TMP/secret"
start_as $OTHER "$TMP/secret"
works "unreadable executable: dac_read_search too" 2 bpf,perfmon,sys_ptrace,dac_read_search -p "$PID" $both
works "unreadable executable, reading" 1 sys_ptrace,dac_read_search -p "$PID" --heap --source=read
refused "unreadable executable without dac_read_search" \
	"its executable has mode 0700 and belongs to uid $OTHER: run as root, or with CAP_DAC_READ_SEARCH" \
	bpf,perfmon,sys_ptrace -p "$PID" $both
kill "$PID"

# A process that has more capabilities than we, though of the same user, is like another user's.
cp "$bin" "$TMP/port80" && chmod 755 "$TMP/port80" && setcap cap_net_bind_service=ep "$TMP/port80" ||
	fail caps "setcap does not work here"
start_as $OURS "$TMP/port80"
works "own process that may do more: sys_ptrace too" 2 bpf,perfmon,sys_ptrace -p "$PID" $both
works "own process that may do more, reading: sys_ptrace" 1 sys_ptrace -p "$PID" --heap --source=read
refused "own process that may do more, without sys_ptrace" "$ptrace" bpf,perfmon -p "$PID" $both
kill "$PID"

# On the file. Our own /proc files then belong to root.
layout() { "$PPROFCHECK" comments "$(head -n 1 "$TMP/paths")" | grep '^layout:'; }
"$GOPROF" -p "$THEIRS" $both -d 300ms -o "$TMP/root" >"$TMP/paths" 2>"$TMP/said"
by_root=$(layout)
cp "$GOPROF" "$TMP/any/filecaps" && chmod 755 "$TMP/any/filecaps"
by_file() { # CAPS ARG...
	[ "$1" = none ] && setcap -r "$TMP/any/filecaps" 2>/dev/null || setcap "$1=ep" "$TMP/any/filecaps"
	shift
	rm -rf "$TMP/any/out"
	setpriv --reuid $OURS --regid $OURS --clear-groups --inh-caps=-all "$TMP/any/filecaps" -d 300ms -o "$TMP/any/out" "$@" >"$TMP/paths" 2>"$TMP/said"
}
by_file cap_bpf,cap_perfmon,cap_sys_ptrace -p "$THEIRS" $both
verdict=$(right 2)
[ "$(layout)" = "$by_root" ] || verdict="$verdict; $(layout) for $by_root"
[ -z "$verdict" ] && pass "caps/on the file: bpf,perfmon,sys_ptrace" || fail "caps/on the file: bpf,perfmon,sys_ptrace" "$verdict"
by_file cap_bpf,cap_perfmon -p "$MINE" $both
verdict=$(right 2)
[ -z "$verdict" ] && pass "caps/on the file: bpf,perfmon" || fail "caps/on the file: bpf,perfmon" "$verdict"
by_file cap_sys_ptrace -p "$THEIRS" --heap --source=read
verdict=$(right 1)
[ -z "$verdict" ] && pass "caps/on the file: sys_ptrace" || fail "caps/on the file: sys_ptrace" "$verdict"
by_file cap_bpf,cap_perfmon -p "$THEIRS" $both
rc=$?
[ $rc = 1 ] && grep -q "$ptrace" "$TMP/said" && pass "caps/on the file, without sys_ptrace" ||
	fail "caps/on the file, without sys_ptrace" "exit status $rc: $(tail -n 1 "$TMP/said")"

# as_attacher PROGRAM: as goprof-bpf begins the helper that holds probes, but by somebody who could ask it for any probe.
as_attacher() {
	setpriv --reuid $OURS --regid $OURS --clear-groups --inh-caps=-all bash -c 'exec -a uprobe-attacher "$0" 0 3<>/dev/null' "$1" >"$TMP/paths" 2>"$TMP/said"
}
setcap cap_bpf,cap_perfmon,cap_sys_ptrace=ep "$TMP/any/filecaps"
as_attacher "$TMP/any/filecaps"
rc=$?
verdict=
[ $rc = 2 ] && grep -q "'0'" "$TMP/said" || verdict="exit status $rc: $(tail -n 1 "$TMP/said")"
setcap -r "$TMP/any/filecaps"
as_attacher "$TMP/any/filecaps" || verdict="$verdict; without capabilities it is not one either: exit status $?"
[ -z "$verdict" ] && pass "caps/on the file: nobody else begins a helper" || fail "caps/on the file: nobody else begins a helper" "$verdict"

# Root of a user namespace has all of them, but none that reaches outside.
unshare --user --map-root-user "$GOPROF" -p "$MINE" $both -d 300ms -o "$TMP/ns" >"$TMP/paths" 2>"$TMP/said"
rc=$?
[ $rc = 1 ] && grep -q 'in this user namespace only: run outside of it' "$TMP/said" &&
	pass "caps/root of a user namespace is told" ||
	fail "caps/root of a user namespace is told" "exit status $rc: $(tail -n 1 "$TMP/said")"

# ---- whose the files are ----

# as_sudo WANTED -o DIR [ARG...]: as sudo leaves it for nobody; "OWNER MODE" of the file is WANTED.
as_sudo() {
	local wanted=$1 got name
	shift
	name="owner/${*//"$TMP"/dir}"
	SUDO_UID=$OURS SUDO_GID=$OURS "$GOPROF" -p "$MINE" --goroutine "$@" >"$TMP/paths" 2>"$TMP/said"
	got=$(stat -c '%u %a' "$(cat "$TMP/paths")")
	[ "$got" = "$wanted" ] && pass "$name" || fail "$name" "it is $got, not $wanted: $(tail -n 1 "$TMP/said")"
}
mkdir -p "$TMP/roots" "$TMP/all" && chmod 1777 "$TMP/all"
as_sudo "$OURS 600" -o "$TMP/all"
as_sudo "$OURS 600" -o "$TMP/fresh"
[ "$(stat -c %u "$TMP/fresh")" = "$OURS" ] && pass "owner/directory" || fail "owner/directory" "$(stat -c %u "$TMP/fresh")"
as_sudo "0 600" -o "$TMP/roots"
grep -q -- '--mode 0644' "$TMP/said" && pass "owner/told" || fail "owner/told" "$(tail -n 2 "$TMP/said")"
as_sudo "0 644" -o "$TMP/roots" --mode 0644
finish
