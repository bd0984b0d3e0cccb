/* user/ingest/exectrace/v1/index1.c - what is kept of each event, and events of one P. */
#include "ingest/exectrace/v1/index1.h"

#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/limits.h"

enum { HEADER_BYTES = 16 };

/* While it is read. */
struct reading {
	struct index1 *x;
	struct wire1 w;
	struct batches1 *in; /* whose batch it is; NULL: none yet */
	int64_t ticks;
	uint64_t seq;
	struct table_frame frame;
	char *text; /* owned */
	size_t room;
};

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory for the trace");
}

static int bad_at(const struct event1 *ev, const char *what, struct err *e)
{
	return err_set(e, -EBADMSG, "offset %llu: %s", (unsigned long long)ev->off, what);
}

/* ---- tables ---- */

/* Go takes the last stack of a number. */
static int begin_stack(struct trace_tables *t, uint64_t id, struct err *e)
{
	if (!id)
		return 0;
	ids_del(&t->stack_ids, id);
	return tables_add_stack(t, id, e);
}

/* A stack is: its number, how many frames, and four numbers of each; Go 1.5: an address of each. */
static int stack_value(void *arg, const struct event1 *ev, uint64_t value, struct err *e)
{
	struct reading *r = arg;
	struct table_frame *f = &r->frame;
	uint64_t *const parts[] = { &f->pc, &f->func, &f->file, &f->line };
	unsigned i = ev->nargs - 1, each = r->x->version < V1_7 ? 1 : 4;

	if (i == 0)
		return begin_stack(&r->x->tables, value, e);
	if (i == 1)
		return 0;
	*parts[(i - 2) % each] = value;
	if ((i - 2) % each < each - 1 || !ev->args[0])
		return 0;
	return tables_add_frame(&r->x->tables, f, e);
}

static int keep_string(struct reading *r, const struct event1 *ev, struct err *e)
{
	int ret;

	if (!ev->text_len)
		return bad_at(ev, "an empty string", e);
	if (r->room < ev->text_len) {
		free(r->text);
		r->room = ev->text_len;
		r->text = malloc(r->room);
		if (!r->text)
			return no_memory(e);
	}
	ret = wire1_bytes(r->x->fd, ev->text_off, r->text, ev->text_len, e);
	if (!ret)
		ret = tables_add_string(&r->x->tables, ev->args[0], r->text, ev->text_len, e);
	return ret ? err_wrap(e, ret, "offset %llu", (unsigned long long)ev->off) : 0;
}

/* ---- batches ---- */

static struct batches1 *batches_of(struct index1 *x, int64_t p)
{
	struct batches1 *to;
	uint64_t at;

	if (map_get(&x->by_p, (uint64_t)p, &at))
		return &x->procs.at[at];
	to = vec_add(&x->procs, LIMIT_TRACE_IDS);
	if (!to || !map_put(&x->by_p, (uint64_t)p, x->procs.n - 1))
		return NULL;
	to->p = p;
	return to;
}

/* The batch before ends where the next one begins. */
static void end_batch(struct reading *r, uint64_t off)
{
	struct batch1 *b;

	if (!r->in)
		return;
	b = &r->in->at.at[r->in->at.n - 1];
	b->until = off;
	if (off - b->from > r->in->most)
		r->in->most = off - b->from;
}

/* Ps are numbered from 0 on; -1 is none. */
static int begin_batch(struct reading *r, const struct event1 *ev, struct err *e)
{
	int64_t p = (int64_t)ev->args[0];
	struct batch1 *b;

	end_batch(r, ev->off);
	r->in = NULL;
	if (p < -1 || p > INT32_MAX)
		return bad_at(ev, "a batch of a P that cannot be", e);
	r->in = batches_of(r->x, p);
	b = r->in ? vec_add(&r->in->at, LIMIT_TRACE_IDS) : NULL;
	if (!b) {
		r->in = NULL;
		return no_memory(e);
	}
	r->ticks = (int64_t)ev->args[1];
	r->seq = ev->seq;
	*b = (struct batch1){ wire1_offset(&r->w), 0, r->ticks, r->seq };
	return 0;
}

/* ---- what is told later than it was ---- */

bool exit1_of(const struct event1 *ev, unsigned version, int64_t ticks, int64_t key,
	      struct exit1 *out)
{
	int64_t real;

	if (ev->type != EV1_GO_SYS_EXIT && ev->type != EV1_GO_SYS_EXIT_LOCAL)
		return false;
	real = (int64_t)ev->args[ev->type == EV1_GO_SYS_EXIT ? 3 : 2];
	*out = (struct exit1){ .key = real, .ticks = real, .g = (int64_t)ev->args[1] };
	if (version >= V1_7)
		return real && real != ticks;
	out->key = (int64_t)ev->args[2];
	out->ticks = real ? real : ticks;
	return out->key != key || out->ticks != ticks;
}

static int keep_late(struct reading *r, const struct event1 *ev, struct err *e)
{
	bool old = r->x->version < V1_7;
	int64_t key = old ? (int64_t)r->seq : r->ticks, late;
	struct exit1 x, *to;

	if (!exit1_of(ev, r->x->version, r->ticks, key, &x))
		return 0;
	if (__builtin_sub_overflow(key, x.key, &late))
		return bad_at(ev, "a system call ends at a time that cannot be", e);
	if (late <= (old ? EXIT1_WINDOW_SEQ : EXIT1_WINDOW))
		return 0;
	to = vec_add(&r->x->late, LIMIT_TRACE_IDS);
	if (!to)
		return no_memory(e);
	*to = x;
	return 0;
}

static int keep_sample(struct index1 *x, const struct event1 *ev, struct err *e)
{
	struct sample1 *s = vec_add(&x->samples, LIMIT_TRACE_IDS);

	if (!s)
		return no_memory(e);
	*s = (struct sample1){ (int64_t)ev->args[1], (int64_t)ev->args[2], (int64_t)ev->args[3],
			       ev->args[4] };
	return 0;
}

static int keep_timer(struct index1 *x, uint64_t g, struct err *e)
{
	uint64_t *to = vec_add(&x->timers, LIMIT_TRACE_IDS);

	if (!to)
		return no_memory(e);
	*to = g;
	return 0;
}

/* ---- all of it ---- */

static int index_event(struct reading *r, const struct event1 *ev, struct err *e)
{
	if (ev->type == EV1_STRING)
		return keep_string(r, ev, e);
	if (ev->type == EV1_BATCH)
		return begin_batch(r, ev, e);
	if (!r->in)
		return bad_at(ev, "an event before the first batch", e);
	if (ev->type == EV1_FREQUENCY) {
		if ((int64_t)ev->args[0] <= 0)
			return bad_at(ev, "the clock's rate is 0 or less", e);
		r->x->ticks_per_s = ev->args[0];
		r->x->ns_per_tick = 1e9 / (double)ev->args[0];
		return 0;
	}
	if (ev->type == EV1_TIMER_GOROUTINE)
		return keep_timer(r->x, ev->args[0], e);
	if (!wire1_timed(ev->type))
		return 0;
	r->ticks = (int64_t)((uint64_t)r->ticks + ev->args[0]);
	r->seq += ev->seq;
	r->x->futile |= ev->type == EV1_FUTILE_WAKEUP;
	if (ev->type == EV1_CPU_SAMPLE)
		return keep_sample(r->x, ev, e);
	return keep_late(r, ev, e);
}

static int by_ticks(const void *a, const void *b)
{
	const struct sample1 *x = a, *y = b;

	return (x->ticks > y->ticks) - (x->ticks < y->ticks);
}

static int read_all(struct reading *r, struct err *e)
{
	struct event1 ev = { .off = HEADER_BYTES };
	int ret = wire1_open(&r->w, r->x->fd, r->x->version, UINT64_MAX, e);

	if (ret)
		return ret;
	wire1_seek(&r->w, HEADER_BYTES, r->x->size);
	do {
		ret = wire1_next(&r->w, &ev, stack_value, r, e);
		if (ret > 0)
			ret = index_event(r, &ev, e) ?: 1;
	} while (ret > 0);
	end_batch(r, ev.off);
	return ret;
}

int index1_read(struct index1 *x, int fd, unsigned version, struct err *e)
{
	struct reading r = { .x = x };
	struct stat st;
	int ret;

	*x = (struct index1){ .fd = fd, .version = version };
	if (fstat(fd, &st))
		return err_sys(e, "reading it");
	x->size = (uint64_t)st.st_size;
	if (x->size < HEADER_BYTES)
		return err_set(e, -EBADMSG, "the trace became shorter");
	ret = read_all(&r, e);
	wire1_fini(&r.w);
	free(r.text);
	if (x->samples.n)
		qsort(x->samples.at, x->samples.n, sizeof(*x->samples.at), by_ticks);
	return ret;
}

void index1_fini(struct index1 *x)
{
	for (size_t i = 0; i < x->procs.n; i++)
		vec_fini(&x->procs.at[i].at);
	vec_fini(&x->procs);
	vec_fini(&x->samples);
	vec_fini(&x->late);
	vec_fini(&x->timers);
	map_fini(&x->by_p);
	tables_fini(&x->tables);
}

/* ---- events of one P ---- */

int proc1_open(struct proc1 *p, const struct index1 *x, uint32_t proc, struct err *e)
{
	*p = (struct proc1){ .index = x, .of = &x->procs.at[proc] };
	return wire1_open(&p->w, x->fd, x->version, p->of->most, e);
}

void proc1_fini(struct proc1 *p)
{
	wire1_fini(&p->w);
}

int proc1_next(struct proc1 *p, struct err *e)
{
	for (;;) {
		int ret = wire1_next(&p->w, &p->ev, NULL, NULL, e);

		if (ret < 0)
			return ret;
		if (!ret) {
			const struct batch1 *b = &p->of->at.at[p->batch];

			if (p->batch == p->of->at.n)
				return 0;
			wire1_seek(&p->w, b->from, b->until);
			p->ticks = b->ticks;
			p->seq = b->seq;
			p->batch++;
			continue;
		}
		if (!wire1_timed(p->ev.type))
			continue;
		p->ticks = (int64_t)((uint64_t)p->ticks + p->ev.args[0]);
		p->seq += p->ev.seq;
		if (p->ev.type != EV1_CPU_SAMPLE)
			return 1;
	}
}
