/* user/cli/heapdump/heap_holders.c - from holdings to samples. */
#include "cli/heapdump/heap_holders.h"

#include "base/sys/spill.h"
#include "cli/heapdump/dot.h"
#include "cli/tell.h"

enum { DOT_BOXES = 60 };

static int tell_pointer(void *arg, uint32_t thing, uint64_t offset, uint64_t addr, struct err *e)
{
	(void)e;
	holdings_points(arg, thing, offset, addr);
	return 0;
}

static int tell_leaf(void *arg, uint32_t thing, uint64_t offset, uint64_t addr, struct err *e)
{
	return holdings_leaf(arg, thing, offset, addr, e);
}

int heap_holders_read(struct holdings *x, struct dumpgraph *g, const struct classes *c,
		      struct heapdump *d, struct err *e)
{
	int ret = holdings_init(x, &g->heap, c, e);

	if (!ret)
		ret = dumpgraph_pointers(g, d, tell_pointer, x, e);
	if (!ret)
		ret = holdings_points_end(x, e);
	if (!ret)
		ret = dumpgraph_pointers(g, d, tell_leaf, x, e);
	return ret ? ret : holdings_end(x, e);
}

/* ---- the profile ---- */

static int location(struct prof *p, const char *name, struct err *e)
{
	struct prof_line line = { .func = name, .file = "" };

	return prof_location(p, 0, 0, &line, 1, e);
}

static int add_holding(struct prof *p, const struct holdings *x, const uint32_t *locs, size_t i,
		       struct err *e)
{
	const int64_t values[] = { (int64_t)x->all.at[i].objects, (int64_t)x->all.at[i].bytes };
	uint32_t stack[HOLDINGS_DEPTH + 1];
	size_t n = 0;

	for (; i; i = x->all.at[i].parent) {
		BUG_ON(n == ARRAY_LEN(stack));
		stack[n++] = locs[i];
	}
	return prof_sample(p, stack, n, values, NULL, 0, e);
}

static int add_garbage(struct prof *p, const struct dumpgraph *g, struct err *e)
{
	const struct objects *o = &g->heap.objects;
	uint64_t reached = heapgraph_retained(&g->heap, g->heap.program);
	int64_t values[] = { 0, (int64_t)(o->bytes - reached) };
	struct objects_walk walk = {};
	struct object at;
	uint32_t loc;
	int id;

	while (objects_next(o, &walk, &at)) {
		spill_turn(at.index);
		values[0] += !heapgraph_reached(&g->heap, heapgraph_thing_of(&g->heap, &at));
	}
	if (!values[0])
		return 0;
	id = location(p,
		      g->whole ? "(garbage that was not collected yet)" :
				 "(held by what comes after the damage, or garbage)",
		      e);
	loc = (uint32_t)id;
	return id < 0 ? id : prof_sample(p, &loc, 1, values, NULL, 0, e);
}

static int add_holdings(struct prof *p, const struct holdings *x, struct err *e)
{
	CLEANUP(freep) uint32_t *locs = calloc(x->all.n, sizeof(*locs));
	int ret = 0;

	if (!locs)
		return err_set(e, -ENOMEM, "no memory for a profile");
	for (size_t i = 1; !ret && i < x->all.n; i++) {
		int id = location(p, strtab_get(x->heap->names, x->all.at[i].name), e);

		if (id < 0)
			return id;
		locs[i] = (uint32_t)id;
		if (x->all.at[i].objects)
			ret = add_holding(p, x, locs, i, e);
	}
	/* What hangs under the program itself had no room for a holding. */
	if (!ret && x->all.at[0].objects) {
		int id = location(p, "(others)", e);

		locs[0] = (uint32_t)id;
		ret = id < 0 ? id :
			       prof_sample(p, locs, 1,
					   (const int64_t[]){ (int64_t)x->all.at[0].objects,
							      (int64_t)x->all.at[0].bytes },
					   NULL, 0, e);
	}
	return ret;
}

static int add_header(struct prof *p, const struct holdings *x, const struct dumpgraph *g,
		      struct err *e)
{
	int ret = prof_add_type(p, "inuse_objects", "count", e);

	if (!ret)
		ret = prof_add_type(p, "inuse_space", "bytes", e);
	if (!ret)
		ret = prof_set_period(p, "space", "bytes", 1, e);
	if (!ret)
		ret = prof_comment(p, e,
				   "who holds what: a frame with all below it is what could be "
				   "freed if the things of that name there were gone");
	if (!ret && !g->whole)
		ret = prof_comment(p, e,
				   "the dump is damaged or cut: holders and objects are "
				   "missing, and others may look like garbage");
	if (!ret && x->squeezed)
		ret = prof_comment(p, e,
				   "%llu things have no frame of their own, and count to what "
				   "holds them: there are too many different ones",
				   (unsigned long long)x->squeezed);
	prof_set_kind(p, "holders");
	if (g->whole && g->memstats.last_gc <= INT64_MAX)
		prof_set_time(p, (int64_t)g->memstats.last_gc, 0);
	return ret;
}

int heap_holders_profile(const struct holdings *x, const struct dumpgraph *g, struct prof **out,
			 struct err *e)
{
	CLEANUP(prof_freep) struct prof *p = NULL;
	int ret = prof_new(&p, e);

	if (!ret)
		ret = add_header(p, x, g, e);
	if (!ret)
		ret = add_holdings(p, x, e);
	if (!ret)
		ret = add_garbage(p, g, e);
	if (!ret)
		*out = TAKE(p);
	return ret;
}

/* ---- a graph ---- */

/* A holding has no more than the one above it, and a higher index: so that one is chosen, too. */
static int by_bytes(const void *a, const void *b, void *arg)
{
	const struct holdings *x = arg;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;

	if (x->all.at[i].bytes != x->all.at[k].bytes)
		return x->all.at[i].bytes < x->all.at[k].bytes ? 1 : -1;
	return (i > k) - (i < k);
}

static void dot_holding(const struct holdings *x, uint32_t i, FILE *f)
{
	const struct holding *k = &x->all.at[i];
	double share = x->all.at[0].bytes ? (double)k->bytes / (double)x->all.at[0].bytes : 0;
	char label[1200], bytes[BYTES_TEXT], attributes[64];

	snprintf(label, sizeof(label), "%s\nretains %s, %.1f%%\n%llu %s\n",
		 strtab_get(x->heap->names, k->name), bytes_text(k->bytes, bytes), 100 * share,
		 (unsigned long long)k->objects, one_or(k->objects, "object", "objects"));
	snprintf(attributes, sizeof(attributes), "style=filled, fillcolor=\"0.1 %.2f 1.0\"", share);
	dot_node(f, i, label, attributes);
	if (i)
		dot_edge(f, k->parent, i, "", "");
}

int heap_holders_dot(const struct holdings *x, FILE *f, struct err *e)
{
	CLEANUP(freep) uint32_t *order = calloc(x->all.n, sizeof(*order));

	if (!order)
		return err_set(e, -ENOMEM, "no memory for a graph");
	for (size_t i = 0; i < x->all.n; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, x->all.n, sizeof(*order), by_bytes, (void *)x);
	dot_begin(f, "Who holds most: each box is what could be freed if it were gone");
	for (size_t i = 0; i < x->all.n && i < DOT_BOXES && x->all.at[order[i]].bytes; i++)
		dot_holding(x, order[i], f);
	dot_end(f);
	return 0;
}
