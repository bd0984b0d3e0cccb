/* user/ingest/exectrace/wire1.c - one byte tells the kind, and how many arguments follow. */
#include "ingest/exectrace/wire1.h"

#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Source: internal/trace/parser.go: a string of at most 1e6 bytes, a stack of at most 1,000 frames. */
enum { STRING_MAX = 1000000, STACK_ARGS_MAX = 4 * 1000 + 2 };

int wire1_open(struct wire1 *w, int fd, uint64_t from, uint64_t until, struct err *e)
{
	*w = (struct wire1){ .fd = fd, .off = from, .until = until, .buf = malloc(WIRE1_BUF) };
	return w->buf ? 0 : err_set(e, -ENOMEM, "no memory to read the trace");
}

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
	size_t n = left < WIRE1_BUF ? (size_t)left : WIRE1_BUF;
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

static inline bool uvarint(struct wire1 *w, uint64_t *out)
{
	uint64_t v = 0;
	uint8_t b;

	for (unsigned shift = 0; shift < 64 && byte(w, &b); shift += 7) {
		v |= (uint64_t)(b & 0x7f) << shift;
		if (b < 0x80) {
			*out = v;
			return shift < 63 || b < 2;
		}
	}
	return false;
}

static void skip(struct wire1 *w, uint64_t n)
{
	if (n <= w->n - w->at)
		w->at += (uint32_t)n;
	else
		wire1_seek(w, wire1_offset(w) + n, w->until);
}

int wire1_bytes(const struct wire1 *w, uint64_t off, void *to, size_t n, struct err *e)
{
	ssize_t got;

	do
		got = pread(w->fd, to, n, (off_t)off);
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
		return 5;
	if (type < EV1_GO_START_LABEL)
		return 7;
	if (type < EV1_MARK_ASSIST_START)
		return 8;
	if (type < EV1_TASK_CREATE)
		return 9;
	return type < EV1_CPU_SAMPLE ? 11 : 19;
}

static int text(struct wire1 *w, struct event1 *ev, uint64_t most, struct err *e)
{
	uint64_t len = 0;

	if (!uvarint(w, &len) || len > most)
		return bad(w, ev, "a text that is cut or too long", e);
	ev->text_off = wire1_offset(w);
	ev->text_len = (uint32_t)len;
	if (len > w->until - ev->text_off)
		return bad(w, ev, "the trace ends in its text", e);
	skip(w, len);
	return 0;
}

static int one_arg(struct wire1 *w, struct event1 *ev,
		   int (*each)(void *arg, const struct event1 *ev, uint64_t value, struct err *e),
		   void *arg, struct err *e)
{
	uint64_t v;

	if (!uvarint(w, &v))
		return bad(w, ev, "the trace ends in its arguments", e);
	if (ev->nargs < WIRE1_ARGS)
		ev->args[ev->nargs] = v;
	ev->nargs++;
	return each && ev->type == EV1_STACK ? each(arg, ev, v, e) : 0;
}

static int read_args(struct wire1 *w, struct event1 *ev, unsigned few,
		     int (*each)(void *arg, const struct event1 *ev, uint64_t value, struct err *e),
		     void *arg, struct err *e)
{
	uint64_t len = 0, end;
	int ret = 0;

	for (unsigned i = 0; few < 3 && !ret && i <= few; i++)
		ret = one_arg(w, ev, each, arg, e);
	if (few < 3)
		return ret;
	if (!uvarint(w, &len))
		return bad(w, ev, "the trace ends in its length", e);
	end = wire1_offset(w) + len;
	while (!ret && wire1_offset(w) < end && ev->nargs < STACK_ARGS_MAX)
		ret = one_arg(w, ev, each, arg, e);
	if (!ret && wire1_offset(w) != end)
		ret = bad(w, ev, "its arguments are not as long as it says", e);
	return ret;
}

int wire1_next(struct wire1 *w, unsigned version, struct event1 *ev,
	       int (*each)(void *arg, const struct event1 *ev, uint64_t value, struct err *e),
	       void *arg, struct err *e)
{
	uint8_t b;
	int ret;

	*ev = (struct event1){ .off = wire1_offset(w) };
	if (!byte(w, &b))
		return w->failed ? bad(w, ev, "", e) : 0;
	ev->type = b & 0x3f;
	if (!ev->type || ev->type >= EV1_TYPES || since(ev->type) > version)
		return bad(w, ev, "no such event in this version", e);
	if (ev->type == EV1_STRING) {
		ev->nargs = 1;
		if (!uvarint(w, &ev->args[0]))
			return bad(w, ev, "the trace ends in its number", e);
		ret = text(w, ev, STRING_MAX, e);
		return ret ? ret : 1;
	}
	ret = read_args(w, ev, b >> 6, each, arg, e);
	if (!ret && ev->type == EV1_LOG)
		ret = text(w, ev, STRING_MAX, e);
	return ret ? ret : 1;
}

bool wire1_timed(uint8_t type)
{
	return type != EV1_BATCH && type != EV1_FREQUENCY && type != EV1_STACK &&
	       type != EV1_TIMER_GOROUTINE && type != EV1_STRING;
}
