/* user/sampling/run_rates.c - two histograms of the pace of runs: by the runtime's count, and in windows. */
#include "sampling/run_rates.h"

#include <math.h>
#include <stdbool.h>

enum { BINS_EACH = 4 }; /* for each doubling */
#define NS_PER_S 1e9

/*
 * Only time at more than twice the highest pace in windows counts as met by none: a moderate extrapolation is
 * what a regression is for. The runtime counts one run in eight, for all eight (rtcounters_switches): the
 * variance of a step's number is at most eight times the number, and a few may come together.
 */
#define FAR	   2
#define EACH_TELLS 8
#define ERRORS	   5
#define TOGETHER   8

/* Storms fall into the time of the sweeper by chance in so many of all cases, at most. */
#define CHANCE 1e-2

/* The part of the time that is left out at either end, the slowest and the fastest: an interquartile mean. */
#define TRIMMED 0.25

unsigned run_rates_bin(double runs, double ns)
{
	double rate = runs / ns * NS_PER_S, at;

	if (rate < 1)
		return 0;
	at = 1 + BINS_EACH * log2(rate);
	return at < RUN_BINS - 1 ? (unsigned)at : RUN_BINS - 1;
}

static void add(struct run_bins *b, double runs, double ns, double weight)
{
	unsigned i = run_rates_bin(runs, ns);

	b->runs[i] += runs * weight;
	b->ns[i] += ns * weight;
}

static bool step(struct run_rates *r, double runs, double ns)
{
	unsigned bin;
	bool rise;

	if (ns <= 0)
		return false;
	add(&r->steps, runs, ns, 1);
	bin = run_rates_bin(runs, ns);
	rise = bin > r->before + BINS_EACH;
	r->rises[bin] += rise;
	r->before = bin;
	return rise;
}

void run_rates_step(struct run_rates *r, double runs, double ns)
{
	step(r, runs, ns);
}

void run_rates_swept(struct run_rates *r, double runs, double ns)
{
	if (step(r, runs, ns))
		r->swept_rises[run_rates_bin(runs, ns)]++;
	if (ns > 0)
		add(&r->swept, runs, ns, 1);
}

void run_rates_window(struct run_rates *r, double runs, double ns, double stands_ns)
{
	if (ns <= 0)
		return;
	add(&r->windows, runs, ns, stands_ns / ns);
	run_rates_met(r, runs / ns);
}

void run_rates_met(struct run_rates *r, double pace)
{
	if (pace > r->most)
		r->most = pace;
}

static double time_of(const struct run_bins *b)
{
	double ns = 0;

	for (unsigned i = 0; i < RUN_BINS; i++)
		ns += b->ns[i];
	return ns;
}

/* The interquartile mean of the pace, over time: no rare storm is in it, and chance makes it neither more nor less. */
static double usual(const struct run_bins *b)
{
	double all = time_of(b), from = all * TRIMMED, to = all - from, at = 0, runs = 0;

	for (unsigned i = 0; i < RUN_BINS; at += b->ns[i++]) {
		double ns = fmin(at + b->ns[i], to) - fmax(at, from);

		if (ns > 0)
			runs += b->runs[i] * ns / b->ns[i];
	}
	return to > from ? runs / (to - from) : 0;
}

double run_rates_lack(const struct run_rates *r)
{
	double steps = usual(&r->steps), windows = usual(&r->windows);

	return steps > 0 && windows > 0 ? steps / windows : 1;
}

/* Runs in RUN_STEP_NS: a step with more is, beyond chance, more than @times as fast as @pace. */
static double fast(double pace, double times)
{
	double met = pace * RUN_STEP_NS;

	return times * met + ERRORS * sqrt(EACH_TELLS * met) + EACH_TELLS * TOGETHER;
}

bool run_rates_beyond(double pace, double than)
{
	return pace * RUN_STEP_NS > fast(than, 1);
}

/* At least @k of @n, each with the probability @p, are no more probable than that (Chernoff). */
static double at_most(double k, double n, double p)
{
	double part = k / n;

	if (p <= 0 || p >= 1 || part <= p)
		return 1;
	return exp(-n * (part * log(part / p) +
			 (part < 1 ? (1 - part) * log((1 - part) / (1 - p)) : 0)));
}

/* How many of the runs in bins above @last are the sweeper's. */
static double yields(const struct run_rates *r, unsigned last)
{
	double swept = 0, others = 0, k = 0, n = 0, all = time_of(&r->steps);
	double part = all > 0 ? time_of(&r->swept) / all : 0;

	for (unsigned i = last + 1; i < RUN_BINS; i++) {
		swept += r->swept.runs[i];
		others += r->steps.runs[i] - r->swept.runs[i];
		k += r->swept_rises[i];
		n += r->rises[i];
	}
	if (k < 1 || at_most(k, n, part) > CHANCE)
		return 0;
	return fmax(swept - others * part / (1 - part), 0);
}

struct run_unmet run_rates_unmet(const struct run_rates *r)
{
	double runs = 0, ns = 0, rest = 0, rest_ns = 0, met = fast(r->most, 1) / RUN_STEP_NS;
	unsigned last = run_rates_bin(fast(r->most, FAR), RUN_STEP_NS);
	struct run_unmet out = {};

	if (time_of(&r->windows) <= 0)
		return out;
	for (unsigned i = 0; i < RUN_BINS; i++) {
		const struct run_bins *s = &r->steps;

		out.maybe += i > last ? r->swept.runs[i] : 0;
		*(i > last ? &runs : &rest) += s->runs[i];
		*(i > last ? &ns : &rest_ns) += s->ns[i];
		if (i <= last)
			out.faster += fmax(s->runs[i] - met * s->ns[i], 0);
	}
	out.unsure = rest_ns > 0 ? rest / rest_ns * ns / 2 : 0;
	out.runs = runs - out.unsure;
	out.yields = fmin(yields(r, last), fmax(out.runs, 0));
	out.maybe = fmax(fmin(out.maybe, out.runs) - out.yields, 0);
	return out;
}
