/* user/sampling/looks/look_times.c - see sampling/looks/look_times.h. */
#include "sampling/looks/look_times.h"

#include "base/random.h"
#include "sampling/looks/looks_sums.h"

#define LONGEST_NS 60000000000ull

/* The cost is learnt fast at first. */
enum { FIRST_LOOKS = 8, LEARN_FAST = 2, LEARN = 32 };

static void next_stratum(struct look_times *t, uint64_t now, double share, uint64_t *random)
{
	uint64_t end = t->at + t->len, len = LOOKS_STRATUM_NS;

	if (t->cost > share * (double)len)
		len = (uint64_t)(t->cost / share);
	t->len = len < LONGEST_NS ? len : LONGEST_NS;
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
