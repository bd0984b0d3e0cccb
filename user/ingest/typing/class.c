/* user/ingest/typing/class.c - which slots a type takes up, and the class of what is in them. */
#include "base/hash.h"
#include "base/limits.h"
#include "go/runtime/types/rttype.h"
#include "ingest/typing/flow_priv.h"

enum {
	NAMED_FIELDS = 1024, /* of a class: those that come later have no name */
	/* Source: runtime/malloc.go, maxTinySize and _PageSize. */
	TINY = 16,
	PAGE = 8192,
};

/* ---- slots ---- */

/* Source: heapBitsInSpan, Go 1.22 to 1.27: above 512 bytes, or 128 on 32 bits. */
uint64_t flow_header_of(const struct flow *x, const struct object *o)
{
	uint64_t over = x->t->word * x->t->word * 8;

	return x->headers && o->node && o->size > over && o->size <= FLOW_SMALL_MAX ? FLOW_HEADER :
										      0;
}

uint64_t flow_next_smaller(const struct flow *x, uint64_t size)
{
	if (size > FLOW_SMALL_MAX)
		return size - PAGE;
	for (uint64_t i = size / FLOW_SIZES; i > 0; i--)
		if (x->small[i - 1])
			return (i - 1) * FLOW_SIZES;
	return 0;
}

bool flow_takes_up(const struct flow *x, const struct object *o, uint64_t bytes)
{
	uint64_t all = bytes + flow_header_of(x, o);

	return bytes && all <= o->size && all > flow_next_smaller(x, o->size);
}

bool flow_is_tiny(const struct object *o, uint64_t bytes)
{
	return !o->node && o->size == TINY && bytes < TINY;
}

void flow_note_sizes(struct flow *x)
{
	const struct objects *o = &x->g->heap.objects;

	for (size_t i = 0; i < o->runs.n; i++)
		if (o->runs.at[i].size <= FLOW_SMALL_MAX)
			x->small[o->runs.at[i].size / FLOW_SIZES] = 1;
}

/* ---- classes ---- */

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
	const struct gotype *is = g->role && g->role != GOTYPE_CLOSURE ? flow_type_at(x, g->of) : g;

	snprintf(to, cap, "%s%s%s", before[g->role] ? before[g->role] : "", name_of(x, is),
		 after[g->kind] ? after[g->kind] : "");
}

static uint32_t name_class(const struct flow *x, const struct flow_candidate *c)
{
	const struct gotype *g = c->form == FORM_CLOSURE ? NULL : flow_type_at(x, c->type);
	char text[LIMIT_NAME + 64];

	if (c->form == FORM_CLOSURE)
		snprintf(text, sizeof(text), "closure %s", strtab_get(x->c->names, c->type));
	else if (c->form == FORM_NAMED)
		snprintf(text, sizeof(text), "%s",
			 strtab_get(x->c->names, x->named.at[c->type].name));
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
			 name_of(x, flow_type_at(x, flow_type_at(x, g->elem)->of)));
	else
		name_one(x, g, text, sizeof(text));
	rttype_hide_shapes(text);
	return strtab_puts(x->c->names, text);
}

/* "a.b[3].next", "[7].next"; 0: it is the value itself. */
static uint32_t name_field(const struct flow *x, const struct flow_candidate *c, uint64_t offset)
{
	const struct gotype *g = flow_type_at(x, c->type);
	char path[1024], text[1100];

	if (!flow_has_values(c->form) || !g->size || (c->form == FORM_ONE && offset >= g->size))
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

/* Names of further pointers are those of the first element's, but for the index. */
static void set_stride(struct flow *x, uint16_t class, uint64_t header,
		       const struct flow_candidate *c)
{
	const struct gotype *g = flow_has_values(c->form) ? flow_type_at(x, c->type) : NULL;

	if (!g || c->form == FORM_ONE || g->size > UINT32_MAX)
		return;
	x->c->all.at[class].base = (uint32_t)header;
	x->c->all.at[class].stride = (uint32_t)g->size;
}

/* Its pointers are those of the layout, and have names. */
static void name_fields(struct flow *x, uint16_t class, uint16_t layout, uint64_t header,
			const struct flow_candidate *c)
{
	uint32_t first = x->c->all.at[layout].first, n = x->c->all.at[layout].nfields;

	x->c->all.at[class].first = (uint32_t)x->c->fields.n;
	set_stride(x, class, header, c);
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

bool flow_fits(struct flow *x, const struct object *o, uint16_t layout,
	       const struct flow_candidate *c)
{
	const struct heap_class *l = &x->c->all.at[layout];
	const struct gotype *g = flow_has_values(c->form) ? flow_type_at(x, c->type) : NULL;
	uint64_t header = flow_header_of(x, o), count;

	if (c->form == FORM_NAMED)
		return flow_named_fits(x, o, l, &x->named.at[c->type]);
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
	if (header || (x->headers && o->size > FLOW_SMALL_MAX))
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

uint16_t flow_class_of(struct flow *x, const struct object *o, uint16_t layout,
		       const struct flow_candidate *c)
{
	uint64_t key = hash_pair(hash_pair(layout, c->type),
				 (uint64_t)c->form << 32 | (uint64_t)c->certainty << 16 | 0x7479);
	uint64_t class = 0;
	bool made;

	if (map_get(&x->fit, key, &class))
		return (uint16_t) class;
	if (flow_fits(x, o, layout, c)) {
		class = classes_typed(x->c, key, o->size, c->certainty, &made);
		if (made) {
			struct flow_class is = { c->type, (uint8_t)c->form, layout, c->rank };

			x->c->all.at[class].name = name_class(x, c);
			name_fields(x, (uint16_t) class, layout, flow_header_of(x, o), c);
			if (!keep_class(x, (uint16_t) class, &is))
				class = 0;
		}
	}
	map_put(&x->fit, key, class);
	return (uint16_t) class;
}
