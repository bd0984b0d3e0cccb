/*
 * user/engine/probing_gauge.c - the first window, which tells whether the target can bear full
 * observation.
 */
#include <math.h>
#include <time.h>

#include "base/clock.h"
#include "engine/probing_priv.h"

/* Hits that cost this share of the budget are worth measuring their price, which takes some ms. */
#define PRICE_SHARE 0.05

/*
 * For how long its probes stay in while nobody decides: the collector may be stopped just then.
 */
#define KEEP_NS NS_PER_S

/* A window of which nothing counts, since it was not drawn at random; its probes stay in. */
static int ask_first(struct probing *p, struct err *e)
{
	struct uprobe_window w = { .end = p->u.parts.end_ns, .by_own = p->u.by_own };
	double cost;
	/* pays for what was attached before, while others were loaded */
	int ret = probing_account(p, &cost, e);

	/* In full observation waits may begin at any time. */
	w.begin = p->u.parts.begin_ns ? p->u.parts.end_ns : 0;
	w.keep_until = now_ns() + KEEP_NS;
	p->before_first = p->member;
	if (!ret)
		ret = probing_ask_window(p, &w, e);
	p->first_asked = !ret;
	return ret;
}

int probing_begin_soon(struct probing *p, struct err *e)
{
	return p->state == READY && !p->failed && !p->first_asked ? ask_first(p, e) : 0;
}

bool probing_beginning(const struct probing *p)
{
	return p->state == READY;
}

static int open_first(struct probing *p, struct uprobe_windowed *done, struct err *e)
{
	int ret = p->first_asked ? 0 : ask_first(p, e);

	p->first_asked = false;
	if (!ret)
		ret = uprobes_windowed(&p->uprobes, done, e);
	if (ret)
		return ret;
	p->attached_ns = p->asked_ns;
	p->kept = true;
	p->kept_work = done->work_ns;
	probing_pay_attaching(p);
	probing_learn_registering(p, 0);
	return 0;
}

/* What the first window tells. */
struct gauged {
	uint64_t hits, stepped; /* stepped: so many of them */
	double cost, ns;	/* of these hits; in so long */
};

/*
 * The part of what the account lends that one moment may take. Waits come in bursts: where the probes of all waits took 0.2 % of a
 * program's CPU time, 14 of 140 first windows took 0.5 to 0.8 ms, which is 5 to 7 %.
 */
#define MOMENT 0.2

/*
 * In a light program such a window meets few hits, and a single-stepped one may cost forty times as
 * much as another, so its cost is mostly chance. Two standard errors (hits of a Poisson process) and what a moment may take are
 * taken off it. Where that was too kind, full observation soon exceeds the budget, and windows begin.
 */
static bool bears_it(struct probing *p, const struct gauged *g)
{
	double hit = p->member.hit_ns, step = hit + p->member.stepped_ns;
	double variance = (double)(g->hits - g->stepped) * hit * hit +
			  (double)g->stepped * step * step;

	double cost = g->cost - 2 * sqrt(variance) - MOMENT * budget_lends(p->b);

	return budget_allows(p->b, &p->member, cost / g->ns);
}

/* The default price may be too high: with the true one the target may bear it all the same. */
static int bears_true_price(struct probing *p, struct gauged *g, bool *bears, struct err *e)
{
	const struct budget_member was = p->member;
	int ret = probing_detach(p, e); /* the target does not pay for probes meanwhile */

	if (ret || !p->dear)
		return ret;
	probing_price_hits(p);
	g->cost += (double)g->hits * (p->member.hit_ns - was.hit_ns) +
		   (double)g->stepped * (p->member.stepped_ns - was.stepped_ns);
	*bears = bears_it(p, g);
	return 0;
}

static int look(struct probing *p, struct gauged *g, struct err *e)
{
	struct stretch s = { .window = true };
	struct uprobe_windowed done;
	const struct budget_member *before = &p->before_first;
	int ret = open_first(p, &done, e);

	if (!ret)
		ret = probing_account(p, &g->cost, e);
	if (ret)
		return ret;
	s.opened = done.opened;
	s.closed = done.closed;
	done.closed = done.detached = now_ns(); /* hits cost until then, though they do not count */
	g->ns = probing_exposed_ns(&done);
	g->hits = p->member.hits - before->hits;
	g->stepped = p->member.stepped - before->stepped;
	return probing_hand_over(p, s, e);
}

int probing_gauge(struct probing *p, bool *bears, struct err *e)
{
	struct gauged g;
	int ret = look(p, &g, e);

	for (int i = 0; ret == -ECHILD && i < UPROBES_MENDS; i++) {
		ret = probing_mend(p, e);
		if (!ret)
			ret = look(p, &g, e);
	}
	if (ret)
		return ret;
	p->dear = g.cost / g.ns > PRICE_SHARE * p->o->budget.ppm / 1e6;
	*bears = bears_it(p, &g);
	if (!*bears)
		ret = bears_true_price(p, &g, bears, e);
	window_size_over(&p->size, p->u.parts.end_ns, g.cost);
	/* that window was longer than those to come, which last for so much own time */
	p->size.known = 0;
	return ret;
}

/* The attacher may have let go of them, or may be dead, since it was not asked. */
bool probing_kept(struct probing *p)
{
	if (p->kept && (uprobes_dead(&p->uprobes) || probing_let_go(p)))
		p->kept = false;
	return p->kept;
}
