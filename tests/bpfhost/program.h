/*
 * tests/bpfhost/program.h - runs a whole BPF program as ordinary C against a made-up target: its
 * goroutines, and what the program has counted. Include it behind the program.
 */
#ifndef BPFHOST_PROGRAM_H
#define BPFHOST_PROGRAM_H

/* Any generator does; this one is xorshift64*, so that each run is the same. */
static uint64_t draws = 1;

static uint32_t draw(void)
{
	draws ^= draws >> 12;
	draws ^= draws << 25;
	draws ^= draws >> 27;
	return (uint32_t)(draws * 0x2545f4914f6cdd1dull >> 32);
}

__attribute__((unused)) static uint32_t below(uint32_t n)
{
	return draw() % n;
}

/* Nothing is known, no window is open; the same numbers are drawn again. */
static void program_reset(void)
{
	host_maps_reset();
	host_ring_used = 0;
	memset(host_mem, 0, sizeof(host_mem));
	memset(tallies, 0, sizeof(tallies));
	memset(open_for, 0, sizeof(open_for));
	host_task = (struct task_struct){ .pid = 1, .tgid = 1 };
	host_draw = draw;
	draws = 1;
}

/* Calls @each for all samples: those in the table, and those that went through the ring. */
static void each_sample(void (*each)(const struct gpb_stack *))
{
	const struct host_rec *r = NULL;
	const struct gpb_rec_raw *raw;

	for (size_t i = 0; i < HOST_BUCKETS; i++)
		for (struct host_entry *e = host_buckets[i]; e; e = e->next)
			if (e->map == &stacks)
				each((const struct gpb_stack *)e->value);
	while ((r = host_ring_next(r))) {
		raw = (const struct gpb_rec_raw *)r->bytes;
		if (raw->type == GPB_REC_STACK || raw->type == GPB_REC_RAW)
			each(&raw->stack);
	}
}

static uint64_t lost_in_all(__u32 slot)
{
	uint64_t n = 0;

	for (int i = 0; i < GPB_LOSS_COUNT; i++)
		n += tallies[slot].lost[i];
	return n;
}

#endif
