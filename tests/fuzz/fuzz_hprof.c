/*
 * tests/fuzz/fuzz_hprof.c - the bytes are a heap dump: whatever it is like, its HPROF file is right,
 * and has the same objects and pointers. The length decides whether contents are wanted.
 */
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/hash.h"
#include "cli/heapdump/heap_to_hprof.h"
#include "ingest/heapdump/graph/classes.h"
#include "readhprof.h"

struct run {
	int fd;
	struct heapdump *dump;
	struct dumpgraph graph;
	struct classes classes;
	bool contents;
	/* What is there, and a sum of it that does not depend on the order. */
	uint64_t objects, bytes, pointers, sum;
};

static void run_fini(struct run *r)
{
	classes_fini(&r->classes);
	dumpgraph_fini(&r->graph);
	heapdump_freep(&r->dump);
	closep(&r->fd);
}

static int read_dump(struct run *r, struct err *e)
{
	int ret = heapdump_open(r->fd, &r->dump, e);

	if (!ret)
		ret = dumpgraph_read_objects(&r->graph, r->dump, e);
	return ret ? ret : dumpclasses_read(&r->classes, &r->graph, r->dump, e);
}

static int add_pointers(struct run *r, uint64_t from, struct err *e)
{
	struct heapdump_field f;
	struct object to;
	int ret;

	while ((ret = heapdump_field(r->dump, &f, e)) > 0) {
		if (!objects_find(&r->graph.heap.objects, f.addr, &to) || !f.addr || !to.addr)
			continue;
		r->pointers++;
		r->sum += hash_pair(from, to.addr);
	}
	return ret;
}

/* As the graph itself tells objects from other records. */
static void count_dump(struct run *r)
{
	struct heapdump_record at;
	struct object o;
	struct err e;
	struct objects_follow follow = {};
	int ret = heapdump_rewind(r->dump, &e);

	while (!ret && !(ret = heapdump_next(r->dump, &at, &e)) && at.kind) {
		if (at.kind != HEAPDUMP_OBJECT ||
		    !objects_follow(&r->graph.heap.objects, &follow, at.object.addr,
				    at.object.contents.len, &o) ||
		    !objects_leads_to(&r->graph.heap.objects, &o) || !o.addr)
			continue;
		r->objects++;
		r->bytes += o.size < INT32_MAX ? o.size : INT32_MAX;
		ret = add_pointers(r, o.addr, &e);
	}
}

static void compare(struct run *r, const struct readhprof *h, const struct heap_to_hprof *x)
{
	uint64_t objects = 0, bytes = 0, pointers = 0, sum = 0;

	for (size_t i = 0; i < h->objects.n; i++) {
		const struct rh_object *o = &h->objects.at[i];

		if (!rh_is_go(h, o))
			continue;
		objects++;
		bytes += rh_class(h, o->class)->size;
		for (uint32_t k = 0; k < o->n / 8; k++) {
			uint64_t to = rh_value(o, k);

			if (!to || !rh_object(h, to)->class)
				continue;
			pointers++;
			sum += hash_pair(o->id, to);
		}
	}
	BUG_ON(objects != r->objects);
	BUG_ON(bytes != r->bytes);
	BUG_ON(pointers + x->losses.pointers != r->pointers);
	BUG_ON(!x->losses.pointers && sum != r->sum);
}

static void convert(struct run *r)
{
	struct heap_to_hprof x = { .dump = r->dump,
				   .fd = r->fd,
				   .graph = &r->graph,
				   .classes = &r->classes,
				   .opts = { .contents = r->contents } };
	struct readhprof h;
	struct err e = { "" };
	char *bytes = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&bytes, &n);
	int ret = heap_to_hprof(&x, f, &e);

	fclose(f);
	if (!ret) {
		if (!readhprof(&h, (uint8_t *)bytes, n))
			fprintf(stderr, "%s\n", h.why);
		BUG_ON(h.why[0]);
		count_dump(r);
		compare(r, &h, &x);
		readhprof_fini(&h);
	}
	BUG_ON(ret && !e.msg[0]);
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(run_fini) struct run r = { .fd = memfd_create("dump", 0), .contents = size & 1 };
	struct err e;

	if (r.fd < 0 || write(r.fd, data, size) != (ssize_t)size)
		return 0;
	if (!read_dump(&r, &e))
		convert(&r);
	return 0;
}
