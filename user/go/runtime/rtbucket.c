/*
 * user/go/runtime/rtbucket.c - the memory-profile buckets of a live Go process, read from outside.
 *
 * A bucket never moves and its links never change (go/runtime/rtbucket_list.h), so the list can be
 * walked again. Only the counters in a bucket's record move, and of those MemProfile shows two
 * parts:
 *
 *	active			what has been published
 *	future[C % 3]		what cycle C, the current one, still has to publish
 *
 * The runtime moves the second part to the first (flush) and then sets a bit beside C; both
 * before and after, the sum is the same, and MemProfile flushes in any case. So the sum is
 * taken whatever the bit says. Allocations go to future[(C+2) % 3] and frees to
 * future[(C+1) % 3]: between two GC cycles the sum stands still. It is read again and again
 * until two passes agree under the same cycle word; both then saw what the runtime would have
 * said at the moment between them, for every counter only grows.
 *
 * When the sum is nothing at all in any bucket, no GC cycle has been completed, and MemProfile
 * adds up everything. Those counters move with every sampled allocation and MemProfile does
 * not stop them either: a bucket that is consistent in itself (bytes = objects * size) is good.
 *
 * The sum of all four parts ("until now") moves with every sample, so that no two passes need
 * agree on it. What could make it wrong is a part that is being moved while it is read. Moved
 * are future[C % 3] (above) and, by runtime.GC() without a change of the cycle word,
 * future[(C+1) % 3], both to active: the first pass then has another active, or a part shrinks.
 * So the sum is good when the published part agrees and no other part has become less.
 *
 * Source: runtime/mprof.go, Go 1.16 to 1.27: memRecord, mProf_FlushLocked, mProf_PostSweep,
 * MemProfile.
 */
#include "go/runtime/rtbucket.h"

#include "go/runtime/rtbucket_list.h"

enum {
	CYCLE_WRAP = 3 * 2 << 24, /* mProfCycleWrap */
	FUTURES = 3,
	RECORD_WORDS = (1 + FUTURES) * 4,
	CACHE_BLOCK = 16384,
	CACHE_BLOCKS = 256, /* 4 MB at most: a few chunks for each P of a large machine */
	PASSES_MAX = 10,
};

struct counts {
	uint64_t allocs, frees, alloc_bytes, free_bytes;
	uint64_t all_allocs, all_frees;
	uint64_t pending[FUTURES]; /* allocs that are not due yet */
};

struct record {
	uint64_t addr;
	uint64_t pending[FUTURES]; /* pending, as the last pass saw it */
};

struct cycle {
	uint32_t word;	/* with the flushed bit: equal words, equal cycle */
	uint32_t index; /* of future[] that is due */
};

struct walk {
	struct mem *live, *cached;
	const struct golayout *l;
	const struct rtbucket_vars *v;
	struct rtlist list;
	VEC(struct rtbucket) at;
	uint32_t due;		    /* the cycle that the first pass reads by */
	bool all;		    /* add up everything: no GC cycle has been completed */
	bool published;		    /* this pass saw a part that was published or due */
	uint64_t unsettled;	    /* buckets of this pass that cannot be trusted yet */
	VEC(struct record) records; /* in the order of at */
};

static int check_layout(const struct golayout *l, struct err *e)
{
	int32_t cycle = l->off[LAYOUT_memcycle_sizeof];

	if ((cycle != 16 && cycle != 32) ||
	    l->off[LAYOUT_memrecord_sizeof] != (1 + FUTURES) * cycle)
		return err_set(e, -ENOTSUP, "layout (%s): a memRecord of %d bytes in cycles of %d",
			       l->from, l->off[LAYOUT_memrecord_sizeof], cycle);
	return 0;
}

/*
 * Up to go1.18 a struct { cycle uint32; flushed bool }, from go1.19 on one word of both.
 * Before the first pass also the proof that the address is the right one.
 */
static int read_cycle(const struct walk *w, struct cycle *out, struct err *e)
{
	bool split = w->v->minor >= 0 && w->v->minor < 19;
	uint32_t word, cycle;
	uint8_t flushed = 0;
	int ret;

	ret = mem_u32(w->live, w->v->mprofcycle, &word, e);
	if (!ret && split)
		ret = mem_u8(w->live, w->v->mprofcycle + 4, &flushed, e);
	if (ret)
		return err_wrap(e, ret, "the heap profile's cycle");
	cycle = split ? word : word >> 1;
	if (cycle >= CYCLE_WRAP || flushed > 1)
		return err_set(e, -EBADMSG,
			       "the heap profile's cycle at 0x%llx: 0x%x, more than it can be",
			       (unsigned long long)w->v->mprofcycle, word);
	out->word = split ? cycle << 1 | flushed : word;
	out->index = cycle % FUTURES;
	return 0;
}

static void add_cycle(struct counts *c, const uint64_t *rec, size_t words, size_t i)
{
	const uint64_t *r = rec + i * words;

	c->allocs += r[0];
	c->frees += r[1];
	if (words == 4) {
		c->alloc_bytes += r[2];
		c->free_bytes += r[3];
	}
}

/*
 * A byte count is always the object count times the size, because size is part of a bucket's key.
 */
static bool consistent(const struct counts *c, uint64_t size)
{
	return c->alloc_bytes == c->allocs * size && c->free_bytes == c->frees * size;
}

/* Reads one record into the counts that MemProfile would show. */
static int read_record(struct walk *w, uint64_t addr, uint64_t size, uint32_t due,
		       struct counts *out, struct err *e)
{
	size_t words = (size_t)w->l->off[LAYOUT_memcycle_sizeof] / 8;
	uint64_t rec[RECORD_WORDS];
	struct counts c = { 0 };
	int ret;

	ret = mem_read(w->cached, addr, rec, (1 + FUTURES) * words * 8, e);
	if (ret)
		return ret;
	add_cycle(&c, rec, words, 0);
	add_cycle(&c, rec, words, 1 + due);
	w->published |= c.allocs || c.frees;
	c.all_allocs = c.allocs;
	c.all_frees = c.frees;
	for (uint32_t i = 0; i < FUTURES; i++) {
		if (i == due)
			continue;
		c.pending[i] = rec[(1 + i) * words];
		c.all_allocs += c.pending[i];
		c.all_frees += rec[(1 + i) * words + 1];
		if (w->all)
			add_cycle(&c, rec, words, 1 + i);
	}
	if (words == 2) {
		c.alloc_bytes = c.allocs * size;
		c.free_bytes = c.frees * size;
	}
	*out = c;
	return 0;
}

static bool same(const struct rtbucket *b, const struct counts *c)
{
	return b->allocs == c->allocs && b->frees == c->frees && b->alloc_bytes == c->alloc_bytes &&
	       b->free_bytes == c->free_bytes;
}

/* Is it certain that nothing was being moved out of the parts that are not due? */
static bool grew(const struct record *r, const struct counts *c)
{
	for (size_t i = 0; i < FUTURES; i++)
		if (c->pending[i] < r->pending[i])
			return false;
	return true;
}

static void store(struct rtbucket *b, struct record *r, const struct counts *c)
{
	memcpy(r->pending, c->pending, sizeof(r->pending));
	b->all_allocs = c->all_allocs;
	b->all_frees = c->all_frees;
	b->allocs = c->allocs;
	b->frees = c->frees;
	b->alloc_bytes = c->alloc_bytes;
	b->free_bytes = c->free_bytes;
}

/* The first pass: keeps a bucket whose record can be read. */
static int keep(void *arg, const struct rtlist_bucket *l, struct err *e)
{
	struct walk *w = arg;
	struct rtbucket *b;
	struct record *rec;
	struct counts c;
	int ret = read_record(w, l->record, l->size, w->due, &c, e);

	if (ret)
		return ret;
	b = vec_add(&w->at, LIMIT_BUCKETS);
	rec = vec_add(&w->records, LIMIT_BUCKETS);
	if (!b || !rec) {
		w->at.n = w->records.n = w->at.n - !!b;
		return err_set(e, -ENOMEM, "no memory for %zu buckets", w->at.n);
	}
	b->addr = l->addr;
	b->size = l->size;
	b->nstk = l->nstk;
	b->stk = l->stk;
	rec->addr = l->record;
	store(b, rec, &c);
	return 0;
}

/* A later pass reads the records alone. It stops at the first one that is no longer readable. */
static int read_again(struct walk *w, uint32_t due)
{
	w->published = false;
	w->unsettled = 0;
	for (size_t i = 0; i < w->at.n; i++) {
		struct rtbucket *b = &w->at.at[i];
		struct record *r = &w->records.at[i];
		struct counts c;
		int ret = read_record(w, r->addr, b->size, due, &c, NULL);

		if (ret) {
			w->unsettled += w->at.n - i;
			return ret;
		}
		if ((!same(b, &c) && !(w->all && consistent(&c, b->size))) || !grew(r, &c))
			w->unsettled++;
		store(b, r, &c);
	}
	return 0;
}

/* Reads until two passes agree; what does not stay the same is counted. */
static void settle(struct walk *w, struct memcache *cache, struct cycle last, struct rtbuckets *out)
{
	w->unsettled = w->at.n;
	for (unsigned pass = 1; pass < PASSES_MAX && w->at.n; pass++) {
		bool all = w->all;
		struct cycle now;

		/* What the pass before saw decides whether all parts are added up. */
		w->all = !w->published;
		memcache_drop(cache);
		if (read_cycle(w, &now, NULL) || read_again(w, now.index))
			break;
		out->cycle = now.word >> 1;
		if (now.word == last.word && w->all == all && w->all == !w->published &&
		    !w->unsettled)
			break;
		out->retries += w->all == all;
		last = now;
	}
	out->torn = w->unsettled;
	out->before_first_gc = w->at.n && w->all;
}

static void walk_free(struct walk *w)
{
	vec_fini(&w->at);
	vec_fini(&w->records);
	rtlist_fini(&w->list);
	free(w);
}
DEFINE_FREEP(struct walk, walk)

static void hand_over(struct walk *w, struct rtbuckets *out)
{
	out->n = w->at.n;
	out->at = TAKE(w->at.at);
	out->skipped = w->list.skipped;
	out->npcs = w->list.pcs.n;
	out->pcs = TAKE(w->list.pcs.at);
}

/* Reads what stands still first: the rate, the cycle and the head. Then the list. */
static int read_all(struct walk *w, struct memcache *cache, struct rtbuckets *out, struct err *e)
{
	uint64_t rate, head;
	struct cycle first;
	int ret;

	ret = mem_u64(w->live, w->v->memprofilerate, &rate, e);
	if (ret)
		return err_wrap(e, ret, "runtime.MemProfileRate");
	out->rate = (int64_t)rate;
	ret = read_cycle(w, &first, e);
	if (ret)
		return ret;
	out->cycle = first.word >> 1;
	ret = mem_u64(w->live, w->v->mbuckets, &head, e);
	if (ret)
		return err_wrap(e, ret, "runtime.mbuckets");
	w->due = first.index;
	ret = rtlist_walk(&w->list, w->cached, w->l, BUCKET_MEM, head, keep, w, e);
	if (ret)
		return err_wrap(e, ret, "the heap profile's list from 0x%llx",
				(unsigned long long)head);
	settle(w, cache, first, out);
	return 0;
}

int rtbuckets_read(struct mem *m, const struct golayout *l, const struct rtbucket_vars *v,
		   struct rtbuckets *out, struct err *e)
{
	CLEANUP(memcache_freep) struct memcache *cache = NULL;
	CLEANUP(walk_freep) struct walk *w = calloc(1, sizeof(*w));
	struct rtbuckets b = { 0 };
	int ret;

	if (!w)
		return err_set(e, -ENOMEM, "no memory for a walk of the heap profile");
	ret = check_layout(l, e);
	if (ret)
		return ret;
	ret = memcache_new(m, CACHE_BLOCK, CACHE_BLOCKS, &cache, e);
	if (ret)
		return ret;
	w->live = m;
	w->cached = memcache_mem(cache);
	w->l = l;
	w->v = v;
	ret = read_all(w, cache, &b, e);
	if (ret)
		return ret;
	hand_over(w, &b);
	*out = b;
	return 0;
}

void rtbuckets_fini(struct rtbuckets *b)
{
	free(b->at);
	free(b->pcs);
	*b = (struct rtbuckets){ 0 };
}
