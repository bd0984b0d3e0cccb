/* user/collect/waits/contention/sched_window.c - waits of block and mutex profiles: what is theirs alone of wait_engine.h. */
#include "collect/waits/contention/sched_window.h"

#include <math.h>

#include "sampling/looks/looks_sums.h"

/* Windows that saw fewer waits, all together, and far less than ran beside them, met nothing. */
enum { FEW = 10 };

/* Groups of the tally: the kinds of waits and, for both, those that are counted by the clock. */
enum { GROUP_LONG = GPB_WAIT_KINDS };

/* ---- samples ---- */

static size_t whole_of(void *engine, const struct gpb_stack *st)
{
	(void)engine;
	return st->wait.kind == GPB_WAIT_MUTEX ? GPB_WAIT_MUTEX : GPB_WAIT_BLOCK;
}

static bool parks(void *engine, const struct gpb_stack *st)
{
	(void)engine;
	return st->wait.kind == GPB_WAIT_BLOCK;
}

int sched_window_add(void *arg, const struct gpb_stack *st, struct err *e)
{
	struct sched_window *w = arg;
	uint64_t kind = st->wait.kind;

	if (kind >= GPB_WAIT_KINDS)
		return 0;
	return wait_engine_add(&w->engine, st, st->wait.length ? GROUP_LONG : kind, e);
}

/* ---- goroutines that wait now ---- */

static uint64_t since(const void *wait)
{
	const struct gpb_wait *at = wait;

	return at->since;
}

int sched_window_waiting(const struct sched_window *w, uint64_t from, uint64_t *out, struct err *e)
{
	return wait_engine_waiting(&w->engine, from, since, out, e);
}

/* ---- stretches ---- */

static struct wait_counts counts_of(const void *seen)
{
	const struct gpb_sched_seen *n = seen;

	return (struct wait_counts){
		.spent = n->spent,
		.clock = n->clock,
		.runs = n->parks,
		.cut = n->cut,
		.charged_ns = n->charged_ns,
		.waited_ns = n->waited_ns,
	};
}

static void seen_before(void *arg, const void *seen, double ns)
{
	const struct gpb_sched_seen *n = seen;
	struct sched_window *w = arg;

	for (int k = 0; k < GPB_WAIT_KINDS; k++)
		w->light[k] = (struct fine_waits){ .waits = (double)n->ended[k], .ns = ns };
	w->light[GPB_WAIT_BLOCK].capped_ns = (double)n->capped_ns;
}

/* Chooses the rates of full observation, before the first of it. */
static void choose_rates(struct sched_window *w)
{
	struct collect_opts *o = &w->engine.o;

	if (o->block.fine)
		o->block.rate_ns = fine_wait_rate(&w->light[GPB_WAIT_BLOCK], o->budget.ppm,
						  o->block.rate_ns);
	if (o->mutex.fine)
		o->mutex.fraction = fine_mutex_fraction(&w->light[GPB_WAIT_MUTEX], o->budget.ppm,
							o->mutex.fraction);
}

static void set_rates(void *arg, bool windows, bool choose)
{
	struct sched_window *w = arg;

	if (choose)
		choose_rates(w);
	/* A window shows few waits, so all of them are samples. */
	w->conf.block_rate = windows ? 1 : w->engine.o.block.rate_ns;
	w->conf.mutex_fraction = windows ? 1 : w->engine.o.mutex.fraction;
}

/* Counts of the kinds that are told, of those that group 0 has, since the last window. */
static double told_now(const struct sched_window *w)
{
	double n = 0;

	for (size_t i = 0; i < w->engine.tally.seen.n; i++)
		if (w->engine.tally.entries.at[w->engine.tally.seen.at[i].entry].group ==
		    GPB_WAIT_BLOCK)
			n += (double)w->engine.tally.seen.at[i].count / GPB_COUNT_ONE;
	return n;
}

static void add_unlocks(struct sched_window *w, const struct wait_window_sum *sum)
{
	double weight = sum->stratum_ns / sum->length_ns, charged = weight * sum->charged_ns,
	       waited = weight * sum->waited_ns;

	w->cut += sum->cut * sum->stratum_ns / sum->begin_ns;
	w->unlocks.charged += charged;
	w->unlocks.waited += waited;
	w->unlocks.cc += charged * charged;
	w->unlocks.cw += charged * waited;
	w->unlocks.ww += waited * waited;
}

/*
 * Windows are compared with the runtime's own count at their moment, which has yields, preemptions and system calls,
 * too, that these probes do not see.
 */
static double runs_in(void *arg, const struct wait_window_sum *sum)
{
	struct sched_window *w = arg;
	struct dilation *slow = &w->engine.slow;
	double pace = dilation_pace(slow, sum->runs / sum->own_ns);

	add_unlocks(w, sum);
	w->seen.parks += sum->runs;
	w->seen.stand_for += sum->runs * sum->weight;
	run_rates_window(&slow->rates, pace * sum->own_ns, sum->own_ns, sum->stratum_ns);
	if (slow->at.dense) {
		w->dense.parks += sum->runs * sum->weight;
		w->dense.told += told_now(w) * sum->weight;
	}
	return pace * sum->stratum_ns;
}

/* A goroutine that parks in a window. */
static int hit_cost_of(void *arg, struct hit_cost *out, struct cost_probes **rest, struct err *e)
{
	struct sched_window *w = arg;
	struct gpb_sched conf = w->conf;

	conf.kinds = 1u << GPB_WAIT_BLOCK;
	conf.reasons = ~0ull;
	conf.sema_reasons = 0;
	conf.g_waitreason = -1;
	conf.terms = wait_engine_endless();
	return wait_engine_hit_cost(&w->engine, &conf, GPB_AT_PARK, out, rest, e);
}

int sched_window_joined(struct sched_window *w, struct err *e)
{
	return w->conf.terms.own.ns ? wait_engine_look(&w->engine, 0, e) : 0;
}

/* ---- the end ---- */

/*
 * How much the runtime charges for what is waited, which windows tell by its own arithmetic and by when goroutines
 * came: a ratio estimator.
 */
static struct tally_estimate charge_ratio(const struct sched_window *w)
{
	double waited = w->unlocks.waited, r = waited > 0 ? w->unlocks.charged / waited : 1;
	double square = tally_among(&w->engine.tally,
				    w->unlocks.cc - 2 * r * w->unlocks.cw + r * r * w->unlocks.ww,
				    1);

	return (struct tally_estimate){ r,
					square < 0 || waited <= 0 ? -1 : square / waited / waited };
}

static void charge_locked(struct sched_window *w)
{
	struct tally_estimate r = charge_ratio(w);
	double waited = w->locked.delay;

	w->locked.delay = r.value * waited;
	w->locked.delay_error = variance_plus(r.value * r.value * w->locked.delay_error,
					      r.variance < 0 ? -1 : r.variance * waited * waited);
}

/*
 * Sums up all that was waited for mutexes, as looks saw it; windows tell who made others wait, if
 * they saw any of it.
 */
static void sum_locked(struct sched_window *w)
{
	const struct looks_sums *k = looks_sums(w->engine.looks);
	double lost = looks_apart_lost(k);

	for (size_t i = 0; i < w->engine.tally.entries.n; i++) {
		const struct tally_entry *en = &w->engine.tally.entries.at[i];
		struct looks_estimate o = looks_of(w->engine.looks, i);

		if (en->st->wait.kind == GPB_WAIT_MUTEX ||
		    !(w->mutexes >> (en->st->wait.reason & 63) & 1))
			continue;
		w->locked.delay += o.delay_ns;
		w->locked.delay_error += o.own_variance;
	}
	w->locked.delay_error += looks_apart_variance(k) + lost * lost;
	w->locked.known = w->engine.tally.wholes[GPB_WAIT_MUTEX].delays.x > 0;
	if (w->locked.known)
		charge_locked(w);
}

/*
 * Some of the parks in windows are not of the kinds that are counted, for example sleepers. Parks
 * that a clock paces are too many in windows, compared with the others, by the slowdown; in the
 * runtime's count they are not. How many of these there are is not known, so the middle is taken,
 * and the largest possible error is reported. Only windows in which the target is slow have this.
 */
static void weigh_others(struct sched_window *w)
{
	double runs = w->engine.tally.groups[GPB_WAIT_BLOCK].x, parks = w->dense.parks;
	double others = parks > w->dense.told ? 1 - w->dense.told / parks : 0;
	double slow = dilation_mean(&w->engine.slow, w->engine.tally.windows);

	if (slow > 1 && runs > 0)
		w->engine.too_few = others * (1 - 1 / slow) / 2 * fmin(parks / runs, 1);
}

void sched_window_end(struct sched_window *w)
{
	struct wait_engine *en = &w->engine;

	wait_engine_end(en);
	/* Did the target get no CPU in windows, or did it only yield? Nobody knows. */
	if (w->seen.parks < FEW && RUN_DILATED * w->seen.stand_for < en->tally.groups[0].x)
		en->slow.rates.most = 0;
	weigh_others(w);
	if (en->looks && w->mutexes)
		sum_locked(w);
}

/* ---- estimates ---- */

static const double one2 = (double)GPB_COUNT_ONE * GPB_COUNT_ONE;

/*
 * Full observation is a sample, too: one contention in so many, each of which stands for that
 * many. The variance of delays assumes that those of one stack are alike.
 */
static void unsure_of_sample(const struct sched_window *w, const struct tally_entry *en,
			     struct wait_estimate *out)
{
	double others = (double)w->engine.o.mutex.fraction - 1,
	       count = (double)en->count / GPB_COUNT_ONE;

	if (others <= 0 || count <= 0)
		return;
	out->count_error += count * others * one2;
	out->delay_error += (double)en->delay * (double)en->delay * others / count;
}

/* Contentions that looks saw: windows tell who made others wait, if they saw any of them. */
static void estimate_mutex(const struct sched_window *w, const struct tally_entry *en,
			   struct wait_estimate *out)
{
	double delay = en->delays.x;

	if (w->locked.known)
		delay *= w->locked.delay / w->engine.tally.wholes[GPB_WAIT_MUTEX].delays.x;
	out->count = (int64_t)en->count + llround(en->counts.x);
	out->delay = (int64_t)en->delay + llround(delay);
	unsure_of_sample(w, en, out);
}

struct wait_estimate sched_window_estimate(const void *arg, size_t entry)
{
	const struct sched_window *w = arg;
	const struct tally_entry *en = &w->engine.tally.entries.at[entry];
	struct wait_estimate out = {};

	if (en->st->wait.kind == GPB_WAIT_BLOCK)
		return wait_estimates_of(&w->engine, entry, false);
	estimate_mutex(w, en, &out);
	return out;
}

/* A share of all that is waited for mutexes. Looks tell the variance of that total. */
static struct wait_error mutex_error(const struct sched_window *w, const struct tally_part *p)
{
	struct tally_estimate share = tally_part_share(&w->engine.tally, p,
						       &w->engine.tally.wholes[GPB_WAIT_MUTEX]);
	double delay = w->locked.delay;
	struct wait_error out = { tally_part_counts(&w->engine.tally, p).variance,
				  tally_part_delays(&w->engine.tally, p).variance };

	if (!w->locked.known && delay > 0)
		return (struct wait_error){ -1, -1 };
	if (!w->locked.known)
		return out;
	if (share.variance < 0)
		return (struct wait_error){ -1, -1 };
	out.delay = variance_plus(share.variance * delay * delay,
				  share.value * share.value * w->locked.delay_error);
	return out;
}

struct wait_error sched_window_site(const void *arg, size_t site)
{
	const struct sched_window *w = arg;
	const struct tally_site *s = &w->engine.tally.sites.at[site];
	const struct wait_site_errors of = wait_estimates_site(&w->engine, site);
	struct wait_error out = of.told;

	if (s->whole == GPB_WAIT_MUTEX)
		out = mutex_error(w, &s->sums);
	else
		out.count = variance_plus(out.count, of.lacking);
	out.count = variance_plus(out.count, of.missed.count);
	out.count = variance_plus(out.count, of.unmet);
	out.delay = variance_plus(out.delay, of.missed.delay);
	return out;
}

struct wait_error sched_window_whole(const struct sched_window *w, unsigned kind)
{
	const struct tally_part *all = &w->engine.tally.wholes[kind];

	return wait_estimates_whole(&w->engine, kind,
				    kind == GPB_WAIT_MUTEX ? mutex_error(w, all) :
							     wait_estimates_told(&w->engine, kind));
}

/* ---- life ---- */

void sched_window_init(struct sched_window *w)
{
	static const struct wait_kind kind = {
		.name = "block",
		.seen_words = sizeof(struct gpb_sched_seen) / 8,
		.wait_bytes = sizeof(struct gpb_wait),
		.but = GPB_WAIT_MUTEX,
		.not_looked = GPB_WAIT_MUTEX,
		.add = sched_window_add,
		.counts = counts_of,
		.before = seen_before,
		.rates = set_rates,
		.runs = runs_in,
		.since = since,
		.hit_cost = hit_cost_of,
		.estimate = sched_window_estimate,
		.site = sched_window_site,
	};

	wait_engine_init(&w->engine, &kind, w, &w->conf, &w->conf.terms);
	w->engine.tally.whole = whole_of;
	w->engine.tally.parked = parks;
}

void sched_window_fini(struct sched_window *w)
{
	wait_engine_fini(&w->engine);
}
