/* user/go/image/tables/inltree.c - inlined calls at one pc. */
#include "go/image/tables/inltree.h"

#include "base/cur.h"

enum {
	PCDATA_INLTREE_INDEX = 2,
	FUNCDATA_INLTREE = 3,
	ENTRY_116 = 20, /* {i16 parent, u8 id, -, i32 file, line, name, parentPc} */
	ENTRY_120 = 16, /* {u8 id, -, i32 name, parentPc, startLine} */
	ENTRIES_MAX = 1 << 20,
};

int inltree_init(struct inltree *tree, const struct pclntab *t, const struct pclnfunc *f,
		 struct err *e)
{
	int ret;

	*tree = (struct inltree){ .t = t, .f = f };
	ret = pclntab_funcdata(t, f, FUNCDATA_INLTREE, &tree->addr, e);
	if (!ret && tree->addr)
		ret = pclntab_pcdata(t, f, PCDATA_INLTREE_INDEX, &tree->index_tab, e);
	return ret;
}

static void parse_entry(const struct inltree *tree, struct cur *c, struct inlcall *out,
			uint32_t *parent)
{
	out->start_line = 0;
	if (tree->t->shape == PCLN_120) {
		cur_u8(c, "funcID", &out->raw_id);
		cur_skip(c, "pad", 3);
	} else {
		cur_skip(c, "parent", 2);
		cur_u8(c, "funcID", &out->raw_id);
		cur_skip(c, "pad, file, line", 9);
	}
	cur_u32(c, "name", &out->name);
	cur_u32(c, "parentPc", parent);
	if (tree->t->shape == PCLN_120)
		cur_u32(c, "startLine", &out->start_line);
}

int inltree_at(const struct inltree *tree, uint64_t pc, struct inlcall *out, struct err *e)
{
	size_t size = tree->t->shape == PCLN_120 ? ENTRY_120 : ENTRY_116;
	uint8_t buf[ENTRY_116];
	struct inlcall call;
	struct cur c;
	uint32_t parent;
	int32_t idx;
	int ret;

	if (!tree->addr)
		return 0;
	ret = pclntab_value(tree->t, tree->f, tree->index_tab, pc, &idx, e);
	if (ret || idx < 0)
		return ret;
	if (idx >= ENTRIES_MAX)
		return err_set(e, -EBADMSG, "inlined call %d at 0x%llx", idx,
			       (unsigned long long)pc);
	ret = mem_read(tree->t->m, tree->addr + (uint64_t)idx * size, buf, size, e);
	if (ret)
		return err_wrap(e, ret, "inlined call %d at 0x%llx", idx, (unsigned long long)pc);
	c = cur_of("inlinedCall", buf, size);
	parse_entry(tree, &c, &call, &parent);
	if (c.bad)
		return cur_fail(&c, e);
	if (parent >= tree->f->end - tree->f->entry)
		return err_set(e, -EBADMSG, "inlined call %d: caller at +0x%x leaves the function",
			       idx, parent);
	call.parent_pc = tree->f->entry + parent;
	*out = call;
	return 1;
}
