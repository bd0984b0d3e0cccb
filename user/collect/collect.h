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

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "profile/profile.h"

enum source { SOURCE_AUTO, SOURCE_READ, SOURCE_PROBE, SOURCE_ENABLE };

struct collect_opts {
	unsigned hz;	    /* CPU samples per second of each thread's CPU time */
	uint64_t heap_rate; /* bytes per sample, for SOURCE_PROBE and SOURCE_ENABLE */
	/*
	 * Block profiles: a wait of this length (ns) or longer is always counted, a shorter one
	 * in proportion.
	 */
	uint64_t block_rate;
	uint64_t mutex_fraction; /* one contention in so many is counted */
	uint64_t wait_rate;	 /* as block_rate, for wait profiles */
	uint64_t window_ns;	 /* how long the profile will last, 0: unknown */
	/* largest share of the target's CPU time that probes may take; 0: no bound */
	unsigned budget_ppm;
	uint64_t budget_ahead_ns; /* what they may take before that bound applies */
	enum source source;	  /* only SOURCE_ENABLE writes to the target */
	bool verbose;		  /* report each step */
	bool kernel;		  /* kernel frames in CPU profiles */
	bool goid;		  /* a numeric label "goid" */
	bool labels; /* goroutine labels on probed heap, block, mutex and wait samples */
	bool types;  /* label probed heap samples with the type that was allocated */
	bool text;   /* --format text will be written: keep what only that format shows */
	/* nobody asked for that rate: probes may sample more densely (fine_rate.h) */
	bool fine_heap, fine_block, fine_mutex, fine_wait;
	bool held;   /* the target is held before its first instruction */
	bool others; /* more kinds are started after this one, and nobody polls meanwhile */
	/* Progress and warnings, one line without newline; may be NULL. */
	void (*say)(void *arg, const char *line);
	void *say_arg;
};

struct subject;
int subject_open(pid_t pid, const struct collect_opts *o, struct subject **out, struct err *e);
void subject_free(struct subject *s);
DEFINE_FREEP(struct subject, subject)
const char *subject_comm(const struct subject *s);	 /* for file names; no '/' in it */
const char *subject_go_version(const struct subject *s); /* "go1.22.12" */
/* Readable when the target exits. */
int subject_pidfd(const struct subject *s);
/* Reads its mappings again, for pcs that were met since: libraries come and go. */
void subject_refresh(struct subject *s);
/* 0; -ESRCH when it exited or became another program, with a sentence. */
int subject_alive(struct subject *s, struct err *e);
/* To be asked after that: does it live on, as another program? */
bool subject_became(const struct subject *s);

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
};

extern const struct collector collector_cpu, collector_heap, collector_block, collector_mutex,
	collector_wait, collector_goroutine;

#endif
