/* user/host/news.c - see host/news.h. */
#include "host/news.h"

#include <sys/resource.h>

#include "base/clock.h"
#include "base/limits.h"
#include "host/order.h"

/* What has just started is looked at at once. After many in one look, and above the bound, the next waits. */
enum { NEWS_MANY = 8, APART_TICKS = 3, REST_TICKS = 20 };
#define SPARED_NS (5 * NS_PER_S)

static int nothing(void *arg)
{
	(void)arg;
	return 0; /* host_news_step() looks at it */
}

int host_news_open(struct host_news *n, pid_t root, struct err *e)
{
	int ret = exec_watch_open(root, &n->watch, e);

	return ret ? ret : loop_watch(n->loop, exec_watch_fd(n->watch), nothing, NULL, e);
}

uint64_t host_news_unheard(const struct host_news *n)
{
	return n->watch ? exec_watch_lost(n->watch) : 0;
}

void host_news_rest(struct host_news *n)
{
	n->unknown += n->fresh.n + survey_to_come(&n->survey);
	n->fresh.n = 0;
	if (survey_fd(&n->survey) >= 0)
		loop_unwatch(n->loop, survey_fd(&n->survey));
	survey_rest(&n->survey);
}

void host_news_fini(struct host_news *n)
{
	host_news_rest(n);
	if (n->watch)
		loop_unwatch(n->loop, exec_watch_fd(n->watch));
	exec_watch_free(TAKE(n->watch));
	survey_fini(&n->survey);
	vec_fini(&n->fresh);
	map_fini(&n->execs);
	map_fini(&n->begun);
}

/* ---- what is heard ---- */

static void take(struct host_news *n)
{
	struct exec_seen x;

	while (n->watch && exec_watch_next(n->watch, &x)) {
		pid_t *at;

		engine_exec(n->engine, x.pid, x.when_ns);
		if (n->wants && !n->wants(n->arg, &x))
			continue;
		map_put(&n->execs, (uint64_t)x.pid, x.when_ns);
		at = vec_add(&n->fresh, LIMIT_SURVEY);
		if (at)
			*at = x.pid;
		n->lossy |= !at;
	}
}

/* ---- what is held ---- */

/* What it did since its exec is missing. */
static void note_begin(struct host_news *n, const struct engine_target *t)
{
	uint64_t exec_ns;

	if (map_get(&n->execs, (uint64_t)t->id.pid, &exec_ns) && exec_ns < t->since_ns)
		map_put(&n->begun, t->slot, t->since_ns - exec_ns);
}

bool host_news_begun(const struct host_news *n, const struct engine_target *t, uint64_t *ns)
{
	return map_get(&n->begun, t->slot, ns);
}

void host_news_forget(struct host_news *n, const struct engine_target *t)
{
	map_del(&n->begun, t->slot);
}

/* It called exec since it was opened. What it runs now is among the news, and was not looked at yet. */
static bool is_over(const struct host_news *n, const struct target *t)
{
	uint64_t exec_ns;

	return map_get(&n->execs, (uint64_t)t->pid, &exec_ns) && exec_ns > t->opened_ns;
}

static void adopt(struct host_news *n, struct survey_proc *p)
{
	uint64_t began = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	const struct engine_target *t;
	struct err e = { "" };
	int ret;

	if (is_over(n, p->target)) {
		n->added(n->arg, -ESRCH, &e, p->pid, p->comm, true);
		return;
	}
	(void)map_get(&n->execs, (uint64_t)p->pid, &p->target->exec_ns);
	ret = engine_add(n->engine, TAKE(p->target),
			 p->build->layout.yes ? &p->build->offsets : NULL, &t, &e);
	n->added(n->arg, ret, &e, p->pid, p->comm, false);
	if (!ret)
		note_begin(n, t);
	n->adopted_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
}

void host_news_adopt(struct host_news *n)
{
	size_t len;
	CLEANUP(freep) struct order *o = order_busiest(n->survey.at.at, n->survey.at.n, &len);

	if (!o)
		n->say(n->arg, "no memory for the list of processes");
	n->lossy |= !o;
	for (size_t i = 0; i < len; i++)
		adopt(n, o[i].proc);
	survey_forget(&n->survey);
}

/* ---- looks ---- */

/* Of a look so many are missing. Where descriptors are few the next fails, too. */
static void fail(struct host_news *n, int ret, size_t missing, const struct err *e)
{
	if (ret != n->said)
		n->say(n->arg, e->msg);
	n->said = ret;
	n->missed += missing;
	n->lossy = true;
}

static void begin_look(struct host_news *n)
{
	struct err e = { "" };
	int ret;

	n->survey.unanswered.n = 0; /* its bound is for one look */
	ret = survey_begin(&n->survey, n->fresh.at, n->fresh.n, &e);
	if (!ret)
		ret = loop_watch(n->loop, survey_fd(&n->survey), nothing, NULL, &e);
	if (ret) {
		survey_stop(&n->survey);
		fail(n, ret, n->fresh.n, &e);
	}
	n->looked_at = n->fresh.n;
	n->seen = n->survey.seen;
	n->ticks = 0;
	n->fresh.n = 0;
}

/* How many of those that the last look was of had no program any more. */
static size_t ended_before(const struct host_news *n)
{
	size_t found = n->survey.seen - n->seen + n->survey.unanswered.n;

	return found < n->looked_at ? n->looked_at - found : 0;
}

static void go_on_looking(struct host_news *n)
{
	struct survey *s = &n->survey;
	struct err e = { "" };
	int ret = survey_step(s, &e);

	if (ret < 0)
		fail(n, ret, survey_to_come(s), &e);
	n->looked(n->arg, s);
	host_news_adopt(n);
	if (!ret)
		return;
	loop_unwatch(n->loop, survey_fd(s));
	survey_stop(s);
	if (ret > 0)
		n->unknown += ended_before(n);
	if (!n->fresh.n)
		map_fini(&n->execs);
}

/* CPU time of all children that have ended. */
static uint64_t children_ns(void)
{
	struct rusage r;

	if (getrusage(RUSAGE_CHILDREN, &r))
		return 0;
	return (uint64_t)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * NS_PER_S +
	       (uint64_t)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1000;
}

/*
 * What may be used in SPARED_NS may be used at once. What a file and a process take that are met for the first time is no part of
 * it: that is only put off, and what a process did meanwhile would be missing.
 */
static bool is_above(const struct host_news *n)
{
	uint64_t all = n->spent_ns + survey_child_ns(&n->survey) + children_ns() - n->children_ns;
	uint64_t due = n->adopted_ns + n->survey.files_ns - n->files_ns;
	uint64_t used = all > due ? all - due : 0, of = now_ns() - n->since_ns;

	return n->own_ppm &&
	       (double)used > n->own_ppm / 1e6 * (double)(of > SPARED_NS ? of : SPARED_NS);
}

static bool is_due(struct host_news *n, bool tick)
{
	bool above = is_above(n);

	n->put_off |= above;
	return above ? n->ticks >= APART_TICKS : tick || n->looked_at < NEWS_MANY;
}

void host_news_step(struct host_news *n, bool tick)
{
	uint64_t began = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	if (!n->since_ns) {
		n->since_ns = now_ns();
		n->children_ns = children_ns();
		n->files_ns = n->survey.files_ns;
		n->adopted_ns = 0;
	}
	take(n);
	n->ticks += tick;
	if (survey_fd(&n->survey) < 0 && n->fresh.n && is_due(n, tick))
		begin_look(n);
	if (survey_fd(&n->survey) >= 0)
		go_on_looking(n);
	else if (n->ticks >= REST_TICKS)
		survey_rest(&n->survey);
	n->spent_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - began;
}
