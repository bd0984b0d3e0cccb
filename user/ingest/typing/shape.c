/* user/ingest/typing/shape.c - types, flattened once each. */
#include "ingest/typing/shape.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/vec.h"
#include "heapgraph/classes.h"

enum {
	LEAVES_MAX = 1 << 16,
	STEPS_MAX = 1 << 20,
	DEPTH = SHAPE_DEPTH,
	UNROLLED_MAX = 64, /* leaves of an array that are told one by one */
};

/* ---- going over one ---- */

void shape_walk(struct shape_walk *w, const struct shape *s)
{
	w->depth = 0;
	w->at[0].of = s;
	w->at[0].base = 0;
	w->at[0].left = 1;
	w->at[0].i = 0;
}

const struct leaf *shape_next(struct shape_walk *w, uint64_t *base)
{
	for (;;) {
		const struct shape *s = w->at[w->depth].of;
		const struct leaf *l;

		if (w->at[w->depth].i < s->n) {
			l = &s->leaves[w->at[w->depth].i++];
			*base = w->at[w->depth].base;
			if (l->kind != LEAF_REPEAT)
				return l;
			w->depth++;
			w->at[w->depth].of = l->of;
			w->at[w->depth].base = *base + l->offset;
			w->at[w->depth].left = l->count;
			w->at[w->depth].i = 0;
		} else if (--w->at[w->depth].left) {
			w->at[w->depth].base += s->size;
			w->at[w->depth].i = 0;
		} else if (w->depth) {
			w->depth--;
		} else {
			w->at[0].left = 1;
			return NULL;
		}
	}
}

/* ---- flattening ---- */

/* A struct that is being looked through. */
struct level {
	uint32_t type;
	uint64_t base, next; /* next: field */
};

struct flat {
	struct shapes *all;
	const struct gotypes *t;
	struct shape *to;
	VEC(struct leaf) leaves;
	struct level at[DEPTH];
	size_t depth;
	bool full;
};

static const struct gotype *type_at(const struct gotypes *t, uint32_t id)
{
	return id < t->ntypes ? &t->types[id] : NULL;
}

static const struct gofield *field_named(const struct gotypes *t, const struct gotype *s,
					 const char *name)
{
	for (uint32_t i = 0; i < s->nfields; i++)
		if (!strcmp(gotypes_text(t, t->fields[s->first + i].name), name))
			return &t->fields[s->first + i];
	return NULL;
}

/*
 * The runtime's own pointers may lead to memory that the collector does not look at; and a bucket's
 * pointer to the next one is none to it where keys and elements have none.
 */
static bool is_optional(const struct gotypes *t, const struct gotype *g)
{
	const struct gotype *to = type_at(t, g->elem);
	const char *name = to ? gotypes_text(t, to->name) : "";

	if (g->kind != GOTYPE_POINTER)
		return false;
	return !strncmp(name, "runtime.", 8) || !strncmp(name, "internal/", 9) ||
	       (to && to->role == GOTYPE_MAP_BUCKET);
}

static struct leaf *new_leaf(struct flat *f)
{
	struct leaf *l = vec_add(&f->leaves, LEAVES_MAX);

	f->to->cut |= !l;
	f->full |= !l;
	return l;
}

static struct leaf *add_leaf(struct flat *f, uint32_t type, uint64_t offset)
{
	struct leaf *l = new_leaf(f);
	uint8_t kind;
	bool iface;

	if (!l)
		return NULL;
	kind = f->t->types[type].kind;
	iface = kind == GOTYPE_EFACE || kind == GOTYPE_IFACE;
	*l = (struct leaf){ .offset = offset,
			    .pointer = offset + (iface ? f->t->word : 0),
			    .type = type,
			    .kind = kind,
			    .optional = is_optional(f->t, &f->t->types[type]) };
	return l;
}

/* Those of one element, as often as there are elements. */
static void unroll(struct flat *f, const struct shape *of, uint64_t offset, uint64_t count)
{
	for (uint64_t k = 0; k < count; k++, offset += of->size)
		for (uint32_t i = 0; i < of->n; i++) {
			struct leaf *l = new_leaf(f);

			if (!l)
				return;
			*l = of->leaves[i];
			l->offset += offset;
			l->pointer += offset;
		}
}

static void add_array(struct flat *f, const struct gotype *g, uint64_t offset)
{
	const struct gotype *elem = type_at(f->t, g->elem);
	const struct shape *of;
	uint64_t count = elem && elem->size ? g->size / elem->size : 0;
	struct leaf *l;

	of = count ? shapes_get(f->all, g->elem) : NULL;
	f->to->cut |= count && (!of || of->cut || of->depth >= DEPTH);
	if (!of || !of->n || of->depth >= DEPTH)
		return;
	if (count <= UNROLLED_MAX / of->n) {
		unroll(f, of, offset, count);
		return;
	}
	l = new_leaf(f);
	if (l)
		*l = (struct leaf){ .offset = offset,
				    .pointer = offset,
				    .type = g->elem,
				    .kind = LEAF_REPEAT,
				    .of = of,
				    .count = count };
}

static void push(struct flat *f, uint32_t type, uint64_t offset)
{
	const struct gotype *g = type_at(f->t, type);

	if (!g || g->kind == GOTYPE_PLAIN || !g->size)
		return;
	if (g->kind == GOTYPE_ARRAY) {
		add_array(f, g, offset);
		return;
	}
	if (g->kind != GOTYPE_STRUCT) {
		add_leaf(f, type, offset);
		return;
	}
	if (f->depth == DEPTH) {
		f->to->cut = true;
		return;
	}
	f->at[f->depth++] = (struct level){ .type = type, .base = offset };
}

/*
 * The pointer that an atomic.Pointer[T] is: *T, as its field of no size says. GOTYPE_NONE: it is none.
 * Source: sync/atomic/type.go, Go 1.20 to 1.27.
 */
static uint32_t atomic_pointer(const struct gotypes *t, const struct gotype *s,
			       const struct gofield *field)
{
	const char *name = gotypes_text(t, s->name);

	if ((strncmp(name, "sync/atomic.Pointer[", 20) &&
	     strncmp(name, "internal/runtime/atomic.Pointer[", 32)) ||
	    strcmp(gotypes_text(t, field->name), "v"))
		return GOTYPE_NONE;
	for (uint32_t i = 0; i < s->nfields; i++) {
		const struct gotype *is = type_at(t, t->fields[s->first + i].type);
		const struct gotype *to = is && is->kind == GOTYPE_ARRAY ? type_at(t, is->elem) :
									   NULL;

		if (to && !is->count && to->kind == GOTYPE_POINTER)
			return is->elem;
	}
	return GOTYPE_NONE;
}

/*
 * A sync.Pool has an array with what each P keeps, of which its fields do not tell the type, and so have
 * the interfaces in it: two pointers. False: it is a field as others.
 * Source: sync/pool.go and sync/poolqueue.go, Go 1.6 to 1.27.
 */
static bool pool(struct flat *f, const struct gotype *s, const struct gofield *field,
		 uint64_t offset)
{
	const char *of = gotypes_text(f->t, s->name), *name = gotypes_text(f->t, field->name);
	const struct gofield *length = NULL;
	struct leaf *l;

	if (!strcmp(of, "sync.eface") && s->nfields == 2 && s->size == 2 * f->t->word) {
		l = field->offset ? NULL : add_leaf(f, field->type, offset);
		if (l) {
			l->kind = GOTYPE_EFACE;
			l->pointer = offset + f->t->word;
		}
		return true;
	}
	if (!strcmp(of, "sync.Pool") && !strcmp(name, "local"))
		length = field_named(f->t, s, "localSize");
	else if (!strcmp(of, "sync.Pool") && !strcmp(name, "victim"))
		length = field_named(f->t, s, "victimSize");
	if (!length || f->all->pool_local == GOTYPE_NONE)
		return false;
	l = add_leaf(f, f->all->pool_local, offset);
	if (l) {
		l->kind = LEAF_VALUES;
		l->pointer = offset;
		l->optional = false;
		l->length = (int64_t)(length->offset - field->offset);
	}
	return true;
}

/* Words of the runtime's own structs. False: it is a field as others. */
static bool special(struct flat *f, const struct gotype *s, const struct gofield *field,
		    uint64_t offset)
{
	const char *name = gotypes_text(f->t, field->name);
	const struct gofield *length = NULL;
	const struct gotype *is = type_at(f->t, field->type), *to;
	uint8_t kind = LEAF_CHAN_BUF;
	uint32_t type = GOTYPE_NONE;
	struct leaf *l;

	if (!is)
		return false;
	if (is->kind == GOTYPE_UNSAFE)
		type = atomic_pointer(f->t, s, field);
	if (type != GOTYPE_NONE)
		return add_leaf(f, type, offset) || f->full;
	if (is->kind == GOTYPE_UNSAFE && pool(f, s, field, offset))
		return true;
	if (s->role == GOTYPE_CHAN_HEAD && !strcmp(name, "buf")) {
		length = field_named(f->t, s, "dataqsiz");
		type = f->t->types[s->of].of;
	} else if (s->role == GOTYPE_MAP_HEAD && !strcmp(name, "dirPtr")) {
		length = field_named(f->t, s, "dirLen");
		to = type_at(f->t, is->elem);
		type = to && to->kind == GOTYPE_POINTER ? is->elem : GOTYPE_NONE;
		kind = LEAF_MAP_DIR;
	}
	if (!length || type >= f->t->ntypes)
		return false;
	l = add_leaf(f, type, offset);
	if (l) {
		l->kind = kind;
		l->pointer = offset;
		l->optional = false;
		l->length = (int64_t)(length->offset - field->offset);
	}
	return true;
}

static void step_struct(struct flat *f, struct level *at, const struct gotype *g)
{
	const struct gofield *field;

	if (at->next == g->nfields) {
		f->depth--;
		return;
	}
	field = &f->t->fields[g->first + at->next++];
	if (field->offset >= g->size || special(f, g, field, at->base + field->offset))
		return;
	push(f, field->type, at->base + field->offset);
}

static int by_offset(const void *a, const void *b)
{
	const struct leaf *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

static void flatten(struct flat *f, uint32_t type)
{
	int steps = 0;

	push(f, type, 0);
	while (f->depth && !f->full) {
		struct level *at = &f->at[f->depth - 1];
		const struct gotype *g = &f->t->types[at->type];

		if (steps++ == STEPS_MAX) {
			f->to->cut = true;
			break;
		}
		step_struct(f, at, g);
	}
	if (f->leaves.n)
		qsort(f->leaves.at, f->leaves.n, sizeof(*f->leaves.at), by_offset);
}

/* False: it claims more leaves than it has bytes. */
static bool sum_up(const struct flat *f)
{
	struct shape *to = f->to;
	bool ok = true;

	for (size_t i = 0; ok && i < f->leaves.n; i++) {
		const struct leaf *l = &f->leaves.at[i];
		bool repeat = l->kind == LEAF_REPEAT;
		uint64_t n = 1;

		/* No sum is larger than the number of leaves. */
		ok = (!repeat || !__builtin_mul_overflow(l->of->leaves_all, l->count, &n)) &&
		     !__builtin_add_overflow(to->leaves_all, n, &to->leaves_all) &&
		     to->leaves_all <= to->size;
		to->required += repeat ? l->of->required * l->count : !l->optional;
		if (repeat && l->of->depth >= to->depth)
			to->depth = l->of->depth + 1;
	}
	return ok;
}

static void make(struct flat *f, uint32_t type)
{
	struct shape *to = f->to;

	to->size = f->t->types[type].size;
	flatten(f, type);
	if (sum_up(f)) {
		to->n = (uint32_t)f->leaves.n;
		to->leaves = f->leaves.at;
	} else {
		vec_fini(&f->leaves);
		to->cut = true;
	}
	to->made = true;
	f->all->cut += to->cut;
}

const struct shape *shapes_get(struct shapes *s, uint32_t type)
{
	CLEANUP(freep) struct flat *f = NULL;

	if (s->of[type])
		return s->of[type]->made ? s->of[type] : NULL;
	f = s->nested < DEPTH ? calloc(1, sizeof(*f)) : NULL;
	s->of[type] = f ? calloc(1, sizeof(*s->of[type])) : NULL;
	if (!s->of[type])
		return NULL;
	f->all = s;
	f->t = s->t;
	f->to = s->of[type];
	s->nested++;
	make(f, type);
	s->nested--;
	return s->of[type];
}

int shapes_init(struct shapes *s, const struct gotypes *t, struct err *e)
{
	*s = (struct shapes){ .t = t,
			      .of = calloc(t->ntypes + 1, sizeof(struct shape *)),
			      .pool_local = GOTYPE_NONE };
	for (size_t i = 0; i < t->ntypes && s->pool_local == GOTYPE_NONE; i++)
		if (!strcmp(gotypes_text(t, t->types[i].name), "sync.poolLocal"))
			s->pool_local = (uint32_t)i;
	return s->of ? 0 : err_set(e, -ENOMEM, "no memory for %zu types", t->ntypes);
}

void shapes_fini(struct shapes *s)
{
	for (size_t i = 0; s->of && i < s->t->ntypes; i++) {
		if (s->of[i])
			free(s->of[i]->leaves);
		free(s->of[i]);
	}
	free(s->of);
	*s = (struct shapes){};
}

/* ---- fitting ---- */

/*
 * The leaf that has its pointer at an offset; *@first: or the first word of an interface, of which some
 * Gos told the collector that it is a pointer. NULL: none.
 */
static const struct leaf *leaf_at(const struct shape *s, uint64_t offset, bool *first)
{
	for (;;) {
		size_t low = 0, high = s->n;
		const struct leaf *l;

		while (low < high) {
			size_t mid = low + (high - low) / 2;

			if (s->leaves[mid].offset <= offset)
				low = mid + 1;
			else
				high = mid;
		}
		if (!low)
			return NULL;
		l = &s->leaves[low - 1];
		*first = l->pointer != offset;
		if (l->kind != LEAF_REPEAT)
			return l->pointer == offset || l->offset == offset ? l : NULL;
		offset -= l->offset;
		if (offset / l->of->size >= l->count)
			return NULL;
		offset %= l->of->size;
		s = l->of;
	}
}

bool shapes_fit(struct shapes *s, uint32_t type, uint64_t base, uint64_t count,
		const struct heap_field *at, size_t n)
{
	const struct shape *shape = shapes_get(s, type);
	uint64_t size = s->t->types[type].size, value = 0, found = 0;

	if (!shape || !size)
		return false;
	if (shape->cut)
		return true;
	for (size_t i = 0; i < n; i++) {
		uint64_t k = (at[i].offset - base) / size;
		const struct leaf *l;
		bool first;

		if (at[i].offset < base || k >= count)
			return false;
		/* Each value before it was whole, and none was left out. */
		if (k != value && (found != shape->required || k != value + 1))
			return false;
		if (k != value)
			found = 0;
		value = k;
		l = leaf_at(shape, (at[i].offset - base) % size, &first);
		if (!l)
			return false;
		found += !l->optional && !first;
	}
	/* Of an object with more pointers the first ones are known. */
	return found == shape->required || n >= LAYOUT_POINTERS_MAX ||
	       (count == SHAPES_REPEAT && value);
}

bool shapes_within(struct shapes *s, uint32_t type, const struct heap_field *at, size_t n)
{
	const struct shape *shape = shapes_get(s, type);
	const struct leaf *l;
	struct shape_walk w;
	uint64_t from;
	size_t i = 0;

	if (!shape)
		return false;
	shape_walk(&w, shape);
	while ((l = shape_next(&w, &from))) {
		while (i < n && at[i].offset < from + l->pointer)
			i++;
		if (!l->optional && (i == n || at[i].offset != from + l->pointer))
			return false;
	}
	return true;
}

/* ---- paths ---- */

/* The field that an offset lies in. */
static const struct gofield *field_at(const struct gotypes *t, const struct gotype *g,
				      uint64_t offset)
{
	const struct gofield *best = NULL;

	for (uint32_t i = 0; i < g->nfields; i++) {
		const struct gofield *f = &t->fields[g->first + i];
		const struct gotype *is = type_at(t, f->type);

		if (is && f->offset <= offset && offset - f->offset < is->size)
			best = f;
	}
	return best;
}

void shapes_path(const struct shapes *s, uint32_t type, uint64_t offset, char *to, size_t cap)
{
	size_t len = 0;

	to[0] = '\0';
	for (int i = 0; i < DEPTH && len < cap; i++) {
		const struct gotype *g = type_at(s->t, type), *elem;
		const struct gofield *f;

		if (!g)
			return;
		if (g->kind == GOTYPE_STRUCT) {
			f = field_at(s->t, g, offset);
			if (!f)
				return;
			len += (size_t)snprintf(to + len, cap - len, ".%s",
						gotypes_text(s->t, f->name));
			offset -= f->offset;
			type = f->type;
			continue;
		}
		elem = g->kind == GOTYPE_ARRAY ? type_at(s->t, g->elem) : NULL;
		if (!elem || !elem->size)
			return;
		len += (size_t)snprintf(to + len, cap - len, "[%llu]",
					(unsigned long long)(offset / elem->size));
		offset %= elem->size;
		type = g->elem;
	}
}
