/* user/engine/probing_attacher.c - what is asked of the attacher, also when somebody kills it. */
#include <sys/epoll.h>
#include <time.h>

#include "base/clock.h"
#include "engine/probing_priv.h"
#include "probe/uprobes/leftovers.h"

int probing_watch(struct probing *p, int fd, struct err *e)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(p->ep, EPOLL_CTL_ADD, fd, &ev) ? err_sys(e, "epoll") : 0;
}

/*
 * To be called before @fd is closed. Closing it is not enough: epoll watches the open file, and a
 * child that was forked meanwhile may have it open for a while. Then the end of one attacher would be
 * told as that of the next one.
 */
void probing_unwatch(struct probing *p, int fd)
{
	if (fd >= 0 && p->ep >= 0)
		epoll_ctl(p->ep, EPOLL_CTL_DEL, fd, NULL);
}

void probing_release(struct probing *p)
{
	p->kept = p->first_asked = false;
	probing_unwatch(p, uprobes_fd(&p->uprobes));
	uprobes_free(&p->uprobes);
}

/* The attacher was killed: a new one frees what it left behind. Then nothing is attached. */
uint64_t probing_gone_since(const struct probing *p)
{
	uint64_t dead = uprobes_dead(&p->uprobes);
	uint64_t gone = probing_let_go(p) ? uprobes_let_go(&p->uprobes) : 0;

	return dead && (!gone || dead < gone) ? dead : gone;
}

int probing_mend(struct probing *p, struct err *e)
{
	int ret;

	p->u.open->bits = 0;
	p->kept = false;
	if (!p->uprobes.deaths)
		say(p->o, "%s: the process that keeps the probes was killed: another one goes on",
		    p->u.what);
	probing_unwatch(p, uprobes_fd(&p->uprobes));
	ret = uprobes_mend(&p->uprobes, e);
	if (ret)
		return ret;
	return probing_watch(p, uprobes_fd(&p->uprobes), e);
}

/* Another kind that put its probes into the same files has tried how long the kernel takes. */
static bool tried(const struct probing *p)
{
	return p->s ? p->s->images.n && p->s->probed == p->s->images.n : p->tried;
}

/* Also when attachers are killed at it, but not for ever. */
int probing_attach(struct probing *p, struct err *e)
{
	int ret;

	p->uprobes.tried = tried(p);
	ret = uprobes_attach(&p->uprobes, e);

	for (int i = 0; ret == -ECHILD && i < UPROBES_MENDS; i++) {
		ret = probing_mend(p, e);
		if (!ret)
			ret = uprobes_attach(&p->uprobes, e);
	}
	return ret;
}

int probing_detach(struct probing *p, struct err *e)
{
	int ret = uprobes_detach_soon(&p->uprobes, e);

	return ret == -ECHILD ? probing_mend(p, e) : ret ? ret : probing_detached(p, e);
}

int probing_detached(struct probing *p, struct err *e)
{
	uint64_t work_ns = 0;
	int ret = uprobes_detached(&p->uprobes, &work_ns, e);

	if (!ret && p->kept)
		probing_learn_registering(p, p->kept_work + work_ns);
	p->kept = false;
	return ret == -ECHILD ? probing_mend(p, e) : ret;
}

int probing_ask_window(struct probing *p, const struct uprobe_window *w, struct err *e)
{
	int ret;

	p->asked_ns = now_ns();
	p->uprobes.tried = tried(p);
	ret = uprobes_window(&p->uprobes, w, e);
	for (int i = 0; ret == -ECHILD && i < UPROBES_MENDS; i++) {
		ret = probing_mend(p, e);
		p->asked_ns = now_ns();
		if (!ret)
			ret = uprobes_window(&p->uprobes, w, e);
	}
	return ret;
}

/*
 * The attacher was killed in the window. What was seen until then is of a window that was open from
 * open->since on; at what moment in its end the probes came off is not known to the millisecond.
 */
int probing_broken_window(struct probing *p, struct uprobe_windowed *out, struct err *e)
{
	uint64_t now = now_ns(), since = p->u.open->since, until = p->u.open->until;
	bool opened = since >= p->asked_ns && since < now;
	uint64_t closed = since + p->window_ns;

	if (p->u.by_own && until && until < closed)
		closed = until;
	if (closed > now)
		closed = now;
	*out = (struct uprobe_windowed){ .asked = p->asked_ns, .opened = now, .closed = now };
	if (opened && closed > since) {
		out->opened = since;
		out->closed = closed;
	}
	out->detached = now;
	return probing_mend(p, e);
}

/* What others left behind costs the target as much as probes of ours do. */
void probing_heal_first(struct subject *s, const struct collect_opts *o)
{
	if (!s->healed && !o->held)
		leftovers_begin(s->target, o);
	s->healed = true;
}

/* The attacher has taken them off, as it did not hear of us. */
bool probing_let_go(const struct probing *p)
{
	uint64_t when = uprobes_let_go(&p->uprobes);

	return when && when >= p->attached_ns;
}

void probing_hear(struct probing *p, uint64_t now)
{
	if (p->o->budget.ppm)
		uprobes_until(&p->uprobes, now + (uint64_t)budget_lasts(p->b, &p->member));
}
