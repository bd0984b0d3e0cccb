/* user/go/image/gobin_frames.c - from a pc to its function, its logical frames and its sp delta. */
#include "go/image/gobin_priv.h"
#include "go/image/tables/inltree.h"

static struct gofunc gofunc_of(const struct gobin *b, const struct pclnfunc *f)
{
	return (struct gofunc){
		.entry = f->entry,
		.end = f->end,
		.func_addr = f->addr,
		.id = pclntab_id(&b->pcln, f->raw_id),
		.flags = b->info.minor == 16 ? 0 : f->flags,
	};
}

/* Where what is found for this pc is kept. NULL: there is no memory. */
static struct found_func *found_for(struct gobin *b, uint64_t pc)
{
	if (!b->found)
		b->found = calloc(FOUND_FUNCS, sizeof(*b->found));
	return b->found ? b->found + (pc ^ pc >> 8 ^ pc >> 16) % FOUND_FUNCS : NULL;
}

int gobin_func_at(struct gobin *b, uint64_t pc, struct gofunc *out, struct err *e)
{
	struct found_func *found = found_for(b, pc);
	struct pclnfunc f;
	int ret;

	if (found && found->pc == pc && found->f.end) {
		*out = found->f;
		return 0;
	}
	ret = pclntab_find(&b->pcln, pc, &f, e);
	if (ret)
		return ret;
	*out = gofunc_of(b, &f);
	if (found)
		*found = (struct found_func){ .pc = pc, .f = *out };
	return 0;
}

int gobin_func_index(struct gobin *b, size_t i, struct gofunc *out, struct err *e)
{
	struct pclnfunc f;
	int ret;

	if (i >= b->pcln.nfunc)
		return err_set(e, -ENOENT, "function %zu of %llu", i,
			       (unsigned long long)b->pcln.nfunc);
	ret = pclntab_func(&b->pcln, i, &f, e);
	if (!ret)
		*out = gofunc_of(b, &f);
	return ret;
}

/* The scratch string, interned. NULL when there is no memory, or no more of it for this file. */
static const char *keep(struct gobin *b)
{
	uint32_t id = strtab_bytes(b->strings) < b->most_bytes ? strtab_puts(b->strings, b->name) :
								 UINT32_MAX;

	return id == UINT32_MAX ? NULL : strtab_get(b->strings, id);
}

static int name_of(struct gobin *b, uint32_t off, bool inlined, const char **out, struct err *e)
{
	int ret = pclntab_name(&b->pcln, off, inlined, b->name, e);

	if (ret)
		return ret;
	*out = keep(b);
	return *out ? 0 : err_set(e, -ENOMEM, "no memory for a function name");
}

const char *gobin_func_name(struct gobin *b, const struct gofunc *f)
{
	struct pclnfunc rec = { 0 };
	const char *name;

	if (pclntab_record(&b->pcln, f->func_addr, &rec, NULL) ||
	    name_of(b, rec.name, false, &name, NULL))
		return NULL;
	return name;
}

int gobin_spdelta(struct gobin *b, uint64_t pc, int32_t *delta, struct err *e)
{
	struct pclnfunc f;
	int32_t val;
	int ret;

	ret = pclntab_find(&b->pcln, pc, &f, e);
	if (!ret)
		ret = pclntab_value(&b->pcln, &f, f.pcsp, pc, &val, e);
	if (ret)
		return ret;
	if (val == -1)
		return err_set(e, -ENOENT, "no sp delta at 0x%llx", (unsigned long long)pc);
	if (val & 7)
		return err_set(e, -EBADMSG, "sp delta %d at 0x%llx", val, (unsigned long long)pc);
	*delta = val;
	return 0;
}

/* Fills in what inlined calls and the physical function have in common. */
static int fill_frame(struct gobin *b, const struct pclnfunc *f, uint64_t pc,
		      const struct inlcall *call, struct goframe *out, struct err *e)
{
	int ret;

	*out = (struct goframe){
		.start_line = call->start_line,
		.id = pclntab_id(&b->pcln, call->raw_id),
		.parent_pc = call->parent_pc,
	};
	ret = name_of(b, call->name, call->parent_pc != 0, &out->func, e);
	if (!ret)
		ret = pclntab_fileline(&b->pcln, f, pc, b->name, &out->line, e);
	if (ret)
		return ret;
	out->file = keep(b);
	return out->file ? 0 : err_set(e, -ENOMEM, "no memory for a file name");
}

/* Did the walk from @pc pass @parent before? @n frames lie between. */
static bool been_at(uint64_t parent, uint64_t pc, const struct goframe *f, size_t n)
{
	bool seen = parent == pc;

	for (size_t i = 0; i < n && !seen; i++)
		seen = f[i].parent_pc == parent;
	return seen;
}

int gobin_frames(struct gobin *b, uint64_t pc, struct goframe *out, size_t cap, struct err *e)
{
	struct pclnfunc f;
	struct inltree tree;
	uint64_t at = pc;
	int ret;

	ret = pclntab_find(&b->pcln, pc, &f, e);
	if (!ret)
		ret = inltree_init(&tree, &b->pcln, &f, e);
	if (ret)
		return ret;
	for (size_t n = 0; n < cap; n++) {
		struct inlcall call = { .name = f.name,
					.start_line = f.start_line,
					.raw_id = f.raw_id };
		int inlined = inltree_at(&tree, at, &call, e);

		if (inlined < 0)
			return inlined;
		if (n >= LIMIT_INLINE_DEPTH)
			return err_set(e, -E2BIG, "more than %d inlined calls at 0x%llx",
				       LIMIT_INLINE_DEPTH, (unsigned long long)pc);
		ret = fill_frame(b, &f, at, &call, &out[n], e);
		if (ret)
			return ret;
		if (!inlined)
			return (int)n + 1;
		/*
		 * Compilers write such cycles: a call that is inlined at the very entry of an
		 * init function and is its own caller. The runtime would walk it for ever.
		 */
		if (been_at(call.parent_pc, pc, out, n))
			tree.addr = 0;
		at = call.parent_pc;
	}
	return (int)cap;
}
