/*
 * tests/unit/waits_fakes.h - for tests of waits of many: each target's struct wait_engine, which only remembers what it was told, and
 * the kernel's table of goroutines, which all targets share.
 */
#ifndef TESTS_UNIT_WAITS_FAKES_H
#define TESTS_UNIT_WAITS_FAKES_H

#include "collect/waits/engine/wait_engine.h"
#include "many_world.h"

/* ---- engines ---- */

/* What one was told, by the slot that it got. */
static struct told {
	struct wait_engine *w;
	struct reports *reports;
	bool idle;
	int targets, puts, turns, befores, afters, watches, unwatched, no_more, ends;
	bool windows;
	uint64_t since, left;
	double share;
	uint64_t count_every_ns;
	struct stretch last;
	int watch_fails;
} told[GPB_CPU_TARGETS];
static int target_fails, turn_fails; /* of all */

static struct told *told_of(const struct wait_engine *w)
{
	assert_true(w->shared && w->slot && told[w->slot].w == w);
	return &told[w->slot];
}

void wait_engine_share(struct wait_engine *w, uint32_t slot, struct reports *reports,
		       struct attacher_process **attachers, int ep)
{
	(void)attachers;
	assert_true(ep >= 0);
	w->shared = true;
	w->slot = slot;
	told[slot] = (struct told){ .w = w, .reports = reports };
}

int wait_engine_target(struct wait_engine *w, struct err *e)
{
	told_of(w)->targets++;
	return target_fails ? err_set(e, target_fails, "no such offsets") : 0;
}

int wait_engine_put(struct wait_engine *w, struct err *e)
{
	(void)e;
	told_of(w)->puts++;
	return 0;
}

int wait_engine_turn(void *arg, bool windows, uint64_t since, double hit_ns, uint64_t window_ns,
		     struct err *e)
{
	struct wait_engine *w = arg;
	struct told *t = told_of(w);

	(void)hit_ns;
	(void)window_ns;
	assert_non_null(w->probing);
	t->turns++;
	t->windows = windows;
	t->since = since;
	return turn_fails ? err_set(e, turn_fails, "it does not turn") : 0;
}

void wait_engine_before(struct wait_engine *w, const struct stretch *s)
{
	told_of(w)->befores++;
	told_of(w)->last = *s;
}

int wait_engine_after(struct wait_engine *w, const struct stretch *s, struct err *e)
{
	struct told *t = told_of(w);

	(void)e;
	assert_int_equal(t->last.opened, s->opened);
	assert_int_equal(++t->afters, t->befores);
	w->opened = s->opened;
	return 0;
}

uint64_t wait_engine_due(const struct wait_engine *w)
{
	return told_of(w)->idle ? 0 : now_ns();
}

int wait_engine_watch(struct wait_engine *w, struct err *e)
{
	struct told *t = told_of(w);

	t->watches++;
	return t->watch_fails ? err_set(e, t->watch_fails, "looks saw too much") : 0;
}

void wait_engine_look_seldom(struct wait_engine *w, double share, uint64_t count_every_ns)
{
	told_of(w)->share = share;
	told_of(w)->count_every_ns = count_every_ns;
}

static double count_ns;

double wait_engine_count_ns(const struct wait_engine *w)
{
	(void)w;
	return count_ns;
}

void wait_engine_look_no_more(struct wait_engine *w)
{
	told_of(w)->no_more++;
}

void wait_engine_unwatch(struct wait_engine *w)
{
	told_of(w)->unwatched++;
}

void wait_engine_end(struct wait_engine *w)
{
	told_of(w)->ends++;
}

void wait_engine_lost(const struct wait_engine *w, uint64_t left, struct loss *to)
{
	told_of(w)->left = left;
	to->n[LOSS_UNFINISHED] += left;
}

/* ---- the table of goroutines ---- */

enum { GOROUTINES_MOST = 16 };

/* Of both kinds of objects; since is the first member of each. */
union goroutine {
	uint64_t since;
	struct gpb_standing standing;
	struct gpb_wait wait;
};
static struct {
	uint64_t key; /* 0: it was taken out */
	union goroutine g;
} goroutines[GOROUTINES_MOST];
static size_t ngoroutines, goroutine_bytes;
static int passes; /* over the table */

/* One of the target in @slot; nobody has looked at it since. */
static inline void goroutine(uint32_t slot, uint64_t since)
{
	assert_true(ngoroutines < GOROUTINES_MOST);
	goroutines[ngoroutines].key = (uint64_t)slot << 48 | (0xc000000000 + ngoroutines);
	goroutines[ngoroutines++].g = (union goroutine){ .wait = { .since = since } };
}

/* How many goroutines of @slot are in the table? */
static inline int goroutines_of(uint32_t slot)
{
	int n = 0;

	for (size_t i = 0; i < ngoroutines; i++)
		n += goroutines[i].key >> 48 == slot;
	return n;
}

int bpf_map_lookup_batch(int fd, void *in, void *out, void *keys, void *values, __u32 *count,
			 const struct bpf_map_batch_opts *opts)
{
	size_t n = 0;

	(void)in;
	(void)out;
	(void)opts;
	assert_true(fd == KINDS_OWN && *count >= GOROUTINES_MOST);
	passes++;
	for (size_t i = 0; i < ngoroutines; i++) {
		if (!goroutines[i].key)
			continue;
		((uint64_t *)keys)[n] = goroutines[i].key;
		memcpy((char *)values + n++ * goroutine_bytes, &goroutines[i].g, goroutine_bytes);
	}
	*count = (__u32)n;
	errno = ENOENT; /* there are no more */
	return -ENOENT;
}

static int delete_goroutine(int fd, const void *key)
{
	if (fd < KINDS_OWN)
		return 0;
	for (size_t i = 0; i < ngoroutines; i++) {
		if (goroutines[i].key != *(const uint64_t *)key)
			continue;
		goroutines[i].key = 0;
		return 0;
	}
	return -ENOENT;
}

static inline void new_waits_world(size_t bytes)
{
	new_world();
	memset(told, 0, sizeof(told));
	own_delete = delete_goroutine;
	goroutine_bytes = bytes;
	ngoroutines = 0;
	passes = 0;
	target_fails = turn_fails = 0;
}

#endif
