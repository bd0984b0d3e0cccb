/* user/ingest/dumpclasses.c - layouts: size, and offsets of pointers. */
#include "ingest/dumpclasses.h"

/* Pointers of one object that its layout is told by; what has more is told by the first ones. */
enum { OFFSETS_MAX = 1 << 20 };

struct pass {
	struct classes *c;
	struct dumpgraph *g;
	struct heapdump *d;
	VEC(uint32_t) offsets;
	uint32_t objects; /* told so far */
};

static int read_offsets(struct pass *x, struct err *e)
{
	struct heapdump_field f;
	int ret;

	x->offsets.n = 0;
	while ((ret = heapdump_field(x->d, &f, e)) > 0) {
		uint32_t *to = f.offset < UINT32_MAX ? vec_add(&x->offsets, OFFSETS_MAX) : NULL;

		if (to)
			*to = (uint32_t)f.offset;
		else if (x->offsets.n < OFFSETS_MAX && f.offset < UINT32_MAX)
			return err_set(e, -ENOMEM, "no memory for pointers");
	}
	return ret;
}

static int object(struct pass *x, const struct heapdump_object *told, struct err *e)
{
	struct object o;
	int ret;

	if (!objects_find(&x->g->heap.objects, told->addr, &o) || o.index != x->objects)
		return 0;
	x->objects++;
	ret = read_offsets(x, e);
	if (!ret)
		classes_put(x->c, o.index,
			    classes_layout(x->c, o.size, x->offsets.at, x->offsets.n));
	return ret;
}

int dumpclasses_read(struct classes *c, struct dumpgraph *g, struct heapdump *d, struct err *e)
{
	struct pass x = { .c = c, .g = g, .d = d };
	struct heapdump_record r;
	int ret = classes_init(c, g->heap.names, g->heap.objects.n, g->heap.objects.bytes, e);

	if (!ret)
		ret = heapdump_rewind(d, e);
	while (!ret && !(ret = heapdump_next(d, &r, e)) && r.kind)
		if (r.kind == HEAPDUMP_OBJECT)
			ret = object(&x, &r.object, e);
	vec_fini(&x.offsets);
	return dumpgraph_damaged(g, ret, e);
}
