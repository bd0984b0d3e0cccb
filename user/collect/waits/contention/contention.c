/*
 * user/collect/waits/contention/contention.c - block and mutex profiles: chooses the source, and reads.
 *
 * The runtime records contention when the program has asked for it (SetBlockProfileRate,
 * SetMutexProfileFraction): then its buckets are read. Otherwise its scheduler is probed or, when
 * that was asked for, the runtime is made to record for the time of the window.
 *
 * Unlike the heap's, these buckets only add up, and hold the values that are to be shown: what
 * was recorded under another rate than the present one stays right (but see
 * contention_scales_at_read).
 */
#include "collect/waits/contention/contention.h"
#include "symbolize/subject_prof.h"

#include "collect/collect.h"
#include "collect/ratewrite/checkpoint.h"
#include "collect/ratewrite/enable.h"
#include "collect/source.h"
#include "collect/waits/contention/contention_enable.h"
#include "collect/waits/contention/contention_probe.h"
#include "collect/waits/contention/contention_read.h"
#include "collect/waits/contention/sched.h"
#include "profile/profile.h"

/* The source read. */
struct contention_state {
	struct subject *s;
	enum contention what;
	struct rtcontention_vars vars;
	double measured; /* cputicks per second of this machine */
	uint64_t rate;	 /* when the window began; 0: it may still be set */
	struct checkpoint checkpoint;
	bool whose; /* labels or goid were asked for */
};

static void reading_free(void *at)
{
	struct contention_state *c = at;

	if (!c)
		return;
	checkpoint_fini(&c->checkpoint);
	free(c);
}

static void state_freep(struct contention_state **c)
{
	reading_free(*c);
}

/* Makes one reading, as a profile. */
static int read_now(void *arg, struct prof **out, struct err *e)
{
	struct contention_state *c = arg;
	CLEANUP(prof_freep) struct prof *p = NULL;
	int ret;

	ret = subject_prof(c->s, "read (the runtime's own buckets)", &p, e);
	if (!ret)
		ret = contention_read_profile(c->s, &c->vars, c->measured, p, e);
	if (!ret && c->whose)
		ret = prof_comment(p, e,
				   "labels: the runtime's own records have none, and no goid");
	if (ret)
		return ret;
	*out = TAKE(p);
	return 0;
}

/* ---- which source ---- */

static unsigned claim_of(enum contention what)
{
	return what == CONTENTION_MUTEX ? CLAIM_MUTEX_FRACTION : CLAIM_BLOCK_RATE;
}

/* Was something recorded before the rate went to 0, and is it known what that is worth? */
static bool has_older(struct contention_state *c)
{
	uint64_t head = 0;

	return !contention_scales_at_read(&c->vars) &&
	       !mem_u64(c->s->target->mem, c->vars.buckets, &head, NULL) && head;
}

/* Says why it cannot be read, or 0. */
static int may_read(struct contention_state *c, bool held, enum source_wanted source, struct err *e)
{
	const char *name = contention_rate_name(c->what);
	int ret = contention_read_find(c->s, c->what, &c->vars, e);

	if (!ret && held) /* the program decides that when it runs */
		return source == SOURCE_READ ?
			       0 :
			       err_set(e, -ENOTSUP,
				       "whether the command will record it is not known yet");
	if (!ret)
		ret = contention_read_rate(c->s, &c->vars, &c->rate, e);
	if (ret)
		return ret;
	/* Then the buckets contain that window, and not the program's life. */
	if (c->rate && claims_any(c->s->target, claim_of(c->what)))
		return err_set(e, -EBUSY,
			       "a lock on the target says that another goprof-bpf has it record "
			       "now");
	if (!c->rate && !(source == SOURCE_READ && has_older(c)))
		return err_set(e, -ENOTSUP, "the target does not record it (%s is 0)", name);
	return 0;
}

int contention_records(struct subject *s, enum contention what, struct err *e)
{
	struct contention_state c = { .s = s, .what = what };

	return may_read(&c, false, SOURCE_AUTO, e);
}

/*
 * Returns 1 to read, 0 to probe, or an error. With SOURCE_READ every obstacle is an error, with
 * SOURCE_AUTO it is a reason to probe.
 */
static int choose(struct contention_state *c, const struct collect_opts *o,
		  enum source_wanted source, struct err *e)
{
	const char *kind = contention_name(c->what);
	struct err why = {};
	int ret;

	if (source == SOURCE_PROBE) {
		say(o, "%s: source probe, as asked for", kind);
		return 0;
	}
	ret = may_read(c, o->held, source, &why);
	if (!ret) {
		say(o, "%s: source read: %s", kind,
		    o->held ? "what the command records when it asks its runtime to" :
		    c->rate ? "the target records it itself" :
			      "what the target has recorded; it does not any more");
		return 1;
	}
	if (source == SOURCE_READ)
		return err_set(e, ret, "%s; --source=enable or probe works without", why.msg);
	say(o, "%s: source probe: %s", kind, why.msg);
	return 0;
}

/* ---- the source read ---- */

static int reading_fd(void *at)
{
	struct contention_state *c = at;

	return c->checkpoint.timer;
}

static int reading_poll(void *at, struct err *e)
{
	struct contention_state *c = at;

	return checkpoint_again(&c->checkpoint, e);
}

static int hand_over_before_change(struct contention_state *c, uint64_t now, struct prof **out,
				   struct err *e)
{
	struct prof *p = c->checkpoint.prof;
	int ret = prof_comment(p, e,
			       "state: as of the start of the window; since then %s went from "
			       "%llu to %llu",
			       contention_rate_name(c->what), (unsigned long long)c->rate,
			       (unsigned long long)now);

	if (ret)
		return ret;
	prof_loss(p)->n[LOSS_WINDOW_CUT] = 1;
	*out = TAKE(c->checkpoint.prof);
	return 0;
}

/* What was recorded before the change stays right, but the reader may want to know about it. */
static int comment_change(struct contention_state *c, uint64_t now, struct prof *p, struct err *e)
{
	if (now == c->rate || !c->rate)
		return 0;
	return prof_comment(p, e, "rate: %s went from %llu to %llu meanwhile",
			    contention_rate_name(c->what), (unsigned long long)c->rate,
			    (unsigned long long)now);
}

static int last_reading(struct contention_state *c, struct prof **out, struct err *e)
{
	CLEANUP(prof_freep) struct prof *p = NULL;
	uint64_t now = c->rate;
	int ret = contention_read_rate(c->s, &c->vars, &now, e);

	if (!ret && c->rate && now != c->rate && contention_scales_at_read(&c->vars))
		return hand_over_before_change(c, now, out, e);
	if (!ret)
		ret = read_now(c, &p, e);
	if (!ret)
		ret = comment_change(c, now, p, e);
	if (!ret)
		*out = TAKE(p);
	return ret;
}

static int reading_stop(void *at, struct prof **out, struct err *e)
{
	struct contention_state *c = at;
	int ret = target_alive(c->s->target, e);

	if (!ret)
		ret = last_reading(c, out, e);
	return ret == -ESRCH ? checkpoint_hand_over(&c->checkpoint, out, e) : ret;
}

static const struct prof *reading_first(const void *at)
{
	return ((const struct contention_state *)at)->checkpoint.prof;
}

static const struct source reading = {
	.first = reading_first,
	.fd = reading_fd,
	.poll = reading_poll,
	.stop = reading_stop,
	.free = reading_free,
};

/* ---- the collectors ---- */

static struct contention_state *reader_new(struct subject *s, const struct collect_opts *o,
					   enum contention what)
{
	struct contention_state *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->s = s;
	c->what = what;
	c->whose = o->labels || o->goid;
	checkpoint_init(&c->checkpoint, s, read_now, c);
	return c;
}

/* @again: more readings follow the first one. */
static int start_reading(struct contention_state **c, const struct collect_opts *o, bool again,
			 struct sourced *by, struct err *e)
{
	int ret = 0;

	(*c)->measured = o->ticks_per_second;
	if (!(*c)->measured)
		ret = ticks_measure(&(*c)->measured, e);
	if (!ret)
		ret = checkpoint_start(&(*c)->checkpoint, again, e);
	if (!ret)
		*by = (struct sourced){ &reading, TAKE(*c) };
	return ret;
}

/* With SOURCE_ENABLE, a program that records by itself is read. */
static int start_source(struct subject *s, const struct collect_opts *o, enum contention what,
			struct sourced *by, struct err *e)
{
	CLEANUP(state_freep) struct contention_state *c = reader_new(s, o, what);
	bool enable = o->source == SOURCE_ENABLE;
	int ret;

	if (!c)
		return err_set(e, -ENOMEM, "no memory");
	if (enable) {
		ret = contention_enable_start(s, o, what, by, e);
		if (ret <= 0)
			return ret;
	}
	ret = choose(c, o, enable ? SOURCE_READ : o->source, e);
	if (ret < 0)
		return ret;
	return ret ? start_reading(&c, o, o->held, by, e) :
		     contention_probe_start(s, o, what, by, e);
}

static int start(struct subject *s, const struct collect_opts *o, enum contention what,
		 void **state, struct err *e)
{
	CLEANUP(sourced_fini) struct sourced by = { 0 };
	int ret = start_source(s, o, what, &by, e);

	if (ret)
		return ret;
	if ((o->labels || o->goid) && !by.source->probes)
		say(o, "%s: the runtime's own records have no goroutine labels and no goid",
		    contention_name(what));
	return sourced_new(&by, state, e);
}

static int block_start(struct subject *s, const struct collect_opts *o, void **state, struct err *e)
{
	return start(s, o, CONTENTION_BLOCK, state, e);
}

static int mutex_start(struct subject *s, const struct collect_opts *o, void **state, struct err *e)
{
	return start(s, o, CONTENTION_MUTEX, state, e);
}

static int block_possible(struct gobin *b, const struct golayout *l, struct err *e)
{
	return sched_possible(b, l, GPB_WAIT_BLOCK, e);
}

static int mutex_possible(struct gobin *b, const struct golayout *l, struct err *e)
{
	return sched_possible(b, l, GPB_WAIT_MUTEX, e);
}

const struct collector collector_block = {
	.kind = "block",
	.start = block_start,
	.fd = sourced_fd,
	.poll = sourced_poll,
	.tick = sourced_tick,
	.begin = sourced_begin,
	.stop = sourced_stop,
	.first = sourced_first,
	.free = sourced_free,
	.possible = block_possible,
};

const struct collector collector_mutex = {
	.kind = "mutex",
	.start = mutex_start,
	.fd = sourced_fd,
	.poll = sourced_poll,
	.tick = sourced_tick,
	.begin = sourced_begin,
	.stop = sourced_stop,
	.first = sourced_first,
	.free = sourced_free,
	.possible = mutex_possible,
};
