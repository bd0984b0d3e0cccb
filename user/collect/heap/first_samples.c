/* user/collect/heap/first_samples.c - counts the Ps that had their first sample, and finds these samples. */
#include "collect/heap/first_samples.h"

#include "go/runtime/vars/rtvar.h"

enum { PS_MAX = 4096, NEXT_SAMPLE = 0, MEM_PROF_RATE = 8, P_ID = 0 };

void first_samples_init(struct first_samples *f, struct subject *s, int64_t rate)
{
	uint64_t addr;

	f->s = s;
	f->rate = rate;
	/* Guessed offsets may be right where something checks them, but here nothing does. */
	if (s->layout.how == LAYOUT_GUESSED || s->layout.off[LAYOUT_p_mcache] < 0)
		return;
	if (!rtvar_find(s->bin, RTVAR_ALLP, &addr, NULL) &&
	    !rtvar_plausible(s->target->mem, &s->layout, gobin_info(s->bin)->minor, RTVAR_ALLP,
			     addr + s->bias, NULL))
		f->allp = addr + s->bias;
}

void first_samples_fini(struct first_samples *f)
{
	map_fini(&f->known);
	map_fini(&f->ref);
}

/* Returns 1 when this P had its first sample, 0 when not, negative when this is no P. */
static int is_armed(struct first_samples *f, uint64_t p, uint32_t id, uint64_t *left)
{
	struct mem *m = f->s->target->mem;
	uint64_t mcache, word;
	uint32_t its_id;
	bool by_rate = gobin_info(f->s->bin)->minor >= 24;
	int ret;

	ret = mem_u32(m, p + P_ID, &its_id, NULL);
	if (ret || its_id != id)
		return -ENOTSUP;
	ret = mem_u64(m, p + (uint64_t)f->s->layout.off[LAYOUT_p_mcache], &mcache, NULL);
	if (!ret && !mcache)
		return 0; /* a P that is not in use has no mcache */
	if (!ret)
		ret = mem_u64(m, mcache + (by_rate ? MEM_PROF_RATE : NEXT_SAMPLE), &word, NULL);
	if (ret)
		return ret;
	if (by_rate)
		return (int64_t)word == f->rate;
	if (word <= INT64_MAX - *left)
		*left += word;
	return word != 0;
}

int first_samples_armed(struct first_samples *f, struct armed *out)
{
	struct mem *m = f->s->target->mem;
	struct armed a = { 0 };
	uint64_t slice[2], ps[PS_MAX]; /* slice: its base and length */

	if (!f->allp || mem_read(m, f->allp, slice, sizeof(slice), NULL) || !slice[1] ||
	    slice[1] > PS_MAX || mem_read(m, slice[0], ps, slice[1] * sizeof(*ps), NULL))
		return -ENOTSUP;
	a.of = (unsigned)slice[1];
	for (unsigned i = 0; i < a.of; i++) {
		int ret = is_armed(f, ps[i], i, &a.left);

		if (ret < 0)
			return -ENOTSUP;
		a.n += (unsigned)ret;
	}
	*out = a;
	return 0;
}

static int set_reference(struct first_samples *f, const struct rtbuckets *b, unsigned armed,
			 struct err *e)
{
	f->ref_armed = armed;
	f->ref_sum = 0;
	for (size_t i = 0; i < b->n; i++) {
		f->ref_sum += b->at[i].all_allocs;
		if (!map_put(&f->ref, b->at[i].addr, b->at[i].all_allocs))
			return err_set(e, -ENOMEM, "no memory for %zu buckets", b->n);
	}
	return 0;
}

int first_samples_begin(struct first_samples *f, const struct rtbuckets *b, unsigned armed,
			struct err *e)
{
	map_fini(&f->known);
	map_fini(&f->ref);
	f->known = f->ref = (struct map){ 0 };
	f->nknown = f->mixed = 0;
	return set_reference(f, b, armed, e);
}

/* All samples that came in since the reference reading are first samples. */
static int keep_all(struct first_samples *f, const struct rtbuckets *b, struct err *e)
{
	for (size_t i = 0; i < b->n; i++) {
		uint64_t was = 0, more;

		map_get(&f->ref, b->at[i].addr, &was);
		more = b->at[i].all_allocs - was;
		if (!more)
			continue;
		f->nknown += more;
		if (!map_put(&f->known, b->at[i].addr, first_samples_of(f, b->at[i].addr) + more))
			return err_set(e, -ENOMEM, "no memory for %zu buckets", b->n);
	}
	return 0;
}

int first_samples_learn(struct first_samples *f, const struct rtbuckets *b, unsigned armed,
			struct err *e)
{
	uint64_t sum = 0, came, first;

	for (size_t i = 0; i < b->n; i++)
		sum += b->at[i].all_allocs;
	came = sum - f->ref_sum;
	first = armed > f->ref_armed ? armed - f->ref_armed : 0;
	if (first > came)
		/*
		 * a P is set before its sample is counted, so the sample will be there in a
		 * moment
		 */
		return 0;
	if (first && first == came) {
		int ret = keep_all(f, b, e);

		if (ret)
			return ret;
	} else {
		f->mixed += first;
	}
	return set_reference(f, b, armed, e);
}

uint64_t first_samples_of(const struct first_samples *f, uint64_t bucket)
{
	uint64_t n = 0;

	map_get(&f->known, bucket, &n);
	return n;
}
