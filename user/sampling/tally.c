/* user/sampling/tally.c - sums per stack and window, and estimates from them. */
#include "sampling/tally.h"

#include <math.h>

#include "base/cleanup.h"
#include "base/hash.h"

enum { ENTRIES_MAX = 1 << 20 };

/*
 * The number of pcs that identify a site: its own, and those of the runtime above it, of which
 * large objects have one more.
 */
enum { SITE_PCS = 4, SITE_PCS_LARGE = 5 };

void tally_init(struct tally *t)
{
	*t = (struct tally){};
}

void tally_fini(struct tally *t)
{
	for (size_t i = 0; i < t->entries.n; i++)
		free(t->entries.at[i].st);
	for (size_t i = 0; i < t->sites.n; i++)
		free(t->sites.at[i].with);
	vec_fini(&t->entries);
	vec_fini(&t->sites);
	map_fini(&t->by_site);
	vec_fini(&t->seen);
	map_fini(&t->by_stack);
	map_fini(&t->by_key);
	free(t->columns);
	*t = (struct tally){};
}

/* ---- entries ---- */

static size_t pcs_of(const struct gpb_stack *st)
{
	size_t n = (size_t)st->nkernel + st->nfirst + st->nsecond;

	return n < GPB_MAX_PCS ? n : GPB_MAX_PCS;
}

/* The hash of what makes stacks different: everything from flags to the last pc. A tally is of one target, whatever its slot. */
static uint64_t hash_of(const struct gpb_stack *st)
{
	uint64_t parts[] = {
		st->flags,
		(uint64_t)st->nkernel << 32 | (uint64_t)st->nfirst << 16 | st->nsecond,
		st->goid,
		st->labels,
		st->of[0],
		st->of[1],
		hash_bytes(st->pc, pcs_of(st) * sizeof(st->pc[0])),
	};

	return hash_bytes(parts, sizeof(parts));
}

static bool same(const struct gpb_stack *a, const struct gpb_stack *b)
{
	return a->flags == b->flags && a->nkernel == b->nkernel && a->nfirst == b->nfirst &&
	       a->nsecond == b->nsecond && a->goid == b->goid && a->labels == b->labels &&
	       a->of[0] == b->of[0] && a->of[1] == b->of[1] &&
	       !memcmp(a->pc, b->pc, pcs_of(a) * sizeof(a->pc[0]));
}

static uint64_t pcs_of_site(const struct tally *t, const struct gpb_stack *st, size_t group)
{
	size_t most = group ? SITE_PCS : SITE_PCS_LARGE, all = pcs_of(st);
	size_t from = st->nkernel < all ? st->nkernel : all, n = all - from;
	size_t depth = t->depth ? t->depth(t->arg, st) : 0;

	if (depth && depth <= n)
		return st->pc[from + depth - 1];
	return hash_bytes(st->pc + from, (n < most ? n : most) * sizeof(st->pc[0]));
}

static int site_of(struct tally *t, const struct gpb_stack *st, size_t group, size_t *out,
		   struct err *e)
{
	size_t whole = t->whole ? t->whole(t->arg, st) : 0;
	uint64_t parts[] = { t->merged ? 0 : group, whole, pcs_of_site(t, st, group) }, key, at;
	struct tally_site *s;

	BUG_ON(whole >= TALLY_WHOLES);
	key = hash_bytes(parts, sizeof(parts));
	if (map_get(&t->by_site, key, &at)) {
		*out = at;
		return 0;
	}
	s = vec_add(&t->sites, ENTRIES_MAX);
	if (!s || !map_put(&t->by_site, key, t->sites.n - 1))
		return err_set(e, -ENOMEM, "no memory for stacks");
	*s = (struct tally_site){ .group = t->merged ? 0 : group,
				  .whole = whole,
				  .first = t->entries.n };
	*out = t->sites.n - 1;
	return 0;
}

static int entry_new(struct tally *t, const struct gpb_stack *st, size_t group, size_t *out,
		     struct err *e)
{
	size_t bytes = offsetof(struct gpb_stack, pc) + pcs_of(st) * sizeof(st->pc[0]);
	struct tally_entry *en;
	size_t site = 0;
	int ret;

	if (t->entries.n >= ENTRIES_MAX)
		return err_set(e, -E2BIG, "more than %d distinct stacks", ENTRIES_MAX);
	group = group < TALLY_GROUPS ? group : 0;
	ret = site_of(t, st, group, &site, e);
	if (ret)
		return ret;
	en = vec_add(&t->entries, ENTRIES_MAX);
	if (!en)
		return err_set(e, -ENOMEM, "no memory for stacks");
	*en = (struct tally_entry){ .group = group, .site = site };
	en->parked = t->parked && t->parked(t->arg, st);
	en->follows = t->follows && t->follows(t->arg, st);
	en->st = malloc(bytes);
	if (!en->st) {
		t->entries.n--;
		return err_set(e, -ENOMEM, "no memory for stacks");
	}
	memcpy(en->st, st, bytes);
	en->st->hints = 0;
	*out = t->entries.n - 1;
	return 0;
}

/*
 * Two stacks with one hash lie at neighbouring hashes: *hash is where this one is, or would be
 * put.
 */
static bool find(const struct tally *t, const struct gpb_stack *st, uint64_t *hash, size_t *out)
{
	uint64_t at;

	for (*hash = hash_of(st); map_get(&t->by_stack, *hash, &at); ++*hash) {
		if (!same(t->entries.at[at].st, st))
			continue;
		*out = at;
		return true;
	}
	return false;
}

bool tally_has(const struct tally *t, const struct gpb_stack *st, size_t *out)
{
	uint64_t hash;

	return find(t, st, &hash, out);
}

int tally_index(struct tally *t, const struct gpb_stack *st, size_t group, size_t *out,
		struct err *e)
{
	uint64_t hash;
	int ret;

	if (find(t, st, &hash, out))
		return 0;
	ret = entry_new(t, st, group, out, e);
	if (ret)
		return ret;
	return map_put(&t->by_stack, hash, *out) ? 0 : err_set(e, -ENOMEM, "no memory for stacks");
}

int tally_add(struct tally *t, const struct gpb_stack *st, size_t group, struct err *e)
{
	return tally_add_weighted(t, st, group, 0, e);
}

static void add_full(struct tally *t, struct tally_entry *en, uint64_t count, uint64_t delay)
{
	struct tally_part *site = &t->sites.at[en->site].sums;

	en->count += count;
	en->delay += delay;
	site->full += (double)count;
	site->full_delay += (double)delay;
}

int tally_add_full(struct tally *t, const struct gpb_stack *st, size_t group, struct err *e)
{
	size_t at;
	int ret = tally_index(t, st, group, &at, e);

	if (ret)
		return ret;
	add_full(t, &t->entries.at[at], st->count, st->delay);
	return 0;
}

int tally_add_weighted(struct tally *t, const struct gpb_stack *st, size_t group, double weight,
		       struct err *e)
{
	struct tally_seen seen = { .count = st->count, .delay = st->delay, .weight = weight };
	struct tally_entry *en;
	struct tally_seen *to;
	int ret = tally_index(t, st, group, &seen.entry, e);

	if (ret)
		return ret;
	/* Each is put in once, because a stretch may last for a day. */
	en = &t->entries.at[seen.entry];
	if (en->seen < t->seen.n && t->seen.at[en->seen].entry == seen.entry &&
	    t->seen.at[en->seen].weight == weight) {
		t->seen.at[en->seen].count += seen.count;
		t->seen.at[en->seen].delay += seen.delay;
		return 0;
	}
	to = vec_add(&t->seen, ENTRIES_MAX);
	if (!to)
		return err_set(e, -ENOMEM, "no memory for samples");
	*to = seen;
	en->seen = t->seen.n - 1;
	return 0;
}

static uint64_t key_of(const struct gpb_hash *key)
{
	return key->lo ^ key->hi * 0x9e3779b97f4a7c15ull;
}

int tally_key(struct tally *t, const struct gpb_hash *key, const struct gpb_stack *st,
	      struct err *e)
{
	size_t at;
	int ret = tally_index(t, st, 0, &at, e);

	if (ret == -E2BIG) /* then it cannot be found by its key */
		return 0;
	if (!ret && !map_put(&t->by_key, key_of(key), at))
		ret = err_set(e, -ENOMEM, "no memory for stacks");
	return ret;
}

struct tally_entry *tally_find(struct tally *t, const struct gpb_hash *key)
{
	uint64_t at;

	return map_get(&t->by_key, key_of(key), &at) ? &t->entries.at[at] : NULL;
}

/* ---- stretches ---- */

void tally_full(struct tally *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->seen.n; i++) {
		const struct tally_seen *seen = &t->seen.at[i];
		struct tally_entry *en = &t->entries.at[seen->entry];

		if (seen->weight) {
			t->seen.at[kept++] = *seen;
			continue;
		}
		add_full(t, en, seen->count, seen->delay);
	}
	t->seen.n = kept;
}

static void fold(struct tally_sum *s, double n)
{
	s->x += s->now;
	s->xx += s->now * s->now;
	s->xn += s->now * n;
	s->now = 0;
}

static double weight_of(const struct tally_window *w, const struct tally_seen *seen,
			const struct gpb_stack *st)
{
	if (seen->weight)
		return seen->weight;
	return w->weight * (w->inverse ? w->inverse(w->arg, st) : 1);
}

/* ---- columns ---- */

static void add_columns(struct tally_columns *c, const double *all)
{
	for (size_t g = 0; g < TALLY_GROUPS && c->n < TALLY_COLUMNS; g++) {
		if (all[g] <= 0 || c->of[g])
			continue;
		c->group[c->n++] = g;
		c->of[g] = (uint8_t)c->n;
	}
}

static bool has_any(const double *all)
{
	for (size_t g = 0; g < TALLY_GROUPS; g++)
		if (all[g] > 0)
			return true;
	return false;
}

/* To be called before the sums of the present window are added. */
static void fold_columns(struct tally *t, const double *all)
{
	struct tally_columns *c = t->columns;

	add_columns(c, all);
	for (size_t i = 0; i < c->n; i++) {
		double n = all[c->group[i]];

		c->sum[i] += n;
		for (size_t k = 0; k < c->n; k++) {
			c->cross[k][i] += n * all[c->group[k]];
			c->with[k][i] += n * t->groups[c->group[k]].now;
		}
	}
}

static void fold_with(const struct tally *t, struct tally_site *s, const double *all)
{
	const struct tally_columns *c = t->columns;

	if (!s->with)
		s->with = calloc(TALLY_COLUMNS, sizeof(*s->with));
	for (size_t i = 0; s->with && i < c->n; i++)
		s->with[i] += s->sums.counts.now * all[c->group[i]];
}

static void part_add(struct tally_part *p, const struct tally_entry *en, double count, double delay)
{
	if (en->parked && en->group) {
		p->parked.now += count;
		p->parked_ns.now += delay;
	} else if (en->follows && en->group) {
		p->follow.now += count;
	} else {
		p->others.now += count;
	}
	p->counts.now += count;
	p->delays.now += delay;
	if (!en->group)
		p->compared.now += count;
	p->touched = true;
}

static void add_seen(struct tally *t, const struct tally_window *w)
{
	for (size_t i = 0; i < t->seen.n; i++) {
		const struct tally_seen *seen = &t->seen.at[i];
		struct tally_entry *en = &t->entries.at[seen->entry];
		struct tally_site *site = &t->sites.at[en->site];
		double weight = weight_of(w, seen, en->st), x = (double)seen->count * weight;
		double delay = (double)seen->delay * weight;

		en->counts.now += x;
		t->groups[en->group].now += x;
		t->sampled[en->group] += seen->count;
		en->delays.now += delay;
		en->sampled += seen->count;
		en->touched = true;
		part_add(&site->sums, en, x, delay);
		part_add(&t->wholes[site->whole], en, x, delay);
	}
}

static void fold_entries(struct tally *t)
{
	for (size_t i = 0; i < t->seen.n; i++) {
		struct tally_entry *en = &t->entries.at[t->seen.at[i].entry];

		if (!en->touched)
			continue;
		en->touched = false;
		fold(&en->counts, t->groups[en->group].now);
		fold(&en->delays, 0);
	}
}

static void fold_part(const struct tally *t, struct tally_part *p, size_t group, double delays)
{
	p->touched = false;
	fold(&p->counts, t->groups[group].now);
	fold(&p->delays, delays);
	fold(&p->parked, p->parked_ns.now);
	fold(&p->parked_ns, 0);
	fold(&p->follow, t->groups[group].now);
	fold(&p->others, t->groups[group].now);
	fold(&p->compared, t->groups[0].now);
}

static void fold_sites(struct tally *t, const double *all)
{
	for (size_t i = 0; i < t->seen.n; i++) {
		struct tally_site *site = &t->sites.at[t->entries.at[t->seen.at[i].entry].site];

		if (!site->sums.touched)
			continue;
		if (all)
			fold_with(t, site, all);
		fold_part(t, &site->sums, site->group, t->wholes[site->whole].delays.now);
	}
	for (size_t i = 0; i < TALLY_WHOLES; i++)
		fold_part(t, &t->wholes[i], 0, t->wholes[i].delays.now);
}

static void fold_window(struct tally *t, const struct tally_window *w)
{
	const double *all;

	add_seen(t, w);
	if (w->n)
		t->groups[0].now = *w->n;
	if (w->all && !t->columns && has_any(w->all)) /* of many programs most do nothing */
		t->columns = calloc(1, sizeof(*t->columns));
	all = t->columns ? w->all : NULL;
	if (all)
		fold_columns(t, all);
	fold_entries(t);
	fold_sites(t, all);
	for (size_t g = 0; g < TALLY_GROUPS; g++)
		fold(&t->groups[g], t->groups[g].now);
	t->seen.n = 0;
}

void tally_window(struct tally *t, const struct tally_window *w)
{
	fold_window(t, w);
	t->windows++;
	t->weights += w->weight;
}

void tally_rest(struct tally *t)
{
	tally_full(t);
	fold_window(t, &(struct tally_window){});
}

/* ---- estimates ---- */

/*
 * The variance of a sum over K windows, as if they were independent draws; with one window in
 * each stratum that is an upper bound.
 */
double tally_among(const struct tally *t, double squares, size_t fitted)
{
	double k = (double)t->windows, left = k - (double)fitted;

	if (squares < 0)
		squares = 0;
	return left > 0 ? squares * k / left : -1;
}

static double among(const struct tally *t, double squares)
{
	return tally_among(t, squares, 1);
}

/*
 * A lower bound of the variance of a share that so many objects tell. It is above 0 even where all
 * sampled objects of a group are of one entry: others of the group may not have been sampled.
 * Source: Agresti and Coull, 1998.
 */
static double share_variance(double share, double sampled)
{
	double n = sampled + 4, p = (share * sampled + 2) / n;

	return p * (1 - p) / n;
}

/*
 * The effective number of windows that saw this group (Kish's effective sample size, (sum x)^2 / sum x^2). Where
 * it is 1, one window saw all of it, and nothing tells what another one would have seen.
 */
static double windows_of(const struct tally_sum *g)
{
	return g->xx > 0 ? g->x * g->x / g->xx : 0;
}

/* so many windows can all have met the same by chance */
#define BY_CHANCE 4
#define ALONE	  1.3

double tally_least(const struct tally *t, size_t group, double share)
{
	double windows = windows_of(&t->groups[group]);
	double alike = windows > BY_CHANCE ? BY_CHANCE / windows : 1;
	double by_objects = share_variance(share, (double)t->sampled[group]);
	double by_windows = share_variance(share, windows) * alike * alike;

	return by_objects > by_windows ? by_objects : by_windows;
}

/*
 * The Horvitz-Thompson estimate: what windows stand for, with a variance from how much they
 * differ.
 */
static struct tally_estimate expanded(const struct tally *t, const struct tally_sum *s)
{
	return (struct tally_estimate){ s->x, among(t, s->xx - s->x * s->x / (double)t->windows) };
}

/*
 * The ratio estimator: a share, times a known total. Its variance is that of the residuals x -
 * ratio * n. Source: Cochran, Sampling Techniques, 3rd edition, 6.4.
 */
static struct tally_estimate counts_of(const struct tally *t, size_t group,
				       const struct tally_sum *s, double total)
{
	const struct tally_sum *g = &t->groups[group];
	double share, squares, least;

	if (s->x <= 0)
		return (struct tally_estimate){};
	if (total < 0)
		return expanded(t, s);
	share = s->x / g->x;
	squares = among(t, s->xx - 2 * share * s->xn + share * share * g->xx) / g->x / g->x;
	least = tally_least(t, group, share);
	/*
	 * From one window alone the variance is not known, however many other windows saw
	 * nothing.
	 */
	if (windows_of(g) < ALONE)
		squares = -1;
	if (squares >= 0 && squares < least)
		squares = least;
	return (struct tally_estimate){ share * total, squares < 0 ? -1 : squares * total * total };
}

struct tally_estimate tally_counts(const struct tally *t, const struct tally_entry *en,
				   double total)
{
	return counts_of(t, en->group, &en->counts, total);
}

struct tally_estimate tally_site_counts(const struct tally *t, const struct tally_entry *en,
					double total)
{
	return counts_of(t, en->group, &t->sites.at[en->site].sums.counts, total);
}

/* The regression estimator. Source: Cochran, Sampling Techniques, 3rd edition, 7.3 and 7.4. */
struct tally_estimate tally_regressed(const struct tally *t, const struct tally_entry *en,
				      double total)
{
	const struct tally_sum *g = &t->groups[en->group], *s = &en->counts;
	double k = (double)t->windows, spread = g->xx - g->x * g->x / k, slope, rest, square;

	if (s->x <= 0 || g->x <= 0)
		return (struct tally_estimate){};
	if (k < 3 || spread <= 0)
		return tally_counts(t, en, total);
	slope = (s->xn - s->x * g->x / k) / spread;
	if (slope < 0)
		slope = 0;
	rest = s->x - slope * g->x;
	square = s->xx - 2 * slope * s->xn + slope * slope * g->xx - rest * rest / k;
	if (square < 0)
		square = 0;
	return (struct tally_estimate){ s->x + slope * (total - g->x), square * k / (k - 2) };
}

struct tally_estimate tally_delays(const struct tally *t, const struct tally_entry *en)
{
	return en->delays.x > 0 ? expanded(t, &en->delays) : (struct tally_estimate){};
}

/* ---- sums of entries ---- */

struct tally_estimate tally_group(const struct tally *t, size_t group)
{
	return expanded(t, &t->groups[group]);
}

struct tally_estimate tally_part_counts(const struct tally *t, const struct tally_part *p)
{
	return p->counts.x > 0 ? expanded(t, &p->counts) : (struct tally_estimate){};
}

struct tally_estimate tally_part_delays(const struct tally *t, const struct tally_part *p)
{
	return p->delays.x > 0 ? expanded(t, &p->delays) : (struct tally_estimate){};
}

struct tally_estimate tally_part_follow(const struct tally *t, const struct tally_part *p)
{
	return p->follow.x > 0 ? expanded(t, &p->follow) : (struct tally_estimate){};
}

struct tally_estimate tally_part_parked(const struct tally *t, const struct tally_part *p)
{
	return p->parked.x > 0 ? expanded(t, &p->parked) : (struct tally_estimate){};
}

/* What windows say of their delays; a site's, or a whole's. */
struct tally_estimate tally_part_parked_delays(const struct tally *t, const struct tally_part *p)
{
	return p->parked_ns.x > 0 ? expanded(t, &p->parked_ns) : (struct tally_estimate){};
}

/*
 * Where few windows met any, their lengths may be alike by chance. Then the variance is at least that of lengths
 * which differ by as much as their mean.
 */
struct tally_estimate tally_part_by_length(const struct tally_part *p, double total_ns)
{
	const struct tally_sum *n = &p->parked, *d = &p->parked_ns;
	double rate, square, windows = windows_of(d), left = windows - 1, least;

	if (n->x <= 0 || d->x <= 0)
		return (struct tally_estimate){};
	rate = n->x / d->x;
	square = n->xx - 2 * rate * n->xn + rate * rate * d->xx;
	square = square > 0 ? square / n->x / n->x : 0;
	least = windows > BY_CHANCE ? BY_CHANCE * BY_CHANCE / (windows * windows * windows) :
				      1 / windows;
	if (left > 0.5)
		square *= windows / left;
	return (struct tally_estimate){ rate * total_ns, (square > least ? square : least) * rate *
								 rate * total_ns * total_ns };
}

/*
 * One run more is one wait more, or none, or one of another site instead. Chance makes slopes of sites larger and
 * smaller, but together they are 1.
 */
#define SLOPE_LEAST (-1.0 * GPB_COUNT_ONE)
#define SLOPE_MOST  (2.0 * GPB_COUNT_ONE)

struct tally_estimate tally_part_regressed(const struct tally *t, const struct tally_part *p,
					   double total, double lack)
{
	const struct tally_sum *n = &t->groups[0], *x = &p->compared, *all = &p->counts;
	double k = (double)t->windows, spread = n->xx - n->x * n->x / k, slope, rest, square, from,
	       value;

	if (all->x <= 0 || n->x <= 0)
		return tally_part_counts(t, p);
	if (k < 3 || spread <= 0)
		return (struct tally_estimate){ x->x / n->x * total,
						tally_part_counts(t, p).variance };
	/* Below 0 where others run instead. Beyond these bounds it is chance, which an extrapolation would blow up. */
	slope = (x->xn - x->x * n->x / k) / spread;
	slope = fmax(SLOPE_LEAST, fmin(slope, SLOPE_MOST));
	rest = all->x - slope * n->x;
	square = all->xx - 2 * slope * all->xn + slope * slope * n->xx - rest * rest / k;
	/* The farther the total is from what windows tell, the more an error of the slope matters. */
	from = total / lack - n->x;
	value = lack * x->x + slope * (total - lack * n->x);
	return (struct tally_estimate){
		value > 0 ? value : 0,
		tally_among(t, lack * lack * square * (1 + from * from / spread / k), 2),
	};
}

struct tally_estimate tally_part_share(const struct tally *t, const struct tally_part *p,
				       const struct tally_part *all)
{
	const struct tally_sum *d = &p->delays, *n = &all->delays;
	double share = n->x > 0 ? d->x / n->x : 0, square;

	if (share <= 0)
		return (struct tally_estimate){};
	square = among(t, d->xx - 2 * share * d->xn + share * share * n->xx);
	return (struct tally_estimate){ share, square < 0 ? -1 : square / n->x / n->x };
}

/*
 * All that full observation saw of a part is taken for one burst, because that is the worst case. Bursts
 * that go on to come at that rate are a Poisson process: with n of them expected in the time that windows
 * stand for, the mean square of their number is n + n^2. It is at most the square of a window's weight:
 * had there been more bursts, windows would have met one. A single wait may have come in any case.
 */
struct tally_missed tally_part_missed(const struct tally *t, const struct tally_part *p,
				      double weight)
{
	double one = weight * weight;
	double burst = p->full / GPB_COUNT_ONE, mean = burst > 0 ? p->full_delay / burst : 0;
	double n = t->full_ns > 0 ? t->windows_ns / t->full_ns : weight, bursts = n + n * n, count;

	if (p->counts.x > 0 || !t->windows)
		return (struct tally_missed){};
	if (bursts > one)
		bursts = one;
	count = burst * burst * bursts;
	if (count < one)
		count = one;
	return (struct tally_missed){ count, count * mean * mean };
}
