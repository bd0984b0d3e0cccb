/*
 * user/symbolize/stack_physical.h - physical frames, as the BPF side walks them, to samples.
 */
#ifndef SYMBOLIZE_STACK_PHYSICAL_H
#define SYMBOLIZE_STACK_PHYSICAL_H

#include "goprof_abi.h"
#include "profile/profile.h"
#include "subject/subject.h"
#include "target/host/kallsyms.h"

/* Which frames are hidden at the leaf. */
enum hide {
	HIDE_NONE,
	HIDE_RUNTIME, /* heap: all frames of the runtime */
	/* block and mutex: those between blockevent or mutexevent and the function they blame */
	HIDE_WAITING,
	HIDE_PARKED, /* wait: the same, and all that parks, switches and preempts */
};

/* Turns the stacks of one profile into its locations; remembers what it looked up. */
struct stack_physical {
	struct subject *s;   /* borrowed */
	struct prof *p;	     /* borrowed */
	struct kallsyms *ks; /* owned; NULL until a kernel frame is met */
	struct map seen;     /* pc (and how it was entered) -> location */
	uint64_t pseudo[5];  /* live pcs of runtime._System and its like, 0 unknown */
	bool pseudo_known;
	enum hide hide;
	bool outside;	    /* the present stack is not Go's */
	int kernel_mapping; /* id; 0: not made yet */
};

void stack_physical_init(struct stack_physical *ph, struct subject *s, struct prof *p,
			 enum hide hide);
void stack_physical_fini(struct stack_physical *ph);

/* Adds a sample with one stack; its pcs are as gpb_stack documents them. */
int stack_physical_add(struct stack_physical *ph, const struct gpb_stack *st, const int64_t *values,
		       const struct prof_label *labels, size_t nlabels, struct err *e);

#endif
