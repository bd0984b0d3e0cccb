/* user/collect/waits/contention_probe.c - makes a block or mutex profile of waits that were watched. */
#include "collect/waits/contention_probe.h"
#include "symbolize/subject_prof.h"

#include <time.h>

#include "collect/site_errors.h"
#include "collect/waits/sched.h"
#include "goprof_abi.h"
#include "profile/profile.h"
#include "symbolize/physical.h"

/* Of a mutex profile that no window saw anything of, this part of the time waited for mutexes is a loss. */
#define UNSEEN_SHARE 0.01

struct contention_probe {
	struct subject *s;
	struct collect_opts o;
	enum contention kind;
	struct sched *sched; /* borrowed from the subject; NULL after leaving it */
	struct prof *prof;
	struct physical ph;
	struct site_errors counts, delays; /* standard errors of estimates */
	struct timespec start, end;	   /* monotonic */
	int64_t start_unix_ns;
};

static unsigned wait_kind(const struct contention_probe *c)
{
	return c->kind == CONTENTION_BLOCK ? GPB_WAIT_BLOCK : GPB_WAIT_MUTEX;
}

/* Counts of one stack are added up before they are rounded, because Go rounds what it shows. */
static int add_stack(void *arg, const struct gpb_stack *st, const struct wait_estimate *est,
		     struct err *e)
{
	const double one = GPB_COUNT_ONE;
	struct contention_probe *c = arg;
	struct prof_label labels[GPB_MAX_LABELS + 1];
	int64_t values[] = { est->count, est->delay };
	size_t n = sched_labels(c->sched, st, labels, c->prof);
	int ret = physical_add(&c->ph, st, values, labels, n, e);

	if (!ret)
		ret = site_errors_add(&c->counts, c->prof, (double)est->count / one,
				      est->count_error < 0 ? -1 : est->count_error / one / one, e);
	if (!ret)
		ret = site_errors_add(&c->delays, c->prof, (double)est->delay, est->delay_error, e);
	return ret;
}

static int begin_prof(struct contention_probe *c, struct err *e)
{
	int ret = subject_prof(c->s,
			       c->kind == CONTENTION_BLOCK ?
				       "probe (uprobes on parking and waking)" :
				       "probe (uprobes on the queues of semaphores)",
			       &c->prof, e);

	if (!ret)
		ret = prof_add_type(c->prof, "contentions", "count", e);
	if (!ret)
		ret = prof_add_type(c->prof, "delay", "nanoseconds", e);
	if (!ret)
		ret = prof_set_period(c->prof, "contentions", "count", 1, e);
	if (!ret)
		physical_init(&c->ph, c->s, c->prof, HIDE_WAITING);
	return ret;
}

int contention_probe_start(struct subject *s, const struct collect_opts *o, enum contention kind,
			   struct contention_probe **out, struct err *e)
{
	CLEANUP(contention_probe_freep) struct contention_probe *c = calloc(1, sizeof(*c));
	struct sched_user user = { .add = add_stack };
	struct timespec unix_time;
	int ret;

	if (!c)
		return err_set(e, -ENOMEM, "no memory");
	c->s = s;
	c->o = *o;
	c->kind = kind;
	ret = begin_prof(c, e);
	if (ret)
		return ret;
	user.kind = wait_kind(c);
	user.arg = c;
	ret = sched_join(s, o, &user, &c->sched, e);
	if (ret)
		return ret;
	clock_gettime(CLOCK_REALTIME, &unix_time);
	c->start_unix_ns = unix_time.tv_sec * 1000000000ll + unix_time.tv_nsec;
	clock_gettime(CLOCK_MONOTONIC, &c->start);
	if (kind == CONTENTION_BLOCK)
		say(o,
		    "block: probing waits, all of %llu ns and longer, shorter ones in proportion%s",
		    (unsigned long long)o->block_rate, fine_words(o, o->fine_block));
	else
		say(o, "mutex: probing contentions, one in %llu%s",
		    (unsigned long long)o->mutex_fraction, fine_words(o, o->fine_mutex));
	*out = TAKE(c);
	return 0;
}

int contention_probe_fd(struct contention_probe *c)
{
	return sched_fd(c->sched, wait_kind(c));
}

int contention_probe_poll(struct contention_probe *c, struct err *e)
{
	return sched_poll(c->sched, e);
}

int contention_probe_begin(struct contention_probe *c, struct err *e)
{
	return sched_begin(c->sched, e);
}

int contention_probe_tick(struct contention_probe *c, struct err *e)
{
	return sched_tick(c->sched, e);
}

/* ---- the end ---- */

/* How long waits lasted while there were windows. */
static int comment_looks(struct contention_probe *c, const struct sched_result *r, struct err *e)
{
	const struct onlook_result *k = &r->looks;
	int ret;

	if (r->no_looks)
		return prof_comment(c->prof, e,
				    "delays are as the probes saw them, who slow the target down; "
				    "waits that outlasted their window are not counted: %s",
				    r->no_looks);
	ret = onlook_comment(k, WAIT_BEGIN_NS, WAIT_END_NS, c->prof, e);
	if (!ret && r->cut)
		ret = prof_comment(c->prof, e,
				   "cut: %llu waits were under way when what was observed in full "
				   "ended, and are not counted up to then",
				   (unsigned long long)r->cut);
	return ret;
}

static int comment_errors(struct contention_probe *c, const struct sched_result *r, struct err *e)
{
	const double one = GPB_COUNT_ONE;
	int ret;

	site_errors_all(&c->counts, r->whole.count < 0 ? -1 : r->whole.count / one / one);
	site_errors_all(&c->delays, r->whole.delay);
	ret = site_errors_comment(&c->counts, c->prof, "contentions", e);

	return ret ? ret : site_errors_comment(&c->delays, c->prof, "delay", e);
}

static int comment_block(struct contention_probe *c, const struct sched_result *r, struct err *e)
{
	const struct fine_rate rate = { &c->o, "block", c->o.fine_block };
	int ret = fine_comment(&rate, c->prof, e,
			       "waits of %llu ns and longer, shorter ones in proportion",
			       (unsigned long long)r->rate);

	if (!ret)
		ret = prof_comment(c->prof, e, "hits: %llu waits ended, %llu sampled",
				   (unsigned long long)r->ended, (unsigned long long)r->sampled);
	if (!ret && r->windowed)
		ret = comment_looks(c, r, e);
	if (!ret && r->waiting)
		ret = prof_comment(c->prof, e,
				   "waiting: %llu waits had not ended when the window did, and are "
				   "not counted",
				   (unsigned long long)r->waiting);
	if (!ret && r->through > 0)
		ret = prof_comment(c->prof, e,
				   "through: %lld goroutines waited already when the window began "
				   "and still did when it ended: --goroutine shows where",
				   (long long)r->through);
	if (!ret && r->through < 0)
		ret = prof_comment(c->prof, e,
				   "through: how many waited all through the window is not known");
	if (!ret && r->early)
		ret = prof_comment(c->prof, e,
				   "early: %llu waits ended that had begun before the window, and "
				   "are not counted",
				   (unsigned long long)r->early);
	if (r->waiting || r->early)
		say(&c->o,
		    "block: not counted: %llu waits that had not ended, %llu that began before",
		    (unsigned long long)r->waiting, (unsigned long long)r->early);
	return ret;
}

static int comment_mutex(struct contention_probe *c, const struct sched_result *r, struct err *e)
{
	const struct fine_rate rate = { &c->o, "mutex", c->o.fine_mutex };
	int ret = fine_comment(&rate, c->prof, e, "one contention in %llu",
			       (unsigned long long)r->rate);

	/* The type is as Go writes it, so that profiles can be merged with Go's own. */
	if (!ret)
		ret = prof_set_period(c->prof, "contentions", "count", (int64_t)r->rate, e);
	if (!ret)
		ret = prof_comment(c->prof, e, "hits: %llu contentions, %llu sampled",
				   (unsigned long long)r->ended, (unsigned long long)r->sampled);
	if (!ret && r->windowed && r->outlasted > 0)
		ret = prof_comment(c->prof, e,
				   "waiting: about %.0f contentions outlasted their windows, and "
				   "are not counted",
				   r->outlasted);
	if (!ret && r->windowed && r->unseen_ns > 0)
		ret = prof_comment(c->prof, e,
				   "unseen: %.3f s were waited for mutexes, and no window saw who "
				   "made them wait",
				   r->unseen_ns / 1e9);
	if (!ret && gobin_info(c->s->bin)->minor >= 22)
		ret = prof_comment(c->prof, e,
				   "the runtime's own locks are not in here: they are not probed");
	return ret;
}

static int64_t ns_between(const struct timespec *a, const struct timespec *b)
{
	return (b->tv_sec - a->tv_sec) * 1000000000ll + b->tv_nsec - a->tv_nsec;
}

static int comments(struct contention_probe *c, const struct sched_result *r, struct err *e)
{
	double window = (double)ns_between(&c->start, &c->end) / 1e9;
	int ret = prof_comment(c->prof, e, "window: %.3f s", window);

	if (!ret)
		ret = c->kind == CONTENTION_BLOCK ? comment_block(c, r, e) : comment_mutex(c, r, e);
	if (!ret)
		ret = prof_comment(c->prof, e, "probes: %zu (%s)", r->nsites,
				   r->multi ? "multi links" : "perf uprobes");
	if (!ret)
		ret = sched_comment(c->sched, c->prof, e);
	if (!ret && r->windowed && r->unmet > 0)
		ret = prof_comment(c->prof, e, SLOWNESS_UNMET, (unsigned long long)r->unmet);
	if (!ret && r->windowed)
		ret = comment_errors(c, r, e);
	return ret;
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

static void set_window(struct contention_probe *c, const struct sched_result *r)
{
	c->start_unix_ns += ns_between(&c->start, &r->start);
	c->start = r->start;
	c->end = r->end;
	prof_set_time(c->prof, c->start_unix_ns, ns_between(&c->start, &c->end));
}

void contention_probe_unseen(enum contention kind, int64_t ns, struct sched_result *r)
{
	if (!r->windowed)
		return;
	r->loss.n[LOSS_RUNS_UNMET] += (uint64_t)r->unmet;
	if (kind == CONTENTION_MUTEX && r->unseen_ns > UNSEEN_SHARE * (double)ns)
		r->loss.n[LOSS_LOCKS_UNSEEN] += (uint64_t)(r->unseen_ns / 1e6) + 1;
}

int contention_probe_stop(struct contention_probe *c, struct prof **out, struct err *e)
{
	struct sched_result r = {};
	int ret;

	ret = sched_drain(c->sched, wait_kind(c), &r, e);
	if (!ret)
		set_window(c, &r);
	if (!ret)
		ret = comments(c, &r, e);
	if (ret)
		return ret;
	sched_leave(TAKE(c->sched), wait_kind(c));
	prof_each_sample(c->prof, whole_counts, NULL);
	contention_probe_unseen(c->kind, ns_between(&c->start, &c->end), &r);
	loss_merge(prof_loss(c->prof), &r.loss);
	*out = TAKE(c->prof);
	return 0;
}

void contention_probe_free(struct contention_probe *c)
{
	if (!c)
		return;
	sched_leave(c->sched, wait_kind(c));
	site_errors_fini(&c->counts);
	site_errors_fini(&c->delays);
	physical_fini(&c->ph);
	prof_free(c->prof);
	free(c);
}
