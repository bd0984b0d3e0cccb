/* user/go/runtime/types/gotypes_link.c - references become numbers, and structs get the roles that they play. */
#include <string.h>

#include "base/limits.h"
#include "base/strtab.h"
#include "go/runtime/types/gotypes_dwarf_priv.h"

enum { ALIAS_DEPTH = 8 };

void gotypes_refs_fini(struct gotypes_refs *r)
{
	map_fini(&r->by_offset);
	vec_fini(&r->receivers);
}

static const char *text(const struct gotypes_made *m, uint32_t at)
{
	return m->text.at + at;
}

/* The number of the type whose entry is at @off, or of what it is another name for. */
static uint32_t number_of(const struct gotypes_made *m, const struct gotypes_refs *refs,
			  uint32_t off)
{
	uint64_t id;

	for (int i = 0; off && i < ALIAS_DEPTH; i++) {
		const struct gotype *t;

		if (!map_get(&refs->by_offset, off, &id))
			break;
		t = &m->types.at[id];
		if (t->kind != GOTYPES_ALIAS)
			return (uint32_t)id;
		off = t->elem;
	}
	return GOTYPE_NONE;
}

/* Aliases stay as they are until no reference is left that leads to one. */
static void number_types(struct gotypes_made *m, const struct gotypes_refs *refs)
{
	VEC(uint32_t) elems = { 0 };

	for (size_t i = 0; i < m->types.n; i++) {
		uint32_t *elem = vec_add(&elems, LIMIT_TYPES);

		if (!elem)
			break;
		*elem = number_of(m, refs, m->types.at[i].elem);
		m->types.at[i].of = number_of(m, refs, m->types.at[i].of);
	}
	for (size_t i = 0; i < m->types.n; i++)
		m->types.at[i].elem = i < elems.n ? elems.at[i] : GOTYPE_NONE;
	vec_fini(&elems);
}

static void number_others(struct gotypes_made *m, const struct gotypes_refs *refs)
{
	for (size_t i = 0; i < m->fields.n; i++)
		m->fields.at[i].type = number_of(m, refs, m->fields.at[i].type);
	for (size_t i = 0; i < m->vars.n; i++)
		m->vars.at[i].type = number_of(m, refs, m->vars.at[i].type);
	for (size_t i = 0; i < m->slots.n; i++)
		m->slots.at[i].type = number_of(m, refs, m->slots.at[i].type);
}

/* Of several types of one name the first. What other names stand for is still an offset here. */
static void first_of_name(const struct gotypes_made *m, const struct gotypes_refs *refs,
			  const struct strtab *names, struct map *first)
{
	for (uint32_t i = 0; i < m->types.n; i++) {
		const struct gotype *t = &m->types.at[i];
		uint32_t id = strtab_find(names, text(m, t->name), strlen(text(m, t->name)));
		uint64_t before;

		if (id != UINT32_MAX && !map_get(first, id, &before))
			map_put(first, id,
				t->kind == GOTYPES_ALIAS ? number_of(m, refs, t->elem) : i);
	}
}

/* Where there is no memory, or no such type, the field's type is not known. */
static void number_receivers(struct gotypes_made *m, const struct gotypes_refs *refs)
{
	CLEANUP(strtab_freep) struct strtab *names = NULL;
	CLEANUP(map_fini) struct map first = { 0 };

	if (!refs->receivers.n || strtab_new(&names, NULL))
		return;
	for (size_t i = 0; i < refs->receivers.n; i++)
		strtab_puts(names, text(m, refs->receivers.at[i].type));
	first_of_name(m, refs, names, &first);
	for (size_t i = 0; i < refs->receivers.n; i++) {
		const struct gotypes_receiver *r = &refs->receivers.at[i];
		const char *name = text(m, r->type);
		uint64_t type;

		if (map_get(&first, strtab_find(names, name, strlen(name)), &type))
			m->fields.at[r->field].type = (uint32_t)type;
	}
}

static struct gotype *type_at(const struct gotypes_made *m, uint32_t id)
{
	return id < m->types.n ? &m->types.at[id] : NULL;
}

static struct gotype *pointee(const struct gotypes_made *m, const struct gotype *t)
{
	return t && t->kind == GOTYPE_POINTER ? type_at(m, t->elem) : NULL;
}

static struct gotype *member(const struct gotypes_made *m, const struct gotype *t, const char *name)
{
	for (uint32_t i = 0; t && t->kind == GOTYPE_STRUCT && i < t->nfields; i++)
		if (!strcmp(text(m, m->fields.at[t->first + i].name), name))
			return type_at(m, m->fields.at[t->first + i].type);
	return NULL;
}

/*
 * Several maps may have one head: map[string]int, and types that are called otherwise but are the
 * same. It is called by the first of the former.
 */
static void play(struct gotypes_made *m, struct gotype *t, enum gotype_role role, uint32_t of)
{
	bool plain = !strncmp(text(m, m->types.at[of].name), "map[", 4);

	if (!t || t->kind != GOTYPE_STRUCT)
		return;
	if (t->role == role && (!plain || !strncmp(text(m, m->types.at[t->of].name), "map[", 4)))
		return;
	t->role = (uint8_t)role;
	t->of = of;
}

/*
 * Source: synthesizemaptypes (Go 1.7 to 1.23: hash<K,V>, bucket<K,V>), synthesizemaptypesSwiss (from
 * 1.24 on: map<K,V>, table<K,V>, groupReference<K,V> and the group).
 */
static void map_roles(struct gotypes_made *m, uint32_t id)
{
	struct gotype *t = &m->types.at[id], *head, *table;

	head = pointee(m, type_at(m, t->elem));
	t->elem = head ? (uint32_t)(head - m->types.at) : GOTYPE_NONE;
	play(m, head, GOTYPE_MAP_HEAD, id);
	play(m, pointee(m, member(m, head, "buckets")), GOTYPE_MAP_BUCKET, id);
	table = pointee(m, pointee(m, member(m, head, "dirPtr")));
	play(m, table, GOTYPE_MAP_TABLE, id);
	play(m, pointee(m, member(m, member(m, table, "groups"), "data")), GOTYPE_MAP_GROUP, id);
}

static void chan_roles(struct gotypes_made *m, uint32_t id)
{
	struct gotype *t = &m->types.at[id], *head = pointee(m, type_at(m, t->elem));

	t->elem = head ? (uint32_t)(head - m->types.at) : GOTYPE_NONE;
	if (!head || head->kind != GOTYPE_STRUCT || head->role)
		return;
	head->role = GOTYPE_CHAN_HEAD;
	head->of = id;
}

static void interface_kind(struct gotypes_made *m, uint32_t id)
{
	const struct gotype *is = type_at(m, m->types.at[id].elem);

	if (is && !strcmp(text(m, is->name), "runtime.iface"))
		m->types.at[id].kind = GOTYPE_IFACE;
}

static int by_offset(const void *a, const void *b)
{
	const struct gofield *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* It ends where the last of its variables does. */
static void measure_closure(struct gotypes_made *m, struct gotype *t, uint64_t word)
{
	struct gofield *f = m->fields.at + t->first;

	qsort(f, t->nfields, sizeof(*f), by_offset);
	t->size = word;
	for (uint32_t i = 0; i < t->nfields; i++) {
		const struct gotype *is = type_at(m, f[i].type);
		uint64_t end;

		if (is && !__builtin_add_overflow(f[i].offset, is->size, &end) && end > t->size)
			t->size = end;
	}
	t->size = (t->size + word - 1) & ~(word - 1);
}

static void measure(struct gotypes_made *m, uint64_t word)
{
	for (size_t i = 0; i < m->types.n; i++) {
		struct gotype *t = &m->types.at[i];
		const struct gotype *elem = type_at(m, t->elem);

		if (t->role == GOTYPE_CLOSURE)
			measure_closure(m, t, word);
		if (t->kind == GOTYPE_ARRAY && !t->size && elem &&
		    __builtin_mul_overflow(elem->size, t->count, &t->size))
			t->size = 0;
	}
	for (size_t i = 0; i < m->vars.n; i++) {
		const struct gotype *t = type_at(m, m->vars.at[i].type);

		m->vars.at[i].size = t ? t->size : 0;
	}
	for (size_t i = 0; i < m->slots.n; i++) {
		const struct gotype *t = type_at(m, m->slots.at[i].type);

		if (m->slots.at[i].len == UINT64_MAX)
			m->slots.at[i].len = t ? t->size : 0;
	}
}

int gotypes_link(struct gotypes_made *m, const struct gotypes_refs *refs, uint64_t word,
		 struct err *e)
{
	if (!m->types.n)
		return err_set(e, -ENOENT, "the DWARF describes no Go type");
	number_others(m, refs);
	number_receivers(m, refs);
	number_types(m, refs);
	for (uint32_t i = 0; i < m->types.n; i++) {
		if (m->types.at[i].kind == GOTYPE_MAP)
			map_roles(m, i);
		else if (m->types.at[i].kind == GOTYPE_CHAN)
			chan_roles(m, i);
		else if (m->types.at[i].kind == GOTYPE_EFACE)
			interface_kind(m, i);
	}
	measure(m, word);
	for (size_t i = 0; i < m->types.n; i++)
		if (m->types.at[i].kind == GOTYPES_ALIAS)
			m->types.at[i] = (struct gotype){ .elem = GOTYPE_NONE, .of = GOTYPE_NONE };
	return 0;
}
