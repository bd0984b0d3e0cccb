/*
 * user/collect/goroutine/goroutine_stack.h - the pcs on goroutines' stacks, each looked up once.
 *
 * A frame here is one pc together with the function that it called, because that decides which
 * wrappers are shown and at which instruction the line is looked up. An unwound stack is a list
 * of such frames.
 */
#ifndef COLLECT_GOROUTINE_GOROUTINE_STACK_H
#define COLLECT_GOROUTINE_GOROUTINE_STACK_H

#include "base/limits.h"
#include "base/map.h"
#include "base/vec.h"
#include "go/runtime/unwind.h"
#include "profile/profile.h"
#include "subject/subject.h"
#include "symbolize/stack_logical.h"

/* One call, inlined or not. */
struct gcall {
	uint64_t pc; /* logical return pc, live */
	bool elided; /* a wrapper, which neither profiles nor texts show */
	bool inlined;
	enum func_id id;
	const char *func, *file; /* borrowed from the binary */
	uint32_t line;
	uint32_t text[2]; /* ids of its lines of text + 1; 0: not made yet */
};

struct gframe {
	uint64_t pc, entry; /* live */
	int32_t delta;
	uint8_t flags;
	enum func_id id;   /* of the physical function */
	uint32_t first, n; /* calls, innermost first */
	bool known;	   /* false: no Go function is there */
};

/* The function that a goroutine begins in tells who owns it. */
enum gorigin { GORIGIN_USER, GORIGIN_SYSTEM, GORIGIN_FINALIZERS, GORIGIN_CLEANUPS };

struct gstacks {
	struct subject *s; /* borrowed, as is p */
	struct prof *p;
	struct logical *logical;
	int minor;
	struct map by_key, origins;
	VEC(struct gframe) frames;
	VEC(struct gcall) calls;
	VEC(uint64_t) pcs;    /* the pcs of one stack */
	unwind_cookies stack; /* the last stack that was unwound: indices of frames, leaf first */
	struct goframe buf[LIMIT_INLINE_DEPTH];
};

int gstacks_init(struct gstacks *k, struct subject *s, struct prof *p, struct err *e);
void gstacks_fini(struct gstacks *k);

/* Unwinds into k->stack. @u: look and arg are set here. */
int gstacks_unwind(struct gstacks *k, struct unwind *u, enum unwind_end *end, struct err *e);

/* How many calls of a stack the runtime of that Go version keeps by default. */
size_t gstacks_depth(const struct gstacks *k);

/*
 * k->stack as locations, leaf first, borrowed until the next call: its first calls, as many as
 * the runtime of that Go version keeps. *cut: there are more.
 */
int gstacks_locations(struct gstacks *k, const uint32_t **locs, size_t *nlocs, bool *cut,
		      struct err *e);

/* The location of the function that begins at the live address @pc, none for 0. */
int gstacks_entry(struct gstacks *k, uint64_t pc, const uint32_t **locs, size_t *nlocs,
		  struct err *e);

enum gorigin gstacks_origin(struct gstacks *k, uint64_t startpc);

/* Is the goroutine that runs finalizers, whose stack k->stack is, in one of the program's? */
bool gstacks_in_finalizer(const struct gstacks *k);

#endif
