#!/bin/bash
# `doctor`: as root here everything works; as an ordinary user it runs, names what is missing
# and what to do; with the capabilities it asks for, all that is needed works.
. tests/support/lib.sh
need_root && need_bpf
command -v python3 >/dev/null || skip_all "needs python3"

chmod 755 "$TMP" && cp "$GOPROF" "$TMP/goprof" && chmod 755 "$TMP/goprof"
as() { # CAPS ARG...: as a user nobody has, with just those
	local caps=-all
	[ "$1" = none ] || caps=-all,+${1//,/,+}
	shift
	setpriv --reuid 42424 --regid 42424 --clear-groups --bounding-set=$caps --inh-caps=$caps \
		--ambient-caps=$caps "$TMP/goprof" doctor "$@" >"$TMP/out" 2>"$TMP/said"
}
# status ID: of the check in the JSON
status() {
	python3 -c 'import json, sys
print(*[c["status"] for c in json.load(open(sys.argv[1]))["checks"] if c["id"] == sys.argv[2]])' "$TMP/out" "$1"
}
expect() { # NAME RC WANTED_RC ID=STATUS...
	local name=$1 rc=$2 want=$3 pair bad=
	shift 3
	[ "$rc" = "$want" ] || bad="exit status $rc: $(cat "$TMP/said")"
	for pair in "$@"; do
		[ "$(status "${pair%=*}")" = "${pair#*=}" ] || bad+=" ${pair%=*} is '$(status "${pair%=*}")', not ${pair#*=}"
	done
	[ -z "$bad" ] && pass "doctor/$name" || fail "doctor/$name" "$bad"
}

"$GOPROF" doctor --json >"$TMP/out" 2>"$TMP/said"
expect root $? 0 cpu=yes heap_read=yes heap_probe=yes cap_bpf=yes btf=yes cpu_program=yes heap_program=yes \
	block_probe=yes wait=yes block_read=yes goroutine=yes sched_program=yes wait_program=yes
as none --json
expect "without privileges" $? 1 cpu=no heap_probe=no heap_read=yes other_users=no cap_bpf=no \
	cap_perfmon=no cap_sys_ptrace=no cpu_program=unknown ring_buffer=unknown \
	block_probe=no wait=no block_read=yes goroutine=yes sched_program=unknown wait_program=unknown
as bpf,perfmon --json
expect "bpf,perfmon" $? 0 cpu=yes heap_probe=yes heap_read=yes block_probe=yes wait=yes other_users=no cap_sys_ptrace=no
as bpf,perfmon,sys_ptrace --json
expect "bpf,perfmon,sys_ptrace" $? 0 cpu=yes heap_probe=yes cap_sys_ptrace=yes
as perfmon --json
expect "perfmon alone" $? 1 cpu=no heap_probe=no cap_bpf=no cap_perfmon=yes perf_clock=yes
as none
grep -q "do:  run as root, or once: setcap cap_bpf,cap_perfmon,cap_sys_ptrace=ep '$TMP/goprof'" "$TMP/out" &&
	pass "doctor/says what to do" || fail "doctor/says what to do" "$(head -n 5 "$TMP/out")"

# What it says to do is enough.
setcap cap_bpf,cap_perfmon,cap_sys_ptrace=ep "$TMP/goprof"
setpriv --reuid 42424 --regid 42424 --clear-groups --inh-caps=-all "$TMP/goprof" doctor --json >"$TMP/out" 2>"$TMP/said"
expect "as it says" $? 0 cpu=yes heap_probe=yes heap_read=yes
setcap -r "$TMP/goprof"
unshare --user --map-root-user "$TMP/goprof" doctor --json >"$TMP/out" 2>"$TMP/said"
expect "root of a user namespace" $? 1 cpu=no user_namespace=no cap_bpf=no

"$GOPROF" doctor >"/dev/full" 2>/dev/null
[ $? = 1 ] && pass "doctor/full disk" || fail "doctor/full disk" "not status 1"
finish
