/*
 * user/ingest/exectrace/trace2.c - takes the earliest event that may come next, of all threads.
 * Source: internal/trace/reader.go and batchcursor.go, Go 1.22 to 1.27.
 */
#include "ingest/exectrace/trace2.h"

#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "ingest/exectrace/cut2.h"
#include "ingest/exectrace/order.h"
#include "ingest/exectrace/ticks.h"

enum { HEADER_BYTES = 16 };

/* Up to so many threads are tried one after the other, which gives Go's order of equal times. */
enum { FEW_THREADS = 64 };

/* A thread whose next event is known. */
struct cursor {
	int64_t m;
	uint32_t thread;  /* index in generation.threads */
	uint32_t batch;	  /* the one that is read, */
	uint8_t *buf;	  /* its bytes; owned */
	uint32_t at, len; /* in buf */
	int64_t time_ns;  /* of the event that was read last, */
	uint64_t ticks;	  /* as the trace has it */
	struct raw_event ev;
	uint32_t other; /* the next one that waits for the same, + 1 */
};

struct slot {
	int64_t time_ns; /* of its next event */
	uint32_t cursor; /* index */
};

struct trace2 {
	int fd;
	struct generations gens;
	struct generation gen;
	uint64_t off; /* where it begins */
	struct order *order;
	struct cut2 *cut; /* NULL: none is made */
	uint8_t arguments
		[256]; /* of each kind of event, behind the time stamp; 0xff: there is none */
	struct trace_event *next;   /* where the next event goes */
	VEC(struct cursor) cursors; /* one per thread of the generation */
	VEC(struct slot) slots;	    /* a heap by time */
	bool many;	    /* threads: those that must wait are in a list of what they wait for */
	struct map waiting; /* hash of a state -> the first cursor, + 1 */
	size_t nwaiting;
	uint32_t waiter; /* that began to wait last */
	size_t sample;	 /* the next one */
	int64_t last_ns; /* of the event that was delivered last */
	bool ended;
	int failed; /* the event behind the one that was tried last cannot be read */
	struct err why;
	/* The trace is damaged behind what this generation has; told when all that was delivered. */
	int pending;
	struct err damage;
	/* Of a generation that is damaged: */
	size_t forced; /* events that came though others were missing before them */
	size_t tried;  /* the slot that was tried last */
	int bad;       /* the first error within it */
	struct err first_bad;
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

static bool uvarint_slow(struct cursor *c, uint64_t *out)
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

/* Most numbers have one byte to three. */
static inline bool uvarint(struct cursor *c, uint64_t *out)
{
	const uint8_t *at = c->buf + c->at;

	if (c->len - c->at < 3 || (at[0] & at[1] & at[2] & 0x80))
		return uvarint_slow(c, out);
	*out = at[0] & 0x7f;
	c->at++;
	if (at[0] < 0x80)
		return true;
	*out |= (uint64_t)(at[1] & 0x7f) << 7;
	c->at++;
	if (at[1] < 0x80)
		return true;
	*out |= (uint64_t)at[2] << 14;
	c->at++;
	return true;
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
	c->ticks = b->ticks;
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
	c->ev.type = c->buf[c->at++];
	n = t->arguments[c->ev.type];
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
	c->time_ns = ticks_add(c->time_ns, ticks_ns((double)dt, t->gen.ns_per_tick));
	c->ev.time_ns = c->time_ns;
	c->ticks += dt;
	return 1;
}

/* ---- the heap, as Go's reader has it ---- */

static void sift_down(struct trace2 *t, size_t i)
{
	struct slot *at = t->slots.at;

	for (;;) {
		size_t least = i, left = 2 * i + 1;
		struct slot s;

		if (left < t->slots.n && at[left].time_ns < at[least].time_ns)
			least = left;
		if (left + 1 < t->slots.n && at[left + 1].time_ns < at[least].time_ns)
			least = left + 1;
		if (least == i)
			return;
		s = at[i];
		at[i] = at[least];
		at[least] = s;
		i = least;
	}
}

static int push(struct trace2 *t, uint32_t cursor, struct err *e)
{
	struct slot new = { t->cursors.at[cursor].ev.time_ns, cursor };
	size_t i = t->slots.n;

	if (!vec_add(&t->slots, LIMIT_TRACE_IDS))
		return err_set(e, -ENOMEM, "no memory for the trace's threads");
	for (; i && t->slots.at[(i - 1) / 2].time_ns > new.time_ns; i = (i - 1) / 2)
		t->slots.at[i] = t->slots.at[(i - 1) / 2];
	t->slots.at[i] = new;
	return 0;
}

/* What was above it moves down, and the last one to the top. */
static void pull(struct trace2 *t, size_t i)
{
	for (; i; i = (i - 1) / 2)
		t->slots.at[i] = t->slots.at[(i - 1) / 2];
	t->slots.at[0] = t->slots.at[--t->slots.n];
	sift_down(t, 0);
}

/* Few things, and nearly sorted. Equal ones stay as they are. */
static void sort(struct trace2 *t)
{
	struct slot *at = t->slots.at;

	for (size_t i = 1; i < t->slots.n; i++) {
		struct slot s = at[i];
		size_t k = i;

		for (; k && at[k - 1].time_ns > s.time_ns; k--)
			at[k] = at[k - 1];
		at[k] = s;
	}
}

/* ---- who waits ---- */

static int park(struct trace2 *t, uint32_t cursor, struct err *e)
{
	uint64_t hash = order_awaited(t->order), first = 0;

	(void)map_get(&t->waiting, hash, &first);
	t->cursors.at[cursor].other = (uint32_t)first;
	t->waiter = cursor;
	t->nwaiting++;
	return map_put(&t->waiting, hash, cursor + 1) ?
		       0 :
		       err_set(e, -ENOMEM, "no memory for the trace's threads");
}

/* One is enough: what it does, or another one, ends the state, or it waits again. */
static int wake(struct trace2 *t, struct err *e)
{
	const uint64_t *reached;
	size_t n = order_reached(t->order, &reached);
	int ret = 0;

	for (size_t i = 0; !ret && t->nwaiting && i < n; i++) {
		uint64_t first;
		uint32_t other;

		if (!map_get(&t->waiting, reached[i], &first))
			continue;
		other = t->cursors.at[first - 1].other;
		if (!other)
			map_del(&t->waiting, reached[i]);
		else
			(void)map_put(&t->waiting, reached[i], other); /* replaces */
		t->nwaiting--;
		ret = push(t, (uint32_t)first - 1, e);
	}
	return ret;
}

/* ---- generations ---- */

static void close_cursors(struct trace2 *t)
{
	for (size_t i = 0; i < t->cursors.n; i++)
		free(t->cursors.at[i].buf);
	t->cursors.n = t->slots.n = t->nwaiting = 0;
	map_fini(&t->waiting);
}

static int open_cursor(struct trace2 *t, uint32_t thread, struct err *e)
{
	const struct gen_thread *of = &t->gen.threads.at[thread];
	struct cursor *c = vec_add(&t->cursors, LIMIT_TRACE_IDS);
	uint32_t most = 1;
	int ret;

	for (size_t i = 0; i < of->batches.n; i++)
		if (of->batches.at[i].size > most)
			most = of->batches.at[i].size;
	if (c)
		c->buf = malloc(most);
	if (!c || !c->buf)
		return err_set(e, -ENOMEM, "no memory for the events of a thread");
	c->m = of->m;
	c->thread = thread;
	ret = load_batch(t, c, e);
	if (!ret)
		ret = next_event(t, c, e);
	return ret > 0 ? push(t, thread, e) : ret;
}

static int tell_damage(const struct trace2 *t, struct err *e)
{
	const char *before = t->bad ? "; before it: " : "", *what = t->bad ? t->first_bad.msg : "";

	if (!t->forced)
		return err_set(e, t->pending, "%s%s%s", t->damage.msg, before, what);
	return err_set(e, t->pending, "%s%s%s; %zu events before it came out of Go's order",
		       t->damage.msg, before, what, t->forced);
}

/* 1: there is one, 0: the trace has ended. */
static int next_generation(struct trace2 *t, struct err *e)
{
	int ret;

	if (t->pending)
		return tell_damage(t, e);
	ret = t->cut && t->gen.number ? cut2_end(t->cut, e) : 0;
	if (ret)
		return ret;
	close_cursors(t);
	t->sample = 0;
	t->off = stream_offset(&t->gens.s);
	ret = generation_read(&t->gens, &t->gen, e);
	if (ret < 0 && t->gen.number) { /* what is whole of it comes first */
		t->pending = ret;
		t->damage = *e;
		ret = 1;
	}
	if (ret <= 0)
		return ret;
	t->many = t->gen.nthreads > FEW_THREADS;
	order_begin(t->order, &t->gen, t->gens.version, t->many);
	for (uint32_t i = 0; i < t->gen.nthreads; i++) {
		ret = open_cursor(t, i, e);
		if (ret)
			return ret;
	}
	return 1;
}

/* ---- one event ---- */

static int order_of(struct trace2 *t, uint32_t cursor, bool force, struct err *e)
{
	const struct cursor *c = &t->cursors.at[cursor];

	return order_advance(t->order, &c->ev, c->m, force, t->next, e);
}

/* Time stamps of threads may be equal, or contradict each other; what is delivered rises. */
static int64_t risen(const struct trace2 *t, int64_t time_ns)
{
	return time_ns <= t->last_ns ? ticks_add(t->last_ns, 1) : time_ns;
}

/* What came goes into the cut, as it is told. */
static int keep(struct trace2 *t, uint32_t cursor, struct err *e)
{
	const struct cursor *c = &t->cursors.at[cursor];
	struct trace_event told = *t->next;
	struct cut2_event ev = { &c->ev, t->arguments[c->ev.type], c->m, c->ticks, &told };

	told.time_ns = risen(t, told.time_ns);
	return cut2_put(t->cut, t->order, &ev, e);
}

static int open_cut(struct trace2 *t, struct err *e)
{
	const struct slot *first = t->slots.at;

	if (!t->slots.n || !cut2_opens_at(t->cut, risen(t, first->time_ns)))
		return 0;
	return cut2_open(t->cut, t->order, t->cursors.at[first->cursor].ticks, e);
}

/* False: there is no more, or that failed, which is told after the present event. */
static bool read_on(struct trace2 *t, uint32_t cursor)
{
	int ret = next_event(t, &t->cursors.at[cursor], &t->why);

	if (ret < 0)
		t->failed = ret;
	return ret > 0;
}

/* 1: what it means is in the order's queue, 0: it has to wait. */
static int try(struct trace2 *t, size_t i, bool force, struct err *e)
{
	struct slot s = t->slots.at[i];
	struct cursor *c = &t->cursors.at[s.cursor];
	int ret = order_of(t, s.cursor, force, e);

	t->tried = i;
	if (ret <= 0)
		return ret;
	t->forced += force;
	ret = t->cut ? keep(t, s.cursor, e) : 1;
	if (ret < 0)
		return ret;
	if (!read_on(t, s.cursor)) {
		pull(t, i);
		return 1;
	}
	/* Time stamps may go back, from one batch to the next. */
	for (s.time_ns = c->ev.time_ns; i && t->slots.at[(i - 1) / 2].time_ns > s.time_ns;
	     i = (i - 1) / 2)
		t->slots.at[i] = t->slots.at[(i - 1) / 2];
	t->slots.at[i] = s;
	sift_down(t, i);
	return 1;
}

static int stuck(const struct trace2 *t, uint32_t cursor, struct err *e)
{
	const struct cursor *c = &t->cursors.at[cursor];
	const struct gen_thread *m = &t->gen.threads.at[c->thread];

	return err_set(
		e, -EBADMSG,
		"generation %llu: no event can come next; that of thread %lld is of kind %u, "
		"before offset %llu",
		(unsigned long long)t->gen.number, (long long)m->m, c->ev.type,
		(unsigned long long)m->batches.at[c->batch].off + c->at);
}

/* Of all threads the earliest event that may come next. */
static int advance_few(struct trace2 *t, struct err *e)
{
	int ret = try(t, 0, false, e);

	if (ret)
		return ret;
	sort(t);
	for (size_t i = 1; !ret && i < t->slots.n; i++)
		ret = try(t, i, false, e);
	if (!ret && t->gen.damaged)
		ret = try(t, 0, true, e);
	return ret ? ret : stuck(t, t->slots.at[0].cursor, e);
}

/* The same, where nobody is asked again before what it waits for is there. */
static int advance_many(struct trace2 *t, struct err *e)
{
	int ret = 0;

	while (!ret && t->slots.n) {
		uint32_t cursor = t->slots.at[0].cursor;

		pull(t, 0);
		ret = order_of(t, cursor, t->gen.damaged, e);
		if (!ret)
			ret = park(t, cursor, e);
		if (ret <= 0)
			continue;
		ret = wake(t, e);
		if (!ret && t->cut)
			ret = keep(t, cursor, e);
		if (!ret && read_on(t, cursor))
			ret = push(t, cursor, e);
		return ret < 0 ? ret : 1;
	}
	return ret ? ret : stuck(t, t->waiter, e);
}

/* Of a thread whose event cannot be in a damaged generation no more is told. */
static int give_up(struct trace2 *t, int why, const struct err *e)
{
	if (!t->bad)
		t->first_bad = *e;
	t->bad = why;
	if (!t->many) /* otherwise it is out of the heap already */
		pull(t, t->tried);
	return 1;
}

static int advance(struct trace2 *t, struct err *e)
{
	int ret;

	if (t->failed) {
		*e = t->why;
		return t->failed;
	}
	ret = t->cut ? open_cut(t, e) : 0;
	if (ret)
		return ret;
	ret = t->many ? advance_many(t, e) : advance_few(t, e);
	return ret == -EBADMSG && t->gen.damaged ? give_up(t, ret, e) : ret;
}

static void take_sample(struct trace2 *t, struct trace_event *ev)
{
	const struct gen_sample *s = &t->gen.samples.at[t->sample++];

	*ev = (struct trace_event){
		.kind = TRACE_CPU_SAMPLE, .time_ns = s->time_ns, .m = s->m, .p = s->p, .g = s->g
	};
	(void)tables_stack(&t->gen.tables, s->stack, &ev->stack);
}

static bool sample_is_next(const struct trace2 *t)
{
	if (t->sample == t->gen.samples.n)
		return false;
	if (!t->slots.n)
		return !t->nwaiting;
	return t->gen.samples.at[t->sample].time_ns < t->slots.at[0].time_ns;
}

static int deliver(struct trace2 *t, struct trace_event *ev)
{
	ev->time_ns = risen(t, ev->time_ns);
	t->last_ns = ev->time_ns;
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

	t->next = ev;
	for (;;) {
		if (order_take(t->order, ev))
			return deliver(t, ev);
		if (sample_is_next(t)) {
			take_sample(t, ev);
			return deliver(t, ev);
		}
		if (t->slots.n || t->nwaiting || t->failed) {
			ret = advance(t, e);
			if (ret < 0)
				return ret;
			continue;
		}
		ret = next_generation(t, e);
		if (ret > 0) {
			ret = sync_event(t, ev, t->gen.start_ns);
			if (t->cut)
				cut2_begin(t->cut, &t->gen, t->off, stream_offset(&t->gens.s),
					   ev->time_ns);
			return ret;
		}
		if (ret < 0 || t->ended)
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
	for (unsigned type = 0; type < sizeof(t->arguments); type++)
		t->arguments[type] = (uint8_t)arguments((uint8_t)type, version);
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
	close_cursors(t);
	vec_fini(&t->cursors);
	vec_fini(&t->slots);
	generation_fini(&t->gen);
	cut2_freep(&t->cut);
	order_free(t->order);
	stream_fini(&t->gens.s);
	free(t);
}

bool trace2_has_clock(const struct trace2 *t)
{
	return !t->gen.number || t->gen.has_clock;
}

const struct trace_tables *trace2_tables(const struct trace2 *t)
{
	return &t->gen.tables;
}

const struct stream *trace2_stream(const struct trace2 *t)
{
	return &t->gens.s;
}

int trace2_cut(struct trace2 *t, FILE *f, int64_t from_ns, int64_t to_ns, struct err *e)
{
	return cut2_new(&t->gens, f, from_ns, to_ns, &t->cut, e);
}

bool trace2_cut_is_over(const struct trace2 *t)
{
	return cut2_is_over(t->cut);
}

int trace2_cut_finish(struct trace2 *t, int64_t *from_ns, int64_t *to_ns, struct err *e)
{
	return cut2_finish(t->cut, from_ns, to_ns, e);
}
