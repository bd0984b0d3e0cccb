/*
 * user/collect/goroutine/goroutine.c - goroutine profiles: the collector that reads them from memory.
 *
 * The profile is one look at all goroutines, taken while the program runs. It is taken at the end
 * of the window, or at its beginning when the program has gone by then or when the window is no
 * longer than a look. A look at the beginning also tells which goroutines have been waiting ever
 * since; the runtime itself knows that only from one GC to the next.
 *
 * Which goroutines count, and how deep their stacks go, is as in runtime/pprof. A goroutine that
 * runs has its registers in a thread, and nobody can read them without stopping it: it is counted
 * under the function that it began in, with "[running]" where the rest would be.
 */
#include "base/clock.h"
#include "collect/goroutine/goroutine_stack.h"
#include "collect/goroutine/goroutine_text.h"
#include "symbolize/subject_prof.h"

#include <time.h>

#include "base/hash.h"
#include "base/limits.h"
#include "collect/collect.h"
#include "go/runtime/rtgor.h"
#include "go/runtime/vars/rtvar.h"
#include "profile/profile.h"
#include "subject/verify.h"

enum { AGAIN_MIN_MS = 100, AGAIN_MAX_MS = 1000, AT_ONCE_MS = 100 };

struct gor {
	struct subject *s;
	struct rtgor_vars vars;
	bool text, held, brief;	    /* brief: the window is no longer than a look */
	struct prof *kept;	    /* the look at the start */
	uint64_t kept_ns, start_ns; /* when that look was, and when the first one was; monotonic */
	uint64_t took_ns;
	struct map waiting; /* goid -> what the goroutine looked like then */
};

/* One look. */
struct listing {
	struct gor *g;
	struct prof *p;
	struct gstacks k;
	struct map *note; /* where waiting goroutines are noted, or else: */
	const struct map *since;
	uint64_t now_ns, since_ns;
	uint64_t shown, running, waiting, timed, deeper, untold;
	VEC(struct prof_label) labels;
	VEC(uint32_t) locs;
};

static void gor_free(void *state)
{
	struct gor *g = state;

	if (!g)
		return;
	prof_free(g->kept);
	map_fini(&g->waiting);
	free(g);
}

static void gor_freep(struct gor **g)
{
	gor_free(*g);
}

/* ---- one goroutine ---- */

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory for the goroutines");
}

static int unwind(struct listing *l, const struct rtgor *g, enum unwind_end *end, struct err *e)
{
	struct unwind u = { .arch = gobin_info(l->g->s->bin)->arch,
			    .minor = l->g->vars.minor,
			    .pc = g->pc,
			    .sp = g->sp,
			    .syscall = g->syscall,
			    .stack = g->stack,
			    .n = g->nstack };
	int ret;

	l->k.stack.n = 0;
	*end = UNWIND_BROKEN;
	if (g->what != RTGOR_SAVED)
		return 0;
	ret = gstacks_unwind(&l->k, &u, end, e);
	if (!ret && *end == UNWIND_CUT && !g->cut)
		*end = UNWIND_BROKEN;
	return ret;
}

/*
 * As isSystemGoroutine(). For a goroutine that runs finalizers and whose stack we do not see, the
 * answer is no.
 */
static bool is_system(struct listing *l, const struct rtgor *g)
{
	switch (gstacks_origin(&l->k, g->startpc)) {
	case GORIGIN_USER:
		return false;
	case GORIGIN_SYSTEM:
		return true;
	case GORIGIN_FINALIZERS:
		return g->what == RTGOR_SAVED && !gstacks_in_finalizer(&l->k);
	case GORIGIN_CLEANUPS:
		return !g->cleanups;
	}
	return false;
}

static int fill_labels(struct listing *l, const struct rtgor *g, struct err *e)
{
	l->labels.n = 0;
	for (uint32_t i = 0; i < g->labels.n; i++) {
		const struct rtlabel *lab = &g->text->at.at[g->labels.first + i];
		struct prof_label *slot = vec_add(&l->labels, SIZE_MAX);

		if (!slot)
			return no_memory(e);
		slot->key = g->text->text.at + lab->key;
		slot->str = g->text->text.at + lab->value;
	}
	if (g->labels.cut)
		prof_loss(l->p)->n[LOSS_LABELS_CUT]++;
	return 0;
}

/*
 * What stands in place of a stack: "[running]", then the function that the goroutine began in.
 * Both have that function's address, because a location must have one.
 */
static int running_stack(struct listing *l, const struct rtgor *g, const uint32_t **locs, size_t *n,
			 struct err *e)
{
	struct prof_line line = { .func = "[running]", .file = "" };
	const uint32_t *entry;
	size_t nentry;
	int mapping, id, ret = gstacks_entry(&l->k, g->startpc, &entry, &nentry, e);

	if (ret)
		return ret;
	mapping = subject_mapping(l->g->s, l->p, g->startpc, e);
	if (mapping < 0)
		return mapping;
	id = prof_location(l->p, mapping, g->startpc, &line, 1, e);
	if (id < 0)
		return id;
	l->locs.n = 0;
	for (size_t i = 0; i <= nentry; i++) {
		uint32_t *slot = vec_add(&l->locs, SIZE_MAX);

		if (!slot)
			return no_memory(e);
		*slot = i ? entry[i - 1] : (uint32_t)id;
	}
	*locs = l->locs.at;
	*n = l->locs.n;
	return 0;
}

static int add_sample(struct listing *l, const struct rtgor *g, enum unwind_end end, struct err *e)
{
	struct loss *loss = prof_loss(l->p);
	int64_t one = 1;
	const uint32_t *locs;
	size_t n;
	bool cut = false;
	int ret;

	if (g->what == RTGOR_SAVED)
		ret = gstacks_locations(&l->k, &locs, &n, &cut, e);
	else
		ret = running_stack(l, g, &locs, &n, e);
	if (!ret)
		ret = fill_labels(l, g, e);
	if (ret)
		return ret;
	l->deeper += cut; /* Go's own profile does not have more of it either */
	loss->n[LOSS_STACKS_CUT] += end == UNWIND_CUT;
	loss->n[LOSS_STACKS_BROKEN] += g->what == RTGOR_SAVED && !cut && end == UNWIND_BROKEN;
	return prof_sample(l->p, locs, n, &one, l->labels.at, l->labels.n, e);
}

/* ---- how long it has waited ---- */

static bool waits(const struct rtgor *g)
{
	return g->what == RTGOR_SAVED &&
	       (g->status == GSTATUS_WAITING || g->status == GSTATUS_SYSCALL ||
		g->status == GSTATUS_LEAKED);
}

/* A fingerprint that is equal for a goroutine that has not moved. */
static uint64_t appearance(const struct rtgor *g)
{
	uint64_t v[] = { g->pc, g->sp, g->seq, g->waitreason, g->status == GSTATUS_SYSCALL };

	return hash_bytes(v, sizeof(v));
}

/* For how long it is known to have been waiting; 0: unknown. */
static uint64_t waited(struct listing *l, const struct rtgor *g)
{
	uint64_t then;

	if (!waits(g))
		return 0;
	if (l->note)
		/* when there is no memory it stays unknown */
		map_put(l->note, g->goid, appearance(g));
	if (!l->since || !map_get(l->since, g->goid, &then) || then != appearance(g))
		return 0;
	return l->since_ns;
}

static int take(void *arg, const struct rtgor *g, struct err *e)
{
	struct listing *l = arg;
	enum unwind_end end;
	uint64_t seen_ns;
	int ret = unwind(l, g, &end, e);

	if (ret)
		return ret;
	if (g->what == RTGOR_SAVED && end == UNWIND_BROKEN && !g->last)
		return -EAGAIN;
	if (is_system(l, g))
		return 0;
	seen_ns = waited(l, g);
	l->shown++;
	l->running += g->what == RTGOR_RUNNING;
	l->waiting += waits(g);
	l->timed += waits(g) && (g->waitsince || seen_ns);
	ret = add_sample(l, g, end, e);
	if (l->g->text && prof_ntext(l->p) > LIMIT_TEXT_LINES)
		l->untold++;
	else if (!ret && l->g->text)
		ret = goroutine_text(&l->k, g, end, l->now_ns, seen_ns, e);
	return ret;
}

/* ---- one look ---- */

static int add_header(struct listing *l, const struct rtgors_seen *seen, struct err *e)
{
	struct loss *loss = prof_loss(l->p);
	int ret;

	loss->n[LOSS_GOROUTINES_TORN] += seen->torn;
	loss->n[LOSS_GOROUTINES_SKIPPED] += seen->bad;
	ret = prof_comment(
		l->p, e,
		"window: one look while the program ran: its goroutines were read within "
		"%.3f ms, each as of one moment",
		(double)seen->spread_ns / 1e6);
	if (!ret)
		ret = prof_comment(l->p, e, "rate: every goroutine that is not the runtime's own");
	if (!ret)
		ret = prof_comment(l->p, e,
				   "hits: %llu goroutines; read again because they moved: %llu",
				   (unsigned long long)l->shown, (unsigned long long)seen->again);
	if (!ret && l->running)
		ret = prof_comment(l->p, e,
				   "running: %llu goroutines, whose stacks cannot be read without "
				   "stopping them: they are shown as [running], under the function "
				   "that each began in",
				   (unsigned long long)l->running);
	if (!ret && l->deeper)
		ret = prof_comment(l->p, e,
				   "deeper: %llu stacks have their first %zu calls, as in Go's "
				   "own profile",
				   (unsigned long long)l->deeper, gstacks_depth(&l->k));
	if (!ret && l->untold)
		ret = prof_comment(l->p, e,
				   "text: %llu goroutines have no block: it ends after %d lines",
				   (unsigned long long)l->untold, LIMIT_TEXT_LINES);
	if (!ret && l->waiting > l->timed)
		ret = prof_comment(
			l->p, e,
			"waiting: %llu goroutines; for %llu of them it is not known since "
			"when, because the runtime notes that only at a GC",
			(unsigned long long)l->waiting,
			(unsigned long long)(l->waiting - l->timed));
	return ret;
}

static int set_up(struct listing *l, struct err *e)
{
	struct gor *g = l->g;
	int ret = subject_prof(g->s, "read (runtime.allgs)", &l->p, e);

	if (!ret)
		ret = prof_set_period(l->p, "goroutine", "count", 1, e);
	if (!ret)
		ret = prof_add_type(l->p, "goroutine", "count", e);
	if (!ret)
		ret = gstacks_init(&l->k, g->s, l->p, e);
	if (ret)
		return ret;
	prof_set_time(l->p, (int64_t)clock_ns(CLOCK_REALTIME), 0);
	l->now_ns = now_ns();
	l->since_ns = l->now_ns - g->start_ns;
	return 0;
}

static void look_fini(struct listing *l)
{
	gstacks_fini(&l->k);
	prof_free(l->p);
	vec_fini(&l->labels);
	vec_fini(&l->locs);
}

/* @first: remember who waits; else use what is remembered. */
static int look_now(struct gor *g, bool first, struct prof **out, struct err *e)
{
	CLEANUP(look_fini)
	struct listing l = { .g = g,
			     .note = first && !g->brief ? &g->waiting : NULL,
			     .since = first ? NULL : &g->waiting };
	struct rtgors_seen seen = { 0 };
	int ret;

	ret = verify_structs(g->s, LAYOUT_USE_GOROUTINES, e);
	if (!ret)
		ret = set_up(&l, e);
	if (!ret)
		ret = rtgors_read(g->s->target->mem, &g->s->layout, &g->vars, take, &l, &seen, e);
	if (!ret)
		ret = target_alive(g->s->target, e);
	if (!ret)
		ret = add_header(&l, &seen, e);
	if (ret)
		return ret == -ESRCH ? ret :
				       err_wrap(e, ret, "pid %d: goroutines", g->s->target->pid);
	*out = TAKE(l.p);
	return 0;
}

/* ---- the collector ---- */

static int find(struct subject *s, enum rtvar v, uint64_t *addr, struct err *e)
{
	int ret = subject_rtvar(s, v, addr, e);

	return ret ? err_wrap(e, ret, "pid %d: goroutines", s->target->pid) : 0;
}

static int gor_start(struct subject *s, const struct collect_opts *o, void **state, struct err *e)
{
	CLEANUP(gor_freep) struct gor *g = calloc(1, sizeof(*g));
	int ret;

	if (!g)
		return no_memory(e);
	g->s = s;
	g->text = o->text;
	g->held = o->held;
	g->brief = o->window_ns && o->window_ns <= AT_ONCE_MS * NS_PER_MS;
	g->vars.minor = gobin_info(s->bin)->minor;
	ret = find(s, RTVAR_ALLGLEN, &g->vars.allglen, e);
	if (!ret)
		ret = find(s, RTVAR_ALLGPTR, &g->vars.allgptr, e);
	g->start_ns = g->kept_ns = now_ns();
	if (!ret && !g->held) /* a program that has not begun has no goroutines to see */
		ret = look_now(g, true, &g->kept, e);
	if (ret)
		return ret;
	g->took_ns = now_ns() - g->start_ns;
	say(o, "goroutine: source read: the target's memory, without stopping it");
	*state = TAKE(g);
	return 0;
}

static int gor_fd(void *state)
{
	(void)state;
	return -1;
}

static int gor_poll(void *state, struct err *e)
{
	(void)state;
	(void)e;
	return 0;
}

/*
 * A command takes its memory along when it ends. So each second, or less often where a look takes
 * long, a look is kept.
 */
static int gor_tick(void *state, struct err *e)
{
	CLEANUP(prof_freep) struct prof *p = NULL;
	struct gor *g = state;
	uint64_t before = now_ns(), wait = 10 * g->took_ns;

	(void)e;
	if (wait < AGAIN_MAX_MS * NS_PER_MS)
		wait = (g->kept ? AGAIN_MAX_MS : AGAIN_MIN_MS) * NS_PER_MS;
	if (!g->held || before - g->kept_ns < wait)
		return 0;
	if (!look_now(g, !g->kept, &p, NULL)) {
		if (!g->kept) /* from here on it is known who waits */
			g->start_ns = before;
		prof_free(g->kept);
		g->kept = TAKE(p);
	}
	g->kept_ns = before;
	g->took_ns = now_ns() - before;
	return 0;
}

static int hand_over_early(struct gor *g, struct prof **out, struct err *e)
{
	int ret = prof_comment(g->kept, e,
			       "state: as of %.3f s before the end of the window; the target went",
			       (double)(now_ns() - g->kept_ns) / 1e9);

	if (ret)
		return ret;
	*out = TAKE(g->kept);
	return 0;
}

static int gor_stop(void *state, struct prof **out, struct err *e)
{
	struct gor *g = state;
	uint64_t age = now_ns() - g->kept_ns;
	int ret;

	if (g->kept && (g->brief || age < AT_ONCE_MS * NS_PER_MS + g->took_ns)) {
		*out = TAKE(g->kept);
		return 0;
	}
	subject_refresh(g->s);
	ret = target_alive(g->s->target, e);
	if (!ret)
		ret = look_now(g, false, out, e);
	if (ret == -ESRCH && g->kept)
		return hand_over_early(g, out, e);
	return ret == -ESRCH && g->held ? err_set(e, ret,
						  "pid %d: the command ended before its goroutines "
						  "were looked at, %d ms after its start",
						  g->s->target->pid, AGAIN_MIN_MS) :
					  ret;
}

const struct collector collector_goroutine = {
	.kind = "goroutine",
	.start = gor_start,
	.fd = gor_fd,
	.poll = gor_poll,
	.tick = gor_tick,
	.stop = gor_stop,
	.free = gor_free,
};
