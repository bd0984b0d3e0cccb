/*
 * user/host/news.h - programs that start while others are observed: heard of, looked at, and given to the engine.
 *
 * A child looks at them, and we go on meanwhile: a program whose file system does not answer costs the others nothing. It
 * stays for the next ones, and goes when none came for two seconds.
 * Files that are known are not looked at again. Where many start at once one look is for all of them.
 */
#ifndef HOST_NEWS_H
#define HOST_NEWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/loop/loop.h"
#include "base/map.h"
#include "base/vec.h"
#include "engine/engine.h"
#include "inspect/survey.h"
#include "probe/exec_watch.h"

/* Zeroed, but for what is to be set before; host_news_fini() always works. */
struct host_news {
	/* set before; loop and engine are borrowed */
	struct loop *loop;
	struct engine *engine;
	/* Where looks at programs of files that are known take more than this of one CPU, they are 0.3 s apart. 0: they may. */
	unsigned own_ppm;
	/* Is the program that @x tells of to be looked at? The engine knows of its exec already. May be NULL: all are. */
	bool (*wants)(void *arg, const struct exec_seen *x);
	/* What a look has found, before the engine gets those that are held. */
	void (*looked)(void *arg, struct survey *s);
	/*
	 * What became of one that was held, as by engine_add(); @comm is borrowed; -ESRCH: it has called exec since, too,
	 * and is among what is looked at next.
	 */
	void (*added)(void *arg, int ret, const struct err *e, pid_t pid, const char *comm,
		      bool became);
	/* What went wrong, of which lossy tells, too. */
	void (*say)(void *arg, const char *what);
	void *arg; /* of these */
	/* What is wanted of it is set before, too. It may have looked at others before. */
	struct survey survey;

	size_t unknown; /* programs that ended, or the window did, before anybody looked at them */
	size_t missed;	/* programs that could not be looked at; why was said once */
	bool lossy;	/* there were such, or what is as bad was said */
	bool put_off;	/* looks waited for the bound */

	/* private */
	struct exec_watch *watch; /* NULL: nobody tells of execs */
	VEC(pid_t) fresh;	  /* called exec, and were not looked at */
	struct map execs;	  /* pid -> when it called exec last, monotonic; while some wait */
	struct map begun; /* slot of a target -> how long after its exec it was begun with, in ns */
	int said;	  /* why the last look failed */
	size_t looked_at; /* by the last look, before which so many were seen: */
	size_t seen;
	unsigned ticks;	     /* since then */
	uint64_t since_ns;   /* the first step; what there was before is not counted: */
	uint64_t spent_ns;   /* CPU time of ours in steps */
	uint64_t adopted_ns; /* of that: what the engine took */
	uint64_t children_ns,
		files_ns; /* and of those that looked, and of that for files, up to since_ns */
};

/* From here on execs are heard of: of @root and its descendants, or 0: of all. Errors as exec_watch_open(). */
int host_news_open(struct host_news *n, pid_t root, struct err *e);
/* How many could not be heard of. */
uint64_t host_news_unheard(const struct host_news *n);

/* To be called after each event, and each 100 ms or so, with @tick then. */
void host_news_step(struct host_news *n, bool tick);

/* No look is under way after that (what was to be looked at is unknown), and what those that were had of CPU time is among that of children that have ended. */
void host_news_rest(struct host_news *n);

/* Gives the engine what the survey holds: the busiest have room first. */
void host_news_adopt(struct host_news *n);

/* How long after its exec @t was begun with, in ns: what it did before is missing. False: it ran already. */
bool host_news_begun(const struct host_news *n, const struct engine_target *t, uint64_t *ns);
/* @t has been handed over. */
void host_news_forget(struct host_news *n, const struct engine_target *t);

/* The engine may be freed before or after. */
void host_news_fini(struct host_news *n);

#endif
