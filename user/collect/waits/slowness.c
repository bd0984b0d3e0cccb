/*
 * user/collect/waits/slowness.c - compares the clocks of windows with the runtime's count and the
 * target's clock.
 */
#include "collect/waits/slowness.h"
#include "goprof_abi.h"

#include <math.h>
#include <time.h>

#define MEMORY	   0.95 /* weight of the past, from window to window */
#define SLOW_FIRST 8.0
#define SLOW_MAX   40.0
#define ROOM	   1.3 /* a window's own time must be over before its wall time is */
/* in prices of a hit: two hits no farther apart than this follow each other closely */
#define SHORT_HITS 4
/*
 * where more than this share of all hits follow closely, the mean gap of all hits is taken for
 * theirs
 */
#define SHORT_MOST 0.9
/* A difference of so many standard errors is no chance. */
#define SURELY 3
/* Runs that no window met are worth telling from this part of all runs on. */
#define MANY 0.01

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

/* The runtime's count of switches now; 0: not known. A process that has just begun may not have the counters yet. */
static uint64_t switches_now(struct slowness *w)
{
	struct subject *s = w->s;
	uint64_t now;
	int ret = -ENOTSUP;

	if (!w->counters && again_due(&w->open_again, now_ns()))
		rtcounters_open(s->bin, &s->layout, s->target->mem, s->bias, &w->counters, NULL);
	else if (!w->counters)
		return 0;
	if (w->counters)
		ret = rtcounters_switches(w->counters, &now, NULL);
	if (ret == -ENOTSUP) {
		rtcounters_free(w->counters);
		w->counters = NULL;
		again_later(&w->open_again, now_ns());
	}
	if (ret)
		return 0;
	w->switches_last = now;
	return now;
}

/* Switches since the last call; < 0: not known. */
static double switches_since(struct slowness *w)
{
	uint64_t now = switches_now(w), before = w->switches_before;

	w->switches_before = now;
	return before && now >= before ? (double)(now - before) : -1;
}

static double clock_now(clockid_t clock)
{
	struct timespec ts;

	if (clock_gettime(clock, &ts))
		return 0;
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* CPU time of the target since the last call. */
static double busy_since(struct slowness *w)
{
	double cpu = 0, busy = 0;
	clockid_t clock;

	if (!clock_getcpuclockid(w->s->target->pid, &clock))
		cpu = clock_now(clock);
	if (w->cpu_before > 0 && cpu > w->cpu_before)
		busy = cpu - w->cpu_before;
	w->cpu_before = cpu;
	return busy;
}

/* Ends a step, if it has lasted for long enough, and begins the next one. */
static void step(struct slowness *w, double least_ns)
{
	double now = clock_now(CLOCK_MONOTONIC);
	uint64_t count;

	if (now - w->step_began < least_ns)
		return;
	count = switches_now(w);
	if (!count) /* the step goes on */
		return;
	if (w->step_count && count >= w->step_count)
		run_rates_step(&w->rates, (double)(count - w->step_count), now - w->step_began);
	w->step_count = count;
	w->step_began = now;
}

void slowness_mark(struct slowness *w)
{
	w->switches_marked = switches_now(w);
}

void slowness_begin(struct slowness *w, double hit_ns)
{
	uint64_t now = switches_now(w);

	w->hit_ns = hit_ns;
	w->now = SLOW_FIRST;
	w->switches_first = w->switches_marked ? w->switches_marked : now;
	w->switches_marked = 0;
	w->switches_before = w->step_count = now;
	w->step_began = clock_now(CLOCK_MONOTONIC);
	busy_since(w);
}

void slowness_poll(struct slowness *w)
{
	if (w->step_count) /* there are windows, and the count is known */
		step(w, RUN_STEP_NS);
}

void slowness_end(struct slowness *w)
{
	uint64_t now = switches_now(w);

	/* The target has exited: the few ms since the last reading are not included. */
	if (!now)
		now = w->switches_last;
	step(w, 0);
	w->step_count = 0;
	if (!now || now < w->switches_first || !w->switches_first)
		w->switches = -1;
	else if (w->switches >= 0)
		w->switches += (double)(now - w->switches_first);
}

/*
 * Overhead dilation: how many times longer a short time between two hits is than without probes.
 * It follows from the price of a hit or, much better, from the runtime's own count of switches,
 * where that is known: the count tells how many hits there would be, at any time, in so much CPU
 * time.
 */
static double slowness(const struct slowness *w)
{
	double hits = w->shorts + w->longs, gap, mean, slow;

	if (w->shorts < 1)
		return w->now;
	mean = w->short_ns / w->shorts;
	gap = mean - w->hit_ns;
	if (w->exact > 0 && w->parks > 0 && w->shorts > SHORT_MOST * hits)
		gap = w->busy_ns / (w->exact * hits / w->parks);
	slow = gap > mean / SLOW_MAX ? mean / gap : SLOW_MAX;
	return slow > 1 ? slow : 1;
}

double slowness_mean(const struct slowness *w, uint64_t windows)
{
	return windows ? w->sum / (double)windows : 1;
}

void slowness_add(struct gpb_wait_clock *sum, const struct gpb_wait_clock *cpu)
{
	sum->shorts += cpu->shorts;
	sum->short_ns += cpu->short_ns;
	sum->longs += cpu->longs;
	sum->long_ns += cpu->long_ns;
	sum->parks += cpu->parks;
}

static void remember(double *v, uint64_t now, uint64_t was)
{
	*v = MEMORY * *v + (double)(now - was);
}

void slowness_skip(struct slowness *w, const struct gpb_wait_clock *sum)
{
	w->clock = *sum;
}

/* Learns from the clocks of this window, and from the runtime's count since the last one. */
void slowness_learn(struct slowness *w, const struct gpb_wait_clock *sum)
{
	double exact = switches_since(w), busy = busy_since(w);
	const struct gpb_wait_clock was = w->clock;

	slowness_poll(w);
	w->clock = *sum;
	remember(&w->shorts, sum->shorts, was.shorts);
	remember(&w->short_ns, sum->short_ns, was.short_ns);
	remember(&w->longs, sum->longs, was.longs);
	remember(&w->long_ns, sum->long_ns, was.long_ns);
	remember(&w->parks, sum->parks, was.parks);
	if (exact >= 0 && busy > 0) {
		w->exact = MEMORY * w->exact + exact;
		w->busy_ns = MEMORY * w->busy_ns + busy;
	}
	w->now = slowness(w);
	w->sum += w->now;
}

struct slowness_terms slowness_terms(const struct slowness *w, uint64_t begin_ns)
{
	return (struct slowness_terms){
		.own = { .ns = (uint64_t)((double)begin_ns / (1 + ROOM * (w->now - 1))),
			 .hit_ns = (uint64_t)w->hit_ns },
		.own_share = (uint64_t)(GPB_SHARE_ONE / w->now),
		.short_ns = (uint64_t)(SHORT_HITS * w->hit_ns),
	};
}

double slowness_unmet(const struct slowness *w)
{
	double unmet = run_rates_unmet(&w->rates).runs;

	return unmet > MANY * w->switches ? unmet : 0;
}

double slowness_met(const struct slowness *w)
{
	double unmet = run_rates_unmet(&w->rates).runs;

	return w->switches < 0 ? -1 : w->switches > unmet ? w->switches - unmet : 0;
}

/* The difference between the total and what windows stand for, which they have @lack times too few of. */
static double misfit(const struct slowness *w, const struct tally_estimate *windows, double lack)
{
	double off = slowness_met(w) - lack * windows->value;
	double chance = SURELY * lack * sqrt(windows->variance > 0 ? windows->variance : 0);

	return fabs(off) > chance ? off : 0;
}

/*
 * Few windows tell the usual pace badly, and one that met a storm has much weight in the fit. So what they lack
 * is believed only where the total does not fit without it, and fits better with it.
 */
double slowness_lack(const struct slowness *w, const struct tally_estimate *windows)
{
	double lack = run_rates_lack(&w->rates), off = misfit(w, windows, 1);

	return fabs(slowness_met(w) - lack * windows->value) < fabs(off) ? lack : 1;
}

/* What is too little to be told is uncertain, too. */
static double few_unmet(const struct slowness *w)
{
	return slowness_unmet(w) > 0 ? 0 : run_rates_unmet(&w->rates).runs;
}

double slowness_unsure(const struct slowness *w, const struct tally_estimate *windows)
{
	struct run_unmet u = run_rates_unmet(&w->rates);
	double faster = misfit(w, windows, slowness_lack(w, windows)) ? u.faster : 0;

	return faster + u.unsure + few_unmet(w);
}

void slowness_fini(struct slowness *w)
{
	rtcounters_free(w->counters);
}
