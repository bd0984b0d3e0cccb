/*
 * user/ingest/exectrace/v2/order_sched.c - what events of Ps and goroutines demand, and what they change.
 */
#include "ingest/exectrace/v2/order_priv.h"

/* ---- Ps ---- */

/* The P is about to be taken from the thread that it belongs to: the event is that one's. */
static int on_owner(struct order *o, const struct pstate *p)
{
	struct mstate *m = order_thread(o, p->m);

	if (!m || m->p != p->id)
		return order_wrong(o, "no thread has the P that is about to be stolen");
	o->m = p->m;
	o->g.now = m->g;
	o->p.now = m->p;
	return DONE;
}

int order_proc_status(struct order *o, const uint64_t *a)
{
	int64_t id = (int64_t)a[0];
	enum pstatus status = (enum pstatus)a[1];
	struct pstate *p = order_proc(o, id);
	unsigned from;
	bool promoted = false;

	if (a[1] < P_RUNNING || a[1] > P_ABANDONED)
		return order_wrong(o, "no such status of a P");
	if (p) {
		promoted = status == P_ABANDONED && p->status == P_SYSCALL;
		if (!promoted && p->status != status && !o->gen->damaged)
			return order_wrong(o, "another status of a P than it had");
		from = order_p_state(p->status);
		p->status = promoted ? p->status : status;
		p->seq = order_seq(o, 0);
	} else {
		p = order_new_proc(o, id, status);
		if (!p)
			return order_no_memory(o);
		from = o->gen->number == o->first ? TRACE_P_UNDETERMINED : TRACE_P_NOT_EXIST;
	}
	if (status == P_RUNNING || status == P_SYSCALL)
		o->p.next = id;
	if (promoted) {
		int ret = on_owner(o, p);

		if (ret < 0)
			return ret;
	}
	order_put_p(o, id, from, order_p_state(p->status));
	order_reach_p(o, p);
	return DONE;
}

int order_proc_start(struct order *o, const uint64_t *a)
{
	struct pstate *p = order_proc(o, (int64_t)a[0]);

	if ((!p || p->status != P_IDLE || !order_succeeds(o, a[1], p->seq)) &&
	    !(p = order_await_p(o, (int64_t)a[0], P_IDLE, a[1])))
		return order_waits(o);
	/* In a system call whose P was stolen already, but that is not told yet. */
	if (o->p.now != TRACE_NONE && !order_await_lost_p(o))
		return order_waits(o);
	if (order_needs(o, NEEDS_M))
		return -EBADMSG;
	p->status = P_RUNNING;
	p->seq = order_seq(o, a[1]);
	o->p.next = p->id;
	order_put_p(o, p->id, TRACE_P_IDLE, TRACE_P_RUNNING);
	order_reach_p(o, p);
	return DONE;
}

int order_proc_stop(struct order *o)
{
	struct pstate *p = order_proc(o, o->p.now);

	if (order_needs(o, NEEDS_M | NEEDS_P))
		return -EBADMSG;
	if (!p || (p->status != P_RUNNING && p->status != P_SYSCALL))
		return order_wrong(o, "a P stops that does not run");
	p->status = P_IDLE;
	o->p.next = TRACE_NONE;
	order_put_p(o, p->id, TRACE_P_RUNNING, TRACE_P_IDLE);
	order_reach_p(o, p);
	return DONE;
}

int order_proc_steal(struct order *o, const uint64_t *a)
{
	struct pstate *p = order_proc(o, (int64_t)a[0]);
	int64_t *from;
	enum pstatus before;

	if ((!p || (p->status != P_SYSCALL && p->status != P_ABANDONED) ||
	     !order_succeeds(o, a[1], p->seq)) &&
	    !(p = order_await_p(o, (int64_t)a[0], P_ABANDONED, a[1])))
		return order_waits(o);
	if (order_needs(o, NEEDS_M))
		return -EBADMSG;
	before = p->status;
	p->status = P_IDLE;
	p->seq = order_seq(o, a[1]);
	if (before == P_SYSCALL) {
		struct mstate *other = order_thread(o, (int64_t)a[2]);

		from = (int64_t)a[2] == o->m ? &o->p.next : other ? &other->p : NULL;
		if (!from || *from != p->id)
			return order_wrong(o, "a P is stolen from a thread that does not have it");
		*from = TRACE_NONE;
	}
	order_put_p(o, p->id, order_p_state(before), TRACE_P_IDLE);
	order_reach_p(o, p);
	return DONE;
}

/* ---- goroutines ---- */

/* On another thread it was in its system call for the whole generation, without a P. */
static int in_syscall(struct order *o, int64_t g, int64_t m)
{
	struct mstate *at = order_thread(o, m);

	if (m == TRACE_NONE)
		return order_wrong(o, "a goroutine in a system call without a thread");
	if (m == o->m) {
		if (o->gen->number != o->first && o->g.now != g)
			return order_wrong(
				o, "a goroutine in a system call on a thread that has another");
		o->g.next = g;
		return DONE;
	}
	if (at && at->g != g)
		return order_wrong(o, "a goroutine in a system call on a thread that has another");
	if (at)
		o->g.now = g;
	else if (!order_new_thread(o, m, g))
		return order_no_memory(o);
	o->m = m; /* the event is that thread's */
	return DONE;
}

int order_go_status(struct order *o, const uint64_t *a, uint64_t stack_id)
{
	int64_t id = (int64_t)a[0];
	struct gstate *g = order_goroutine(o, id);
	struct trace_event *ev;
	bool known = g;
	int ret = DONE;
	unsigned from;

	if (a[2] < G_RUNNABLE || a[2] > G_WAITING)
		return order_wrong(o, "no such status of a goroutine");
	if (known && g->status != (enum gstatus)a[2] && !o->gen->damaged)
		return order_wrong(o, "another status of a goroutine than it had");
	if (!known && o->gen->number != o->first && !o->gen->damaged)
		return order_wrong(o, "the status of a new goroutine, after the first generation");
	if (!known)
		g = order_new_goroutine(o, id, (enum gstatus)a[2]);
	if (!g)
		return order_no_memory(o);
	from = known ? order_g_state(g->status) : TRACE_G_UNDETERMINED;
	g->status = (enum gstatus)a[2];
	g->seq = order_seq(o, 0);
	if (g->status == G_RUNNING)
		o->g.next = id;
	if (g->status == G_SYSCALL)
		ret = in_syscall(o, id, (int64_t)a[1]);
	if (ret != DONE)
		return ret;
	ev = order_put_g(o, id, from, order_g_state(g->status), stack_id);
	ev->transition.stack = ev->stack;
	if (stack_id)
		order_at_stack(o, g, stack_id);
	order_reach_g(o, g);
	return DONE;
}

int order_go_create(struct order *o, const uint64_t *a, enum gstatus status)
{
	struct gstate *by = order_goroutine(o, o->g.now), *g;

	if (order_needs(o, NEEDS_M | NEEDS_P))
		return -EBADMSG;
	if (by && by->status != G_RUNNING)
		return order_wrong(o, "a goroutine is created by one that does not run");
	if (order_goroutine(o, (int64_t)a[0]))
		return order_wrong(o, "a goroutine is created that exists");
	g = order_new_goroutine(o, (int64_t)a[0], status);
	if (!g)
		return order_no_memory(o);
	order_put_g(o, g->id, TRACE_G_NOT_EXIST, order_g_state(status), a[2])->transition.stack =
		order_stack(o, a[1]);
	order_reach_g(o, g);
	return DONE;
}

/* A thread of C's enters Go. */
int order_go_create_syscall(struct order *o, const uint64_t *a)
{
	if (order_needs(o, NEEDS_M))
		return -EBADMSG;
	if (o->g.now != TRACE_NONE || order_goroutine(o, (int64_t)a[0]))
		return order_wrong(
			o, "a goroutine is created that exists, or on a thread that has one");
	if (!order_new_goroutine(o, (int64_t)a[0], G_SYSCALL))
		return order_no_memory(o);
	o->g.next = (int64_t)a[0];
	order_put_g(o, (int64_t)a[0], TRACE_G_NOT_EXIST, TRACE_G_SYSCALL, 0);
	return DONE;
}

int order_go_start(struct order *o, const uint64_t *a)
{
	struct gstate *g = order_goroutine(o, (int64_t)a[0]);

	if ((!g || g->status != G_RUNNABLE || !order_succeeds(o, a[1], g->seq)) &&
	    !(g = order_await_g(o, (int64_t)a[0], G_RUNNABLE, a[1])))
		return order_waits(o);
	if (order_needs(o, NEEDS_M | NEEDS_P))
		return -EBADMSG;
	if (o->g.now != TRACE_NONE)
		return order_wrong(o, "a goroutine starts beside another one");
	g->status = G_RUNNING;
	g->seq = order_seq(o, a[1]);
	o->g.next = g->id;
	order_put_g(o, g->id, TRACE_G_RUNNABLE, TRACE_G_RUNNING, 0);
	order_reach_g(o, g);
	return DONE;
}

/* NULL: the thread has none that runs, and the error says so. */
static struct gstate *running(struct order *o)
{
	struct gstate *g = order_goroutine(o, o->g.now);

	if (order_needs(o, NEEDS_ALL))
		return NULL;
	if (g && g->status == G_RUNNING)
		return g;
	(void)order_wrong(o, "the goroutine does not run");
	return NULL;
}

int order_go_stop(struct order *o, const uint64_t *a, enum gstatus status)
{
	struct gstate *g = running(o);
	struct trace_event *ev;

	if (!g)
		return -EBADMSG;
	g->status = status;
	o->g.next = TRACE_NONE;
	ev = order_put_g(o, g->id, TRACE_G_RUNNING, order_g_state(status), a[1]);
	ev->transition.reason = order_text(o, a[0]);
	ev->transition.stack = ev->stack;
	order_at_stack(o, g, a[1]);
	order_reach_g(o, g);
	return DONE;
}

int order_go_destroy(struct order *o)
{
	struct gstate *g = running(o);

	if (!g)
		return -EBADMSG;
	order_put_g(o, g->id, TRACE_G_RUNNING, TRACE_G_NOT_EXIST, 0);
	order_delete_goroutine(o, g);
	o->g.next = TRACE_NONE;
	return DONE;
}

/* Anybody may do that, a thread without a P as well. */
int order_go_unblock(struct order *o, const uint64_t *a)
{
	struct gstate *g = order_goroutine(o, (int64_t)a[0]);

	if ((!g || g->status != G_WAITING || !order_succeeds(o, a[1], g->seq)) &&
	    !(g = order_await_g(o, (int64_t)a[0], G_WAITING, a[1])))
		return order_waits(o);
	g->status = G_RUNNABLE;
	g->seq = order_seq(o, a[1]);
	order_put_g(o, g->id, TRACE_G_WAITING, TRACE_G_RUNNABLE, a[2]);
	order_reach_g(o, g);
	return DONE;
}

/* The next goroutine is unblocked, the present one blocks or ends, and the next one starts. */
int order_go_switch(struct order *o, const uint64_t *a, bool destroy)
{
	struct gstate *g = running(o), *next = order_goroutine(o, (int64_t)a[0]);

	if (!g)
		return -EBADMSG;
	if (next == g && o->force)
		return order_wrong(o, "a goroutine switches to itself");
	if ((!next || next->status != G_WAITING || !order_succeeds(o, a[1], next->seq)) &&
	    !(next = order_await_g(o, (int64_t)a[0], G_WAITING, a[1])))
		return order_waits(o);
	g = order_goroutine(o, o->g.now); /* the other one may have moved it */
	order_put_g(o, next->id, TRACE_G_WAITING, TRACE_G_RUNNABLE, 0);
	order_put_g(o, g->id, TRACE_G_RUNNING, destroy ? TRACE_G_NOT_EXIST : TRACE_G_WAITING, 0);
	order_put_g(o, next->id, TRACE_G_RUNNABLE, TRACE_G_RUNNING, 0)->g = TRACE_NONE;
	next->status = G_RUNNING;
	next->seq = order_seq(o, a[1]);
	o->g.next = next->id;
	order_reach_g(o, next);
	if (destroy) {
		order_delete_goroutine(o, g);
		return DONE;
	}
	g->status = G_WAITING;
	order_at_stack(o, g, 0);
	order_reach_g(o, g);
	return DONE;
}

/* ---- system calls ---- */

int order_syscall_begin(struct order *o, const uint64_t *a)
{
	struct gstate *g = running(o);
	struct pstate *p = order_proc(o, o->p.now);
	struct trace_event *ev;

	if (!g)
		return -EBADMSG;
	if (!p || !order_succeeds(o, a[0], p->seq))
		return order_wrong(o, "a system call out of its P's order");
	g->status = G_SYSCALL;
	p->status = P_SYSCALL;
	p->seq = order_seq(o, a[0]);
	ev = order_put_g(o, g->id, TRACE_G_RUNNING, TRACE_G_SYSCALL, a[1]);
	ev->transition.stack = ev->stack;
	order_at_stack(o, g, a[1]);
	order_reach_p(o, p);
	return DONE;
}

int order_syscall_end(struct order *o)
{
	struct gstate *g = order_goroutine(o, o->g.now);
	struct pstate *p = order_proc(o, o->p.now);

	if (order_needs(o, NEEDS_ALL))
		return -EBADMSG;
	if (!g || g->status != G_SYSCALL || !p || p->status != P_SYSCALL)
		return order_wrong(o, "a system call ends that had not begun");
	g->status = G_RUNNING;
	p->status = P_RUNNING;
	order_put_g(o, g->id, TRACE_G_SYSCALL, TRACE_G_RUNNING, 0);
	return DONE;
}

/* It has lost its P meanwhile, so it waits until that was seen. */
int order_syscall_end_blocked(struct order *o)
{
	struct gstate *g = order_goroutine(o, o->g.now);
	struct pstate *p = o->p.now == TRACE_NONE ? NULL : order_proc(o, o->p.now);

	if (p && p->status == P_SYSCALL && !order_await_lost_p(o))
		return order_waits(o);
	if (order_needs(o, NEEDS_M | NEEDS_G))
		return -EBADMSG;
	if (!g || g->status != G_SYSCALL)
		return order_wrong(o, "a system call ends that had not begun");
	g->status = G_RUNNABLE;
	o->g.next = TRACE_NONE;
	order_put_g(o, g->id, TRACE_G_SYSCALL, TRACE_G_RUNNABLE, 0);
	order_reach_g(o, g);
	return DONE;
}

/* A thread of C's leaves Go. The P may stay with it for a while, but nobody will know that thread. */
int order_destroy_syscall(struct order *o)
{
	struct gstate *g = order_goroutine(o, o->g.now);
	struct pstate *p = order_proc(o, o->p.now);

	if (order_needs(o, NEEDS_M | NEEDS_G))
		return -EBADMSG;
	if (!g || g->status != G_SYSCALL ||
	    (o->p.now != TRACE_NONE && (!p || p->status != P_SYSCALL)))
		return order_wrong(o, "a goroutine of a C thread ends elsewhere than in C");
	if (o->p.now != TRACE_NONE) {
		p->status = P_ABANDONED;
		o->p.next = TRACE_NONE;
		order_put_p(o, p->id, TRACE_P_RUNNING, TRACE_P_IDLE);
		order_reach_p(o, p);
	}
	order_put_g(o, g->id, TRACE_G_SYSCALL, TRACE_G_NOT_EXIST, 0);
	order_delete_goroutine(o, g);
	o->g.next = TRACE_NONE;
	return DONE;
}
