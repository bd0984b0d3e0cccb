/*
 * user/go/runtime/rtcontention.c - the block or mutex buckets of a live Go process, read from outside.
 *
 * A record is two words. The runtime adds to one after the other, under a lock that nobody can
 * take from here. Both words only grow. So when a record reads the same twice, nothing was added
 * in between, and it is consistent. The list is read twice in large pieces; records that moved
 * meanwhile are then read one by one, again and again, until two looks in a row agree.
 */
#include "go/runtime/rtcontention.h"

#include <math.h>

enum {
	CACHE_BLOCK = 16384,
	CACHE_BLOCKS = 256, /* 4 MB at most */
	LOOKS_MAX = 16,	    /* how often one record is looked at */
	FLOAT_SINCE = 17,   /* blockRecord.count is a float64 */
};

struct record {
	uint64_t addr;
	uint64_t word[2]; /* count and cycles, as they stand there */
};

struct walk {
	struct mem *live, *cached;
	const struct rtcontention_vars *v;
	struct rtlist list;
	VEC(struct rtcontention) at;
	VEC(struct record) records; /* in the order of at */
};

static bool count_is_float(const struct walk *w)
{
	return w->v->minor < 0 || w->v->minor >= FLOAT_SINCE;
}

/* Decodes what a record says; -EBADMSG when a number is negative, which neither ever is. */
static int value(const struct walk *w, const struct record *r, struct rtcontention *out,
		 struct err *e)
{
	double count = (double)(int64_t)r->word[0];

	if (count_is_float(w))
		memcpy(&count, &r->word[0], sizeof(count));
	if (!isfinite(count) || count < 0 || count >= 0x1p63 || (int64_t)r->word[1] < 0)
		return err_set(e, -EBADMSG,
			       "the record at 0x%llx: 0x%llx contentions in 0x%llx cycles",
			       (unsigned long long)r->addr, (unsigned long long)r->word[0],
			       (unsigned long long)r->word[1]);
	out->count = count;
	out->cycles = (int64_t)r->word[1];
	return 0;
}

/* The first pass: keeps a bucket whose record makes sense. */
static int keep(void *arg, const struct rtlist_bucket *l, struct err *e)
{
	struct walk *w = arg;
	struct record r = { .addr = l->record }, *rec;
	struct rtcontention b = { .addr = l->addr, .nstk = l->nstk, .stk = l->stk }, *slot;
	int ret = mem_read(w->cached, r.addr, r.word, sizeof(r.word), e);

	if (!ret)
		ret = value(w, &r, &b, e);
	if (ret)
		return ret;
	slot = vec_add(&w->at, LIMIT_BUCKETS);
	rec = vec_add(&w->records, LIMIT_BUCKETS);
	if (!slot || !rec) {
		w->at.n = w->records.n = w->at.n - !!slot;
		return err_set(e, -ENOMEM, "no memory for %zu buckets", w->at.n);
	}
	*slot = b;
	*rec = r;
	return 0;
}

/* Reads one record until two looks agree. Returns 1 when none did, negative when it is gone. */
static int settle_one(struct walk *w, struct rtcontention *b, struct record *r)
{
	for (int look = 0; look < LOOKS_MAX; look++) {
		struct record now = { .addr = r->addr };
		bool same;
		int ret = mem_read(w->live, now.addr, now.word, sizeof(now.word), NULL);

		if (!ret)
			ret = value(w, &now, b, NULL);
		if (ret)
			return ret;
		same = !memcmp(now.word, r->word, sizeof(now.word));
		*r = now;
		if (same)
			return 0;
	}
	return 1;
}

/*
 * The second pass. A record that cannot be confirmed keeps the value that was read, and is
 * counted.
 */
static void settle(struct walk *w, struct memcache *cache, struct rtcontentions *out)
{
	memcache_drop(cache);
	for (size_t i = 0; i < w->at.n; i++) {
		struct record *r = &w->records.at[i], again;
		int ret = mem_read(w->cached, r->addr, again.word, sizeof(again.word), NULL);

		if (!ret && !memcmp(again.word, r->word, sizeof(again.word)))
			continue;
		out->torn += settle_one(w, &w->at.at[i], r) != 0;
	}
}

static void walk_free(struct walk *w)
{
	vec_fini(&w->at);
	vec_fini(&w->records);
	rtlist_fini(&w->list);
	free(w);
}
DEFINE_FREEP(struct walk, walk)

static void hand_over(struct walk *w, struct rtcontentions *out)
{
	out->skipped = w->list.skipped;
	out->n = w->at.n;
	out->at = TAKE(w->at.at);
	out->npcs = w->list.pcs.n;
	out->pcs = TAKE(w->list.pcs.at);
}

static int read_all(struct walk *w, struct memcache *cache, const struct golayout *l,
		    struct rtcontentions *out, struct err *e)
{
	const char *kind = bucket_kind_name(w->v->kind);
	uint64_t head;
	int ret = mem_u64(w->live, w->v->rate, &out->rate, e);

	if (ret)
		return err_wrap(e, ret, "the rate of the %s profile", kind);
	ret = mem_u64(w->live, w->v->buckets, &head, e);
	if (ret)
		return err_wrap(e, ret, "the head of the %s profile's list", kind);
	ret = rtlist_walk(&w->list, w->cached, l, w->v->kind, head, keep, w, e);
	if (ret)
		return err_wrap(e, ret, "the %s profile's list from 0x%llx", kind,
				(unsigned long long)head);
	settle(w, cache, out);
	return 0;
}

int rtcontentions_read(struct mem *m, const struct golayout *l, const struct rtcontention_vars *v,
		       struct rtcontentions *out, struct err *e)
{
	CLEANUP(memcache_freep) struct memcache *cache = NULL;
	CLEANUP(walk_freep) struct walk *w = calloc(1, sizeof(*w));
	struct rtcontentions b = { 0 };
	int ret;

	BUG_ON(v->kind != BUCKET_BLOCK && v->kind != BUCKET_MUTEX);
	if (!w)
		return err_set(e, -ENOMEM, "no memory for a walk of the %s profile",
			       bucket_kind_name(v->kind));
	ret = memcache_new(m, CACHE_BLOCK, CACHE_BLOCKS, &cache, e);
	if (ret)
		return ret;
	w->live = m;
	w->cached = memcache_mem(cache);
	w->v = v;
	ret = read_all(w, cache, l, &b, e);
	if (ret)
		return ret;
	hand_over(w, &b);
	*out = b;
	return 0;
}

void rtcontentions_fini(struct rtcontentions *b)
{
	free(b->at);
	free(b->pcs);
	*b = (struct rtcontentions){ 0 };
}
