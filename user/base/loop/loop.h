/*
 * user/base/loop/loop.h - wait while others collect: until the time is up, somebody asks to stop, or
 * step() ends it.
 *
 * One loop serves any number of descriptors, which may come and go while it waits.
 */
#ifndef BASE_LOOP_LOOP_H
#define BASE_LOOP_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum loop_end {
	LOOP_TIME, /* the time was up */
	LOOP_STOP, /* somebody asked to stop */
	LOOP_OVER, /* step() ended it */
};

struct loop;
int loop_new(struct loop **out, struct err *e);
void loop_free(struct loop *l);
DEFINE_FREEP(struct loop, loop)

/*
 * Calls @ready while @fd is readable, until @ready returns nonzero or the descriptor has only an
 * error, which would make it ready for ever. @ready may watch more descriptors, but must not
 * unwatch any. @fd -1: nothing is done.
 */
int loop_watch(struct loop *l, int fd, int (*ready)(void *arg), void *arg, struct err *e);
/* To be called before @fd is closed; does nothing when it is not watched. */
void loop_unwatch(struct loop *l, int fd);

struct loop_opts {
	uint64_t duration_ns; /* 0: no end by time */
	int stop_fd;	      /* readable: asked to stop; -1 none */
	/*
	 * Called after each event, and at least each 100 ms (then with @tick, and the time that
	 * has passed). True ends the wait. Descriptors may be unwatched here.
	 */
	bool (*step)(void *arg, bool tick, uint64_t done_ns);
	void *arg;
};

/* Returns 0, how it ended, and after how long; negative when waiting itself does not work. */
int loop_wait(struct loop *l, const struct loop_opts *o, enum loop_end *end, uint64_t *lasted_ns,
	      struct err *e);

#endif
