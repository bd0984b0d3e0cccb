/*
 * tests/support/heapedges_main.c - what is in a heap dump, for comparison with what an HPROF file of
 * it tells: the lines of hprof.py, and "retained ADDRESS BYTES" of each object.
 *
 *	heapedges FILE [contents]
 */
#include <fcntl.h>
#include <inttypes.h>

#include "heapgraph/describe.h"
#include "ingest/heapdump/graph/classes.h"

/* Fields of one class of HPROF; what comes after them is in its superclass. */
enum { PART = 32767 };

struct facts {
	struct heapdump *d;
	struct dumpgraph g;
	struct classes c;
	struct strtab *sites;
	struct map site_of;   /* by bucket */
	struct map bucket_of; /* by object index */
	uint32_t objects;
	bool contents;
};

static struct err e;

static int check(int ret)
{
	if (ret < 0) {
		fprintf(stderr, "heapedges: %s\n", e.msg);
		exit(1);
	}
	return ret;
}

/* As hprof.py: no blanks inside a word. */
static const char *word(const char *s)
{
	static char to[2][1 << 16];
	static int which;
	char *at = to[which ^= 1];

	snprintf(at, sizeof(to[0]), "%s", s);
	for (char *p = at; *p; p++)
		if (*p == ' ')
			*p = '_';
	return at;
}

static void site(struct facts *x, const struct heapdump_memprof *m)
{
	static char text[1 << 20];
	size_t n = 0;

	for (size_t i = 0; i < m->nlines; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%.*s(%.*s:%" PRIu64 ")",
				      i ? "," : "", (int)m->lines[i].func.len, m->lines[i].func.at,
				      (int)m->lines[i].file.len, m->lines[i].file.at,
				      m->lines[i].line);
	if (!n)
		n = (size_t)snprintf(text, sizeof(text), "-");
	map_put(&x->site_of, m->bucket, strtab_put(x->sites, text, n));
}

static void sample(struct facts *x, const struct heapdump_sample *s)
{
	struct object o;
	uint64_t first;

	if (objects_find(&x->g.heap.objects, s->obj, &o) &&
	    !map_get(&x->bucket_of, o.index, &first))
		map_put(&x->bucket_of, o.index, s->bucket);
}

static const char *site_of(const struct facts *x, uint32_t object)
{
	uint64_t bucket, id;

	if (!map_get(&x->bucket_of, object, &bucket) || !map_get(&x->site_of, bucket, &id))
		return "-";
	return strtab_get(x->sites, (uint32_t)id);
}

static void put_bytes(struct facts *x, const struct heapdump_object *o)
{
	uint8_t *bytes = malloc(o->contents.len + 1);

	check(bytes ? heapdump_bytes(x->d, o->contents.off, bytes, o->contents.len, &e) : -1);
	printf("bytes %" PRIx64 " ", o->addr);
	for (uint64_t i = 0; i < o->contents.len; i++)
		printf("%02x", bytes[i]);
	printf("\n");
	free(bytes);
}

static void put_pointers(struct facts *x, const struct object *o)
{
	struct heapdump_field f;
	uint64_t n = 0, from = 0;
	struct object to;

	for (; check(heapdump_field(x->d, &f, &e)); n++) {
		if (n % PART == 0)
			from = n ? f.offset : 0;
		if (!objects_find(&x->g.heap.objects, f.addr, &to))
			continue;
		printf("edge %" PRIx64 " ", o->addr);
		if (n >= PART)
			printf("+%" PRIu64 ":", n / PART);
		printf("0x%02" PRIx64 " %" PRIx64 "\n", f.offset - from, to.addr);
	}
}

static void object(struct facts *x, const struct heapdump_object *r)
{
	struct object o;
	const struct heapgraph *h = &x->g.heap;

	if (!objects_find(&h->objects, r->addr, &o) || o.index != x->objects)
		return;
	x->objects++;
	printf("object %" PRIx64 " %" PRIu64 " %s %s\n", o.addr, o.size,
	       word(strtab_get(h->names, x->c.all.at[x->c.of[o.index]].name)), site_of(x, o.index));
	printf("retained %" PRIx64 " %" PRIu64 "\n", o.addr,
	       heapgraph_retained(h, heapgraph_thing_of(h, &o)));
	if (!o.node && x->contents)
		put_bytes(x, r);
	put_pointers(x, &o);
}

static int held(void *arg, uint32_t thing, uint64_t offset, uint64_t addr, struct err *err)
{
	static const char *const statics[] = { [HOLDER_GLOBAL] = "(globals)",
					       [HOLDER_FINALIZER] = "(finalizers)",
					       [HOLDER_QUEUED] = "(finalizers_to_run)",
					       [HOLDER_OTHER] = "(other_roots)" };
	struct facts *x = arg;
	const struct heapgraph *h = &x->g.heap;
	const struct holder *r = heapgraph_holder_of(h, thing);
	char text[DESCRIBE_BYTES];
	struct object to;

	(void)offset, (void)err;
	if (!r || !objects_find(&h->objects, addr, &to))
		return 0;
	if (r->kind == HOLDER_FRAME || r->kind == HOLDER_GOROUTINE) {
		describe_thing(h, &x->c,
			       heapgraph_thing_of_holder(h, r->kind == HOLDER_FRAME ?
								    r->up :
								    thing - h->objects.nnodes),
			       text);
		printf("root frame %s/%s %" PRIx64 "\n", word(text),
		       r->kind == HOLDER_FRAME ? strtab_get(h->names, r->name) : "-", to.addr);
		return 0;
	}
	snprintf(text, sizeof(text), "0x%" PRIx64, r->addr);
	printf("root %s %s %" PRIx64 "\n", statics[r->kind],
	       *strtab_get(h->names, r->name) ? word(strtab_get(h->names, r->name)) : text,
	       to.addr);
	return 0;
}

static void threads(const struct facts *x)
{
	const struct heapgraph *h = &x->g.heap;
	char text[DESCRIBE_BYTES];

	for (uint32_t i = 0; i < h->holders.n; i++) {
		uint32_t from = i;

		if (h->holders.at[i].kind != HOLDER_GOROUTINE)
			continue;
		describe_thing(h, &x->c, heapgraph_thing_of_holder(h, i), text);
		printf("thread %s", word(text));
		while (from && h->holders.at[from - 1].kind == HOLDER_FRAME &&
		       h->holders.at[from - 1].up == i)
			from--;
		for (; from < i; from++)
			printf(" %s", strtab_get(h->names, h->holders.at[from].name));
		printf("\n");
	}
}

static void each_record(struct facts *x, bool objects)
{
	struct heapdump_record r;

	check(heapdump_rewind(x->d, &e));
	while (!check(heapdump_next(x->d, &r, &e)) && r.kind) {
		if (r.kind == HEAPDUMP_OBJECT && objects)
			object(x, &r.object);
		else if (r.kind == HEAPDUMP_MEMPROF && !objects)
			site(x, &r.memprof);
		else if (r.kind == HEAPDUMP_SAMPLE && !objects)
			sample(x, &r.sample);
	}
}

int main(int argc, char **argv)
{
	struct facts x = { .contents = argc > 2 };
	int fd = open(argc > 1 ? argv[1] : "", O_RDONLY | O_CLOEXEC);

	check(heapdump_open(fd, &x.d, &e));
	check(dumpgraph_read(&x.g, x.d, &e));
	check(dumpclasses_read(&x.c, &x.g, x.d, &e));
	check(strtab_new(&x.sites, &e));
	each_record(&x, false);
	each_record(&x, true);
	check(dumpgraph_pointers(&x.g, x.d, held, &x, &e));
	threads(&x);
	map_fini(&x.site_of);
	map_fini(&x.bucket_of);
	strtab_free(x.sites);
	classes_fini(&x.c);
	dumpgraph_fini(&x.g);
	heapdump_free(x.d);
	return 0;
}
