/* user/cli/cmd_profile.c - profile a live process: from the command line to profile_run. */
#include <malloc.h>

#include "base/sys/caps.h"
#include "base/sys/priority.h"
#include "base/version.h"
#include "cli/cmd.h"
#include "cli/run/host/host_run.h"
#include "cli/run/job.h"
#include "cli/run/outdir.h"
#include "cli/opt.h"
#include "cli/run/profile_run.h"
#include "cli/tell.h"
#include "cli/stop.h"
#include "collect/cpu/host.h"
#include "collect/heap/heap_many.h"
#include "collect/reading.h"
#include "collect/waits/contention/contention_many.h"
#include "collect/waits/wait/wait_many.h"
#include "collect/waits/contention/ticks.h"

static const struct run_subject live = {
	.open = subject_open,
	.free = subject_free,
	.comm = subject_comm,
	.go_version = subject_go_version,
	.pidfd = subject_pidfd,
	.became = subject_became,
	.alive = subject_alive,
	.refresh = subject_refresh,
};

/* Does the run need BPF whatever the target is like? Goroutines do not: they are read. */
static bool needs_bpf(const struct opts *o)
{
	bool sourced = o->heap || o->block || o->mutex;

	return o->cpu || o->wait || (sourced && o->collect.source == SOURCE_PROBE);
}

/*
 * What cannot work is reported before anything is opened. Reading needs none of these
 * capabilities. Those that only another user's process needs are reported when that process
 * refuses.
 */
static int check_privileges(const struct opts *o, struct err *e)
{
	static const int caps[] = { CAP_BPF, CAP_PERFMON };

	if (!needs_bpf(o))
		return 0;
	if (caps_have(CAP_BPF) && caps_have(CAP_PERFMON))
		return 0;
	return caps_refused(e, "BPF is not allowed", caps, ARRAY_LEN(caps));
}

/* What kinds of profile are to know, of one process and of many alike. */
static struct collect_opts collect_of(const struct opts *o)
{
	struct collect_opts c = o->collect;

	for (size_t i = 0; i < o->nformats; i++)
		c.text |= o->formats[i] == output_find("text");
	c.window_ns = o->duration_ns;
	c.say = tell_line;
	return c;
}

static struct run_files_to files_to(const struct opts *o, struct output_access *access, FILE *paths)
{
	return (struct run_files_to){ .dir = o->dir,
				      .access = access,
				      .formats = o->formats,
				      .nformats = o->nformats,
				      .paths = paths };
}

static size_t kinds_of_many(const struct opts *o, const struct engine_kind **kinds)
{
	size_t n = 0;

	if (o->cpu)
		kinds[n++] = &engine_cpu;
	if (o->heap)
		kinds[n++] = &engine_heap;
	if (o->block)
		kinds[n++] = &engine_block;
	if (o->mutex)
		kinds[n++] = &engine_mutex;
	if (o->wait)
		kinds[n++] = &engine_wait;
	if (o->goroutine)
		kinds[n++] = &engine_goroutine;
	return n;
}

/* The processor's ticks are the same for all. */
static int measure_ticks(const struct opts *o, struct collect_opts *c, struct err *e)
{
	return o->block || o->mutex ? ticks_measure(&c->ticks_per_second, e) : 0;
}

enum { MMAP_THRESHOLD = 128 << 10 }; /* glibc's own, where it begins */

/* Many processes at once. */
static int run_many(const struct opts *o)
{
	const struct engine_kind *kinds[ENGINE_KINDS_MAX];
	struct output_access access = { .mode = o->mode };
	struct host_opts h = {
		.all = o->all,
		.pids = o->pids,
		.npids = o->npids,
		.pick = o->pick,
		.dry_run = o->dry_run,
		.duration_ns = o->duration_ns,
		.to = files_to(o, &access, stdout),
		.kinds = kinds,
		.nkinds = kinds_of_many(o, kinds),
		.collect = collect_of(o),
	};
	struct err e = { "" };
	pid_t restorer;
	bool raised;
	int status;

	/* Who names a process gets its profile, also when that is empty. */
	h.collect.unmet = !o->all;
	if ((!o->dry_run && check_privileges(o, &e)) || stop_init(&e) ||
	    measure_ticks(o, &h.collect, &e)) {
		tell("%s", e.msg);
		return EXIT_FAILED;
	}
	raised = priority_prompt() && !o->dry_run; /* of the uprobe-attacher, too */
	/*
	 * Fixed, or malloc() moves it up with the first large buffer that is freed. Then such buffers come from the heap,
	 * and what stays of each process lies between them: 111 MB resident where 200 processes were read, and not 53.
	 */
	(void)mallopt(M_MMAP_THRESHOLD, MMAP_THRESHOLD);
	outdir_asked_by(&access);
	h.stop_fd = stop_fd();
	restorer = raised ? priority_prompt_session() : 0;
	status = host_run(&h);
	if (restorer)
		priority_session_back(restorer);
	return status;
}

static int run(const struct opts *o)
{
	const struct collector *kinds[JOB_KINDS_MAX];
	const struct engine_kind *many[ENGINE_KINDS_MAX];
	struct output_access access = { .mode = o->mode };
	struct run_opts r = {
		.pid = o->pid,
		.command = o->command,
		.follow = o->follow,
		.duration_ns = o->duration_ns,
		/* The command's stdout belongs to the command. */
		.to = files_to(o, &access, o->command ? stderr : stdout),
		.subject = &live,
		.kinds = kinds,
		.many = many,
		.nmany = kinds_of_many(o, many),
		.collect = collect_of(o),
		.verbose = o->verbose,
	};
	struct err e = { "" };

	if (o->pid == getpid()) {
		tell("pid %d is goprof-bpf itself", o->pid);
		return EXIT_FAILED;
	}
	if (check_privileges(o, &e) || (o->command ? stop_init_passing(&e) : stop_init(&e)) ||
	    (o->follow && measure_ticks(o, &r.collect, &e))) {
		tell("%s", e.msg);
		return EXIT_FAILED;
	}
	if (o->cpu)
		kinds[r.nkinds++] = &collector_cpu;
	if (o->heap)
		kinds[r.nkinds++] = &collector_heap;
	if (o->block)
		kinds[r.nkinds++] = &collector_block;
	if (o->mutex)
		kinds[r.nkinds++] = &collector_mutex;
	if (o->wait)
		kinds[r.nkinds++] = &collector_wait;
	if (o->goroutine)
		kinds[r.nkinds++] = &collector_goroutine;
	outdir_asked_by(&access);
	r.stop_fd = stop_fd();
	return profile_run(&r);
}

int cmd_profile(int argc, char **argv)
{
	struct err e = { "" };
	struct opts o;

	switch (opt_parse(argc, argv, &o, &e)) {
	case OPT_RUN:
		priority_session_heal();
		return o.all || o.npids > 1 ? run_many(&o) : run(&o);
	case OPT_HELP:
		fputs(opt_help, stdout);
		return EXIT_DONE;
	case OPT_VERSION:
		puts("goprof-bpf " GOPROF_VERSION);
		return EXIT_DONE;
	}
	tell("%s (try --help)", e.msg);
	return EXIT_USAGE;
}
