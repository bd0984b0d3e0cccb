/* user/collect/waits/wait/wait_window.c - waits of every kind: what is theirs alone of wait_engine.h. */
#include "collect/waits/wait/wait_window.h"

/* ---- system calls ---- */

static const char *func_at(struct wait_window *w, uint64_t pc, uint64_t *entry)
{
	const struct image *img;
	struct gofunc f;
	const char *name;

	if (subject_func(w->engine.s, pc, &f, &img))
		return NULL;
	name = gobin_func_name(img->bin, &f);
	*entry = f.entry + img->bias;
	return name ? name : "";
}

static bool leaves_call(const char *func)
{
	return !strcmp(func, "runtime.casgstatus") || !strncmp(func, "runtime.exitsyscall", 19);
}

/*
 * Looks find a system call where it enters the kernel, probes where it has left: that is one
 * function, but two lines. To make them one place, the line that was found first is used for
 * both.
 */
static void settle_call(void *arg, struct gpb_stack *st)
{
	struct wait_window *w = arg;
	size_t from = 0;
	uint64_t entry = 0, pc;
	const char *func = NULL;

	for (; from < st->nfirst; from++) {
		func = func_at(w, st->pc[from] - 1, &entry);
		if (!func || !leaves_call(func))
			break;
	}
	if (from == st->nfirst || !func)
		return;
	if (!map_get(&w->leaves, entry, &pc)) {
		pc = st->pc[from];
		map_put(&w->leaves, entry, pc); /* otherwise they remain two places */
	}
	st->nfirst = (uint16_t)(st->nfirst - from);
	memmove(st->pc, st->pc + from, (st->nfirst + (size_t)st->nsecond) * sizeof(st->pc[0]));
	st->pc[0] = pc;
}

/* ---- samples ---- */

static size_t whole_of(void *engine, const struct gpb_stack *st)
{
	const struct wait_engine *en = engine;
	const struct wait_window *w = en->arg;

	return w->by_runtime(en->s, st) ? WAIT_WHOLE_RUNTIME : WAIT_WHOLE_PROGRAM;
}

static bool parks(void *engine, const struct gpb_stack *st)
{
	(void)engine;
	return st->wait.kind == GPB_G_WAITING;
}

/* A wait that was long, or that a clock paces, ends in one of these (bpf/wait.bpf.c). */
static bool follows(void *engine, const struct gpb_stack *st)
{
	(void)engine;
	return st->wait.kind == GPB_G_RUNNABLE;
}

int wait_window_add(void *arg, const struct gpb_stack *st, struct err *e)
{
	struct wait_window *w = arg;
	struct gpb_stack call;

	if (st->wait.kind == GPB_G_SYSCALL) {
		call = *st;
		settle_call(w, &call);
		st = &call;
	}
	return wait_engine_add(&w->engine, st, st->wait.length, e);
}

/* ---- stretches ---- */

static struct wait_counts counts_of(const void *seen)
{
	const struct gpb_waiting_seen *n = seen;

	return (struct wait_counts){
		.spent = n->spent, .clock = n->clock, .runs = n->runs, .paced_runs = n->paced_runs
	};
}

static uint64_t since(const void *wait)
{
	const struct gpb_standing *at = wait;

	return at->status == GPB_G_RUNNING ? 0 : at->since;
}

static void seen_before(void *arg, const void *seen, double ns)
{
	const struct gpb_waiting_seen *n = seen;
	struct wait_window *w = arg;

	w->light = (struct fine_waits){ .capped_ns = (double)n->capped_ns, .ns = ns };
	for (int k = 0; k <= GPB_G_WAITING; k++)
		w->light.waits += (double)n->ended[k];
}

static void set_rates(void *arg, bool windows, bool choose)
{
	struct wait_window *w = arg;
	struct collect_opts *o = &w->engine.o;

	if (choose && o->wait.fine)
		o->wait.rate_ns = fine_wait_rate(&w->light, o->budget.ppm, o->wait.rate_ns);
	/* a window shows few waits, so all of them are samples */
	w->conf.rate = windows ? 1 : o->wait.rate_ns;
}

static double runs_in(void *arg, const struct wait_window_sum *sum)
{
	struct wait_window *w = arg;
	struct dilation *slow = &w->engine.slow;
	double runs = sum->runs * sum->weight;
	double paced = sum->paced_runs * sum->stratum_ns / sum->begin_ns;
	double pace = (runs + paced) / sum->stratum_ns;

	run_rates_window(&slow->rates, pace * sum->own_ns, sum->own_ns, sum->stratum_ns);
	/* Probes make the target slower, at most RUN_DILATED times. A window that saw still fewer runs than there
	 * were beside it lay before a storm or after it, and did not meet that pace. */
	if (RUN_DILATED * slow->at.least >= slow->at.beside)
		run_rates_met(&slow->rates, slow->at.beside);
	w->engine.paced += paced;
	return runs;
}

/* A change of a goroutine that ends no wait. */
static int hit_cost_of(void *arg, struct hit_cost *out, struct cost_probes **rest, struct err *e)
{
	struct wait_window *w = arg;
	const struct gpb_waiting conf = { .rate = 1,
					  .g_waitreason = -1,
					  .terms = wait_engine_endless() };

	return wait_engine_hit_cost(&w->engine, &conf,
				    GPB_STATUS_CURRENT |
					    (uint64_t)GPB_G_RUNNING << GPB_COOKIE_OLD_SHIFT |
					    (uint64_t)GPB_G_WAITING << GPB_COOKIE_NEW_SHIFT,
				    out, rest, e);
}

/* ---- estimates ---- */

static bool any_seen(const struct tally_entry *en)
{
	return en->count || en->counts.x > 0;
}

/* Did probes see a system call end there, short or long? */
static bool ends(const struct wait_window *w, const struct tally_entry *en)
{
	struct gpb_stack st;
	size_t at;

	if (any_seen(en))
		return true;
	memset(&st, 0, offsetof(struct gpb_stack, pc));
	memcpy(&st, en->st,
	       offsetof(struct gpb_stack, pc) +
		       ((size_t)en->st->nkernel + en->st->nfirst + en->st->nsecond) *
			       sizeof(st.pc[0]));
	st.wait.length = GPB_WAIT_CALL;
	return tally_has(&w->engine.tally, &st, &at) && any_seen(&w->engine.tally.entries.at[at]);
}

struct wait_estimate wait_window_estimate(const void *arg, size_t entry)
{
	const struct wait_window *w = arg;
	const struct tally_entry *en = &w->engine.tally.entries.at[entry];

	return wait_estimates_of(&w->engine, entry,
				 en->st->wait.kind == GPB_G_SYSCALL && ends(w, en));
}

struct wait_error wait_window_site(const void *arg, size_t site)
{
	const struct wait_window *w = arg;
	const struct wait_site_errors s = wait_estimates_site(&w->engine, site);
	double count = variance_plus(s.told.count, variance_plus(s.lacking, s.unmet));

	return (struct wait_error){
		.count = variance_plus(count, s.missed.count),
		.delay = variance_plus(s.told.delay, s.missed.delay),
	};
}

struct wait_error wait_window_whole(const struct wait_window *w)
{
	return wait_estimates_whole(&w->engine, WAIT_WHOLE_PROGRAM,
				    wait_estimates_told(&w->engine, WAIT_WHOLE_PROGRAM));
}

/* ---- life ---- */

void wait_window_init(struct wait_window *w,
		      bool (*by_runtime)(struct subject *s, const struct gpb_stack *st))
{
	static const struct wait_kind kind = {
		.name = "wait",
		.seen_words = sizeof(struct gpb_waiting_seen) / 8,
		.wait_bytes = sizeof(struct gpb_standing),
		.late_ns = GPB_LONG_NS,
		.sees_runs = true,
		.but = GPB_G_SYSCALL,
		.not_looked = TALLY_WHOLES,
		.add = wait_window_add,
		.counts = counts_of,
		.before = seen_before,
		.rates = set_rates,
		.runs = runs_in,
		.since = since,
		.hit_cost = hit_cost_of,
		.estimate = wait_window_estimate,
		.site = wait_window_site,
	};
	struct wait_engine *en = &w->engine;

	wait_engine_init(en, &kind, w, &w->conf, &w->conf.terms);
	en->tally.whole = whole_of;
	en->tally.parked = parks;
	en->tally.follows = follows;
	en->looked = (struct looks_conf){ .all = true, .settle = settle_call, .settle_arg = w };
	w->by_runtime = by_runtime;
}

void wait_window_fini(struct wait_window *w)
{
	wait_engine_fini(&w->engine);
	map_fini(&w->leaves);
}
