/*
 * user/collect/ratewrite/enable.c - a rate that is switched on for the time of a window: its checks and its
 * messages.
 */
#include "collect/ratewrite/enable.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/loop/cancel.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum {
	NEXT_MIN_MS = 20, /* shortest pause between readings; it grows */
	NEXT_MAX_MS = 1000,
	COST_SHARE = 20, /* readings take at most this part of the time */
};

static double seconds(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? (double)(to_ns - from_ns) / 1e9 : 0;
}

int enable_init(struct enable *x, struct err *e)
{
	x->timer = -1;
	if (x->o->held)
		return err_set(e, -ENOTSUP,
			       "a program that has not run yet has still to set its own rates: use "
			       "--source=probe, or -p once it runs");
	return 0;
}

void enable_fini(struct enable *x)
{
	guardian_free(x->g);
	closep(&x->timer);
}

void enable_step(const struct enable *x, const char *fmt, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (x->o->verbose)
		say(x->o, "%s: %s", x->kind, line);
}

/* ---- the switch ---- */

int enable_check_address(struct subject *s, enum rtvar v, uint64_t addr, struct err *e)
{
	uint64_t at;
	int ret;

	if (s->layout.how == LAYOUT_GUESSED || s->layout.newer)
		return err_set(e, -ENOTSUP,
			       "nothing is written in a Go that is not known here (%s); "
			       "--source=probe works without",
			       gobin_info(s->bin)->version);
	ret = rtvar_decode(s->bin, v, &at, e);
	if (ret)
		return err_wrap(e, ret, "nothing is written where the code does not confirm it");
	if (at + s->bias != addr)
		return err_set(e, -EBADMSG,
			       "%s is at 0x%llx by symbol and at 0x%llx by its users: nothing is "
			       "written",
			       rtvar_name(v), (unsigned long long)(addr - s->bias),
			       (unsigned long long)at);
	return 0;
}

static void tell_begun(const struct enable *x)
{
	const struct collect_opts *o = x->o;
	long long value = (long long)x->began.value;

	if (x->began.how == GUARDIAN_SHARES)
		say(o,
		    "%s: source enable: %s is on at %lld, claimed by a lock on the target (another "
		    "goprof-bpf, or whoever imitates one): shared",
		    x->kind, x->name, value);
	else
		say(o, "%s: source enable: %s was 0, is %lld until this ends; process %d guards it",
		    x->kind, x->name, value, guardian_pid(x->g));
}

/* Reports what a reader of the numbers must know, on stderr as well. */
static void tell_end(const struct enable *x)
{
	const struct collect_opts *o = x->o;
	double on = seconds(x->began.at_ns, x->ended.at_ns);
	long long value = (long long)x->ended.value;

	if (x->ended.how == GUARDIAN_CHANGED)
		say(o, "%s: the program has set %s to %lld itself: left alone", x->kind, x->name,
		    value);
	if (x->ended.how == GUARDIAN_LEFT)
		say(o,
		    "%s: %s stays %lld while a lock on the target claims it (another goprof-bpf, or "
		    "whoever imitates one), and is set to 0 when that lock is gone",
		    x->kind, x->name, value);
	if (x->ended.late)
		say(o, "%s: %s was restored %.1f s after it was set, for nobody had asked in time",
		    x->kind, x->name, on);
	if (x->ended.imitated)
		say(o,
		    "%s: a lock on the target claims %s, but no process that may write there holds "
		    "it: it counts for nothing",
		    x->kind, x->name);
	if (x->ended.how == GUARDIAN_RESTORED)
		say(o, "%s: %s is 0 again, after %.3f s", x->kind, x->name, on);
}

int enable_on(struct enable *x, uint64_t addr, uint64_t value, unsigned what, struct err *e)
{
	struct guardian_job job = {
		.target = x->s->target,
		.name = x->name,
		.addr = addr,
		.value = value,
		.what = what,
		.window_ns = x->o->window_ns,
	};
	int ret = guardian_start(&job, &x->g, &x->began, e);

	if (ret)
		return ret;
	if (x->began.how == GUARDIAN_FOUND)
		return 1;
	tell_begun(x);
	if (x->began.exposed)
		say_exposed(x->s, x->o, "the guardian");
	return 0;
}

static int rate_now(struct enable *x, uint64_t *rate, struct err *e)
{
	int ret = x->rate(x->arg, rate, e);

	x->over |= !ret && *rate != x->began.value;
	return ret;
}

int enable_is_ours(struct enable *x, bool *ours, struct err *e)
{
	struct err why = { "" };
	uint64_t rate;
	int ret = rate_now(x, &rate, &why);

	if (!ret) {
		*ours = rate == x->began.value;
	} else if (ret == -EBADMSG) { /* a value that nothing sensible sets is the program's, too */
		x->over = true;
		*ours = false;
	} else {
		return err_set(e, ret, "%s", why.msg);
	}
	return 0;
}

/* ---- the window ---- */

static int start_timer(struct enable *x, struct err *e)
{
	struct itimerspec t = { 0 };

	if (x->timer < 0)
		x->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	t.it_value.tv_sec = (time_t)(x->next_ms / 1000);
	t.it_value.tv_nsec = (long)(x->next_ms % 1000 * NS_PER_MS);
	if (x->timer < 0 || timerfd_settime(x->timer, 0, &t, NULL))
		return err_sys(e, "a timer");
	return 0;
}

int enable_from(struct enable *x, uint64_t base_ns, struct err *e)
{
	uint64_t rate;
	int ret = rate_now(x, &rate, e);

	if (ret)
		return ret;
	if (x->over)
		return err_set(e, -EBUSY,
			       "the program has set %s to %lld itself: read it with --source=read",
			       x->name, (long long)rate);
	x->base_ns = base_ns;
	x->base_unix_ns = (int64_t)(clock_ns(CLOCK_REALTIME) - (now_ns() - base_ns));
	x->next_ms = NEXT_MIN_MS;
	return start_timer(x, e);
}

static void check(struct enable *x)
{
	if (guardian_check(x->g))
		x->over = true;
}

int enable_fd(void *state)
{
	return ((const struct enable *)state)->timer;
}

int enable_tick(void *state, struct err *e)
{
	(void)e;
	check(state);
	return 0;
}

/* A reading that fails costs nothing but itself: the next one, or the last, may be better. */
static void read_between(struct enable *x)
{
	struct err why = { "" };
	int ret = x->read(x->arg, &why);

	if (!ret || ret == -ESRCH) /* its end is told elsewhere */
		return;
	if (!x->told)
		say(x->o, "%s: a reading in between failed: %s", x->kind, why.msg);
	x->told = true;
}

int enable_poll(void *state, struct err *e)
{
	struct enable *x = state;
	uint64_t expired, start_ns = now_ns(), cost_ms;

	(void)!read(x->timer, &expired, sizeof(expired));
	check(x);
	if (!x->over)
		read_between(x);
	if (x->over)
		return 0; /* the timer is not set again: what is there stays */
	cost_ms = (now_ns() - start_ns) / NS_PER_MS;
	x->next_ms = x->next_ms * 2 < NEXT_MAX_MS ? x->next_ms * 2 : NEXT_MAX_MS;
	if (x->next_ms < cost_ms * COST_SHARE)
		x->next_ms = cost_ms * COST_SHARE;
	return start_timer(x, e);
}

int enable_end(struct enable *x, struct err *e)
{
	struct err why = { "" };

	if (!x->over && x->read(x->arg, &why) && !x->last_ns)
		say(x->o, "%s: %s", x->kind, why.msg);
	enable_step(x, "asking process %d to restore %s", guardian_pid(x->g), x->name);
	x->ended.how = -1;
	if (guardian_end(x->g, &x->ended, &why))
		say(x->o, "%s: %s", x->kind, why.msg);
	tell_end(x);
	if (!x->last_ns)
		return err_set(e, -ESRCH,
			       "the window was over before anything could be read of it");
	return 0;
}

/* ---- the profile ---- */

double enable_seconds(const struct enable *x)
{
	return seconds(x->base_ns, x->last_ns);
}

void enable_set_window(const struct enable *x, struct prof *p)
{
	prof_set_time(p, x->base_unix_ns, (int64_t)(x->last_ns - x->base_ns));
	if (x->over)
		prof_loss(p)->n[LOSS_WINDOW_CUT] = 1;
}

int enable_comment(const struct enable *x, struct prof *p, struct err *e)
{
	double on = seconds(x->began.at_ns, x->ended.at_ns);
	const char *first = x->began.how == GUARDIAN_WROTE ?
				    "was 0 and was set to" :
				    "was on, claimed by a lock on the target, at";
	long long value = (long long)x->began.value;

	switch (x->ended.how) {
	case GUARDIAN_RESTORED:
		return prof_comment(p, e, "enabled: %s %s %lld for %.3f s%s; it is 0 again",
				    x->name, first, value, on,
				    x->ended.late ? " (nobody had asked for its end in time)" : "");
	case GUARDIAN_LEFT:
		return prof_comment(
			p, e,
			"enabled: %s %s %lld; after %.3f s it is left on while a lock on "
			"the target claims it (another goprof-bpf, or whoever imitates one)",
			x->name, first, value, on);
	case GUARDIAN_CHANGED:
		return prof_comment(p, e,
				    "enabled: %s %s %lld; the program has set it to %lld itself, "
				    "which was left alone after %.3f s",
				    x->name, first, value, (long long)x->ended.value, on);
	case GUARDIAN_GONE:
		return prof_comment(p, e,
				    "enabled: %s %s %lld for %.3f s, until the program was gone",
				    x->name, first, value, on);
	}
	prof_loss(p)->n[LOSS_NOT_RESTORED] = 1;
	return prof_comment(p, e, "enabled: %s %s %lld; IT COULD NOT BE RESTORED", x->name, first,
			    value);
}
