/*
 * user/collect/heap/heap.c - heap profiles: chooses the source, and reads.
 *
 * The runtime samples its own heap when MemProfileRate is not zero (any program that links
 * runtime/pprof): then its buckets are read. Otherwise the allocator is probed or, when that was
 * asked for, the runtime is made to sample for the time of the window.
 */
#include "collect/collect.h"
#include "collect/heap/heap_enable.h"
#include "collect/heap/heap_probe.h"
#include "collect/heap/heap_read.h"
#include "collect/ratewrite/checkpoint.h"
#include "collect/ratewrite/enable.h"
#include "collect/source.h"
#include "profile/profile.h"
#include "symbolize/subject_prof.h"

enum { FIRST_RATE = 512 << 10 }; /* runtime/mprof.go, Go 1.16 to 1.27 */

/* The source read. */
struct heap {
	struct subject *s;
	struct rtbucket_vars vars;
	struct checkpoint checkpoint;
	int64_t rate; /* when the window began; 0: it may still be set */
	bool whose;   /* labels or goid were asked for */
	bool types;   /* types were asked for */
};

static void reading_free(void *at)
{
	struct heap *h = at;

	if (!h)
		return;
	checkpoint_fini(&h->checkpoint);
	free(h);
}

static void heap_freep(struct heap **h)
{
	reading_free(*h);
}

/* Makes one reading, as a profile. */
static int read_now(void *arg, struct prof **out, struct err *e)
{
	struct heap *h = arg;
	CLEANUP(prof_freep) struct prof *p = NULL;
	int ret;

	ret = subject_prof(h->s, "read (the runtime's own buckets)", &p, e);
	if (!ret)
		ret = heap_read_profile(h->s, &h->vars, p, e);
	if (!ret && h->whose)
		ret = prof_comment(p, e,
				   "labels: the runtime's own records have none, and no goid");
	if (!ret && h->types)
		ret = prof_comment(p, e, "types: the runtime's own records have none");
	if (ret)
		return ret;
	*out = TAKE(p);
	return 0;
}

/* ---- which source ---- */

/*
 * Will a program of which nothing has run yet sample its heap? MemProfileRate does not have its
 * final value yet: up to Go 1.19 it is set when packages are initialised, and later versions
 * clear it in schedinit; both follow what the linker put into disableMemoryProfiling. Go 1.16 and
 * older had no such variable, and every program samples. Returns 1 for yes, 0 for no, or why that
 * cannot be told.
 */
static int will_sample(struct heap *h, struct err *e)
{
	struct subject *s = h->s;
	int minor = gobin_info(s->bin)->minor, ret;
	uint64_t addr;
	uint8_t off;

	if (minor >= 0 && minor < 17)
		return 1;
	ret = rtvar_find(s->bin, RTVAR_DISABLEMEMORYPROFILING, &addr, e);
	if (!ret)
		ret = mem_u8(s->target->mem, addr + s->bias, &off, e);
	return ret ? ret : !off;
}

static int choose_held(struct heap *h, const struct collect_opts *o, enum source_wanted source,
		       struct err *e)
{
	struct err why = {};
	int ret = heap_read_find(h->s, &h->vars, &why);

	if (!ret)
		ret = will_sample(h, &why);
	if (ret > 0) {
		say(o, "heap: source read: the command will sample its heap itself");
		return 1;
	}
	if (!ret)
		ret = err_set(&why, -ENOTSUP, "the command is linked not to sample its heap");
	if (source == SOURCE_READ)
		return err_set(e, ret, "%s; --source=probe works without", why.msg);
	say(o, "heap: source probe: %s", why.msg);
	return 0;
}

/* Is it before the first goroutine, which is made once schedinit has ended? */
static bool starts(struct subject *s)
{
	uint64_t allglen, n;

	return !subject_rtvar(s, RTVAR_ALLGLEN, &allglen, NULL) &&
	       !mem_u64(s->target->mem, allglen, &n, NULL) && !n;
}

/*
 * Up to the end of schedinit MemProfileRate has its first value, also where the linker has decided that it is to be
 * cleared: *@rate is what it will be.
 */
static int settle_rate(struct heap *h, int64_t *rate, struct err *e)
{
	struct subject *s = h->s;
	uint64_t addr;
	uint8_t off;

	if (*rate != FIRST_RATE || subject_rtvar(s, RTVAR_DISABLEMEMORYPROFILING, &addr, NULL) ||
	    mem_u8(s->target->mem, addr, &off, NULL) || off != 1)
		return 0;
	if (!starts(s))
		return heap_read_rate(s, &h->vars, rate, e);
	*rate = 0;
	return 0;
}

/*
 * Returns 1 to read, 0 to probe, or an error. With SOURCE_READ every obstacle is an error, with
 * SOURCE_AUTO it is a reason to probe.
 */
static int choose(struct heap *h, const struct collect_opts *o, enum source_wanted source,
		  struct err *e)
{
	struct err why = {};
	int64_t rate = 0;
	int ret;

	if (source == SOURCE_PROBE) {
		say(o, "heap: source probe, as asked for");
		return 0;
	}
	if (o->held)
		return choose_held(h, o, source, e);
	ret = heap_read_find(h->s, &h->vars, &why);
	if (!ret)
		ret = heap_read_rate(h->s, &h->vars, &rate, &why);
	if (!ret)
		ret = settle_rate(h, &rate, &why);
	if (ret == -ESRCH)
		return err_set(e, ret, "%s", why.msg);
	if (!ret && rate > 0 && claims_any(h->s->target, CLAIM_HEAP_RATE))
		ret = err_set(&why, -EBUSY,
			      "a lock on the target says that another goprof-bpf has it sample its "
			      "heap now");
	if (!ret && rate > 0) {
		say(o, "heap: source read: the target samples its heap itself, every %lld bytes",
		    (long long)rate);
		h->rate = rate;
		return 1;
	}
	if (!ret)
		ret = err_set(
			&why, -ENOTSUP,
			"the target does not sample its heap (runtime.MemProfileRate is %lld)",
			(long long)rate);
	if (source == SOURCE_READ)
		return err_set(e, ret, "%s; --source=enable or probe works without", why.msg);
	say(o, "heap: source probe: %s", why.msg);
	return 0;
}

/* ---- the source read ---- */

static int reading_fd(void *at)
{
	struct heap *h = at;

	return h->checkpoint.timer;
}

static int reading_poll(void *at, struct err *e)
{
	struct heap *h = at;

	return checkpoint_again(&h->checkpoint, e);
}

/*
 * Values are scaled with the rate that stands in the variable, as the runtime does it. If samples
 * were taken with another rate, or that is now 0, they would be wrong.
 */
static bool rate_changed(struct heap *h, int64_t *now)
{
	return h->rate && !heap_read_rate(h->s, &h->vars, now, NULL) && *now != h->rate;
}

static int hand_over_before_change(struct heap *h, int64_t now, struct prof **out, struct err *e)
{
	struct prof *p = h->checkpoint.prof;
	int ret = prof_comment(p, e,
			       "state: as of the start of the window; since then "
			       "runtime.MemProfileRate went from %lld to %lld",
			       (long long)h->rate, (long long)now);

	if (ret)
		return ret;
	prof_loss(p)->n[LOSS_WINDOW_CUT] = 1;
	*out = TAKE(h->checkpoint.prof);
	return 0;
}

static int reading_stop(void *at, struct prof **out, struct err *e)
{
	struct heap *h = at;
	int64_t rate;
	int ret = target_alive(h->s->target, e);

	if (!ret && rate_changed(h, &rate))
		return hand_over_before_change(h, rate, out, e);
	if (!ret)
		ret = read_now(h, out, e);
	return ret == -ESRCH ? checkpoint_hand_over(&h->checkpoint, out, e) : ret;
}

static const struct prof *reading_first(const void *at)
{
	return ((const struct heap *)at)->checkpoint.prof;
}

static const struct source reading = {
	.first = reading_first,
	.fd = reading_fd,
	.poll = reading_poll,
	.stop = reading_stop,
	.free = reading_free,
};

/* ---- the collector ---- */

static struct heap *reader_new(struct subject *s, const struct collect_opts *o)
{
	struct heap *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->s = s;
	checkpoint_init(&h->checkpoint, s, read_now, h);
	h->whose = o->labels || o->goid;
	h->types = o->heap.types;
	return h;
}

/* @again: more readings follow the first one. */
static int start_reading(struct heap **h, bool again, struct sourced *by, struct err *e)
{
	int ret = checkpoint_start(&(*h)->checkpoint, again, e);

	if (!ret)
		*by = (struct sourced){ &reading, TAKE(*h) };
	return ret;
}

/* With SOURCE_ENABLE, a program that samples by itself is read. */
static int start_source(struct subject *s, const struct collect_opts *o, struct sourced *by,
			struct err *e)
{
	CLEANUP(heap_freep) struct heap *h = reader_new(s, o);
	bool enable = o->source == SOURCE_ENABLE;
	int ret;

	if (!h)
		return err_set(e, -ENOMEM, "no memory");
	if (enable) {
		ret = heap_enable_start(s, o, by, e);
		if (ret <= 0)
			return ret;
	}
	ret = choose(h, o, enable ? SOURCE_READ : o->source, e);
	if (ret < 0)
		return ret;
	return ret ? start_reading(&h, o->held && !enable, by, e) : heap_probe_start(s, o, by, e);
}

static int heap_start(struct subject *s, const struct collect_opts *o, void **state, struct err *e)
{
	CLEANUP(sourced_fini) struct sourced by = { 0 };
	int ret = start_source(s, o, &by, e);

	if (ret)
		return ret;
	if ((o->labels || o->goid) && !by.source->probes)
		say(o, "heap: the runtime's own records have no goroutine labels and no goid");
	if (o->heap.types && !by.source->probes)
		say(o, "heap: the runtime's own records have no types; --source=probe has");
	return sourced_new(&by, state, e);
}

const struct collector collector_heap = {
	.kind = "heap",
	.start = heap_start,
	.fd = sourced_fd,
	.poll = sourced_poll,
	.tick = sourced_tick,
	.begin = sourced_begin,
	.stop = sourced_stop,
	.first = sourced_first,
	.free = sourced_free,
};
