/*
 * bpf/wait.bpf.c - how long goroutines wait, for any reason: wait profiles.
 *
 * Every change of a goroutine's status goes through runtime.casgstatus: the goroutine parks
 * (running to waiting), is woken by anything, through ready or not (waiting to runnable), gets a
 * thread (runnable to running), is preempted, enters the kernel, returns, ends. So one probe sees
 * all of this, including netpoll, timers, the garbage collector, and a goroutine whose park was
 * refused. From Go 1.26 on a system call changes the status without that function, and is seen
 * where it is entered and left. When two goroutines switch by coroswitch (iter.Pull) quickly,
 * that is not seen: their waits for each other are missing.
 *
 * A status lasts from one change to the next. The longer it lasted, the larger is the probability
 * that it is a sample, and only for samples a stack is walked. Source: casgstatus,
 * reentersyscall, exitsyscall, park_m, ready, injectglist, execute, goschedImpl in
 * runtime/proc.go, Go 1.16 to 1.27.
 *
 * Of many targets the link is of a file, and the program finds whose hit it is by the process (sets.bpf.h).
 *
 * A profile-guided build copies casgstatus into some of its callers. These are then probed
 * themselves (user/go/sites/waitsite.h), and the function tells which status is set.
 */
#define SLOTS GPB_CPU_TARGETS

#include "sets.bpf.h"
#include "go/standing.bpf.h"
#include "waits.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GPB_TARGETS);
	__type(key, __u32);
	__type(value, struct gpb_waiting);
} waitings SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, GPB_TARGETS);
	__type(key, __u32);
	__type(value, struct gpb_waiting_seen);
} seen SEC(".maps");

/* goroutine_key() -> where that goroutine stands. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GPB_WAITS);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u64);
	__type(value, struct gpb_standing);
} standings SEC(".maps");

/* Many targets share that table by a quota: how many goroutines each has in it, and all. User space takes out those that have gone. */
struct gpb_quota standings_quota = {};
__u64 standings_of[SLOTS] = {}, standings_all = 0;

/*
 * Waits that began before this time and still last are counted by user space: it has seen them in
 * enough looks from outside.
 */
volatile __u64 wait_counted[SLOTS] = {};

/* @there: it is in the table already. Not 0: there is no room for it. */
static __always_inline long standing_put(__u32 index, __u64 key, const struct gpb_standing *at,
					 int there)
{
	__u64 *mine = &standings_of[index & (SLOTS - 1)];

	if (!many_targets || there)
		return bpf_map_update_elem(&standings, &key, at, BPF_ANY);
	if (!gpb_quota_allows(&standings_quota, now_is(mine), now_is(&standings_all), 1))
		return -1;
	if (bpf_map_update_elem(&standings, &key, at, BPF_NOEXIST))
		return bpf_map_lookup_elem(&standings, &key) ? 0 : -1;
	count(mine, 1);
	count(&standings_all, 1);
	return 0;
}

static __always_inline void standing_forget(__u32 index, __u64 key)
{
	if (bpf_map_delete_elem(&standings, &key) || !many_targets)
		return;
	count(&standings_of[index & (SLOTS - 1)], -1);
	count(&standings_all, -1);
}

/* The arguments of casgstatus. */
static __always_inline int change_args(struct change *c, struct pt_regs *ctx, int regabi)
{
	struct regs r = regs_of(ctx);
	__u64 args[2];

	if (regabi) {
		c->g = go_arg(ctx, 0, 1);
		c->old = go_arg(ctx, 1, 1);
		c->new = go_arg(ctx, 2, 1);
		return 1;
	}
	/*
	 * One register or the other is chosen here and not one place or the other in the context,
	 * because the verifier does not accept that.
	 */
	barrier_var(r.sp);
	barrier_var(r.bp);
	/*
	 * They are on the stack, above the return address: gp, and old and new status in one
	 * word.
	 */
	if (user_read(args, sizeof(args), c->framed ? framed_args(&r) : r.sp + 8))
		return 0;
	c->g = args[0];
	c->old = args[1];
	c->new = args[1] >> 32;
	return 1;
}

static __always_inline int change_init(struct change *c, struct pt_regs *ctx, __u64 cookie,
				       const struct gpb_target *t)
{
	int regabi = t->flags & GPB_TARGET_REGABI;

	c->now = bpf_ktime_get_ns();
	c->framed = !!(cookie & GPB_COOKIE_FRAMED);
	c->old = (cookie >> GPB_COOKIE_OLD_SHIFT) & 15;
	c->new = (cookie >> GPB_COOKIE_NEW_SHIFT) & 15;
	switch (cookie & GPB_COOKIE_KIND) {
	case GPB_STATUS_ARGS:
		return change_args(c, ctx, regabi);
	case GPB_STATUS_ARG0:
		c->g = go_arg(ctx, 0, regabi);
		return 1;
	case GPB_STATUS_CURRENT:
		c->g = probed_g(t, ctx, regabi);
		return 1;
	}
	return 0;
}

/* ---- stacks ---- */

/* Does this thread run the goroutine, perhaps on the system stack? */
static __always_inline int is_current(const struct gpb_target *t, __u64 current, __u64 g)
{
	return current == g || field_u64(field_u64(current, t->g_m), t->m_curg) == g;
}

/* As needs_rules(), also where the goroutine's stack is the second segment. */
static __always_inline int here_needs_rules(const struct gpb_target *t, const struct gpb_stack *s,
					    const struct walk *w)
{
	const struct gpb_image *img;
	__u32 last = w->n - 1;

	if (stale_fp(t))
		return 1;
	if (last >= GPB_MAX_PCS)
		return 0;
	img = image_at(t, s->pc[last]);
	return within(s->pc[last], img->callback_lo, img->callback_hi);
}

/* Walks a goroutine whose thread comes back from the kernel, or from the system stack. */
static __always_inline void walk_here(struct pt_regs *ctx, struct scratch *sc,
				      const struct gpb_target *t, const struct change *c,
				      __u64 current)
{
	struct gpb_stack *s = &sc->raw.stack;
	struct regs r = regs_of(ctx);

	walk_user(&sc->walk, s, t, current, &r, c->framed ? framed_delta(&r) : 0);
	if (here_needs_rules(t, s, &sc->walk)) {
		s->flags = 0;
		s->nfirst = s->nsecond = 0;
		walk_interrupted(&sc->walk, s, t, current, &r);
	}
}

static __always_inline void walk_who(struct pt_regs *ctx, struct scratch *sc,
				     const struct gpb_target *t, const struct change *c,
				     const struct gpb_standing *was)
{
	struct gpb_stack *s = &sc->raw.stack;
	__u64 current = probed_g(t, ctx, t->flags & GPB_TARGET_REGABI);
	int here = is_current(t, current, c->g);

	if (c->new == GPB_G_RUNNING && c->old != GPB_G_RUNNABLE &&here) {
		walk_here(ctx, sc, t, c, current);
	} else if (c->old == GPB_G_RUNNABLE && was->from == GPB_G_DEAD) {
		walk_fresh(&sc->walk, s, t, c->g);
	} else if (c->old == GPB_G_RUNNABLE && was->from != GPB_G_WAITING) {
		walk_saved(&sc->walk, s, t, c->g);
	} else {
		walk_parked(&sc->walk, s, t, c->g);
		walk_parked_by_rules(&sc->walk, s, t, c->g);
	}
}

/*
 * @n has a place for each status up to GPB_G_WAITING. Linux 6.1 knows the bound of @status only where
 * it is compared as 64 bits, just before it is used.
 */
static __always_inline void count_of(__u64 *n, __u64 status)
{
	barrier_var(status);
	if (status <= GPB_G_WAITING)
		count(n + status, 1);
}

/* ---- samples ---- */

/* What every hit needs. */
struct hit {
	struct gpb_target *t;
	struct gpb_waiting *cfg;
	struct gpb_waiting_seen *n;
	struct moment at;
	__u64 cookie;
	__u32 index; /* of the target, in tables by slot */
	__u32 open;  /* which of open_for is its own */
	int chance;  /* GPB_CHANCE_* of what begins now; all bits when there are no windows */
	int windows;
};

static __always_inline void sample(struct pt_regs *ctx, const struct hit *h, const struct change *c,
				   const struct gpb_standing *was, const struct weight *weight,
				   __u64 length)
{
	struct scratch *sc;
	struct gpb_stack *s;

	if (!same_program(h->t))
		return;
	sc = scratch_claim(c->slot);
	if (!sc)
		return;
	s = &sc->raw.stack;
	stack_init(s, c->slot);
	s->count = weight->count;
	s->delay = weight->delay;
	s->wait.kind = c->old;
	s->wait.length = length;
	/*
	 * g.waitreason is not reset when the wait ends, and some versions of Go up to 1.19 set it
	 * after the status.
	 */
	if (c->old == GPB_G_WAITING)
		s->wait.reason = field_u32(c->g, h->cfg->g_waitreason);
	walk_who(ctx, sc, h->t, c, was);
	sample_identity(sc, h->t, c->g);
	sample_send(sc);
	scratch_release(sc);
	set_walk(h->open, hit_sampled(&h->at, &h->n->spent, &h->n->clock, c->now));
}

/* In windows: is the wait that ends now paced by a clock, or by the outside world? */
static __always_inline int by_clock(const struct hit *h, const struct change *c, __u64 delay)
{
	__u32 reason;

	if (!h->windows || delay >= GPB_LONG_NS)
		return h->windows;
	if (c->old != GPB_G_WAITING)
		return 0;
	reason = field_u32(c->g, h->cfg->g_waitreason) & 0xff;
	return reason < 64 && h->cfg->clocked >> reason & 1;
}

static __always_inline void ended(struct pt_regs *ctx, const struct hit *h, const struct change *c,
				  const struct gpb_standing *was, int clocked)
{
	__u64 delay = c->now - was->since, length = GPB_WAIT_SHORT;
	struct weight weight;
	__u32 old = c->old;
	int sampled;

	if (old > GPB_G_WAITING)
		return;
	if (was->paced || clocked)
		length = old == GPB_G_SYSCALL ? GPB_WAIT_CALL : GPB_WAIT_LONG;
	if (length != GPB_WAIT_CALL &&
	    (!(was->chance & (length ? GPB_CHANCE_WALL : GPB_CHANCE_OWN)) ||
	     (h->windows && old != GPB_G_SYSCALL &&
	      looks_count(was->since, delay, wait_counted[h->index & (SLOTS - 1)],
			  h->cfg->terms.looked_ns))))
		return;
	sampled = weigh(&weight, delay, h->cfg->rate);
	count_of(h->n->ended, old);
	count(&h->n->capped_ns, capped(delay, h->cfg->rate));
	if (!sampled)
		return;
	count_of(h->n->sampled, old);
	sample(ctx, h, c, was, &weight, length);
}

/*
 * Handles a goroutine that is met for the first time, so that it is not known when the state that
 * ends now began. In a window, it is known to have lasted long when the window has been open for
 * long enough.
 */
static __always_inline void met(struct pt_regs *ctx, const struct hit *h, const struct change *c,
				__u64 key, int there)
{
	int is_long = h->windows && c->now - h->at.known_from >= GPB_LONG_NS;
	int call = is_long && c->old == GPB_G_SYSCALL;
	struct gpb_standing at = standing_first(c), was = at;
	struct weight once = { GPB_COUNT_ONE, 0 };
	__u32 old = c->old;

	at.chance = h->chance;
	at.paced = is_long && c->new == GPB_G_RUNNABLE &&is_wait(old);
	if (is_wait(old) && old <= GPB_G_WAITING)
		count_of(h->n->begun_before, old);
	/* The end of a call may be seen twice, and counts once: standing_move(). */
	if (call)
		at.from = GPB_G_SYSCALL;
	if ((is_wait(c->new) || call) && standing_put(h->index, key, &at, there))
		lose(c->slot, GPB_LOSS_WAITS);
	if (!call)
		return;
	count_of(h->n->ended, old);
	count_of(h->n->sampled, old);
	was.from = GPB_G_RUNNING;
	sample(ctx, h, c, &was, &once, GPB_WAIT_CALL);
}

static __always_inline void unseen(const struct hit *h, enum standing_end end)
{
	count(&h->n->unseen, 1);
	if (end == STANDING_LOST)
		count(&h->n->lost, 1);
}

/* The own time begins to run when waits may begin. */
static __always_inline int chance_in_window(const struct hit *h)
{
	__u64 after = h->at.now - h->at.known_from, from = h->at.known_from;
	int left;

	from += after >= GPB_LONG_NS ? GPB_LONG_NS : 0;
	left = own_time_is_left(&h->n->clock, &h->cfg->terms.own, h->cfg->terms.own_share,
				h->cfg->terms.short_ns, from, h->at.now);
	if (!may_begin(after, h->cfg->terms.begin_ns))
		return 0;
	return left ? GPB_CHANCE_OWN | GPB_CHANCE_WALL : GPB_CHANCE_WALL;
}

static __always_inline int hit_init(struct hit *h, __u32 slot)
{
	h->open = open_of(slot);
	h->t = bpf_map_lookup_elem(&targets, &h->index);
	h->cfg = bpf_map_lookup_elem(&waitings, &h->index);
	h->n = bpf_map_lookup_elem(&seen, &h->index);
	if (!h->t || !h->cfg || !h->n || !h->cfg->rate)
		return 0;
	/* Between an exec and the moment that user space hears of it. */
	if (many_targets && !same_program(h->t))
		return 0;
	if (!hit_begins(&h->at, &h->n->spent, h->open, h->cookie))
		return 0;
	if (h->at.known_from < h->cfg->from)
		h->at.known_from = h->cfg->from;
	h->windows = h->cfg->terms.own.ns != 0;
	h->chance = is_open(h->open, GPB_OPEN_BEGIN) ? GPB_CHANCE_OWN | GPB_CHANCE_WALL : 0;
	if (h->windows)
		h->chance &= chance_in_window(h);
	return 1;
}

/* The runtime counts one in eight of these runs, all of them in casgstatus. */
static __always_inline void count_run(const struct hit *h, const struct change *c, int paced)
{
	if (c->new != GPB_G_RUNNING || (h->cookie & GPB_COOKIE_KIND) == GPB_STATUS_CURRENT)
		return;
	count(&h->n->clock.parks, 1);
	if (paced && h->chance)
		count(&h->n->paced_runs, 1);
	else if (!paced && (h->chance & GPB_CHANCE_OWN))
		count(&h->n->runs, 1);
}

SEC("uprobe")
int wait_status(struct pt_regs *ctx)
{
	struct gpb_standing *at, was;
	enum standing_end end;
	struct change c = {};
	int clocked = 0;
	struct hit h;
	__u64 key;

	if (!uprobe_begin(ctx, &h.cookie))
		return 0;
	if (!(h.cookie & GPB_COOKIE_ENTRY) && stack_will_grow(ctx))
		return 0;
	if (!slot_of_hit(h.cookie, &c.slot, &h.index))
		return 0;
	if (!hit_init(&h, c.slot) || !change_init(&c, ctx, h.cookie, h.t))
		return 0;
	key = goroutine_key(h.index, c.g);
	if (c.new == GPB_G_DEAD || c.new == GPB_G_DEADEXTRA) {
		standing_forget(h.index, key);
		return 0;
	}
	/* The stack of a goroutine that runs grows, which is no change of interest. */
	if (c.new > GPB_G_WAITING || c.old == GPB_G_COPYSTACK)
		return 0;
	at = bpf_map_lookup_elem(&standings, &key);
	if (!at || at->since < h.at.known_from) {
		count_run(&h, &c, 0);
		met(ctx, &h, &c, key, at != NULL);
		return 0;
	}
	end = standing_move(at, &c, &was);
	/* Otherwise it is the same change, seen a second time. */
	if (end != STANDING_NOTHING || was.status != c.new) {
		count_run(&h, &c, was.paced);
		clocked = end == STANDING_ENDED && by_clock(&h, &c, c.now - was.since);
		at->chance = h.chance;
		at->paced = clocked && c.new == GPB_G_RUNNABLE;
	}
	if (end == STANDING_ENDED)
		ended(ctx, &h, &c, &was, clocked);
	else if (end != STANDING_NOTHING)
		unseen(&h, end);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
