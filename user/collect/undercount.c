/* user/collect/undercount.c - compares the delays of windows with those of looks. */
#include "collect/undercount.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* So many standard errors are no chance, even where there are many sites. */
#define SURELY 4

/* Short waits that are more than this part of a site's delay hide how long the others are. */
#define SHORT_MOST 0.1

static void add(struct undercount *to, const struct tally_entry *en,
		const struct onlook_estimate *looks)
{
	double count = en->counts.x / GPB_COUNT_ONE;

	to->windows_ns += en->delays.x;
	to->looks_ns += looks->delay_ns - looks->counted_ns;
	to->few_ns += looks->few_ns;
	to->few += looks->few;
	to->edge_ns += looks->edge_ns;
	to->missed += looks->missed;
	to->missed_ns += looks->missed_ns;
	to->missed_variance += looks->missed_variance;
	/* What follows a wait that a clock paces has its group, too, and may be short (bpf/wait.bpf.c). */
	if (!en->group || en->delays.x < count * GPB_LONG_NS)
		return;
	to->count += count;
	to->met += (double)en->sampled / GPB_COUNT_ONE;
	to->long_ns += en->delays.x;
}

static double at_least_0(double variance)
{
	return variance > 0 ? variance : 0;
}

/* Is a difference of so many ns more than @errors standard errors? */
static bool beyond(double ns, double errors, double variance)
{
	return ns > 0 && ns * ns > errors * errors * variance;
}

/* Did looks see waits that they do not count, in more than @errors standard errors? */
static bool saw_others(const struct undercount *c, double errors, double looks)
{
	return beyond(c->few_ns - c->missed_ns, errors, at_least_0(looks) + c->missed_variance);
}

static double square(double x)
{
	return x * x;
}

/* ---- numbers by length ---- */

/*
 * The variance of the total length by looks. Which waits enough looks saw depends on the looks, so that the
 * measured lengths of those that barely were are too large: what is left is between that and what looks saw of
 * the others.
 */
static double length_variance(const struct undercount *c, double short_ns, double looks)
{
	return at_least_0(looks) + c->missed_variance + square(c->missed_ns) +
	       square(c->few_ns - c->looks_ns) + square(c->edge_ns) + square(short_ns);
}

/*
 * By which part probes may have made the waits of windows longer, so that the number by length is too small:
 * windows then saw more delay than looks. @dilation: so many times slower the target is in windows.
 */
static double longer(double met_ns, double ns, double error_ns, double dilation)
{
	double part = ((met_ns > ns ? met_ns - ns : 0) + error_ns) / ns;

	part = part < dilation - 1 ? part : dilation - 1;
	return part > 0 ? part : 0;
}

/* Is the number of a site's long waits by their length better than that by time? */
static void by_length(struct undercount *out, const struct undercount *c, const struct tally *t,
		      const struct tally_part *p, double looks, double dilation)
{
	struct tally_estimate plain = tally_part_parked(t, p), met = tally_part_parked_delays(t, p),
			      by;
	double short_ns = c->windows_ns - met.value, ns_variance, chance;
	double ns = c->looks_ns + c->edge_ns - c->missed_ns - short_ns;

	if (plain.value <= 0 || met.value <= 0 || ns <= 0 || short_ns > SHORT_MOST * ns)
		return;
	by = tally_part_by_length(p, ns);
	ns_variance = length_variance(c, short_ns, looks);
	chance = at_least_0(met.variance) + ns_variance;
	by.variance += square(by.value / ns) * ns_variance;
	by.variance += square(by.value * longer(met.value, ns, sqrt(chance), dilation));
	if (beyond(ns - met.value, 1, chance) && plain.variance >= 0)
		plain.variance += square(by.value - plain.value);
	if (beyond(met.value - ns, SURELY, chance) ||
	    (plain.variance >= 0 && plain.variance <= by.variance))
		return;
	out->factor = by.value / plain.value;
	out->variance = by.variance * square(1 + out->follow / plain.value) / square(GPB_COUNT_ONE);
}

/* Times runnable that follow long waits lack as these do. */
static bool follows(const struct undercounts *u, const struct tally_entry *en)
{
	return !en->parked && en->group && en->st->size >> 8 != u->but;
}

/* Decides for each site. Only waits of parked goroutines are compared here. */
static int choose(struct undercounts *u, const struct tally *t, const struct onlook_sums *k,
		  double dilation)
{
	struct undercount *parked = calloc(u->n + 1, sizeof(*parked));

	if (!parked)
		return -ENOMEM;
	for (size_t i = 0; i < t->entries.n; i++) {
		struct onlook_estimate looks = onlook_sums_of(k, i);

		if (t->entries.at[i].parked)
			add(&parked[t->entries.at[i].site], &t->entries.at[i], &looks);
		else if (follows(u, &t->entries.at[i]))
			u->at[t->entries.at[i].site].follow += t->entries.at[i].counts.x;
	}
	for (size_t i = 0; i < u->n; i++)
		by_length(&u->at[i], &parked[i], t, &t->sites.at[i].sums,
			  onlook_site_variance(k, i), dilation);
	free(parked);
	return 0;
}

void undercounts_learn(struct undercounts *u, const struct tally *t, const struct onlook_sums *k,
		       uint64_t but, double dilation)
{
	u->n = t->sites.n;
	u->but = but;
	u->at = calloc(u->n + 1, sizeof(*u->at));
	if (!u->at || choose(u, t, k, dilation)) {
		undercounts_fini(u);
		return;
	}
	for (size_t i = 0; i < t->entries.n; i++) {
		const struct tally_entry *en = &t->entries.at[i];
		struct undercount *site = &u->at[en->site];
		struct onlook_estimate looks = onlook_sums_of(k, i);

		if (en->st->size >> 8 == but || (en->parked && site->factor > 0))
			continue;
		add(site, en, &looks);
		if (!t->sites.at[en->site].whole)
			add(&u->all, en, &looks);
	}
}

double undercounts_factor(const struct undercounts *u, const struct tally_entry *en)
{
	double factor = u->at ? u->at[en->site].factor : 0;

	return factor > 0 && en->group && (en->parked || follows(u, en)) ? factor : 1;
}

double undercounts_by_length(const struct undercounts *u, size_t site)
{
	return u->at && site < u->n && u->at[site].factor > 0 ? u->at[site].variance : -1;
}

/* ---- what windows lack ---- */

/* A difference that is no larger than its standard error may be chance. */
static double lacking(const struct undercount *c, double windows, double looks)
{
	double lacks = c->looks_ns - c->windows_ns;

	if (c->long_ns <= 0 || !beyond(lacks, 1, at_least_0(windows) + at_least_0(looks)))
		return 0;
	/* Lengths are taken to differ by as much as their mean, which is uncertain where windows met few. */
	return square(lacks / c->long_ns * c->count) * (1 + 1 / c->met);
}

/*
 * Where windows met no wait at all, nothing tells how long those are that looks saw, so their number is not
 * known; a few may be those that the waits which looks count stand for.
 */
static double variance(const struct undercount *c, double windows, double looks)
{
	if (c->windows_ns > 0)
		return lacking(c, windows, looks) + square(c->missed);
	if (saw_others(c, SURELY, looks))
		return -1;
	return square(c->few - c->missed);
}

double undercounts_site(const struct undercounts *u, size_t site, double windows, double looks)
{
	if (!u->at)
		return -1;
	return site < u->n ? variance(&u->at[site], windows, looks) : 0;
}

bool undercounts_counted(const struct undercounts *u, size_t site, double looks)
{
	const struct undercount *c = u->at && site < u->n ? &u->at[site] : NULL;

	return !c || !saw_others(c, 1, looks);
}

double undercounts_all(const struct undercounts *u, double windows, double looks)
{
	return u->at ? variance(&u->all, windows, looks) : -1;
}

void undercounts_fini(struct undercounts *u)
{
	free(u->at);
	*u = (struct undercounts){};
}
