/*
 * user/ingest/heapdump/classes.c - layouts: size, and offsets of pointers, or the types that Go 1.3 tells;
 * and who allocates objects of each, as far as the runtime sampled allocations.
 */
#include "ingest/heapdump/classes.h"

#include "base/hash.h"
#include "base/limits.h"
#include "ingest/heapdump/types.h"

struct pass {
	struct classes *c;
	struct dumpgraph *g;
	struct heapdump *d;
	VEC(uint32_t) offsets;
	struct objects_follow objects;
	struct map types;   /* of Go 1.3, by address: the name */
	struct map sites;   /* by bucket: the name of the function that allocates */
	struct map sampled; /* by class and site: objects */
};

static int read_offsets(struct pass *x, struct err *e)
{
	struct heapdump_field f;
	int ret;

	x->offsets.n = 0;
	while ((ret = heapdump_field(x->d, &f, e)) > 0) {
		uint32_t *to = f.offset < UINT32_MAX ? vec_add(&x->offsets, LAYOUT_POINTERS_MAX) :
						       NULL;

		if (to)
			*to = (uint32_t)f.offset;
		else if (x->offsets.n < LAYOUT_POINTERS_MAX && f.offset < UINT32_MAX)
			return err_set(e, -ENOMEM, "no memory for pointers");
	}
	return ret;
}

/* ---- Go 1.3 ---- */

static bool type(struct pass *x, const struct heapdump_type *t)
{
	uint32_t name = strtab_put(x->g->heap.names, t->name.at, t->name.len);

	return name != UINT32_MAX && (x->types.n >= LIMIT_DUMP_TYPES || !t->name.len ||
				      map_put(&x->types, t->addr, name));
}

/* "main.node", "[]main.node", "chan main.node" */
static uint32_t type_name(const struct pass *x, uint32_t of, uint64_t kind)
{
	static const char *const before[] = { "", "[]", "chan " };
	char text[1024];
	uint32_t id;

	snprintf(text, sizeof(text), "%s%s", before[kind], strtab_get(x->g->heap.names, of));
	id = strtab_puts(x->g->heap.names, text);
	return id == UINT32_MAX ? of : id;
}

/* Of the type that the object's record names. False: none, or it is unknown. */
static bool typed(struct pass *x, const struct heapdump_object *o, uint16_t *class)
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

/* ---- objects ---- */

static int object(struct pass *x, const struct heapdump_object *told, struct err *e)
{
	struct object o;
	uint16_t class;
	int ret;

	if (!objects_follow(&x->g->heap.objects, &x->objects, told->addr, told->contents.len, &o))
		return 0;
	ret = read_offsets(x, e);
	if (ret)
		return ret;
	if (!typed(x, told, &class))
		class = classes_layout(x->c, o.size, x->offsets.at, x->offsets.n);
	classes_put(x->c, o.index, class);
	return 0;
}

/* ---- sites ---- */

static bool starts(const struct heapdump_text *t, const char *with)
{
	return t->len >= strlen(with) && !memcmp(t->at, with, strlen(with));
}

/* Who called the allocator: the runtime and its maps do that for others. */
static const struct heapdump_text *allocates(const struct heapdump_memprof *m)
{
	for (size_t i = 0; i < m->nlines; i++)
		if (!starts(&m->lines[i].func, "runtime.") &&
		    !starts(&m->lines[i].func, "internal/runtime/"))
			return &m->lines[i].func;
	return m->nlines ? &m->lines[m->nlines - 1].func : NULL;
}

static bool bucket(struct pass *x, const struct heapdump_memprof *m)
{
	const struct heapdump_text *name = allocates(m);
	uint32_t id = name ? strtab_put(x->g->heap.names, name->at, name->len) : 0;

	return id != UINT32_MAX &&
	       (x->sites.n >= LIMIT_BUCKETS || map_put(&x->sites, m->bucket, id));
}

/* The tiny allocator's objects share a block: a sample may lie inside of it. */
static bool sample(struct pass *x, const struct heapdump_sample *s)
{
	uint64_t site, n = 0, key;
	struct object o;

	if (!map_get(&x->sites, s->bucket, &site) || !site ||
	    !objects_find(&x->g->heap.objects, s->obj, &o))
		return true;
	key = (uint64_t)x->c->of[o.index] << 32 | site;
	(void)map_get(&x->sampled, key, &n);
	if (!map_put(&x->sampled, key, n + 1))
		return false;
	classes_sampled(x->c, x->c->of[o.index], (uint32_t)site, n + 1);
	return true;
}

static int record(struct pass *x, const struct heapdump_record *r, struct err *e)
{
	bool room = true;

	if (r->kind == HEAPDUMP_OBJECT)
		return object(x, &r->object, e);
	if (r->kind == HEAPDUMP_TYPE && heapdump_version(x->d) == 3)
		room = type(x, &r->type);
	else if (r->kind == HEAPDUMP_MEMPROF)
		room = bucket(x, &r->memprof);
	else if (r->kind == HEAPDUMP_SAMPLE)
		room = sample(x, &r->sample);
	return room ? 0 : err_set(e, -ENOMEM, "no memory for allocation sites");
}

int dumpclasses_read(struct classes *c, struct dumpgraph *g, struct heapdump *d, struct err *e)
{
	struct pass x = { .c = c, .g = g, .d = d };
	struct heapdump_record r;
	int ret = classes_init(c, g->heap.names, g->heap.objects.n, g->heap.objects.bytes, e);

	if (!ret)
		ret = heapdump_rewind(d, e);
	while (!ret && !(ret = heapdump_next(d, &r, e)) && r.kind)
		ret = record(&x, &r, e);
	vec_fini(&x.offsets);
	map_fini(&x.types);
	map_fini(&x.sites);
	map_fini(&x.sampled);
	return dumpgraph_damaged(g, d, ret, e);
}
