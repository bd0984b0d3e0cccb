/*
 * user/collect/ratewrite/enable.c - a rate that is switched on for the time of a window: its checks and its
 * messages.
 */
#include "collect/ratewrite/enable.h"

#include "base/cancel.h"
#include "profile/profile.h"

static double seconds(uint64_t from_ns, uint64_t to_ns)
{
	return to_ns > from_ns ? (double)(to_ns - from_ns) / 1e9 : 0;
}

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

void enable_tell_begun(const struct enabled *x, pid_t guardian, const struct collect_opts *o)
{
	long long value = (long long)x->began.value;

	if (x->began.how == GUARDIAN_SHARES)
		say(o,
		    "%s: source enable: %s is on at %lld, claimed by a lock on the target (another "
		    "goprof-bpf, or whoever imitates one): shared",
		    x->kind, x->name, value);
	else
		say(o, "%s: source enable: %s was 0, is %lld until this ends; process %d guards it",
		    x->kind, x->name, value, guardian);
}

/* Reports what a reader of the numbers must know, on stderr as well. */
static void tell_end(const struct enabled *x, const struct collect_opts *o)
{
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

void enable_end(struct enabled *x, struct guardian *g, const struct collect_opts *o)
{
	struct err why = { "" };

	x->ended.how = -1;
	if (guardian_end(g, &x->ended, &why))
		say(o, "%s: %s", x->kind, why.msg);
	tell_end(x, o);
}

int enable_comment(const struct enabled *x, struct prof *p, struct err *e)
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
