/*
 * user/collect/cpu/cpu.c - CPU profiles: one clock per thread, and stacks that are counted in the
 * kernel.
 *
 * A pc that the BPF side meets for the first time comes through the ring with the memory above
 * its sp. Here, pclntab tells where the return addresses are, and the answers go back as rules,
 * so that the same stack is counted in the kernel from then on.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <time.h>

#include "base/clock.h"
#include "collect/collect.h"
#include "collect/cpu/calm.h"
#include "collect/cpu/clocks.h"
#include "goprof_abi.h"
#include "probe/bpf.h"
#include "probe/reports.h"
#include "profile/profile.h"
#include "subject/verify.h"
#include "symbolize/stack_physical.h"
#include "symbolize/subject_prof.h"
#include "target/host/kallsyms.h"
#include "target/host/pidns.h"
#include "cpu.skel.h"

/*
 * Clock steps per second, while threads are born. A thread's last, unfinished step is lost, half a step on average, and
 * each step costs the target an interrupt of about a microsecond, and each switch of threads the
 * setting of a timer. So a step is a millisecond. While no thread is born, known threads' clocks take whole periods,
 * which cost as little as perf's clock (docs/costs.md).
 */
enum { STEPS_HZ = 1000, UNCLOCKED_MAY_NS = 50000000 };

struct cpu {
	struct subject *s;
	struct collect_opts o;
	unsigned steps;
	uint64_t period_ns; /* time between samples; a whole number of steps */
	struct cpu_bpf *obj;
	struct reports reports;
	struct clocks clocks;
	struct bpf_link *on_thread; /* NULL: births are not seen, so steps stay short */
	struct calm calm;
	uint64_t calms;	     /* how often steps could become long */
	uint64_t calm_ns;    /* and for how long, in all */
	uint64_t calm_at_ns; /* the last time */
	struct prof *prof;
	struct stack_physical ph;
	struct loss loss;
	uint64_t start_ns, end_ns; /* monotonic */
	int64_t start_unix_ns;
	uint64_t charged_ns;	   /* what the kernel charged to all threads; 0: unknown */
	uint64_t charged_start_ns; /* what /proc showed when the window began */
	bool charged_start_known;  /* a command has used none then */
	uint64_t unclocked_ns;	   /* time charged to the process that no thread's clock counted */
	size_t nimages;		   /* how many of them the BPF side knows */
};

/* ---- samples ---- */

static int add_stack(void *arg, const struct gpb_stack *st, struct err *e)
{
	struct cpu *c = arg;
	struct prof_label labels[GPB_MAX_LABELS + 1];
	int64_t n = (int64_t)st->count;
	int64_t values[] = { n, n * (int64_t)c->period_ns };
	size_t nlabels = labelsets_of(&c->reports.labels, st, 1, labels, &c->loss);

	return stack_physical_add(&c->ph, st, values, labels, nlabels, e);
}

/* ---- the steps of clocks ---- */

/* Steps that are long are made short before the BPF side may take newborn threads for finely clocked ones. */
static void look_at_births(struct cpu *c)
{
	uint64_t now = now_ns();

	if (!c->on_thread || !calm_look(&c->calm, c->obj->bss->births, now))
		return;
	if (c->calm.is) {
		c->calm_at_ns = now;
		c->obj->bss->coarsen = ++c->calms;
	} else {
		clocks_refine(&c->clocks);
		c->obj->bss->coarsen = 0;
		c->calm_ns += now - c->calm_at_ns;
	}
}

static int on_clock(void *arg, const void *data, size_t len, struct err *e)
{
	struct cpu *c = arg;
	const struct gpb_rec_clock *r = data;

	(void)e;
	if (len < sizeof(*r) || r->type != GPB_REC_CLOCK)
		return 0;
	look_at_births(c);
	if (r->id && c->calm.is)
		clocks_set(&c->clocks, r->id, r->coarse ? c->period_ns : 0);
	return 0;
}

/* A clock takes long steps only where what it has counted can be read, and where births are seen. */
static void watch_births(struct cpu *c)
{
	if (c->steps > 1 && c->obj->rodata->reads_kernel)
		c->on_thread = bpf_program__attach(c->obj->progs.on_thread);
	calm_begin(&c->calm, c->obj->bss->births, now_ns());
}

/* ---- the window ---- */

/* Before Linux 5.15 it was not tried. */
static bool may_read_kernel(void)
{
	return !bpf_is_old() && libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT,
							BPF_FUNC_probe_read_kernel, NULL) == 1;
}

static int load(struct cpu *c, struct err *e)
{
	uint32_t ino;
	int ret;

	ret = pidns_inode(&ino, e);
	if (ret)
		return ret;
	bpf_log_begin();
	c->obj = bpf_open(cpu);
	if (!c->obj)
		return bpf_load_error(e, -errno, NULL);
	bpf_prepare(c->obj);
	bpf_program__set_autoload(c->obj->progs.host_clock, false);
	bpf_program__set_autoload(c->obj->progs.on_end, false);
	bpf_program__set_autoload(c->obj->progs.on_reaped, false);
	bpf_map__set_autocreate(c->obj->maps.ending, false);
	bpf_map__set_max_entries(c->obj->maps.targets, 1);
	bpf_map__set_max_entries(c->obj->maps.slot_of_tgid, 1);
	c->obj->rodata->pidns_ino = ino;
	c->obj->rodata->kernel_stack = bpf_old_kernel_stack();
	c->obj->rodata->reads_kernel = may_read_kernel();
	c->obj->rodata->period_ns = c->period_ns;
	c->obj->rodata->step_ns = c->period_ns / c->steps;
	/*
	 * A sample carries its stack's memory until user space has seen its frames. Loading the
	 * next kind's programs takes 0.05 s, on a machine that is busy ten times that.
	 */
	if (c->o.others)
		bpf_map__set_max_entries(c->obj->maps.ring, 4 * GPB_RING_BYTES);
	ret = cpu_bpf__load(c->obj);
	if (ret)
		return bpf_load_error(e, ret, NULL);
	c->reports.other = on_clock;
	c->reports.other_arg = c;
	return reports_open(&c->reports, c->s, c->obj->maps.ring, c->obj->maps.unwind_rules,
			    add_stack, c, e);
}

static int put_target(struct cpu *c, struct err *e)
{
	struct gpb_target t;
	uint32_t slot = 0, tgid = (uint32_t)c->s->target->pid;
	int ret;

	ret = bpf_target_fill(c->s, &c->o, &t, e);
	if (ret)
		return ret;
	if (bpf_map_update_elem(bpf_map__fd(c->obj->maps.targets), &slot, &t, BPF_ANY) ||
	    bpf_map_update_elem(bpf_map__fd(c->obj->maps.slot_of_tgid), &tgid, &slot, BPF_ANY))
		return err_sys(e, "target table");
	c->nimages = c->s->images.n;
	return 0;
}

/* This is reported at the start, when something can still be done about it. */
static int kernel_names(struct cpu *c, struct err *e)
{
	struct err why = {};

	if (!c->o.cpu.kernel || !kallsyms_shown(&why))
		return 0;
	say(&c->o, "cpu: warning: %s", why.msg);
	return prof_comment(c->prof, e, "%s", why.msg);
}

static int begin_prof(struct cpu *c, struct err *e)
{
	int ret;

	ret = subject_prof(c->s, "perf task clock per thread", &c->prof, e);
	if (!ret)
		ret = prof_add_type(c->prof, "samples", "count", e);
	if (!ret)
		ret = prof_add_type(c->prof, "cpu", "nanoseconds", e);
	if (!ret)
		ret = prof_set_period(c->prof, "cpu", "nanoseconds", (int64_t)c->period_ns, e);
	if (!ret)
		stack_physical_init(&c->ph, c->s, c->prof, HIDE_NONE);
	return ret ? ret : kernel_names(c, e);
}

static void cpu_free(void *state)
{
	struct cpu *c = state;

	if (!c)
		return;
	clocks_close(&c->clocks);
	reports_fini(&c->reports);
	bpf_link__destroy(c->on_thread);
	cpu_bpf__destroy(c->obj);
	stack_physical_fini(&c->ph);
	prof_free(c->prof);
	free(c);
}

static void cpu_freep(struct cpu **c)
{
	cpu_free(*c);
}

static int cpu_start(struct subject *s, const struct collect_opts *o, void **state, struct err *e)
{
	CLEANUP(cpu_freep) struct cpu *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return err_set(e, -ENOMEM, "no memory");
	c->s = s;
	c->o = *o;
	c->steps = o->cpu.hz >= STEPS_HZ ? 1 : STEPS_HZ / o->cpu.hz;
	c->period_ns = 1000000000u / o->cpu.hz / c->steps * c->steps;
	ret = verify_structs(s, LAYOUT_USE_STACKS, e);
	if (!ret)
		ret = begin_prof(c, e);
	if (!ret)
		ret = load(c, e);
	if (!ret)
		ret = put_target(c, e);
	if (ret)
		return ret;
	watch_births(c);
	c->start_unix_ns = (int64_t)clock_ns(CLOCK_REALTIME);
	c->start_ns = now_ns();
	ret = clocks_open(&c->clocks, s->target, bpf_program__fd(c->obj->progs.thread_clock),
			  bpf_map__fd(c->obj->maps.own_clock), c->period_ns / c->steps, e);
	if (ret)
		return err_wrap(e, ret, "pid %d", s->target->pid);
	c->charged_start_known = !target_cpu_ns(s->target, &c->charged_start_ns, NULL);
	if (!c->charged_start_known)
		c->charged_start_ns = 0;
	say(o, "cpu: %u Hz on %zu threads", o->cpu.hz, c->clocks.at.n);
	*state = TAKE(c);
	return 0;
}

static int cpu_fd(void *state)
{
	struct cpu *c = state;

	return reports_fd(&c->reports);
}

static int cpu_poll(void *state, struct err *e)
{
	struct cpu *c = state;

	return reports_poll(&c->reports, e);
}

static int cpu_tick(void *state, struct err *e)
{
	struct cpu *c = state;

	look_at_births(c);
	return c->s->images.n != c->nimages ? put_target(c, e) : 0;
}

/* ---- the end ---- */

static int comment_steps(struct cpu *c, struct err *e)
{
	uint64_t unknown = c->obj->bss->births_coarse;
	int ret;

	if (!c->calms)
		return 0;
	ret = prof_comment(c->prof, e,
			   "steps: of %.3g ms, and of whole periods for %.1f s in which no thread "
			   "was born",
			   (double)(c->period_ns / c->steps) / 1e6, (double)c->calm_ns / 1e9);
	if (!ret && unknown)
		ret = prof_comment(c->prof, e,
				   "born: %llu threads began with steps of a whole period: up to "
				   "%.3f s of their CPU time is in no sample",
				   (unsigned long long)unknown,
				   (double)(unknown * c->period_ns) / 1e9);
	return ret;
}

static int finish_comments(struct cpu *c, struct err *e)
{
	uint64_t taken = c->obj->bss->tallies[0].samples;
	double window = (double)(c->end_ns - c->start_ns) / 1e9;
	int ret;

	ret = prof_comment(c->prof, e, "window: %.3f s", window);
	if (!ret)
		ret = prof_comment(c->prof, e, "rate: %u Hz of each thread's CPU time",
				   c->o.cpu.hz);
	if (!ret)
		ret = prof_comment(c->prof, e, "hits: %llu samples, %.3f s of CPU time",
				   (unsigned long long)taken, (double)(taken * c->period_ns) / 1e9);
	if (!ret && c->charged_ns)
		ret = prof_comment(c->prof, e, "charged: %.3f s of CPU time by the kernel%s",
				   (double)c->charged_ns / 1e9,
				   c->s->target->became ? ", until its exec was noticed" : "");
	if (!ret && c->unclocked_ns)
		ret = prof_comment(c->prof, e,
				   "unclocked: %.2f s more were charged to the process than its "
				   "threads' clocks counted: none runs while threads are switched",
				   (double)c->unclocked_ns / 1e9);
	if (!ret)
		ret = comment_steps(c, e);
	return ret ? ret : unwind_rules_comment(&c->reports.rules, c->s, c->prof, e);
}

/*
 * The kernel stops the clocks of a thread before it switches to another one, starts that one's
 * clocks after the switch, and charges the time between to the threads. Where timers are
 * expensive, as on a virtual machine, that is some us a switch. It is reported when it is more
 * than the two readings may differ by. Source: prepare_task_switch and finish_task_switch in
 * kernel/sched/core.c.
 */
static uint64_t unclocked(const struct cpu *c, uint64_t end_ns)
{
	uint64_t proc = end_ns > c->charged_start_ns ? end_ns - c->charged_start_ns : 0;
	uint64_t may = c->charged_ns / 100 + UNCLOCKED_MAY_NS;

	if (!c->charged_start_known || proc <= c->charged_ns + may)
		return 0;
	return proc - c->charged_ns;
}

/*
 * A clock that is served late skips the steps that it missed, and where the thread was switched
 * out meanwhile nobody knows how many those were, if its count cannot be read. Each thread also ends in the
 * middle of a step; that part is no loss.
 */
static void count_missed(struct cpu *c)
{
	uint64_t due = c->charged_ns / c->period_ns;
	uint64_t taken = c->obj->bss->tallies[0].samples;
	uint64_t inside = 1 + c->obj->bss->threads_seen / c->steps + due / 50;

	inside += c->obj->bss->births_coarse;

	if (due > taken + inside)
		c->loss.n[LOSS_CLOCK_MISSED] += due - taken;
}

/*
 * The clocks are exact to the nanosecond. Where a thread had two of them, /proc is used, which is
 * exact to the tick; and where child processes may have clocks, whichever says less.
 */
static uint64_t charged(struct cpu *c)
{
	uint64_t ns = clocks_total_ns(&c->clocks), proc;

	if ((ns && !c->clocks.children) || target_cpu_ns(c->s->target, &proc, NULL))
		return ns;
	proc = proc > c->charged_start_ns ? proc - c->charged_start_ns : 0;
	return ns && ns < proc ? ns : proc;
}

static int cpu_stop(void *state, struct prof **out, struct err *e)
{
	struct cpu *c = state;
	uint64_t proc_ns = 0; /* read before the clocks stop, because stopping them takes time */
	int ret;

	if (target_cpu_ns(c->s->target, &proc_ns, NULL))
		proc_ns = 0;
	clocks_stop(&c->clocks);
	c->charged_ns = charged(c);
	c->unclocked_ns = unclocked(c, proc_ns);
	c->end_ns = now_ns();
	c->calm_ns += c->calm.is ? c->end_ns - c->calm_at_ns : 0;
	count_missed(c);
	c->loss.n[LOSS_THREADS_MISSED] += c->clocks.missed;
	ret = reports_drain(&c->reports, c->obj->maps.stacks, e);
	if (!ret)
		ret = finish_comments(c, e);
	if (ret)
		return ret;
	prof_set_time(c->prof, c->start_unix_ns, (int64_t)(c->end_ns - c->start_ns));
	reports_losses(&c->reports, &c->obj->bss->tallies[0], NULL, &c->loss);
	loss_merge(prof_loss(c->prof), &c->loss);
	stack_physical_fini(&c->ph);
	c->ph = (struct stack_physical){};
	*out = TAKE(c->prof);
	return 0;
}

const struct collector collector_cpu = {
	.kind = "cpu",
	.start = cpu_start,
	.fd = cpu_fd,
	.poll = cpu_poll,
	.tick = cpu_tick,
	.stop = cpu_stop,
	.free = cpu_free,
};
