/* user/ingest/exectrace/v2/generation.c - batches of one generation, and the tables in them. */
#include "ingest/exectrace/v2/generation.h"

#include "base/cleanup.h"
#include "base/limits.h"
#include "ingest/exectrace/ticks.h"

/*
 * Source: internal/trace/tracev2/tracev2.go: MaxBatchSize, MaxFramesPerStack (MaxStackFrames before),
 * MaxEventTrailerDataSize; Go 1.22 to 1.27.
 */
enum { BATCH_MAX = 64 << 10, FRAMES_MAX = 128, STRING_MAX = 1 << 10 };

/* A head has no more than HEAD_BYTES, with a byte of what follows. */
enum { WORTH_SKIPPING = 32 << 10, HEAD_BYTES = 64 };

/* ---- bytes of a batch ---- */

struct bytes {
	const uint8_t *at, *end;
	bool bad;
	unsigned version;
	uint64_t ticks; /* of its beginning */
};

static uint64_t uvarint(struct bytes *b)
{
	uint64_t v = 0;

	for (unsigned shift = 0; b->at < b->end && shift < 64; shift += 7) {
		uint8_t byte = *b->at++;

		v |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			b->bad |= shift == 63 && byte > 1;
			return v;
		}
	}
	b->bad = true;
	return 0;
}

/* ---- heads ---- */

struct head {
	enum { HEAD_BATCH, HEAD_EXPERIMENT, HEAD_END_OF_GENERATION, HEAD_END } what;
	uint64_t off; /* where it begins */
	uint64_t gen, m, base, size;
};

static int bad_at(uint64_t off, const char *what, struct err *e)
{
	return err_set(e, -EBADMSG, "offset %llu: %s", (unsigned long long)off, what);
}

static int head_kind(const struct generations *s, uint8_t type, struct head *h, struct err *e)
{
	h->what = HEAD_BATCH;
	if (type == EV_EXPERIMENTAL_BATCH && s->version >= 23)
		h->what = HEAD_EXPERIMENT;
	else if (type == EV_END_OF_GENERATION && s->version >= 26)
		h->what = HEAD_END_OF_GENERATION;
	else if (type != EV_BATCH)
		return err_set(e, -EBADMSG, "offset %llu: no batch begins with byte %u",
			       (unsigned long long)h->off, type);
	return 0;
}

static int read_head(struct generations *s, struct head *h, struct err *e)
{
	struct stream *t = &s->s;
	int ret;

	*h = (struct head){ .what = HEAD_END, .off = stream_offset(t) };
	if (!stream_have(t, 1))
		return t->failed ? err_set(e, -t->failed, "%s", strerror(t->failed)) : 0;
	ret = head_kind(s, t->buf[t->at], h, e);
	if (ret)
		return ret;
	stream_skip(t, 1);
	if (h->what == HEAD_END_OF_GENERATION)
		return 0;
	if (h->what == HEAD_EXPERIMENT)
		stream_skip(t, 1);
	if (!stream_uvarint(t, &h->gen) || !stream_uvarint(t, &h->m) ||
	    !stream_uvarint(t, &h->base) || !stream_uvarint(t, &h->size))
		return bad_at(h->off, "the head of a batch is cut or wrong", e);
	if (!h->gen)
		return bad_at(h->off, "a batch of generation 0", e);
	if (h->size > BATCH_MAX)
		return err_set(e, -EBADMSG, "offset %llu: a batch of %llu bytes",
			       (unsigned long long)h->off, (unsigned long long)h->size);
	if (stream_offset(t) > t->size || h->size > t->size - stream_offset(t) ||
	    !stream_have(t, h->size > 0))
		return bad_at(h->off, "the trace ends in this batch", e);
	return 0;
}

/* ---- tables ---- */

typedef int table_reader(struct generation *g, struct bytes *b, struct err *e);

static int read_strings(struct generation *g, struct bytes *b, struct err *e)
{
	b->at++;
	while (b->at < b->end) {
		uint64_t id, len;
		int ret;

		if (*b->at++ != EV_STRING)
			return err_set(e, -EBADMSG, "something else among strings");
		id = uvarint(b);
		len = uvarint(b);
		if (b->bad || len > STRING_MAX || len > (uint64_t)(b->end - b->at))
			return err_set(e, -EBADMSG, "a string that is cut or too long");
		ret = tables_add_string(&g->tables, id, b->at, (size_t)len, e);
		if (ret)
			return ret;
		b->at += len;
	}
	return 0;
}

static int read_stack(struct generation *g, struct bytes *b, struct err *e)
{
	uint64_t id = uvarint(b), n = uvarint(b);
	int ret;

	if (b->bad || n > FRAMES_MAX)
		return err_set(e, -EBADMSG, "a stack that is cut or too deep");
	ret = tables_add_stack(&g->tables, id, e);
	for (uint64_t i = 0; !ret && i < n; i++) {
		struct table_frame f = { .pc = uvarint(b) };

		f.func = uvarint(b);
		f.file = uvarint(b);
		f.line = uvarint(b);
		ret = b->bad ? err_set(e, -EBADMSG, "a stack that is cut") :
			       tables_add_frame(&g->tables, &f, e);
	}
	return ret;
}

static int read_stacks(struct generation *g, struct bytes *b, struct err *e)
{
	int ret = 0;

	b->at++;
	while (!ret && b->at < b->end) {
		if (*b->at++ != EV_STACK)
			return err_set(e, -EBADMSG, "something else among stacks");
		ret = read_stack(g, b, e);
	}
	return ret;
}

/* "None" is all ones for threads and Ps, and 0 for goroutines. */
static int read_samples(struct generation *g, struct bytes *b, struct err *e)
{
	b->at++;
	while (b->at < b->end) {
		struct gen_sample *s;

		if (*b->at++ != EV_CPU_SAMPLE)
			return err_set(e, -EBADMSG, "something else among CPU samples");
		s = vec_add(&g->samples, LIMIT_TRACE_IDS);
		if (!s)
			return err_set(e, -ENOMEM, "no memory for CPU samples");
		s->time_ns = (int64_t)uvarint(b); /* in ticks for now */
		s->m = (int64_t)uvarint(b);
		s->p = (int64_t)uvarint(b);
		s->g = (int64_t)uvarint(b);
		s->g = s->g ? s->g : TRACE_NONE;
		s->stack = uvarint(b);
		if (b->bad)
			return err_set(e, -EBADMSG, "a CPU sample that is cut");
	}
	return 0;
}

static int read_snapshot(struct generation *g, struct bytes *b, uint64_t *ticks, struct err *e)
{
	uint64_t sec;

	if (g->snapshot)
		return err_set(e, -EBADMSG, "a second clock snapshot");
	*ticks += uvarint(b);
	g->snapshot_ns = (int64_t)*ticks; /* in ticks for now */
	g->mono_ns = (int64_t)uvarint(b);
	sec = uvarint(b);
	g->unix_ns = (int64_t)(sec * 1000000000u + uvarint(b));
	g->snapshot = true;
	return 0;
}

/* From Go 1.25 on a batch of its own kind, which the snapshot is in as well. */
static int read_sync(struct generation *g, struct bytes *b, struct err *e)
{
	uint64_t ticks = b->ticks;
	int ret = 0;

	if (b->version >= 25)
		b->at++;
	while (!ret && b->at < b->end) {
		uint8_t type = *b->at++;
		uint64_t frequency;

		if (type == EV_CLOCK_SNAPSHOT && b->version >= 25) {
			ret = read_snapshot(g, b, &ticks, e);
			continue;
		}
		if (type != EV_FREQUENCY)
			return err_set(e, -EBADMSG, "event %u beside the frequency", type);
		frequency = uvarint(b);
		if (g->ns_per_tick > 0)
			return err_set(e, -EBADMSG, "a second frequency");
		if (b->bad || !frequency)
			return err_set(e, -EBADMSG, "a frequency that is cut, or 0");
		g->ns_per_tick = 1.0 / ((double)frequency / 1e9);
	}
	return ret || !b->bad ? ret : err_set(e, -EBADMSG, "a clock snapshot that is cut");
}

/* ---- batches of events ---- */

static struct gen_thread *thread_of(struct generation *g, uint64_t m)
{
	struct gen_thread *t;
	uint64_t at;

	if (map_get(&g->by_m, m, &at))
		return &g->threads.at[at];
	if (!map_put(&g->by_m, m, g->nthreads))
		return NULL;
	t = g->nthreads < g->threads.n ? &g->threads.at[g->nthreads] :
					 vec_add(&g->threads, LIMIT_TRACE_IDS);
	if (!t)
		return NULL;
	g->nthreads++;
	t->m = (int64_t)m;
	t->batches.n = 0;
	return t;
}

static int add_batch(struct generation *g, const struct head *h, uint64_t off, struct err *e)
{
	struct gen_thread *t = thread_of(g, h->m);
	struct gen_batch *b = t ? vec_add(&t->batches, LIMIT_TRACE_IDS) : NULL;

	if (!b)
		return err_set(e, -ENOMEM, "no memory for batches");
	*b = (struct gen_batch){ off, (uint32_t)h->size, (int64_t)h->base, h->base };
	return 0;
}

/* NULL: it has events. */
static table_reader *reader_of(const struct generations *s, uint8_t first)
{
	if (first == EV_STRINGS)
		return read_strings;
	if (first == EV_STACKS)
		return read_stacks;
	if (first == EV_CPU_SAMPLES)
		return read_samples;
	return first == (s->version < 25 ? EV_FREQUENCY : EV_SYNC) ? read_sync : NULL;
}

static int read_table(struct generations *s, struct generation *g, const struct head *h,
		      table_reader *read, struct err *e)
{
	struct bytes b;
	int ret;

	if (!stream_have(&s->s, (size_t)h->size))
		return bad_at(h->off, "the trace ends in this batch", e);
	b = (struct bytes){ .at = s->s.buf + s->s.at,
			    .end = s->s.buf + s->s.at + h->size,
			    .version = s->version,
			    .ticks = h->base };
	ret = read(g, &b, e);
	return ret ? err_wrap(e, ret, "in the batch at offset %llu", (unsigned long long)h->off) :
		     0;
}

/* Events are read later, so the bytes of large batches of them are not read here, and their heads alone. */
static void skip_events(struct stream *s, uint64_t size)
{
	uint64_t end = stream_offset(s) + size;

	if (size < WORTH_SKIPPING) {
		s->until = 0;
		stream_skip(s, size);
	} else {
		stream_seek_until(s, end, end + HEAD_BYTES);
	}
}

static int read_batch(struct generations *s, struct generation *g, const struct head *h,
		      struct err *e)
{
	table_reader *read = h->size && h->what == HEAD_BATCH ? reader_of(s, s->s.buf[s->s.at]) :
								NULL;
	int ret = 0;

	if ((int64_t)h->base < g->start_ns)
		g->start_ns = (int64_t)h->base;
	if (read)
		ret = read_table(s, g, h, read, e);
	else if (h->size && h->what == HEAD_BATCH)
		ret = add_batch(g, h, stream_offset(&s->s), e);
	if (read)
		stream_skip(&s->s, h->size);
	else
		skip_events(&s->s, h->size);
	return ret;
}

/* ---- all of it ---- */

static void reset(struct generation *g)
{
	tables_reset(&g->tables);
	map_fini(&g->by_m);
	g->number = 0;
	g->nthreads = g->samples.n = 0;
	g->ns_per_tick = 0;
	g->start_ns = INT64_MAX;
	g->snapshot = g->damaged = false;
}

void generation_fini(struct generation *g)
{
	reset(g);
	tables_fini(&g->tables);
	vec_fini(&g->samples);
	for (size_t i = 0; i < g->threads.n; i++)
		vec_fini(&g->threads.at[i].batches);
	vec_fini(&g->threads);
}

static int by_time(const void *a, const void *b)
{
	const struct gen_sample *x = a, *y = b;

	return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static int64_t in_ns(const struct generation *g, int64_t ticks)
{
	return ticks_ns((double)(uint64_t)ticks, g->ns_per_tick);
}

/* Go's reader refuses a generation whose stacks name strings that it does not have. */
static int check_frames(const struct generation *g, struct err *e)
{
	const struct trace_tables *t = &g->tables;
	struct trace_text text;

	for (size_t i = 0; i < t->frames.n; i++)
		if (!tables_string(t, t->frames.at[i].func, &text) ||
		    !tables_string(t, t->frames.at[i].file, &text))
			return err_set(e, -EBADMSG,
				       "generation %llu: a stack names a string that it does not "
				       "have",
				       (unsigned long long)g->number);
	return 0;
}

static int check(const struct generations *s, const struct generation *g, struct err *e)
{
	if (g->ns_per_tick <= 0)
		return err_set(e, -EBADMSG, "generation %llu does not tell its clock's rate",
			       (unsigned long long)g->number);
	if (s->version >= 25 && !g->snapshot)
		return err_set(e, -EBADMSG, "generation %llu has no clock snapshot",
			       (unsigned long long)g->number);
	return check_frames(g, e);
}

/* Ticks become ns. */
static void finish(struct generations *s, struct generation *g)
{
	if (g->ns_per_tick <= 0)
		g->ns_per_tick = s->ns_per_tick;
	g->has_clock = g->ns_per_tick > 0;
	s->ns_per_tick = g->ns_per_tick;
	if (!g->has_clock)
		g->ns_per_tick = 1;
	g->start_ns = in_ns(g, g->start_ns);
	g->snapshot_ns = in_ns(g, g->snapshot_ns);
	for (size_t i = 0; i < g->nthreads; i++)
		for (size_t k = 0; k < g->threads.at[i].batches.n; k++) {
			struct gen_batch *b = &g->threads.at[i].batches.at[k];

			b->base = in_ns(g, b->base);
		}
	for (size_t i = 0; i < g->samples.n; i++)
		g->samples.at[i].time_ns = in_ns(g, g->samples.at[i].time_ns);
	if (g->samples.n)
		qsort(g->samples.at, g->samples.n, sizeof(*g->samples.at), by_time);
}

static int out_of_order(const struct generations *s, const struct generation *g,
			const struct head *h, struct err *e)
{
	return err_set(e, -EBADMSG, "offset %llu: a batch of generation %llu after %llu",
		       (unsigned long long)h->off, (unsigned long long)h->gen,
		       (unsigned long long)(g->number ? g->number : s->next - 1));
}

/* Up to Go 1.25 a generation ends where the next one begins. 1: go on, 0: it is whole. */
static int take(struct generations *s, struct generation *g, struct err *e)
{
	bool marked = s->version >= 26;
	struct head h;
	int ret = read_head(s, &h, e);

	if (ret)
		return ret;
	if (h.what == HEAD_END) {
		s->ended = true;
		if (g->number ? !marked : marked || s->next)
			return 0;
		return bad_at(h.off,
			      g->number ? "the trace ends within a generation" :
					  "the trace ends before it begins",
			      e);
	}
	if (h.what == HEAD_END_OF_GENERATION)
		return g->number ? 0 : bad_at(h.off, "a generation ends that had not begun", e);
	if (!marked && g->number && h.gen == g->number + 1) {
		stream_seek(&s->s, h.off);
		return 0;
	}
	if (!g->number && (marked || !s->next || h.gen == s->next))
		g->number = h.gen;
	if (h.gen != g->number)
		return out_of_order(s, g, &h, e);
	ret = read_batch(s, g, &h, e);
	return ret ? ret : 1;
}

int generation_read(struct generations *s, struct generation *g, struct err *e)
{
	int ret = 1;

	reset(g);
	while (!s->ended && ret > 0)
		ret = take(s, g, e);
	if (!g->number)
		return ret < 0 ? ret : 0;
	s->next = g->number + 1;
	if (!ret)
		ret = check(s, g, e);
	g->damaged = ret < 0;
	finish(s, g);
	return ret < 0 ? ret : 1;
}

static struct gen_piece piece_of(const struct generations *s, const struct head *h)
{
	struct gen_piece p = { GEN_TABLE, h->off,	 stream_offset(&s->s),
			       h->size,	  (int64_t)h->m, h->base };
	const uint8_t *first = s->s.buf + s->s.at;

	if (h->what == HEAD_EXPERIMENT)
		p.what = GEN_EXPERIMENT;
	if (!h->size || h->what != HEAD_BATCH)
		return p;
	if (*first == EV_CPU_SAMPLES)
		p.what = GEN_SAMPLES;
	else if (!reader_of(s, *first))
		p.what = GEN_EVENTS;
	return p;
}

int generation_walk(struct generations *s, uint64_t off, uint64_t end, generation_each *each,
		    void *arg, struct err *e)
{
	uint64_t back = stream_offset(&s->s);
	int ret = 0;

	for (stream_seek(&s->s, off); !ret && stream_offset(&s->s) < end;) {
		struct gen_piece p;
		struct head h;

		ret = read_head(s, &h, e);
		if (ret || h.what == HEAD_END)
			break;
		if (h.what == HEAD_END_OF_GENERATION)
			continue;
		p = piece_of(s, &h);
		ret = each(arg, &p, e);
		skip_events(&s->s, h.size);
	}
	stream_seek(&s->s, back);
	return ret;
}
