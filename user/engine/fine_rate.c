/* user/engine/fine_rate.c - how many samples a part of the budget pays for. */
#include "engine/fine_rate.h"

#include <math.h>
#include <stdarg.h>

#include "sampling/windows/budget.h"
#include "subject/subject.h"

#define SAMPLE_NS \
	3000.0 /* what a sample costs beside a hit: a stack walk and a table. Linux 6.18: 1 to 3 us */
#define SHARE  0.2    /* of the budget; hits take the rest */
#define DOUBT  3      /* expected events of which a look still sees none in one case of twenty */
#define MEAN   128.0  /* bytes of an allocation, where none was seen */
#define UNSEEN 16384  /* bytes between samples, for a program of which nothing is known */
#define WAIT   1000.0 /* ns, of a wait that was not seen: one goroutine hands over to the next */
/* Waits of a program of which nothing is known are sampled so many times as densely as by default. */
#define DENSER 4

/* The mean of a Poisson distribution that gave @n is below this in 19 of 20 cases. */
static double at_most(double n)
{
	return n + 2 * sqrt(n) + DOUBT;
}

double fine_every(const struct fine_seen *s, unsigned budget_ppm)
{
	double income = budget_ppm / 1e6 * BUDGET_CPUS_MIN, every;

	if (s->ns <= 0)
		return 1;
	every = at_most(s->events) / s->ns * SAMPLE_NS / (SHARE * income);
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

/*
 * A wait of length d is a sample with probability min(1, d / rate), so the expected number of samples is
 * at most the sum of min(d, default rate) / rate.
 */
uint64_t fine_wait_rate(const struct fine_waits *s, unsigned budget_ppm, uint64_t most)
{
	const struct fine_seen all = { .events = s->waits, .ns = s->ns };
	double every = fine_every(&all, budget_ppm), mean = WAIT, rate = (double)most / DENSER;

	if (s->waits > 0)
		mean = s->capped_ns / s->waits;
	if (s->ns > 0)
		rate = every > 1 ? mean * every : 1;
	if (!(rate < (double)most))
		return most;
	return rate > 1 ? (uint64_t)rate : 1;
}

uint64_t fine_mutex_fraction(const struct fine_waits *s, unsigned budget_ppm, uint64_t most)
{
	const struct fine_seen all = { .events = s->waits, .ns = s->ns };
	double every = s->ns > 0 ? fine_every(&all, budget_ppm) : (double)most / DENSER;

	if (!(every < (double)most))
		return most;
	return every > 1 ? (uint64_t)ceil(every) : 1;
}

const char *fine_words(const struct collect_opts *o, bool fine)
{
	return fine && o->budget.ppm ? ", or more densely: told at the end" : "";
}

int fine_comment(const struct fine_rate *r, struct prof *prof, struct err *e, const char *fmt, ...)
{
	char text[160];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (r->fine && r->o->budget.ppm)
		say(r->o, "%s: %s", r->kind, text);
	return prof_comment(prof, e, "rate: %s", text);
}
