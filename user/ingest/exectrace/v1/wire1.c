/* user/ingest/exectrace/v1/wire1.c - one byte tells the kind, and how many arguments follow. */
#include "ingest/exectrace/v1/wire1.h"

#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Source: internal/trace/parser.go: a string of at most 1e6 bytes, a stack of at most 1,000 frames. */
enum { TEXT_MAX = 1000000, FRAMES_MAX = 1000 };

/* The longest event that is read at once: its kind, its length, and arguments that are numbers. */
enum { VARINT_MAX = 10, PLAIN_MAX = 2 + WIRE1_ARGS * VARINT_MAX };

void wire1_fini(struct wire1 *w)
{
	free(w->buf);
	*w = (struct wire1){};
}

void wire1_seek(struct wire1 *w, uint64_t from, uint64_t until)
{
	w->off = from;
	w->until = until;
	w->at = w->n = 0;
}

uint64_t wire1_offset(const struct wire1 *w)
{
	return w->off - (w->n - w->at);
}

static bool fill(struct wire1 *w)
{
	uint64_t left = w->until - w->off;
	size_t n = left < w->cap ? (size_t)left : w->cap;
	ssize_t got;

	do
		got = pread(w->fd, w->buf, n, (off_t)w->off);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		w->failed = errno;
	if (got <= 0)
		return false;
	w->off += (uint64_t)got;
	w->n = (uint32_t)got;
	w->at = 0;
	return true;
}

static inline bool byte(struct wire1 *w, uint8_t *out)
{
	if (w->at == w->n && !fill(w))
		return false;
	*out = w->buf[w->at++];
	return true;
}

/* Source: readVal() in internal/trace/parser.go: what is beyond 64 bits is dropped. */
static bool uvarint_slow(struct wire1 *w, uint64_t *out)
{
	uint64_t v = 0;
	uint8_t b;

	for (unsigned shift = 0; shift < 64 && byte(w, &b); shift += 7) {
		v |= (uint64_t)(b & 0x7f) << shift;
		if (b < 0x80) {
			*out = v;
			return true;
		}
	}
	return false;
}

/* Most numbers have one byte or two, and lie in the window. */
static inline bool uvarint(struct wire1 *w, uint64_t *out)
{
	const uint8_t *at = w->buf + w->at;

	if (w->n - w->at < 2 || (at[0] & at[1] & 0x80))
		return uvarint_slow(w, out);
	*out = at[0] & 0x7f;
	w->at++;
	if (at[0] & 0x80) {
		*out |= (uint64_t)at[1] << 7;
		w->at++;
	}
	return true;
}

static void skip(struct wire1 *w, uint64_t n)
{
	if (n <= w->n - w->at)
		w->at += (uint32_t)n;
	else
		wire1_seek(w, wire1_offset(w) + n, w->until);
}

int wire1_bytes(int fd, uint64_t off, void *to, size_t n, struct err *e)
{
	ssize_t got;

	do
		got = pread(fd, to, n, (off_t)off);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_sys(e, "reading the trace");
	return (size_t)got == n ? 0 : err_set(e, -EBADMSG, "the trace became shorter");
}

static int bad(const struct wire1 *w, const struct event1 *ev, const char *what, struct err *e)
{
	if (w->failed)
		return err_set(e, -w->failed, "reading the trace: %s", strerror(w->failed));
	return err_set(e, -EBADMSG, "offset %llu: event %u: %s", (unsigned long long)ev->off,
		       ev->type, what);
}

/* Source: internal/trace/parser.go, EventDescriptions: since which version each is known. */
static unsigned since(uint8_t type)
{
	if (type < EV1_STRING)
		return V1_5;
	if (type < EV1_GO_START_LABEL)
		return V1_7;
	if (type < EV1_MARK_ASSIST_START)
		return 8;
	if (type < EV1_TASK_CREATE)
		return V1_9;
	return type < EV1_CPU_SAMPLE ? 11 : 19;
}

/* How many arguments each kind has in Go 1.21. */
static const uint8_t nargs[EV1_TYPES] = {
	[EV1_BATCH] = 2,
	[EV1_FREQUENCY] = 1,
	[EV1_GOMAXPROCS] = 3,
	[EV1_PROC_START] = 2,
	[EV1_PROC_STOP] = 1,
	[EV1_GC_START] = 3,
	[EV1_GC_DONE] = 1,
	[EV1_STW_START] = 2,
	[EV1_STW_DONE] = 1,
	[EV1_SWEEP_START] = 2,
	[EV1_SWEEP_DONE] = 3,
	[EV1_GO_CREATE] = 4,
	[EV1_GO_START] = 3,
	[EV1_GO_END] = 1,
	[EV1_GO_STOP] = 2,
	[EV1_GO_SCHED] = 2,
	[EV1_GO_PREEMPT] = 2,
	[EV1_GO_SLEEP] = 2,
	[EV1_GO_BLOCK] = 2,
	[EV1_GO_UNBLOCK] = 4,
	[EV1_GO_BLOCK_SEND] = 2,
	[EV1_GO_BLOCK_RECV] = 2,
	[EV1_GO_BLOCK_SELECT] = 2,
	[EV1_GO_BLOCK_SYNC] = 2,
	[EV1_GO_BLOCK_COND] = 2,
	[EV1_GO_BLOCK_NET] = 2,
	[EV1_GO_SYSCALL] = 2,
	[EV1_GO_SYS_EXIT] = 4,
	[EV1_GO_SYS_BLOCK] = 1,
	[EV1_GO_WAITING] = 2,
	[EV1_GO_IN_SYSCALL] = 2,
	[EV1_HEAP_ALLOC] = 2,
	[EV1_HEAP_GOAL] = 2,
	[EV1_TIMER_GOROUTINE] = 1,
	[EV1_FUTILE_WAKEUP] = 1,
	[EV1_GO_START_LOCAL] = 2,
	[EV1_GO_UNBLOCK_LOCAL] = 3,
	[EV1_GO_SYS_EXIT_LOCAL] = 3,
	[EV1_GO_START_LABEL] = 4,
	[EV1_GO_BLOCK_GC] = 2,
	[EV1_MARK_ASSIST_START] = 2,
	[EV1_MARK_ASSIST_DONE] = 1,
	[EV1_TASK_CREATE] = 5,
	[EV1_TASK_END] = 3,
	[EV1_REGION] = 5,
	[EV1_LOG] = 4,
	[EV1_CPU_SAMPLE] = 5,
};

/* How many are right, once a sequence number is taken off. */
static unsigned expected(uint8_t type, unsigned version)
{
	if (type == EV1_SWEEP_DONE && version < V1_9)
		return 1;
	if (type == EV1_STW_START && version < V1_10)
		return 1;
	if (version < V1_7 &&
	    (type == EV1_GC_START || type == EV1_GO_START || type == EV1_GO_UNBLOCK))
		return nargs[type] - 1u;
	/* An argument that nobody used. */
	if (version < V1_7 && (type == EV1_FREQUENCY || type == EV1_TIMER_GOROUTINE))
		return 2;
	return nargs[type];
}

static int text(struct wire1 *w, struct event1 *ev, struct err *e)
{
	uint64_t len = 0;

	if (!uvarint(w, &len) || len > TEXT_MAX)
		return bad(w, ev, "a text that is cut or too long", e);
	ev->text_off = wire1_offset(w);
	ev->text_len = (uint32_t)len;
	if (len > w->until - ev->text_off)
		return bad(w, ev, "the trace ends in its text", e);
	skip(w, len);
	return 0;
}

static inline int one_arg(struct wire1 *w, struct event1 *ev, wire1_each *each, void *arg,
			  struct err *e)
{
	uint64_t v;

	if (!uvarint(w, &v))
		return bad(w, ev, "the trace ends in its arguments", e);
	if (ev->nargs < WIRE1_ARGS)
		ev->args[ev->nargs] = v;
	ev->nargs++;
	return each && ev->type == EV1_STACK ? each(arg, ev, v, e) : 0;
}

/* @few: how many there are beside those that each event has; 3: their length in bytes comes first. */
static int read_args(struct wire1 *w, struct event1 *ev, unsigned few, unsigned beside,
		     wire1_each *each, void *arg, struct err *e)
{
	uint64_t len = 0, end;
	int ret = 0;

	for (unsigned i = 0; few < 3 && !ret && i < few + beside; i++)
		ret = one_arg(w, ev, each, arg, e);
	if (few < 3)
		return ret;
	if (!uvarint(w, &len) || len > w->until - wire1_offset(w))
		return bad(w, ev, "the trace ends in its arguments", e);
	end = wire1_offset(w) + len;
	while (!ret && wire1_offset(w) < end && ev->nargs < 2 + 4 * FRAMES_MAX)
		ret = one_arg(w, ev, each, arg, e);
	if (!ret && wire1_offset(w) != end)
		ret = bad(w, ev, "its arguments are not as long as it says", e);
	return ret;
}

/* The sequence number of Go 1.5 is not among the arguments any more. */
static void take_seq(struct event1 *ev)
{
	unsigned at = ev->type == EV1_BATCH ? 1 : 0;

	if (ev->nargs <= at || ev->nargs > WIRE1_ARGS ||
	    (!wire1_timed(ev->type) && ev->type != EV1_BATCH))
		return;
	ev->seq = ev->args[at];
	ev->nargs--;
	for (unsigned i = at; i < ev->nargs; i++)
		ev->args[i] = ev->args[i + 1];
}

static bool right_number(const struct event1 *ev, unsigned version)
{
	if (ev->type != EV1_STACK)
		return ev->nargs == expected(ev->type, version);
	return ev->nargs >= 2 && ev->args[1] <= FRAMES_MAX &&
	       ev->nargs == 2 + ev->args[1] * (version < V1_7 ? 1 : 4);
}

/* Without a text, a stack or a sequence number: nearly all events. */
static uint8_t plain_args(uint8_t type, unsigned version)
{
	if (version < V1_7 || !type || since(type) > version || type == EV1_STACK ||
	    type == EV1_STRING || type == EV1_LOG)
		return 0;
	return (uint8_t)expected(type, version);
}

int wire1_open(struct wire1 *w, int fd, unsigned version, uint64_t most, struct err *e)
{
	uint32_t cap = most < WIRE1_BUF ? (uint32_t)most + 1 : WIRE1_BUF;

	*w = (struct wire1){ .fd = fd, .version = version, .cap = cap, .buf = malloc(cap) };
	for (uint8_t type = 0; type < EV1_TYPES; type++)
		w->plain[type] = plain_args(type, version);
	return w->buf ? 0 : err_set(e, -ENOMEM, "no memory to read the trace");
}

/* An argument that ends before @end, for which there is room in any case. NULL: it has no end. */
static inline const uint8_t *plain_arg(const uint8_t *at, uint64_t *v)
{
	*v = at[0] & 0x7f;
	if (at[0] < 0x80)
		return at + 1;
	*v |= (uint64_t)(at[1] & 0x7f) << 7;
	if (at[1] < 0x80)
		return at + 2;
	for (unsigned i = 2; i < VARINT_MAX; i++) {
		*v |= (uint64_t)(at[i] & 0x7f) << (7 * i);
		if (at[i] < 0x80)
			return at + i + 1;
	}
	return NULL;
}

/* False: it is not plain, or wrong, or too near to the end of the window; nothing was taken. */
static inline bool next_plain(struct wire1 *w, struct event1 *ev)
{
	const uint8_t *begin = w->buf + w->at, *at = begin + 1, *end = NULL;
	unsigned n, few;

	if (w->n - w->at < PLAIN_MAX)
		return false;
	n = (*begin & 0x3f) < EV1_TYPES ? w->plain[*begin & 0x3f] : 0;
	few = *begin >> 6;
	if (!n || (few < 3 && few + 1 != n))
		return false;
	if (few == 3) {
		end = at + 1 + *at;
		if (*at++ >= 0x80)
			return false;
	}
	for (unsigned i = 0; i < n; i++) {
		at = plain_arg(at, &ev->args[i]);
		if (!at)
			return false;
	}
	if (end && at != end)
		return false;
	ev->off = wire1_offset(w);
	ev->seq = 0;
	ev->type = *begin & 0x3f;
	ev->nargs = n;
	w->at += (uint32_t)(at - begin);
	return true;
}

/* Apart, so that the others do not save its registers. */
static __attribute__((noinline)) int next_any(struct wire1 *w, struct event1 *ev, wire1_each *each,
					      void *arg, struct err *e)
{
	unsigned version = w->version;
	uint8_t b;
	int ret;

	ev->off = wire1_offset(w);
	ev->type = 0;
	ev->nargs = 0;
	ev->seq = 0;
	if (!byte(w, &b))
		return w->failed ? bad(w, ev, "", e) : 0;
	ev->type = b & 0x3f;
	if (!ev->type || ev->type >= EV1_TYPES || since(ev->type) > version)
		return bad(w, ev, "there is none in this version", e);
	if (ev->type == EV1_STRING) {
		ev->nargs = 1;
		if (!uvarint(w, &ev->args[0]))
			return bad(w, ev, "the trace ends in its number", e);
		ret = text(w, ev, e);
		return ret ? ret : 1;
	}
	ret = read_args(w, ev, b >> 6, version < V1_7 ? 2 : 1, each, arg, e);
	if (ret)
		return ret;
	if (version < V1_7)
		take_seq(ev);
	if (!right_number(ev, version))
		return bad(w, ev, "another number of arguments than its kind has", e);
	if (ev->type == EV1_LOG)
		ret = text(w, ev, e);
	return ret ? ret : 1;
}

int wire1_next(struct wire1 *w, struct event1 *ev, wire1_each *each, void *arg, struct err *e)
{
	return next_plain(w, ev) ? 1 : next_any(w, ev, each, arg, e);
}
