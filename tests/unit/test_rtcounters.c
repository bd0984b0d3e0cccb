/*
 * tests/unit/test_rtcounters.c - counters read from a made-up runtime that goes on meanwhile.
 *
 * The runtime here does what mcache.go and mstats.go do, in their order, a step at a time: some
 * steps before each read. The true number of allocations is known at every instant.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/limits.h"
#include "go/runtime/counters/rtcounters.h"

enum {
	BASE = 0x10000,
	SIZE = 1 << 20,
	MEMSTATS = BASE + 0x100,
	MHEAP = BASE + 0x800,
	SCHED = BASE + 0x900,
	ALLP = BASE + 0xa00,
	ALLP_LIST = BASE + 0xa40,
	PS = BASE + 0xb00,
	CACHES = BASE + 0x1000,
	NONE = BASE + 0x3000, /* emptymspan */
	SPANS = BASE + 0x4000,
	NPS = 3,
	CLASSES = 4, /* and class 0 */
	SPANCLASSES = 2 * (CLASSES + 1),
	NSPANS = 400,
	SPAN_STEP = 1104, /* some lie together, some not */
	NELEMS = 6,
	/* heapStatsDelta */
	D_LARGE = 0,
	D_NLARGE = 8,
	D_TINY = 16,
	D_SMALL = 24,
	D_FREED = D_SMALL + 8 * (CLASSES + 1),
	D_SIZE = D_FREED + 8 * (CLASSES + 1),
	GEN = 3 * D_SIZE,
	/* mcache */
	C_TINY = 8,
	C_ALLOC = 16,
	C_GEN = C_ALLOC + 8 * SPANCLASSES,
	/* mspan: nelems is of 2 bytes from go1.22 on */
	S_NELEMS = 8,
	S_GEN = 16,
	S_COUNT = 20,
	S_CLASS = 22,
	S_BEFORE = 24,
	S_SIZE = 32,
};

enum doing { NOTHING, REFILL, FLUSH };

struct p {
	enum doing doing;
	int step;
	uint32_t spc;
	uint64_t next; /* the span that a refill found */
	bool stopped;  /* flushed because the world is stopped, not by a GC */
};

enum world { RUNS, STOPPING_FOR_GC, STOPPING_FOR_STATS, FLUSHED_FOR_STATS };

struct fake {
	struct mem mem; /* first */
	uint8_t bytes[SIZE];
	int minor;
	uint64_t truth[CLASSES + 1];
	struct p p[NPS];
	enum world world;
	int turning; /* step of the rotation by runtime/metrics; 0: none */
	unsigned steps_max;
	uint64_t random;
	struct golayout layout;
	struct sizeclasses classes;
	struct rtcounters *c;
};

static uint64_t rnd(struct fake *f, uint64_t below)
{
	f->random = f->random * 6364136223846793005ull + 1442695040888963407ull;
	return (f->random >> 33) % below;
}

static void *at(struct fake *f, uint64_t addr)
{
	assert_true(addr >= BASE && addr + 8 <= BASE + SIZE);
	return f->bytes + (addr - BASE);
}

static uint64_t *u64(struct fake *f, uint64_t addr)
{
	return at(f, addr);
}

static uint32_t *u32(struct fake *f, uint64_t addr)
{
	return at(f, addr);
}

static uint16_t *u16(struct fake *f, uint64_t addr)
{
	return at(f, addr);
}

static bool old(const struct fake *f)
{
	return f->minor < 19;
}

static uint64_t cache(int p)
{
	return CACHES + 0x400 * (uint64_t)p;
}

static uint64_t *slot(struct fake *f, int p, uint32_t spc)
{
	return u64(f, cache(p) + C_ALLOC + 8 * spc);
}

static uint64_t span_addr(int i)
{
	return SPANS + SPAN_STEP * (uint64_t)i;
}

static uint32_t sweepgen(struct fake *f)
{
	return *u32(f, MHEAP);
}

static uint64_t *stat(struct fake *f, uint32_t off)
{
	return u64(f, MEMSTATS + D_SIZE * (*u32(f, MEMSTATS + GEN) % 3) + off);
}

static uint64_t used(struct fake *f, uint64_t s)
{
	return (uint64_t)*u16(f, s + S_COUNT) - *u16(f, s + S_BEFORE);
}

static uint64_t left(struct fake *f, uint64_t s)
{
	return (uint64_t)*u16(f, s + S_NELEMS) - *u16(f, s + S_COUNT);
}

/* A span that is in no cache and has a free slot: a new one, or one of the same class. */
static uint64_t free_span(struct fake *f, uint32_t spc)
{
	for (int i = 0; i < NSPANS; i++) {
		uint64_t s = span_addr(i);
		uint32_t off = *u32(f, s + S_GEN) - sweepgen(f);
		uint8_t class = *(uint8_t *)at(f, s + S_CLASS);

		if (off == 1 || off == 3 || (class && class != spc) ||
		    *u16(f, s + S_COUNT) == NELEMS)
			continue;
		*(uint8_t *)at(f, s + S_CLASS) = (uint8_t)spc;
		*u16(f, s + S_NELEMS) = NELEMS;
		*u64(f, s + S_SIZE) = f->classes.size[spc / 2 - 1];
		return s;
	}
	fail_msg("out of spans");
	return 0;
}

static void refill_step(struct fake *f, int i)
{
	struct p *p = &f->p[i];
	uint64_t *in = slot(f, i, p->spc), s = *in;

	switch (p->step++) {
	case 0:
		if (s != NONE)
			*u32(f, s + S_GEN) = sweepgen(f);
		break;
	case 1:
		if (s != NONE && !old(f))
			*stat(f, D_SMALL + 8 * (p->spc / 2)) += used(f, s);
		break;
	case 2:
		if (s != NONE && !old(f))
			*u16(f, s + S_BEFORE) = 0;
		break;
	case 3:
		p->next = free_span(f, p->spc);
		*u32(f, p->next + S_GEN) = sweepgen(f) + 3;
		*u16(f, p->next + S_BEFORE) = old(f) ? 0 : *u16(f, p->next + S_COUNT);
		if (s != NONE || !old(f))
			break;
		p->step++; /* nor is this */
			   /* fallthrough */
	case 4:
		if (old(f))
			*stat(f, D_SMALL + 8 * (p->spc / 2)) += left(f, p->next);
		if (s != NONE || !old(f))
			break;
		/* fallthrough */
	default:
		*in = p->next;
		p->doing = NOTHING;
	}
}

static void flush_step(struct fake *f, int i)
{
	struct p *p = &f->p[i];
	uint64_t s;

	while (p->spc < SPANCLASSES && *slot(f, i, p->spc) == NONE)
		p->spc++;
	if (p->spc == SPANCLASSES) {
		*stat(f, D_TINY) += *u64(f, cache(i) + C_TINY);
		*u64(f, cache(i) + C_TINY) = 0;
		if (!p->stopped)
			*u32(f, cache(i) + C_GEN) = sweepgen(f);
		p->doing = NOTHING;
		return;
	}
	s = *slot(f, i, p->spc);
	switch (p->step++) {
	case 0:
		p->next = old(f) ? -left(f, s) : used(f, s);
		*u16(f, s + S_BEFORE) = 0;
		break;
	case 1:
		*stat(f, D_SMALL + 8 * (p->spc / 2)) += p->next;
		break;
	case 2:
		*u32(f, s + S_GEN) = sweepgen(f);
		break;
	default:
		*slot(f, i, p->spc) = NONE;
		p->step = 0;
	}
}

static void begin(struct fake *f, int i, enum doing what, uint32_t spc)
{
	f->p[i].doing = what;
	f->p[i].step = 0;
	f->p[i].spc = spc;
	f->p[i].stopped = f->world == FLUSHED_FOR_STATS;
}

static void allocate(struct fake *f, int i)
{
	uint32_t spc = 2 + (uint32_t)rnd(f, SPANCLASSES - 2);
	uint64_t s = *slot(f, i, spc);

	if (s == NONE || !left(f, s)) {
		begin(f, i, REFILL, spc);
		return;
	}
	*u16(f, s + S_COUNT) += 1;
	f->truth[spc / 2]++;
	if (!rnd(f, 4))
		++*u64(f, cache(i) + C_TINY);
}

static bool empty(struct fake *f, int i)
{
	for (uint32_t k = 2; k < SPANCLASSES; k++)
		if (*slot(f, i, k) != NONE)
			return false;
	return true;
}

static void p_step(struct fake *f, int i)
{
	struct p *p = &f->p[i];

	if (p->doing == REFILL)
		refill_step(f, i);
	else if (p->doing == FLUSH)
		flush_step(f, i);
	else if (f->world == FLUSHED_FOR_STATS && !empty(f, i))
		begin(f, i, FLUSH, 2);
	else if (f->world != RUNS)
		return;
	else if (*u32(f, cache(i) + C_GEN) != sweepgen(f))
		begin(f, i, FLUSH, 2);
	else
		allocate(f, i);
}

/* Full spans lose some objects in a GC. */
static void collect(struct fake *f)
{
	*u32(f, MHEAP) += 2;
	for (int i = 0; i < NSPANS; i++) {
		uint64_t s = span_addr(i);

		if (*u32(f, s + S_GEN) + 1 >= sweepgen(f) + 2 || *u16(f, s + S_COUNT) != NELEMS)
			continue;
		*u16(f, s + S_COUNT) = 2;
		*stat(f, D_FREED + 8u * (*(uint8_t *)at(f, s + S_CLASS) / 2)) += NELEMS - 2;
	}
}

static bool idle(const struct fake *f)
{
	for (int i = 0; i < NPS; i++)
		if (f->p[i].doing != NOTHING)
			return false;
	return true;
}

/* No GC begins before the last one's sweep is over. */
static bool all_flushed(struct fake *f)
{
	for (int i = 0; i < NPS; i++)
		if (*u32(f, cache(i) + C_GEN) != sweepgen(f))
			return false;
	return true;
}

static bool all_empty(struct fake *f)
{
	for (int i = 0; i < NPS; i++)
		if (!empty(f, i))
			return false;
	return true;
}

static void world_step(struct fake *f)
{
	uint8_t *waiting = at(f, SCHED);

	if (f->world == RUNS && all_flushed(f) && !rnd(f, 100)) {
		/*
		 * As the header says, a complete flush and refill inside one look is not noticed
		 * in that Go.
		 */
		f->world = rnd(f, 2) || old(f) ? STOPPING_FOR_GC : STOPPING_FOR_STATS;
		*waiting = 1;
	} else if (f->world == STOPPING_FOR_GC && idle(f)) {
		collect(f);
		f->world = RUNS;
		*waiting = 0;
	} else if (f->world == STOPPING_FOR_STATS && idle(f)) {
		f->world = FLUSHED_FOR_STATS;
	} else if (f->world == FLUSHED_FOR_STATS && idle(f) && all_empty(f)) {
		f->world = RUNS;
		*waiting = 0;
	}
}

/* consistentHeapStats.read(): rotate, add field by field, clear field by field. */
static void turn_step(struct fake *f)
{
	uint32_t *gen = u32(f, MEMSTATS + GEN), was = (*gen + 2) % 3, last = (*gen + 1) % 3;
	int words = D_SIZE / 8, k = f->turning - 1;

	if (!f->turning) {
		if (rnd(f, 200))
			return;
		*gen = (*gen + 1) % 3;
		f->turning = 1;
		return;
	}
	if (k < words)
		*u64(f, MEMSTATS + D_SIZE * was + 8 * (uint64_t)k) +=
			*u64(f, MEMSTATS + D_SIZE * last + 8 * (uint64_t)k);
	else
		*u64(f, MEMSTATS + D_SIZE * last + 8 * (uint64_t)(k - words)) = 0;
	f->turning = k + 1 == 2 * words ? 0 : f->turning + 1;
}

static void steps(struct fake *f, uint64_t n)
{
	while (n--) {
		uint64_t who = rnd(f, NPS + 4);

		if (who < NPS)
			p_step(f, (int)who);
		else if (who == NPS)
			world_step(f);
		else
			turn_step(f);
	}
}

static int fake_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct fake *f = (struct fake *)m;

	if (addr < BASE || addr > BASE + SIZE || n > BASE + SIZE - addr)
		return err_set(e, -EFAULT, "no memory at 0x%llx", (unsigned long long)addr);
	if (f->steps_max)
		steps(f, rnd(f, f->steps_max));
	memcpy(buf, f->bytes + (addr - BASE), n);
	return 0;
}

static void fields(struct golayout *l)
{
	static const struct {
		enum layout_field f;
		int32_t off;
	} have[] = { { LAYOUT_mstats_heapstats, 0 },
		     { LAYOUT_heapstats_stats, 0 },
		     { LAYOUT_heapstats_gen, GEN },
		     { LAYOUT_heapdelta_sizeof, D_SIZE },
		     { LAYOUT_heapdelta_largealloc, D_LARGE },
		     { LAYOUT_heapdelta_largealloccount, D_NLARGE },
		     { LAYOUT_heapdelta_tinyalloccount, D_TINY },
		     { LAYOUT_heapdelta_smallalloccount, D_SMALL },
		     { LAYOUT_heapdelta_smallfreecount, D_FREED },
		     { LAYOUT_mheap_sweepgen, 0 },
		     { LAYOUT_sched_gcwaiting, 0 },
		     { LAYOUT_sched_timetorun, 16 },
		     { LAYOUT_timehist_counts, 0 },
		     { LAYOUT_timehist_underflow, 32 },
		     { LAYOUT_timehist_sizeof, 40 },
		     { LAYOUT_p_mcache, 0 },
		     { LAYOUT_mcache_tinyallocs, C_TINY },
		     { LAYOUT_mcache_alloc, C_ALLOC },
		     { LAYOUT_mcache_flushgen, C_GEN },
		     { LAYOUT_mspan_nelems, S_NELEMS },
		     { LAYOUT_mspan_sweepgen, S_GEN },
		     { LAYOUT_mspan_alloccount, S_COUNT },
		     { LAYOUT_mspan_spanclass, S_CLASS },
		     { LAYOUT_mspan_countbeforecache, S_BEFORE },
		     { LAYOUT_mspan_elemsize, S_SIZE } };

	for (size_t i = 0; i < LAYOUT_COUNT; i++)
		l->off[i] = -1;
	for (size_t i = 0; i < ARRAY_LEN(have); i++)
		l->off[have[i].f] = have[i].off;
}

static void opened(struct fake *f)
{
	struct rtcounters_vars v = { .memstats = MEMSTATS,
				     .mheap = MHEAP,
				     .allp = ALLP,
				     .sched = SCHED,
				     .minor = f->minor };

	assert_int_equal(rtcounters_new(&v, &f->layout, &f->classes, &f->mem, &f->c, NULL), 0);
}

static struct fake *fake_new(int minor, uint64_t seed)
{
	struct fake *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->mem.read = fake_read;
	f->minor = minor;
	f->random = seed;
	fields(&f->layout);
	if (old(f))
		f->layout.off[LAYOUT_mspan_countbeforecache] = -1;
	f->classes = (struct sizeclasses){ .n = CLASSES, .size = { 8, 16, 24, 32 } };
	*u64(f, ALLP) = ALLP_LIST;
	*u64(f, ALLP + 8) = NPS;
	*u64(f, ALLP + 16) = NPS;
	for (int i = 0; i < NPS; i++) {
		*u64(f, ALLP_LIST + 8 * (uint64_t)i) = PS + 64 * (uint64_t)i;
		*u64(f, PS + 64 * (uint64_t)i) = cache(i);
		for (uint32_t k = 0; k < SPANCLASSES; k++)
			*slot(f, i, k) = NONE;
	}
	opened(f);
	return f;
}

static void fake_free(struct fake *f)
{
	rtcounters_free(f->c);
	free(f);
}

/*
 * The counts must lie between what was true before and after, slack included; they are exact when
 * there is no slack.
 */
static uint64_t check(struct fake *f, bool still)
{
	struct rtalloc_counts n;
	uint64_t before[CLASSES + 1], slack = 0;
	struct err e = { "" };
	int ret;

	memcpy(before, f->truth, sizeof(before));
	ret = rtcounters_allocs(f->c, &n, &e);
	if (ret == -EAGAIN && !still)
		return 0;
	if (ret)
		fail_msg("%s", e.msg);
	assert_int_equal(n.n, CLASSES + 1);
	for (uint32_t k = 1; k <= CLASSES; k++) {
		if (n.small[k] + n.slack[k] < before[k] || n.small[k] > f->truth[k] + n.slack[k])
			fail_msg("go1.%d class %u: %llu +- %llu, not %llu to %llu, in %u looks",
				 f->minor, k, (unsigned long long)n.small[k],
				 (unsigned long long)n.slack[k], (unsigned long long)before[k],
				 (unsigned long long)f->truth[k], n.tries);
		slack += n.slack[k];
	}
	return slack + 1;
}

static void while_the_runtime_goes_on(void **state)
{
	static const int minors[] = { 18, 19, 22, 27 };

	(void)state;
	for (size_t m = 0; m < ARRAY_LEN(minors); m++)
		for (uint64_t seed = 1; seed <= 60; seed++) {
			struct fake *f = fake_new(minors[m], seed);
			uint64_t answers = 0;

			for (int i = 0; i < 20; i++) {
				f->steps_max = 0;
				steps(f, 40);
				f->steps_max = 1 + (unsigned)seed % 8;
				answers += check(f, false) > 0;
			}
			assert_true(answers > 5);
			fake_free(f);
		}
}

/* No refill, flush or rotation is under way: then not one object may be missing. */
static void settle(struct fake *f)
{
	for (int i = 0; i < NPS; i++)
		while (f->p[i].doing != NOTHING || f->world != RUNS ||
		       *u32(f, cache(i) + C_GEN) != sweepgen(f)) {
			for (int k = 0; k < NPS; k++)
				if (f->p[k].doing != NOTHING || f->world == FLUSHED_FOR_STATS ||
				    *u32(f, cache(k) + C_GEN) != sweepgen(f))
					p_step(f, k);
			if (f->world != RUNS)
				world_step(f);
			i = 0;
		}
	while (f->turning)
		turn_step(f);
}

static void exact_when_it_stands_still(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct fake *f = fake_new(seed % 2 ? 18 : 27, seed);

		for (int i = 0; i < 10; i++) {
			f->steps_max = 0;
			steps(f, 100);
			settle(f);
			/* A full span may stay in its cache, but it is still marked as cached. */
			assert_int_equal(check(f, true), 1);
		}
		fake_free(f);
	}
}

static int allocs(struct fake *f, struct err *e)
{
	struct rtalloc_counts n;

	return rtcounters_allocs(f->c, &n, e);
}

static void what_cannot_be(void **state)
{
	struct fake *f = fake_new(27, 1);
	struct err e = { "" };

	(void)state;
	steps(f, 200);
	settle(f);
	assert_int_equal(allocs(f, &e), 0);
	*u64(f, ALLP + 8) = LIMIT_PS + 1;
	*u64(f, ALLP + 16) = LIMIT_PS + 1;
	assert_int_equal(allocs(f, &e), -E2BIG);
	*u64(f, ALLP + 8) = NPS;
	*u64(f, ALLP) = BASE + SIZE - 8;
	assert_int_equal(allocs(f, &e), -EFAULT);
	*u64(f, ALLP) = ALLP_LIST;
	*u64(f, PS) = 8;
	assert_int_equal(allocs(f, &e), -EFAULT);
	*u64(f, PS) = cache(0);
	*u32(f, cache(1) + C_GEN) += 6;
	assert_int_equal(allocs(f, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "flushed"));
	*u32(f, cache(1) + C_GEN) -= 6;
	*stat(f, D_FREED + 8) += 1000;
	assert_int_equal(allocs(f, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "freed"));
	*stat(f, D_FREED + 8) -= 1000;
	*u64(f, MEMSTATS + D_SIZE * ((*u32(f, MEMSTATS + GEN) + 1) % 3)) = 1;
	assert_int_equal(allocs(f, &e), -EAGAIN);
	fake_free(f);
}

static void spans_that_are_none(void **state)
{
	struct fake *f = fake_new(27, 3);
	struct err e = { "" };

	(void)state;
	settle(f);
	for (int i = 0; i < 300; i++)
		p_step(f, i % NPS);
	settle(f);
	for (int i = 0; i < NSPANS; i++)
		*u64(f, span_addr(i) + S_SIZE) += 8;
	assert_int_equal(allocs(f, &e), -EBADMSG);
	for (int i = 0; i < NSPANS; i++) {
		*u64(f, span_addr(i) + S_SIZE) -= 8;
		*u32(f, span_addr(i) + S_GEN) = sweepgen(f);
	}
	assert_int_equal(allocs(f, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "not cached"));
	fake_free(f);
}

static void ps_that_come_and_go(void **state)
{
	struct fake *f = fake_new(27, 5);
	uint64_t p = PS + 64 * 2;

	(void)state;
	steps(f, 200);
	settle(f);
	assert_int_equal(check(f, true), 1);
	/* the last P's cache was not flushed here, so its objects are missing */
	*u64(f, ALLP + 8) = NPS - 1;
	assert_int_equal(allocs(f, NULL), 0);
	*u64(f, ALLP + 8) = NPS;
	assert_int_equal(check(f, true), 1);
	/*
	 * The number of Ps is the same, but one has another cache: that is noticed after a while.
	 */
	memcpy(at(f, CACHES + 0x1000), at(f, cache(2)), 0x400);
	memset(at(f, cache(2)), 0, 0x400);
	for (int i = 0; i < 20; i++)
		*slot(f, 2, 0) = NONE;
	*u64(f, p) = CACHES + 0x1000;
	for (int i = 0; i < 20; i++)
		assert_int_equal(allocs(f, NULL), 0);
	assert_int_equal(check(f, true), 1);
	fake_free(f);
}

static void what_is_not_known(void **state)
{
	static const enum layout_field lost[] = { LAYOUT_mcache_flushgen, LAYOUT_heapdelta_sizeof,
						  LAYOUT_mspan_countbeforecache, LAYOUT_p_mcache };
	struct fake *f = fake_new(27, 1);
	struct err e = { "" };
	uint64_t sum;
	uint32_t gen;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lost); i++) {
		int32_t was = f->layout.off[lost[i]];

		f->layout.off[lost[i]] = -1;
		rtcounters_free(f->c);
		opened(f);
		f->layout.off[lost[i]] = was;
		assert_int_equal(allocs(f, &e), -ENOTSUP);
		assert_int_equal(rtcounters_switches(f->c, &sum, &e), 0);
		assert_int_equal(rtcounters_sweepgen(f->c, &gen, &e), 0);
	}
	f->layout.off[LAYOUT_sched_timetorun] = -1;
	f->layout.off[LAYOUT_mheap_sweepgen] = -1;
	rtcounters_free(f->c);
	opened(f);
	assert_int_equal(rtcounters_switches(f->c, &sum, &e), -ENOTSUP);
	assert_non_null(strstr(e.msg, "go1.17"));
	assert_int_equal(rtcounters_sweepgen(f->c, &gen, &e), -ENOTSUP);
	fake_free(f);
}

static void switches_are_eight_times_the_histogram(void **state)
{
	struct fake *f = fake_new(27, 1);
	struct err e = { "" };
	uint64_t n;

	(void)state;
	for (uint64_t i = 0; i < 5; i++)
		*u64(f, SCHED + 16 + 8 * i) = i + 1;
	*u64(f, SCHED + 16 + 40) = 1000; /* behind it */
	assert_int_equal(rtcounters_switches(f->c, &n, &e), 0);
	assert_int_equal(n, 8 * 15);
	*u64(f, SCHED + 16) = 1ull << 56;
	assert_int_equal(rtcounters_switches(f->c, &n, &e), -EBADMSG);
	fake_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(while_the_runtime_goes_on),
		cmocka_unit_test(exact_when_it_stands_still),
		cmocka_unit_test(what_cannot_be),
		cmocka_unit_test(spans_that_are_none),
		cmocka_unit_test(ps_that_come_and_go),
		cmocka_unit_test(what_is_not_known),
		cmocka_unit_test(switches_are_eight_times_the_histogram),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
