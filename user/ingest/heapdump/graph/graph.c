/* user/ingest/heapdump/graph/graph.c - from records to objects and edges. */
#include "ingest/heapdump/graph/graph.h"

#include <string.h>

#include "base/cleanup.h"
#include "ingest/heapdump/graph/draft.h"
#include "ingest/heapdump/graph/classify.h"
#include "ingest/heapdump/graph/objects.h"
#include "ingest/heapdump/graph/stack.h"

enum { DEFER_BYTES = 4096 };

/* ---- damage ---- */

/* What is no object by its address ends the first pass alone: others may get further. */
int dumpgraph_damaged(struct dumpgraph *g, const struct heapdump *d, int ret, struct err *e)
{
	uint64_t off = heapdump_record_off(d);

	if (ret != -EBADMSG)
		return ret;
	if (g->settled && (g->whole || off < g->damage_off))
		return err_set(e, -EIO,
			       "the dump changed while it was read: the record at offset %llu was "
			       "whole before",
			       (unsigned long long)off);
	if (g->settled)
		return 0;
	g->whole = false;
	g->damage = *e;
	g->damage_off = off;
	return 0;
}

/* ---- edges ---- */

/* One of the rounds in which all records are read for what they point to. */
struct round {
	struct dumpgraph *g;
	struct heapdump *d;
	bool leaves;	       /* the second of them, which is for leaves alone, or a later one */
	bool holders_only;     /* nobody wants to know of objects */
	dumpgraph_pointer *fn; /* of a later one */
	void *arg;
	uint32_t thing; /* whose pointers are read */
	struct objects_follow objects;
	struct dumpclassify *layouts; /* NULL: classes are known, or wait for a later round */
	uint32_t nodes;		      /* objects with pointers that were told so far, */
	uint32_t holders;	      /* and these */
	/* The goroutine whose frames are read: it is told after them. */
	bool open;
	struct holder goroutine;
	uint32_t frames;    /* the first of them, a holder */
	VEC(uint64_t) held; /* what its defers and panics point to */
	struct dumpstack stack;
	struct map defers; /* those that were told, which each can be once */
	struct dumpdraft draft;
};

static uint32_t text_id(struct round *x, const struct heapdump_text *t)
{
	uint32_t id = strtab_put(x->g->heap.names, t->at ? t->at : "", t->len);

	return id == UINT32_MAX ? 0 : id;
}

static int points(struct round *x, uint64_t offset, uint64_t addr, struct err *e)
{
	if (x->fn)
		return x->fn(x->arg, x->thing, offset, addr, e);
	if (!x->leaves)
		return heapgraph_points(&x->g->heap, addr, e);
	heapgraph_points_leaf(&x->g->heap, x->thing, addr);
	return 0;
}

/* What is read next are its pointers. */
static int begin_holder(struct round *x, const struct holder *holder, struct err *e)
{
	struct heapgraph *h = &x->g->heap;

	x->thing = heapgraph_thing_of_holder(h, x->holders++);
	if (!x->leaves)
		return heapgraph_holder(h, holder, e);
	if (x->holders > h->holders.n)
		return err_set(e, -EIO, "the dump changed while it was read: it has more roots");
	return 0;
}

/* By the fields of the record that was read last. */
static int fields(struct round *x, struct err *e)
{
	struct heapdump_field f;
	int ret;

	if (x->layouts)
		dumpclassify_begin(x->layouts);
	while ((ret = heapdump_field(x->d, &f, e)) > 0) {
		if (x->layouts && !dumpclassify_pointer(x->layouts, f.offset))
			return err_set(e, -ENOMEM, "no memory for pointers");
		ret = points(x, f.offset, f.addr, e);
		if (ret)
			break;
	}
	return ret;
}

/* The same of an object that has a layout. */
static int pointers(struct round *x, const struct heapdump_object *told, struct err *e)
{
	const struct heapdump_layout *l = told->layout;
	uint64_t addrs[HEAPDUMP_LAYOUT_MAX];
	int ret = 0;

	heapdump_pointers(x->d, told, addrs);
	for (uint32_t i = 0; !ret && i < l->n; i++)
		ret = points(x, l->offset[i], addrs[i], e);
	return ret;
}

static int pointers_of(struct round *x, const struct heapdump_object *told, const struct object *o,
		       struct err *e)
{
	int ret = 0;

	if (o->node) {
		x->nodes++;
		x->thing = o->nodes;
		ret = x->leaves || x->fn ? 0 : heapgraph_node(&x->g->heap, e);
	}
	if (ret || (!o->node && !x->layouts))
		return ret;
	return told->layout ? pointers(x, told, e) : fields(x, e);
}

/* Phantoms are not among the objects. Nothing points to objects that others overlap. */
static int object(struct round *x, const struct heapdump_object *told, struct err *e)
{
	struct object o;
	int ret;

	if (x->holders_only)
		return 0;
	if (!objects_follow(&x->g->heap.objects, &x->objects, told->addr, told->contents.len, &o)) {
		x->g->astray += !x->leaves;
		return 0;
	}
	if (x->g->defers.n && map_get(&x->g->defers, o.addr, &(uint64_t){ 0 }))
		map_put(&x->g->defers, o.addr, told->contents.off);
	ret = pointers_of(x, told, &o, e);
	if (!ret && x->layouts)
		classes_put(&x->g->classes, o.index, dumpclassify_of(x->layouts, told));
	return ret;
}

static int end_goroutine(struct round *x, struct err *e)
{
	struct heapgraph *h = &x->g->heap;
	uint32_t end = x->holders;
	int ret;

	if (!x->open)
		return 0;
	x->open = false;
	ret = begin_holder(x, &x->goroutine, e);
	for (uint32_t i = x->frames; !ret && !x->leaves && i < end; i++) {
		h->holders.at[i].up = end;
		ret = heapgraph_has_frame(h, i, e);
	}
	for (size_t i = 0; !ret && i < x->held.n; i++)
		ret = points(x, 0, x->held.at[i], e);
	x->held.n = 0;
	return ret;
}

static int hold(struct round *x, uint64_t addr, struct err *e)
{
	uint64_t *to = vec_add(&x->held, UINT32_MAX);

	if (!to)
		return err_set(e, -ENOMEM, "no memory for deferred calls");
	*to = addr;
	return 0;
}

static int hold_defer(struct round *x, const struct heapdump_defer *defer, struct err *e)
{
	uint8_t bytes[DEFER_BYTES];
	uint64_t off = 0, size, word = heapdump_params(x->d)->ptrsize;
	int ret = hold(x, defer->fn, e);
	struct object o;

	if (ret || map_get(&x->defers, defer->d, &off) || !map_get(&x->g->defers, defer->d, &off) ||
	    !off || !objects_find(&x->g->heap.objects, defer->d, &o))
		return ret;
	size = o.size < DEFER_BYTES ? o.size : DEFER_BYTES;
	ret = heapdump_bytes(x->d, off, bytes, size, e);
	for (uint64_t at = 0; !ret && at + word <= size; at += word)
		ret = hold(x, heapdump_pointer(x->d, bytes + at), e);
	map_put(&x->defers, defer->d, 0);
	return ret;
}

static struct holder goroutine_holder(struct round *x, const struct heapdump_goroutine *gr)
{
	return (struct holder){ .kind = HOLDER_GOROUTINE,
				.state = (uint8_t)(gr->status < UINT8_MAX ? gr->status : 0),
				.name = text_id(x, &gr->reason),
				.addr = gr->goid };
}

static int goroutine(struct round *x, const struct heapdump_goroutine *gr, struct err *e)
{
	int ret = end_goroutine(x, e);

	x->open = true;
	x->frames = x->holders;
	x->goroutine = goroutine_holder(x, gr);
	dumpstack_goroutine(&x->stack, heapdump_version(x->d), heapdump_params(x->d));
	return ret ? ret : hold(x, gr->ctxt, e);
}

static struct holder frame_holder(struct round *x, const struct heapdump_frame *f)
{
	return (struct holder){
		.kind = HOLDER_FRAME, .name = text_id(x, &f->name), .up = GRAPH_NONE, .addr = f->pc
	};
}

/* From the first of its stack objects on; one may lead to another one before it. */
static int stack_objects(struct round *x, struct err *e)
{
	uint64_t size = heapdump_params(x->d)->ptrsize, end = x->stack.len, from;
	int ret = 0;

	while (!ret && (from = x->stack.from) < end) {
		for (uint64_t at = (from + size - 1) / size * size; !ret && at < end; at += size) {
			uint64_t word = heapdump_word(x->d, at);

			dumpstack_word(&x->stack, word);
			if (word)
				ret = points(x, at, word, e);
		}
		end = from;
	}
	return ret;
}

static int frame(struct round *x, const struct heapdump_frame *f, struct err *e)
{
	struct holder holder = frame_holder(x, f);
	struct heapdump_field field;
	int ret = begin_holder(x, &holder, e);

	dumpstack_frame(&x->stack, f->sp, f->contents.len);
	while (!ret && (ret = heapdump_field(x->d, &field, e)) > 0) {
		dumpstack_word(&x->stack, field.addr);
		ret = points(x, field.offset, field.addr, e);
	}
	return ret ? ret : stack_objects(x, e);
}

/* Without a variable that is known to be there the word is one. */
static int begin_variable(struct round *x, uint64_t at, struct heap_variable *v, struct err *e)
{
	const struct heap_variables *known = x->g->heap.variables;
	struct holder holder = { .kind = HOLDER_GLOBAL };

	if (!known || !known->find(known->arg, at, v))
		*v = (struct heap_variable){ at, 1, "" };
	holder.addr = v->addr;
	holder.name = text_id(x, &(struct heapdump_text){ v->name, strlen(v->name) });
	return begin_holder(x, &holder, e);
}

/* A holder for each variable that points to an object. */
static int segment(struct round *x, const struct heapdump_segment *s, struct err *e)
{
	struct heap_variable v = {};
	struct heapdump_field f;
	struct object to;
	int ret;

	while ((ret = heapdump_field(x->d, &f, e)) > 0) {
		uint64_t at = s->addr + f.offset;

		if (!f.addr || !objects_find(&x->g->heap.objects, f.addr, &to))
			continue;
		ret = at - v.addr < v.size ? 0 : begin_variable(x, at, &v, e);
		if (!ret)
			ret = points(x, at - v.addr, f.addr, e);
		if (ret)
			break;
	}
	return ret;
}

/*
 * A registered finalizer holds its closure. Its object is held by others, or it would be queued;
 * a queued one holds both.
 */
static int finalizer(struct round *x, enum holder_kind kind, const struct heapdump_finalizer *f,
		     struct err *e)
{
	struct holder holder = { .kind = kind, .addr = f->obj };
	int ret = begin_holder(x, &holder, e);

	if (!ret)
		ret = points(x, 0, f->fn, e);
	return ret || kind == HOLDER_FINALIZER ? ret : points(x, 0, f->obj, e);
}

static int other_root(struct round *x, const struct heapdump_root *r, struct err *e)
{
	struct holder holder = { .kind = HOLDER_OTHER,
				 .name = text_id(x, &r->text),
				 .addr = r->addr };
	int ret = begin_holder(x, &holder, e);

	return ret ? ret : points(x, 0, r->addr, e);
}

static int data_root(struct round *x, const struct heapdump_pointer *p, struct err *e)
{
	struct holder holder = { .kind = HOLDER_GLOBAL, .addr = p->at };
	struct object to;
	int ret;

	if (!objects_find(&x->g->heap.objects, p->addr, &to))
		return 0;
	ret = begin_holder(x, &holder, e);
	return ret ? ret : points(x, 0, p->addr, e);
}

/* ---- the draft of Go 1.3's format: stacks are put together when all has been read ---- */

static int draft_goroutine(struct round *x, const struct heapdump_goroutine *gr, struct err *e)
{
	struct draft_goroutine *to = vec_add(&x->draft.goroutines, UINT32_MAX);

	if (!to)
		return err_set(e, -ENOMEM, "no memory for goroutines");
	to->sp = gr->sp;
	to->holder = goroutine_holder(x, gr);
	return 0;
}

static int draft_frame(struct round *x, const struct heapdump_frame *f, struct err *e)
{
	struct draft_frame *to = vec_add(&x->draft.frames, UINT32_MAX);

	if (!to)
		return err_set(e, -ENOMEM, "no memory for frames");
	to->sp = f->sp;
	to->parent_sp = f->parent_sp;
	to->holder = frame_holder(x, f);
	return 0;
}

static int draft_root(struct round *x, const struct heapdump_pointer *p, struct err *e)
{
	struct draft_root *to;
	struct object o;

	if (!objects_find(&x->g->heap.objects, p->addr, &o))
		return 0;
	to = vec_add(&x->draft.roots, UINT32_MAX);
	if (!to)
		return err_set(e, -ENOMEM, "no memory for roots");
	to->sp = p->sp;
	to->addr = p->addr;
	return 0;
}

static int draft_stack(struct round *x, const struct draft_goroutine *g, struct err *e)
{
	struct dumpdraft *s = &x->draft;
	struct draft_frame *f;
	uint64_t sp = g->sp;
	int ret = 0;

	x->open = true;
	x->frames = x->holders;
	x->goroutine = g->holder;
	while (!ret && (f = dumpdraft_take(s, sp))) {
		ret = begin_holder(x, &f->holder, e);
		for (size_t i = dumpdraft_roots(s, sp);
		     !ret && i < s->roots.n && s->roots.at[i].sp == sp; i++) {
			s->roots.at[i].taken = true;
			ret = points(x, 0, s->roots.at[i].addr, e);
		}
		sp = f->parent_sp;
	}
	return ret ? ret : end_goroutine(x, e);
}

/* What no goroutine has holds objects as well. */
static int draft_end(struct round *x, struct err *e)
{
	struct holder stack = { .kind = HOLDER_OTHER,
				.name = text_id(x, &(struct heapdump_text){ "stack", 5 }) };
	int ret = 0;

	dumpdraft_seal(&x->draft);
	for (size_t i = 0; !ret && i < x->draft.goroutines.n; i++)
		ret = draft_stack(x, &x->draft.goroutines.at[i], e);
	for (size_t i = 0; !ret && i < x->draft.roots.n; i++) {
		if (x->draft.roots.at[i].taken)
			continue;
		stack.addr = x->draft.roots.at[i].addr;
		ret = begin_holder(x, &stack, e);
		if (!ret)
			ret = points(x, 0, stack.addr, e);
	}
	return ret;
}

/* ---- all records ---- */

static int type(struct round *x, const struct heapdump_type *t, struct err *e)
{
	return !x->layouts || heapdump_version(x->d) != 3 || dumpclassify_type(x->layouts, t) ?
		       0 :
		       err_set(e, -ENOMEM, "no memory for types");
}

/* Up to Go 1.4 types come between frames. */
static bool is_of_goroutine(enum heapdump_kind kind)
{
	return kind == HEAPDUMP_FRAME || kind == HEAPDUMP_DEFER || kind == HEAPDUMP_PANIC ||
	       kind == HEAPDUMP_TYPE;
}

static int record(struct round *x, const struct heapdump_record *r, struct err *e)
{
	int ret = is_of_goroutine(r->kind) ? 0 : end_goroutine(x, e);

	if (ret)
		return ret;
	switch (r->kind) {
	case HEAPDUMP_OBJECT:
		return object(x, &r->object, e);
	case HEAPDUMP_TYPE:
		return type(x, &r->type, e);
	case HEAPDUMP_GOROUTINE:
		return heapdump_draft(x->d) ? draft_goroutine(x, &r->goroutine, e) :
					      goroutine(x, &r->goroutine, e);
	case HEAPDUMP_FRAME:
		return heapdump_draft(x->d) ? draft_frame(x, &r->frame, e) : frame(x, &r->frame, e);
	case HEAPDUMP_STACKROOT:
		return draft_root(x, &r->pointer, e);
	case HEAPDUMP_DATAROOT:
		return data_root(x, &r->pointer, e);
	case HEAPDUMP_DEFER:
		return hold_defer(x, &r->defer, e);
	case HEAPDUMP_PANIC:
		return hold(x, r->panic.data, e);
	case HEAPDUMP_DATA:
	case HEAPDUMP_BSS:
		return segment(x, &r->segment, e);
	case HEAPDUMP_FINALIZER:
		return finalizer(x, HOLDER_FINALIZER, &r->finalizer, e);
	case HEAPDUMP_QUEUED:
		return finalizer(x, HOLDER_QUEUED, &r->finalizer, e);
	case HEAPDUMP_OTHERROOT:
		return other_root(x, &r->root, e);
	default:
		return 0;
	}
}

static int end_round(struct round *x, int ret, struct err *e)
{
	ret = dumpgraph_damaged(x->g, x->d, ret, e);
	if (!ret)
		ret = end_goroutine(x, e);
	if (!ret)
		ret = draft_end(x, e);
	vec_fini(&x->held);
	dumpstack_fini(&x->stack);
	map_fini(&x->defers);
	dumpdraft_fini(&x->draft);
	return ret;
}

static int read_round(struct round *x, struct err *e)
{
	struct heapdump_record r;
	int ret = heapdump_rewind(x->d, e);

	while (!ret && !(ret = heapdump_next(x->d, &r, e)) && r.kind)
		ret = record(x, &r, e);
	return end_round(x, ret, e);
}

static int read_edges(struct dumpgraph *g, struct heapdump *d, struct err *e)
{
	struct round x = { .g = g, .d = d };
	int ret = read_round(&x, e);

	/* Only when the file became shorter between two rounds. */
	for (; !ret && x.nodes < g->heap.objects.nnodes; x.nodes++)
		ret = heapgraph_node(&g->heap, e);
	return ret;
}

/* Classes come now that the dominators need no room any more. */
static int read_leaves(struct dumpgraph *g, struct heapdump *d, struct err *e)
{
	const struct objects *o = &g->heap.objects;
	struct dumpclassify layouts = { .c = &g->classes };
	struct round x = { .g = g, .d = d, .leaves = true, .layouts = &layouts };
	int ret = classes_init(&g->classes, g->heap.names, o->n, o->bytes, e);

	if (!ret)
		ret = read_round(&x, e);
	dumpclassify_fini(&layouts);
	return ret;
}

/* From the first record on that may be of a holder. */
static int read_holders(struct round *x, struct err *e)
{
	struct dumpgraph *g = x->g;
	struct heapdump_record r;
	int ret;

	if (!g->holders_off)
		return 0;
	x->holders_only = true;
	ret = heapdump_seek(x->d, g->holders_off, e);
	while (!ret && !(ret = heapdump_next(x->d, &r, e)) && r.kind &&
	       (r.kind != HEAPDUMP_MEMPROF || heapdump_draft(x->d)))
		ret = record(x, &r, e);
	return end_round(x, ret, e);
}

int dumpgraph_pointers(struct dumpgraph *g, struct heapdump *d, dumpgraph_pointer *fn, void *arg,
		       struct err *e)
{
	struct round x = { .g = g, .d = d, .leaves = true, .fn = fn, .arg = arg };

	return read_round(&x, e);
}

int dumpgraph_held(struct dumpgraph *g, struct heapdump *d, dumpgraph_pointer *fn, void *arg,
		   struct err *e)
{
	struct round x = { .g = g, .d = d, .leaves = true, .fn = fn, .arg = arg };

	return read_holders(&x, e);
}

static int ignore(void *arg, uint32_t thing, uint64_t offset, uint64_t addr, struct err *e)
{
	(void)arg, (void)thing, (void)offset, (void)addr, (void)e;
	return 0;
}

/* ---- all of it ---- */

int dumpgraph_begin(struct dumpgraph *g, struct heapdump *d, bool edges, struct heap_path *path,
		    struct err *e)
{
	struct heapdump_record params;
	int ret;

	*g = (struct dumpgraph){ .whole = true, .edges = edges };
	ret = heapgraph_init(&g->heap, e);
	g->heap.path = path;
	if (!ret)
		ret = heapdump_next(d, &params, e);
	if (!ret)
		ret = dumpobjects_read(g, d, !edges, e);
	g->settled = true;
	return ret ? ret : heapgraph_objects_end(&g->heap, e);
}

static int finish_holders(struct dumpgraph *g, struct heapdump *d, struct err *e)
{
	struct round x = { .g = g, .d = d, .fn = ignore };
	/* Where deferred calls have their arguments is found among the objects. */
	int ret = g->defers.n ? read_round(&x, e) : read_holders(&x, e);

	g->heap.program = heapgraph_thing_of_holder(&g->heap, (uint32_t)g->heap.holders.n);
	return ret;
}

int dumpgraph_finish(struct dumpgraph *g, struct heapdump *d, struct err *e)
{
	int ret;

	if (!g->edges)
		return finish_holders(g, d, e);
	ret = read_edges(g, d, e);
	if (!ret)
		ret = heapgraph_edges_end(&g->heap, e);
	if (!ret)
		ret = read_leaves(g, d, e);
	return ret ? ret : heapgraph_end(&g->heap, e);
}

int dumpgraph_read(struct dumpgraph *g, struct heapdump *d, struct err *e)
{
	int ret = dumpgraph_begin(g, d, true, NULL, e);

	return ret ? ret : dumpgraph_finish(g, d, e);
}

int dumpgraph_read_objects(struct dumpgraph *g, struct heapdump *d, struct err *e)
{
	int ret = dumpgraph_begin(g, d, false, NULL, e);

	return ret ? ret : dumpgraph_finish(g, d, e);
}

void dumpgraph_fini(struct dumpgraph *g)
{
	classes_fini(&g->classes);
	heapgraph_fini(&g->heap);
	map_fini(&g->defers);
	vec_fini(&g->run_offs);
}
