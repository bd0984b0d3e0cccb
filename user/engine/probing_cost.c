/* user/engine/probing_cost.c - what hits and windows cost, measured. */
#include <math.h>

#include "engine/probing_priv.h"

void probing_pay_attaching(struct probing *p)
{
	p->nattached++;
	if (p->s)
		p->s->probed = p->s->images.n;
	p->tried = true;
	budget_spend_once(p->b, &p->member, p->member.window_ns);
}

/*
 * The target's CPU time and its own count of what it did, since this was last asked. False: one of
 * the two is not known.
 */
static bool done_since(struct probing *p, double *cpu, double *work)
{
	double cpu_before = p->done_cpu, work_before = p->done_work;
	bool known = p->done_known;

	p->done_known = p->u.look && p->u.look(p->u.arg, &p->done_work);
	p->done_cpu = budget_cpu_ns(p->b);
	*cpu = p->done_cpu - cpu_before;
	*work = p->done_work - work_before;
	return known && p->done_known && *cpu > 0 && *work >= 0;
}

/* What windows cost is known better now: those that were paid for are paid for by that. */
static void price_windows(struct probing *p)
{
	double ns = window_cost_now(&p->cost).ns, more = ns - p->member.window_ns;

	budget_spend_once(p->b, &p->member, more * (double)p->nattached);
	p->member.window_ns = ns;
	probing_size_windows(p);
}

/* Bursts take other CPU time for their work than what is between them. */
void probing_learn_between(struct probing *p)
{
	double cpu, work;

	if (!done_since(p, &cpu, &work) || p->by_count) {
		window_cost_gap(&p->cost);
		return;
	}
	window_cost_between(&p->cost, cpu, work);
	price_windows(p);
}

void probing_learn_window(struct probing *p, double hits)
{
	double cpu, work;

	if (done_since(p, &cpu, &work) && !p->by_count)
		window_cost_window(&p->cost, cpu, work, hits);
	else
		window_cost_gap(&p->cost);
}

double probing_exposed_ns(const struct uprobe_windowed *w)
{
	return (double)(w->detached - w->asked) / 2 + (double)(w->closed - w->opened) / 2;
}

/* What putting in and taking out may add to the time that a window is open, before that is a stall of the kernel. */
#define ADDS_NS (20.0 * NS_PER_MS)
#define STALL	2 /* so many times what it usually adds */
#define FORGETS 0.2

bool probing_stalled(struct probing *p, const struct uprobe_windowed *w)
{
	double adds = probing_exposed_ns(w) - (double)(w->closed - w->opened);
	double most = fmax(STALL * p->adds_ns, ADDS_NS);

	p->adds_ns += (fmin(adds, most) - p->adds_ns) * FORGETS;
	return adds > most;
}

void probing_price_hits(struct probing *p)
{
	struct budget_member *m = &p->member;
	struct hit_cost hit_cost;
	struct err why = {};

	if (!p->u.hit_cost || p->cost_known)
		return;
	p->cost_known = true;
	p->measured = !p->u.hit_cost(p->u.arg, &hit_cost, &p->cost_probes, &why);
	if (!p->measured) {
		say(p->o, "%s: %s: taken to be %.0f ns", p->u.what, why.msg, m->hit_ns);
		return;
	}
	if (p->cost_probes && probing_watch(p, cost_probes_fd(p->cost_probes), NULL)) {
		cost_probes_free(p->cost_probes);
		p->cost_probes = NULL;
	}
	budget_spend_once(p->b, m,
			  (double)m->hits * (hit_cost.hit_ns - m->hit_ns) +
				  (double)m->stepped * (hit_cost.stepped_ns - m->stepped_ns));
	m->hit_ns = hit_cost.hit_ns;
	m->stepped_ns = hit_cost.stepped_ns;
}
