/*
 * user/go/layout/layout_live.c - checks unsure offsets against the memory of the live process.
 *
 * The runtime's structs hold their own proofs: a bucket has the hash of its stack and size, and a
 * goroutine that runs has the M that runs it. Everything is read while the process goes on; what
 * does not agree is read again before it is believed. Source: runtime/mprof.go (stkbucket,
 * newBucket), malloc.go (persistentalloc), runtime2.go (g, m, gobuf), mcache.go, Go 1.16 to 1.27.
 */
#include "base/limits.h"
#include "base/map.h"
#include "base/vec.h"
#include "go/layout/layout_check.h"

#include <math.h>
#include <time.h>

enum {
	TRIES = 3,
	/* ---- buckets */
	BUCKETS_MAX = 4096, /* the newest ones, which are looked at */
	HEADER_MAX = 256,
	PARTS = 4,	       /* the active part and three future ones */
	CONTENTION_BYTES = 16, /* blockRecord: a count and cycles */
	GAP_MAX = 1024,
	GAPS_MIN = 2, /* gaps of one length that it takes to call that length a record's */
	/* ---- goroutines */
	GS_MAX = 512,  /* the oldest ones, which are looked at; the runtime's own are among them */
	G_BYTES = 384, /* size of the smallest g that there was */
	STACK_MIN = 2048,
	STATUS_SCAN = 0x1000,
	STATUS_RUNNING = 2,
	STATUS_SYSCALL = 3,
	STATUS_WAITING = 4,
	STATUS_MAX = 15,
	WAITING_MIN = 2,
	/* ---- the tiny block */
	PS_MAX = 256,
	P_BYTES = 1024,
	TINY_BYTES = 16, /* maxTinySize, malloc.go */
	TINY_PAUSE_MS = 10,
	HEAP_LOWEST = 1 << 20,
};

static const uint64_t STACK_MAX = 1ull << 32, GOID_MAX = 1ull << 48, COUNT_MAX = 1ull << 48;

static uint64_t word_at(const uint8_t *p, int32_t off)
{
	uint64_t v;

	memcpy(&v, p + off, sizeof(v));
	return v;
}

static int fields_fit(const struct golayout *l, const enum layout_field *f, size_t n, int32_t size,
		      struct err *e)
{
	for (size_t i = 0; i < n; i++)
		if (l->off[f[i]] < 0 || l->off[f[i]] > size - 8)
			return err_set(e, -ENOTSUP, "layout (%s): %s at %d of %d bytes", l->from,
				       layout_field_name(f[i]), l->off[f[i]], size);
	return 0;
}

/* ---- buckets --------------------------------------------------------------------------------- */

struct seen {
	uint64_t at, size, end; /* end: of the stack, where the record begins */
	enum bucket_kind kind;
};

struct list {
	struct mem *m;
	const struct golayout *l;
	enum bucket_kind kind; /* of the list that is walked */
	VEC(struct seen) b;
	uint64_t stk[LIMIT_BUCKET_STACK];
};

/* As stkbucket computes it. */
static uint64_t hash_of(const uint64_t *stk, uint64_t n, uint64_t size)
{
	uint64_t h = 0;

	for (uint64_t i = 0; i <= n; i++) {
		h += i < n ? stk[i] : size;
		h += h << 10;
		h ^= h >> 6;
	}
	h += h << 3;
	return h ^ h >> 11;
}

static int one_bucket(struct list *k, uint64_t *addr, struct err *e)
{
	const int32_t *off = k->l->off;
	uint8_t hdr[HEADER_MAX];
	struct seen *s, b = { .at = *addr, .kind = k->kind };
	uint64_t nstk, tail = b.at + (uint64_t)off[LAYOUT_bucket_sizeof];
	int rc = mem_read(k->m, b.at, hdr, (size_t)off[LAYOUT_bucket_sizeof], e);

	if (rc < 0)
		return rc;
	nstk = word_at(hdr, off[LAYOUT_bucket_nstk]);
	b.size = word_at(hdr, off[LAYOUT_bucket_size]);
	if (b.at % 8 || word_at(hdr, off[LAYOUT_bucket_typ]) != k->kind ||
	    nstk > LIMIT_BUCKET_STACK)
		return err_set(e, -EBADMSG, "what is at 0x%llx is no %s bucket (%s)",
			       (unsigned long long)b.at, bucket_kind_name(k->kind), k->l->from);
	rc = mem_read(k->m, tail, k->stk, (size_t)nstk * 8, e);
	if (rc < 0)
		return rc;
	if (hash_of(k->stk, nstk, b.size) != word_at(hdr, off[LAYOUT_bucket_hash]))
		return err_set(e, -EBADMSG,
			       "the hash in the bucket at 0x%llx is not that of its stack (%s)",
			       (unsigned long long)b.at, k->l->from);
	b.end = tail + 8 * nstk;
	s = vec_add(&k->b, BUCKETS_MAX * BUCKET_MUTEX);
	if (!s)
		return err_set(e, -ENOMEM, "no memory to check %zu buckets", k->b.n);
	*s = b;
	*addr = word_at(hdr, off[LAYOUT_bucket_allnext]);
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* Both kinds of contention have the same record behind the stack. */
static bool same_record(enum bucket_kind a, enum bucket_kind b)
{
	return (a == BUCKET_MEM) == (b == BUCKET_MEM);
}

/*
 * Buckets of one P are allocated one behind the other, sometimes with something else between
 * them. So the shortest gap behind a stack is a record, because no gap can be shorter than that.
 */
static int derive_record(struct list *k, enum bucket_kind kind, uint64_t *bytes, struct err *e)
{
	uint64_t least = UINT64_MAX;
	size_t n = 0;

	qsort(k->b.at, k->b.n, sizeof(k->b.at[0]), by_address);
	for (size_t i = 1; i < k->b.n; i++) {
		uint64_t gap;

		if (k->b.at[i].at < k->b.at[i - 1].end)
			return err_set(e, -EBADMSG, "the bucket at 0x%llx lies in another's stack",
				       (unsigned long long)k->b.at[i].at);
		if (!same_record(k->b.at[i - 1].kind, kind))
			continue;
		gap = k->b.at[i].at - k->b.at[i - 1].end;
		n = gap < least ? 1 : n + (gap == least);
		least = gap < least ? gap : least;
	}
	if (n < GAPS_MIN || least > GAP_MAX)
		return err_set(e, -ENOTSUP,
			       "how long a %s record is cannot be told from %zu buckets",
			       bucket_kind_name(kind), k->b.n);
	*bytes = least;
	return 0;
}

/* Do the parts of one record make sense: {allocs, frees} and, in the long shape, their bytes? */
static int check_record(struct list *k, const struct seen *s, size_t words, struct err *e)
{
	uint64_t rec[PARTS * 4], allocs = 0, frees = 0;
	bool bytes = true;
	int rc = mem_read(k->m, s->end, rec, PARTS * words * 8, e);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < PARTS; i++) {
		const uint64_t *r = rec + i * words;

		if (r[0] > COUNT_MAX || r[1] > COUNT_MAX)
			bytes = false;
		else if (words == 4 && (r[2] != r[0] * s->size || r[3] != r[1] * s->size))
			bytes = false;
		allocs += r[0];
		frees += r[1];
	}
	if (bytes && frees <= allocs)
		return 0;
	return err_set(e, -EBADMSG,
		       "the record at 0x%llx does not hold counts of objects of %llu bytes",
		       (unsigned long long)s->end, (unsigned long long)s->size);
}

static int check_records(struct list *k, size_t words, struct err *e)
{
	for (size_t i = 0; i < k->b.n; i++) {
		int rc = -EBADMSG;

		/* The record may have been half written, so it is read again. */
		for (int try = 0; try < TRIES && rc == -EBADMSG; try++)
			rc = check_record(k, &k->b.at[i], words, e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* Neither number of a contention is negative, and there is no delay without a contention. */
static int check_contention(struct list *k, const struct seen *s, struct err *e)
{
	uint64_t rec[2];
	double count;
	int rc = mem_read(k->m, s->end, rec, sizeof(rec), e);

	if (rc < 0)
		return rc;
	memcpy(&count, rec, sizeof(count));
	if (isfinite(count) && count >= 0 && count < 0x1p53 && rec[1] < 1ull << 62 &&
	    (count >= 1 || (!rec[0] && !rec[1])))
		return 0;
	return err_set(e, -EBADMSG, "the record at 0x%llx does not hold contentions and a delay",
		       (unsigned long long)s->end);
}

static int check_contentions(struct list *k, struct err *e)
{
	for (size_t i = 0; i < k->b.n; i++) {
		int rc = -EBADMSG;

		if (k->b.at[i].kind == BUCKET_MEM)
			continue;

		/* The record may have been half written, so it is read again. */
		for (int try = 0; try < TRIES && rc == -EBADMSG; try++)
			rc = check_contention(k, &k->b.at[i], e);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static int walk_list(struct list *k, uint64_t head, struct err *e)
{
	size_t most = k->b.n + BUCKETS_MAX;
	int rc = 0;

	while (!rc && head && k->b.n < most)
		rc = one_bucket(k, &head, e);
	return rc;
}

static int check_memory(struct list *k, uint64_t head, struct golayout *l, struct err *e)
{
	uint64_t bytes = 0;
	int rc = walk_list(k, head, e);

	if (!rc && k->b.n)
		rc = derive_record(k, BUCKET_MEM, &bytes, e);
	if (rc < 0 || !k->b.n)
		return rc;
	if (bytes != PARTS * 16 && bytes != PARTS * 32)
		return err_set(e, -ENOTSUP,
			       "a heap record has %llu bytes; those known have 64 or 128",
			       (unsigned long long)bytes);
	rc = check_records(k, (size_t)bytes / PARTS / 8, e);
	if (rc < 0)
		return rc;
	l->off[LAYOUT_memrecord_sizeof] = (int32_t)bytes;
	l->off[LAYOUT_memcycle_sizeof] = (int32_t)bytes / PARTS;
	return 0;
}

static void list_free(struct list *k)
{
	vec_fini(&k->b);
	free(k);
}
DEFINE_FREEP(struct list, list)

static int list_new(struct mem *live, const struct golayout *l, enum bucket_kind kind,
		    struct list **out, struct err *e)
{
	static const enum layout_field needed[] = { LAYOUT_bucket_allnext, LAYOUT_bucket_typ,
						    LAYOUT_bucket_hash, LAYOUT_bucket_size,
						    LAYOUT_bucket_nstk };
	int32_t size = l->off[LAYOUT_bucket_sizeof];
	struct list *k;
	int rc;

	if (size <= 0 || size > HEADER_MAX || size % 8)
		return err_set(e, -ENOTSUP, "layout (%s): a runtime.bucket of %d bytes", l->from,
			       size);
	rc = fields_fit(l, needed, ARRAY_LEN(needed), size, e);
	if (rc < 0)
		return rc;
	k = calloc(1, sizeof(*k));
	if (!k)
		return err_set(e, -ENOMEM, "no memory to check the %s profile",
			       bucket_kind_name(kind));
	k->m = live;
	k->l = l;
	k->kind = kind;
	*out = k;
	return 0;
}

int layout_check_buckets(struct mem *live, struct golayout *l, uint64_t mbuckets, struct err *e)
{
	CLEANUP(list_freep) struct list *k = NULL;
	uint64_t head;
	int rc = list_new(live, l, BUCKET_MEM, &k, e);

	if (!rc)
		rc = mem_u64(live, mbuckets, &head, e);
	return rc < 0 ? rc : check_memory(k, head, l, e);
}

int layout_check_contention(struct mem *live, const struct golayout *l, enum bucket_kind kind,
			    const uint64_t heads[BUCKET_KINDS], struct err *e)
{
	CLEANUP(list_freep) struct list *k = NULL;
	uint64_t bytes = CONTENTION_BYTES, head;
	size_t n = 0;
	int rc = list_new(live, l, kind, &k, e);

	for (int i = BUCKET_MEM; !rc && i < BUCKET_KINDS; i++) {
		size_t before = k->b.n;

		if (!heads[i])
			continue;
		k->kind = (enum bucket_kind)i;
		rc = mem_u64(live, heads[i], &head, e);
		if (!rc)
			rc = walk_list(k, head, e);
		if (i == (int)kind)
			n = k->b.n - before;
	}
	if (rc < 0 || !n)
		return rc;
	rc = derive_record(k, kind, &bytes, e);
	if (rc < 0)
		return rc;
	if (bytes != CONTENTION_BYTES)
		return err_set(e, -ENOTSUP, "a %s record has %llu bytes; those known have %d",
			       bucket_kind_name(kind), (unsigned long long)bytes, CONTENTION_BYTES);
	return check_contentions(k, e);
}

/* ---- goroutines ------------------------------------------------------------------------------ */

struct gs {
	struct mem *m;
	const struct golayout *l;
	uint64_t text, etext;
	bool creators; /* check what they began with and who made them, too */
	struct map goids;
	unsigned int waiting, framed; /* framed: those with a saved frame pointer */
};

static int odd_g(const struct gs *k, uint64_t g, const char *what, uint64_t v, struct err *e)
{
	return err_set(e, -EBADMSG, "the goroutine at 0x%llx has %s 0x%llx (%s)",
		       (unsigned long long)g, what, (unsigned long long)v, k->l->from);
}

static uint32_t status_of(const struct gs *k, const uint8_t *g)
{
	uint32_t v;

	memcpy(&v, g + k->l->off[LAYOUT_g_atomicstatus], sizeof(v));
	return v & ~(uint32_t)STATUS_SCAN;
}

/*
 * The first function and the go statement are Go code, and neither changes during a goroutine's
 * life.
 */
static int check_creator(struct gs *k, uint64_t g, const uint8_t *raw, struct err *e)
{
	uint64_t start = word_at(raw, k->l->off[LAYOUT_g_startpc]);
	uint64_t made = word_at(raw, k->l->off[LAYOUT_g_gopc]);

	if (start < k->text || start >= k->etext)
		return odd_g(k, g, "the first function", start, e);
	if (made < k->text || made >= k->etext)
		return odd_g(k, g, "its go statement at", made, e);
	return 0;
}

/* A parked goroutine: its registers are saved, point into its stack, and into Go code. */
static int check_parked(struct gs *k, uint64_t g, const uint8_t *raw, struct err *e)
{
	const int32_t *off = k->l->off;
	uint64_t lo = word_at(raw, off[LAYOUT_g_stack_lo]);
	uint64_t hi = word_at(raw, off[LAYOUT_g_stack_hi]);
	uint64_t sp = word_at(raw, off[LAYOUT_g_sched_sp]);
	uint64_t pc = word_at(raw, off[LAYOUT_g_sched_pc]);
	uint64_t bp = word_at(raw, off[LAYOUT_g_sched_bp]);

	if (lo >= hi || hi - lo < STACK_MIN || hi - lo > STACK_MAX || ((hi - lo) & (hi - lo - 1)))
		return odd_g(k, g, "a stack that ends at", hi, e);
	if (sp < lo || sp >= hi)
		return odd_g(k, g, "outside of its stack the saved sp", sp, e);
	if (pc < k->text || pc >= k->etext)
		return odd_g(k, g, "the saved pc", pc, e);
	if (bp && (bp < lo || bp >= hi))
		return odd_g(k, g, "outside of its stack the saved frame pointer", bp, e);
	k->framed += bp != 0;
	return k->creators ? check_creator(k, g, raw, e) : 0;
}

/*
 * A goroutine that runs or is in a system call: its M says the same, and the M's g0 knows its M.
 */
static int check_on_m(struct gs *k, uint64_t g, const uint8_t *raw, struct err *e)
{
	const int32_t *off = k->l->off;
	uint64_t m = word_at(raw, off[LAYOUT_g_m]), curg, g0, back;
	int rc;

	if (!m || m % 8)
		return odd_g(k, g, "the M", m, e);
	rc = mem_u64(k->m, m + (uint64_t)off[LAYOUT_m_curg], &curg, e);
	if (!rc)
		rc = mem_u64(k->m, m + (uint64_t)off[LAYOUT_m_g0], &g0, e);
	if (!rc)
		rc = mem_u64(k->m, g0 + (uint64_t)off[LAYOUT_g_m], &back, e);
	if (rc < 0)
		return rc == -ESRCH ? rc : odd_g(k, g, "an M that is not readable at", m, e);
	if (curg != g)
		return odd_g(k, g, "an M whose current goroutine is", curg, e);
	return back == m ? 0 : odd_g(k, g, "an M whose g0 has the M", back, e);
}

static int look_at(struct gs *k, uint64_t g, uint64_t *goid, uint32_t *status, struct err *e)
{
	uint8_t raw[G_BYTES], again[G_BYTES];
	int rc = mem_read(k->m, g, raw, sizeof(raw), e);

	if (rc < 0)
		return rc;
	*status = status_of(k, raw);
	*goid = word_at(raw, k->l->off[LAYOUT_g_goid]);
	if (*status > STATUS_MAX)
		return odd_g(k, g, "the status", *status, e);
	if (*status == STATUS_WAITING)
		rc = check_parked(k, g, raw, e);
	else if (*status == STATUS_RUNNING || *status == STATUS_SYSCALL)
		rc = check_on_m(k, g, raw, e);
	if (rc != -EBADMSG || mem_read(k->m, g, again, sizeof(again), NULL))
		return rc;
	/* The goroutine has moved on, so what was seen says nothing. */
	if (memcmp(raw, again, sizeof(raw))) {
		*status = 0;
		return 0;
	}
	return rc;
}

static int check_g(struct gs *k, uint64_t g, struct err *e)
{
	uint64_t goid = 0, other;
	uint32_t status = 0;
	int rc = -EBADMSG;

	if (!g || g % 8)
		return odd_g(k, g, "the address", g, e);
	for (int try = 0; try < TRIES && rc == -EBADMSG; try++)
		rc = look_at(k, g, &goid, &status, e);
	if (rc < 0)
		return rc;
	if (status != STATUS_WAITING)
		return 0;
	k->waiting++;
	if (!goid || goid > GOID_MAX)
		return odd_g(k, g, "the id", goid, e);
	if (map_get(&k->goids, goid, &other))
		return odd_g(k, g, "an id that another one has too:", goid, e);
	return map_put(&k->goids, goid, g) ? 0 : err_set(e, -ENOMEM, "no memory for goroutines");
}

static int check_all(struct gs *k, uint64_t allgs, struct err *e)
{
	uint64_t slice[3], list[GS_MAX];
	int rc = mem_read(k->m, allgs, slice, sizeof(slice), e);
	size_t n;

	if (rc < 0)
		return err_wrap(e, rc, "runtime.allgs");
	if (!slice[0] || slice[1] > slice[2])
		return err_set(e, -EBADMSG, "runtime.allgs at 0x%llx is no list of goroutines",
			       (unsigned long long)allgs);
	n = slice[1] < GS_MAX ? (size_t)slice[1] : GS_MAX;
	rc = mem_read(k->m, slice[0], list, n * 8, e);
	for (size_t i = 0; !rc && i < n; i++)
		rc = check_g(k, list[i], e);
	if (rc < 0)
		return rc;
	if (k->waiting < WAITING_MIN || !k->framed)
		return err_set(e, -EBADMSG,
			       "of %zu goroutines %u wait, %u with a frame pointer: too few to "
			       "check what is known of them",
			       n, k->waiting, k->framed);
	return 0;
}

int layout_check_goroutines(struct mem *live, const struct golayout *l, uint64_t allgs,
			    uint64_t text, uint64_t etext, bool creators, struct err *e)
{
	static const enum layout_field made[] = { LAYOUT_g_startpc, LAYOUT_g_gopc };
	static const enum layout_field needed[] = { LAYOUT_g_stack_lo, LAYOUT_g_stack_hi,
						    LAYOUT_g_m,	       LAYOUT_g_sched_sp,
						    LAYOUT_g_sched_pc, LAYOUT_g_sched_bp,
						    LAYOUT_g_goid,     LAYOUT_g_atomicstatus };
	struct gs k = { .m = live, .l = l, .text = text, .etext = etext, .creators = creators };
	int rc = fields_fit(l, needed, ARRAY_LEN(needed), G_BYTES, e);

	if (!rc && creators)
		rc = fields_fit(l, made, ARRAY_LEN(made), G_BYTES, e);

	if (!rc && (l->off[LAYOUT_m_curg] < 0 || l->off[LAYOUT_m_g0] < 0))
		rc = err_set(e, -ENOTSUP, "layout (%s): no m.curg or m.g0", l->from);
	if (!rc)
		rc = check_all(&k, allgs, e);
	map_fini(&k.goids);
	return rc;
}

/* ---- the allocator's tiny block --------------------------------------------------------------- */

/*
 * Returns 1 when this P has a tiny block open, 0 when it has none, -EBADMSG when this cannot be
 * one.
 */
static int check_tiny(struct mem *m, const struct golayout *l, uint64_t p, struct err *e)
{
	uint64_t cache, tiny, off;
	int rc = mem_u64(m, p + (uint64_t)l->off[LAYOUT_p_mcache], &cache, e);

	if (rc < 0 || !cache)
		return rc;
	rc = cache % 8 ? -EFAULT :
			 mem_u64(m, cache + (uint64_t)l->off[LAYOUT_mcache_tiny], &tiny, e);
	if (!rc)
		rc = mem_u64(m, cache + (uint64_t)l->off[LAYOUT_mcache_tinyoffset], &off, e);
	if (rc == -ESRCH)
		return rc;
	if (rc < 0 || off > TINY_BYTES || (tiny && (tiny % TINY_BYTES || tiny < HEAP_LOWEST)))
		return err_set(e, -EBADMSG,
			       "the P at 0x%llx has no allocation cache at 0x%llx (%s)",
			       (unsigned long long)p, (unsigned long long)cache, l->from);
	return tiny && off;
}

/* How many Ps of runtime.allp have a block open now. */
static int tiny_open(struct mem *live, const struct golayout *l, uint64_t allp, size_t *nps,
		     struct err *e)
{
	uint64_t slice[3], list[PS_MAX];
	int rc = mem_read(live, allp, slice, sizeof(slice), e), open = 0;

	if (!rc && (!slice[0] || slice[1] > slice[2]))
		rc = err_set(e, -EBADMSG, "runtime.allp at 0x%llx is no list",
			     (unsigned long long)allp);
	if (rc)
		return rc;
	*nps = slice[1] < PS_MAX ? (size_t)slice[1] : PS_MAX;
	rc = mem_read(live, slice[0], list, *nps * 8, e);
	for (size_t i = 0; !rc && i < *nps; i++) {
		for (int try = 0; try < TRIES && (!try || rc == -EBADMSG); try++)
			rc = check_tiny(live, l, list[i], e);
		open += rc > 0;
		rc = rc > 0 ? 0 : rc;
	}
	return rc < 0 ? rc : open;
}

int layout_check_tiny(struct mem *live, const struct golayout *l, uint64_t allp, unsigned int looks,
		      struct err *e)
{
	static const enum layout_field needed[] = { LAYOUT_p_mcache, LAYOUT_mcache_tiny,
						    LAYOUT_mcache_tinyoffset };
	const struct timespec pause = { .tv_nsec = TINY_PAUSE_MS * 1000000 };
	size_t n = 0;
	int rc = fields_fit(l, needed, ARRAY_LEN(needed), P_BYTES, e);

	for (unsigned int i = 0; !rc && i < looks; i++) {
		if (i)
			nanosleep(&pause, NULL);
		rc = tiny_open(live, l, allp, &n, e);
	}
	if (rc)
		return rc < 0 ? rc : 0;
	return err_set(e, -EBADMSG,
		       "no P of %zu has a tiny block open: where it stands cannot be checked", n);
}
