/*
 * tests/support/windows_main.c - many windows of an engine, one after another, beside one long window of another engine.
 *
 *	windows [probe] N MS OUT PID...
 *
 * N windows of MS milliseconds; probe: heaps, waits, blocks and mutexes are probed, too, and all of the time of a window is observed. Writes
 * profiles of all processes, each below a frame with its pid: OUT/windows.KIND.pb.gz are the sums of all windows, OUT/long.cpu.pb.gz is
 * the long one. Prints "window PID S LONG HEAP WAIT BLOCK MUTEX", the seconds in which the process was observed, by its profiles of a kind the last
 * four, and fails when descriptors or resident memory grow over the windows.
 */
#include <dirent.h>
#include <poll.h>
#include <time.h>

#include "collect/cpu/host.h"
#include "collect/heap/heap_many.h"
#include "collect/waits/contention/contention_many.h"
#include "collect/waits/wait/wait_many.h"
#include "inspect/survey.h"
#include "output/output.h"
#include "probe/uprobes/uprobes.h"
#include "profile/graft.h"

enum { KINDS = 5, PIDS = 64, TICK_NS = 100000000, RSS_MAY_GROW_KB = 2048, LONG = KINDS };

static struct observed {
	pid_t pid;
	uint64_t windows_ns, long_ns, kind_ns[KINDS]; /* kind_ns: as its profiles say */
} observed[PIDS];
static size_t npids;

/* The sums of all kinds, and the long window's. */
static struct prof *sums[KINDS + 1];
static const char *const names[KINDS + 1] = { "windows.cpu",   "windows.heap",	"windows.wait",
					      "windows.block", "windows.mutex", "long.cpu" };
static size_t nkinds;

struct usage {
	size_t fds, rss_kb;
};

static struct usage usage_now(void)
{
	CLEANUP(fclosep) FILE *f = fopen("/proc/self/statm", "re");
	DIR *d = opendir("/proc/self/fd");
	unsigned long pages = 0;
	struct usage u = { 0 };

	while (d && readdir(d))
		u.fds++;
	if (d)
		closedir(d);
	if (f && fscanf(f, "%*s %lu", &pages) == 1)
		u.rss_kb = pages * 4;
	return u;
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static struct observed *of(pid_t pid)
{
	size_t i = 0;

	while (observed[i].pid != pid)
		i++;
	return &observed[i];
}

static void add(struct prof **sum, const struct engine_target *t, struct prof *p)
{
	struct prof_header_view h = prof_header(p);
	char root[16];

	snprintf(root, sizeof(root), "pid-%d", t->id.pid);
	if (!*sum) {
		BUG_ON(prof_new(sum, NULL));
		for (size_t i = 0; i < h.ntypes; i++)
			BUG_ON(prof_add_type(*sum, strtab_get(prof_strings(p), h.types[i].type),
					     strtab_get(prof_strings(p), h.types[i].unit), NULL));
	}
	BUG_ON(prof_graft(*sum, p, prof_loss(p), root, NULL));
}

static void take_window(void *arg, const struct engine_target *t,
			const struct engine_result *results)
{
	(void)arg;
	of(t->id.pid)->windows_ns += t->until_ns - t->since_ns;
	for (size_t k = 0; k < nkinds; k++) {
		if (!results[k].prof)
			continue;
		of(t->id.pid)->kind_ns[k] += (uint64_t)prof_header(results[k].prof).duration_ns;
		add(&sums[k], t, results[k].prof);
	}
}

static void take_long(void *arg, const struct engine_target *t, const struct engine_result *results)
{
	(void)arg;
	of(t->id.pid)->long_ns += t->until_ns - t->since_ns;
	if (results[0].prof)
		add(&sums[LONG], t, results[0].prof);
}

static int poll_both(struct engine *const en[2], struct err *e)
{
	struct pollfd p[] = { { .fd = engine_fd(en[0]), .events = POLLIN },
			      { .fd = engine_fd(en[1]), .events = POLLIN } };
	int ret = 0;

	(void)poll(p, 2, 20);
	for (int i = 0; i < 2 && !ret; i++)
		ret = engine_poll(en[i], e);
	return ret;
}

static int window(struct engine *const en[2], uint64_t ns, struct err *e)
{
	uint64_t end = now_ns() + ns, tick = 0;
	int ret = engine_begin(en[0], e);

	while (!ret && now_ns() < end) {
		ret = poll_both(en, e);
		if (ret || now_ns() < tick)
			continue;
		ret = engine_tick(en[0], e);
		if (!ret)
			ret = engine_tick(en[1], e);
		tick = now_ns() + TICK_NS;
	}
	return ret ? ret : engine_end(en[0], take_window, NULL, e);
}

static int windows(struct engine *const en[2], unsigned n, uint64_t ns, struct err *e)
{
	struct usage before = { 0 }, after;
	int ret = engine_begin(en[1], e);

	for (unsigned i = 0; !ret && i < n; i++) {
		ret = window(en, ns, e);
		if (i == n / 5)
			before = usage_now();
	}
	after = usage_now();
	if (!ret)
		ret = engine_end(en[1], take_long, NULL, e);
	if (ret)
		return ret;
	printf("%u windows: %zu descriptors, then %zu; %zu kB resident, then %zu\n", n, before.fds,
	       after.fds, before.rss_kb, after.rss_kb);
	if (after.fds != before.fds)
		return err_set(e, -EMFILE, "descriptors are left open");
	if (after.rss_kb > before.rss_kb + RSS_MAY_GROW_KB)
		return err_set(e, -ENOMEM, "memory is left");
	return 0;
}

static bool hold(void *arg, const struct survey_proc *p)
{
	(void)arg;
	return p->cpu.yes;
}

static int add_held(struct engine *en, struct survey *s, struct err *e)
{
	const struct engine_target *out;
	int ret = 0;

	for (size_t i = 0; !ret && i < s->at.n; i++) {
		struct survey_proc *p = &s->at.at[i];

		if (!p->target)
			return err_set(e, -ENOENT, "pid %d is not held", p->pid);
		ret = engine_add(en, TAKE(p->target), &p->build->offsets, &out, e);
	}
	return ret || s->at.n == npids ?
		       ret :
		       err_set(e, -ENOENT, "of %zu processes %zu were found", npids, s->at.n);
}

static int add_all(struct engine *en, struct err *e)
{
	struct survey s = { .wants = SURVEY_EVERYTHING, .hold = hold };
	pid_t pids[PIDS];
	int ret;

	for (size_t i = 0; i < npids; i++)
		pids[i] = observed[i].pid;
	ret = survey_more(&s, pids, npids, e);
	if (!ret)
		ret = add_held(en, &s, e);
	survey_fini(&s);
	return ret;
}

static int open_both(struct engine *en[2], bool probe, struct err *e)
{
	static const struct engine_kind *const kinds[KINDS] = { &engine_cpu, &engine_heap,
								&engine_wait, &engine_block,
								&engine_mutex };
	const struct collect_opts o = { .cpu.hz = 499,
					.heap.rate = probe ? 1024 : 524288,
					.wait.rate_ns = 1000000,
					.block.rate_ns = 10000,
					.mutex.fraction = 10,
					.source = probe ? SOURCE_PROBE : SOURCE_READ };
	int ret = 0;

	nkinds = probe ? KINDS : 2;
	for (size_t i = 0; !ret && i < 2; i++) {
		ret = engine_open(&o, kinds, i ? 1 : nkinds, (unsigned)npids, &en[i], e);
		if (!ret)
			ret = add_all(en[i], e);
	}
	return ret;
}

static int write_all(const char *dir, struct err *e)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < ARRAY_LEN(sums); i++) {
		char path[512];

		snprintf(path, sizeof(path), "%s/%s.pb.gz", dir, names[i]);
		if (sums[i])
			ret = output_to_file(sums[i], output_find("pprof"), path, NULL, e);
		prof_free(sums[i]);
	}
	for (size_t i = 0; !ret && i < npids; i++) {
		const struct observed *o = &observed[i];

		printf("window %d %.6f %.6f", o->pid, (double)o->windows_ns / 1e9,
		       (double)o->long_ns / 1e9);
		for (size_t k = 1; k < KINDS; k++)
			printf(" %.6f", (double)o->kind_ns[k] / 1e9);
		puts("");
	}
	return ret;
}

int main(int argc, char **argv)
{
	struct engine *en[2] = { NULL };
	struct err e = { "" };
	bool probe = argc > 1 && !strcmp(argv[1], "probe");
	int ret;

	uprobes_main(argc, argv);
	argc -= probe;
	argv += probe;
	if (argc < 5 || argc - 4 > PIDS) {
		fprintf(stderr, "usage: windows [probe] N MS OUT PID...\n");
		return 2;
	}
	for (int i = 4; i < argc; i++)
		observed[npids++].pid = atoi(argv[i]);
	ret = open_both(en, probe, &e);
	if (!ret)
		ret = windows(en, (unsigned)atoi(argv[1]), (uint64_t)atoi(argv[2]) * 1000000u, &e);
	for (int i = 0; i < 2; i++)
		engine_free(en[i]);
	if (!ret)
		ret = write_all(argv[3], &e);
	if (ret)
		fprintf(stderr, "windows: %s\n", e.msg);
	return ret ? 1 : 0;
}
