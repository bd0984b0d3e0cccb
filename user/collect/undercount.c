/* user/collect/undercount.c - compares the delays of windows with those of looks. */
#include "collect/undercount.h"

#include <stdlib.h>

/* So many standard errors are no chance, even where there are many sites. */
#define SURELY 4

static void add(struct undercount *to, const struct tally_entry *en,
		const struct onlook_estimate *looks)
{
	double count = en->counts.x / GPB_COUNT_ONE;

	to->windows_ns += en->delays.x;
	to->looks_ns += looks->delay_ns;
	to->few_ns += looks->few_ns;
	/* What follows a wait that a clock paces has its group, too, and may be short (bpf/wait.bpf.c). */
	if (!en->group || en->delays.x < count * GPB_LONG_NS)
		return;
	to->count += count;
	to->met += (double)en->sampled / GPB_COUNT_ONE;
	to->long_ns += en->delays.x;
}

static void take_off(struct undercount *from, struct onlook_counted c)
{
	from->looks_ns -= c.ns;
	from->missed_ns += c.missed_ns;
	from->missed_variance += c.missed_variance;
}

void undercounts_learn(struct undercounts *u, const struct tally *t, const struct onlook_sums *k,
		       uint64_t but)
{
	u->n = t->sites.n;
	u->at = calloc(u->n + 1, sizeof(*u->at));
	if (!u->at)
		return;
	for (size_t i = 0; i < t->entries.n; i++) {
		const struct tally_entry *en = &t->entries.at[i];
		struct onlook_estimate looks = onlook_sums_of(k, i);

		if (en->st->size >> 8 == but)
			continue;
		add(&u->at[en->site], en, &looks);
		if (!t->sites.at[en->site].whole)
			add(&u->all, en, &looks);
	}
	for (size_t i = 0; i < u->n; i++) {
		struct onlook_counted c = onlook_site_counted(k, i);

		take_off(&u->at[i], c);
		if (!t->sites.at[i].whole)
			take_off(&u->all, c);
	}
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

/*
 * A difference that is no larger than its standard error may be chance. Where windows met no wait at all,
 * nothing tells how long those are that looks saw, so their number is not known. Where they met few, their mean
 * length is uncertain: lengths are taken to differ by as much as their mean.
 */
static double variance(const struct undercount *c, double windows, double looks)
{
	double lacks = c->looks_ns - c->windows_ns, n;

	if (c->windows_ns <= 0 && saw_others(c, SURELY, looks))
		return -1;
	if (c->long_ns <= 0 || !beyond(lacks, 1, at_least_0(windows) + at_least_0(looks)))
		return 0;
	n = lacks / c->long_ns * c->count;
	return n * n * (1 + 1 / c->met);
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
