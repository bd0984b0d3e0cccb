/*
 * user/cli/job.h - one process being profiled, from its opening to its files.
 *
 * Each step carries on with what works, and says what does not.
 */
#ifndef CLI_JOB_H
#define CLI_JOB_H

#include "cli/profile_run.h"
#include "cli/window.h"

enum { JOB_KINDS_MAX = 8 };

enum job_origin {
	JOB_LIVE,     /* it ran already */
	JOB_HELD,     /* ours, held before its first instruction */
	JOB_FOLLOWED, /* a child that was met after its exec */
};

struct job_slot {
	struct job *job;
	const struct collector *c;
	void *state;	 /* NULL: did not start, or is done */
	bool ticked_off; /* its tick failed, and has said so */
	struct prof *prof;
	int fd; /* watched; -1 none */
};

struct job {
	const struct run_opts *o;
	pid_t pid;
	enum job_origin origin;
	struct collect_opts collect;
	struct subject *subject;
	struct window *window; /* borrowed; where its descriptors are watched */
	struct job_slot slots[JOB_KINDS_MAX];
	size_t n;
	int pidfd;	     /* watched; -1 none */
	uint64_t exec_ns;    /* JOB_FOLLOWED: when it called exec; monotonic */
	uint64_t start_ns;   /* when its collectors had been attached */
	uint64_t since_ns;   /* of the last step, for -v */
	uint64_t refresh_ns; /* when to look at its mappings again */
	unsigned generation; /* 1, or more when it is a later program of that pid */
	bool ready;	     /* its pidfd is readable */
	bool gone;	     /* job_alive has said so */
	bool became;	     /* another program, by exec: the process lives on */
	bool too_short;	     /* a child that was gone before all kinds had started: no failure */
	bool failed, lossy;  /* something was not delivered; was lost */
	size_t files;
	struct job *next;
};

/* Opens the subject. -ENOENT: it is no Go program. */
int job_open(const struct run_opts *o, pid_t pid, enum job_origin origin, struct job **out,
	     struct err *e);
void job_free(struct job *j);
DEFINE_FREEP(struct job, job)

/* Starts every kind and watches what they have to say; how many started. */
size_t job_start(struct job *j, struct window *w);

/* "cpu, heap" of those that started. */
void job_kinds_text(const struct job *j, char *buf, size_t cap);

/* False once the process is no more; *e says how. */
bool job_alive(struct job *j, struct err *e);

/* Each 100 ms or so, while it is alive: what its collectors follow in the target. */
void job_tick(struct job *j);

/* Stops, writes, and says what there is to say. Once. */
void job_finish(struct job *j);

/* With -v: how long the step before took. */
void job_step_done(struct job *j, const char *what);

#endif
