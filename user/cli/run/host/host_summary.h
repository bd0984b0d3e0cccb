/*
 * user/cli/run/host/host_summary.h - where the host's CPU time, memory or waits went, and whose goroutines there
 * are: by process, five functions each.
 */
#ifndef CLI_RUN_HOST_HOST_SUMMARY_H
#define CLI_RUN_HOST_HOST_SUMMARY_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "base/vec.h"
#include "engine/engine.h"
#include "profile/profile.h"
#include "subject/open.h"

enum { SUMMARY_TOP = 5, SUMMARY_NAME = 96, SUMMARY_ROWS = 20 };

/* Processes below this share of all CPU time are summed up in one line. */
#define SUMMARY_LEAST 0.001

enum summary_of {
	SUMMARY_CPU,
	SUMMARY_HEAP,
	SUMMARY_BLOCK,
	SUMMARY_MUTEX,
	SUMMARY_WAIT,
	SUMMARY_GOROUTINE,
	SUMMARY_ALLOC,
	SUMMARY_BLOCK_PROBED,
	SUMMARY_MUTEX_PROBED
};

struct summary_row {
	pid_t pid;
	char name[SUMMARY_NAME];
	/* ns of CPU time that the kernel charged; of the others, what its samples have: bytes in use or allocated, ns, goroutines */
	uint64_t value;
	/* The standard error of that, where it is an estimate (prof_error()); found out here as well. */
	bool estimated;
	double error;
	uint64_t lost;	  /* of its samples and stacks, loss_total() */
	const char *note; /* "ended", "became another program"; NULL */
	struct {
		char func[SUMMARY_NAME];
		double share; /* of the process' */
	} top[SUMMARY_TOP];
	size_t ntop;
};

/* More rows than this are summed up, but for the largest: a host may start ten programs a second. */
enum { SUMMARY_KEPT = 1024 };

struct summary {
	enum summary_of of;
	VEC(struct summary_row) rows;
	/* of the processes that have no row any more: how many, how many of them had any of it, or only losses, how much */
	size_t gone, gone_busy, gone_lost;
	uint64_t gone_value;
	double gone_variance;
	bool gone_unsure; /* of some of them the error is not known */
};

/* @p: its profile; NULL: it has no samples. @row's value is found out here, but for CPU time. False: no memory. */
bool summary_add(struct summary *s, const struct summary_row *row, const struct prof *p);
/* The same of what @p has more than @first, an earlier one of the same process; both grow. */
bool summary_add_since(struct summary *s, const struct summary_row *row, const struct prof *p,
		       const struct prof *first);

/*
 * The largest first; those after SUMMARY_ROWS, and those that have next to nothing, in one line.
 * @window_ns: of all.
 */
void summary_print(struct summary *s, uint64_t window_ns, FILE *f);

void summary_fini(struct summary *s);

/*
 * Tells what the window cost, beside its bounds. @unseen: programs that ended before anybody looked at them, whose CPU time nobody knows.
 * @put_off: to keep to the bounds, programs that started were looked at later.
 */
void summary_cost(struct engine_cost c, uint64_t unseen, bool put_off,
		  const struct collect_opts *o);

#endif
