/* user/collect/waits/sched_window.c - the waits of stretches, and their weights. */
#include "collect/waits/sched_window.h"

#include <bpf/bpf.h>
#include <math.h>

#include "collect/waits/onlook_sums.h"
#include "collect/waits/wait_sites.h"
#include "goprof_abi.h"
#include "probe/bpf.h"

enum { SEEN_WORDS = sizeof(struct gpb_sched_seen) / 8, WAITS_BATCH = 4096, FOLD_AT = 65536 };

/* Windows that saw fewer waits, all together, and far less than ran beside them, met nothing. */
enum { FEW = 10 };

static int seen_map(const struct sched_window *w)
{
	return bpf_map__fd(w->obj->maps.seen);
}

int sched_window_put(struct sched_window *w, struct err *e)
{
	uint32_t slot = 0;

	if (bpf_map_update_elem(bpf_map__fd(w->obj->maps.scheds), &slot, w->conf, BPF_ANY))
		return err_sys(e, "table of waits");
	return 0;
}

/* Groups of the tally: the kinds of waits and, for both, those that are counted by the clock. */
enum { GROUP_LONG = GPB_WAIT_KINDS };

/* ---- samples ---- */

static size_t site_depth(void *arg, const struct gpb_stack *st)
{
	const struct sched_window *w = arg;

	return wait_site_depth(w->s, st);
}

static size_t whole_of(void *arg, const struct gpb_stack *st)
{
	(void)arg;
	return st->size >> 8 == GPB_WAIT_MUTEX ? GPB_WAIT_MUTEX : GPB_WAIT_BLOCK;
}

static bool parks(void *arg, const struct gpb_stack *st)
{
	(void)arg;
	return st->size >> 8 == GPB_WAIT_BLOCK;
}

void sched_window_init(struct sched_window *w)
{
	tally_init(&w->tally);
	w->tally.depth = site_depth;
	w->tally.whole = whole_of;
	w->tally.parked = parks;
	w->tally.arg = w;
	w->tally.merged = true;
}

int sched_window_add(void *arg, const struct gpb_stack *st, struct err *e)
{
	struct sched_window *w = arg;
	uint64_t kind = st->size >> 8;
	size_t group = st->type ? GROUP_LONG : kind;
	int ret = kind < GPB_WAIT_KINDS ? tally_add(&w->tally, st, group, e) : 0;

	if (ret == -E2BIG) {
		w->crowded += st->count / GPB_COUNT_ONE ?: 1;
		ret = 0;
	}
	if (w->full && w->tally.seen.n >= FOLD_AT)
		tally_full(&w->tally);
	return ret;
}

static int take_stack(void *arg, const struct gpb_hash *key, const struct gpb_stack *st,
		      struct err *e)
{
	struct sched_window *w = arg;

	(void)key;
	return feed_whole(w->feed, st) ? sched_window_add(w, st, e) : 0;
}

int sched_window_seen(const struct sched_window *w, struct gpb_sched_seen *out, struct err *e)
{
	const struct gpb_sched_seen *f = &w->forgotten;
	struct gpb_sched_seen n;
	int ret = bpf_sum_cpus(seen_map(w), SEEN_WORDS, (uint64_t *)&n, e);

	if (ret)
		return ret;
	for (int k = 0; k < GPB_WAIT_KINDS; k++) {
		n.ended[k] -= f->ended[k];
		n.sampled[k] -= f->sampled[k];
	}
	n.early -= f->early;
	n.capped_ns -= f->capped_ns;
	*out = n;
	return 0;
}

int sched_window_spent(void *arg, struct gpb_spent *out, struct err *e)
{
	struct gpb_sched_seen n;
	int ret = bpf_sum_cpus(seen_map(arg), SEEN_WORDS, (uint64_t *)&n, e);

	if (!ret)
		*out = n.spent;
	return ret;
}

/* ---- goroutines that wait now ---- */

typedef int each_wait(void *arg, uint64_t g, const struct gpb_wait *wait, struct err *e);

/*
 * Calls back for each of the target's waits that the probes saw begin since @from, and did not
 * see end.
 */
static int each_waiting(const struct sched_window *w, uint64_t from, each_wait *fn, void *arg,
			struct err *e)
{
	CLEANUP(freep) struct gpb_wait *at = calloc(WAITS_BATCH, sizeof(*at));
	CLEANUP(freep) uint64_t *keys = calloc(WAITS_BATCH, sizeof(*keys));
	int fd = bpf_map__fd(w->obj->maps.waits), ret = 0;
	uint64_t next = 0;
	void *after = NULL;

	if (!at || !keys)
		return err_set(e, -ENOMEM, "no memory to count waits");
	for (uint32_t total = 0; !ret && total <= GPB_WAITS; after = &next) {
		uint32_t n = WAITS_BATCH;
		int failed = 0;

		ret = bpf_map_lookup_batch(fd, after, &next, keys, at, &n, NULL);
		if (ret && errno != ENOENT)
			return err_sys(e, "table of waits");
		for (uint32_t i = 0; !failed && i < n; i++)
			if (!(keys[i] >> 48) && at[i].since && at[i].since >= from)
				failed = fn(arg, keys[i], &at[i], e);
		if (failed)
			return failed;
		total += n;
	}
	return 0;
}

static int count_one(void *arg, uint64_t g, const struct gpb_wait *wait, struct err *e)
{
	(void)g;
	(void)wait;
	(void)e;
	++*(uint64_t *)arg;
	return 0;
}

int sched_window_waiting(const struct sched_window *w, uint64_t from, uint64_t *out, struct err *e)
{
	uint64_t n = 0;
	int ret = each_waiting(w, from, count_one, &n, e);

	if (!ret)
		*out = n;
	return ret;
}

/* ---- waits that outlast a window ---- */

static int add_contention(void *arg, uint64_t g, const struct gpb_wait *wait, struct err *e)
{
	(void)g;
	(void)e;
	if (wait->sema & GPB_SEMA_MUTEX && wait->asked == wait->since)
		++*(uint64_t *)arg;
	return 0;
}

static int outlasting(struct sched_window *w, const struct stretch *s, struct err *e)
{
	double weight = s->weight * (double)(s->closed - s->opened) / (double)w->conf->begin_ns;
	uint64_t n = 0;
	int ret = each_waiting(w, s->opened, add_contention, &n, e);

	w->outlasted += (double)n * weight;
	return ret;
}

/* ---- looks from outside ---- */

/* Delays are told by looks, for all of the time from @since on. */
static int look_on(struct sched_window *w, uint64_t since, struct err *e)
{
	const struct onlook_conf conf = { .begin_ns = &w->conf->begin_ns,
					  .last_ns = SCHED_END_NS - SCHED_BEGIN_NS,
					  .labels = &w->feed->labels,
					  .tally = &w->tally,
					  .reasons = w->conf->reasons,
					  .semas = w->conf->sema_reasons,
					  .apart = w->mutexes,
					  .counted =
						  (volatile uint64_t *)w->obj->bss->sched_counted };

	if (w->why.msg[0])
		return 0;
	if (!w->onlook && (onlook_new(w->s, &w->o, &conf, &w->onlook, &w->why) ||
			   onlook_begin(w->onlook, since, &w->why))) {
		onlook_free(TAKE(w->onlook));
		say(&w->o, "block: how long waits last is told by probes alone: %s", w->why.msg);
		return 0;
	}
	return onlook_begin(w->onlook, since, e);
}

int sched_window_joined(struct sched_window *w, struct err *e)
{
	return w->conf->own.ns ? look_on(w, 0, e) : 0;
}

int sched_window_poll(struct sched_window *w, struct err *e)
{
	slowness_poll(&w->slow);
	return w->onlook ? onlook_poll(w->onlook, e) : 0;
}

/* ---- windows ---- */

/* The clocks of all CPUs. */
static struct gpb_wait_clock clock_sum(const struct gpb_sched_seen *now, size_t ncpu)
{
	struct gpb_wait_clock sum = {};

	for (size_t c = 0; c < ncpu; c++)
		slowness_add(&sum, &now[c].clock);
	return sum;
}

/* Sets the terms of the next window, which is to last @window_ns. */
static void next_window(struct sched_window *w, uint64_t window_ns)
{
	const uint64_t last = SCHED_END_NS - SCHED_BEGIN_NS;
	const uint64_t begin = window_ns > SCHED_END_NS ? window_ns - last : SCHED_BEGIN_NS;
	const struct slowness_terms t = slowness_terms(&w->slow, begin);

	w->conf->own = t.own;
	w->conf->own_share = t.own_share;
	w->conf->begin_ns = begin;
	w->conf->looked_ns = w->onlook ? onlook_stands_from(onlook_sums(w->onlook)) : 0;
	w->conf->short_ns = t.short_ns;
}

/* Chooses the rates of full observation, before the first of it. */
static void choose_rates(struct sched_window *w)
{
	struct collect_opts *o = &w->o;

	if (o->fine_block)
		o->block_rate = fine_wait_rate(&w->light[GPB_WAIT_BLOCK], o->budget_ppm,
					       o->block_rate);
	if (o->fine_mutex)
		o->mutex_fraction = fine_mutex_fraction(&w->light[GPB_WAIT_MUTEX], o->budget_ppm,
							o->mutex_fraction);
}

int sched_window_turn(void *arg, bool windows, uint64_t since, double hit_ns, uint64_t window_ns,
		      struct err *e)
{
	struct sched_window *w = arg;
	bool were = w->conf->own.ns > 0;
	int ret = 0;

	if (windows && !were)
		slowness_begin(&w->slow, hit_ns);
	else if (were && !windows)
		slowness_end(&w->slow);
	if (!windows && !w->rates_used && w->o.budget_ppm)
		choose_rates(w);
	w->rates_used = true;
	w->full = !windows;
	w->windowed |= windows;
	w->conf->own = (struct gpb_own){};
	/* A window shows few waits, so all of them are samples. */
	w->conf->block_rate = windows ? 1 : w->o.block_rate;
	w->conf->mutex_fraction = windows ? 1 : w->o.mutex_fraction;
	if (windows) {
		next_window(w, window_ns);
		ret = look_on(w, since, e);
	} else if (w->onlook) {
		ret = onlook_pause(w->onlook, e);
	}
	return ret ? ret : sched_window_put(w, e);
}

static uint64_t parks_since(struct sched_window *w, const struct gpb_sched_seen *now, size_t ncpu)
{
	uint64_t sum = 0, since;

	for (size_t c = 0; c < ncpu; c++)
		sum += now[c].parks;
	since = sum - w->parks_before;
	w->parks_before = sum;
	return since;
}

/* Counts of the kinds that are told, of those that group 0 has, since the last window. */
static double told_now(const struct sched_window *w)
{
	double n = 0;

	for (size_t i = 0; i < w->tally.seen.n; i++)
		if (w->tally.entries.at[w->tally.seen.at[i].entry].group == GPB_WAIT_BLOCK)
			n += (double)w->tally.seen.at[i].count / GPB_COUNT_ONE;
	return n;
}

/* Waits that are counted by the clock had a larger part of the window. */
static double by_length(void *arg, const struct gpb_stack *st)
{
	const struct sched_window *w = arg;

	return st->type ? w->own / (double)w->conf->begin_ns : 1;
}

/*
 * Windows are compared with the runtime's own count at their moment, which has yields, preemptions and system calls,
 * too, that these probes do not see.
 */
void sched_window_close(struct sched_window *w, const struct stretch *s,
			const struct gpb_sched_seen *now, size_t ncpu)
{
	double stratum = s->weight * (double)(s->closed - s->opened);
	double parks = (double)parks_since(w, now, ncpu), pace, runs;
	const struct gpb_wait_clock clock = clock_sum(now, ncpu);
	struct tally_window tw = { .n = &runs, .inverse = by_length, .arg = w };

	slowness_learn(&w->slow, &clock, s, (double)w->conf->begin_ns,
		       parks / (double)w->conf->own.ns);
	/* Each CPU's part was only as long as its own time. */
	w->own = slowness_own(&w->slow, parks, (double)w->conf->own.ns);
	tw.weight = stratum / w->own;
	w->seen.parks += parks;
	w->seen.stand_for += parks * tw.weight;
	pace = slowness_pace(&w->slow, parks / w->own);
	runs = pace * stratum;
	run_rates_window(&w->slow.rates, pace * w->own, w->own, stratum);
	if (w->slow.at.dense) {
		w->dense.parks += parks * tw.weight;
		w->dense.told += told_now(w) * tw.weight;
	}
	w->tally.windows_ns += stratum;
	tally_window(&w->tally, &tw);
}

/* Drops what was seen before anything counted, and remembers how much it was. */
static int forget(struct sched_window *w, const struct stretch *s, struct err *e)
{
	struct gpb_sched_seen seen;
	int ret = sched_window_seen(w, &seen, e);

	if (ret)
		return ret;
	for (int k = 0; k < GPB_WAIT_KINDS; k++)
		w->light[k] = (struct fine_waits){
			.waits = (double)seen.ended[k],
			.ns = (double)(s->closed - s->opened),
		};
	w->light[GPB_WAIT_BLOCK].capped_ns = (double)seen.capped_ns;
	w->tally.seen.n = 0;
	w->forgotten = (struct gpb_sched_seen){};
	return sched_window_seen(w, &w->forgotten, e);
}

int sched_window_over(void *arg, const struct stretch *s, struct err *e)
{
	CLEANUP(freep) uint64_t *now = NULL;
	struct sched_window *w = arg;
	struct gpb_wait_clock clock;
	uint64_t cut = 0;
	size_t ncpu;
	int ret;

	/* This comes first, because the runtime goes on counting. */
	if (s->weight && !s->window)
		slowness_mark(&w->slow);
	ret = feed_poll(w->feed, e);

	if (!ret)
		ret = bpf_take_stacks(bpf_map__fd(w->obj->maps.stacks), &w->obj->bss->rounds,
				      take_stack, w, e);
	if (!ret)
		ret = bpf_each_cpu(seen_map(w), SEEN_WORDS, &now, &ncpu, e);
	if (ret)
		return ret;
	if (s->weight && s->window) {
		sched_window_close(w, s, (void *)now, ncpu);
		ret = outlasting(w, s, e);
		next_window(w, s->next_ns);
		return ret ? ret : sched_window_put(w, e);
	}
	parks_since(w, (void *)now, ncpu);
	clock = clock_sum((void *)now, ncpu);
	slowness_skip(&w->slow, &clock);
	if (!s->weight)
		return forget(w, s, e);
	tally_full(&w->tally);
	w->tally.full_ns += (double)(s->closed - s->opened);
	w->opened = s->opened;
	ret = sched_window_waiting(w, s->opened, &cut, e);
	w->cut += cut;
	return ret;
}

/*
 * Sums up all that was waited for mutexes, as looks saw it; windows tell who made others wait, if
 * they saw any of it.
 */
static void sum_locked(struct sched_window *w)
{
	for (size_t i = 0; i < w->tally.entries.n; i++) {
		const struct tally_entry *en = &w->tally.entries.at[i];
		struct onlook_estimate o = onlook_of(w->onlook, i);

		if (en->st->size >> 8 == GPB_WAIT_MUTEX || !(w->mutexes >> (en->st->size & 63) & 1))
			continue;
		w->locked.delay += o.delay_ns;
		w->locked.delay_error += o.own_variance;
		w->locked.beyond += o.beyond;
	}
	w->locked.delay_error += onlook_apart_variance(onlook_sums(w->onlook));
	w->locked.known = w->tally.wholes[GPB_WAIT_MUTEX].delays.x > 0;
}

void sched_window_stop(struct sched_window *w)
{
	if (w->conf->own.ns)
		slowness_end(&w->slow);
	if (w->onlook)
		onlook_stop(w->onlook);
}

/*
 * Some of the parks in windows are not of the kinds that are counted, for example sleepers. Parks
 * that a clock paces are too many in windows, compared with the others, by the slowdown; in the
 * runtime's count they are not. How many of these there are is not known, so the middle is taken,
 * and the largest possible error is reported. Only windows in which the target is slow have this.
 */
static void weigh_others(struct sched_window *w)
{
	double runs = w->tally.groups[GPB_WAIT_BLOCK].x, parks = w->dense.parks;
	double others = parks > w->dense.told ? 1 - w->dense.told / parks : 0;
	double slow = slowness_mean(&w->slow, w->tally.windows);

	if (slow > 1 && runs > 0)
		w->too_few = others * (1 - 1 / slow) / 2 * fmin(parks / runs, 1);
}

void sched_window_end(struct sched_window *w, struct onlook_result *out)
{
	*out = (struct onlook_result){};
	if (w->onlook)
		onlook_end(w->onlook, out);
	tally_rest(&w->tally);
	/* Did the target get no CPU in windows, or did it only yield? Nobody knows. */
	if (w->seen.parks < FEW && RUN_DILATED * w->seen.stand_for < w->tally.groups[0].x)
		w->slow.rates.most = 0;
	if (w->onlook)
		undercounts_learn(&w->under, &w->tally, onlook_sums(w->onlook), GPB_WAIT_MUTEX,
				  slowness_mean(&w->slow, w->tally.windows));
	weigh_others(w);
	if (w->onlook && w->mutexes)
		sum_locked(w);
}

bool sched_window_by_switches(const struct sched_window *w)
{
	return slowness_met(&w->slow) > 0 && w->tally.windows;
}

/* ---- estimates ---- */

static double plus(double a, double b)
{
	return a < 0 || b < 0 ? -1 : a + b;
}

static const double one2 = (double)GPB_COUNT_ONE * GPB_COUNT_ONE;

static struct tally_estimate with_total(const struct sched_window *w, const struct tally_part *p,
					double total)
{
	/* Both are the runtime's own counts, so windows lack nothing (slowness_lack). */
	struct tally_estimate n = tally_part_regressed(&w->tally, p, total, 1);

	n.value *= 1 + w->too_few;
	return n;
}

static struct tally_estimate regressed(const struct sched_window *w, const struct tally_part *p)
{
	return with_total(w, p, slowness_met(&w->slow));
}

/*
 * The number that windows tell of an entry. Where its site's number comes from regression, the
 * entry's part of that.
 */
static double count_of(const struct sched_window *w, const struct tally_entry *en)
{
	const struct tally_part *site = &w->tally.sites.at[en->site].sums;

	if (en->group != GPB_WAIT_BLOCK || site->compared.x <= 0 || !sched_window_by_switches(w))
		return en->counts.x * undercounts_factor(&w->under, en);
	return regressed(w, site).value * en->counts.x / site->compared.x;
}

/*
 * Full observation is a sample, too: one contention in so many, each of which stands for that
 * many. The variance of delays assumes that those of one stack are alike.
 */
static void unsure_of_sample(const struct sched_window *w, const struct tally_entry *en,
			     struct sched_estimate *out)
{
	double others = (double)w->o.mutex_fraction - 1, count = (double)en->count / GPB_COUNT_ONE;

	if (others <= 0 || count <= 0)
		return;
	out->count_error += count * others * one2;
	out->delay_error += (double)en->delay * (double)en->delay * others / count;
}

static void estimate_block(const struct sched_window *w, size_t entry, struct sched_estimate *out)
{
	const struct tally_entry *en = &w->tally.entries.at[entry];
	struct onlook_estimate o = {};
	double delay = en->delays.x;

	if (w->onlook) {
		o = onlook_of(w->onlook, entry);
		delay = o.delay_ns;
	}
	out->count = (int64_t)en->count + llround(count_of(w, en) + o.count * GPB_COUNT_ONE);
	out->delay = (int64_t)en->delay + llround(delay);
	out->count_error = o.count_variance * one2;
	out->delay_error = o.own_variance;
}

/* Contentions that looks saw: windows tell who made others wait, if they saw any of them. */
static void estimate_mutex(const struct sched_window *w, const struct tally_entry *en,
			   struct sched_estimate *out)
{
	double count = en->counts.x, delay = en->delays.x, share;

	if (w->locked.known) {
		share = delay / w->tally.wholes[GPB_WAIT_MUTEX].delays.x;
		count += share * w->locked.beyond * GPB_COUNT_ONE;
		delay = share * w->locked.delay;
	}
	out->count = (int64_t)en->count + llround(count);
	out->delay = (int64_t)en->delay + llround(delay);
	unsure_of_sample(w, en, out);
}

struct sched_estimate sched_window_estimate(const struct sched_window *w, size_t entry)
{
	const struct tally_entry *en = &w->tally.entries.at[entry];
	struct sched_estimate out = {};

	if (en->st->size >> 8 == GPB_WAIT_BLOCK)
		estimate_block(w, entry, &out);
	else
		estimate_mutex(w, en, &out);
	return out;
}

/* How far off the regression may be because the total is (slowness_unsure). */
static double unsure_of_total(const struct sched_window *w, const struct tally_part *p,
			      double value)
{
	const struct tally_estimate runs = tally_group(&w->tally, GPB_WAIT_BLOCK);
	double unsure = slowness_unsure(&w->slow, &runs, 1);

	return with_total(w, p, slowness_met(&w->slow) + unsure).value - value;
}

/*
 * The variance of the number of waits: the regression's residual, the error that all sites have in
 * common (too_few), and that of the total.
 */
static double counts_error(const struct sched_window *w, const struct tally_part *p)
{
	struct tally_estimate n;
	double more;

	if (!sched_window_by_switches(w))
		return tally_part_counts(&w->tally, p).variance;
	n = regressed(w, p);
	more = unsure_of_total(w, p, n.value);
	return plus(n.variance, n.value * n.value * w->too_few * w->too_few + more * more);
}

/* Of the number of a site's waits that windows tell: those by length have an error of their own. */
static double site_error(const struct sched_window *w, size_t site)
{
	double by_length;
	struct tally_part p = w->tally.sites.at[site].sums;

	if (!undercounts_apart(&w->under, site, &by_length))
		return counts_error(w, &p);
	p.counts = p.others;
	return plus(counts_error(w, &p), by_length * one2);
}

/* A share of all that is waited for mutexes. Looks tell the variance of that total. */
static struct sched_error mutex_error(const struct sched_window *w, const struct tally_part *p)
{
	struct tally_estimate share = tally_part_share(&w->tally, p,
						       &w->tally.wholes[GPB_WAIT_MUTEX]);
	double beyond = w->locked.beyond * GPB_COUNT_ONE, delay = w->locked.delay;
	struct sched_error out = { tally_part_counts(&w->tally, p).variance,
				   tally_part_delays(&w->tally, p).variance };

	if (!w->locked.known && delay > 0)
		return (struct sched_error){ -1, -1 };
	if (!w->locked.known)
		return out;
	if (share.variance < 0)
		return (struct sched_error){ -1, -1 };
	return (struct sched_error){
		plus(out.count, share.variance * beyond * beyond),
		share.variance * delay * delay + share.value * share.value * w->locked.delay_error,
	};
}

/* What windows lack, compared with looks. */
static double lacking(const struct sched_window *w, size_t site)
{
	const struct tally_part *p = &w->tally.sites.at[site].sums;

	if (!w->onlook)
		return 0;
	return undercounts_site(&w->under, site, tally_part_delays(&w->tally, p).variance,
				onlook_site_variance(onlook_sums(w->onlook), site)) *
	       GPB_COUNT_ONE * GPB_COUNT_ONE;
}

/* Did looks count all that they saw of a site? */
static bool counted_by_looks(const struct sched_window *w, size_t site)
{
	const struct onlook_sums *k = w->onlook ? onlook_sums(w->onlook) : NULL;

	return k && onlook_site_count(k, site) > 0 &&
	       undercounts_counted(&w->under, site, onlook_site_variance(k, site));
}

static double lacking_all(const struct sched_window *w, const struct tally_part *all)
{
	if (!w->onlook)
		return 0;
	return undercounts_all(&w->under, tally_part_delays(&w->tally, all).variance,
			       onlook_all_variance(onlook_sums(w->onlook))) *
	       GPB_COUNT_ONE * GPB_COUNT_ONE;
}

/*
 * What neither a window nor a look met may have come in between. Where there are looks, they tell how
 * long goroutines were blocked.
 */
static struct sched_error missed(const struct sched_window *w, size_t site)
{
	const struct tally_site *s = &w->tally.sites.at[site];
	struct tally_missed m = tally_part_missed(&w->tally, &s->sums);

	if (s->whole == GPB_WAIT_MUTEX)
		return (struct sched_error){ m.count * one2, m.delay };
	if (counted_by_looks(w, site))
		return (struct sched_error){};
	return (struct sched_error){ m.count * one2, w->onlook ? 0 : m.delay };
}

struct sched_error sched_window_site(const struct sched_window *w, size_t site)
{
	const struct tally_site *s = &w->tally.sites.at[site];
	struct sched_error out;

	if (s->whole == GPB_WAIT_MUTEX) {
		out = mutex_error(w, &s->sums);
	} else {
		out.count = plus(site_error(w, site), lacking(w, site));
		out.delay = w->onlook ? onlook_site_variance(onlook_sums(w->onlook), site) :
					tally_part_delays(&w->tally, &s->sums).variance;
	}
	out.count = plus(out.count, missed(w, site).count);
	out.count = plus(out.count, slowness_of_site(&w->slow));
	out.delay = plus(out.delay, missed(w, site).delay);
	return out;
}

struct sched_error sched_window_whole(const struct sched_window *w, unsigned kind)
{
	const struct tally_part *all = &w->tally.wholes[kind];
	struct sched_error out = { -1, -1 };
	double by_length;

	if (kind == GPB_WAIT_MUTEX) {
		out = mutex_error(w, all);
	} else {
		out.count = plus(counts_error(w, all), lacking_all(w, all));
		out.delay = w->onlook ? onlook_all_variance(onlook_sums(w->onlook)) :
					tally_part_delays(&w->tally, all).variance;
	}
	for (size_t i = 0; i < w->tally.sites.n; i++) {
		if (w->tally.sites.at[i].whole != kind)
			continue;
		out.count = plus(out.count, missed(w, i).count);
		by_length = 0;
		if (undercounts_apart(&w->under, i, &by_length))
			out.count = plus(out.count, by_length * one2);
		out.delay = plus(out.delay, missed(w, i).delay);
	}
	if (slowness_unmet(&w->slow) > 0)
		out.count = -1; /* nobody knows how much of that were waits */
	return out;
}

void sched_window_fini(struct sched_window *w)
{
	onlook_free(w->onlook);
	undercounts_fini(&w->under);
	slowness_fini(&w->slow);
	tally_fini(&w->tally);
}
