/*
 * user/collect/source.h - a source: one way to learn a kind's numbers (read, enable or probe). A collector of heap, block
 * or mutex profiles chooses one when it starts, and from then on is nothing but that.
 */
#ifndef COLLECT_SOURCE_H
#define COLLECT_SOURCE_H

#include <stdbool.h>

#include "profile/profile.h"

/* As the functions of a collector (collect.h); @at is the source's own state. */
struct source {
	bool probes; /* its samples can have labels and types, which the runtime's own records do not have */
	int (*fd)(void *at);
	int (*poll)(void *at, struct err *e);
	int (*stop)(void *at, struct prof **out, struct err *e);
	void (*free)(void *at);
	int (*tick)(void *at, struct err *e);	     /* may be NULL */
	int (*begin)(void *at, struct err *e);	     /* may be NULL */
	const struct prof *(*first)(const void *at); /* may be NULL */
};

/* One that was chosen, and what it works on; owned. All zeros: none. */
struct sourced {
	const struct source *source;
	void *at;
};
void sourced_fini(struct sourced *by);

/* Makes *by a collector's state, which the functions below take. */
int sourced_new(struct sourced *by, void **state, struct err *e);
int sourced_fd(void *state);
int sourced_poll(void *state, struct err *e);
int sourced_tick(void *state, struct err *e);
int sourced_begin(void *state, struct err *e);
int sourced_stop(void *state, struct prof **out, struct err *e);
const struct prof *sourced_first(const void *state);
void sourced_free(void *state);

#endif
