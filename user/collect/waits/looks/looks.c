/*
 * user/collect/waits/looks/looks.c - a pass over allgs at each look.
 *
 * Reading disturbs (observer effect): the target's CPU that next writes what we read must get the
 * cache line back, and writes a bit later. Of two goroutines that wake each other 1.6 million
 * times a second, the one looked at right after the other was seen to wait up to 30 % too often.
 * So goroutines that changed between the last looks are looked at one by one, in random order,
 * each after a random pause: at which moment the next one is met is random again. For the same
 * reason their status is read before their registers (parked_look_at_status).
 *
 * A look costs us less than a microsecond a goroutine, and the target nothing. Where looks would
 * take more than their share of a CPU, strata are longer.
 */
#include "collect/waits/looks/looks.h"

#include <sys/random.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/clock.h"
#include "base/random.h"
#include "collect/waits/looks/looks_priv.h"
#include "collect/waits/looks/parked.h"
#include "collect/waits/looks/wait_sites.h"
#include "go/runtime/rtgor.h"
#include "go/runtime/vars/rtvar.h"
#include "probe/bpf.h"
#include "probe/stacks/unwinding.h"
#include "sampling/looks/look_times.h"
#include "subject/verify.h"

enum {
	READ_TRIES = 3, /* attempts at a stack that moves */
	SHALLOW = 2048, /* bytes of a stack that are read at once; a waiting goroutine uses few */
	/* More busy ones are read together: two in a row rarely wait for each other. */
	APART_MAX = 32,
	REST_NS = 4000, /* mean pause, and limit of all pauses of a look */
	RESTS_NS = 32000,
};

#define BEGINS_NS \
	5000000000ull /* until then it is not known whether a list that is not there comes */

/* A thread of ours may read for us (base/loop/worker.h), and nothing else runs meanwhile. */
static uint64_t our_cpu(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* A timer would be late by more than this. */
static void spin(uint64_t ns)
{
	uint64_t end = now_ns() + ns;

	while (now_ns() < end)
		;
}

void looks_set_clock(struct looks *k, uint64_t (*now)(void), uint64_t (*cpu)(void),
		     void (*rest)(uint64_t))
{
	k->now = now;
	k->cpu = cpu;
	k->rest = rest;
}

void looks_set_seed(struct looks *k, uint64_t seed)
{
	k->random = seed;
}

uint64_t looks_due(const struct looks *k)
{
	return k->times.on && !k->gone ? k->times.due : 0;
}

void looks_set_allgs(struct looks *k, uint64_t addr)
{
	k->allgs = addr;
}

/* ---- begin and end ---- */

void looks_free(struct looks *k)
{
	if (!k)
		return;
	look_times_leave(&k->times);
	vec_fini(&k->at);
	vec_fini(&k->fresh);
	vec_fini(&k->busy);
	vec_fini(&k->later);
	looks_sums_fini(&k->sums);
	free(k->list);
	free(k->copies);
	parked_fini(&k->reader);
	if (k->fd >= 0)
		close(k->fd);
	free(k);
}

/* Plugins that were loaded since have text, too. */
static int fill_target(struct looks *k, struct err *e)
{
	int ret = bpf_target_fill(k->s, k->o, &k->t, e);

	if (ret)
		return ret;
	if (!k->c.labels)
		k->t.flags &= ~(uint32_t)GPB_TARGET_LABELS;
	k->nimages = k->s->images.n;
	return 0;
}

static int looks_init(struct looks *k, struct err *e)
{
	int ret = verify_structs(k->s, LAYOUT_USE_WAITS | LAYOUT_USE_GOROUTINES, e);

	if (!ret)
		ret = parked_init(&k->reader, k->s->target->mem, &k->s->layout,
				  subject_machine(k->s), e);
	if (!ret)
		ret = fill_target(k, e);
	if (ret)
		return ret;
	k->list = malloc(LOOKS_MAX * sizeof(*k->list));
	k->copies = malloc((size_t)PARKED_BATCH * SHALLOW);
	if (!k->list || !k->copies)
		return err_set(e, -ENOMEM, "no memory to look at goroutines");
	k->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	return k->fd < 0 ? err_sys(e, "timer") : 0;
}

static bool left_out(void *arg, const struct gpb_stack *st, uint8_t reason)
{
	const struct looks *k = arg;

	return k->c.semas >> (reason & 63) & 1 && !wait_site_asked(k->s, st);
}

int looks_new(struct subject *s, const struct collect_opts *o, const struct looks_conf *c,
	      struct looks **out, struct err *e)
{
	CLEANUP(looks_freep) struct looks *k = calloc(1, sizeof(*k));
	int ret;

	if (!k)
		return err_set(e, -ENOMEM, "no memory to look at goroutines");
	k->fd = -1;
	k->s = s;
	k->o = o;
	k->c = *c;
	k->sums.tally = c->tally;
	k->sums.left_out = left_out;
	k->sums.arg = k;
	k->sums.reasons_apart = c->apart;
	k->sums.room = c->room;
	k->sums.room_arg = c->room_arg;
	if (!o->labels)
		k->c.labels = NULL;
	looks_set_clock(k, now_ns, our_cpu, spin);
	if (getrandom(&k->random, sizeof(k->random), GRND_NONBLOCK) < 0)
		k->random = k->now();
	ret = looks_init(k, e);
	if (ret)
		return ret;
	look_times_join(&k->times, c->pair);
	*out = TAKE(k);
	return 0;
}

static int find_allgs(struct looks *k, struct err *e)
{
	uint64_t addr;
	int ret = k->allgs ? 0 : rtvar_find(k->s->bin, RTVAR_ALLGS, &addr, e);

	if (!ret && !k->allgs)
		k->allgs = addr + k->s->bias;
	return ret;
}

/* ---- waits ---- */

/* What was there at the first look counts if no other one sees it: brief(). */
static void saw(struct looks *k, struct seen *g, double ns)
{
	bool counts = g->entry != LOOKS_NOT_COUNTED;

	if (counts && g->begun_before && g->looks == 1)
		looks_sums_unsaw(&k->sums, g->entry, g->ns);
	else if (counts && (!g->begun_before || !g->looks))
		looks_sums_saw(&k->sums, g->entry, ns);
	g->looks++;
	g->ns += ns;
}

static uint64_t between_looks(const struct looks *k)
{
	return k->looked ? k->looked + (k->at_ns - k->looked) / 2 : k->at_ns;
}

/*
 * A wait that no other look saw. At the first look, or the last one, it is taken for one that began after looks did, or ended before
 * they do: it is shorter than about the time between two. Without these, where waits are much shorter than that, the
 * strata of two looks were missing, which is 8 % of 24.
 */
static bool brief(const struct seen *g)
{
	return g->looks == 1;
}

static void unsure(struct looks *k, const struct seen *g, uint64_t *number)
{
	++*number;
	if (g->begun_before && g->looks == 1)
		looks_sums_unsaw(&k->sums, g->entry, g->ns);
	looks_sums_unsure(&k->sums, g->entry, g->ns);
}

/* It ended about at @end. */
static void wait_over(struct looks *k, struct seen *g, uint64_t end)
{
	uint64_t length = g->looks >= LOOKS_COUNTS ? end - g->since : 0;

	if (g->was.status == GSTATUS_SYSCALL)
		length = 0;
	g->waits = false;
	if (g->entry == LOOKS_NOT_COUNTED)
		return;
	if (g->known)
		looks_sums_whole(&k->sums, g->entry, g->ns, (double)(end - g->since));
	else if (!g->begun_before || brief(g))
		looks_sums_over(&k->sums, g->entry, g->ns, (double)length);
	else
		unsure(k, g, &k->sum.begun_before);
}

/* @what: parked_for() of the wait. */
static void set_wait(const struct looks *k, uint16_t what, struct gpb_stack *st)
{
	st->wait.kind = k->c.all ? (uint8_t)(what >> 8) : GPB_WAIT_BLOCK;
	st->wait.reason = (uint8_t)what;
}

/* Gives up the strata that are owed to waits whose stack was never found. */
static void forget(struct looks *k, struct found *f)
{
	struct gpb_stack none = {};

	set_wait(k, f->what, &none);
	looks_sums_lost(&k->sums, &none, f->owed_ns);
	k->sum.lost_ns += f->owed_ns;
	f->owed_ns = 0;
}

static struct found *found_of(struct looks *k, struct seen *g)
{
	uint16_t what = parked_for(&g->was);
	struct found *f;

	for (size_t i = 0; i < FOUND; i++)
		if (g->found[i].what == what && g->found[i].goid == g->was.goid)
			return &g->found[i];
	f = &g->found[g->turn++ % FOUND];
	forget(k, f);
	*f = (struct found){ .goid = g->was.goid, .what = what, .entry = LOOKS_UNFOUND };
	return f;
}

/* When a wait that is seen at a phase's first look began; 0: it is not known. */
static uint64_t known_since(const struct looks *k, const struct seen *g)
{
	uint64_t since = 0;

	if (!k->looked && g->was.status == GSTATUS_WAITING)
		since = looks_begun_since(k->begun, k->nbegun, g->g);
	return since < k->times.begun ? since : 0;
}

static void wait_begins(struct looks *k, struct seen *g, int32_t entry)
{
	struct found *f = found_of(k, g);
	uint64_t since = known_since(k, g);

	g->waits = true;
	g->entry = f->entry = entry;
	g->since = since ? since : between_looks(k);
	g->known = since;
	g->begun_before = !k->sums.look && !since;
	g->looks = 0;
	g->ns = since ? (double)(k->times.begun - since) : 0;
	k->sum.known += g->known;
	saw(k, g, (double)k->times.len + f->owed_ns);
	f->owed_ns = 0;
}

/* ---- stacks ---- */

/* The status alone tells. The registers may be of another moment (struct parked), when it ran. */
static bool waits(const struct looks *k, const struct parked *p)
{
	if (k->c.all)
		return parked_for(p) != 0;
	return (p->status == GSTATUS_WAITING || p->status == GSTATUS_LEAKED) && p->reason < 64 &&
	       k->c.reasons >> p->reason & 1;
}

static int read_labels(struct looks *k, const struct parked *p, struct gpb_stack *st, struct err *e)
{
	uint64_t id = 0;
	bool cut = false;
	int ret;

	if (!(k->t.flags & GPB_TARGET_LABELS) || !p->labels)
		return 0;
	ret = labelsets_read(k->c.labels, k->s->target->mem, gobin_info(k->s->bin)->minor,
			     p->labels, &k->c.labels_room, &id, &cut, e);
	st->labels = id;
	k->sum.labels_cut += cut;
	return ret;
}

static void learn_nothing(void *arg, uint64_t pc, const struct gpb_unwind_rule *r)
{
	(void)arg, (void)pc, (void)r;
}

/* The stack of @p as the probes would give it; its first @n bytes are in @copy, above lies *deep. */
static int walk(struct looks *k, const struct parked *p, const uint8_t *copy, size_t n,
		struct gpb_stack **out, bool *deep, struct err *e)
{
	struct parked_stack ps = { k->s->target->mem, &k->t, p, copy, n, deep };
	struct gpb_stack *st = &k->st;
	int ret;

	memset(st, 0, offsetof(struct gpb_stack, pc));
	set_wait(k, parked_for(p), st);
	st->goid = k->t.flags & GPB_TARGET_GOID ? p->goid : 0;
	if (parked_walk_as_it_is(&ps, k->s, st, &k->raw) && gpb_stack_whole(&k->raw.stack)) {
		ret = unwinding_settle(k->s, &k->raw, learn_nothing, NULL, e);
		if (ret)
			return ret;
		st = &k->raw.stack;
	}
	if (p->status == GSTATUS_SYSCALL && k->c.settle)
		k->c.settle(k->c.settle_arg, st);
	*out = st;
	return read_labels(k, p, st, e);
}

/* The goroutines of one attempt. */
struct batch {
	uint32_t at[PARKED_BATCH];
	uint64_t g[PARKED_BATCH];
	struct parked p[PARKED_BATCH], after[PARKED_BATCH];
	bool ok[PARKED_BATCH], ok_after[PARKED_BATCH];
	size_t len[PARKED_BATCH], n; /* lengths of their copies */
};

/* Reads the beginnings of the stacks into k->copies. */
static int copy_stacks(struct looks *k, struct batch *b, struct err *e)
{
	struct mem_piece piece[PARKED_BATCH];
	size_t owner[PARKED_BATCH], n = 0;
	int ret;

	for (size_t i = 0; i < b->n; i++) {
		uint64_t used = b->p[i].stack_hi - b->p[i].sp + b->p[i].below;

		b->len[i] = 0;
		if (!b->ok[i] || !waits(k, &b->p[i]) || !parked_has_stack(&b->p[i]))
			continue;
		owner[n] = i;
		piece[n++] = (struct mem_piece){ .addr = b->p[i].sp - b->p[i].below,
						 .buf = k->copies + i * SHALLOW,
						 .n = used < SHALLOW ? (size_t)used : SHALLOW };
	}
	ret = mem_readv(k->s->target->mem, piece, n, e);
	for (size_t i = 0; !ret && i < n; i++)
		b->len[owner[i]] = piece[i].ok ? piece[i].n : 0;
	return ret;
}

/* Is it still alike, and *still the same wait, after frames above the copy were read? */
static int see_again(struct looks *k, struct seen *g, const struct parked *p, bool *like,
		     bool *still, struct err *e)
{
	struct parked now;
	int ret = parked_look(&k->reader, &g->g, 1, &now, like, e);

	*like = !ret && *like && parked_alike(p, &now);
	*still = *still && *like && parked_stood(p, &now);
	return ret;
}

/*
 * A stack that is new is believed when @p still waits at one more look. A goroutine that parks increments its sequence
 * number right after it has changed its status (trackingSeq; casgstatus in runtime/proc.go, Go 1.17 to 1.27). When
 * it is met between the two, it seems to wait still as before, though it ran while its stack was read.
 * One look later it has counted. Of 156 new stacks in 26 profiles of a ping-pong 9 were such.
 */
static int make_known(struct looks *k, struct seen *g, const struct gpb_stack *st,
		      const struct parked *p, bool *known, int32_t *entry, struct err *e)
{
	bool like = true, still = true;
	int ret = see_again(k, g, p, &like, &still, e);

	if (ret || !still)
		return ret;
	return looks_sums_entry(&k->sums, st, p->reason, true, known, entry, e);
}

/* Takes the stack of one that stood still, or that is alike before and after and known. */
static int try_stack(struct looks *k, struct batch *b, size_t i, bool *done, struct err *e)
{
	struct seen *g = &k->at.at[b->at[i]];
	const struct parked *p = &b->p[i], *after = &b->after[i];
	bool still, known = false, deep = false, like = true;
	struct gpb_stack *st;
	int32_t entry = 0;
	int ret;

	*done = false;
	if (!b->len[i] || !b->ok_after[i] || !waits(k, after) ||
	    parked_for(p) != parked_for(&g->was) || p->goid != g->was.goid ||
	    !parked_alike(p, after))
		return 0;
	still = parked_stood(p, after);
	ret = walk(k, p, k->copies + i * SHALLOW, b->len[i], &st, &deep, e);
	if (!ret && deep)
		ret = see_again(k, g, p, &like, &still, e);
	if (ret || !like || !gpb_stack_whole(st))
		return ret;
	ret = looks_sums_entry(&k->sums, st, p->reason, false, &known, &entry, e);
	if (!ret && !known && still)
		ret = make_known(k, g, st, p, &known, &entry, e);
	if (ret || !known)
		return ret;
	g->was = *p;
	wait_begins(k, g, entry);
	*done = true;
	return 0;
}

/* Puts goroutines whose stack moved back into k->fresh, from *kept on. */
static int try_batch(struct looks *k, struct batch *b, bool first, size_t *kept, struct err *e)
{
	int ret = 0;

	for (size_t i = 0; i < b->n; i++) {
		b->g[i] = k->at.at[b->at[i]].g;
		b->p[i] = k->at.at[b->at[i]].was;
		b->ok[i] = true;
	}
	if (!first)
		ret = parked_look(&k->reader, b->g, b->n, b->p, b->ok, e);
	if (!ret)
		ret = copy_stacks(k, b, e);
	if (!ret)
		ret = parked_look(&k->reader, b->g, b->n, b->after, b->ok_after, e);
	for (size_t i = 0; !ret && i < b->n; i++) {
		bool done;

		ret = try_stack(k, b, i, &done, e);
		if (!done)
			k->fresh.at[(*kept)++] = b->at[i];
	}
	return ret;
}

/* It gets the stack that it had a moment ago for the same wait, or is owed one. */
static void without_stack(struct looks *k, struct seen *g)
{
	struct found *f = found_of(k, g);

	if (f->entry != LOOKS_UNFOUND)
		wait_begins(k, g, f->entry);
	else
		f->owed_ns += (double)k->times.len;
}

static int read_fresh(struct looks *k, struct err *e)
{
	struct batch b;
	int ret = 0;

	for (int try = 0; !ret && k->fresh.n && try < READ_TRIES; try++) {
		size_t n = k->fresh.n, kept = 0;

		for (size_t i = 0; !ret && i < n; i += b.n) {
			b.n = n - i < PARKED_BATCH ? n - i : PARKED_BATCH;
			memcpy(b.at, k->fresh.at + i, b.n * sizeof(b.at[0]));
			ret = try_batch(k, &b, !try, &kept, e);
		}
		k->fresh.n = kept;
	}
	for (size_t i = 0; !ret && i < k->fresh.n; i++)
		without_stack(k, &k->at.at[k->fresh.at[i]]);
	return ret;
}

/* ---- a look ---- */

static int read_list(struct looks *k, struct err *e)
{
	uint64_t slice[3], n;
	int ret = mem_read(k->s->target->mem, k->allgs, slice, sizeof(slice), e);

	if (ret)
		return ret;
	if (!slice[0] || slice[1] > slice[2])
		return err_set(e, -EBADMSG, "runtime.allgs has %llu goroutines at 0x%llx",
			       (unsigned long long)slice[1], (unsigned long long)slice[0]);
	n = slice[1] < LOOKS_MAX ? slice[1] : LOOKS_MAX;
	if (slice[1] - n > k->sum.beyond)
		k->sum.beyond = slice[1] - n;
	if (n > k->n)
		ret = mem_read(k->s->target->mem, slice[0] + 8 * k->n, k->list + k->n,
			       (n - k->n) * 8, e);
	for (; !ret && k->n < n; k->n++) {
		struct seen *to = vec_add(&k->at, LOOKS_MAX);

		if (!to)
			return err_set(e, -ENOMEM, "no memory to look at goroutines");
		*to = (struct seen){ .g = k->list[k->n] };
	}
	return ret;
}

static int put(struct places *v, uint32_t at, struct err *e)
{
	uint32_t *to = vec_add(v, LOOKS_MAX);

	if (!to)
		return err_set(e, -ENOMEM, "no memory to look at goroutines");
	*to = at;
	return 0;
}

static int see(struct looks *k, uint32_t at, const struct parked *p, bool ok, struct err *e)
{
	struct seen *g = &k->at.at[at];
	bool same = ok && parked_same(&g->was, p);
	uint64_t end = between_looks(k);
	int ret = 0;

	g->look = k->sums.look + 1;
	if (g->waits && k->paused)
		end = looks_over_pause(k, g, same, k->times.begun);
	if (g->waits && !same)
		wait_over(k, g, end);
	if (!ok)
		return 0;
	g->was = *p;
	if (!same && parked_lives(p))
		ret = put(&k->later, at, e);
	if (ret || !waits(k, p))
		return ret;
	if (!g->waits)
		return put(&k->fresh, at, e);
	saw(k, g, (double)k->times.len);
	return 0;
}

static int see_these(struct looks *k, parked_looker *look_at, const uint32_t *at, size_t n,
		     struct err *e)
{
	struct parked p[PARKED_BATCH];
	uint64_t g[PARKED_BATCH] = { 0 };
	bool ok[PARKED_BATCH];
	int ret;

	for (size_t i = 0; i < n; i++)
		g[i] = k->at.at[at[i]].g;
	ret = look_at(&k->reader, g, n, p, ok, e);
	k->fresh.n = 0;
	for (size_t i = 0; !ret && i < n; i++)
		ret = see(k, at[i], &p[i], ok[i], e);
	return ret ? ret : read_fresh(k, e);
}

/* The sum of two draws: no phase of a rhythm of the target is met more often than others. */
static void rest(struct looks *k)
{
	uint64_t mean = RESTS_NS / k->busy.n;

	mean = mean < REST_NS ? mean : REST_NS;
	k->rest(random_below(&k->random, mean) + random_below(&k->random, mean));
}

static int see_busy(struct looks *k, struct err *e)
{
	size_t n, most = k->busy.n > APART_MAX ? PARKED_BATCH : 1;
	int ret = 0;

	for (size_t i = k->busy.n; i > 1; i--) {
		uint32_t *a = &k->busy.at[i - 1], was = *a;
		uint32_t *b = &k->busy.at[random_below(&k->random, i)];

		*a = *b;
		*b = was;
	}
	for (size_t i = 0; !ret && i < k->busy.n; i += n) {
		n = k->busy.n - i < most ? k->busy.n - i : most;
		rest(k);
		ret = see_these(k, parked_look_at_status, k->busy.at + i, n, e);
	}
	return ret;
}

static int see_calm(struct looks *k, struct err *e)
{
	uint32_t at[PARKED_BATCH];
	int ret = 0;

	for (size_t i = 0, n; !ret && i < k->at.n;) {
		for (n = 0; n < PARKED_BATCH && i < k->at.n; i++)
			if (k->at.at[i].look <= k->sums.look)
				at[n++] = (uint32_t)i;
		ret = see_these(k, parked_look, at, n, e);
	}
	return ret;
}

static int see_all(struct looks *k, struct err *e)
{
	const struct places was = k->busy;
	int ret = read_list(k, e);

	if (!ret)
		ret = see_busy(k, e);
	if (!ret)
		ret = see_calm(k, e);
	k->busy = k->later;
	k->later = was;
	k->later.n = 0;
	return ret;
}

/* One that has just called exec has no list yet, nor even memory for it: the kernel maps it, and then its runtime begins. */
static bool begins(const struct looks *k, int ret)
{
	return (ret == -EFAULT || ret == -EBADMSG) && !k->sums.look &&
	       k->at_ns < k->times.begun + BEGINS_NS;
}

static int look(struct looks *k, struct err *e)
{
	int ret = k->nimages == k->s->images.n ? 0 : fill_target(k, e);

	k->at_ns = k->now();
	looks_sums_look(&k->sums, (double)k->times.len);
	if (!ret)
		ret = see_all(k, e);
	if (ret == -ESRCH || begins(k, ret)) {
		k->gone = ret == -ESRCH; /* the target has gone */
		if (e)
			e->msg[0] = 0;
		return 0;
	}
	if (ret)
		return ret;
	if (k->looked)
		looks_sums_gap(&k->sums, (double)(k->at_ns - k->looked));
	*k->c.counted = k->looked_before;
	k->looked_before = k->looked;
	k->looked = k->at_ns;
	k->paused = k->nbegun = 0;
	look_times_looked(&k->times);
	looks_sums_looked(&k->sums);
	return 0;
}

/* ---- when to look ---- */

static double share_of(const struct looks *k)
{
	return k->c.share ? *k->c.share : LOOKS_SHARE_MOST;
}

static int set_timer(struct looks *k, struct err *e)
{
	uint64_t due = looks_due(k);
	struct itimerspec t = { .it_value = { .tv_sec = (time_t)(due / 1000000000u),
					      .tv_nsec = (long)(due % 1000000000u) } };

	return timerfd_settime(k->fd, TFD_TIMER_ABSTIME, &t, NULL) ? err_sys(e, "timer") : 0;
}

int looks_begin(struct looks *k, uint64_t since, struct err *e)
{
	int ret = k->times.on ? 0 : find_allgs(k, e);

	if (ret || k->times.on)
		return ret;
	look_times_begin(&k->times, k->now(), since, share_of(k), &k->random);
	return set_timer(k, e);
}

void looks_know(struct looks *k, const struct looks_begun *b, size_t n)
{
	k->begun = b;
	k->nbegun = n;
}

/* Goroutines that wait now, or waited when looks paused, are no longer followed. */
static void leave(struct looks *k)
{
	for (size_t i = 0; i < k->at.n; i++) {
		struct seen *g = &k->at.at[i];

		if (!g->waits)
			continue;
		if (k->paused)
			wait_over(k, g, looks_over_pause(k, g, false, k->now()));
		else if (brief(g) && k->sums.look > 1)
			wait_over(k, g, between_looks(k));
		else if (g->entry != LOOKS_NOT_COUNTED)
			unsure(k, g, &k->sum.waiting);
		g->waits = false;
	}
}

static void phase_over(struct looks *k)
{
	look_times_pause(&k->times, k->now());
	k->looked = k->looked_before = *k->c.counted = 0;
	k->sums.gap = k->sums.before = 0;
}

int looks_pause(struct looks *k, struct err *e)
{
	if (k->looked)
		k->paused = k->now();
	phase_over(k);
	return set_timer(k, e);
}

/* A timer that is left alone wakes whoever polls for ever. */
void looks_stop(struct looks *k)
{
	phase_over(k);
	(void)set_timer(k, NULL);
}

int looks_fd(const struct looks *k)
{
	return k->fd;
}

int looks_poll(struct looks *k, struct err *e)
{
	uint64_t cpu, rung, spent;
	int ret;

	if (!looks_due(k) || k->now() < k->times.due)
		return 0;
	cpu = k->cpu();
	if (read(k->fd, &rung, sizeof(rung)) < 0 && errno != EAGAIN)
		return err_sys(e, "timer");
	ret = look(k, e);
	spent = k->cpu() - cpu;
	k->sum.cpu_ns += spent;
	look_times_next(&k->times, k->now(), spent, share_of(k), &k->random);
	return ret ? ret : set_timer(k, e);
}

void looks_end(struct looks *k, struct looks_result *out)
{
	phase_over(k);
	leave(k);
	looks_sums_end(&k->sums, k->times.phases_ns, k->times.looked_ns);
	for (size_t i = 0; i < k->at.n * FOUND; i++)
		forget(k, &k->at.at[i / FOUND].found[i % FOUND]);
	k->sum.crowded = k->sums.crowded;
	k->sum.looks = k->sums.look;
	k->sum.stratum_ns = look_times_mean(&k->times);
	*out = k->sum;
}

const struct looks_sums *looks_sums(const struct looks *k)
{
	return &k->sums;
}

struct looks_estimate looks_of(const struct looks *k, size_t entry)
{
	return looks_sums_of(&k->sums, entry);
}
