/*
 * user/collect/survey.h - the Go processes of this machine, and what would work on each.
 *
 * Each executable is understood once, however many processes run it; what is not Go's is told
 * by its section names. Nothing is written to a process, none is stopped.
 */
#ifndef COLLECT_SURVEY_H
#define COLLECT_SURVEY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "collect/container.h"

enum { SURVEY_WHY = 320 };

/* Works, or why not; a sentence for people. */
struct survey_answer {
	bool yes;
	char why[SURVEY_WHY];
};

/* The kinds of profile that have a rate, records and three sources. */
enum survey_rate { SURVEY_RATE_HEAP, SURVEY_RATE_BLOCK, SURVEY_RATE_MUTEX, SURVEY_RATES };

struct survey_sources {
	struct survey_answer read, probe, enable;
};

/*
 * A rate of the running process: bytes, CPU ticks (1: every wait), one in so many; 0 off. ""
 * in why when it is known.
 */
struct survey_value {
	bool known;
	int64_t value;
	char why[SURVEY_WHY];
};

/* One file with Go code, the same for all processes that run it. */
struct survey_build {
	char version[256]; /* "go1.22.12"; foreign bytes, as all strings here */
	char path[1024];   /* main package; "" unknown */
	char module[1024], module_version[256];
	char broken[SURVEY_WHY]; /* Go's, but cannot be understood: why; else "" */
	bool library;		 /* of a C program (c-shared) */
	bool pie, dynamic, cgo, stripped, dwarf;
	int race;     /* 1, 0, -1 not recorded */
	int endpoint; /* net/http/pprof is linked in: 1, 0, -1 unknown */
	struct survey_answer layout;
	/* The places where probes would sit: of heap, block, mutex and wait profiles. */
	struct survey_answer alloc, park, queue, status;
	char layout_from[64];
	bool layout_guessed; /* a Go that is not known here */
	struct {
		bool found;
		uint64_t addr; /* link-time */
		char why[SURVEY_WHY];
	} rate[SURVEY_RATES], buckets[SURVEY_RATES], mprofcycle, allgs;
};

struct survey_proc {
	pid_t pid;
	uid_t uid;	 /* effective; (uid_t)-1 unknown */
	char comm[64];	 /* foreign bytes */
	char *exe;	 /* path, foreign bytes; owned */
	int exe_deleted; /* or replaced: 1, 0, -1 unknown */
	struct container where;
	const struct survey_build *build; /* borrowed from the survey */
	struct survey_value rate[SURVEY_RATES];
	struct survey_answer cpu, wait, goroutine;
	struct survey_sources sources[SURVEY_RATES];
};

struct survey_file; /* private */

struct survey {
	VEC(struct survey_proc) at;  /* by pid */
	size_t seen;		     /* processes with a program, Go's or not */
	size_t denied;		     /* that could not be looked at */
	bool hidden;		     /* /proc does not even name others' processes (hidepid) */
	size_t left_out;	     /* Go processes for which there was no room or memory */
	char denied_why[SURVEY_WHY]; /* of the first of them */

	VEC(struct survey_file) files; /* private: every file that was looked at */
	struct map by_key;	       /* private */
};

/* -ENOENT: no /proc. Single processes are never an error: they may be gone, or not be ours. */
int survey_run(struct survey *out, struct err *e);
void survey_fini(struct survey *s);

#endif
