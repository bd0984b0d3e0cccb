/* user/sampling/looks/look_times.c - see sampling/looks/look_times.h. */
#include "sampling/looks/look_times.h"

#include "base/random.h"
#include "sampling/looks/looks_sums.h"

#define LONGEST_NS 60000000000ull

/* The cost is learnt fast at first. */
enum { FIRST_LOOKS = 8, LEARN_FAST = 2, LEARN = 32 };

/* Strata that differ by more than this factor do not suit both of a pair. */
enum { SUITS = 4 };

void look_times_join(struct look_times *t, struct look_pair *pair)
{
	struct look_times **place = pair && pair->of[0] ? &pair->of[1] : pair ? &pair->of[0] : NULL;

	if (!place || *place)
		return;
	*place = t;
	t->pair = pair;
}

void look_times_leave(struct look_times *t)
{
	for (size_t i = 0; t->pair && i < 2; i++)
		if (t->pair->of[i] == t)
			t->pair->of[i] = NULL;
	t->pair = NULL;
}

/* The other one of its pair, while it looks. */
static const struct look_times *other_of(const struct look_times *t)
{
	const struct look_times *o = t->pair ? t->pair->of[t->pair->of[0] == t] : NULL;

	return o && o->on ? o : NULL;
}

/* Whoever of a pair comes first pays for both. */
static uint64_t stratum_for(const struct look_times *t, const struct look_times *other,
			    double share)
{
	double cost = other ? (t->cost + other->cost) / 2 : t->cost;

	if (cost <= share * (double)LOOKS_STRATUM_NS)
		return LOOKS_STRATUM_NS;
	return cost < share * (double)LONGEST_NS ? (uint64_t)(cost / share) : LONGEST_NS;
}

static void next_stratum(struct look_times *t, uint64_t now, double share, uint64_t *random)
{
	const struct look_times *other = other_of(t);
	uint64_t end = t->at + t->len, len = stratum_for(t, other, share);

	if (other && other->due > now && other->len <= SUITS * len && len <= SUITS * other->len) {
		t->at = other->at;
		t->len = other->len;
		t->due = other->due;
		return;
	}
	t->len = len;
	t->at = end + t->len > now ? end : now;
	t->due = t->at + random_below(random, t->len);
}

void look_times_begin(struct look_times *t, uint64_t now, uint64_t since, double share,
		      uint64_t *random)
{
	t->on = true;
	t->begun = since ? since : now;
	t->at = now;
	t->len = 0;
	next_stratum(t, now, share, random);
}

void look_times_looked(struct look_times *t)
{
	t->looked_ns += (double)t->len;
	t->looks++;
}

void look_times_next(struct look_times *t, uint64_t now, uint64_t cpu_ns, double share,
		     uint64_t *random)
{
	t->cost += ((double)cpu_ns - t->cost) / (t->looks < FIRST_LOOKS ? LEARN_FAST : LEARN);
	next_stratum(t, now, share, random);
}

void look_times_pause(struct look_times *t, uint64_t now)
{
	if (t->on)
		t->phases_ns += (double)(now - t->begun);
	t->on = false;
}

double look_times_mean(const struct look_times *t)
{
	return t->looks ? t->looked_ns / (double)t->looks : 0;
}
