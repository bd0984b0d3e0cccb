/*
 * user/cli/run/job.h - one process being profiled, from its opening to its files.
 *
 * Each step carries on with what works, and says what does not.
 */
#ifndef CLI_RUN_JOB_H
#define CLI_RUN_JOB_H

#include "base/loop/loop.h"
#include "cli/run/profile_run.h"

enum { JOB_KINDS_MAX = 8 };

enum job_origin {
	JOB_LIVE, /* it already ran when we came */
	JOB_HELD, /* ours, and held before its first instruction */
	JOB_MET, /* ours, and met after its exec: it could not be held, or has loaded a Go library since */
};

struct job_slot {
	struct job *job;
	const struct collector *c;
	void *state;	 /* NULL: it did not start, or it is finished */
	bool ticked_off; /* its tick failed, and has reported that */
	struct prof *prof;
	int fd; /* watched; -1: none */
};

struct job {
	const struct run_opts *o;
	pid_t pid;
	enum job_origin origin;
	struct collect_opts collect;
	struct subject *subject;
	struct loop *loop; /* borrowed; where its descriptors are watched */
	struct job_slot slots[JOB_KINDS_MAX];
	size_t n;
	int pidfd;	     /* watched; -1: none */
	uint64_t exec_ns;    /* JOB_MET: when it called exec; monotonic */
	uint64_t start_ns;   /* when its collectors had been attached; monotonic */
	uint64_t since_ns;   /* when the last step was done, for -v */
	uint64_t refresh_ns; /* when its mappings are to be looked at again */
	bool ready;	     /* its pidfd is readable */
	bool gone;	     /* job_alive() has reported its end */
	bool became;	     /* it is another program now, by exec; the process lives on */
	bool stopped;	     /* we were asked to stop before all kinds had started */
	bool failed, lossy;  /* something was not delivered; something was lost */
	struct job *next;
};

/* Opens the subject, whose probes *@attachers will keep, and NULL: a process of its own. -ENOENT: it is no Go program. */
int job_open(const struct run_opts *o, pid_t pid, enum job_origin origin,
	     struct attacher_process **attachers, struct job **out, struct err *e);
void job_free(struct job *j);
DEFINE_FREEP(struct job, job)

/* Starts every kind and watches the descriptors of each; returns how many started. */
size_t job_start(struct job *j, struct loop *w);

/* "cpu, heap" of those that started. */
void job_kinds_text(const struct job *j, char *buf, size_t cap);

/* False when the process has ended; *e says how. */
bool job_alive(struct job *j, struct err *e);

/*
 * To be called each 100 ms or so while the process is alive, so that its collectors follow
 * changes in the target.
 */
void job_tick(struct job *j);

/* Stops the collectors, writes to @files and reports. To be called once. */
void job_finish(struct job *j, struct run_files *files);

/* With -v: how long the step before took. */
void job_step_done(struct job *j, const char *what);

#endif
