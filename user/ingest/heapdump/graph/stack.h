/*
 * user/ingest/heapdump/graph/stack.h - variables on a stack that pointers lead to.
 *
 * Since Go 1.12 a local variable whose address is taken, or a slice's array on the stack, is a
 * stack object: the collector finds it by the pointers to it, and its own pointers by a record of the
 * function. The dumper writes a frame's pointers without those of its stack objects, so that what
 * only they hold would look like garbage. Here the place of such an object is known by the pointer to
 * it, and not its size: from there to the end of its frame each word counts that is the address of an
 * object, as in a conservative collector. A word that is no longer used may hold something, too.
 *
 * Source: dumpframe() in runtime/heapdump.go (locals bitmap alone), scanframeworker() in
 * runtime/mgcmark.go (state.addObject), Go 1.12 to 1.27.
 */
#ifndef INGEST_HEAPDUMP_STACK_H
#define INGEST_HEAPDUMP_STACK_H

#include "base/vec.h"
#include "ingest/heapdump/heapdump.h"

/* Of one goroutine, whose frames come from the innermost, with the lowest addresses, to the root. */
struct dumpstack {
	bool on;	      /* this Go has stack objects */
	uint64_t sp, len;     /* of the frame that is read */
	uint64_t from;	      /* the first byte of its stack objects; len: it has none */
	VEC(uint64_t) beyond; /* addresses in frames that are still to come */
};

/* The frames of a goroutine follow. @s: zeroed before the first one. @version: of the dump. */
void dumpstack_goroutine(struct dumpstack *s, unsigned version, const struct heapdump_params *p);
void dumpstack_fini(struct dumpstack *s);
void dumpstack_frame(struct dumpstack *s, uint64_t sp, uint64_t len);
/* A word of the frame: does it lead to a variable on this stack? */
void dumpstack_word(struct dumpstack *s, uint64_t addr);

#endif
