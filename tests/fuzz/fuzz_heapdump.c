/* tests/fuzz/fuzz_heapdump.c - the bytes are a heap dump, read as a pipe, and for its graph. */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "heapgraph/describe.h"
#include "ingest/heapdump/graph/classes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of the sanitizers: bytes that are allocated now. */
size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

/* What reading may take: windows and names, and so much for each byte of the dump. */
enum { MEMORY_FIXED = 16 << 20, MEMORY_TIMES = 256, PIPE_BYTES = 65536, THINGS = 256 };

static size_t allocated(void)
{
	return __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes() :
							 0;
}

/* The classes of all objects, and what is known of each thing, agree with the totals. */
static void look(const struct dumpgraph *g, const struct classes *c)
{
	CLEANUP(freep) struct class_sum *sums = NULL;
	CLEANUP(freep) struct goroutine_group *groups = NULL;
	const struct heapgraph *h = &g->heap;
	char text[DESCRIBE_BYTES];
	uint64_t objects = 0, bytes = 0;
	size_t n;

	if (!classes_sums(c, &sums, &n, NULL)) {
		for (size_t i = 0; i < n; i++) {
			objects += sums[i].objects;
			bytes += sums[i].bytes;
		}
		BUG_ON(objects != h->objects.n || bytes != h->objects.bytes);
	}
	BUG_ON(heapgraph_retained(h, h->program) > h->objects.bytes);
	for (uint32_t i = 0; i < heapgraph_things(h) && i < THINGS; i++) {
		describe_thing(h, c, i, text);
		BUG_ON(heapgraph_retained(h, i) > h->objects.bytes);
	}
	(void)goroutine_groups(h, &groups, &n, NULL);
}

static void read_graph(int fd, size_t size)
{
	CLEANUP(heapdump_freep) struct heapdump *d = NULL;
	CLEANUP(dumpgraph_fini) struct dumpgraph g = {};
	CLEANUP(classes_fini) struct classes c = {};
	size_t before = allocated();
	struct err e = { "" };
	int ret = heapdump_open(fd, &d, &e);

	if (!ret)
		ret = dumpgraph_read(&g, d, &e);
	if (!ret)
		ret = dumpclasses_read(&c, &g, d, &e);
	BUG_ON(allocated() > before + MEMORY_FIXED + MEMORY_TIMES * size);
	if (!ret)
		look(&g, &c);
	else
		BUG_ON(!e.msg[0]);
}

/* Records and fields, where nothing can be read twice. */
static void read_pipe(const uint8_t *data, size_t size)
{
	CLEANUP(heapdump_freep) struct heapdump *d = NULL;
	struct heapdump_record r = {};
	struct heapdump_field f;
	uint64_t off = 0;
	int fds[2], ret;

	if (size > PIPE_BYTES || pipe2(fds, O_CLOEXEC))
		return;
	if (size && write(fds[1], data, size) != (ssize_t)size)
		abort();
	close(fds[1]);
	ret = heapdump_open(fds[0], &d, NULL);
	while (!ret && !(ret = heapdump_next(d, &r, NULL)) && r.kind) {
		BUG_ON(r.off < off || heapdump_offset(d) > size);
		off = r.off;
		while ((ret = heapdump_field(d, &f, NULL)) > 0)
			;
	}
	close(fds[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd CLEANUP(closep) = memfd_create("fuzz_heapdump", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	read_graph(fd, size);
	read_pipe(data, size);
	return 0;
}
