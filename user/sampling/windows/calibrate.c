/* user/sampling/windows/calibrate.c - the regression estimator: a small least-squares problem. */
#include "sampling/windows/calibrate.h"

#include <math.h>

/* windows for each coefficient that is fitted */
#define WINDOWS_EACH 8
/* groups with a smaller share get no coefficient */
#define SHARE_MIN 0.01
/*
 * ridge term: a direction that varies less than this on its own is not used. It is small, because a site that is a tenth
 * of its class hardly shows in its class's column: with 1e-4, where windows see nine tenths of another thread, 344 of
 * 400 intervals cover such a site's number, and 379 with this.
 */
#define RIDGE 1e-6
/* an estimate that is off by more than this factor was extrapolated, not fitted */
#define FAR 8

static void choose(struct calibrate *c, const struct tally *t, const double *total,
		   const double *importance)
{
	const struct tally_columns *cols = t->columns;
	size_t most = t->windows / WINDOWS_EACH;
	double all = 0;

	for (size_t i = 0; i < cols->n; i++)
		if (total[cols->group[i]] > 0)
			all += importance[cols->group[i]];
	while (c->n < CALIBRATE_MAX && c->n < most) {
		size_t best = cols->n;
		double worth = SHARE_MIN * all;

		for (size_t i = 0; i < cols->n; i++) {
			size_t g = cols->group[i];
			bool taken = false;

			for (size_t k = 0; k < c->n; k++)
				taken |= c->column[k] == i;
			if (taken || total[g] <= 0 || cols->sum[i] <= 0 || importance[g] <= worth)
				continue;
			best = i;
			worth = importance[g];
		}
		if (best == cols->n)
			break;
		c->column[c->n++] = best;
	}
}

/*
 * Inverts a symmetric positive matrix by Gauss-Jordan elimination, which needs no pivots then.
 * False: the matrix is not positive.
 */
static bool invert(size_t n, double m[][CALIBRATE_MAX], double out[][CALIBRATE_MAX])
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			out[i][k] = i == k;
	for (size_t i = 0; i < n; i++) {
		double pivot = m[i][i];

		if (!(pivot > RIDGE / 2))
			return false;
		for (size_t k = 0; k < n; k++) {
			m[i][k] /= pivot;
			out[i][k] /= pivot;
		}
		for (size_t r = 0; r < n; r++) {
			double f = m[r][i];

			if (r == i)
				continue;
			for (size_t k = 0; k < n; k++) {
				m[r][k] -= f * m[i][k];
				out[r][k] -= f * out[i][k];
			}
		}
	}
	return true;
}

void calibrate_init(struct calibrate *c, const struct tally *t, const double *total,
		    const double *importance)
{
	const struct tally_columns *cols = t->columns;
	double m[CALIBRATE_MAX][CALIBRATE_MAX], scale[CALIBRATE_MAX], more[CALIBRATE_MAX];

	*c = (struct calibrate){};
	if (!cols)
		return;
	choose(c, t, total, importance);
	for (size_t i = 0; i < c->n; i++) {
		size_t a = c->column[i];

		scale[i] = sqrt(cols->cross[a][a]);
		more[i] = total[cols->group[a]] - cols->sum[a];
	}
	/* The columns are scaled to one size first. */
	for (size_t i = 0; i < c->n; i++) {
		for (size_t k = 0; k < c->n; k++)
			m[i][k] = cols->cross[c->column[i]][c->column[k]] / scale[i] / scale[k];
		m[i][i] += RIDGE;
	}
	if (!invert(c->n, m, c->inverse))
		c->n = 0;
	for (size_t i = 0; i < c->n; i++)
		for (size_t k = 0; k < c->n; k++) {
			c->inverse[i][k] /= scale[i] * scale[k];
			c->slope[i] += c->inverse[i][k] * more[k];
		}
	for (size_t i = 0; i < c->n; i++)
		c->reach += c->slope[i] * more[i];
}

/*
 * The sum of products of each column with the residual of a site (what it has more than its share
 * of its group), and the sum of squares that is left after the regression.
 */
static double residual(const struct calibrate *c, const struct tally *t, const struct tally_site *s,
		       double share, double *adjust)
{
	const struct tally_columns *cols = t->columns;
	const struct tally_sum *g = &t->groups[s->group];
	size_t own = cols->of[s->group];
	double w[CALIBRATE_MAX], b[CALIBRATE_MAX] = {}, squares;

	squares = s->sums.counts.xx - 2 * share * s->sums.counts.xn + share * share * g->xx;
	*adjust = 0;
	for (size_t i = 0; i < c->n; i++) {
		size_t a = c->column[i];

		w[i] = s->with[a] - share * cols->with[own - 1][a];
		*adjust += c->slope[i] * w[i];
	}
	for (size_t i = 0; i < c->n; i++)
		for (size_t k = 0; k < c->n; k++)
			b[i] += c->inverse[i][k] * w[k];
	for (size_t i = 0; i < c->n; i++) {
		squares -= 2 * b[i] * w[i];
		for (size_t k = 0; k < c->n; k++)
			squares += b[i] * b[k] * cols->cross[c->column[i]][c->column[k]];
	}
	return squares;
}

struct tally_estimate calibrate_site(const struct calibrate *c, const struct tally *t,
				     const struct tally_entry *en, double total)
{
	const struct tally_site *s = &t->sites.at[en->site];
	struct tally_estimate out = tally_site_counts(t, en, total);
	double share, adjust, squares, least, k = (double)t->windows;

	if (!c->n || total < 0 || out.value <= 0 || out.variance < 0 || !s->with ||
	    !t->columns->of[s->group])
		return out;
	share = s->sums.counts.x / t->groups[s->group].x;
	squares = tally_among(t, residual(c, t, s, share, &adjust), c->n + 1);
	if (squares < 0)
		return out;
	/* The error of the slopes counts more, the farther they are extrapolated. */
	squares *= 1 + c->reach / k;
	/* The finite-population correction is for what windows saw; there was more than that. */
	if (total > t->groups[s->group].x)
		squares *= total / t->groups[s->group].x * total / t->groups[s->group].x;
	least = tally_least(t, s->group, share) * total * total;
	out.variance = squares > least ? squares : least;
	if (out.value + adjust > FAR * out.value)
		adjust = (FAR - 1) * out.value;
	else if (out.value + adjust < out.value / FAR)
		adjust = (1 / (double)FAR - 1) * out.value;
	out.value += adjust;
	return out;
}
