/*
 * user/ingest/exectrace/trace2.c - takes the earliest event that may come next, of all threads.
 * Source: internal/trace/reader.go and batchcursor.go, Go 1.22 to 1.27.
 */
#include "ingest/exectrace/trace2.h"

#include <unistd.h>

#include "base/cleanup.h"
#include "ingest/exectrace/order.h"

enum { HEADER_BYTES = 16 };

/* A thread whose next event is known. */
struct cursor {
	uint32_t thread;  /* index in generation.threads */
	uint32_t batch;	  /* the one that is read, */
	uint8_t *buf;	  /* its bytes; owned */
	uint32_t at, len; /* in buf */
	int64_t time_ns;  /* of the event that was read last */
	struct raw_event ev;
};

struct trace2 {
	int fd;
	struct generations gens;
	struct generation gen;
	struct order *order;
	VEC(struct cursor) cursors; /* a heap by the time of the next event, unless sorted */
	size_t sample;		    /* the next one */
	int64_t last_ns;	    /* of the event that was delivered last */
	bool begun, ended;
	/* The trace is damaged behind what this generation has; told when all that was delivered. */
	int pending;
	struct err damage;
};

/* ---- events of a batch ---- */

/* Arguments behind the time stamp. 0xff: no event of a batch. */
static unsigned arguments(uint8_t type, unsigned version)
{
	static const uint8_t n[EV_TYPES] = {
		[EV_PROCS_CHANGE] = 2,
		[EV_PROC_START] = 2,
		[EV_PROC_STEAL] = 3,
		[EV_PROC_STATUS] = 2,
		[EV_GO_CREATE] = 3,
		[EV_GO_CREATE_SYSCALL] = 1,
		[EV_GO_START] = 2,
		[EV_GO_STOP] = 2,
		[EV_GO_BLOCK] = 2,
		[EV_GO_UNBLOCK] = 3,
		[EV_GO_SYSCALL_BEGIN] = 2,
		[EV_GO_STATUS] = 3,
		[EV_STW_BEGIN] = 2,
		[EV_GC_ACTIVE] = 1,
		[EV_GC_BEGIN] = 2,
		[EV_GC_END] = 1,
		[EV_GC_SWEEP_ACTIVE] = 1,
		[EV_GC_SWEEP_BEGIN] = 1,
		[EV_GC_SWEEP_END] = 2,
		[EV_GC_ASSIST_ACTIVE] = 1,
		[EV_GC_ASSIST_BEGIN] = 1,
		[EV_HEAP_ALLOC] = 1,
		[EV_HEAP_GOAL] = 1,
		[EV_GO_LABEL] = 1,
		[EV_TASK_BEGIN] = 4,
		[EV_TASK_END] = 2,
		[EV_REGION_BEGIN] = 3,
		[EV_REGION_END] = 3,
		[EV_LOG] = 4,
		[EV_GO_SWITCH] = 2,
		[EV_GO_SWITCH_DESTROY] = 2,
		[EV_GO_CREATE_BLOCKED] = 3,
		[EV_GO_STATUS_STACK] = 4,
	};
	/* id and up to two more: span, heap object, goroutine stack; each has alloc and free, too */
	static const uint8_t experiment[] = { 3, 3, 1, 2, 2, 1, 2, 2, 1 };
	unsigned last = version < 23 ? EV_LOG : EV_GO_STATUS_STACK;

	if (type >= EV_EXPERIMENT_FIRST && type < EV_EXPERIMENT_END && version >= 23)
		return experiment[type - EV_EXPERIMENT_FIRST];
	return type >= EV_PROCS_CHANGE && type <= last ? n[type] : 0xff;
}

static bool uvarint(struct cursor *c, uint64_t *out)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64 && c->at < c->len; shift += 7) {
		uint8_t byte = c->buf[c->at++];

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*out = v;
			return shift < 63 || byte < 2;
		}
	}
	return false;
}

static int load_batch(struct trace2 *t, struct cursor *c, struct err *e)
{
	const struct gen_thread *thread = &t->gen.threads.at[c->thread];
	const struct gen_batch *b = &thread->batches.at[c->batch];
	ssize_t got;

	do
		got = pread(t->fd, c->buf, b->size, (off_t)b->off);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_sys(e, "reading the trace");
	if ((size_t)got != b->size)
		return err_set(e, -EBADMSG, "the trace became shorter while it was read");
	c->at = 0;
	c->len = b->size;
	c->time_ns = b->base;
	return 0;
}

/* 1: the next event of this thread is there, 0: there is none. */
static int next_event(struct trace2 *t, struct cursor *c, struct err *e)
{
	const struct gen_thread *thread = &t->gen.threads.at[c->thread];
	uint64_t dt = 0;
	unsigned n;
	bool whole;
	int ret;

	while (c->at == c->len) {
		if (++c->batch >= thread->batches.n)
			return 0;
		ret = load_batch(t, c, e);
		if (ret)
			return ret;
	}
	c->ev = (struct raw_event){ .type = c->buf[c->at++] };
	n = arguments(c->ev.type, t->gens.version);
	if (n > ORDER_ARGS_MAX)
		return err_set(e, -EBADMSG, "offset %llu: an event of the unknown kind %u",
			       (unsigned long long)thread->batches.at[c->batch].off + c->at - 1,
			       c->ev.type);
	whole = uvarint(c, &dt);
	for (unsigned i = 0; i < n; i++)
		whole = whole && uvarint(c, &c->ev.args[i]);
	if (!whole)
		return err_set(e, -EBADMSG, "offset %llu: an event that is cut",
			       (unsigned long long)thread->batches.at[c->batch].off + c->at);
	c->time_ns += (int64_t)((double)dt * t->gen.ns_per_tick);
	c->ev.time_ns = c->time_ns;
	return 1;
}

/* ---- the heap ---- */

static void swap(struct trace2 *t, size_t a, size_t b)
{
	struct cursor c = t->cursors.at[a];

	t->cursors.at[a] = t->cursors.at[b];
	t->cursors.at[b] = c;
}

static bool earlier(const struct trace2 *t, size_t a, size_t b)
{
	return t->cursors.at[a].ev.time_ns < t->cursors.at[b].ev.time_ns;
}

static void sift_down(struct trace2 *t, size_t i)
{
	for (;;) {
		size_t least = i, left = 2 * i + 1;

		if (left < t->cursors.n && earlier(t, left, least))
			least = left;
		if (left + 1 < t->cursors.n && earlier(t, left + 1, least))
			least = left + 1;
		if (least == i)
			return;
		swap(t, i, least);
		i = least;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct cursor *x = a, *y = b;

	return (x->ev.time_ns > y->ev.time_ns) - (x->ev.time_ns < y->ev.time_ns);
}

static void drop(struct trace2 *t, size_t i)
{
	free(t->cursors.at[i].buf);
	t->cursors.at[i] = t->cursors.at[--t->cursors.n];
}

/* ---- generations ---- */

static int open_cursor(struct trace2 *t, uint32_t thread, struct err *e)
{
	const struct gen_thread *of = &t->gen.threads.at[thread];
	struct cursor *c = vec_add(&t->cursors, UINT32_MAX);
	uint32_t most = 1;
	int ret;

	for (size_t i = 0; i < of->batches.n; i++)
		if (of->batches.at[i].size > most)
			most = of->batches.at[i].size;
	if (c)
		c->buf = malloc(most);
	if (!c || !c->buf)
		return err_set(e, -ENOMEM, "no memory for the events of a thread");
	c->thread = thread;
	ret = load_batch(t, c, e);
	if (!ret)
		ret = next_event(t, c, e);
	if (!ret)
		drop(t, t->cursors.n - 1);
	return ret < 0 ? ret : 0;
}

/* 1: there is one, 0: the trace has ended. */
static int next_generation(struct trace2 *t, struct err *e)
{
	int ret;

	if (t->pending) {
		*e = t->damage;
		return t->pending;
	}
	ret = generation_read(&t->gens, &t->gen, e);
	if (ret < 0 && t->gen.number) { /* what is whole of it comes first */
		t->pending = ret;
		t->damage = *e;
		ret = 1;
	}
	if (ret <= 0)
		return ret;
	order_begin(t->order, &t->gen, t->gens.version);
	t->sample = 0;
	for (uint32_t i = 0; i < t->gen.nthreads; i++) {
		ret = open_cursor(t, i, e);
		if (ret)
			return ret;
	}
	for (size_t i = t->cursors.n / 2; i-- > 0;)
		sift_down(t, i);
	return 1;
}

/* ---- one event ---- */

/* 1: what it means is in the order's queue, 0: it has to wait. */
static int try(struct trace2 *t, size_t i, struct err *e)
{
	struct cursor *c = &t->cursors.at[i];
	int64_t m = t->gen.threads.at[c->thread].m;
	int ret = order_advance(t->order, &c->ev, m, e), more;

	if (ret <= 0)
		return ret;
	more = next_event(t, c, e);
	if (more < 0)
		return more;
	if (!more)
		drop(t, i);
	if (i)
		for (size_t k = t->cursors.n / 2; k-- > 0;)
			sift_down(t, k);
	else
		sift_down(t, 0);
	return 1;
}

static int stuck(const struct trace2 *t, struct err *e)
{
	const struct cursor *c = &t->cursors.at[0];

	return err_set(
		e, -EBADMSG,
		"generation %llu: no event can come next; that of thread %lld is of kind %u, "
		"at offset %llu",
		(unsigned long long)t->gen.number, (long long)t->gen.threads.at[c->thread].m,
		c->ev.type,
		(unsigned long long)t->gen.threads.at[c->thread].batches.at[c->batch].off + c->at);
}

/* Of all threads the earliest event that may come next. */
static int advance(struct trace2 *t, struct err *e)
{
	int ret = try(t, 0, e);

	if (ret)
		return ret;
	qsort(t->cursors.at, t->cursors.n, sizeof(*t->cursors.at), by_time);
	for (size_t i = 1; !ret && i < t->cursors.n; i++)
		ret = try(t, i, e);
	return ret ? ret : stuck(t, e);
}

static void take_sample(struct trace2 *t, struct trace_event *ev)
{
	const struct gen_sample *s = &t->gen.samples.at[t->sample++];

	*ev = (struct trace_event){
		.kind = TRACE_CPU_SAMPLE, .time_ns = s->time_ns, .m = s->m, .p = s->p, .g = s->g
	};
	(void)tables_stack(&t->gen.tables, s->stack, &ev->stack);
}

/* Time stamps of threads may be equal, or contradict each other; what is delivered rises. */
static int deliver(struct trace2 *t, struct trace_event *ev)
{
	if (t->begun && ev->time_ns <= t->last_ns)
		ev->time_ns = t->last_ns + 1;
	t->last_ns = ev->time_ns;
	t->begun = true;
	return 1;
}

/* Between generations, and behind the last one. */
static int sync_event(struct trace2 *t, struct trace_event *ev, int64_t time_ns)
{
	*ev = (struct trace_event){ .kind = TRACE_SYNC,
				    .time_ns = time_ns,
				    .m = TRACE_NONE,
				    .p = TRACE_NONE,
				    .g = TRACE_NONE };
	if (t->gen.snapshot && !t->ended) {
		ev->sync.has_clock = true;
		ev->sync.trace_ns = t->gen.snapshot_ns;
		ev->sync.mono_ns = t->gen.mono_ns;
		ev->sync.unix_ns = t->gen.unix_ns;
	}
	return deliver(t, ev);
}

int trace2_next(struct trace2 *t, struct trace_event *ev, struct err *e)
{
	int ret;

	for (;;) {
		if (order_take(t->order, ev))
			return deliver(t, ev);
		if (t->sample < t->gen.samples.n &&
		    (!t->cursors.n ||
		     t->gen.samples.at[t->sample].time_ns < t->cursors.at[0].ev.time_ns)) {
			take_sample(t, ev);
			return deliver(t, ev);
		}
		if (t->cursors.n) {
			ret = advance(t, e);
			if (ret < 0)
				return ret;
			continue;
		}
		ret = next_generation(t, e);
		if (ret > 0)
			return sync_event(t, ev, t->gen.start_ns);
		if (ret < 0 || t->ended || !t->begun)
			return ret;
		t->ended = true;
		return sync_event(t, ev, t->last_ns);
	}
}

/* ---- all of it ---- */

int trace2_open(int fd, unsigned version, struct trace2 **out, struct err *e)
{
	struct trace2 *t = calloc(1, sizeof(*t));
	int ret;

	if (!t)
		return err_set(e, -ENOMEM, "no memory");
	t->fd = fd;
	t->gens.version = version;
	ret = stream_open(&t->gens.s, fd, e);
	if (!ret)
		ret = order_new(&t->order, e);
	if (ret) {
		trace2_free(t);
		return ret;
	}
	stream_seek(&t->gens.s, HEADER_BYTES);
	*out = t;
	return 0;
}

void trace2_free(struct trace2 *t)
{
	if (!t)
		return;
	while (t->cursors.n)
		drop(t, t->cursors.n - 1);
	vec_fini(&t->cursors);
	generation_fini(&t->gen);
	order_free(t->order);
	stream_fini(&t->gens.s);
	free(t);
}

bool trace2_has_clock(const struct trace2 *t)
{
	(void)t;
	return true;
}

const struct trace_tables *trace2_tables(const struct trace2 *t)
{
	return &t->gen.tables;
}

const struct stream *trace2_stream(const struct trace2 *t)
{
	return &t->gens.s;
}
