/* user/collect/fine_rate.c - how many samples a part of the budget pays for. */
#include "collect/fine_rate.h"

#include "collect/budget.h"

#define SAMPLE_NS \
	3000.0 /* what a sample costs beside a hit: a stack walk and a table. Linux 6.18: 1 to 3 us */
#define SHARE  0.2   /* of the budget; hits take the rest */
#define DOUBT  8     /* events that a look of some ms may miss by chance */
#define MEAN   128.0 /* bytes of an allocation, where none was seen */
#define UNSEEN 16384 /* bytes between samples, for a program of which nothing is known */

double fine_every(const struct fine_seen *s, unsigned budget_ppm)
{
	double income = budget_ppm / 1e6 * BUDGET_CPUS_MIN, every;

	if (s->ns <= 0)
		return 1;
	every = (s->events + DOUBT) / s->ns * SAMPLE_NS / (SHARE * income);
	return every > 1 ? every : 1;
}

uint64_t fine_heap_rate(const struct fine_seen *s, unsigned budget_ppm, uint64_t most)
{
	double mean = s->events > 0 ? s->bytes / s->events : MEAN, rate = UNSEEN;

	if (s->ns > 0)
		rate = mean * fine_every(s, budget_ppm);
	if (!(rate < (double)most))
		return most;
	return rate > 1 ? (uint64_t)rate : 1;
}
