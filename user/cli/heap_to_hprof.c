/* user/cli/heap_to_hprof.c - brings records of a dump into the order of HPROF files. */
#include "cli/heap_to_hprof.h"

#include "base/cleanup.h"
#include "base/limits.h"

enum { CHUNK = 1 << 16 };

struct conversion {
	struct heap_to_hprof *to;
	struct heap_hprof *w;
	struct heapdump *d;
	const struct objects *objects;
	/* Allocation samples: a second reader, which is where the objects are. */
	struct heapdump *samples;
	uint64_t samples_off; /* of the first record; 0: none */
	uint64_t index;	      /* of its object; UINT64_MAX: no more samples */
	uint64_t site;
	uint64_t objects_put, bytes_put;
};

static void conversion_fini(struct conversion *x)
{
	heap_hprof_freep(&x->w);
	heapdump_freep(&x->samples);
}

/* ---- before the heap ---- */

/* Of an object in which the dump breaks off what came before counts. */
static int look(struct conversion *x, const struct object *o, struct err *e)
{
	struct heapdump_field f;
	int ret, damage;

	heap_hprof_look(x->w, o);
	while ((damage = heapdump_field(x->d, &f, e)) > 0)
		heap_hprof_look_pointer(x->w, f.offset);
	ret = damage && damage != -EBADMSG ? damage : heap_hprof_looked(x->w, e);
	return ret ? ret : damage;
}

/* All records of objects; the dump was read before, so damage is known. */
static int each_object(struct conversion *x,
		       int (*fn)(struct conversion *x, const struct heapdump_record *r,
				 const struct object *o, struct err *e),
		       struct err *e)
{
	const struct dumpgraph *g = x->to->graph;
	uint64_t end = g->objects_end > g->holders_off ? g->objects_end : g->holders_off;
	struct objects_follow follow = {};
	struct heapdump_record r;
	struct object o;
	int ret = heapdump_rewind(x->d, e);

	while (!ret && !(ret = heapdump_next(x->d, &r, e)) && r.kind && r.off < end)
		if (r.kind == HEAPDUMP_OBJECT &&
		    objects_follow(x->objects, &follow, r.object.addr, r.object.contents.len, &o) &&
		    objects_leads_to(x->objects, &o))
			ret = fn(x, &r, &o, e);
	return dumpgraph_damaged(x->to->graph, x->d, ret, e);
}

static int look_at(struct conversion *x, const struct heapdump_record *r, const struct object *o,
		   struct err *e)
{
	(void)r;
	return heap_hprof_must_look(x->w, o) ? look(x, o, e) : 0;
}

static int site(struct conversion *x, const struct heapdump_memprof *m, struct err *e)
{
	struct heap_hprof_line lines[LIMIT_BUCKET_STACK];

	for (size_t i = 0; i < m->nlines && i < ARRAY_LEN(lines); i++)
		lines[i] = (struct heap_hprof_line){ .func = m->lines[i].func.at,
						     .nfunc = m->lines[i].func.len,
						     .file = m->lines[i].file.at,
						     .nfile = m->lines[i].file.len,
						     .line = m->lines[i].line };
	return heap_hprof_site(x->w, m->bucket, lines, m->nlines, e);
}

/* Stops at the first sample, which comes after all sites. */
static int read_sites(struct conversion *x, struct err *e)
{
	struct heapdump_record r;
	int ret;

	if (!x->to->graph->holders_off)
		return 0;
	ret = heapdump_seek(x->d, x->to->graph->holders_off, e);
	while (!ret && !(ret = heapdump_next(x->d, &r, e)) && r.kind && !x->samples_off) {
		if (r.kind == HEAPDUMP_MEMPROF)
			ret = site(x, &r.memprof, e);
		else if (r.kind == HEAPDUMP_SAMPLE)
			x->samples_off = r.off;
	}
	return dumpgraph_damaged(x->to->graph, x->d, ret, e);
}

static int held(void *arg, uint32_t thing, uint64_t offset, uint64_t addr, struct err *e)
{
	struct conversion *x = arg;

	(void)offset;
	return heap_hprof_held(x->w, thing - x->objects->nnodes, addr, e);
}

/* ---- allocation samples ---- */

/* The next sample whose object is one. Damage ends them; it is known. */
static int next_sample(struct conversion *x, struct err *e)
{
	struct heapdump_record r;
	struct object o;
	int ret;

	while (!(ret = heapdump_next(x->samples, &r, e)) && r.kind) {
		if (r.kind != HEAPDUMP_SAMPLE)
			continue;
		if (!objects_find(x->objects, r.sample.obj, &o) || o.index < x->index) {
			x->to->samples++;
			continue;
		}
		x->index = o.index;
		x->site = r.sample.bucket;
		return 0;
	}
	x->index = UINT64_MAX;
	return dumpgraph_damaged(x->to->graph, x->samples, ret, e);
}

static int open_samples(struct conversion *x, struct err *e)
{
	struct heapdump_record params;
	int ret;

	if (!x->samples_off) {
		x->index = UINT64_MAX;
		return 0;
	}
	ret = heapdump_open(x->to->fd, &x->samples, e);
	if (!ret)
		ret = heapdump_next(x->samples, &params, e);
	if (!ret)
		ret = heapdump_seek(x->samples, x->samples_off, e);
	return ret ? ret : next_sample(x, e);
}

/*
 * Where an object was allocated, or 0. The runtime writes objects and samples in the same order: both
 * by spans, and by address within a span. Source: dumpobjs() and dumpmemprof() of
 * runtime/heapdump.go, Go 1.4 to 1.27.
 */
static int sample_of(struct conversion *x, const struct object *o, uint64_t *bucket, struct err *e)
{
	int ret = 0;

	*bucket = 0;
	/* Of several small objects in one block of the allocator the first one tells. */
	while (!ret && x->index < o->index)
		ret = next_sample(x, e);
	if (!ret && x->index == o->index)
		*bucket = x->site;
	return ret;
}

/* ---- objects ---- */

static int put_contents(struct conversion *x, const struct heapdump_contents *c, uint32_t n,
			struct err *e)
{
	const uint8_t *window = heapdump_window(x->d, c);
	uint8_t chunk[CHUNK];

	if (window) {
		heap_hprof_bytes(x->w, window, n);
		return 0;
	}
	for (uint32_t done = 0; done < n;) {
		uint32_t step = n - done < CHUNK ? n - done : CHUNK;
		int ret = heapdump_bytes(x->d, c->off + done, chunk, step, e);

		if (ret)
			return ret == -EBADMSG ? -EIO : ret;
		heap_hprof_bytes(x->w, chunk, step);
		done += step;
	}
	return 0;
}

static int put_object(struct conversion *x, const struct heapdump_record *r, const struct object *o,
		      struct err *e)
{
	struct heapdump_record same;
	struct heapdump_field f;
	uint64_t bucket = 0;
	uint32_t bytes;
	int ret = 0;

	if (heap_hprof_must_look(x->w, o)) {
		ret = look(x, o, e);
		if (!ret || ret == -EBADMSG)
			ret = heapdump_seek(x->d, r->off, e);
		if (!ret)
			ret = heapdump_next(x->d, &same, e);
	}
	if (!ret)
		ret = sample_of(x, o, &bucket, e);
	if (!ret)
		ret = heap_hprof_object(x->w, o, bucket, e);
	if (ret)
		return ret;
	x->objects_put++;
	x->bytes_put += o->size;
	while ((ret = heapdump_field(x->d, &f, e)) > 0)
		heap_hprof_pointer(x->w, f.offset, f.addr);
	/* What was begun is ended even where the dump is damaged: its file is not. */
	bytes = heap_hprof_object_end(x->w);
	return bytes ? put_contents(x, &r->object.contents, bytes, e) : ret;
}

/* What was found in the first pass must be there. Of objects that overlap some are left out. */
static int check_totals(const struct conversion *x, struct err *e)
{
	uint64_t n = x->objects->n, bytes = x->objects->bytes;
	struct objects_walk walk = {};
	struct object o;

	while (x->objects->overlap && objects_next(x->objects, &walk, &o))
		if (!objects_leads_to(x->objects, &o)) {
			n--;
			bytes -= o.size;
		}
	if (x->objects_put == n && x->bytes_put == bytes)
		return 0;
	return err_set(
		e, -EIO,
		"the dump changed while it was read: of %llu objects with %llu bytes, %llu with "
		"%llu are left",
		(unsigned long long)n, (unsigned long long)bytes,
		(unsigned long long)x->objects_put, (unsigned long long)x->bytes_put);
}

int heap_to_hprof(void *arg, FILE *f, struct err *e)
{
	struct heap_to_hprof *to = arg;
	CLEANUP(conversion_fini)
	struct conversion x = { .to = to, .d = to->dump, .objects = &to->graph->heap.objects };
	int ret = heap_hprof_new(f, &to->graph->heap, to->classes, &to->opts, &x.w, e);

	if (!ret && heap_hprof_wants_looks(x.w))
		ret = each_object(&x, look_at, e);
	if (!ret)
		ret = read_sites(&x, e);
	if (!ret)
		ret = heap_hprof_roots(x.w, e);
	if (!ret)
		ret = dumpgraph_held(to->graph, to->dump, held, &x, e);
	if (!ret)
		ret = heap_hprof_classes(x.w, e);
	if (!ret)
		ret = dumpgraph_held(to->graph, to->dump, held, &x, e);
	if (!ret)
		ret = heap_hprof_objects(x.w, e);
	if (!ret)
		ret = open_samples(&x, e);
	if (!ret)
		ret = each_object(&x, put_object, e);
	if (!ret)
		ret = check_totals(&x, e);
	return ret ? ret : heap_hprof_end(x.w, &to->losses, e);
}
