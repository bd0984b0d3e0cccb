/* user/ingest/heapdump/types.c - a table of types by their addresses. */
#include "ingest/heapdump/types.h"

#include "base/limits.h"

enum { KIND_BITS = 3, KIND_MASK = (1 << KIND_BITS) - 1 };

void dumptypes_fini(struct dumptypes *t)
{
	vec_fini(&t->all);
	vec_fini(&t->places);
	map_fini(&t->types);
	map_fini(&t->itabs);
	*t = (struct dumptypes){};
}

/* ---- telling ---- */

void dumptypes_begin(struct dumptypes *t, uint64_t addr, uint64_t size, bool pointer)
{
	struct dumptype *type;
	uint64_t at;

	t->open = false;
	if (map_get(&t->types, addr, &at))
		return;
	type = vec_add(&t->all, LIMIT_DUMP_TYPES);
	if (!type)
		return;
	if (!map_put(&t->types, addr, t->all.n - 1)) {
		t->all.n--;
		return;
	}
	*type = (struct dumptype){
		.size = size, .first = (uint32_t)t->places.n, .told = true, .pointer = pointer
	};
	t->open = true;
}

void dumptypes_place(struct dumptypes *t, enum heapdump_field_kind kind, uint64_t offset)
{
	struct dumptype *type = t->open ? &t->all.at[t->all.n - 1] : NULL;
	uint32_t *to;

	if (!type || !type->told)
		return;
	to = offset <= UINT32_MAX >> KIND_BITS ? vec_add(&t->places, LIMIT_DUMP_PLACES) : NULL;
	if (!to) {
		type->told = false;
		return;
	}
	*to = (uint32_t)offset << KIND_BITS | kind;
	type->n++;
}

static int by_offset(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* More places than words are no type; nor would walking many values of it come to an end. */
void dumptypes_end(struct dumptypes *t, bool told, uint64_t word)
{
	struct dumptype *type = t->open ? &t->all.at[t->all.n - 1] : NULL;

	t->open = false;
	if (!type)
		return;
	type->told &= told && type->n <= type->size / word;
	if (!type->told) {
		t->places.n = type->first;
		type->n = 0;
	} else if (type->n) {
		qsort(t->places.at + type->first, type->n, sizeof(*t->places.at), by_offset);
	}
}

void dumptypes_itab(struct dumptypes *t, uint64_t addr, bool pointer)
{
	if (t->itabs.n < LIMIT_DUMP_TYPES)
		map_put(&t->itabs, addr, pointer);
}

/* ---- asking ---- */

const struct dumptype *dumptypes_get(const struct dumptypes *t, uint64_t addr)
{
	uint64_t at;

	return map_get(&t->types, addr, &at) ? &t->all.at[at] : NULL;
}

bool dumptypes_is_pointer(const struct dumptypes *t, enum heapdump_field_kind kind, uint64_t word)
{
	const struct dumptype *type = kind == HEAPDUMP_EFACE ? dumptypes_get(t, word) : NULL;
	uint64_t pointer;

	if (kind == HEAPDUMP_IFACE && map_get(&t->itabs, word, &pointer))
		return pointer;
	return !type || type->pointer;
}

/* A value without pointers is as good as none. */
static bool without_pointers(struct dumptypes_walk *w)
{
	*w = (struct dumptypes_walk){};
	return true;
}

bool dumptypes_walk(const struct dumptypes *t, const struct heapdump_object *o, uint64_t header,
		    struct dumptypes_walk *w)
{
	const struct dumptype *type = o->type ? dumptypes_get(t, o->type) : NULL;

	if (!o->type && o->kind != DUMPTYPES_ANY)
		return without_pointers(w);
	if (!type || o->kind > DUMPTYPES_CHAN || (!type->told && type->pointer))
		return false;
	*w = (struct dumptypes_walk){ .type = *type, .end = o->contents.len };
	if (!type->n)
		return true;
	if (o->kind == DUMPTYPES_CHAN)
		w->base = header;
	if (o->kind != DUMPTYPES_ONE)
		w->step = type->size;
	if (w->base > w->end || (w->step && w->step > w->end - w->base))
		return without_pointers(w);
	return true;
}

bool dumptypes_walk_type(const struct dumptypes *t, uint64_t addr, struct dumptypes_walk *w)
{
	const struct dumptype *type = dumptypes_get(t, addr);

	if (!type)
		return without_pointers(w);
	*w = (struct dumptypes_walk){ .type = *type, .end = type->size };
	return true;
}

bool dumptypes_next(const struct dumptypes *t, struct dumptypes_walk *w,
		    enum heapdump_field_kind *kind, uint64_t *offset)
{
	uint32_t place;

	if (w->at == w->type.n) {
		/* Is there room for one more value behind this one? */
		if (!w->step || w->end - w->base - w->step < w->step)
			return false;
		w->base += w->step;
		w->at = 0;
	}
	place = t->places.at[w->type.first + w->at++];
	*kind = (enum heapdump_field_kind)(place & KIND_MASK);
	*offset = w->base + (place >> KIND_BITS);
	return true;
}
