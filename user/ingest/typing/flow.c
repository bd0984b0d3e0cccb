/* user/ingest/typing/flow.c - who gets which type, and what is looked through next. */
#include "base/cleanup.h"
#include "base/hash.h"
#include "base/limits.h"
#include "ingest/typing/flow_priv.h"

enum {
	STACK_MAX = 1 << 16,
	SHAPE_NAME_MAX = 1024,
	EMBED_MAX = 256, /* structs that begin with one type and are looked at */
};

#define SHAPE "go.shape."

static const struct flow_class *typed(const struct flow *x, uint32_t index)
{
	uint16_t class = x->c->of[index];

	return class < x->of.n && x->of.at[class].form ? &x->of.at[class] : NULL;
}

/* ---- what is to be looked through ---- */

/* An object counts once, however many ways led to it. */
static void lost(struct flow *x, uint32_t index)
{
	uint64_t *word = &x->missed[index / 64], bit = 1ull << index % 64;

	x->lost += !(*word & bit);
	*word |= bit;
}

static void mark(struct flow *x, uint32_t index)
{
	uint64_t *word = &x->pending[index / 64], bit = 1ull << index % 64;
	uint32_t *to;

	/* All of it will be. */
	x->lost -= (x->missed[index / 64] & bit) != 0;
	x->missed[index / 64] &= ~bit;
	if (!(*word & bit))
		x->npending++;
	*word |= bit;
	to = vec_add(&x->stack, x->stack_max);
	if (to)
		*to = index;
}

static bool has_leaves(struct flow *x, uint32_t type)
{
	const struct shape *s = shapes_get(&x->shapes, type);

	return s && s->n;
}

/*
 * Generic code allocates "main.tree[go.shape.int]", which several instances share: the allocator, and so
 * the object's header, is told no other type. What points to the object knows which instance it is.
 */
static bool is_instance_of(const struct flow *x, uint32_t shared, const struct flow_candidate *c)
{
	const struct gotype *s = flow_type_at(x, shared), *g = flow_type_at(x, c->type);
	const char *name;

	if (!s || !g || !x->shared[shared] || x->shared[c->type] || g->size != s->size ||
	    g->role != s->role)
		return false;
	name = gotypes_text(x->t, s->name);
	return !strncmp(gotypes_text(x->t, g->name), name, (size_t)(strstr(name, SHAPE) - name));
}

/* Such a type is replaced by an instance, as certain as it was itself. */
static bool more_told(const struct flow *x, uint32_t index, const struct flow_class *now,
		      struct flow_candidate *c)
{
	if (!flow_has_values(now->form) || !flow_has_values(c->form) ||
	    !is_instance_of(x, now->type, c))
		return false;
	c->form = now->form;
	c->rank = now->rank;
	c->certainty = x->c->all.at[x->c->of[index]].certainty;
	return true;
}

/* True: the object has this type, or a better one. */
bool flow_put(struct flow *x, const struct object *o, const struct flow_candidate *as)
{
	const struct flow_class *now = typed(x, o->index);
	uint16_t layout = now ? now->layout : x->c->of[o->index], class;
	struct flow_candidate c = *as;

	if (now && (x->untyped || (now->rank >= c.rank && !more_told(x, o->index, now, &c))))
		return true;
	class = layout ? flow_class_of(x, o, layout, &c) : 0;
	if (!class)
		return false;
	classes_put(x->c, o->index, class);
	if (flow_has_values(c.form) && has_leaves(x, c.type))
		mark(x, o->index);
	return true;
}

/* What has a type is looked through with it. */
static void part(struct flow *x, const struct object *o, uint64_t addr, uint64_t count,
		 uint32_t type)
{
	uint64_t size = x->t->types[type].size, left = o->addr + o->size - addr,
		 most = (left + size - 1) / size;
	struct typing_part p = { addr, count < most ? count : most, type, o->index };

	if (!typed(x, o->index) && has_leaves(x, type) && !typing_parts_add(&x->parts, &p, size))
		lost(x, o->index);
}

/* ---- what is pointed to ---- */

/* The object, and how far into its values an address is. */
bool flow_find(const struct flow *x, uint64_t addr, struct object *o, uint64_t *offset)
{
	uint64_t header;

	if (!addr || !objects_find(&x->g->heap.objects, addr, o))
		return false;
	header = flow_header_of(x, o);
	*offset = addr - o->addr - header;
	return addr - o->addr >= header;
}

static bool is_array_role(const struct gotype *g)
{
	return g->role == GOTYPE_MAP_BUCKET || g->role == GOTYPE_MAP_GROUP;
}

static struct flow_candidate inferred(uint32_t type, enum flow_form form, uint64_t rank)
{
	return (struct flow_candidate){ type, form, HEAP_INFERRED, rank };
}

/*
 * A type that several instances of generic code share has the name of none of them:
 * "sync.node[go.shape.interface {}]" is that of sync.node[interface {}], too.
 */
static uint64_t shape_key(const struct flow *x, const struct gotype *g)
{
	const char *name = gotypes_text(x->t, g->name);
	char text[SHAPE_NAME_MAX];
	size_t n = 0;

	for (; *name && n < sizeof(text); name++) {
		if (!strncmp(name, SHAPE, sizeof(SHAPE) - 1))
			name += sizeof(SHAPE) - 1;
		text[n++] = *name;
	}
	return hash_bytes(text, n);
}

/*
 * The one struct that begins with this type, has the object's size, and has pointers where the object
 * has some; GOTYPE_NONE: none or several. Go's own maps for many threads (sync.Map from Go 1.24 on)
 * point to what their nodes begin with.
 */
static uint32_t find_whole(struct flow *x, const struct object *o, uint16_t layout, uint32_t type)
{
	uint64_t s = GOTYPE_NONE;
	uint32_t found = GOTYPE_NONE;

	(void)map_get(&x->begins, shape_key(x, &x->t->types[type]), &s);
	for (int n = 0; s != GOTYPE_NONE && n < EMBED_MAX; s = x->next_of[s], n++) {
		struct flow_candidate c = inferred((uint32_t)s, FORM_ONE, 1);
		const struct gotype *g = &x->t->types[s];

		if (!flow_takes_up(x, o, g->size) || !flow_fits(x, o, layout, &c))
			continue;
		if (found != GOTYPE_NONE && shape_key(x, g) != shape_key(x, &x->t->types[found]))
			return GOTYPE_NONE;
		/* Where a shape's pointers lead is known by the shape alone. */
		if (found == GOTYPE_NONE || !x->shared[s])
			found = (uint32_t)s;
	}
	return found;
}

static uint32_t whole_of(struct flow *x, const struct object *o, uint32_t type)
{
	uint16_t layout = x->c->of[o->index];
	uint64_t key = hash_pair(layout, type), found;

	if (map_get(&x->whole, key, &found))
		return (uint32_t)found;
	found = find_whole(x, o, layout, type);
	if (x->whole.n < FLOW_ANSWERS_MAX)
		map_put(&x->whole, key, found);
	return (uint32_t)found;
}

/* Weak evidence, as nobody says so. */
static bool embeds(struct flow *x, const struct object *o, uint32_t type)
{
	struct flow_candidate c = inferred(GOTYPE_NONE, FORM_ONE, 1);

	if (typed(x, o->index) || !x->c->of[o->index])
		return false;
	c.type = whole_of(x, o, type);
	return c.type != GOTYPE_NONE && flow_put(x, o, &c);
}

void flow_pointer(struct flow *x, uint64_t addr, uint32_t type)
{
	const struct gotype *g = flow_type_at(x, type);
	struct flow_candidate c = inferred(type, FORM_ONE, FLOW_FIT);
	struct object o;
	uint64_t offset;
	bool whole;

	if (!g || !g->size || !flow_find(x, addr, &o, &offset))
		return;
	whole = !offset && flow_takes_up(x, &o, g->size);
	if (is_array_role(g) || g->role == GOTYPE_CHAN_HEAD)
		whole = !offset && o.size >= g->size;
	c.form = is_array_role(g) ? FORM_MANY : FORM_ONE;
	c.rank |= g->size;
	if (flow_is_tiny(&o, g->size)) { /* others may be there, too, whose pointers come later */
		c = inferred(GOTYPE_NONE, FORM_TINY, 2);
		whole = true;
	}
	if ((!whole || !flow_put(x, &o, &c)) && (offset || !embeds(x, &o, type)))
		part(x, &o, addr, 1, type);
}

/*
 * Values side by side, as slices and buffers have them. A slice of a part of an array that is not
 * known otherwise is weak evidence, and so is part of a string.
 */
static void array(struct flow *x, uint64_t addr, uint64_t count, uint32_t type, enum flow_form form)
{
	const struct gotype *g = flow_type_at(x, type);
	struct flow_candidate c = inferred(type, form, 1);
	struct object o;
	uint64_t offset, bytes;

	if (!g || !g->size || !count || __builtin_mul_overflow(count, g->size, &bytes) ||
	    !flow_find(x, addr, &o, &offset) || bytes > o.size)
		return;
	if (offset % g->size || (offset && form == FORM_BUFFER)) {
		part(x, &o, addr, count, type);
		return;
	}
	if (flow_is_tiny(&o, bytes))
		c = inferred(GOTYPE_NONE, FORM_TINY, 2);
	else if (flow_takes_up(x, &o, offset + bytes))
		c.rank = FLOW_FIT | (flow_next_smaller(x, o.size) + 1);
	if (!flow_put(x, &o, &c))
		part(x, &o, addr, count, type);
}

static void string(struct flow *x, uint64_t addr, uint64_t len)
{
	struct flow_candidate c = inferred(GOTYPE_NONE, FORM_BYTES, 1);
	struct object o;
	uint64_t offset;

	if (!len || !flow_find(x, addr, &o, &offset) || o.node || len > o.size)
		return;
	if (flow_is_tiny(&o, len))
		c = inferred(GOTYPE_NONE, FORM_TINY, 2);
	else if (flow_takes_up(x, &o, offset + len))
		c.rank = FLOW_FIT | (flow_next_smaller(x, o.size) + 1);
	flow_put(x, &o, &c);
}

void flow_exact(struct flow *x, uint64_t addr, uint32_t type)
{
	const struct gotype *g = flow_type_at(x, type);
	struct flow_candidate c = { type, FORM_ONE, HEAP_EXACT, FLOW_EXACT };
	struct object o;
	uint64_t offset;

	if (!g || !g->size || !flow_find(x, addr, &o, &offset))
		return;
	c.rank |= g->size;
	if (offset || !flow_takes_up(x, &o, g->size) || !flow_put(x, &o, &c))
		flow_pointer(x, addr, type);
}

/* ---- closures ---- */

static bool read_word(struct flow *x, uint64_t off, uint64_t *out)
{
	uint8_t bytes[8];

	if (!typing_index_read(x->ix, off, bytes, (size_t)x->t->word))
		return false;
	*out = flow_word(x, bytes);
	return true;
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
	if (x->code.n < FLOW_ANSWERS_MAX)
		map_put(&x->code, code, *out);
	return *out != UINT64_MAX;
}

static bool is_closure(const struct flow *x, uint32_t index)
{
	const struct flow_class *is = typed(x, index);
	const struct gotype *g = is && is->form == FORM_ONE ? flow_type_at(x, is->type) : NULL;

	return is && (is->form == FORM_CLOSURE || (g && g->role == GOTYPE_CLOSURE));
}

void flow_closure(struct flow *x, uint64_t addr)
{
	struct flow_candidate c = inferred(0, FORM_CLOSURE, FLOW_FIT | 1);
	uint64_t offset, contents, code, is;
	const struct gotype *g;
	struct object o;

	if (!flow_find(x, addr, &o, &offset) || offset || is_closure(x, o.index) ||
	    !typing_index_find(x->ix, &o, &contents) ||
	    !read_word(x, contents + flow_header_of(x, &o), &code) || !code_of(x, code, &is))
		return;
	if (!(is >> 32)) {
		c = inferred((uint32_t)is, FORM_ONE, FLOW_FIT);
		g = flow_type_at(x, c.type);
		c.rank |= g->size;
		if (g->size <= o.size && flow_put(x, &o, &c))
			return;
		is = function_name(x, code);
	}
	c = inferred((uint32_t)is, FORM_CLOSURE, FLOW_FIT | (flow_next_smaller(x, o.size) + 1));
	flow_put(x, &o, &c);
}

/* ---- interfaces ---- */

uint32_t flow_type(struct flow *x, uint64_t descriptor)
{
	uint64_t id, at = descriptor - x->bias;

	if (map_get(&x->runtime, at, &id))
		return (uint32_t)id;
	id = typing_program_type(x->program, at);
	if (x->runtime.n < FLOW_ANSWERS_MAX)
		map_put(&x->runtime, at, id);
	return (uint32_t)id;
}

/*
 * The pointer that a value is stored as, in an interface: itself, or the only one that it consists of.
 * NULL: the interface points to the value. Source: cmd/compile, types.IsDirectIface.
 */
static const struct gotype *direct(const struct flow *x, uint32_t type)
{
	const struct gotype *g = flow_type_at(x, type);

	for (int i = 0; g && i < LIMIT_TYPE_DEPTH; i++) {
		if (g->kind == GOTYPE_STRUCT && g->nfields == 1)
			g = flow_type_at(x, x->t->fields[g->first].type);
		else if (g->kind == GOTYPE_ARRAY && g->count == 1)
			g = flow_type_at(x, g->elem);
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
		x->unknown += descriptor && objects_find(&x->g->heap.objects, data, &o) &&
			      !flow_named_interface(x, descriptor, data);
		return;
	}
	g = direct(x, type);
	if (!g)
		flow_exact(x, data, type);
	else if (g->kind == GOTYPE_FUNC)
		flow_closure(x, data);
	else if (g->kind != GOTYPE_UNSAFE)
		flow_pointer(x, data, g->elem);
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
	uint64_t size = x->t->word;

	if (off > x->end || x->end - off < size)
		return 0;
	if (off < x->at || off - x->at > x->n || x->n - (off - x->at) < size) {
		size_t n = x->end - off < FLOW_WINDOW ? (size_t)(x->end - off) : FLOW_WINDOW;

		x->n = 0;
		if (!typing_index_read(x->ix, off, x->window, n))
			return 0;
		x->at = off;
		x->n = n;
	}
	return flow_word(x, x->window + (off - x->at));
}

/* Up to eight entries a map has one group and no table. */
static void map_directory(struct flow *x, uint64_t addr, uint64_t n, uint32_t pointers)
{
	const struct gotype *to = flow_type_at(x, pointers),
			    *table = to ? flow_type_at(x, to->elem) : NULL;
	const struct shape *s = table && table->role == GOTYPE_MAP_TABLE ?
					shapes_get(&x->shapes, to->elem) :
					NULL;

	if (s && n) {
		array(x, addr, n, pointers, FORM_TABLES);
		return;
	}
	for (uint32_t i = 0; s && i < s->n; i++) {
		const struct gotype *leaf = flow_type_at(x, s->leaves[i].type);
		const struct gotype *group = leaf ? flow_type_at(x, leaf->elem) : NULL;

		if (group && s->leaves[i].kind == GOTYPE_POINTER && leaf->kind == GOTYPE_POINTER &&
		    group->role == GOTYPE_MAP_GROUP)
			flow_pointer(x, addr, leaf->elem);
	}
}

void flow_leaf(struct flow *x, const struct leaf *l, uint64_t base)
{
	uint64_t at = word(x, base), size = x->t->word;

	if (!at)
		return;
	switch (l->kind) {
	case GOTYPE_POINTER:
	case GOTYPE_MAP:
	case GOTYPE_CHAN:
		flow_pointer(x, at, x->t->types[l->type].elem);
		return;
	case GOTYPE_STRING:
		string(x, at, word(x, base + size));
		return;
	case GOTYPE_SLICE:
		if (word(x, base + size) <= word(x, base + 2 * size))
			array(x, at, word(x, base + 2 * size), x->t->types[l->type].elem,
			      FORM_MANY);
		return;
	case GOTYPE_EFACE:
		flow_interface(x, at, word(x, base + size));
		return;
	case GOTYPE_IFACE:
		iface(x, at, word(x, base + size));
		return;
	case GOTYPE_FUNC:
		flow_closure(x, at);
		return;
	case LEAF_CHAN_BUF:
		array(x, at, word(x, base + (uint64_t)l->length), l->type, FORM_BUFFER);
		return;
	case LEAF_VALUES:
		array(x, at, word(x, base + (uint64_t)l->length), l->type, FORM_MANY);
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
	uint64_t size = x->t->types[type].size, base;
	const struct leaf *l;
	struct shape_walk w;

	if (!s || !s->n || !size)
		return;
	x->n = 0;
	x->end = end;
	for (uint64_t k = 0; k < count && off < end; k++, off += size) {
		shape_walk(&w, s);
		while ((l = shape_next(&w, &base)) && off + base + l->offset < end)
			flow_leaf(x, l, off + base + l->offset);
	}
}

/* ---- one after the other ---- */

static void scan_object(struct flow *x, uint32_t index)
{
	const struct flow_class *is = typed(x, index);
	struct object o = objects_at(&x->g->heap.objects, index);
	uint64_t contents, header = flow_header_of(x, &o), size;

	if (!is || !flow_has_values(is->form))
		return;
	if (!typing_index_find(x->ix, &o, &contents)) {
		lost(x, index);
		return;
	}
	size = x->t->types[is->type].size;
	flow_scan(x, is->type, contents + header,
		  is->form == FORM_ONE ? 1 : (o.size - header) / size, contents + o.size);
}

static void scan_part(struct flow *x, const struct typing_part *p)
{
	struct object o = objects_at(&x->g->heap.objects, p->object);
	uint64_t contents;

	if (typing_index_find(x->ix, &o, &contents))
		flow_scan(x, p->type, contents + (p->addr - o.addr), p->count, contents + o.size);
	else
		lost(x, o.index);
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
	struct typing_part p;

	for (;;) {
		if (typing_parts_take(&x->parts, &p)) {
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
	struct flow_candidate c = { GOTYPE_NONE, FORM_ONE, HEAP_EXACT, FLOW_EXACT };
	uint64_t contents, descriptor;
	const struct gotype *g;

	if (!typing_index_find(x->ix, o, &contents) || !read_word(x, contents, &descriptor)) {
		lost(x, o->index);
		return;
	}
	c.type = flow_type(x, descriptor);
	g = flow_type_at(x, c.type);
	if (!g || !g->size || g->size > o->size - FLOW_HEADER) {
		x->unknown += !flow_named_value(x, o->addr + FLOW_HEADER, descriptor, HEAP_EXACT);
		return;
	}
	if (is_array_role(g) || !flow_takes_up(x, o, g->size))
		c.form = FORM_MANY;
	c.rank |= o->size;
	flow_put(x, o, &c);
}

void flow_headers(struct flow *x)
{
	struct objects_walk walk = {};
	struct object o;

	while (x->headers && objects_next(&x->g->heap.objects, &walk, &o))
		if (flow_header_of(x, &o))
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

static bool is_shape(const struct flow *x, const struct gotype *g)
{
	return !strncmp(gotypes_text(x->t, g->name), SHAPE, sizeof(SHAPE) - 1);
}

static int index_structs(struct flow *x, struct err *e)
{
	for (uint32_t i = 0; i < x->t->ntypes; i++) {
		const struct gotype *g = &x->t->types[i], *first;
		const struct gofield *f = g->nfields ? &x->t->fields[g->first] : NULL;
		uint64_t next = GOTYPE_NONE, key;

		x->next_of[i] = GOTYPE_NONE;
		x->shared[i] = strstr(gotypes_text(x->t, g->name), SHAPE) != NULL;
		if (g->kind != GOTYPE_STRUCT || !g->size || !f || f->offset || is_shape(x, g))
			continue;
		first = flow_type_at(x, f->type);
		if (!first || first->kind != GOTYPE_STRUCT)
			continue;
		key = shape_key(x, first);
		(void)map_get(&x->begins, key, &next);
		x->next_of[i] = (uint32_t)next;
		if (!map_put(&x->begins, key, i))
			return err_set(e, -ENOMEM, "no memory for %zu types", x->t->ntypes);
	}
	return 0;
}

int flow_init(struct flow *x, struct err *e)
{
	x->stack_max = x->stack_max ? x->stack_max : STACK_MAX;
	x->pending = calloc(((size_t)x->c->nobjects + 63) / 64 + 1, sizeof(*x->pending));
	x->missed = calloc(((size_t)x->c->nobjects + 63) / 64 + 1, sizeof(*x->missed));
	x->small = calloc(FLOW_SMALL_MAX / FLOW_SIZES + 1, 1);
	x->window = malloc(FLOW_WINDOW);
	x->next_of = calloc(x->t->ntypes + 1, sizeof(*x->next_of));
	x->shared = calloc(x->t->ntypes + 1, sizeof(*x->shared));
	if (!x->pending || !x->missed || !x->small || !x->window || !x->next_of || !x->shared)
		return err_set(e, -ENOMEM, "no memory for the types of %u objects", x->c->nobjects);
	flow_note_sizes(x);
	if (shapes_init(&x->shapes, x->t, e))
		return -ENOMEM;
	if (index_structs(x, e))
		return -ENOMEM;
	return index_types(x, e);
}

void flow_fini(struct flow *x)
{
	shapes_fini(&x->shapes);
	map_fini(&x->runtime);
	map_fini(&x->described);
	vec_fini(&x->named);
	map_fini(&x->begins);
	map_fini(&x->whole);
	map_fini(&x->fit);
	map_fini(&x->code);
	vec_fini(&x->of);
	vec_fini(&x->stack);
	typing_parts_fini(&x->parts);
	free(x->small);
	free(x->pending);
	free(x->missed);
	free(x->next_of);
	free(x->shared);
	free(x->window);
}
