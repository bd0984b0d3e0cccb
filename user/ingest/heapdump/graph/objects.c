/* user/ingest/heapdump/graph/objects.c - objects, and slots that are none. */
#include "ingest/heapdump/graph/objects.h"

#include <string.h>

#include "base/limits.h"
#include "ingest/heapdump/graph/classify.h"
#include "ingest/heapdump/graph/slots.h"

/* MINOR_GREEN: Green Tea was there to be switched on; MINOR_MARKS: it was on without asking. */
enum { MINOR_NO_ARGS = 18, MINOR_GREEN = 25, MINOR_MARKS = 26 };

struct pass {
	struct dumpgraph *g;
	struct heapdump *d;
	bool classes;
	struct dumpclassify layouts; /* classes */
	struct dumpslots slots;
};

static int add(struct pass *x, uint64_t off, uint64_t addr, uint64_t size, bool pointers,
	       struct err *e)
{
	struct heapgraph *h = &x->g->heap;
	struct err why;
	int ret = heapgraph_object(h, addr, size, pointers, &why);
	uint64_t *to;

	if (ret)
		return err_set(e, ret, "offset %llu: %s", (unsigned long long)off, why.msg);
	if (!x->classes || x->g->run_offs.n == h->objects.runs.n)
		return ret;
	to = vec_add(&x->g->run_offs, SIZE_MAX);
	if (!to)
		return err_set(e, -ENOMEM, "no memory for objects");
	*to = off;
	return 0;
}

static int put(struct pass *x, uint64_t size, uint16_t class, struct err *e)
{
	return !x->classes || classes_add(&x->g->classes, class, size) ?
		       0 :
		       err_set(e, -ENOMEM, "no memory for the classes of objects");
}

/* One that the end of its page decided of. */
static int add_slot(void *arg, uint64_t off, uint64_t addr, uint64_t size, struct err *e)
{
	struct pass *x = arg;
	int ret = add(x, off, addr, size, false, e);

	return ret || !x->classes ? ret :
				    put(x, size, classes_layout(&x->g->classes, size, NULL, 0), e);
}

/* 1: it has pointers. -EBADMSG: damaged; *pointers tells of what came before. */
static int read_pointers(struct pass *x, bool *pointers, struct err *e)
{
	struct heapdump_field f;
	int ret;

	*pointers = false;
	dumpclassify_begin(&x->layouts);
	while ((ret = heapdump_field(x->d, &f, e)) > 0) {
		*pointers = true;
		if (!x->classes)
			return 0;
		if (!dumpclassify_pointer(&x->layouts, f.offset))
			return err_set(e, -ENOMEM, "no memory for pointers");
	}
	return ret;
}

/* Most lie beside the last one, and have a layout that was met before. */
static bool add_next(struct pass *x, const struct heapdump_object *o)
{
	bool pointers = o->layout && o->layout->n;

	return o->layout && o->layout->tag && x->classes &&
	       dumpslots_sure(&x->slots, o->addr, o->contents.len, pointers) &&
	       objects_add_next(&x->g->heap.objects, o->addr, o->contents.len, pointers);
}

/* Of an object in which the dump breaks off what came before counts. */
static int object(struct pass *x, const struct heapdump_record *r, struct err *e)
{
	const struct heapdump_object *o = &r->object;
	bool pointers = o->layout && o->layout->n, is;
	uint16_t class = 0;
	int damage, ret;

	if (add_next(x, o))
		return put(x, o->contents.len, dumpclassify_of(&x->layouts, o), e);
	damage = o->layout ? 0 : read_pointers(x, &pointers, e);
	if (damage && (damage != -EBADMSG || !pointers))
		return damage;
	ret = dumpslots_object(&x->slots, o->addr, o->contents.len, r->off, pointers, &is, e);
	if (!ret && is)
		ret = add(x, r->off, o->addr, o->contents.len, pointers, e);
	if (ret || !is)
		return ret ? ret : damage;
	if (x->classes && !damage)
		class = dumpclassify_of(&x->layouts, o);
	ret = put(x, o->contents.len, class, e);
	return ret ? ret : damage;
}

/*
 * Up to Go 1.17 (amd64: 1.16) the arguments of a deferred call, and what a closure that is deferred captured, lie
 * behind the runtime's struct in one object with it, and no field tells where the pointers are: any
 * word may be one. Source: newdefer() and deferArgs() in runtime/panic.go, Go 1.5 to 1.17.
 */
static void note_defer(struct dumpgraph *g, const struct heapdump *d, uint64_t addr)
{
	if (dumpslots_go(heapdump_params(d)) < MINOR_NO_ARGS && g->defers.n < LIMIT_DUMP_DEFERS)
		map_put(&g->defers, addr, 0);
}

static bool comes_before_holders(enum heapdump_kind kind)
{
	return kind == HEAPDUMP_PARAMS || kind == HEAPDUMP_TYPE || kind == HEAPDUMP_ITAB;
}

static int record(struct pass *x, const struct heapdump_record *r, struct err *e)
{
	struct dumpgraph *g = x->g;

	if (r->kind == HEAPDUMP_OBJECT) {
		g->objects_end = r->off + 1;
		return object(x, r, e);
	}
	if (!g->holders_off && !comes_before_holders(r->kind))
		g->holders_off = r->off;
	if ((r->kind == HEAPDUMP_DATA || r->kind == HEAPDUMP_BSS) && !g->segment.len) {
		g->segment.addr = r->segment.addr;
		g->segment.len = r->segment.contents.len;
	}
	if (r->kind == HEAPDUMP_MEMSTATS)
		g->memstats = r->memstats;
	else if (r->kind == HEAPDUMP_DEFER)
		note_defer(g, x->d, r->defer.d);
	else if (r->kind == HEAPDUMP_TYPE && x->classes && heapdump_version(x->d) == 3 &&
		 !dumpclassify_type(&x->layouts, &r->type))
		return err_set(e, -ENOMEM, "no memory for types");
	return 0;
}

static int read_all(struct pass *x, struct err *e)
{
	struct dumpgraph *g = x->g;
	struct heapdump_record r;
	int ret;

	g->holders_off = g->objects_end = 0;
	while (!(ret = heapdump_next(x->d, &r, e)) && r.kind) {
		ret = record(x, &r, e);
		if (ret)
			break;
	}
	ret = dumpgraph_damaged(g, x->d, ret, e);
	if (!ret)
		ret = dumpslots_end(&x->slots, e);
	g->left = heapdump_left(x->d);
	g->phantoms = x->slots.phantoms;
	g->behind = heapdump_behind(x->d);
	return ret;
}

static int read_objects(struct dumpgraph *g, struct heapdump *d, bool classes, struct err *e)
{
	struct pass x = { .g = g, .d = d, .classes = classes, .layouts = { .c = &g->classes } };
	int ret = classes ? classes_init(&g->classes, g->heap.names, 0, 0, e) : 0;

	dumpslots_init(&x.slots, heapdump_params(d), g->inline_marks, add_slot, &x);
	if (!ret)
		ret = read_all(&x, e);
	dumpclassify_fini(&x.layouts);
	return ret;
}

static int again(struct dumpgraph *g, struct heapdump *d, bool classes, bool inline_marks,
		 struct err *e)
{
	struct heapdump_record params;
	int ret = heapdump_rewind(d, e);

	objects_fini(&g->heap.objects);
	classes_fini(&g->classes);
	vec_fini(&g->run_offs);
	g->whole = true;
	g->inline_marks = inline_marks;
	if (!ret)
		ret = heapdump_next(d, &params, e);
	return ret ? ret : read_objects(g, d, classes, e);
}

/* What differs from the toolchain's default is behind its version: "go1.25.14 X:greenteagc". */
static bool marks_expected(const struct heapdump_params *p)
{
	const char *asked = p->toolchain.len ? strstr(p->toolchain.at, "greenteagc") : NULL;

	if (!asked)
		return dumpslots_go(p) >= MINOR_MARKS;
	return asked - p->toolchain.at < 2 || strncmp(asked - 2, "no", 2) != 0;
}

/*
 * Green Tea can be switched when a program is built. The memstats in the dump tell how many objects
 * there are, and have the last word.
 */
int dumpobjects_read(struct dumpgraph *g, struct heapdump *d, bool classes, struct err *e)
{
	bool may = dumpslots_go(heapdump_params(d)) >= MINOR_GREEN;
	bool expected = may && marks_expected(heapdump_params(d));
	int ret;

	g->inline_marks = expected;
	ret = read_objects(g, d, classes, e);
	if (ret || !g->whole || !may || g->heap.objects.n == g->memstats.heap_objects)
		return ret;
	ret = again(g, d, classes, !expected, e);
	if (ret || g->heap.objects.n == g->memstats.heap_objects)
		return ret;
	return again(g, d, classes, expected, e);
}
