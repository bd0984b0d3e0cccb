/* user/host/order.c - the processes that have had most CPU time come first. */
#include "host/order.h"

#include <stdlib.h>
#include <time.h>
#include "base/clock.h"

static int by_cpu(const void *a, const void *b)
{
	const struct order *x = a, *y = b;

	if (x->cpu_ns != y->cpu_ns)
		return x->cpu_ns < y->cpu_ns ? 1 : -1;
	return (x->proc->pid > y->proc->pid) - (x->proc->pid < y->proc->pid);
}

struct order *order_busiest(struct survey_proc *at, size_t len, size_t *n)
{
	struct order *out = calloc(len ? len : 1, sizeof(*out));

	*n = 0;
	for (size_t i = 0; out && i < len; i++)
		if (at[i].target)
			out[(*n)++] = (struct order){ .cpu_ns = process_cpu_ns(at[i].pid),
						      .proc = &at[i] };
	if (out)
		qsort(out, *n, sizeof(*out), by_cpu);
	return out;
}
