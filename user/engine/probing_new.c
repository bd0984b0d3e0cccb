/* user/engine/probing_new.c - the beginning: whose code is probed, and whose budget it is. */
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/clock.h"
#include "engine/probing_priv.h"
#include "probe/uprobes/hit_cost.h"

/*
 * What a program pays for a window apart from hits: its code is written and copied, its threads
 * are interrupted. Measured with windows of no length: 1.5 to 3 ms; Linux 6.18, 2 CPUs.
 */
#define WINDOW_COST_NS 2e6

static struct probing *make(const struct collect_opts *o, const struct probing_user *u,
			    double window_ns)
{
	struct probing *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->ep = p->timer = -1;
	p->o = o;
	p->u = *u;
	p->attach_ns = 10 * NS_PER_MS;
	p->member.hit_ns = HIT_COST_DEFAULT_NS;
	p->member.stepped_ns = HIT_COST_STEPPED_NS;
	p->member.window_ns = window_ns;
	window_cost_init(&p->cost, window_ns);
	BUG_ON(!u->parts.end_ns || u->parts.most_ns < u->parts.end_ns);
	window_size_init(&p->size, window_ns, u->parts.end_ns, u->parts.most_ns);
	if (getrandom(&p->random, sizeof(p->random), 0) != sizeof(p->random))
		p->random = now_ns();
	return p;
}

/* What it is polled for. */
static int listen(struct probing *p, struct err *e)
{
	p->ep = epoll_create1(EPOLL_CLOEXEC);
	if (p->ep < 0)
		return err_sys(e, "epoll");
	if (!p->o->budget.ppm && !p->u.look)
		return 0;
	p->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (p->timer < 0)
		return err_sys(e, "a timer for the budget");
	return probing_watch(p, p->timer, e);
}

static uint64_t time_ns(void *arg)
{
	(void)arg;
	return now_ns();
}

static uint64_t paid_ns(void *arg)
{
	return process_cpu_ns(((const struct target *)arg)->pid);
}

/* @owner is whose CPU time counts. */
static int join_budget(struct probing *p, struct budget_owner owner, struct err *e)
{
	owner.now_ns = time_ns;
	owner.share = p->o->budget.ppm / 1e6;
	owner.ahead_ns = (double)p->o->budget.ahead_ns;
	p->b = budget_join(p->s ? &p->s->budget : NULL, &owner, &p->member);
	return p->b ? 0 : err_set(e, -ENOMEM, "no memory");
}

int probing_new(struct subject *s, const struct collect_opts *o, const struct probing_user *u,
		bool multi, struct probing **out, struct err *e)
{
	CLEANUP(probing_freep) struct probing *p = make(o, u, WINDOW_COST_NS);
	clockid_t clock;
	int ret;

	if (!p)
		return err_set(e, -ENOMEM, "no memory");
	p->s = s;
	p->multi = multi;
	probing_heal_first(s, o);
	if (o->budget.ppm)
		probing_look_around(p);
	if (clock_getcpuclockid(s->target->pid, &clock))
		return err_set(e, -ESRCH, "the target exited");
	ret = join_budget(p, (struct budget_owner){ .cpu_ns = paid_ns, .arg = s->target }, e);
	if (!ret)
		ret = listen(p, e);
	if (ret)
		return ret;
	*out = TAKE(p);
	return 0;
}

int probing_new_file(const struct probed_file *f, const struct collect_opts *o,
		     const struct probing_user *u, struct probing **out, struct err *e)
{
	CLEANUP(probing_freep)
	struct probing *p = make(o, u, WINDOW_COST_NS * (double)f->at_once);
	int ret;

	if (!p)
		return err_set(e, -ENOMEM, "no memory");
	p->file = *f;
	p->multi = f->multi;
	if (o->budget.ppm)
		probing_look_around(p);
	ret = join_budget(p,
			  (struct budget_owner){
				  .cpu_ns = f->cpu_ns, .arg = f->arg, .least = f->least },
			  e);
	if (!ret)
		ret = listen(p, e);
	if (ret)
		return ret;
	*out = TAKE(p);
	return 0;
}

/* Of a file nobody counts what was done, so what a window costs stays what it is taken to be. */
void probing_file_at_once(struct probing *p, size_t n)
{
	p->file.at_once = n;
	p->member.window_ns = WINDOW_COST_NS * (double)n;
	window_cost_init(&p->cost, p->member.window_ns);
	probing_size_windows(p);
}
