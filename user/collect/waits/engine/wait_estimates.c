/* user/collect/waits/engine/wait_estimates.c - the regression with the runtime's count, and the errors. */
#include "collect/waits/engine/wait_estimates.h"

#include <math.h>

#include "collect/waits/engine/run_ratio.h"
#include "sampling/looks/looks_sums.h"

static const double one2 = (double)GPB_COUNT_ONE * GPB_COUNT_ONE;

/* ---- numbers ---- */

/* All runs, by windows alone. */
static struct tally_estimate runs_of(const struct wait_engine *w)
{
	struct tally_estimate runs = tally_group(&w->tally, 0);

	runs.value += w->paced;
	return runs;
}

/* Where group 0 was compared with the runtime's own count at the moment of each window, windows lack nothing. */
static double lack(const struct wait_engine *w)
{
	const struct tally_estimate runs = runs_of(w);

	return w->kind->sees_runs ? dilation_lack(&w->slow, &runs) : 1;
}

static struct tally_estimate with_total(const struct wait_engine *w, const struct tally_part *p,
					double total)
{
	struct tally_estimate n = tally_part_regressed(&w->tally, p, total, lack(w));

	n.value *= 1 + w->too_few;
	return n;
}

static struct tally_estimate regressed(const struct wait_engine *w, const struct tally_part *p)
{
	return with_total(w, p, dilation_met(&w->slow) - w->paced);
}

static double ratio_of(const struct wait_engine *w)
{
	return w->ratio ?: 1;
}

/*
 * The number that windows tell of an entry. Where its site's number comes from regression, the
 * entry's part of that.
 */
static double count_of(const struct wait_engine *w, const struct tally_entry *en)
{
	const struct tally_part *site = &w->tally.sites.at[en->site].sums;

	if (en->group || site->compared.x <= 0 || !run_regressed(w))
		return en->counts.x * undercounts_factor(&w->under, en) * ratio_of(w);
	return regressed(w, site).value * en->counts.x / site->compared.x;
}

struct wait_estimate wait_estimates_of(const struct wait_engine *w, size_t entry, bool unsure)
{
	const struct tally_entry *en = &w->tally.entries.at[entry];
	struct looks_estimate o = {};
	double delay = en->delays.x;

	if (w->looks) {
		o = looks_of(w->looks, entry);
		delay = unsure ? o.delay_ns + o.unsure_ns : o.delay_ns;
	}
	return (struct wait_estimate){
		.count = (int64_t)en->count + llround(count_of(w, en) + o.count * GPB_COUNT_ONE),
		.delay = (int64_t)en->delay + llround(delay),
		.count_error = o.count_variance * one2,
		.delay_error = o.own_variance,
	};
}

/* ---- errors ---- */

/* How far off the regression may be because the total is (dilation_unsure). */
static double unsure_of_total(const struct wait_engine *w, const struct tally_part *p, double value)
{
	const struct tally_estimate runs = runs_of(w);
	double total = dilation_met(&w->slow) - w->paced;
	double unsure = dilation_unsure(&w->slow, &runs, lack(w));

	return with_total(w, p, total + unsure).value - value;
}

/*
 * The variance of the number of waits: the regression's residual, the error that all sites have in
 * common (too_few), and that of the total.
 */
static double counts_error(const struct wait_engine *w, const struct tally_part *p)
{
	struct tally_estimate n;
	double more;

	if (!run_regressed(w))
		return tally_part_counts(&w->tally, p).variance;
	n = regressed(w, p);
	more = unsure_of_total(w, p, n.value);
	return variance_plus(n.variance, n.value * n.value * w->too_few * w->too_few + more * more);
}

/* Long waits by their length, and times runnable that are as many as waits: they have an error of their own. */
static double apart_error(const struct wait_engine *w, size_t site)
{
	double variance = 0;

	(void)undercounts_apart(&w->under, site, &variance);
	return variance < 0 ? -1 : variance * one2;
}

/* Of the number of a site's waits that windows tell. */
static double site_error(const struct wait_engine *w, size_t site)
{
	struct tally_part p = w->tally.sites.at[site].sums;
	double any;

	double n = p.counts.x, all = 0;

	if (undercounts_apart(&w->under, site, &any))
		p.counts = p.others;
	for (size_t i = 0; i < w->tally.sites.n; i++)
		all += w->tally.sites.at[i].sums.counts.x;
	return run_ratio_variance(ratio_of(w), n,
				  variance_plus(counts_error(w, &p), apart_error(w, site)),
				  all > 0 ? n / all : 1);
}

static double lacking(const struct wait_engine *w, size_t site)
{
	const struct tally_part *p = &w->tally.sites.at[site].sums;

	if (!w->looks)
		return 0;
	return undercounts_site(&w->under, site, tally_part_delays(&w->tally, p).variance,
				looks_site_variance(looks_sums(w->looks), site)) *
	       one2;
}

static double lacking_all(const struct wait_engine *w, const struct tally_part *all)
{
	if (!w->looks)
		return 0;
	return undercounts_all(&w->under, tally_part_delays(&w->tally, all).variance,
			       looks_all_variance(looks_sums(w->looks))) *
	       one2;
}

/* Did looks count all that they saw of a site? */
static bool counted_by_looks(const struct wait_engine *w, size_t site)
{
	const struct looks_sums *k = w->looks ? looks_sums(w->looks) : NULL;

	return k && looks_site_count(k, site) > 0 &&
	       undercounts_counted(&w->under, site, looks_site_variance(k, site));
}

static double squared(double x)
{
	return x * x;
}

/*
 * How many waits of a site one that a window saw stands for, in the mean. Short ones count in a part of the target's own time, which of a
 * process that is idle is little of a window; longer ones count anywhere in its first part.
 */
static double weight_of(const struct wait_engine *w, const struct tally_part *p)
{
	const struct tally *t = &w->tally;
	double waits = (p->full + p->counts.x) / GPB_COUNT_ONE, ns = p->full_delay + p->delays.x;

	if (ns > waits * GPB_LONG_NS && w->begins_ns > 0)
		return t->windows_ns / w->begins_ns;
	return t->windows ? t->weights / (double)t->windows : 1;
}

/*
 * Where probes saw waits that no look met, these may go on to come as they did: by full observation, or by windows, whichever saw more of
 * them. But no more wait at once than were seen in all, and looks would have met those if they were there for long. Without it, a place
 * where twenty wait together for 30 ms a second had the error of one goroutine.
 */
static double unmet_by_looks(const struct wait_engine *w, size_t site)
{
	const struct tally *t = &w->tally;
	const struct tally_part *p = &t->sites.at[site].sums;
	double at_once = (p->full + p->counts.x / weight_of(w, p)) / GPB_COUNT_ONE;
	double by_full = t->full_ns > 0 ? p->full_delay * t->windows_ns / t->full_ns : 0;

	return fmin(squared(fmax(by_full, p->delays.x)),
		    looks_site_unmet(looks_sums(w->looks), site) * squared(at_once));
}

/*
 * What neither a window nor a look met may have come in between. Where there are looks, they tell how
 * long goroutines waited.
 */
static struct wait_error missed(const struct wait_engine *w, size_t site)
{
	const struct tally_site *s = &w->tally.sites.at[site];
	struct tally_missed m = tally_part_missed(&w->tally, &s->sums, weight_of(w, &s->sums));

	if (s->whole == w->kind->not_looked)
		return (struct wait_error){ m.count * one2, m.delay };
	if (counted_by_looks(w, site))
		return (struct wait_error){};
	return (struct wait_error){ m.count * one2, w->looks ? unmet_by_looks(w, site) : m.delay };
}

/* Of a site's delay. */
static double delay_error(const struct wait_engine *w, size_t site)
{
	const struct looks_sums *k = w->looks ? looks_sums(w->looks) : NULL;

	if (!k)
		return tally_part_delays(&w->tally, &w->tally.sites.at[site].sums).variance;
	return looks_site_variance(k, site) + squared(looks_site_lost(k, site));
}

static double delay_error_all(const struct wait_engine *w, size_t whole)
{
	const struct looks_sums *k = w->looks ? looks_sums(w->looks) : NULL;

	if (!k)
		return tally_part_delays(&w->tally, &w->tally.wholes[whole]).variance;
	return looks_all_variance(k) + squared(looks_all_lost(k));
}

struct wait_site_errors wait_estimates_site(const struct wait_engine *w, size_t site)
{
	return (struct wait_site_errors){
		.told = { .count = site_error(w, site), .delay = delay_error(w, site) },
		.lacking = lacking(w, site),
		.missed = missed(w, site),
		.unmet = dilation_of_site(&w->slow),
	};
}

struct wait_error wait_estimates_told(const struct wait_engine *w, size_t whole)
{
	const struct tally_part *all = &w->tally.wholes[whole];

	return (struct wait_error){
		.count = variance_plus(counts_error(w, all), lacking_all(w, all)),
		.delay = delay_error_all(w, whole),
	};
}

struct wait_error wait_estimates_whole(const struct wait_engine *w, size_t whole,
				       struct wait_error told)
{
	struct wait_error out = told;

	for (size_t i = 0; i < w->tally.sites.n; i++) {
		struct wait_error m;

		if (w->tally.sites.at[i].whole != whole)
			continue;
		m = missed(w, i);
		out.count = variance_plus(out.count, m.count);
		out.count = variance_plus(out.count, apart_error(w, i));
		out.delay = variance_plus(out.delay, m.delay);
	}
	if (dilation_unmet(&w->slow) > 0)
		out.count = -1; /* nobody knows how much of that were waits */
	return out;
}

/* ---- all of them ---- */

/* Is it of that whole, and not 0? */
static bool told_of(const struct wait_engine *w, size_t whole, size_t entry,
		    struct wait_estimate *out)
{
	if (w->tally.sites.at[w->tally.entries.at[entry].site].whole != whole)
		return false;
	*out = w->kind->estimate(w->arg, entry);
	return out->count || out->delay;
}

int wait_estimates_each(const struct wait_engine *w, size_t whole, wait_take *take, void *arg,
			struct wait_error *all, struct err *e)
{
	CLEANUP(freep) bool *told = calloc(w->tally.sites.n + 1, sizeof(*told));
	int ret = told ? 0 : err_set(e, -ENOMEM, "no memory for stacks");

	for (size_t i = 0; !ret && i < w->tally.entries.n; i++) {
		const struct tally_entry *en = &w->tally.entries.at[i];
		struct wait_estimate est;
		struct wait_error site = {};

		if (!told_of(w, whole, i, &est))
			continue;
		all->count = variance_plus(est.count_error, all->count);
		all->delay = variance_plus(est.delay_error, all->delay);
		/* The error that a site's stacks share is reported with the first of them. */
		if (!told[en->site])
			site = w->kind->site(w->arg, en->site);
		told[en->site] = true;
		est.count_error = variance_plus(est.count_error, site.count);
		est.delay_error = variance_plus(est.delay_error, site.delay);
		ret = take(arg, en->st, &est, e);
	}
	return ret;
}

size_t wait_estimates_number(const struct wait_engine *w, size_t whole)
{
	struct wait_estimate est;
	size_t n = 0;

	for (size_t i = 0; i < w->tally.entries.n; i++)
		n += told_of(w, whole, i, &est);
	return n;
}
