/*
 * tests/fuzz/fuzz_rtgor.c - the bytes are the memory: flags, allglen, allgptr, then goroutines,
 * labels and stacks, which are unwound with rules made of the pcs.
 */
#include "go/runtime/rtgor.h"
#include "go/runtime/unwind.h"

enum { BASE = 0x1000, HEAD = 16, FIELD_STEP = 8 };

struct image {
	struct mem mem; /* first */
	const uint8_t *bytes;
	size_t len;
	bool arm64, moody;
	unsigned given;
	unwind_cookies out;
};

static int image_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct image *i = (struct image *)m;

	if (addr < BASE || addr - BASE > i->len || n > i->len - (addr - BASE))
		return err_set(e, -EFAULT, "no memory at 0x%llx", (unsigned long long)addr);
	memcpy(buf, i->bytes + (addr - BASE), n);
	return 0;
}

static int look(void *arg, uint64_t pc, bool trap, enum func_id callee, struct unwind_frame *out)
{
	(void)arg;
	(void)trap;
	(void)callee;
	if (pc > 1 << 20)
		return -ENOENT;
	*out = (struct unwind_frame){ .delta = (int32_t)(pc & 0x78) - (pc & 0x80 ? 64 : 0),
				      .flags = pc >> 8 & 7,
				      .id = (enum func_id)(pc >> 11 & 15) };
	return 0;
}

static int each(void *arg, const struct rtgor *g, struct err *e)
{
	struct image *i = arg;
	enum unwind_end end;
	struct unwind u = { .arch = i->arm64 ? ARCH_ARM64 : ARCH_AMD64,
			    .minor = 27,
			    .pc = g->pc,
			    .sp = g->sp,
			    .syscall = g->syscall,
			    .stack = g->stack,
			    .n = g->nstack,
			    .look = look };
	size_t text = 0;
	int ret;

	for (uint32_t k = 0; k < g->labels.n; k++) {
		const struct rtlabel *l = &g->text->at.at[g->labels.first + k];

		text += strlen(g->text->text.at + l->key) + strlen(g->text->text.at + l->value);
	}
	i->out.n = 0;
	ret = g->what == RTGOR_SAVED ? unwind_stack(&u, &i->out, &end, e) : 0;
	i->given++;
	return ret ? ret : i->moody && !g->last ? -EAGAIN : text > 1u << 30 ? -EINVAL : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const enum layout_field fields[] = {
		LAYOUT_g_stack_lo,  LAYOUT_g_stack_hi,	  LAYOUT_g_sched_sp,	 LAYOUT_g_sched_pc,
		LAYOUT_g_syscallsp, LAYOUT_g_syscallpc,	  LAYOUT_g_atomicstatus, LAYOUT_g_goid,
		LAYOUT_g_labels,    LAYOUT_g_waitsince,	  LAYOUT_g_waitreason,	 LAYOUT_g_gopc,
		LAYOUT_g_startpc,   LAYOUT_g_trackingseq,
	};
	struct rtgor_vars v = { .allglen = BASE, .allgptr = BASE + 8 };
	struct image i = { .mem.read = image_read, .bytes = data + 1, .len = size - 1 };
	struct rtgors_seen seen;
	struct golayout l = { 0 };
	struct err e;

	if (size < 1 + HEAD)
		return 0;
	i.arm64 = data[0] & 1;
	i.moody = data[0] & 2;
	v.minor = data[0] & 4 ? 18 : 27;
	for (size_t k = 0; k < LAYOUT_COUNT; k++)
		l.off[k] = -1;
	for (size_t k = 0; k < ARRAY_LEN(fields); k++)
		l.off[fields[k]] = (int32_t)k * FIELD_STEP;
	(void)rtgors_read(&i.mem, &l, &v, each, &i, &seen, &e);
	vec_fini(&i.out);
	return 0;
}
