/*
 * user/base/loop/worker.h - a thread that does for us what may wait for ever, and is left behind where it does.
 *
 * Memory and files of other processes may not answer: a lock of theirs is held by who waits for a file server, a page does
 * not come. No timer and no signal that we could handle ends such a wait (only our own end does). A thread that waits so costs
 * us nothing but its stack.
 */
#ifndef BASE_LOOP_WORKER_H
#define BASE_LOOP_WORKER_H

#include <stdbool.h>
#include <sys/types.h>

/* Something to do: on the heap, and all that it uses is its own or outlives it. */
struct worker_job {
	void (*run)(struct worker_job *j);
	/* Releases it, from the thread that was left behind, when the wait has ended after all. */
	void (*drop)(struct worker_job *j);
	pid_t asks; /* whose memory or files it asks; 0: nobody's */
};

struct worker;

/*
 * Has *w do the job, and waits; *w is NULL at first, and begins its thread here. True: it was done, and @j is the caller's again.
 * False: it waits for something (has not run at all for LIMIT_STUCK_MS, or LIMIT_STUCK_BUSY_MS where the process that it asks ran
 * meanwhile), or takes longer than LIMIT_JOB_MS: @j is left to the thread,
 * and *w is NULL: the next job has another one. Also false where there is no thread; then @j was dropped.
 */
bool worker_do(struct worker **w, struct worker_job *j);
/* No job is under way. */
void worker_free(struct worker *w);

#endif
