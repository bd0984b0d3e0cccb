/* user/ingest/exectrace/exectrace.c - the header, and which of the two formats follows it. */
#include "ingest/exectrace/exectrace.h"

#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ingest/exectrace/v1/trace1.h"
#include "ingest/exectrace/v2/trace2.h"
#include "ingest/exectrace/v1/wire1.h"

enum { VERSION2 = 22 };

struct exectrace {
	unsigned version;
	struct trace1 *one; /* one of the two is there */
	struct trace2 *two;
	int done; /* what exectrace_next() answered last, if there is no more */
	bool is_done;
	struct err why;
};

/* "go 1.22 trace" and zeros. Source: internal/trace/version, Go 1.22 to 1.27. */
static bool parse_header(const char h[EXECTRACE_HEADER_BYTES], unsigned *version)
{
	static const char before[] = "go 1.", after[] = " trace";
	const char *at = h + sizeof(before) - 1;

	if (memcmp(h, before, sizeof(before) - 1))
		return false;
	for (*version = 0; *at >= '0' && *at <= '9' && *version < 100; at++)
		*version = *version * 10 + (unsigned)(*at - '0');
	if (memcmp(at, after, sizeof(after) - 1))
		return false;
	for (at += sizeof(after) - 1; at < h + EXECTRACE_HEADER_BYTES; at++)
		if (*at)
			return false;
	return true;
}

int exectrace_header(const void *bytes, size_t n, unsigned *version, struct err *e)
{
	static const unsigned known[] = { 5, 7, 8, 9, 10, 11, 19, 21, 22, 23, 25, 26 };

	if (n < EXECTRACE_HEADER_BYTES || !parse_header(bytes, version))
		return err_set(e, -EBADMSG,
			       "no execution trace: it does not begin with "
			       "\"go 1.22 trace\" or the like");
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (*version == known[i])
			return 0;
	return err_set(e, -ENOTSUP, "an execution trace of the unknown version go 1.%u", *version);
}

static int read_header(int fd, unsigned *version, struct err *e)
{
	char h[EXECTRACE_HEADER_BYTES];
	ssize_t got;

	do
		got = pread(fd, h, sizeof(h), 0);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_sys(e, "reading it");
	return exectrace_header(h, (size_t)got, version, e);
}

int exectrace_open(int fd, struct exectrace **out, struct err *e)
{
	CLEANUP(exectrace_freep) struct exectrace *t = calloc(1, sizeof(*t));
	int ret;

	if (!t)
		return err_set(e, -ENOMEM, "no memory");
	ret = read_header(fd, &t->version, e);
	if (!ret)
		ret = t->version < VERSION2 ? trace1_open(fd, t->version, &t->one, e) :
					      trace2_open(fd, t->version, &t->two, e);
	if (!ret)
		*out = TAKE(t);
	return ret;
}

void exectrace_free(struct exectrace *t)
{
	if (!t)
		return;
	trace1_free(t->one);
	trace2_free(t->two);
	free(t);
}

unsigned exectrace_version(const struct exectrace *t)
{
	return t->version;
}

int exectrace_next(struct exectrace *t, struct trace_event *ev, struct err *e)
{
	if (!t->is_done) {
		int ret = t->two ? trace2_next(t->two, ev, &t->why) :
				   trace1_next(t->one, ev, &t->why);

		if (ret > 0)
			return ret;
		t->done = ret;
		t->is_done = true;
	}
	if (t->done < 0 && e)
		*e = t->why;
	return t->done;
}

int exectrace_damage(const struct exectrace *t, struct err *e)
{
	return t->one ? trace1_damage(t->one, e) : trace2_damage(t->two, e);
}

static const struct trace_tables *tables_of(const struct exectrace *t)
{
	return t->one ? trace1_tables(t->one) : trace2_tables(t->two);
}

int exectrace_use_exe(struct exectrace *t, struct pclntab12 *exe, struct err *e)
{
	struct trace_tables *tables;
	size_t named;
	int ret;

	if (t->version >= V1_7)
		return 0;
	tables = trace1_own_tables(t->one);
	ret = tables_use_exe(tables, exe, &named, e);
	if (!ret && tables->frames.n && !named)
		ret = err_set(e, -ENOENT, "it has none of the trace's addresses");
	return ret;
}

size_t exectrace_stack(const struct exectrace *t, uint32_t stack)
{
	return stack ? tables_of(t)->stacks.at[stack - 1].n : 0;
}

struct trace_frame exectrace_frame(const struct exectrace *t, uint32_t stack, size_t i)
{
	const struct trace_tables *tables = tables_of(t);
	const struct table_frame *f = &tables->frames.at[tables->stacks.at[stack - 1].at + i];
	struct trace_frame out = { .pc = f->pc, .line = f->line };

	(void)tables_string(tables, f->func, &out.func);
	(void)tables_string(tables, f->file, &out.file);
	return out;
}

bool exectrace_has_clock(const struct exectrace *t)
{
	return t->one ? trace1_has_clock(t->one) : trace2_has_clock(t->two);
}

int exectrace_cut(struct exectrace *t, FILE *f, int64_t from_ns, int64_t to_ns, struct err *e)
{
	return t->one ? trace1_cut(t->one, f, from_ns, to_ns, e) :
			trace2_cut(t->two, f, from_ns, to_ns, e);
}

bool exectrace_cut_is_over(const struct exectrace *t)
{
	return t->one ? trace1_cut_is_over(t->one) : trace2_cut_is_over(t->two);
}

int exectrace_cut_finish(struct exectrace *t, int64_t *from_ns, int64_t *to_ns, struct err *e)
{
	return t->one ? trace1_cut_finish(t->one, from_ns, to_ns, e) :
			trace2_cut_finish(t->two, from_ns, to_ns, e);
}

uint64_t exectrace_offset(const struct exectrace *t)
{
	return t->one ? trace1_offset(t->one) : stream_offset(trace2_stream(t->two));
}

uint64_t exectrace_size(const struct exectrace *t)
{
	return t->one ? trace1_size(t->one) : trace2_stream(t->two)->size;
}
