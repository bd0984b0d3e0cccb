/* user/base/loop/worker.c - the thread, and how long it is waited for. */
#include "base/loop/worker.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/sys/process.h"

enum { STACK = 512 << 10, LOOK_MS = 100 };

struct worker {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct worker_job *job; /* NULL: it has nothing to do */
	bool end;		/* when it has nothing to do, it ends, and frees this */
	pid_t tid;		/* 0: it has not begun */
};

static void release(struct worker *w)
{
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

/* The next job; NULL: there are no more. */
static struct worker_job *next_job(struct worker *w)
{
	struct worker_job *j;

	pthread_mutex_lock(&w->lock);
	while (!w->job && !w->end)
		pthread_cond_wait(&w->changed, &w->lock);
	j = w->job;
	pthread_mutex_unlock(&w->lock);
	return j;
}

/* True: somebody waits for it. */
static bool hand_back(struct worker *w)
{
	bool left;

	pthread_mutex_lock(&w->lock);
	left = w->end;
	w->job = NULL;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	return !left;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct worker_job *j;

	__atomic_store_n(&w->tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
	while ((j = next_job(w)) != NULL) {
		j->run(j);
		if (!hand_back(w)) {
			j->drop(j);
			break;
		}
	}
	release(w);
	return NULL;
}

/* All signals are others': a handler may do what only the main thread may. */
static struct worker *begin(void)
{
	struct worker *w = calloc(1, sizeof(*w));
	sigset_t all, before;
	pthread_condattr_t clock;
	pthread_attr_t attr;
	pthread_t thread;
	int ret;

	if (!w)
		return NULL;
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&w->changed, &clock);
	pthread_condattr_destroy(&clock);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	ret = pthread_create(&thread, &attr, work, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	if (!ret)
		return w;
	release(w);
	return NULL;
}

/* How long is waited for a job. */
struct patience {
	uint64_t begun;
	struct still still;
	pid_t asks;
	uint64_t cpu_ns; /* of that process, when it was looked at first; 0: not yet */
};

/*
 * Where many threads want few CPUs, whoever holds the lock of a busy process' memory waited for one so long that 1 s was not enough in
 * two runs of five (nine programs that allocate all the time, each allocation probed, two CPUs).
 */
static uint64_t most_ms(struct patience *p)
{
	uint64_t cpu_ns = p->asks ? process_cpu_ns(p->asks) : 0;

	if (!p->cpu_ns)
		p->cpu_ns = cpu_ns;
	return cpu_ns != p->cpu_ns ? LIMIT_STUCK_BUSY_MS : LIMIT_STUCK_MS;
}

static bool is_over(const struct worker *w, struct patience *p)
{
	pid_t tid = __atomic_load_n(&w->tid, __ATOMIC_ACQUIRE);
	uint64_t most = most_ms(p);

	return (tid && process_still_ms(&p->still, tid) >= most) ||
	       now_ns() - p->begun >= LIMIT_JOB_MS * NS_PER_MS;
}

static bool wait_for(struct worker *w)
{
	struct patience p = { .begun = now_ns(), .asks = w->job->asks };
	uint64_t at = p.begun;

	while (w->job) {
		struct timespec until;

		at += LOOK_MS * NS_PER_MS;
		until = (struct timespec){ .tv_sec = (time_t)(at / NS_PER_S),
					   .tv_nsec = (long)(at % NS_PER_S) };
		if (pthread_cond_timedwait(&w->changed, &w->lock, &until) == ETIMEDOUT && w->job &&
		    is_over(w, &p))
			return false;
	}
	return true;
}

bool worker_do(struct worker **w, struct worker_job *j)
{
	bool done;

	if (!*w)
		*w = begin();
	if (!*w) {
		j->drop(j);
		return false;
	}
	pthread_mutex_lock(&(*w)->lock);
	(*w)->job = j;
	pthread_cond_signal(&(*w)->changed);
	done = wait_for(*w);
	(*w)->end = !done;
	pthread_mutex_unlock(&(*w)->lock);
	if (!done)
		*w = NULL;
	return done;
}

void worker_free(struct worker *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	w->end = true;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
}
