/*
 * tests/fuzz/fuzz_rtvar.c - the bytes are runtime functions, followed by a process' memory.
 *
 * Byte 0: 1 arm64, 2 with moduledata. Byte 1: the variable. Then functions: witness number (the
 * high bit: a stranger), 4 bytes of distance from ENTRY, 2 bytes of length, code. The remaining
 * bytes are memory at the place where the variable is said to be.
 */
#include "base/cur.h"
#include "go/runtime/vars/rtvar_priv.h"
#include "mkgobin.h"

enum { ENTRY = 0x401000, MEMORY = 0x10000, FUNCS = 16, GATES = 32 };

static const struct gomodule module = {
	.noptrdata = 0x500000,
	.enoptrdata = 0x510000,
	.data = 0x510000,
	.edata = 0x520000,
	.bss = 0x520000,
	.ebss = 0x560000,
	.noptrbss = 0x560000,
	.enoptrbss = 0x5a0000,
};

static void check_place(const struct rtplaces *p, uint64_t addr, uint8_t size)
{
	BUG_ON(!rtplace_ok(p, addr, size, IN_ANY));
}

static void read_one(const struct rtcode *c, const struct rtplaces *p, struct rttally *t,
		     const struct rtvar_def *d, uint8_t who)
{
	struct rtheads h;
	uint64_t addr;
	int gates = 0;

	rttally_hear(t, c, d, p, who & 0x80 ? -1 : who % RTVAR_WITNESSES);
	if (!rtcode_heads(c, p, &h, NULL)) {
		check_place(p, h.mem, 8);
		check_place(p, h.block, 8);
		check_place(p, h.mutex, 8);
		BUG_ON(h.mem == h.block || h.block == h.mutex || h.mutex == h.mem);
	}
	for (size_t i = 0; i < c->n; i++)
		if (c->at[i].mem_write && gates++ < GATES &&
		    !rtcode_gate(c, p, c->at[i].mem_addr, &addr, NULL))
			check_place(p, addr, 1);
}

/* One function; false when there is none left. */
static bool function(struct cur *in, struct arch *a, enum arch_id id, const struct rtplaces *p,
		     struct rttally *t, const struct rtvar_def *d)
{
	struct rtcode c CLEANUP(rtcode_fini) = { 0 };
	const uint8_t *code;
	uint32_t off;
	uint16_t len;
	uint8_t who;

	if (!cur_u8(in, "witness", &who) || !cur_u32(in, "distance", &off) ||
	    !cur_u16(in, "length", &len) || !cur_take(in, "code", len, &code))
		return false;
	if (rtcode_decode(a, id, code, len, ENTRY + (uint64_t)(int64_t)(int32_t)off, &c, NULL))
		return true;
	read_one(&c, p, t, d, who);
	return true;
}

static void look(const uint8_t *data, size_t n)
{
	struct bytemem m = bytemem_of(MEMORY, data, n);
	struct golayout l = { .from = "fuzz" };

	for (size_t i = 0; i < LAYOUT_COUNT; i++)
		l.off[i] = (int32_t)(i * 8);
	l.off[LAYOUT_g_m] = 48;
	l.off[LAYOUT_bucket_typ] = 16;
	for (int v = 0; v < RTVAR_COUNT; v++)
		for (int minor = 16; minor < 28; minor += 3)
			rtvar_plausible(&m.mem, &l, minor, (enum rtvar)v, MEMORY, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arch *a CLEANUP(arch_freep) = NULL;
	struct rttally t CLEANUP(rttally_fini) = { 0 };
	struct cur in = cur_of("functions", data, size);
	struct rtplaces p = { .text = ENTRY, .etext = ENTRY + size };
	const struct rtvar_def *d;
	uint8_t flags, var;
	enum arch_id id;
	uint64_t addr;

	if (!cur_u8(&in, "flags", &flags) || !cur_u8(&in, "variable", &var))
		return 0;
	id = flags & 1 ? ARCH_ARM64 : ARCH_AMD64;
	p.module = flags & 2 ? &module : NULL;
	d = &rtvar_defs[var % RTVAR_COUNT];
	if (arch_open(id, &a, NULL))
		return 0;
	for (int i = 0; i < FUNCS && function(&in, a, id, &p, &t, d); i++)
		;
	if (!rttally_elect(&t, d, &addr, NULL))
		check_place(&p, addr, d->size);
	look(data + size - cur_left(&in), cur_left(&in));
	return 0;
}
