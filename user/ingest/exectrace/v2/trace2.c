/*
 * user/ingest/exectrace/v2/trace2.c - takes the earliest event that may come next, of all threads.
 * Source: internal/trace/reader.go and batchcursor.go, Go 1.22 to 1.27.
 */
#include "ingest/exectrace/v2/trace2.h"

#include "base/cleanup.h"
#include "base/limits.h"
#include "ingest/exectrace/v2/cursor2.h"
#include "ingest/exectrace/v2/cut2.h"
#include "ingest/exectrace/ticks.h"

enum { HEADER_BYTES = 16 };

/* Up to so many threads are tried one after the other, which gives Go's order of equal times. */
enum { FEW_THREADS = 64 };

struct next_event {
	int64_t time_ns; /* of its next event */
	uint32_t cursor; /* index */
};

struct trace2 {
	struct generations gens;
	struct generation gen;
	uint64_t off; /* where it begins */
	struct order *order;
	struct cut2 *cut; /* NULL: none is made */
	struct source2 source;
	struct trace_event *next;     /* where the next event goes */
	int more;		      /* of what the last one means is not delivered yet */
	VEC(struct cursor2) cursors;  /* one per thread of the generation */
	VEC(struct next_event) slots; /* a heap by time */
	bool many;	    /* threads: those that must wait are in a list of what they wait for */
	struct map waiting; /* hash of a state -> the first cursor, + 1 */
	bool unusual;	    /* more is to be asked before an event comes than whether it may */
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

/* ---- the heap, as Go's reader has it ---- */

/* The slot @i is @s, or one below it is. */
static inline void sift_down(struct trace2 *t, size_t i, struct next_event s)
{
	struct next_event *at = t->slots.at;
	size_t n = t->slots.n;

	for (size_t k = 2 * i + 1; k < n; k = 2 * i + 1) {
		k += k + 1 < n && at[k + 1].time_ns < at[k].time_ns;
		if (at[k].time_ns >= s.time_ns)
			break;
		at[i] = at[k];
		i = k;
	}
	at[i] = s;
}

static int push(struct trace2 *t, uint32_t cursor, struct err *e)
{
	struct next_event new = { cursor2_event(&t->cursors.at[cursor])->time_ns, cursor };
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
	t->slots.n--;
	sift_down(t, 0, t->slots.at[t->slots.n]);
}

/* Few things, and nearly sorted. Equal ones stay as they are. */
static void sort(struct trace2 *t)
{
	struct next_event *at = t->slots.at;

	for (size_t i = 1; i < t->slots.n; i++) {
		struct next_event s = at[i];
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
		cursor2_fini(&t->cursors.at[i]);
	t->cursors.n = t->slots.n = t->nwaiting = 0;
	map_fini(&t->waiting);
}

static int open_cursor(struct trace2 *t, uint32_t thread, struct err *e)
{
	struct cursor2 *c = vec_add(&t->cursors, LIMIT_TRACE_IDS);
	int ret;

	if (!c)
		return err_set(e, -ENOMEM, "no memory for the events of a thread");
	ret = cursor2_open(c, &t->source, &t->gen.threads.at[thread], e);
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
	t->source.ns_per_tick = t->gen.ns_per_tick;
	t->many = t->gen.nthreads > FEW_THREADS;
	t->unusual = t->many || t->cut || t->gen.damaged;
	order_begin(t->order, &t->gen, t->gens.version, t->many);
	for (uint32_t i = 0; i < t->gen.nthreads; i++) {
		ret = open_cursor(t, i, e);
		if (ret)
			return ret;
	}
	return 1;
}

/* ---- one event ---- */

/* Time stamps of threads may be equal, or contradict each other; what is delivered rises. */
static int64_t risen(const struct trace2 *t, int64_t time_ns)
{
	return time_ns <= t->last_ns ? ticks_add(t->last_ns, 1) : time_ns;
}

static int order_of(struct trace2 *t, uint32_t cursor, bool force, struct err *e)
{
	struct cursor2 *c = &t->cursors.at[cursor];
	const struct raw_event *ev = cursor2_event(c);
	int ret = 0;

	/* A cut tells what there was before its first event, which may come while an earlier one waits. */
	if (t->cut && cut2_opens_at(t->cut, risen(t, ev->time_ns)))
		ret = cut2_open(t->cut, t->order, e);
	return ret ? ret : order_advance(t->order, &c->thread, ev, force, t->next, e);
}

/* What came goes into the cut, as it is told. */
static int keep(struct trace2 *t, uint32_t cursor, struct err *e)
{
	const struct cursor2 *c = &t->cursors.at[cursor];
	struct trace_event told = *t->next;
	const struct raw_event *raw = cursor2_event(c);
	struct cut2_event ev = { raw, t->source.arguments[raw->type], c->thread.m, &told };

	told.time_ns = risen(t, told.time_ns);
	return cut2_put(t->cut, t->order, &ev, e);
}

/* False: there is no more, or that failed, which is told after the present event. */
static bool read_on(struct trace2 *t, uint32_t cursor)
{
	int ret = cursor2_next(&t->cursors.at[cursor], &t->why);

	if (ret < 0)
		t->failed = ret;
	return ret > 0;
}

/* Its next event goes where the last one was, or further up or down. */
static void place(struct trace2 *t, size_t i, struct next_event s)
{
	/* Time stamps may go back, from one batch to the next. */
	for (; i && t->slots.at[(i - 1) / 2].time_ns > s.time_ns; i = (i - 1) / 2)
		t->slots.at[i] = t->slots.at[(i - 1) / 2];
	sift_down(t, i, s);
}

static void go_on(struct trace2 *t, size_t i, uint32_t cursor)
{
	if (read_on(t, cursor))
		place(t, i,
		      (struct next_event){ cursor2_event(&t->cursors.at[cursor])->time_ns,
					   cursor });
	else
		pull(t, i);
}

/* How many events it means, 0: it has to wait. */
static int try(struct trace2 *t, size_t i, bool force, struct err *e)
{
	uint32_t cursor = t->slots.at[i].cursor;
	int n = order_of(t, cursor, force, e), ret;

	t->tried = i;
	if (n <= 0)
		return n;
	t->forced += force;
	ret = t->cut ? keep(t, cursor, e) : 0;
	if (ret < 0)
		return ret;
	go_on(t, i, cursor);
	return n;
}

static int stuck(const struct trace2 *t, uint32_t cursor, struct err *e)
{
	const struct cursor2 *c = &t->cursors.at[cursor];

	return err_set(
		e, -EBADMSG,
		"generation %llu: no event can come next; that of thread %lld is of kind %u, "
		"before offset %llu",
		(unsigned long long)t->gen.number, (long long)c->thread.m, cursor2_event(c)->type,
		(unsigned long long)cursor2_offset(c));
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
	int ret = 0, n;

	while (!ret && t->slots.n) {
		uint32_t cursor = t->slots.at[0].cursor;

		pull(t, 0);
		ret = order_of(t, cursor, t->gen.damaged, e);
		if (!ret)
			ret = park(t, cursor, e);
		if (ret <= 0)
			continue;
		n = ret;
		ret = wake(t, e);
		if (!ret && t->cut)
			ret = keep(t, cursor, e);
		if (!ret && read_on(t, cursor))
			ret = push(t, cursor, e);
		return ret < 0 ? ret : n;
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
	return 0;
}

/* How many events the next one means, of which the first is where it goes; 0: not known yet. */
static int advance(struct trace2 *t, struct err *e)
{
	int ret;

	if (t->failed) {
		*e = t->why;
		return t->failed;
	}
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

/* Whatever comes. */
static int next_of_any(struct trace2 *t, struct trace_event *ev, struct err *e)
{
	int ret;

	t->next = ev;
	for (;;) {
		if (t->more) {
			t->more--;
			order_take(t->order, ev);
			return deliver(t, ev);
		}
		if (sample_is_next(t)) {
			take_sample(t, ev);
			return deliver(t, ev);
		}
		if (t->slots.n || t->nwaiting || t->failed) {
			ret = advance(t, e);
			if (ret < 0)
				return ret;
			if (!ret)
				continue;
			t->more = ret - 1;
			return deliver(t, ev);
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

/* Nearly always, and so a way without all the questions: an event of a thread, the first of all. */
static inline bool is_usual(const struct trace2 *t)
{
	return !t->more && !t->unusual && !t->failed && t->slots.n &&
	       (t->sample == t->gen.samples.n || !sample_is_next(t));
}

/* The next event of the thread that comes first is no later than all others; then it is the next one. */
static inline bool stays_first(struct trace2 *t, struct cursor2 *c)
{
	struct next_event *at = t->slots.at;
	int64_t time_ns;

	if (c->first + 1 >= c->n)
		return false;
	time_ns = c->events[c->first + 1].time_ns;
	if ((t->slots.n > 1 && at[1].time_ns < time_ns) ||
	    (t->slots.n > 2 && at[2].time_ns < time_ns))
		return false;
	c->first++;
	at[0].time_ns = time_ns;
	return true;
}

int trace2_next(struct trace2 *t, struct trace_event *ev, struct err *e)
{
	const struct next_event *first = t->slots.at;
	struct cursor2 *c;
	int n;

	if (!is_usual(t))
		return next_of_any(t, ev, e);
	c = &t->cursors.at[first->cursor];
	n = order_advance(t->order, &c->thread, cursor2_event(c), false, ev, e);
	if (n <= 0)
		return n < 0 ? n : next_of_any(t, ev, e);
	t->more = n - 1;
	if (!stays_first(t, c))
		go_on(t, 0, first->cursor);
	return deliver(t, ev);
}

/* ---- all of it ---- */

int trace2_open(int fd, unsigned version, struct trace2 **out, struct err *e)
{
	struct trace2 *t = calloc(1, sizeof(*t));
	int ret;

	if (!t)
		return err_set(e, -ENOMEM, "no memory");
	t->gens.version = version;
	source2_init(&t->source, fd, version);
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

int trace2_damage(const struct trace2 *t, struct err *e)
{
	return t->pending ? tell_damage(t, e) : 0;
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
