/*
 * user/cli/window.h - wait while others collect: until the time is up, a wish, or the end.
 *
 * One loop for any number of descriptors, which may come and go while it waits.
 */
#ifndef CLI_WINDOW_H
#define CLI_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum window_end {
	WINDOW_TIME, /* it lasted as long as it should */
	WINDOW_STOP, /* somebody asked to stop */
	WINDOW_OVER, /* step() said so */
};

struct window;
int window_new(struct window **out, struct err *e);
void window_free(struct window *w);
DEFINE_FREEP(struct window, window)

/*
 * Calls @ready while @fd is readable, until it returns nonzero or the descriptor is only in
 * error, which would be ready for ever. @ready may watch more, and must not unwatch. @fd -1:
 * nothing to do.
 */
int window_watch(struct window *w, int fd, int (*ready)(void *arg), void *arg, struct err *e);
/* Before @fd is closed; nothing when it is not watched. */
void window_unwatch(struct window *w, int fd);

struct window_opts {
	uint64_t duration_ns; /* 0: no end by time */
	int stop_fd;	      /* readable: asked to stop; -1 none */
	/*
	 * After each event, and each 100 ms at least (@tick, with the time that has passed):
	 * true ends the wait. Here descriptors may be unwatched.
	 */
	bool (*step)(void *arg, bool tick, uint64_t done_ns);
	void *arg;
};

/* 0 and how it ended, and after how long; negative when waiting itself does not work. */
int window_wait(struct window *w, const struct window_opts *o, enum window_end *end,
		uint64_t *lasted_ns, struct err *e);

/* CLOCK_MONOTONIC */
uint64_t window_now_ns(void);

#endif
