/* user/go/runtime/rtspan.c - reads spans many at a time, and interprets their bits. */
#include "go/runtime/rtspan.h"

#include <stdlib.h>
#include <string.h>

enum {
	BATCH = 256,	     /* objects that are read in one round */
	HEAD_MAX = 256,	     /* bytes of an mspan; 168 is the largest so far */
	SLOTS_MAX = 1 << 16, /* no span has more */
	STATE_IN_USE = 1,    /* mSpanInUse */
	/* spanInlineMarkBits: the last 128 bytes of the page, marks from the 64th on. */
	INLINE_PAGE = 8192,
	INLINE_MARKS_AT = INLINE_PAGE - 64,
	INLINE_MIN = 16,
	INLINE_MAX = 512,
};

/* ---- offsets ---------------------------------------------------------------------------------- */

static bool has_experiment(const char *list, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = list; p && (p = strstr(p, name)); p += n)
		if ((p == list || p[-1] == ',') && (!p[n] || p[n] == ','))
			return true;
	return false;
}

static enum rtspan_inline inline_marks(int minor, const char *experiments)
{
	if (minor < 0 || minor > 27)
		return INLINE_UNKNOWN;
	if (has_experiment(experiments, "nogreenteagc"))
		return INLINE_NONE;
	return minor >= 26 || has_experiment(experiments, "greenteagc") ? INLINE_MARKS :
									  INLINE_NONE;
}

static int take(const struct golayout *l, enum layout_field f, int32_t *out,
		struct rtspan_layout *r, struct err *e)
{
	int32_t off = l->off[f];

	if (off < 0 || off > HEAD_MAX - 8)
		return err_set(e, -ENOTSUP, "where this Go has %s is not known",
			       layout_field_name(f));
	*out = off;
	if ((size_t)off + 8 > r->head)
		r->head = (size_t)off + 8;
	return 0;
}

int rtspan_layout(const struct golayout *l, int minor, const char *experiments,
		  struct rtspan_layout *out, struct err *e)
{
	struct rtspan_layout r = { 0 };
	int32_t freeindex = 0;
	int ret;

	if (minor >= 0 && minor < 19)
		return err_set(e, -ENOTSUP, "go1.%d is older than go1.19", minor);
	if (has_experiment(experiments, "runtimefreegc"))
		return err_set(e, -ENOTSUP,
			       "built with GOEXPERIMENT=runtimefreegc, which uses "
			       "slots again before the GC has seen them");
	ret = take(l, LAYOUT_mspan_startaddr, &r.start, &r, e);
	if (!ret)
		ret = take(l, LAYOUT_mspan_nelems, &r.nelems, &r, e);
	if (!ret)
		ret = take(l, LAYOUT_mspan_allocbits, &r.allocbits, &r, e);
	if (!ret)
		ret = take(l, LAYOUT_mspan_gcmarkbits, &r.gcmarkbits, &r, e);
	if (!ret)
		ret = take(l, LAYOUT_mspan_sweepgen, &r.sweepgen, &r, e);
	if (!ret)
		ret = take(l, LAYOUT_mspan_state, &r.state, &r, e);
	if (!ret)
		ret = take(l, LAYOUT_mspan_elemsize, &r.elemsize, &r, e);
	if (!ret)
		ret = take(l, LAYOUT_mspan_freeindex, &freeindex, &r, e);
	if (ret)
		return ret;
	r.index_bytes = (uint32_t)(r.nelems - freeindex);
	if (r.index_bytes != 2 && r.index_bytes != 8)
		return err_set(e, -ENOTSUP, "mspan.nelems does not follow mspan.freeindex");
	r.marks = inline_marks(minor, experiments);
	*out = r;
	return 0;
}

/* ---- one span --------------------------------------------------------------------------------- */

struct head {
	uint32_t gen_before; /* mspan.sweepgen, read before the rest */
	uint8_t bytes[HEAD_MAX];
};

static uint64_t word(const struct head *h, int32_t off)
{
	uint64_t v;

	memcpy(&v, h->bytes + off, sizeof(v));
	return v;
}

static uint64_t index_at(const struct rtspan_layout *l, const struct head *h, int32_t off)
{
	return l->index_bytes == 2 ? word(h, off) & 0xffff : word(h, off);
}

/* Is it still the span that the object was put into, as far as that shows? */
static bool same_span(const struct rtspan_layout *l, const struct head *h,
		      const struct rtspan_object *o)
{
	return h->bytes[l->state] == STATE_IN_USE && word(h, l->start) == o->base &&
	       word(h, l->elemsize) == o->size && o->index < index_at(l, h, l->nelems) &&
	       index_at(l, h, l->nelems) <= SLOTS_MAX;
}

/* The address of an object's mark until its span is swept; 0 when that is not known. */
static uint64_t mark_byte(const struct rtspan_layout *l, const struct head *h,
			  const struct rtspan_object *o)
{
	bool small = o->size >= INLINE_MIN && o->size <= INLINE_MAX;

	if (small && l->marks == INLINE_UNKNOWN)
		return 0;
	if (small && l->marks == INLINE_MARKS)
		return o->base + INLINE_MARKS_AT + o->index / 8;
	return word(h, l->gcmarkbits) + o->index / 8;
}

/* ---- many ------------------------------------------------------------------------------------- */

/* What is read for one object, once its span is known. */
struct plan {
	uint32_t as_of; /* the cycle that the bit is about; 0: nothing needs to be read */
	bool history;	/* a bit of the cycle before that is read as well */
	uint64_t marks; /* the span's marks, from then on */
	size_t at;	/* index of the first of its pieces */
};

struct round {
	struct head heads[BATCH];
	struct mem_piece pieces[2 * BATCH];
	uint8_t bytes[2 * BATCH];
	struct plan plans[BATCH];
};

static int read_heads(struct mem *m, const struct rtspan_layout *l, const struct rtspan_object *v,
		      size_t n, struct round *r, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		/*
		 * sweepgen is read first, so that a span that is swept during the reading does
		 * not seem to have been swept before.
		 */
		r->pieces[2 * i] = (struct mem_piece){ .addr = v[i].span + (uint64_t)l->sweepgen,
						       .buf = &r->heads[i].gen_before,
						       .n = sizeof(r->heads[i].gen_before) };
		r->pieces[2 * i + 1] = (struct mem_piece){ .addr = v[i].span,
							   .buf = r->heads[i].bytes,
							   .n = l->head };
	}
	return mem_readv(m, r->pieces, 2 * n, e);
}

static uint64_t byte_of(uint64_t bits, const struct rtspan_object *o)
{
	return bits ? bits + o->index / 8 : 0;
}

/*
 * Chooses the byte that tells more of @o than is known, and the cycle that it is about. The
 * span's sweepgen compared with the heap's: 0 swept, 3 swept and in a P's cache since; -2 not
 * swept, 1 not swept and in a cache; -1 being swept now.
 */
static uint64_t choose_byte(const struct rtspan_layout *l, const struct head *h, uint32_t gen,
			    bool last, const struct rtspan_object *o, struct plan *p)
{
	int32_t ahead = (int32_t)(h->gen_before - gen);
	uint32_t swept = ahead == 0 || ahead == 3 ? gen : gen - 2;

	if (ahead != 0 && ahead != 3 && ahead != -2 && ahead != 1)
		return 0;
	p->marks = word(h, l->gcmarkbits);
	p->as_of = swept;
	if (swept != o->gen && (int32_t)(swept - o->gen) > 0)
		return byte_of(word(h, l->allocbits), o);
	if (!last || swept == gen || swept != o->gen)
		return 0;
	p->as_of = gen;
	return mark_byte(l, h, o);
}

static size_t plan_one(const struct rtspan_layout *l, struct round *r, size_t i, uint32_t gen,
		       bool last, bool quiet, struct rtspan_object *o, size_t at)
{
	struct plan *p = &r->plans[i];
	uint64_t addr, before;

	*p = (struct plan){ .at = at };
	o->answer = same_span(l, &r->heads[i], o) ? RTSPAN_LIVES : RTSPAN_DEAD;
	addr = o->answer == RTSPAN_LIVES ? choose_byte(l, &r->heads[i], gen, last, o, p) : 0;
	if (!addr) {
		p->as_of = 0;
		return at;
	}
	/* The first 2i pieces have been evaluated, so these places are free. */
	r->pieces[at] = (struct mem_piece){ .addr = addr, .buf = &r->bytes[at], .n = 1 };
	at++;
	before = byte_of(o->marks, o);
	p->history = quiet && before && p->as_of == gen && p->as_of - o->gen == 4;
	if (p->history) {
		r->pieces[at] = (struct mem_piece){ .addr = before, .buf = &r->bytes[at], .n = 1 };
		at++;
	}
	return at;
}

static bool bit(const struct round *r, size_t at, const struct rtspan_object *o)
{
	return r->bytes[at] >> (o->index % 8) & 1;
}

/* @quiet: the GC has not begun to mark again, so what was remembered was still there. */
static void conclude(const struct round *r, const struct plan *p, bool quiet,
		     struct rtspan_object *o)
{
	bool history = p->history && quiet && r->pieces[p->at + 1].ok;
	uint32_t since = p->as_of - o->gen;

	o->missed = r->pieces[p->at].ok && since > (history ? 4u : 2u) ? since / 2 : 0;
	if (!r->pieces[p->at].ok) {
		o->answer = RTSPAN_UNREADABLE;
	} else if (!bit(r, p->at, o) || (history && !bit(r, p->at + 1, o))) {
		o->answer = RTSPAN_DEAD;
	} else {
		if (o->missed)
			o->answer = RTSPAN_MISSED;
		o->gen = p->as_of;
		o->marks = p->marks;
	}
}

static bool is_quiet(struct mem *m, const struct rtspan_vars *vars)
{
	uint32_t v;

	return vars->blacken && !mem_u32(m, vars->blacken, &v, NULL) && !v;
}

static int ask_batch(struct mem *m, const struct rtspan_layout *l, const struct rtspan_vars *vars,
		     uint32_t gen, bool last, struct rtspan_object *v, size_t n, struct round *r,
		     struct err *e)
{
	bool quiet = is_quiet(m, vars);
	size_t k = 0;
	int ret = read_heads(m, l, v, n, r, e);

	if (ret)
		return ret;
	for (size_t i = 0; i < n; i++) {
		bool ok = r->pieces[2 * i].ok && r->pieces[2 * i + 1].ok;

		r->plans[i].as_of = 0;
		if (ok)
			k = plan_one(l, r, i, gen, last, quiet, &v[i], k);
		else
			v[i].answer = RTSPAN_UNREADABLE;
	}
	ret = mem_readv(m, r->pieces, k, e);
	if (ret)
		return ret;
	quiet = quiet && is_quiet(m, vars);
	for (size_t i = 0; i < n; i++)
		if (r->plans[i].as_of)
			conclude(r, &r->plans[i], quiet, &v[i]);
	return 0;
}

static int ask_all(struct mem *m, const struct rtspan_layout *l, const struct rtspan_vars *vars,
		   bool last, struct rtspan_object *v, size_t n, uint32_t *gen, struct err *e)
{
	CLEANUP(freep) struct round *r = malloc(sizeof(*r));
	uint32_t before, after;
	int ret;

	if (!r)
		return err_set(e, -ENOMEM, "no memory to look at spans");
	ret = mem_u32(m, vars->sweepgen, &before, e);
	for (size_t i = 0; !ret && i < n; i += BATCH)
		ret = ask_batch(m, l, vars, before, last, v + i, n - i < BATCH ? n - i : BATCH, r,
				e);
	if (!ret)
		ret = mem_u32(m, vars->sweepgen, &after, e);
	if (ret)
		return ret;
	if (before != after)
		return err_set(e, -EAGAIN, "a GC cycle ended while spans were read");
	*gen = before;
	return 0;
}

int rtspan_ask(struct mem *m, const struct rtspan_layout *l, const struct rtspan_vars *vars,
	       bool last, struct rtspan_object *v, size_t n, uint32_t *gen, struct err *e)
{
	CLEANUP(freep) struct rtspan_object *mine = malloc((n + 1) * sizeof(*mine));
	int ret;

	if (!mine)
		return err_set(e, -ENOMEM, "no memory to look at objects");
	memcpy(mine, v, n * sizeof(*mine));
	ret = ask_all(m, l, vars, last, mine, n, gen, e);
	if (!ret)
		memcpy(v, mine, n * sizeof(*mine));
	return ret;
}
