/* user/subject/verify.c - checks offsets before use that were not read from this very build. */
#include "subject/verify.h"

#include "go/runtime/vars/rtvar.h"
#include "go/runtime/waitreason.h"

/*
 * A program that collects all the time had no tiny block open for up to 34 ms on an idle machine;
 * where it must wait for a CPU it takes longer.
 */
enum { TINY_LOOKS = 200 };

static int wrap(struct subject *s, int ret, struct err *e)
{
	return ret < 0 ? err_wrap(e, ret, "pid %d: %s, and its structs are not sure",
				  s->target->pid, gobin_info(s->bin)->version) :
			 ret;
}

int verify_structs(struct subject *s, unsigned int use, struct err *e)
{
	const struct gobin_info *info = gobin_info(s->bin);
	struct golayout l = s->layout;
	uint64_t allgs = 0, allp = 0;
	int ret;

	/* These are numbers that no DWARF explains. */
	if (s->layout.newer && (use & (LAYOUT_USE_WAITS | LAYOUT_USE_GOROUTINES))) {
		ret = waitreason_check(s->bin, s->target->mem, s->bias, e);
		if (ret)
			return wrap(s, ret, e);
	}
	if (layout_is_sure(&l))
		return 0;
	ret = layout_check_code(s->bin, &l, use, e);
	if (!ret)
		ret = rtvar_find(s->bin, RTVAR_ALLGS, &allgs, e);
	if (!ret)
		ret = layout_check_goroutines(s->target->mem, &l, allgs + s->bias,
					      info->text + s->bias, info->etext + s->bias,
					      use & LAYOUT_USE_GOROUTINES, e);
	if (!ret && (use & LAYOUT_USE_PROBE))
		ret = rtvar_find(s->bin, RTVAR_ALLP, &allp, e);
	if (!ret && (use & LAYOUT_USE_PROBE))
		ret = layout_check_tiny(s->target->mem, &l, allp + s->bias, TINY_LOOKS, e);
	if (ret)
		return wrap(s, ret, e);
	s->layout = l;
	return 0;
}

int verify_buckets(struct subject *s, uint64_t mbuckets, struct err *e)
{
	int ret;

	if (layout_is_sure(&s->layout))
		return 0;
	ret = layout_check_buckets(s->target->mem, &s->layout, mbuckets, e);
	return wrap(s, ret, e);
}

int verify_contention(struct subject *s, enum bucket_kind kind, uint64_t buckets, struct err *e)
{
	static const enum rtvar vars[BUCKET_KINDS] = { [BUCKET_MEM] = RTVAR_MBUCKETS,
						       [BUCKET_BLOCK] = RTVAR_BBUCKETS,
						       [BUCKET_MUTEX] = RTVAR_XBUCKETS };
	uint64_t heads[BUCKET_KINDS] = { 0 };
	int ret;

	if (layout_is_sure(&s->layout))
		return 0;
	for (int i = BUCKET_MEM; i < BUCKET_KINDS; i++)
		if (i != (int)kind && subject_rtvar(s, vars[i], &heads[i], NULL))
			heads[i] = 0;
	heads[kind] = buckets;
	ret = layout_check_contention(s->target->mem, &s->layout, kind, heads, e);
	return wrap(s, ret, e);
}
