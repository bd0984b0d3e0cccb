/*
 * user/collect/waits/wait/wait_window.h - waits of every kind, as a kind of wait_engine.h: its changes of a
 * goroutine's status, its system calls, and the runtime's own goroutines.
 *
 * A goroutine does nothing between two waits except run, and the runtime itself counts how often
 * goroutines begin to run. So numbers of short waits agree with that count (wait_estimates.h).
 *
 * Looks do not count system calls (looks_conf.all). Windows count long ones when they end,
 * whenever they began. When every look finds a goroutine in a system call at the same place, that
 * may be one call that never ended, or many calls. It is taken for many if some window saw a call
 * end at that stack.
 */
#ifndef COLLECT_WAITS_WAIT_WAIT_WINDOW_H
#define COLLECT_WAITS_WAIT_WAIT_WINDOW_H

#include "collect/waits/engine/wait_estimates.h"
#include "engine/fine_rate.h"

enum wait_whole { WAIT_WHOLE_PROGRAM, WAIT_WHOLE_RUNTIME };

struct wait_window {
	struct wait_engine
		engine; /* groups: GPB_WAIT_SHORT, _LONG or _CALL; whole: enum wait_whole */
	struct gpb_waiting conf;
	struct fine_waits light; /* what was seen before anything counted */
	bool (*by_runtime)(struct subject *s, const struct gpb_stack *st);
	struct map leaves; /* for system calls: function -> the pc that stands for it */
};

/*
 * @w must be zero but for what wait_engine_init() allows. It must not be moved afterwards. @by_runtime: does a
 * stack belong to one of the runtime's own goroutines, which the profile leaves out?
 */
void wait_window_init(struct wait_window *w,
		      bool (*by_runtime)(struct subject *s, const struct gpb_stack *st));
/* Takes a stack that came through the ring. */
int wait_window_add(void *w, const struct gpb_stack *st, struct err *e);

/* For struct wait_kind. @w: a wait_window. */
struct wait_estimate wait_window_estimate(const void *w, size_t entry);
struct wait_error wait_window_site(const void *w, size_t site);
/* For all waits of the program's own goroutines. */
struct wait_error wait_window_whole(const struct wait_window *w);
void wait_window_fini(struct wait_window *w);

#endif
