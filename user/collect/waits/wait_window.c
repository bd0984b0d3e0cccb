/* user/collect/waits/wait_window.c - the waits of stretches, and their weights. */
#include "collect/waits/wait_window.h"

#include <bpf/bpf.h>
#include <math.h>

#include "collect/waits/onlook_sums.h"
#include "collect/waits/wait_sites.h"
#include "probe/bpf.h"

enum { SEEN_WORDS = sizeof(struct gpb_waiting_seen) / 8, BATCH = 4096, FOLD_AT = 65536 };

static int seen_map(const struct wait_window *w)
{
	return bpf_map__fd(w->obj->maps.seen);
}

int wait_window_put(struct wait_window *w, struct err *e)
{
	uint32_t slot = 0;

	if (bpf_map_update_elem(bpf_map__fd(w->obj->maps.waitings), &slot, &w->conf, BPF_ANY))
		return err_sys(e, "table of waits");
	return 0;
}

/* ---- system calls ---- */

static const char *func_at(struct wait_window *w, uint64_t pc, uint64_t *entry)
{
	const struct image *img;
	struct gofunc f;
	const char *name;

	if (subject_func(w->s, pc, &f, &img))
		return NULL;
	name = gobin_func_name(img->bin, &f);
	*entry = f.entry + img->bias;
	return name ? name : "";
}

static bool leaves_call(const char *func)
{
	return !strcmp(func, "runtime.casgstatus") || !strncmp(func, "runtime.exitsyscall", 19);
}

/*
 * Looks find a system call where it enters the kernel, probes where it has left: that is one
 * function, but two lines. To make them one place, the line that was found first is used for
 * both.
 */
static void settle_call(void *arg, struct gpb_stack *st)
{
	struct wait_window *w = arg;
	size_t from = 0;
	uint64_t entry = 0, pc;
	const char *func = NULL;

	for (; from < st->nfirst; from++) {
		func = func_at(w, st->pc[from] - 1, &entry);
		if (!func || !leaves_call(func))
			break;
	}
	if (from == st->nfirst || !func)
		return;
	if (!map_get(&w->leaves, entry, &pc)) {
		pc = st->pc[from];
		map_put(&w->leaves, entry, pc); /* otherwise they remain two places */
	}
	st->nfirst = (uint16_t)(st->nfirst - from);
	memmove(st->pc, st->pc + from, (st->nfirst + (size_t)st->nsecond) * sizeof(st->pc[0]));
	st->pc[0] = pc;
}

/* ---- samples ---- */

static size_t site_depth(void *arg, const struct gpb_stack *st)
{
	const struct wait_window *w = arg;

	return wait_site_depth(w->s, st);
}

static size_t whole_of(void *arg, const struct gpb_stack *st)
{
	const struct wait_window *w = arg;

	return w->by_runtime(w->s, st) ? WAIT_WHOLE_RUNTIME : WAIT_WHOLE_PROGRAM;
}

static bool parks(void *arg, const struct gpb_stack *st)
{
	(void)arg;
	return st->size >> 8 == GPB_G_WAITING;
}

/* A wait that was long, or that a clock paces, ends in one of these (bpf/wait.bpf.c). */
static bool follows(void *arg, const struct gpb_stack *st)
{
	(void)arg;
	return st->size >> 8 == GPB_G_RUNNABLE;
}

void wait_window_init(struct wait_window *w,
		      bool (*by_runtime)(struct subject *s, const struct gpb_stack *st))
{
	tally_init(&w->tally);
	w->tally.depth = site_depth;
	w->tally.whole = whole_of;
	w->tally.parked = parks;
	w->tally.follows = follows;
	w->tally.arg = w;
	w->tally.merged = true;
	w->by_runtime = by_runtime;
}

int wait_window_add(void *arg, const struct gpb_stack *st, struct err *e)
{
	struct wait_window *w = arg;
	struct gpb_stack call;
	int ret;

	if (st->size >> 8 == GPB_G_SYSCALL) {
		call = *st;
		settle_call(w, &call);
		st = &call;
	}
	ret = tally_add(&w->tally, st, st->type, e);
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
	struct wait_window *w = arg;

	(void)key;
	return feed_whole(w->feed, st) ? wait_window_add(w, st, e) : 0;
}

int wait_window_seen(const struct wait_window *w, struct gpb_waiting_seen *out, struct err *e)
{
	const struct gpb_waiting_seen *f = &w->forgotten;
	struct gpb_waiting_seen n;
	int ret = bpf_sum_cpus(seen_map(w), SEEN_WORDS, (uint64_t *)&n, e);

	if (ret)
		return ret;
	for (int k = 0; k <= GPB_G_WAITING; k++) {
		n.ended[k] -= f->ended[k];
		n.sampled[k] -= f->sampled[k];
		n.early[k] -= f->early[k];
	}
	n.capped_ns -= f->capped_ns;
	n.unseen -= f->unseen;
	n.lost -= f->lost;
	*out = n;
	return 0;
}

int wait_window_spent(void *arg, struct gpb_spent *out, struct err *e)
{
	struct gpb_waiting_seen n;
	int ret = bpf_sum_cpus(seen_map(arg), SEEN_WORDS, (uint64_t *)&n, e);

	if (!ret)
		*out = n.spent;
	return ret;
}

/* ---- looks from outside ---- */

/* Delays are told by looks, for all of the time from @since on. */
static int look_on(struct wait_window *w, uint64_t since, struct err *e)
{
	const struct onlook_conf conf = { .begin_ns = &w->conf.begin_ns,
					  .last_ns = WAIT_END_NS - WAIT_BEGIN_NS,
					  .labels = &w->feed->labels,
					  .tally = &w->tally,
					  .all = true,
					  .settle = settle_call,
					  .settle_arg = w,
					  .counted =
						  (volatile uint64_t *)w->obj->bss->wait_counted };

	if (w->why.msg[0])
		return 0;
	if (!w->onlook && (onlook_new(w->s, &w->o, &conf, &w->onlook, &w->why) ||
			   onlook_begin(w->onlook, since, &w->why))) {
		onlook_free(TAKE(w->onlook));
		say(&w->o, "wait: how long waits last is told by probes alone: %s", w->why.msg);
		return 0;
	}
	return onlook_begin(w->onlook, since, e);
}

int wait_window_poll(struct wait_window *w, struct err *e)
{
	slowness_poll(&w->slow);
	return w->onlook ? onlook_poll(w->onlook, e) : 0;
}

/* ---- stretches ---- */

/* Sets the terms of the next window, which is to last @window_ns. */
static void next_window(struct wait_window *w, uint64_t window_ns)
{
	const uint64_t last = WAIT_END_NS - WAIT_BEGIN_NS;
	const uint64_t begin = window_ns > WAIT_END_NS ? window_ns - last : WAIT_BEGIN_NS;
	const struct slowness_terms t = slowness_terms(&w->slow, begin - GPB_LONG_NS);

	w->conf.own = t.own;
	w->conf.own_share = t.own_share;
	w->conf.short_ns = t.short_ns;
	w->conf.begin_ns = begin;
	w->conf.looked_ns = w->onlook ? onlook_stands_from(onlook_sums(w->onlook)) : 0;
}

int wait_window_turn(void *arg, bool windows, uint64_t since, double hit_ns, uint64_t window_ns,
		     struct err *e)
{
	struct wait_window *w = arg;
	bool were = w->conf.own.ns > 0;
	int ret = 0;

	if (windows && !were)
		slowness_begin(&w->slow, hit_ns);
	else if (were && !windows)
		slowness_end(&w->slow);
	if (!windows && !w->rate_used && w->o.budget_ppm && w->o.fine_wait)
		w->o.wait_rate = fine_wait_rate(&w->light, w->o.budget_ppm, w->o.wait_rate);
	w->rate_used = true;
	w->full = !windows;
	w->windowed |= windows;
	w->conf.own = (struct gpb_own){};
	/* a window shows few waits, so all of them are samples */
	w->conf.rate = windows ? 1 : w->o.wait_rate;
	if (windows) {
		next_window(w, window_ns);
		ret = look_on(w, since, e);
	} else if (w->onlook) {
		ret = onlook_pause(w->onlook, e);
	}
	return ret ? ret : wait_window_put(w, e);
}

static struct gpb_waiting_seen sum_of(const struct gpb_waiting_seen *now, size_t ncpu)
{
	struct gpb_waiting_seen sum = {};

	for (size_t c = 0; c < ncpu; c++) {
		slowness_add(&sum.clock, &now[c].clock);
		sum.runs += now[c].runs;
		sum.paced_runs += now[c].paced_runs;
	}
	return sum;
}

/* For how long waits may begin in a window (bpf/standing.bpf.h: may_begin). */
static double begin_ns(const struct wait_window *w)
{
	return (double)(w->conf.begin_ns - GPB_LONG_NS);
}

/*
 * Which part of a window a wait of this length was counted in. w->weight is for the own time in
 * the first part.
 */
static double by_length(void *arg, const struct gpb_stack *st)
{
	const struct wait_window *w = arg;

	switch (st->type) {
	case GPB_WAIT_LONG:
		return w->own / begin_ns(w);
	case GPB_WAIT_CALL:
		return w->own / (w->length - GPB_LONG_NS);
	default:
		return 1;
	}
}

void wait_window_close(struct wait_window *w, const struct stretch *s,
		       const struct gpb_waiting_seen *now)
{
	double stratum = s->weight * (double)(s->closed - s->opened);
	double seen = (double)(now->runs - w->runs), runs, pace;
	double paced = (double)(now->paced_runs - w->paced_runs) * stratum / begin_ns(w);
	struct tally_window tw = { .n = &runs, .inverse = by_length, .arg = w };

	slowness_learn(&w->slow, &now->clock, s, begin_ns(w), seen / (double)w->conf.own.ns);
	/* Each CPU's part was only as long as its own time. */
	w->own = slowness_own(&w->slow, seen, (double)w->conf.own.ns);
	tw.weight = stratum / w->own;
	runs = seen * tw.weight;
	pace = (runs + paced) / stratum;
	run_rates_window(&w->slow.rates, pace * w->own, w->own, stratum);
	/* Probes make the target slower, at most RUN_DILATED times. A window that saw still fewer runs than there
	 * were beside it lay before a storm or after it, and did not meet that pace. */
	if (RUN_DILATED * w->slow.at.least >= w->slow.at.beside)
		run_rates_met(&w->slow.rates, w->slow.at.beside);
	w->paced += paced;
	w->length = (double)(s->closed - s->opened);
	w->tally.windows_ns += stratum;
	tally_window(&w->tally, &tw);
}

/* Counts waits that the probes saw begin since @from, and did not see end. */
static int count_waiting(struct wait_window *w, uint64_t from, uint64_t *out, struct err *e)
{
	CLEANUP(freep) struct gpb_standing *at = calloc(BATCH, sizeof(*at));
	CLEANUP(freep) uint64_t *keys = calloc(BATCH, sizeof(*keys));
	int fd = bpf_map__fd(w->obj->maps.standings), ret = 0;
	uint64_t next = 0;
	void *after = NULL;

	if (!at || !keys)
		return err_set(e, -ENOMEM, "no memory to count waits");
	for (uint32_t total = 0; !ret && total <= GPB_WAITS; after = &next) {
		uint32_t n = BATCH;

		ret = bpf_map_lookup_batch(fd, after, &next, keys, at, &n, NULL);
		if (ret && errno != ENOENT)
			return err_sys(e, "table of waits");
		for (uint32_t i = 0; i < n; i++)
			*out += !(keys[i] >> 48) && at[i].since >= from &&
				at[i].status != GPB_G_RUNNING;
		total += n;
	}
	return 0;
}

/* Drops what was seen before anything counted, and remembers how much it was. */
static int forget(struct wait_window *w, const struct stretch *s, struct err *e)
{
	struct gpb_waiting_seen seen;
	int ret = wait_window_seen(w, &seen, e);

	if (ret)
		return ret;
	w->light = (struct fine_waits){ .capped_ns = (double)seen.capped_ns,
					.ns = (double)(s->closed - s->opened) };
	for (int k = 0; k <= GPB_G_WAITING; k++)
		w->light.waits += (double)seen.ended[k];
	w->tally.seen.n = 0;
	w->forgotten = (struct gpb_waiting_seen){};
	return wait_window_seen(w, &w->forgotten, e);
}

int wait_window_over(void *arg, const struct stretch *s, struct err *e)
{
	CLEANUP(freep) uint64_t *cpus = NULL;
	struct wait_window *w = arg;
	struct gpb_waiting_seen now;
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
		ret = bpf_each_cpu(seen_map(w), SEEN_WORDS, &cpus, &ncpu, e);
	if (ret)
		return ret;
	now = sum_of((void *)cpus, ncpu);
	if (!s->weight || !s->window)
		slowness_skip(&w->slow, &now.clock);
	if (!s->weight) {
		ret = forget(w, s, e);
	} else if (s->window) {
		wait_window_close(w, s, &now);
		next_window(w, s->next_ns);
		ret = wait_window_put(w, e);
	} else {
		tally_full(&w->tally);
		w->tally.full_ns += (double)(s->closed - s->opened);
		ret = count_waiting(w, s->opened, &w->cut, e);
	}
	w->runs = now.runs;
	w->paced_runs = now.paced_runs;
	return ret;
}

void wait_window_stop(struct wait_window *w)
{
	if (w->conf.own.ns)
		slowness_end(&w->slow);
	if (w->onlook)
		onlook_stop(w->onlook);
}

void wait_window_end(struct wait_window *w, struct onlook_result *out)
{
	*out = (struct onlook_result){};
	if (w->onlook)
		onlook_end(w->onlook, out);
	tally_rest(&w->tally);
	if (w->onlook)
		undercounts_learn(&w->under, &w->tally, onlook_sums(w->onlook), GPB_G_SYSCALL,
				  slowness_mean(&w->slow, w->tally.windows));
}

/* ---- estimates ---- */

/*
 * Are numbers of short waits made to agree with the runtime's count? The count is right, also
 * where a target that must wait for CPUs does less in windows than otherwise. Runs at a pace that no
 * window met are left out of it: the waits that windows saw have no part in them. For waits that a
 * clock paces there is only an estimate, so this is not done where most waits are paced.
 */
static bool by_runs(const struct wait_window *w)
{
	return w->tally.groups[GPB_WAIT_SHORT].x >= w->paced && slowness_met(&w->slow) > w->paced;
}

static bool any_seen(const struct tally_entry *en)
{
	return en->count || en->counts.x > 0;
}

/* Did probes see a system call end there, short or long? */
static bool ends(const struct wait_window *w, const struct tally_entry *en)
{
	struct gpb_stack st;
	size_t at;

	if (any_seen(en))
		return true;
	memset(&st, 0, offsetof(struct gpb_stack, pc));
	memcpy(&st, en->st,
	       offsetof(struct gpb_stack, pc) +
		       ((size_t)en->st->nkernel + en->st->nfirst + en->st->nsecond) *
			       sizeof(st.pc[0]));
	st.type = GPB_WAIT_CALL;
	return tally_has(&w->tally, &st, &at) && any_seen(&w->tally.entries.at[at]);
}

static double plus(double a, double b)
{
	return a < 0 || b < 0 ? -1 : a + b;
}

/* All runs, by windows alone. */
static struct tally_estimate runs_of(const struct wait_window *w)
{
	struct tally_estimate runs = tally_group(&w->tally, GPB_WAIT_SHORT);

	runs.value += w->paced;
	return runs;
}

static struct tally_estimate with_total(const struct wait_window *w, const struct tally_part *p,
					double total)
{
	const struct tally_estimate runs = runs_of(w);

	return tally_part_regressed(&w->tally, p, total, slowness_lack(&w->slow, &runs));
}

static struct tally_estimate regressed(const struct wait_window *w, const struct tally_part *p)
{
	return with_total(w, p, slowness_met(&w->slow) - w->paced);
}

/* The regression's variance, and that of the total it is told (slowness_unsure). */
static double regressed_error(const struct wait_window *w, const struct tally_part *p)
{
	const struct tally_estimate runs = runs_of(w);
	double total = slowness_met(&w->slow) - w->paced;
	double unsure = slowness_unsure(&w->slow, &runs, slowness_lack(&w->slow, &runs));
	struct tally_estimate n = regressed(w, p);
	double more = with_total(w, p, total + unsure).value - n.value;

	return plus(n.variance, more * more);
}

/*
 * The number that windows tell of an entry. Where its site's number comes from regression, the
 * entry's part of that.
 */
static double count_of(const struct wait_window *w, const struct tally_entry *en)
{
	const struct tally_part *site = &w->tally.sites.at[en->site].sums;

	if (en->group != GPB_WAIT_SHORT || site->compared.x <= 0 || !by_runs(w))
		return en->counts.x * undercounts_factor(&w->under, en);
	return regressed(w, site).value * en->counts.x / site->compared.x;
}

struct wait_estimate wait_window_estimate(const struct wait_window *w, size_t entry)
{
	const double one = GPB_COUNT_ONE;
	const struct tally_entry *en = &w->tally.entries.at[entry];
	struct onlook_estimate o = {};
	double delay = en->delays.x;

	if (w->onlook) {
		o = onlook_of(w->onlook, entry);
		if (en->st->size >> 8 == GPB_G_SYSCALL && ends(w, en))
			o.delay_ns += o.unsure_ns;
		delay = o.delay_ns;
	}
	return (struct wait_estimate){
		.count = (int64_t)en->count + llround(count_of(w, en) + o.count * one),
		.delay = (int64_t)en->delay + llround(delay),
		.count_error = o.count_variance * one * one,
		.delay_error = o.own_variance,
	};
}

static double counts_error(const struct wait_window *w, const struct tally_part *p)
{
	return by_runs(w) ? regressed_error(w, p) : tally_part_counts(&w->tally, p).variance;
}

/* Long waits by their length, and times runnable that are as many as waits: they have an error of their own. */
static double apart_error(const struct wait_window *w, size_t site)
{
	double variance = 0;

	(void)undercounts_apart(&w->under, site, &variance);
	return variance < 0 ? -1 : variance * GPB_COUNT_ONE * GPB_COUNT_ONE;
}

/* Of the number of a site's waits that windows tell. */
static double site_error(const struct wait_window *w, size_t site)
{
	struct tally_part p = w->tally.sites.at[site].sums;
	double any;

	if (undercounts_apart(&w->under, site, &any))
		p.counts = p.others;
	return plus(counts_error(w, &p), apart_error(w, site));
}

/* What windows lack, compared with looks. */
static double lacking(const struct wait_window *w, size_t site)
{
	const struct tally_part *p = &w->tally.sites.at[site].sums;

	if (!w->onlook)
		return 0;
	return undercounts_site(&w->under, site, tally_part_delays(&w->tally, p).variance,
				onlook_site_variance(onlook_sums(w->onlook), site)) *
	       GPB_COUNT_ONE * GPB_COUNT_ONE;
}

/* Did looks count all that they saw of a site? */
static bool counted_by_looks(const struct wait_window *w, size_t site)
{
	const struct onlook_sums *k = w->onlook ? onlook_sums(w->onlook) : NULL;

	return k && onlook_site_count(k, site) > 0 &&
	       undercounts_counted(&w->under, site, onlook_site_variance(k, site));
}

static double lacking_all(const struct wait_window *w, const struct tally_part *all)
{
	if (!w->onlook)
		return 0;
	return undercounts_all(&w->under, tally_part_delays(&w->tally, all).variance,
			       onlook_all_variance(onlook_sums(w->onlook))) *
	       GPB_COUNT_ONE * GPB_COUNT_ONE;
}

/* What neither a window nor a look met may have come in between. Where there are looks, they tell delays. */
static struct wait_error missed(const struct wait_window *w, size_t site)
{
	struct tally_missed m = tally_part_missed(&w->tally, &w->tally.sites.at[site].sums);
	const double one = GPB_COUNT_ONE;

	if (counted_by_looks(w, site))
		return (struct wait_error){};
	return (struct wait_error){ m.count * one * one, w->onlook ? 0 : m.delay };
}

struct wait_error wait_window_site(const struct wait_window *w, size_t site)
{
	const struct tally_part *p = &w->tally.sites.at[site].sums;
	struct wait_error more = missed(w, site);
	double count = plus(site_error(w, site),
			    plus(lacking(w, site), slowness_of_site(&w->slow)));
	double delay = w->onlook ? onlook_site_variance(onlook_sums(w->onlook), site) :
				   tally_part_delays(&w->tally, p).variance;

	return (struct wait_error){
		.count = plus(count, more.count),
		.delay = plus(delay, more.delay),
	};
}

struct wait_error wait_window_whole(const struct wait_window *w)
{
	const struct tally_part *all = &w->tally.wholes[WAIT_WHOLE_PROGRAM];
	struct wait_error out = {
		.count = slowness_unmet(&w->slow) > 0 ?
				 -1 : /* nobody knows how much of that were waits */
				 plus(counts_error(w, all), lacking_all(w, all)),
		.delay = w->onlook ? onlook_all_variance(onlook_sums(w->onlook)) :
				     tally_part_delays(&w->tally, all).variance,
	};

	for (size_t i = 0; i < w->tally.sites.n; i++) {
		if (w->tally.sites.at[i].whole != WAIT_WHOLE_PROGRAM)
			continue;
		out.count = plus(out.count, missed(w, i).count);
		out.count = plus(out.count, apart_error(w, i));
		out.delay = plus(out.delay, missed(w, i).delay);
	}
	return out;
}

void wait_window_fini(struct wait_window *w)
{
	onlook_free(w->onlook);
	undercounts_fini(&w->under);
	slowness_fini(&w->slow);
	map_fini(&w->leaves);
	tally_fini(&w->tally);
}
