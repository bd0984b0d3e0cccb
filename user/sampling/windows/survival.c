/* user/sampling/windows/survival.c - see sampling/windows/survival.h. */
#include "sampling/windows/survival.h"

double survival_windows(double sum, double squares)
{
	return squares > 0 ? sum * sum / squares : 0;
}

/*
 * Agresti and Coull (1998) add two windows of which all lives and two of which nothing does. Here each of them counts as far as it
 * can be: nothing is younger than what outlives no cycle or one, and nothing older than what outlives all.
 */
double survival_least(const struct survival *s)
{
	double live = 2 * s->once, dead = 2 * (1 - s->always), n = s->windows + live + dead;
	double p = n > 0 ? (s->share * s->windows + live) / n : 0;

	return n > 0 ? p * (1 - p) / n : 0;
}

/* Somewhere between none and all of them: the mean square of a uniform distribution's distance. */
static double anywhere(double below, double above)
{
	return (below * below - below * above + above * above) / 3;
}

double survival_maybe(double n, double live)
{
	return anywhere(live, n - live);
}

/*
 * The estimate takes it for a time like that of the windows. It may lie at the end or at the beginning: what lives of it is then
 * somewhere between what outlives all cycles and one, nothing tells where.
 */
double survival_unseen(const struct survival *s)
{
	return s->unseen * s->unseen * anywhere(s->share - s->always, s->once - s->share);
}
