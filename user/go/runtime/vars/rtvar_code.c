/*
 * user/go/runtime/vars/rtvar_code.c - what a runtime function says of the variables that it uses.
 *
 * The code bytes are the target's, so anything may stand there. All loops are bounded by the
 * number of instructions, and an address counts only where moduledata says that variables are.
 */
#include "base/limits.h"
#include "go/runtime/vars/rtvar_priv.h"

enum {
	CANDIDATES = 4096,
	LEAF_INSNS = 4,	 /* at most so far from a case's start to the variable it names */
	CHAIN_INSNS = 3, /* from "not 1" to the comparison with 3 */
	GATE_INSNS = 12, /* from the byte's read to the rate's write */
	TYP_MEM = 1,	 /* runtime.bucketType, mprof.go */
	TYP_MUTEX = 3,
};

bool rtplace_ok(const struct rtplaces *p, uint64_t addr, uint8_t size, uint8_t sections)
{
	const struct gomodule *m = p->module;
	uint64_t align = size < 8 ? size : 8;

	if (addr % align || addr + size < addr)
		return false;
	if (!m || !m->enoptrbss)
		return addr >= p->etext || addr + size <= p->text;
	const struct {
		uint8_t in;
		uint64_t lo, hi;
	} parts[] = { { IN_NOPTRDATA, m->noptrdata, m->enoptrdata },
		      { IN_DATA, m->data, m->edata },
		      { IN_BSS, m->bss, m->ebss },
		      { IN_NOPTRBSS, m->noptrbss, m->enoptrbss } };

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if ((sections & parts[i].in) && addr >= parts[i].lo && addr < parts[i].hi &&
		    size <= parts[i].hi - addr)
			return true;
	return false;
}

/* ---- instructions ----------------------------------------------------------------------------- */

int rtcode_decode(struct arch *a, enum arch_id id, const uint8_t *code, size_t n, uint64_t addr,
		  struct rtcode *out, struct err *e)
{
	VEC(struct insn) v = { 0 };
	struct insn i, *slot;

	for (size_t at = 0; at < n; at += i.len) {
		arch_decode(a, code + at, n - at, addr + at, &i);
		if (i.kind == INSN_BAD) {
			/*
			 * On arm64 instructions are words, so those that the decoder does not
			 * know (LSE atomics) can be skipped.
			 */
			if (id != ARCH_ARM64 || n - at < 4)
				break;
			i.len = 4;
		}
		slot = vec_add(&v, LIMIT_DECODE);
		if (!slot) {
			vec_fini(&v);
			return err_set(e, -ENOMEM, "no memory for the instructions of a function");
		}
		*slot = i;
	}
	*out = (struct rtcode){ .at = v.at, .n = v.n };
	return 0;
}

void rtcode_fini(struct rtcode *c)
{
	free(c->at);
	*c = (struct rtcode){ 0 };
}

/* ---- votes ------------------------------------------------------------------------------------ */

void rttally_fini(struct rttally *t)
{
	vec_fini(&t->c);
}

static struct rtcandidate *candidate(struct rttally *t, uint64_t addr)
{
	struct rtcandidate *c;

	for (size_t i = 0; i < t->c.n; i++)
		if (t->c.at[i].addr == addr)
			return &t->c.at[i];
	c = vec_add(&t->c, CANDIDATES);
	if (c)
		*c = (struct rtcandidate){ .addr = addr };
	else
		t->truncated = true;
	return c;
}

/* How many words an access covers: two when a pair is loaded or stored. */
static unsigned words_of(const struct insn *i)
{
	return i->mem_width == 16 ? 2 : 1;
}

static uint8_t width_of(const struct insn *i)
{
	return i->mem_width == 16 ? 8 : i->mem_width;
}

static bool names_word(const struct rtcode *c, uint64_t addr)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct insn *in = &c->at[i];

		if (in->mem_addr && width_of(in) == 8 && addr >= in->mem_addr &&
		    addr - in->mem_addr < in->mem_width && addr % 8 == 0)
			return true;
	}
	return false;
}

/*
 * The start of the struct of which @addr may be a field: the lowest address nearby whose address
 * is taken.
 */
static uint64_t start_of(const struct rtcode *c, const struct rtvar_def *d, uint64_t addr)
{
	uint64_t start = addr;

	for (size_t i = 0; i < c->n; i++) {
		uint64_t at = c->at[i].mem_addr;

		if (at && !c->at[i].mem_width && at < start && addr - at < d->size)
			start = at;
	}
	return start;
}

static bool counts(const struct rtcode *c, const struct rtvar_def *d, uint64_t addr, uint8_t width)
{
	switch (d->shape) {
	case SHAPE_WORD:
		return width == d->width || (d->by_address && !width);
	case SHAPE_SLICE:
		return width == d->width && names_word(c, addr + 8);
	case SHAPE_STRUCT:
		return !width && start_of(c, d, addr) == addr;
	}
	return false;
}

static void hear_word(struct rttally *t, const struct rtcode *c, const struct rtvar_def *d,
		      uint64_t addr, uint8_t width, int witness)
{
	struct rtcandidate *to;

	if (witness >= 0 && !counts(c, d, addr, width))
		return;
	to = candidate(t, addr);
	if (!to)
		return;
	if (witness < 0)
		to->strange = true;
	else
		to->witnesses |= 1U << witness;
	to->used |= width != 0;
}

void rttally_hear(struct rttally *t, const struct rtcode *c, const struct rtvar_def *d,
		  const struct rtplaces *p, int witness)
{
	for (size_t k = 0; k < c->n; k++) {
		const struct insn *i = &c->at[k];

		for (unsigned w = 0; i->mem_addr && w < words_of(i); w++)
			if (rtplace_ok(p, i->mem_addr + 8 * w, d->size, d->sections))
				hear_word(t, c, d, i->mem_addr + 8 * w, width_of(i), witness);
	}
}

static bool eligible(const struct rtcandidate *c, const struct rtvar_def *d)
{
	return !c->strange && (c->used || d->shape == SHAPE_STRUCT) &&
	       (c->witnesses & d->must) == d->must;
}

int rttally_elect(const struct rttally *t, const struct rtvar_def *d, uint64_t *addr, struct err *e)
{
	const struct rtcandidate *best = NULL;
	int most = 0, second = 0, refused = 0;

	for (size_t i = 0; i < t->c.n; i++) {
		const struct rtcandidate *c = &t->c.at[i];
		int n = __builtin_popcount(c->witnesses);

		if (!eligible(c, d)) {
			refused = n > refused ? n : refused;
		} else if (n > most) {
			second = most;
			most = n;
			best = c;
		} else if (n > second) {
			second = n;
		}
	}
	/*
	 * An address that more witnesses name, but a stranger as well, may be the variable in a
	 * future Go. So then there is no answer.
	 */
	if (t->truncated || !best || most < d->quorum || most == second || refused > most)
		return err_set(e, -ENOENT,
			       "of %zu addresses none stands out (%d votes of %u needed, next "
			       "%d, refused %d)",
			       t->c.n, most, d->quorum, second, refused);
	*addr = best->addr;
	return 0;
}

/* ---- the choice by bucket type ---------------------------------------------------------------- */

static size_t index_of(const struct rtcode *c, uint64_t addr)
{
	size_t lo = 0, hi = c->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (c->at[mid].addr < addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < c->n && c->at[lo].addr == addr ? lo : c->n;
}

/* "Compare with @imm, branch" at @i: where control goes when equal and when not. */
static bool arms(const struct rtcode *c, size_t i, int64_t imm, size_t *eq, size_t *ne)
{
	const struct insn *br = &c->at[i + 1];
	size_t target;

	if (i + 2 >= c->n || !c->at[i].cmp || c->at[i].cmp_imm != imm || br->kind != INSN_BRANCH ||
	    (br->cond != COND_EQ && br->cond != COND_NE))
		return false;
	target = index_of(c, br->target);
	*eq = br->cond == COND_EQ ? target : i + 2;
	*ne = br->cond == COND_EQ ? i + 2 : target;
	return target < c->n;
}

/* The first variable that the straight line from @i names; 0 when there is none nearby. */
static uint64_t named_from(const struct rtcode *c, const struct rtplaces *p, size_t i)
{
	for (size_t end = i + LEAF_INSNS; i < c->n && i < end; i++) {
		const struct insn *in = &c->at[i];

		if (in->kind != INSN_OTHER)
			return 0;
		if (in->mem_addr && (!in->mem_width || in->mem_width == 8) &&
		    rtplace_ok(p, in->mem_addr, 8, IN_BSS | IN_NOPTRBSS))
			return in->mem_addr;
	}
	return 0;
}

static bool heads_at(const struct rtcode *c, const struct rtplaces *p, size_t i,
		     struct rtheads *out)
{
	size_t mem, rest, mutex, block;

	if (!arms(c, i, TYP_MEM, &mem, &rest))
		return false;
	for (size_t end = rest + CHAIN_INSNS; rest < c->n && rest < end; rest++) {
		if (!arms(c, rest, TYP_MUTEX, &mutex, &block)) {
			if (c->at[rest].kind != INSN_OTHER)
				return false;
			continue;
		}
		out->mem = named_from(c, p, mem);
		out->mutex = named_from(c, p, mutex);
		out->block = named_from(c, p, block);
		return out->mem && out->mutex && out->block && out->mem != out->mutex &&
		       out->mutex != out->block && out->block != out->mem;
	}
	return false;
}

int rtcode_heads(const struct rtcode *c, const struct rtplaces *p, struct rtheads *out,
		 struct err *e)
{
	struct rtheads h = { 0 }, found = { 0 };
	int n = 0;

	for (size_t i = 0; i < c->n; i++)
		if (heads_at(c, p, i, &h)) {
			found = h;
			n++;
		}
	if (n != 1)
		return err_set(e, -ENOENT,
			       "%d places that choose a list by the bucket's type, not one", n);
	*out = found;
	return 0;
}

/* ---- what stands before MemProfileRate -------------------------------------------------------- */

static uint64_t gate_before(const struct rtcode *c, const struct rtplaces *p, size_t i)
{
	for (size_t n = 0; i > 0 && n < GATE_INSNS; n++) {
		const struct insn *in = &c->at[--i];

		if (in->kind == INSN_CALL || in->kind == INSN_RET)
			return 0;
		if (in->mem_addr && in->mem_width == 1 && !in->mem_write &&
		    rtplace_ok(p, in->mem_addr, 1, IN_ANY))
			return in->mem_addr;
	}
	return 0;
}

int rtcode_gate(const struct rtcode *c, const struct rtplaces *p, uint64_t rate, uint64_t *addr,
		struct err *e)
{
	uint64_t found = 0;

	for (size_t i = 0; i < c->n; i++) {
		uint64_t at;

		if (c->at[i].mem_addr != rate || !c->at[i].mem_write)
			continue;
		at = gate_before(c, p, i);
		if (at && found && at != found)
			return err_set(e, -EBADMSG, "two bytes are read before the rate is set");
		if (at)
			found = at;
	}
	if (!found)
		return err_set(e, -ENOENT, "no byte is read before the rate is set");
	*addr = found;
	return 0;
}
