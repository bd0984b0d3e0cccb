/*
 * user/ingest/exectrace/v2/cursor2.c - numbers of a batch, one batch of the thread at a time.
 * Source: internal/trace/batchcursor.go, internal/trace/tracev2/events.go, Go 1.22 to 1.27.
 */
#include "ingest/exectrace/v2/cursor2.h"

#include <unistd.h>

#include "ingest/exectrace/ticks.h"

/* No usual event has more bytes: a kind, and numbers of up to four. So many are read at a time. */
enum { EVENT_USUAL = 1 + 4 * (ORDER_ARGS_MAX + 1), EVENTS_AHEAD = 16 };

/* A hostile trace has many threads of few bytes: they have room for one event, and one more for so many bytes. */
enum { BYTES_PER_EVENT_AHEAD = 32 };

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

static bool uvarint_slow(struct cursor2 *c, uint64_t *out)
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

/* Most numbers have one byte to four. NULL: this one has more. */
static inline const uint8_t *uvarint(const uint8_t *at, uint64_t *out)
{
	uint64_t v = at[0] & 0x7f;

	if (at[0] >= 0x80) {
		at++;
		v |= (uint64_t)(at[0] & 0x7f) << 7;
		if (at[0] >= 0x80) {
			at++;
			v |= (uint64_t)(at[0] & 0x7f) << 14;
			if (at[0] >= 0x80) {
				at++;
				v |= (uint64_t)at[0] << 21;
				if (at[0] >= 0x80)
					return NULL;
			}
		}
	}
	*out = v;
	return at + 1;
}

/* The time since the last event has one byte or two at random, so there is no branch that would be foreseen. */
static inline const uint8_t *uvarint_of_two(const uint8_t *at, uint64_t *out)
{
	unsigned two = at[0] >> 7;

	if (at[0] & at[1] & 0x80)
		return uvarint(at, out);
	*out = (at[0] & 0x7f) | (uint64_t)(at[1] & -two) << 7;
	return at + 1 + two;
}

static int load_batch(struct cursor2 *c, struct err *e)
{
	const struct gen_batch *b = &c->of->batches.at[c->batch];
	ssize_t got;

	do
		got = pread(c->from->fd, c->buf, b->size, (off_t)b->off);
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

/* Any event, one at a time. */
static int read_event(struct cursor2 *c, struct err *e)
{
	uint64_t off = c->of->batches.at[c->batch].off, dt;
	struct raw_event *ev = &c->events[0];
	unsigned n;
	bool whole;

	ev->type = c->buf[c->at++];
	n = c->from->arguments[ev->type];
	if (n > ORDER_ARGS_MAX)
		return err_set(e, -EBADMSG, "offset %llu: an event of the unknown kind %u",
			       (unsigned long long)off + c->at - 1, ev->type);
	whole = uvarint_slow(c, &dt);
	for (unsigned i = 0; whole && i < n; i++)
		whole = uvarint_slow(c, &ev->args[i]);
	if (!whole)
		return err_set(e, -EBADMSG, "offset %llu: an event that is cut",
			       (unsigned long long)off + c->at);
	c->time_ns = ticks_add(c->time_ns, ticks_ns((double)dt, c->from->ns_per_tick));
	c->ticks += dt;
	ev->time_ns = c->time_ns;
	ev->ticks = c->ticks;
	ev->end = c->at;
	c->n = 1;
	return 0;
}

/*
 * As many usual events as there is room for: it takes less to go through some of a batch at a time than to come
 * back for each event. None of them is at the end of the batch, or wrong.
 */
static void read_usual_events(struct cursor2 *c)
{
	const uint8_t *at = c->buf + c->at, *behind = at;
	const uint8_t *end = c->buf + (c->len < EVENT_USUAL ? 0 : c->len - EVENT_USUAL);
	double ns_per_tick = c->from->ns_per_tick;
	struct raw_event *ev = c->events, *room = ev + c->room;
	int64_t time_ns = c->time_ns;
	uint64_t ticks = c->ticks;

	for (; ev < room && at < end; ev++) {
		unsigned n = c->from->arguments[*at];
		uint64_t dt;

		if (n > ORDER_ARGS_MAX)
			break;
		ev->type = *at;
		at = uvarint_of_two(at + 1, &dt);
		for (unsigned i = 0; at && i < n; i++)
			at = uvarint(at, &ev->args[i]);
		if (!at)
			break;
		/* No product of so few ticks is too large. */
		time_ns = ticks_add(time_ns, (int64_t)((double)(int32_t)dt * ns_per_tick));
		ticks += dt;
		ev->time_ns = time_ns;
		ev->ticks = ticks;
		ev->end = (uint32_t)(at - c->buf);
		behind = at;
	}
	c->n = (uint32_t)(ev - c->events);
	c->at = (uint32_t)(behind - c->buf);
	c->time_ns = time_ns;
	c->ticks = ticks;
}

int cursor2_more(struct cursor2 *c, struct err *e)
{
	int ret;

	c->first = c->n = 0;
	while (c->at == c->len) {
		if (++c->batch >= c->of->batches.n)
			return 0;
		ret = load_batch(c, e);
		if (ret)
			return ret;
	}
	read_usual_events(c);
	ret = c->n ? 0 : read_event(c, e);
	return ret ? ret : 1;
}

void source2_init(struct source2 *s, int fd, unsigned version)
{
	s->fd = fd;
	for (unsigned type = 0; type < sizeof(s->arguments); type++)
		s->arguments[type] = (uint8_t)arguments((uint8_t)type, version);
}

int cursor2_open(struct cursor2 *c, const struct source2 *from, const struct gen_thread *of,
		 struct err *e)
{
	uint32_t most = 1;
	int ret;

	for (size_t i = 0; i < of->batches.n; i++)
		if (of->batches.at[i].size > most)
			most = of->batches.at[i].size;
	c->from = from;
	c->of = of;
	c->thread.m = of->m;
	c->room = most / BYTES_PER_EVENT_AHEAD < EVENTS_AHEAD ? most / BYTES_PER_EVENT_AHEAD + 1 :
								EVENTS_AHEAD;
	c->buf = malloc(most);
	c->events = malloc(c->room * sizeof(*c->events));
	if (!c->buf || !c->events)
		return err_set(e, -ENOMEM, "no memory for the events of a thread");
	ret = load_batch(c, e);
	return ret ? ret : cursor2_more(c, e);
}

void cursor2_fini(struct cursor2 *c)
{
	free(c->buf);
	free(c->events);
}
