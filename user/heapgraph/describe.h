/* user/heapgraph/describe.h - what things are called, and goroutines with the same stack. */
#ifndef HEAPGRAPH_DESCRIBE_H
#define HEAPGRAPH_DESCRIBE_H

#include "heapgraph/classes.h"
#include "heapgraph/heapgraph.h"

enum { DESCRIBE_BYTES = 512 };

/* "goroutine 7 (chan receive)", "main.worker of goroutine 7", "object 0xc000012345: main.node". */
void describe_thing(const struct heapgraph *h, const struct classes *c, uint32_t thing,
		    char to[DESCRIBE_BYTES]);
/* Where in a global variable: "main.cache.items", "main.table+8"; "": itself, or it is no variable. */
void describe_part(const struct heapgraph *h, const struct holder *r, uint64_t offset, char *to,
		   size_t cap);
/* "runnable", "waiting", ... of holder.state. */
const char *describe_state(uint8_t state);

/*
 * Things that only the program dominates, those with one name together: many objects that several
 * roots share, such as the entries of a cache, are no heavy thing each, but they are together.
 */
struct held_group {
	uint32_t example; /* the heaviest of them, a thing */
	uint32_t count;
	uint64_t retained; /* by all of them; nothing counts twice */
};
/* The @max with the most bytes, by falling bytes; *n: how many there are in @out. */
int held_groups(const struct heapgraph *h, const struct classes *c, struct held_group *out,
		size_t max, size_t *n, struct err *e);

/* Goroutines that are in one state, for one reason, with the same functions on their stacks. */
struct goroutine_group {
	uint32_t first;	 /* a holder: one of them */
	uint32_t frames; /* how many its stack has; they are the holders before @first */
	uint32_t count;
	uint64_t retained; /* sum of what each retains */
};
/* By falling count; the caller frees *out. */
int goroutine_groups(const struct heapgraph *h, struct goroutine_group **out, size_t *n,
		     struct err *e);

#endif
