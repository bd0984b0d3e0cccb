/*
 * user/collect/heap/heap_read.c - turns runtime buckets into pprof samples, as runtime/pprof does it.
 */
#include "collect/heap/heap_read.h"

#include "go/runtime/vars/rtvar.h"
#include "profile/scale.h"
#include "subject/verify.h"
#include "symbolize/subject_logical.h"

static int find(struct subject *s, enum rtvar v, uint64_t *addr, struct err *e)
{
	int ret = subject_rtvar(s, v, addr, e);

	return ret ? err_wrap(e, ret, "pid %d: heap profile", s->target->pid) : 0;
}

int heap_read_find(struct subject *s, struct rtbucket_vars *out, struct err *e)
{
	struct rtbucket_vars v = { .minor = gobin_info(s->bin)->minor };
	int ret = find(s, RTVAR_MBUCKETS, &v.mbuckets, e);

	if (!ret)
		ret = find(s, RTVAR_MEMPROFILERATE, &v.memprofilerate, e);
	if (!ret)
		ret = find(s, RTVAR_MPROFCYCLE, &v.mprofcycle, e);
	if (!ret)
		ret = verify_buckets(s, v.mbuckets, e);
	if (!ret)
		*out = v;
	return ret;
}

int heap_read_rate(struct subject *s, const struct rtbucket_vars *v, int64_t *rate, struct err *e)
{
	int ret = rtvar_plausible(s->target->mem, &s->layout, v->minor, RTVAR_MEMPROFILERATE,
				  v->memprofilerate, e);

	return ret ? ret : mem_read(s->target->mem, v->memprofilerate, rate, sizeof(*rate), e);
}

/*
 * Up to Go 1.26 the estimate starts from the byte count, and the label is bytes / objects, absent
 * when that is 0. From 1.27 on both come from the bucket's size.
 */
static bool by_size(const struct subject *s)
{
	return s->layout.off[LAYOUT_memcycle_sizeof] == 16;
}

static int64_t label_bytes(const struct subject *s, const struct rtbucket *b)
{
	if (by_size(s))
		return (int64_t)b->size;
	return (int64_t)b->allocs > 0 ? (int64_t)b->alloc_bytes / (int64_t)b->allocs : 0;
}

struct scaled heap_read_scale(const struct subject *s, const struct rtbucket *b, int64_t objects,
			      int64_t rate)
{
	return scale_heap(objects, objects * (int64_t)b->size, by_size(s) ? (int64_t)b->size : 0,
			  rate);
}

struct reading {
	struct subject *s;
	int64_t rate;
};

static void published(void *arg, const struct rtbucket *b, int64_t *values)
{
	const struct reading *r = arg;
	int64_t size = by_size(r->s) ? (int64_t)b->size : 0;
	struct scaled alloc = scale_heap((int64_t)b->allocs, (int64_t)b->alloc_bytes, size,
					 r->rate);
	struct scaled inuse = scale_heap((int64_t)(b->allocs - b->frees),
					 (int64_t)(b->alloc_bytes - b->free_bytes), size, r->rate);

	values[0] = alloc.objects;
	values[1] = alloc.bytes;
	values[2] = inuse.objects;
	values[3] = inuse.bytes;
	values[4] = heap_read_scale(r->s, b, (int64_t)b->all_allocs, r->rate).bytes;
}

static int add_bucket(struct logical *l, struct subject *s, const struct rtbuckets *all,
		      const struct rtbucket *b, struct prof *p, const int64_t *values,
		      struct err *e)
{
	const uint64_t *pcs = all->pcs + b->stk;
	struct prof_label label = { .key = "bytes", .num = label_bytes(s, b) };
	size_t hide = logical_hidden(l, pcs, b->nstk), nlocs;
	const uint32_t *locs;
	int ret;

	ret = logical_locations(l, pcs + hide, b->nstk - hide, &locs, &nlocs, e);
	if (!ret && !nlocs && hide)
		ret = logical_locations(l, pcs, b->nstk, &locs, &nlocs, e);
	if (ret)
		return ret;
	return prof_sample(p, locs, nlocs, values, &label, label.num != 0, e);
}

int heap_read_samples(struct subject *s, const struct rtbuckets *all, struct prof *p,
		      heap_values *values, void *arg, struct err *e)
{
	CLEANUP(logical_freep) struct logical *l = NULL;
	int ret = subject_logical(s, p, &l, e);

	for (size_t i = 0; !ret && i < all->n; i++) {
		int64_t val[PROF_VALUES_MAX] = { 0 };

		values(arg, &all->at[i], val);
		ret = add_bucket(l, s, all, &all->at[i], p, val, e);
	}
	prof_loss(p)->n[LOSS_BUCKETS_SKIPPED] += all->skipped;
	prof_loss(p)->n[LOSS_BUCKETS_TORN] += all->torn;
	return ret;
}

static int add_header(const struct rtbuckets *b, struct prof *p, struct err *e)
{
	static const char *const types[][2] = { { "alloc_objects", "count" },
						{ "alloc_space", "bytes" },
						{ "inuse_objects", "count" },
						{ "inuse_space", "bytes" } };
	int ret = prof_set_period(p, "space", "bytes", b->rate, e);

	for (size_t i = 0; !ret && i < ARRAY_LEN(types); i++)
		ret = prof_add_type(p, types[i][0], types[i][1], e);
	/* What was allocated until now, bytes: Go publishes that at the end of GC cycles, and differences of two readings are asked for. */
	if (!ret)
		prof_add_aside(p);
	if (!ret)
		ret = prof_comment(p, e, "window: since the program started, %s %u",
				   b->before_first_gc ? "before its first GC; GC cycle" :
							"as of its GC cycle",
				   b->cycle);
	if (!ret)
		ret = prof_comment(p, e, "rate: one sample in %lld bytes, by the program itself",
				   (long long)b->rate);
	if (!ret)
		ret = prof_comment(p, e, "hits: %zu buckets", b->n);
	return ret;
}

int heap_read_profile(struct subject *s, const struct rtbucket_vars *v, struct prof *p,
		      struct err *e)
{
	CLEANUP(rtbuckets_fini) struct rtbuckets b = { 0 };
	struct reading r = { .s = s };
	int ret;

	ret = verify_buckets(s, v->mbuckets, e);
	if (ret)
		return ret;
	ret = rtbuckets_read(s->target->mem, &s->layout, v, &b, e);
	if (ret)
		return err_wrap(e, ret, "pid %d", s->target->pid);
	r.rate = b.rate;
	ret = add_header(&b, p, e);
	if (!ret)
		ret = heap_read_samples(s, &b, p, published, &r, e);
	return ret;
}
