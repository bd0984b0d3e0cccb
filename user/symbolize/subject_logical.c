/* user/symbolize/subject_logical.c - gets names and mappings out of a live target. */
#include "symbolize/subject_logical.h"
#include "symbolize/subject_prof.h"

static int frames(void *arg, uint64_t addr, struct goframe *f, size_t cap, uint64_t *entry)
{
	struct subject *s = arg;
	const struct image *img;
	struct gofunc fn;
	int ret = subject_func(s, addr, &fn, &img);

	if (ret)
		return ret;
	*entry = fn.entry + img->bias;
	return subject_frames(s, addr, f, cap, NULL);
}

static int mapping(void *arg, struct prof *p, uint64_t addr, struct err *e)
{
	return subject_mapping(arg, p, addr, e);
}

int subject_logical(struct subject *s, struct prof *p, struct logical **out, struct err *e)
{
	struct logical_source src = { .frames = frames,
				      .mapping = mapping,
				      .arg = s,
				      .prof = p,
				      .minor = gobin_info(s->bin)->minor };

	return logical_new(&src, out, e);
}
