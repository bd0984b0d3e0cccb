/*
 * user/output/pprof.c - a profile as pprof's gzipped protobuf message.
 *
 * Encoded messages of one type concatenate to their merge: so the Profile is packed as a row
 * of small Profiles with one element each, every one deflated as soon as it is packed. No
 * second copy of the profile exists, however large it is.
 */
#include <zlib.h>

#include "output/format.h"
#include "profile.pb-c.h"

typedef Goprof__Pprof__Profile pb_profile;
typedef Goprof__Pprof__ValueType pb_value_type;
typedef Goprof__Pprof__Sample pb_sample;
typedef Goprof__Pprof__Label pb_label;
typedef Goprof__Pprof__Mapping pb_mapping;
typedef Goprof__Pprof__Location pb_location;
typedef Goprof__Pprof__Line pb_line;
typedef Goprof__Pprof__Function pb_function;

enum {
	GZIP_WINDOW = 15 + 16, /* zlib: the largest window, in a gzip wrapper */
	OUT_BYTES = 64 * 1024,
	IN_MAX = 1 << 30, /* zlib counts its input in 32 bits */
};

struct writer {
	struct prof *p;
	FILE *f;
	z_stream z;
	uint8_t *out;	 /* OUT_BYTES: deflated */
	uint8_t *packed; /* one packed message */
	size_t packed_cap;
	/* Scratch as large as the largest location or sample needs. */
	pb_line *lines, **line_ptrs;
	pb_label *labels, **label_ptrs;
	uint64_t *ids;
};

static void writer_fini(struct writer *w)
{
	deflateEnd(&w->z);
	free(w->out);
	free(w->packed);
	free(w->lines);
	free(w->line_ptrs);
	free(w->labels);
	free(w->label_ptrs);
	free(w->ids);
}

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory to write the profile");
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static int writer_init(struct writer *w, struct err *e)
{
	size_t lines = 1, locs = 1, labels = 1;

	for (size_t i = 0; i < prof_nlocations(w->p); i++)
		lines = larger(lines, prof_location_at(w->p, i).nlines);
	for (size_t i = 0; i < prof_nsamples(w->p); i++) {
		struct prof_sample_view s = prof_sample_at(w->p, i);

		locs = larger(locs, s.nlocs);
		labels = larger(labels, s.nlabels);
	}
	w->out = malloc(OUT_BYTES);
	w->lines = calloc(lines, sizeof(*w->lines));
	w->line_ptrs = calloc(lines, sizeof(*w->line_ptrs));
	w->labels = calloc(labels, sizeof(*w->labels));
	w->label_ptrs = calloc(labels, sizeof(*w->label_ptrs));
	w->ids = calloc(locs, sizeof(*w->ids));
	if (!w->out || !w->lines || !w->line_ptrs || !w->labels || !w->label_ptrs || !w->ids)
		return no_memory(e);
	/*
	 * Speed matters more than size, as in Go's own writer: this CPU time is taken from the
	 * machine that is profiled.
	 */
	if (deflateInit2(&w->z, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY) !=
	    Z_OK)
		return no_memory(e);
	return 0;
}

/* Compresses what is in z.next_in; with Z_FINISH it also ends the stream. */
static int pump(struct writer *w, int flush, struct err *e)
{
	do {
		size_t n;
		int r;

		w->z.next_out = w->out;
		w->z.avail_out = OUT_BYTES;
		r = deflate(&w->z, flush);
		BUG_ON(r == Z_STREAM_ERROR);
		n = OUT_BYTES - w->z.avail_out;
		if (n && fwrite(w->out, 1, n, w->f) != n)
			return err_sys(e, "write");
	} while (!w->z.avail_out);
	return 0;
}

static int emit_bytes(struct writer *w, uint8_t *at, size_t n, struct err *e)
{
	while (n) {
		size_t some = n < IN_MAX ? n : IN_MAX;
		int r;

		w->z.next_in = at;
		w->z.avail_in = (uInt)some;
		r = pump(w, Z_NO_FLUSH, e);
		if (r < 0)
			return r;
		at += some;
		n -= some;
	}
	return 0;
}

static int emit(struct writer *w, const pb_profile *part, struct err *e)
{
	size_t n = goprof__pprof__profile__get_packed_size(part);

	if (n > w->packed_cap) {
		uint8_t *more = realloc(w->packed, 2 * n);

		if (!more)
			return no_memory(e);
		w->packed = more;
		w->packed_cap = 2 * n;
	}
	if (n)
		goprof__pprof__profile__pack(part, w->packed);
	return emit_bytes(w, w->packed, n, e);
}

/* ---- the parts ---- */

static void set_type(pb_value_type *v, struct prof_type t)
{
	goprof__pprof__value_type__init(v);
	v->type = t.type;
	v->unit = t.unit;
}

static int emit_header(struct writer *w, struct err *e)
{
	struct prof_header_view h = prof_header(w->p);
	pb_value_type types[PROF_TYPES_MAX], *type_ptrs[PROF_TYPES_MAX], period;
	pb_profile part = GOPROF__PPROF__PROFILE__INIT;

	for (size_t i = 0; i < h.ntypes; i++) {
		set_type(&types[i], h.types[i]);
		type_ptrs[i] = &types[i];
	}
	set_type(&period, h.period_type);
	part.n_sample_type = h.ntypes;
	part.sample_type = type_ptrs;
	part.period_type = h.period_type.type ? &period : NULL;
	part.period = h.period;
	part.time_nanos = h.time_ns;
	part.duration_nanos = h.duration_ns;
	part.default_sample_type = h.default_type;
	return emit(w, &part, e);
}

static int emit_samples(struct writer *w, struct err *e)
{
	for (size_t i = 0; i < prof_nsamples(w->p); i++) {
		struct prof_sample_view v = prof_sample_at(w->p, i);
		pb_sample s = GOPROF__PPROF__SAMPLE__INIT, *ptr = &s;
		pb_profile part = GOPROF__PPROF__PROFILE__INIT;
		int r;

		for (size_t k = 0; k < v.nlocs; k++)
			w->ids[k] = v.locs[k];
		for (size_t k = 0; k < v.nlabels; k++) {
			pb_label *l = w->label_ptrs[k] = &w->labels[k];

			goprof__pprof__label__init(l);
			l->key = v.labels[k].key;
			l->str = v.labels[k].str == UINT32_MAX ? 0 : v.labels[k].str;
			l->num = v.labels[k].num;
			l->num_unit = v.labels[k].num_unit;
		}
		s.n_location_id = v.nlocs;
		s.location_id = w->ids;
		s.n_value = prof_header(w->p).ntypes;
		s.value = (int64_t *)v.values; /* only read; protobuf-c knows no const */
		s.n_label = v.nlabels;
		s.label = w->label_ptrs;
		part.n_sample = 1;
		part.sample = &ptr;
		r = emit(w, &part, e);
		if (r < 0)
			return r;
	}
	return 0;
}

static int emit_mappings(struct writer *w, struct err *e)
{
	for (size_t i = 0; i < prof_nmappings(w->p); i++) {
		struct prof_mapping_view v = prof_mapping_at(w->p, i);
		pb_mapping m = GOPROF__PPROF__MAPPING__INIT, *ptr = &m;
		pb_profile part = GOPROF__PPROF__PROFILE__INIT;
		int r;

		m.id = i + 1;
		m.memory_start = v.start;
		m.memory_limit = v.limit;
		m.file_offset = v.offset;
		m.filename = v.filename;
		m.build_id = v.build_id;
		m.has_functions = v.has_functions;
		part.n_mapping = 1;
		part.mapping = &ptr;
		r = emit(w, &part, e);
		if (r < 0)
			return r;
	}
	return 0;
}

static int emit_locations(struct writer *w, struct err *e)
{
	for (size_t i = 0; i < prof_nlocations(w->p); i++) {
		struct prof_location_view v = prof_location_at(w->p, i);
		pb_location l = GOPROF__PPROF__LOCATION__INIT, *ptr = &l;
		pb_profile part = GOPROF__PPROF__PROFILE__INIT;
		int r;

		for (size_t k = 0; k < v.nlines; k++) {
			w->line_ptrs[k] = &w->lines[k];
			goprof__pprof__line__init(&w->lines[k]);
			w->lines[k].function_id = v.func[k];
			w->lines[k].line = v.line[k];
		}
		l.id = i + 1;
		l.mapping_id = v.mapping;
		l.address = v.address;
		l.n_line = v.nlines;
		l.line = w->line_ptrs;
		part.n_location = 1;
		part.location = &ptr;
		r = emit(w, &part, e);
		if (r < 0)
			return r;
	}
	return 0;
}

static int emit_functions(struct writer *w, struct err *e)
{
	for (size_t i = 0; i < prof_nfunctions(w->p); i++) {
		struct prof_function_view v = prof_function_at(w->p, i);
		pb_function f = GOPROF__PPROF__FUNCTION__INIT, *ptr = &f;
		pb_profile part = GOPROF__PPROF__PROFILE__INIT;
		int r;

		f.id = i + 1;
		f.name = v.name;
		f.system_name = v.name;
		f.filename = v.file;
		f.start_line = v.start_line;
		part.n_function = 1;
		part.function = &ptr;
		r = emit(w, &part, e);
		if (r < 0)
			return r;
	}
	return 0;
}

static int emit_string(struct writer *w, const char *s, struct err *e)
{
	pb_profile part = GOPROF__PPROF__PROFILE__INIT;
	char *ptr = (char *)s; /* only read */

	part.n_string_table = 1;
	part.string_table = &ptr;
	return emit(w, &part, e);
}

static int emit_comment(struct writer *w, int64_t string, struct err *e)
{
	pb_profile part = GOPROF__PPROF__PROFILE__INIT;

	part.n_comment = 1;
	part.comment = &string;
	return emit(w, &part, e);
}

/* Texts of losses are not among the profile's strings: they follow them in the table. */
static int emit_comments(struct writer *w, struct err *e)
{
	struct prof_header_view h = prof_header(w->p);
	int64_t next = (int64_t)strtab_count(prof_strings(w->p));
	char buf[160];
	int r = 0;

	for (size_t i = 0; r >= 0 && i < h.ncomments; i++)
		r = emit_comment(w, h.comments[i], e);
	for (int k = 0; r >= 0 && k < LOSS_COUNT; k++)
		if (output_loss(w->p, k, buf, sizeof(buf)))
			r = emit_comment(w, next++, e);
	return r;
}

static int emit_strings(struct writer *w, struct err *e)
{
	const struct strtab *t = prof_strings(w->p);
	char buf[160];
	int r = 0;

	for (size_t i = 0; r >= 0 && i < strtab_count(t); i++)
		r = emit_string(w, strtab_get(t, (uint32_t)i), e);
	for (int k = 0; r >= 0 && k < LOSS_COUNT; k++)
		if (output_loss(w->p, k, buf, sizeof(buf)))
			r = emit_string(w, buf, e);
	return r;
}

int pprof_write(struct prof *p, FILE *f, struct err *e)
{
	static int (*const parts[])(struct writer * w, struct err * e) = {
		emit_header,	emit_samples,  emit_mappings, emit_locations,
		emit_functions, emit_comments, emit_strings,
	};
	CLEANUP(writer_fini) struct writer w = { .p = p, .f = f };
	int r = writer_init(&w, e);

	for (size_t i = 0; r >= 0 && i < ARRAY_LEN(parts); i++)
		r = parts[i](&w, e);
	return r < 0 ? r : pump(&w, Z_FINISH, e);
}
