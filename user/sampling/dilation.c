/*
 * user/sampling/dilation.c - compares the clocks of windows with the runtime's count and the
 * target's clock.
 */
#include "sampling/dilation.h"

#include <math.h>

#define MEMORY	   0.95 /* weight of the past, from window to window */
#define SLOW_FIRST 8.0
#define SLOW_MAX   40.0
#define ROOM	   1.3 /* a window's own time must be over before its wall time is */
/* in prices of a hit: two hits no farther apart than this follow each other closely */
#define SHORT_HITS 4
/* Where more than this share of all hits follow closely, the mean gap of all hits is taken for theirs. */
#define SHORT_MOST 0.9
/* As many times slower the target must be for dilation_dense(). */
#define DENSE_SLOW 3
/* Two measurements of the same pace, some milliseconds apart, may be so many times apart by chance. */
#define PACE_TELLS 1.5
#define ALIKE	   2
/* A difference of so many standard errors is no chance. */
#define SURELY 3
/* Runs that no window met are worth telling from this part of all runs on. */
#define MANY 0.01
/* Nearly all of them */
#define MOST 0.9

void dilation_step(struct dilation *w, const struct dilation_step *s)
{
	(s->swept ? run_rates_swept : run_rates_step)(&w->rates, s->runs, s->ns);
	w->steps[w->nsteps++ % DILATION_STEPS] = *s;
}

void dilation_begin(struct dilation *w, double hit_ns)
{
	w->hit_ns = hit_ns;
	w->now = SLOW_FIRST;
	w->nsteps = 0; /* of another time */
}

/* The last one that ended before @when; NULL: it is not known. */
static const struct dilation_step *step_before(const struct dilation *w, uint64_t when)
{
	for (uint64_t back = 1; back <= DILATION_STEPS && back <= w->nsteps; back++) {
		const struct dilation_step *s = &w->steps[(w->nsteps - back) % DILATION_STEPS];

		if (s->end <= (double)when)
			return s;
	}
	return NULL;
}

/* The paces of the time of a window, by the runtime's count. */
static struct dilation_at paces_at(const struct dilation *w, uint64_t asked, uint64_t opened,
				   double begin_ns)
{
	const struct dilation_step *before = step_before(w, asked);
	double from = (double)opened, to = from + begin_ns;
	struct dilation_at at = { .beside = before && before->ns > 0 ? before->runs / before->ns :
								       -1 };

	for (uint64_t back = 1; back <= DILATION_STEPS && back <= w->nsteps; back++) {
		const struct dilation_step *in = &w->steps[(w->nsteps - back) % DILATION_STEPS];
		double pace = in->ns > 0 ? in->runs / in->ns : 0;

		if (in->end <= from || in->end - in->ns >= to)
			continue;
		at.least = at.known ? fmin(at.least, pace) : pace;
		at.most = fmax(at.most, pace);
		at.known = true;
	}
	return at;
}

/* Were next to all runs at about this pace such that probes see? */
static bool all_seen_at(const struct dilation *w, double pace)
{
	return pace < ALIKE * w->dense && w->dense < ALIKE * pace;
}

/*
 * Did the target run far less in the window than beside it? By what was seen and by the count, because what only the
 * count has may be yields, unless windows at that pace have shown that there are none. Then a target that saw no CPU
 * for a few milliseconds is told from one that ran all the time.
 */
static bool over(const struct dilation *w, double seen)
{
	const struct dilation_at *at = &w->at;

	return run_rates_beyond(at->beside, RUN_DILATED * seen) &&
	       (all_seen_at(w, at->beside) ||
		(at->known && run_rates_beyond(at->beside, RUN_DILATED * at->least)));
}

double dilation_pace(const struct dilation *w, double seen)
{
	const struct dilation_at *at = &w->at;
	double pace = at->beside;

	if (pace < 0)
		return seen;
	if (at->over)
		return at->known ? fmin(seen, at->least) : seen;
	if (run_rates_beyond(at->most, pace))
		pace = at->most;
	return at->faster && run_rates_beyond(seen, pace) ? seen : pace;
}

/*
 * Overhead dilation: how many times longer a short time between two hits is than without probes.
 * It follows from the price of a hit or, much better, from the runtime's own count of switches,
 * where that is known: the count tells how many hits there would be, at any time, in so much CPU
 * time.
 */
static double dilation(const struct dilation *w)
{
	double gap, mean, slow;

	if (w->shorts < 1)
		return w->now;
	mean = w->short_ns / w->shorts;
	gap = mean - w->hit_ns;
	if (w->own_ns > 0 && w->shorts > SHORT_MOST * (w->shorts + w->longs))
		gap = mean * w->own_ns / w->taken_ns;
	slow = gap > mean / SLOW_MAX ? mean / gap : SLOW_MAX;
	return slow > 1 ? slow : 1;
}

double dilation_mean(const struct dilation *w, uint64_t windows)
{
	return windows ? w->sum / (double)windows : 1;
}

void dilation_add(struct gpb_wait_clock *sum, const struct gpb_wait_clock *cpu)
{
	sum->shorts += cpu->shorts;
	sum->short_ns += cpu->short_ns;
	sum->longs += cpu->longs;
	sum->long_ns += cpu->long_ns;
	sum->parks += cpu->parks;
}

static void remember(double *v, double now)
{
	*v = MEMORY * *v + now;
}

void dilation_skip(struct dilation *w, const struct gpb_wait_clock *sum)
{
	w->clock = *sum;
}

static struct gpb_wait_clock since(const struct gpb_wait_clock *now,
				   const struct gpb_wait_clock *was)
{
	return (struct gpb_wait_clock){
		.shorts = now->shorts - was->shorts,
		.short_ns = now->short_ns - was->short_ns,
		.longs = now->longs - was->longs,
		.long_ns = now->long_ns - was->long_ns,
		.parks = now->parks - was->parks,
	};
}

/*
 * How long this window's parks take at the pace beside it, where next to all hits follow closely. Each window has
 * the pace of its own moment: in the mean over some seconds, a program that has just become busy would seem to be
 * as fast with probes as without. Probes make nothing faster: then the pace was another one.
 */
static void learn_pace(struct dilation *w, const struct gpb_wait_clock *n, uint64_t asked)
{
	const struct dilation_step *s = step_before(w, asked);
	double taken = (double)(n->short_ns + n->long_ns), own;

	if (!s || w->at.over || (double)n->shorts <= SHORT_MOST * (double)(n->shorts + n->longs))
		return;
	own = s->runs > 0 ? (double)n->parks * s->busy_ns / s->runs : taken;
	w->at.faster = own >= taken || run_rates_beyond(w->at.most, w->at.beside);
	if (own <= 0 || w->at.faster)
		return;
	remember(&w->taken_ns, taken);
	remember(&w->own_ns, own);
	w->at.close = w->at.beside;
	w->at.dense = taken >= DENSE_SLOW * own;
	if (w->at.dense)
		w->dense = w->at.beside;
}

void dilation_learn(struct dilation *w, const struct gpb_wait_clock *sum, uint64_t asked,
		    uint64_t opened, double begin_ns, double seen)
{
	const struct gpb_wait_clock n = since(sum, &w->clock);

	w->clock = *sum;
	remember(&w->shorts, (double)n.shorts);
	remember(&w->short_ns, (double)n.short_ns);
	remember(&w->longs, (double)n.longs);
	w->at = paces_at(w, asked, opened, begin_ns);
	w->at.over = over(w, seen);
	learn_pace(w, &n, asked);
	w->now = dilation(w);
	w->sum += w->now;
}

double dilation_own(const struct dilation *w, double runs, double own_ns)
{
	double least = w->at.close > 0 ? runs / w->at.close : 0;

	if (least <= 0)
		return own_ns;
	return w->at.dense || least > PACE_TELLS * own_ns ? least : own_ns;
}

struct dilation_terms dilation_terms(const struct dilation *w, uint64_t begin_ns)
{
	return (struct dilation_terms){
		.own = { .ns = (uint64_t)((double)begin_ns / (1 + ROOM * (w->now - 1))),
			 .hit_ns = (uint64_t)w->hit_ns },
		.own_share = (uint64_t)(GPB_SHARE_ONE / w->now),
		.short_ns = (uint64_t)(SHORT_HITS * w->hit_ns),
	};
}

static double others_unmet(const struct dilation *w)
{
	struct run_unmet u = run_rates_unmet(&w->rates);

	return u.runs - u.yields;
}

double dilation_unmet(const struct dilation *w)
{
	double unmet = others_unmet(w);

	return unmet > MANY * w->switches ? unmet : 0;
}

bool dilation_maybe_yields(const struct dilation *w)
{
	struct run_unmet u = run_rates_unmet(&w->rates);

	return u.maybe > MOST * (u.runs - u.yields);
}

double dilation_yields(const struct dilation *w)
{
	double yields = run_rates_unmet(&w->rates).yields;

	return yields > MANY * w->switches ? yields : 0;
}

double dilation_met(const struct dilation *w)
{
	double unmet = run_rates_unmet(&w->rates).runs;

	return w->switches < 0 ? -1 : w->switches > unmet ? w->switches - unmet : 0;
}

/* The difference between the total and what windows stand for, which they have @lack times too few of. */
static double misfit(const struct dilation *w, const struct tally_estimate *windows, double lack)
{
	double off = dilation_met(w) - lack * windows->value;
	double chance = SURELY * lack * sqrt(windows->variance > 0 ? windows->variance : 0);

	return fabs(off) > chance ? off : 0;
}

/*
 * Few windows tell the usual pace badly, and one that met a storm has much weight in the fit. So what they lack
 * is believed only where the total does not fit without it, and fits better with it.
 */
double dilation_lack(const struct dilation *w, const struct tally_estimate *windows)
{
	double lack = run_rates_lack(&w->rates), off = misfit(w, windows, 1);

	return fabs(dilation_met(w) - lack * windows->value) < fabs(off) ? lack : 1;
}

/* What is too little to be told is uncertain, too. */
static double few_unmet(const struct dilation *w)
{
	return dilation_unmet(w) > 0 ? 0 : others_unmet(w);
}

double dilation_of_site(const struct dilation *w)
{
	double unmet = dilation_unmet(w) * GPB_COUNT_ONE;

	return unmet * unmet;
}

double dilation_unsure(const struct dilation *w, const struct tally_estimate *windows, double lack)
{
	struct run_unmet u = run_rates_unmet(&w->rates);
	double faster = misfit(w, windows, lack) ? u.faster : 0;

	return faster + u.unsure + few_unmet(w);
}
