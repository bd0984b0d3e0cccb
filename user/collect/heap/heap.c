/*
 * user/collect/heap/heap.c - heap profiles: chooses the source, and is the collector for all of them.
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
#include "profile/profile.h"
#include "symbolize/subject_prof.h"

struct heap {
	struct subject *s;
	struct rtbucket_vars vars;
	struct heap_probe *probe;
	struct heap_enable *enable; /* neither probe nor enable: the source is read */
	struct checkpoint checkpoint;
	int64_t rate; /* when the window began; 0: it may still be set */
	bool whose;   /* labels or goid were asked for */
	bool types;   /* types were asked for */
};

static void heap_free(void *state)
{
	struct heap *h = state;

	if (!h)
		return;
	heap_probe_free(h->probe);
	heap_enable_free(h->enable);
	checkpoint_fini(&h->checkpoint);
	free(h);
}

static void heap_freep(struct heap **h)
{
	heap_free(*h);
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

static int choose_held(struct heap *h, const struct collect_opts *o, struct err *e)
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
	if (o->source == SOURCE_READ)
		return err_set(e, ret, "%s; --source=probe works without", why.msg);
	say(o, "heap: source probe: %s", why.msg);
	return 0;
}

/*
 * Returns 1 to read, 0 to probe, or an error. With SOURCE_READ every obstacle is an error, with
 * SOURCE_AUTO it is a reason to probe.
 */
static int choose(struct heap *h, const struct collect_opts *o, struct err *e)
{
	struct err why = {};
	int64_t rate = 0;
	int ret;

	if (o->source == SOURCE_PROBE) {
		say(o, "heap: source probe, as asked for");
		return 0;
	}
	if (o->held)
		return choose_held(h, o, e);
	ret = heap_read_find(h->s, &h->vars, &why);
	if (!ret)
		ret = heap_read_rate(h->s, &h->vars, &rate, &why);
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
	if (o->source == SOURCE_READ)
		return err_set(e, ret, "%s; --source=enable or probe works without", why.msg);
	say(o, "heap: source probe: %s", why.msg);
	return 0;
}

/* Makes the program sample, or reads it when it samples by itself. */
static int start_enable(struct heap *h, const struct collect_opts *o, struct err *e)
{
	struct collect_opts as_read = *o;
	int ret = heap_enable_start(h->s, o, &h->enable, e);

	if (ret <= 0)
		return ret;
	as_read.source = SOURCE_READ;
	ret = choose(h, &as_read, e);
	return ret < 0 ? ret : checkpoint_start(&h->checkpoint, false, e);
}

static int heap_start(struct subject *s, const struct collect_opts *o, void **state, struct err *e)
{
	CLEANUP(heap_freep) struct heap *h = calloc(1, sizeof(*h));
	int ret;

	if (!h)
		return err_set(e, -ENOMEM, "no memory");
	h->s = s;
	checkpoint_init(&h->checkpoint, s, read_now, h);
	h->whose = o->labels || o->goid;
	h->types = o->types;
	if (o->source == SOURCE_ENABLE) {
		ret = start_enable(h, o, e);
	} else {
		ret = choose(h, o, e);
		if (ret >= 0)
			ret = ret ? checkpoint_start(&h->checkpoint, o->held, e) :
				    heap_probe_start(s, o, &h->probe, e);
	}
	if (ret)
		return ret;
	if (h->whose && !h->probe)
		say(o, "heap: the runtime's own records have no goroutine labels and no goid");
	if (h->types && !h->probe)
		say(o, "heap: the runtime's own records have no types; --source=probe has");
	*state = TAKE(h);
	return 0;
}

static int heap_fd(void *state)
{
	struct heap *h = state;

	return h->probe	 ? heap_probe_fd(h->probe) :
	       h->enable ? heap_enable_fd(h->enable) :
			   h->checkpoint.timer;
}

static int heap_poll(void *state, struct err *e)
{
	struct heap *h = state;

	return h->probe	 ? heap_probe_poll(h->probe, e) :
	       h->enable ? heap_enable_poll(h->enable, e) :
			   checkpoint_again(&h->checkpoint, e);
}

static int heap_tick(void *state, struct err *e)
{
	struct heap *h = state;

	if (h->enable)
		heap_enable_tick(h->enable);
	return h->probe ? heap_probe_tick(h->probe, e) : 0;
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

static int heap_stop(void *state, struct prof **out, struct err *e)
{
	struct heap *h = state;
	int64_t rate;
	int ret;

	if (h->probe)
		return heap_probe_stop(h->probe, out, e);
	if (h->enable)
		return heap_enable_stop(h->enable, out, e);
	ret = target_alive(h->s->target, e);
	if (!ret && rate_changed(h, &rate))
		return hand_over_before_change(h, rate, out, e);
	if (!ret)
		ret = read_now(h, out, e);
	if (ret != -ESRCH)
		return ret;
	return checkpoint_hand_over(&h->checkpoint, out, e);
}

static int heap_begin(void *state, struct err *e)
{
	struct heap *h = state;

	return h->probe ? heap_probe_begin(h->probe, e) : 0;
}

const struct collector collector_heap = {
	.kind = "heap",
	.start = heap_start,
	.fd = heap_fd,
	.poll = heap_poll,
	.tick = heap_tick,
	.begin = heap_begin,
	.stop = heap_stop,
	.free = heap_free,
};
