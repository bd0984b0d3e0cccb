/*
 * user/go/layout/layout_code.c - checks unsure offsets against the binary's own instructions.
 *
 * A struct that changed shows in every function that uses it. Each of the functions below is
 * known to name its field. When one that is present does not name the offset we have, the field
 * has moved. These are assembly and scheduler functions, because those keep their names and are
 * not inlined. Source: runtime/asm_*.s, sys_linux_*.s, proc.go, malloc.go, mcache.go, cgocall.go,
 * proflabel.go; which instruction names which offset was read from official builds of Go 1.20 to
 * 1.27 for both machines.
 */
#include "arch/arch.h"
#include "base/limits.h"
#include "base/vec.h"
#include "go/image/elf/scan.h"
#include "go/layout/layout_check.h"

enum { NAMES = 3, ALL_NAMES = NAMES + 1 /* last */, RULES_MAX = 32, WINDOW = 64 };

/*
 * All functions @of that are in the binary must name the field. Where none of them is there,
 * @last must (inlining and renaming move code about from one Go to the next).
 */
struct rule {
	enum layout_field field;
	int16_t plus; /* offset in the field of the part that is named */
	bool by_g;    /* relative to the current g's register */
	bool cgo;     /* matters only to programs with cgo */
	uint8_t use;  /* which uses need it: any of these; 0: all */
	/*
	 * the field must have moved as far as this one, where several places are possible; 0:
	 * none
	 */
	enum layout_field like;
	const char *of[NAMES], *last;
};

#define SAVED_BY_MCALL(id)                                                    \
	{                                                                     \
		.field = LAYOUT_##id, .by_g = true, .of = { "runtime.mcall" } \
	}

static const struct rule rules[] = {
	{ .field = LAYOUT_g_m, .by_g = true, .of = { "runtime.mcall", "runtime.systemstack" } },
	SAVED_BY_MCALL(g_sched_sp),
	SAVED_BY_MCALL(g_sched_pc),
	SAVED_BY_MCALL(g_sched_bp),
	{ .field = LAYOUT_g_stack_lo, .of = { "runtime.rt0_go" } },
	{ .field = LAYOUT_g_stack_hi, .of = { "runtime.rt0_go" } },
	{ .field = LAYOUT_g_syscallsp, .cgo = true, .of = { "runtime.reentersyscall" } },
	{ .field = LAYOUT_g_syscallpc, .cgo = true, .of = { "runtime.reentersyscall" } },
	{ .field = LAYOUT_m_g0,
	  .of = { "runtime.mcall", "runtime.systemstack", "runtime.rt0_go" } },
	{ .field = LAYOUT_m_curg,
	  .of = { "runtime.systemstack", "runtime.nanotime1", "runtime.execute" } },
	{ .field = LAYOUT_m_p, .of = { "runtime.wirep", "runtime.execute" } },
	/* The instructions name the length of the string. m.p lies a few words before it. */
	{ .field = LAYOUT_m_preemptoff,
	  .plus = 8,
	  .like = LAYOUT_m_p,
	  .of = { "runtime.gcStart", "runtime.newstack" } },
	{ .field = LAYOUT_m_ncgo, .cgo = true, .of = { "runtime.cgocall" } },
	{ .field = LAYOUT_m_vdsosp, .of = { "runtime.nanotime1" }, .last = "time.now" },
	{ .field = LAYOUT_m_vdsopc, .of = { "runtime.nanotime1" }, .last = "time.now" },
	{ .field = LAYOUT_p_mcache, .use = LAYOUT_USE_PROBE, .of = { "runtime.newproc1" } },
	{ .field = LAYOUT_mcache_tiny,
	  .use = LAYOUT_USE_PROBE,
	  .of = { "runtime.(*mcache).releaseAll", "runtime.mallocgcTinySC2",
		  "runtime.mallocgcTiny" } },
	{ .field = LAYOUT_mcache_tinyoffset,
	  .use = LAYOUT_USE_PROBE,
	  .of = { "runtime.mallocgcTinySC2", "runtime.mallocgcTiny",
		  "runtime.mallocgcTinySlowPath" },
	  .last = "runtime.mallocgc" },
	{ .field = LAYOUT_g_waitreason,
	  .use = LAYOUT_USE_WAITS | LAYOUT_USE_GOROUTINES,
	  .of = { "runtime.gopark", "runtime.goroutineheader" } },
	{ .field = LAYOUT_g_waitsince,
	  .use = LAYOUT_USE_GOROUTINES,
	  .of = { "runtime.goroutineheader", "runtime.execute" } },
	{ .field = LAYOUT_g_lockedm,
	  .use = LAYOUT_USE_GOROUTINES,
	  .of = { "runtime.goroutineheader" } },
};
_Static_assert(ARRAY_LEN(rules) <= RULES_MAX, "as many as one look-up takes");

static const char set_labels[] = "runtime/pprof.runtime_setProfLabel";

struct reader {
	struct gobin *b;
	struct arch *a;
	uint8_t code[LIMIT_DECODE];
	size_t n;
	/*
	 * step over an instruction that the decoder does not know; 0: lengths differ, so there is
	 * none
	 */
	size_t step;
};

static int load(struct reader *r, const struct gofunc *f, struct err *e)
{
	uint64_t len = f->end > f->entry ? f->end - f->entry : 0;

	r->n = len < sizeof(r->code) ? (size_t)len : sizeof(r->code);
	return mem_read(gobin_mem(r->b), f->entry, r->code, r->n, e);
}

static bool names_offset(struct reader *r, uint64_t entry, int32_t off, bool by_g)
{
	struct insn i;

	for (size_t at = 0; at < r->n; at += i.len ? i.len : r->step) {
		arch_decode(r->a, r->code + at, r->n - at, entry + at, &i);
		if (i.kind == INSN_BAD && !r->step)
			return false;
		if (i.base && (i.off == off || (i.pair && i.off + 8 == off)) &&
		    (!by_g || i.base == BASE_G))
			return true;
	}
	return false;
}

/* Do all functions that must name the field at @off do so? @name: the first that does not. */
static int named_by_all(struct reader *r, const struct rule *rule, const struct gofunc f[ALL_NAMES],
			int32_t off, const char **name, struct err *e)
{
	unsigned int heard = 0;

	for (size_t i = 0; i < ALL_NAMES; i++) {
		int rc;

		if (!f[i].entry || (i == NAMES && heard))
			continue;
		heard++;
		rc = load(r, &f[i], e);
		if (rc < 0)
			return rc;
		*name = i < NAMES ? rule->of[i] : rule->last;
		if (off < 0 || !names_offset(r, f[i].entry, off + rule->plus, rule->by_g))
			return 0;
	}
	if (heard)
		return 1;
	return err_set(e, -ENOTSUP, "%s cannot be checked: no function %s",
		       layout_field_name(rule->field), rule->of[0]);
}

/*
 * Keeps what the table says when the code says the same. Else takes the one place near it that
 * the code names in all of these functions, if there is exactly one; of several, the one that
 * moved as far as a neighbouring field. @was: the layout before anything was corrected.
 */
static int settle_rule(struct reader *r, const struct golayout *was, struct golayout *l,
		       const struct rule *rule, const struct gofunc f[ALL_NAMES], struct err *e)
{
	int32_t old = was->off[rule->field], found = -1, other = -1;
	int32_t like = old + l->off[rule->like] - was->off[rule->like];
	const char *name = "", *ignored;
	int rc = named_by_all(r, rule, f, old, &name, e);

	if (rc)
		return rc < 0 ? rc : 0;
	for (int32_t off = old - WINDOW; old >= 0 && off <= old + WINDOW; off += 8) {
		rc = named_by_all(r, rule, f, off, &ignored, e);
		if (rc < 0)
			return rc;
		if (!rc)
			continue;
		other = found;
		found = off;
		if (rule->like && off == like && like != old) {
			other = -1;
			break;
		}
	}
	if (found < 0)
		return err_set(e, -ENOTSUP, "%s has moved: %s does not use offset %d",
			       layout_field_name(rule->field), name, old);
	if (other >= 0)
		return err_set(e, -ENOTSUP,
			       "%s has moved: %s does not use offset %d, but perhaps %d or %d",
			       layout_field_name(rule->field), name, old, other, found);
	l->off[rule->field] = found;
	return 0;
}

static bool is_used(const struct rule *r, unsigned int use)
{
	return !r->use || (r->use & use);
}

/* Two fields cannot be in one place: if they are, one was mistaken for its neighbour. */
static int check_apart(const struct golayout *l, unsigned int use, struct err *e)
{
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		for (size_t k = 0; k < i; k++) {
			enum layout_field a = rules[i].field, b = rules[k].field;

			if (!is_used(&rules[i], use) || !is_used(&rules[k], use) || rules[i].cgo ||
			    rules[k].cgo || l->off[a] != l->off[b] ||
			    layout_field_name(a)[0] != layout_field_name(b)[0] ||
			    layout_field_name(a)[1] != layout_field_name(b)[1])
				continue;
			return err_set(e, -ENOTSUP, "%s and %s cannot both be at offset %d",
				       layout_field_name(a), layout_field_name(b), l->off[a]);
		}
	return 0;
}

static int check_rules(struct reader *r, struct golayout *l, unsigned int use, struct err *e)
{
	const struct golayout was = *l;
	const char *names[RULES_MAX * ALL_NAMES];
	struct gofunc f[RULES_MAX * ALL_NAMES] = { { 0 } };
	int rc;

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		for (size_t k = 0; k < NAMES; k++)
			names[i * ALL_NAMES + k] = rules[i].of[k] ? rules[i].of[k] : "";
		names[i * ALL_NAMES + NAMES] = rules[i].last ? rules[i].last : "";
	}
	rc = gobin_funcs_named(r->b, names, ARRAY_LEN(rules) * ALL_NAMES, f, e);
	for (size_t i = 0; rc >= 0 && i < ARRAY_LEN(rules); i++) {
		if (!is_used(&rules[i], use) || (rules[i].cgo && !gobin_info(r->b)->cgo))
			continue;
		rc = settle_rule(r, &was, l, &rules[i], &f[i * ALL_NAMES], e);
	}
	return rc < 0 ? rc : check_apart(l, use, e);
}

/* Finds the one field of g, apart from the stack guards, that the only writer of labels names. */
static int derive_labels(struct reader *r, struct golayout *l, struct err *e)
{
	const char *name = set_labels;
	struct gofunc f = { 0 };
	int32_t found = -1;
	struct insn i;
	int rc = gobin_funcs_named(r->b, &name, 1, &f, e);

	if (rc > 0)
		rc = load(r, &f, e);
	if (rc < 0)
		return rc;
	for (size_t at = 0; f.entry && at < r->n; at += i.len) {
		arch_decode(r->a, r->code + at, r->n - at, f.entry + at, &i);
		if (i.kind == INSN_BAD)
			break;
		if (i.base != BASE_G || i.off <= 0x18 || i.off == found)
			continue;
		if (found >= 0)
			return err_set(e, -ENOTSUP,
				       "%s names g + %d and g + %d: which one the labels are "
				       "cannot be told",
				       set_labels, found, i.off);
		found = i.off;
	}
	if (f.entry && found < 0)
		return err_set(e, -ENOTSUP, "%s names no field of g", set_labels);
	l->off[LAYOUT_g_labels] = found;
	return 0;
}

int layout_check_code(struct gobin *b, struct golayout *l, unsigned int use, struct err *e)
{
	enum arch_id id = gobin_info(b)->arch;
	CLEANUP(freep) struct reader *r = calloc(1, sizeof(*r));
	CLEANUP(arch_freep) struct arch *a = NULL;
	struct golayout checked = *l;
	int rc;

	/*
	 * sudog is small, and every word of it is named wherever one is, so nothing can be
	 * proved.
	 */
	if (use & LAYOUT_USE_SEMA)
		return err_set(e, -ENOTSUP, "the queues of its semaphores cannot be checked");
	if (!r)
		return err_set(e, -ENOMEM, "no memory to check the runtime's structs");
	rc = arch_open(id, &a, e);
	if (rc < 0)
		return rc;
	r->b = b;
	r->a = a;
	r->step = id == ARCH_ARM64 ? 4 : 0;
	rc = check_rules(r, &checked, use, e);
	if (!rc)
		rc = derive_labels(r, &checked, e);
	if (rc < 0)
		return rc;
	if (!gobin_info(b)->cgo)
		checked.off[LAYOUT_m_ncgo] = -1;
	*l = checked;
	return 0;
}

bool layout_code_uses(enum layout_field f)
{
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		if (rules[i].field == f && !rules[i].cgo)
			return true;
	return false;
}

/* ---- slot sizes ------------------------------------------------------------------------------ */

/* Returns 1 when the @n bytes at @what are in [@lo, @hi) of the file's data. */
static int search(struct gobin *b, uint64_t lo, uint64_t hi, const void *what, size_t n,
		  struct err *e)
{
	CLEANUP(scan_fini) struct scan s = { 0 };
	int rc;

	if (lo >= hi)
		return 0;
	rc = scan_init(&s, gobin_mem(b), lo, hi - lo, n - 1, e);
	while (!rc && (rc = scan_next(&s, e)) > 0) {
		if (memmem(s.buf, s.n, what, n))
			return 1;
		rc = 0;
	}
	return rc;
}

int layout_check_sizeclasses(struct gobin *b, const struct sizeclasses *c, struct err *e)
{
	const struct gomodule *m = gobin_module(b);
	uint16_t raw[SIZECLASS_MAX + 1] = { 0 }; /* class 0 is for large objects */
	size_t n = (1 + (size_t)c->n) * sizeof(raw[0]);
	int rc;

	for (uint32_t i = 0; i < c->n && i < SIZECLASS_MAX; i++)
		raw[1 + i] = (uint16_t)c->size[i];
	rc = search(b, m->noptrdata, m->enoptrdata, raw, n, e);
	if (!rc)
		rc = search(b, m->types, m->etypes, raw, n, e);
	if (rc < 0)
		return rc;
	if (!rc)
		return err_set(e, -ENOTSUP,
			       "the allocator's slot sizes of %s are not those of the Go before it",
			       gobin_info(b)->version);
	return 0;
}
