/*
 * user/profile/profile.c - a profile in flat arrays.
 *
 * Functions, locations, stacks, samples and mappings are each stored once: the new one is appended
 * first, then looked up by content, and dropped again when an equal one was there. So the
 * memory is that of the distinct data, and a lookup needs no key of its own.
 */
#include "profile/profile.h"

#include <stdarg.h>

#include "base/hash.h"
#include "base/limits.h"
#include "base/vec.h"
#include "profile/index.h"
#include "profile/utf8.h"

enum { IDS_MAX = INT32_MAX - 1 }; /* ids are returned as int */

struct location {
	uint64_t address;
	size_t first_line;
	uint32_t nlines, mapping;
};

struct stack {
	size_t first_loc;
	uint32_t nlocs;
};

struct sample {
	size_t first_label;
	uint32_t nlabels, stack; /* id */
};

struct mapping {
	struct prof_mapping_view v;	    /* has_functions is worked out when read */
	uint32_t with_lines, without_lines; /* number of locations in it */
};

struct prof {
	struct strtab *strs;
	struct prof_header_view head; /* comments are in the array below */
	struct loss loss;
	struct {
		bool told;
		double error;
	} errors[PROF_TYPES_MAX];
	VEC(uint32_t) comments;
	struct strtab *lines; /* of the text; NULL when there is none */
	VEC(uint32_t) text;
	VEC(struct mapping) mappings;
	VEC(struct prof_function_view) funcs;
	VEC(struct location) locs;
	VEC(uint32_t) line_funcs; /* the lines of all locations */
	VEC(int64_t) line_numbers;
	VEC(struct sample) samples;
	size_t last;		  /* the sample that was added to last */
	VEC(int64_t) values;	  /* width per sample */
	size_t width;		  /* one for each type, and one more where there are values aside */
	VEC(struct stack) stacks; /* samples that differ in labels only share theirs */
	VEC(uint32_t) stack_locs;
	VEC(struct prof_label_view) labels;
	struct index mapping_ix, func_ix, loc_ix, stack_ix, sample_ix;
};

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory for the profile");
}

/* ---- content hashing ---- */

static uint64_t mix(uint64_t h, uint64_t v)
{
	return hash_pair(h, v);
}

static int not_added(const struct index *ix, struct err *e)
{
	return ix->closed ? err_set(e, -E2BIG, "the profile takes no more stacks") : no_memory(e);
}

/* ---- strings ---- */

static int intern_fixed(struct prof *p, const char *s, size_t n, uint32_t *id, struct err *e)
{
	CLEANUP(freep) char *fixed = malloc(3 * n + 1);
	size_t len;

	if (!fixed)
		return no_memory(e);
	len = utf8_fix(s, n, fixed);
	if (len > LIMIT_STRING)
		return err_set(e, -E2BIG, "string of %zu bytes; the limit is %d", len,
			       LIMIT_STRING);
	*id = strtab_put(p->strs, fixed, len);
	return *id == UINT32_MAX ? no_memory(e) : 0;
}

int prof_name(struct prof *p, const char *at, size_t len, uint32_t *id, struct err *e)
{
	if (len > LIMIT_STRING)
		return err_set(e, -E2BIG, "string of over %d bytes", LIMIT_STRING);
	if (!utf8_valid(at, len))
		return intern_fixed(p, at, len, id, e);
	*id = strtab_put(p->strs, at, len);
	return *id == UINT32_MAX ? no_memory(e) : 0;
}

static int intern(struct prof *p, const char *s, uint32_t *id, struct err *e)
{
	size_t n = s ? strnlen(s, LIMIT_STRING + 1) : 0;

	return prof_name(p, n ? s : "", n, id, e);
}

/* ---- life and header ---- */

int prof_new(struct prof **out, struct err *e)
{
	CLEANUP(prof_freep) struct prof *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return no_memory(e);
	r = strtab_new(&p->strs, e);
	if (r < 0)
		return r;
	*out = TAKE(p);
	return 0;
}

void prof_free(struct prof *p)
{
	if (!p)
		return;
	strtab_free(p->strs);
	strtab_free(p->lines);
	vec_fini(&p->comments);
	vec_fini(&p->text);
	vec_fini(&p->mappings);
	vec_fini(&p->funcs);
	vec_fini(&p->locs);
	vec_fini(&p->line_funcs);
	vec_fini(&p->line_numbers);
	vec_fini(&p->samples);
	vec_fini(&p->values);
	vec_fini(&p->stacks);
	vec_fini(&p->stack_locs);
	vec_fini(&p->labels);
	free(p->mapping_ix.at);
	free(p->func_ix.at);
	free(p->loc_ix.at);
	free(p->stack_ix.at);
	free(p->sample_ix.at);
	free(p);
}

static int intern_type(struct prof *p, const char *type, const char *unit, struct prof_type *t,
		       struct err *e)
{
	int r = intern(p, type, &t->type, e);

	return r < 0 ? r : intern(p, unit, &t->unit, e);
}

int prof_add_type(struct prof *p, const char *type, const char *unit, struct err *e)
{
	int r;

	BUG_ON(p->samples.n || p->head.ntypes >= PROF_TYPES_MAX);
	r = intern_type(p, type, unit, &p->head.types[p->head.ntypes], e);
	if (r < 0)
		return r;
	p->width = ++p->head.ntypes;
	return 0;
}

void prof_add_aside(struct prof *p)
{
	BUG_ON(p->samples.n || p->width != p->head.ntypes);
	p->width++;
}

int prof_set_period(struct prof *p, const char *type, const char *unit, int64_t period,
		    struct err *e)
{
	int r = intern_type(p, type, unit, &p->head.period_type, e);

	if (r < 0)
		return r;
	p->head.period = period;
	return 0;
}

void prof_set_time(struct prof *p, int64_t time_ns, int64_t duration_ns)
{
	p->head.time_ns = time_ns;
	p->head.duration_ns = duration_ns;
}

void prof_set_kind(struct prof *p, const char *kind)
{
	p->head.kind = kind;
}

int prof_set_default_type(struct prof *p, const char *type, struct err *e)
{
	return intern(p, type, &p->head.default_type, e);
}

/* A comment is one line that tools print as it is, and names of the target's choice are in it. */
static void make_printable(char *text)
{
	size_t n = strlen(text), len;
	char *out = text;
	bool shown;

	for (size_t i = 0; i < n; i += len) {
		len = utf8_next(text + i, n - i, &shown);
		if (shown)
			memmove(out, text + i, len);
		else
			*out = '?';
		out += shown ? len : 1;
	}
	*out = '\0';
}

int prof_comment(struct prof *p, struct err *e, const char *fmt, ...)
{
	CLEANUP(freep) char *text = NULL;
	uint32_t id, *c;
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (r < 0) {
		text = NULL;
		return no_memory(e);
	}
	make_printable(text);
	r = intern(p, text, &id, e);
	if (r < 0)
		return r;
	c = vec_add(&p->comments, SIZE_MAX);
	if (!c)
		return no_memory(e);
	*c = id;
	return 0;
}

int prof_text_line(struct prof *p, const char *line, uint32_t *id, struct err *e)
{
	size_t n = strnlen(line, LIMIT_STRING + 1);
	int r = p->lines ? 0 : strtab_new(&p->lines, e);

	if (r < 0)
		return r;
	if (n > LIMIT_STRING)
		return err_set(e, -E2BIG, "a line of over %d bytes", LIMIT_STRING);
	*id = strtab_put(p->lines, line, n);
	return *id == UINT32_MAX ? no_memory(e) : 0;
}

int prof_text_add(struct prof *p, uint32_t line_id, struct err *e)
{
	uint32_t *at;

	BUG_ON(!p->lines || line_id >= strtab_count(p->lines));
	at = vec_add(&p->text, SIZE_MAX);
	if (!at)
		return no_memory(e);
	*at = line_id;
	return 0;
}

void prof_set_error(struct prof *p, const char *type, double error)
{
	for (size_t i = 0; i < p->head.ntypes; i++)
		if (!strcmp(strtab_get(p->strs, p->head.types[i].type), type)) {
			p->errors[i].told = true;
			p->errors[i].error = error;
		}
}

bool prof_error(const struct prof *p, size_t type, double *error)
{
	*error = type < PROF_TYPES_MAX ? p->errors[type].error : 0;
	return type < PROF_TYPES_MAX && p->errors[type].told;
}

struct loss *prof_loss(struct prof *p)
{
	return &p->loss;
}

/* ---- mappings and functions ---- */

static bool same_mapping(const struct prof *p, size_t a, size_t b)
{
	const struct prof_mapping_view *x = &p->mappings.at[a].v, *y = &p->mappings.at[b].v;

	return x->start == y->start && x->limit == y->limit && x->offset == y->offset &&
	       x->filename == y->filename && x->build_id == y->build_id;
}

int prof_mapping(struct prof *p, const struct prof_mapping *m, struct err *e)
{
	struct prof_mapping_view v = { .start = m->start, .limit = m->limit, .offset = m->offset };
	struct mapping *fresh;
	uint32_t id;
	int r;

	r = intern(p, m->filename, &v.filename, e);
	if (r >= 0)
		r = intern(p, m->build_id, &v.build_id, e);
	if (r < 0)
		return r;
	fresh = vec_add(&p->mappings, IDS_MAX);
	if (!fresh)
		return no_memory(e);
	fresh->v = v;
	id = index_put(&p->mapping_ix, p, mix(mix(mix(v.start, v.limit), v.offset), v.filename),
		       p->mappings.n - 1, same_mapping);
	if (id != p->mappings.n)
		p->mappings.n--;
	return id ? (int)id : no_memory(e);
}

static bool same_func(const struct prof *p, size_t a, size_t b)
{
	const struct prof_function_view *x = &p->funcs.at[a], *y = &p->funcs.at[b];

	return x->name == y->name && x->file == y->file && x->start_line == y->start_line;
}

static int put_func(struct prof *p, struct prof_function_view v, uint32_t *id, struct err *e)
{
	struct prof_function_view *fresh = vec_add(&p->funcs, IDS_MAX);

	if (!fresh)
		return no_memory(e);
	*fresh = v;
	*id = index_put(&p->func_ix, p, mix(mix(v.name, v.file), (uint64_t)v.start_line),
			p->funcs.n - 1, same_func);
	if (*id != p->funcs.n)
		p->funcs.n--;
	return *id ? 0 : no_memory(e);
}

static int intern_func(struct prof *p, const struct prof_line *l, uint32_t *id, struct err *e)
{
	struct prof_function_view v = { .start_line = l->start_line };
	int r;

	r = intern(p, l->func, &v.name, e);
	if (r >= 0)
		r = intern(p, l->file, &v.file, e);
	return r < 0 ? r : put_func(p, v, id, e);
}

/* ---- locations ---- */

static bool same_location(const struct prof *p, size_t a, size_t b)
{
	const struct location *x = &p->locs.at[a], *y = &p->locs.at[b];

	if (x->address != y->address || x->mapping != y->mapping || x->nlines != y->nlines)
		return false;
	for (size_t i = 0; i < x->nlines; i++) {
		size_t xi = x->first_line + i, yi = y->first_line + i;

		if (p->line_funcs.at[xi] != p->line_funcs.at[yi] ||
		    p->line_numbers.at[xi] != p->line_numbers.at[yi])
			return false;
	}
	return true;
}

static uint64_t hash_location(const struct prof *p, const struct location *l)
{
	uint64_t h = mix(mix(l->address, l->mapping), l->nlines);

	for (size_t i = l->first_line; i < l->first_line + l->nlines; i++)
		h = mix(mix(h, p->line_funcs.at[i]), (uint64_t)p->line_numbers.at[i]);
	return h;
}

static int append_line(struct prof *p, uint32_t func, int64_t number, struct err *e)
{
	uint32_t *to = vec_add(&p->line_funcs, SIZE_MAX);
	int64_t *line = vec_add(&p->line_numbers, SIZE_MAX);

	if (!to || !line)
		return no_memory(e);
	*to = func;
	*line = number;
	return 0;
}

static int append_lines(struct prof *p, const struct prof_line *lines, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t id;
		int r = intern_func(p, &lines[i], &id, e);

		if (r >= 0)
			r = append_line(p, id, lines[i].line, e);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Called when the location's lines are in place; yields its id. */
static int append_location(struct prof *p, struct location l, struct err *e)
{
	struct location *fresh = vec_add(&p->locs, IDS_MAX);
	uint32_t id;

	if (!fresh)
		return no_memory(e);
	*fresh = l;
	id = index_put(&p->loc_ix, p, hash_location(p, &l), p->locs.n - 1, same_location);
	if (id != p->locs.n) {
		p->locs.n--;
		return id ? (int)id : no_memory(e);
	}
	if (l.mapping && l.nlines)
		p->mappings.at[l.mapping - 1].with_lines++;
	else if (l.mapping)
		p->mappings.at[l.mapping - 1].without_lines++;
	return (int)id;
}

int prof_location(struct prof *p, int mapping, uint64_t address, const struct prof_line *lines,
		  size_t n, struct err *e)
{
	struct location l = { .address = address,
			      .first_line = p->line_funcs.n,
			      .nlines = (uint32_t)n,
			      .mapping = (uint32_t)mapping };
	size_t known = p->locs.n;
	int r;

	BUG_ON(mapping < 0 || (size_t)mapping > p->mappings.n || n > UINT32_MAX);
	r = append_lines(p, lines, n, e);
	if (r >= 0)
		r = append_location(p, l, e);
	if (p->locs.n == known)
		p->line_funcs.n = p->line_numbers.n = l.first_line;
	return r;
}

int prof_location_named(struct prof *p, uint64_t address, uint32_t func, uint32_t file,
			int64_t line, struct err *e)
{
	struct location l = { .address = address, .first_line = p->line_funcs.n, .nlines = 1 };
	struct prof_function_view v = { .name = func, .file = file };
	size_t known = p->locs.n;
	uint32_t id;
	int r = put_func(p, v, &id, e);

	if (r >= 0)
		r = append_line(p, id, line, e);
	if (r >= 0)
		r = append_location(p, l, e);
	if (p->locs.n == known)
		p->line_funcs.n = p->line_numbers.n = l.first_line;
	return r;
}

/* ---- stacks ---- */

static bool same_stack(const struct prof *p, size_t a, size_t b)
{
	const struct stack *x = &p->stacks.at[a], *y = &p->stacks.at[b];

	return x->nlocs == y->nlocs &&
	       (!x->nlocs || !memcmp(&p->stack_locs.at[x->first_loc],
				     &p->stack_locs.at[y->first_loc], x->nlocs * sizeof(uint32_t)));
}

static int append_locs(struct prof *p, const uint32_t *locs, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t *id = vec_add(&p->stack_locs, SIZE_MAX);

		if (!id)
			return no_memory(e);
		BUG_ON(!locs[i] || locs[i] > p->locs.n);
		*id = locs[i];
	}
	return 0;
}

static int intern_stack(struct prof *p, const uint32_t *locs, size_t n, uint32_t *id, struct err *e)
{
	struct stack s = { .first_loc = p->stack_locs.n, .nlocs = (uint32_t)n }, *fresh;
	uint64_t hash = hash_bytes(locs, n * sizeof(*locs));
	int r = append_locs(p, locs, n, e);

	*id = 0;
	fresh = r < 0 ? NULL : vec_add(&p->stacks, IDS_MAX);
	if (fresh) {
		*fresh = s;
		*id = index_put(&p->stack_ix, p, hash, p->stacks.n - 1, same_stack);
		if (*id == p->stacks.n)
			return 0;
		p->stacks.n--;
	}
	p->stack_locs.n = s.first_loc;
	return *id ? 0 : not_added(&p->stack_ix, e);
}

/* ---- samples ---- */

static int compare_labels(const void *pa, const void *pb)
{
	const struct prof_label_view *a = pa, *b = pb;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	if (a->str != b->str)
		return a->str < b->str ? -1 : 1;
	if (a->num != b->num)
		return a->num < b->num ? -1 : 1;
	return (a->num_unit > b->num_unit) - (a->num_unit < b->num_unit);
}

static bool same_sample(const struct prof *p, size_t a, size_t b)
{
	const struct sample *x = &p->samples.at[a], *y = &p->samples.at[b];

	if (x->stack != y->stack || x->nlabels != y->nlabels)
		return false;
	for (size_t i = 0; i < x->nlabels; i++)
		if (compare_labels(&p->labels.at[x->first_label + i],
				   &p->labels.at[y->first_label + i]))
			return false;
	return true;
}

static uint64_t hash_sample(const struct prof *p, const struct sample *s)
{
	uint64_t h = mix(s->stack, s->nlabels);

	for (size_t i = s->first_label; i < s->first_label + s->nlabels; i++) {
		const struct prof_label_view *l = &p->labels.at[i];

		h = mix(mix(mix(h, l->key), l->str), (uint64_t)l->num);
	}
	return h;
}

static int append_label(struct prof *p, const struct prof_label *l, struct err *e)
{
	struct prof_label_view v = { .str = UINT32_MAX }, *fresh;
	int r = intern(p, l->key, &v.key, e);

	if (r >= 0 && l->str)
		r = intern(p, l->str, &v.str, e);
	if (r >= 0 && !l->str)
		r = intern(p, l->num_unit, &v.num_unit, e);
	if (r < 0)
		return r;
	if (!l->str)
		v.num = l->num;
	fresh = vec_add(&p->labels, SIZE_MAX);
	if (!fresh)
		return no_memory(e);
	*fresh = v;
	return 0;
}

/*
 * Called when stack and labels are in place; yields the 0-based index of the sample, whether
 * known or new.
 */
static int append_sample(struct prof *p, struct sample s, size_t *at, struct err *e)
{
	struct sample *fresh = vec_add(&p->samples, IDS_MAX);
	size_t known = p->values.n;
	uint32_t id = 0;
	size_t i;

	if (!fresh)
		return no_memory(e);
	*fresh = s;
	for (i = 0; i < p->width && vec_add(&p->values, SIZE_MAX); i++)
		;
	if (i == p->width)
		id = index_put(&p->sample_ix, p, hash_sample(p, &s), p->samples.n - 1, same_sample);
	if (id != p->samples.n) {
		p->samples.n--;
		p->values.n = known;
	}
	if (!id)
		return not_added(&p->sample_ix, e);
	*at = id - 1;
	return 0;
}

static void add_values(struct prof *p, size_t at, const int64_t *values)
{
	int64_t *have = p->width ? &p->values.at[at * p->width] : NULL;

	for (size_t i = 0; i < p->width; i++)
		if (__builtin_add_overflow(have[i], values[i], &have[i]))
			have[i] = values[i] < 0 ? INT64_MIN : INT64_MAX;
}

int prof_sample(struct prof *p, const uint32_t *locs, size_t nlocs, const int64_t *values,
		const struct prof_label *labels, size_t nlabels, struct err *e)
{
	struct sample s = { .first_label = p->labels.n, .nlabels = (uint32_t)nlabels };
	size_t known = p->samples.n, at = 0;
	int r;

	BUG_ON(nlocs > UINT32_MAX || nlabels > UINT32_MAX);
	r = intern_stack(p, locs, nlocs, &s.stack, e);
	for (size_t i = 0; r >= 0 && i < nlabels; i++)
		r = append_label(p, &labels[i], e);
	if (r >= 0 && nlabels > 1)
		qsort(&p->labels.at[s.first_label], nlabels, sizeof(*p->labels.at), compare_labels);
	if (r >= 0)
		r = append_sample(p, s, &at, e);
	if (p->samples.n == known)
		p->labels.n = s.first_label;
	if (r < 0)
		return r;
	add_values(p, at, values);
	p->last = at;
	return 0;
}

void prof_close(struct prof *p, bool closed)
{
	p->stack_ix.closed = p->sample_ix.closed = closed;
}

void prof_each_sample(struct prof *p, void (*change)(void *arg, int64_t *values), void *arg)
{
	for (size_t i = 0; p->width && i < p->samples.n; i++)
		change(arg, &p->values.at[i * p->width]);
}

/* ---- reading ---- */

struct prof_header_view prof_header(const struct prof *p)
{
	struct prof_header_view v = p->head;

	v.comments = p->comments.at;
	v.ncomments = p->comments.n;
	return v;
}

const struct strtab *prof_strings(const struct prof *p)
{
	return p->strs;
}

size_t prof_last(const struct prof *p)
{
	return p->last;
}

size_t prof_nsamples(const struct prof *p)
{
	return p->samples.n;
}

size_t prof_ntext(const struct prof *p)
{
	return p->text.n;
}

const char *prof_text_at(const struct prof *p, size_t i)
{
	BUG_ON(i >= p->text.n);
	return strtab_get(p->lines, p->text.at[i]);
}

size_t prof_nlocations(const struct prof *p)
{
	return p->locs.n;
}

size_t prof_nfunctions(const struct prof *p)
{
	return p->funcs.n;
}

size_t prof_nmappings(const struct prof *p)
{
	return p->mappings.n;
}

struct prof_sample_view prof_sample_at(const struct prof *p, size_t i)
{
	const struct sample *s;
	const struct stack *st;

	BUG_ON(i >= p->samples.n);
	s = &p->samples.at[i];
	st = &p->stacks.at[s->stack - 1];
	return (struct prof_sample_view){
		.locs = st->nlocs ? &p->stack_locs.at[st->first_loc] : NULL,
		.nlocs = st->nlocs,
		.values = p->width ? &p->values.at[i * p->width] : NULL,
		.aside = p->width > p->head.ntypes ? &p->values.at[i * p->width + p->head.ntypes] :
						     NULL,
		.labels = s->nlabels ? &p->labels.at[s->first_label] : NULL,
		.nlabels = s->nlabels,
	};
}

struct prof_location_view prof_location_at(const struct prof *p, size_t i)
{
	const struct location *l;

	BUG_ON(i >= p->locs.n);
	l = &p->locs.at[i];
	return (struct prof_location_view){
		.mapping = l->mapping,
		.address = l->address,
		.func = l->nlines ? &p->line_funcs.at[l->first_line] : NULL,
		.line = l->nlines ? &p->line_numbers.at[l->first_line] : NULL,
		.nlines = l->nlines,
	};
}

struct prof_function_view prof_function_at(const struct prof *p, size_t i)
{
	BUG_ON(i >= p->funcs.n);
	return p->funcs.at[i];
}

struct prof_mapping_view prof_mapping_at(const struct prof *p, size_t i)
{
	struct prof_mapping_view v;

	BUG_ON(i >= p->mappings.n);
	v = p->mappings.at[i].v;
	v.has_functions = p->mappings.at[i].with_lines && !p->mappings.at[i].without_lines;
	return v;
}
