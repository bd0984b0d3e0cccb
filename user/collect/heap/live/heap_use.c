/* user/collect/heap/live/heap_use.c - connects the followed objects with the tally and the profile. */
#include "collect/heap/live/heap_use.h"

#include <bpf/bpf.h>
#include <math.h>

#include "sampling/windows/survival.h"

int heap_use_open(struct heap_use *u, struct subject *s, struct heap_live_room *room, struct err *e)
{
	int ret = heap_live_open(s, room, &u->live, &u->why_not);

	return ret == -ENOMEM || ret == -ESRCH ? err_set(e, ret, "%s", u->why_not.msg) : 0;
}

void heap_use_refuse(struct heap_use *u, const struct err *why)
{
	heap_live_free(TAKE(u->live));
	u->why_not = *why;
}

void heap_use_fini(struct heap_use *u)
{
	heap_live_free(u->live);
	free(u->shares);
	free(u->spreads);
}

int heap_use_types(const struct heap_use *u, struct prof *p, struct err *e)
{
	int ret;

	if (!u->live)
		return 0;
	ret = prof_add_type(p, "inuse_objects", "count", e);
	return ret ? ret : prof_add_type(p, "inuse_space", "bytes", e);
}

static int take_record(void *arg, const void *data, size_t len, struct err *e)
{
	const struct gpb_rec_raw *rec = data;
	struct heap_use *u = arg;
	struct gpb_hash key;

	if (rec->type != GPB_REC_STACK) {
		heap_live_record(u->live, data, len);
		return 0;
	}
	if (len < offsetof(struct gpb_rec_raw, top))
		return 0;
	key = (struct gpb_hash){ .lo = rec->pc, .hi = rec->sp };
	return tally_key(u->tally, &key, &rec->stack, e);
}

void heap_use_begin(struct heap_use *u, struct reports *f, struct tally *t)
{
	if (!u->live)
		return;
	u->tally = t;
	if (!f)
		return;
	f->other = take_record;
	f->other_arg = u;
}

int heap_use_attach(struct heap_use *u, const struct heap_window *w, bool multi, struct err *e)
{
	return u->live ? heap_live_attach(u->live, w->obj->progs.heap_cycle, w->slot, multi, e) : 0;
}

int heap_use_target(const struct heap_use *u, const struct heap_window *w, struct gpb_target *t,
		    struct err *e)
{
	if (!u->live)
		return 0;
	t->flags |= GPB_TARGET_LIVE;
	if (bpf_map_update_elem(bpf_map__fd(w->obj->maps.lives), &w->slot, heap_live_conf(u->live),
				BPF_ANY))
		return err_sys(e, "table of followed targets");
	return 0;
}

size_t heap_use_sites(struct heap_use *u, size_t i, struct uprobe_site sites[HEAP_LIVE_SITES])
{
	return u->live ? heap_live_sites(u->live, i, sites) : 0;
}

void heap_use_weighed(void *arg, uint64_t opened, double weight)
{
	const struct heap_use *u = arg;

	if (u->live)
		heap_live_window(u->live, opened, weight);
}

int heap_use_fd(const struct heap_use *u)
{
	return u->live ? heap_live_fd(u->live) : -1;
}

int heap_use_poll(struct heap_use *u, struct err *e)
{
	return u->live ? heap_live_poll(u->live, e) : 0;
}

/* ---- the end ---- */

static struct tally_entry *entry_of(const struct heap_use *u, const struct heap_live_count *c)
{
	return tally_find(u->tally, &c->stack);
}

static void add_shares(struct heap_use *u)
{
	for (size_t i = 0; i < heap_live_ncounts(u->live); i++) {
		struct heap_live_count c = heap_live_count(u->live, i);
		struct tally_entry *en = entry_of(u, &c);
		struct heap_share *s;

		if (!en) {
			u->astray += c.objects;
			continue;
		}
		s = &u->shares[en - u->tally->entries.at];
		s->objects[c.group > 0] += c.objects;
		s->followed[c.group > 0] += c.followed;
		s->live[c.group > 0] += c.live;
		s->maybe[c.group > 0] += c.maybe;
		s->maybe_live[c.group > 0] += c.maybe_live;
		if (c.group > u->groups)
			u->groups = c.group;
	}
}

static double share_of(double live, double followed)
{
	return followed > 0 ? live / followed : 0;
}

static void fill_shares(struct heap_use *u, int windowed)
{
	double followed[TALLY_GROUPS] = {}, live[TALLY_GROUPS] = {};
	const struct tally *t = u->tally;

	for (size_t i = 0; i < t->entries.n; i++) {
		followed[t->entries.at[i].group] += u->shares[i].followed[windowed];
		live[t->entries.at[i].group] += u->shares[i].live[windowed];
	}
	for (size_t i = 0; i < t->entries.n; i++) {
		struct heap_share *s = &u->shares[i];
		size_t g = t->entries.at[i].group;

		s->share[windowed] = s->followed[windowed] > 0 ?
					     share_of(s->live[windowed], s->followed[windowed]) :
					     share_of(live[g], followed[g]);
	}
}

static double made_in_windows(const struct heap_window *w, const struct tally_entry *en)
{
	return heap_window_made(w, en).seen.value;
}

/* What a group of windows saw of one stack. */
static void add_group(struct heap_use *u, const struct heap_window *w, const struct tally_entry *en,
		      const struct heap_live_count *c)
{
	const struct heap_share *s = &u->shares[en - u->tally->entries.at];
	struct heap_spread *sp = &u->spreads[en->site];
	double one = made_in_windows(w, en) / s->followed[1], seen = one * c->followed;

	sp->off[c->group - 1] += one * (c->live - s->share[1] * c->followed);
	sp->seen[c->group - 1] += seen;
	sp->once += seen * c->once;
	sp->always += seen * c->always;
}

/*
 * Shares are ratio estimators: Cochran, Sampling Techniques, 3rd edition, 6.4; their variance
 * from groups: 11.20.
 */
static void add_spreads(struct heap_use *u, const struct heap_window *w)
{
	const struct tally *t = u->tally;

	for (size_t i = 0; i < t->entries.n; i++) {
		const struct tally_entry *en = &t->entries.at[i];
		const struct heap_share *s = &u->shares[i];
		struct heap_spread *sp = &u->spreads[en->site];
		double made = made_in_windows(w, en), k = (double)s->objects[1], n = k + 4;
		double likely = (s->share[1] * k + 2) / n;

		sp->made += made;
		sp->live += made * s->share[1];
		sp->least += made * made * likely * (1 - likely) / n;
		if (s->followed[1] <= 0)
			continue;
		sp->maybe += made * s->maybe[1] / s->followed[1];
		sp->maybe_live += made * s->maybe_live[1] / s->followed[1];
	}
	for (size_t i = 0; i < heap_live_ncounts(u->live); i++) {
		struct heap_live_count c = heap_live_count(u->live, i);
		struct tally_entry *en = entry_of(u, &c);

		if (en && c.group && u->shares[en - t->entries.at].followed[1] > 0)
			add_group(u, w, en, &c);
	}
}

int heap_use_end(struct heap_use *u, const struct heap_window *w, struct err *e)
{
	struct tally *t = u->tally;
	int ret;

	if (!u->live)
		return 0;
	ret = heap_live_end(u->live, e);
	if (ret)
		return ret;
	u->bunched = heap_live_turned_away(u->live) +
		     w->obj->bss->tallies[w->slot].lost[GPB_LOSS_OBJECTS];
	u->shares = calloc(t->entries.n + 1, sizeof(*u->shares));
	u->spreads = calloc(t->sites.n + 1, sizeof(*u->spreads));
	if (!u->shares || !u->spreads)
		return err_set(e, -ENOMEM, "no memory");
	add_shares(u);
	fill_shares(u, 0);
	fill_shares(u, 1);
	add_spreads(u, w);
	return 0;
}

static struct survival survival_of(const struct heap_spread *sp, const struct heap_window *w)
{
	double sum = 0, squares = 0;

	for (size_t i = 0; i < HEAP_LIVE_GROUPS; i++) {
		sum += sp->seen[i];
		squares += sp->seen[i] * sp->seen[i];
	}
	return (struct survival){
		.share = fmin(sp->live / sp->made, 1),
		.windows = survival_windows(sum, squares),
		.once = sum > 0 ? sp->once / sum : 1,
		.always = sum > 0 ? sp->always / sum : 0,
		.unseen = heap_window_unwatched(w),
	};
}

/* The variance of what is in use of a site, as far as windows tell. -1: not known. */
static double site_variance(const struct heap_use *u, const struct heap_window *w,
			    const struct tally_entry *en)
{
	const struct heap_spread *sp = &u->spreads[en->site];
	double made = heap_window_made(w, en).seen.variance;
	double of_share = 0, k = (double)u->groups, all = sp->made * sp->made, se;
	struct survival s;

	if (sp->made <= 0)
		return 0;
	if (made < 0 || k < 2)
		return -1;
	s = survival_of(sp, w);
	for (size_t i = 0; i < HEAP_LIVE_GROUPS; i++)
		of_share += sp->off[i] * sp->off[i] * k / (k - 1);
	of_share = fmax(fmax(of_share, sp->least), all * survival_least(&s));
	se = sqrt(made) * sp->live / sp->made + sqrt(of_share + all * survival_unseen(&s));
	return se * se + survival_maybe(sp->maybe, sp->maybe_live);
}

static double full_variance(const struct heap_share *s, double sampled, double one)
{
	double p = s->share[0], unknown = sampled - s->followed[0];
	double variance = sampled * p * one * (one - 1);

	if (unknown > 0)
		variance += one * one * p * (1 - p) * unknown * sampled / fmax(s->followed[0], 1);
	if (s->followed[0] <= 0)
		return variance;
	one *= sampled / s->followed[0];
	return variance + survival_maybe(s->maybe[0] * one, s->maybe_live[0] * one);
}

struct heap_estimate heap_use_of(const struct heap_use *u, const struct heap_window *w,
				 const struct tally_entry *en)
{
	const struct heap_share *s = &u->shares[en - w->tally.entries.at];
	int64_t size = (int64_t)en->st->object.size, rate = (int64_t)w->rate;
	struct scaled full = scale_heap((int64_t)en->count, 0, size, rate);
	struct heap_made made = heap_window_made(w, en);
	double some = made.seen.value * s->share[1] + made.borrowed * s->share[0];
	double objects = (double)full.objects * s->share[0] + some, windows = 0;
	double one = scale_heap_one(size, rate),
	       cut = (double)en->count * one - (double)full.objects;

	if (en == &w->tally.entries.at[w->tally.sites.at[en->site].first])
		windows = site_variance(u, w, en);
	if (made.seen.variance < 0 || (u->bunched && en->count > s->objects[0]))
		windows = -1;
	return (struct heap_estimate){
		.objects = objects,
		.variance = windows < 0 ? -1 : windows + full_variance(s, (double)en->count, one),
		.values = { .objects = scale_round(objects),
			    .bytes = scale_round((double)full.bytes * s->share[0] +
						 some * (double)size) },
		.parts = heap_in_parts(scale_round(objects), cut * s->share[0]),
	};
}

static struct heap_live_told told(const struct heap_window *w)
{
	const struct gpb_objects *o = &w->obj->bss->object_counts[w->slot];

	return (struct heap_live_told){
		.told = o->told,
		.waited = o->waited,
		.large = o->large,
		.unknown = o->unknown,
		.settled = o->settled,
		.dropped = w->obj->bss->tallies[w->slot].lost[GPB_LOSS_OBJECTS],
		.waiting = w->obj->bss->nplacing[w->slot],
	};
}

int heap_use_comments(const struct heap_use *u, const struct heap_window *w, struct prof *p,
		      struct err *e)
{
	struct heap_live_told t = told(w);

	if (!u->live)
		return prof_comment(p, e, "in-use columns are absent: %s", u->why_not.msg);
	return heap_live_comments(u->live, &t, p, e);
}

void heap_use_losses(const struct heap_use *u, const struct heap_window *w, struct loss *to)
{
	struct heap_live_told t = told(w);

	if (u->live)
		heap_live_losses(u->live, &t, to);
	to->n[LOSS_OBJECTS_UNPLACED] += u->astray;
}
