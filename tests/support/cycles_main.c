/*
 * tests/support/cycles_main.c - attaches and detaches again and again, and looks for what is
 * left.
 *
 * 	cycles PID N	opens PID, starts a CPU and a heap collector (by probe), stops them, N times;
 * 			fails when descriptors or resident memory grow over the cycles
 * 	cycles -kill PID N	the same in a child that is killed N times, around the moment when it
 * 			puts probes in or takes them out; each time the code must be whole again
 * 	cycles -left UID	how many BPF programs and links that UID made the kernel holds
 */
#include <bpf/bpf.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "base/vec.h"
#include "probe/uprobes/uprobes.h"
#include "collect/collect.h"
#include "target/target.h"

enum { WARM_UP = 20, RSS_MAY_GROW_KB = 2048 };

struct usage {
	size_t fds, rss_kb;
};

static size_t count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	size_t n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static struct usage usage_now(void)
{
	CLEANUP(fclosep) FILE *f = fopen("/proc/self/statm", "re");
	unsigned long pages = 0;

	if (f && fscanf(f, "%*s %lu", &pages) != 1)
		pages = 0;
	return (struct usage){ .fds = count_fds(), .rss_kb = pages * 4 };
}

static int stop_one(const struct collector *c, void *state, struct err *e)
{
	CLEANUP(prof_freep) struct prof *p = NULL;
	int ret = c->stop(state, &p, e);

	c->free(state);
	return ret;
}

/*
 * A random pause: the kill comes between the middle of attaching and a few milliseconds into the
 * window.
 */
static void pause_a_bit(unsigned i)
{
	struct timespec t = { .tv_nsec = (i * 7919 % 10) * 1000000 };

	nanosleep(&t, NULL);
}

static int cycle(pid_t pid, unsigned i, struct err *e)
{
	static const struct collector *const kinds[] = { &collector_cpu, &collector_heap };
	struct collect_opts o = { .cpu.hz = 1000, .heap.rate = 4096, .source = SOURCE_PROBE };
	CLEANUP(subject_freep) struct subject *s = NULL;
	void *state[ARRAY_LEN(kinds)] = { NULL };
	int ret, first = 0;

	ret = subject_open(pid, &o, &s, e);
	if (ret)
		return ret;
	for (size_t k = 0; k < ARRAY_LEN(kinds) && !first; k++)
		first = kinds[k]->start(s, &o, &state[k], e);
	if (!first)
		pause_a_bit(i);
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
		/* Every third one is freed without being asked for its profile. */
		if (state[k] && i % 3 == 2)
			kinds[k]->free(state[k]);
		else if (state[k])
			ret = stop_one(kinds[k], state[k], first ? NULL : e);
		first = first ? first : ret;
	}
	return first;
}

static int cycles(pid_t pid, unsigned n, struct err *e)
{
	struct usage before = { 0 }, after;

	for (unsigned i = 0; i < n; i++) {
		int ret = cycle(pid, i, e);

		if (ret)
			return err_wrap(e, ret, "cycle %u", i);
		if (i == (n > 2 * WARM_UP ? WARM_UP : n / 2))
			before = usage_now();
	}
	after = usage_now();
	printf("%u cycles: %zu descriptors, then %zu; %zu kB resident, then %zu\n", n, before.fds,
	       after.fds, before.rss_kb, after.rss_kb);
	if (after.fds != before.fds)
		return err_set(e, -EMFILE, "descriptors are left open");
	if (after.rss_kb > before.rss_kb + RSS_MAY_GROW_KB)
		return err_set(e, -ENOMEM, "memory is left");
	return 0;
}

/* ---- killed ---- */

struct code {
	int fd;
	uint64_t addr;
	size_t len;
	char *was, *now;
};

static int code_open(pid_t pid, struct code *c, struct err *e)
{
	CLEANUP(target_freep) struct target *t = NULL;
	char path[32];
	int ret = target_open(pid, &t, e);

	if (ret)
		return ret;
	for (size_t i = 0; i < t->maps.n && !c->len; i++)
		if (t->maps.at[i].exec && t->maps.at[i].inode) {
			c->addr = t->maps.at[i].start;
			c->len = t->maps.at[i].end - t->maps.at[i].start;
		}
	c->was = malloc(c->len);
	c->now = malloc(c->len);
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	c->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (!c->was || !c->now || c->fd < 0 ||
	    pread(c->fd, c->was, c->len, (off_t)c->addr) != (ssize_t)c->len)
		return err_sys(e, "the code of pid %d", pid);
	return 0;
}

static bool code_changed(const struct code *c)
{
	return pread(c->fd, c->now, c->len, (off_t)c->addr) != (ssize_t)c->len ||
	       memcmp(c->was, c->now, c->len) != 0;
}

/* Waits until the code has changed, or is whole again, for ten seconds at most. */
static bool code_becomes(const struct code *c, bool changed)
{
	for (int i = 0; i < 10000; i++) {
		if (code_changed(c) == changed)
			return true;
		usleep(1000);
	}
	return false;
}

static int kill_one(pid_t pid, const struct code *c, unsigned i, struct err *e)
{
	pid_t child = fork();

	if (!child)
		for (unsigned k = i;; k++)
			if (cycle(pid, k, NULL))
				_exit(1);
	if (!code_becomes(c, true))
		return err_set(e, -ETIMEDOUT, "kill %u: no probe was ever in place", i);
	/* from the first probe to well after the beginning of taking them out */
	usleep(i * 7919 % 50 * 1000);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	if (!code_becomes(c, false))
		return err_set(e, -EBUSY, "kill %u: probes are left in its code", i);
	return 0;
}

static int kills(pid_t pid, unsigned n, struct err *e)
{
	struct code c = { 0 };
	int ret = code_open(pid, &c, e);

	for (unsigned i = 0; i < n && !ret; i++)
		ret = kill_one(pid, &c, i, e);
	free(c.was);
	free(c.now);
	if (!ret)
		printf("killed %u times around attaching and detaching: its code is whole\n", n);
	return ret;
}

/* ---- what the kernel holds ---- */

struct ids {
	VEC(uint32_t) v;
};

/* Counts the programs of @uid; the kernel's list of them may change meanwhile. */
static size_t programs_of(uint32_t uid, struct ids *out)
{
	uint32_t id = 0, *slot;

	while (!bpf_prog_get_next_id(id, &id)) {
		CLEANUP(closep) int fd = bpf_prog_get_fd_by_id(id);
		struct bpf_prog_info info = { 0 };
		uint32_t len = sizeof(info);

		if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len) || info.created_by_uid != uid)
			continue;
		slot = vec_add(&out->v, 1u << 20);
		if (slot)
			*slot = id;
	}
	return out->v.n;
}

static size_t links_of(const struct ids *progs)
{
	uint32_t id = 0;
	size_t n = 0;

	while (!bpf_link_get_next_id(id, &id)) {
		CLEANUP(closep) int fd = bpf_link_get_fd_by_id(id);
		struct bpf_link_info info = { 0 };
		uint32_t len = sizeof(info);

		if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &len))
			continue;
		for (size_t i = 0; i < progs->v.n; i++)
			n += progs->v.at[i] == info.prog_id;
	}
	return n;
}

int main(int argc, char **argv)
{
	struct err e = { 0 };
	int ret;

	uprobes_main(argc, argv);
	if (argc < 3 || argc != 3 + !strcmp(argv[1], "-kill")) {
		fprintf(stderr, "usage: cycles [-kill] PID N | cycles -left UID\n");
		return 2;
	}
	if (!strcmp(argv[1], "-left")) {
		struct ids progs = { 0 };
		size_t n = programs_of((uint32_t)atoi(argv[2]), &progs);

		printf("%zu programs, %zu links\n", n, links_of(&progs));
		vec_fini(&progs.v);
		return 0;
	}
	if (!strcmp(argv[1], "-kill"))
		ret = kills(atoi(argv[2]), (unsigned)atoi(argv[3]), &e);
	else
		ret = cycles(atoi(argv[1]), (unsigned)atoi(argv[2]), &e);
	if (ret)
		fprintf(stderr, "cycles: %s\n", e.msg);
	return ret ? 1 : 0;
}
