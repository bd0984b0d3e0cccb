/*
 * tests/support/leak_main.c - kill who puts probes in, in the middle of it, and see what is left.
 *
 *	leak PID N		N times: a child puts probes into the Go program PID and takes them out, again and
 *				again, until it is killed together with its attacher: by a cgroup's kill where
 *				there is one. What is left is counted before anything else runs, and freed
 *	leak -attacher PID N	the same with one child, whose attacher alone is killed N times: it frees what is
 *				left by itself. Only then is it counted
 *	leak -leave PID [N]	as the first, until something is left, which stays; at most N (400) times
 *	leak -plant PID BASE	writes bytes into its code, which the kernel leaves to tracers: lines of
 *				`cmp -l` on stdin say where, from BASE on, and what. PID stands still
 *				(SIGSTOP), and still does afterwards
 *
 * Prints a line "KILLS killed, TIMES left something: BREAKPOINTS breakpoints, LEFT at the end".
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "probe/uprobes/leftovers.h"
#include "subject/subject.h"
#include "probe/uprobes/uprobes.h"
#include "go/sites/probesite.h"

enum { SITES_MAX = 24, LEAVE_MOST = 400 };

static const char *const names[] = {
	"runtime.mallocgc",
	"runtime.mallocgcTiny",
	"runtime.mallocgcLarge",
	"runtime.newobject",
	"runtime.makeslice",
	"runtime.growslice",
	"runtime.gopark",
	"runtime.goready",
	"runtime.chansend",
	"runtime.chanrecv",
	"runtime.selectgo",
	"runtime.schedule",
	"runtime.execute",
	"runtime.newproc1",
	"runtime.goexit0",
	"runtime.mallocgcSmallNoscan",
	"runtime.mallocgcSmallScanNoHeader",
	"runtime.gcSweep",
	"runtime.findRunnable",
	"runtime.casgstatus",
	"runtime.gcStart",
};

struct tool {
	struct subject *s;
	struct uprobe_site sites[SITES_MAX];
	size_t nsites;
	char group[128]; /* a cgroup of its own; "" there is none */
	bool late;	 /* kills begin when probes have been put in once */
	unsigned times;	 /* that something was left */
	size_t left;	 /* in all */
};

static int find_sites(struct tool *t, struct err *e)
{
	struct gofunc f[ARRAY_LEN(names)] = { 0 };
	int ret = gobin_funcs_named(t->s->bin, names, ARRAY_LEN(names), f, e);

	if (ret < 0)
		return ret;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct probesite site;

		if (f[i].entry && !probesite_find(t->s->bin, &f[i], &site, NULL))
			t->sites[t->nsites++].file_off = site.file_off;
	}
	return t->nsites ? 0 : err_set(e, -ENOENT, "none of the functions is there");
}

/* ---- everything at once ---- */

static int write_to(const char *dir, const char *name, const char *text)
{
	CLEANUP(closep) int fd = -1;
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	return fd >= 0 && write(fd, text, strlen(text)) > 0 ? 0 : -1;
}

/* cgroup.kill came with Linux 5.14, on the unified hierarchy only. */
static void make_group(struct tool *t)
{
	static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	char path[256];

	for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
		snprintf(t->group, sizeof(t->group), "%s/goprof-leak-%d", roots[i], getpid());
		snprintf(path, sizeof(path), "%s/cgroup.kill", t->group);
		if (!mkdir(t->group, 0755) && !access(path, W_OK))
			return;
		rmdir(t->group);
	}
	t->group[0] = 0;
}

static void remove_group(struct tool *t)
{
	for (int i = 0; *t->group && rmdir(t->group) && i < 1000; i++)
		usleep(1000);
}

static pid_t attacher_of(pid_t child)
{
	CLEANUP(fclosep) FILE *f = NULL;
	char path[64];
	int pid = 0;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", child, child);
	f = fopen(path, "re");
	return f && fscanf(f, "%d", &pid) == 1 ? pid : 0;
}

static void kill_all(const struct tool *t, pid_t child)
{
	pid_t attacher = *t->group ? 0 : attacher_of(child);

	if (*t->group && !write_to(t->group, "cgroup.kill", "1"))
		return;
	kill(child, SIGKILL);
	if (attacher)
		kill(attacher, SIGKILL);
}

/* We are the subreaper: the attacher becomes our child. One that hangs is our end, and theirs. */
static void wait_for_all(void)
{
	alarm(60);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
	alarm(0);
}

/* ---- who is killed ---- */

static volatile sig_atomic_t stopped;

static void stop(int sig)
{
	(void)sig;
	stopped = 1;
}

/*
 * @ready: closed when kills may begin: in its cgroup, or later. An emulated machine needs as long to begin a
 * attacher as the longest wait before a kill.
 */
static void __attribute__((noreturn)) in_and_out(const struct tool *t, int ready)
{
	char path[64];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (*t->group)
		(void)write_to(t->group, "cgroup.procs", "0");
	if (!t->late)
		close(TAKE_FD(ready));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", t->s->target->exe_fd);
	signal(SIGTERM, stop);
	while (!stopped) {
		struct uprobes u = { 0 };
		int ret = uprobes_put(&u, NULL, uprobes_have_multi(), t->s->target->pid, path,
				      t->sites, t->nsites, NULL);

		if (ready >= 0)
			close(TAKE_FD(ready));
		/* The same attacher for some time, as in windows. */
		for (int i = 0; !ret && i < 20; i++) {
			ret = uprobes_detach(&u, NULL, NULL);
			if (!ret || ret == -ECHILD)
				ret = uprobes_attach_again(&u, NULL);
		}
		uprobes_free(&u);
		if (ret)
			_exit(1);
	}
	_exit(0);
}

static pid_t start_child(const struct tool *t)
{
	int ready[2] = { -1, -1 };
	pid_t pid;
	char none;

	if (pipe2(ready, O_CLOEXEC))
		return -1;
	pid = fork();
	if (!pid) {
		close(ready[0]);
		in_and_out(t, ready[1]);
	}
	close(ready[1]);
	(void)!read(ready[0], &none, 1);
	close(ready[0]);
	return pid;
}

static void some_time(unsigned i)
{
	usleep(2000 + i * 7919 % 61 * 1000);
}

/* ---- what is left ---- */

/* -EBUSY: breakpoints are there after healing. */
static int count_and_free(struct tool *t, bool keep, struct err *e)
{
	struct leftovers l = { 0 };
	int ret = leftovers_find(t->s->target, &l, e);

	t->times += !ret && l.at.n;
	t->left += l.at.n;
	if (!ret && !keep)
		ret = leftovers_heal(t->s->target, &l, e);
	if (!ret && !keep && l.freed != l.at.n)
		ret = err_set(e, -EBUSY, "%zu breakpoints, %zu could be freed", l.at.n, l.freed);
	leftovers_fini(&l);
	return ret;
}

static size_t breakpoints_now(struct tool *t)
{
	struct leftovers l = { 0 };
	size_t n = leftovers_find(t->s->target, &l, NULL) ? SIZE_MAX : l.at.n;

	leftovers_fini(&l);
	return n;
}

static int kill_everything(struct tool *t, unsigned n, bool leave, unsigned *killed, struct err *e)
{
	int ret = 0;

	for (*killed = 0; !ret && *killed < n && !(leave && t->times); ++*killed) {
		pid_t child = start_child(t);

		if (child < 0)
			return err_sys(e, "a child");
		some_time(*killed);
		kill_all(t, child);
		wait_for_all();
		ret = count_and_free(t, leave, e);
	}
	return ret;
}

static int kill_attachers(struct tool *t, unsigned n, unsigned *killed, struct err *e)
{
	pid_t child = start_child(t), attacher;

	if (child < 0)
		return err_sys(e, "a child");
	for (*killed = 0; *killed < n; ++*killed) {
		some_time(*killed);
		attacher = attacher_of(child);
		if (attacher > 0)
			kill(attacher, SIGKILL);
	}
	some_time(30);
	kill(child, SIGTERM); /* in an orderly way */
	wait_for_all();
	return count_and_free(t, false, e);
}

static int run(int argc, char **argv, struct tool *t, struct err *e)
{
	bool attacher = !strcmp(argv[1], "-attacher"), leave = !strcmp(argv[1], "-leave");
	pid_t pid = atoi(argv[1 + (attacher || leave)]);
	unsigned n = leave && argc == 3 ? LEAVE_MOST : (unsigned)atoi(argv[argc - 1]), killed = 0;
	struct collect_opts o = { 0 };
	int ret = subject_open(pid, &o, &t->s, e);

	if (!ret)
		ret = find_sites(t, e);
	if (!ret)
		ret = target_alive(t->s->target, e);
	if (ret)
		return ret;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	t->late = leave;
	if (!attacher)
		make_group(t);
	ret = attacher ? kill_attachers(t, n, &killed, e) :
			 kill_everything(t, n, leave, &killed, e);
	remove_group(t);
	printf("%u killed, %u left something: %zu breakpoints, %zu at the end\n", killed, t->times,
	       t->left, breakpoints_now(t));
	return ret;
}

/* ---- without a kill ---- */

static int poke(pid_t pid, uint64_t addr, unsigned char to)
{
	uint64_t word = addr & ~7ull;
	long was;

	errno = 0;
	was = ptrace(PTRACE_PEEKTEXT, pid, (void *)(uintptr_t)word, NULL);
	if (errno)
		return -errno;
	((unsigned char *)&was)[addr - word] = to;
	return ptrace(PTRACE_POKETEXT, pid, (void *)(uintptr_t)word, (void *)was) ? -errno : 0;
}

static int plant(pid_t pid, uint64_t base)
{
	unsigned long at;
	unsigned now;
	int ret = 0;

	if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) || waitpid(pid, NULL, __WALL) != pid)
		return -errno;
	while (!ret && scanf("%lu %o %*o", &at, &now) == 2)
		ret = poke(pid, base + at - 1, (unsigned char)now);
	if (ptrace(PTRACE_DETACH, pid, NULL, (void *)(uintptr_t)SIGSTOP))
		ret = -errno;
	return ret;
}

int main(int argc, char **argv)
{
	struct tool t = { 0 };
	struct err e = { 0 };
	int ret;

	uprobes_main(argc, argv);
	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: leak PID N | leak -attacher PID N | leak -leave PID [N]\n");
		return 2;
	}
	if (argc == 4 && !strcmp(argv[1], "-plant")) {
		ret = plant(atoi(argv[2]), strtoull(argv[3], NULL, 0));
		if (ret)
			fprintf(stderr, "leak: %s\n", strerror(-ret));
		return ret ? 1 : 0;
	}
	ret = run(argc, argv, &t, &e);
	if (ret)
		fprintf(stderr, "leak: %s\n", e.msg);
	subject_free(t.s);
	return ret ? 1 : 0;
}
