/* user/base/loop/wake_timer.c - see base/loop/wake_timer.h. */
#include "base/loop/wake_timer.h"

#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

int wake_timer_open(struct wake_timer *t, struct err *e)
{
	*t = (struct wake_timer){ .fd = timerfd_create(CLOCK_MONOTONIC,
						       TFD_NONBLOCK | TFD_CLOEXEC) };
	return t->fd < 0 ? err_sys(e, "timer") : 0;
}

void wake_timer_close(struct wake_timer *t)
{
	closep(&t->fd);
	t->fd = -1;
}

void wake_timer_set(struct wake_timer *t, uint64_t at_ns)
{
	struct itimerspec spec = {};

	if (at_ns == UINT64_MAX)
		at_ns = 0;
	if (at_ns == t->at_ns)
		return;
	t->at_ns = at_ns;
	spec.it_value.tv_sec = (time_t)(at_ns / 1000000000u);
	spec.it_value.tv_nsec = (long)(at_ns % 1000000000u);
	timerfd_settime(t->fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

void wake_timer_heard(struct wake_timer *t, uint64_t now)
{
	uint64_t rings;

	if (t->at_ns && t->at_ns <= now && read(t->fd, &rings, sizeof(rings)) == sizeof(rings))
		t->at_ns = 0;
}
