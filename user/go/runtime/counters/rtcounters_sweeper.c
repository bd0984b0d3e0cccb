/* user/go/runtime/counters/rtcounters_sweeper.c - finds the background sweeper's g, and asks it whether it is parked. */
#include "base/clock.h"
#include "go/runtime/counters/rtcounters_priv.h"
#include "go/runtime/rtgor.h"
#include "go/runtime/waitreason.h"

enum {
	STATUS_SCAN = 0x1000,
	AMONG = 16, /* runtime.main starts it before any goroutine of the program (gcenable) */
};

struct sweeper_g {
	uint32_t status;
	uint8_t reason;
};

static struct mem_piece status_of(const struct rtcounters *c, uint64_t g, struct sweeper_g *s)
{
	return (struct mem_piece){ .addr = g + (uint64_t)c->off[LAYOUT_g_atomicstatus],
				   .buf = &s->status,
				   .n = sizeof(s->status) };
}

static struct mem_piece reason_of(const struct rtcounters *c, uint64_t g, struct sweeper_g *s)
{
	return (struct mem_piece){ .addr = g + (uint64_t)c->off[LAYOUT_g_waitreason],
				   .buf = &s->reason,
				   .n = sizeof(s->reason) };
}

/* Nobody else waits for this reason. */
static bool is_parked(const struct rtcounters *c, const struct sweeper_g *s)
{
	return (s->status & ~(uint32_t)STATUS_SCAN) == GSTATUS_WAITING &&
	       s->reason == c->sweep_wait;
}

static int unknown(const struct rtcounters *c, struct err *e)
{
	if (c->off[LAYOUT_g_atomicstatus] < 0 || c->off[LAYOUT_g_waitreason] < 0 ||
	    c->off[LAYOUT_mheap_sweepgen] < 0 || c->sweep_wait < 0)
		return err_set(e, -ENOTSUP, "the background sweeper: this Go's g is not known");
	if (!c->v.mheap || !c->v.allgs)
		return err_set(e, -ENOTSUP, "the background sweeper: no runtime.allgs or mheap_");
	return 0;
}

/* Looks for the one that is parked; while it runs it cannot be told from others. */
static int find_sweeper(struct rtcounters *c, struct err *e)
{
	struct sweeper_g s[AMONG] = { 0 };
	struct mem_piece pieces[2 * AMONG];
	uint64_t list[2], g[AMONG];
	size_t n;
	int ret = mem_read(c->m, c->v.allgs, list, sizeof(list), e);

	if (ret)
		return ret;
	n = list[1] < AMONG ? (size_t)list[1] : AMONG;
	ret = mem_read(c->m, list[0], g, n * sizeof(g[0]), e);
	for (size_t i = 0; !ret && i < n; i++) {
		pieces[2 * i] = status_of(c, g[i], &s[i]);
		pieces[2 * i + 1] = reason_of(c, g[i], &s[i]);
	}
	if (!ret)
		ret = mem_readv(c->m, pieces, 2 * n, e);
	for (size_t i = 0; !ret && i < n && !c->sweeper; i++)
		if (pieces[2 * i].ok && pieces[2 * i + 1].ok && is_parked(c, &s[i]))
			c->sweeper = g[i];
	if (!ret && !c->sweeper)
		ret = err_set(e, -EAGAIN, "the background sweeper is not parked");
	return ret;
}

int rtcounters_sweeper(struct rtcounters *c, struct rtsweeper *out, struct err *e)
{
	struct sweeper_g s;
	struct mem_piece pieces[3];
	int ret = unknown(c, e);

	if (!ret && !c->sweeper) {
		if (!again_due(&c->sweeper_again, now_ns()))
			return err_set(e, -EAGAIN, "the background sweeper has not been found yet");
		ret = find_sweeper(c, e);
		if (ret)
			again_later(&c->sweeper_again, now_ns());
	}
	if (ret)
		return ret;
	pieces[0] =
		(struct mem_piece){ .addr = c->v.mheap + (uint64_t)c->off[LAYOUT_mheap_sweepgen],
				    .buf = &out->sweepgen,
				    .n = sizeof(out->sweepgen) };
	pieces[1] = status_of(c, c->sweeper, &s);
	pieces[2] = reason_of(c, c->sweeper, &s);
	ret = mem_readv(c->m, pieces, ARRAY_LEN(pieces), e);
	for (size_t i = 0; !ret && i < ARRAY_LEN(pieces); i++)
		if (!pieces[i].ok)
			ret = err_set(e, -EFAULT, "the background sweeper: it cannot be read");
	out->parked = !ret && is_parked(c, &s);
	return ret;
}
