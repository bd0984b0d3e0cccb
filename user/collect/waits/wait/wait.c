/*
 * user/collect/waits/wait/wait.c - where goroutines wait, for any reason, and how long: every status except
 * running, from one change to the next (bpf/wait.bpf.c).
 *
 * A sample has the label "reason": Go's name for the wait, "syscall" (calls into C count as such)
 * or "runnable", which is waiting for a thread to run on. The runtime's own goroutines are left
 * out, as in Go's own goroutine profile.
 */
#include <math.h>
#include <time.h>

#include "base/clock.h"
#include "collect/collect.h"
#include "collect/waits/engine/wait_left.h"
#include "collect/waits/wait/wait_priv.h"
#include "go/runtime/waitreason.h"
#include "goprof_abi.h"
#include "probe/bpf.h"
#include "subject/verify.h"

_Static_assert(GPB_STATUS_ARGS == WAITSITE_ARGS + 1 && GPB_STATUS_ARG0 == WAITSITE_ARG0 + 1 &&
		       GPB_STATUS_CURRENT == WAITSITE_CURRENT + 1,
	       "the BPF side counts waitsite_who alike");

#define UNPLACED_SHARE 0.25 /* of all waits, by length */

/* ---- samples ---- */

static bool is_function(struct subject *s, uint64_t pc, const char *is)
{
	const char *name = subject_func_name(s, pc);

	return name && !strcmp(name, is);
}

static bool in_runtime(struct subject *s, uint64_t pc)
{
	const char *name = subject_func_name(s, pc);

	return name && (!strncmp(name, "runtime.", 8) || !strncmp(name, "runtime/internal/", 17) ||
			!strncmp(name, "internal/runtime/", 17));
}

/*
 * Does the goroutine belong to the runtime? It does when it began in the runtime, and does not
 * run code that a program gave it (finalizers, cleanups). A stack that was cut does not tell how
 * it began.
 */
static bool by_runtime(struct subject *s, const struct gpb_stack *st)
{
	size_t n = (size_t)st->nkernel + st->nfirst + st->nsecond;

	if ((st->flags & GPB_STACK_CUT) || !n)
		return false;
	if (n > 1 && is_function(s, st->pc[n - 1] - 1, "runtime.goexit"))
		n--;
	if (!wait_by_runtime(s, st->pc[n - 1] - 1))
		return false;
	for (size_t i = st->nkernel; i < n; i++)
		if (!in_runtime(s, st->pc[i] - 1))
			return false;
	return true;
}

static const char *reason_of(struct wait *w, const struct gpb_stack *st, char buf[32])
{
	switch (st->wait.kind) {
	case GPB_G_RUNNABLE:
		return "runnable";
	case GPB_G_SYSCALL:
		return "syscall";
	default:
		return wait_reason_text(gobin_info(w->s->bin)->minor, st->wait.reason, buf);
	}
}

static int add_stack(void *arg, const struct gpb_stack *st, const struct wait_estimate *est,
		     struct err *e)
{
	struct wait *w = arg;
	struct prof_label labels[GPB_MAX_LABELS + 2];
	size_t n = labelsets_of(&w->window.engine.reports->labels, st, GPB_COUNT_ONE, labels,
				&w->loss);
	char buf[32];

	for (size_t i = 0; i < n; i++) /* the program's own label may have that name, too */
		if (!strcmp(labels[i].key, "reason"))
			labels[i].key = "reason (label)";
	labels[n++] = (struct prof_label){ .key = "reason", .str = reason_of(w, st, buf) };
	return wait_prof_add(&w->out, st, est, labels, n, e);
}

/* ---- the window ---- */

struct wait_object wait_object_of(struct wait_bpf *o, bool multi)
{
	return (struct wait_object){
		.obj = o->obj,
		.probe = o->progs.wait_status,
		.ring = o->maps.ring,
		.rules = o->maps.unwind_rules,
		.targets = o->maps.targets,
		.stacks = o->maps.stacks,
		.scratches = o->maps.scratches,
		.settings = o->maps.waitings,
		.seen = o->maps.seen,
		.waits = o->maps.standings,
		.bss = o->maps.bss,
		.rounds = &o->bss->rounds,
		.open = o->bss->open_for,
		.counted = (volatile uint64_t *)o->bss->wait_counted,
		.losses = &o->bss->tallies[WAIT_SLOT],
		.multi = multi,
	};
}

int wait_object_open(struct wait_bpf **out, bool multi, uint32_t slots, bool many, struct err *e)
{
	struct wait_bpf *obj;
	int ret = bpf_open_probes(wait, &obj, many, e);

	if (ret)
		return ret;
	bpf_size_slots(slots, obj->maps.targets, obj->maps.waitings, obj->maps.seen);
	uprobes_prepare(obj->progs.wait_status, multi);
	*out = obj;
	return 0;
}

static int load(struct wait *w, struct err *e)
{
	bool multi = uprobes_have_multi();
	int ret = wait_object_open(&w->obj, multi, WAIT_SLOT + 1, false, e);

	if (ret)
		return ret;
	/*
	 * A goroutine that is preempted can stand at any instruction, and until user space has seen
	 * that one its sample carries the stack's memory. Without a budget these come in bursts.
	 */
	if (!w->o->budget.ppm)
		bpf_map__set_max_entries(w->obj->maps.ring, 16 * GPB_RING_BYTES);
	ret = wait_bpf__load(w->obj);
	if (ret)
		return bpf_load_error(e, ret, NULL);
	w->window.engine.object = wait_object_of(w->obj, multi);
	return 0;
}

static uint64_t cookie_of(const struct waitsite *at)
{
	return (uint64_t)(at->who + 1) |
	       (at->site.kind == SITE_STACK_BRANCH ? 0 : GPB_COOKIE_ENTRY) |
	       (at->site.kind == SITE_FRAMED_BRANCH ? GPB_COOKIE_FRAMED : 0) |
	       (at->site.stepped ? GPB_COOKIE_STEPPED : 0) |
	       (uint64_t)at->old << GPB_COOKIE_OLD_SHIFT |
	       (uint64_t)at->new << GPB_COOKIE_NEW_SHIFT;
}

int wait_sites_in(const struct wait *w, size_t i, uint32_t of,
		  struct uprobe_site out[WAITSITES_MAX], struct err *e)
{
	const struct image *img = &w->s->images.at[i];
	struct waitsite at[WAITSITES_MAX];
	int n = waitsites_find(img->bin, w->s->layout.off[LAYOUT_g_atomicstatus], at, e);

	if (n == -ENOENT && i)
		return 0;
	if (n < 0)
		return n;
	for (int k = 0; k < n; k++)
		out[k] = (struct uprobe_site){ .file_off = at[k].site.file_off,
					       .addr = at[k].site.addr + img->bias,
					       .cookie = cookie_of(&at[k]) |
							 (uint64_t)of << GPB_COOKIE_SLOT_SHIFT };
	return n;
}

/* Attaches all sites of all images. */
static int attach_all(struct wait *w, struct err *e)
{
	struct uprobe_group groups[GPB_IMAGES];
	size_t ngroups = 0;

	w->nsites = 0;
	for (size_t i = 0; i < w->s->images.n; i++) {
		int n = wait_sites_in(w, i, WAIT_SLOT, w->sites[i], e);

		if (n < 0)
			return n;
		if (!n)
			continue;
		groups[ngroups] = (struct uprobe_group){ .prog = w->obj->progs.wait_status,
							 .sites = w->sites[i],
							 .n = (size_t)n };
		image_path(&w->s->images.at[i], groups[ngroups++].path);
		w->nsites += (size_t)n;
	}
	w->nimages = w->s->images.n;
	return probing_set(w->window.engine.probing, groups, ngroups, e);
}

/* Examines the images that were loaded since. */
static int attach(struct wait *w, struct err *e)
{
	int ret;

	if (w->nimages == w->s->images.n)
		return 0;
	ret = wait_engine_target(&w->window.engine, e);
	return ret ? ret : attach_all(w, e);
}

/*
 * One bit for each reason, in windows: probes that slow the target down do not make a sleep
 * longer.
 */
static uint64_t clocked(const struct wait *w)
{
	int v = waitreason_value(gobin_info(w->s->bin)->minor, "sleep");

	return v >= 0 && v < 64 ? 1ull << v : 0;
}

static int begin_prof(struct wait *w, struct err *e)
{
	int ret = wait_prof_begin(&w->out, w->s,
				  "probe (uprobes on changes of a goroutine's status)", HIDE_PARKED,
				  e);

	if (!ret)
		ret = prof_set_period(w->out.prof, "delay", "nanoseconds",
				      (int64_t)w->o->wait.rate_ns, e);
	return ret ? ret : prof_set_default_type(w->out.prof, "delay", e);
}

void wait_free(void *state)
{
	struct wait *w = state;

	if (!w)
		return;
	wait_window_fini(&w->window);
	if (!w->window.engine.shared)
		wait_bpf__destroy(w->obj);
	wait_prof_fini(&w->out);
	free(w);
}

static void wait_freep(struct wait **w)
{
	wait_free(*w);
}

static int prepare(struct wait *w, struct err *e)
{
	struct gpb_waiting *conf = &w->window.conf;
	int ret = verify_structs(w->s, LAYOUT_USE_WAITS, e);

	/* Who waits at the end matters less than the profile, so an error is only remembered. */
	w->who_ret = ret ? ret : verify_structs(w->s, LAYOUT_USE_GOROUTINES, &w->who_err);
	conf->rate = w->o->wait.rate_ns;
	conf->clocked = clocked(w);
	conf->g_waitreason = w->s->layout.off[LAYOUT_g_waitreason];
	return ret;
}

int wait_new(struct subject *s, const struct collect_opts *o, struct wait **out, struct err *e)
{
	CLEANUP(wait_freep) struct wait *w = calloc(1, sizeof(*w));
	int ret;

	if (!w)
		return err_set(e, -ENOMEM, "no memory");
	wait_window_init(&w->window, by_runtime);
	w->s = w->window.engine.s = s;
	w->o = &w->window.engine.o;
	w->window.engine.o = *o;
	if (!o->wait.rate_ns)
		w->window.engine.o.wait.rate_ns = 1;
	ret = prepare(w, e);
	if (!ret)
		*out = TAKE(w);
	return ret;
}

static int wait_start(struct subject *s, const struct collect_opts *o, void **state, struct err *e)
{
	CLEANUP(wait_freep) struct wait *w = NULL;
	int ret = wait_new(s, o, &w, e);

	if (!ret)
		ret = begin_prof(w, e);
	if (!ret)
		ret = load(w, e);
	if (!ret)
		ret = wait_engine_open(&w->window.engine, "wait", e);
	if (!ret)
		ret = attach_all(w, e);
	if (ret)
		return ret;
	say(o, "wait: %zu probes, all waits of %llu ns and longer, shorter ones in proportion%s",
	    w->nsites, (unsigned long long)w->o->wait.rate_ns, fine_words(o, o->wait.fine));
	*state = TAKE(w);
	return 0;
}

static int wait_fd(void *state)
{
	struct wait *w = state;

	return w->window.engine.ep;
}

static int wait_poll(void *state, struct err *e)
{
	struct wait *w = state;

	return wait_engine_poll(&w->window.engine, e);
}

static int wait_begin(void *state, struct err *e)
{
	struct wait *w = state;

	return probing_begin(w->window.engine.probing, e);
}

static int wait_tick(void *state, struct err *e)
{
	return attach(state, e);
}

/* ---- the end ---- */

/* Writes for example "chan receive 5, IO wait 7, syscall 1". */
static void left_text(struct wait *w, const struct wait_left *left, char *to, size_t size)
{
	int minor = gobin_info(w->s->bin)->minor;
	size_t at = 0;
	char buf[32];

	to[0] = 0;
	for (unsigned r = 0; r < WAIT_REASONS && at < size; r++)
		if (left->waiting[r])
			at += (size_t)snprintf(to + at, size - at, "%s%s %llu", at ? ", " : "",
					       wait_reason_text(minor, r, buf),
					       (unsigned long long)left->waiting[r]);
	if (left->syscall && at < size)
		at += (size_t)snprintf(to + at, size - at, "%ssyscall %llu", at ? ", " : "",
				       (unsigned long long)left->syscall);
	if (left->runnable && at < size)
		snprintf(to + at, size - at, "%srunnable %llu", at ? ", " : "",
			 (unsigned long long)left->runnable);
}

static int comment_left(struct wait *w, struct err *e)
{
	struct err why = w->who_err;
	struct wait_left left;
	char text[512];

	if (w->who_ret || wait_left(w->s, &left, &why))
		return prof_comment(w->out.prof, e,
				    "waiting: who still waited at the end is not known: %s",
				    why.msg);
	if (!left.sum)
		return 0;
	left_text(w, &left, text, sizeof(text));
	say(w->o, "wait: not counted: %llu goroutines that still waited at the end",
	    (unsigned long long)left.sum);
	return prof_comment(w->out.prof, e,
			    "waiting: %llu goroutines waited when the window ended (%s): what has "
			    "not ended is not counted",
			    (unsigned long long)left.sum, text);
}

static int comment_seen(struct wait *w, const struct gpb_waiting_seen *n, struct err *e)
{
	const __u64 *end = n->ended, *got = n->sampled, *begun_before = n->begun_before;
	size_t by_runtimes = wait_estimates_number(&w->window.engine, WAIT_WHOLE_RUNTIME);
	uint64_t before = begun_before[GPB_G_RUNNABLE] + begun_before[GPB_G_SYSCALL] +
			  begun_before[GPB_G_WAITING];
	int ret = prof_comment(
		w->out.prof, e,
		"hits: ended and sampled: %llu and %llu waits of parked goroutines, %llu and %llu "
		"system calls, %llu and %llu times runnable",
		(unsigned long long)end[GPB_G_WAITING], (unsigned long long)got[GPB_G_WAITING],
		(unsigned long long)end[GPB_G_SYSCALL], (unsigned long long)got[GPB_G_SYSCALL],
		(unsigned long long)end[GPB_G_RUNNABLE], (unsigned long long)got[GPB_G_RUNNABLE]);

	if (!ret && before && !w->window.engine.windowed)
		ret = prof_comment(w->out.prof, e,
				   "early: %llu waits ended that had begun before the window (or "
				   "where no probe was), and are not counted",
				   (unsigned long long)before);
	if (!ret && n->unseen)
		ret = prof_comment(w->out.prof, e,
				   "unseen: %llu changes between two that were seen (as by "
				   "iter.Pull, or by a GC that stops a goroutine)",
				   (unsigned long long)n->unseen);
	if (!ret && by_runtimes)
		ret = prof_comment(w->out.prof, e,
				   "the runtime's own goroutines are left out: %zu stacks",
				   by_runtimes);
	return ret;
}

/* How long waits lasted while there were windows. */
static int comment_looks(struct wait *w, struct err *e)
{
	const struct wait_engine *en = &w->window.engine;

	return wait_prof_looks(&w->out, &en->result, en->why.msg[0] ? en->why.msg : NULL,
			       "system calls: all counted by windows; looks do not tell one "
			       "from the next",
			       en->cut, e);
}

static int comment_unmet(struct wait *w, struct err *e)
{
	const struct dilation *d = &w->window.engine.slow;
	uint64_t runs = (uint64_t)dilation_unmet(d);

	w->loss.n[LOSS_RUNS_UNMET] += runs;
	return wait_prof_unmet(&w->out, (double)runs, dilation_maybe_yields(d), dilation_yields(d),
			       e);
}

static int comment_estimates(struct wait *w, struct err *e)
{
	const struct probing *p = w->window.engine.probing;
	int ret = probing_comment(p, w->out.prof, e);

	if (ret || !probing_windowed(p))
		return ret;
	ret = comment_looks(w, e);
	if (!ret)
		ret = comment_unmet(w, e);
	return ret ? ret : wait_prof_errors(&w->out, &w->whole, e);
}

static int comments(struct wait *w, struct err *e)
{
	const struct fine_rate rate = { w->o, "wait", w->o->wait.fine };
	double window = (double)(w->end - w->start) / 1e9;
	struct gpb_waiting_seen seen = {};
	const struct wait_engine *en = &w->window.engine;
	int ret = wait_engine_seen(en, &seen, e);

	w->loss.n[LOSS_WAITS_UNSEEN] += seen.lost;
	w->loss.n[LOSS_WAITS_UNKNOWN] += en->result.beyond;
	if (!ret)
		ret = prof_comment(w->out.prof, e, "window: %.3f s", window);
	if (!ret)
		ret = fine_comment(&rate, w->out.prof, e,
				   "waits of %llu ns and longer, shorter ones in proportion",
				   (unsigned long long)en->o.wait.rate_ns);
	if (!ret)
		ret = prof_set_period(w->out.prof, "delay", "nanoseconds",
				      (int64_t)en->o.wait.rate_ns, e);
	if (!ret)
		ret = comment_seen(w, &seen, e);
	if (!ret)
		ret = prof_comment(w->out.prof, e, "probes: %zu (%s)", w->nsites,
				   en->object.multi ? "one multi link" : "perf uprobes");
	if (!ret)
		ret = comment_estimates(w, e);
	return ret ? ret : comment_left(w, e);
}

/* From now on nothing counts. */
static int end(struct wait *w, struct err *e)
{
	int ret;

	w->end = now_ns();
	w->start = probing_since(w->window.engine.probing);
	if (!w->start)
		w->start = w->end;
	w->start_unix_ns = (int64_t)(clock_ns(CLOCK_REALTIME) - (w->end - w->start));
	ret = wait_engine_stop(&w->window.engine, e);
	wait_engine_end(&w->window.engine);
	return ret;
}

/*
 * Where goroutines end before anybody has read their stacks, their waits are in the errors that are stated, and in no
 * sample. That is a loss where it is more than a part of what the samples tell.
 */
static void count_unplaced(struct wait *w)
{
	double lost = w->window.engine.result.lost_ns, told = 0;

	for (size_t i = 0; i < prof_nsamples(w->out.prof); i++)
		told += (double)prof_sample_at(w->out.prof, i).values[1];
	if (lost > UNPLACED_SHARE * (lost + told))
		w->loss.n[LOSS_WAITS_UNPLACED] += (uint64_t)ceil(lost / 1e6);
}

int wait_finish(struct wait *w, struct err *e)
{
	int ret = w->out.prof ? 0 : begin_prof(w, e);

	if (ret)
		return ret;
	w->whole = wait_window_whole(&w->window);
	ret = wait_estimates_each(&w->window.engine, WAIT_WHOLE_PROGRAM, add_stack, w, &w->whole,
				  e);
	if (!ret)
		ret = comments(w, e);
	if (!ret)
		count_unplaced(w);
	if (!ret)
		prof_set_time(w->out.prof, w->start_unix_ns, (int64_t)(w->end - w->start));
	return ret;
}

static int wait_stop(void *state, struct prof **out, struct err *e)
{
	struct wait *w = state;
	int ret = end(w, e);

	if (!ret)
		ret = wait_finish(w, e);
	if (ret)
		return ret;
	wait_engine_losses(&w->window.engine, &w->loss);
	loss_merge(prof_loss(w->out.prof), &w->loss);
	*out = wait_prof_take(&w->out);
	return 0;
}

const struct collector collector_wait = {
	.kind = "wait",
	.start = wait_start,
	.fd = wait_fd,
	.poll = wait_poll,
	.tick = wait_tick,
	.begin = wait_begin,
	.stop = wait_stop,
	.free = wait_free,
};
