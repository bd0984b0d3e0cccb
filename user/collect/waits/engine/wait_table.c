/* user/collect/waits/engine/wait_table.c - passes over the table of goroutines. */
#include "collect/waits/engine/wait_table.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum { BATCH = 4096 };

uint64_t wait_table_standing(const void *goroutine)
{
	return ((const struct gpb_standing *)goroutine)->since;
}

uint64_t wait_table_wait(const void *goroutine)
{
	const struct gpb_wait *w = goroutine;
	const uint64_t times[] = { w->asked, w->woken, w->queued };
	uint64_t last = w->since;

	for (size_t i = 0; i < ARRAY_LEN(times); i++)
		if (times[i] > last)
			last = times[i];
	return last;
}

static uint32_t slot_of(uint64_t key)
{
	return (uint32_t)(key >> 48) & (GPB_CPU_TARGETS - 1);
}

static void take_out(const struct wait_table *t, uint64_t key)
{
	if (bpf_map_delete_elem(t->fd, &key))
		return;
	__atomic_fetch_sub(&t->of[slot_of(key)], 1, __ATOMIC_RELAXED);
	__atomic_fetch_sub(t->all, 1, __ATOMIC_RELAXED);
}

typedef void each_goroutine(void *arg, uint64_t key, const void *goroutine);

static bool each(const struct wait_table *t, each_goroutine *take, void *arg)
{
	CLEANUP(freep) uint8_t *at = calloc(BATCH, t->bytes);
	CLEANUP(freep) uint64_t *keys = calloc(BATCH, sizeof(*keys));
	void *after = NULL;
	uint64_t next = 0;
	int ret = 0;

	if (!at || !keys)
		return false;
	for (uint32_t total = 0; !ret && total <= GPB_WAITS; after = &next) {
		uint32_t n = BATCH;

		ret = bpf_map_lookup_batch(t->fd, after, &next, keys, at, &n, NULL);
		if (ret && errno != ENOENT)
			return false;
		for (uint32_t i = 0; i < n; i++)
			take(arg, keys[i], at + i * t->bytes);
		total += n;
	}
	return true;
}

struct sweep {
	const struct wait_table *t;
	bool (*gone)(void *arg, uint32_t slot, uint64_t last);
	void *arg;
};

static void sweep(void *arg, uint64_t key, const void *goroutine)
{
	const struct sweep *s = arg;

	if (s->gone(s->arg, slot_of(key), s->t->last(goroutine)))
		take_out(s->t, key);
}

void wait_table_sweep(const struct wait_table *t,
		      bool (*gone)(void *arg, uint32_t slot, uint64_t last), void *arg)
{
	struct sweep s = { t, gone, arg };

	each(t, sweep, &s);
}

struct counting {
	bool (*is)(void *arg, uint32_t slot, const void *goroutine);
	void *arg;
	uint64_t *n;
};

static void count(void *arg, uint64_t key, const void *goroutine)
{
	const struct counting *c = arg;

	c->n[slot_of(key)] += c->is(c->arg, slot_of(key), goroutine);
}

bool wait_table_count(const struct wait_table *t,
		      bool (*is)(void *arg, uint32_t slot, const void *goroutine), void *arg,
		      uint64_t *n)
{
	struct counting c = { is, arg, n };

	memset(n, 0, GPB_CPU_TARGETS * sizeof(*n));
	return each(t, count, &c);
}
