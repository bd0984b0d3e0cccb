/* user/collect/waits/contention/contention_probe.c - makes a block or mutex profile of waits that were watched. */
#include "collect/waits/contention/contention_probe.h"

#include <time.h>

#include "base/clock.h"
#include "collect/waits/contention/sched_priv.h"
#include "collect/waits/engine/wait_prof.h"
#include "goprof_abi.h"
#include "profile/profile.h"

/* Of a mutex profile that no window saw anything of, this part of the time waited for mutexes is a loss. */
#define UNSEEN_SHARE 0.01

struct contention_probe {
	struct subject *s;
	const struct collect_opts *o; /* borrowed */
	enum contention kind;
	struct sched *
		sched; /* borrowed from the subject, or of many from their owner; NULL after leaving it */
	bool shared; /* one of many */
	struct wait_prof out;
	uint64_t start_ns, end_ns; /* monotonic */
	int64_t start_unix_ns;
};

static unsigned wait_kind(const struct contention_probe *c)
{
	return c->kind == CONTENTION_BLOCK ? GPB_WAIT_BLOCK : GPB_WAIT_MUTEX;
}

static int add_stack(void *arg, const struct gpb_stack *st, const struct wait_estimate *est,
		     struct err *e)
{
	struct contention_probe *c = arg;
	struct prof_label labels[GPB_MAX_LABELS + 1];
	size_t n = sched_labels(c->sched, st, labels, c->out.prof);

	return wait_prof_add(&c->out, st, est, labels, n, e);
}

static int begin_prof(struct contention_probe *c, struct err *e)
{
	const char *how = c->kind == CONTENTION_BLOCK ?
				  "probe (uprobes on parking and waking)" :
				  "probe (uprobes on the queues of semaphores)";
	int ret = wait_prof_begin(&c->out, c->s, how, HIDE_WAITING, e);

	return ret ? ret : prof_set_period(c->out.prof, "contentions", "count", 1, e);
}

static int probe_new(struct subject *s, const struct collect_opts *o, enum contention kind,
		     struct contention_probe **out, struct err *e)
{
	CLEANUP(contention_probe_freep) struct contention_probe *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return err_set(e, -ENOMEM, "no memory");
	c->s = s;
	c->o = o;
	c->kind = kind;
	ret = begin_prof(c, e);
	if (!ret)
		*out = TAKE(c);
	return ret;
}

static int probed_fd(void *at)
{
	struct contention_probe *c = at;

	return sched_fd(c->sched, wait_kind(c));
}

static int probed_poll(void *at, struct err *e)
{
	struct contention_probe *c = at;

	return sched_poll(c->sched, e);
}

static int probed_begin(void *at, struct err *e)
{
	struct contention_probe *c = at;

	return sched_begin(c->sched, e);
}

static int probed_tick(void *at, struct err *e)
{
	struct contention_probe *c = at;

	return sched_tick(c->sched, e);
}

/* ---- the end ---- */

static int comment_block(struct contention_probe *c, const struct sched_result *r, struct err *e)
{
	const struct fine_rate rate = { c->o, "block", c->o->block.fine };
	int ret = fine_comment(&rate, c->out.prof, e,
			       "waits of %llu ns and longer, shorter ones in proportion",
			       (unsigned long long)r->rate);

	if (!ret)
		ret = prof_comment(c->out.prof, e, "hits: %llu waits ended, %llu sampled",
				   (unsigned long long)r->ended, (unsigned long long)r->sampled);
	if (!ret && r->windowed)
		ret = wait_prof_looks(&c->out, &r->looks, r->no_looks, NULL, r->cut, e);
	if (!ret && r->waiting)
		ret = prof_comment(c->out.prof, e,
				   "waiting: %llu waits had not ended when the window did, and are "
				   "not counted",
				   (unsigned long long)r->waiting);
	if (!ret && r->through > 0)
		ret = prof_comment(c->out.prof, e,
				   "through: %lld goroutines waited already when the window began "
				   "and still did when it ended: --goroutine shows where",
				   (long long)r->through);
	if (!ret && r->through < 0)
		ret = prof_comment(c->out.prof, e,
				   "through: how many waited all through the window is not known");
	if (!ret && r->begun_before)
		ret = prof_comment(c->out.prof, e,
				   "early: %llu waits ended that had begun before the window, and "
				   "are not counted",
				   (unsigned long long)r->begun_before);
	if (r->waiting || r->begun_before)
		say(c->o,
		    "block: not counted: %llu waits that had not ended, %llu that began before",
		    (unsigned long long)r->waiting, (unsigned long long)r->begun_before);
	return ret;
}

static int comment_mutex(struct contention_probe *c, const struct sched_result *r, struct err *e)
{
	const struct fine_rate rate = { c->o, "mutex", c->o->mutex.fine };
	int ret = fine_comment(&rate, c->out.prof, e, "one contention in %llu",
			       (unsigned long long)r->rate);

	/* The type is as Go writes it, so that profiles can be merged with Go's own. */
	if (!ret)
		ret = prof_set_period(c->out.prof, "contentions", "count", (int64_t)r->rate, e);
	if (!ret)
		ret = prof_comment(c->out.prof, e, "hits: %llu contentions, %llu sampled",
				   (unsigned long long)r->ended, (unsigned long long)r->sampled);
	if (!ret && r->windowed && r->part_known > 0)
		ret = prof_comment(c->out.prof, e,
				   "part: about %.0f contentions were longer than their windows, "
				   "and count with the part that a window saw",
				   r->part_known);
	if (!ret && r->windowed && r->unseen_ns > 0)
		ret = prof_comment(c->out.prof, e,
				   "unseen: %.3f s were waited for mutexes, and no window saw who "
				   "made them wait",
				   r->unseen_ns / 1e9);
	if (!ret && gobin_info(c->s->bin)->minor >= 22)
		ret = prof_comment(c->out.prof, e,
				   "the runtime's own locks are not in here: they are not probed");
	return ret;
}

static int64_t window_of(const struct contention_probe *c)
{
	return (int64_t)(c->end_ns - c->start_ns);
}

static int comments(struct contention_probe *c, const struct sched_result *r, struct err *e)
{
	double window = (double)window_of(c) / 1e9;
	int ret = prof_comment(c->out.prof, e, "window: %.3f s", window);

	if (!ret)
		ret = c->kind == CONTENTION_BLOCK ? comment_block(c, r, e) : comment_mutex(c, r, e);
	if (!ret)
		ret = prof_comment(c->out.prof, e, "probes: %zu (%s)", r->nsites,
				   r->multi ? "multi links" : "perf uprobes");
	if (!ret)
		ret = sched_comment(c->sched, c->out.prof, e);
	if (!ret && r->windowed)
		ret = wait_prof_unmet(&c->out, r->unmet, r->maybe_yields, r->yields, e);
	if (!ret && r->windowed)
		ret = wait_prof_errors(&c->out, &r->whole, e);
	return ret;
}

static void set_window(struct contention_probe *c, const struct sched_result *r)
{
	c->start_unix_ns += (int64_t)(r->start_ns - c->start_ns);
	c->start_ns = r->start_ns;
	c->end_ns = r->end_ns;
	prof_set_time(c->out.prof, c->start_unix_ns, window_of(c));
}

void contention_probe_unseen(enum contention kind, int64_t ns, struct sched_result *r)
{
	if (!r->windowed)
		return;
	r->loss.n[LOSS_RUNS_UNMET] += (uint64_t)r->unmet;
	if (kind == CONTENTION_MUTEX && r->unseen_ns > UNSEEN_SHARE * (double)ns)
		r->loss.n[LOSS_LOCKS_UNSEEN] += (uint64_t)(r->unseen_ns / 1e6) + 1;
}

/* Fills the profile with what was counted. */
static int finish(struct contention_probe *c, struct err *e)
{
	struct sched_result r = {};
	int ret = sched_drain(c->sched, wait_kind(c), &r, e);

	if (!ret)
		set_window(c, &r);
	if (!ret)
		ret = comments(c, &r, e);
	if (ret)
		return ret;
	contention_probe_unseen(c->kind, window_of(c), &r);
	loss_merge(prof_loss(c->out.prof), &r.loss);
	return 0;
}

static int probed_stop(void *at, struct prof **out, struct err *e)
{
	struct contention_probe *c = at;
	int ret = finish(c, e);

	if (ret)
		return ret;
	sched_leave(TAKE(c->sched), wait_kind(c));
	*out = wait_prof_take(&c->out);
	return 0;
}

int contention_probe_finish(struct sched *sched, enum contention kind, int64_t start_unix_ns,
			    struct contention_probe **out, struct err *e)
{
	CLEANUP(contention_probe_freep) struct contention_probe *c = NULL;
	int ret = probe_new(sched->s, sched->o, kind, &c, e);

	if (ret)
		return ret;
	c->shared = true;
	c->sched = sched;
	c->start_unix_ns = start_unix_ns;
	c->start_ns = sched->start_ns[wait_kind(c)];
	sched->users[wait_kind(c)] = (struct sched_user){ wait_kind(c), add_stack, c };
	ret = finish(c, e);
	sched->users[wait_kind(c)] = (struct sched_user){};
	if (!ret)
		*out = TAKE(c);
	return ret;
}

struct prof *contention_probe_prof(struct contention_probe *c)
{
	return c->out.prof;
}

struct prof *contention_probe_take(struct contention_probe *c)
{
	return wait_prof_take(&c->out);
}

void contention_probe_free(struct contention_probe *c)
{
	if (!c)
		return;
	if (!c->shared)
		sched_leave(c->sched, wait_kind(c));
	wait_prof_fini(&c->out);
	free(c);
}

static void probed_free(void *at)
{
	contention_probe_free(at);
}

static const struct source probed = {
	.probes = true,
	.fd = probed_fd,
	.poll = probed_poll,
	.tick = probed_tick,
	.begin = probed_begin,
	.stop = probed_stop,
	.free = probed_free,
};

int contention_probe_start(struct subject *s, const struct collect_opts *o, enum contention kind,
			   struct sourced *out, struct err *e)
{
	CLEANUP(contention_probe_freep) struct contention_probe *c = NULL;
	struct sched_user user = { .add = add_stack };
	int ret = probe_new(s, o, kind, &c, e);

	if (ret)
		return ret;
	user.kind = wait_kind(c);
	user.arg = c;
	ret = sched_join(s, o, &user, &c->sched, e);
	if (ret)
		return ret;
	c->start_unix_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	c->start_ns = now_ns();
	if (kind == CONTENTION_BLOCK)
		say(o,
		    "block: probing waits, all of %llu ns and longer, shorter ones in proportion%s",
		    (unsigned long long)o->block.rate_ns, fine_words(o, o->block.fine));
	else
		say(o, "mutex: probing contentions, one in %llu%s",
		    (unsigned long long)o->mutex.fraction, fine_words(o, o->mutex.fine));
	*out = (struct sourced){ &probed, TAKE(c) };
	return 0;
}
