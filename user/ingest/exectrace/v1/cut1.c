/* user/ingest/exectrace/v1/cut1.c - the states in which the part begins, its events, and its tables. */
#include "ingest/exectrace/v1/cut1.h"

#include <string.h>

#include "base/cleanup.h"
#include "ingest/exectrace/batches.h"

enum { HEADER_BYTES = EXECTRACE_HEADER_BYTES, NO_P = -1 };

struct cut1 {
	const struct states1 *states; /* borrowed, as index and f */
	const struct index1 *index;
	FILE *f;
	int64_t from_ns, to_ns;
	bool inside, over, any;
	int64_t now;		   /* ticks of what comes next */
	int64_t first_ns, last_ns; /* of its events */
	struct batches batches;	   /* of Ps; of NO_P what no P does */
	struct ids numbers;	   /* of each goroutine: of its next event that has one */
	uint64_t collections;	   /* that began */
	uint64_t seq;		   /* Go 1.5: of the next event */
};

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory for a part of the trace");
}

static bool is_old(const struct cut1 *c)
{
	return c->index->version < V1_7;
}

/* ---- bytes ---- */

static int put_bytes(struct cut1 *c, const void *bytes, size_t n, struct err *e)
{
	return fwrite(bytes, 1, n, c->f) == n ? 0 : err_sys(e, "writing");
}

/* Go 1.5 has one more number that all events have, and is not counted. */
static uint8_t first_byte(const struct cut1 *c, uint8_t type, size_t nargs)
{
	size_t few = nargs - (is_old(c) ? 2 : 1);

	return (uint8_t)(type | (few < 3 ? few : 3) << 6);
}

static int flush(struct cut1 *c, struct making *b, struct err *e)
{
	uint8_t head[1 + 3 * VARINT_MAX];
	size_t n = 1;
	int ret;

	if (!b->bytes.n)
		return 0;
	head[0] = first_byte(c, EV1_BATCH, is_old(c) ? 3 : 2);
	n += varint_put(head + n, (uint64_t)b->of);
	if (is_old(c))
		n += varint_put(head + n, b->base_seq);
	n += varint_put(head + n, b->base);
	ret = put_bytes(c, head, n, e);
	if (!ret)
		ret = put_bytes(c, b->bytes.at, b->bytes.n, e);
	b->bytes.n = 0;
	return ret;
}

/* An event's kind, numbers and times, and @args, which are all others. */
static int put_event(struct cut1 *c, int64_t p, uint8_t type, const uint64_t *args, size_t nargs,
		     struct err *e)
{
	uint8_t bytes[(2 + WIRE1_ARGS) * VARINT_MAX], head[1 + VARINT_MAX];
	struct making *b = batches_of(&c->batches, p);
	uint64_t ticks = (uint64_t)c->now;
	size_t n = 0, nhead = 1;
	int ret = b ? 0 : no_memory(e);

	if (!ret && b->bytes.n >= BATCH_FULL)
		ret = flush(c, b, e);
	if (ret)
		return ret;
	if (!b->bytes.n) {
		b->base = b->ticks = ticks;
		b->base_seq = b->seq = c->seq;
	}
	if (is_old(c))
		n += varint_put(bytes + n, c->seq - b->seq);
	n += varint_put(bytes + n, ticks - b->ticks);
	for (size_t i = 0; i < nargs; i++)
		n += varint_put(bytes + n, args[i]);
	b->seq = c->seq++;
	b->ticks = ticks;
	head[0] = first_byte(c, type, nargs + (is_old(c) ? 2 : 1));
	if (head[0] >> 6 == 3)
		nhead += varint_put(head + nhead, n);
	return making_put(b, head, nhead) && making_put(b, bytes, n) ? 0 : no_memory(e);
}

#define PUT(c, p, type, e, ...)                                  \
	put_event(c, p, type, (const uint64_t[]){ __VA_ARGS__ }, \
		  sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t), e)

/* ---- numbers of a goroutine's events ---- */

static int set_number(struct cut1 *c, int64_t g, uint64_t n, struct err *e)
{
	return ids_put(&c->numbers, (uint64_t)g, n) ? 0 : no_memory(e);
}

static int next_number(struct cut1 *c, int64_t g, uint64_t *n, struct err *e)
{
	*n = 0;
	(void)ids_get(&c->numbers, (uint64_t)g, n);
	return set_number(c, g, *n + 1, e);
}

/* ---- the states in which the part begins ---- */

static uint64_t stack_id(const struct cut1 *c, uint32_t stack)
{
	return stack ? c->index->tables.stacks.at[stack - 1].id : 0;
}

/* Go 1.5 has an address, and readers of it add 1. */
static uint64_t begins_at(const struct cut1 *c, const struct g1 *g)
{
	const struct trace_tables *t = &c->index->tables;

	if (!is_old(c))
		return stack_id(c, g->start_stack);
	return g->start_stack ? t->frames.at[t->stacks.at[g->start_stack - 1].at].pc - 1 : 0;
}

/* A goroutine that runs is told by its P. */
static int tell_g(struct cut1 *c, int64_t p, const struct g1 *g, struct err *e)
{
	bool waits = g->told == TRACE_G_WAITING, blocked = g->blocked >= 0;
	int ret = PUT(c, p, EV1_GO_CREATE, e, (uint64_t)g->id, begins_at(c, g), 0);

	if (!ret)
		ret = set_number(c, g->id, waits || blocked ? 2 : 1, e);
	if (ret || (!waits && !blocked))
		return ret;
	return PUT(c, p, waits ? EV1_GO_WAITING : EV1_GO_IN_SYSCALL, e, (uint64_t)g->id);
}

static int tell_running(struct cut1 *c, const struct p1 *p, int64_t id, struct err *e)
{
	const struct g1 *g = states1_g(c->states, p->g);
	uint64_t number;
	int ret;

	if (!g)
		return 0;
	ret = next_number(c, p->g, &number, e);
	if (!ret && is_old(c))
		ret = PUT(c, id, EV1_GO_START, e, (uint64_t)p->g);
	else if (!ret)
		ret = PUT(c, id, EV1_GO_START, e, (uint64_t)p->g, number);
	if (!ret && g->told == TRACE_G_SYSCALL)
		ret = PUT(c, id, EV1_GO_SYSCALL, e, g->call_stack);
	return ret;
}

static int tell_p(struct cut1 *c, const struct p1 *p, int64_t id, struct err *e)
{
	int ret = p->runs ? PUT(c, id, EV1_PROC_START, e, (uint64_t)p->m) : 0;

	if (!ret && p->sweeps)
		ret = PUT(c, id, EV1_SWEEP_START, e, 0);
	if (!ret && p->scans)
		ret = put_event(c, id, EV1_STW_START, NULL, 0, e);
	return ret || !p->g ? ret : tell_running(c, p, id, e);
}

/* Readers know by GOMAXPROCS that all that was there is told. */
static int tell_program(struct cut1 *c, int64_t p, struct err *e)
{
	const struct states1 *s = c->states;
	int ret = s->started ? PUT(c, p, EV1_GOMAXPROCS, e, s->gomaxprocs, 0) : 0;

	if (!ret && s->collects && is_old(c))
		ret = PUT(c, p, EV1_GC_START, e, 0);
	else if (!ret && s->collects)
		ret = PUT(c, p, EV1_GC_START, e, c->collections++, 0);
	if (!ret && s->stopped)
		ret = PUT(c, p, EV1_STW_START, e, s->stop_kind);
	return ret;
}

/* The P that tells of all: the first one that runs, as in the runtime, or any. */
static int64_t telling_p(const struct cut1 *c)
{
	int64_t p = NO_P;

	for (size_t i = 0; i < c->states->ps.n; i++) {
		if (c->states->ps.at[i].runs)
			return c->index->procs.at[i].p;
		if (p == NO_P)
			p = c->index->procs.at[i].p;
	}
	return p;
}

static int open_part(struct cut1 *c, struct err *e)
{
	const struct states1 *s = c->states;
	int64_t p = telling_p(c);
	int ret = 0;

	for (size_t i = 0; !ret && i < s->gs.n; i++)
		if (states1_g(s, s->gs.at[i].id) == &s->gs.at[i])
			ret = tell_g(c, p, &s->gs.at[i], e);
	if (!ret)
		ret = tell_program(c, p, e);
	for (size_t i = 0; !ret && i < s->ps.n; i++)
		ret = tell_p(c, &s->ps.at[i], c->index->procs.at[i].p, e);
	return ret;
}

/* Before its first event, so that no reader mixes the two up. */
static int64_t opening_ticks(const struct cut1 *c, int64_t first)
{
	double wanted = (double)c->from_ns / c->index->ns_per_tick;
	int64_t latest = (int64_t)((uint64_t)first - 1);

	if (wanted >= (double)((uint64_t)latest - (uint64_t)c->states->first))
		return latest;
	return (int64_t)((uint64_t)c->states->first + (uint64_t)wanted);
}

int cut1_reach(struct cut1 *c, int64_t ticks, struct err *e)
{
	int64_t time_ns = states1_ns(c->states, ticks);
	int ret = 0;

	c->over |= time_ns > c->to_ns;
	if (c->over || time_ns < c->from_ns)
		return 0;
	if (!c->inside && c->from_ns > 0) {
		c->now = opening_ticks(c, ticks);
		ret = open_part(c, e);
	}
	c->inside = true;
	c->now = ticks;
	return ret;
}

/* ---- events ---- */

static bool takes(struct cut1 *c)
{
	if (!c->inside || c->over)
		return false;
	c->last_ns = states1_ns(c->states, c->now);
	if (!c->any)
		c->first_ns = c->last_ns;
	c->any = true;
	return true;
}

/* As it is noted where it happened, and not when its goroutine ran again, it is of no P. */
int cut1_exit(struct cut1 *c, const struct exit1 *x, struct err *e)
{
	uint64_t number = c->seq;
	int ret = 0;

	if (!takes(c))
		return 0;
	if (!is_old(c))
		ret = next_number(c, x->g, &number, e);
	return ret ? ret : PUT(c, NO_P, EV1_GO_SYS_EXIT, e, (uint64_t)x->g, number, 0);
}

int cut1_sample(struct cut1 *c, const struct sample1 *s, struct err *e)
{
	if (!takes(c))
		return 0;
	return PUT(c, NO_P, EV1_CPU_SAMPLE, e, (uint64_t)s->ticks, (uint64_t)s->p, (uint64_t)s->g,
		   s->stack);
}

/* What is known from where it stands needs no number: with one it can stand anywhere. */
static void number_it(struct event1 *ev)
{
	switch (ev->type) {
	case EV1_GO_START_LOCAL:
		ev->type = EV1_GO_START;
		ev->nargs = 3;
		break;
	case EV1_GO_UNBLOCK_LOCAL:
		ev->type = EV1_GO_UNBLOCK;
		ev->args[3] = ev->args[2];
		ev->nargs = 4;
		break;
	default:
		break;
	}
}

static int renumber(struct cut1 *c, struct event1 *ev, struct err *e)
{
	int64_t g = (int64_t)ev->args[1];

	if (is_old(c))
		return 0;
	number_it(ev);
	switch (ev->type) {
	case EV1_GO_CREATE:
		return set_number(c, g, 1, e);
	case EV1_GO_WAITING:
	case EV1_GO_IN_SYSCALL:
		return set_number(c, g, 2, e);
	case EV1_GO_START:
	case EV1_GO_START_LABEL:
	case EV1_GO_UNBLOCK:
		return next_number(c, g, &ev->args[2], e);
	case EV1_GC_START:
		ev->args[1] = c->collections++;
		return 0;
	default:
		return 0;
	}
}

/* A log's message, which stands behind its numbers. */
static int put_message(struct cut1 *c, const struct merged1 *m, struct err *e)
{
	struct making *b = batches_of(&c->batches, m->p);
	uint8_t len[VARINT_MAX];

	return b && making_put(b, len, varint_put(len, m->ev.text_len)) &&
			       making_put(b, c->states->message, m->ev.text_len) ?
		       0 :
		       no_memory(e);
}

int cut1_put(struct cut1 *c, const struct merged1 *m, struct err *e)
{
	struct event1 ev = m->ev;
	int ret;

	if (ev.type == EV1_GO_SYS_EXIT || ev.type == EV1_GO_SYS_EXIT_LOCAL)
		return cut1_exit(c, &(struct exit1){ m->key, m->ticks, m->g }, e);
	if (!takes(c))
		return 0;
	ret = renumber(c, &ev, e);
	if (!ret)
		ret = put_event(c, m->p, ev.type, ev.args + 1, ev.nargs - 1, e);
	if (ev.type == EV1_GO_END)
		ids_del(&c->numbers, (uint64_t)m->g);
	return ret || ev.type != EV1_LOG ? ret : put_message(c, m, e);
}

/* ---- tables ---- */

static int put_strings(struct cut1 *c, struct err *e)
{
	const struct trace_tables *t = &c->index->tables;
	uint8_t head[1 + 2 * VARINT_MAX] = { EV1_STRING };
	int ret = 0;

	for (size_t i = 0; !ret && !is_old(c) && i < t->strings.n; i++) {
		const struct table_span *s = &t->strings.at[i];
		size_t n = 1 + varint_put(head + 1, s->id);

		n += varint_put(head + n, s->n);
		ret = put_bytes(c, head, n, e);
		if (!ret)
			ret = put_bytes(c, t->bytes.at + s->at, s->n, e);
	}
	return ret;
}

static bool put_number(struct making *b, uint64_t v)
{
	uint8_t bytes[VARINT_MAX];

	return making_put(b, bytes, varint_put(bytes, v));
}

static bool put_frame(const struct cut1 *c, struct making *b, const struct table_frame *f)
{
	if (!put_number(b, f->pc))
		return false;
	return is_old(c) ||
	       (put_number(b, f->func) && put_number(b, f->file) && put_number(b, f->line));
}

static int put_stack(struct cut1 *c, struct making *b, const struct table_span *s, struct err *e)
{
	uint8_t head[1 + VARINT_MAX] = { EV1_STACK | 3 << 6 };
	bool fits = put_number(b, s->id) && put_number(b, s->n);
	int ret;

	for (size_t i = 0; fits && i < s->n; i++)
		fits = put_frame(c, b, &c->index->tables.frames.at[s->at + i]);
	if (!fits)
		return no_memory(e);
	ret = put_bytes(c, head, 1 + varint_put(head + 1, b->bytes.n), e);
	if (!ret)
		ret = put_bytes(c, b->bytes.at, b->bytes.n, e);
	b->bytes.n = 0;
	return ret;
}

/* A stack of number 0 is our own, of an address of Go 1.5. */
static int put_stacks(struct cut1 *c, struct err *e)
{
	const struct trace_tables *t = &c->index->tables;
	struct making b = { .of = NO_P };
	int ret = 0;

	for (size_t i = 0; !ret && i < t->stacks.n; i++)
		if (t->stacks.at[i].id)
			ret = put_stack(c, &b, &t->stacks.at[i], e);
	vec_fini(&b.bytes);
	return ret;
}

/* Go 1.5 has a number there that nobody uses. */
static int put_plain(struct cut1 *c, uint8_t type, uint64_t v, struct err *e)
{
	uint8_t bytes[1 + 2 * VARINT_MAX] = { type };
	size_t n = 1 + varint_put(bytes + 1, v);

	if (is_old(c))
		n += varint_put(bytes + n, 0);
	return put_bytes(c, bytes, n, e);
}

static int put_tables(struct cut1 *c, struct err *e)
{
	int ret = put_strings(c, e);

	if (!ret)
		ret = put_stacks(c, e);
	for (size_t i = 0; !ret && i < c->index->timers.n; i++)
		ret = put_plain(c, EV1_TIMER_GOROUTINE, c->index->timers.at[i], e);
	return ret ? ret : put_plain(c, EV1_FREQUENCY, c->index->ticks_per_s, e);
}

/* ---- all of it ---- */

bool cut1_is_over(const struct cut1 *c)
{
	return c->over;
}

int cut1_finish(struct cut1 *c, int64_t *from_ns, int64_t *to_ns, struct err *e)
{
	int ret = 0;

	*from_ns = c->first_ns;
	*to_ns = c->last_ns;
	if (!c->any)
		return err_set(e, -ENOENT, "-o: there is nothing in this time");
	for (size_t i = 0; !ret && i < c->batches.at.n; i++)
		ret = flush(c, &c->batches.at.at[i], e);
	return ret ? ret : put_tables(c, e);
}

static int put_header(struct cut1 *c, struct err *e)
{
	char header[HEADER_BYTES];
	int ret = wire1_bytes(c->index->fd, 0, header, sizeof(header), e);

	return ret ? ret : put_bytes(c, header, sizeof(header), e);
}

int cut1_new(const struct states1 *states, FILE *f, int64_t from_ns, int64_t to_ns,
	     struct cut1 **out, struct err *e)
{
	CLEANUP(cut1_freep) struct cut1 *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return no_memory(e);
	*c = (struct cut1){ .states = states, .index = states->index, .f = f, .from_ns = from_ns };
	c->to_ns = to_ns;
	ret = put_header(c, e);
	if (!ret)
		*out = TAKE(c);
	return ret;
}

void cut1_free(struct cut1 *c)
{
	if (!c)
		return;
	batches_fini(&c->batches);
	ids_fini(&c->numbers);
	free(c);
}
