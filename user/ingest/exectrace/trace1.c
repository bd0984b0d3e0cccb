/*
 * user/ingest/exectrace/trace1.c - a merge of Ps by time stamp and by the states of goroutines.
 * Source: internal/trace/parser.go and order.go, Go 1.7 to 1.21.
 */
#include "ingest/exectrace/trace1_priv.h"

#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/limits.h"

enum { HEADER_BYTES = 16 };

int trace1_no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory for the trace");
}

/* ---- once through the file: tables, and where batches are ---- */

/* A stack is: its number, how many frames, and four numbers of each. */
static int stack_value(void *arg, const struct event1 *ev, uint64_t value, struct err *e)
{
	struct trace1 *t = arg;
	uint64_t *const parts[] = { &t->frame.pc, &t->frame.func, &t->frame.file, &t->frame.line };
	unsigned i = ev->nargs - 1;

	if (i == 0)
		return value ? tables_add_stack(&t->tables, value, e) : 0;
	if (i == 1)
		return 0;
	*parts[(i - 2) % 4] = value;
	if ((i - 2) % 4 < 3 || !ev->args[0])
		return 0;
	return tables_add_frame(&t->tables, &t->frame, e);
}

static int keep_string(struct trace1 *t, const struct wire1 *w, const struct event1 *ev,
		       struct err *e)
{
	int ret;

	if (t->room < ev->text_len) {
		free(t->text);
		t->room = ev->text_len;
		t->text = malloc(t->room);
		if (!t->text)
			return trace1_no_memory(e);
	}
	ret = wire1_bytes(w, ev->text_off, t->text, ev->text_len, e);
	return ret ? ret : tables_add_string(&t->tables, ev->args[0], t->text, ev->text_len, e);
}

static struct t1_proc *proc_of(struct trace1 *t, int64_t p)
{
	struct t1_proc *to;
	uint64_t at;

	if (map_get(&t->by_p, (uint64_t)p, &at))
		return &t->procs.at[at];
	to = vec_add(&t->procs, LIMIT_TRACE_IDS);
	if (!to || !map_put(&t->by_p, (uint64_t)p, t->procs.n - 1))
		return NULL;
	to->p = p;
	to->m = TRACE_NONE;
	return to;
}

static int add_batch(struct trace1 *t, const struct wire1 *w, const struct event1 *ev,
		     struct err *e)
{
	struct t1_proc *p = ev->nargs == 2 ? proc_of(t, (int64_t)ev->args[0]) : NULL;
	struct t1_batch *b = p ? vec_add(&p->batches, LIMIT_TRACE_IDS) : NULL;

	if (ev->nargs != 2)
		return err_set(e, -EBADMSG, "offset %llu: a batch with %u arguments",
			       (unsigned long long)ev->off, ev->nargs);
	if (!b)
		return trace1_no_memory(e);
	*b = (struct t1_batch){ wire1_offset(w), 0, (int64_t)ev->args[1] };
	return 0;
}

/* The batch before ends where the next one begins. */
static void end_batch(struct trace1 *t, int64_t p, uint64_t off)
{
	uint64_t at;

	if (map_get(&t->by_p, (uint64_t)p, &at))
		t->procs.at[at].batches.at[t->procs.at[at].batches.n - 1].until = off;
}

static int add_sample(struct trace1 *t, const struct event1 *ev, struct err *e)
{
	struct t1_sample *s = vec_add(&t->samples, LIMIT_TRACE_IDS);

	if (!s)
		return trace1_no_memory(e);
	*s = (struct t1_sample){ (int64_t)ev->args[1], (int64_t)ev->args[2], (int64_t)ev->args[3],
				 ev->args[4] };
	return 0;
}

static int index_event(struct trace1 *t, const struct wire1 *w, const struct event1 *ev, int64_t *p,
		       bool *in, struct err *e)
{
	int ret;

	switch (ev->type) {
	case EV1_BATCH:
		if (*in)
			end_batch(t, *p, ev->off);
		ret = add_batch(t, w, ev, e);
		*in = !ret;
		*p = (int64_t)ev->args[0];
		return ret;
	case EV1_FREQUENCY:
		if (!ev->args[0])
			return err_set(e, -EBADMSG, "offset %llu: a frequency of 0",
				       (unsigned long long)ev->off);
		t->ns_per_tick = 1e9 / (double)ev->args[0];
		return 0;
	case EV1_STRING:
		return keep_string(t, w, ev, e);
	case EV1_TIMER_GOROUTINE:
		return map_put(&t->timers, ev->args[0], 1) ? 0 : trace1_no_memory(e);
	case EV1_CPU_SAMPLE:
		return add_sample(t, ev, e);
	default:
		return 0;
	}
}

static int by_ticks(const void *a, const void *b)
{
	const struct t1_sample *x = a, *y = b;

	return (x->ticks > y->ticks) - (x->ticks < y->ticks);
}

static int read_index(struct trace1 *t, struct err *e)
{
	struct wire1 w;
	struct event1 ev;
	int64_t p = 0;
	bool in = false;
	int ret = wire1_open(&w, t->fd, HEADER_BYTES, t->size, e);

	while (!ret && (ret = wire1_next(&w, t->version, &ev, stack_value, t, e)) > 0)
		ret = index_event(t, &w, &ev, &p, &in, e);
	if (in)
		end_batch(t, p, ret ? ev.off : wire1_offset(&w));
	wire1_fini(&w);
	if (t->samples.n)
		qsort(t->samples.at, t->samples.n, sizeof(*t->samples.at), by_ticks);
	return ret;
}

/* ---- the next event of each P ---- */

/* Whose event it is, and who runs on the P afterwards. */
static void whose(struct t1_proc *p)
{
	const struct event1 *ev = &p->ev;

	p->ev_g = p->g;
	switch (ev->type) {
	case EV1_GO_START:
	case EV1_GO_START_LOCAL:
	case EV1_GO_START_LABEL:
		p->g = p->ev_g = (int64_t)ev->args[1];
		break;
	case EV1_GC_START:
	case EV1_GC_DONE:
	case EV1_STW_DONE:
		p->ev_g = 0;
		break;
	case EV1_GO_SYS_EXIT:
	case EV1_GO_SYS_EXIT_LOCAL:
	case EV1_GO_WAITING:
	case EV1_GO_IN_SYSCALL:
		p->ev_g = (int64_t)ev->args[1];
		break;
	case EV1_GO_END:
	case EV1_GO_STOP:
	case EV1_GO_SCHED:
	case EV1_GO_PREEMPT:
	case EV1_GO_SLEEP:
	case EV1_GO_BLOCK:
	case EV1_GO_BLOCK_SEND:
	case EV1_GO_BLOCK_RECV:
	case EV1_GO_BLOCK_SELECT:
	case EV1_GO_BLOCK_SYNC:
	case EV1_GO_BLOCK_COND:
	case EV1_GO_BLOCK_NET:
	case EV1_GO_SYS_BLOCK:
	case EV1_GO_BLOCK_GC:
		p->g = 0;
		break;
	default:
		break;
	}
}

/* 1: there is one, 0: no more. What has no time stamp, and samples, are told elsewhere. */
static int next_event(struct trace1 *t, struct t1_proc *p, struct err *e)
{
	int ret;

	for (;;) {
		ret = wire1_next(&p->w, t->version, &p->ev, NULL, NULL, e);
		if (ret < 0)
			return ret;
		if (!ret) {
			if (p->batch == p->batches.n)
				return 0;
			wire1_seek(&p->w, p->batches.at[p->batch].from,
				   p->batches.at[p->batch].until);
			p->ticks = p->batches.at[p->batch++].ticks;
			continue;
		}
		if (!wire1_timed(p->ev.type))
			continue;
		p->ticks += (int64_t)p->ev.args[0];
		if (p->ev.type == EV1_CPU_SAMPLE)
			continue;
		whose(p);
		return 1;
	}
}

static int open_procs(struct trace1 *t, struct err *e)
{
	for (uint32_t i = 0; i < t->procs.n; i++) {
		struct t1_proc *p = &t->procs.at[i];
		int ret = wire1_open(&p->w, t->fd, 0, 0, e);
		uint32_t *to;

		if (!ret)
			ret = next_event(t, p, e);
		if (ret < 0)
			return ret;
		to = ret ? vec_add(&t->front, LIMIT_TRACE_IDS) : NULL;
		if (ret && !to)
			return trace1_no_memory(e);
		if (to)
			*to = i;
	}
	return 0;
}

/* ---- the order ---- */

/* What an event demands of a goroutine, and what becomes of it. */
struct rule {
	int64_t g; /* -1: none */
	bool seq;  /* its number must be @n */
	uint64_t n;
	enum g1 from, to;
	bool counts; /* the number rises */
};

static struct rule rule_of(const struct t1_proc *p)
{
	const struct event1 *ev = &p->ev;
	int64_t other = (int64_t)ev->args[1], own = p->ev_g;
	uint64_t n = ev->args[2];

	switch (ev->type) {
	case EV1_GO_CREATE:
		return (struct rule){ other, true, 0, G1_DEAD, G1_RUNNABLE, true };
	case EV1_GO_WAITING:
	case EV1_GO_IN_SYSCALL:
		return (struct rule){ own, true, 1, G1_RUNNABLE, G1_WAITING, true };
	case EV1_GO_START:
	case EV1_GO_START_LABEL:
		return (struct rule){ own, true, n, G1_RUNNABLE, G1_RUNNING, true };
	case EV1_GO_START_LOCAL:
		return (struct rule){ own, false, 0, G1_RUNNABLE, G1_RUNNING, true };
	case EV1_GO_BLOCK:
	case EV1_GO_BLOCK_SEND:
	case EV1_GO_BLOCK_RECV:
	case EV1_GO_BLOCK_SELECT:
	case EV1_GO_BLOCK_SYNC:
	case EV1_GO_BLOCK_COND:
	case EV1_GO_BLOCK_NET:
	case EV1_GO_SLEEP:
	case EV1_GO_SYS_BLOCK:
	case EV1_GO_BLOCK_GC:
		return (struct rule){ own, false, 0, G1_RUNNING, G1_WAITING, false };
	case EV1_GO_SCHED:
	case EV1_GO_PREEMPT:
		return (struct rule){ own, false, 0, G1_RUNNING, G1_RUNNABLE, false };
	case EV1_GO_UNBLOCK:
	case EV1_GO_SYS_EXIT:
		return (struct rule){ other, true, n, G1_WAITING, G1_RUNNABLE, true };
	case EV1_GO_UNBLOCK_LOCAL:
	case EV1_GO_SYS_EXIT_LOCAL:
		return (struct rule){ other, false, 0, G1_WAITING, G1_RUNNABLE, true };
	default:
		return (struct rule){ .g = -1 };
	}
}

struct t1_g *trace1_goroutine(const struct trace1 *t, int64_t id)
{
	uint64_t at;

	return map_get(&t->by_g, (uint64_t)id, &at) ? &t->gs.at[at] : NULL;
}

static bool ready(const struct trace1 *t, const struct t1_proc *p)
{
	static const struct t1_g none = { .is = G1_DEAD };
	struct rule r = rule_of(p);
	const struct t1_g *g;

	if (p->ev.type == EV1_GC_START)
		return p->ev.args[1] == t->gc_seq;
	if (r.g < 0)
		return true;
	g = trace1_goroutine(t, r.g);
	g = g ? g : &none;
	return g->is == r.from && (!r.seq || g->seq == r.n);
}

static struct t1_g *new_goroutine(struct trace1 *t, int64_t id)
{
	uint64_t at = t->free_gs.n ? t->free_gs.at[--t->free_gs.n] : t->gs.n;
	struct t1_g *g = at < t->gs.n ? &t->gs.at[at] : vec_add(&t->gs, LIMIT_TRACE_IDS);

	if (!g || !map_put(&t->by_g, (uint64_t)id, at))
		return NULL;
	*g = (struct t1_g){ .id = id, .entered = -1, .blocked = -1 };
	return g;
}

static int apply(struct trace1 *t, const struct t1_proc *p, struct err *e)
{
	struct rule r = rule_of(p);
	struct t1_g *g;

	if (p->ev.type == EV1_GC_START)
		t->gc_seq++;
	if (r.g < 0)
		return 0;
	g = trace1_goroutine(t, r.g);
	if (!g)
		g = new_goroutine(t, r.g);
	if (!g)
		return trace1_no_memory(e);
	g->is = r.to;
	g->seq += r.counts;
	return 0;
}

/* ---- one after the other ---- */

/* The earliest that may come next, as an index in front; -1: none may. */
static ssize_t choose(const struct trace1 *t)
{
	ssize_t best = -1;

	for (size_t i = 0; i < t->front.n; i++) {
		const struct t1_proc *p = &t->procs.at[t->front.at[i]];

		if (best >= 0 && p->ticks >= t->procs.at[t->front.at[best]].ticks)
			continue;
		if (ready(t, p))
			best = (ssize_t)i;
	}
	return best;
}

static int step(struct trace1 *t, struct err *e)
{
	ssize_t i = choose(t);
	struct t1_proc *p;
	int ret;

	if (i < 0)
		return err_set(e, -EBADMSG,
			       "no consistent order: no event can come next, at offset %llu",
			       (unsigned long long)t->procs.at[t->front.at[0]].ev.off);
	p = &t->procs.at[t->front.at[i]];
	if (!t->begun)
		t->first = t->last = p->ticks;
	t->begun = true;
	if (p->ticks < t->last)
		return err_set(e, -EBADMSG,
			       "offset %llu: time stamps contradict the order of events",
			       (unsigned long long)p->ev.off);
	t->last = p->ticks;
	ret = apply(t, p, e);
	if (!ret)
		ret = trace1_tell(t, p, e);
	if (!ret)
		ret = next_event(t, p, e);
	if (!ret)
		t->front.at[i] = t->front.at[--t->front.n];
	return ret < 0 ? ret : 0;
}

static bool sample_is_next(const struct trace1 *t)
{
	if (t->sample == t->samples.n || !t->begun)
		return false;
	for (size_t i = 0; i < t->front.n; i++)
		if (t->procs.at[t->front.at[i]].ticks <= t->samples.at[t->sample].ticks)
			return false;
	return true;
}

static void take_sample(struct trace1 *t, struct trace_event *ev)
{
	const struct t1_sample *s = &t->samples.at[t->sample++];

	*ev = (struct trace_event){ .kind = TRACE_CPU_SAMPLE,
				    .time_ns = trace1_ns(t, s->ticks),
				    .m = TRACE_NONE,
				    .p = s->p,
				    .g = s->g ? s->g : TRACE_NONE,
				    .stack = trace1_stack(t, s->stack) };
}

int trace1_next(struct trace1 *t, struct trace_event *ev, struct err *e)
{
	int ret;

	for (;;) {
		if (t->head < t->queued) {
			*ev = t->queue[t->head++];
			return 1;
		}
		t->head = t->queued = 0;
		if (sample_is_next(t)) {
			take_sample(t, ev);
			return 1;
		}
		if (!t->front.n)
			break;
		ret = step(t, e);
		if (ret)
			return ret;
	}
	if (t->pending)
		*e = t->damage;
	return t->pending;
}

/* ---- all of it ---- */

int trace1_open(int fd, unsigned version, struct trace1 **out, struct err *e)
{
	struct trace1 *t = calloc(1, sizeof(*t));
	struct stat st;
	int ret;

	if (!t)
		return trace1_no_memory(e);
	t->fd = fd;
	t->version = version;
	ret = fstat(fd, &st) ? err_sys(e, "reading it") : 0;
	t->size = ret ? 0 : (uint64_t)st.st_size;
	if (!ret)
		ret = read_index(t, e);
	if (ret == -EBADMSG && t->procs.n) { /* what came before is good */
		t->pending = ret;
		t->damage = *e;
		ret = 0;
	}
	if (!ret && t->ns_per_tick <= 0)
		ret = err_set(e, -EBADMSG, "the trace tells no frequency: it is cut or damaged");
	if (!ret)
		ret = open_procs(t, e);
	if (ret) {
		trace1_free(t);
		return ret;
	}
	*out = t;
	return 0;
}

void trace1_free(struct trace1 *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->procs.n; i++) {
		vec_fini(&t->procs.at[i].batches);
		wire1_fini(&t->procs.at[i].w);
	}
	vec_fini(&t->procs);
	map_fini(&t->by_p);
	vec_fini(&t->front);
	vec_fini(&t->gs);
	map_fini(&t->by_g);
	vec_fini(&t->free_gs);
	vec_fini(&t->samples);
	map_fini(&t->timers);
	tables_fini(&t->tables);
	free(t->kept);
	free(t->text);
	free(t);
}

const struct trace_tables *trace1_tables(const struct trace1 *t)
{
	return &t->tables;
}

uint64_t trace1_offset(const struct trace1 *t)
{
	uint64_t most = 0;

	for (size_t i = 0; i < t->front.n; i++)
		if (t->procs.at[t->front.at[i]].ev.off > most)
			most = t->procs.at[t->front.at[i]].ev.off;
	return t->front.n ? most : t->size;
}

uint64_t trace1_size(const struct trace1 *t)
{
	return t->size;
}
