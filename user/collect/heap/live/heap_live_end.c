/* user/collect/heap/live/heap_live_end.c - what of the followed objects is in use, and what is said of that. */
#include <math.h>

#include "collect/heap/live/heap_live_priv.h"
#include "profile/profile.h"

/*
 * How much of @o is in use. After missed cycles, an object whose slot was taken counts with the share that outlives
 * as many (outlive). Simulated: where one cycle in five is missed, that is within 1 to 14 % of the truth, as it is
 * when all of them are taken for the object itself; but where nine in ten are, these would be 50 times too many of
 * a stack whose objects die young, and this is twice too many.
 */
static double still_there(const struct heap_live *l, const struct live_object *o)
{
	if (o->gen == l->gen)
		return o->sure;
	return o->sure * heap_live_outlive(l, heap_live_stack_at(l, o), (l->gen - o->gen) / 2);
}

static void count_live(struct heap_live *l)
{
	double live = 0;

	for (size_t i = 0; i < l->cells.n; i++)
		heap_live_fold(l, &l->cells.at[i]);
	for (size_t i = 0; i < l->objects.n; i++) {
		const struct live_object *o = &l->objects.at[i];
		double weight = (double)l->weights.at[o->window], there;
		struct heap_live_count *c;

		/* When the target has gone, a cycle may be known from objects alone. */
		if ((o->gen == l->gen && l->cycles && !o->aged) || (int32_t)(o->gen - l->gen) > 0) {
			l->young++;
			continue;
		}
		l->unconfirmed += o->gen != l->gen && o->sure == 1;
		there = still_there(l, o);
		c = &l->cells.at[o->cell].count;
		c->live += there * weight;
		live += there;
		if (there >= 1)
			continue;
		c->maybe += (float)weight;
		c->maybe_live += (float)(there * weight);
	}
	l->live = (uint64_t)llround(live);
}

int heap_live_end(struct heap_live *l, struct err *e)
{
	bool again = true;
	int ret = 0;

	for (unsigned try = 0; !ret && again; try++) {
		ret = heap_live_last(l, try, &again, e);
		if (again)
			heap_live_wait();
	}
	if (!ret)
		count_live(l);
	return ret;
}

size_t heap_live_ncounts(const struct heap_live *l)
{
	return l->cells.n;
}

struct heap_live_count heap_live_count(const struct heap_live *l, size_t i)
{
	const struct live_cell *c = &l->cells.at[i];
	const struct live_stack *s = &l->stacks.at[c->stack];
	struct heap_live_count count = c->count;

	count.once = heap_live_outlive(l, s, 1);
	count.always = heap_live_outlive(l, s, (uint32_t)l->cycles);
	return count;
}

uint64_t heap_live_turned_away(const struct heap_live *l)
{
	return l->untold;
}

static uint64_t if_many(const struct heap_live *l, uint64_t n)
{
	return n > l->followed / 20 && (double)n > sqrt((double)l->followed) ? n : 0;
}

void heap_live_losses(const struct heap_live *l, const struct heap_live_told *t, struct loss *to)
{
	loss_at_least(to, LOSS_ATTACHER_KILLED, l->probe.deaths);
	to->n[LOSS_OBJECTS_UNPLACED] += if_many(l, l->untold + t->unknown + t->waiting);
	to->n[LOSS_OBJECTS_UNCONFIRMED] += if_many(l, l->unconfirmed);
}

int heap_live_comments(const struct heap_live *l, const struct heap_live_told *t, struct prof *p,
		       struct err *e)
{
	int ret = prof_comment(
		p, e,
		"in use: of objects allocated in the window, %s; %llu sampled objects followed, "
		"%llu in use",
		!l->cycles ? "all, for no GC cycle ended in it" :
		l->gone	   ? "what the last GC cycle that was seen found reachable" :
			     "what the last GC cycle found reachable",
		(unsigned long long)l->followed, (unsigned long long)l->live);

	if (!ret && l->cycles)
		ret = prof_comment(p, e,
				   "in use: %llu GC cycles ended; %llu sampled objects are younger "
				   "than the last and not counted",
				   (unsigned long long)l->cycles, (unsigned long long)l->young);
	if (!ret)
		ret = prof_comment(
			p, e,
			"in use: %llu sampled objects without a known slot, for which the other "
			"objects of their stack stand; %llu not confirmed after missed GC cycles, "
			"which count with the share of their stack's objects that outlive as many",
			(unsigned long long)(t->unknown + t->waiting + t->dropped + l->untold),
			(unsigned long long)l->unconfirmed);
	if (!ret)
		ret = prof_comment(
			p, e,
			"in use: places of %llu objects known immediately, %llu after a wait, %llu "
			"from allocLarge, %llu at the next allocation; longest look %.1f ms, at "
			"%zu objects",
			(unsigned long long)t->told, (unsigned long long)t->waited,
			(unsigned long long)t->large, (unsigned long long)t->settled,
			(double)l->look_ns / 1e6, l->look_n);
	return ret;
}
