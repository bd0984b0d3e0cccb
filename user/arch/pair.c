/*
 * user/arch/pair.c - finds two words that belong together.
 *
 * The walk forgets whatever it does not understand, so that there is no answer rather than a
 * wrong one.
 */
#include "arch/pair.h"

#include "arch/pair_priv.h"

enum {
	SLOTS = 32, /* words of memory that are remembered */
	WAYS = 32,  /* continuations after branches that are still to be followed */
	STEPS = 2000,
};

enum what { NOTHING, RESULT, ADDRESS, SCALED };

struct value {
	enum what what;
	uint64_t addr; /* of SCALED: by what register @reg is multiplied */
	int reg;
};

struct pair_slot {
	struct pair_place at;
	struct value v;
	bool fresh; /* it was written after the last call */
};

struct state {
	uint64_t pc;
	bool called; /* the instruction before was a call */
	struct value reg[PAIR_REGS];
	struct pair_slot slot[SLOTS];
	size_t nslots;
};

struct walk {
	struct arch *a;
	const struct pair_machine *m;
	const uint8_t *code;
	size_t n;
	uint64_t addr;
	arch_pair_fits fits;
	void *arg;
	/* a ring: ways that are nearer to the call are followed first */
	struct state now, ways[WAYS];
	size_t head, nways;
	uint64_t found;
};

static const struct value none = { .what = NOTHING };

/* ---- what is known ---- */

static void drop(struct state *s, size_t i)
{
	memmove(&s->slot[i], &s->slot[i + 1], (s->nslots - i - 1) * sizeof(s->slot[0]));
	s->nslots--;
}

/*
 * The same place, counted from no register if that register holds a known address, and with the register that
 * its index was made of.
 */
static struct pair_place settled(const struct state *s, struct pair_place p)
{
	if (p.base >= 0 && p.index >= 0 && p.scale == 1 && s->reg[p.index].what == SCALED) {
		p.scale = (int)s->reg[p.index].addr;
		p.index = s->reg[p.index].reg;
	}
	if (p.base >= 0 && p.base < PAIR_REGS && p.index < 0 && s->reg[p.base].what == ADDRESS) {
		p.disp += (int64_t)s->reg[p.base].addr;
		p.base = PAIR_STATIC;
	}
	if (p.disp > PAIR_DISP_MAX || p.disp < -PAIR_DISP_MAX)
		p.base = -1;
	return p;
}

static bool is_along(struct pair_place p, struct pair_place q)
{
	return p.base == q.base && p.index == q.index && (p.index < 0 || p.scale == q.scale);
}

static void forget_place(struct state *s, struct pair_place p, int64_t bytes)
{
	for (size_t i = s->nslots; i-- > 0;) {
		struct pair_place q = s->slot[i].at;

		if (is_along(p, q) && q.disp < p.disp + bytes && p.disp < q.disp + PAIR_WORD)
			drop(s, i);
	}
}

static void set_reg(struct state *s, int r, struct value v)
{
	for (int i = 0; i < PAIR_REGS; i++)
		if (s->reg[i].what == SCALED && s->reg[i].reg == r)
			s->reg[i] = none;
	s->reg[r] = v;
	for (size_t i = s->nslots; i-- > 0;)
		if (s->slot[i].at.base == r || s->slot[i].at.index == r)
			drop(s, i);
}

static const struct pair_slot *slot_at(const struct state *s, struct pair_place p)
{
	for (size_t i = 0; i < s->nslots; i++)
		if (is_along(s->slot[i].at, p) && s->slot[i].at.disp == p.disp)
			return &s->slot[i];
	return NULL;
}

/*
 * After a call, registers hold nothing that is known, and memory other than the stack may have
 * changed.
 */
static void forget_call(struct walk *w)
{
	struct state *s = &w->now;

	memset(s->reg, 0, sizeof(s->reg));
	for (size_t i = s->nslots; i-- > 0;) {
		s->slot[i].fresh = false;
		if (s->slot[i].at.base != w->m->sp || s->slot[i].at.index >= 0)
			drop(s, i);
	}
}

/* ---- two words ---- */

static void judge(struct walk *w, struct value first, struct value second)
{
	if (!w->found && first.what == ADDRESS && second.what == RESULT &&
	    w->fits(w->arg, first.addr))
		w->found = first.addr;
}

static void judge_arguments(struct walk *w)
{
	for (size_t i = 0; i + 1 < w->m->norder; i++)
		judge(w, w->now.reg[w->m->order[i]], w->now.reg[w->m->order[i + 1]]);
}

/*
 * When an address is stored over something else, it does not belong to the word behind that
 * place.
 */
static void store(struct walk *w, struct pair_place p, struct value v)
{
	struct pair_place before = p, behind = p;
	struct state *s = &w->now;
	const struct pair_slot *t;

	before.disp -= PAIR_WORD;
	behind.disp += PAIR_WORD;
	t = slot_at(s, v.what == RESULT ? before : behind);
	if (t && t->fresh && v.what == RESULT)
		judge(w, t->v, v);
	if (t && t->fresh && v.what == ADDRESS && !slot_at(s, p))
		judge(w, v, t->v);
	forget_place(s, p, PAIR_WORD);
	if (s->nslots == SLOTS)
		drop(s, 0);
	s->slot[s->nslots++] = (struct pair_slot){ .at = p, .v = v, .fresh = true };
}

/* ---- instructions ---- */

static struct value address(uint64_t addr)
{
	return addr > PAIR_DISP_MAX ? none : (struct value){ .what = ADDRESS, .addr = addr };
}

static struct value given(const struct state *s, const struct pair_effect *e, size_t i)
{
	const struct pair_slot *t;
	struct value v;

	switch (e->give[i].from) {
	case PAIR_REG:
		return s->reg[e->give[i].source];
	case PAIR_SUM:
		v = s->reg[e->give[i].source];
		return v.what == ADDRESS ? address(v.addr + e->give[i].number) : none;
	case PAIR_ADDRESS:
		return address(e->give[i].number);
	case PAIR_SCALED:
		return (struct value){ SCALED, e->give[i].number, e->give[i].source };
	case PAIR_PLACE:
		break;
	case PAIR_MEMORY:
		t = slot_at(s, settled(s, e->give[i].at));
		return t ? t->v : none;
	}
	return none;
}

/* Register @r gets the address of place @p: what is known to be there, and behind, is at @r from now on. */
static void point(struct state *s, int r, struct pair_place p)
{
	struct pair_slot there[SLOTS];
	size_t n = 0;

	for (size_t i = 0; i < s->nslots; i++) {
		struct pair_slot t = s->slot[i];

		if (!is_along(t.at, p))
			continue;
		t.at = (struct pair_place){ r, -1, 0, t.at.disp - p.disp };
		there[n++] = t;
	}
	set_reg(s, r, none);
	for (size_t i = 0; i < n && s->nslots < SLOTS; i++)
		s->slot[s->nslots++] = there[i];
}

/* Everything is read before anything is written. */
static void move(struct walk *w, const struct pair_effect *e)
{
	struct value give[PAIR_WORDS], put[PAIR_WORDS];
	struct pair_place at[PAIR_WORDS];
	struct state *s = &w->now;

	for (size_t i = 0; i < e->ngive; i++)
		give[i] = given(s, e, i);
	for (size_t i = 0; i < e->nstore; i++) {
		at[i] = settled(s, e->store[i].at);
		put[i] = e->store[i].reg < 0 ? none : s->reg[e->store[i].reg];
	}
	if (e->ngive && e->give[0].from == PAIR_PLACE) {
		point(s, e->give[0].reg, settled(s, e->give[0].at));
		return;
	}
	for (int r = 0; r < PAIR_REGS; r++)
		if (e->writes >> r & 1)
			set_reg(s, r, none);
	for (size_t i = 0; i < e->ngive; i++)
		if (give[i].what != SCALED || give[i].reg != e->give[i].reg)
			set_reg(s, e->give[i].reg, give[i]);
	if (e->scatters)
		s->nslots = 0;
	for (size_t i = 0; i < e->nstore; i++) {
		if (at[i].base < 0)
			continue;
		if (e->store[i].word)
			store(w, at[i], put[i]);
		else
			forget_place(s, at[i], e->store[i].bytes);
	}
}

static bool is_inside(const struct walk *w, uint64_t pc)
{
	return pc >= w->addr && pc - w->addr < w->n;
}

/* Remembers a way to be followed later. When there is no room for it, it is not followed. */
static void put_off(struct walk *w, uint64_t pc)
{
	struct state *s = &w->ways[(w->head + w->nways) % WAYS];

	if (w->nways == WAYS || !is_inside(w, pc))
		return;
	*s = w->now;
	s->pc = pc;
	w->nways++;
}

/* False at the end of this way. */
static bool take(struct walk *w, const struct pair_effect *e)
{
	switch (e->flow) {
	case PAIR_ON:
		move(w, e);
		return true;
	case PAIR_CALL:
		judge_arguments(w);
		forget_call(w);
		return true;
	case PAIR_RETURN:
		judge_arguments(w);
		return false;
	case PAIR_JUMP:
		if (e->target)
			put_off(w, e->target);
		if (!e->always)
			put_off(w, w->now.pc);
		return false;
	case PAIR_END:
		return false;
	}
	return false;
}

static bool step(struct walk *w)
{
	struct state *s = &w->now;
	size_t off = (size_t)(s->pc - w->addr), left = w->n - off;
	const uint8_t *at = w->code + off;
	struct pair_effect e = { .flow = PAIR_ON };
	uint64_t pc = s->pc;
	bool called = s->called;

	if (!is_inside(w, pc) || !cs_disasm_iter(w->a->cs, &at, &left, &pc, w->a->in))
		return false;
	s->pc = pc;
	w->m->read(w->a->cs, w->a->in, &e);
	s->called = e.flow == PAIR_CALL;
	return !(called && e.pads) && take(w, &e);
}

uint64_t arch_pair(struct arch *a, const uint8_t *code, size_t n, uint64_t addr, uint64_t from,
		   arch_pair_fits fits, void *arg)
{
	struct walk *w CLEANUP(freep) = calloc(1, sizeof(*w));

	if (!w)
		return 0;
	w->a = a;
	w->m = a->ops == &arch_amd64_ops ? &pair_amd64 : &pair_arm64;
	w->code = code;
	w->n = n;
	w->addr = addr;
	w->fits = fits;
	w->arg = arg;
	w->now.pc = from;
	w->now.reg[w->m->order[0]].what = RESULT;
	for (int i = 0; i < STEPS && !w->found; i++) {
		if (step(w))
			continue;
		if (!w->nways)
			break;
		w->now = w->ways[w->head];
		w->head = (w->head + 1) % WAYS;
		w->nways--;
	}
	a->next = 0; /* the decoder of @a was used for this */
	return w->found;
}
