/* user/ingest/heapdump/heapdump.c - records of heap dumps: layouts.h says what each consists of. */
#include "ingest/heapdump/heapdump.h"

#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ingest/heapdump/header.h"
#include "ingest/heapdump/heapdump_priv.h"
#include "ingest/heapdump/layouts.h"

/* ---- parts ---- */

static bool bad(struct heapdump *d, const char *what)
{
	if (!d->bad) {
		d->bad = what;
		d->bad_off = stream_offset(&d->s);
	}
	return false;
}

bool heapdump_number(struct heapdump *d, const char *what, uint64_t *out)
{
	return !d->bad && (stream_uvarint(&d->s, out) || bad(d, what));
}

static bool boolean(struct heapdump *d, const char *what, bool *out)
{
	uint64_t v = 0;

	if (!heapdump_number(d, what, &v))
		return false;
	*out = v;
	return v < 2 || bad(d, what);
}

/* Is there so much left? Of a pipe nobody knows. */
static bool fits(struct heapdump *d, uint64_t n)
{
	bool all = !d->s.seekable || n <= d->s.size - stream_offset(&d->s);

	if (!all)
		d->too_long = n;
	return all;
}

static bool text(struct heapdump *d, const char *what, struct heapdump_text *out)
{
	uint64_t n = 0;
	size_t keep, room = TEXT_BYTES - d->ntext;

	if (!heapdump_number(d, what, &n))
		return false;
	keep = n < LIMIT_NAME ? (size_t)n : LIMIT_NAME;
	keep = keep < room ? keep : room;
	if (!fits(d, n) || !stream_have(&d->s, keep))
		return bad(d, what);
	*out = (struct heapdump_text){ d->text + d->ntext, keep };
	memcpy(d->text + d->ntext, d->s.buf + d->s.at, keep);
	d->ntext += keep;
	return stream_skip(&d->s, n) || bad(d, what);
}

/* Contents of usual objects stay in the window until their fields have been read. */
static bool contents(struct heapdump *d, const char *what, struct heapdump_contents *out)
{
	if (!heapdump_number(d, what, &out->len))
		return false;
	out->off = stream_offset(&d->s);
	if (!fits(d, out->len))
		return bad(d, what);
	d->contents = *out;
	d->fields = FIELDS_LIST;
	stream_mark(&d->s);
	return stream_skip(&d->s, out->len) || bad(d, what);
}

static void read_parts(struct heapdump *d, const struct part *p, struct heapdump_record *r)
{
	for (; p->type; p++) {
		void *to = (char *)r + p->at;

		switch (p->type) {
		case PART_NUMBER:
			heapdump_number(d, p->name, to);
			break;
		case PART_BOOL:
			boolean(d, p->name, to);
			break;
		case PART_TEXT:
			text(d, p->name, to);
			break;
		default:
			contents(d, p->name, to);
		}
	}
}

static void read_memstats(struct heapdump *d, struct heapdump_memstats *m)
{
	uint64_t *to = (uint64_t *)m;

	for (size_t i = 0; i < sizeof(*m) / sizeof(*to); i++)
		heapdump_number(d, "number", &to[i]);
}

static int read_memprof(struct heapdump *d, struct heapdump_memprof *m, struct err *e)
{
	uint64_t n = 0;

	heapdump_number(d, "bucket", &m->bucket);
	heapdump_number(d, "size", &m->size);
	heapdump_number(d, "number of frames", &n);
	d->lines.n = 0;
	for (uint64_t i = 0; i < n && !d->bad; i++) {
		struct heapdump_line *l = vec_add(&d->lines, LIMIT_BUCKET_STACK);

		if (!l && d->lines.n < LIMIT_BUCKET_STACK)
			return err_set(e, -ENOMEM, "no memory for a stack");
		if (!l)
			return err_set(
				e, -EBADMSG,
				"offset %llu: the memory profile has a stack of %llu frames, and "
				"%d are read",
				(unsigned long long)d->began, (unsigned long long)n,
				LIMIT_BUCKET_STACK);
		text(d, "function", &l->func);
		text(d, "file", &l->file);
		heapdump_number(d, "line", &l->line);
	}
	heapdump_number(d, "allocations", &m->allocs);
	heapdump_number(d, "frees", &m->frees);
	m->lines = d->lines.at;
	m->nlines = d->lines.n;
	return 0;
}

/* ---- errors ---- */

const char *heapdump_record_name(const struct heapdump *d)
{
	return d->kind == HEAPDUMP_KINDS ? "record" : layout_name(d->kind);
}

static int cut_short(const struct heapdump *d, struct err *e)
{
	if (d->s.failed)
		return err_set(e, -d->s.failed, "reading at offset %llu: %s",
			       (unsigned long long)stream_offset(&d->s), strerror(d->s.failed));
	if (d->kind == HEAPDUMP_KINDS && d->s.at == d->s.n)
		return err_set(e, -EBADMSG, "the dump ends at offset %llu without its end mark",
			       (unsigned long long)d->began);
	return err_set(e, -EBADMSG, "the dump ends in the %s of the %s at offset %llu", d->bad,
		       heapdump_record_name(d), (unsigned long long)d->began);
}

int heapdump_fail(const struct heapdump *d, struct err *e)
{
	if (d->too_long)
		return err_set(
			e, -EBADMSG,
			"the dump ends in the %s of the %s at offset %llu: it says %llu bytes, "
			"of which %llu are there",
			d->bad, heapdump_record_name(d), (unsigned long long)d->began,
			(unsigned long long)d->too_long,
			(unsigned long long)(d->s.size - d->bad_off));
	if (d->s.ended && d->s.n - d->s.at < 10)
		return cut_short(d, e);
	return err_set(e, -EBADMSG, "offset %llu: wrong %s in the %s that begins at %llu",
		       (unsigned long long)d->bad_off, d->bad, heapdump_record_name(d),
		       (unsigned long long)d->began);
}

/* ---- records ---- */

/* Source: thechar in runtime/arch1_*.go, Go 1.5 and 1.6; in arch_*.h before. */
static const char *arch_name(const struct heapdump_params *p)
{
	switch (p->arch_char) {
	case '0':
		return p->big_endian ? "mips64" : "mips64le";
	case '5':
		return "arm";
	case '6':
		return "amd64";
	case '7':
		return "arm64";
	case '8':
		return "386";
	case '9':
		return p->big_endian ? "ppc64" : "ppc64le";
	default:
		return "";
	}
}

static int keep_params(struct heapdump *d, struct heapdump_record *r, struct err *e)
{
	struct heapdump_params *p = &r->params;

	if (p->ptrsize != 4 && p->ptrsize != 8)
		return err_set(e, -EBADMSG, "offset %llu: pointers of %llu bytes",
			       (unsigned long long)r->off, (unsigned long long)p->ptrsize);
	if (d->known)
		return err_set(e, -EBADMSG, "offset %llu: parameters for a second time",
			       (unsigned long long)r->off);
	d->params = *p;
	if (p->arch.at)
		snprintf(d->arch, sizeof(d->arch), "%.*s", (int)p->arch.len, p->arch.at);
	else
		snprintf(d->arch, sizeof(d->arch), "%s", arch_name(p));
	snprintf(d->toolchain, sizeof(d->toolchain), "%.*s", (int)p->toolchain.len,
		 p->toolchain.at ? p->toolchain.at : "");
	d->params.arch = (struct heapdump_text){ d->arch, strlen(d->arch) };
	d->params.toolchain = (struct heapdump_text){ d->toolchain, strlen(d->toolchain) };
	d->known = true;
	return 0;
}

/* ---- any record ---- */

static int read_record(struct heapdump *d, struct heapdump_record *r, struct err *e)
{
	const struct part *parts = layout_parts(d->version, d->draft, r->kind);
	int ret = 0;

	if (parts)
		read_parts(d, parts, r);
	else if (r->kind == HEAPDUMP_MEMSTATS)
		read_memstats(d, &r->memstats);
	else if (r->kind == HEAPDUMP_MEMPROF)
		ret = read_memprof(d, &r->memprof, e);
	if (ret || d->bad)
		return ret ? ret : heapdump_fail(d, e);
	if (r->kind == HEAPDUMP_PARAMS)
		return keep_params(d, r, e);
	return d->version < 5 ? heapdump_keep_types(d, r, e) : 0;
}

/* The list that follows the contents: it is passed when it is a usual one. */
static struct heapdump_layout *list_after(struct heapdump *d)
{
	const uint8_t *p = d->s.buf + d->s.at;
	struct heapdump_list *l;

	d->fields = FIELDS_LIST;
	if (d->s.n - d->s.at < LISTS_ROOM || d->version < 5)
		return NULL;
	l = lists_get(&d->lists, p, d->contents.len, d->params.ptrsize);
	if (!l)
		return NULL;
	d->fields = FIELDS_LAYOUT;
	d->s.at += l->n;
	d->layout = &l->layout;
	d->at = 0;
	return &l->layout;
}

/*
 * What comes so far behind will be looked at soon. Another thread has read it, so it lies in another CPU's
 * cache, and to wait for it takes longer than to read records.
 */
static inline void fetch_ahead(const uint8_t *p)
{
	__builtin_prefetch((const void *)((uintptr_t)p + PREFETCH_BYTES));
}

/*
 * Nearly all records are objects that lie in the window whole: they are read without asking for
 * each byte whether it is there. False: this one must be read the long way.
 */
static bool read_object_fast(struct heapdump *d, struct heapdump_record *r)
{
	struct stream *s = &d->s;
	const uint8_t *p = s->buf + s->at, *end = s->buf + s->n;
	uint64_t addr, len, off;

	if (end - p < FAST_BYTES || *p != HEAPDUMP_OBJECT || d->version == 3 || !d->known)
		return false;
	p = uvarint_inside(p + 1, &addr);
	p = p ? uvarint_inside(p, &len) : NULL;
	if (!p || len > (uint64_t)(end - p))
		return false;
	d->began = stream_offset(s);
	d->kind = r->kind = HEAPDUMP_OBJECT;
	r->off = d->began;
	s->mark = (size_t)(p - s->buf);
	s->at = s->mark + (size_t)len;
	fetch_ahead(p + len);
	off = s->base + s->mark;
	d->contents = (struct heapdump_contents){ len, off };
	r->object = (struct heapdump_object){ .addr = addr, .contents = { len, off }, .at = p };
	r->object.layout = list_after(d);
	return true;
}

/* But the memstats, which are long, and read as a whole. */
static void clear(struct heapdump_record *r)
{
	memset(r, 0, offsetof(struct heapdump_record, goroutine) + sizeof(r->goroutine));
	_Static_assert(sizeof(r->goroutine) >= sizeof(r->params) &&
			       sizeof(r->goroutine) >= sizeof(r->frame),
		       "the longest but one");
}

int heapdump_next(struct heapdump *d, struct heapdump_record *r, struct err *e)
{
	uint64_t kind = 0;
	int ret = d->fields == FIELDS_LIST ? heapdump_skip_fields(d, e) : 0;

	if (ret)
		return ret;
	d->fields = FIELDS_NONE;
	if (read_object_fast(d, r))
		return 0;
	stream_mark(&d->s);
	d->began = stream_offset(&d->s);
	d->kind = HEAPDUMP_KINDS;
	d->ntext = 0;
	clear(r);
	r->off = d->began;
	if (d->ended)
		return 0;
	if (!heapdump_number(d, "kind", &kind))
		return heapdump_fail(d, e);
	if (!d->known)
		d->draft = d->version == 3 && kind == LAYOUT_DRAFT_PARAMS;
	r->kind = layout_kind(d->draft, kind);
	if (r->kind == HEAPDUMP_KINDS)
		return err_set(e, -EBADMSG, "offset %llu: a record of the unknown kind %llu",
			       (unsigned long long)d->began, (unsigned long long)kind);
	d->kind = r->kind;
	d->ended = r->kind == HEAPDUMP_EOF;
	if (!d->known && r->kind != HEAPDUMP_PARAMS)
		return err_set(e, -EBADMSG, "offset %llu: the first record is no parameters but %s",
			       (unsigned long long)d->began, heapdump_record_name(d));
	return read_record(d, r, e);
}

/* Over objects that lie in the window whole, and are as they should be. */
static void pass_objects(struct heapdump *d)
{
	struct stream *s = &d->s;
	uint64_t word = d->params.ptrsize, v, len;

	while (d->known && d->version >= 5) {
		const uint8_t *p = s->buf + s->at, *end = s->buf + s->n;

		if (end - p < FAST_BYTES || *p != HEAPDUMP_OBJECT)
			return;
		p = uvarint_inside(p + 1, &v);
		p = p ? uvarint_inside(p, &len) : NULL;
		if (!p || len > (uint64_t)(end - p))
			return;
		fetch_ahead(p + len);
		for (p += len; end - p >= FAST_BYTES && *p == HEAPDUMP_PTR;) {
			p = uvarint_inside(p + 1, &v);
			if (!p || len < word || v > len - word)
				return;
		}
		if (end - p < FAST_BYTES || *p)
			return;
		s->at = s->mark = (size_t)(p - s->buf) + 1;
	}
}

int heapdump_next_other(struct heapdump *d, struct heapdump_record *r, struct err *e)
{
	int ret;

	do {
		ret = heapdump_skip_fields(d, e);
		if (!ret)
			pass_objects(d);
		if (!ret)
			ret = heapdump_next(d, r, e);
	} while (!ret && r->kind == HEAPDUMP_OBJECT);
	return ret;
}

/* ---- the file ---- */

static int read_header(struct heapdump *d, struct err *e)
{
	int ret;

	if (!stream_have(&d->s, HEAPDUMP_HEADER_BYTES) && d->s.failed)
		return err_set(e, -d->s.failed, "%s", strerror(d->s.failed));
	ret = heapdump_header(d->s.buf + d->s.at, d->s.n - d->s.at, &d->version, e);
	stream_skip(&d->s, HEAPDUMP_HEADER_BYTES);
	return ret;
}

int heapdump_open(int fd, struct heapdump **out, struct err *e)
{
	CLEANUP(heapdump_freep) struct heapdump *d = calloc(1, sizeof(*d));
	int ret;

	if (!d)
		return err_set(e, -ENOMEM, "no memory");
	ret = stream_open(&d->s, fd, e);
	if (!ret)
		ret = stream_open(&d->far, fd, e);
	d->text = malloc(TEXT_BYTES);
	if (!ret && !d->text)
		ret = err_set(e, -ENOMEM, "no memory");
	if (!ret)
		ret = read_header(d, e);
	if (!ret)
		*out = TAKE(d);
	return ret;
}

void heapdump_read_ahead(struct heapdump *d)
{
	stream_read_ahead(&d->s);
}

void heapdump_free(struct heapdump *d)
{
	stream_fini(&d->s);
	stream_fini(&d->far);
	vec_fini(&d->lines);
	dumptypes_fini(&d->types);
	free(d->text);
	free(d);
}

int heapdump_seek_until(struct heapdump *d, uint64_t off, uint64_t until, struct err *e)
{
	if (!d->s.seekable)
		return err_set(e, -ESPIPE, "a pipe cannot be read twice");
	stream_seek_until(&d->s, off, until ? until + LISTS_ROOM : 0);
	d->ended = false;
	d->fields = FIELDS_NONE;
	d->bad = NULL;
	d->too_long = 0;
	return 0;
}

int heapdump_seek(struct heapdump *d, uint64_t off, struct err *e)
{
	return heapdump_seek_until(d, off, 0, e);
}

int heapdump_rewind(struct heapdump *d, struct err *e)
{
	int ret = heapdump_seek(d, HEAPDUMP_HEADER_BYTES, e);

	if (ret)
		return ret;
	dumptypes_fini(&d->types); /* each pass meets them at the same places */
	memset(&d->lists, 0, sizeof(d->lists));
	d->known = false;
	d->behind = 0;
	return 0;
}

const uint8_t *heapdump_window(const struct heapdump *d, const struct heapdump_contents *c)
{
	bool inside = c->off >= d->s.base && c->off - d->s.base <= d->s.n &&
		      c->len <= d->s.n - (c->off - d->s.base);

	return inside ? d->s.buf + (c->off - d->s.base) : NULL;
}

int heapdump_bytes(struct heapdump *d, uint64_t off, void *buf, size_t n, struct err *e)
{
	ssize_t got;

	do
		got = pread(d->s.fd, buf, n, (off_t)off);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return err_sys(e, "reading the dump");
	return (size_t)got == n ? 0 :
				  err_set(e, -EBADMSG, "the dump ends at offset %llu",
					  (unsigned long long)off + (uint64_t)got);
}

const struct heapdump_params *heapdump_params(const struct heapdump *d)
{
	return &d->params;
}

unsigned heapdump_version(const struct heapdump *d)
{
	return d->version;
}

bool heapdump_draft(const struct heapdump *d)
{
	return d->draft;
}

uint64_t heapdump_behind(const struct heapdump *d)
{
	return d->behind;
}

uint64_t heapdump_record_off(const struct heapdump *d)
{
	return d->began;
}

uint64_t heapdump_offset(const struct heapdump *d)
{
	return stream_offset(&d->s);
}

void heapdump_watch(struct heapdump *d, void (*tick)(void *arg, uint64_t offset), void *arg)
{
	d->s.tick = tick;
	d->s.tick_arg = arg;
}

uint64_t heapdump_left(struct heapdump *d)
{
	return d->ended ? stream_rest(&d->s) : 0;
}

uint64_t heapdump_size(const struct heapdump *d)
{
	return d->s.size;
}
