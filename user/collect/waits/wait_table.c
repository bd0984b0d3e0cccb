/* user/collect/waits/wait_table.c - one pass over the table of goroutines. */
#include "collect/waits/wait_table.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

enum { BATCH = 4096 };

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

void wait_table_sweep(const struct wait_table *t,
		      bool (*gone)(void *arg, uint32_t slot, uint64_t since), void *arg)
{
	CLEANUP(freep) struct gpb_standing *at = calloc(BATCH, sizeof(*at));
	CLEANUP(freep) uint64_t *keys = calloc(BATCH, sizeof(*keys));
	void *after = NULL;
	uint64_t next = 0;
	int ret = 0;

	if (!at || !keys)
		return;
	for (uint32_t total = 0; !ret && total <= GPB_WAITS; after = &next) {
		uint32_t n = BATCH;

		ret = bpf_map_lookup_batch(t->fd, after, &next, keys, at, &n, NULL);
		if (ret && errno != ENOENT)
			return;
		for (uint32_t i = 0; i < n; i++)
			if (gone(arg, slot_of(keys[i]), at[i].since))
				take_out(t, keys[i]);
		total += n;
	}
}
