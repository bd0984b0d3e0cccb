/* user/engine/probing_say.c - what probing knows and tells: when, what was lost, the receipt, whether windows are needed. */
#include <time.h>

#include "base/clock.h"
#include "engine/probing_priv.h"
#include "profile/profile.h"

uint64_t probing_since(const struct probing *p)
{
	return p->set_ns;
}

bool probing_windowed(const struct probing *p)
{
	return p->nwindows || p->cut || p->crowded;
}

/* Windows stand for what is between them; where there was none after all, nothing stands for that time. */
#define NONE_SHARE 0.1 /* of all of the time: from there on that is a loss */

static uint64_t lost_ns(const struct probing *p)
{
	uint64_t since = p->windows_since, none = 0;

	if (p->end_ns && since && !p->member.full && p->nwindows == p->windows_before)
		none = p->end_ns - since;
	if ((double)none <= NONE_SHARE * (double)(p->end_ns - p->set_ns))
		none = 0;
	/* Some of its strata may have been counted when they passed. */
	return none > p->lost_ns - p->lost_before ? p->lost_before + none : p->lost_ns;
}

void probing_losses(const struct probing *p, struct loss *to)
{
	to->n[LOSS_BUDGET_CUT] |= p->cut;
	to->n[LOSS_CROWDED] |= p->crowded;
	/* A target's attachers share a process. */
	loss_at_least(to, LOSS_ATTACHER_KILLED, p->uprobes.deaths);
	to->n[LOSS_UNWATCHED] += lost_ns(p) / NS_PER_MS;
}

double probing_spent_ns(const struct probing *p)
{
	return p->member.spent;
}

double probing_hit_ns(const struct probing *p)
{
	return p->member.hit_ns;
}

void probing_say_excess(struct probing *p)
{
	p->cpu_ns = budget_cpu_ns(p->b);
	p->excess_why = budget_excess(p->b, &p->excess);
	if (p->excess_why)
		say(p->o, "%s: probes took %.2f%% of the target's CPU time, and %s is %g%%: %s",
		    p->u.what, 100 * p->excess, p->s ? "--budget" : "their part of --host-budget",
		    p->o->budget.ppm / 1e4, p->excess_why);
}

int probing_comment(const struct probing *p, struct prof *prof, struct err *e)
{
	/* Of a file, a target may have ended before the probes do. */
	double cpu = p->end_ns ? p->cpu_ns : budget_cpu_ns(p->b), cost = p->member.spent;
	double wall = (double)((p->end_ns ?: now_ns()) - p->set_ns);
	struct window_cost_estimate window = window_cost_now(&p->cost);
	int ret = 0;
	char stepped[80] = "", most[160] = "none", others[320], excess[256] = "",
	     how[256] = "all of the time observed";
	uint64_t missing = p->gap_ns + lost_ns(p);

	if (p->o->budget.ppm && !p->s)
		snprintf(most, sizeof(most),
			 "%g%% of the CPU time of all that run the file and are profiled, of the "
			 "%g%% that --host-budget allows for probes and clocks",
			 p->o->budget.ppm / 1e4, p->o->host.taken_ppm / 1e4);
	else if (p->o->budget.ppm)
		snprintf(most, sizeof(most), "%g%% of the target's CPU time%s",
			 p->o->budget.ppm / 1e4,
			 p->o->budget.ahead_ns ? " after a first second of theirs" : "");
	if (missing >= NS_PER_MS && wall > 0)
		snprintf(how, sizeof(how), "%.2f%% of the time observed",
			 100 * (double)p->observed_ns / wall);
	if (p->windows_since)
		snprintf(
			how, sizeof(how),
			"%llu windows of %s%.3g ms, at most %.3g s apart, %.2f%% of the time observed; putting probes in and out "
			"is %s to cost %.2g +- %.2g ms a window",
			(unsigned long long)p->nwindows, p->u.by_own ? "at most " : "",
			(double)(p->longest ? p->longest : p->u.parts.end_ns) / 1e6,
			(double)p->apart_ns / 1e9,
			wall > 0 ? 100 * (double)p->observed_ns / wall : 0,
			window.measured ? "measured on the target" : "taken",
			p->member.window_ns / 1e6, window.error / 1e6);
	if (p->gap_ns >= NS_PER_MS)
		ret = prof_comment(prof, e, "unobserved: %.0f ms in which probes were being put in",
				   (double)p->gap_ns / 1e6);
	if (ret)
		return ret;
	if (p->cut)
		snprintf(how, sizeof(how),
			 "the first %.3f s observed: this kernel cannot probe in windows",
			 (double)p->observed_ns / 1e9);
	if (p->member.stepped)
		snprintf(stepped, sizeof(stepped), " and %.0f ns more for %llu single-stepped ones",
			 p->member.stepped_ns, (unsigned long long)p->member.stepped);
	probing_tell_bystanders(p, others, sizeof(others));
	if (p->excess_why)
		snprintf(excess, sizeof(excess), "; all probes together took %.2f%%: %s",
			 100 * p->excess, p->excess_why);
	return prof_comment(
		prof, e,
		"budget: %s; took %.1f ms of %.1f ms (%.2f%%): %llu hits of %.0f ns each%s "
		"(%s), %s%s%s",
		most, cost / 1e6, cpu / 1e6, cpu > 0 ? 100 * cost / cpu : 0,
		(unsigned long long)p->member.hits, p->member.hit_ns, stepped,
		p->measured ? "measured" : "assumed", how, others, excess);
}

/* How long windows are used at least, before full observation is tried again. */
#define WINDOWS_MIN_NS NS_PER_S

bool probing_could_be_full(const struct probing *p, uint64_t now)
{
	double rate;

	if (p->ending || now - p->windows_since < WINDOWS_MIN_NS || p->recent_ns <= 0 ||
	    budget_in_debt(p->b))
		return false;
	rate = p->recent_cost / p->recent_ns;
	/* Windows that look for bursts say nothing of what is between. */
	if (p->by_count)
		rate = p->burstiness.mean * p->member.hit_ns;
	return budget_allows(p->b, &p->member, rate);
}
