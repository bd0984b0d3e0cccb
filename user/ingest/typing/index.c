/* user/ingest/typing/index.c - one pass that notes offsets, and records read at random. */
#include "ingest/typing/index.h"

#include "base/cleanup.h"
#include "base/limits.h"

enum {
	EVERY_OBJECTS = 32,
	EVERY_BYTES = 8192, /* of large objects each is noted */
	CACHE_BLOCK = 16384,
	CACHE_BLOCKS = 192, /* 3 MiB */
	WALK_MAX = 1 << 14, /* records between two that are noted: phantoms are among them */
	HEAD_BYTES = 32,    /* kind and three numbers */
	FIELD_BYTES = 256,
};

/* ---- the pass ---- */

struct pass {
	struct typing_index *ix;
	struct dumpgraph *g;
	uint32_t objects, noted; /* objects told so far; the last that was noted */
	uint64_t noted_off;
};

static bool note_object(struct pass *x, const struct heapdump_record *r)
{
	struct typing_index *ix = x->ix;
	struct object o;
	uint32_t *at;
	uint64_t *off;

	if (!objects_find(&x->g->heap.objects, r->object.addr, &o) || o.index != x->objects)
		return true;
	x->objects++;
	if (ix->at.n && o.index - x->noted < EVERY_OBJECTS && r->off - x->noted_off < EVERY_BYTES)
		return true;
	at = vec_add(&ix->at, UINT32_MAX);
	off = vec_add(&ix->off, UINT32_MAX);
	if (!at || !off)
		return false;
	*at = x->noted = o.index;
	*off = x->noted_off = r->off;
	return true;
}

static bool note_type(struct pass *x, const struct heapdump_type *t)
{
	struct typing_desc *to = vec_add(&x->ix->types, LIMIT_TYPES);

	if (!to)
		return x->ix->types.n == LIMIT_TYPES;
	*to = (struct typing_desc){ t->addr, t->size,
				    strtab_put(x->g->heap.names, t->name.at, t->name.len) };
	return to->name != UINT32_MAX;
}

/* False: there is no memory. */
static bool is_new(struct typing_index *ix, uint64_t key, bool *new)
{
	uint64_t old;

	*new = !map_get(&ix->seen, key, &old);
	return !*new || map_put(&ix->seen, key, 1);
}

static bool note_frame(struct pass *x, const struct heapdump_frame *f)
{
	struct typing_index *ix = x->ix;
	struct typing_func *func;
	uint64_t *pc;
	bool new;

	/* Code is below 2^63: an entry and a pc are told apart. */
	if (!is_new(ix, typing_pc(f) | 1ull << 63, &new))
		return false;
	if (new && ix->pcs.n < LIMIT_TYPE_VARS) {
		pc = vec_add(&ix->pcs, LIMIT_TYPE_VARS);
		if (!pc)
			return false;
		*pc = typing_pc(f);
	}
	if (!is_new(ix, f->entry, &new))
		return false;
	if (!new || ix->funcs.n >= LIMIT_TYPE_VARS)
		return true;
	func = vec_add(&ix->funcs, LIMIT_TYPE_VARS);
	if (func)
		*func = (struct typing_func){ f->entry, strtab_put(x->g->heap.names, f->name.at,
								   f->name.len) };
	return func && func->name != UINT32_MAX;
}

static bool note(struct pass *x, const struct heapdump_record *r)
{
	struct typing_index *ix = x->ix;

	if (r->kind == HEAPDUMP_OBJECT)
		return note_object(x, r);
	if (r->kind == HEAPDUMP_TYPE)
		return note_type(x, &r->type);
	if (r->kind == HEAPDUMP_ITAB)
		return ix->itabs.n >= LIMIT_TYPES ||
		       map_put(&ix->itabs, r->itab.addr, r->itab.type);
	if (r->kind == HEAPDUMP_PARAMS)
		return true;
	if (!ix->roots)
		ix->roots = r->off;
	if (r->kind == HEAPDUMP_FRAME)
		return note_frame(x, &r->frame);
	if (r->kind == HEAPDUMP_DATA && !ix->has_data) {
		ix->data = r->segment;
		ix->has_data = true;
	} else if (r->kind == HEAPDUMP_BSS && !ix->has_bss) {
		ix->bss = r->segment;
		ix->has_bss = true;
	}
	return true;
}

static int rising(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int read_file(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct typing_index *ix =
		(struct typing_index *)((char *)m - offsetof(struct typing_index, file));

	return heapdump_bytes(ix->d, addr, buf, n, e);
}

int typing_index_make(struct typing_index *ix, struct dumpgraph *g, struct heapdump *d,
		      struct err *e)
{
	struct pass x = { .ix = ix, .g = g };
	struct heapdump_record r;
	int ret;

	*ix = (struct typing_index){ .d = d, .file = { .read = read_file } };
	ix->size = heapdump_size(d);
	ix->next = UINT32_MAX;
	ret = memcache_new(&ix->file, CACHE_BLOCK, CACHE_BLOCKS, &ix->cache, e);
	if (!ret)
		ret = heapdump_rewind(d, e);
	while (!ret && !(ret = heapdump_next(d, &r, e)) && r.kind)
		if (!note(&x, &r))
			ret = err_set(e, -ENOMEM, "no memory for the places of objects");
	if (ix->pcs.n)
		qsort(ix->pcs.at, ix->pcs.n, sizeof(*ix->pcs.at), rising);
	map_fini(&ix->seen);
	return dumpgraph_damaged(g, d, ret, e);
}

void typing_index_fini(struct typing_index *ix)
{
	vec_fini(&ix->at);
	vec_fini(&ix->off);
	vec_fini(&ix->types);
	vec_fini(&ix->funcs);
	vec_fini(&ix->pcs);
	map_fini(&ix->itabs);
	map_fini(&ix->seen);
	memcache_freep(&ix->cache);
}

/* ---- random access ---- */

bool typing_index_read(struct typing_index *ix, uint64_t off, void *buf, size_t n)
{
	return off <= ix->size && n <= ix->size - off &&
	       !mem_read(memcache_mem(ix->cache), off, buf, n, NULL);
}

/* Bytes of the file from an offset on: as many as there are, and no more than asked for. */
struct window {
	uint8_t at[FIELD_BYTES];
	size_t n, i;
	uint64_t off; /* of at[0] */
};

static bool fill(struct typing_index *ix, struct window *w, uint64_t off, size_t n)
{
	w->off = off;
	w->i = 0;
	w->n = off >= ix->size ? 0 : ix->size - off < n ? (size_t)(ix->size - off) : n;
	return w->n && typing_index_read(ix, off, w->at, w->n);
}

static bool number(struct window *w, uint64_t *out)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64 && w->i < w->n; shift += 7) {
		uint8_t b = w->at[w->i++];

		v |= (uint64_t)(b & 0x7f) << shift;
		if (b < 0x80) {
			*out = v;
			return true;
		}
	}
	return false;
}

/* The offset behind a list of fields: pairs of a kind and an offset, and a zero. */
static bool skip_fields(struct typing_index *ix, uint64_t *off)
{
	struct window w;
	uint64_t kind, offset, done = *off;

	for (;;) {
		if (!fill(ix, &w, done, sizeof(w.at)))
			return false;
		for (;;) {
			if (!number(&w, &kind))
				break;
			if (!kind) {
				*off = w.off + w.i;
				return true;
			}
			if (!number(&w, &offset))
				break;
			done = w.off + w.i;
		}
		if (done == w.off)
			return false;
	}
}

/* Up to Go 1.4 types come between objects: an address, a size, a name and a boolean. */
static bool skip_type(struct typing_index *ix, struct window *w, uint64_t *off)
{
	uint64_t addr, size, len;

	if (!number(w, &addr) || !number(w, &size) || !number(w, &len) || len >= ix->size)
		return false;
	*off += w->i + len + 1;
	return true;
}

/* The last object that is noted, at or before @index. */
static size_t noted_before(const struct typing_index *ix, uint32_t index)
{
	size_t low = 0, high = ix->at.n;

	while (low + 1 < high) {
		size_t mid = low + (high - low) / 2;

		if (ix->at.at[mid] <= index)
			low = mid;
		else
			high = mid;
	}
	return low;
}

bool typing_index_find(struct typing_index *ix, const struct object *o, uint64_t *contents)
{
	size_t from = noted_before(ix, o->index);
	uint64_t off, kind, addr, len;
	struct window w;

	if (!ix->at.n || ix->at.at[from] > o->index)
		return false;
	off = ix->off.at[from];
	if (ix->next > ix->at.at[from] && ix->next <= o->index)
		off = ix->next_off;
	for (int i = 0; i < WALK_MAX; i++) {
		if (!fill(ix, &w, off, HEAD_BYTES) || !number(&w, &kind))
			return false;
		if (kind == HEAPDUMP_TYPE) {
			if (!skip_type(ix, &w, &off))
				return false;
			continue;
		}
		if (kind != HEAPDUMP_OBJECT || !number(&w, &addr) || !number(&w, &len) ||
		    len > ix->size)
			return false;
		off += w.i;
		if (addr == o->addr && len == o->size) {
			*contents = off;
			ix->next = o->index;
			ix->next_off = off - w.i;
			return true;
		}
		off += len;
		if (!skip_fields(ix, &off))
			return false;
	}
	return false;
}
