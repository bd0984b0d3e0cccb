/*
 * tests/support/dumpfacts_main.c - prints what the reader makes of a heap dump, for a judge.
 *
 *	dumpfacts FILE
 *
 *	format VERSION BIG_ENDIAN PTRSIZE DRAFT
 *	end OFFSET SIZE WHOLE
 *	records KIND COUNT FIELDS
 *	objects COUNT BYTES, memstats COUNT BYTES, phantoms COUNT, behind COUNT, reached BYTES
 *	layout SIZE COUNT REACHED OFFSET...	objects, those that can be reached, their pointers
 *	goroutine ID STATE FUNC...		from the innermost frame on
 *	global|finalizer|queued|other ADDRESS RETAINED
 */
#include <fcntl.h>
#include <inttypes.h>

#include "base/cleanup.h"
#include "ingest/heapdump/graph/classes.h"

struct facts {
	int fd;
	struct heapdump *d;
	struct dumpgraph g;
	struct classes c;
};

static void facts_fini(struct facts *f)
{
	classes_fini(&f->c);
	dumpgraph_fini(&f->g);
	heapdump_freep(&f->d);
	closep(&f->fd);
}

static int put_records(struct facts *f, struct err *e)
{
	uint64_t records[HEAPDUMP_KINDS] = { 0 }, fields[HEAPDUMP_KINDS] = { 0 };
	struct heapdump_record r;
	struct heapdump_field at;
	int ret = heapdump_rewind(f->d, e);

	while (!ret && !(ret = heapdump_next(f->d, &r, e))) {
		records[r.kind]++;
		if (!r.kind)
			break;
		while ((ret = heapdump_field(f->d, &at, e)) > 0)
			fields[r.kind]++;
	}
	printf("format %u %d %" PRIu64 " %d\n", heapdump_version(f->d),
	       heapdump_params(f->d)->big_endian, heapdump_params(f->d)->ptrsize,
	       heapdump_draft(f->d));
	printf("end %" PRIu64 " %" PRIu64 " %d\n", heapdump_offset(f->d), heapdump_size(f->d),
	       f->g.whole);
	for (unsigned k = 0; k < HEAPDUMP_KINDS; k++)
		if (records[k])
			printf("records %u %" PRIu64 " %" PRIu64 "\n", k, records[k], fields[k]);
	return ret == -EBADMSG ? 0 : ret;
}

static void put_layouts(struct facts *f)
{
	CLEANUP(freep) uint32_t *reached = calloc(f->c.all.n, sizeof(*reached));
	const struct heapgraph *h = &f->g.heap;
	struct objects_walk walk = {};
	struct object o;

	BUG_ON(!reached);
	while (objects_next(&h->objects, &walk, &o))
		reached[f->c.of[o.index]] += heapgraph_reached(h, heapgraph_thing_of(h, &o));
	for (size_t i = 1; i < f->c.all.n; i++) {
		const struct heap_class *c = &f->c.all.at[i];

		printf("layout %" PRIu64 " %u %u", c->size, c->count, reached[i]);
		for (uint32_t k = 0; k < c->nfields; k++)
			printf(" %u", f->c.fields.at[c->first + k].offset);
		printf("\n");
	}
}

static void put_goroutine(const struct heapgraph *h, uint32_t i)
{
	uint32_t frame = i;

	while (frame && h->holders.at[frame - 1].up == i)
		frame--;
	printf("goroutine %" PRIu64 " %u", h->holders.at[i].addr, h->holders.at[i].state);
	for (; frame < i; frame++)
		printf(" %s", strtab_get(h->names, h->holders.at[frame].name));
	printf("\n");
}

static void put_holders(const struct heapgraph *h)
{
	static const char *const names[] = { [HOLDER_GLOBAL] = "global",
					     [HOLDER_FINALIZER] = "finalizer",
					     [HOLDER_QUEUED] = "queued",
					     [HOLDER_OTHER] = "other" };

	for (uint32_t i = 0; i < h->holders.n; i++) {
		const struct holder *r = &h->holders.at[i];

		if (r->kind == HOLDER_GOROUTINE)
			put_goroutine(h, i);
		else if (r->kind != HOLDER_FRAME)
			printf("%s %" PRIu64 " %" PRIu64 "\n", names[r->kind], r->addr,
			       heapgraph_retained(h, heapgraph_thing_of_holder(h, i)));
	}
}

static int facts(const char *path, struct err *e)
{
	CLEANUP(facts_fini) struct facts f = { .fd = open(path, O_RDONLY | O_CLOEXEC) };
	const struct heapgraph *h = &f.g.heap;
	int ret;

	if (f.fd < 0)
		return err_sys(e, "opening it");
	ret = heapdump_open(f.fd, &f.d, e);
	if (!ret)
		ret = dumpgraph_read(&f.g, f.d, e);
	if (!ret)
		ret = dumpclasses_read(&f.c, &f.g, f.d, e);
	if (!ret)
		ret = put_records(&f, e);
	if (ret)
		return ret;
	printf("objects %u %" PRIu64 "\n", h->objects.n, h->objects.bytes);
	printf("memstats %" PRIu64 " %" PRIu64 "\n", f.g.memstats.heap_objects, f.g.memstats.alloc);
	printf("phantoms %" PRIu64 "\n", f.g.phantoms);
	printf("behind %" PRIu64 "\n", f.g.behind);
	printf("reached %" PRIu64 "\n", heapgraph_retained(h, h->program));
	put_layouts(&f);
	put_holders(h);
	if (!f.g.whole)
		printf("damage %s\n", f.g.damage.msg);
	return 0;
}

int main(int argc, char **argv)
{
	struct err e = { "" };

	if (argc != 2 || facts(argv[1], &e)) {
		fprintf(stderr, "dumpfacts: %s\n", e.msg[0] ? e.msg : "usage: dumpfacts FILE");
		return 1;
	}
	return 0;
}
