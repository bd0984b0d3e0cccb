/* user/ingest/typing/roots.c - globals, frames, finalizers, panics and deferred calls. */
#include "ingest/typing/roots.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"

enum { WORD = 8, LIVE_MAX = 1 << 20, VALUE_MAX = FLOW_WINDOW };

/* ---- what is exact ---- */

static void finalizer(struct flow *x, const struct heapdump_finalizer *f)
{
	uint32_t type = f->ot ? flow_type(x, f->ot) : GOTYPE_NONE;

	flow_closure(x, f->fn);
	if (type != GOTYPE_NONE && x->t->types[type].kind == GOTYPE_POINTER)
		flow_exact(x, f->obj, x->t->types[type].elem);
	else
		x->unknown += type == GOTYPE_NONE;
}

static void exact(struct flow *x, const struct heapdump_record *r)
{
	switch (r->kind) {
	case HEAPDUMP_FINALIZER:
	case HEAPDUMP_QUEUED:
		finalizer(x, &r->finalizer);
		return;
	case HEAPDUMP_PANIC:
		flow_interface(x, r->panic.type, r->panic.data);
		return;
	case HEAPDUMP_DEFER:
		flow_closure(x, r->defer.fn);
		return;
	default:
		return;
	}
}

int roots_exact(struct flow *x, struct err *e)
{
	struct heapdump_record r;
	int ret = x->ix->roots ? heapdump_seek(x->ix->d, x->ix->roots, e) : 0;

	while (x->ix->roots && !ret && !(ret = heapdump_next(x->ix->d, &r, e)) && r.kind)
		exact(x, &r);
	return dumpgraph_damaged(x->g, x->ix->d, ret, e);
}

/* ---- globals ---- */

static void globals_in(struct flow *x, const struct heapdump_segment *s)
{
	for (size_t i = 0; i < x->t->nvars; i++) {
		const struct govar *v = &x->t->vars[i];
		uint64_t at = v->addr + x->bias - s->addr;

		if (v->type < x->t->ntypes && v->addr + x->bias >= s->addr && at < s->contents.len)
			flow_scan(x, v->type, s->contents.off + at, 1,
				  s->contents.off + s->contents.len);
	}
}

void roots_globals(struct flow *x)
{
	if (x->ix->has_data)
		globals_in(x, &x->ix->data);
	if (x->ix->has_bss)
		globals_in(x, &x->ix->bss);
}

/* ---- frames ---- */

struct stack_frame {
	uint64_t sp, len, off, pc;
	VEC(uint64_t) live; /* addresses of words that hold pointers, rising */
};

/* Frames of one goroutine: variables of one may be in the one above it, where its arguments are. */
struct walk {
	struct flow *x;
	bool objects; /* what is not live is looked at, where its address may be taken */
	struct stack_frame frame[2];
	unsigned last; /* the one that was read last */
	bool open;     /* it is to be looked through */
};

static int rising(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static bool is_live(const struct stack_frame *f, uint64_t addr)
{
	return f && f->live.n &&
	       bsearch(&addr, f->live.at, f->live.n, sizeof(addr), rising) != NULL;
}

static bool read_stack(struct flow *x, const struct stack_frame *f, uint64_t addr, void *to,
		       uint64_t n)
{
	return f && addr >= f->sp && addr - f->sp <= f->len && n <= f->len - (addr - f->sp) &&
	       typing_index_read(x->ix, f->off + (addr - f->sp), to, (size_t)n);
}

/* Slots of one variable follow each other: they are put together as its value. */
static size_t slots_of(const struct gotypes *t, size_t first)
{
	size_t n = 1;

	while (first + n < t->nslots && t->slots[first + n].pc == t->slots[first].pc &&
	       t->slots[first + n].name == t->slots[first].name &&
	       t->slots[first + n].type == t->slots[first].type &&
	       t->slots[first + n].offset > t->slots[first + n - 1].offset)
		n++;
	return n;
}

/* The stack address of a byte of the variable; 0: it is in none of its slots. */
static uint64_t address_of(const struct goslot *s, size_t n, uint64_t cfa, uint64_t offset)
{
	for (size_t i = 0; i < n; i++)
		if (offset >= s[i].offset && offset - s[i].offset < s[i].len)
			return cfa + (uint64_t)s[i].cfa + (offset - s[i].offset);
	return 0;
}

/* What has its address taken lies in one place, and the compiler does not take it apart. */
static bool may_be_object(const struct gotype *g, const struct goslot *s)
{
	return s->len == g->size && (g->kind == GOTYPE_STRUCT || g->kind == GOTYPE_ARRAY);
}

static void variable(struct walk *w, const struct stack_frame *f, const struct stack_frame *up,
		     const struct goslot *s, size_t n)
{
	struct flow *x = w->x;
	const struct gotype *g = s->type < x->t->ntypes ? &x->t->types[s->type] : NULL;
	const struct shape *shape = g && g->size <= VALUE_MAX ? shapes_get(&x->shapes, s->type) :
								NULL;
	uint64_t cfa = f->sp + f->len, base;
	const struct leaf *l;
	struct shape_walk leaves;

	if (!shape || !shape->n || (w->objects && !may_be_object(g, s)))
		return;
	memset(x->window, 0, (size_t)g->size);
	for (size_t i = 0; i < n; i++) {
		uint64_t at = cfa + (uint64_t)s[i].cfa;
		uint8_t *to = x->window + s[i].offset;

		if (s[i].offset > g->size || s[i].len > g->size - s[i].offset)
			return;
		if (!read_stack(x, f, at, to, s[i].len))
			read_stack(x, up, at, to, s[i].len);
	}
	flow_window(x, (size_t)g->size);
	shape_walk(&leaves, shape);
	while ((l = shape_next(&leaves, &base))) {
		uint64_t at = address_of(s, n, cfa, base + l->pointer);

		if (at && w->objects != (is_live(f, at) || is_live(up, at)))
			flow_leaf(x, l, base + l->offset);
	}
}

/* The first slot of a pc. */
static size_t first_slot(const struct gotypes *t, uint32_t pc)
{
	size_t low = 0, high = t->nslots;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (t->slots[mid].pc < pc)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void look_through(struct walk *w, const struct stack_frame *f, const struct stack_frame *up)
{
	struct flow *x = w->x;
	const uint64_t *pc = x->ix->pcs.n ? bsearch(&f->pc, x->ix->pcs.at, x->ix->pcs.n,
						    sizeof(f->pc), rising) :
					    NULL;
	uint32_t index;
	size_t i, n;

	if (!pc)
		return;
	index = (uint32_t)(pc - x->ix->pcs.at);
	for (i = first_slot(x->t, index); i < x->t->nslots && x->t->slots[i].pc == index; i += n) {
		n = slots_of(x->t, i);
		variable(w, f, up, &x->t->slots[i], n);
	}
}

/* The one that was read last, and the one above it, if they are one goroutine's. */
static void flush(struct walk *w, const struct stack_frame *up)
{
	const struct stack_frame *f = &w->frame[w->last];

	if (!w->open)
		return;
	look_through(w, f, up);
	flow_run(w->x);
	w->open = false;
}

static int frame(struct walk *w, const struct heapdump_frame *told, struct err *e)
{
	struct stack_frame *f = &w->frame[!w->last];
	struct heapdump_field field;
	int ret;

	f->sp = told->sp;
	f->len = told->contents.len;
	f->off = told->contents.off;
	f->pc = typing_pc(told);
	f->live.n = 0;
	while ((ret = heapdump_field(w->x->ix->d, &field, e)) > 0) {
		uint64_t *to = vec_add(&f->live, LIVE_MAX);

		if (to)
			*to = f->sp + field.offset;
	}
	/* A frame's own and those of the call's arguments are told one after the other. */
	if (f->live.n)
		qsort(f->live.at, f->live.n, sizeof(*f->live.at), rising);
	flush(w, f);
	w->last = !w->last;
	w->open = true;
	return ret;
}

static int frames(struct flow *x, bool objects, struct err *e)
{
	struct walk w = { .x = x, .objects = objects };
	struct heapdump_record r;
	int ret = x->ix->roots ? heapdump_seek(x->ix->d, x->ix->roots, e) : 0;

	while (x->ix->roots && !ret && !(ret = heapdump_next(x->ix->d, &r, e)) && r.kind) {
		if (r.kind == HEAPDUMP_FRAME)
			ret = frame(&w, &r.frame, e);
		else
			flush(&w, NULL);
		if (ret)
			break;
	}
	flush(&w, NULL);
	vec_fini(&w.frame[0].live);
	vec_fini(&w.frame[1].live);
	return dumpgraph_damaged(x->g, x->ix->d, ret, e);
}

int roots_frames(struct flow *x, struct err *e)
{
	return frames(x, false, e);
}

int roots_stack_objects(struct flow *x, struct err *e)
{
	int ret;

	x->untyped = true;
	ret = frames(x, true, e);
	x->untyped = false;
	return ret;
}

int roots_flow(struct flow *x, struct err *e)
{
	int ret;

	flow_headers(x);
	ret = roots_exact(x, e);
	if (ret)
		return ret;
	roots_globals(x);
	flow_run(x);
	ret = roots_frames(x, e);
	return ret ? ret : roots_stack_objects(x, e);
}
