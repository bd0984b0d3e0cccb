/*
 * user/collect/collect.h - gather profiles of one live process. The front door of collect/.
 *
 * A subject is one target, understood: process, binary, layout, symbolizer. It holds no
 * process-wide state, so that hundreds can live side by side. A collector is one kind of
 * profile; several run on one subject at once:
 *
 *	subject_open -> [collector start]* -> poll until the window ends -> [stop]* -> free
 *
 * stop() also works after the target has gone: what was collected is still there.
 */
#ifndef COLLECT_COLLECT_H
#define COLLECT_COLLECT_H

#include "go/layout/layout.h"
#include "profile/profile.h"
#include "subject/open.h"

struct collector {
	const char *kind; /* "cpu", "heap", ...: also the file name's part */
	/*
	 * Prepares, or attaches: when it returns the window has begun, or it begins with begin().
	 */
	int (*start)(struct subject *s, const struct collect_opts *o, void **state, struct err *e);
	/* A descriptor to poll for reading, or -1; poll() then drains without blocking. */
	int (*fd)(void *state);
	int (*poll)(void *state, struct err *e);
	/* Detach and hand over the profile (caller frees). */
	int (*stop)(void *state, struct prof **out, struct err *e);
	void (*free)(void *state); /* also after a failed or missing stop() */
	/* Each 100 ms or so, after subject_alive: follow what changed in the target. May be NULL. */
	int (*tick)(void *state, struct err *e);
	/*
	 * When all kinds are ready: on return the window has begun. Else the first poll() does it. May be
	 * NULL.
	 */
	int (*begin)(void *state, struct err *e);
	/*
	 * Could it be probed in a program built as @b, with offsets @l? This is judged by the file alone;
	 * start() checks more. -ENOTSUP with the reason. NULL: that is not asked.
	 */
	int (*possible)(struct gobin *b, const struct golayout *l, struct err *e);
	/*
	 * After stop(), of one whose numbers are since the program's start: what they were when the window began, borrowed; NULL where that
	 * is not known, or is what stop() has handed over. May be NULL.
	 */
	const struct prof *(*first)(const void *state);
};

extern const struct collector collector_cpu, collector_heap, collector_block, collector_mutex,
	collector_wait, collector_goroutine;

#endif
