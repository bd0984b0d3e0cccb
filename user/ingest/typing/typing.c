/* user/ingest/typing/typing.c - a dump and its program, put together. */
#include "ingest/typing/typing.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "ingest/heapdump/graph/slots.h"
#include "ingest/typing/bytypes.h"
#include "ingest/typing/roots.h"

struct typing_job {
	struct dumpgraph *g;
	struct heapdump *d;
	int exe;
	const char *path;
	struct typing_program program;
	struct gotypes *t;
	struct typing_index ix;
	struct flow x;
	struct heap_variables variables;
};

/* What is needed until objects have types. */
static void flow_end(struct typing_job *j)
{
	flow_fini(&j->x);
	typing_index_fini(&j->ix);
	j->x = (struct flow){ .bias = j->x.bias };
	j->ix = (struct typing_index){};
}

static void job_free(struct typing_job *j)
{
	flow_end(j);
	gotypes_freep(&j->t);
	typing_program_fini(&j->program);
	free(j);
}

/* ---- is it the program? ---- */

static int check_dump(const struct typing_job *j, struct err *e)
{
	const struct heapdump_params *p = heapdump_params(j->d);
	const char *arch = j->program.arch;

	if (heapdump_version(j->d) < 4)
		return err_set(e, -ENOTSUP,
			       "--exe: a dump of Go 1.3 says itself of which types its objects "
			       "are, and its programs are not read");
	if (p->ptrsize != j->program.word || p->big_endian != j->program.big_endian ||
	    (p->arch.len && (p->arch.len != strlen(arch) || memcmp(p->arch.at, arch, p->arch.len))))
		return err_set(e, -EINVAL, "%s is a program for %s, the dump is of one for %.*s",
			       j->path, arch, (int)p->arch.len, p->arch.at);
	return 0;
}

static int check_segment(const struct typing_job *j, const char *name,
			 const struct heapdump_segment *s, uint64_t begin, uint64_t end,
			 struct err *e)
{
	if (s->contents.len == end - begin && s->addr - begin == j->x.bias)
		return 0;
	return err_set(e, -EINVAL,
		       "%s is not the program that wrote the dump: its %s segment is at 0x%llx + "
		       "%llu, the dump's at 0x%llx + %llu",
		       j->path, name, (unsigned long long)begin, (unsigned long long)(end - begin),
		       (unsigned long long)s->addr, (unsigned long long)s->contents.len);
}

/* The same build has its segments and functions at the same places. */
static int check_segments(struct typing_job *j, struct err *e)
{
	const struct gomodule *m = &j->program.module;
	int ret;

	j->x.bias = j->ix.data.addr - m->data;
	ret = check_segment(j, "data", &j->ix.data, m->data, m->edata, e);
	if (ret || !j->ix.has_bss)
		return ret;
	return check_segment(j, "bss", &j->ix.bss, m->bss, m->ebss, e);
}

static int check_functions(struct typing_job *j, struct err *e)
{
	for (size_t i = 0; i < j->ix.funcs.n; i++) {
		const struct typing_func *f = &j->ix.funcs.at[i];
		const char *want = strtab_get(j->g->heap.names, f->name), *have;

		if (!f->entry)
			continue;
		have = typing_program_function(&j->program, f->entry - j->x.bias);
		if (!have || strcmp(have, want))
			return err_set(e, -EINVAL,
				       "%s is not the program that wrote the dump: %s begins at "
				       "0x%llx in the dump, where the program has %s",
				       j->path, want, (unsigned long long)f->entry,
				       have ? have : "no function that begins");
	}
	return 0;
}

/* ---- its types ---- */

static int read_types(struct typing_job *j, struct err *e)
{
	const struct gomodule *m = &j->program.module;
	CLEANUP(freep) uint64_t *pcs = calloc(j->ix.pcs.n + 1, sizeof(*pcs));
	struct gotypes_want want = { .word = j->program.word,
				     .pcs = pcs,
				     .npcs = j->ix.pcs.n,
				     .data = m->data,
				     .edata = m->edata,
				     .bss = m->bss,
				     .ebss = m->ebss,
				     .types = m->types,
				     .etypes = m->etypes,
				     .functions = typing_program_wants_functions(&j->program) };
	struct err why;
	int ret;

	if (!pcs)
		return err_set(e, -ENOMEM, "no memory for frames");
	for (size_t i = 0; i < j->ix.pcs.n; i++)
		pcs[i] = j->ix.pcs.at[i] - j->x.bias;
	ret = gotypes_read(j->exe, &want, &j->t, &why);
	if (ret)
		return err_set(e, ret, "--exe %s: %s", j->path, why.msg);
	j->program.t = j->t;
	return ret;
}

/* ---- which program it is ---- */

static int know_by_data(struct typing_job *j, struct err *e)
{
	int ret = check_segments(j, e);

	return ret ? ret : read_types(j, e);
}

/*
 * The dump breaks off before its segments. The types are read before it is known where the program was
 * loaded, and again for its frames where that was elsewhere.
 */
static int know_by_types(struct typing_job *j, int *n, struct err *e)
{
	int ret = read_types(j, e);

	if (ret)
		return ret;
	*n = bytypes_check(&j->ix, j->g->heap.names, &j->program, &j->x.bias, e);
	if (*n < 0)
		return err_wrap(e, *n, "%s is not the program that wrote the dump", j->path);
	if (!j->x.bias || !j->ix.pcs.n)
		return 0;
	gotypes_freep(&j->t);
	return read_types(j, e);
}

static int flow(struct typing_job *j, struct classes *c, struct err *e)
{
	int ret;

	j->x.c = c;
	j->x.g = j->g;
	j->x.t = j->t;
	j->x.ix = &j->ix;
	j->x.program = &j->program;
	j->x.big_endian = j->program.big_endian;
	j->x.headers = dumpslots_headers(heapdump_params(j->d));
	ret = flow_init(&j->x, e);
	return ret ? ret : roots_flow(&j->x, e);
}

/* ---- global variables ---- */

static bool find_variable(void *arg, uint64_t addr, struct heap_variable *out)
{
	const struct typing_job *j = arg;
	const struct govar *v = gotypes_var(j->t, addr - j->x.bias);

	if (v)
		*out = (struct heap_variable){ v->addr + j->x.bias, v->size,
					       gotypes_text(j->t, v->name) };
	return v;
}

static void variable_part(void *arg, uint64_t addr, char *to, size_t cap)
{
	const struct typing_job *j = arg;
	const struct govar *v = gotypes_var(j->t, addr - j->x.bias);
	struct shapes names = { .t = j->t };

	*to = 0;
	if (v && v->type < j->t->ntypes)
		shapes_path(&names, v->type, addr - j->x.bias - v->addr, to, cap);
}

/* ---- all of it ---- */

static int open_job(struct typing_job *j, struct typing *t, struct err *e)
{
	int ret = typing_program_open(j->exe, j->path, &j->program, e);

	if (!ret)
		ret = check_dump(j, e);
	j->program.names_long = !dumpslots_go(heapdump_params(j->d));
	if (!ret)
		ret = typing_index_make(&j->ix, j->g, j->d, e);
	if (!ret)
		ret = j->ix.has_data ? know_by_data(j, e) : know_by_types(j, &t->by_types, e);
	if (ret)
		return ret;
	t->dwarf = j->t->dwarf;
	t->unchecked = !j->ix.has_data && t->by_types < BYTYPES_FEWEST;
	return t->unchecked ? 0 : check_functions(j, e);
}

int typing_open(struct typing *t, struct dumpgraph *g, struct heapdump *d, int exe,
		const char *path, struct err *e)
{
	struct typing_job *j = calloc(1, sizeof(*j));
	int ret;

	*t = (struct typing){ .job = j };
	if (!j)
		return err_set(e, -ENOMEM, "no memory for types");
	j->g = g;
	j->d = d;
	j->exe = exe;
	j->path = path;
	j->variables = (struct heap_variables){ j, find_variable, variable_part };
	ret = open_job(j, t, e);
	if (!ret && !t->unchecked)
		g->heap.variables = &j->variables;
	return ret;
}

int typing_flow(struct typing *t, struct classes *c, struct err *e)
{
	struct typing_job *j = t->job;
	int ret = t->unchecked ? 0 : flow(j, c, e);

	t->unknown = j->x.unknown;
	t->lost = j->x.lost;
	t->cut = j->x.shapes.cut;
	flow_end(j);
	return ret;
}

void typing_fini(struct typing *t)
{
	if (t->job)
		job_free(t->job);
	*t = (struct typing){};
}
