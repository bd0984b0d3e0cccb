/* user/collect/waits/engine/run_counter.c - reads the runtime's count of runs, and the target's clock, in steps. */
#include "collect/waits/engine/run_counter.h"

#include <time.h>
#include "base/clock.h"

enum { LEARN = 8 };

/* The runtime's count of switches now; 0: not known. A process that has just begun may not have the counters yet. */
static uint64_t switches_now(struct run_counter *r)
{
	struct subject *s = r->s;
	uint64_t now;
	int ret = -ENOTSUP;

	if (!r->counters && again_due(&r->open_again, now_ns()))
		rtcounters_open(s->bin, &s->layout, s->target->mem, s->bias, &r->counters, NULL);
	else if (!r->counters)
		return 0;
	if (r->counters)
		ret = rtcounters_switches(r->counters, &now, NULL);
	if (ret == -ENOTSUP) {
		rtcounters_free(r->counters);
		r->counters = NULL;
		again_later(&r->open_again, now_ns());
	}
	if (ret)
		return 0;
	r->last = now;
	return now;
}

/* May the runtime's sweeper have yielded since the last call? The count was read just before. Not where it is not known. */
static bool swept(struct run_counter *r)
{
	struct rtsweeper was = r->sweeper;
	bool known = r->sweeper_known;

	r->sweeper_known = r->counters && !rtcounters_sweeper(r->counters, &r->sweeper, NULL);
	return known && r->sweeper_known && !(was.parked && was.sweepgen == r->sweeper.sweepgen);
}

/* The target's CPU time; 0: not known. */
static double cpu_of(const struct run_counter *r)
{
	clockid_t clock;

	return clock_getcpuclockid(r->s->target->pid, &clock) ? 0 : (double)clock_ns(clock);
}

/* CPU time of the target since the last call, as of @cpu. */
static double busy_since(struct run_counter *r, double cpu)
{
	double busy = r->cpu_before > 0 && cpu > r->cpu_before ? cpu - r->cpu_before : 0;

	r->cpu_before = cpu;
	return busy;
}

/* Ends a step, if it has lasted for long enough, and begins the next one. */
static void step(struct run_counter *r, struct dilation *to, double least_ns)
{
	double now = (double)clock_ns(CLOCK_MONOTONIC), cpu, busy;
	bool still, sweeping;
	uint64_t count;

	if (now - r->step_began < least_ns)
		return;
	/* Its clock is read before its memory: what has not run has not counted. */
	cpu = cpu_of(r);
	still = cpu > 0 && cpu <= r->cpu_before;
	count = still ? r->step_count : switches_now(r);
	if (!count) /* the step goes on */
		return;
	sweeping = !still && swept(r);
	busy = busy_since(r, cpu);
	if (r->step_count && count >= r->step_count)
		dilation_step(to, &(struct dilation_step){ .end = now,
							   .ns = now - r->step_began,
							   .runs = (double)(count - r->step_count),
							   .busy_ns = busy,
							   .swept = sweeping });
	r->step_count = count;
	r->step_began = now;
}

void run_counter_mark(struct run_counter *r)
{
	r->marked = switches_now(r);
}

void run_counter_begin(struct run_counter *r)
{
	double cpu = cpu_of(r);
	uint64_t now = switches_now(r);

	r->first = r->marked ? r->marked : now;
	r->marked = 0;
	r->step_count = now;
	r->step_began = (double)clock_ns(CLOCK_MONOTONIC);
	swept(r);
	busy_since(r, cpu);
}

static double least_ns(const struct run_counter *r)
{
	return (double)(r->every_ns > RUN_STEP_NS ? r->every_ns : RUN_STEP_NS);
}

uint64_t run_counter_due(const struct run_counter *r)
{
	/* There are windows, and the count is known. */
	return r->step_count ? (uint64_t)(r->step_began + least_ns(r)) : 0;
}

/* A thread of ours may read for us (base/loop/worker.h), and nothing else runs meanwhile. */
void run_counter_poll(struct run_counter *r, struct dilation *to)
{
	uint64_t cpu;

	if (!r->step_count || now_ns() < run_counter_due(r))
		return;
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	step(r, to, least_ns(r));
	r->took_ns += ((double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) - r->took_ns) / LEARN;
}

void run_counter_read(struct run_counter *r, struct dilation *to)
{
	switches_now(r);
	run_counter_poll(r, to);
}

void run_counter_end(struct run_counter *r, struct dilation *to)
{
	uint64_t now = switches_now(r);

	/* The target has exited: the few ms since the last reading are not included. */
	if (!now)
		now = r->last;
	step(r, to, 0);
	r->step_count = 0;
	if (!now || now < r->first || !r->first)
		to->switches = -1;
	else if (to->switches >= 0)
		to->switches += (double)(now - r->first);
}

void run_counter_fini(struct run_counter *r)
{
	rtcounters_free(r->counters);
}
