/* user/ingest/exectrace/summary/gc_share.c - which Ps collect garbage. */
#include "ingest/exectrace/summary/gc_share.h"

#include "base/limits.h"

/* What a goroutine does for the collector, and whether it runs. One that only runs is not kept. */
enum gc_doing { WORKS = 1, ASSISTS = 2, RUNS = 4 };

int gc_share_init(struct gc_share *s, struct err *e)
{
	return mmu_new(&s->mmu, e);
}

void gc_share_fini(struct gc_share *s)
{
	mmu_free(s->mmu);
	map_fini(&s->doing);
	vec_fini(&s->on);
}

static bool begins(struct trace_text text, const char *word)
{
	size_t n = strlen(word);

	return text.len >= n && !memcmp(text.at, word, n);
}

/* One more, or one less, on this P. */
static bool count(struct gc_share *s, int64_t p, int by)
{
	if (p < 0 || p >= LIMIT_PS)
		return true;
	while (s->on.n <= (size_t)p)
		if (!vec_add(&s->on, LIMIT_PS))
			return false;
	if (by < 0 && !s->on.at[p])
		return true; /* it began where nothing was known of the P */
	s->busy -= s->on.at[p] != 0;
	s->on.at[p] += (uint32_t)by;
	s->busy += s->on.at[p] != 0;
	return true;
}

static uint64_t doing_of(const struct gc_share *s, int64_t g)
{
	uint64_t doing = 0;

	(void)map_get(&s->doing, (uint64_t)g, &doing);
	return doing;
}

/* What it does has changed; on @p it runs, or ran until now. */
static bool set(struct gc_share *s, int64_t g, uint64_t now, int64_t p)
{
	uint64_t was = doing_of(s, g);

	if (now == RUNS)
		now = 0;
	if ((was & RUNS) != (now & RUNS) && !count(s, p, now & RUNS ? 1 : -1))
		return false;
	if (now)
		return now == was || map_put(&s->doing, (uint64_t)g, now);
	map_del(&s->doing, (uint64_t)g);
	return true;
}

static bool transition(struct gc_share *s, const struct trace_event *ev)
{
	const struct trace_transition *t = &ev->transition;
	uint64_t now = doing_of(s, t->id);

	if (!now)
		return true;
	if (t->to == TRACE_G_RUNNING || t->to == TRACE_G_SYSCALL)
		now |= RUNS;
	else if (t->to == TRACE_G_NOT_EXIST)
		now = 0;
	else
		now &= ASSISTS; /* a worker is labelled again when it goes on */
	return set(s, t->id, now, ev->p);
}

static bool range(struct gc_share *s, const struct trace_event *ev)
{
	const struct trace_range *r = &ev->range;
	bool end = ev->kind == TRACE_RANGE_END;
	uint64_t now;

	if (begins(r->name, "stop-the-world")) {
		if (ev->kind == TRACE_RANGE_BEGIN)
			s->stopped++;
		else if (end && s->stopped)
			s->stopped--;
		return true;
	}
	if (!begins(r->name, "GC mark assist"))
		return true;
	now = doing_of(s, r->id) | (ev->g == r->id ? RUNS : 0);
	return set(s, r->id, end ? now & ~(uint64_t)ASSISTS : now | ASSISTS, ev->p);
}

/* "GC (dedicated)", "GC (fractional)"; "GC (idle)" takes nothing from anybody. */
static bool label(struct gc_share *s, const struct trace_event *ev)
{
	if (!begins(ev->label.label, "GC (") || begins(ev->label.label, "GC (idle)"))
		return true;
	return set(s, ev->label.g, doing_of(s, ev->label.g) | WORKS | RUNS, ev->p);
}

static bool metric(struct gc_share *s, const struct trace_event *ev)
{
	if (!strcmp(ev->metric.name, "/sched/gomaxprocs:threads") && ev->metric.value)
		s->procs = ev->metric.value;
	return true;
}

int gc_share_event(struct gc_share *s, const struct trace_event *ev, struct err *e)
{
	uint64_t lost;
	bool ok = true;

	switch (ev->kind) {
	case TRACE_GOROUTINE:
		ok = transition(s, ev);
		break;
	case TRACE_RANGE_BEGIN:
	case TRACE_RANGE_ACTIVE:
	case TRACE_RANGE_END:
		ok = range(s, ev);
		break;
	case TRACE_LABEL:
		ok = label(s, ev);
		break;
	case TRACE_METRIC:
		ok = metric(s, ev);
		break;
	default:
		return 0;
	}
	if (!ok)
		return err_set(e, -ENOMEM, "no memory for the utilisation");
	if (!s->procs)
		return 0;
	lost = s->stopped || s->busy > s->procs ? s->procs : s->busy;
	return mmu_set(s->mmu, ev->time_ns, 1 - (double)lost / (double)s->procs, e);
}
