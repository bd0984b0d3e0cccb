/* user/go/runtime/counters/rtcounters.c - finds the runtime's counters, and reads the simple ones. */
#include "go/runtime/counters/rtcounters_priv.h"

#include "go/runtime/vars/rtvar.h"
#include "go/runtime/waitreason.h"

enum {
	TRACKING_PERIOD = 8, /* gTrackingPeriod, runtime2.go, Go 1.17 to 1.27 */
	HISTOGRAM_MAX = 1024,
};

static int no_such(struct err *why, const char *what, const char *lacks)
{
	return err_set(why, -ENOTSUP, "%s: %s", what, lacks);
}

static void switches_init(struct rtcounters *c)
{
	static const char what[] = "the scheduler's own count";
	int32_t under = c->off[LAYOUT_timehist_underflow], size = c->off[LAYOUT_timehist_sizeof];

	if (c->off[LAYOUT_sched_timetorun] < 0)
		c->no_switches = no_such(&c->why_switches, what, "came with go1.17");
	else if (!c->v.sched)
		c->no_switches = no_such(&c->why_switches, what, "runtime.sched was not found");
	else if (c->off[LAYOUT_timehist_counts] != 0 || under < 0 || size <= under || size % 8 ||
		 under % 8 || size > HISTOGRAM_MAX * 8)
		c->no_switches = no_such(&c->why_switches, what, "its histogram has another shape");
}

int rtcounters_new(const struct rtcounters_vars *v, const struct golayout *l,
		   const struct sizeclasses *classes, struct mem *m, struct rtcounters **out,
		   struct err *e)
{
	struct rtcounters *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(e, -ENOMEM, "no memory for counters");
	c->v = *v;
	c->classes = *classes;
	c->m = m;
	memcpy(c->off, l->off, sizeof(c->off));
	c->sweep_wait = v->minor >= 15 ? waitreason_value(v->minor, "GC sweep wait") : -1;
	rtc_alloc_init(c);
	switches_init(c);
	*out = c;
	return 0;
}

void rtcounters_free(struct rtcounters *c)
{
	if (!c)
		return;
	rtcounters_rest(c);
	free(c);
}

/*
 * The live address of a variable. 0 where there is none or where something else stands there, and
 * *e says why.
 */
static int find(struct gobin *b, const struct golayout *l, struct mem *m, uint64_t bias,
		enum rtvar v, uint64_t *addr, struct err *why)
{
	uint64_t at;
	int ret = rtvar_find(b, v, &at, why);

	if (!ret)
		ret = rtvar_plausible(m, l, gobin_info(b)->minor, v, at + bias, why);
	*addr = ret ? 0 : at + bias;
	return ret;
}

int rtcounters_open(struct gobin *b, const struct golayout *l, struct mem *m, uint64_t bias,
		    struct rtcounters **out, struct err *e)
{
	struct rtcounters_vars v = { .minor = gobin_info(b)->minor };
	const struct {
		enum rtvar v;
		uint64_t *addr;
	} vars[] = { { RTVAR_MEMSTATS, &v.memstats },
		     { RTVAR_MHEAP, &v.mheap },
		     { RTVAR_ALLP, &v.allp },
		     { RTVAR_SCHED, &v.sched } };
	struct sizeclasses classes = { 0 };
	struct err why = { "" }, missing = { "" };
	int ret;

	(void)layout_sizeclasses(b, &classes, &missing);
	for (size_t i = 0; i < ARRAY_LEN(vars); i++) {
		ret = find(b, l, m, bias, vars[i].v, vars[i].addr, &why);
		if (ret == -ESRCH)
			return err_set(e, ret, "%s", why.msg);
		if (ret && (vars[i].v == RTVAR_SCHED || !missing.msg[0]))
			missing = why;
	}
	/* It may have no goroutine yet, and counters are kept. */
	if (!rtvar_find(b, RTVAR_ALLGS, &v.allgs, &why))
		v.allgs += bias;
	ret = rtcounters_new(&v, l, &classes, m, out, e);
	if (ret)
		return ret;
	/*
	 * This sentence is the better one: it says what was tried, not only that the variable is
	 * missing.
	 */
	if ((*out)->no_allocs && missing.msg[0])
		(*out)->why_allocs = missing;
	if ((*out)->no_switches && !v.sched)
		(*out)->why_switches = missing;
	return 0;
}

int rtcounters_switches(struct rtcounters *c, uint64_t *out, struct err *e)
{
	uint64_t counts[HISTOGRAM_MAX], sum = 0;
	size_t n;
	int ret;

	if (c->no_switches)
		return err_set(e, c->no_switches, "%s", c->why_switches.msg);
	n = (size_t)c->off[LAYOUT_timehist_sizeof];
	ret = mem_read(c->m, c->v.sched + (uint64_t)c->off[LAYOUT_sched_timetorun], counts, n, e);
	if (ret)
		return err_wrap(e, ret, "the scheduler's own count");
	for (size_t i = 0; i < n / 8; i++) {
		if (counts[i] >> 56)
			return err_set(e, -EBADMSG, "the scheduler's own count: 0x%llx is none",
				       (unsigned long long)counts[i]);
		sum += counts[i];
	}
	*out = sum * TRACKING_PERIOD;
	return 0;
}

int rtcounters_sweepgen(struct rtcounters *c, uint32_t *out, struct err *e)
{
	int32_t at = c->off[LAYOUT_mheap_sweepgen];

	if (!c->v.mheap || at < 0)
		return err_set(e, -ENOTSUP, "the number of GC cycles: runtime.mheap_ is not known");
	return mem_u32(c->m, c->v.mheap + (uint64_t)at, out, e);
}
