/*
 * bpf/sched.bpf.c - where goroutines park and who wakes them: block and mutex profiles of a
 * program that keeps none.
 *
 * A park writes a time into a table. The wake-up finds it, computes the delay, decides by Go's
 * own rule whether the wait is a sample, and only then walks the stack of the goroutine that
 * waited, from its saved registers. A mutex is charged to the goroutine that unlocks it, whose
 * stack is the current one. Nothing is written in the target, so the runtime's own time stamps
 * (sudog.releasetime and acquiretime) are not set: they are kept in the table instead, and the
 * queues of a semaphore are read from the target.
 *
 * Of many targets the link is of a file, and the program finds whose hit it is by the process (sets.bpf.h).
 *
 * Sources: gopark, park_m and ready in runtime/proc.go; semacquire1, queue, dequeue and
 * semrelease1 in runtime/sema.go; blockevent, mutexevent and blocksampled in runtime/mprof.go; Go
 * 1.18 to 1.27.
 */
#define SLOTS GPB_CPU_TARGETS

#include "sets.bpf.h"
#include "go/sema.bpf.h"
#include "waits.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, GPB_TARGETS);
	__type(key, __u32);
	__type(value, struct gpb_sched);
} scheds SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, GPB_TARGETS);
	__type(key, __u32);
	__type(value, struct gpb_sched_seen);
} seen SEC(".maps");

/* Many targets share the table of goroutines by a quota: how many each has in it, and all. User space takes out those of targets that have gone. */
struct gpb_quota waits_quota = {};
__u64 waits_of[SLOTS] = {}, waits_all = 0;

/*
 * Waits that began before this time and still last are counted by user space: it has seen them in
 * enough looks from outside.
 */
volatile __u64 sched_counted[SLOTS] = {};

/* What every hit needs. */
struct hit {
	struct gpb_target *t;
	struct gpb_sched *c;
	struct gpb_sched_seen *n;
	struct moment at;
	__u32 slot; /* with its generation */
#ifndef GPB_OLD
	__u32 index; /* as index_of() has it */
#endif
	__u32 open; /* which of open_for is its own: of many targets its set */
	int chance; /* GPB_CHANCE_* of a wait that begins now; all bits when there are no windows */
};

/*
 * The target's index in tables by slot. Old kernels count the stacks of all functions that call each other, and have no
 * room left for it; where it is kept, the verifier has half as many instructions to look at.
 */
static __always_inline __u32 index_of(const struct hit *h)
{
#ifdef GPB_OLD
	return h->slot & (SLOTS - 1);
#else
	return h->index;
#endif
}

static __always_inline int regabi_of(const struct hit *h)
{
	return h->t->flags & GPB_TARGET_REGABI;
}

/* The later of two times, without a branch: each way of one would be verified up to the end. */
static __always_inline __u64 later(__u64 a, __u64 b)
{
	__u64 sooner = (b - a) >> 63; /* b is */

	barrier_var(sooner);
	return b + (a - b) * sooner;
}

/*
 * Which waits that begin now can be counted; it accounts for the target's own time. A global function: verified once,
 * and its frame is not part of those that call each other here, which on 6.1 have no room left.
 */
ONCE_CALLED __u64 chance_of(const struct gpb_sched *c, struct gpb_sched_seen *n, __u64 known_from,
			    __u64 now, __u64 open)
{
	__u64 chance = GPB_CHANCE_OWN | GPB_CHANCE_WALL;

	if (!c || !n)
		return 0;
	if (c->terms.own.ns && !own_time_is_left(&n->clock, &c->terms.own, c->terms.own_share,
						 c->terms.short_ns, known_from, now))
		chance = GPB_CHANCE_WALL;
	if (!is_open(open, GPB_OPEN_BEGIN) ||
	    (c->terms.own.ns && now - known_from >= c->terms.begin_ns))
		chance = 0;
	return chance;
}

static __always_inline int hit_init(struct hit *h, struct pt_regs *ctx, __u64 cookie)
{
#ifdef GPB_OLD
	__u32 at, *index = &at;
#else
	__u32 *index = &h->index;
#endif

	if (!(cookie & GPB_COOKIE_ENTRY) && stack_will_grow(ctx))
		return 0;
	if (!slot_of_hit(cookie, &h->slot, index))
		return 0;
	h->open = open_of(h->slot);
	h->t = bpf_map_lookup_elem(&targets, index);
	h->c = bpf_map_lookup_elem(&scheds, index);
	h->n = bpf_map_lookup_elem(&seen, index);
	if (!h->t || !h->c || !h->n || !h->c->kinds)
		return 0;
	/* Between an exec and the moment that user space hears of it. */
	if (many_targets && !same_program(h->t))
		return 0;
	if (!hit_begins(&h->at, &h->n->spent, h->open, cookie))
		return 0;
	if (many_targets)
		h->at.known_from = later(h->at.known_from, h->c->from);
	h->chance = chance_of(h->c, h->n, h->at.known_from, h->at.now, h->open);
	return 1;
}

/* The current goroutine, g0 on a system stack. */
static __always_inline __u64 hit_g(const struct hit *h, struct pt_regs *ctx)
{
	return probed_g(h->t, ctx, regabi_of(h));
}

/* Remembers this CPU's own time for undisturbed(). */
static __always_inline void hit_mark(const struct hit *h, struct gpb_mark *m)
{
	m->own = h->n->clock.own;
	m->cpu = bpf_get_smp_processor_id();
}

/*
 * In windows: how long a wait would have been without probes. The goroutine that ends it runs on
 * this CPU, which probes have slowed down (overhead dilation). So the wait is shortened by what
 * the clock of the target's own time says or, when it began on another CPU, by this CPU's mean
 * over the window. A long wait is paced by something else, a timer or the outside world, and is
 * not slowed down.
 */
static __always_inline __u64 undisturbed(const struct gpb_sched *c, const struct gpb_sched_seen *n,
					 const struct gpb_mark *began, __u64 known_from, __u64 now,
					 __u64 delay)
{
	__u64 own = n->clock.own, passed = now - known_from;

	if (!c->terms.own.ns || delay >= GPB_LONG_NS)
		return delay;
	if (began->cpu == bpf_get_smp_processor_id())
		own = own > began->own ? own - began->own : 0;
	else
		own = delay * own / (passed ?: 1);
	return own < delay ? own : delay;
}

/* @length: GPB_WAIT_SHORT or _LONG. */
static __always_inline int hit_counts(const struct hit *h, const struct gpb_mark *began,
				      __u64 delay, __u64 *length)
{
	*length = h->c->terms.own.ns && delay >= GPB_LONG_NS;
	return began->chance & (*length ? GPB_CHANCE_WALL : GPB_CHANCE_OWN);
}

/* Accounts for the time since @began that a sample took beyond an ordinary hit. */
static __always_inline void sampled_since(const struct hit *h, __u64 began)
{
	set_walk(h->open, hit_sampled(&h->at, &h->n->spent, &h->n->clock, began));
}

/* It has no room on the stack, which 6.1 counts in steps of 32 bytes. */
static const struct gpb_wait no_wait = {};

static __always_inline void wait_put(__u32 index, __u64 key)
{
	__u64 *mine = &waits_of[index & (SLOTS - 1)];

	if (many_targets && !gpb_quota_allows(&waits_quota, now_is(mine), now_is(&waits_all), 1))
		return;
	if (bpf_map_update_elem(&waits, &key, &no_wait, BPF_NOEXIST) || !many_targets)
		return;
	count(mine, 1);
	count(&waits_all, 1);
}

/* @slot: with its generation. */
static __always_inline struct gpb_wait *wait_make(__u32 index, __u32 slot, __u64 g)
{
	__u64 key = goroutine_key(index, g);
	struct gpb_wait *w = bpf_map_lookup_elem(&waits, &key);

	if (w)
		return w;
	wait_put(index, key);
	w = bpf_map_lookup_elem(&waits, &key);
	if (!w)
		lose(slot, GPB_LOSS_WAITS);
	return w;
}

/* ---- samples ---- */

static __always_inline void count_seen(const struct hit *h, __u32 kind, int sampled)
{
	count(&h->n->ended[kind], 1);
	if (sampled)
		count(&h->n->sampled[kind], 1);
}

static __always_inline struct scratch *sample_begin(const struct hit *h, __u32 kind, __u32 reason,
						    const struct weight *w, __u64 length)
{
	struct scratch *sc;

	if (!same_program(h->t))
		return NULL;
	sc = scratch_claim(h->slot);
	if (!sc)
		return NULL;
	stack_init(&sc->raw.stack, h->slot);
	sc->raw.stack.count = w->count;
	sc->raw.stack.delay = w->delay;
	sc->raw.stack.wait.kind = kind;
	sc->raw.stack.wait.reason = reason;
	sc->raw.stack.wait.length = length;
	return sc;
}

/* Samples a goroutine that is parked. */
static __always_inline void sample_parked(const struct hit *h, __u64 g, __u32 kind, __u32 reason,
					  const struct weight *weight, __u64 length)
{
	struct scratch *sc = sample_begin(h, kind, reason, weight, length);

	if (!sc)
		return;
	walk_parked(&sc->walk, &sc->raw.stack, h->t, g);
	walk_parked_by_rules(&sc->walk, &sc->raw.stack, h->t, g);
	sample_identity(sc, h->t, g);
	sample_send(sc);
	scratch_release(sc);
}

/*
 * Walks the current goroutine, in a function whose frame is not set up yet; the stack is to be
 * sent.
 */
static __always_inline void walk_current(struct scratch *sc, struct pt_regs *ctx,
					 const struct hit *h)
{
	struct gpb_stack *s = &sc->raw.stack;
	struct regs r = regs_of(ctx);
	__u64 g = hit_g(h, ctx);

	walk_user(&sc->walk, s, h->t, g, &r, 0);
	if (needs_rules(h->t, s, &sc->walk)) {
		s->flags = 0;
		walk_interrupted(&sc->walk, s, h->t, g, &r);
	}
	sample_identity(sc, h->t, g);
}

/* ---- semaphores ---- */

static __noinline int at_sema(struct pt_regs *ctx, struct hit *h)
{
	struct gpb_wait *w;
	__u64 flags;

	w = wait_make(index_of(h), h->slot, hit_g(h, ctx));
	if (!w)
		return 0;
	flags = go_arg(ctx, 2, regabi_of(h)) & (GPB_SEMA_BLOCK | GPB_SEMA_MUTEX);
	w->asked = bpf_ktime_get_ns();
	w->acquire = flags & GPB_SEMA_MUTEX ? w->asked : 0;
	if (go_arg(ctx, 1, regabi_of(h)) & 0xff)
		flags |= GPB_SEMA_LIFO;
	w->sema = flags | GPB_SEMA_FRESH;
	w->began.chance = h->chance;
	hit_mark(h, &w->began);
	w->charged = w->began;
	return 0;
}

/* Makes sure that a goroutine in the queue of a mutex is known, which may have come before this window. */
ONCE_CALLED int wait_in_queue(const struct gpb_sched *c, __u32 slot, __u64 sudog, __u64 known_from)
{
	struct gpb_wait *w;

	if (!c || !sudog)
		return 0;
	w = wait_make(slot & (SLOTS - 1), slot, field_u64(sudog, c->sudog_g));
	if (!w || w->acquire >= known_from)
		return 0;
	w->acquire = known_from;
	w->charged.chance = 0;
	w->sema &= ~GPB_SEMA_INHERITS;
	return 0;
}

/*
 * In windows: whoever waits in the queue of a mutex since before the window has waited since it opened, for
 * all that is known. With this unlock that changes, as the runtime makes its stamps new. 0: nothing is known of
 * this queue, or it is no mutex.
 */
static __always_inline int queue_opens(const struct gpb_sched *c, __u32 slot, __u64 head,
				       __u64 known_from, struct line *l)
{
	__u32 reason;

	if (!c->terms.own.ns)
		return l->acquire != 0;
	if (!l->acquire) {
		reason = field_u32(field_u64(head, c->sudog_g), c->g_waitreason) & 0xff;
		if (reason >= 64 || !(c->mutex_reasons >> reason & 1))
			return 0;
		l->acquire = known_from;
	}
	wait_in_queue(c, slot, l->link, known_from);
	wait_in_queue(c, slot, l->tail, known_from);
	l->late = queue_late(slot & (SLOTS - 1), c, l);
	return 1;
}

/* What is to be known of an unlock, but for its stack. */
struct unlock {
	__u64 root, addr; /* of the semaphore */
	__u64 known_from;
	__u32 chance; /* GPB_CHANCE_* of what begins now */
	/* told: */
	__u32 counts;	/* it does, */
	__u32 length;	/* as in gpb_stack.wait */
	__u32 followed; /* a goroutine waits behind the one that is woken */
	__u64 delay;
};

/*
 * In windows, a contention counts if it began where beginning waits count, and ended before the last of these must
 * have. One that began before the window counts in the last part of that time, which is as long: then each
 * has the same chance, however long it is.
 */
static __always_inline void unlock_counts(const struct gpb_sched *c, struct gpb_sched_seen *n,
					  struct unlock *u, const struct queue *q, __u64 now)
{
	__u64 delay = now - q->line.acquire, passed = now - u->known_from;

	if (!c->terms.own.ns) {
		u->counts = 1;
		return;
	}
	if (passed >= c->terms.begin_ns + c->terms.last_ns)
		return;
	if (q->line.acquire > u->known_from) {
		u->length = delay >= GPB_LONG_NS;
		u->counts = q->mark.chance & (u->length ? GPB_CHANCE_WALL : GPB_CHANCE_OWN);
	} else if (passed >= c->terms.last_ns) {
		u->length = u->counts = 1;
		count(&n->cut, 1);
	}
}

/*
 * Charges an unlock, and makes the stamps of the queue new. A global function: what follows, which walks a
 * stack, would be verified for each way through it, and would have its frame below its own.
 */
ONCE_CALLED int unlock_charge(const struct gpb_sched *c, struct gpb_sched_seen *n, __u32 slot,
			      struct unlock *u)
{
	struct queue q;
	__u64 head, now;

	if (!c || !n || !u)
		return 0;
	head = sema_head(c, u->root, u->addr);
	if (!head)
		return 0;
	queue_look(slot & (SLOTS - 1), c, head, u->known_from, &q);
	if (!queue_opens(c, slot, head, u->known_from, &q.line))
		return 0;
	queue_look_behind(slot & (SLOTS - 1), c, &q);
	now = bpf_ktime_get_ns();
	unlock_counts(c, n, u, &q, now);
	u->delay = queue_charge(&q, u->known_from, now);
	u->followed = q.line.link != 0;
	count(&n->charged_ns, u->delay);
	count(&n->waited_ns, line_waited(&q.line, now));
	u->delay = undisturbed(c, n, &q.mark, u->known_from, now, u->delay) ?: 1;
	queue_stamp(&q, now, n->clock.own, bpf_get_smp_processor_id(), (__u8)u->chance);
	return 0;
}

/* The stack of who unlocks becomes a sample. @began: when the unlock was charged. */
static __always_inline void sample_unlock(struct pt_regs *ctx, const struct hit *h,
					  const struct unlock *u, __u64 fraction, __u64 began)
{
	struct weight none = {};
	struct gpb_stack *have = NULL;
	struct scratch *sc = sample_begin(h, GPB_WAIT_MUTEX, 0, &none, u->length);
	__u64 delay = u->delay;
	int fresh, raw;

	if (!sc)
		return;
	walk_current(sc, ctx, h);
	raw = sc->raw.stack.flags & GPB_STACK_UNRULED;
	if (!raw)
		have = sample_entry(sc, &fresh);
	if (h->c->charge_all || !u->followed)
		delay += bpf_ktime_get_ns() - began;
	delay *= fraction;
	sample_flags(&sc->raw.stack);
	if (have) {
		sample_add(have, GPB_COUNT_ONE * fraction, delay);
	} else {
		sc->raw.stack.count = GPB_COUNT_ONE * fraction;
		sc->raw.stack.delay = delay;
		if (raw)
			sample_raw(sc);
		else
			sample_overflow(sc);
	}
	scratch_release(sc);
}

/*
 * The runtime looks at its clock after this probe. What the walk of a stack takes the waiting goroutines wait, too: the one
 * that is woken now, which is charged to this unlock, and those behind it, which the next unlock is charged with, as
 * their stamps are from before the walk. (Up to Go 1.21 it is charged with what the first of them waits, and all of the walk.)
 */
static __noinline int at_dequeue(struct pt_regs *ctx, struct hit *h)
{
	__u64 fraction = h->c->mutex_fraction ?: 1, began;
	struct unlock u = { .root = go_arg(ctx, 0, regabi_of(h)),
			    .addr = go_arg(ctx, 1, regabi_of(h)),
			    .known_from = h->at.known_from,
			    .chance = (__u32)h->chance };
	int sampled;

	if (!(h->c->kinds & (1 << GPB_WAIT_MUTEX)))
		return 0;
	unlock_charge(h->c, h->n, h->slot, &u);
	if (!u.counts)
		return 0;
	began = bpf_ktime_get_ns();
	sampled = fraction == 1 || random64() % fraction == 0;
	count_seen(h, GPB_WAIT_MUTEX, sampled);
	if (!sampled)
		return 0;
	sample_unlock(ctx, h, &u, fraction, began);
	sampled_since(h, began);
	return 0;
}

/* ---- parking and waking ---- */

/*
 * When a wait for a semaphore began: when the semaphore was asked for. A goroutine that was woken
 * and found it taken goes on waiting; Go counts that as one wait, until the last wake-up. 0: Go
 * does not count this wait.
 */
static __always_inline __u64 sema_since(struct gpb_wait *w, __u64 sema_reasons, __u64 now)
{
	int fresh = w->sema & GPB_SEMA_FRESH;

	w->queued = now;
	w->again = !fresh && (sema_reasons >> (w->reason & 63) & 1);
	w->sema &= ~GPB_SEMA_FRESH;
	if ((w->sema & GPB_SEMA_LIFO) && (w->sema & GPB_SEMA_MUTEX))
		w->sema |= GPB_SEMA_INHERITS;
	if (!(w->sema & GPB_SEMA_BLOCK))
		return 0;
	return w->again ? w->woken : w->asked;
}

/*
 * The probe is on park_m and not on gopark, because profile-guided builds copy gopark into its
 * callers; mcall takes the address of park_m. Here the goroutine's registers are saved.
 */
static __noinline int at_park(struct pt_regs *ctx, struct hit *h)
{
	__u64 g, reason, since;
	struct gpb_wait *w;
	__u32 number;
	int sema;

	if (h->chance & GPB_CHANCE_OWN)
		count(&h->n->parks, 1);
	count(&h->n->clock.parks, 1);
	g = go_arg(ctx, 0, regabi_of(h));
	number = field_u32(g, h->c->g_waitreason) & 0xff;
	reason = number < 64 ? 1ULL << number : 0;
	if (!(reason & h->c->reasons))
		return 0;
	since = bpf_ktime_get_ns();
	sema = (h->c->sema_reasons & reason) != 0;
	w = sema || !h->chance ? wait_of(index_of(h), g) : wait_make(index_of(h), h->slot, g);
	if (!w) /* it asked before we watched */
		return 0;
	if (sema) {
		since = sema_since(w, h->c->sema_reasons, since);
		if (w->asked < h->at.known_from || !w->began.chance)
			since = 0;
	} else {
		w->again = 0;
		w->began.chance = h->chance;
		if (h->chance)
			hit_mark(h, &w->began);
		else
			since = 0;
	}
	w->reason = number;
	w->since = since;
	return 0;
}

/* A wait has ended. Its true delay decides whether it is sampled. */
static __always_inline void ended(const struct hit *h, __u64 g, const struct gpb_wait *w, __u64 now)
{
	__u64 delay = now - w->since, own, length;
	struct weight weight;
	int sampled;

	if (!hit_counts(h, &w->began, delay, &length) ||
	    (h->c->terms.own.ns &&
	     looks_count(w->since, delay, sched_counted[index_of(h) & (SLOTS - 1)],
			 h->c->terms.looked_ns)))
		return;
	sampled = weigh(&weight, delay, h->c->block_rate);
	if (w->again)
		weight.count = 0; /* it was counted when it was first woken */
	else
		count_seen(h, GPB_WAIT_BLOCK, sampled);
	count(&h->n->capped_ns, capped(delay, h->c->block_rate));
	if (!sampled)
		return;
	own = undisturbed(h->c, h->n, &w->began, h->at.known_from, now, delay);
	if (own < delay)
		weight.delay = weight.delay * own / delay;
	sample_parked(h, g, GPB_WAIT_BLOCK, w->reason, &weight, length);
	sampled_since(h, now);
}

/* Did it park before we watched, for a reason that we count? */
static __always_inline void ended_early(const struct hit *h, __u64 g)
{
	__u32 reason = field_u32(g, h->c->g_waitreason) & 0xff;

	if (reason < 64 && (h->c->reasons & (1ULL << reason)))
		count(&h->n->begun_before, 1);
}

static __noinline int at_ready(struct pt_regs *ctx, struct hit *h)
{
	struct gpb_wait *w, was;
	__u64 g, now;

	g = go_arg(ctx, 0, regabi_of(h));
	w = wait_of(index_of(h), g);
	if (!w || !w->reason || (w->since && w->since < h->at.known_from)) {
		if (w)
			w->since = 0;
		ended_early(h, g);
		return 0;
	}
	now = bpf_ktime_get_ns();
	was = *w;
	w->since = 0;
	w->woken = now;
	hit_mark(h, &w->began);
	/* If a hit was missed, it may have parked for another reason meanwhile. */
	if (!was.since || was.since > now ||
	    (field_u32(g, h->c->g_waitreason) & 0xff) != was.reason)
		return 0;
	if (h->c->kinds & (1 << GPB_WAIT_BLOCK))
		ended(h, g, &was, now);
	return 0;
}

/* There is one program for all places, so that one link can hold all places of a file. */
SEC("uprobe")
int sched_probe(struct pt_regs *ctx)
{
	__u64 cookie;
	struct hit h;

	if (!uprobe_begin(ctx, &cookie) || !hit_init(&h, ctx, cookie))
		return 0;
	switch (cookie & GPB_COOKIE_KIND) {
	case GPB_AT_READY:
		return at_ready(ctx, &h);
	case GPB_AT_SEMA:
		return at_sema(ctx, &h);
	case GPB_AT_PARK:
		return at_park(ctx, &h);
	case GPB_AT_DEQUEUE:
		return at_dequeue(ctx, &h);
	}
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
