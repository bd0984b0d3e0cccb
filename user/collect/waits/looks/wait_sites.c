/* user/collect/waits/looks/wait_sites.c - finds the first frame that is not machinery. */
#include "collect/waits/looks/wait_sites.h"

#include "collect/site_errors.h"

static bool is_machinery(struct subject *s, uint64_t pc)
{
	const char *name = subject_func_name(s, pc);

	return name && site_is_machinery(name);
}

size_t wait_site_depth(struct subject *s, const struct gpb_stack *st)
{
	size_t from = st->nkernel, n = from + st->nfirst + st->nsecond;

	for (size_t i = from; i < n && i < GPB_MAX_PCS; i++)
		if (!is_machinery(s, st->pc[i] - 1))
			return i - from + 1;
	return 1;
}

static const char *func_at(struct subject *s, uint64_t pc)
{
	const char *name = subject_func_name(s, pc - 1);

	return name ? name : "";
}

bool wait_site_asked(struct subject *s, const struct gpb_stack *st)
{
	bool asked = false;

	for (size_t i = 0; i < st->nfirst; i++) {
		const char *name = func_at(s, st->pc[i]);

		if (asked)
			return strncmp(name, "runtime.", 8) != 0;
		asked = !strcmp(name, "runtime.semacquire1");
	}
	return true;
}
