/*
 * user/subject/open.h - one target, understood: process, binary, layout, symbolizer. The front door of subject/.
 *
 * It holds no process-wide state, so that hundreds can live side by side.
 */
#ifndef SUBJECT_OPEN_H
#define SUBJECT_OPEN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "base/err.h"

enum source_wanted { SOURCE_AUTO, SOURCE_READ, SOURCE_PROBE, SOURCE_ENABLE };

/* A rate with .fine was asked for by nobody: probes may sample more densely (engine/fine_rate.h). */
struct cpu_opts {
	unsigned hz; /* samples per second of each thread's CPU time */
	bool kernel; /* frames of the kernel, too */
};
struct heap_opts {
	uint64_t rate; /* bytes per sample, for SOURCE_PROBE and SOURCE_ENABLE */
	bool fine;
	bool types; /* label probed samples with the type that was allocated */
};
struct wait_opts {
	uint64_t
		rate_ns; /* a wait of this length or longer is always counted, a shorter one in proportion */
	bool fine;
};
struct mutex_opts {
	uint64_t fraction; /* one contention in so many is counted */
	bool fine;
};
/* What probes may take of one target. */
struct budget_opts {
	unsigned ppm;	   /* largest share of its CPU time; 0: no bound */
	uint64_t ahead_ns; /* what they may take before that bound applies */
};
/* Of many targets; 0: no bound. */
struct own_work;
struct host_budget_opts {
	unsigned own_ppm;     /* of one CPU, for our own work */
	unsigned taken_ppm;   /* of the targets' CPU time */
	struct own_work *own; /* what own_ppm leaves for readings (sampling/own_work.h); borrowed */
};

struct collect_opts {
	struct cpu_opts cpu;
	struct heap_opts heap;
	struct wait_opts block, wait;
	struct mutex_opts mutex;
	struct budget_opts budget;
	struct host_budget_opts host;
	enum source_wanted source; /* only SOURCE_ENABLE writes to the target */
	uint64_t window_ns;	   /* how long the profile will last, 0: unknown */
	bool verbose;		   /* report each step */
	bool goid;		   /* a numeric label "goid" */
	bool labels; /* goroutine labels on probed heap, block, mutex and wait samples */
	bool text;   /* --format text will be written: keep what only that format shows */
	double ticks_per_second; /* of the processor; 0: to be measured */
	bool held;		 /* the target is held before its first instruction */
	/*
	 * The process that keeps the probes of all kinds (probe/uprobes/attacher.h), which may not be there yet; borrowed. NULL: each target
	 * has its own, or many together.
	 */
	struct attacher_process **attachers;
	bool load_ahead; /* many targets: none is there yet, and the first is not to wait for what probes it */
	bool unmet; /* many targets: one that no sample has met has a profile of CPU time, too, whose comments tell of it */
	bool others; /* more kinds are started after this one, and nobody polls meanwhile */
	/* Progress and warnings, one line without newline; may be NULL. */
	void (*say)(void *arg, const char *line);
	void *say_arg;
};

struct subject;
struct binaries;
struct golayout;
int subject_open(pid_t pid, const struct collect_opts *o, struct subject **out, struct err *e);
/*
 * The same of one that is held already (target/target.h); @t is taken over, also on error. What is known of its executable is
 * shared with others that run it (subject/binary.h); @cache may be NULL. @known: the offsets of its executable, where somebody
 * has found them out already; or NULL.
 */
struct target;
int subject_adopt(struct target *t, const struct collect_opts *o, struct binaries *cache,
		  const struct golayout *known, struct subject **out, struct err *e);
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

#endif
