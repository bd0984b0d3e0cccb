/* user/cli/host_order.c - the processes that have had most CPU time come first. */
#include "cli/host_order.h"

#include <stdlib.h>
#include <time.h>

/* 0 of one that has gone. */
static uint64_t cpu_of(pid_t pid)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

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
			out[(*n)++] = (struct order){ .cpu_ns = cpu_of(at[i].pid), .proc = &at[i] };
	if (out)
		qsort(out, *n, sizeof(*out), by_cpu);
	return out;
}
