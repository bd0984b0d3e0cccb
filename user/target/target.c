/*
 * user/target/target.c - open one process, and tell whether it still is the one we opened.
 *
 * Every file of it is reached through one descriptor of its /proc directory, which is bound
 * to the process and not to the number, so a reused pid cannot slip in between two calls.
 */
#include "target/target.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/sys/caps.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/vec.h"
#include "target/host/container.h"
#include "target/handover.h"
#include "target/target_priv.h"

enum {
	STAT_MAX = 4096,
	STATUS_MAX = 65536,
	OPEN_TRIES = 20,
	OPEN_PAUSE_US = 2000,
	EXEC_TRIES = 100,
	EXEC_PAUSE_MS = 2, /* 0.2 s in all; it ends as soon as the process does */
	MAPS_TRIES = 20
};

static int yama_scope(void)
{
	CLEANUP(closep) int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	char c = '0';

	if (fd < 0 || read(fd, &c, 1) != 1 || c < '0' || c > '3')
		return 0;
	return c - '0';
}

int denied(pid_t pid, const char *what, struct err *e)
{
	int scope = yama_scope();

	if (scope == 3) /* of yama_ptrace_access_check(), security/yama/yama_lsm.c */
		return err_set(e, -EPERM,
			       "pid %d: not allowed to %s: kernel.yama.ptrace_scope is 3, which "
			       "forbids it to root as well, until the next boot",
			       pid, what);
	if (caps_have(CAP_SYS_PTRACE)) {
		static const int ptrace[] = { CAP_SYS_PTRACE };
		char refused[128];

		snprintf(refused, sizeof(refused), "pid %d: not allowed to %s", pid, what);
		return caps_refused(e, refused, ptrace, 1);
	}
	if (scope)
		return err_set(e, -EPERM,
			       "pid %d: not allowed to %s: run as root or add CAP_SYS_PTRACE "
			       "(kernel.yama.ptrace_scope is %d)",
			       pid, what, scope);
	return err_set(e, -EPERM, "pid %d: not allowed to %s: run as root or add CAP_SYS_PTRACE",
		       pid, what);
}

static int exited(const struct target *t, struct err *e)
{
	if (t->comm[0])
		return err_set(e, -ESRCH, "pid %d (%s) exited", t->pid, t->comm);
	return err_set(e, -ESRCH, "pid %d exited", t->pid);
}

bool target_has_number(const struct target *t)
{
	return !syscall(SYS_pidfd_send_signal, t->pidfd, 0, NULL, 0) || errno != ESRCH;
}

int target_dir(const struct target *t, int *own, struct err *e)
{
	char dir[32];

	if (t->proc_fd >= 0)
		return t->proc_fd;
	snprintf(dir, sizeof(dir), "/proc/%d", t->pid);
	*own = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*own < 0 && errno != ENOENT && errno != ESRCH)
		return err_sys(e, "cannot open %s", dir);
	return *own < 0 || !target_has_number(t) ? exited(t, e) : *own;
}

int target_read_here(struct target *t, const char *name, size_t max, char **text, size_t *len,
		     struct err *e)
{
	CLEANUP(closep) int own = -1;
	int dir = target_dir(t, &own, e);

	return dir < 0 ? dir : procfs_read(dir, name, max, text, len, e);
}

/* Reads a file of /proc/PID; an error is described in terms of this process. */
static int read_proc(struct target *t, const char *name, size_t max, char **text, size_t *len,
		     struct err *e)
{
	int ret = target_read(t, name, max, text, len, e);

	if (ret == -ESRCH)
		return exited(t, e);
	if (ret == -EPERM)
		return denied(t->pid, "look at it", e);
	return ret ? err_wrap(e, ret, "pid %d", t->pid) : 0;
}

static int read_stat(struct target *t, struct procstat *st, struct err *e)
{
	CLEANUP(freep) char *text = NULL;
	size_t len;
	int ret;

	ret = read_proc(t, "stat", STAT_MAX, &text, &len, e);
	if (!ret)
		ret = procstat_parse(text, len, st, e);
	return ret;
}

static int read_comm(struct target *t, char comm[16], struct err *e)
{
	CLEANUP(freep) char *text = NULL;
	size_t len;
	int ret;

	ret = read_proc(t, "comm", STAT_MAX, &text, &len, e);
	if (ret)
		return ret;
	if (len && text[len - 1] == '\n')
		text[len - 1] = 0;
	snprintf(comm, 16, "%.15s", text);
	text_clean(comm);
	return 0;
}

static int check_not_thread(struct target *t, struct err *e)
{
	CLEANUP(freep) char *text = NULL;
	pid_t tgid;
	size_t len;
	int ret;

	ret = read_proc(t, "status", STATUS_MAX, &text, &len, e);
	if (!ret)
		ret = procstatus_tgid(text, len, &tgid, e);
	if (ret)
		return ret;
	if (tgid != t->pid)
		return err_set(e, -ENOENT, "%d is a thread of the process %d: give that pid",
			       t->pid, tgid);
	return 0;
}

static int no_such_pid(pid_t pid, struct err *e)
{
	return err_set(e, -ESRCH, "no process with pid %d", pid);
}

/*
 * A /proc that was mounted for another pid namespace (`unshare --pid` without --mount-proc) has
 * directories for other processes than those that the system calls mean by the same numbers.
 */
static int check_proc(struct err *e)
{
	char self[16] = "", ours[16];

	snprintf(ours, sizeof(ours), "%d", getpid());
	if (readlink("/proc/self", self, sizeof(self) - 1) > 0 && !strcmp(self, ours))
		return 0;
	if (access("/proc/sys", F_OK))
		return err_set(e, -ENOENT, "there is no /proc here: mount it");
	return err_set(
		e, -ENOTSUP,
		"/proc is that of another pid namespace (we are %s there and %s here): mount "
		"the /proc of this one",
		*self ? self : "nothing", ours);
}

/*
 * proc_fd is opened first: when it can still be read after pidfd was opened, both are the same
 * process.
 */
static int hold(struct target *t, struct err *e)
{
	char dir[32];
	int ret;

	if (t->pid <= 0)
		return no_such_pid(t->pid, e);
	ret = check_proc(e);
	if (ret)
		return ret;
	snprintf(dir, sizeof(dir), "/proc/%d", t->pid);
	t->proc_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (t->proc_fd < 0 && errno != ENOENT && errno != ESRCH)
		return errno == EACCES || errno == EPERM ? denied(t->pid, "look at it", e) :
							   err_sys(e, "cannot open %s", dir);
	if (t->proc_fd >= 0)
		ret = check_not_thread(t, e);
	if (ret)
		return ret;
	t->pidfd = (int)syscall(SYS_pidfd_open, t->pid, 0);
	if (t->pidfd < 0 && errno == ENOSYS)
		return err_set(e, -ENOTSUP, "this kernel has no pidfd_open: 5.3 or newer needed");
	if (t->pidfd < 0)
		return errno == ESRCH ? no_such_pid(t->pid, e) :
					err_sys(e, "pid %d: pidfd_open", t->pid);
	if (t->proc_fd < 0)
		return err_set(e, -EPERM,
			       "pid %d is not in /proc: run as root (hidepid), or with the /proc "
			       "of its pid namespace",
			       t->pid);
	return 0;
}

/* Refuses processes that have no program to look at. */
static int check_program(struct target *t, const struct procstat *st, struct err *e)
{
	if (st->flags & PROCSTAT_KTHREAD)
		return err_set(e, -ENOENT, "pid %d is a kernel thread (%s)", t->pid, t->comm);
	if (st->state == 'Z' || st->state == 'X')
		return err_set(
			e, -ENOENT,
			"pid %d is a zombie (%s): it has exited already, or its first thread has",
			t->pid, t->comm);
	return 0;
}

static bool same_file_at(int dir_fd, const char *path, const struct stat *exe)
{
	struct stat st;

	return !fstatat(dir_fd, path, &st, 0) && st.st_dev == exe->st_dev &&
	       st.st_ino == exe->st_ino;
}

/*
 * Is the file at that path still the one that runs? The path is looked up in the target's root
 * and in ours, because in a chroot without a mount namespace the link shows the path from our
 * root.
 */
static bool still_there(const struct target *t, const char *path, const struct stat *exe)
{
	char inside[sizeof(t->exe) + 8];

	snprintf(inside, sizeof(inside), "root%s", path);
	return same_file_at(t->proc_fd, inside, exe) || same_file_at(AT_FDCWD, path, exe);
}

/* The link could be read, so we may look at this process: it is the file that we may not read. */
static int exe_unreadable(const struct target *t, struct err *e)
{
	static const int search[] = { CAP_DAC_READ_SEARCH };
	char what[128];
	struct stat st;

	if (fstatat(t->proc_fd, "exe", &st, 0))
		return denied(t->pid, "read its executable", e);
	snprintf(what, sizeof(what), "pid %d: its executable has mode %04o and belongs to uid %u",
		 t->pid, st.st_mode & 07777, st.st_uid);
	return caps_refused(e, what, search, 1);
}

static int open_exe(struct target *t, struct err *e)
{
	static const char mark[] = " (deleted)";
	ssize_t n = readlinkat(t->proc_fd, "exe", t->exe, sizeof(t->exe) - 1);
	size_t len = sizeof(mark) - 1;
	struct stat st;

	if (n < 0 && errno == ENAMETOOLONG)
		n = 0; /* the path is too long to be shown; only the descriptor matters */
	else if (n < 0 && (errno == EACCES || errno == EPERM))
		return denied(t->pid, "look at its executable", e);
	else if (n < 0)
		return errno == ENOENT || errno == ESRCH ? exited(t, e) :
							   err_sys(e, "/proc/%d/exe", t->pid);
	t->exe[n] = 0;

	t->exe_fd = openat(t->proc_fd, "exe", O_RDONLY | O_CLOEXEC);
	if (t->exe_fd < 0 && (errno == EACCES || errno == EPERM))
		return exe_unreadable(t, e);
	if (t->exe_fd < 0)
		return errno == ENOENT || errno == ESRCH ? exited(t, e) :
							   err_sys(e, "/proc/%d/exe", t->pid);
	if (fstat(t->exe_fd, &st))
		return err_sys(e, "/proc/%d/exe", t->pid);
	t->exe_id = file_id_of(&st);
	t->exe_local = !handover_is_foreign(t->exe_fd);
	t->exe_deleted = n && !still_there(t, t->exe, &st);
	if (t->exe_deleted && (size_t)n > len && !strcmp(t->exe + n - len, mark))
		t->exe[(size_t)n - len] = 0;
	return 0;
}

static int read_maps(struct target *t, struct maps *out, struct err *e)
{
	CLEANUP(freep) char *text = NULL;
	size_t len;
	int ret;

	ret = read_proc(t, "maps", LIMIT_MAPS_BYTES, &text, &len, e);
	if (ret)
		return ret;
	if (len == 0) /* it has no address space: it is exiting */
		return exited(t, e);
	ret = maps_parse(text, len, out, e);
	return ret ? err_wrap(e, ret, "pid %d", t->pid) : 0;
}

int target_maps_now(struct target *t, struct maps *out, struct err *e)
{
	int ret = -EBADMSG;

	for (int i = 0; i < MAPS_TRIES && ret == -EBADMSG; i++)
		ret = read_maps(t, out, e);
	return ret;
}

int target_maps(struct target *t, struct err *e)
{
	struct maps m = { 0 };
	int ret = target_maps_now(t, &m, e);

	if (ret)
		return ret;
	maps_fini(&t->maps);
	t->maps = m;
	return 0;
}

/*
 * Once is no proof: while a thread's exec takes the leader's place, the kernel may say so of one that lives on. Source:
 * pidfd_poll() in fs/pidfs.c reads task->exit_state and delay_group_leader() without a lock, de_thread() in fs/exec.c (measured in
 * Linux 6.18: one of 8,000 such execs that were polled all the time, and no second time).
 */
static bool pidfd_exited(const struct target *t)
{
	struct pollfd p = { .fd = t->pidfd, .events = POLLIN };

	return poll(&p, 1, 0) > 0 && poll(&p, 1, 0) > 0;
}

/*
 * 0: it is the same program. 1: another one. -ESRCH: it exited. -EAGAIN: it exits, or is in the middle
 * of exec, which look alike for a moment: the leader is a zombie while another thread takes its
 * place (de_thread() in fs/exec.c), and then the new memory has no stack yet (setup_arg_pages()).
 */
static int changed_now(struct target *t, struct err *e)
{
	struct procstat st;
	int ret;

	if (pidfd_exited(t))
		return exited(t, e);
	ret = read_stat(t, &st, e);
	if (ret)
		return ret;
	if (st.state == 'Z' || st.state == 'X')
		return -EAGAIN;
	if (st.start_ticks != t->start_ticks)
		return 1;
	if ((t->resting || t->worker || memproc_alive(t->mem)) && st.start_stack == t->start_stack)
		return 0;
	return st.start_stack ? 1 : -EAGAIN;
}

/* As changed_now(), but what exits or is in the middle of exec is given the time to end that. */
static int changed(struct target *t, struct err *e)
{
	struct pollfd p = { .fd = t->pidfd, .events = POLLIN };

	for (int i = 0; i < EXEC_TRIES; i++) {
		int ret = changed_now(t, e);

		if (ret != -EAGAIN)
			return ret;
		(void)poll(&p, 1, EXEC_PAUSE_MS);
	}
	/* The leader has ended and other threads go on, or the exit itself takes long. */
	return exited(t, e);
}

int target_alive(struct target *t, struct err *e)
{
	int ret = changed(t, e);
	char now[16];

	if (ret <= 0)
		return ret;
	t->became = true;
	ret = read_comm(t, now, e);
	if (ret)
		return ret;
	return err_set(e, -ESRCH, "pid %d (%s) became another program (exec of %s)", t->pid,
		       t->comm, now);
}

/*
 * In the middle of exec the memory is new, but the program is not mapped and the stack has
 * no place yet. The auxiliary vector is filled in when both are done (create_elf_tables()
 * in fs/binfmt_elf.c). It is a file of the target's owner, so that CAP_SYS_PTRACE alone does
 * not open it; stat's start_code, which that capability shows, is set right after.
 * -EAGAIN: not yet.
 */
static int check_loaded(struct target *t, struct err *e)
{
	CLEANUP(freep) char *text = NULL;
	struct procstat st;
	uint64_t first = 0;
	size_t len;
	int ret;

	ret = procfs_read(t->proc_fd, "auxv", STATUS_MAX, &text, &len, NULL);
	if (ret == -EPERM) {
		ret = read_stat(t, &st, e);
		return ret ? ret : st.start_code ? 0 : -EAGAIN;
	}
	if (ret == -ESRCH)
		return exited(t, e);
	if (ret)
		return err_set(e, ret, "pid %d: cannot read auxv: %s", t->pid, strerror(-ret));
	if (len >= sizeof(first))
		memcpy(&first, text, sizeof(first));
	return first ? 0 : -EAGAIN;
}

/* -EAGAIN: the process called exec meanwhile, so what was read belongs to two programs. */
static int open_once(struct target *t, struct err *e)
{
	struct procstat st;
	int ret;

	ret = hold(t, e);
	if (!ret)
		ret = read_comm(t, t->comm, e);
	if (!ret)
		ret = read_stat(t, &st, e);
	if (!ret)
		ret = check_program(t, &st, e);
	if (!ret)
		ret = memproc_new(t->pid, t->proc_fd, &t->mem, e);
	if (!ret)
		ret = check_loaded(t, e);
	/* The stack is read again now that the memory is held: it is this memory's stack. */
	if (!ret)
		ret = read_stat(t, &st, e);
	if (ret)
		return ret;
	t->start_ticks = st.start_ticks;
	t->start_stack = st.start_stack;

	ret = open_exe(t, e);
	if (!ret)
		ret = target_maps(t, e);
	if (!ret)
		ret = bias_find(t->exe_fd, t->exe, &t->maps, &t->bias, e);
	if (ret == -ESRCH || ret == -EPERM)
		return ret;
	t->opened_ns = now_ns();
	/*
	 * This check comes before any other complaint, because half of another program can look
	 * like anything.
	 */
	if (changed(t, NULL) > 0)
		return -EAGAIN;
	return ret ? ret : target_alive(t, e);
}

int target_open(pid_t pid, struct target **out, struct err *e)
{
	for (int i = 0; i < OPEN_TRIES; i++) {
		CLEANUP(target_freep) struct target *t = calloc(1, sizeof(*t));
		int ret;

		if (!t)
			return err_set(e, -ENOMEM, "no memory for a target");
		t->pid = pid;
		t->pidfd = t->exe_fd = t->proc_fd = -1;
		ret = open_once(t, e);
		if (!ret)
			*out = TAKE(t);
		if (ret != -EAGAIN)
			return ret;
		usleep(OPEN_PAUSE_US);
	}
	return err_set(e, -ESRCH, "pid %d became another program (exec) while it was opened", pid);
}

static void forget(int *fd)
{
	closep(fd);
	*fd = -1;
}

static void close_libs(struct target *t)
{
	for (size_t i = 0; i < t->nlibs; i++)
		forget(&t->libs[i].fd);
	t->nlibs = 0;
	t->libs_only = false;
}

void target_free(struct target *t)
{
	if (!t || __atomic_fetch_sub(&t->refs, 1, __ATOMIC_ACQ_REL))
		return;
	target_pool_leave(t);
	close_libs(t);
	memproc_free(t->mem);
	maps_fini(&t->maps);
	closep(&t->exe_fd);
	closep(&t->pidfd);
	closep(&t->proc_fd);
	free(t);
}

void target_rest(struct target *t)
{
	if (t->silent)
		return;
	target_pool_leave(t);
	close_libs(t);
	forget(&t->exe_fd);
	if (t->resting)
		return;
	forget(&t->proc_fd);
	memproc_rest(t->mem, t);
	t->resting = true;
}

int target_wake(struct target *t, struct err *e)
{
	struct target_files f = TARGET_NO_FILES;
	int ret = t->resting ? target_files(t, &f, e) : 0;

	if (ret || !t->resting)
		return ret;
	memproc_wake(t->mem, &f);
	target_files_close(&f);
	t->resting = false;
	return 0;
}

int target_same(const struct target *t, int dir, struct err *e)
{
	CLEANUP(freep) char *text = NULL;
	struct procstat st;
	size_t len;
	int ret = procfs_read(dir, "stat", STAT_MAX, &text, &len, e);

	if (!ret)
		ret = procstat_parse(text, len, &st, e);
	if (ret)
		return ret;
	if (st.start_ticks != t->start_ticks || st.start_stack != t->start_stack)
		return err_set(e, -ESRCH, "pid %d exited or became another program", t->pid);
	return 0;
}

struct file_id file_id_of(const struct stat *st)
{
	return (struct file_id){ .dev = st->st_dev,
				 .ino = st->st_ino,
				 .size = (uint64_t)st->st_size,
				 .mtime_ns = st->st_mtim.tv_sec * 1000000000ll +
					     st->st_mtim.tv_nsec };
}

static int by_number(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

struct tids {
	VEC(pid_t) v;
};

static void tidsp(struct tids *t)
{
	vec_fini(&t->v);
}

static int add_tid(struct target *t, struct tids *v, const char *name, struct err *e)
{
	struct cur c = cur_of("task", name, strlen(name));
	uint64_t tid;
	pid_t *slot;

	if (!text_u64(&c, "thread id", 10, &tid) || cur_left(&c) || tid > INT32_MAX)
		return 0; /* "." and ".." */
	slot = vec_add(&v->v, LIMIT_THREADS);
	if (!slot && v->v.n >= LIMIT_THREADS)
		return err_set(e, -E2BIG, "pid %d has more than %d threads", t->pid, LIMIT_THREADS);
	if (!slot)
		return err_set(e, -ENOMEM, "no memory for %zu threads", v->v.n);
	*slot = (pid_t)tid;
	return 0;
}

int target_threads(struct target *t, pid_t **tids, size_t *n, struct err *e)
{
	CLEANUP(closep) int own = -1;
	int at = target_dir(t, &own, e);
	int fd = at < 0 ? at : openat(at, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(closedirp) DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	CLEANUP(tidsp) struct tids v = { 0 };

	if (at < 0)
		return at;
	if (!d) {
		int code = errno;

		closep(&fd);
		errno = code;
		return code == ENOENT || code == ESRCH ? exited(t, e) :
							 err_sys(e, "/proc/%d/task", t->pid);
	}
	for (;;) {
		struct dirent *de;
		int ret;

		errno = 0;
		de = readdir(d);
		if (!de && errno && errno != ENOENT && errno != ESRCH)
			return err_sys(e, "/proc/%d/task", t->pid);
		if (!de)
			break;
		ret = add_tid(t, &v, de->d_name, e);
		if (ret)
			return ret;
	}
	if (!v.v.n)
		return exited(t, e);
	qsort(v.v.at, v.v.n, sizeof(*v.v.at), by_number);
	*n = v.v.n;
	*tids = TAKE(v.v.at);
	return 0;
}

int64_t target_started(const struct target *t)
{
	int64_t real_s = (int64_t)(clock_ns(CLOCK_REALTIME) / NS_PER_S);
	int64_t boot_s = (int64_t)(clock_ns(CLOCK_BOOTTIME) / NS_PER_S);
	long hz = sysconf(_SC_CLK_TCK);

	if (!real_s || !boot_s || hz <= 0)
		return 0;
	return real_s - boot_s + (int64_t)(t->start_ticks / (uint64_t)hz);
}

void target_cgroup(const struct target *t, char *buf, size_t cap)
{
	CLEANUP(freep) char *text = NULL;
	CLEANUP(closep) int own = -1;
	int dir = target_dir(t, &own, NULL);
	size_t len;

	*buf = 0;
	if (dir >= 0 && !procfs_read(dir, "cgroup", LIMIT_CGROUP, &text, &len, NULL))
		container_path(text, buf, cap);
}

int target_tracer(struct target *t, pid_t *tracer, struct err *e)
{
	CLEANUP(freep) pid_t *tids = NULL;
	size_t n = 0;
	int ret = target_threads(t, &tids, &n, e);

	*tracer = 0;
	for (size_t i = 0; !ret && !*tracer && i < n; i++) {
		CLEANUP(freep) char *text = NULL;
		char name[64];
		size_t len;

		snprintf(name, sizeof(name), "task/%d/status", tids[i]);
		if (target_read_here(t, name, STATUS_MAX, &text, &len, NULL))
			continue; /* it has ended */
		ret = procstatus_tracer(text, len, tracer, e);
	}
	return ret;
}

int target_cpu_ns(struct target *t, uint64_t *ns, struct err *e)
{
	uint64_t tick_ns = 1000000000u / (uint64_t)sysconf(_SC_CLK_TCK), ticks, v;
	struct procstat st;
	int ret;

	ret = read_stat(t, &st, e);
	if (ret)
		return ret;
	if (__builtin_add_overflow(st.utime_ticks, st.stime_ticks, &ticks) ||
	    __builtin_mul_overflow(ticks, tick_ns, &v))
		return err_set(e, -EBADMSG, "pid %d: stat says %llu + %llu ticks", t->pid,
			       (unsigned long long)st.utime_ticks,
			       (unsigned long long)st.stime_ticks);
	*ns = v;
	return 0;
}
