/* user/base/loop/wake_timer.h - a descriptor that is readable from a chosen moment on, for who looks after many. */
#ifndef BASE_LOOP_WAKE_TIMER_H
#define BASE_LOOP_WAKE_TIMER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct wake_timer {
	int fd;		/* to be polled for reading; -1: none */
	uint64_t at_ns; /* what it is set to; 0: it is not */
};

int wake_timer_open(struct wake_timer *t, struct err *e);
void wake_timer_close(struct wake_timer *t);
/* CLOCK_MONOTONIC, ns; one that has passed: at once; 0 and UINT64_MAX: never. To set the same again costs nothing. */
void wake_timer_set(struct wake_timer *t, uint64_t at_ns);
/* Where it has rung by @now, it is not readable any more until it is set again. */
void wake_timer_heard(struct wake_timer *t, uint64_t now);

#endif
