/* tests/fuzz/fuzz_typing.c - the bytes are a heap dump, whose objects get types of a made-up program. */
#include <sys/mman.h>

#include "base/cleanup.h"
#include "ingest/typing/bytypes.h"
#include "mktyped.h"

/* Classes of all objects agree with the totals, whatever was put where. */
static void look(const struct mktyped *m)
{
	uint64_t objects = 0, bytes = m->c.other_bytes;

	for (size_t i = 0; i < m->c.all.n; i++) {
		const struct heap_class *c = &m->c.all.at[i];

		objects += c->count;
		bytes += i ? c->count * c->size : 0;
		BUG_ON(c->first + c->nfields > m->c.fields.n);
	}
	BUG_ON(objects != m->g.heap.objects.n || bytes != m->g.heap.objects.bytes);
}

static void ask_which(struct mktyped *m)
{
	uint64_t bias;

	for (int moves = 0; moves < 2; moves++) {
		m->program.moves = moves;
		bytypes_check(&m->ix, m->g.heap.names, &m->program, &bias, NULL);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd CLEANUP(closep) = memfd_create("fuzz_typing", MFD_CLOEXEC);
	struct mktypes how = { .version = 5, .swiss = size & 1 };
	CLEANUP(mktyped_fini) struct mktyped m;
	struct err e = { "" };

	mktyped_stack_max = size & 2 ? 3 : 0;
	m = (struct mktyped){};
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		return 0;
	if (!mktyped_read(&m, fd, &how, &e)) {
		look(&m);
		ask_which(&m);
	} else {
		BUG_ON(!e.msg[0]);
	}
	return 0;
}
