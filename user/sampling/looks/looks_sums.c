/* user/sampling/looks/looks_sums.c - the sums of looks, and their variances. */
#include "sampling/looks/looks_sums.h"

#include <math.h>

enum { SITES_MAX = 1 << 20 };
/* shorter waits that looks miss are seen as a whole by windows of probes */
#define LENGTH_MIN_NS 7e6
#define LENGTH_STEP   1.25
#define STANDS_MOST   3
/* every wait that is longer than so many gaps between looks is seen by LOOKS_COUNTS of them */
#define EDGE_GAPS 4
enum { LOOKS_FEW = 6 };

/* ---- which waits belong to which site ---- */

/* The first of a site's entries that counts identifies the site. */
static int site_of(struct looks_sums *u, size_t entry, size_t *out, struct err *e)
{
	size_t at = u->tally->entries.at[entry].site;

	while (u->sites.n <= at) {
		struct looks_site *to = vec_add(&u->sites, SITES_MAX);

		if (!to)
			return err_set(e, -ENOMEM, "no memory for stacks");
		*to = (struct looks_site){ .known = false };
	}
	*out = at;
	return 0;
}

static int room_for(struct looks_sums *u, size_t entry, struct err *e)
{
	while (u->at.n <= entry) {
		struct looks_sum *to = vec_add(&u->at, SITES_MAX);

		if (!to)
			return err_set(e, -ENOMEM, "no memory for stacks");
		*to = (struct looks_sum){ .counted = 0 };
	}
	return 0;
}

int looks_sums_entry(struct looks_sums *u, const struct gpb_stack *st, uint8_t reason, bool still,
		     bool *known, int32_t *out, struct err *e)
{
	struct tally_entry *en;
	struct looks_sum *sums;
	size_t entry;
	int ret = 0;

	*known = false;
	if (still && u->room && !tally_has(u->tally, st, &entry) && !u->room(u->room_arg))
		ret = -E2BIG;
	else if (still)
		ret = tally_index(u->tally, st, GPB_WAIT_BLOCK, &entry, e);
	else if (!tally_has(u->tally, st, &entry))
		return 0;
	if (ret == -E2BIG) {
		u->crowded++;
		*known = true;
		*out = LOOKS_NOT_COUNTED;
		return 0;
	}
	if (!ret)
		ret = room_for(u, entry, e);
	if (ret)
		return ret;
	en = &u->tally->entries.at[entry];
	sums = &u->at.at[entry];
	sums->known |= still;
	*known = sums->known || en->sampled || en->count;
	if (!*known)
		return 0;
	if (!sums->counted) {
		ret = site_of(u, entry, &sums->site, e);
		if (ret)
			return ret;
		sums->counted = !u->left_out || !u->left_out(u->arg, st, reason) ?
					1 :
					LOOKS_NOT_COUNTED;
		sums->apart = u->reasons_apart >> (reason & 63) & 1;
	}
	*out = sums->counted == LOOKS_NOT_COUNTED ? LOOKS_NOT_COUNTED : (int32_t)entry;
	return 0;
}

/* ---- sums ---- */

void looks_sums_look(struct looks_sums *u, double ns)
{
	u->len = ns;
}

void looks_sums_looked(struct looks_sums *u)
{
	u->lens += u->len;
	u->len_squares += u->len * u->len;
	u->len_before = u->len;
	u->look++;
}

/* Of two looks at @a and @b, which stand for strata of @la and @lb: what they would differ by if both stood for the longer one. */
static double difference(double a, double la, double b, double lb)
{
	double longer = fmax(la, lb), ra = la > 0 ? a / la : 0, rb = lb > 0 ? b / lb : 0;

	return longer * (ra - rb);
}

static double squared(double x)
{
	return x * x;
}

/* What the first look saw may have begun before it (looks_sums_unsaw()). */
static void site_met(struct looks_site *s)
{
	double waited = s->look && s->len > 0 ? s->now / s->len : 0;

	if (waited <= 0)
		return;
	s->most = fmax(s->most, waited);
	s->least = s->met ? fmin(s->least, waited) : waited;
	s->met++;
}

/* What comes before the first look, and after the last one, is not nothing: the differences are those between looks. */
static void site_turn(struct looks_site *s, const struct looks_sums *u)
{
	site_met(s);
	if (s->look)
		s->squares += squared(difference(s->last, s->before, s->now, s->len));
	else
		s->at_first = s->now;
	s->last = s->now;
	s->now = 0;
	if (s->look + 1 < u->look) { /* the looks in between saw nothing */
		s->squares += squared(s->last);
		s->last = 0;
	}
	s->look = u->look;
	s->before = u->len_before;
	s->len = u->len;
}

static void site_saw(struct looks_site *s, const struct looks_sums *u, double ns)
{
	if (s->look != u->look)
		site_turn(s, u);
	s->len = u->len;
	s->now += ns;
}

/* Does @what to each sum that the waits of this entry are in. */
static void sums_of(struct looks_sums *u, const struct looks_sum *sum,
		    void (*what)(struct looks_site *, const struct looks_sums *, double), double ns)
{
	what(&u->sites.at[sum->site], u, ns);
	if (!u->tally->sites.at[sum->site].whole)
		what(&u->all, u, ns);
	if (sum->apart)
		what(&u->apart, u, ns);
}

void looks_sums_saw(struct looks_sums *u, int32_t entry, double ns)
{
	struct looks_site *s = &u->sites.at[u->at.at[entry].site];

	if (!s->known)
		s->first = (size_t)entry;
	s->known = true;
	sums_of(u, &u->at.at[entry], site_saw, ns);
}

static void site_unsaw(struct looks_site *s, const struct looks_sums *u, double ns)
{
	(void)u;
	if (!s->look) {
		s->now -= ns;
		return;
	}
	s->last -= ns;
	s->at_first -= ns;
}

static void site_ended(struct looks_site *s, const struct looks_sums *u, double ns)
{
	(void)ns;
	if (s->ended_look != u->look)
		s->ended = 0;
	s->ended_look = u->look;
	s->ended_most = ++s->ended > s->ended_most ? s->ended : s->ended_most;
}

void looks_sums_unsaw(struct looks_sums *u, int32_t entry, double ns)
{
	sums_of(u, &u->at.at[entry], site_unsaw, ns);
}

/*
 * A wait of length L that begins between two looks is seen by the next three, unless the third
 * one comes more than L after its beginning. missed[i]: the total of the moments at which that
 * was so, for L of LENGTH_MIN_NS * LENGTH_STEP^i. It happens because we do not always run when we
 * want to.
 */
void looks_sums_gap(struct looks_sums *u, double gap)
{
	double length = LENGTH_MIN_NS;

	for (size_t i = 0; i < LOOKS_LENGTHS; i++, length *= LENGTH_STEP) {
		double missed = u->before + u->gap + gap - length;

		if (missed <= 0)
			break;
		u->missed[i] += missed < u->before ? missed : u->before;
	}
	u->gaps_ns += gap;
	u->before = u->gap;
	u->gap = gap;
}

/* How many waits of this length each one stands for that was seen often enough. */
static double wait_stands_for(const struct looks_sums *u, double ns)
{
	double length = LENGTH_MIN_NS, part, missed, seen;
	size_t i = 0;

	if (ns < length || u->gaps_ns <= 0)
		return 1;
	for (; i < LOOKS_LENGTHS - 2 && length * LENGTH_STEP < ns; i++)
		length *= LENGTH_STEP;
	part = (ns - length) / (length * (LENGTH_STEP - 1));
	part = part < 1 ? part : 1;
	missed = u->missed[i] + part * (u->missed[i + 1] - u->missed[i]);
	seen = 1 - missed / u->gaps_ns;
	return seen > 0.1 ? 1 / seen : 10;
}

void looks_sums_unsure(struct looks_sums *u, int32_t entry, double ns)
{
	struct looks_sum *s = &u->at.at[entry];

	s->count_variance += 1;
	s->ns_variance += ns * ns;
	s->unsure_ns += ns;
}

void looks_sums_guessed(struct looks_sums *u, int32_t entry, double ns)
{
	u->at.at[entry].ns_variance += squared(ns);
}

void looks_sums_whole(struct looks_sums *u, int32_t entry, double ns, double length)
{
	struct looks_sum *s = &u->at.at[entry];

	sums_of(u, s, site_ended, 0);
	s->ns += ns;
	s->count++;
	u->sites.at[s->site].count++;
	s->counted_ns += length;
}

void looks_sums_over(struct looks_sums *u, int32_t entry, double ns, double length)
{
	struct looks_sum *s = &u->at.at[entry];
	double n;

	sums_of(u, s, site_ended, 0);
	s->ns += ns;
	if (length <= 0) {
		s->few++;
		s->few_ns += ns;
		return;
	}
	n = wait_stands_for(u, length);
	s->count += n;
	u->sites.at[s->site].count += n;
	s->counted_ns += length;
	s->missed += n - 1;
	s->missed_ns += (n - 1) * length;
	if (length * (double)u->look < EDGE_GAPS * u->gaps_ns)
		s->edge_ns += u->gaps_ns / (double)u->look / 4;
	s->missed_variance += n * (n - 1) * length * length;
	s->count_variance += n * (n - 1);
}

/* ---- waits without a stack ---- */

/* Which of lost_ns: by the reason of who waits for another, otherwise by the status. */
static size_t what_of(const struct gpb_stack *st)
{
	enum { REASONS = LOOKS_WHATS - 4 };
	size_t reason = st->wait.reason < REASONS ? st->wait.reason : REASONS - 1;

	return st->wait.kind == GPB_G_RUNNABLE && !reason ? REASONS :
	       st->wait.kind == GPB_G_SYSCALL && !reason  ? REASONS + 1 :
							    reason;
}

void looks_sums_lost(struct looks_sums *u, const struct gpb_stack *wait, double ns)
{
	u->lost_ns[what_of(wait)] += ns;
}

/* Without memory, anything may be waited for anywhere. */
static void learn_whats(struct looks_sums *u)
{
	const struct tally *t = u->tally;

	free(u->whats);
	u->whats = calloc(t->sites.n + 1, sizeof(*u->whats));
	u->nwhats = u->whats ? t->sites.n : 0;
	for (size_t i = 0; u->whats && i < t->entries.n; i++)
		u->whats[t->entries.at[i].site] |= 1ull << what_of(t->entries.at[i].st);
}

static double lost_of(const struct looks_sums *u, uint64_t whats)
{
	double ns = 0;

	for (size_t i = 0; i < LOOKS_WHATS; i++)
		if (whats >> i & 1)
			ns += u->lost_ns[i];
	return ns * u->scale;
}

double looks_site_lost(const struct looks_sums *u, size_t site)
{
	return lost_of(u, site < u->nwhats ? u->whats[site] : UINT64_MAX);
}

double looks_all_lost(const struct looks_sums *u)
{
	return lost_of(u, UINT64_MAX);
}

double looks_apart_lost(const struct looks_sums *u)
{
	return lost_of(u, u->reasons_apart);
}

/*
 * Chance may have kept looks from meeting waits that are there for as long as a few strata in all. With two strata's squares more, what n looks
 * met is within four standard errors as often for any n, 0 too: 997 of 1000 times, where the variance is that of n (Agresti and Coull add
 * as much to a binomial's).
 */
#define UNMET_LOOKS 2

void looks_sums_end(struct looks_sums *u, double phase_ns, double strata_ns)
{
	double typical = u->lens > 0 ? u->len_squares / u->lens : 0; /* of a moment's stratum */

	learn_whats(u);
	for (size_t i = 0; i < u->sites.n; i++)
		site_turn(&u->sites.at[i], u);
	site_turn(&u->all, u);
	site_turn(&u->apart, u);
	u->scale = strata_ns > 0 ? phase_ns / strata_ns : 1;
	u->unmet = UNMET_LOOKS * squared(typical * u->scale);
}

/*
 * Those who wait at one place often begin and end together: how many more may have been there is by how much looks differ; where all saw as many,
 * but others, it is how many ended at once. Where nothing ends chance had no effect; but of all places together there may be others.
 */
static double unmet_variance(const struct looks_sums *u, const struct looks_site *s)
{
	double together = s->most - (s->met + 1 < u->look ? 0 : s->least);

	if (!s->ended_most && s != &u->all)
		return 0;
	if (together <= 0)
		together = s->ended_most;
	return u->unmet * squared(fmax(together, 1));
}

/*
 * The variance comes from the differences between neighbouring looks (von Neumann's estimator); where both see the
 * same waits, chance had no effect, and where they see as many others it may have had. That variance is itself by chance: with so many degrees of freedom it is that of Student's t.
 * Of a few looks it says nothing: everything that they saw may have been there for one of them alone.
 */
static double variance_of(const struct looks_sums *u, const struct looks_site *s)
{
	double n = (double)u->look, freedom, squares = s->squares;

	if (u->look < LOOKS_FEW) {
		squares += s->at_first * s->at_first + s->last * s->last;
	} else {
		freedom = 2 * (n - 1) * (n - 1) / (3 * n - 4);
		squares *= n / (n - 1) * freedom / (freedom - 2);
	}
	return squares / 2 * u->scale * u->scale + unmet_variance(u, s);
}

double looks_site_variance(const struct looks_sums *u, size_t site)
{
	if (site >= u->sites.n || !u->sites.at[site].known)
		return u->unmet;
	return variance_of(u, &u->sites.at[site]);
}

double looks_site_unmet(const struct looks_sums *u, size_t site)
{
	return site < u->sites.n && u->sites.at[site].met ? 0 : u->unmet;
}

double looks_all_variance(const struct looks_sums *u)
{
	return variance_of(u, &u->all);
}

double looks_apart_variance(const struct looks_sums *u)
{
	return variance_of(u, &u->apart);
}

double looks_site_count(const struct looks_sums *u, size_t site)
{
	return site < u->sites.n ? u->sites.at[site].count : 0;
}

uint64_t looks_stands_from(const struct looks_sums *u)
{
	if (u->gaps_ns <= 0 || wait_stands_for(u, LENGTH_MIN_NS) > STANDS_MOST)
		return 0;
	return (uint64_t)LENGTH_MIN_NS;
}

struct looks_estimate looks_sums_of(const struct looks_sums *u, size_t entry)
{
	const struct looks_sum *s = entry < u->at.n ? &u->at.at[entry] : NULL;
	struct looks_estimate out = {};

	if (s && s->counted == 1) {
		out.count = s->count;
		out.count_variance = s->count_variance;
		out.delay_ns = s->ns * u->scale;
		out.few_ns = s->few_ns * u->scale;
		out.counted_ns = s->counted_ns;
		out.missed_ns = s->missed_ns;
		out.edge_ns = s->edge_ns;
		out.few = s->few;
		out.missed = s->missed;
		out.missed_variance = s->missed_variance;
		out.unsure_ns = s->unsure_ns * u->scale;
		out.delay_variance = out.own_variance = s->ns_variance;
		if (u->sites.at[s->site].known && u->sites.at[s->site].first == entry)
			out.delay_variance += variance_of(u, &u->sites.at[s->site]);
	}
	if (!out.delay_ns && !out.unsure_ns)
		out.delay_variance += u->unmet;
	return out;
}

void looks_sums_fini(struct looks_sums *u)
{
	vec_fini(&u->at);
	vec_fini(&u->sites);
	free(u->whats);
}
