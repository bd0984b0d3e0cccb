/*
 * tests/unit/wait_world.h - programs that wait for some milliseconds, simulated: a Poisson process of waits, the
 * looks that see them, and the windows that meet them.
 */
#ifndef TESTS_WAIT_WORLD_H
#define TESTS_WAIT_WORLD_H

#include <math.h>

#include "base/random.h"
#include "sampling/looks/undercount.h"
#include "collect/waits/wait/wait_window.h"
#include "mksubject.h"

#define MS	1000000.0
#define STRATUM (200 * MS)

/*
 * Of 400 intervals of two standard errors, of which each covers with 94.5 % as those of 60 windows do, fewer
 * than 372 would cover by chance in one world of 12, and fewer than 362 in one of 4,000.
 */
enum {
	PROGRAMS = 400,
	STRATA = 60,
	WAITS_MAX = 8000,
	MS_MOST = 60,
	COVERED_LEAST = 372,
	COVERED_OF_MANY = 362
};

static uint64_t seed;

struct wait {
	double at, end, since, ns;
	unsigned looks;
	bool over;
};

static struct wait waits[WAITS_MAX];
static size_t n;

struct world {
	double lacks; /* the part of waits that does not begin in a window, because the target waits for a CPU */
	double late;		  /* the part of looks that come up to 6 ms too late */
	double rare;		  /* looks are so many times rarer; 0: 1 */
	double shortest, longest; /* ms */
	double outlast;		  /* the part of waits that lasts 20 to 55 ms */
	bool uneven;		  /* lengths are exponential, with a mean of a quarter of that */
	int bursts;		  /* waits come so many at a time; 0: 1 */
	double dilation;	  /* so much longer probes make waits in windows; 0: 1 */
	double slower;		  /* so much slower is the target then; 0: 1 */
	double stopped;		  /* the part of windows in which it does not run at all */
	bool follows;		  /* each wait ends in a time runnable of 1 us */
};

static double length_in(const struct world *w)
{
	double more = w->longest - w->shortest;

	if (w->outlast > 0 && random_part(&seed) < w->outlast)
		return (20 + 35 * random_part(&seed)) * MS;
	if (!w->uneven)
		return (w->shortest + more * random_part(&seed)) * MS;
	return (w->shortest - log(1 - random_part(&seed)) * more / 4) * MS;
}

static void make_waits(const struct world *w)
{
	int at_once = w->bursts ? w->bursts : 1;
	double gap = 5 * MS * at_once;

	n = 0;
	for (double at = 0; (at -= log(1 - random_part(&seed)) * gap) < STRATA * STRATUM;) {
		double length = length_in(w);

		assert_true(n + (size_t)at_once <= WAITS_MAX);
		for (int i = 0; i < at_once; i++)
			waits[n++] = (struct wait){ .at = at, .end = at + length };
	}
}

static struct gpb_stack stack_of(const struct wait *w, uint64_t type)
{
	return (struct gpb_stack){
		.count = GPB_COUNT_ONE,
		.delay = (uint64_t)(w->end - w->at),
		.nfirst = 2,
		.wait.kind = GPB_G_WAITING,
		.wait.length = type,
		.pc = { 0x1000, 0x2000 },
	};
}

/* ---- looks ---- */

static void see(struct looks_sums *u, int32_t entry, double now, double before, double len,
		struct wait *w)
{
	if (w->over || w->at > now)
		return;
	if (w->end > now) {
		if (!w->looks++)
			w->since = (now + before) / 2;
		w->ns += len;
		looks_sums_saw(u, entry, len);
		return;
	}
	w->over = true;
	if (w->looks)
		looks_sums_over(u, entry, w->ns,
				w->looks >= LOOKS_COUNTS ? (now + before) / 2 - w->since : 0);
}

static void look_on(struct looks_sums *u, int32_t entry, const struct world *in)
{
	const double len = (double)LOOKS_STRATUM_NS * (in->rare > 0 ? in->rare : 1),
		     all = STRATA * STRATUM + 50 * MS;
	double stratum = 0, before = 0;
	size_t first = 0;

	while (stratum < all) {
		double end = stratum + len, now = stratum + len * random_part(&seed);

		if (random_part(&seed) < in->late)
			now += 6 * MS * random_part(&seed);
		if (now < before)
			now = before;
		looks_sums_look(u, len);
		for (size_t i = first; i < n && waits[i].at <= now; i++)
			see(u, entry, now, before, len, &waits[i]);
		while (first < n && waits[first].over)
			first++;
		if (before > 0)
			looks_sums_gap(u, now - before);
		before = now;
		looks_sums_looked(u);
		stratum = end + len > now ? end : now;
	}
	looks_sums_end(u, all, (double)u->look * len);
}

/* ---- windows ---- */

/* As the BPF side has it. */
static bool looks_count(const struct wait *w, double from)
{
	return w->looks >= LOOKS_COUNTS || (from > 0 && w->end - w->at >= from);
}

/* The times runnable that begin in a window. No wait is longer than MS_MOST. */
static void observe_ends(struct wait_window *w, double open, const struct world *in, size_t *from)
{
	while (*from < n && waits[*from].at < open - MS_MOST * MS)
		++*from;
	for (size_t k = *from; k < n && waits[k].at < open + WAIT_BEGIN_NS; k++) {
		struct gpb_stack st = stack_of(&waits[k], GPB_WAIT_LONG);

		st.wait.kind = GPB_G_RUNNABLE;
		st.delay = 1000;
		if (waits[k].end >= open + GPB_LONG_NS && waits[k].end < open + WAIT_BEGIN_NS &&
		    random_part(&seed) >= in->lacks)
			assert_int_equal(wait_window_add(w, &st, NULL), 0);
	}
}

static void observe(struct wait_window *w, double from, const struct world *in)
{
	size_t first = 0; /* wait that begins in this window */
	size_t back = 0;

	for (int i = 0; i < STRATA; i++) {
		double open = i * STRATUM + random_part(&seed) * (STRATUM - WAIT_END_NS);
		const struct stretch s = { .window = true,
					   .opened = 1,
					   .closed = 1 + WAIT_END_NS,
					   .weight = STRATUM / WAIT_END_NS };
		struct wait_counts none = {};
		bool stopped = in->stopped > 0 && random_part(&seed) < in->stopped;

		if (in->follows && !stopped)
			observe_ends(w, open, in, &back);
		while (first < n && waits[first].at < open + GPB_LONG_NS)
			first++;
		for (size_t k = first; k < n && waits[k].at < open + WAIT_BEGIN_NS; k++) {
			struct gpb_stack st = stack_of(&waits[k], GPB_WAIT_LONG);

			if (in->dilation > 0)
				st.delay = (uint64_t)((double)st.delay * in->dilation);
			if (!stopped && waits[k].end < open + WAIT_END_NS &&
			    !looks_count(&waits[k], from) && random_part(&seed) >= in->lacks)
				assert_int_equal(wait_window_add(w, &st, NULL), 0);
		}
		wait_engine_close(&w->engine, &s, &none);
	}
}

static bool not_runtime(struct subject *s, const struct gpb_stack *st)
{
	(void)s;
	(void)st;
	return false;
}

#endif
