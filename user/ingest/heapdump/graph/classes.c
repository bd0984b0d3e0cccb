/*
 * user/ingest/heapdump/graph/classes.c - who allocates objects of each class, as far as the runtime sampled
 * allocations.
 */
#include "ingest/heapdump/graph/classes.h"

#include "base/limits.h"

struct pass {
	struct classes *c;
	struct dumpgraph *g;
	struct heapdump *d;
	struct map sites;   /* by bucket: the name of the function that allocates */
	struct map sampled; /* by class and site: objects */
};

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

	if (r->kind == HEAPDUMP_MEMPROF)
		room = bucket(x, &r->memprof);
	else if (r->kind == HEAPDUMP_SAMPLE)
		room = sample(x, &r->sample);
	return room ? 0 : err_set(e, -ENOMEM, "no memory for allocation sites");
}

int dumpclasses_read(struct classes *c, struct dumpgraph *g, struct heapdump *d, struct err *e)
{
	struct pass x = { .c = c, .g = g, .d = d };
	struct heapdump_record r;
	int ret;

	*c = g->classes;
	g->classes = (struct classes){};
	if (!g->holders_off)
		return 0;
	ret = heapdump_seek(d, g->holders_off, e);
	while (!ret && !(ret = heapdump_next(d, &r, e)) && r.kind)
		ret = record(&x, &r, e);
	map_fini(&x.sites);
	map_fini(&x.sampled);
	return dumpgraph_damaged(g, d, ret, e);
}
