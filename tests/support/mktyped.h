/*
 * tests/support/mktyped.h - a heap dump of the program of mktypes.h, and the types that flow in it.
 */
#ifndef TESTS_MKTYPED_H
#define TESTS_MKTYPED_H

#include "ingest/typing_roots.h"
#include "mktypes.h"

/* The program was loaded so much higher than its file says. */
#define MKTYPED_BIAS 0x10000000ull

struct mktyped {
	struct gotypes *t;
	struct heapdump *d;
	struct dumpgraph g;
	struct classes c;
	struct typing_index ix;
	struct typing_program program;
	struct flow x;
};

/* How many objects the stack has room for; 0: as many as usual. */
extern uint32_t mktyped_stack_max;

/* Reads the dump in @fd (borrowed), and types its objects. */
int mktyped_read(struct mktyped *m, int fd, const struct mktypes *how, struct err *e);
void mktyped_fini(struct mktyped *m);

/* What the object is that an address lies in; "" when there is none. */
const char *mktyped_name(const struct mktyped *m, uint64_t addr);
enum heap_certainty mktyped_certainty(const struct mktyped *m, uint64_t addr);

#endif
