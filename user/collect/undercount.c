/* user/collect/undercount.c - compares the delays of windows with those of looks. */
#include "collect/undercount.h"

#include <stdlib.h>

static void add(struct undercount *to, const struct tally_entry *en, double looks_ns)
{
	double count = en->counts.x / GPB_COUNT_ONE;

	to->windows_ns += en->delays.x;
	to->looks_ns += looks_ns;
	/* What follows a wait that a clock paces has its group, too, and may be short (bpf/wait.bpf.c). */
	if (!en->group || en->delays.x < count * GPB_LONG_NS)
		return;
	to->count += count;
	to->long_ns += en->delays.x;
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
		double ns = onlook_sums_of(k, i).delay_ns;

		if (en->st->size >> 8 == but)
			continue;
		add(&u->at[en->site], en, ns);
		if (!t->sites.at[en->site].whole)
			add(&u->all, en, ns);
	}
	for (size_t i = 0; i < u->n; i++) {
		double counted = onlook_site_counted(k, i);

		u->at[i].looks_ns -= counted;
		if (!t->sites.at[i].whole)
			u->all.looks_ns -= counted;
	}
}

/* A difference that is no larger than its standard error may be chance. */
static double variance(const struct undercount *c, double windows, double looks)
{
	double lacks = c->looks_ns - c->windows_ns, chance, n;

	if (lacks <= 0 || c->long_ns <= 0)
		return 0;
	chance = (windows > 0 ? windows : 0) + (looks > 0 ? looks : 0);
	n = lacks / c->long_ns * c->count;
	return lacks * lacks > chance ? n * n : 0;
}

double undercounts_site(const struct undercounts *u, size_t site, double windows, double looks)
{
	if (!u->at)
		return -1;
	return site < u->n ? variance(&u->at[site], windows, looks) : 0;
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
