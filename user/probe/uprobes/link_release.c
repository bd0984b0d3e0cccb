/* user/probe/uprobes/link_release.c - a thread for each link that is closed, and where in the kernel it waits. */
#include "probe/uprobes/link_release.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* It makes a system call, and no more. */
enum { STACK = 64 << 10 };

/* How soon the thread is looked at for the first time, and how rarely at last. */
#define FIRST_LOOK_NS (1 * NS_PER_MS)
#define LAST_LOOK_NS  (64 * NS_PER_MS)

struct link_release {
	pthread_t thread;
	int fd;
	int tid;	 /* atomic; 0: it has not run yet */
	uint64_t cpu_ns; /* at its end */
	bool out;	 /* its breakpoints are, and its CPU time is counted */
};

static void *run(void *arg)
{
	struct link_release *l = arg;

	__atomic_store_n(&l->tid, gettid(), __ATOMIC_RELEASE);
	close(l->fd);
	l->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

static bool begin(struct link_release *l)
{
	pthread_attr_t attr;
	int ret;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	ret = pthread_create(&l->thread, &attr, run, l);
	pthread_attr_destroy(&attr);
	return !ret;
}

/* Is it over by @until (CLOCK_MONOTONIC)? 0: it is waited for. Then it is joined. */
static bool over_by(const struct link_release *l, uint64_t until)
{
	struct timespec at = { (time_t)(until / NS_PER_S), (long)(until % NS_PER_S) };

	if (!until)
		return !pthread_join(l->thread, NULL);
	return !pthread_clockjoin_np(l->thread, NULL, CLOCK_MONOTONIC, &at);
}

/* It was joined. */
static void forget(struct link_releases *r, size_t i)
{
	if (!r->at[i]->out)
		r->cpu_ns += r->at[i]->cpu_ns;
	free(r->at[i]);
	memmove(r->at + i, r->at + i + 1, (--r->n - i) * sizeof(r->at[0]));
}

/* Those that are over make room. */
static void forget_over(struct link_releases *r)
{
	for (size_t i = r->n; i-- > 0;)
		if (r->at[i]->out && over_by(r->at[i], 1))
			forget(r, i);
}

void link_release(struct link_releases *r, int fd)
{
	struct link_release *l;

	if (fd < 0)
		return;
	if (r->n == LINK_RELEASES_MAX)
		forget_over(r);
	if (r->n == LINK_RELEASES_MAX) {
		over_by(r->at[0], 0);
		forget(r, 0);
	}
	l = calloc(1, sizeof(*l));
	if (l) {
		l->fd = fd;
		if (begin(l)) {
			r->at[r->n++] = l;
			return;
		}
	}
	free(l);
	close(fd);
}

/* Does it wait for grace periods? Unknown is no. */
static bool waits_for_grace(const struct link_release *l)
{
	char path[64], stack[2048];
	int tid = __atomic_load_n(&l->tid, __ATOMIC_ACQUIRE);
	CLEANUP(closep) int fd = -1;
	ssize_t n;

	if (!tid)
		return false;
	snprintf(path, sizeof(path), "/proc/self/task/%d/stack", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, stack, sizeof(stack) - 1);
	if (n < 0)
		return false;
	stack[n] = '\0';
	return strstr(stack, " uprobe_unregister_sync+") != NULL;
}

static uint64_t cpu_so_far(const struct link_release *l)
{
	clockid_t clock;

	return pthread_getcpuclockid(l->thread, &clock) ? 0 : clock_ns(clock);
}

/* Looks at each whose breakpoints may still be in, at @at or as soon as it is over. Returns how many are left. */
static size_t look(struct link_releases *r, uint64_t at)
{
	size_t left = 0;

	for (size_t i = r->n; i-- > 0;) {
		struct link_release *l = r->at[i];

		if (l->out)
			continue;
		if (over_by(l, at)) {
			forget(r, i);
		} else if (waits_for_grace(l)) {
			r->cpu_ns += cpu_so_far(l);
			l->out = true;
		} else {
			left++;
		}
	}
	return left;
}

uint64_t link_releases_out(struct link_releases *r)
{
	uint64_t cpu, pause = FIRST_LOOK_NS;

	forget_over(r);
	while (look(r, now_ns() + pause))
		if (pause < LAST_LOOK_NS)
			pause *= 2;
	cpu = r->cpu_ns;
	r->cpu_ns = 0;
	return cpu;
}

void link_releases_over(struct link_releases *r)
{
	while (r->n) {
		over_by(r->at[r->n - 1], 0);
		forget(r, r->n - 1);
	}
}
