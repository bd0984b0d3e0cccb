/*
 * tests/support/mktyped.h - a heap dump of the program of mktypes.h, and the types that flow in it.
 *
 * It is no file of its own, since that would bring all that it needs into every test.
 */
#ifndef TESTS_MKTYPED_H
#define TESTS_MKTYPED_H

#include <sys/mman.h>

#include "ingest/heapdump/graph/classes.h"
#include "ingest/heapdump/graph/slots.h"
#include "ingest/typing/roots.h"
#include "mktypes.h"

/* The program was loaded so much higher than its file says. */
#define MKTYPED_BIAS 0x10000000ull

struct mktyped {
	struct gotypes *t;
	struct heapdump *d;
	struct dumpgraph g;
	struct classes c;
	struct typing_index ix;
	struct typing_program program;
	struct flow x;
};

/* How many objects the stack has room for; 0: as many as usual. */
static uint32_t mktyped_stack_max;
static uint32_t mktyped_parts_max; /* the same of parts */

static inline int mktyped_program(struct mktyped *m, const struct mktypes *how, struct err *e)
{
	uint8_t file[MKTYPES_MAX];
	size_t n = mktypes(how, file);
	int fd CLEANUP(closep) = memfd_create("program", MFD_CLOEXEC);
	VEC(uint64_t) pcs = { 0 };
	struct gotypes_want want = { .word = 8,
				     .data = MKTYPES_DATA,
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

/* Reads the dump in @fd (borrowed), and types its objects. */
static inline int mktyped_read(struct mktyped *m, int fd, const struct mktypes *how, struct err *e)
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
		ret = mktyped_program(m, how, e);
	if (ret)
		return ret;
	m->x.c = &m->c;
	m->x.g = &m->g;
	m->x.t = m->t;
	m->x.ix = &m->ix;
	m->x.program = &m->program;
	m->x.bias = MKTYPED_BIAS;
	m->x.big_endian = heapdump_params(m->d)->big_endian;
	m->x.headers = dumpslots_headers(heapdump_params(m->d));
	m->x.stack_max = mktyped_stack_max;
	m->x.parts.max = mktyped_parts_max;
	ret = flow_init(&m->x, e);
	return ret ? ret : roots_flow(&m->x, e);
}

static inline void mktyped_fini(struct mktyped *m)
{
	if (m->x.t)
		flow_fini(&m->x);
	typing_index_fini(&m->ix);
	classes_fini(&m->c);
	dumpgraph_fini(&m->g);
	heapdump_freep(&m->d);
	gotypes_freep(&m->t);
}

static inline const struct heap_class *mktyped_class(const struct mktyped *m, uint64_t addr)
{
	struct object o;

	return objects_find(&m->g.heap.objects, addr, &o) ? &m->c.all.at[m->c.of[o.index]] : NULL;
}

/* What the object is that an address lies in; "" when there is none. */
static inline const char *mktyped_name(const struct mktyped *m, uint64_t addr)
{
	const struct heap_class *c = mktyped_class(m, addr);

	return c ? strtab_get(m->c.names, c->name) : "";
}

static inline enum heap_certainty mktyped_certainty(const struct mktyped *m, uint64_t addr)
{
	const struct heap_class *c = mktyped_class(m, addr);

	return c ? c->certainty : HEAP_LAYOUT;
}

#endif
