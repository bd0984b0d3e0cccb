/* user/inspect/ability.c - the table of everything that a profile depends on. */
#include "inspect/ability_priv.h"
#include "probe/bpf.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/utsname.h>

#include "base/sys/caps.h"
#include "probe/uprobes/leftovers.h"
#include "probe/uprobes/uprobes.h"
#include "target/host/kallsyms.h"
#include "target/host/pidns.h"

/* The capabilities that docs/privileges.md recommends. */
#define RECOMMENDED "cap_bpf,cap_perfmon,cap_sys_ptrace"

static struct ability *add(struct abilities *a, enum ability_group group, const char *id,
			   const char *title, const char *purpose)
{
	BUG_ON(a->n == ABILITIES_MAX);
	a->at[a->n] =
		(struct ability){ .group = group, .id = id, .title = title, .purpose = purpose };
	return &a->at[a->n++];
}

/*
 * Records the result of an attempt. When the attempt was not allowed, the answer is "unknown" if
 * the kernel may still be able to do it.
 */
static void judge(struct ability *b, int ret, const struct err *e, bool maybe)
{
	bool refused = ret == -EPERM || ret == -EACCES;

	b->is = ret >= 0 ? ABILITY_YES : refused && maybe ? ABILITY_UNKNOWN : ABILITY_NO;
	if (ret < 0)
		snprintf(b->found, sizeof(b->found), "%s", e->msg);
}

/* Our own file, as an argument for setcap. */
static void own_path(char *buf, size_t cap)
{
	ssize_t n = readlink("/proc/self/exe", buf, cap - 1);

	buf[n > 0 ? n : 0] = 0;
	if (n <= 0)
		snprintf(buf, cap, "goprof-bpf");
}

static void remedy_caps(struct ability *b, const char *more)
{
	char path[256];

	own_path(path, sizeof(path));
	if (!caps_initial_userns())
		snprintf(b->remedy, sizeof(b->remedy),
			 "run it outside of this user namespace: capabilities in it do not count");
	else
		snprintf(b->remedy, sizeof(b->remedy), "run as root, or once: setcap %s%s=ep '%s'",
			 RECOMMENDED, more, path);
}

/* ---- kernel ---- */

static void test_arch(struct abilities *a)
{
	struct ability *b = add(a, ABILITY_KERNEL, "arch", "machine",
				"registers and instructions differ between machines");
	struct utsname u;

	b->needed = true;
	if (uname(&u)) {
		b->is = ABILITY_UNKNOWN;
		snprintf(b->found, sizeof(b->found), "uname: %s", strerror(errno));
		return;
	}
	b->is = strcmp(u.machine, "x86_64") && strcmp(u.machine, "aarch64") ? ABILITY_NO :
									      ABILITY_YES;
	snprintf(b->found, sizeof(b->found), "%s, Linux %s%s", u.machine, u.release,
		 b->is ? ": only x86_64 and aarch64 are known" : "");
}

static void test_btf(struct abilities *a)
{
	struct ability *b = add(a, ABILITY_KERNEL, "btf", "type information (BTF)",
				"one BPF program fits every kernel");
	struct err e = { "" };
	size_t bytes = 0;

	b->needed = true;
	judge(b, try_btf(&bytes, &e), &e, false);
	if (!b->is)
		snprintf(b->found, sizeof(b->found), "%zu bytes", bytes);
	else
		snprintf(b->remedy, sizeof(b->remedy),
			 "use a kernel built with CONFIG_DEBUG_INFO_BTF=y, and have /sys mounted");
}

/* Attempts whose only answer is yes, or why not. */
static void test_objects(struct abilities *a)
{
	static const struct {
		const char *id, *title, *purpose;
		int (*attempt)(struct err *e);
	} rows[] = {
		{ "ring_buffer", "BPF ring buffer", "stacks and labels come through it", try_ring },
		{ "bpf_perf_event", "BPF program on perf events", "CPU profiles",
		  try_perf_program },
		{ "bpf_uprobe", "BPF program on uprobes", "heap and wait probes",
		  try_uprobe_program },
		{ "perf_clock", "perf CPU clock of a thread", "CPU profiles", try_clock },
		{ "cpu_program", "the CPU sampler loads", "CPU profiles", try_cpu_object },
		{ "heap_program", "the heap prober loads and attaches", "heap probes",
		  try_heap_object },
		{ "sched_program", "the wait prober loads and attaches", "block and mutex probes",
		  try_sched_object },
		{ "wait_program", "the status prober loads and attaches", "wait profiles",
		  try_wait_object },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ability *b = add(a, ABILITY_KERNEL, rows[i].id, rows[i].title,
					rows[i].purpose);
		struct err e = { "" };

		b->needed = true;
		judge(b, rows[i].attempt(&e), &e, true);
	}
}

static void test_links(struct abilities *a)
{
	struct ability *b = add(a, ABILITY_KERNEL, "perf_link", "perf links with a cookie",
				"tell clocks and probes apart (Linux 5.15)");
	struct err e = { "" };
	int ret = try_clock_link(&e);

	b->needed = true;
	judge(b, ret, &e, true);
	if (ret <= 0)
		return;
	b->needed = false;
	b->is = ABILITY_NO;
	snprintf(b->found, sizeof(b->found), "a table of the probes stands in: dearer, no less");
}

static void test_uprobes(struct abilities *a)
{
	struct ability *b = add(a, ABILITY_KERNEL, "uprobe_multi",
				"many uprobes in one link, per process",
				"--budget by windows (Linux 6.10)");
	bool multi = uprobes_have_multi();
	struct err e = { "" };
	unsigned type = 0;
	int ret;

	if (multi) {
		b->is = ABILITY_YES;
	} else if (try_uprobe_program(&e)) {
		b->is = ABILITY_UNKNOWN;
		snprintf(b->found, sizeof(b->found), "%s", e.msg);
	} else {
		b->is = ABILITY_NO;
		snprintf(b->found, sizeof(b->found),
			 "probes are set one by one: slower, and no windows");
	}
	b = add(a, ABILITY_KERNEL, "uprobe_pmu", "uprobes through perf",
		"probes where there is no such link");
	ret = try_uprobe_pmu(&type, &e);
	judge(b, ret, &e, false);
	b->needed = !multi;
	if (!ret)
		snprintf(b->found, sizeof(b->found), "type %u", type);
	else
		snprintf(b->remedy, sizeof(b->remedy),
			 "use a kernel built with CONFIG_UPROBE_EVENTS=y");
}

static void test_growing(struct abilities *a)
{
	struct ability *b = add(a, ABILITY_KERNEL, "growing_maps", "BPF tables that grow",
				"else they take their whole memory at once (up to Linux 6.0)");
	struct err e = { "" };
	int ret = bpf_try_growing(&e);

	judge(b, ret == -EINVAL ? 0 : ret, &e, false);
	if (ret != -EINVAL)
		return;
	b->is = ABILITY_INFO;
	snprintf(b->found, sizeof(b->found), "no: some 40 MB for each kind of probe");
}

static void test_memlock(struct abilities *a)
{
	struct ability *b = add(a, ABILITY_KERNEL, "memlock", "BPF memory outside of memlock",
				"else RLIMIT_MEMLOCK bounds BPF's tables (before Linux 5.11)");
	struct err e = { "" };
	struct rlimit r = { 0 };
	int ret = try_memlock(&e);

	judge(b, ret, &e, true);
	if (ret <= 0)
		return;
	getrlimit(RLIMIT_MEMLOCK, &r);
	b->is = r.rlim_max == RLIM_INFINITY || caps_have(CAP_SYS_RESOURCE) ? ABILITY_INFO :
									     ABILITY_NO;
	snprintf(b->found, sizeof(b->found), "counts against RLIMIT_MEMLOCK; %s",
		 b->is == ABILITY_INFO ? "which we may raise" : "which we may not raise");
	b->needed = b->is == ABILITY_NO;
	if (b->needed)
		remedy_caps(b, ",cap_sys_resource");
}

/* ---- settings ---- */

/* First line of a file of /proc or /sys; -errno. */
static int first_line(const char *path, char *buf, size_t cap)
{
	CLEANUP(fclosep) FILE *f = fopen(path, "re");

	if (!f)
		return -errno;
	if (!fgets(buf, (int)cap, f))
		return -EIO;
	buf[strcspn(buf, "\n")] = 0;
	return 0;
}

/* A setting with its present value; @absent: what it means when the file is not there. */
static bool setting(struct ability *b, const char *path, const char *absent)
{
	char v[128] = "";
	int ret = first_line(path, v, sizeof(v));

	b->is = ret && ret != -ENOENT ? ABILITY_UNKNOWN : ABILITY_INFO;
	if (ret == -ENOENT)
		snprintf(b->found, sizeof(b->found), "%s", absent);
	else if (ret)
		snprintf(b->found, sizeof(b->found), "%s: %s", path, strerror(-ret));
	else
		snprintf(b->found, sizeof(b->found), "%s", v);
	return !ret;
}

static void test_paranoia(struct abilities *a)
{
	struct ability *b =
		add(a, ABILITY_SETTINGS, "perf_event_paranoid", "kernel.perf_event_paranoid",
		    "at 3 and 4 Debian's and Ubuntu's kernels want CAP_SYS_ADMIN for CPU profiles");

	setting(b, "/proc/sys/kernel/perf_event_paranoid", "this kernel has no perf events");
	b = add(a, ABILITY_SETTINGS, "unprivileged_bpf_disabled",
		"kernel.unprivileged_bpf_disabled", "does not matter to a holder of CAP_BPF");
	setting(b, "/proc/sys/kernel/unprivileged_bpf_disabled", "this kernel has no BPF calls");
	b = add(a, ABILITY_SETTINGS, "kptr_restrict", "kernel.kptr_restrict",
		"at 2 kernel functions have no names (--kernel)");
	if (setting(b, "/proc/sys/kernel/kptr_restrict", "not there") && b->found[0] == '2') {
		b->is = ABILITY_NO;
		snprintf(b->remedy, sizeof(b->remedy), "sysctl kernel.kptr_restrict=1");
	}
}

/* Each prober was loaded by now, so what it forbids them has been seen. */
static void test_lockdown(struct abilities *a)
{
	struct ability *b = add(
		a, ABILITY_SETTINGS, "lockdown", "kernel lockdown",
		"in confidentiality mode BPF may not read the kernel's memory, nor does it here");

	setting(b, "/sys/kernel/security/lockdown",
		"not there (no lockdown, or securityfs is not mounted)");
	if (bpf_old_blind()) {
		b->is = ABILITY_NO;
		snprintf(
			b->remedy, sizeof(b->remedy),
			"boot with lockdown=integrity, or Linux 5.15 or newer: before, ours have to");
	}
}

static void test_yama(struct abilities *a)
{
	struct ability *b =
		add(a, ABILITY_SETTINGS, "yama_ptrace_scope", "kernel.yama.ptrace_scope",
		    "at 1 and 2 own processes need CAP_SYS_PTRACE too; at 3 nobody may");

	if (!setting(b, "/proc/sys/kernel/yama/ptrace_scope", "not there: nothing is restricted"))
		return;
	if (b->found[0] == '3') {
		b->is = ABILITY_NO;
		b->needed = true;
		snprintf(b->remedy, sizeof(b->remedy),
			 "set kernel.yama.ptrace_scope to 2 or less in sysctl.conf and reboot: "
			 "3 cannot be taken back");
	} else if (b->found[0] != '0' && !caps_have(CAP_SYS_PTRACE)) {
		b->is = ABILITY_NO;
		snprintf(b->remedy, sizeof(b->remedy), "sysctl kernel.yama.ptrace_scope=0, or %s",
			 "run with CAP_SYS_PTRACE");
	}
}

static void test_namespaces(struct abilities *a)
{
	struct ability *b = add(a, ABILITY_SETTINGS, "pid_namespace", "pid namespace",
				"pids are those of this one; it sees what is in it or further in");
	struct err why = {};
	uint32_t ino;

	b->is = pidns_inode(&ino, &why) ? ABILITY_UNKNOWN : ABILITY_INFO;
	if (b->is == ABILITY_UNKNOWN)
		snprintf(b->found, sizeof(b->found), "%.200s", why.msg);
	else
		snprintf(b->found, sizeof(b->found), "%s",
			 ino ? "not the initial one" : "the initial one");
	b = add(a, ABILITY_SETTINGS, "user_namespace", "user namespace",
		"capabilities count in the initial one only");
	b->is = caps_initial_userns() ? ABILITY_INFO : ABILITY_NO;
	snprintf(b->found, sizeof(b->found), "%s",
		 b->is == ABILITY_INFO ? "the initial one" : "not the initial one");
	if (b->is == ABILITY_NO)
		snprintf(b->remedy, sizeof(b->remedy), "run goprof-bpf outside of it");
}

/* Nothing is tried on them: who uses a breakpoint shows only when it is freed (leftovers.h). */
static void test_leftovers(struct abilities *a)
{
	struct ability *b = add(a, ABILITY_SETTINGS, "leftovers", "breakpoints in Go programs",
				"those that a killed process left behind make a program slower");
	struct heal_sum sum;
	struct err e = { "" };

	if (heal_run(&(struct heal_opts){ .heal = false }, &sum, &e)) {
		b->is = ABILITY_UNKNOWN;
		snprintf(b->found, sizeof(b->found), "%s", e.msg);
		return;
	}
	b->is = ABILITY_INFO;
	snprintf(b->found, sizeof(b->found), "%zu in %zu processes%s", sum.found, sum.processes,
		 sum.found ? ": of probes at work, or left behind: 'goprof-bpf heal' frees those "
			     "that nobody uses" :
			     "");
	if (sum.denied + sum.left_out)
		snprintf(b->found + strlen(b->found), sizeof(b->found) - strlen(b->found),
			 "; %zu processes could not be looked at", sum.denied + sum.left_out);
	if (sum.unseen)
		snprintf(b->found + strlen(b->found), sizeof(b->found) - strlen(b->found),
			 "; %zu mappings of code could not be compared with their file",
			 sum.unseen);
}

/* ---- privileges ---- */

static void test_caps(struct abilities *a)
{
	static const struct {
		const char *id, *title, *purpose, *more;
		int cap;
	} rows[] = {
		{ "cap_bpf", "CAP_BPF", "CPU profiles and probes", "", CAP_BPF },
		{ "cap_perfmon", "CAP_PERFMON", "CPU profiles and probes", "", CAP_PERFMON },
		{ "cap_sys_ptrace", "CAP_SYS_PTRACE", "other users' processes", "",
		  CAP_SYS_PTRACE },
		{ "cap_syslog", "CAP_SYSLOG", "names of kernel functions (--kernel)", ",cap_syslog",
		  CAP_SYSLOG },
		{ "cap_dac_read_search", "CAP_DAC_READ_SEARCH",
		  "executables that only their owner may read", ",cap_dac_read_search",
		  CAP_DAC_READ_SEARCH },
	};
	bool reach = caps_initial_userns();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ability *b = add(a, ABILITY_PRIVILEGES, rows[i].id, rows[i].title,
					rows[i].purpose);
		bool have = caps_have(rows[i].cap);

		b->is = have && reach ? ABILITY_YES : ABILITY_NO;
		b->needed = i < 2;
		if (have && !reach)
			snprintf(b->found, sizeof(b->found), "in this user namespace only");
		else if (have && i < 2 && caps_have(CAP_SYS_ADMIN))
			snprintf(b->found, sizeof(b->found), "CAP_SYS_ADMIN would do as well");
		if (b->is)
			remedy_caps(b, rows[i].more);
	}
}

static void test_more_caps(struct abilities *a)
{
	static const struct {
		const char *id, *title, *purpose;
		int cap;
	} rows[] = {
		{ "cap_sys_resource", "CAP_SYS_RESOURCE",
		  "helpers are never killed for lack of memory; RLIMIT_MEMLOCK before Linux 5.11",
		  CAP_SYS_RESOURCE },
		{ "cap_checkpoint_restore", "CAP_CHECKPOINT_RESTORE",
		  "Go libraries whose file was deleted", CAP_CHECKPOINT_RESTORE },
		{ "cap_sys_admin", "CAP_SYS_ADMIN",
		  "not needed; stands in for CAP_BPF and CAP_PERFMON", CAP_SYS_ADMIN },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct ability *b = add(a, ABILITY_PRIVILEGES, rows[i].id, rows[i].title,
					rows[i].purpose);

		b->is = ABILITY_INFO;
		snprintf(b->found, sizeof(b->found), "%s",
			 caps_have(rows[i].cap) ? "there" : "not there");
	}
}

static void test_spared(struct abilities *a)
{
	struct ability *b = add(a, ABILITY_PRIVILEGES, "oom_spared", "helpers and the OOM killer",
				"a helper removes probes, and restores a rate, when we are killed");
	struct err e = { "" };
	int ret = try_spared(&e);

	b->is = ret && ret != -EACCES ? ABILITY_UNKNOWN : ABILITY_INFO;
	if (b->is == ABILITY_UNKNOWN)
		snprintf(b->found, sizeof(b->found), "%s", e.msg);
	else
		snprintf(b->found, sizeof(b->found), "%s",
			 ret ? "not spared: goprof-bpf is killed first (CAP_SYS_RESOURCE spares "
			       "them)" :
			       "spared");
}

/* Yama, a seccomp filter or AppArmor may forbid it to a holder of every capability. */
static void test_memory(struct abilities *a)
{
	struct ability *b = add(a, ABILITY_PRIVILEGES, "memory", "memory of this user's processes",
				"all profiles: what the program is, and where it keeps what");
	struct err e = { "" };
	int ret = try_own_memory(&e);

	b->needed = true;
	judge(b, ret, &e, false);
	if (!b->is)
		return;
	if (caps_have(CAP_SYS_PTRACE))
		snprintf(b->remedy, sizeof(b->remedy),
			 "a seccomp filter or a security module forbids it: AppArmor's profile of "
			 "goprof-bpf needs 'ptrace (read),'");
	else
		remedy_caps(b, "");
}

/* ---- profiles ---- */

/* For a kind of profile: checks all of the kernel's rows that it depends on. */
static void test_kind(struct abilities *a, const char *id, const char *title, const char *purpose,
		      const char *const *ids, size_t n)
{
	struct ability *b = add(a, ABILITY_PROFILES, id, title, purpose);

	b->needed = true;
	for (size_t i = 0; i < a->n; i++) {
		const struct ability *on = &a->at[i];

		for (size_t k = 0; k < n; k++) {
			if (strcmp(on->id, ids[k]) || on->is == ABILITY_YES || !on->needed || b->is)
				continue;
			/*
			 * What we are not allowed to do now counts as no, whatever the kernel
			 * could do.
			 */
			b->is = ABILITY_NO;
			snprintf(b->found, sizeof(b->found), "%s", on->found);
			snprintf(b->remedy, sizeof(b->remedy), "%s", on->remedy);
			if (on->is == ABILITY_UNKNOWN)
				remedy_caps(b, "");
		}
	}
}

static void test_own(struct abilities *a)
{
	static const char *const memory[] = { "memory" };
	static const struct {
		const char *id, *title, *purpose;
	} rows[] = {
		{ "heap_read", "--heap --source=read",
		  "the heap's own records, of this user's processes" },
		{ "block_read", "--block --mutex --source=read",
		  "the runtime's own records of waits, of this user's processes" },
		{ "goroutine", "--goroutine", "goroutines of this user's processes" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		test_kind(a, rows[i].id, rows[i].title, rows[i].purpose, memory, ARRAY_LEN(memory));
}

static void test_others(struct abilities *a)
{
	struct ability *b = add(a, ABILITY_PROFILES, "other_users", "other users' processes",
				"all kinds of profiles of them");
	struct err e = { "" };
	pid_t pid = 0;
	int ret = try_other_memory(&pid, &e);

	judge(b, ret, &e, false);
	if (!ret)
		snprintf(b->found, sizeof(b->found), "tried on pid %d", pid);
	else if (ret == -ENOENT)
		b->is = ABILITY_UNKNOWN;
	else
		remedy_caps(b, "");
}

static void test_names(struct abilities *a)
{
	struct ability *b = add(a, ABILITY_PROFILES, "kernel_names", "--cpu --kernel",
				"names of kernel functions in CPU profiles");
	struct err e = { "" };

	judge(b, kallsyms_shown(&e), &e, false);
	if (b->is)
		remedy_caps(b, ",cap_syslog");
}

void abilities_test(struct abilities *out)
{
	static const char *const cpu[] = { "arch",	  "btf",       "memory",     "memlock",
					   "ring_buffer", "perf_link", "cpu_program" };
	static const char *const heap[] = { "arch",    "btf",	      "memory",
					    "memlock", "ring_buffer", "heap_program" };
	static const char *const sched[] = { "arch",	"btf",	       "memory",
					     "memlock", "ring_buffer", "sched_program" };
	static const char *const wait[] = { "arch",    "btf",	      "memory",
					    "memlock", "ring_buffer", "wait_program" };

	*out = (struct abilities){ .n = 0 };
	test_arch(out);
	test_btf(out);
	test_memlock(out);
	test_objects(out);
	test_links(out);
	test_uprobes(out);
	test_growing(out);
	test_caps(out);
	test_more_caps(out);
	test_spared(out);
	test_memory(out);
	test_paranoia(out);
	test_lockdown(out);
	test_yama(out);
	test_namespaces(out);
	test_leftovers(out);
	test_kind(out, "cpu", "--cpu", "CPU profiles", cpu, ARRAY_LEN(cpu));
	test_own(out);
	test_kind(out, "heap_probe", "--heap --source=probe", "allocations from now on", heap,
		  ARRAY_LEN(heap));
	test_kind(out, "block_probe", "--block --mutex --source=probe", "waits from now on", sched,
		  ARRAY_LEN(sched));
	test_kind(out, "wait", "--wait", "every wait, by its reason", wait, ARRAY_LEN(wait));
	test_others(out);
	test_names(out);
}

bool abilities_enough(const struct abilities *a)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->at[i].needed &&
		    (a->at[i].is == ABILITY_NO || a->at[i].is == ABILITY_UNKNOWN))
			return false;
	return true;
}
