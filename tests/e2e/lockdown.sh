#!/bin/bash
# With lockdown=confidentiality the kernel refuses programs that can reach bpf_probe_read_kernel or
# its like. Ours must load without: the same objects, with these helpers' numbers made invalid,
# in the initial pid namespace and in one below (pidns_ino set; typed from Linux 6.5 on). libbpf
# replaces bpf_probe_read_user by one of them on such a kernel, which must be undone.
. tests/support/lib.sh
need_root && need_bpf

judge() {
	local name=$1 said
	shift
	if said=$("$O/tests/verifier" noread "$@" 2>&1); then
		pass "lockdown/$name"
	else
		fail "lockdown/$name" "$(grep -v ' loads$' <<<"$said" | tr '\n' ' ')"
	fi
}

judge initial
# Typed where the kernel says that numbers[] has no length.
at=$(bpftool btf dump file /sys/kernel/btf/vmlinux format c 2>/dev/null | grep -c 'struct upid numbers\[0*\];')
if [ "$at" -gt 0 ]; then
	judge namespace 4026531836
else
	skip lockdown/namespace "Linux before 6.5: pids of a namespace are read by bpf_probe_read_kernel"
fi
finish
