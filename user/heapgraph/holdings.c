/* user/heapgraph/holdings.c - merges the dominator tree by names, from its root down. */
#include "heapgraph/holdings.h"

#include "base/cleanup.h"
#include "base/hash.h"

/* How a thing is held, in 32 bits: one of these, an offset, or the name of a field. */
enum {
	SHARED,	 /* its dominator does not point to it */
	DIRECT,	 /* it does, from a place without a name */
	ELEMENT, /* from one of many alike */
	AGAIN,	 /* it is of its dominator's type */
	DEEPER,
	FIRST_NAME,
};
#define IS_OFFSET (1u << 31)

/* More pointers than these are elements, where they have no names. */
enum { FIELDS_SHOWN = 16, VARIABLE_SHOWN = 8 * FIELDS_SHOWN, NAME_BYTES = 512 };

/* One for so many objects, and some more. */
enum { HOLDINGS_MIN = 1 << 15, HOLDINGS_MAX = 1 << 18, OBJECTS_EACH = 64 };
/* What retains this part of all is no small thing. */
enum { LEAST_PART = 1 << 16 };

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory to tell who holds what");
}

/* Out of memory is told at the end of a round. */
static uint32_t name_id(struct holdings *x, const char *text)
{
	uint32_t id = strtab_puts(x->heap->names, text);

	x->failed |= id == UINT32_MAX;
	return id == UINT32_MAX ? 0 : id;
}

int holdings_init(struct holdings *x, struct heapgraph *h, const struct classes *c, struct err *e)
{
	size_t leaves = h->objects.n - h->objects.nnodes;
	struct holding *root;

	*x = (struct holdings){ .heap = h, .classes = c, .thing = GRAPH_NONE };
	x->max = HOLDINGS_MIN + h->objects.n / OBJECTS_EACH;
	x->max = x->max < HOLDINGS_MAX ? x->max : HOLDINGS_MAX;
	x->of = spill_alloc((size_t)h->dom.n + 2, sizeof(*x->of));
	x->seen = spill_alloc(leaves / 8 + 1, 1);
	root = vec_add(&x->all, x->max);
	if (!x->of || !x->seen || !root)
		return no_memory(e);
	x->least = heapgraph_retained(h, h->program) / LEAST_PART;
	root->name = name_id(x, "the program");
	root->things = 1;
	return 0;
}

void holdings_fini(struct holdings *x)
{
	vec_fini(&x->all);
	map_fini(&x->keys);
	map_fini(&x->plain);
	spill_free(x->of);
	spill_free(x->seen);
	*x = (struct holdings){};
}

/* ---- fields ---- */

/* NULL: there is no pointer at @offset. */
static const struct heap_field *field_at(const struct classes *c, uint16_t class, uint64_t offset)
{
	const struct heap_class *k = &c->all.at[class];
	uint32_t low = 0, high = k->nfields;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (c->fields.at[k->first + mid].offset < offset)
			low = mid + 1;
		else
			high = mid;
	}
	return low < k->nfields && c->fields.at[k->first + low].offset == offset ?
		       &c->fields.at[k->first + low] :
		       NULL;
}

static uint32_t field_key(const struct classes *c, uint16_t class, uint64_t offset)
{
	const struct heap_field *f = field_at(c, class, offset);

	if (f && f->name && f->name < IS_OFFSET - FIRST_NAME)
		return FIRST_NAME + f->name;
	if (!class || c->all.at[class].nfields > FIELDS_SHOWN || offset >= IS_OFFSET)
		return ELEMENT;
	return IS_OFFSET | (uint32_t)offset;
}

/* The same in the first element of an array of which not all elements have names. */
static uint64_t first_like(const struct classes *c, uint16_t class, uint64_t offset)
{
	const struct heap_class *k = &c->all.at[class];
	const struct heap_field *f = field_at(c, class, offset);

	if (!f || f->name || !k->stride || offset < k->base)
		return offset;
	return k->base + (offset - k->base) % k->stride;
}

static void field_text(const struct heapgraph *h, const char *of, uint32_t key, char *to,
		       size_t cap)
{
	const char *name;

	if (key & IS_OFFSET) {
		snprintf(to, cap, "+%u", key & ~IS_OFFSET);
	} else if (key == ELEMENT) {
		snprintf(to, cap, "[*]");
	} else if (key >= FIRST_NAME) {
		name = strtab_get(h->names, key - FIRST_NAME);
		snprintf(to, cap, "%s%s%s", of, *name == '[' || *name == '.' ? "" : ".", name);
	} else {
		snprintf(to, cap, "%s", "");
	}
}

void holdings_field(const struct heapgraph *h, const struct classes *c, uint16_t class,
		    uint64_t offset, char *to, size_t cap)
{
	field_text(h, strtab_get(h->names, c->all.at[class].name), field_key(c, class, offset), to,
		   cap);
}

/* "items[17].name": "items[*].name" */
static void without_indexes(const char *name, char *to, size_t cap)
{
	size_t n = 0;

	for (; *name && n + 4 < cap; name++) {
		size_t digits = *name == '[' ? strspn(name + 1, "0123456789") : 0;

		to[n++] = *name;
		if (!digits || name[digits + 1] != ']')
			continue;
		to[n++] = '*';
		name += digits;
	}
	to[n] = 0;
}

static uint32_t text_key(struct holdings *x, const char *text)
{
	char plain[NAME_BYTES];

	without_indexes(text, plain, sizeof(plain));
	return FIRST_NAME + name_id(x, plain);
}

static uint32_t plain_key(struct holdings *x, uint32_t key)
{
	uint64_t plain;

	if (key < FIRST_NAME || key & IS_OFFSET)
		return key;
	if (map_get(&x->plain, key, &plain))
		return (uint32_t)plain;
	plain = text_key(x, strtab_get(x->heap->names, key - FIRST_NAME));
	x->failed |= !map_put(&x->plain, key, plain);
	return (uint32_t)plain;
}

/* Where in a global variable. */
static uint32_t variable_key(struct holdings *x, const struct holder *r, uint64_t offset)
{
	const struct heap_variables *known = x->heap->variables;
	struct heap_variable v = {};
	char part[NAME_BYTES] = "";

	if (r->kind != HOLDER_GLOBAL || !known)
		return DIRECT;
	known->part(known->arg, r->addr + offset, part, sizeof(part));
	if (*part)
		return text_key(x, part);
	if (!offset)
		return DIRECT;
	known->find(known->arg, r->addr, &v);
	return v.size > VARIABLE_SHOWN || offset >= IS_OFFSET ? ELEMENT :
								IS_OFFSET | (uint32_t)offset;
}

/* The class of the thing whose pointers are told; many come one after the other. */
static uint32_t key_from(struct holdings *x, uint32_t thing, uint64_t offset)
{
	struct object o;

	if (thing != x->thing) {
		bool is = heapgraph_object_of(x->heap, thing, &o);

		x->thing = thing;
		x->class = is ? x->classes->of[o.index] : 0;
	}
	if (thing >= x->heap->objects.nnodes)
		return variable_key(x, heapgraph_holder_of(x->heap, thing), offset);
	offset = first_like(x->classes, x->class, offset);
	return plain_key(x, field_key(x->classes, x->class, offset));
}

void holdings_points(struct holdings *x, uint32_t thing, uint64_t offset, uint64_t addr)
{
	const struct dominators *d = &x->heap->dom;
	uint32_t from = d->number[thing], number;
	struct object to;

	if (!addr || !from || !objects_find(&x->heap->objects, addr, &to) || !to.node)
		return;
	number = d->number[to.nodes];
	if (number && d->dom[number] == from && !x->of[number])
		x->of[number] = key_from(x, thing, offset);
}

/* ---- names ---- */

/* The function that a goroutine began in, but for what the runtime puts around it. */
static const char *goroutine_func(const struct heapgraph *h, uint32_t goroutine)
{
	const char *outermost = NULL;

	for (uint32_t i = goroutine;
	     i-- && h->holders.at[i].kind == HOLDER_FRAME && h->holders.at[i].up == goroutine;) {
		const char *name = strtab_get(h->names, h->holders.at[i].name);

		if (strncmp(name, "runtime.", 8))
			return name;
		if (!outermost && strcmp(name, "runtime.goexit"))
			outermost = name;
	}
	return outermost ? outermost : "";
}

static const char *const states[] = { "idle", "runnable", "running", "in a system call",
				      "waiting" };

static void goroutine_text(const struct heapgraph *h, uint32_t i, char *to)
{
	const struct holder *r = &h->holders.at[i];
	const char *why = strtab_get(h->names, r->name);

	if (r->state != 4 || !*why)
		why = r->state < ARRAY_LEN(states) ? states[r->state] : "in an unknown state";
	snprintf(to, NAME_BYTES, "goroutine %s: %s", goroutine_func(h, i), why);
}

static uint32_t holder_name(struct holdings *x, uint32_t thing)
{
	const struct heapgraph *h = x->heap;
	uint32_t i = thing - h->objects.nnodes;
	const struct holder *r = &h->holders.at[i];
	char text[NAME_BYTES];

	switch (r->kind) {
	case HOLDER_GLOBAL:
		if (r->name)
			return r->name;
		snprintf(text, sizeof(text), "global 0x%llx", (unsigned long long)r->addr);
		break;
	case HOLDER_GOROUTINE:
		goroutine_text(h, i, text);
		break;
	case HOLDER_FRAME:
		return r->name;
	case HOLDER_FINALIZER:
		snprintf(text, sizeof(text), "finalizers");
		break;
	case HOLDER_QUEUED:
		snprintf(text, sizeof(text), "finalizers that are to run");
		break;
	default:
		snprintf(text, sizeof(text), "root %s", strtab_get(h->names, r->name));
	}
	return name_id(x, text);
}

/* The same type, or a layout with the function that allocates most of its objects. */
static void what_text(const struct holdings *x, uint16_t class, char *to)
{
	const struct heap_class *k = &x->classes->all.at[class];
	const struct strtab *names = x->heap->names;

	if (k->certainty == HEAP_LAYOUT && k->site)
		snprintf(to, NAME_BYTES, "%s, by %s", strtab_get(names, k->name),
			 strtab_get(names, k->site));
	else
		snprintf(to, NAME_BYTES, "%s", strtab_get(names, k->name));
}

/*
 * Without parentheses: `go tool pprof` takes names with "[" in them for C++, and what stands in
 * parentheses for parameters, which it drops.
 */
static uint32_t object_name(struct holdings *x, const struct holding *above, uint32_t key,
			    uint16_t class)
{
	const char *of = strtab_get(x->heap->names, above->what ? above->what : above->name);
	char text[2 * NAME_BYTES + 16], field[NAME_BYTES], what[NAME_BYTES];

	what_text(x, class, what);
	field_text(x->heap, of, key, field, sizeof(field));
	if (key == SHARED)
		snprintf(text, sizeof(text), "shared: %s", what);
	else if (key == DEEPER)
		snprintf(text, sizeof(text), "... deeper");
	else if (*field)
		snprintf(text, sizeof(text), "%s: %s", field, what);
	else
		snprintf(text, sizeof(text), "%s", what);
	return name_id(x, text);
}

static uint32_t again_name(struct holdings *x, uint32_t what, uint32_t key)
{
	char text[2 * NAME_BYTES], field[NAME_BYTES];
	const char *of = strtab_get(x->heap->names, what);
	bool named = key >= FIRST_NAME && !(key & IS_OFFSET);

	field_text(x->heap, of, key, field, sizeof(field));
	snprintf(text, sizeof(text), "%s ...", named ? field : of);
	return name_id(x, text);
}

/* ---- merging ---- */

/*
 * The holding below @parent with this key; GRAPH_NONE: there is none yet, and none is made for what
 * retains so little.
 */
static uint32_t below(struct holdings *x, uint32_t parent, uint64_t key, uint64_t retained,
		      bool *made)
{
	uint64_t k = hash_pair(parent, key), at;
	struct holding *new;

	*made = false;
	if (map_get(&x->keys, k, &at))
		return (uint32_t)at;
	if (x->all.n > x->max / 2 && retained < x->least)
		return GRAPH_NONE;
	new = vec_add(&x->all, x->max);
	if (!new)
		return GRAPH_NONE;
	at = x->all.n - 1;
	if (!map_put(&x->keys, k, at)) {
		x->all.n--;
		return GRAPH_NONE;
	}
	new->parent = parent;
	new->depth = x->all.at[parent].depth + 1;
	*made = true;
	return (uint32_t)at;
}

static void count(struct holdings *x, uint32_t i, uint64_t bytes)
{
	struct holding *to = &x->all.at[i];

	to->things++;
	to->objects++;
	to->bytes += bytes;
}

/* An object that another of its type dominates. Of a tree with several fields none is named. */
static uint32_t place_again(struct holdings *x, uint32_t parent, uint32_t key, uint64_t retained)
{
	uint32_t what = x->all.at[parent].what, i = parent;
	bool made = false;
	struct holding *to;

	if (!x->all.at[parent].again)
		i = below(x, parent, AGAIN, retained, &made);
	if (i == GRAPH_NONE)
		return i;
	to = &x->all.at[i];
	if (!made && (to->key == key || to->key == DIRECT))
		return i;
	to->key = made ? key : DIRECT;
	to->what = what;
	to->again = true;
	to->name = again_name(x, what, to->key);
	return i;
}

static uint32_t place_object(struct holdings *x, uint32_t parent, uint32_t key, uint16_t class,
			     uint64_t retained)
{
	uint32_t what = x->classes->all.at[class].name, i;
	const struct holding *above = &x->all.at[parent];
	bool made;

	if (class && above->what == what)
		return place_again(x, parent, key, retained);
	if (above->depth >= HOLDINGS_DEPTH)
		return parent;
	if (above->depth == HOLDINGS_DEPTH - 1) {
		key = DEEPER;
		what = 0;
	}
	i = below(x, parent, hash_pair(key, what), retained, &made);
	if (i == GRAPH_NONE || !made)
		return i;
	x->all.at[i].name = object_name(x, &x->all.at[parent], key, class);
	x->all.at[i].what = what;
	return i;
}

static void add_object(struct holdings *x, uint32_t parent, uint32_t key, const struct object *o,
		       uint64_t retained, uint32_t *at)
{
	uint32_t i = place_object(x, parent, key, x->classes->of[o->index], retained);

	x->squeezed += i == GRAPH_NONE;
	*at = i == GRAPH_NONE ? parent : i;
	count(x, *at, o->size);
}

/* Words without a name are told apart without one: there may be millions, and few get a holding. */
static uint64_t holder_key(struct holdings *x, uint32_t thing)
{
	const struct holder *r = &x->heap->holders.at[thing - x->heap->objects.nnodes];

	return r->kind == HOLDER_GLOBAL && !r->name ? hash_pair(r->addr, HOLDER_GLOBAL) :
						      (uint64_t)holder_name(x, thing) << 32;
}

static void add_holder(struct holdings *x, uint32_t parent, uint32_t thing, uint32_t *at)
{
	uint32_t i;
	bool made;

	i = below(x, parent, holder_key(x, thing), heapgraph_retained(x->heap, thing), &made);
	x->squeezed += i == GRAPH_NONE;
	*at = i == GRAPH_NONE ? parent : i;
	if (i == GRAPH_NONE)
		return;
	x->all.at[i].things++;
	if (made)
		x->all.at[i].name = holder_name(x, thing);
}

/* A dominator has a lower number than what it dominates, so its holding is known. */
int holdings_points_end(struct holdings *x, struct err *e)
{
	const struct dominators *d = &x->heap->dom;
	struct object o;

	x->of[1] = 0;
	for (uint32_t v = 2; v <= d->n; v++) {
		uint32_t parent = x->of[d->dom[v]], thing = d->node[v];

		spill_turn(v);
		if (heapgraph_object_of(x->heap, thing, &o))
			add_object(x, parent, x->of[v], &o, x->heap->retained[v], &x->of[v]);
		else
			add_holder(x, parent, thing, &x->of[v]);
	}
	x->thing = GRAPH_NONE;
	return x->failed ? no_memory(e) : 0;
}

/* ---- what holds no pointers ---- */

int holdings_leaf(struct holdings *x, uint32_t thing, uint64_t offset, uint64_t addr, struct err *e)
{
	const struct heapgraph *h = x->heap;
	uint32_t number = h->dom.number[thing], leaf, at;
	struct object to;

	(void)e;
	if (!addr || !number || !objects_find(&h->objects, addr, &to) || to.node)
		return 0;
	leaf = object_leaf(&to);
	if (h->leaf[leaf] != number || x->seen[leaf / 8] >> leaf % 8 & 1)
		return 0;
	x->seen[leaf / 8] |= (uint8_t)(1u << leaf % 8);
	add_object(x, x->of[number], key_from(x, thing, offset), &to, to.size, &at);
	return 0;
}

int holdings_end(struct holdings *x, struct err *e)
{
	const struct heapgraph *h = x->heap;
	struct objects_walk walk = {};
	struct object o;

	while (objects_next(&h->objects, &walk, &o)) {
		uint32_t leaf = object_leaf(&o), at;

		spill_turn(o.index);
		if (o.node || !h->leaf[leaf] || x->seen[leaf / 8] >> leaf % 8 & 1)
			continue;
		add_object(x, x->of[h->leaf[leaf]], SHARED, &o, o.size, &at);
	}
	return x->failed ? no_memory(e) : 0;
}

void holdings_sum(struct holdings *x)
{
	for (size_t i = x->all.n; i-- > 1;) {
		struct holding *up = &x->all.at[x->all.at[i].parent];

		up->objects += x->all.at[i].objects;
		up->bytes += x->all.at[i].bytes;
	}
}
