/* user/collect/heap/window/heap_large.c - probes of large objects: their own attacher, and what they cost. */
#include "collect/heap/window/heap_large.h"

#include "base/clock.h"
#include "sampling/windows/budget.h"

#define PART	   0.25 /* of the budget, for these probes */
#define WITH_WALKS 2	/* a hit costs so many times its price, with the stack walks of samples */
#define LOOK_NS	   1000000000ull
#define LASTS_NS   1500000000ull

static int put_on(struct heap_large *l, struct err *e)
{
	l->attached = now_ns();
	uprobes_until(&l->probes, l->attached + LASTS_NS);
	return uprobes_attach_again(&l->probes, e);
}

int heap_large_attach(struct heap_large *l, struct subject *s, const struct uprobe_group *g,
		      size_t n, struct err *e)
{
	int ret;

	uprobes_free(&l->probes);
	if (clock_getcpuclockid(s->target->pid, &l->clock))
		return err_set(e, -ESRCH, "the target exited");
	l->probes.all = s->attachers;
	ret = uprobes_hold(&l->probes, g, n, true, s->target->pid, NULL, e);
	if (!ret)
		ret = put_on(l, e);
	l->apart = !ret;
	return ret;
}

int heap_large_hear(struct heap_large *l, struct err *e)
{
	if (!l->apart)
		return 0;
	if (uprobes_dead(&l->probes) || uprobes_let_go(&l->probes) >= l->attached)
		return put_on(l, e);
	uprobes_until(&l->probes, now_ns() + LASTS_NS);
	return 0;
}

bool heap_large_dear(struct heap_large *l, uint64_t n, double hit_ns, uint32_t budget_ppm)
{
	uint64_t now = now_ns(), cpu;
	double may, ns = (double)(now - l->at), more = n > l->n ? (double)(n - l->n) : 0;
	bool first = !l->at, early = !first && now - l->at < LOOK_NS;

	if (!l->always || (early && n == l->n))
		return false;
	cpu = clock_ns(l->clock);
	may = cpu > l->cpu ? (double)(cpu - l->cpu) : 0;
	if (may < BUDGET_CPUS_MIN * ns)
		may = BUDGET_CPUS_MIN * ns;
	may *= budget_ppm / 1e6;
	/* Before LOOK_NS are over they are dear only if they have taken more than is allowed in all of it. */
	if (early && more * hit_ns * WITH_WALKS <= PART * may * (double)LOOK_NS / ns)
		return false;
	l->at = now;
	l->cpu = cpu;
	l->n = n;
	l->dear = !first && more * hit_ns * WITH_WALKS > PART * may;
	return l->dear;
}

void heap_large_detach(struct heap_large *l)
{
	uprobes_free(&l->probes);
	l->apart = l->always = false;
}
