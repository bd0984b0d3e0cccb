/* user/go/runtime/rtbucket_list.c - one list of profile buckets: every field is checked before use. */
#include "go/runtime/rtbucket_list.h"

enum { HEADER_MAX = 256 };

struct walk {
	struct rtlist *l;
	struct mem *m;
	const struct golayout *layout;
	enum bucket_kind kind;
	rtlist_take *take;
	void *arg;
};

void rtlist_fini(struct rtlist *l)
{
	vec_fini(&l->pcs);
	map_fini(&l->seen);
	l->n = 0;
	l->skipped = 0;
}

static int check_layout(const struct golayout *l, struct err *e)
{
	static const enum layout_field fields[] = { LAYOUT_bucket_allnext, LAYOUT_bucket_typ,
						    LAYOUT_bucket_size, LAYOUT_bucket_nstk };
	int32_t size = l->off[LAYOUT_bucket_sizeof];

	if (size <= 0 || size > HEADER_MAX || size % 8)
		return err_set(e, -ENOTSUP, "layout (%s): a runtime.bucket of %d bytes", l->from,
			       size);
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (l->off[fields[i]] < 0 || l->off[fields[i]] > size - 8)
			return err_set(e, -ENOTSUP, "layout (%s): %s at %d of %d bytes", l->from,
				       layout_field_name(fields[i]), l->off[fields[i]], size);
	return 0;
}

static uint64_t word_at(const uint8_t *p, int32_t off)
{
	uint64_t v;

	memcpy(&v, p + off, sizeof(v));
	return v;
}

/* Objects have a size, waits have none. */
static bool size_fits(enum bucket_kind kind, uint64_t size)
{
	return kind == BUCKET_MEM ? size && !(size >> 48) : !size;
}

/* The header's fields, or -EBADMSG when this cannot be a bucket of that kind. */
static int check_header(const struct walk *w, const uint8_t *hdr, struct rtlist_bucket *b,
			struct err *e)
{
	uint64_t typ = word_at(hdr, w->layout->off[LAYOUT_bucket_typ]);
	uint64_t nstk = word_at(hdr, w->layout->off[LAYOUT_bucket_nstk]);
	unsigned long long at = b->addr;

	b->size = word_at(hdr, w->layout->off[LAYOUT_bucket_size]);
	if (typ != w->kind)
		return err_set(e, -EBADMSG, "bucket at 0x%llx: type %llu, not %s", at,
			       (unsigned long long)typ, bucket_kind_name(w->kind));
	if (nstk > LIMIT_BUCKET_STACK)
		return err_set(e, -EBADMSG, "bucket at 0x%llx: %llu pcs", at,
			       (unsigned long long)nstk);
	if (!size_fits(w->kind, b->size))
		return err_set(e, -EBADMSG, "bucket at 0x%llx: objects of %llu bytes", at,
			       (unsigned long long)b->size);
	b->nstk = (uint32_t)nstk;
	return 0;
}

static int keep_stack(struct rtlist *l, struct rtlist_bucket *b, struct err *e)
{
	if (l->pcs.n + b->nstk > LIMIT_BUCKET_PCS)
		return err_set(e, -E2BIG, "more than %d pcs in a profile's buckets",
			       LIMIT_BUCKET_PCS);
	b->stk = (uint32_t)l->pcs.n;
	for (uint32_t i = 0; i < b->nstk; i++) {
		uint64_t *pc = vec_add(&l->pcs, LIMIT_BUCKET_PCS);

		if (!pc)
			return err_set(e, -ENOMEM, "no memory for a bucket's stack");
		*pc = l->stk[i];
	}
	return 0;
}

/* Checks that a bucket may be at this place, and that none was there before. */
static int check_place(struct rtlist *l, uint64_t at, struct err *e)
{
	uint64_t seen;

	if (at % 8)
		return err_set(e, -EBADMSG, "bucket at 0x%llx: not aligned",
			       (unsigned long long)at);
	if (map_get(&l->seen, at, &seen))
		return err_set(e, -EBADMSG, "bucket at 0x%llx: the list is a cycle",
			       (unsigned long long)at);
	if (l->seen.n >= LIMIT_BUCKETS)
		return err_set(e, -E2BIG, "more than %d buckets", LIMIT_BUCKETS);
	if (!map_put(&l->seen, at, 0))
		return err_set(e, -ENOMEM, "no memory for %zu buckets", l->seen.n);
	return 0;
}

/*
 * Takes its stack and its record. Returns 1 when they are not readable, and then the list goes
 * on.
 */
static int take_rest(const struct walk *w, struct rtlist_bucket *b, uint64_t tail, struct err *e)
{
	struct rtlist *l = w->l;
	size_t before = l->pcs.n;
	int ret = mem_read(w->m, tail, l->stk, (size_t)b->nstk * 8, e);

	if (!ret)
		ret = keep_stack(l, b, e);
	b->record = tail + 8 * (uint64_t)b->nstk;
	if (!ret)
		ret = w->take(w->arg, b, e);
	if (!ret) {
		l->n++;
		return 0;
	}
	l->pcs.n = before;
	return ret == -ESRCH || ret == -ENOMEM || ret == -E2BIG ? ret : 1;
}

/*
 * Takes the bucket at *@addr, and sets *@addr to the next. Negative: the walk cannot go on,
 * because the link is not to be trusted. 1: its header is good, and what follows it is not.
 */
static int take_bucket(const struct walk *w, uint64_t *addr, struct err *e)
{
	struct rtlist_bucket b = { .addr = *addr };
	uint64_t tail = b.addr + (uint64_t)w->layout->off[LAYOUT_bucket_sizeof];
	uint8_t hdr[HEADER_MAX];
	int ret = check_place(w->l, b.addr, e);

	if (!ret)
		ret = mem_read(w->m, b.addr, hdr, tail - b.addr, e);
	if (!ret)
		ret = check_header(w, hdr, &b, e);
	if (ret)
		return ret;
	*addr = word_at(hdr, w->layout->off[LAYOUT_bucket_allnext]);
	return take_rest(w, &b, tail, e);
}

int rtlist_walk(struct rtlist *l, struct mem *m, const struct golayout *layout,
		enum bucket_kind kind, uint64_t head, rtlist_take *take, void *arg, struct err *e)
{
	struct walk w = {
		.l = l, .m = m, .layout = layout, .kind = kind, .take = take, .arg = arg
	};
	uint64_t addr = head;
	int ret = check_layout(layout, e);

	while (!ret && addr) {
		ret = take_bucket(&w, &addr, e);
		l->skipped += ret != 0;
		if (ret < 0 && l->n)
			return 0; /* the list ends early, but some of it was read */
		if (ret > 0)
			ret = 0;
	}
	if (ret)
		return ret;
	/* None had a readable tail: the message is about the last one. */
	return l->skipped && !l->n ? -EFAULT : 0;
}
