/* user/collect/heap/window/heap_counts.c - rounds over all that are in windows, as often as our own share of a CPU allows. */
#include "collect/heap/window/heap_counts.h"

#include <time.h>

#include "base/clock.h"
#include "sampling/run_rates.h"

#define LEARN 4

int heap_counts_open(struct heap_counts *k, const struct collect_opts *o, struct err *e)
{
	int ret = wake_timer_open(&k->timer, e);

	k->own = o->host.own;
	return ret ? ret : probed_watch(k->probed, k->timer.fd, e);
}

void heap_counts_fini(struct heap_counts *k)
{
	wake_timer_close(&k->timer);
}

void heap_counts_turn(struct heap_counts *k)
{
	k->due_ns = 0;
}

static void count(struct set_member *m, struct heap_counted *c)
{
	uint64_t cpu = clock_ns(m->t->clock);
	bool still = cpu && cpu == c->cpu_ns && c->window->last_current;

	c->cpu_ns = cpu;
	if (!still && target_wake(m->t->subject->target, NULL))
		return;
	heap_window_count(c->window, still);
	if (!still)
		target_linger(m->t->subject->target);
}

static size_t count_all(struct heap_counts *k)
{
	size_t n = 0;

	for (uint32_t i = 0; i < k->probed->slots; i++) {
		struct set_member *m = probed_member(k->probed, i);

		if (!m || !m->on || m->done || !m->set->turn.windows)
			continue;
		count(m, k->of(m->part));
		n++;
	}
	return n;
}

/* As often as that of one is read, unless it would take too much. */
static uint64_t until_next(const struct heap_counts *k)
{
	double share = k->own->part * HEAP_COUNTS_PARTS, every = share > 0 ? k->took_ns / share : 0;

	return every > RUN_STEP_NS ? (uint64_t)every : RUN_STEP_NS;
}

void heap_counts_poll(struct heap_counts *k)
{
	uint64_t now = now_ns(), cpu;

	wake_timer_heard(&k->timer, now);
	if (now < k->due_ns)
		return;
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	k->due_ns = UINT64_MAX;
	if (count_all(k)) {
		cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
		k->own->read_ns += cpu;
		k->took_ns += ((double)cpu - k->took_ns) / LEARN;
		k->due_ns = now + until_next(k);
	}
	wake_timer_set(&k->timer, k->due_ns);
}
