/*
 * user/inspect/survey.h - the Go processes of this machine, and which profiles would work on
 * each.
 *
 * Each executable is examined once, however many processes run it; files that are not Go's are
 * recognized by their section names. Nothing is written to a process, and none is stopped.
 */
#ifndef INSPECT_SURVEY_H
#define INSPECT_SURVEY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "go/layout/layout.h"
#include "target/host/container.h"

enum { SURVEY_WHY = 320 };

/* It works, or why not: a sentence for people. */
struct survey_answer {
	bool yes;
	char why[SURVEY_WHY];
};

/* The kinds of profile that have a rate, records and three sources. */
enum survey_rate { SURVEY_RATE_HEAP, SURVEY_RATE_BLOCK, SURVEY_RATE_MUTEX, SURVEY_RATES };

/* What is found out of a process and its file, beside what CPU profiles need; of the rest the answer is empty. */
enum survey_wants {
	SURVEY_HEAP = 1 << SURVEY_RATE_HEAP,
	SURVEY_BLOCK = 1 << SURVEY_RATE_BLOCK,
	SURVEY_MUTEX = 1 << SURVEY_RATE_MUTEX,
	SURVEY_WAIT = 1 << SURVEY_RATES,
	SURVEY_GOROUTINE = SURVEY_WAIT << 1,
	SURVEY_ENABLE = SURVEY_WAIT << 2, /* survey_sources.enable of those */
	SURVEY_LINKED = SURVEY_WAIT << 3, /* the race detector and the endpoint */
	SURVEY_EVERYTHING = (SURVEY_LINKED << 1) - 1,
};

struct survey_sources {
	struct survey_answer read, probe, enable;
};

/*
 * A rate of the running process: bytes, CPU ticks (1: every wait), or one in so many; 0: off. why
 * is "" when it is known.
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
	char broken[SURVEY_WHY]; /* it is Go's but cannot be understood: why; else "" */
	bool library;		 /* it is a library of a C program (c-shared) */
	bool pie, dynamic, cgo, stripped, dwarf;
	int race;     /* 1, 0, -1 not recorded */
	int endpoint; /* net/http/pprof is linked in: 1, 0, -1 unknown */
	struct survey_answer layout;
	/* The places where probes would be put: for heap, block, mutex and wait profiles. */
	struct survey_answer alloc, park, queue, status;
	struct golayout offsets; /* where layout.yes */
	bool layout_guessed;	 /* it is a Go that is not known here */
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
	int exe_deleted; /* deleted or replaced: 1, 0, -1 unknown */
	struct container where;
	bool silent; /* its files or its memory do not answer */
	bool no_go; /* survey.named: there is no Go program of this number; cpu.why is the whole sentence */
	int judged; /* what survey.judge said */
	/*
	 * Only while survey.judge and survey.hold are asked; borrowed; foreign bytes. Its arguments with blanks between
	 * them, and the paths of its cgroups, each on a line; NULL: they could not be read.
	 */
	const char *command, *cgroups;
	bool command_cut;		  /* it has more arguments than LIMIT_COMMAND */
	const struct survey_build *build; /* borrowed from the survey */
	struct survey_value rate[SURVEY_RATES];
	struct survey_answer cpu, wait, goroutine;
	struct survey_sources sources[SURVEY_RATES];
	/* where survey.hold wants it: the process, at rest (target/handover.h); owned, may be taken out */
	struct target *target;
};

struct target;
struct survey_file;   /* private */
struct survey_run;    /* private */
struct survey_rights; /* private */

struct survey {
	unsigned
		wants; /* set before: enum survey_wants; what is looked at with one survey is looked at for the same */
	bool named; /* set before: each is told of: what is no Go program, too, in closed */
	/*
	 * Set before, may be NULL: which processes are to be handed over as survey_proc.target, so that
	 * nobody opens them a second time. It is asked in a child.
	 */
	bool (*hold)(void *arg, const struct survey_proc *p);
	/*
	 * Set before, may be NULL: gives survey_proc.judged, also of survey.closed. It sees arguments and cgroups as a whole,
	 * which are too long to be kept. Mostly it is asked in a child.
	 */
	int (*judge)(void *arg, const struct survey_proc *p);
	void *arg;		    /* of both */
	VEC(struct survey_proc) at; /* by pid */
	size_t seen;		    /* processes with a program, whether Go's or not */
	uint64_t files_ns;	    /* CPU time of the child's for files that it examined */
	size_t denied;		    /* processes that could not be examined */
	/*
	 * Those, and those that did not answer, with what is known without examining them: build is NULL, cpu.why says why,
	 * exe may be NULL; of those that are silent the arguments were not read. Whether they are Go's is not known. At most
	 * LIMIT_SURVEY; more are only counted.
	 */
	VEC(struct survey_proc) closed;
	bool hidden;	 /* of all processes: /proc does not even name others' (hidepid) */
	size_t left_out; /* Go processes that there was no room or memory for */
	char denied_why[SURVEY_WHY]; /* of the first of them */
	/*
	 * Processes whose files or memory did not come within LIMIT_STUCK_MS (a file system that does not
	 * answer), or whose files broke what looked at them
	 */
	VEC(pid_t) unanswered;

	VEC(struct survey_file)
	files;		   /* private: files that were looked at, but for those of long ago */
	uint64_t uses;	   /* private: of files */
	struct map by_key; /* private */
	struct survey_rights *rights; /* private; owned */
	struct survey_run *run;	      /* private: one that is under way, or its child; owned */
	VEC(pid_t) dying;	      /* private: children of ours */
};

/*
 * -ENOENT: no /proc. A single process is never an error: it may be gone, or belong to another
 * user. A child looks at them, and is left behind where it waits for what does not come: so one
 * process costs LIMIT_STUCK_MS, and the others are told. After LIMIT_UNANSWERED such ones the rest is
 * counted in left_out. @out is zeroed, but for what is to be set before.
 */
int survey_run(struct survey *out, struct err *e);
/*
 * Looks at these processes, too. @s is zeroed, or has been filled before: what is known of files is
 * not looked at again. Where s->at was forgotten, the files that were used least recently are forgotten now, too, but for
 * LIMIT_SURVEY_KEPT. What it finds is appended to s->at; a process may be there twice then.
 */
int survey_more(struct survey *s, const pid_t *pids, size_t n, struct err *e);
/*
 * The same, for those who have something else to do meanwhile: survey_begin(), then survey_step() whenever survey_fd()
 * can be read, and each 100 ms or so. It returns 0 while it goes on, 1 when everything is told, and an error when
 * nothing more comes; then survey_stop(). survey_fd() is the same until then, and -1 when there is none. The child waits for the
 * next look (a fork costs as much as a look at a process whose file is known) until survey_rest().
 */
int survey_begin(struct survey *s, const pid_t *pids, size_t n, struct err *e);
int survey_fd(const struct survey *s);
int survey_step(struct survey *s, struct err *e);
/* How many of them are not told of yet. */
size_t survey_to_come(const struct survey *s);
void survey_stop(struct survey *s);
void survey_rest(struct survey *s);
/* The CPU time of the child that looks, or waits. When it ends, that is among what children that have ended had. */
uint64_t survey_child_ns(const struct survey *s);
/* Forgets s->at and s->closed, and keeps what is known of files. */
void survey_forget(struct survey *s);
void survey_fini(struct survey *s);

#endif
