/* user/subject/calling.c - where a stack of Go ends. */
#include "subject/calling.h"

enum { FLAG_TOP_FRAME = 1, FLAG_SP_WRITE = 2 };

struct calling calling_of(struct subject *s, uint64_t call_pc)
{
	const struct image *img;
	struct calling p;

	if (subject_func(s, call_pc, &p.f, &img))
		p.f = (struct gofunc){ .id = FUNC_NORMAL };
	p.bin = img->bin;
	return p;
}

/*
 * These functions write sp only between setting and clearing m.vdsoSP, and there the walk starts
 * from what Go saved. Outside of that their sp delta holds, and we know the caller where Go's own
 * profile shows only the leaf. Source: runtime/time_linux_amd64.s, sys_linux_amd64.s.
 */
static bool reads_the_clock(const struct calling *p)
{
	static const char *const names[] = { "time.now", "runtime.nanotime1", "runtime.walltime",
					     "runtime.walltime1" };
	const char *name = gobin_func_name(p->bin, &p->f);

	for (size_t i = 0; name && i < ARRAY_LEN(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

bool calling_ends_stack(const struct calling *p)
{
	const struct gofunc *f = &p->f;

	if (f->id == FUNC_MCALL || f->id == FUNC_GOEXIT || f->id == FUNC_MSTART ||
	    f->id == FUNC_RT0_GO || (f->flags & FLAG_TOP_FRAME))
		return true;
	/* This function writes sp, but in a way that can be unwound. */
	if (f->id == FUNC_CGOCALLBACK)
		return false;
	return (f->flags & FLAG_SP_WRITE) && !reads_the_clock(p);
}

bool calling_from_outside(const struct calling *p)
{
	const char *name = gobin_func_name(p->bin, &p->f);

	return name && (!strncmp(name, "runtime.sigreturn", 17) ||
			!strcmp(name, "runtime.sigtramp") || !strcmp(name, "crosscall2"));
}
