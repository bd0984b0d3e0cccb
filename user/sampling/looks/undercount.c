/* user/sampling/looks/undercount.c - compares the delays of windows with those of looks. */
#include "sampling/looks/undercount.h"
#include "goprof_abi.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* So many standard errors are no chance, even where there are many sites. */
#define SURELY 4

/* Waits that are longer do not surely end in the window in which they began (WAIT_END_NS - WAIT_BEGIN_NS). */
#define SEEN_WHOLE_NS 7e6
/* A target that has to wait for CPUs: windows meet down to a third of its long waits. */
#define LACK_MOST 2

/* Short waits that are more than this part of a site's delay hide how long the others are. */
#define SHORT_MOST 0.1

static void add(struct undercount *to, const struct tally_entry *en,
		const struct looks_estimate *looks)
{
	double count = en->counts.x / GPB_COUNT_ONE;

	to->windows_ns += en->delays.x;
	to->looks_ns += looks->delay_ns - looks->counted_ns;
	if (en->parked) {
		to->parked_ns += en->delays.x;
		to->few_ns += looks->few_ns;
		to->few += looks->few;
	}
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

/* Of two variances, each < 0 if not known. */
static double plus(double a, double b)
{
	return a < 0 || b < 0 ? -1 : a + b;
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
static void by_length(const struct undercounts *u, struct undercount *out,
		      const struct undercount *c, const struct tally *t, const struct tally_part *p,
		      double looks, double dilation)
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
	if (by.value - plain.value > u->most * GPB_COUNT_ONE ||
	    (u->between && beyond(ns - met.value, 1, chance)))
		return;
	by.variance += square(by.value / ns) * ns_variance;
	by.variance += square(by.value * longer(met.value, ns, sqrt(chance), dilation));
	if (beyond(ns - met.value, 1, chance) && plain.variance >= 0)
		plain.variance += square(by.value - plain.value);
	if (beyond(met.value - ns, SURELY, chance) ||
	    (plain.variance >= 0 && plain.variance <= by.variance))
		return;
	out->factor = by.value / plain.value;
	out->length_variance = out->variance = by.variance / square(GPB_COUNT_ONE);
}

/* What times runnable are compared with. */
static void count_followed(struct undercount *site, const struct tally_entry *en, bool is_call,
			   const struct looks_estimate *looks)
{
	if (en->parked) {
		site->counted += looks->count;
		site->counted_variance += looks->count_variance;
	} else if (is_call) {
		site->calls += en->group ? en->counts.x / GPB_COUNT_ONE : 0;
	} else {
		site->runnable += looks->count;
	}
}

/* Decides for each site. Only waits of parked goroutines are compared here. */
static int choose(struct undercounts *u, const struct tally *t, const struct looks_sums *k,
		  double dilation)
{
	struct undercount *parked = calloc(u->n + 1, sizeof(*parked));

	if (!parked)
		return -ENOMEM;
	for (size_t i = 0; i < t->entries.n; i++) {
		const struct tally_entry *en = &t->entries.at[i];
		struct looks_estimate looks = looks_sums_of(k, i);

		if (en->parked)
			add(&parked[en->site], en, &looks);
		count_followed(&u->at[en->site], en, en->st->wait.kind == u->but, &looks);
	}
	for (size_t i = 0; i < u->n; i++)
		by_length(u, &u->at[i], &parked[i], t, &t->sites.at[i].sums,
			  looks_site_variance(k, i), dilation);
	free(parked);
	return 0;
}

/* ---- what windows lack ---- */

/*
 * How many waits last so long together, of the site's and of those that are too long for windows? Lengths are taken to differ by as
 * much as their mean, which is uncertain where windows met few.
 */
static double in_number(const struct undercounts *u, const struct undercount *c, double ns)
{
	double n = ns / c->long_ns * c->count, longer = LACK_MOST * c->count + ns / SEEN_WHOLE_NS;

	if (u->between && longer < n)
		n = longer;
	n *= sqrt(1 + 1 / c->met);
	return n < u->most ? n : u->most;
}

/* A difference that is no larger than its standard error may be chance. */
static double lacking(const struct undercounts *u, const struct undercount *c, double windows,
		      double looks)
{
	double lacks = c->looks_ns - c->windows_ns;

	if (c->long_ns <= 0 || !beyond(lacks, 1, at_least_0(windows) + at_least_0(looks)))
		return 0;
	return square(in_number(u, c, lacks));
}

/*
 * Where windows met no wait at all, nothing tells how long those are that looks saw, so their number is not
 * known. The exception is a few waits (c->few): looks may have met those among the waits that they count.
 */
static double variance(const struct undercounts *u, const struct undercount *c, double windows,
		       double looks)
{
	if (c->parked_ns > 0)
		return lacking(u, c, windows, looks) + square(c->missed);
	if (saw_others(c, SURELY, looks))
		return -1;
	return square(c->few - c->missed);
}

/* ---- times runnable ---- */

/*
 * The variance of waits and times runnable together. Where there are taken to be as many times runnable as waits, an error
 * of the number of waits counts twice. Otherwise windows lack @lacks of the times runnable as well.
 */
static double with_follow(double variance, bool twice, double lacks)
{
	return variance < 0 ? -1 : square(sqrt(variance) * (twice ? 2 : 1) + lacks);
}

static struct tally_estimate in_waits(struct tally_estimate n)
{
	n.value /= GPB_COUNT_ONE;
	if (n.variance > 0)
		n.variance /= square(GPB_COUNT_ONE);
	return n;
}

/* Long waits of parked goroutines that looks do not count: by length or by time. */
static struct tally_estimate long_waits(const struct undercount *c, const struct tally *t,
					const struct tally_part *p)
{
	struct tally_estimate n = in_waits(tally_part_parked(t, p));

	if (c->factor > 0)
		return (struct tally_estimate){ n.value * c->factor, c->length_variance };
	return n;
}

/*
 * Which end in a time runnable that windows count: also those that looks count, but where these count times
 * runnable, or system calls are long, it is not known which belong together.
 */
static struct tally_estimate followed(const struct undercount *c,
				      const struct tally_estimate *waits)
{
	double n = waits->value + c->counted - c->runnable;

	return (struct tally_estimate){ n > 0 ? n : 0,
					waits->variance < 0 ?
						-1 :
						waits->variance + c->counted_variance +
							square(c->runnable) + square(c->calls) };
}

/*
 * Windows lack waits that are too long for them, and looks do not count them: but the times runnable after them are as short as any, and
 * windows met these. So there are as many waits, if what looks saw of them fits so many.
 */
static bool as_many_as_follow(struct undercount *c, const struct tally_estimate *waits,
			      const struct tally_estimate *by, const struct tally_estimate *plain,
			      double lacks)
{
	double n = plain->value + c->runnable - c->counted, more = plain->value - by->value;
	double chance = at_least_0(plain->variance) + at_least_0(by->variance);

	if (c->factor > 0 || waits->value <= 0 || n <= waits->value || plain->variance < 0 ||
	    by->variance < 0 || !beyond(more, SURELY, chance) ||
	    beyond(more - LACK_MOST * lacks, SURELY, chance))
		return false;
	c->factor = n / waits->value;
	c->length_variance = plain->variance + c->counted_variance + square(c->calls);
	c->variance = 4 * plain->variance + c->counted_variance + square(c->calls);
	return true;
}

/* Are a site's times runnable as many as its waits, or as many as windows say? @lacks: waits that windows lack. */
static void follow(struct undercount *c, const struct tally *t, const struct tally_part *p,
		   double lacks)
{
	struct tally_estimate waits = long_waits(c, t, p), by = followed(c, &waits),
			      plain = in_waits(tally_part_follow(t, p));
	double chance = at_least_0(plain.variance) + at_least_0(by.variance);
	double off = by.value + lacks - plain.value;

	c->as_follow = as_many_as_follow(c, &waits, &by, &plain, lacks);
	if (c->as_follow)
		return;
	off = beyond(off, 1, chance) ? off : 0;
	if (by.variance >= 0 && !beyond(plain.value - by.value, SURELY, chance) && by.value > 0 &&
	    plain.value > 0 &&
	    (c->factor > 0 || plain.variance < 0 ||
	     3 * (by.variance + square(lacks)) < plain.variance + square(off))) {
		c->after = by.value / plain.value;
		c->variance = 4 * waits.variance + 3 * c->counted_variance;
		return;
	}
	c->variance = plus(waits.variance, plain.variance);
	c->lacks = off;
}

/* What windows lack of it is known: it is no error. @all: of which it is a part, or NULL. */
static void lack_nothing(struct undercount *c, struct undercount *all)
{
	double *const of[] = { &c->count,     &c->long_ns,  &c->met,	   &c->windows_ns,
			       &c->parked_ns, &c->looks_ns, &c->few,	   &c->few_ns,
			       &c->edge_ns,   &c->missed,   &c->missed_ns, &c->missed_variance };

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		if (all)
			*(double *)((char *)all + ((char *)of[i] - (char *)c)) -= *of[i];
		*of[i] = 0;
	}
}

static void learn_follow(struct undercounts *u, const struct tally *t, const struct looks_sums *k,
			 size_t site)
{
	const struct tally_part *p = &t->sites.at[site].sums;
	struct undercount *c = &u->at[site];

	follow(c, t, p,
	       sqrt(at_least_0(variance(u, c, tally_part_delays(t, p).variance,
					looks_site_variance(k, site)))));
	if (c->as_follow)
		lack_nothing(c, t->sites.at[site].whole ? NULL : &u->all);
	if (t->sites.at[site].whole)
		return;
	u->all.lacks += c->lacks;
	u->followed |= c->after > 0;
}

/* ---- all of it ---- */

/* How many runs are after none of the waits that are counted? */
static double runs_beyond(const struct tally *t, const struct looks_sums *k, double runs)
{
	if (runs < 0)
		return INFINITY;
	for (size_t i = 0; i < t->entries.n; i++)
		if (t->entries.at[i].parked)
			runs -= t->entries.at[i].counts.x / GPB_COUNT_ONE +
				looks_sums_of(k, i).count;
	return runs > 0 ? runs : 0;
}

void undercounts_learn(struct undercounts *u, const struct tally *t, const struct looks_sums *k,
		       uint64_t but, double dilation, double runs)
{
	u->n = t->sites.n;
	u->but = but;
	u->most = runs_beyond(t, k, runs);
	u->between = !looks_stands_from(k);
	u->at = calloc(u->n + 1, sizeof(*u->at));
	if (!u->at || choose(u, t, k, dilation)) {
		undercounts_fini(u);
		return;
	}
	for (size_t i = 0; i < t->entries.n; i++) {
		const struct tally_entry *en = &t->entries.at[i];
		struct undercount *site = &u->at[en->site];
		struct looks_estimate looks = looks_sums_of(k, i);

		if (en->st->wait.kind == but || (en->parked && site->factor > 0))
			continue;
		add(site, en, &looks);
		if (!t->sites.at[en->site].whole)
			add(&u->all, en, &looks);
	}
	for (size_t i = 0; t->follows && i < u->n; i++)
		learn_follow(u, t, k, i);
}

double undercounts_factor(const struct undercounts *u, const struct tally_entry *en)
{
	double factor = u->at ? u->at[en->site].factor : 0;

	if (en->follows)
		factor = u->at ? u->at[en->site].after : 0;
	return factor > 0 && en->group && (en->parked || en->follows) ? factor : 1;
}

bool undercounts_apart(const struct undercounts *u, size_t site, double *variance)
{
	const struct undercount *c = u->at && site < u->n ? &u->at[site] : NULL;

	if (!c || (c->factor <= 0 && c->after <= 0))
		return false;
	*variance = c->variance;
	return true;
}

double undercounts_site(const struct undercounts *u, size_t site, double windows, double looks)
{
	if (!u->at)
		return -1;
	return site < u->n ? with_follow(variance(u, &u->at[site], windows, looks),
					 u->at[site].after > 0, u->at[site].lacks) :
			     0;
}

bool undercounts_counted(const struct undercounts *u, size_t site, double looks)
{
	const struct undercount *c = u->at && site < u->n ? &u->at[site] : NULL;

	return !c || !saw_others(c, 1, looks);
}

double undercounts_all(const struct undercounts *u, double windows, double looks)
{
	return u->at ? with_follow(variance(u, &u->all, windows, looks), u->followed,
				   u->all.lacks) :
		       -1;
}

void undercounts_fini(struct undercounts *u)
{
	free(u->at);
	*u = (struct undercounts){};
}
