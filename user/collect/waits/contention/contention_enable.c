/* user/collect/waits/contention/contention_enable.c - buckets before and after the window, and what they gained. */
#include "collect/waits/contention/contention_enable.h"
#include "base/clock.h"
#include "symbolize/subject_prof.h"

#include <time.h>

#include "base/map.h"
#include "collect/ratewrite/enable.h"
#include "collect/waits/contention/contention_read.h"
#include "profile/profile.h"

struct contention_enable {
	struct enable x; /* first */
	struct subject *s;
	enum contention what;
	struct rtcontention_vars vars;
	double measured; /* cputicks per second of this machine */
	uint64_t wanted; /* value of the rate */
	struct rtcontentions base, last;
	struct prof *prof;
};

/* ---- readings ---- */

static int read_rate(void *arg, uint64_t *rate, struct err *e)
{
	struct contention_enable *c = arg;

	return contention_read_rate(c->s, &c->vars, rate, e);
}

static int read_more(void *arg, struct err *e)
{
	CLEANUP(rtcontentions_fini) struct rtcontentions b = { 0 };
	struct contention_enable *c = arg;
	struct rtcontentions older;
	bool ours = false;
	uint64_t at_ns;
	int ret;

	ret = contention_read_buckets(c->s, &c->vars, &b, e);
	at_ns = now_ns();
	if (!ret)
		ret = enable_is_ours(&c->x, &ours, e);
	if (ret || !ours)
		return ret;
	c->x.last_ns = at_ns;
	enable_step(&c->x, "read after %.3f s: %zu buckets", enable_seconds(&c->x), b.n);
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
	double v = (double)c->x.o->block.rate_ns * t.per_second / 1e9;

	if (c->what == CONTENTION_MUTEX)
		v = (double)c->x.o->mutex.fraction;
	else if (c->x.o->block.rate_ns == 1 || v < 1)
		v = 1;
	if (v > CLAIM_VALUE_MAX)
		return err_set(e, -EINVAL,
			       "--block-rate: at most %.0f ms can be written here, not %.0f ms",
			       CLAIM_VALUE_MAX / t.per_second * 1e3,
			       (double)c->x.o->block.rate_ns / 1e6);
	c->wanted = (uint64_t)v;
	return 0;
}

/*
 * While the rate was 0 nothing changed, so a reading from before the write is the state at the
 * write. Where others had switched it on, the window begins with a reading of its own.
 */
static int read_base(struct contention_enable *c, struct err *e)
{
	uint64_t base_ns = c->x.began.at_ns;
	int ret;

	if (c->x.began.how != GUARDIAN_WROTE || c->base.rate) {
		rtcontentions_fini(&c->base);
		ret = contention_read_buckets(c->s, &c->vars, &c->base, e);
		if (ret)
			return ret;
		base_ns = now_ns();
	}
	return enable_from(&c->x, base_ns, e);
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
	enable_step(&c->x, "%s is at 0x%llx, as the code that uses it says too, and is %llu",
		    c->x.name, (unsigned long long)c->vars.rate, (unsigned long long)c->base.rate);
	ret = enable_on(&c->x, c->vars.rate, c->wanted,
			c->what == CONTENTION_MUTEX ? CLAIM_MUTEX_FRACTION : CLAIM_BLOCK_RATE, e);
	if (!ret)
		ret = read_base(c, e);
	if (ret)
		return ret;
	enable_step(&c->x, "at the start: %zu buckets", c->base.n);
	return 0;
}

/* Also restores the rate. */
static void enabled_free(void *at)
{
	struct contention_enable *c = at;

	if (!c)
		return;
	enable_fini(&c->x);
	rtcontentions_fini(&c->base);
	rtcontentions_fini(&c->last);
	prof_free(c->prof);
	free(c);
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
	int ret = prof_comment(c->prof, e, "window: %.3f s", enable_seconds(&c->x));

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
		enable_set_window(&c->x, c->prof);
	return ret;
}

/* Restores the rate, and waits until that is done. */
static int enabled_stop(void *at, struct prof **out, struct err *e)
{
	struct contention_enable *c = at;
	int ret = enable_end(&c->x, e);

	if (!ret)
		ret = make_profile(c, e);
	if (!ret)
		*out = TAKE(c->prof);
	return ret;
}

static const struct source enabled = {
	.fd = enable_fd,
	.poll = enable_poll,
	.tick = enable_tick,
	.stop = enabled_stop,
	.free = enabled_free,
};

static void enabled_freep(struct contention_enable **c)
{
	enabled_free(*c);
}

int contention_enable_start(struct subject *s, const struct collect_opts *o, enum contention what,
			    struct sourced *out, struct err *e)
{
	CLEANUP(enabled_freep) struct contention_enable *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return err_set(e, -ENOMEM, "no memory");
	c->s = s;
	c->what = what;
	c->x = (struct enable){ .s = s,
				.o = o,
				.kind = contention_name(what),
				.name = contention_rate_name(what),
				.rate = read_rate,
				.read = read_more,
				.arg = c };
	ret = enable_init(&c->x, e);
	if (!ret)
		ret = start(c, e);
	if (!ret)
		*out = (struct sourced){ &enabled, TAKE(c) };
	return ret < 0 ? err_wrap(e, ret, "source enable") : ret;
}
