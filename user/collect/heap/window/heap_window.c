/* user/collect/heap/window/heap_window.c - samples of stretches, and their weights. */
#include "collect/heap/window/heap_window.h"

#include <math.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "collect/site_errors.h"
#include "probe/bpf.h"

#define MOST_SHARE   0.5 /* of all bytes: what no window stands for is a loss, however little it is */
#define UNSEEN_SHARE 0.01 /* of all bytes: what no window stands for is many from here on */

enum { COUNTDOWN_WORDS = sizeof(struct gpb_countdown) / 8, COUNT_TRIES = 5 };

static int countdowns(const struct heap_window *w)
{
	return bpf_map__fd(w->obj->maps.countdowns);
}

static int classes(const struct heap_window *w)
{
	return bpf_map__fd(w->obj->maps.classes);
}

/* ---- samples ---- */

static bool is_machinery(const struct heap_window *w, uint64_t pc)
{
	const char *name = subject_func_name(w->s, pc);

	return name && site_is_machinery(name);
}

static size_t site_depth(void *arg, const struct gpb_stack *st)
{
	size_t from = st->nkernel, n = from + st->nfirst + st->nsecond;

	for (size_t i = from; i < n && i < GPB_MAX_PCS; i++)
		if (!is_machinery(arg, st->pc[i] - (i > from)))
			return i - from + 1;
	return 0;
}

void heap_window_init(struct heap_window *w)
{
	tally_init(&w->tally);
	w->tally.depth = site_depth;
	w->tally.arg = w;
}

int heap_window_add(void *arg, const struct gpb_stack *st, struct err *e)
{
	struct heap_window *w = arg;
	size_t class = st->object.class;
	int ret = !class && w->large ? tally_add_full(&w->tally, st, class, e) :
				       tally_add(&w->tally, st, class, e);

	w->sampled += st->count;
	if (ret != -E2BIG)
		return ret;
	w->crowded += st->count;
	return 0;
}

static int take_stack(void *arg, const struct gpb_hash *key, const struct gpb_stack *st,
		      struct err *e)
{
	struct heap_window *w = arg;
	int ret;

	if (!reports_whole(w->reports, st))
		return 0;
	ret = heap_window_add(w, st, e);
	/* This key is how objects name the sample that they belong to. */
	return ret || !w->keys ? ret : tally_key(&w->tally, key, st, e);
}

/* ---- the runtime's own counts ---- */

/* Reads the counts by class. If they cannot be read, w->why says why: -ENOTSUP where that may be so for good. */
static int count_exactly(struct heap_window *w, uint64_t out[GPB_CLASSES])
{
	struct subject *s = w->s;
	struct rtalloc_counts c;
	int ret = 0;

	w->last_current = false;
	if (!w->counters && !again_due(&w->open_again, now_ns()))
		return -ENOTSUP;
	if (!w->counters)
		ret = rtcounters_open(s->bin, &s->layout, s->target->mem, s->bias, &w->counters,
				      &w->why);
	for (int i = 0; !ret && i < COUNT_TRIES; i++) {
		ret = rtcounters_allocs(w->counters, &c, &w->why);
		if (ret != -EAGAIN)
			break;
		ret = i + 1 < COUNT_TRIES ? 0 : ret;
	}
	/* In a process that has just begun, not everything can be found yet. */
	if (ret == -ENOTSUP || !w->counters) {
		rtcounters_free(w->counters);
		w->counters = NULL;
		again_later(&w->open_again, now_ns());
	}
	if (ret)
		return ret;
	memset(out, 0, GPB_CLASSES * sizeof(*out));
	out[0] = w->large ? 0 : c.large;
	w->large_now = c.large_bytes;
	for (size_t i = 1; i < c.n && i < GPB_CLASSES; i++)
		out[i] = c.small[i];
	return 0;
}

/* Who reads for longer did not run meanwhile, and a burst may have come and gone. */
#define PROMPT_NS    (2 * NS_PER_MS)
#define PROMPT_TRIES 3

/* The counts of a moment that is known to the millisecond, where that is possible: *at. */
static int count_promptly(struct heap_window *w, uint64_t out[GPB_CLASSES], uint64_t *at)
{
	uint64_t began, took = PROMPT_NS;
	int ret = 0;

	for (int i = 0; !ret && took >= PROMPT_NS && i < PROMPT_TRIES; i++) {
		began = now_ns();
		ret = count_exactly(w, out);
		took = now_ns() - began;
		*at = began + took / 2;
	}
	return ret;
}

static int seen_now(struct heap_window *w, uint64_t out[GPB_CLASSES])
{
	return bpf_sum_cpus(classes(w), w->slot, GPB_CLASSES, out, NULL);
}

/*
 * The counts were read at @now. Where they could not be read when windows began, windows stand for what comes
 * from here on.
 */
static void counted(struct heap_window *w, const uint64_t counts[GPB_CLASSES], uint64_t now)
{
	memcpy(w->last, counts, sizeof(w->last));
	w->last_known = w->last_current = true;
	w->last_ns = now;
	if (!w->windows_since)
		return;
	if (!w->marked) {
		memcpy(w->first, counts, sizeof(w->first));
		w->large_first = w->large_now;
		w->uncounted_ns += now > w->windows_since ? (double)(now - w->windows_since) : 0;
	}
	w->marked = true;
	paces_step(&w->paces, counts, now);
}

/* A count that is off by its slack may seem to have gone down. */
static double grown(uint64_t now, uint64_t then)
{
	return now > then ? (double)(now - then) : 0;
}

bool heap_window_look(void *arg, double *count)
{
	struct heap_window *w = arg;
	uint64_t now[GPB_CLASSES], sum = 0, began = now_ns();

	if (count_exactly(w, now))
		return false;
	counted(w, now, began);
	w->last_watched = w->watched && !seen_now(w, w->last_seen);
	w->last_skew = now_ns() - began;
	for (size_t i = 0; i < GPB_CLASSES; i++)
		sum += now[i];
	*count = (double)sum;
	return true;
}

/*
 * Called where full observation ends: windows stand for all from here on. If the counts cannot be read just now,
 * they are those of its beginning and what the probes have seen since, which is all there was.
 */
static void count_from_here(struct heap_window *w, bool watched)
{
	uint64_t seen[GPB_CLASSES];

	w->marked_ns = now_ns();
	w->marked = !count_exactly(w, w->first);
	w->large_first = w->large_now;
	if (w->marked || !watched || seen_now(w, seen))
		return;
	for (size_t i = 0; i < GPB_CLASSES; i++)
		w->first[i] = w->watch_exact[i] + (i || !w->large ? seen[i] - w->watch_seen[i] : 0);
	w->marked = true;
}

/* Its runtime cannot be asked yet, and it may have ended before it is asked twice. */
void heap_window_fresh(struct heap_window *w)
{
	if (w->marked_ns)
		return;
	w->marked = true;
	w->marked_ns = now_ns();
	memset(w->first, 0, sizeof(w->first));
	w->large_first = 0;
}

static void begin_counting(struct heap_window *w)
{
	uint64_t now[GPB_CLASSES], at;

	w->windows_since = w->marked ? w->marked_ns : now_ns();
	if (w->marked)
		paces_step(&w->paces, w->first, w->marked_ns);
	else if (!count_promptly(w, now, &at))
		counted(w, now, w->windows_since = at);
	w->stood_for = w->windows_since;
}

/* At least: large objects differ in size. */
static double bytes_of(const struct heap_window *w, const double allocs[GPB_CLASSES])
{
	double bytes = 0;

	for (size_t i = 0; i < GPB_CLASSES; i++)
		bytes += allocs[i] * (i ? w->heap->class_size[i] : GPB_SIZE_MEDIUM);
	return bytes;
}

static void end_at_last(struct heap_window *w, uint64_t counts[GPB_CLASSES], uint64_t at)
{
	uint64_t since = w->last_ns > w->windows_since ? w->last_ns : w->windows_since;
	double pace[GPB_CLASSES], ns = at > since ? (double)(at - since) : 0;

	memcpy(counts, w->last, sizeof(w->last));
	paces_lately(&w->paces, counts, since, pace);
	w->uncounted_ns += ns;
	w->uncounted_bytes += ns * bytes_of(w, pace);
}

void heap_window_gone(struct heap_window *w)
{
	w->gone_ns = now_ns();
}

static void end_counting(struct heap_window *w)
{
	uint64_t now[GPB_CLASSES], at = now_ns();
	double more[GPB_CLASSES];
	int ret = count_promptly(w, now, &at);

	w->end_ns = ret || w->gone_ns ? 0 : at;
	if (w->gone_ns)
		at = w->gone_ns;
	if (at < w->windows_since) /* it had gone before */
		at = w->windows_since;
	if (!ret)
		counted(w, now, at);
	else if (w->last_known &&
		 w->marked) /* it has exited: what came after the last reading is not included */
		end_at_last(w, now, at);
	else
		w->marked = false;
	w->windows_ns += (double)(at - w->windows_since);
	if (!w->marked)
		w->uncounted_ns += (double)(at - w->windows_since);
	for (size_t i = 0; i < GPB_CLASSES; i++) {
		more[i] = w->marked ? grown(now[i], w->first[i]) : 0;
		if (w->total[i] >= 0)
			w->total[i] += more[i];
	}
	w->large_bytes += w->marked ? grown(w->large_now, w->large_first) : 0;
	w->counted_bytes += bytes_of(w, more);
	paces_pause(&w->paces);
	w->windows_since = 0;
	w->marked = false;
}

bool heap_window_counted(const struct heap_window *w)
{
	return w->windows_ns <= 0 || w->uncounted_ns < w->windows_ns;
}

double heap_window_unwatched(const struct heap_window *w)
{
	return w->windows_ns > w->stood_ns ? 1 - w->stood_ns / w->windows_ns : 0;
}

int heap_window_seen(struct heap_window *w, uint64_t *allocs, uint64_t *bytes, struct err *e)
{
	struct gpb_classes seen;
	struct gpb_countdown c;
	int ret = bpf_sum_cpus(countdowns(w), w->slot, COUNTDOWN_WORDS, (uint64_t *)&c, e);

	if (!ret)
		ret = bpf_sum_cpus(classes(w), w->slot, GPB_CLASSES, (uint64_t *)seen.n, e);
	if (ret)
		return ret;
	*allocs = -w->forgotten_allocs;
	*bytes = c.bytes - w->forgotten_bytes;
	for (size_t i = 0; i < GPB_CLASSES; i++)
		*allocs += seen.n[i];
	return 0;
}

void heap_window_large(struct heap_window *w, bool always)
{
	uint64_t now[GPB_CLASSES];

	w->large = always;
	w->counted_before = 0;
	paces_pause(&w->paces);
	if (always)
		return;
	/* From now on windows are about large objects, too. */
	if (count_exactly(w, now))
		w->total[0] = -1;
	else
		w->first[0] = now[0];
	w->large_first = w->large_now;
	w->large_bytes = 0;
}

void heap_window_watch(struct heap_window *w, bool begins)
{
	uint64_t began = now_ns();

	w->watch_skew = 0;
	if (begins) {
		w->watched = true; /* it has done nothing yet */
		return;
	}
	w->watched = !count_exactly(w, w->watch_exact) && !seen_now(w, w->watch_seen);
	w->watch_skew = now_ns() - began;
}

/*
 * The two counts are read at different moments. A difference up to this share of all allocations, or
 * up to what this time brings, is no loss.
 */
#define MISSED_SHARE 0.02
#define MISSED_S     0.01

/* The upper bound in a burst: the allocations that all CPUs can make in @ns, each with a hit. */
static double most_in(double ns, double hit_ns)
{
	return hit_ns > 0 ? ns * get_nprocs() / hit_ns : 0;
}

static uint64_t count_missed(struct heap_window *w, const struct stretch *s)
{
	uint64_t exact[GPB_CLASSES], seen[GPB_CLASSES], skew;
	double missed = 0, all = 0, window_s = (double)(s->closed - s->opened) / 1e9, allowed;

	if (!w->watched)
		return 0;
	if (count_exactly(w, exact) || seen_now(w, seen)) {
		/* It has exited: the counts are those of a few ms before. */
		if (!w->last_watched)
			return 0;
		memcpy(exact, w->last, sizeof(exact));
		memcpy(seen, w->last_seen, sizeof(seen));
		skew = w->last_skew;
	} else {
		skew = now_ns() - s->closed;
	}
	for (size_t i = 0; i < GPB_CLASSES; i++) {
		double there = grown(exact[i], w->watch_exact[i]);
		double lacks = there - grown(seen[i], w->watch_seen[i]);

		all += there;
		missed += lacks > 0 ? lacks : 0;
	}
	allowed = all * (MISSED_SHARE + (window_s > 0 ? MISSED_S / window_s : 1)) +
		  most_in((double)(w->watch_skew + skew), s->hit_ns);
	return missed > allowed ? (uint64_t)missed : 0;
}

/*
 * In windows, about one allocation in so many is sampled. That is as dense as a sample's own cost
 * allows, because a window is short. Large allocations are few, and all of them are sampled.
 */
#define ALLOCS_PER_SAMPLE 8

static uint64_t window_rate(struct heap_window *w)
{
	uint64_t seen[GPB_CLASSES], allocs = 0, bytes = 0, rate;

	if (seen_now(w, seen))
		return w->rate_most;
	for (size_t i = 1; i < GPB_CLASSES; i++) {
		allocs += seen[i];
		bytes += seen[i] * w->heap->class_size[i];
	}
	if (!allocs)
		return w->rate_most;
	rate = bytes / allocs * ALLOCS_PER_SAMPLE;
	return rate < w->rate_most ? rate : w->rate_most;
}

void heap_window_turn(struct heap_window *w, bool windows, double hit_ns, double window_ns)
{
	if (windows)
		begin_counting(w);
	else
		end_counting(w);
	w->counted_before = 0;
	w->nominal = window_ns;
	if (windows)
		undilated_init(&w->own, hit_ns, window_ns, w->gauged);
	w->gauged = 0;
	if (windows && !w->rate_in_windows)
		w->rate_in_windows = window_rate(w);
	w->rate_used |= windows; /* by what is observed all the time */
}

/* ---- stretches ---- */

int heap_window_spent(void *arg, struct gpb_spent *out, struct err *e)
{
	struct heap_window *w = arg;
	struct gpb_countdown c;
	int ret = bpf_sum_cpus(countdowns(w), w->slot, COUNTDOWN_WORDS, (uint64_t *)&c, e);

	if (!ret)
		*out = c.spent;
	return ret;
}

static double inverse(void *arg, const struct gpb_stack *st)
{
	struct heap_window *w = arg;

	return scale_heap_one((int64_t)st->object.size, (int64_t)w->rate_in_windows);
}

/* One that has not run has allocated nothing: among many most are such. */
static int count_unless_still(struct heap_window *w, bool still, uint64_t out[GPB_CLASSES])
{
	if (!still || !w->last_current)
		return count_exactly(w, out);
	if (w->counters)
		rtcounters_rest(w->counters);
	memcpy(out, w->last, sizeof(w->last));
	return 0;
}

void heap_window_count(struct heap_window *w, bool still)
{
	uint64_t now[GPB_CLASSES], began = now_ns();

	if (w->windows_since && !count_unless_still(w, still, now))
		counted(w, now, began);
}

/* How many allocations there were since the last call, and how many of them were seen. */
static void count_again(struct heap_window *w, bool still, double *exact, double *seen,
			double all[GPB_CLASSES])
{
	uint64_t now[GPB_CLASSES], sum = 0, hit[GPB_CLASSES];

	*exact = -1;
	*seen = 0;
	memset(all, 0, GPB_CLASSES * sizeof(*all));
	if (seen_now(w, hit))
		memcpy(hit, w->seen_before, sizeof(hit));
	for (size_t i = 0; i < GPB_CLASSES; i++) {
		if (i || !w->large)
			all[i] = grown(hit[i], w->seen_before[i]);
		*seen += all[i];
		w->seen_before[i] = hit[i];
	}
	w->large_seen = hit[0];
	if (count_unless_still(w, still, now)) {
		w->counted_before = 0; /* otherwise the next count would cover two windows */
		return;
	}
	counted(w, now, now_ns());
	for (size_t i = 0; i < GPB_CLASSES; i++)
		sum += now[i];
	if (w->counted_before)
		*exact = grown(sum, w->counted_before);
	w->counted_before = sum;
}

/*
 * The weight of a window that was asked for by the target's count: what was seen in it stands for
 * that many allocations. The window may have come when the burst was over. Then it stands for at
 * most OVER times as much as one that came in time.
 */
#define OVER 3

static double by_mass(const struct heap_window *w, const struct stretch *s, double seen)
{
	double expected = s->rate * w->own.own / OVER;

	if (seen < expected)
		seen = expected;
	return seen > 0 ? s->mass / seen : 0;
}

static void close_window(struct heap_window *w, const struct stretch *s,
			 const struct gpb_countdown *now)
{
	double window = (double)(s->closed - s->opened), exact, seen, all[GPB_CLASSES];
	/* Each CPU's part was only as long as its own time. */
	struct tally_window tw = {
		.weight = s->weight * window / w->own.own, .inverse = inverse, .arg = w, .all = all
	};
	struct undilated_window ow = {};

	count_again(w, s->still, &exact, &seen, all);
	paces_window(&w->paces, s->opened, s->closed, all, w->own.own, s->weight * window);
	if (s->mass > 0) {
		tw.weight = by_mass(w, s, seen);
		exact = -1; /* this does not tell the price of a hit */
	}
	for (size_t c = 0; c < w->ncpu; c++)
		undilated_cpu(&ow, window,
			      now[c].own.since == s->opened ? (double)now[c].own.ns : 0);
	for (size_t i = 0; i < GPB_CLASSES; i++)
		all[i] *= tw.weight;
	tally_window(&w->tally, &tw);
	/* One that was asked for by the target's count stands for all of the time since the one before. */
	w->stood_ns += s->mass > 0 ? (double)(s->closed - w->stood_for) : s->weight * window;
	w->stood_for = s->closed;
	if (w->weighed)
		w->weighed(w->weighed_arg, s->opened, tw.weight);
	w->nominal = (double)s->next_ns;
	undilated_over(&w->own, &ow, w->nominal, tw.weight, seen * tw.weight, exact);
}

/* Measures how light the target is, from what the probes have seen so far. */
static void see_light(struct heap_window *w, double ns)
{
	uint64_t seen[GPB_CLASSES];

	if (seen_now(w, seen))
		return;
	w->light = (struct fine_seen){ .ns = ns };
	for (size_t i = 0; i < GPB_CLASSES; i++) {
		double size = i ? w->heap->class_size[i] : GPB_SIZE_MEDIUM;

		w->light.events += (double)seen[i];
		w->light.bytes += (double)seen[i] * size;
	}
}

void heap_window_light(struct heap_window *w, unsigned budget_ppm)
{
	if (!w->rate_used && budget_ppm)
		w->rate = fine_heap_rate(&w->light, budget_ppm, w->rate_most);
	w->rate_used = true;
}

/* Measures how slow a target is while it is observed in full for a moment, for the first time. */
static void gauge(struct heap_window *w, const struct stretch *s, const struct gpb_countdown *now)
{
	struct undilated_window ow = { .slow = 1 };

	for (size_t c = 0; c < w->ncpu; c++)
		undilated_cpu(&ow, (double)(s->closed - s->opened),
			      (double)now[c].spent.counted * s->hit_ns);
	w->gauged = ow.slow;
	see_light(w, (double)(s->closed - s->opened));
}

/* Drops what was seen before anything counted. */
static void forget(struct heap_window *w)
{
	w->tally.seen.n = 0;
	w->sampled = 0;
	w->forgotten_allocs = w->forgotten_bytes = 0;
	heap_window_seen(w, &w->forgotten_allocs, &w->forgotten_bytes, NULL);
}

/* This comes first, because the runtime goes on counting. */
bool heap_window_before(struct heap_window *w, const struct stretch *s)
{
	bool watched = w->watched;

	if (!s->window && !s->let_go)
		w->missed += count_missed(w, s);
	w->watched = w->last_watched = false;
	return watched;
}

int heap_window_after(struct heap_window *w, const struct stretch *s, bool watched, struct err *e)
{
	CLEANUP(freep) uint64_t *now = NULL;
	int ret = bpf_each_cpu(countdowns(w), w->slot, COUNTDOWN_WORDS, &now, &w->ncpu, e);

	if (ret)
		return ret;
	if (s->weight && s->window) {
		close_window(w, s, (void *)now);
	} else if (s->weight) {
		tally_full(&w->tally);
	} else {
		gauge(w, s, (void *)now);
		forget(w);
	}
	if (s->weight && !s->window && !w->ending)
		count_from_here(w, watched);
	if (!s->weight || !s->window)
		(void)seen_now(w, w->seen_before);
	return w->next ? w->next(w->next_arg, !s->window && s->weight, e) : 0;
}

int heap_window_over(void *arg, const struct stretch *s, struct err *e)
{
	struct heap_window *w = arg;
	bool watched = heap_window_before(w, s);
	int ret = reports_poll(w->reports, e);

	if (!ret)
		ret = bpf_take_stacks(bpf_map__fd(w->obj->maps.stacks), &w->obj->bss->rounds,
				      take_stack, w, e);
	return ret ? ret : heap_window_after(w, s, watched, e);
}

int heap_window_rest(struct heap_window *w, struct err *e)
{
	int ret = w->large ? reports_poll(w->reports, e) : 0;

	if (ret || !w->large)
		return ret;
	return bpf_take_stacks(bpf_map__fd(w->obj->maps.stacks), &w->obj->bss->rounds, take_stack,
			       w, e);
}

void heap_window_fini(struct heap_window *w)
{
	tally_fini(&w->tally);
	paces_fini(&w->paces);
	rtcounters_free(w->counters);
}

/* ---- estimates ---- */

/* The target's own counts and sizes may be anything, so the sum saturates. */
static int64_t plus(int64_t a, double b)
{
	int64_t sum, more = scale_round(b);

	if (__builtin_add_overflow(a, more, &sum))
		return more < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}

/* What of a class's growth windows stand for. Where no window saw any of it, shares come from elsewhere, or none. */
static void set_met(struct heap_window *w, unsigned class)
{
	struct run_unmet u = {};
	double total = w->total[class];

	if (total > 0 && w->tally.groups[class].x > 0)
		u = paces_unmet(&w->paces, class);
	w->unmet[class] = u.runs < total ? u.runs : total;
	if (w->unmet[class] < 0)
		w->unmet[class] = 0;
	w->met[class] = total > 0 ? total - w->unmet[class] : total;
	w->faster[class] = u.faster;
}

void heap_window_end(struct heap_window *w)
{
	double bytes[GPB_CLASSES];

	paces_end(&w->paces);
	for (unsigned i = 0; i < GPB_CLASSES; i++) {
		if (!heap_window_counted(w))
			w->total[i] = -1;
		set_met(w, i);
		bytes[i] = w->met[i] * (i ? w->heap->class_size[i] : 2 * GPB_SIZE_MEDIUM);
	}
	calibrate_init(&w->calibrate, &w->tally, w->met, bytes);
	for (size_t i = 0; i < w->tally.entries.n; i++)
		w->in_full[w->tally.entries.at[i].group] += (double)w->tally.entries.at[i].count;
}

struct heap_made heap_window_made(const struct heap_window *w, const struct tally_entry *en)
{
	double total = w->met[en->group], by_site = w->tally.sites.at[en->site].sums.counts.x;
	/* Any site may have made what no window met. */
	double off = w->unmet[en->group] + w->faster[en->group];
	struct heap_made m = { .seen = calibrate_site(&w->calibrate, &w->tally, en, total) };

	/* The entry's part of its site. */
	m.seen.value = by_site > 0 ? m.seen.value * en->counts.x / by_site : 0;
	if (by_site > 0 && m.seen.variance >= 0)
		m.seen.variance += off * off;
	if (by_site > 0 || total == 0 || !en->count)
		return m;
	/*
	 * Full observation saw the site, and no window did: they may have missed it. Where they
	 * saw nothing of its class, the shares of full observation are used.
	 */
	m.seen.variance = -1;
	m.missed = true;
	if (w->tally.groups[en->group].x <= 0 && total > 0)
		m.borrowed = total * (double)en->count / w->in_full[en->group];
	return m;
}

int64_t heap_in_parts(int64_t whole, double cut)
{
	int64_t parts;

	cut = fmax(0, fmin(cut, 1 - 1.0 / HEAP_ONE));
	if (__builtin_mul_overflow(whole, HEAP_ONE, &parts))
		return whole < 0 ? INT64_MIN : INT64_MAX;
	return parts + (int64_t)(cut * HEAP_ONE);
}

struct heap_estimate heap_window_estimate(const struct heap_window *w, const struct tally_entry *en)
{
	int64_t size = (int64_t)en->st->object.size, rate = (int64_t)w->rate;
	struct scaled full = scale_heap((int64_t)en->count, 0, size, rate);
	struct heap_made made = heap_window_made(w, en);
	double one = scale_heap_one(size, rate), more = made.seen.value + made.borrowed,
	       variance = 0, of_all;
	/* Each sampled object stands for 1/p objects, which is a variance of (1 - p) / p^2. */
	double in_full = (double)en->count * one * (one - 1);
	/* Large objects differ in size, so the total of their bytes is not known. */
	bool known = en->group && w->total[en->group] >= 0;

	/* The variance of the whole site is reported with its first stack. */
	if (en == &w->tally.entries.at[w->tally.sites.at[en->site].first] || made.seen.variance < 0)
		variance = made.seen.variance;
	/*
	 * The class's total is known, so allocations of a missed site were credited to others: the
	 * error of the total stays the same.
	 */
	of_all = made.missed && w->tally.groups[en->group].x > 0 ? 0 : variance;
	return (struct heap_estimate){
		.objects = (double)full.objects + more,
		.variance = variance < 0 ? -1 : in_full + variance,
		.of_all = known	     ? in_full :
			  of_all < 0 ? -1 :
				       in_full + of_all,
		.values = { plus(full.objects, more), plus(full.bytes, more * (double)size) },
		.parts = heap_in_parts(plus(full.objects, more),
				       (double)en->count * one - (double)full.objects),
	};
}

struct heap_unseen heap_window_unseen(const struct heap_window *w)
{
	double all = 0, allocs = 0, bytes = 0, fast = 0, fast_bytes = 0;
	bool many;

	for (size_t i = 0; i < GPB_CLASSES; i++) {
		double size = i ? w->heap->class_size[i] : GPB_SIZE_MEDIUM;

		if (w->total[i] <= 0)
			continue;
		if (!i && w->large_bytes > size * w->total[i])
			size = w->large_bytes / w->total[i];
		all += w->total[i] * size;
		fast += w->unmet[i];
		fast_bytes += w->unmet[i] * size;
		if (w->tally.groups[i].x > 0 || w->in_full[i] > 0)
			continue;
		allocs += w->total[i];
		bytes += w->total[i] * size;
	}
	many = bytes + fast_bytes > UNSEEN_SHARE * all;
	return (struct heap_unseen){ .allocs = (uint64_t)scale_round(allocs),
				     .bytes = (uint64_t)scale_round(bytes),
				     .fast = (uint64_t)scale_round(fast),
				     .fast_bytes = (uint64_t)scale_round(fast_bytes),
				     .many = many,
				     .lost = many && (bytes + fast_bytes > (double)w->rate_most ||
						      bytes + fast_bytes > MOST_SHARE * all) };
}
