/* user/collect/waits/contention_enable.c - buckets before and after the window, and what they gained. */
#include "collect/waits/contention_enable.h"
#include "symbolize/subject_prof.h"

#include <stdarg.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/map.h"
#include "collect/ratewrite/enable.h"
#include "collect/waits/contention_read.h"
#include "profile/profile.h"

#define NS_PER_MS 1000000ull
#define NS_PER_S  1000000000ull

enum {
	NEXT_MIN_MS = 20, /* shortest pause between readings; it grows */
	NEXT_MAX_MS = 1000,
	COST_SHARE = 20, /* readings take at most this part of the time */
};

struct contention_enable {
	struct subject *s;
	struct collect_opts o;
	enum contention what;
	struct rtcontention_vars vars;
	double measured; /* cputicks per second of this machine */
	uint64_t wanted; /* value of the rate */
	struct guardian *g;
	struct enabled x;
	struct rtcontentions base, last;
	uint64_t base_ns, last_ns; /* CLOCK_MONOTONIC; last_ns 0: not read yet */
	int64_t base_unix_ns;
	int timer;
	uint64_t next_ms;
	bool over; /* the rate is no longer ours: nothing more is read */
	struct prof *prof;
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

/* Prints a step with -v. */
static void step(const struct contention_enable *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void step(const struct contention_enable *c, const char *fmt, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (c->o.verbose)
		say(&c->o, "%s: %s", c->x.kind, line);
}

/* ---- readings ---- */

/*
 * A rate that was in force before is not ours; so all that was recorded until then was recorded
 * with our rate.
 */
static int still_ours(struct contention_enable *c, bool *ours, struct err *e)
{
	uint64_t rate;
	int ret = contention_read_rate(c->s, &c->vars, &rate, e);

	if (ret)
		return ret;
	*ours = rate == c->x.began.value;
	c->over |= !*ours;
	return 0;
}

/* Makes one more reading. It counts only when the rate is still ours after it. */
static int read_more(struct contention_enable *c, struct err *e)
{
	CLEANUP(rtcontentions_fini) struct rtcontentions b = { 0 };
	struct rtcontentions older;
	bool ours = false;
	uint64_t at_ns;
	int ret;

	ret = contention_read_buckets(c->s, &c->vars, &b, e);
	at_ns = now_ns();
	if (!ret)
		ret = still_ours(c, &ours, e);
	if (ret || !ours)
		return ret;
	c->last_ns = at_ns;
	step(c, "read after %.3f s: %zu buckets", (double)(c->last_ns - c->base_ns) / 1e9, b.n);
	older = c->last;
	c->last = b;
	b = older;
	return 0;
}

/* ---- start ---- */

/* The rate in the unit in which the runtime keeps it, computed as in SetBlockProfileRate. */
static int rate_to_write(struct contention_enable *c, struct err *e)
{
	struct ticks t = ticks_of(c->s, c->measured);
	double v = (double)c->o.block_rate * t.per_second / 1e9;

	if (c->what == CONTENTION_MUTEX)
		v = (double)c->o.mutex_fraction;
	else if (c->o.block_rate == 1 || v < 1)
		v = 1;
	if (v > CLAIM_VALUE_MAX)
		return err_set(e, -EINVAL,
			       "--block-rate: at most %.0f ms can be written here, not %.0f ms",
			       CLAIM_VALUE_MAX / t.per_second * 1e3, (double)c->o.block_rate / 1e6);
	c->wanted = (uint64_t)v;
	return 0;
}

static int switch_on(struct contention_enable *c, struct err *e)
{
	struct guardian_job job = {
		.target = c->s->target,
		.name = c->x.name,
		.addr = c->vars.rate,
		.value = c->wanted,
		.what = c->what == CONTENTION_MUTEX ? CLAIM_MUTEX_FRACTION : CLAIM_BLOCK_RATE,
		.window_ns = c->o.window_ns,
	};
	int ret = guardian_start(&job, &c->g, &c->x.began, e);

	if (ret)
		return ret;
	if (c->x.began.how == GUARDIAN_FOUND)
		return 1;
	enable_tell_begun(&c->x, guardian_pid(c->g), &c->o);
	if (c->x.began.exposed)
		say_exposed(c->s, &c->o, "the guardian");
	return 0;
}

static int start_timer(struct contention_enable *c, struct err *e)
{
	struct itimerspec t = { 0 };

	if (c->timer < 0)
		c->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	t.it_value.tv_sec = (time_t)(c->next_ms / 1000);
	t.it_value.tv_nsec = (long)(c->next_ms % 1000 * NS_PER_MS);
	if (c->timer < 0 || timerfd_settime(c->timer, 0, &t, NULL))
		return err_sys(e, "a timer");
	return 0;
}

/*
 * While the rate was 0 nothing changed, so a reading from before the write is the state at the
 * write. Where others had switched it on, the window begins with a reading of its own.
 */
static int read_base(struct contention_enable *c, struct err *e)
{
	bool ours;
	int ret;

	c->base_ns = c->x.began.at_ns;
	if (c->x.began.how != GUARDIAN_WROTE || c->base.rate) {
		rtcontentions_fini(&c->base);
		ret = contention_read_buckets(c->s, &c->vars, &c->base, e);
		if (ret)
			return ret;
		c->base_ns = now_ns();
	}
	c->base_unix_ns = (int64_t)(clock_ns(CLOCK_REALTIME) - (now_ns() - c->base_ns));
	ret = still_ours(c, &ours, e);
	if (!ret && !ours)
		ret = err_set(e, -EBUSY,
			      "the program has set %s itself: read it with --source=read",
			      c->x.name);
	return ret;
}

static int start(struct contention_enable *c, struct err *e)
{
	int ret = ticks_measure(&c->measured, e);

	if (!ret)
		ret = contention_read_find(c->s, c->what, &c->vars, e);
	if (!ret)
		ret = enable_check_address(c->s, contention_rate_var(c->what), c->vars.rate, e);
	if (!ret)
		ret = rate_to_write(c, e);
	if (!ret)
		ret = contention_read_buckets(c->s, &c->vars, &c->base, e);
	if (ret)
		return ret;
	step(c, "%s is at 0x%llx, as the code that uses it says too, and is %llu", c->x.name,
	     (unsigned long long)c->vars.rate, (unsigned long long)c->base.rate);
	ret = switch_on(c, e);
	if (!ret)
		ret = read_base(c, e);
	if (ret)
		return ret;
	step(c, "at the start: %zu buckets", c->base.n);
	c->next_ms = NEXT_MIN_MS;
	return start_timer(c, e);
}

int contention_enable_start(struct subject *s, const struct collect_opts *o, enum contention what,
			    struct contention_enable **out, struct err *e)
{
	CLEANUP(contention_enable_freep) struct contention_enable *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return err_set(e, -ENOMEM, "no memory");
	c->s = s;
	c->o = *o;
	c->what = what;
	c->timer = -1;
	c->x.kind = contention_name(what);
	c->x.name = contention_rate_name(what);
	if (o->held)
		return err_set(e, -ENOTSUP,
			       "source enable: a program that has not run yet has still to set its "
			       "own rates: use --source=probe, or -p once it runs");
	ret = start(c, e);
	if (!ret)
		*out = TAKE(c);
	return ret < 0 ? err_wrap(e, ret, "source enable") : ret;
}

void contention_enable_free(struct contention_enable *c)
{
	if (!c)
		return;
	guardian_free(c->g);
	rtcontentions_fini(&c->base);
	rtcontentions_fini(&c->last);
	closep(&c->timer);
	prof_free(c->prof);
	free(c);
}

/* ---- the window ---- */

int contention_enable_fd(struct contention_enable *c)
{
	return c->timer;
}

void contention_enable_tick(struct contention_enable *c)
{
	if (guardian_check(c->g))
		c->over = true;
}

int contention_enable_poll(struct contention_enable *c, struct err *e)
{
	uint64_t expired, start_ns = now_ns(), cost_ms;
	int ret = 0;

	(void)!read(c->timer, &expired, sizeof(expired));
	contention_enable_tick(c);
	if (!c->over)
		ret = read_more(c, e);
	if (ret || c->over)
		return ret; /* the timer is not set again; the last reading stays */
	cost_ms = (now_ns() - start_ns) / NS_PER_MS;
	c->next_ms = c->next_ms * 2 < NEXT_MAX_MS ? c->next_ms * 2 : NEXT_MAX_MS;
	if (c->next_ms < cost_ms * COST_SHARE)
		c->next_ms = cost_ms * COST_SHARE;
	return start_timer(c, e);
}

/* ---- the result ---- */

struct places {
	struct map at; /* bucket address -> index in the first reading */
};

static void places_fini(struct places *p)
{
	map_fini(&p->at);
}

/* Leaves in the last reading only what it has more than the first. */
static int subtract(struct contention_enable *c, struct err *e)
{
	CLEANUP(places_fini) struct places p = { { 0 } };
	size_t n = 0;

	for (size_t i = 0; i < c->base.n; i++)
		if (!map_put(&p.at, c->base.at[i].addr, i))
			return err_set(e, -ENOMEM, "no memory for %zu buckets", c->base.n);
	for (size_t i = 0; i < c->last.n; i++) {
		struct rtcontention b = c->last.at[i];
		uint64_t at;

		if (map_get(&p.at, b.addr, &at)) {
			b.count -= c->base.at[at].count;
			b.cycles -= c->base.at[at].cycles;
		}
		/* Neither number can have shrunk, but in a torn record it may seem so. */
		if (b.count > 0 && b.cycles >= 0)
			c->last.at[n++] = b;
	}
	c->last.n = n;
	c->last.rate = c->x.began.value;
	return 0;
}

static int comments(struct contention_enable *c, const struct ticks *t, struct err *e)
{
	char rate[CONTENTION_RATE_TEXT];
	int ret = prof_comment(c->prof, e, "window: %.3f s",
			       (double)(c->last_ns - c->base_ns) / 1e9);

	contention_rate_text(c->what, c->last.rate, t, rate);
	if (!ret)
		ret = prof_comment(c->prof, e, "rate: %s", rate);
	if (!ret)
		ret = contention_comment_bias(&c->vars, c->last.rate, c->prof, e);
	if (!ret)
		ret = enable_comment(&c->x, c->prof, e);
	if (!ret)
		ret = ticks_comment(t, c->prof, e);
	if (!ret)
		ret = prof_comment(c->prof, e, "hits: %zu buckets grew", c->last.n);
	if (!ret)
		ret = prof_comment(c->prof, e,
				   "waits that began before the window, or did not end in it, are "
				   "not in here: Go counts none of them");
	if (!ret && c->what == CONTENTION_MUTEX)
		ret = prof_comment(
			c->prof, e,
			"a lock that was waited for when the window began is not in here "
			"until nobody has waited for it once, as in Go: --source=probe "
			"sees it");
	return ret;
}

static int make_profile(struct contention_enable *c, struct err *e)
{
	struct ticks t = ticks_of(c->s, c->measured);
	int ret = subtract(c, e);

	if (!ret)
		ret = subject_prof(c->s,
				   "enable (the runtime's own records, switched on for the window)",
				   &c->prof, e);
	if (!ret)
		ret = contention_add_types(c->prof, e);
	if (!ret)
		ret = comments(c, &t, e);
	if (!ret)
		ret = contention_add_samples(c->s, &c->vars, &c->last, &t, c->prof, e);
	if (!ret)
		prof_set_time(c->prof, c->base_unix_ns, (int64_t)(c->last_ns - c->base_ns));
	return ret;
}

int contention_enable_stop(struct contention_enable *c, struct prof **out, struct err *e)
{
	struct err why = { "" };
	int ret;

	if (!c->over && read_more(c, &why) && !c->last_ns)
		say(&c->o, "%s: %s", c->x.kind, why.msg);
	step(c, "asking process %d to restore %s", guardian_pid(c->g), c->x.name);
	enable_end(&c->x, c->g, &c->o);
	if (!c->last_ns)
		return err_set(e, -ESRCH,
			       "the window was over before anything could be read of it");
	ret = make_profile(c, e);
	if (ret)
		return ret;
	if (c->over)
		prof_loss(c->prof)->n[LOSS_WINDOW_CUT] = 1;
	*out = TAKE(c->prof);
	return 0;
}
