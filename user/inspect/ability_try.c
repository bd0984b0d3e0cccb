/* user/inspect/ability_try.c - tries everything that a profile does, on ourselves. */
#include <bpf/bpf.h>
#include <dirent.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "base/sys/caps.h"
#include "base/sys/oom.h"
#include "base/sys/process.h"
#include "inspect/ability_priv.h"
#include "probe/bpf.h"
#include "probe/uprobes/uprobes.h"
#include "target/host/pidns.h"
#include "target/target.h"
#include "cpu.skel.h"
#include "heap.skel.h"
#include "sched.skel.h"
#include "wait.skel.h"

/* r0 = 0; exit */
static const struct bpf_insn nothing[] = {
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
	{ .code = BPF_JMP | BPF_EXIT },
};

static int load(enum bpf_prog_type type, const char *what, int *fd, struct err *e)
{
	bpf_log_begin();
	*fd = bpf_prog_load(type, NULL, "GPL", nothing, ARRAY_LEN(nothing), NULL);
	return *fd < 0 ? bpf_load_error(e, *fd, what) : 0;
}

int try_perf_program(struct err *e)
{
	CLEANUP(closep) int fd = -1;

	return load(BPF_PROG_TYPE_PERF_EVENT, "a perf event program", &fd, e);
}

int try_uprobe_program(struct err *e)
{
	CLEANUP(closep) int fd = -1;

	return load(BPF_PROG_TYPE_KPROBE, "a uprobe program", &fd, e);
}

int try_btf(size_t *bytes, struct err *e)
{
	static const char path[] = "/sys/kernel/btf/vmlinux";
	CLEANUP(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint16_t magic = 0;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return err_sys(e, "%s", path);
	if (read(fd, &magic, sizeof(magic)) != sizeof(magic) || magic != 0xeB9F)
		return err_set(e, -EBADMSG, "%s does not start as BTF does", path);
	*bytes = (size_t)st.st_size;
	return 0;
}

int try_ring(struct err *e)
{
	CLEANUP(closep) int fd = -1;

	bpf_log_begin();
	fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "goprof_try", 0, 0,
			    (uint32_t)sysconf(_SC_PAGESIZE), NULL);
	return fd < 0 ? bpf_load_error(e, fd, "a ring buffer") : 0;
}

static int open_clock(int *fd, struct err *e)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.sample_period = 1000000000,
		.disabled = 1,
	};

	*fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (*fd < 0 && (errno == EACCES || errno == EPERM))
		return caps_refused_clock(e, "the kernel refused a CPU clock", caps_paranoia());
	return *fd < 0 ? err_sys(e, "perf_event_open") : 0;
}

int try_clock(struct err *e)
{
	CLEANUP(closep) int fd = -1;

	return open_clock(&fd, e);
}

int try_clock_link(struct err *e)
{
	CLEANUP(closep) int prog = -1;
	CLEANUP(closep) int clock = -1;
	CLEANUP(closep) int link = -1;
	int ret = load(BPF_PROG_TYPE_PERF_EVENT, "a perf event program", &prog, e);

	if (!ret)
		ret = open_clock(&clock, e);
	if (!ret)
		ret = bpf_put_on(prog, clock, 1, &link, e);
	return ret ? ret : link < 0;
}

int try_uprobe_pmu(unsigned *type, struct err *e)
{
	static const char path[] = "/sys/bus/event_source/devices/uprobe/type";
	CLEANUP(fclosep) FILE *f = fopen(path, "re");
	char line[32] = "";

	if (!f)
		return err_sys(e, "%s", path);
	if (!fgets(line, sizeof(line), f) || (*type = (unsigned)strtoul(line, NULL, 10)) == 0)
		return err_set(e, -EBADMSG, "%s holds no number", path);
	return 0;
}

/* The bare system call is used, because libbpf would raise the limit first. */
static int bare_map(void)
{
	union bpf_attr a;

	memset(&a, 0, sizeof(a));
	a.map_type = BPF_MAP_TYPE_ARRAY;
	a.key_size = 4;
	a.value_size = 4096;
	a.max_entries = 16;
	return (int)syscall(SYS_bpf, BPF_MAP_CREATE, &a, sizeof(a));
}

int try_memlock(struct err *e)
{
	CLEANUP(closep) int with = bare_map();
	CLEANUP(closep) int without = -1;
	struct rlimit was, none;

	if (with < 0)
		return err_sys(e, "a BPF map");
	if (getrlimit(RLIMIT_MEMLOCK, &was))
		return err_sys(e, "RLIMIT_MEMLOCK");
	none = (struct rlimit){ .rlim_cur = 0, .rlim_max = was.rlim_max };
	if (setrlimit(RLIMIT_MEMLOCK, &none))
		return err_sys(e, "RLIMIT_MEMLOCK");
	without = bare_map();
	setrlimit(RLIMIT_MEMLOCK, &was);
	return without < 0;
}

/* In a child, because a process that was spared once may be so again. */
int try_spared(struct err *e)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		return err_sys(e, "fork");
	if (!pid)
		_exit(-oom_spare(OOM_FILE, oom_raised()));
	status = process_wait(pid);
	if (!WIFEXITED(status))
		return err_set(e, -ECHILD, "the child that tried it died");
	errno = WEXITSTATUS(status);
	return errno ? err_sys(e, "%s", OOM_FILE) : 0;
}

static void cpu_freep(struct cpu_bpf **o)
{
	cpu_bpf__destroy(*o);
}

static void heap_freep(struct heap_bpf **o)
{
	heap_bpf__destroy(*o);
}

static void sched_freep(struct sched_bpf **o)
{
	sched_bpf__destroy(*o);
}

static void wait_freep(struct wait_bpf **o)
{
	wait_bpf__destroy(*o);
}

int try_cpu_object(struct err *e)
{
	CLEANUP(cpu_freep) struct cpu_bpf *o = NULL;
	uint32_t ino;
	int ret = pidns_inode(&ino, e);

	if (ret)
		return ret;
	bpf_log_begin();
	o = bpf_open(cpu);
	if (!o)
		return bpf_load_error(e, -errno, "the CPU sampler");
	bpf_prepare(o);
	o->rodata->pidns_ino = ino;
	o->rodata->period_ns = 10000000;
	o->rodata->step_ns = 10000000;
	ret = cpu_bpf__load(o);
	return ret ? bpf_load_error(e, ret, "the CPU sampler") : 0;
}

/* A probe is set on this function, which nobody calls. */
static __attribute__((noinline, used)) void landmark(void)
{
	__asm__ volatile("");
}

/* Offset of landmark() in our own file. */
static int landmark_offset(uint64_t *off, struct err *e)
{
	CLEANUP(target_freep) struct target *self = NULL;
	uint64_t addr = (uint64_t)(uintptr_t)landmark;
	const struct mapping *m;
	int ret = target_open(getpid(), &self, e);

	if (ret)
		return ret;
	m = maps_find(&self->maps, addr);
	if (!m)
		return err_set(e, -ENOENT, "our own code is not among our mappings");
	*off = addr - m->start + m->offset;
	return 0;
}

/* Loads @prog, attaches it to landmark(), and detaches it again. */
static int try_attach(struct bpf_program *prog, bool multi, struct err *e)
{
	struct uprobe_site site = { .addr = (uint64_t)(uintptr_t)landmark };
	struct uprobes probes = { 0 };
	int ret = landmark_offset(&site.file_off, e);

	if (!ret)
		ret = uprobes_put(&probes, prog, multi, getpid(), "/proc/self/exe", &site, 1, e);
	uprobes_free(&probes);
	return ret;
}

int try_heap_object(struct err *e)
{
	CLEANUP(heap_freep) struct heap_bpf *o = NULL;
	bool multi = uprobes_have_multi();
	int ret;

	bpf_log_begin();
	o = bpf_open(heap);
	if (!o)
		return bpf_load_error(e, -errno, "the heap prober");
	ret = bpf_prepare_cookies(o, e);
	if (ret)
		return ret;
	bpf_prepare(o);
	uprobes_prepare(o->progs.heap_alloc, multi);
	ret = heap_bpf__load(o);
	return ret ? bpf_load_error(e, ret, "the heap prober") :
		     try_attach(o->progs.heap_alloc, multi, e);
}

int try_wait_object(struct err *e)
{
	CLEANUP(wait_freep) struct wait_bpf *o = NULL;
	bool multi = uprobes_have_multi();
	int ret;

	bpf_log_begin();
	o = bpf_open(wait);
	if (!o)
		return bpf_load_error(e, -errno, "the status prober");
	ret = bpf_prepare_cookies(o, e);
	if (ret)
		return ret;
	bpf_prepare(o);
	uprobes_prepare(o->progs.wait_status, multi);
	ret = wait_bpf__load(o);
	return ret ? bpf_load_error(e, ret, "the status prober") :
		     try_attach(o->progs.wait_status, multi, e);
}

int try_sched_object(struct err *e)
{
	CLEANUP(sched_freep) struct sched_bpf *o = NULL;
	bool multi = uprobes_have_multi();
	struct bpf_program *prog;
	int ret;

	bpf_log_begin();
	o = bpf_open(sched);
	if (!o)
		return bpf_load_error(e, -errno, "the wait prober");
	ret = bpf_prepare_cookies(o, e);
	if (ret)
		return ret;
	bpf_prepare(o);
	bpf_object__for_each_program(prog, o->obj)
	{
		if (!strncmp(bpf_program__section_name(prog), "uprobe", 6))
			uprobes_prepare(prog, multi);
	}
	ret = sched_bpf__load(o);
	return ret ? bpf_load_error(e, ret, "the wait prober") :
		     try_attach(o->progs.sched_probe, multi, e);
}

/* Called in a child: returns 0, or the errno of reading @byte of its parent. */
static int read_parent(pid_t parent, const char *byte)
{
	char got = 0;
	struct iovec to = { &got, 1 }, from = { (void *)(uintptr_t)byte, 1 };

	if (process_vm_readv(parent, &to, 1, &from, 1, 0) == 1 && got == *byte)
		return 0;
	return errno ? errno : EIO;
}

/*
 * A child reads its parent: to Yama they are strangers, which they would not be the other way
 * round. A program with file capabilities is closed to its equals unless it says otherwise.
 */
int try_own_memory(struct err *e)
{
	static const char byte = 'g';
	int dumpable = prctl(PR_GET_DUMPABLE), status = 0;
	pid_t parent = getpid(), child;

	prctl(PR_SET_DUMPABLE, 1);
	child = fork();
	if (!child)
		_exit(read_parent(parent, &byte));
	if (child > 0)
		status = process_wait(child);
	if (dumpable == 0)
		prctl(PR_SET_DUMPABLE, 0);
	if (child < 0)
		return err_sys(e, "fork");
	if (!WIFEXITED(status))
		return err_set(e, -EIO, "the child that tries was killed");
	if (WEXITSTATUS(status))
		return err_set(e, -WEXITSTATUS(status), "process_vm_readv: %s",
			       strerror(WEXITSTATUS(status)));
	return 0;
}

static bool others(const char *name)
{
	char dir[32];
	struct stat st;

	if (name[0] < '1' || name[0] > '9' || strlen(name) > 10)
		return false;
	snprintf(dir, sizeof(dir), "/proc/%s", name);
	return !stat(dir, &st) && st.st_uid != geteuid();
}

/*
 * Nothing is mapped at address 0, but the kernel checks the permission first. Kernel threads have
 * no memory.
 */
static int try_pid(pid_t pid)
{
	char byte;
	struct iovec to = { &byte, 1 }, from = { NULL, 1 };

	return process_vm_readv(pid, &to, 1, &from, 1, 0) < 0 ? errno : 0;
}

int try_other_memory(pid_t *pid, struct err *e)
{
	DIR *proc = opendir("/proc");
	const struct dirent *d;
	int found = ENOENT;

	while (proc && found == ENOENT && (d = readdir(proc)) != NULL) {
		int code;

		if (!others(d->d_name))
			continue;
		*pid = (pid_t)strtol(d->d_name, NULL, 10);
		code = try_pid(*pid);
		if (code == EFAULT || code == EPERM)
			found = code;
	}
	if (proc)
		closedir(proc);
	if (found == EFAULT)
		return 0;
	return found == EPERM ?
		       err_set(e, -EPERM, "tried on pid %d: not allowed", *pid) :
		       err_set(e, -ENOENT, "no process of another user is here to try it on");
}

int ability_cpu(struct err *e)
{
	int ret = try_clock_link(e);

	return ret < 0 ? ret : 0;
}

int ability_uprobe(struct err *e)
{
	return try_uprobe_program(e);
}
