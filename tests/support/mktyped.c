/* tests/support/mktyped.c - see mktyped.h. */
#include "mktyped.h"

#include <sys/mman.h>

#include "ingest/dumpclasses.h"
#include "ingest/dumpslots.h"

uint32_t mktyped_stack_max;

static int read_program(struct mktyped *m, const struct mktypes *how, struct err *e)
{
	uint8_t file[MKTYPES_MAX];
	size_t n = mktypes(how, file);
	int fd CLEANUP(closep) = memfd_create("program", MFD_CLOEXEC);
	VEC(uint64_t) pcs = { 0 };
	struct gotypes_want want = { .data = MKTYPES_DATA,
				     .edata = MKTYPES_DATA_END,
				     .bss = MKTYPES_BSS,
				     .ebss = MKTYPES_BSS_END,
				     .types = MKTYPES_TYPES,
				     .etypes = MKTYPES_TYPES_END,
				     .functions = true };
	int ret;

	BUG_ON(fd < 0 || write(fd, file, n) != (ssize_t)n);
	for (size_t i = 0; i < m->ix.pcs.n; i++) {
		uint64_t *pc = vec_add(&pcs, 1 << 20);

		if (pc)
			*pc = m->ix.pcs.at[i] - MKTYPED_BIAS;
	}
	want.pcs = pcs.at;
	want.npcs = pcs.n;
	ret = gotypes_read_here(fd, &want, &m->t, e);
	vec_fini(&pcs);
	m->program.t = m->t;
	return ret;
}

int mktyped_read(struct mktyped *m, int fd, const struct mktypes *how, struct err *e)
{
	int ret;

	*m = (struct mktyped){};
	ret = heapdump_open(fd, &m->d, e);
	if (!ret)
		ret = dumpgraph_read(&m->g, m->d, e);
	if (!ret)
		ret = dumpclasses_read(&m->c, &m->g, m->d, e);
	if (!ret)
		ret = typing_index_make(&m->ix, &m->g, m->d, e);
	if (!ret)
		ret = read_program(m, how, e);
	if (ret)
		return ret;
	m->x.c = &m->c;
	m->x.g = &m->g;
	m->x.t = m->t;
	m->x.ix = &m->ix;
	m->x.program = &m->program;
	m->x.bias = MKTYPED_BIAS;
	m->x.headers = dumpslots_go(heapdump_params(m->d)) >= 22;
	m->x.stack_max = mktyped_stack_max;
	ret = flow_init(&m->x, e);
	return ret ? ret : roots_flow(&m->x, e);
}

void mktyped_fini(struct mktyped *m)
{
	if (m->x.t)
		flow_fini(&m->x);
	typing_index_fini(&m->ix);
	classes_fini(&m->c);
	dumpgraph_fini(&m->g);
	heapdump_freep(&m->d);
	gotypes_freep(&m->t);
}

static const struct heap_class *class_at(const struct mktyped *m, uint64_t addr)
{
	struct object o;

	return objects_find(&m->g.heap.objects, addr, &o) ? &m->c.all.at[m->c.of[o.index]] : NULL;
}

const char *mktyped_name(const struct mktyped *m, uint64_t addr)
{
	const struct heap_class *c = class_at(m, addr);

	return c ? strtab_get(m->c.names, c->name) : "";
}

enum heap_certainty mktyped_certainty(const struct mktyped *m, uint64_t addr)
{
	const struct heap_class *c = class_at(m, addr);

	return c ? c->certainty : HEAP_LAYOUT;
}
