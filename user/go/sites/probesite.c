/*
 * user/go/sites/probesite.c - the instruction of a function where a probe counts each call once.
 *
 * Source of the stack check's shapes: user/arch/amd64.c, user/arch/arm64.c. A huge frame's
 * check has a second branch before the last one; both go to the same call of morestack,
 * after which the function starts again, so that the last branch alone tells.
 */
#include "go/sites/probesite.h"

#include "base/limits.h"
#include "go/sites/probesite_priv.h"

enum {
	EARLY_BRANCHES = 2, /* of a stack check, before its last one */
	CHECK_INSNS = 16,   /* the longest check there is has 9 */
};

/* How the straight line from the entry ended. */
enum line_end { LINE_SITE, LINE_NO_CHECK, LINE_BAD };

struct line {
	uint64_t at; /* of the instruction that ended it */
	enum insn_kind last;
	uint64_t early[EARLY_BRANCHES];
	unsigned int nearly;
};

static bool same_targets(const struct line *l, uint64_t target)
{
	for (unsigned int i = 0; i < l->nearly; i++)
		if (l->early[i] != target)
			return false;
	return target != 0;
}

static enum line_end walk(struct arch *a, const uint8_t *code, size_t n, uint64_t entry,
			  uint64_t size, struct line *l)
{
	struct insn in;

	for (size_t at = 0, k = 0; k < CHECK_INSNS; at += in.len, k++) {
		arch_decode(a, code + at, n - at, entry + at, &in);
		l->at = in.addr;
		l->last = in.kind;
		switch (in.kind) {
		case INSN_STACK_BRANCH:
			return same_targets(l, in.target) && in.target >= entry &&
					       in.target - entry < size ?
				       LINE_SITE :
				       LINE_NO_CHECK;
		case INSN_BRANCH:
			if (l->nearly == EARLY_BRANCHES || !in.target)
				return LINE_NO_CHECK;
			l->early[l->nearly++] = in.target;
			break;
		case INSN_CALL:
		case INSN_RET:
			return LINE_NO_CHECK;
		case INSN_BAD:
			return LINE_BAD;
		default:
			break;
		}
	}
	return LINE_NO_CHECK;
}

/*
 * Is the entry passed once per call, and may a probe be there? It is when there is no stack check
 * anywhere and nothing jumps back to it.
 */
static int entry_is_once(struct arch *a, const uint8_t *code, size_t n, uint64_t entry,
			 struct err *e)
{
	struct insn in;

	for (size_t at = 0; at < n; at += in.len) {
		arch_decode(a, code + at, n - at, entry + at, &in);
		if (in.kind == INSN_BAD)
			return err_set(e, -ENOTSUP, "no instruction at 0x%llx",
				       (unsigned long long)in.addr);
		if (in.no_probe && in.addr == entry)
			return err_set(e, -ENOTSUP,
				       "some kernel refuses or mistakes what is at 0x%llx",
				       (unsigned long long)in.addr);
		if (in.kind == INSN_STACK_CMP)
			return err_set(e, -ENOTSUP,
				       "a stack check at 0x%llx that not every call takes",
				       (unsigned long long)in.addr);
		if (in.target == entry && in.kind != INSN_CALL)
			return err_set(e, -ENOTSUP, "0x%llx jumps back to the entry",
				       (unsigned long long)in.addr);
	}
	return 0;
}

int probesite_decode(struct arch *a, const uint8_t *code, size_t n, uint64_t entry, uint64_t size,
		     enum site_kind *kind, uint64_t *addr, struct err *e)
{
	struct line l = { 0 };
	int rc;

	switch (walk(a, code, n, entry, size, &l)) {
	case LINE_SITE:
		*kind = SITE_STACK_BRANCH;
		*addr = l.at;
		return 0;
	case LINE_BAD:
		return err_set(e, -ENOTSUP, "no instruction at 0x%llx, entry + %llu",
			       (unsigned long long)l.at, (unsigned long long)(l.at - entry));
	case LINE_NO_CHECK:
		break;
	}
	if (n < size)
		return err_set(e, -ENOTSUP, "no stack check in its first %zu bytes", n);
	rc = entry_is_once(a, code, n, entry, e);
	if (rc < 0)
		return rc;
	*kind = SITE_NOSPLIT_ENTRY;
	*addr = entry;
	return 0;
}

/* The first branch that the straight line from the entry meets; 0 when no probe can use it. */
static uint64_t first_branch(struct arch *a, const uint8_t *code, size_t n, uint64_t entry)
{
	bool framed = false;
	struct insn in;

	for (size_t at = 0, k = 0; k < CHECK_INSNS; at += in.len, k++) {
		arch_decode(a, code + at, n - at, entry + at, &in);
		if (in.kind == INSN_BRANCH)
			return framed && in.emulated && in.cond != COND_NONE ? in.addr : 0;
		if (in.kind != INSN_OTHER || in.arg_write || (!k && in.emulated))
			return 0;
		framed |= in.sets_frame;
	}
	return 0;
}

bool probesite_framed(struct arch *a, const uint8_t *code, size_t n, uint64_t entry, uint64_t *addr)
{
	uint64_t site = first_branch(a, code, n, entry);
	struct insn in;

	/* It must be passed once: nothing may jump back so that control meets it again. */
	for (size_t at = 0; site && at < n; at += in.len) {
		arch_decode(a, code + at, n - at, entry + at, &in);
		if (in.kind == INSN_BAD)
			return false;
		if (in.kind != INSN_CALL && in.target >= entry && in.target <= site)
			return false;
	}
	if (site)
		*addr = site;
	return site;
}

bool probesite_mentions(struct arch *a, const uint8_t *code, size_t n, uint64_t entry,
			uint64_t target, bool *calls)
{
	bool seen = false;
	struct insn in;

	*calls = false;
	for (size_t at = 0; at < n; at += in.len) {
		arch_decode(a, code + at, n - at, entry + at, &in);
		if (in.kind == INSN_BAD)
			return true;
		if (in.target == target && in.kind == INSN_CALL)
			*calls = true;
		if (in.target == target || in.mem_addr == target)
			seen = true;
	}
	return seen;
}

/* ---- on a binary ----------------------------------------------------------------------------- */

struct code {
	uint64_t size; /* of the function */
	size_t n;      /* bytes of it that were read */
	uint8_t at[LIMIT_DECODE];
};

static int code_read(struct gobin *b, const struct gofunc *f, struct code *c, struct err *e)
{
	c->size = f->end > f->entry ? f->end - f->entry : 0;
	if (!c->size)
		return err_set(e, -EBADMSG, "the function at 0x%llx is empty",
			       (unsigned long long)f->entry);
	c->n = c->size <= sizeof(c->at) ? (size_t)c->size : sizeof(c->at);
	return mem_read(gobin_mem(b), f->entry, c->at, c->n, e);
}

static int decoder(struct gobin *b, struct arch **out, struct err *e)
{
	return arch_open(gobin_info(b)->arch, out, e);
}

/* The kernel emulates the branches of stack checks, and few of the instructions at entries. */
static bool is_stepped(struct arch *a, const struct code *c, const struct gofunc *f,
		       const struct probesite *s)
{
	size_t at = (size_t)(s->addr - f->entry);
	struct insn in;

	if (s->kind != SITE_NOSPLIT_ENTRY)
		return false;
	arch_decode(a, c->at + at, c->n - at, s->addr, &in);
	return !in.emulated;
}

static int find_with(struct gobin *b, struct arch *a, const struct gofunc *f, struct probesite *out,
		     struct err *e)
{
	struct probesite s = { 0 };
	struct code c;
	int rc = code_read(b, f, &c, e);

	if (!rc)
		rc = probesite_decode(a, c.at, c.n, f->entry, c.size, &s.kind, &s.addr, e);
	if (!rc)
		rc = gobin_file_offset(b, s.addr, &s.file_off, e);
	if (rc < 0)
		return err_wrap(e, rc, "no safe probe site in the function at 0x%llx",
				(unsigned long long)f->entry);
	s.stepped = is_stepped(a, &c, f, &s);
	*out = s;
	return 0;
}

int probesite_find(struct gobin *b, const struct gofunc *f, struct probesite *out, struct err *e)
{
	struct arch *a CLEANUP(arch_freep) = NULL;
	int rc = decoder(b, &a, e);

	return rc < 0 ? rc : find_with(b, a, f, out, e);
}

int probesite_find_cheap(struct gobin *b, const struct gofunc *f, struct probesite *out,
			 struct err *e)
{
	struct arch *a CLEANUP(arch_freep) = NULL;
	struct probesite s;
	struct code c;
	int rc = decoder(b, &a, e);

	if (!rc)
		rc = find_with(b, a, f, &s, e);
	if (!rc && s.kind == SITE_NOSPLIT_ENTRY)
		rc = code_read(b, f, &c, e);
	if (!rc && s.kind == SITE_NOSPLIT_ENTRY &&
	    probesite_framed(a, c.at, c.n, f->entry, &s.addr)) {
		s.kind = SITE_FRAMED_BRANCH;
		s.stepped = false;
		rc = gobin_file_offset(b, s.addr, &s.file_off, e);
	}
	if (rc < 0)
		return rc;
	*out = s;
	return 0;
}

/* ---- the allocator --------------------------------------------------------------------------- */

/* The functions that mallocgc dispatches to from go1.24 on. */
enum leaf { LEAF_NOSCAN, LEAF_NOHEADER, LEAF_HEADER, LEAF_LARGE, LEAF_TINY, LEAF_TINY_SC, LEAVES };

/* clang-format off */
#define SC(X, kind, name)                                                               \
	X(kind, name "1") X(kind, name "2") X(kind, name "3") X(kind, name "4")         \
	X(kind, name "5") X(kind, name "6") X(kind, name "7") X(kind, name "8")         \
	X(kind, name "9") X(kind, name "10") X(kind, name "11") X(kind, name "12")      \
	X(kind, name "13") X(kind, name "14") X(kind, name "15") X(kind, name "16")     \
	X(kind, name "17") X(kind, name "18") X(kind, name "19") X(kind, name "20")     \
	X(kind, name "21") X(kind, name "22") X(kind, name "23") X(kind, name "24")     \
	X(kind, name "25") X(kind, name "26") X(kind, name "27") X(kind, name "28")     \
	X(kind, name "29") X(kind, name "30") X(kind, name "31") X(kind, name "32")

#define ALLOC_FUNCS(X)                                                                  \
	X(ALLOC_NOSCAN, "runtime.mallocgcSmallNoscan")                                  \
	X(ALLOC_SCAN_NOHEADER, "runtime.mallocgcSmallScanNoHeader")                     \
	X(ALLOC_SCAN_HEADER, "runtime.mallocgcSmallScanHeader")                         \
	X(ALLOC_LARGE, "runtime.mallocgcLarge")                                         \
	X(ALLOC_TINY, "runtime.mallocgcTiny")                                           \
	X(ALLOC_TINY, "runtime.mallocgcTinySC2")                                        \
	SC(X, ALLOC_SCAN_NOHEADER, "runtime.mallocgcSmallScanNoHeaderSC")               \
	SC(X, ALLOC_NOSCAN, "runtime.mallocgcSmallNoScanSC")                            \
	SC(X, ALLOC_TINY, "runtime.mallocgcTinySize")                                   \
	X(ALLOC_ANY, "runtime.mallocgc")
/* clang-format on */

static const char *const func_names[] = {
#define NAME(kind, name) name,
	ALLOC_FUNCS(NAME)
#undef NAME
};

static const enum alloc_kind func_kinds[] = {
#define KIND(kind, name) kind,
	ALLOC_FUNCS(KIND)
#undef KIND
};

enum { NFUNCS = ARRAY_LEN(func_names), MALLOCGC = NFUNCS - 1 };
_Static_assert((int)NFUNCS <= (int)ALLOC_ENTRIES_MAX, "every function may be there");

struct allocator {
	struct gofunc f[NFUNCS]; /* entry 0: not in this binary */
	bool size_specialised;
};

static bool mentions(struct arch *a, const struct code *c, const struct allocator *al, size_t i,
		     bool *calls)
{
	*calls = false;
	return al->f[i].entry &&
	       probesite_mentions(a, c->at, c->n, al->f[MALLOCGC].entry, al->f[i].entry, calls);
}

/*
 * Does mallocgc call every leaf function, and none by a copy of its body? A copy of a
 * size-specialised function shows as that function's address, because the copy's guard compares
 * it with what the table says.
 */
static bool leaves_are_called(struct gobin *b, struct arch *a, const struct allocator *al)
{
	bool calls[LEAVES], tiny;
	struct code c;

	if (code_read(b, &al->f[MALLOCGC], &c, NULL) < 0 || c.n < c.size)
		return false;
	for (size_t i = 0; i < LEAVES; i++)
		mentions(a, &c, al, i, &calls[i]);
	for (size_t i = LEAVES; i < MALLOCGC; i++) {
		bool called;

		if (mentions(a, &c, al, i, &called))
			return false;
	}
	tiny = calls[LEAF_TINY] || calls[LEAF_TINY_SC] ||
	       (al->size_specialised && !al->f[LEAF_TINY_SC].entry);
	return tiny && calls[LEAF_NOSCAN] && calls[LEAF_NOHEADER] && calls[LEAF_HEADER] &&
	       calls[LEAF_LARGE];
}

static bool is_size_specialised(size_t i)
{
	return i == LEAF_TINY_SC || (i >= LEAVES && i < MALLOCGC);
}

static int add_entry(struct gobin *b, struct arch *a, const struct allocator *al, size_t i,
		     struct alloc_entry *out, struct err *e)
{
	int rc = find_with(b, a, &al->f[i], &out->site, e);

	if (rc < 0)
		return err_wrap(e, rc, "%s", func_names[i]);
	out->name = func_names[i];
	out->kind = func_kinds[i];
	out->func = al->f[i];
	out->assists = i == MALLOCGC || is_size_specialised(i);
	return 0;
}

/* Is this function an entry, given that the leaves are entries (or that mallocgc is)? */
static bool is_entry(const struct allocator *al, size_t i, bool leaves)
{
	if (!al->f[i].entry)
		return false;
	if (i == MALLOCGC)
		return !leaves;
	return leaves || is_size_specialised(i);
}

static int find_functions(struct gobin *b, struct allocator *al, struct err *e)
{
	int rc = gobin_funcs_named(b, func_names, NFUNCS, al->f, e);

	if (rc < 0)
		return rc;
	if (!al->f[MALLOCGC].entry)
		return err_set(e, -ENOENT, "no function runtime.mallocgc");
	for (size_t i = 0; i < NFUNCS; i++)
		al->size_specialised |= al->f[i].entry && is_size_specialised(i);
	return 0;
}

int alloc_entries(struct gobin *b, struct alloc_entry out[ALLOC_ENTRIES_MAX], struct err *e)
{
	struct arch *a CLEANUP(arch_freep) = NULL;
	struct allocator al = { 0 };
	bool leaves;
	int rc, n = 0;

	rc = find_functions(b, &al, e);
	if (!rc)
		rc = decoder(b, &a, e);
	if (rc < 0)
		return rc;
	leaves = leaves_are_called(b, a, &al);
	memset(out, 0, sizeof(*out) * ALLOC_ENTRIES_MAX);
	for (size_t i = 0; i < NFUNCS; i++) {
		if (!is_entry(&al, i, leaves))
			continue;
		rc = add_entry(b, a, &al, i, &out[n], e);
		if (rc < 0)
			return rc;
		if (!leaves && i != MALLOCGC) {
			out[n].not_from_lo = al.f[MALLOCGC].entry;
			out[n].not_from_hi = al.f[MALLOCGC].end;
		}
		n++;
	}
	return n;
}
