/*
 * tests/unit/heap_enable_world.h - a made-up Go runtime for test_heap_enable.c: its memory-profile buckets, Ps and garbage
 * collection as in Go 1.27. The rest of its world is enable_world.h.
 */
#ifndef TESTS_UNIT_HEAP_ENABLE_WORLD_H
#define TESTS_UNIT_HEAP_ENABLE_WORLD_H

#include "enable_world.h"

#include "collect/heap/heap_enable.h"
#include "go/runtime/rtbucket.h"
#include "subject/verify.h"

/*
 * An object as large as the rate is sampled with probability 1 - 1/e, so that each sample stands for 1.58198 objects. One of 64
 * times the rate always is, and stands for itself.
 */
enum { RATE = 512 << 10, THEIRS = 64 << 10, PROGRAMS = 4096, HUGE_SIZE = 64 * RATE };
enum { PS = 2, BUCKETS = 3, A = 0, B = 1, HUGE = 2 };
enum { ALLP = 0x20000, P_LIST = 0x21000, P_AT = 0x22000, MCACHE_AT = 0x30000, STRIDE = 0x100 };
enum { BUCKET_AT = 0x9000, PC_AT = 0x40100 };
enum { CYCLE_WRAP = 100663296 }; /* mProfCycleWrap: 3 * (2 << 24) */

/* ---- the runtime ---- */

struct bucket {
	uint64_t size;
	/* until now; as of the last cycle that ended, and as of the one before it, which is what Go publishes */
	struct {
		uint64_t allocs, frees;
	} all, due, published;
};

static struct {
	struct bucket at[BUCKETS];
	uint32_t cycle;
	bool before_first_gc;
	uint64_t allp[3], list[PS];
	struct {
		uint32_t id, unused;
		uint64_t mcache;
	} p[PS];
	struct {
		uint64_t next_sample, rate;
	} mcache[PS];
	unsigned readings;
	void (*after_reading)(void); /* what happens after the first one; NULL: nothing */
	void (*in_reading)(void);    /* in the @in-th one, between the Ps and the buckets */
	unsigned in;
} go;

static void make_runtime(void)
{
	memset(&go, 0, sizeof(go));
	go.before_first_gc = true;
	for (unsigned b = 0; b < BUCKETS; b++)
		go.at[b].size = b == HUGE ? HUGE_SIZE : RATE;
	go.allp[0] = P_LIST;
	go.allp[1] = go.allp[2] = PS;
	regions[0] = (struct region){ ALLP, go.allp, sizeof(go.allp) };
	regions[1] = (struct region){ P_LIST, go.list, sizeof(go.list) };
	for (unsigned i = 0; i < PS; i++) {
		go.list[i] = P_AT + i * STRIDE;
		go.p[i].id = i;
		go.p[i].mcache = MCACHE_AT + i * STRIDE;
		regions[2 + i] = (struct region){ go.list[i], &go.p[i], sizeof(go.p[i]) };
		regions[2 + PS + i] = (struct region){ go.p[i].mcache, &go.mcache[i],
						       sizeof(go.mcache[i]) };
	}
	subject.layout.off[LAYOUT_p_mcache] = 8;
	subject.layout.off[LAYOUT_memcycle_sizeof] = 16;
	opts.heap.rate = RATE;
}

/* The P @p takes @n samples there; its first one under a rate is unconditional. */
static void takes(unsigned p, unsigned b, unsigned n)
{
	if (!w.word)
		return;
	go.mcache[p].rate = w.word;
	go.mcache[p].next_sample = 12345;
	go.at[b].all.allocs += n;
}

/* A cycle ends; what was sampled is published two cycles later. */
static void collects(void)
{
	go.before_first_gc = false;
	go.cycle = (go.cycle + 1) % CYCLE_WRAP;
	for (unsigned b = 0; b < BUCKETS; b++) {
		go.at[b].published = go.at[b].due;
		go.at[b].due = go.at[b].all;
	}
}

/* Objects that were sampled by @allocs, of which some were freed, before anything was switched on. */
static void had(unsigned b, uint64_t allocs, uint64_t frees)
{
	go.at[b].all.allocs = allocs;
	go.at[b].all.frees = frees;
	collects();
	collects();
}

static struct rtbucket as_read(unsigned b)
{
	const struct bucket *k = &go.at[b];
	struct rtbucket out = { .size = k->size,
				.addr = BUCKET_AT + b * STRIDE,
				.nstk = 1,
				.all_allocs = k->all.allocs,
				.all_frees = k->all.frees };

	out.allocs = go.before_first_gc ? k->all.allocs : k->published.allocs;
	out.frees = go.before_first_gc ? k->all.frees : k->published.frees;
	out.alloc_bytes = out.allocs * out.size;
	out.free_bytes = out.frees * out.size;
	return out;
}

/* A bucket is there once something was sampled in it, and the newest is the first of the list. */
int rtbuckets_read(struct mem *m, const struct golayout *l, const struct rtbucket_vars *v,
		   struct rtbuckets *out, struct err *e)
{
	int ret = w.gone ? err_set(e, -ESRCH, "it has exited") : may_fail(e);

	(void)l;
	assert_ptr_equal(m, &memory);
	assert_int_equal(v->minor, binary.minor);
	did("buckets");
	if (ret)
		return ret;
	if (go.in_reading && go.readings + 1 == go.in)
		go.in_reading();
	*out = (struct rtbuckets){ .at = calloc(BUCKETS, sizeof(*out->at)),
				   .pcs = calloc(BUCKETS, sizeof(*out->pcs)),
				   .rate = (int64_t)w.word,
				   .cycle = go.cycle,
				   .before_first_gc = go.before_first_gc };
	for (unsigned b = BUCKETS; b-- > 0;) {
		if (!go.at[b].all.allocs)
			continue;
		out->at[out->n] = as_read(b);
		out->at[out->n++].stk = b;
	}
	for (unsigned b = 0; b < BUCKETS; b++)
		out->pcs[out->npcs++] = PC_AT + b;
	if (!go.readings++ && go.after_reading)
		go.after_reading();
	return 0;
}

void rtbuckets_fini(struct rtbuckets *b)
{
	free(b->at);
	free(b->pcs);
	*b = (struct rtbuckets){ 0 };
}

int verify_buckets(struct subject *s, uint64_t mbuckets, struct err *e)
{
	(void)s;
	(void)mbuckets;
	return may_fail(e);
}

int subject_rtvar(struct subject *s, enum rtvar v, uint64_t *addr, struct err *e)
{
	assert_ptr_equal(s, &subject);
	did("find");
	*addr = BIAS + RATE_ADDR + (v == RTVAR_MEMPROFILERATE ? 0 : 0x100);
	return may_fail(e);
}

int rtvar_find(struct gobin *b, enum rtvar v, uint64_t *addr, struct err *e)
{
	(void)b;
	(void)e;
	assert_int_equal(v, RTVAR_ALLP);
	*addr = ALLP - subject.bias;
	return 0;
}

int rtvar_plausible(struct mem *live, const struct golayout *l, int minor, enum rtvar v,
		    uint64_t addr, struct err *e)
{
	(void)live;
	(void)l;
	(void)minor;
	(void)v;
	(void)addr;
	return w.gone ? err_set(e, -ESRCH, "it has exited") : 0;
}

size_t logical_hidden(struct logical *l, const uint64_t *pcs, size_t n)
{
	(void)l;
	(void)pcs;
	(void)n;
	return 0;
}

#endif
