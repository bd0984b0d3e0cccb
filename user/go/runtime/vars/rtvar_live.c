/*
 * user/go/runtime/vars/rtvar_live.c - does the value in a running process look like the variable's?
 *
 * A variable that was found by decoding may be another one in a Go that nobody has seen yet. Its
 * value reveals most of such mistakes before a wrong number comes of them. Everything is read
 * while the process runs, so what may be half written is looked at more than once. Source:
 * runtime/mprof.go, runtime2.go, proc.go, runtime.go, Go 1.16 to 1.27.
 */
#include "go/runtime/vars/rtvar_priv.h"

enum {
	TRIES = 3,
	CYCLE_WRAP = 3 << 25, /* mProfCycleWrap, mprof.go */
	GS_MAX = 1 << 28,
	PS_MAX = 1 << 20,
};

/* Go's heap begins at 0xc000000000, so a smaller value cannot be a pointer into it. */
static const int64_t RATE_MAX = 1ll << 39;
/*
 * In cputicks: six hours at 3 GHz. Mapped memory and the C heap of a PIE are at higher addresses.
 */
static const uint64_t BLOCK_RATE_MAX = 1ull << 46;
static const uint64_t STACK_MAX = 1ull << 32;

struct rtvar_value {
	struct mem *m;
	const struct golayout *l;
	int minor;
	enum rtvar v;
	uint64_t addr;
};

static int odd(const struct rtvar_value *k, uint64_t value, const char *why, struct err *e)
{
	return err_set(e, -EBADMSG, "%s is taken to be at 0x%llx, but 0x%llx there %s",
		       rtvar_name(k->v), (unsigned long long)k->addr, (unsigned long long)value,
		       why);
}

static int look_u64(const struct rtvar_value *k, uint64_t addr, uint64_t *v, struct err *e)
{
	int ret = mem_u64(k->m, addr, v, e);

	return ret ? err_wrap(e, ret, "%s", rtvar_name(k->v)) : 0;
}

/*
 * Reads the field of the struct that @base points to, or that stands at @base. An address that
 * cannot be read is refused.
 */
static int look_field(const struct rtvar_value *k, uint64_t base, enum layout_field f, uint64_t *v,
		      struct err *e)
{
	int32_t off = k->l->off[f];
	int ret = off < 0 ? -ENOTSUP : mem_u64(k->m, base + (uint64_t)off, v, NULL);

	if (ret == -ESRCH)
		return err_set(e, ret, "%s: the process is gone", rtvar_name(k->v));
	return ret ? odd(k, base, "points to nothing that can be read", e) : 0;
}

static int look_rate(const struct rtvar_value *k, struct err *e)
{
	uint64_t v;
	int ret = look_u64(k, k->addr, &v, e);

	if (ret)
		return ret;
	/* A program may switch sampling off with a negative rate. */
	if (k->v == RTVAR_MEMPROFILERATE && (int64_t)v < 0 && (int64_t)v >= INT32_MIN)
		return 0;
	if (k->v == RTVAR_BLOCKPROFILERATE)
		return v < BLOCK_RATE_MAX ? 0 : odd(k, v, "is no rate", e);
	return (int64_t)v >= 0 && (int64_t)v < RATE_MAX ? 0 : odd(k, v, "is no rate", e);
}

static int look_head(const struct rtvar_value *k, uint64_t kind, struct err *e)
{
	uint64_t head, typ;
	int ret = look_u64(k, k->addr, &head, e);

	if (ret || !head)
		return ret;
	if (head % 8)
		return odd(k, head, "is no pointer to a bucket", e);
	ret = look_field(k, head, LAYOUT_bucket_typ, &typ, e);
	if (ret)
		return ret;
	return typ == kind ? 0 : odd(k, head, "points to no bucket of that profile", e);
}

static int look_cycle(const struct rtvar_value *k, struct err *e)
{
	bool split = k->minor >= 0 && k->minor < 19;
	uint8_t flushed = 0;
	uint32_t word;
	int ret = mem_u32(k->m, k->addr, &word, e);

	if (!ret && split)
		ret = mem_u8(k->m, k->addr + 4, &flushed, e);
	if (ret)
		return err_wrap(e, ret, "%s", rtvar_name(k->v));
	if (flushed > 1 || (split ? word : word >> 1) >= CYCLE_WRAP)
		return odd(k, word, "is no profile cycle", e);
	return 0;
}

static int look_bool(const struct rtvar_value *k, struct err *e)
{
	uint8_t v;
	int ret = mem_u8(k->m, k->addr, &v, e);

	if (ret)
		return err_wrap(e, ret, "%s", rtvar_name(k->v));
	return v <= 1 ? 0 : odd(k, v, "is no bool", e);
}

/* A g has a stack with its low end below its high one, or none. */
static int look_g(const struct rtvar_value *k, uint64_t g, struct err *e)
{
	uint64_t lo, hi;
	int ret;

	if (!g || g % 8)
		return odd(k, g, "is no pointer to a goroutine", e);
	ret = look_field(k, g, LAYOUT_g_stack_lo, &lo, e);
	if (!ret)
		ret = look_field(k, g, LAYOUT_g_stack_hi, &hi, e);
	if (ret)
		return ret;
	if (lo > hi || hi - lo > STACK_MAX)
		return odd(k, g, "points to a goroutine with no possible stack", e);
	return 0;
}

/* Before the runtime has begun, everything is zero. */
static int look_slice(const struct rtvar_value *k, uint64_t max, uint64_t *first, struct err *e)
{
	uint64_t s[3];
	int ret = mem_read(k->m, k->addr, s, sizeof(s), e);

	*first = 0;
	if (ret)
		return err_wrap(e, ret, "%s", rtvar_name(k->v));
	if (!s[0] && !s[1] && !s[2])
		return 0;
	if (!s[0] || s[0] % 8 || s[1] > s[2] || s[1] > max || !s[1])
		return odd(k, s[1], "is no length of its list", e);
	if (mem_u64(k->m, s[0], first, NULL))
		return odd(k, s[0], "points to nothing that can be read", e);
	return *first && *first % 8 == 0 ? 0 : odd(k, *first, "is no element of its list", e);
}

static int look_allgs(const struct rtvar_value *k, struct err *e)
{
	uint64_t g;
	int ret = look_slice(k, GS_MAX, &g, e);

	return ret || !g ? ret : look_g(k, g, e);
}

static int look_allgptr(const struct rtvar_value *k, struct err *e)
{
	uint64_t list, g;
	int ret = look_u64(k, k->addr, &list, e);

	if (ret || !list)
		return ret;
	if (list % 8 || mem_u64(k->m, list, &g, NULL))
		return odd(k, list, "points to nothing that can be read", e);
	return look_g(k, g, e);
}

static int look_count(const struct rtvar_value *k, uint64_t max, struct err *e)
{
	uint64_t n;
	int ret = look_u64(k, k->addr, &n, e);

	if (ret)
		return ret;
	return n <= max ? 0 : odd(k, n, "is no number of goroutines", e);
}

/* p.id is the first field of a P; that of the first P is 0. */
static int look_allp(const struct rtvar_value *k, struct err *e)
{
	uint64_t p;
	uint32_t id;
	int ret = look_slice(k, PS_MAX, &p, e);

	if (ret || !p)
		return ret;
	if (mem_u32(k->m, p, &id, NULL) || id)
		return odd(k, p, "does not point to P 0", e);
	return 0;
}

/* An M's g0 knows its M. */
static int look_allm(const struct rtvar_value *k, struct err *e)
{
	uint64_t m, g0, back;
	int ret = look_u64(k, k->addr, &m, e);

	if (ret || !m)
		return ret;
	if (m % 8)
		return odd(k, m, "is no pointer to an M", e);
	ret = look_field(k, m, LAYOUT_m_g0, &g0, e);
	if (!ret)
		ret = look_g(k, g0, e);
	if (!ret)
		ret = look_field(k, g0, LAYOUT_g_m, &back, e);
	if (ret)
		return ret;
	return back == m ? 0 : odd(k, m, "points to an M whose g0 is of another one", e);
}

/*
 * From go1.22 on it is {lock, startTicks, startTime, val}; val is 0 until somebody asked for it.
 */
static int look_ticks(const struct rtvar_value *k, struct err *e)
{
	uint64_t w[4];
	int ret = mem_read(k->m, k->addr, w, k->minor >= 0 && k->minor < 22 ? 8 : sizeof(w), e);

	if (ret)
		return err_wrap(e, ret, "%s", rtvar_name(k->v));
	if (k->minor >= 0 && k->minor < 22)
		return 0;
	if ((int64_t)w[1] < 0 || (int64_t)w[2] < 0)
		return odd(k, w[1], "is no start time", e);
	return (int64_t)w[3] >= 0 && (int64_t)w[3] < RATE_MAX ?
		       0 :
		       odd(k, w[3], "is no number of ticks in a second", e);
}

/* The generation of its counters must be 0, 1 or 2. */
static int look_memstats(const struct rtvar_value *k, struct err *e)
{
	int32_t stats = k->l->off[LAYOUT_mstats_heapstats], gen = k->l->off[LAYOUT_heapstats_gen];
	uint32_t v;
	int ret;

	if (stats < 0 || gen < 0)
		return err_set(e, -ENOTSUP, "%s: its layout is not known", rtvar_name(k->v));
	ret = mem_u32(k->m, k->addr + (uint64_t)stats + (uint64_t)gen, &v, e);
	if (ret)
		return err_wrap(e, ret, "%s", rtvar_name(k->v));
	return v < 3 ? 0 : odd(k, v, "is no generation of counters", e);
}

/*
 * It is {goidgen, lastpoll, pollUntil: when a thread will leave the poller}; gcwaiting is 0 or 1.
 */
static int look_sched(const struct rtvar_value *k, struct err *e)
{
	int32_t at = k->l->off[LAYOUT_sched_gcwaiting];
	uint64_t w[3];
	uint8_t waiting = 0;
	int ret = mem_read(k->m, k->addr, w, sizeof(w), e);

	if (ret)
		return err_wrap(e, ret, "%s", rtvar_name(k->v));
	if (at < 0)
		return err_set(e, -ENOTSUP, "%s: its layout is not known", rtvar_name(k->v));
	ret = mem_u8(k->m, k->addr + (uint64_t)at, &waiting, e);
	if (ret)
		return err_wrap(e, ret, "%s", rtvar_name(k->v));
	if ((int64_t)w[0] < 0 || (int64_t)w[1] < 0)
		return odd(k, w[1], "is no time of the last poll", e);
	return waiting <= 1 ? 0 : odd(k, waiting, "is not whether the GC waits", e);
}

/* A uint32 that must be 0 or 1. */
static int look_switch(const struct rtvar_value *k, struct err *e)
{
	uint32_t v;
	int ret = mem_u32(k->m, k->addr, &v, e);

	if (ret)
		return err_wrap(e, ret, "%s", rtvar_name(k->v));
	return v <= 1 ? 0 : odd(k, v, "is neither on nor off", e);
}

static int look(const struct rtvar_value *k, struct err *e)
{
	uint64_t word;

	switch (k->v) {
	case RTVAR_MEMPROFILERATE:
	case RTVAR_BLOCKPROFILERATE:
	case RTVAR_MUTEXPROFILERATE:
		return look_rate(k, e);
	case RTVAR_MBUCKETS:
		return look_head(k, BUCKET_MEM, e);
	case RTVAR_BBUCKETS:
		return look_head(k, BUCKET_BLOCK, e);
	case RTVAR_XBUCKETS:
		return look_head(k, BUCKET_MUTEX, e);
	case RTVAR_MPROFCYCLE:
		return look_cycle(k, e);
	case RTVAR_DISABLEMEMORYPROFILING:
		return look_bool(k, e);
	case RTVAR_ALLGS:
		return look_allgs(k, e);
	case RTVAR_ALLGLEN:
		return look_count(k, GS_MAX, e);
	case RTVAR_ALLGPTR:
		return look_allgptr(k, e);
	case RTVAR_ALLP:
		return look_allp(k, e);
	case RTVAR_ALLM:
		return look_allm(k, e);
	case RTVAR_TICKS:
		return look_ticks(k, e);
	case RTVAR_MEMSTATS:
		return look_memstats(k, e);
	case RTVAR_SCHED:
		return look_sched(k, e);
	case RTVAR_MHEAP:
		return look_u64(k, k->addr, &word, e);
	case RTVAR_GCBLACKENENABLED:
		return look_switch(k, e);
	case RTVAR_COUNT:
		break;
	}
	return err_set(e, -EINVAL, "no such runtime variable: %d", (int)k->v);
}

int rtvar_plausible(struct mem *live, const struct golayout *l, int minor, enum rtvar v,
		    uint64_t addr, struct err *e)
{
	struct rtvar_value k = { .m = live, .l = l, .minor = minor, .v = v, .addr = addr };
	int ret = 0;

	for (int i = 0; i < TRIES; i++) {
		ret = look(&k, e);
		if (ret != -EBADMSG)
			break;
	}
	return ret;
}
