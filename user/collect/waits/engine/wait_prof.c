/* user/collect/waits/engine/wait_prof.c - samples, standard errors and comments of probed waits. */
#include "collect/waits/engine/wait_prof.h"

#include "symbolize/subject_prof.h"

int wait_prof_begin(struct wait_prof *p, struct subject *s, const char *how, enum hide hide,
		    struct err *e)
{
	int ret = subject_prof(s, how, &p->prof, e);

	if (!ret)
		ret = prof_add_type(p->prof, "contentions", "count", e);
	if (!ret)
		ret = prof_add_type(p->prof, "delay", "nanoseconds", e);
	if (!ret)
		stack_physical_init(&p->ph, s, p->prof, hide);
	return ret;
}

void wait_prof_fini(struct wait_prof *p)
{
	site_errors_fini(&p->counts);
	site_errors_fini(&p->delays);
	stack_physical_fini(&p->ph);
	prof_free(p->prof);
}

/* From 1 / GPB_COUNT_ONE. */
static double variance_of_count(double v)
{
	const double one = GPB_COUNT_ONE;

	return v < 0 ? -1 : v / one / one;
}

int wait_prof_add(struct wait_prof *p, const struct gpb_stack *st, const struct wait_estimate *est,
		  const struct prof_label *labels, size_t nlabels, struct err *e)
{
	const double one = GPB_COUNT_ONE;
	int64_t values[] = { est->count, est->delay };
	int ret = stack_physical_add(&p->ph, st, values, labels, nlabels, e);

	if (!ret)
		ret = site_errors_add(&p->counts, p->prof, (double)est->count / one,
				      variance_of_count(est->count_error), e);
	if (!ret)
		ret = site_errors_add(&p->delays, p->prof, (double)est->delay, est->delay_error, e);
	return ret;
}

/* How delays were learned. */
static int comment_looks(const struct looks_result *r, uint64_t begin_ns, uint64_t end_ns,
			 struct prof *p, struct err *e)
{
	int ret = prof_comment(p, e,
			       "delays: by %llu looks from outside, every %.1f ms, at who waits; "
			       "how many waits there were: by windows, longer ones by looks",
			       (unsigned long long)r->looks, r->stratum_ns / 1e6);

	if (!ret && 3 * r->stratum_ns > (double)end_ns)
		ret = prof_comment(
			p, e,
			"so many goroutines take long to look at: of waits of %.0f to "
			"%.0f ms not all are counted; and where many goroutines wait at once, for less, "
			"once in a while, nobody may have met them: such places may be missing",
			(double)(end_ns - begin_ns) / 1e6, 4 * r->stratum_ns / 1e6);
	if (!ret && r->begun_before)
		ret = prof_comment(p, e,
				   "early: %llu waits ended that had begun before the window, and "
				   "are not counted",
				   (unsigned long long)r->begun_before);
	if (!ret && r->waiting)
		ret = prof_comment(p, e,
				   "waiting: %llu waits had not ended when the window did, and are "
				   "not counted",
				   (unsigned long long)r->waiting);
	if (!ret && r->lost_ns > 0)
		ret = prof_comment(p, e,
				   "lost: waits of %.3f ms in all whose stacks could not be read",
				   r->lost_ns / 1e6);
	return ret;
}

int wait_prof_looks(struct wait_prof *p, const struct looks_result *r, const char *no_looks,
		    const char *calls, uint64_t cut, struct err *e)
{
	int ret;

	prof_loss(p->prof)->n[LOSS_WAITS_LONG] |= no_looks != NULL;
	if (no_looks)
		return prof_comment(p->prof, e,
				    "delays are as the probes saw them, who slow the target down; "
				    "waits that outlasted their window are not counted: %s",
				    no_looks);
	ret = comment_looks(r, WAIT_BEGIN_NS, WAIT_END_NS, p->prof, e);
	if (!ret && calls)
		ret = prof_comment(p->prof, e, "%s", calls);
	if (!ret && cut)
		ret = prof_comment(p->prof, e,
				   "cut: %llu waits were under way when what was observed in full "
				   "ended, and are not counted up to then",
				   (unsigned long long)cut);
	return ret;
}

int wait_prof_unmet(struct wait_prof *p, double unmet, bool maybe, double yields, struct err *e)
{
	int ret = 0;

	if (unmet >= 1)
		ret = prof_comment(p->prof, e, DILATION_UNMET, (unsigned long long)unmet,
				   maybe ? DILATION_MAYBE : "");
	if (!ret && yields >= 1)
		ret = prof_comment(p->prof, e, DILATION_YIELDS, (unsigned long long)yields);
	return ret;
}

int wait_prof_errors(struct wait_prof *p, const struct wait_error *all, struct err *e)
{
	int ret;

	site_errors_all(&p->counts, variance_of_count(all->count));
	site_errors_all(&p->delays, all->delay);
	ret = site_errors_comment(&p->counts, p->prof, "contentions", e);
	return ret ? ret : site_errors_comment(&p->delays, p->prof, "delay", e);
}

/*
 * Counts as Go shows them: whole numbers, and never 0 for what was seen. Source: blockprofile
 * records.
 */
static void whole_counts(void *arg, int64_t *values)
{
	(void)arg;
	values[0] /= GPB_COUNT_ONE;
	if (!values[0])
		values[0] = 1;
}

struct prof *wait_prof_take(struct wait_prof *p)
{
	prof_each_sample(p->prof, whole_counts, NULL);
	return TAKE(p->prof);
}
