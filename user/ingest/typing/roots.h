/* user/ingest/typing/roots.h - where types start: what is no object of the heap but points to some. */
#ifndef INGEST_TYPING_ROOTS_H
#define INGEST_TYPING_ROOTS_H

#include "ingest/typing/flow.h"

/* Finalizers, panics and deferred calls. A pass over the dump's end; damage is no error. */
int roots_exact(struct flow *x, struct err *e);
void roots_globals(struct flow *x);
/* The same for frames: only words that are live there, as the dump says, are looked at. */
int roots_frames(struct flow *x, struct err *e);
/*
 * From Go 1.12 on the dump does not say what is live of variables that pointers lead to, the stack's
 * objects. Their pointers may be old ones, so that this comes last: what has a type keeps it.
 */
int roots_stack_objects(struct flow *x, struct err *e);

/* All of it in the right order, after flow_init(). */
int roots_flow(struct flow *x, struct err *e);

#endif
