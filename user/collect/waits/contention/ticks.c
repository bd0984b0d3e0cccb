/* user/collect/waits/contention/ticks.c - compares two clocks, and what the target says of them. */
#include "collect/waits/contention/ticks.h"

#include <math.h>
#include <time.h>

#include "arch/cputicks.h"
#include "base/clock.h"
#include "profile/profile.h"

enum {
	MEASURE_NS = 20000000, /* pause between the two readings */
	PAIRS = 16,	       /* pairs of readings, of which the closest is used */
	/* so much must have passed that a reading's own time does not matter */
	START_MIN_NS = 100000000,
};

/*
 * val may be somewhat off, because it is measured over a tenth of a second, and preemptions add
 * to that.
 */
static const double OWN_OFF_MAX = 0.1, START_OFF_MAX = 0.01, TELL_OFF = 0.002;

/* Reads both clocks at one moment: of several tries, the one that took the least time. */
static void both(int64_t *ticks, int64_t *ns)
{
	int64_t best = INT64_MAX;

	for (int i = 0; i < PAIRS; i++) {
		int64_t a = (int64_t)now_ns(), c = arch_cputicks(), b = (int64_t)now_ns();

		if (b - a >= best)
			continue;
		best = b - a;
		*ticks = c;
		*ns = a + (b - a) / 2;
	}
}

int ticks_measure(double *per_second, struct err *e)
{
	struct timespec wait = { .tv_nsec = MEASURE_NS };
	int64_t c0 = 0, c1 = 0, t0 = 0, t1 = 0;

	both(&c0, &t0);
	/* A sleep that a signal cuts short is as good. */
	clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, NULL);
	both(&c1, &t1);
	if (t1 - t0 < MEASURE_NS / 20 || c1 <= c0)
		return err_set(e, -EBADMSG, "the processor counted %lld cycles in %lld ns",
			       (long long)(c1 - c0), (long long)(t1 - t0));
	*per_second = (double)(c1 - c0) * 1e9 / (double)(t1 - t0);
	return 0;
}

static bool near(double v, double measured, double off)
{
	return fabs(v - measured) <= off * measured;
}

struct ticks ticks_choose(const struct ticks_words *w, double measured, int64_t now_ticks,
			  int64_t now_ns)
{
	struct ticks t = { .how = TICKS_MEASURED, .per_second = measured, .measured = measured };
	double elapsed_ns = (double)now_ns - (double)w->start_ns;
	double elapsed_ticks = (double)now_ticks - (double)w->start_ticks;

	if (w->val > 0) {
		t.own = (double)w->val;
		if (!near(t.own, measured, OWN_OFF_MAX))
			return t;
		t.how = TICKS_OWN;
		t.per_second = t.own;
	} else if (w->start_ns > 0 && w->start_ticks > 0 && elapsed_ns >= START_MIN_NS) {
		t.own = elapsed_ticks * 1e9 / elapsed_ns;
		if (!near(t.own, measured, START_OFF_MAX))
			return t;
		t.how = TICKS_START;
		t.per_second = t.own;
	}
	return t;
}

static int read_words(struct subject *s, struct ticks_words *out)
{
	int minor = gobin_info(s->bin)->minor;
	struct ticks_words w = { 0 };
	uint64_t addr, raw[4];
	int ret = subject_rtvar(s, RTVAR_TICKS, &addr, NULL);

	if (ret)
		return ret;
	if (minor >= 0 && minor < 22) {
		/* It is {lock; val}; up to go1.19 with a padding of 8 bytes between them. */
		ret = mem_u64(s->target->mem, addr + (minor < 20 ? 16 : 8), &raw[3], NULL);
	} else {
		ret = mem_read(s->target->mem, addr, raw, sizeof(raw), NULL);
		if (!ret) {
			w.start_ticks = (int64_t)raw[1];
			w.start_ns = (int64_t)raw[2];
		}
	}
	if (ret)
		return ret;
	w.val = (int64_t)raw[3];
	*out = w;
	return 0;
}

struct ticks ticks_of(struct subject *s, double measured)
{
	struct ticks_words w = { 0 };
	int64_t ticks = 0, ns = 0;

	if (read_words(s, &w))
		w = (struct ticks_words){ 0 };
	both(&ticks, &ns);
	return ticks_choose(&w, measured, ticks, ns);
}

int ticks_comment(const struct ticks *t, struct prof *p, struct err *e)
{
	static const char *const names[] = {
		[TICKS_OWN] = "as the program itself measured it",
		[TICKS_START] = "since the program's start, as it would measure it itself",
		[TICKS_MEASURED] = "measured here; the program has not measured it yet",
	};
	double off = t->own ? 100 * (t->own / t->measured - 1) : 0;

	if (t->how == TICKS_MEASURED && t->own)
		return prof_comment(
			p, e,
			"clock: %.0f ticks in a second, measured here; the program says "
			"%.0f, which cannot be",
			t->per_second, t->own);
	if (t->how != TICKS_MEASURED && !near(t->own, t->measured, TELL_OFF))
		return prof_comment(p, e,
				    "clock: %.0f ticks in a second, %s; that is %+.1f %% off of "
				    "what is measured here, and so are all delays",
				    t->per_second, names[t->how], off);
	return prof_comment(p, e, "clock: %.0f ticks in a second, %s", t->per_second,
			    names[t->how]);
}
