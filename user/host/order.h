/* user/host/order.h - who comes first, where there may not be room for all: probes have room for a number of files. */
#ifndef HOST_ORDER_H
#define HOST_ORDER_H

#include "inspect/survey.h"

struct order {
	uint64_t cpu_ns;	  /* all that it has had */
	struct survey_proc *proc; /* borrowed */
};

/*
 * Those of a survey that are held, by the CPU time that they have had: the most first. *n: how many. The caller frees; NULL:
 * no memory.
 */
struct order *order_busiest(struct survey_proc *at, size_t len, size_t *n);

#endif
