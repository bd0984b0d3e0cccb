/*
 * user/go/runtime/rtgor.c - copies of goroutines, many at a time, and the proof that they are consistent.
 *
 * 1,024 goroutines are one batch. Four steps read all their g, the labels that they point to, all
 * their stacks, and all their g again; each step is one system call. So what must not move has
 * only some hundred microseconds in which to do so. A stack that is deep, or that moved, is read
 * alone.
 */
#include "go/runtime/rtgor.h"

#include <time.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/map.h"

enum {
	BATCH = 1024,
	SHALLOW =
		4096, /* bytes of stack that a batch reads; a parked goroutine uses a few hundred */
	TRIES = 32,   /* of a goroutine that moves, or that changes its labels all the time */
	LIST_TRIES = 8, /* of a list that grows */
	STATUS_SCAN = 0x1000,
};

static const uint64_t STACK_MAX = 1ull << 32;

enum slot_state {
	SLOT_GONE,    /* it has ended */
	SLOT_BAD,     /* unreadable */
	SLOT_ODD,     /* its saved registers do not point into its stack */
	SLOT_DEEP,    /* its stack is to be read alone */
	SLOT_TORN,    /* it moved; it is to be read alone */
	SLOT_RUNNING, /* it runs: there is no stack to read */
	SLOT_SAVED,
};

struct gor_slot {
	uint64_t addr;
	enum slot_state state;
	uint64_t pc, sp;
	bool syscall, cut;
	const uint8_t *stack;
	size_t nstack;
	struct rtlabel_set labels;
};

/* Room for some goroutines; with @shallow 0 for one, with all of its stack. */
struct batch {
	size_t cap, shallow;
	struct gor_slot *slots;
	uint8_t *before, *after; /* cap * gbytes: their g */
	uint8_t *stacks;
	size_t stack_cap;
	struct mem_piece *pieces;
	size_t *owner; /* the slot that each piece belongs to */
	struct rtlabels labels;
	struct map by_addr; /* g.labels -> index in sets */
	VEC(struct rtlabel_set) sets;
};

struct reader {
	struct mem *m;
	const struct golayout *l;
	const struct rtgor_vars *v;
	size_t gbytes;
	uint64_t *list;
	size_t n, cap;
	struct batch many, one;
	int (*each)(void *arg, const struct rtgor *g, struct err *e);
	void *arg;
	struct rtgors_seen seen;
	uint64_t deep; /* bytes of stacks that were read alone */
};

/* ---- a g's fields ---- */

static uint64_t field(const struct reader *r, const uint8_t *g, enum layout_field f)
{
	int32_t off = r->l->off[f];
	uint64_t v = 0;

	if (off >= 0)
		memcpy(&v, g + off, sizeof(v));
	return v;
}

static uint32_t status_word(const struct reader *r, const uint8_t *g)
{
	return (uint32_t)field(r, g, LAYOUT_g_atomicstatus);
}

static enum gstatus status_of(const struct reader *r, const uint8_t *g)
{
	return (enum gstatus)(status_word(r, g) & ~(uint32_t)STATUS_SCAN);
}

/* Did nothing move that the stack's copy depends on? */
static bool same(const struct reader *r, const uint8_t *a, const uint8_t *b, bool running)
{
	static const enum layout_field still[] = { LAYOUT_g_stack_lo,  LAYOUT_g_stack_hi,
						   LAYOUT_g_sched_sp,  LAYOUT_g_sched_pc,
						   LAYOUT_g_syscallsp, LAYOUT_g_syscallpc };

	if (field(r, a, LAYOUT_g_goid) != field(r, b, LAYOUT_g_goid) ||
	    field(r, a, LAYOUT_g_labels) != field(r, b, LAYOUT_g_labels))
		return false;
	if (running)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(still); i++)
		if (field(r, a, still[i]) != field(r, b, still[i]))
			return false;
	return status_of(r, a) == status_of(r, b) &&
	       (uint8_t)field(r, a, LAYOUT_g_trackingseq) ==
		       (uint8_t)field(r, b, LAYOUT_g_trackingseq);
}

static bool has_ended(enum gstatus s)
{
	return s == GSTATUS_IDLE || s == GSTATUS_DEAD || s == GSTATUS_DEADEXTRA;
}

/*
 * No program has more stacks than memory, but one whose bytes lie may show the same big stack a
 * million times. So once enough was read, only the leaf's end of a deep stack is read.
 */
static size_t stack_bytes(const struct reader *r, const struct batch *b, uint64_t used)
{
	uint64_t max = LIMIT_STACK_BYTES;

	if (!b->shallow && r->deep >= (uint64_t)LIMIT_STACK_PAGES * 4096)
		max = SHALLOW;
	return (size_t)(used < max ? used : max);
}

/* Finds out with which registers it was left, and how much of its stack they leave in use. */
static void classify(const struct reader *r, const struct batch *b, struct gor_slot *s,
		     const uint8_t *g)
{
	uint64_t lo = field(r, g, LAYOUT_g_stack_lo), hi = field(r, g, LAYOUT_g_stack_hi);
	enum gstatus status = status_of(r, g);

	s->syscall = field(r, g, LAYOUT_g_syscallsp) != 0;
	s->sp = field(r, g, s->syscall ? LAYOUT_g_syscallsp : LAYOUT_g_sched_sp);
	s->pc = field(r, g, s->syscall ? LAYOUT_g_syscallpc : LAYOUT_g_sched_pc);
	s->cut = false;
	s->nstack = 0;
	if (has_ended(status)) {
		s->state = SLOT_GONE;
	} else if (status == GSTATUS_RUNNING && !s->syscall) {
		s->state = SLOT_RUNNING;
	} else if (status > GSTATUS_DEADEXTRA) {
		s->state = SLOT_BAD;
	} else if (status == GSTATUS_COPYSTACK) {
		s->state = SLOT_TORN;
	} else if (lo >= hi || hi - lo > STACK_MAX || s->sp < lo || s->sp >= hi || s->sp % 8) {
		s->state = SLOT_ODD;
	} else if (b->shallow && hi - s->sp > b->shallow) {
		s->state = SLOT_DEEP;
	} else {
		s->state = SLOT_SAVED;
		s->nstack = stack_bytes(r, b, hi - s->sp);
		s->cut = s->nstack < hi - s->sp;
	}
}

/* ---- a batch ---- */

static void batch_fini(struct batch *b)
{
	free(b->slots);
	free(b->before);
	free(b->after);
	free(b->stacks);
	free(b->pieces);
	free(b->owner);
	rtlabels_fini(&b->labels);
	map_fini(&b->by_addr);
	vec_fini(&b->sets);
}

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory to read goroutines");
}

static int batch_init(struct batch *b, size_t cap, size_t shallow, size_t gbytes, struct err *e)
{
	b->cap = cap;
	b->shallow = shallow;
	b->slots = calloc(cap, sizeof(*b->slots));
	b->before = calloc(cap, gbytes);
	b->after = calloc(cap, gbytes);
	b->stack_cap = cap * (shallow ? shallow : SHALLOW);
	b->stacks = malloc(b->stack_cap);
	b->pieces = calloc(cap, sizeof(*b->pieces));
	b->owner = calloc(cap, sizeof(*b->owner));
	if (!b->slots || !b->before || !b->after || !b->stacks || !b->pieces || !b->owner)
		return no_memory(e);
	return 0;
}

/* Reads the g of all slots that are still of interest. */
static int read_gs(struct reader *r, struct batch *b, size_t n, uint8_t *to, struct err *e)
{
	size_t k = 0;
	int ret;

	for (size_t i = 0; i < n; i++) {
		if (b->slots[i].state != SLOT_SAVED && b->slots[i].state != SLOT_RUNNING)
			continue;
		b->owner[k] = i;
		b->pieces[k++] = (struct mem_piece){ .addr = b->slots[i].addr,
						     .buf = to + i * r->gbytes,
						     .n = r->gbytes };
	}
	ret = mem_readv(r->m, b->pieces, k, e);
	for (size_t i = 0; !ret && i < k; i++)
		if (!b->pieces[i].ok)
			b->slots[b->owner[i]].state = SLOT_BAD;
	return ret;
}

/* Reads the labels that are pointed to, each set once. */
static int read_labels(struct reader *r, struct batch *b, struct gor_slot *s, const uint8_t *g,
		       struct err *e)
{
	uint64_t at = field(r, g, LAYOUT_g_labels), known;
	struct rtlabel_set *set;
	int ret;

	s->labels = (struct rtlabel_set){ 0 };
	if (!at)
		return 0;
	if (!map_get(&b->by_addr, at, &known)) {
		set = vec_add(&b->sets, UINT32_MAX);
		if (!set)
			return no_memory(e);
		ret = rtlabels_read(r->m, r->v->minor, at, &b->labels, set, e);
		if (ret)
			return ret;
		known = b->sets.n - 1;
		if (!map_put(&b->by_addr, at, known))
			return no_memory(e);
	}
	s->labels = b->sets.at[known];
	return 0;
}

static int make_room(struct batch *b, size_t need, struct err *e)
{
	uint8_t *p;

	if (need <= b->stack_cap)
		return 0;
	p = realloc(b->stacks, need);
	if (!p)
		return no_memory(e);
	b->stacks = p;
	b->stack_cap = need;
	return 0;
}

static int read_stacks(struct reader *r, struct batch *b, size_t n, struct err *e)
{
	size_t k = 0, used = 0;
	int ret = b->shallow ? 0 : make_room(b, b->slots[0].nstack, e);

	if (!b->shallow && b->slots[0].state == SLOT_SAVED)
		r->deep += b->slots[0].nstack;

	for (size_t i = 0; !ret && i < n; i++) {
		struct gor_slot *s = &b->slots[i];

		if (s->state != SLOT_SAVED)
			continue;
		s->stack = b->stacks + used;
		b->owner[k] = i;
		b->pieces[k++] = (struct mem_piece){ .addr = s->sp,
						     .buf = b->stacks + used,
						     .n = s->nstack };
		used += s->nstack;
	}
	if (!ret)
		ret = mem_readv(r->m, b->pieces, k, e);
	for (size_t i = 0; !ret && i < k; i++)
		if (!b->pieces[i].ok) /* it was freed meanwhile */
			b->slots[b->owner[i]].state = SLOT_TORN;
	return ret;
}

static int read_batch(struct reader *r, struct batch *b, const uint64_t *list, size_t n,
		      struct err *e)
{
	int ret;

	rtlabels_clear(&b->labels);
	b->sets.n = 0;
	map_fini(&b->by_addr);
	for (size_t i = 0; i < n; i++)
		b->slots[i] = (struct gor_slot){ .addr = list[i], .state = SLOT_SAVED };
	ret = read_gs(r, b, n, b->before, e);
	for (size_t i = 0; !ret && i < n; i++) {
		struct gor_slot *s = &b->slots[i];

		if (s->state != SLOT_SAVED)
			continue;
		classify(r, b, s, b->before + i * r->gbytes);
		if (s->state == SLOT_SAVED || s->state == SLOT_RUNNING)
			ret = read_labels(r, b, s, b->before + i * r->gbytes, e);
	}
	if (!ret)
		ret = read_stacks(r, b, n, e);
	if (!ret)
		ret = read_gs(r, b, n, b->after, e);
	for (size_t i = 0; !ret && i < n; i++) {
		struct gor_slot *s = &b->slots[i];

		if ((s->state == SLOT_SAVED || s->state == SLOT_RUNNING) &&
		    !same(r, b->before + i * r->gbytes, b->after + i * r->gbytes,
			  s->state == SLOT_RUNNING))
			s->state = SLOT_TORN;
	}
	return ret;
}

/* ---- handing over ---- */

static enum rtgor_stack what_of(enum slot_state s)
{
	switch (s) {
	case SLOT_SAVED:
		return RTGOR_SAVED;
	case SLOT_RUNNING:
		return RTGOR_RUNNING;
	case SLOT_ODD:
		return RTGOR_BAD;
	default:
		return RTGOR_TORN;
	}
}

static int give(struct reader *r, const struct batch *b, size_t i, bool last, struct err *e)
{
	const uint8_t *g = b->before + i * r->gbytes;
	const struct gor_slot *s = &b->slots[i];
	bool sound = s->state == SLOT_SAVED || s->state == SLOT_RUNNING;
	struct rtgor out = {
		.goid = field(r, g, LAYOUT_g_goid),
		.parent = field(r, g, LAYOUT_g_parentgoid),
		.gopc = field(r, g, LAYOUT_g_gopc),
		.startpc = field(r, g, LAYOUT_g_startpc),
		.waitsince = field(r, g, LAYOUT_g_waitsince),
		.status = status_of(r, g),
		.scan = status_word(r, g) & STATUS_SCAN,
		.waitreason = (uint8_t)field(r, g, LAYOUT_g_waitreason),
		.seq = (uint8_t)field(r, g, LAYOUT_g_trackingseq),
		.locked = field(r, g, LAYOUT_g_lockedm) != 0,
		.cleanups = (uint8_t)field(r, g, LAYOUT_g_runningcleanups) != 0,
		.what = what_of(s->state),
		.pc = s->pc,
		.sp = s->sp,
		.syscall = s->syscall,
		.stack = s->stack,
		.nstack = s->state == SLOT_SAVED ? s->nstack : 0,
		.cut = s->cut,
		.text = &b->labels,
		/* A goroutine that moved is counted as that, once. */
		.labels = sound ? s->labels : (struct rtlabel_set){ 0 },
		.last = last,
	};
	int ret = r->each(r->arg, &out, e);

	if (ret == -EAGAIN && !last)
		return ret;
	if (ret)
		return ret;
	r->seen.live++;
	r->seen.torn += out.what == RTGOR_TORN;
	r->seen.bad += out.what == RTGOR_BAD;
	return 0;
}

/* Labels that make no sense were mostly replaced while they were read. */
static bool holds(const struct gor_slot *s)
{
	return (s->state == SLOT_SAVED || s->state == SLOT_RUNNING) && !s->labels.cut;
}

/* Reads one goroutine by itself, until it holds still. */
static int read_alone(struct reader *r, uint64_t addr, struct err *e)
{
	for (int try = 1;; try++) {
		struct gor_slot *s = &r->one.slots[0];
		int ret = read_batch(r, &r->one, &addr, 1, e);

		if (ret)
			return ret;
		if (s->state == SLOT_GONE)
			return 0;
		if (s->state == SLOT_BAD) {
			r->seen.bad++;
			return 0;
		}
		if (holds(s) || try >= TRIES) {
			ret = give(r, &r->one, 0, try >= TRIES, e);
			if (ret != -EAGAIN)
				return ret;
		}
		r->seen.again++;
	}
}

static int give_batch(struct reader *r, size_t n, struct err *e)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < n; i++) {
		const struct gor_slot *s = &r->many.slots[i];

		if (s->state == SLOT_GONE)
			continue;
		ret = holds(s) ? give(r, &r->many, i, false, e) : -EAGAIN;
		if (ret == -EAGAIN) {
			r->seen.again += s->state != SLOT_DEEP;
			ret = read_alone(r, s->addr, e);
		}
	}
	return ret;
}

/* ---- the list ---- */

/* What stood there is not kept: it is about to be read. */
static int list_room(struct reader *r, uint64_t n, struct err *e)
{
	if (r->list && n <= r->cap)
		return 0;
	free(r->list);
	r->cap = n ? n : 1;
	r->list = malloc(r->cap * sizeof(*r->list));
	return r->list ? 0 : no_memory(e);
}

/*
 * The list only grows. When it outgrows its memory it moves, and the old place may later be used
 * for something else.
 */
static int read_list(struct reader *r, struct err *e)
{
	for (int try = 0; try < LIST_TRIES; try++) {
		uint64_t n = 0, at = 0, again = 0;
		int ret = mem_u64(r->m, r->v->allglen, &n, e);

		if (!ret)
			ret = mem_u64(r->m, r->v->allgptr, &at, e);
		if (ret)
			return err_wrap(e, ret, "runtime.allgs");
		if (n > LIMIT_GOROUTINES)
			return err_set(e, -E2BIG, "%llu goroutines; the limit is %d",
				       (unsigned long long)n, LIMIT_GOROUTINES);
		ret = list_room(r, n, e);
		if (ret)
			return ret;
		r->n = n;
		ret = mem_read(r->m, at, r->list, n * sizeof(*r->list), e);
		if (ret && ret != -EFAULT)
			return err_wrap(e, ret, "runtime.allgs");
		if (!mem_u64(r->m, r->v->allgptr, &again, NULL) && again == at && !ret)
			return 0;
	}
	return err_set(e, -EBADMSG, "runtime.allgs moved each time that it was read");
}

/* Every element must be a g, whatever the bytes of the list say. */
static int check_list(const struct reader *r, struct err *e)
{
	for (size_t i = 0; i < r->n; i++)
		if (!r->list[i] || r->list[i] % 8)
			return err_set(e, -EBADMSG,
				       "element %zu of runtime.allgs, 0x%llx, is no goroutine", i,
				       (unsigned long long)r->list[i]);
	return 0;
}

static int check_layout(const struct golayout *l, size_t *gbytes, struct err *e)
{
	static const enum layout_field needed[] = {
		LAYOUT_g_stack_lo,
		LAYOUT_g_stack_hi,
		LAYOUT_g_sched_sp,
		LAYOUT_g_sched_pc,
		LAYOUT_g_syscallsp,
		LAYOUT_g_syscallpc,
		LAYOUT_g_atomicstatus,
		LAYOUT_g_goid,
		LAYOUT_g_waitsince,
		LAYOUT_g_waitreason,
		LAYOUT_g_gopc,
		LAYOUT_g_startpc,
		LAYOUT_g_labels,
		LAYOUT_g_parentgoid,
		LAYOUT_g_lockedm,
		LAYOUT_g_trackingseq,
		LAYOUT_g_runningcleanups,
	};
	enum { MUST = 12 }; /* the rest may be absent */

	*gbytes = 0;
	for (size_t i = 0; i < ARRAY_LEN(needed); i++) {
		int32_t off = l->off[needed[i]];

		if ((off < 0 && i < MUST) || off > LIMIT_G_BYTES - 8)
			return err_set(e, -ENOTSUP, "layout (%s): %s at %d", l->from,
				       layout_field_name(needed[i]), off);
		if (off >= 0 && (size_t)off + 8 > *gbytes)
			*gbytes = (size_t)off + 8;
	}
	return 0;
}

static int read_all(struct reader *r, struct err *e)
{
	uint64_t begun;
	int ret = read_list(r, e);

	if (!ret)
		ret = check_list(r, e);
	if (!ret)
		ret = batch_init(&r->many, r->n < BATCH ? r->n + 1 : BATCH, SHALLOW, r->gbytes, e);
	if (!ret)
		ret = batch_init(&r->one, 1, 0, r->gbytes, e);
	begun = now_ns();
	for (size_t i = 0; !ret && i < r->n; i += BATCH) {
		size_t n = r->n - i < BATCH ? r->n - i : BATCH;

		ret = read_batch(r, &r->many, r->list + i, n, e);
		if (!ret)
			ret = give_batch(r, n, e);
	}
	r->seen.all = r->n;
	r->seen.spread_ns = now_ns() - begun;
	return ret;
}

int rtgors_read(struct mem *m, const struct golayout *l, const struct rtgor_vars *v,
		int (*each)(void *arg, const struct rtgor *g, struct err *e), void *arg,
		struct rtgors_seen *seen, struct err *e)
{
	struct reader r = { .m = m, .l = l, .v = v, .each = each, .arg = arg };
	int ret = check_layout(l, &r.gbytes, e);

	if (!ret)
		ret = read_all(&r, e);
	free(r.list);
	batch_fini(&r.many);
	batch_fini(&r.one);
	if (!ret)
		*seen = r.seen;
	return ret;
}
