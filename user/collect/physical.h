/*
 * user/collect/physical.h - physical frames, as the BPF side walks them, to samples.
 */
#ifndef COLLECT_PHYSICAL_H
#define COLLECT_PHYSICAL_H

#include "collect/kallsyms.h"
#include "collect/subject_priv.h"

/* Which frames are hidden at the leaf. */
enum hide {
	HIDE_NONE,
	HIDE_RUNTIME, /* heap: all frames of the runtime */
	/* block and mutex: those between blockevent or mutexevent and the function they blame */
	HIDE_WAITING,
	HIDE_PARKED, /* wait: the same, and all that parks, switches and preempts */
};

/* Turns the stacks of one profile into its locations; remembers what it looked up. */
struct physical {
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

void physical_init(struct physical *ph, struct subject *s, struct prof *p, enum hide hide);
void physical_fini(struct physical *ph);

/* Does it have frames, and no more than there can be? physical_add refuses others. */
static inline bool physical_whole(const struct gpb_stack *st)
{
	return st->nfirst && st->nkernel <= GPB_MAX_KERNEL &&
	       st->nfirst + st->nsecond <= GPB_MAX_USER;
}

/* Adds a sample with one stack; its pcs are as gpb_stack documents them. */
int physical_add(struct physical *ph, const struct gpb_stack *st, const int64_t *values,
		 const struct prof_label *labels, size_t nlabels, struct err *e);

/* Finds the rule of a live pc, as gpb_rule documents it. -ENOENT outside of Go text. */
int physical_rule(struct subject *s, uint64_t pc, struct gpb_rule *out);

/*
 * Finishes a stack of which a frame had no rule, from the memory that came with it, as far as
 * that reaches. @learn is told of every pc on the way. -EBADMSG when the record contradicts
 * itself.
 */
int physical_settle(struct subject *s, struct gpb_rec_raw *raw,
		    void (*learn)(void *arg, uint64_t pc, const struct gpb_rule *r), void *arg,
		    struct err *e);

#endif
