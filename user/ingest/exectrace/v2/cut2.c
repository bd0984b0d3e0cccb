/* user/ingest/exectrace/v2/cut2.c - events as bytes again, in batches of a thread each. */
#include "ingest/exectrace/v2/cut2.h"

#include <string.h>

#include "base/loop/cancel.h"
#include "ingest/exectrace/batches.h"
#include "ingest/exectrace/v2/order_priv.h"
#include "ingest/exectrace/ticks.h"

enum { STOPS_LOOKED = 4, COPY_BYTES = 1 << 18, SYNC_MAX = 64 };

struct cut2 {
	struct generations *gens; /* borrowed, as f */
	FILE *f;
	int64_t after_ns, until_ns; /* from the first event on */
	int64_t from_ns, to_ns;	    /* the same as the trace counts time */
	bool begun;		    /* the trace's first generation was there */
	bool inside, over;	    /* the time has begun; it has ended */
	bool written;		    /* the header is */
	/* Of the generation: */
	const struct generation *gen;
	uint64_t off, end;
	bool writes;		   /* it is in the cut */
	bool whole;		   /* and copied as it is */
	bool opened;		   /* its earlier events are not in the cut */
	unsigned looked;	   /* stops whose reason was looked for */
	uint64_t begins;	   /* ticks of the states, if it is opened: before all events */
	bool gc_told;		   /* whether a collection goes on */
	bool first, oldest;	   /* of the cut; of the trace */
	struct map g_base, p_base; /* what is taken from the numbers of a goroutine, a P */
	struct batches batches;	   /* of threads */
	uint64_t last;		   /* the latest event's ticks */
	/* Of all that was written: */
	bool any;
	int64_t first_ns, last_ns, came_ns; /* came: what is not written yet, too */
};

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory for a part of the trace");
}

/* ---- bytes ---- */

static int copy(struct cut2 *c, uint64_t from, uint64_t to, struct err *e);

static int put(struct cut2 *c, const void *bytes, size_t n, struct err *e)
{
	bool header = !c->written;
	int ret;

	c->written = true;
	ret = header ? copy(c, 0, EXECTRACE_HEADER_BYTES, e) : 0;
	if (!ret && fwrite(bytes, 1, n, c->f) != n)
		ret = err_sys(e, "writing");
	return ret;
}

static int put_batch(struct cut2 *c, int64_t m, uint64_t base, const void *bytes, size_t n,
		     struct err *e)
{
	uint8_t head[1 + 4 * VARINT_MAX] = { EV_BATCH };
	size_t at = 1;
	int ret;

	at += varint_put(head + at, c->gen->number);
	at += varint_put(head + at, (uint64_t)m);
	at += varint_put(head + at, base);
	at += varint_put(head + at, n);
	ret = put(c, head, at, e);
	return ret ? ret : put(c, bytes, n, e);
}

static int copy(struct cut2 *c, uint64_t from, uint64_t to, struct err *e)
{
	CLEANUP(freep) uint8_t *buf = malloc(to - from < COPY_BYTES ? to - from + 1 : COPY_BYTES);
	int ret = buf ? 0 : no_memory(e);

	while (!ret && from < to) {
		size_t n = to - from < COPY_BYTES ? (size_t)(to - from) : COPY_BYTES;
		ssize_t got = pread(c->gens->s.fd, buf, n, (off_t)from);

		if (cancelled())
			return -ECANCELED;
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, "reading the trace");
		if (!got)
			return err_set(e, -EIO, "the trace became shorter while it was read");
		ret = put(c, buf, (size_t)got, e);
		from += (uint64_t)got;
	}
	return ret;
}

/* ---- batches ---- */

static int flush(struct cut2 *c, struct making *b, struct err *e)
{
	int ret = b->bytes.n ? put_batch(c, b->of, b->base, b->bytes.at, b->bytes.n, e) : 0;

	b->bytes.n = 0;
	return ret;
}

static int put_event(struct cut2 *c, int64_t m, uint64_t ticks, uint8_t type, const uint64_t *args,
		     unsigned nargs, struct err *e)
{
	uint8_t bytes[1 + (1 + ORDER_ARGS_MAX) * VARINT_MAX] = { type };
	struct making *b = batches_of(&c->batches, m);
	size_t n = 1;
	int ret = b ? 0 : no_memory(e);

	/* The time of a thread goes back from batch to batch alone. */
	if (!ret && (b->bytes.n >= BATCH_FULL || ticks < b->ticks))
		ret = flush(c, b, e);
	if (ret)
		return ret;
	if (!b->bytes.n)
		b->base = b->ticks = ticks;
	n += varint_put(bytes + n, ticks - b->ticks);
	for (unsigned i = 0; i < nargs; i++)
		n += varint_put(bytes + n, args[i]);
	b->ticks = ticks;
	c->last = ticks;
	return making_put(b, bytes, n) ? 0 : no_memory(e);
}

#define PUT(c, m, ticks, type, e, ...)                                  \
	put_event(c, m, ticks, type, (const uint64_t[]){ __VA_ARGS__ }, \
		  sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t), e)

/* ---- the states in which the cut begins ---- */

struct opening {
	struct cut2 *c;
	const struct order *o;
	uint64_t ticks;
	struct err *e;
};

static int tell_p(const struct opening *x, int64_t m, const struct pstate *p)
{
	int ret = PUT(x->c, m, x->ticks, EV_PROC_STATUS, x->e, (uint64_t)p->id, p->status);

	if (!ret && p->sweeps)
		ret = PUT(x->c, m, x->ticks, EV_GC_SWEEP_ACTIVE, x->e, (uint64_t)p->id);
	if (!ret && p->seq.gen == x->o->gen->number &&
	    !map_put(&x->c->p_base, (uint64_t)p->id, p->seq.n))
		ret = no_memory(x->e);
	return ret;
}

/* 0: what the generation has no number for, or the version no event. */
static uint64_t stack_of(const struct opening *x, const struct gstate *g)
{
	bool told = g->stack_gen == x->o->gen->number && g->status != G_RUNNING;

	return told && x->c->gens->version >= 23 ? g->stack : 0;
}

static int tell_g(const struct opening *x, int64_t m, int64_t its_m, const struct gstate *g)
{
	uint64_t stack = stack_of(x, g);
	int ret =
		put_event(x->c, m, x->ticks, stack ? EV_GO_STATUS_STACK : EV_GO_STATUS,
			  (const uint64_t[]){ (uint64_t)g->id, (uint64_t)its_m, g->status, stack },
			  stack ? 4 : 3, x->e);

	if (!ret && g->assists)
		ret = PUT(x->c, m, x->ticks, EV_GC_ASSIST_ACTIVE, x->e, (uint64_t)g->id);
	if (!ret && g->seq.gen == x->o->gen->number &&
	    !map_put(&x->c->g_base, (uint64_t)g->id, g->seq.n))
		ret = no_memory(x->e);
	return ret;
}

/*
 * The number of a stop's reason in this generation; 0, which is "": it has no such string. The runtime has one stop
 * at a time, so those of a hostile trace are not all looked for.
 */
static uint64_t stop_reason(const struct opening *x, const struct stop *s)
{
	const struct trace_tables *t = &x->o->gen->tables;
	struct trace_text of;

	if (s->gen == x->o->gen->number)
		return s->why;
	if (x->c->looked == STOPS_LOOKED)
		return 0;
	x->c->looked++;
	for (size_t i = 0; i < t->strings.n; i++) {
		of = (struct trace_text){ t->bytes.at + t->strings.at[i].at, t->strings.at[i].n };
		if (order_is_stop(&s->name, of))
			return t->strings.at[i].id;
	}
	return 0;
}

/* A stop of the world has no event that tells that it goes on, so it begins here. */
static int tell_stops(const struct opening *x, int64_t m, const struct gstate *g)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < g->stops.n; i++)
		ret = PUT(x->c, m, x->ticks, EV_STW_BEGIN, x->e, stop_reason(x, &g->stops.at[i]),
			  0);
	return ret;
}

static bool owned(enum pstatus status)
{
	return status == P_RUNNING || status == P_SYSCALL;
}

static int tell_thread(const struct opening *x, size_t i)
{
	const struct mstate *at = &x->o->ms.at[i];
	const struct pstate *p = at->p == TRACE_NONE ? NULL : order_proc(x->o, at->p);
	const struct gstate *g = at->g == TRACE_NONE ? NULL : order_goroutine(x->o, at->g);
	int64_t m = x->o->thread_ids.at[i];
	int ret = p && owned(p->status) ? tell_p(x, m, p) : 0;

	if (ret || !g || (g->status != G_RUNNING && g->status != G_SYSCALL))
		return ret;
	ret = tell_g(x, m, m, g);
	return !ret && p && g->status == G_RUNNING ? tell_stops(x, m, g) : ret;
}

/*
 * On a thread that has a goroutine and a P, where there is one: Go's runtime notes it so. One that this
 * generation will tell of has another number by then.
 */
static int tell_gc(const struct opening *x, int64_t m)
{
	if (x->o->gc != GC_ON || x->o->gc_gen != x->o->gen->number)
		return 0;
	x->c->gc_told = true;
	for (size_t i = 0; i < x->o->ms.n; i++)
		if (x->o->ms.at[i].p != TRACE_NONE && x->o->ms.at[i].g != TRACE_NONE)
			m = x->o->thread_ids.at[i];
	return PUT(x->c, m, x->ticks, EV_GC_ACTIVE, x->e, x->o->gc_seq);
}

/* Whatever no thread has is told by any of them, as the runtime does it. */
static int tell_states(const struct opening *x)
{
	const struct order *o = x->o;
	int64_t any = o->ms.n ? o->thread_ids.at[0] : TRACE_NONE;
	int ret = 0;

	for (size_t i = 0; !ret && i < o->ms.n; i++)
		ret = tell_thread(x, i);
	for (size_t i = 0; !ret && i < o->ps.n; i++)
		if (!owned(o->ps.at[i].status))
			ret = tell_p(x, any, &o->ps.at[i]);
	for (size_t i = 0; !ret && i < o->gs.n; i++) {
		const struct gstate *g = &o->gs.at[i];

		if (order_goroutine(o, g->id) == g &&
		    (g->status == G_RUNNABLE || g->status == G_WAITING))
			ret = tell_g(x, any, TRACE_NONE, g);
	}
	return ret ? ret : tell_gc(x, any);
}

bool cut2_opens_at(const struct cut2 *c, int64_t time_ns)
{
	return !c->inside && !c->writes && !c->over && !c->gen->damaged && time_ns >= c->from_ns;
}

int cut2_open(struct cut2 *c, const struct order *o, struct err *e)
{
	uint64_t from = ticks_from(c->from_ns, c->gen->ns_per_tick);
	struct opening x = { c, o, from ? from - 1 : 0, e };

	c->begins = x.ticks;
	c->inside = c->writes = c->opened = c->first = true;
	return tell_states(&x);
}

/* ---- events ---- */

/* A number that counts from the status on. */
static void rebase(const struct map *base, int64_t id, uint64_t *n)
{
	uint64_t before;

	if (map_get(base, (uint64_t)id, &before))
		*n -= before;
}

/* False: the event repeats what was told as the cut began. */
static bool adapt(struct cut2 *c, const struct order *o, uint8_t type, uint64_t *a)
{
	switch (type) {
	case EV_PROC_START:
	case EV_PROC_STEAL:
		rebase(&c->p_base, (int64_t)a[0], &a[1]);
		return true;
	case EV_GO_SYSCALL_BEGIN:
		rebase(&c->p_base, o->p.now, &a[0]);
		return true;
	case EV_GO_START:
	case EV_GO_UNBLOCK:
	case EV_GO_SWITCH:
	case EV_GO_SWITCH_DESTROY:
		rebase(&c->g_base, (int64_t)a[0], &a[1]);
		return true;
	case EV_PROC_STATUS:
		map_del(&c->p_base, a[0]);
		return true;
	case EV_GO_STATUS:
	case EV_GO_STATUS_STACK:
	case EV_GO_CREATE:
	case EV_GO_CREATE_BLOCKED:
	case EV_GO_CREATE_SYSCALL:
		map_del(&c->g_base, a[0]);
		return true;
	case EV_GC_SWEEP_ACTIVE:
	case EV_GC_ASSIST_ACTIVE:
		return c->oldest;
	default:
		return true;
	}
}

/*
 * An event has an earlier time stamp than one of another thread that it had to wait for. Where that one is not in the
 * cut, nothing else would keep the event behind the states with which the cut begins.
 */
static uint64_t ticks_in_cut(const struct cut2 *c, uint64_t ticks)
{
	return c->opened && ticks <= c->begins ? c->begins + 1 : ticks;
}

/*
 * In the first generation of a cut all is told that there was. What was not told up to its end was not told
 * before, and nothing happened to it.
 */
static int put_late(struct cut2 *c, const struct cut2_event *ev, struct err *e)
{
	uint8_t type = ev->ev->type;
	bool status = type == EV_GO_STATUS || type == EV_GO_STATUS_STACK || type == EV_PROC_STATUS;
	bool gc = type == EV_GC_ACTIVE && !c->gc_told;

	_Static_assert(TRACE_G_UNDETERMINED == 0 && TRACE_P_UNDETERMINED == 0, "one test for both");
	if (!gc && (!status || ev->told->transition.from))
		return 0;
	c->gc_told |= gc;
	return put_event(c, ev->m, c->last, type, ev->ev->args, ev->nargs, e);
}

/* One that only its end tells of was going on. */
static int tell_ended_gc(struct cut2 *c, const struct cut2_event *ev, struct err *e)
{
	uint8_t type = ev->ev->type;
	bool end = type == EV_GC_END && !c->gc_told;

	c->gc_told |= end || type == EV_GC_ACTIVE || type == EV_GC_BEGIN;
	return end ? PUT(c, ev->m, ticks_in_cut(c, ev->ev->ticks), EV_GC_ACTIVE, e,
			 ev->ev->args[0] - 1) :
		     0;
}

int cut2_put(struct cut2 *c, const struct order *o, const struct cut2_event *ev, struct err *e)
{
	int64_t time_ns = ev->told->time_ns;
	uint64_t args[ORDER_ARGS_MAX];
	int ret;

	if (!c->writes)
		return 0;
	c->over |= time_ns > c->to_ns;
	if (c->over)
		return c->first ? put_late(c, ev, e) : 0;
	if (!c->any)
		c->first_ns = time_ns;
	c->any = true;
	c->came_ns = time_ns;
	if (c->whole)
		return 0;
	memcpy(args, ev->ev->args, sizeof(args));
	if (c->opened && !adapt(c, o, ev->ev->type, args))
		return 0;
	ret = c->first ? tell_ended_gc(c, ev, e) : 0;
	if (ret)
		return ret;
	return put_event(c, ev->m, ticks_in_cut(c, ev->ev->ticks), ev->ev->type, args, ev->nargs,
			 e);
}

/* ---- generations ---- */

/* One with time stamps from before that time is opened there, as one that began earlier. */
static bool begins_inside(const struct cut2 *c, int64_t time_ns)
{
	return time_ns >= c->from_ns && (c->oldest || c->gen->start_ns >= c->from_ns);
}

void cut2_begin(struct cut2 *c, const struct generation *g, uint64_t off, uint64_t end,
		int64_t time_ns)
{
	c->oldest = !c->begun;
	if (c->oldest) {
		c->from_ns = ticks_add(time_ns, c->after_ns);
		c->to_ns = c->until_ns == INT64_MAX ? INT64_MAX : ticks_add(time_ns, c->until_ns);
	}
	c->begun = true;
	c->gen = g;
	c->off = off;
	c->end = end;
	c->first = !c->inside;
	c->opened = c->gc_told = false;
	c->over |= time_ns > c->to_ns;
	c->writes = !g->damaged && !c->over && (c->inside || begins_inside(c, time_ns));
	c->whole = c->writes && c->to_ns == INT64_MAX;
}

struct filter {
	struct cut2 *c;
	struct err *e;
};

static bool sample_is_in(const struct cut2 *c, uint64_t ticks)
{
	int64_t time_ns = ticks_ns((double)ticks, c->gen->ns_per_tick);

	return time_ns >= c->from_ns && time_ns <= c->to_ns;
}

static size_t take_varint(const uint8_t *at, const uint8_t *end, uint64_t *v)
{
	size_t n = 0;

	*v = 0;
	for (unsigned shift = 0; at + n < end && shift < 64; shift += 7) {
		*v |= (uint64_t)(at[n] & 0x7f) << shift;
		if (at[n++] < 0x80)
			return n;
	}
	return n;
}

/* A sample is its kind, and its time, thread, P, goroutine and stack; they were read once already. */
static int put_samples(struct cut2 *c, const struct gen_piece *p, uint8_t *bytes, struct err *e)
{
	const uint8_t *at = bytes + 1, *end = bytes + p->size;
	size_t kept = 1;

	while (at < end) {
		const uint8_t *begin = at++;
		uint64_t ticks, other;

		at += take_varint(at, end, &ticks);
		for (int i = 0; i < 4; i++)
			at += take_varint(at, end, &other);
		if (!sample_is_in(c, ticks))
			continue;
		memmove(bytes + kept, begin, (size_t)(at - begin));
		kept += (size_t)(at - begin);
	}
	return kept > 1 ? put_batch(c, p->m, c->opened ? c->begins : p->base, bytes, kept, e) : 0;
}

/* Three clocks of one moment: here of that at which the cut begins. */
static size_t sync_bytes(const struct cut2 *c, const uint8_t *at, const uint8_t *end,
			 uint8_t to[SYNC_MAX])
{
	int64_t begins_ns = ticks_ns((double)c->begins, c->gen->ns_per_tick);
	uint64_t later = (uint64_t)begins_ns - (uint64_t)c->gen->snapshot_ns, frequency = 0, other;
	uint64_t unix_ns = (uint64_t)c->gen->unix_ns + later;
	size_t n = 0;

	while (at < end) {
		bool rate = *at++ == EV_FREQUENCY;

		for (int i = 0; i < (rate ? 1 : 4); i++)
			at += take_varint(at, end, rate ? &frequency : &other);
	}
	to[n++] = EV_SYNC;
	to[n++] = EV_FREQUENCY;
	n += varint_put(to + n, frequency);
	to[n++] = EV_CLOCK_SNAPSHOT;
	n += varint_put(to + n, 0);
	n += varint_put(to + n, (uint64_t)c->gen->mono_ns + later);
	n += varint_put(to + n, unix_ns / 1000000000);
	return n + varint_put(to + n, unix_ns % 1000000000);
}

/* A generation begins with its earliest batch, whatever that has. */
static int put_table(struct cut2 *c, const struct gen_piece *p, const uint8_t *bytes, struct err *e)
{
	uint8_t sync[SYNC_MAX];
	size_t n;

	if (c->gens->version < 25 || !p->size || *bytes != EV_SYNC)
		return put_batch(c, p->m, c->begins, bytes, p->size, e);
	n = sync_bytes(c, bytes + 1, bytes + p->size, sync);
	return put_batch(c, p->m, c->begins, sync, n, e);
}

static int put_piece(void *arg, const struct gen_piece *p, struct err *e)
{
	struct cut2 *c = arg;
	CLEANUP(freep) uint8_t *bytes = NULL;
	bool early = c->opened && p->base < c->begins;

	if (p->what == GEN_EVENTS)
		return 0;
	if (p->what == GEN_EXPERIMENT || (p->what == GEN_TABLE && !early))
		return copy(c, p->off, p->data + p->size, e);
	bytes = malloc(p->size + 1);
	if (!bytes)
		return no_memory(e);
	if (pread(c->gens->s.fd, bytes, p->size, (off_t)p->data) != (ssize_t)p->size)
		return err_set(e, -EIO, "the trace became shorter while it was read");
	return p->what == GEN_TABLE ? put_table(c, p, bytes, e) : put_samples(c, p, bytes, e);
}

static void forget(struct cut2 *c)
{
	batches_fini(&c->batches);
	map_fini(&c->g_base);
	map_fini(&c->p_base);
}

/* What was made of a generation that is not copied. */
static int put_rest(struct cut2 *c, struct err *e)
{
	static const uint8_t end_of_generation = EV_END_OF_GENERATION;
	int ret = 0;

	for (size_t i = 0; !ret && i < c->batches.at.n; i++)
		ret = flush(c, &c->batches.at.at[i], e);
	if (!ret)
		ret = generation_walk(c->gens, c->off, c->end, put_piece, c, e);
	if (!ret && c->gens->version >= 26)
		ret = put(c, &end_of_generation, 1, e);
	forget(c);
	return ret;
}

int cut2_end(struct cut2 *c, struct err *e)
{
	if (!c->writes)
		return 0;
	c->writes = false;
	c->inside = true;
	c->last_ns = c->came_ns;
	return c->whole ? copy(c, c->off, c->end, e) : put_rest(c, e);
}

bool cut2_is_over(const struct cut2 *c)
{
	return c->over && !(c->writes && c->first);
}

int cut2_finish(struct cut2 *c, int64_t *from_ns, int64_t *to_ns, struct err *e)
{
	int ret = c->writes && !c->whole ? cut2_end(c, e) : 0;

	*from_ns = c->first_ns;
	*to_ns = c->last_ns;
	if (!ret && (!c->any || !c->inside))
		ret = err_set(e, -ENOENT, "-o: there is nothing whole in this time");
	return ret;
}

int cut2_new(struct generations *s, FILE *f, int64_t from_ns, int64_t to_ns, struct cut2 **out,
	     struct err *e)
{
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return no_memory(e);
	**out = (struct cut2){ .gens = s, .f = f, .after_ns = from_ns, .until_ns = to_ns };
	return 0;
}

void cut2_free(struct cut2 *c)
{
	forget(c);
	free(c);
}
