/* user/cli/trace_cut.c - which generations a time has, and their bytes. */
#include "cli/trace_cut.h"

#include "base/cancel.h"

enum { VERSION2 = 22, COPY_BYTES = 1 << 18 };

/* Offsets in the trace, and times. Generations follow each other, so one range is enough. */
struct trace_cut {
	bool any, begun;
	uint64_t from, to;     /* what is kept */
	uint64_t last, latest; /* where the latest generation begins, and ends */
	int64_t from_ns, to_ns, last_ns;
};

int trace_cut_new(unsigned version, struct trace_cut **out, struct err *e)
{
	if (version < VERSION2)
		return err_set(e, -ENOTSUP,
			       "-o: a trace of Go 1.21 and older has no generations, and cannot be "
			       "cut");
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return err_set(e, -ENOMEM, "no memory");
	(*out)->latest = EXECTRACE_HEADER_BYTES;
	return 0;
}

void trace_cut_free(struct trace_cut *c)
{
	free(c);
}

int trace_cut_event(struct trace_cut *c, const struct exectrace *t, const struct trace_event *ev,
		    int64_t from_ns, struct err *e)
{
	(void)e;
	if (ev->kind == TRACE_SYNC && exectrace_offset(t) > c->latest) {
		c->last = c->latest;
		c->last_ns = ev->time_ns;
		c->latest = exectrace_offset(t);
	}
	if (ev->time_ns < from_ns)
		return 0;
	if (!c->any) {
		c->any = true;
		c->from = c->last;
		c->from_ns = c->last_ns;
	}
	c->to = c->latest;
	c->to_ns = ev->time_ns;
	return 0;
}

int trace_cut_end(struct trace_cut *c, bool damaged, struct err *e)
{
	if (damaged && c->to == c->latest) {
		c->to = c->last;
		c->to_ns = c->last_ns;
	}
	return c->any && c->to > c->from ?
		       0 :
		       err_set(e, -ENOENT, "-o: there is no whole generation in this time");
}

void trace_cut_span(const struct trace_cut *c, int64_t *from_ns, int64_t *to_ns)
{
	*from_ns = c->from_ns;
	*to_ns = c->to_ns;
}

static int copy(int fd, FILE *f, uint64_t from, uint64_t to, struct err *e)
{
	CLEANUP(freep) uint8_t *buf = malloc(COPY_BYTES);

	if (!buf)
		return err_set(e, -ENOMEM, "no memory to copy with");
	while (from < to) {
		size_t n = to - from < COPY_BYTES ? (size_t)(to - from) : COPY_BYTES;
		ssize_t got = pread(fd, buf, n, (off_t)from);

		if (cancelled())
			return -ECANCELED;
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, "reading the trace");
		if (!got)
			return err_set(e, -EIO, "the trace became shorter while it was read");
		if (fwrite(buf, 1, (size_t)got, f) != (size_t)got)
			return err_sys(e, "writing");
		from += (uint64_t)got;
	}
	return 0;
}

int trace_cut_write(const struct trace_cut *c, int fd, FILE *f, struct err *e)
{
	int ret = copy(fd, f, 0, EXECTRACE_HEADER_BYTES, e);

	return ret ? ret : copy(fd, f, c->from, c->to, e);
}
