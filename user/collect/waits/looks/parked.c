/* user/collect/waits/looks/parked.c - reads many g at a time, and one stack after the other. */
#include "collect/waits/looks/parked.h"

#include "arch/frame.h"
#include "base/limits.h"
#include "go/runtime/rtgor.h"

enum { STATUS_SCAN = 0x1000 };

static const enum layout_field needed[] = {
	LAYOUT_g_stack_lo,     LAYOUT_g_stack_hi,   LAYOUT_g_sched_sp,	  LAYOUT_g_sched_pc,
	LAYOUT_g_sched_bp,     LAYOUT_g_goid,	    LAYOUT_g_labels,	  LAYOUT_g_waitsince,
	LAYOUT_g_atomicstatus, LAYOUT_g_waitreason, LAYOUT_g_trackingseq,
};

int parked_init(struct parked_reader *r, struct mem *mem, const struct golayout *l, enum arch_id id,
		struct err *e)
{
	size_t end = 0;

	*r = (struct parked_reader){
		.mem = mem, .l = l, .at = LIMIT_G_BYTES, .uses_lr = arch_uses_lr(id)
	};
	for (size_t i = 0; i < ARRAY_LEN(needed); i++) {
		int32_t off = l->off[needed[i]];

		if (off < 0 || off > LIMIT_G_BYTES - 8)
			return err_set(e, -ENOTSUP, "layout (%s): %s at %d", l->from,
				       layout_field_name(needed[i]), off);
		if ((size_t)off < r->at)
			r->at = (size_t)off;
		if ((size_t)off + 8 > end)
			end = (size_t)off + 8;
	}
	r->n = end - r->at;
	r->status = (size_t)l->off[LAYOUT_g_atomicstatus] - r->at;
	r->raw = malloc(PARKED_BATCH * r->n);
	return r->raw ? 0 : err_set(e, -ENOMEM, "no memory to look at goroutines");
}

void parked_fini(struct parked_reader *r)
{
	free(r->raw);
	r->raw = NULL;
}

static uint64_t field(const struct parked_reader *r, const uint8_t *raw, enum layout_field f)
{
	uint64_t v;

	memcpy(&v, raw + ((size_t)r->l->off[f] - r->at), sizeof(v));
	return v;
}

/* In gobuf it lies before bp. Source: runtime/runtime2.go, Go 1.16 to 1.27. */
static uint64_t saved_lr(const struct parked_reader *r, const uint8_t *raw)
{
	size_t bp = (size_t)r->l->off[LAYOUT_g_sched_bp] - r->at;
	uint64_t v = 0;

	if (bp >= sizeof(v))
		memcpy(&v, raw + bp - sizeof(v), sizeof(v));
	return v;
}

static void parse(const struct parked_reader *r, const uint8_t *raw, struct parked *out)
{
	uint32_t status = (uint32_t)field(r, raw, LAYOUT_g_atomicstatus);

	*out = (struct parked){ .stack_lo = field(r, raw, LAYOUT_g_stack_lo),
				.stack_hi = field(r, raw, LAYOUT_g_stack_hi),
				.sp = field(r, raw, LAYOUT_g_sched_sp),
				.pc = field(r, raw, LAYOUT_g_sched_pc),
				.bp = field(r, raw, LAYOUT_g_sched_bp),
				.goid = field(r, raw, LAYOUT_g_goid),
				.labels = field(r, raw, LAYOUT_g_labels),
				.waitsince = field(r, raw, LAYOUT_g_waitsince),
				.status = status & ~(uint32_t)STATUS_SCAN,
				.scan = status & STATUS_SCAN,
				.reason = (uint8_t)field(r, raw, LAYOUT_g_waitreason),
				.seq = (uint8_t)field(r, raw, LAYOUT_g_trackingseq) };
	if (r->uses_lr) {
		out->lr = saved_lr(r, raw);
		out->below = ARCH_WORD;
	}
}

/* Reads pieces, @each of them for one goroutine. */
static int look(struct parked_reader *r, size_t n, size_t each, struct parked *out, bool *ok,
		struct err *e)
{
	int ret = mem_readv(r->mem, r->pieces, n * each, e);

	for (size_t i = 0; !ret && i < n; i++) {
		ok[i] = r->pieces[each * i].ok && r->pieces[each * (i + 1) - 1].ok;
		if (ok[i])
			parse(r, r->raw + i * r->n, &out[i]);
	}
	return ret;
}

int parked_look(struct parked_reader *r, const uint64_t *g, size_t n, struct parked *out, bool *ok,
		struct err *e)
{
	BUG_ON(n > PARKED_BATCH);
	for (size_t i = 0; i < n; i++)
		r->pieces[i] = (struct mem_piece){ .addr = g[i] + r->at,
						   .buf = r->raw + i * r->n,
						   .n = r->n };
	return look(r, n, 1, out, ok, e);
}

int parked_look_at_status(struct parked_reader *r, const uint64_t *g, size_t n, struct parked *out,
			  bool *ok, struct err *e)
{
	BUG_ON(n > PARKED_BATCH);
	for (size_t i = 0; i < n; i++) {
		uint8_t *raw = r->raw + i * r->n;

		r->pieces[2 * i] = (struct mem_piece){ .addr = g[i] + r->at + r->status,
						       .buf = raw + r->status,
						       .n = r->n - r->status };
		r->pieces[2 * i + 1] =
			(struct mem_piece){ .addr = g[i] + r->at, .buf = raw, .n = r->status };
	}
	return look(r, n, 2, out, ok, e);
}

uint16_t parked_for(const struct parked *p)
{
	switch (p->status) {
	case GSTATUS_WAITING:
	case GSTATUS_LEAKED: /* 1.26+: a GC found that nobody can wake it any more */
		return (uint16_t)(GSTATUS_WAITING << 8 | p->reason);
	case GSTATUS_RUNNABLE:
	case GSTATUS_SYSCALL:
		return (uint16_t)(p->status << 8);
	default:
		return 0;
	}
}

bool parked_same(const struct parked *a, const struct parked *b)
{
	if (!parked_for(b) || parked_for(a) != parked_for(b) || a->goid != b->goid ||
	    a->seq != b->seq || a->pc != b->pc)
		return false;
	/* It is set at a GC and cleared when the goroutine runs. */
	if (a->waitsince && b->waitsince != a->waitsince)
		return false;
	/* While a stack is being moved, sp and its bounds need not belong together. */
	return b->scan || a->scan || a->stack_hi - a->sp == b->stack_hi - b->sp;
}

bool parked_lives(const struct parked *p)
{
	return p->status != GSTATUS_IDLE && p->status != GSTATUS_DEAD &&
	       p->status != GSTATUS_DEADEXTRA;
}

bool parked_alike(const struct parked *a, const struct parked *b)
{
	return a->goid == b->goid && parked_for(a) == parked_for(b) && a->pc == b->pc &&
	       parked_still(a, b);
}

/* ---- stacks ---- */

static bool read_at(const struct parked_stack *k, uint64_t addr, void *to, size_t n)
{
	uint64_t from = k->p->sp - k->p->below, off = addr - from;

	if (addr >= from && off <= k->ncopy && n <= k->ncopy - off) {
		memcpy(to, k->copy + off, n);
		return true;
	}
	if (k->deep)
		*k->deep = true;
	memset(to, 0, n);
	return !mem_read(k->mem, addr, to, n, NULL);
}

static bool within(uint64_t pc, uint64_t lo, uint64_t hi)
{
	return pc >= lo && pc < hi;
}

/* The image whose text holds @pc; NULL: none. */
static const struct gpb_image *image_at(const struct gpb_target *t, uint64_t pc)
{
	for (size_t i = 0; i < t->nimages && i < GPB_IMAGES; i++)
		if (within(pc, t->image[i].text_lo, t->image[i].text_hi))
			return &t->image[i];
	return NULL;
}

struct walk {
	const struct parked_stack *k;
	struct gpb_stack *st;
	size_t n, max;
};

static bool push(struct walk *w, uint64_t pc)
{
	if (w->n >= w->max) {
		w->st->flags |= GPB_STACK_CUT;
		return false;
	}
	w->st->pc[w->n++] = pc;
	return true;
}

/* Follows frame pointers, as walk_chain() of bpf/go/stack.bpf.h does. */
static void chain(struct walk *w, uint64_t bp)
{
	const struct parked *p = w->k->p;

	for (int i = 0; i < GPB_MAX_USER + 1; i++) {
		const struct gpb_image *img;
		uint64_t rec[2], ret;

		if (bp < p->stack_lo || bp >= p->stack_hi || (bp & 7))
			return;
		if (!read_at(w->k, bp, rec, sizeof(rec))) {
			w->st->flags |= GPB_STACK_FAULT;
			return;
		}
		img = image_at(w->k->t, rec[1]);
		if (!img || !push(w, rec[1]) || within(rec[1], img->mcall_lo, img->mcall_hi) ||
		    within(rec[1], img->callback_lo, img->callback_hi))
			return;
		/* A stub without a frame: its own return address lies right above. */
		if (within(rec[1], img->stub_lo, img->stub_hi) &&
		    (!read_at(w->k, bp + 16, &ret, sizeof(ret)) || !image_at(w->k->t, ret) ||
		     !push(w, ret)))
			return;
		if (rec[0] <= bp)
			return;
		bp = rec[0];
	}
}

/* As needs_rules() of bpf/go/unwind_rules.bpf.h. */
static bool needs_rules(const struct gpb_target *t, const struct gpb_stack *st)
{
	uint64_t last = st->pc[st->nfirst - 1];
	const struct gpb_image *img = image_at(t, last);

	return t->flags & GPB_TARGET_STALE_FP ||
	       (img && within(last, img->callback_lo, img->callback_hi));
}

/* Makes a record of a stack of which no frame has a rule yet: its leaf, and the memory above. */
static void for_rules(const struct parked_stack *k, struct gpb_stack *st, struct gpb_rec_raw *raw)
{
	uint64_t left = k->p->stack_hi - k->p->sp + k->p->below;
	size_t bytes = left < sizeof(raw->top) ? (size_t)left : sizeof(raw->top);

	st->nfirst = 1;
	st->flags = 0;
	raw->type = GPB_REC_RAW;
	raw->pc = k->p->pc - 1;
	raw->sp = k->p->sp - k->p->below;
	raw->second = 0;
	raw->ntop = read_at(k, raw->sp, raw->top, bytes / 8 * 8) ? (uint32_t)(bytes / 8) : 0;
	if (k->p->below)
		raw->top[0] = k->p->lr;
	raw->stack = *st;
	raw->stack.flags = GPB_STACK_UNRULED;
}

/* A goroutine that has not begun; as walk_fresh() in bpf/. */
static void fresh(const struct parked_stack *k, struct gpb_stack *st)
{
	uint64_t ret;

	st->flags = 0;
	st->nfirst = 1;
	st->pc[0] = k->p->pc + 1;
	if (k->p->below)
		st->pc[st->nfirst++] = k->p->lr;
	else if (read_at(k, k->p->sp, &ret, sizeof(ret)))
		st->pc[st->nfirst++] = ret;
}

/* As unwind_rules_hints() of bpf/go/unwind_rules.bpf.h: for frames that lie above the memory in the record. */
static void hints(const struct parked_stack *k, struct gpb_stack *st)
{
	struct walk w = { .k = k, .st = st, .n = st->nfirst, .max = GPB_MAX_PCS };
	uint32_t flags = st->flags;

	chain(&w, k->p->bp);
	st->hints = (uint16_t)(w.n - st->nfirst);
	st->flags = flags;
}

bool parked_walk_saved(const struct parked_stack *k, bool begun, struct gpb_stack *st,
		       struct gpb_rec_raw *raw)
{
	if (!begun) {
		fresh(k, st);
		return false;
	}
	st->pc[0] = k->p->pc;
	for_rules(k, st, raw);
	if (raw->ntop * 8 < k->p->stack_hi - k->p->sp)
		hints(k, &raw->stack);
	return true;
}

bool parked_walk(const struct parked_stack *k, struct gpb_stack *st, struct gpb_rec_raw *raw)
{
	const struct parked *p = k->p;
	struct walk w = { .k = k, .st = st, .max = GPB_MAX_USER };

	st->flags = 0;
	push(&w, p->pc);
	chain(&w, p->bp);
	st->nfirst = (uint16_t)w.n;
	if (!needs_rules(k->t, st) || p->sp < p->stack_lo || p->sp >= p->stack_hi ||
	    !image_at(k->t, p->pc))
		return false;
	for_rules(k, st, raw);
	return true;
}

bool parked_walk_as_it_is(const struct parked_stack *k, struct subject *s, struct gpb_stack *st,
			  struct gpb_rec_raw *raw)
{
	const struct parked *p = k->p;
	const struct image *img;
	struct gofunc f;
	const char *name;

	if (p->status == GSTATUS_WAITING || p->status == GSTATUS_LEAKED ||
	    subject_func(s, p->pc, &f, &img))
		return parked_walk(k, st, raw);
	name = gobin_func_name(img->bin, &f);
	if (p->status == GSTATUS_RUNNABLE && name && !strcmp(name, "runtime.gopark"))
		return parked_walk(k, st, raw);
	return parked_walk_saved(k, p->status != GSTATUS_RUNNABLE || p->pc != f.entry + img->bias,
				 st, raw);
}
