/* user/cli/heapdump/heap_to_hprof.c - brings records of a dump into the order of HPROF files. */
#include "cli/heapdump/heap_to_hprof.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/limits.h"

/* HELPED_MIN: objects from which on a second thread is worth its while */
enum { CHUNK = 1 << 16, LEAVES = 64, HELPED_MIN = 1 << 16 };
_Static_assert((int)HEAPDUMP_LAYOUT_MAX <= (int)HEAP_HPROF_WHOLE_MAX, "pointers of a layout");

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
	uint64_t samples_lost; /* without an object, or not in the objects' order */
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

/* Does an object of a usual layout fit its class? The layout keeps for which it does. */
static bool fits(struct conversion *x, struct heapdump_layout *l, uint16_t class, uint64_t size)
{
	if (l->tag != class + 1u && heap_hprof_fits(x->w, class, size, l->offset, l->n))
		l->tag = class + 1u;
	return l->tag == class + 1u;
}

static int look_at(struct conversion *x, const struct heapdump_record *r, const struct object *o,
		   struct err *e)
{
	struct heapdump_layout *l = r->object.layout;

	if (!heap_hprof_must_look(x->w, o) ||
	    (l && fits(x, l, x->to->classes->of[o->index], o->size)))
		return 0;
	return look(x, o, e);
}

/* One that has no pointers. */
static int look_at_leaf(struct conversion *x, const struct object *o, struct err *e)
{
	if (!heap_hprof_must_look(x->w, o))
		return 0;
	heap_hprof_look(x->w, o);
	return heap_hprof_looked(x->w, e);
}

static int look_at_leaves(struct conversion *x, size_t run, struct err *e)
{
	struct objects_walk walk;
	struct object o;
	int ret = 0;

	objects_walk_run(x->objects, &walk, run);
	for (uint32_t n = objects_in_run(x->objects, run); !ret && n; n--) {
		objects_next(x->objects, &walk, &o);
		ret = look_at_leaf(x, &o, e);
	}
	return ret;
}

/* ---- all objects ---- */

/* What is done with an object whose record was read, and with all of a run that has no pointers. */
struct visit {
	int (*object)(struct conversion *x, const struct heapdump_record *r, const struct object *o,
		      struct err *e);
	int (*leaves)(struct conversion *x, size_t run, struct err *e);
};

/* Nothing needs to be read of them: Go has objects without pointers in pages of their own. */
static bool are_leaves(const struct conversion *x, size_t run)
{
	return !objects_nodes_in_run(x->objects, run) && !x->objects->overlap &&
	       !x->to->opts.contents && heapdump_version(x->d) >= 5 &&
	       x->to->graph->run_offs.n == x->objects->runs.n;
}

/* 1: the records of objects are over, before its last one: the dump changed. */
static int each_of_run(struct conversion *x, size_t run, const struct visit *v, struct err *e)
{
	const struct dumpgraph *g = x->to->graph;
	uint64_t end = g->objects_end > g->holders_off ? g->objects_end : g->holders_off;
	uint32_t n = objects_in_run(x->objects, run);
	struct heapdump_record r;
	struct objects_walk walk;
	struct object o;
	int ret = 0;

	objects_walk_run(x->objects, &walk, run);
	while (!ret && n--) {
		objects_next(x->objects, &walk, &o);
		do
			ret = heapdump_next(x->d, &r, e);
		while (!ret && r.kind && r.off < end &&
		       (r.kind != HEAPDUMP_OBJECT || r.object.addr != o.addr ||
			r.object.contents.len != o.size));
		if (!ret && (!r.kind || r.off >= end))
			return 1;
		if (!ret && objects_leads_to(x->objects, &o))
			ret = v->object(x, &r, &o, e);
	}
	return ret ? ret : heap_hprof_check(x->w, e);
}

/* Up to runs before @to of which nothing needs to be read. */
static int go_to(struct conversion *x, size_t run, size_t to, struct err *e)
{
	const uint64_t *offs = x->to->graph->run_offs.at;
	size_t end = run + 1;

	while (end < to && !are_leaves(x, end))
		end++;
	return heapdump_seek_until(x->d, offs[run], end < x->objects->runs.n ? offs[end] : 0, e);
}

/* @from .. @to: runs. @behind: the reader is not at the first of them. */
static int each_in(struct conversion *x, size_t from, size_t to, bool behind, const struct visit *v,
		   struct err *e)
{
	int ret = 0;

	for (size_t run = from; !ret && run < to; run++) {
		if (are_leaves(x, run)) {
			ret = v->leaves(x, run, e);
			behind = true;
			continue;
		}
		if (behind)
			ret = go_to(x, run, to, e);
		behind = false;
		if (!ret)
			ret = each_of_run(x, run, v, e);
	}
	/* The dump was read before, so damage is known. */
	return ret > 0 ? 0 : dumpgraph_damaged(x->to->graph, x->d, ret, e);
}

static int each_object(struct conversion *x, const struct visit *v, struct err *e)
{
	struct heapdump_record params;
	int ret = heapdump_rewind(x->d, e);

	if (!ret)
		ret = heapdump_next(x->d, &params, e);
	return ret ? dumpgraph_damaged(x->to->graph, x->d, ret, e) :
		     each_in(x, 0, x->objects->runs.n, false, v, e);
}

/* ---- sites ---- */

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

	return heap_hprof_held(x->w, thing - x->objects->nnodes, offset, addr, e);
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
			x->samples_lost++;
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

/* False: it takes the long way. */
static bool put_whole(struct conversion *x, const struct heapdump_record *r, const struct object *o,
		      struct err *e, int *ret)
{
	struct heapdump_layout *l = r->object.layout;
	uint64_t addrs[HEAPDUMP_LAYOUT_MAX], bucket;

	if (!l || !o->addr || (!l->n && x->to->opts.contents) ||
	    !fits(x, l, x->to->classes->of[o->index], o->size))
		return false;
	*ret = sample_of(x, o, &bucket, e);
	if (*ret)
		return true;
	heapdump_pointers(x->d, &r->object, addrs);
	heap_hprof_whole(x->w, o, bucket, addrs, l->n);
	x->objects_put++;
	x->bytes_put += o->size;
	return true;
}

static int put_object(struct conversion *x, const struct heapdump_record *r, const struct object *o,
		      struct err *e)
{
	struct heapdump_record same;
	struct heapdump_field f;
	uint64_t bucket = 0;
	uint32_t bytes;
	int ret = 0;

	if (put_whole(x, r, o, e, &ret))
		return ret;
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

/* One without pointers, of which nothing was read. */
static int put_leaf(struct conversion *x, const struct object *o, struct err *e)
{
	uint64_t bucket = 0;
	int ret = look_at_leaf(x, o, e);

	if (!ret)
		ret = sample_of(x, o, &bucket, e);
	if (!ret)
		ret = heap_hprof_object(x->w, o, bucket, e);
	if (!ret)
		heap_hprof_object_end(x->w);
	return ret;
}

/* Leaves of one class that were not sampled go side by side. */
struct leaves {
	uint64_t addrs[LEAVES];
	size_t n;
	uint16_t class; /* 0: none */
};

static void put_some(struct conversion *x, struct leaves *l)
{
	heap_hprof_leaves(x->w, l->class, l->addrs, l->n);
	l->n = 0;
}

static bool add_leaf(struct conversion *x, struct leaves *l, const struct object *o)
{
	uint16_t class = x->to->classes->of[o->index];

	if (l->n && (class != l->class || l->n == LEAVES))
		put_some(x, l);
	if (o->index >= x->index || !o->addr || o->size > INT32_MAX)
		return false;
	if (!class || (class != l->class && !heap_hprof_fits(x->w, class, o->size, NULL, 0)))
		return false;
	l->class = class;
	l->addrs[l->n++] = o->addr;
	return true;
}

static int put_leaves(struct conversion *x, size_t run, struct err *e)
{
	uint32_t n = objects_in_run(x->objects, run);
	struct leaves l = {};
	struct objects_walk walk;
	struct object o;
	int ret = 0;

	objects_walk_run(x->objects, &walk, run);
	for (uint32_t i = 0; !ret && i < n; i++) {
		objects_next(x->objects, &walk, &o);
		if (add_leaf(x, &l, &o))
			continue;
		put_some(x, &l);
		ret = put_leaf(x, &o, e);
	}
	put_some(x, &l);
	x->objects_put += n;
	x->bytes_put += n * x->objects->runs.at[run].size;
	return ret ? ret : heap_hprof_check(x->w, e);
}

static const struct visit put_all = { put_object, put_leaves };

/* ---- two threads ---- */

/*
 * Runs of objects that one thread tells. To write takes as long as to read and to look up, so the threads do the
 * same: while one writes its section the other one makes the next.
 */
struct section {
	size_t from, to;
	uint64_t number;
};

struct sections {
	pthread_mutex_t lock;
	size_t next; /* run */
	uint64_t n;  /* that were taken */
	bool failed;
};

/* The next one that nobody has taken, which fits into a segment if it has more than one run. */
static bool take(const struct conversion *x, struct sections *all, struct section *s)
{
	const struct objects *o = x->objects;
	uint64_t room, word = heapdump_params(x->d)->ptrsize, left = HEAP_HPROF_SECTION_BYTES;
	bool some;

	pthread_mutex_lock(&all->lock);
	s->from = s->to = all->next;
	some = !all->failed && s->from < o->runs.n;
	for (; some && s->to < o->runs.n; s->to++, left -= room < left ? room : left) {
		room = heap_hprof_room(x->w, objects_in_run(o, s->to),
				       objects_nodes_in_run(o, s->to), o->runs.at[s->to].size,
				       word);
		if (room > left && s->to > s->from)
			break;
	}
	all->next = s->to;
	s->number = all->n;
	all->n += some;
	pthread_mutex_unlock(&all->lock);
	return some;
}

static int put_sections(struct conversion *x, struct sections *all, struct err *e)
{
	struct section s;
	int ret = 0;

	while (!ret && take(x, all, &s)) {
		heap_hprof_section(x->w, s.number);
		ret = each_in(x, s.from, s.to, true, &put_all, e);
		heap_hprof_section_end(x->w);
	}
	if (!ret)
		return 0;
	pthread_mutex_lock(&all->lock);
	all->failed = true;
	pthread_mutex_unlock(&all->lock);
	return ret;
}

/* The other thread: a writer and readers of its own. */
struct helper {
	struct conversion x;
	struct sections *all;
	pthread_t thread;
	bool started;
	int ret;
	struct err e;
};

static void helper_fini(struct helper *h)
{
	heapdump_freep(&h->x.d);
	conversion_fini(&h->x);
}

static void *help(void *arg)
{
	struct helper *h = arg;

	h->ret = put_sections(&h->x, h->all, &h->e);
	return NULL;
}

/* Signals are for the thread that waits for them, but for faults of this one. */
static void start(struct helper *h)
{
	sigset_t others, before;

	sigfillset(&others);
	sigdelset(&others, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &others, &before);
	h->started = !pthread_create(&h->thread, NULL, help, h);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static int open_helper(struct helper *h, const struct conversion *x, struct sections *all,
		       struct err *e)
{
	struct heapdump_record params;
	int ret;

	h->all = all;
	h->x = (struct conversion){ .to = x->to,
				    .objects = x->objects,
				    .samples_off = x->samples_off };
	ret = heap_hprof_beside(x->w, &h->x.w, e);
	if (!ret)
		ret = heapdump_open(x->to->fd, &h->x.d, e);
	if (!ret)
		ret = heapdump_next(h->x.d, &params, e);
	return ret ? ret : open_samples(&h->x, e);
}

static int join(struct conversion *x, struct helper *h, struct err *e)
{
	if (!h->started)
		return 0;
	pthread_join(h->thread, NULL);
	heap_hprof_join(x->w, h->x.w);
	x->objects_put += h->x.objects_put;
	x->bytes_put += h->x.bytes_put;
	/* Both read the samples from the first one on, and one of them up to the last. */
	if (h->x.samples_lost > x->samples_lost)
		x->samples_lost = h->x.samples_lost;
	return h->ret ? err_set(e, h->ret, "%s", h->e.msg) : 0;
}

/* Who waits for a pipe must hear of Ctrl-C, and has nothing to gain. */
static bool is_regular(FILE *f)
{
	struct stat st;

	return fileno(f) >= 0 && !fstat(fileno(f), &st) && S_ISREG(st.st_mode);
}

static int put_in_sections(struct conversion *x, FILE *f, struct err *e)
{
	CLEANUP(helper_fini) struct helper h = {};
	struct sections all = { .lock = PTHREAD_MUTEX_INITIALIZER };
	bool two = is_regular(f) && x->objects->n > HELPED_MIN;
	struct err why;
	int ret = two ? open_helper(&h, x, &all, e) : 0, joined;

	if (ret)
		return ret;
	heap_hprof_sections(x->w);
	if (two)
		start(&h);
	ret = put_sections(x, &all, e);
	joined = join(x, &h, &why);
	return ret || !joined ? ret : err_set(e, joined, "%s", why.msg);
}

/* Runs of dumps since Go 1.5 can be read from where they begin: what is before tells nothing of them. */
static int put_objects(struct conversion *x, FILE *f, struct err *e)
{
	bool apart = heapdump_version(x->d) >= 5 && x->to->graph->run_offs.n == x->objects->runs.n;

	return apart ? put_in_sections(x, f, e) : each_object(x, &put_all, e);
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
		ret = each_object(&x, &(struct visit){ look_at, look_at_leaves }, e);
	if (!ret)
		ret = read_sites(&x, e);
	if (!ret)
		ret = dumpgraph_held(to->graph, to->dump, held, &x, e);
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
		ret = put_objects(&x, f, e);
	to->samples = x.samples_lost;
	if (!ret)
		ret = check_totals(&x, e);
	return ret ? ret : heap_hprof_end(x.w, &to->losses, e);
}
