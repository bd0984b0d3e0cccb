/* user/ingest/typing_flow.c - who gets which type, and what is looked through next. */
#include "ingest/typing_flow.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/limits.h"

enum {
	WORD = 8,
	STACK_MAX = 1 << 16,
	PARTS_MAX = 1 << 16,
	SEEN_MAX = 1 << 20,
	FITS_MAX = 1 << 20,  /* answers that are kept */
	NAMED_FIELDS = 1024, /* of a class: those that come later have no name */
	/* Source: runtime/malloc.go, maxTinySize and maxSmallSize; heapBitsInSpan from Go 1.22 on. */
	TINY = 16,
	SMALL_MAX = 32768,
	PAGE = 8192,
	HEADER_OVER = 512,
	HEADER = 8,
};

enum form {
	FORM_NONE,
	FORM_ONE,
	FORM_MANY,    /* side by side, however many */
	FORM_BUFFER,  /* the same, of a channel */
	FORM_TABLES,  /* the same, pointers to a map's tables */
	FORM_BYTES,   /* of a string */
	FORM_TINY,    /* small values without pointers, which share a block */
	FORM_CLOSURE, /* whose variables are not known */
};

#define RANK_EXACT (3ull << 60)
#define RANK_FIT   (1ull << 60)

struct candidate {
	uint32_t type;
	enum form form;
	enum heap_certainty certainty;
	uint64_t rank;
};

/* ---- slots ---- */

/* Bytes at the beginning of an object that are not the program's. */
static uint64_t header_of(const struct flow *x, const struct object *o)
{
	return x->headers && o->node && o->size > HEADER_OVER && o->size <= SMALL_MAX ? HEADER : 0;
}

/* The largest that the allocator would have put into a smaller slot, by the slots that there are. */
static uint64_t next_smaller(const struct flow *x, uint64_t size)
{
	if (size > SMALL_MAX)
		return size - PAGE;
	for (uint64_t i = size / WORD; i > 0; i--)
		if (x->small[i - 1])
			return (i - 1) * WORD;
	return 0;
}

static bool takes_up(const struct flow *x, const struct object *o, uint64_t bytes)
{
	uint64_t all = bytes + header_of(x, o);

	return bytes && all <= o->size && all > next_smaller(x, o->size);
}

/* The tiny allocator puts them together. */
static bool is_tiny(const struct object *o, uint64_t bytes)
{
	return !o->node && o->size == TINY && bytes < TINY;
}

/* ---- classes ---- */

static const struct gotype *type_of(const struct flow *x, uint32_t id)
{
	return id < x->t->ntypes ? &x->t->types[id] : NULL;
}

static const char *name_of(const struct flow *x, const struct gotype *g)
{
	const char *name = gotypes_text(x->t, g->name);

	return strncmp(name, "noalg.", 6) ? name : name + 6;
}

static void name_one(const struct flow *x, const struct gotype *g, char *to, size_t cap)
{
	static const char *const before[GOTYPE_ROLES] = {
		[GOTYPE_MAP_BUCKET] = "map bucket of ",
		[GOTYPE_MAP_TABLE] = "map table of ",
		[GOTYPE_MAP_GROUP] = "map group of ",
	};
	static const char *const after[GOTYPE_KINDS] = {
		[GOTYPE_STRING] = " header", [GOTYPE_SLICE] = " header",
		[GOTYPE_MAP] = " variable",  [GOTYPE_CHAN] = " variable",
		[GOTYPE_FUNC] = " variable",
	};
	const struct gotype *is = g->role && g->role != GOTYPE_CLOSURE ? type_of(x, g->of) : g;

	snprintf(to, cap, "%s%s%s", before[g->role] ? before[g->role] : "", name_of(x, is),
		 after[g->kind] ? after[g->kind] : "");
}

static uint32_t name_class(const struct flow *x, const struct candidate *c)
{
	const struct gotype *g = c->form == FORM_CLOSURE ? NULL : type_of(x, c->type);
	char text[LIMIT_NAME + 64];

	if (c->form == FORM_CLOSURE)
		snprintf(text, sizeof(text), "closure %s", strtab_get(x->c->names, c->type));
	else if (c->form == FORM_BYTES)
		snprintf(text, sizeof(text), "string");
	else if (c->form == FORM_TINY)
		snprintf(text, sizeof(text), "tiny block");
	else if (c->form == FORM_MANY && g->role != GOTYPE_MAP_BUCKET &&
		 g->role != GOTYPE_MAP_GROUP)
		snprintf(text, sizeof(text), "[]%s", name_of(x, g));
	else if (c->form == FORM_BUFFER)
		snprintf(text, sizeof(text), "chan %s buffer", name_of(x, g));
	else if (c->form == FORM_TABLES)
		snprintf(text, sizeof(text), "map directory of %s",
			 name_of(x, type_of(x, type_of(x, g->elem)->of)));
	else
		name_one(x, g, text, sizeof(text));
	return strtab_puts(x->c->names, text);
}

static bool has_values(enum form form)
{
	return form >= FORM_ONE && form <= FORM_TABLES;
}

/* "a.b[3].next", "[7].next"; 0: it is the value itself. */
static uint32_t name_field(const struct flow *x, const struct candidate *c, uint64_t offset)
{
	const struct gotype *g = type_of(x, c->type);
	char path[1024], text[1100];

	if (!has_values(c->form) || !g->size || (c->form == FORM_ONE && offset >= g->size))
		return 0;
	shapes_path(&x->shapes, c->type, c->form == FORM_ONE ? offset : offset % g->size, path,
		    sizeof(path));
	if (c->form != FORM_ONE)
		snprintf(text, sizeof(text), "[%llu]%s", (unsigned long long)(offset / g->size),
			 path);
	else
		snprintf(text, sizeof(text), "%s", path + (path[0] == '.'));
	return *text ? strtab_puts(x->c->names, text) : 0;
}

/* Its pointers are those of the layout, and have names. */
static void name_fields(struct flow *x, uint16_t class, uint16_t layout, uint64_t header,
			const struct candidate *c)
{
	uint32_t first = x->c->all.at[layout].first, n = x->c->all.at[layout].nfields;

	x->c->all.at[class].first = (uint32_t)x->c->fields.n;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t offset = x->c->fields.at[first + i].offset;
		uint32_t name = i < NAMED_FIELDS && offset >= header ?
					name_field(x, c, offset - header) :
					0;

		if (!classes_field(x->c, class, offset, name == UINT32_MAX ? 0 : name)) {
			x->c->all.at[class].nfields = 0;
			return;
		}
	}
}

/* Does the layout have pointers where a candidate has some? */
static bool fits(struct flow *x, const struct object *o, uint16_t layout, const struct candidate *c)
{
	const struct heap_class *l = &x->c->all.at[layout];
	const struct gotype *g = has_values(c->form) ? type_of(x, c->type) : NULL;
	uint64_t header = header_of(x, o), count;

	if (!g)
		return c->form == FORM_CLOSURE || !o->node;
	if (o->node && !l->nfields)
		return true; /* the layout was not kept */
	/* A channel of elements without pointers is allocated as if it had none itself. */
	if (g->role == GOTYPE_CHAN_HEAD && !l->nfields)
		return true;
	/* Variables that were optimised away in it are not among those that are known. */
	if (g->role == GOTYPE_CLOSURE)
		return shapes_within(&x->shapes, c->type, x->c->fields.at + l->first, l->nfields);
	count = c->form == FORM_ONE ? 1 : (o->size - header) / g->size;
	/* Where the runtime goes by the type, it tells the dump of pointers up to the slot's end. */
	if (header || (x->headers && o->size > SMALL_MAX))
		count = SHAPES_REPEAT;
	return shapes_fit(&x->shapes, c->type, header, count, x->c->fields.at + l->first,
			  l->nfields);
}

static bool keep_class(struct flow *x, uint16_t class, const struct flow_class *is)
{
	while (x->of.n <= class)
		if (!vec_add(&x->of, CLASSES_MAX + 1))
			return false;
	x->of.at[class] = *is;
	return true;
}

/* 0: the object cannot be that, or there are too many classes. */
static uint16_t class_of(struct flow *x, const struct object *o, uint16_t layout,
			 const struct candidate *c)
{
	uint64_t key = hash_pair(hash_pair(layout, c->type),
				 (uint64_t)c->form << 32 | (uint64_t)c->certainty << 16 | 0x7479);
	uint64_t class = 0;
	bool made;

	if (map_get(&x->fit, key, &class))
		return (uint16_t) class;
	if (fits(x, o, layout, c)) {
		class = classes_typed(x->c, key, o->size, c->certainty, &made);
		if (made) {
			struct flow_class is = { c->type, (uint8_t)c->form, layout, c->rank };

			x->c->all.at[class].name = name_class(x, c);
			name_fields(x, (uint16_t) class, layout, header_of(x, o), c);
			if (!keep_class(x, (uint16_t) class, &is))
				class = 0;
		}
	}
	map_put(&x->fit, key, class);
	return (uint16_t) class;
}

static const struct flow_class *typed(const struct flow *x, uint32_t index)
{
	uint16_t class = x->c->of[index];

	return class < x->of.n && x->of.at[class].form ? &x->of.at[class] : NULL;
}

/* ---- what is to be looked through ---- */

static void mark(struct flow *x, uint32_t index)
{
	uint64_t *word = &x->pending[index / 64], bit = 1ull << index % 64;
	uint32_t *to;

	if (!(*word & bit))
		x->npending++;
	*word |= bit;
	to = vec_add(&x->stack, STACK_MAX);
	if (to)
		*to = index;
}

static bool has_leaves(struct flow *x, uint32_t type)
{
	const struct shape *s = shapes_get(&x->shapes, type);

	return s && s->n;
}

/* True: the object has this type, or a better one. */
static bool put(struct flow *x, const struct object *o, const struct candidate *c)
{
	const struct flow_class *now = typed(x, o->index);
	uint16_t layout = now ? now->layout : x->c->of[o->index], class;

	if (now && (x->untyped || now->rank >= c->rank))
		return true;
	class = layout ? class_of(x, o, layout, c) : 0;
	if (!class)
		return false;
	classes_put(x->c, o->index, class);
	if (has_values(c->form) && has_leaves(x, c->type))
		mark(x, o->index);
	return true;
}

/* Once each. What has a type is looked through with it. */
static void part(struct flow *x, const struct object *o, uint64_t addr, uint64_t count,
		 uint32_t type)
{
	uint64_t key = hash_pair(addr, hash_pair(type, count)), old;
	struct flow_part *to;

	if (typed(x, o->index) || !has_leaves(x, type) || map_get(&x->seen, key, &old))
		return;
	to = x->seen.n < SEEN_MAX && map_put(&x->seen, key, 1) ? vec_add(&x->parts, PARTS_MAX) :
								 NULL;
	if (to)
		*to = (struct flow_part){ addr, count, type };
	else
		x->lost++;
}

/* ---- what is pointed to ---- */

/* The object, and how far into its values an address is. */
static bool find(const struct flow *x, uint64_t addr, struct object *o, uint64_t *offset)
{
	uint64_t header;

	if (!addr || !objects_find(&x->g->heap.objects, addr, o))
		return false;
	header = header_of(x, o);
	*offset = addr - o->addr - header;
	return addr - o->addr >= header;
}

static bool is_array_role(const struct gotype *g)
{
	return g->role == GOTYPE_MAP_BUCKET || g->role == GOTYPE_MAP_GROUP;
}

static struct candidate inferred(uint32_t type, enum form form, uint64_t rank)
{
	return (struct candidate){ type, form, HEAP_INFERRED, rank };
}

static void pointer(struct flow *x, uint64_t addr, uint32_t type)
{
	const struct gotype *g = type_of(x, type);
	struct candidate c = inferred(type, FORM_ONE, RANK_FIT);
	struct object o;
	uint64_t offset;
	bool whole;

	if (!g || !g->size || !find(x, addr, &o, &offset))
		return;
	whole = !offset && takes_up(x, &o, g->size);
	if (is_array_role(g) || g->role == GOTYPE_CHAN_HEAD)
		whole = !offset && o.size >= g->size;
	c.form = is_array_role(g) ? FORM_MANY : FORM_ONE;
	c.rank |= g->size;
	if (!whole && is_tiny(&o, g->size)) {
		c = inferred(GOTYPE_NONE, FORM_TINY, 2);
		whole = true;
	}
	if (!whole || !put(x, &o, &c))
		part(x, &o, addr, 1, type);
}

/*
 * Values side by side, as slices and buffers have them. A slice of a part of an array that is not
 * known otherwise is weak evidence, and so is part of a string.
 */
static void array(struct flow *x, uint64_t addr, uint64_t count, uint32_t type, enum form form)
{
	const struct gotype *g = type_of(x, type);
	struct candidate c = inferred(type, form, 1);
	struct object o;
	uint64_t offset, bytes;

	if (!g || !g->size || !count || __builtin_mul_overflow(count, g->size, &bytes) ||
	    !find(x, addr, &o, &offset) || bytes > o.size)
		return;
	if (offset % g->size || (offset && form == FORM_BUFFER)) {
		part(x, &o, addr, count, type);
		return;
	}
	if (takes_up(x, &o, offset + bytes))
		c.rank = RANK_FIT | (next_smaller(x, o.size) + 1);
	else if (is_tiny(&o, bytes))
		c = inferred(GOTYPE_NONE, FORM_TINY, 2);
	if (!put(x, &o, &c))
		part(x, &o, addr, count, type);
}

static void string(struct flow *x, uint64_t addr, uint64_t len)
{
	struct candidate c = inferred(GOTYPE_NONE, FORM_BYTES, 1);
	struct object o;
	uint64_t offset;

	if (!len || !find(x, addr, &o, &offset) || o.node || len > o.size)
		return;
	if (takes_up(x, &o, offset + len))
		c.rank = RANK_FIT | (next_smaller(x, o.size) + 1);
	else if (is_tiny(&o, len))
		c = inferred(GOTYPE_NONE, FORM_TINY, 2);
	put(x, &o, &c);
}

void flow_exact(struct flow *x, uint64_t addr, uint32_t type)
{
	const struct gotype *g = type_of(x, type);
	struct candidate c = { type, FORM_ONE, HEAP_EXACT, RANK_EXACT };
	struct object o;
	uint64_t offset;

	if (!g || !g->size || !find(x, addr, &o, &offset))
		return;
	c.rank |= g->size;
	if (offset || !takes_up(x, &o, g->size) || !put(x, &o, &c))
		pointer(x, addr, type);
}

/* ---- closures ---- */

static bool read_word(struct flow *x, uint64_t off, uint64_t *out)
{
	return typing_index_read(x->ix, off, out, sizeof(*out));
}

/* In names; 0: no function begins there. */
static uint32_t function_name(struct flow *x, uint64_t code)
{
	const char *name = typing_program_function(x->program, code - x->bias);
	uint32_t id = name ? strtab_puts(x->c->names, name) : 0;

	return id == UINT32_MAX ? 0 : id;
}

/* The type of the closure whose code is there, or the name of its function | 1 << 32. */
static bool code_of(struct flow *x, uint64_t code, uint64_t *out)
{
	const struct goclosure *known;
	uint32_t name;

	if (map_get(&x->code, code, out))
		return *out != UINT64_MAX;
	known = gotypes_closure(x->t, code - x->bias);
	name = known ? 0 : function_name(x, code);
	*out = known ? known->type : name ? (uint64_t)name | 1ull << 32 : UINT64_MAX;
	if (x->code.n < FITS_MAX)
		map_put(&x->code, code, *out);
	return *out != UINT64_MAX;
}

static bool is_closure(const struct flow *x, uint32_t index)
{
	const struct flow_class *is = typed(x, index);
	const struct gotype *g = is && is->form == FORM_ONE ? type_of(x, is->type) : NULL;

	return is && (is->form == FORM_CLOSURE || (g && g->role == GOTYPE_CLOSURE));
}

void flow_closure(struct flow *x, uint64_t addr)
{
	struct candidate c = inferred(0, FORM_CLOSURE, RANK_FIT | 1);
	uint64_t offset, contents, code, is;
	const struct gotype *g;
	struct object o;

	if (!find(x, addr, &o, &offset) || offset || is_closure(x, o.index) ||
	    !typing_index_find(x->ix, &o, &contents) ||
	    !read_word(x, contents + header_of(x, &o), &code) || !code_of(x, code, &is))
		return;
	if (!(is >> 32)) {
		c = inferred((uint32_t)is, FORM_ONE, RANK_FIT);
		g = type_of(x, c.type);
		c.rank |= g->size;
		if (g->size <= o.size && put(x, &o, &c))
			return;
		is = function_name(x, code);
	}
	c = inferred((uint32_t)is, FORM_CLOSURE, RANK_FIT | (next_smaller(x, o.size) + 1));
	put(x, &o, &c);
}

/* ---- interfaces ---- */

uint32_t flow_type(struct flow *x, uint64_t descriptor)
{
	uint64_t id, at = descriptor - x->bias;

	if (map_get(&x->runtime, at, &id))
		return (uint32_t)id;
	id = typing_program_type(x->program, at);
	if (id != GOTYPE_NONE)
		map_put(&x->runtime, at, id);
	return (uint32_t)id;
}

/*
 * The pointer that a value is stored as, in an interface: itself, or the only one that it consists of.
 * NULL: the interface points to the value. Source: cmd/compile, types.IsDirectIface.
 */
static const struct gotype *direct(const struct flow *x, uint32_t type)
{
	const struct gotype *g = type_of(x, type);

	for (int i = 0; g && i < LIMIT_TYPE_DEPTH; i++) {
		if (g->kind == GOTYPE_STRUCT && g->nfields == 1)
			g = type_of(x, x->t->fields[g->first].type);
		else if (g->kind == GOTYPE_ARRAY && g->count == 1)
			g = type_of(x, g->elem);
		else
			break;
	}
	if (!g)
		return NULL;
	switch (g->kind) {
	case GOTYPE_POINTER:
	case GOTYPE_UNSAFE:
	case GOTYPE_MAP:
	case GOTYPE_CHAN:
	case GOTYPE_FUNC:
		return g;
	default:
		return NULL;
	}
}

void flow_interface(struct flow *x, uint64_t descriptor, uint64_t data)
{
	uint32_t type = descriptor ? flow_type(x, descriptor) : GOTYPE_NONE;
	const struct gotype *g;
	struct object o;

	if (type == GOTYPE_NONE) {
		x->unknown += descriptor && objects_find(&x->g->heap.objects, data, &o);
		return;
	}
	g = direct(x, type);
	if (!g)
		flow_exact(x, data, type);
	else if (g->kind == GOTYPE_FUNC)
		flow_closure(x, data);
	else if (g->kind != GOTYPE_UNSAFE)
		pointer(x, data, g->elem);
}

static void iface(struct flow *x, uint64_t itab, uint64_t data)
{
	uint64_t descriptor;

	if (map_get(&x->ix->itabs, itab, &descriptor))
		flow_interface(x, descriptor, data);
}

/* ---- values ---- */

void flow_window(struct flow *x, size_t n)
{
	x->at = 0;
	x->n = n;
	x->end = n;
}

/* 0 beyond the end. */
static uint64_t word(struct flow *x, uint64_t off)
{
	uint64_t v;

	if (off > x->end || x->end - off < WORD)
		return 0;
	if (off < x->at || off - x->at > x->n || x->n - (off - x->at) < WORD) {
		size_t n = x->end - off < FLOW_WINDOW ? (size_t)(x->end - off) : FLOW_WINDOW;

		x->n = 0;
		if (!typing_index_read(x->ix, off, x->window, n))
			return 0;
		x->at = off;
		x->n = n;
	}
	memcpy(&v, x->window + (off - x->at), sizeof(v));
	return v;
}

/* Up to eight entries a map has one group and no table. */
static void map_directory(struct flow *x, uint64_t addr, uint64_t n, uint32_t pointers)
{
	const struct gotype *to = type_of(x, pointers), *table = to ? type_of(x, to->elem) : NULL;
	const struct shape *s = table && table->role == GOTYPE_MAP_TABLE ?
					shapes_get(&x->shapes, to->elem) :
					NULL;

	if (s && n) {
		array(x, addr, n, pointers, FORM_TABLES);
		return;
	}
	for (uint32_t i = 0; s && i < s->n; i++) {
		const struct gotype *leaf = type_of(x, s->leaves[i].type);
		const struct gotype *group = leaf ? type_of(x, leaf->elem) : NULL;

		if (group && leaf->kind == GOTYPE_POINTER && group->role == GOTYPE_MAP_GROUP)
			pointer(x, addr, leaf->elem);
	}
}

void flow_leaf(struct flow *x, const struct leaf *l, uint64_t base)
{
	uint64_t at = word(x, base);

	if (!at)
		return;
	switch (l->kind) {
	case GOTYPE_POINTER:
	case GOTYPE_MAP:
	case GOTYPE_CHAN:
		pointer(x, at, x->t->types[l->type].elem);
		return;
	case GOTYPE_STRING:
		string(x, at, word(x, base + WORD));
		return;
	case GOTYPE_SLICE:
		if (word(x, base + WORD) <= word(x, base + 2 * WORD))
			array(x, at, word(x, base + 2 * WORD), x->t->types[l->type].elem,
			      FORM_MANY);
		return;
	case GOTYPE_EFACE:
		flow_interface(x, at, word(x, base + WORD));
		return;
	case GOTYPE_IFACE:
		iface(x, at, word(x, base + WORD));
		return;
	case GOTYPE_FUNC:
		flow_closure(x, at);
		return;
	case LEAF_CHAN_BUF:
		array(x, at, word(x, base + (uint64_t)l->length), l->type, FORM_BUFFER);
		return;
	case LEAF_MAP_DIR:
		map_directory(x, at, word(x, base + (uint64_t)l->length), l->type);
		return;
	default:
		return;
	}
}

void flow_scan(struct flow *x, uint32_t type, uint64_t off, uint64_t count, uint64_t end)
{
	const struct shape *s = shapes_get(&x->shapes, type);
	uint64_t size = x->t->types[type].size;

	if (!s || !s->n || !size)
		return;
	x->n = 0;
	x->end = end;
	for (uint64_t k = 0; k < count && off < end; k++, off += size)
		for (uint32_t i = 0; i < s->n; i++)
			flow_leaf(x, &s->leaves[i], off + s->leaves[i].offset);
}

/* ---- one after the other ---- */

static void scan_object(struct flow *x, uint32_t index)
{
	const struct flow_class *is = typed(x, index);
	struct object o = objects_at(&x->g->heap.objects, index);
	uint64_t contents, header = header_of(x, &o), size;

	if (!is || !has_values(is->form))
		return;
	if (!typing_index_find(x->ix, &o, &contents)) {
		x->lost++;
		return;
	}
	size = x->t->types[is->type].size;
	flow_scan(x, is->type, contents + header,
		  is->form == FORM_ONE ? 1 : (o.size - header) / size, contents + o.size);
}

static void scan_part(struct flow *x, const struct flow_part *p)
{
	struct object o;
	uint64_t contents;

	if (!objects_find(&x->g->heap.objects, p->addr, &o))
		return;
	if (typing_index_find(x->ix, &o, &contents))
		flow_scan(x, p->type, contents + (p->addr - o.addr), p->count, contents + o.size);
	else
		x->lost++;
}

/* The next bit from the cursor on, which goes round. */
static uint32_t sweep(struct flow *x)
{
	size_t words = ((size_t)x->c->nobjects + 63) / 64;

	while (!x->pending[x->cursor])
		x->cursor = x->cursor + 1 < words ? x->cursor + 1 : 0;
	return (uint32_t)(x->cursor * 64 + (size_t)__builtin_ctzll(x->pending[x->cursor]));
}

static void take(struct flow *x, uint32_t index)
{
	uint64_t bit = 1ull << index % 64;

	if (!(x->pending[index / 64] & bit))
		return;
	x->pending[index / 64] &= ~bit;
	x->npending--;
	scan_object(x, index);
}

void flow_run(struct flow *x)
{
	for (;;) {
		if (x->parts.n) {
			struct flow_part p = x->parts.at[--x->parts.n];

			scan_part(x, &p);
		} else if (x->stack.n) {
			take(x, x->stack.at[--x->stack.n]);
		} else if (x->npending) {
			take(x, sweep(x));
		} else {
			return;
		}
	}
}

/* ---- headers ---- */

/* They tell the type of an array's elements, too. */
static void header(struct flow *x, const struct object *o)
{
	struct candidate c = { GOTYPE_NONE, FORM_ONE, HEAP_EXACT, RANK_EXACT };
	uint64_t contents, descriptor;
	const struct gotype *g;

	if (!typing_index_find(x->ix, o, &contents) || !read_word(x, contents, &descriptor)) {
		x->lost++;
		return;
	}
	c.type = flow_type(x, descriptor);
	g = type_of(x, c.type);
	if (!g || !g->size || g->size > o->size - HEADER) {
		x->unknown++;
		return;
	}
	if (is_array_role(g) || !takes_up(x, o, g->size))
		c.form = FORM_MANY;
	c.rank |= o->size;
	put(x, o, &c);
}

void flow_headers(struct flow *x)
{
	struct objects_walk walk = {};
	struct object o;

	while (x->headers && objects_next(&x->g->heap.objects, &walk, &o))
		if (header_of(x, &o))
			header(x, &o);
}

/* ---- all of it ---- */

/* A type that the DWARF tells several times is one that the linker made for itself the second time. */
static int index_types(struct flow *x, struct err *e)
{
	for (size_t i = 0; i < x->t->ntypes; i++) {
		uint64_t at = x->t->types[i].runtime, old;

		if (at && !map_get(&x->runtime, at, &old) && !map_put(&x->runtime, at, i))
			return err_set(e, -ENOMEM, "no memory for %zu types", x->t->ntypes);
	}
	return 0;
}

static void note_sizes(struct flow *x)
{
	const struct objects *o = &x->g->heap.objects;

	for (size_t i = 0; i < o->runs.n; i++)
		if (o->runs.at[i].size <= SMALL_MAX)
			x->small[o->runs.at[i].size / WORD] = 1;
}

int flow_init(struct flow *x, struct err *e)
{
	x->pending = calloc(((size_t)x->c->nobjects + 63) / 64 + 1, sizeof(*x->pending));
	x->small = calloc(SMALL_MAX / WORD + 1, 1);
	x->window = malloc(FLOW_WINDOW);
	if (!x->pending || !x->small || !x->window)
		return err_set(e, -ENOMEM, "no memory for the types of %u objects", x->c->nobjects);
	note_sizes(x);
	if (shapes_init(&x->shapes, x->t, e))
		return -ENOMEM;
	return index_types(x, e);
}

void flow_fini(struct flow *x)
{
	shapes_fini(&x->shapes);
	map_fini(&x->runtime);
	map_fini(&x->fit);
	map_fini(&x->code);
	map_fini(&x->seen);
	vec_fini(&x->of);
	vec_fini(&x->stack);
	vec_fini(&x->parts);
	free(x->small);
	free(x->pending);
	free(x->window);
}
