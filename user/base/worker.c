/* user/base/worker.c - the thread, and how long it is waited for. */
#include "base/worker.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/limits.h"

enum { STACK = 512 << 10, LOOK_MS = 100, STATUS_MAX = 4096 };

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

/* The number behind @name in the text of a status file. */
static uint64_t number(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static bool read_status(pid_t tid, char text[STATUS_MAX])
{
	CLEANUP(closep) int fd = -1;
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, STATUS_MAX - 1);
	text[n > 0 ? n : 0] = 0;
	return n > 0;
}

/* How often it has run and stopped, while it waits in the kernel for what no signal ends; 0: it does not. */
static uint64_t waits(const struct worker *w)
{
	pid_t tid = __atomic_load_n(&w->tid, __ATOMIC_ACQUIRE);
	char text[STATUS_MAX];

	if (!tid || !read_status(tid, text) || !strstr(text, "\nState:\tD"))
		return 0;
	return 1 + number(text, "\nvoluntary_ctxt_switches:") +
	       number(text, "\nnonvoluntary_ctxt_switches:");
}

/* Whoever gets no CPU is not stuck, and whoever waits for many things one after the other is not, either. */
struct patience {
	uint64_t begun, since; /* since: when it began to be in the wait */
	uint64_t wait;
};

static bool is_over(const struct worker *w, struct patience *p)
{
	uint64_t now = now_ns(), wait = waits(w);

	if (!wait || wait != p->wait)
		p->since = now;
	p->wait = wait;
	return (wait && now - p->since >= LIMIT_STUCK_MS * NS_PER_MS) ||
	       now - p->begun >= LIMIT_JOB_MS * NS_PER_MS;
}

static bool wait_for(struct worker *w)
{
	struct patience p = { .begun = now_ns() };
	uint64_t at = p.begun;

	p.since = at;
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
