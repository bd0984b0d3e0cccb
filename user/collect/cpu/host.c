/*
 * user/collect/cpu/host.c - one clock per CPU, one table and one ring for all targets (probe/demux.h).
 *
 * Of a program that has more distinct stacks than its part of the room, what comes later keeps only its
 * innermost function: so its total stays right.
 */
#include "collect/cpu/host.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <math.h>
#include <time.h>

#include "base/clock.h"
#include "collect/cpu/host_clocks.h"
#include "probe/bpf.h"
#include "probe/demux.h"
#include "subject/verify.h"
#include "symbolize/stack_physical.h"
#include "symbolize/subject_prof.h"
#include "target/host/kallsyms.h"
#include "target/host/pidns.h"
#include "cpu.skel.h"

enum {
	HOST_STACKS_MAX = 1 << 13, /* distinct stacks in one profile, */
	KEEP_STACKS = 1 << 17,	   /* and in all: some 30 MB */
	WEIGHT_MAX = 64,	   /* a tick may stand for so many at the wanted rate */
};

struct host {
	const struct collect_opts *o; /* borrowed */
	uint64_t period_ns;
	struct cpu_bpf *obj;
	struct demux demux;
	struct host_clocks clocks;
	struct bpf_link *on_end,
		*on_reaped; /* NULL: what a process that is gone was charged is not known */
	uint64_t ended_ns;
	struct err
		no_names; /* kernel frames have none: why; "": they have, or were not asked for */
};

/* What is kept of one target. */
struct host_target {
	struct demux_target d;
	struct engine_target *t;
	struct gpb_tally base; /* when its part of the window began */
	uint64_t read_samples; /* when its clock was read last */
	uint64_t guessed;      /* samples that tell of its end, where nobody else does */
	struct prof *prof;     /* NULL: no sample yet */
	struct stack_physical ph;
	struct loss loss;
};

/* ---- samples ---- */

static int begin_prof(struct host *h, struct host_target *k, struct err *e)
{
	CLEANUP(prof_freep) struct prof *p = NULL;
	int ret = subject_prof(k->t->subject, "perf CPU clock of each CPU", &p, e);

	if (!ret)
		ret = prof_add_type(p, "samples", "count", e);
	if (!ret)
		ret = prof_add_type(p, "cpu", "nanoseconds", e);
	if (!ret)
		ret = prof_set_period(p, "cpu", "nanoseconds", (int64_t)h->period_ns, e);
	if (ret)
		return ret;
	k->prof = TAKE(p);
	stack_physical_init(&k->ph, k->t->subject, k->prof, HIDE_NONE);
	return 0;
}

/* A stack that there is no room for: only its innermost function, which others have, too. */
static struct gpb_stack leaf_of(const struct gpb_stack *st)
{
	struct gpb_stack leaf = *st;

	leaf.nsecond = leaf.nkernel = 0;
	leaf.nfirst = 1;
	leaf.pc[0] = st->pc[st->nkernel];
	leaf.flags |= GPB_STACK_CUT;
	return leaf;
}

static int add_leaf(struct host_target *k, const struct gpb_stack *st, const int64_t *values)
{
	struct gpb_stack leaf = leaf_of(st);

	k->loss.n[LOSS_STACKS_MANY] += st->count;
	return stack_physical_add(&k->ph, &leaf, values, NULL, 0, NULL);
}

static int add_stack(void *arg, struct demux_target *d, const struct gpb_hash *key,
		     const struct gpb_stack *st)
{
	struct host *h = arg;
	struct host_target *k = d->owner;
	struct prof_label labels[GPB_MAX_LABELS + 1];
	int64_t values[] = { (int64_t)st->count, (int64_t)(st->count * h->period_ns) };
	size_t nlabels;
	int ret = k->prof ? 0 : begin_prof(h, k, NULL);

	(void)key;
	if (ret)
		return ret;
	nlabels = labelsets_of(&h->demux.reports.labels, st, 1, labels, &k->loss);
	prof_close(k->prof,
		   prof_nsamples(k->prof) >= HOST_STACKS_MAX || !demux_has_room(&h->demux, d));
	ret = stack_physical_add(&k->ph, st, values, labels, nlabels, NULL);
	prof_close(k->prof, false);
	if (ret == -E2BIG)
		ret = add_leaf(k, st, values);
	demux_keeps(&h->demux, d, prof_nsamples(k->prof));
	return ret;
}

/* ---- the tables ---- */

static int load(struct host *h, unsigned expected, struct err *e)
{
	uint32_t ino;
	int ret = pidns_inode(&ino, e);

	if (ret)
		return ret;
	bpf_log_begin();
	h->obj = bpf_open(cpu);
	if (!h->obj)
		return bpf_load_error(e, -errno, NULL);
	bpf_prepare(h->obj);
	h->obj->rodata->pidns_ino = ino;
	h->obj->rodata->kernel_stack = bpf_old_kernel_stack();
	h->obj->rodata->many_targets = 1;
	bpf_program__set_autoload(h->obj->progs.thread_clock, false);
	bpf_program__set_autoload(h->obj->progs.on_thread, false);
	bpf_map__set_autocreate(h->obj->maps.own_clock, false);
	bpf_map__set_autocreate(h->obj->maps.phases, false);
	demux_size(&h->demux, h->obj->maps.ring, h->obj->maps.stacks, expected);
	h->demux.keep_stacks = KEEP_STACKS;
	ret = cpu_bpf__load(h->obj);
	return ret ? bpf_load_error(e, ret, NULL) :
		     demux_open(&h->demux, DEMUX_OBJECT(h->obj), add_stack, h, e);
}

static void host_free(void *state)
{
	struct host *h = state;

	host_clocks_close(&h->clocks);
	bpf_link__destroy(h->on_end);
	bpf_link__destroy(h->on_reaped);
	demux_fini(&h->demux);
	cpu_bpf__destroy(h->obj);
	free(h);
}

static void host_freep(struct host **h)
{
	if (*h)
		host_free(*h);
}

/* Without, as with a kernel that has no such tracepoint, samples tell how much it was, with an error. */
static void watch_ends(struct host *h)
{
	h->on_end = bpf_program__attach(h->obj->progs.on_end);
	h->on_reaped = h->on_end ? bpf_program__attach(h->obj->progs.on_reaped) : NULL;
}

static int host_open(const struct engine_kind *kind, const struct collect_opts *o,
		     unsigned expected, void **state, struct err *e)
{
	CLEANUP(host_freep) struct host *h = calloc(1, sizeof(*h));
	int ret;

	(void)kind;
	if (!h)
		return err_set(e, -ENOMEM, "no memory");
	h->o = o;
	h->period_ns = NS_PER_S / o->cpu.hz;
	if (o->cpu.kernel && kallsyms_shown(&h->no_names))
		say(o, "cpu: warning: %s", h->no_names.msg);
	ret = load(h, expected, e);
	if (!ret)
		ret = host_clocks_open(&h->clocks, bpf_program__fd(h->obj->progs.host_clock),
				       h->period_ns, e);
	if (ret)
		return ret;
	watch_ends(h);
	demux_share(&h->demux, expected ?: 1);
	*state = TAKE(h);
	return 0;
}

static int host_fd(void *state)
{
	struct host *h = state;

	return reports_fd(&h->demux.reports);
}

static int host_poll(void *state, struct err *e)
{
	struct host *h = state;

	return demux_poll(&h->demux, e);
}

/* ---- targets ---- */

static const struct gpb_tally *tally_of(const struct host *h, const struct engine_target *t)
{
	return (const struct gpb_tally *)&h->obj->bss->tallies[demux_index(t->slot)];
}

static struct host_target *keep(struct host *h, struct engine_target *t)
{
	struct host_target *k = calloc(1, sizeof(*k));

	if (k) {
		k->t = t;
		k->d = (struct demux_target){
			.slot = t->slot, .s = t->subject, .loss = &k->loss, .owner = k
		};
		k->base = *tally_of(h, t);
		k->read_samples = k->base.samples;
	}
	return k;
}

static void host_forget(void *state, struct engine_target *t, void *kept)
{
	struct host *h = state;
	struct host_target *k = kept;

	(void)t;
	demux_forget(&h->demux, &k->d);
	stack_physical_fini(&k->ph);
	prof_free(k->prof);
	free(k);
}

static int fill(struct host *h, struct engine_target *t, struct err *e)
{
	uint32_t at = demux_index(t->slot), tgid = (uint32_t)t->id.pid;
	struct gpb_target g;
	int ret = bpf_target_fill(t->subject, h->o, &g, e);

	if (ret)
		return ret;
	if (bpf_map_update_elem(bpf_map__fd(h->obj->maps.targets), &at, &g, BPF_ANY) ||
	    bpf_map_update_elem(bpf_map__fd(h->obj->maps.slot_of_tgid), &tgid, &t->slot, BPF_ANY))
		return err_sys(e, "target table");
	return 0;
}

static int host_put(void *state, struct engine_target *t, void **kept, struct err *e)
{
	struct host *h = state;
	struct host_target *k;
	int ret;

	if (*kept)
		return fill(h, t, e);
	ret = verify_structs(t->subject, LAYOUT_USE_STACKS, e);
	if (ret)
		return ret;
	k = keep(h, t);
	if (!k)
		return err_set(e, -ENOMEM, "no memory for a target");
	*kept = k;
	demux_put(&h->demux, &k->d);
	ret = fill(h, t, e);
	if (ret) {
		host_forget(h, t, *kept);
		*kept = NULL;
	}
	return ret;
}

/* What the kernel charged it in all its life; 0: it has not told. */
static uint64_t charged_ns(const struct host *h, const struct engine_target *t)
{
	const struct gpb_charge *c =
		(const struct gpb_charge *)&h->obj->bss->charges[demux_index(t->slot)];
	uint64_t ns = __atomic_load_n(&c->ns, __ATOMIC_ACQUIRE);

	return ns && c->slot == t->slot ? ns : 0;
}

static bool host_awaits(void *state, const struct engine_target *t)
{
	struct host *h = state;

	return h->on_reaped && t->state == ENGINE_ENDED && !t->cpu_exact && !charged_ns(h, t);
}

/*
 * Of a process whose end nobody read, the kernel tells when it is reaped; until then, or where it does not, its samples
 * tell of the time since its clock was read last.
 */
static void settle(const struct host *h, struct host_target *k)
{
	uint64_t samples = tally_of(h, k->t)->samples;
	uint64_t charged = k->t->state == ENGINE_ENDED ? charged_ns(h, k->t) : 0;

	if (!k->t->cpu_exact && charged >= k->t->base_ns && charged) {
		k->t->cpu_ns = charged - k->t->base_ns;
		k->t->cpu_exact = true;
	}
	if (!k->t->cpu_exact) {
		k->t->cpu_ns += (samples - k->read_samples) * h->period_ns;
		k->guessed += samples - k->read_samples;
	}
	k->read_samples = samples;
}

static void host_remove(void *state, struct engine_target *t)
{
	struct host *h = state;
	struct host_target *k = h->demux.at[demux_index(t->slot)] ?
					h->demux.at[demux_index(t->slot)]->owner :
					NULL;
	uint32_t tgid = (uint32_t)t->id.pid;

	bpf_map_delete_elem(bpf_map__fd(h->obj->maps.slot_of_tgid), &tgid);
	if (k)
		settle(h, k);
}

/* ---- the window ---- */

/* Ticks @weight times as far apart, of which each counts for so many. */
static void set_weight(struct host *h, uint64_t weight)
{
	host_clocks_weigh(&h->clocks, weight);
	__atomic_store_n(&h->obj->data->tick_weight, weight, __ATOMIC_RELAXED);
}

static bool host_slow_down(void *state)
{
	struct host *h = state;
	uint64_t weight = h->obj->data->tick_weight;

	if (weight >= WEIGHT_MAX)
		return false;
	set_weight(h, 2 * weight);
	return true;
}

static uint64_t host_taken_ns(void *state)
{
	struct host *h = state;
	uint64_t ns = 0;

	for (size_t i = 0; i < GPB_CPU_TARGETS; i++)
		ns += h->obj->bss->tallies[i].taken_ns;
	return ns;
}

static int host_begin(void *state, struct err *e)
{
	struct host *h = state;

	h->demux.ticks = 0;
	set_weight(h, 1);
	return host_clocks_start(&h->clocks, e);
}

/* The engine has just read the clocks of those that live. */
static void note_samples(struct host *h)
{
	for (size_t i = 0; i < GPB_CPU_TARGETS; i++) {
		struct host_target *k = h->demux.at[i] ? h->demux.at[i]->owner : NULL;

		if (k && k->t->cpu_exact)
			k->read_samples = tally_of(h, k->t)->samples;
	}
}

static int host_tick(void *state, size_t targets, struct err *e)
{
	struct host *h = state;

	note_samples(h);
	host_clocks_turn(&h->clocks);
	demux_share(&h->demux, targets);
	return demux_tick(&h->demux, e);
}

static void host_close(void *state)
{
	struct host *h = state;

	host_clocks_stop(&h->clocks);
	h->ended_ns = now_ns();
}

static int host_drain(void *state, struct err *e)
{
	struct host *h = state;

	return demux_drain(&h->demux, e);
}

/* ---- profiles ---- */

/* The process' CPU time, and its samples. */
struct sharing {
	uint64_t cpu_ns, samples;
};

static void share(void *arg, int64_t *values)
{
	const struct sharing *s = arg;

	values[1] = (int64_t)((double)values[0] * (double)s->cpu_ns / (double)s->samples);
}

#define UNCLOCKED_SHARE 0.02
/* Standard errors of the number of ticks that meet a program, if that were random. */
#define CHANCE 4

/* CPU time that ticks should have met, and have not. */
static uint64_t unclocked_ns(const struct host *h, const struct sharing *s)
{
	double due = (double)s->cpu_ns / (double)h->period_ns, missing = due - (double)s->samples;

	return missing > UNCLOCKED_SHARE * due &&
			       missing > CHANCE * sqrt(due * (double)h->obj->data->tick_weight) ?
		       (uint64_t)(missing * (double)h->period_ns) :
		       0;
}

/* Ticks that meet a program, at least one of them, have at most the variance of random ones. */
static double guess_error(const struct host *h, const struct host_target *k)
{
	double weight = (double)h->obj->data->tick_weight;

	return sqrt(fmax((double)k->guessed, weight) * weight) * (double)h->period_ns;
}

static int comment(const struct host *h, const struct host_target *k, const struct sharing *s,
		   struct err *e)
{
	const struct engine_target *t = k->t;
	struct prof *p = k->prof;
	uint64_t until = t->until_ns ?: h->ended_ns;
	char stands[64] = "", guessed[96] = "";
	int ret;

	if (s->samples)
		snprintf(stands, sizeof(stands), ": each sample stands for %.3f ms of it",
			 (double)s->cpu_ns / 1e6 / (double)s->samples);
	if (!t->cpu_exact)
		snprintf(guessed, sizeof(guessed), ", and at its end by its samples, +- %.3f s",
			 guess_error(h, k) / 1e9);
	ret = prof_comment(p, e, "window: %.3f s", (double)(until - t->since_ns) / 1e9);

	if (!ret)
		ret = prof_comment(p, e, "rate: %.2f Hz of each CPU", 1e9 / (double)h->period_ns);
	if (!ret && h->obj->data->tick_weight > 1)
		ret = prof_comment(p, e, "rate: %.2f Hz at the end, to keep to --host-budget",
				   1e9 / (double)(h->period_ns * h->obj->data->tick_weight));
	if (!ret)
		ret = prof_comment(p, e, "hits: %llu samples, %.3f s of CPU time",
				   (unsigned long long)s->samples,
				   (double)(s->samples * h->period_ns) / 1e9);
	if (!ret)
		ret = prof_comment(p, e, "charged: %.3f s of CPU time by the kernel%s%s",
				   (double)s->cpu_ns / 1e9, guessed, stands);
	if (!ret && unclocked_ns(h, s))
		ret = prof_comment(
			p, e,
			"unclocked: %.2f s of that were met by no tick, as while the kernel switches threads, or on a CPU that was just switched on: the others' shares have them",
			(double)unclocked_ns(h, s) / 1e9);
	if (!ret)
		ret = engine_tell_identity(t, p, e);
	if (!ret && *h->no_names.msg)
		ret = prof_comment(p, e, "%s", h->no_names.msg);
	return ret ? ret : unwind_rules_comment(&h->demux.reports.rules, t->subject, p, e);
}

static struct sharing sharing_of(const struct host *h, struct host_target *k)
{
	settle(h, k);
	return (struct sharing){ .cpu_ns = k->t->cpu_ns,
				 .samples = tally_of(h, k->t)->samples - k->base.samples };
}

static void losses(const struct host *h, const struct host_target *k, struct loss *to)
{
	const struct gpb_tally *now = tally_of(h, k->t);
	struct gpb_tally lost = *now;

	for (size_t i = 0; i < GPB_LOSS_COUNT; i++)
		lost.lost[i] -= k->base.lost[i];
	bpf_losses(&lost, to);
	to->n[LOSS_UNFINISHED] += k->d.left;
	loss_merge(to, &k->loss);
}

static int host_profile(void *state, struct engine_target *t, void *kept, struct prof **out,
			struct err *e)
{
	struct host *h = state;
	struct host_target *k = kept;
	struct sharing s = k ? sharing_of(h, k) : (struct sharing){ 0 };
	bool wanted = s.samples || (k && h->o->unmet);
	int ret = wanted && !k->prof ? begin_prof(h, k, e) :
				       0; /* all were lost, or there is none */

	*out = NULL;
	if (ret || !wanted)
		return ret;
	prof_each_sample(k->prof, share, &s);
	prof_set_time(k->prof, t->since_unix_ns,
		      (int64_t)((t->until_ns ?: h->ended_ns) - t->since_ns));
	losses(h, k, prof_loss(k->prof));
	ret = comment(h, k, &s, e);
	if (!ret)
		*out = TAKE(k->prof);
	return ret;
}

static int host_done(void *state, struct err *e)
{
	struct host *h = state;

	return demux_done(&h->demux, e);
}

static bool host_forget_file(void *state, uint16_t number)
{
	struct host *h = state;

	return unwind_rules_forget(&h->demux.reports.rules, number);
}

const struct engine_kind engine_cpu = {
	.name = "cpu",
	.open = host_open,
	.free = host_free,
	.fd = host_fd,
	.poll = host_poll,
	.put = host_put,
	.remove = host_remove,
	.awaits = host_awaits,
	.forget = host_forget,
	.begin = host_begin,
	.tick = host_tick,
	.taken_ns = host_taken_ns,
	.slow_down = host_slow_down,
	.close = host_close,
	.drain = host_drain,
	.profile = host_profile,
	.done = host_done,
	.forget_file = host_forget_file,
};
