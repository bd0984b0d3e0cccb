/*
 * tests/fuzz/fuzz_rtcounters.c - the bytes are the memory in which the counters are looked for:
 * memstats, mheap_, sched, allp, and wherever the pointers in it lead.
 */
#include "go/runtime/counters/rtcounters.h"

enum {
	BASE = 0x1000,
	CLASSES = 2,
	DELTA = 8 * (3 + 2 * (CLASSES + 1)),
	AT_STATS = 0,
	AT_MHEAP = 3 * DELTA + 8,
	AT_SCHED = AT_MHEAP + 8,
	AT_ALLP = AT_SCHED + 40,
};

struct image {
	struct mem mem; /* first */
	const uint8_t *bytes;
	size_t len;
	uint8_t moody; /* after so many reads, one byte reads differently */
	unsigned reads;
};

static int image_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct image *i = (struct image *)m;

	if (addr < BASE || addr - BASE > i->len || n > i->len - (addr - BASE))
		return err_set(e, -EFAULT, "no memory at 0x%llx", (unsigned long long)addr);
	memcpy(buf, i->bytes + (addr - BASE), n);
	if (i->moody && ++i->reads % i->moody == 0)
		*(uint8_t *)buf ^= (uint8_t)i->reads;
	return 0;
}

static void lay_out(struct golayout *l, bool old)
{
	const struct {
		enum layout_field f;
		int32_t off;
	} have[] = { { LAYOUT_mstats_heapstats, AT_STATS },
		     { LAYOUT_heapstats_stats, 0 },
		     { LAYOUT_heapstats_gen, 3 * DELTA },
		     { LAYOUT_heapdelta_sizeof, DELTA },
		     { LAYOUT_heapdelta_largealloc, 0 },
		     { LAYOUT_heapdelta_largealloccount, 8 },
		     { LAYOUT_heapdelta_tinyalloccount, 16 },
		     { LAYOUT_heapdelta_smallalloccount, 24 },
		     { LAYOUT_heapdelta_smallfreecount, 24 + 8 * (CLASSES + 1) },
		     { LAYOUT_mheap_sweepgen, 0 },
		     { LAYOUT_sched_gcwaiting, 0 },
		     { LAYOUT_sched_timetorun, 8 },
		     { LAYOUT_timehist_counts, 0 },
		     { LAYOUT_timehist_underflow, 16 },
		     { LAYOUT_timehist_sizeof, 24 },
		     { LAYOUT_p_mcache, 0 },
		     { LAYOUT_mcache_tinyallocs, 0 },
		     { LAYOUT_mcache_alloc, 8 },
		     { LAYOUT_mcache_flushgen, 8 + 16 * (CLASSES + 1) },
		     { LAYOUT_mspan_nelems, 0 },
		     { LAYOUT_mspan_sweepgen, 8 },
		     { LAYOUT_mspan_alloccount, 12 },
		     { LAYOUT_mspan_spanclass, 14 },
		     { LAYOUT_mspan_elemsize, 24 },
		     { LAYOUT_mspan_countbeforecache, old ? -1 : 16 } };

	for (size_t i = 0; i < LAYOUT_COUNT; i++)
		l->off[i] = -1;
	for (size_t i = 0; i < sizeof(have) / sizeof(*have); i++)
		l->off[have[i].f] = have[i].off;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rtcounters_vars v = { .memstats = BASE + AT_STATS,
				     .mheap = BASE + AT_MHEAP,
				     .sched = BASE + AT_SCHED,
				     .allp = BASE + AT_ALLP };
	struct sizeclasses classes = { .n = CLASSES, .size = { 8, 16 } };
	struct image i = { .mem.read = image_read };
	CLEANUP(rtcounters_freep) struct rtcounters *c = NULL;
	struct rtalloc_counts n;
	struct golayout l = { .from = "fuzz" };
	struct err e;
	uint64_t sum;
	uint32_t gen;

	if (size < 2)
		return 0;
	i.bytes = data + 2;
	i.len = size - 2;
	i.moody = data[1];
	v.minor = data[0] & 1 ? 18 : 27;
	lay_out(&l, v.minor == 18);
	if (rtcounters_new(&v, &l, &classes, &i.mem, &c, &e))
		return 0;
	for (int k = 0; k < 3; k++)
		if (!rtcounters_allocs(c, &n, &e) && n.n != CLASSES + 1)
			__builtin_trap();
	(void)rtcounters_switches(c, &sum, &e);
	(void)rtcounters_sweepgen(c, &gen, &e);
	return 0;
}
