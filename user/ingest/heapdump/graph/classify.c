/* user/ingest/heapdump/graph/classify.c - layouts, and types of Go 1.3, as classes. */
#include "ingest/heapdump/graph/classify.h"

#include "base/hash.h"
#include "base/limits.h"
#include "ingest/heapdump/types.h"

void dumpclassify_fini(struct dumpclassify *x)
{
	vec_fini(&x->offsets);
	map_fini(&x->types);
}

/* ---- Go 1.3 ---- */

bool dumpclassify_type(struct dumpclassify *x, const struct heapdump_type *t)
{
	uint32_t name = strtab_put(x->c->names, t->name.at, t->name.len);

	return name != UINT32_MAX && (x->types.n >= LIMIT_DUMP_TYPES || !t->name.len ||
				      map_put(&x->types, t->addr, name));
}

/* "main.node", "[]main.node", "chan main.node" */
static uint32_t type_name(const struct dumpclassify *x, uint32_t of, uint64_t kind)
{
	static const char *const before[] = { "", "[]", "chan " };
	char text[1024];
	uint32_t id;

	snprintf(text, sizeof(text), "%s%s", before[kind], strtab_get(x->c->names, of));
	id = strtab_puts(x->c->names, text);
	return id == UINT32_MAX ? of : id;
}

/* Of the type that the object's record names. False: none, or it is unknown. */
static bool typed(struct dumpclassify *x, const struct heapdump_object *o, uint16_t *class)
{
	uint64_t of, key;
	bool made;

	if (!o->type || o->kind > DUMPTYPES_CHAN || !map_get(&x->types, o->type, &of))
		return false;
	key = hash_pair(hash_pair(o->type, o->kind), o->contents.len);
	*class = classes_typed(x->c, key, o->contents.len, HEAP_EXACT, &made);
	if (!made)
		return true;
	x->c->all.at[*class].name = type_name(x, (uint32_t)of, o->kind);
	for (size_t i = 0; i < x->offsets.n; i++)
		if (!classes_field(x->c, *class, x->offsets.at[i], 0)) {
			x->c->all.at[*class].nfields = 0;
			break;
		}
	return true;
}

/* ---- any ---- */

void dumpclassify_begin(struct dumpclassify *x)
{
	x->offsets.n = 0;
}

bool dumpclassify_pointer(struct dumpclassify *x, uint64_t offset)
{
	uint32_t *to;

	if (offset >= UINT32_MAX || x->offsets.n >= LAYOUT_POINTERS_MAX)
		return true;
	to = vec_add(&x->offsets, LAYOUT_POINTERS_MAX);
	if (to)
		*to = (uint32_t)offset;
	return to;
}

static uint16_t class_of_layout(struct dumpclassify *x, uint64_t size, struct heapdump_layout *l)
{
	uint32_t offsets[HEAPDUMP_LAYOUT_MAX];
	uint16_t class;

	for (uint32_t i = 0; i < l->n; i++)
		offsets[i] = l->offset[i];
	class = classes_layout(x->c, size, offsets, l->n);
	l->tag = class + 1u;
	return class;
}

uint16_t dumpclassify_class(struct dumpclassify *x, const struct heapdump_object *o)
{
	uint16_t class;

	if (o->layout)
		return class_of_layout(x, o->contents.len, o->layout);
	return typed(x, o, &class) ?
		       class :
		       classes_layout(x->c, o->contents.len, x->offsets.at, x->offsets.n);
}
