/* user/cli/window.c - one epoll loop. */
#include "cli/window.h"

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

struct window {
	int ep;
	struct watch *watches;
};

int window_new(struct window **out, struct err *e)
{
	CLEANUP(window_freep) struct window *w = calloc(1, sizeof(*w));

	if (!w)
		return err_set(e, -ENOMEM, "no memory to wait");
	w->ep = epoll_create1(EPOLL_CLOEXEC);
	if (w->ep < 0)
		return err_sys(e, "epoll");
	*out = TAKE(w);
	return 0;
}

void window_free(struct window *w)
{
	struct watch *next;

	if (!w)
		return;
	for (struct watch *at = w->watches; at; at = next) {
		next = at->next;
		free(at);
	}
	closep(&w->ep);
	free(w);
}

int window_watch(struct window *w, int fd, int (*ready)(void *arg), void *arg, struct err *e)
{
	struct watch *at;
	struct epoll_event ev = { .events = EPOLLIN };

	if (fd < 0)
		return 0;
	at = malloc(sizeof(*at));
	if (!at)
		return err_set(e, -ENOMEM, "no memory to wait");
	*at = (struct watch){ .fd = fd, .ready = ready, .arg = arg, .next = w->watches };
	ev.data.ptr = at;
	if (epoll_ctl(w->ep, EPOLL_CTL_ADD, fd, &ev)) {
		int code = errno;

		free(at);
		errno = code;
		return err_sys(e, "cannot wait");
	}
	w->watches = at;
	return 0;
}

void window_unwatch(struct window *w, int fd)
{
	for (struct watch **p = &w->watches; *p; p = &(*p)->next) {
		struct watch *at = *p;

		if (at->fd != fd)
			continue;
		epoll_ctl(w->ep, EPOLL_CTL_DEL, fd, NULL);
		*p = at->next;
		free(at);
		return;
	}
}

/*
 * Sleeps until a descriptor is ready or @ns have passed, and serves one descriptor: the kernel
 * hands out ready ones in turn.
 */
static int serve(struct window *w, uint64_t ns, struct err *e)
{
	struct epoll_event ev;
	/* rounded up, or the loop would spin through the last millisecond */
	int n = epoll_wait(w->ep, &ev, 1, (int)((ns + 999999) / 1000000));

	if (n < 0 && errno != EINTR)
		return err_sys(e, "cannot wait");
	if (n > 0) {
		struct watch *at = ev.data.ptr;

		if (!(ev.events & EPOLLIN) || at->ready(at->arg))
			window_unwatch(w, at->fd);
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

static int wait_on(struct window *w, const struct window_opts *o, enum window_end *end,
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
		*end = WINDOW_OVER;
		if (o->step(o->arg, tick, done))
			return 0;
		*end = WINDOW_STOP;
		if (readable(o->stop_fd))
			return 0;
		*end = WINDOW_TIME;
		if (o->duration_ns && done >= o->duration_ns)
			return 0;
		until = next_tick;
		if (o->duration_ns && o->duration_ns < until)
			until = o->duration_ns;
		ret = serve(w, until - done, e);
		if (ret)
			return ret;
		done = now_ns() - start;
	}
}

int window_wait(struct window *w, const struct window_opts *o, enum window_end *end,
		uint64_t *lasted_ns, struct err *e)
{
	int ret = window_watch(w, o->stop_fd, nothing, NULL, e);

	if (ret)
		return ret;
	ret = wait_on(w, o, end, lasted_ns, e);
	window_unwatch(w, o->stop_fd);
	return ret;
}
