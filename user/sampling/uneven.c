/* user/sampling/uneven.c - periods, drawn. */
#include "sampling/uneven.h"

#include "base/random.h"

/* Rates are uniform between 0.6 and 1.4 times the mean: with 0.3 a program's period is met too often, with 0.5 rates differ too much. */
#define APART 0.4

/* A clock that starts anew loses half a tick on average. */
#define LOST (0.5 / UNEVEN_TICKS)

static void draw(struct uneven *u)
{
	u->apart = u->pair ? -u->apart : APART * (2 * random_part(&u->random) - 1);
	u->pair = !u->pair;
}

uint64_t uneven_period(struct uneven *u, uint64_t mean_ns, uint64_t now)
{
	if (now < u->until_ns)
		return 0;
	draw(u);
	u->until_ns = now +
		      (uint64_t)((0.5 + random_part(&u->random)) * UNEVEN_TICKS * (double)mean_ns);
	return (uint64_t)((double)mean_ns * (1 - LOST) / (1 + u->apart));
}
