/*
 * user/ingest/heapdump/fields.c - which words of contents hold pointers: a list that follows them in the
 * file says so, or (Go 1.3) the object's type does, or nothing, and every word may be one.
 */
#include "ingest/heapdump/heapdump_priv.h"

uint64_t heapdump_pointer(const struct heapdump *d, const uint8_t *p)
{
	uint64_t v8;
	uint32_t v4;

	if (d->params.ptrsize == 8) {
		memcpy(&v8, p, 8);
		return d->params.big_endian ? __builtin_bswap64(v8) : v8;
	}
	memcpy(&v4, p, 4);
	return d->params.big_endian ? __builtin_bswap32(v4) : v4;
}

void heapdump_pointers(const struct heapdump *d, const struct heapdump_object *o, uint64_t *out)
{
	const struct heapdump_layout *l = o->layout;

	if (d->params.ptrsize == 8 && !d->params.big_endian)
		for (uint32_t i = 0; i < l->n; i++) {
			memcpy(&out[i], o->at + l->offset[i], 8);
			out[i] = le64toh(out[i]);
		}
	else
		for (uint32_t i = 0; i < l->n; i++)
			out[i] = heapdump_pointer(d, o->at + l->offset[i]);
}

/* The word of the contents at @offset. */
static uint64_t word(struct heapdump *d, uint64_t offset)
{
	uint64_t off = d->contents.off + offset, n = d->params.ptrsize;

	if (d->contents.off == UINT64_MAX)
		return 0;
	if (off >= d->s.base && off + n <= d->s.base + d->s.n)
		return heapdump_pointer(d, d->s.buf + (off - d->s.base));
	if (!d->s.seekable)
		return 0;
	if (off < d->far.base || off + n > d->far.base + d->far.n) {
		stream_seek(&d->far, off);
		if (!stream_have(&d->far, (size_t)n))
			return 0;
	}
	return heapdump_pointer(d, d->far.buf + (off - d->far.base));
}

uint64_t heapdump_word(struct heapdump *d, uint64_t offset)
{
	uint64_t n = d->params.ptrsize;

	return n <= d->contents.len && offset <= d->contents.len - n ? word(d, offset) : 0;
}

static int bad_field(const struct heapdump *d, uint64_t kind, uint64_t offset, struct err *e)
{
	return err_set(e, -EBADMSG,
		       "offset %llu: a field of kind %llu at %llu of %llu bytes, in the %s that "
		       "begins at %llu",
		       (unsigned long long)stream_offset(&d->s), (unsigned long long)kind,
		       (unsigned long long)offset, (unsigned long long)d->contents.len,
		       heapdump_record_name(d), (unsigned long long)d->began);
}

static uint64_t most_kinds(const struct heapdump *d)
{
	return d->version == 3 ? HEAPDUMP_EFACE : d->version == 4 ? 3 : HEAPDUMP_PTR;
}

/* Go 1.4 numbers them 1 pointer, 2 interface, 3 empty interface. */
static enum heapdump_field_kind kind_of(const struct heapdump *d, uint64_t kind)
{
	return d->version == 4 && kind > 1 ? kind + 2 : kind;
}

/* Of an interface the second word is the pointer. */
static void fill(struct heapdump *d, struct heapdump_field *f)
{
	f->type = 0;
	if (f->kind < HEAPDUMP_IFACE) {
		f->addr = word(d, f->offset);
		return;
	}
	f->type = word(d, f->offset);
	f->offset += d->params.ptrsize;
	f->addr = dumptypes_is_pointer(&d->types, f->kind, f->type) ? word(d, f->offset) : 0;
}

static bool inside(const struct heapdump *d, enum heapdump_field_kind kind, uint64_t offset)
{
	uint64_t size = d->params.ptrsize * (kind >= HEAPDUMP_IFACE ? 2 : 1);

	return size <= d->contents.len && offset <= d->contents.len - size;
}

static bool next_by_type(struct heapdump *d, struct heapdump_field *f)
{
	while (dumptypes_next(&d->types, &d->walk, &f->kind, &f->offset))
		if (inside(d, f->kind, f->offset))
			return true;
	return false;
}

static bool next_word(struct heapdump *d, struct heapdump_field *f)
{
	f->kind = HEAPDUMP_PTR;
	f->offset = d->word;
	d->word += d->params.ptrsize;
	return inside(d, f->kind, f->offset);
}

/*
 * Where return addresses are in a register (all but 386 and amd64), up to Go 1.17, the arguments of
 * the outermost frame lie behind what is written of it, and so do fields of them. Source:
 * dumpframe() in runtime/heapdump.go and runtime/traceback.go, Go 1.13; seen on four architectures.
 */
static bool may_lie_behind(const struct heapdump *d, uint64_t offset)
{
	return d->kind == HEAPDUMP_FRAME && offset < d->contents.len + LIMIT_DUMP_ARGS;
}

/* As the two above; -EBADMSG */
static int next_listed(struct heapdump *d, struct heapdump_field *f, struct err *e)
{
	for (;;) {
		uint64_t kind = 0;

		heapdump_number(d, "kind of a field", &kind);
		if (!kind && !d->bad)
			return 0;
		heapdump_number(d, "offset of a field", &f->offset);
		if (d->bad)
			return heapdump_fail(d, e);
		f->kind = kind_of(d, kind);
		if (kind <= most_kinds(d) && inside(d, f->kind, f->offset))
			return 1;
		if (kind > most_kinds(d) || !may_lie_behind(d, f->offset))
			return bad_field(d, kind, f->offset, e);
		d->behind++;
	}
}

/*
 * The same where the list lies in the window, and is as it should be: 1, 0, or -1 for all else,
 * which takes the long way.
 */
static inline int next_inside(struct heapdump *d, struct heapdump_field *f)
{
	struct stream *s = &d->s;
	const uint8_t *p = s->buf + s->at;

	if (s->n - s->at < FAST_BYTES)
		return -1;
	if (!*p) {
		s->at++;
		return 0;
	}
	if (*p > most_kinds(d) || !(p = uvarint_inside(p + 1, &f->offset)))
		return -1;
	f->kind = kind_of(d, s->buf[s->at]);
	if (!inside(d, f->kind, f->offset))
		return -1;
	s->at = (size_t)(p - s->buf);
	return 1;
}

static bool next_in_layout(struct heapdump *d, struct heapdump_field *f)
{
	if (d->at == d->layout->n)
		return false;
	f->kind = HEAPDUMP_PTR;
	f->offset = d->layout->offset[d->at++];
	return true;
}

int heapdump_field(struct heapdump *d, struct heapdump_field *f, struct err *e)
{
	int more = 0;

	if (d->fields == FIELDS_LAYOUT) {
		more = next_in_layout(d, f);
	} else if (d->fields == FIELDS_LIST) {
		more = next_inside(d, f);
		if (more < 0)
			more = next_listed(d, f, e);
	} else if (d->fields == FIELDS_BY_TYPE) {
		more = next_by_type(d, f);
	} else if (d->fields == FIELDS_ALL) {
		more = next_word(d, f);
	}
	if (more > 0)
		fill(d, f);
	else if (!more)
		d->fields = FIELDS_NONE;
	return more;
}

int heapdump_skip_fields(struct heapdump *d, struct err *e)
{
	struct heapdump_field f;
	int ret = 1;

	while (ret > 0 && d->fields == FIELDS_LIST) {
		ret = next_inside(d, &f);
		if (ret < 0)
			ret = next_listed(d, &f, e);
	}
	d->fields = FIELDS_NONE;
	return ret < 0 ? ret : 0;
}

/* ---- Go 1.3 and 1.4 ---- */

/* In the draft their number is told; kinds begin at 0. */
static int read_places(struct heapdump *d, struct err *e)
{
	uint64_t n = UINT64_MAX, kind = 0, offset = 0;

	if (d->draft)
		heapdump_number(d, "number of fields", &n);
	for (uint64_t i = 0; i < n && !d->bad; i++) {
		heapdump_number(d, "kind of a field", &kind);
		kind += d->draft;
		if (!kind || d->bad)
			break;
		heapdump_number(d, "offset of a field", &offset);
		if (!d->bad && (kind > HEAPDUMP_EFACE || !inside(d, kind, offset)))
			return bad_field(d, kind, offset, e);
		dumptypes_place(&d->types, kind, offset);
	}
	return d->bad ? heapdump_fail(d, e) : 0;
}

/* gccgo writes no architecture, and no places. */
static bool has_places(const struct heapdump *d)
{
	return d->version == 3 && (d->draft || d->params.arch_char);
}

static int read_type(struct heapdump *d, const struct heapdump_type *t, struct err *e)
{
	int ret = 0;

	dumptypes_begin(&d->types, t->addr, t->size, t->indirect);
	if (has_places(d)) {
		d->contents = (struct heapdump_contents){ .len = t->size, .off = UINT64_MAX };
		ret = read_places(d, e);
	}
	dumptypes_end(&d->types, !ret && has_places(d), d->params.ptrsize);
	if (!ret && dumptypes_walk_type(&d->types, t->addr, &d->walk))
		d->fields = FIELDS_BY_TYPE;
	return ret;
}

static void fields_of_object(struct heapdump *d, const struct heapdump_object *o)
{
	d->fields = FIELDS_ALL;
	d->word = 0;
	if (dumptypes_walk(&d->types, o, d->params.hchan_bytes, &d->walk))
		d->fields = FIELDS_BY_TYPE;
}

int heapdump_keep_types(struct heapdump *d, const struct heapdump_record *r, struct err *e)
{
	const struct dumptype *type;

	if (r->kind == HEAPDUMP_TYPE)
		return read_type(d, &r->type, e);
	if (r->kind == HEAPDUMP_OBJECT && d->version == 3)
		fields_of_object(d, &r->object);
	if (r->kind == HEAPDUMP_ITAB) {
		type = r->itab.type ? dumptypes_get(&d->types, r->itab.type) : NULL;
		dumptypes_itab(&d->types, r->itab.addr,
			       d->version == 3 ? r->itab.indirect : !type || type->pointer);
	}
	return 0;
}
