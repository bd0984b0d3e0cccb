/* user/base/loop/loop.c - one epoll loop. */
#include "base/loop/loop.h"

#include <poll.h>
#include <sys/epoll.h>
#include <time.h>
#include "base/clock.h"

#define TICK_NS 100000000ull

struct watch {
	int fd;
	int (*ready)(void *arg);
	void *arg;
	struct watch *next;
};

struct loop {
	int ep;
	struct watch *watches;
};

int loop_new(struct loop **out, struct err *e)
{
	CLEANUP(loop_freep) struct loop *l = calloc(1, sizeof(*l));

	if (!l)
		return err_set(e, -ENOMEM, "no memory to wait");
	l->ep = epoll_create1(EPOLL_CLOEXEC);
	if (l->ep < 0)
		return err_sys(e, "epoll");
	*out = TAKE(l);
	return 0;
}

void loop_free(struct loop *l)
{
	struct watch *next;

	if (!l)
		return;
	for (struct watch *at = l->watches; at; at = next) {
		next = at->next;
		free(at);
	}
	closep(&l->ep);
	free(l);
}

int loop_watch(struct loop *l, int fd, int (*ready)(void *arg), void *arg, struct err *e)
{
	struct watch *at;
	struct epoll_event ev = { .events = EPOLLIN };

	if (fd < 0)
		return 0;
	at = malloc(sizeof(*at));
	if (!at)
		return err_set(e, -ENOMEM, "no memory to wait");
	*at = (struct watch){ .fd = fd, .ready = ready, .arg = arg, .next = l->watches };
	ev.data.ptr = at;
	if (epoll_ctl(l->ep, EPOLL_CTL_ADD, fd, &ev)) {
		int code = errno;

		free(at);
		errno = code;
		return err_sys(e, "cannot wait");
	}
	l->watches = at;
	return 0;
}

void loop_unwatch(struct loop *l, int fd)
{
	for (struct watch **p = &l->watches; *p; p = &(*p)->next) {
		struct watch *at = *p;

		if (at->fd != fd)
			continue;
		epoll_ctl(l->ep, EPOLL_CTL_DEL, fd, NULL);
		*p = at->next;
		free(at);
		return;
	}
}

/*
 * Sleeps until a descriptor is ready or @ns have passed, and serves one descriptor: the kernel
 * hands out ready ones in turn.
 */
static int serve(struct loop *l, uint64_t ns, struct err *e)
{
	struct epoll_event ev;
	/* rounded up, or the loop would spin through the last millisecond */
	int n = epoll_wait(l->ep, &ev, 1, (int)((ns + 999999) / 1000000));

	if (n < 0 && errno != EINTR)
		return err_sys(e, "cannot wait");
	if (n > 0) {
		struct watch *at = ev.data.ptr;

		if (!(ev.events & EPOLLIN) || at->ready(at->arg))
			loop_unwatch(l, at->fd);
	}
	return 0;
}

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

static int nothing(void *arg)
{
	(void)arg;
	return 0;
}

static int wait_on(struct loop *l, const struct loop_opts *o, enum loop_end *end,
		   uint64_t *lasted_ns, struct err *e)
{
	uint64_t start = now_ns(), next_tick = 0, done = 0;

	for (;;) {
		bool tick = done >= next_tick;
		uint64_t until;
		int ret;

		if (tick)
			next_tick = done + TICK_NS;
		*lasted_ns = done;
		*end = LOOP_OVER;
		if (o->step(o->arg, tick, done))
			return 0;
		*end = LOOP_STOP;
		if (readable(o->stop_fd))
			return 0;
		*end = LOOP_TIME;
		if (o->duration_ns && done >= o->duration_ns)
			return 0;
		until = next_tick;
		if (o->duration_ns && o->duration_ns < until)
			until = o->duration_ns;
		ret = serve(l, until - done, e);
		if (ret)
			return ret;
		done = now_ns() - start;
	}
}

int loop_wait(struct loop *l, const struct loop_opts *o, enum loop_end *end, uint64_t *lasted_ns,
	      struct err *e)
{
	int ret = loop_watch(l, o->stop_fd, nothing, NULL, e);

	if (ret)
		return ret;
	ret = wait_on(l, o, end, lasted_ns, e);
	loop_unwatch(l, o->stop_fd);
	return ret;
}
