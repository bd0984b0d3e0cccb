# shellcheck shell=bash
# Of vmtest/suite.sh: what an administrator has closed; the last part, because some of it stays closed.

# told FILE YES NO: of these kinds doctor said so in FILE, and so it is here and now
told() {
	local id
	for id in cpu heap_probe; do echo "# here doctor says of $id: $(able "$id" "$1") $(found "$id" "$1")" >&2; done
	for id in $2; do [ "$(able "$id" "$1")" = yes ] || echo "$id: doctor says '$(able "$id" "$1")'"; done
	for id in $3; do [ "$(able "$id" "$1")" = no ] || echo "$id: doctor says '$(able "$id" "$1")'"; done
	# shellcheck disable=SC2086
	agree "$1" $2 $3
}
# closed YES NO: doctor is asked now. That loads every program, the dearest thing that there is here.
closed() {
	"${AS[@]}" "$TMP/goprof" doctor --json >"$TMP/doctor.now" 2>"$TMP/err" || :
	told "$TMP/doctor.now" "$@"
}
# The group has memory for all that a profile needs.
small() {
	local group=/sys/fs/cgroup/small
	echo +memory >/sys/fs/cgroup/cgroup.subtree_control
	mkdir -p $group
	echo 64M >$group/memory.max
	# shellcheck disable=SC2086,SC2016
	watched 2 bash -c 'echo 0 >"$0/cgroup.procs" && exec "$@"' $group "$GOPROF" -p "$PID" $TWO
	awk '$1 == "oom_kill" && $2 { print $2 " processes were killed" }' $group/memory.events
	echo "# 64 MB: at most $(cat $group/memory.peak 2>/dev/null || echo unknown) bytes" >&2
}
# AppArmor: a program confined without a word of ptrace, as containers are, is profiled by one that is not; one of
# ours that may not call bpf(2), or not look at others, is told so by doctor, too.
CONFINED=(bash -c 'echo "exec $0" >/proc/self/attr/exec && exec "$@"') # PROFILE COMMAND...
policy() {
	cat <<-END
	profile gp-target { file, network, signal, unix, capability, }
	profile gp-nobpf { file, network, signal, unix, ptrace, mount, capability sys_ptrace, capability dac_read_search, capability perfmon, capability syslog, }
	profile gp-noptrace { file, network, signal, unix, mount, capability, }
	END
}
# armored PROFILE YES NO
armored() {
	AS=("${CONFINED[@]}" "$1")
	[ "$("${AS[@]}" cat /proc/self/attr/current)" = "$1 (enforce)" ] || echo "it is not confined"
	closed "${@:2}"
	AS=()
}
apparmor() {
	local idler=$PID
	policy | apparmor_parser -Ka || { wrong "the policy was not taken"; return; }
	start "${CONFINED[@]}" gp-target "$(subject $NEWEST checksum)" -rest 100ms
	has '^gp-target ' "/proc/$PID/attr/current" || wrong "the target is not confined"
	steps told "$DOCTOR" "cpu heap_probe" "" # what doctor says is of no target
	stop
	PID=$idler
	outcome "hard/a target that AppArmor confines"
	steps armored gp-nobpf "" "cpu heap_probe"
	outcome "hard/AppArmor without the capability bpf"
	steps armored gp-noptrace "" "" "cpu heap_probe goroutine"
	outcome "hard/AppArmor without ptrace"
}

# locked LEVEL YES NO
locked() {
	echo "$1" >/sys/kernel/security/lockdown
	has "\[$1\]" /sys/kernel/security/lockdown || echo "it is not set"
	closed "$2" "$3"
}
# paranoid LEVEL COMMAND...: what Debian's kernels forbid above 2 is theirs; where probes are no perf events, they do not
# matter. COMMAND is asked.
paranoid() {
	echo "$1" >/proc/sys/kernel/perf_event_paranoid
	user "${CAPS%,sys_admin}"
	if [ "$(able uprobe_multi)" = yes ]; then "${@:2}" heap_probe cpu; else "${@:2}" "" "cpu heap_probe"; fi
}
part_hard() {
	start_idler
	steps small
	outcome "hard/memory of 64 MB"
	ordinary
	steps told "$TMP/doctor.user" "cpu heap_probe" ""
	outcome "hard/unprivileged_bpf_disabled 1, perf_event_paranoid 2"
	steps paranoid 4 closed
	outcome "hard/perf_event_paranoid 4"
	steps paranoid 3 told "$TMP/doctor.now" # it says of both the same
	outcome "hard/perf_event_paranoid 3"
	case $CAPS in
	*,sys_admin)
		user $CAPS
		steps closed "cpu heap_probe" ""
		outcome "hard/perf_event_paranoid 3, with CAP_SYS_ADMIN"
		;;
	esac
	AS=()
	mount -t tmpfs none /sys/kernel/btf
	steps closed goroutine "cpu heap_probe block_probe wait"
	outcome "hard/no BTF"
	umount /sys/kernel/btf
	if [ -e /sys/module/apparmor/parameters/enabled ]; then apparmor; else skip hard/AppArmor "this kernel has none"; fi
	# Kprobes that are switched off; a kernel without any cannot be had as a package.
	echo 0 >/sys/kernel/debug/kprobes/enabled || wrong "kprobes cannot be switched off"
	umount -l /sys/kernel/debug 2>/dev/null
	umount -l /sys/kernel/tracing 2>/dev/null
	[ ! -e /sys/kernel/tracing/uprobe_events ] || wrong "tracefs is still there"
	steps locked integrity "cpu heap_probe" ""
	outcome "hard/no kprobes, no tracefs, lockdown=integrity"
	if [ "$(able perf_link)" = yes ]; then steps locked confidentiality "cpu heap_probe block_probe wait goroutine" ""
	else steps locked confidentiality goroutine "cpu heap_probe block_probe wait"; fi
	outcome "hard/lockdown=confidentiality"
	stop
}
