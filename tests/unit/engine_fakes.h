/*
 * tests/unit/engine_fakes.h - the processes, files and kinds of profile of test_engine.c: what an engine asks of others.
 */
#ifndef TESTS_UNIT_ENGINE_FAKES_H
#define TESTS_UNIT_ENGINE_FAKES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <sys/eventfd.h>
#include <time.h>

#include "engine/engine.h"
#include "sampling/own_work.h"

enum { NOT_GO = 666, PIDS = 2000 };

/* ---- processes ---- */

static struct {
	int fd;		     /* readable: it has ended */
	bool became, reaped; /* reaped: another process may have its number */
	unsigned opened;
} procs[PIDS];
static int open_subjects;

int subject_adopt(struct target *t, const struct collect_opts *o, struct binaries *cache,
		  const struct golayout *known, struct subject **out, struct err *e)
{
	struct subject *s = calloc(1, sizeof(*s));
	pid_t pid = t->pid;

	(void)o;
	(void)cache;
	(void)known;
	free(t);
	if (pid == NOT_GO) {
		free(s);
		return err_set(e, -ENOENT, "pid %d is not a Go program", pid);
	}
	s->target = calloc(1, sizeof(*s->target));
	s->target->pid = pid;
	s->target->opened_ns = 100;
	if (!procs[pid].opened++)
		procs[pid].fd = eventfd(0, EFD_CLOEXEC);
	s->target->pidfd = procs[pid].fd;
	s->images.n = 1;
	snprintf(s->comm, sizeof(s->comm), "fake");
	open_subjects++;
	*out = s;
	return 0;
}

void target_free(struct target *t)
{
	free(t);
}

void target_by_worker(struct target *t, struct worker **w)
{
	t->worker = w;
}

void target_in_pool(struct target *t, struct target_pool *p)
{
	t->pool = p;
}

void target_rest(struct target *t)
{
	t->resting = true;
}

int target_wake(struct target *t, struct err *e)
{
	(void)e;
	t->resting = false;
	return 0;
}

void subject_free(struct subject *s)
{
	open_subjects--;
	free(s->target);
	free(s);
}

int target_alive(struct target *t, struct err *e)
{
	t->became = procs[t->pid].became;
	return t->became ? err_set(e, -ESRCH, "another program") : 0;
}

int subject_alive(struct subject *s, struct err *e)
{
	return target_alive(s->target, e);
}

const struct gobin_info *gobin_info(const struct gobin *b)
{
	static const struct gobin_info info = { .version = "go1.27", .module = "", .path = "main" };

	(void)b;
	return &info;
}

bool target_has_number(const struct target *t)
{
	return !procs[t->pid].reaped;
}

int64_t target_started(const struct target *t)
{
	return 1000 + t->pid;
}

void target_cgroup(const struct target *t, char *buf, size_t cap)
{
	(void)t;
	snprintf(buf, cap, "/x");
}

static uint16_t unused_number; /* that of a file which is forgotten next; 0: none is */
static bool given_back;

void binaries_trim(struct binaries *c)
{
	given_back = unused_number && c->forget(c->arg, unused_number);
	unused_number = 0;
}

void binaries_fini(struct binaries *c)
{
	(void)c;
}

int clock_getcpuclockid(pid_t pid, clockid_t *clock)
{
	(void)pid;
	*clock = CLOCK_MONOTONIC;
	return 0;
}

static inline void process_ends(pid_t pid)
{
	uint64_t one = 1;

	assert_int_equal(write(procs[pid].fd, &one, sizeof(one)), sizeof(one));
}

/* ---- a kind of profile ---- */

static struct kind {
	int fd, opened, begun, closed, stopped, drained, put, removed, forgotten, drain_fails;
	int slowed;
	uint64_t taken_ns;
	pid_t refuses, fails, full_for; /* full_for: that has no room for this one */
	pid_t ended;			/* before it was put */
	pid_t awaited; /* of which the kernel has yet to tell something; 0: of none */
	void *with;    /* what open() got */
	unsigned budget_ppm;
	const struct own_work *own;
	struct attacher_process **attachers;
} k, other;

static int k_open(const struct engine_kind *kind, const struct collect_opts *o, unsigned expected,
		  void **state, struct err *e)
{
	struct kind *mine = kind->arg ? &other : &k;

	(void)expected;
	(void)e;
	mine->with = *state;
	mine->budget_ppm = o->budget.ppm;
	mine->own = o->host.own;
	mine->attachers = o->attachers;
	mine->opened++;
	mine->fd = eventfd(0, EFD_CLOEXEC);
	*state = mine;
	return 0;
}

static void k_free(void *state)
{
	close(((struct kind *)state)->fd);
}

static int k_fd(void *state)
{
	return ((struct kind *)state)->fd;
}

static int k_poll(void *state, struct err *e)
{
	(void)state;
	(void)e;
	return 0;
}

static int k_put(void *state, struct engine_target *t, void **kept, struct err *e)
{
	struct kind *mine = state;

	if (t->id.pid == mine->refuses)
		return err_set(e, -ENOTSUP, "pid %d: not this one", t->id.pid);
	if (t->id.pid == mine->full_for)
		return err_set(e, -E2BIG, "pid %d: there is no room", t->id.pid);
	if (t->id.pid == mine->ended)
		return err_set(e, -ESRCH, "pid %d: it has ended", t->id.pid);
	assert_false(t->subject->target->resting); /* it reads */
	mine->put++;
	if (!*kept)
		*kept = malloc(1);
	return 0;
}

static void k_remove(void *state, struct engine_target *t)
{
	(void)t;
	((struct kind *)state)->removed++;
}

static bool k_awaits(void *state, const struct engine_target *t)
{
	return t->id.pid == ((struct kind *)state)->awaited;
}

static void k_forget(void *state, struct engine_target *t, void *kept)
{
	(void)t;
	free(kept);
	((struct kind *)state)->forgotten++;
}

static bool k_stopping; /* since the window began */

static int k_begin(void *state, struct err *e)
{
	(void)e;
	k_stopping = false;
	((struct kind *)state)->begun++;
	return 0;
}

static int k_tick(void *state, size_t targets, struct err *e)
{
	(void)state;
	(void)targets;
	(void)e;
	return 0;
}

/* All kinds close before the first does what may take long. */
static void k_close(void *state)
{
	assert_false(k_stopping);
	((struct kind *)state)->closed++;
}

static void k_stop(void *state)
{
	struct kind *mine = state;

	k_stopping = true;
	assert_int_equal(mine->closed, ++mine->stopped);
}

static int k_drain(void *state, struct err *e)
{
	struct kind *mine = state;

	mine->drained++;
	return mine->drain_fails ? err_set(e, -EIO, "it does not drain") : 0;
}

static int k_profile(void *state, struct engine_target *t, void *kept, struct prof **out,
		     struct err *e)
{
	assert_non_null(kept);
	assert_false(t->subject->target->resting);
	if (t->id.pid == ((struct kind *)state)->fails)
		return err_set(e, -EIO, "pid %d: no profile", t->id.pid);
	return prof_new(out, e);
}

static int k_done(void *state, struct err *e)
{
	(void)state;
	(void)e;
	return 0;
}

static uint64_t k_taken_ns(void *state)
{
	return ((struct kind *)state)->taken_ns;
}

static bool k_slow_down(void *state)
{
	((struct kind *)state)->slowed++;
	return true;
}

static uint16_t k_forgot;
static bool k_keeps; /* what is filed stays */

static bool k_forget_file(void *state, uint16_t number)
{
	assert_ptr_equal(state, &k);
	k_forgot = number;
	return !k_keeps;
}

static const struct engine_kind kind = {
	.name = "fake",
	.reads = true,
	.open = k_open,
	.free = k_free,
	.fd = k_fd,
	.poll = k_poll,
	.put = k_put,
	.remove = k_remove,
	.awaits = k_awaits,
	.forget = k_forget,
	.begin = k_begin,
	.tick = k_tick,
	.taken_ns = k_taken_ns,
	.forget_file = k_forget_file,
	.slow_down = k_slow_down,
	.close = k_close,
	.stop = k_stop,
	.drain = k_drain,
	.profile = k_profile,
	.done = k_done,
};

static const struct engine_kind other_kind = {
	.name = "other",
	.open = k_open,
	.free = k_free,
	.fd = k_fd,
	.poll = k_poll,
	.put = k_put,
	.remove = k_remove,
	.forget = k_forget,
	.begin = k_begin,
	.tick = k_tick,
	.close = k_close,
	.stop = k_stop,
	.drain = k_drain,
	.profile = k_profile,
	.done = k_done,
	.arg = &other,
};

#endif
