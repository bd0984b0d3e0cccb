/* user/collect/waits/engine/wait_engine.c - the way of a probed wait: its stretch, its stack, its weight. */
#include "collect/waits/engine/wait_engine.h"

#include <bpf/bpf.h>
#include <sys/epoll.h>

#include "base/clock.h"
#include "collect/waits/engine/run_ratio.h"
#include "collect/waits/looks/wait_sites.h"
#include "probe/bpf.h"
#include "probe/uprobes/hit_cost.h"
#include "sampling/looks/looks_sums.h"

enum { WAITS_BATCH = 4096, FOLD_AT = 65536 };

/* ---- what the BPF side is told ---- */

int wait_engine_put(struct wait_engine *w, struct err *e)
{
	if (bpf_map_update_elem(bpf_map__fd(w->object.settings), &w->slot, w->settings, BPF_ANY))
		return err_sys(e, "table of waits");
	return 0;
}

int wait_engine_target(struct wait_engine *w, struct err *e)
{
	struct gpb_target t;
	int ret = bpf_target_fill(w->s, &w->o, &t, e);

	if (ret)
		return ret;
	if (!w->o.labels)
		t.flags &= ~(uint32_t)GPB_TARGET_LABELS;
	if (bpf_map_update_elem(bpf_map__fd(w->object.targets), &w->slot, &t, BPF_ANY))
		return err_sys(e, "target table");
	return 0;
}

struct gpb_wait_terms wait_engine_endless(void)
{
	return (struct gpb_wait_terms){
		.own = { .ns = UINT64_MAX / 4, .hit_ns = 1 },
		.own_share = 1,
		.short_ns = UINT64_MAX,
		.begin_ns = UINT64_MAX,
	};
}

int wait_engine_hit_cost(struct wait_engine *w, const void *settings, uint64_t cookie,
			 struct hit_cost *out, struct cost_probes **rest, struct err *e)
{
	struct gpb_target t = { .flags = GPB_TARGET_REGABI };
	uint32_t slot = GPB_PRICED;

	if (bpf_map_update_elem(bpf_map__fd(w->object.targets), &slot, &t, BPF_ANY) ||
	    bpf_map_update_elem(bpf_map__fd(w->object.settings), &slot, settings, BPF_ANY))
		return err_sys(e, "target table");
	w->object.open[slot].bits = GPB_OPEN;
	return hit_cost_measure(w->object.probe, w->object.multi,
				(uint64_t)slot << GPB_COOKIE_SLOT_SHIFT | cookie, w->attachers, out,
				rest, e);
}

/* ---- samples ---- */

int wait_engine_add(struct wait_engine *w, const struct gpb_stack *st, size_t group, struct err *e)
{
	size_t at;
	bool crowded = w->room && !w->room(w->room_arg) && !tally_has(&w->tally, st, &at);
	int ret = crowded ? -E2BIG : tally_add(&w->tally, st, group, e);

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
	struct wait_engine *w = arg;

	(void)key;
	return reports_whole(w->reports, st) ? w->kind->add(w->arg, st, e) : 0;
}

int wait_engine_seen(const struct wait_engine *w, void *out, struct err *e)
{
	uint64_t n[WAIT_SEEN_WORDS];
	int ret = bpf_sum_cpus(bpf_map__fd(w->object.seen), w->slot, w->kind->seen_words, n, e);

	if (ret)
		return ret;
	for (size_t i = 0; i < w->kind->seen_words; i++)
		n[i] -= w->forgotten[i];
	memcpy(out, n, w->kind->seen_words * sizeof(n[0]));
	return 0;
}

static int spent(void *arg, struct gpb_spent *out, struct err *e)
{
	uint64_t n[WAIT_SEEN_WORDS];
	const struct wait_engine *w = arg;
	int ret = bpf_sum_cpus(bpf_map__fd(w->object.seen), w->slot, w->kind->seen_words, n, e);

	if (!ret)
		*out = w->kind->counts(n).spent;
	return ret;
}

/* What all CPUs have counted. */
static int counts_now(const struct wait_engine *w, struct wait_counts *out, struct err *e)
{
	CLEANUP(freep) uint64_t *cpus = NULL;
	struct wait_counts sum = {};
	size_t ncpu;
	int ret = bpf_each_cpu(bpf_map__fd(w->object.seen), w->slot, w->kind->seen_words, &cpus,
			       &ncpu, e);

	if (ret)
		return ret;
	for (size_t c = 0; c < ncpu; c++) {
		const struct wait_counts n = w->kind->counts(cpus + c * w->kind->seen_words);

		dilation_add(&sum.clock, &n.clock);
		sum.runs += n.runs;
		sum.paced_runs += n.paced_runs;
		sum.cut += n.cut;
		sum.charged_ns += n.charged_ns;
		sum.waited_ns += n.waited_ns;
	}
	*out = sum;
	return 0;
}

/* ---- goroutines that wait now ---- */

enum { SLOT_SHIFT = 48 }; /* of a goroutine's key (bpf/common.bpf.h) */

typedef void each_wait(void *arg, uint64_t g, const void *wait);

static int each_waiting(const struct wait_engine *w, each_wait *each, void *arg, struct err *e)
{
	const size_t bytes = w->kind->wait_bytes;
	CLEANUP(freep) uint8_t *at = calloc(WAITS_BATCH, bytes);
	CLEANUP(freep) uint64_t *keys = calloc(WAITS_BATCH, sizeof(*keys));
	int fd = bpf_map__fd(w->object.waits), ret = 0;
	uint64_t next = 0;
	void *after = NULL;

	if (!at || !keys)
		return err_set(e, -ENOMEM, "no memory to count waits");
	for (uint32_t total = 0; !ret && total <= GPB_WAITS; after = &next) {
		uint32_t n = WAITS_BATCH;

		ret = bpf_map_lookup_batch(fd, after, &next, keys, at, &n, NULL);
		if (ret && errno != ENOENT)
			return err_sys(e, "table of waits");
		for (uint32_t i = 0; i < n; i++)
			if (keys[i] >> SLOT_SHIFT == w->slot)
				each(arg, keys[i] & ((1ull << SLOT_SHIFT) - 1), at + i * bytes);
		total += n;
	}
	return 0;
}

struct waiting {
	uint64_t (*since)(const void *wait);
	uint64_t from, n;
};

static void count_one(void *arg, uint64_t g, const void *wait)
{
	struct waiting *c = arg;
	uint64_t since = c->since(wait);

	(void)g;
	c->n += since && since >= c->from;
}

int wait_engine_waiting(const struct wait_engine *w, uint64_t from,
			uint64_t (*since)(const void *wait), uint64_t *out, struct err *e)
{
	struct waiting c = { .since = since, .from = from };
	int ret = each_waiting(w, count_one, &c, e);

	*out = c.n;
	return ret;
}

/* ---- looks from outside ---- */

static int watch(struct wait_engine *w, int fd, struct err *e)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return epoll_ctl(w->ep, EPOLL_CTL_ADD, fd, &ev) ? err_sys(e, "epoll") : 0;
}

/* Makes what looks. It stays NULL where that is not possible, which why says. */
static int new_looks(struct wait_engine *w, uint64_t since, struct err *e)
{
	struct looks_conf conf = w->looked;

	conf.labels = &w->reports->labels;
	conf.tally = &w->tally;
	conf.share = &w->look_share;
	conf.room = w->room;
	conf.room_arg = w->room_arg;
	conf.labels_room = w->labels_room;
	conf.counted = w->object.counted + w->slot;
	if (!looks_new(w->s, &w->o, &conf, &w->looks, &w->why) &&
	    !looks_begin(w->looks, since, &w->why))
		return watch(w, looks_fd(w->looks), e);
	looks_free(TAKE(w->looks));
	say(&w->o, "%s: how long waits last is told by probes alone: %s", w->kind->name,
	    w->why.msg);
	return 0;
}

int wait_engine_look(struct wait_engine *w, uint64_t since, struct err *e)
{
	int ret = w->looks || w->why.msg[0] ? 0 : new_looks(w, since, e);

	return !ret && w->looks ? looks_begin(w->looks, since, e) : ret;
}

/* ---- stretches ---- */

/* Sets the terms of the next window, which is to last @window_ns. */
static void next_window(struct wait_engine *w, uint64_t window_ns)
{
	const uint64_t last = WAIT_END_NS - WAIT_BEGIN_NS;
	const uint64_t begin = window_ns > WAIT_END_NS ? window_ns - last : WAIT_BEGIN_NS;
	const struct dilation_terms t = dilation_terms(&w->slow, begin - w->kind->late_ns);

	*w->terms = (struct gpb_wait_terms){
		.own = t.own,
		.own_share = t.own_share,
		.short_ns = t.short_ns,
		.begin_ns = begin,
		.looked_ns = w->looks ? looks_stands_from(looks_sums(w->looks)) : 0,
		.last_ns = last,
	};
}

int wait_engine_turn(void *arg, bool windows, uint64_t since, double hit_ns, uint64_t window_ns,
		     struct err *e)
{
	struct wait_engine *w = arg;
	bool were = w->terms->own.ns > 0;
	int ret = 0;

	if (windows && !were) {
		dilation_begin(&w->slow, hit_ns);
		run_counter_begin(&w->counter);
	} else if (were && !windows) {
		run_counter_end(&w->counter, &w->slow);
	}
	w->kind->rates(w->arg, windows, !windows && !w->rates_used && w->o.budget.ppm);
	w->rates_used = true;
	w->full = !windows;
	w->windowed |= windows;
	w->terms->own = (struct gpb_undilated){};
	if (windows) {
		next_window(w, window_ns);
		ret = wait_engine_look(w, since, e);
		if (w->looks)
			looks_know(w->looks, w->begun.at, w->begun.n);
	} else if (w->looks) {
		w->begun.n = 0;
		ret = looks_pause(w->looks, e);
	}
	return ret ? ret : wait_engine_put(w, e);
}

/* For how long waits may begin in a window. */
static double begin_ns(const struct wait_engine *w)
{
	return (double)(w->terms->begin_ns - w->kind->late_ns);
}

/*
 * Which part of a window a wait of this length was counted in. The window's weight is for the own time in
 * the first part.
 */
static double by_length(void *arg, const struct gpb_stack *st)
{
	const struct wait_engine *w = arg;

	switch (st->wait.length) {
	case GPB_WAIT_LONG:
		return w->own / begin_ns(w);
	case GPB_WAIT_CALL:
		return w->own / (w->length - GPB_LONG_NS);
	default:
		return 1;
	}
}

void wait_engine_close(struct wait_engine *w, const struct stretch *s,
		       const struct wait_counts *now)
{
	struct wait_window_sum sum = {
		.stratum_ns = s->weight * (double)(s->closed - s->opened),
		.begin_ns = begin_ns(w),
		.runs = (double)(now->runs - w->last.runs),
		.paced_runs = (double)(now->paced_runs - w->last.paced_runs),
		.length_ns = (double)(s->closed - s->opened),
		.cut = (double)(now->cut - w->last.cut),
		.charged_ns = (double)(now->charged_ns - w->last.charged_ns),
		.waited_ns = (double)(now->waited_ns - w->last.waited_ns),
	};
	double runs;
	struct tally_window tw = { .n = &runs, .inverse = by_length, .arg = w };

	run_counter_read(&w->counter, &w->slow);
	dilation_learn(&w->slow, &now->clock, s->asked, s->opened, sum.begin_ns,
		       sum.runs / (double)w->terms->own.ns);
	/* Each CPU's part was only as long as its own time. */
	w->own = sum.own_ns = dilation_own(&w->slow, sum.runs, (double)w->terms->own.ns);
	w->length = sum.length_ns;
	tw.weight = sum.weight = sum.stratum_ns / w->own;
	runs = w->kind->runs(w->arg, &sum);
	w->tally.windows_ns += sum.stratum_ns;
	w->begins_ns += sum.begin_ns;
	tally_window(&w->tally, &tw);
	w->last = *now;
}

static int end_window(struct wait_engine *w, const struct stretch *s, const struct wait_counts *now,
		      struct err *e)
{
	wait_engine_close(w, s, now);
	next_window(w, s->next_ns);
	return wait_engine_put(w, e);
}

/* Shorter ones may be over, and others of that goroutine under way, when it is looked at for the first time. */
#define BEGUN_NS (10 * NS_PER_MS)

struct cut {
	struct wait_engine *w;
	const struct stretch *s;
};

static void cut_one(void *arg, uint64_t g, const void *wait)
{
	const struct cut *c = arg;
	uint64_t since = c->w->kind->since(wait);
	struct looks_begun *b = NULL;

	if (!since || since < c->s->opened)
		return;
	if (c->s->closed > since + BEGUN_NS)
		b = vec_add(&c->w->begun, GPB_WAITS);
	if (!b) {
		c->w->cut++;
		return;
	}
	*b = (struct looks_begun){ .g = g, .since = since };
	c->w->nbegun++;
}

static int end_full(struct wait_engine *w, const struct stretch *s, struct err *e)
{
	struct cut cut = { .w = w, .s = s };
	int ret;

	tally_full(&w->tally);
	w->tally.full_ns += (double)(s->closed - s->opened);
	w->opened = s->opened;
	/* No windows follow, and for each of many that is the table of all. */
	if (w->shared && w->ended)
		return 0;
	ret = each_waiting(w, cut_one, &cut, e);
	looks_begun_sort(w->begun.at, w->begun.n);
	return ret;
}

/* Drops what was seen before anything counted, and remembers how much it was. */
static int forget(struct wait_engine *w, const struct stretch *s, struct err *e)
{
	uint64_t seen[WAIT_SEEN_WORDS];
	int ret = wait_engine_seen(w, seen, e);

	if (ret)
		return ret;
	w->kind->before(w->arg, seen, (double)(s->closed - s->opened));
	w->tally.seen.n = 0;
	memset(w->forgotten, 0, sizeof(w->forgotten));
	return wait_engine_seen(w, w->forgotten, e);
}

/* This comes first, because the runtime goes on counting. */
void wait_engine_before(struct wait_engine *w, const struct stretch *s)
{
	if (s->weight && !s->window)
		run_counter_mark(&w->counter);
}

int wait_engine_after(struct wait_engine *w, const struct stretch *s, struct err *e)
{
	struct wait_counts now;
	int ret = counts_now(w, &now, e);

	if (ret)
		return ret;
	if (s->weight && s->window)
		return end_window(w, s, &now, e);
	dilation_skip(&w->slow, &now.clock);
	w->last = now;
	return s->weight ? end_full(w, s, e) : forget(w, s, e);
}

static int over(void *arg, const struct stretch *s, struct err *e)
{
	struct wait_engine *w = arg;
	int ret;

	wait_engine_before(w, s);
	ret = reports_poll(w->reports, e);
	if (!ret)
		ret = bpf_take_stacks(bpf_map__fd(w->object.stacks), w->object.rounds, take_stack,
				      w, e);
	return ret ? ret : wait_engine_after(w, s, e);
}

/* ---- life ---- */

static size_t site_depth(void *arg, const struct gpb_stack *st)
{
	const struct wait_engine *w = arg;

	return wait_site_depth(w->s, st);
}

void wait_engine_init(struct wait_engine *w, const struct wait_kind *kind, void *arg,
		      void *settings, struct gpb_wait_terms *terms)
{
	w->kind = kind;
	w->arg = arg;
	w->settings = settings;
	w->terms = terms;
	w->ep = -1;
	w->slot = WAIT_SLOT;
	w->look_share = LOOKS_SHARE_MOST;
	w->reports = &w->own_reports;
	tally_init(&w->tally);
	w->tally.depth = site_depth;
	w->tally.arg = w;
	w->tally.merged = true;
}

static int hit_cost(void *arg, struct hit_cost *out, struct cost_probes **rest, struct err *e)
{
	struct wait_engine *w = arg;

	return w->kind->hit_cost(w->arg, out, rest, e);
}

int wait_engine_open(struct wait_engine *w, const char *what, struct err *e)
{
	const struct probing_user u = {
		.what = what,
		.open = w->object.open + w->slot,
		.bss = w->object.bss,
		.parts = WAIT_PARTS,
		.hit_cost = hit_cost,
		.spent = spent,
		.turn = wait_engine_turn,
		.over = over,
		.arg = w,
	};
	int ret = reports_open_probed(w->reports, w->s, w->object.ring, w->object.rules,
				      w->kind->add, w->arg, e);

	w->attachers = w->s->attachers;
	w->counter.s = w->s;
	if (!ret)
		ret = wait_engine_target(w, e);
	if (!ret)
		ret = probing_new(w->s, &w->o, &u, w->object.multi, &w->probing, e);
	if (ret)
		return ret;
	w->ep = epoll_create1(EPOLL_CLOEXEC);
	if (w->ep < 0)
		return err_sys(e, "epoll");
	ret = watch(w, reports_fd(w->reports), e);
	if (!ret && probing_fd(w->probing) >= 0)
		ret = watch(w, probing_fd(w->probing), e);
	return ret ? ret : wait_engine_put(w, e);
}

void wait_engine_share(struct wait_engine *w, uint32_t slot, struct reports *reports,
		       struct attacher_process **attachers, int ep)
{
	w->shared = true;
	w->slot = slot;
	w->reports = reports;
	w->attachers = attachers;
	w->ep = ep;
	w->counter.s = w->s;
}

uint64_t wait_engine_due(const struct wait_engine *w)
{
	uint64_t look = w->looks ? looks_due(w->looks) : 0, count = run_counter_due(&w->counter);

	return look && (!count || look < count) ? look : count;
}

int wait_engine_watch(struct wait_engine *w, struct err *e)
{
	run_counter_poll(&w->counter, &w->slow);
	return w->looks ? looks_poll(w->looks, e) : 0;
}

int wait_engine_poll(struct wait_engine *w, struct err *e)
{
	int ret = reports_poll(w->reports, e);

	if (!ret && !w->ended)
		ret = probing_poll(w->probing, e);
	return ret ? ret : wait_engine_watch(w, e);
}

void wait_engine_look_seldom(struct wait_engine *w, double share, uint64_t count_every_ns)
{
	w->look_share = share;
	w->counter.every_ns = count_every_ns;
}

double wait_engine_count_ns(const struct wait_engine *w)
{
	return w->counter.took_ns;
}

void wait_engine_look_no_more(struct wait_engine *w)
{
	if (w->looks)
		looks_stop(w->looks);
}

void wait_engine_unwatch(struct wait_engine *w)
{
	w->ended = true;
	if (w->terms->own.ns)
		run_counter_end(&w->counter, &w->slow);
	wait_engine_look_no_more(w);
}

int wait_engine_stop(struct wait_engine *w, struct err *e)
{
	wait_engine_unwatch(w);
	return probing_end(w->probing, e);
}

void wait_engine_end(struct wait_engine *w)
{
	w->result = (struct looks_result){};
	if (w->looks)
		looks_end(w->looks, &w->result);
	w->cut += w->nbegun - w->result.known;
	tally_rest(&w->tally);
	if (w->looks)
		undercounts_learn(&w->under, &w->tally, looks_sums(w->looks), w->kind->but,
				  dilation_mean(&w->slow, w->tally.windows), w->slow.switches);
	w->unplaced = run_unplaced(w);
	w->ratio = run_ratio(w);
}

void wait_engine_lost(const struct wait_engine *w, uint64_t left, struct loss *to)
{
	to->n[LOSS_UNFINISHED] += (left + GPB_COUNT_ONE - 1) / GPB_COUNT_ONE;
	to->n[LOSS_STACKS_MANY] += w->crowded + w->result.crowded;
}

void wait_engine_losses(const struct wait_engine *w, struct loss *to)
{
	uint64_t left = 0;

	probing_losses(w->probing, to);
	reports_losses(w->reports, w->object.losses, w->object.obj, to);
	(void)bpf_count_left(w->object.stacks, w->object.scratches, w->object.rounds, &left, NULL);
	wait_engine_lost(w, left, to);
}

void wait_engine_fini(struct wait_engine *w)
{
	looks_free(w->looks);
	undercounts_fini(&w->under);
	run_counter_fini(&w->counter);
	tally_fini(&w->tally);
	vec_fini(&w->begun);
	if (w->shared)
		return;
	probing_free(w->probing);
	reports_fini(w->reports);
	if (w->ep >= 0)
		close(w->ep);
}
