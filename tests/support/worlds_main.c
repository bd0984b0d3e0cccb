/*
 * tests/support/worlds_main.c - what windows make of simulated programs: for each program the share of its CPU time that probes took,
 * how long it was observed, and how far the number of a site is from the truth, as the root mean square of many runs.
 *
 *	worlds [RUNS]
 */
#include "collect/heap/window/heap_window.h"
#include "collect/waits/engine/wait_engine.h"
#include "unit/probing_world.h"

enum { RUN_S = 30, SITE = 1 };

static double short_bursts(double t)
{
	return fmod(t, 1) < 0.02 ? 2e6 : 100;
}

static double start_up(double t)
{
	return t < 3 ? 1e6 : 300;
}

/* Much for @much seconds, little for @little. */
static double phases(double t, double much, double little)
{
	return fmod(t, much + little) < much ? 40000 : 300;
}

static double phases_of_one(double t)
{
	return phases(t, 1, 1.5);
}

static double phases_uneven(double t)
{
	return phases(t, 0.7, 2.3);
}

static const struct world {
	const char *name;
	double (*rate)(double);
	double (*share)(double);
	double cpus;
	uint64_t window_ms; /* of windows of a fixed length; 0: 8 to 50 ms */
} worlds[] = {
	{ "all the time", heavy, second_half, 2, 0 },
	{ "bursts of 50 ms a second", bursts, other_bursts, 0.5, 0 },
	{ "bursts of 20 ms a second", short_bursts, other_bursts, 0.5, 0 },
	{ "uneven bursts", uneven, other_bursts, 0.5, 0 },
	{ "a start of 3 s, then calm", start_up, second_half, 0.3, 0 },
	{ "phases of 1 and 1.5 s", phases_of_one, second_half, 0.3, 0 },
	{ "phases of 0.7 and 2.3 s", phases_uneven, second_half, 0.3, 0 },
	{ "bursts, windows of 15 ms", bursts, other_bursts, 0.5, 15 },

};

struct sums {
	double error2, spent, observed, windows;
};

static void run_once(const struct world *d, const struct program *p, uint64_t seed, struct sums *s)
{
	bool counts = true;
	double truth;

	begin_world(d->cpus, seed * 1000003);
	truth = site_by(p, SITE, w.begin + RUN_S * SEC);
	run(&p, &counts, 1, RUN_S);
	s->error2 += pow(w.at[0].estimate[SITE] / truth - 1, 2);
	s->spent += w.cost / w.cpu;
	s->observed += (double)w.at[0].observed / 1e9;
	s->windows += (double)w.at[0].windows;
}

static void show(const struct world *d, uint64_t runs)
{
	static const struct window_parts ordinary = ORDINARY_PARTS;
	struct program *p = program(d->rate, d->share);
	struct sums s = {};

	parts = ordinary;
	if (d->window_ms)
		parts.begin_ns = 0, parts.end_ns = parts.most_ns = d->window_ms * MS;
	for (uint64_t seed = 1; seed <= runs; seed++)
		run_once(d, p, seed, &s);
	printf("%-28s %8.1f%% %8.1f%% %8.1f %8.0f\n", d->name, 100 * sqrt(s.error2 / (double)runs),
	       100 * s.spent / (double)runs, s.observed / (double)runs, s.windows / (double)runs);
	free(p);
}

int main(int argc, char **argv)
{
	uint64_t runs = argc > 1 ? strtoull(argv[1], NULL, 10) : 200;

	printf("%-28s %9s %9s %8s %8s\n", "program", "error", "spent", "seen/s", "windows");
	for (size_t i = 0; runs && i < sizeof(worlds) / sizeof(*worlds); i++)
		show(&worlds[i], runs);
	return 0;
}
