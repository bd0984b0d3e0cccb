/* user/collect/heap/live/heap_live.c - the table of followed objects, and a clock of GC cycles. */
#include <math.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/clock.h"
#include "base/limits.h"
#include "collect/heap/live/heap_live_priv.h"
#include "go/runtime/vars/rtvar.h"
#include "goprof_abi.h"
#include "subject/verify.h"

enum {
	US_PER_SECOND = 1000000,
	IDLE_US = 20000, /* pause between looks when a probe reports each cycle */
	CLOSE_US = 2000, /* pause when there is no such probe */
	SOON_US = 100,	 /* pause after a report, which comes just before the cycle ends */
	/* of many, where looks are dear: by then most spans that are in use are swept */
	MANY_SOON_US = 1000,
	MANY_IDLE_US = 1000000, /* a report may get lost, when the ring is full */
	END_TRIES = 40,		/* looks at the end, because of spans that are just being swept, */
	END_WAIT_US = 500,	/* and the time between them */
	BATCH = 256,		/* objects that are looked at in one call */
	ASK_TRIES = 4,
};

/* ---- opening ---------------------------------------------------------------------------------- */

static int find_vars(struct heap_live *l, struct err *e)
{
	const int32_t *off = l->s->layout.off;
	uint64_t mheap, at;
	int ret = subject_rtvar(l->s, RTVAR_MHEAP, &mheap, e);

	if (ret)
		return ret;
	if (off[LAYOUT_mheap_sweepgen] < 0)
		return err_set(e, -ENOTSUP, "where this Go has mheap.sweepgen is not known");
	l->conf.sweepgen = mheap + (uint64_t)off[LAYOUT_mheap_sweepgen];
	/* Without it, more samples have to wait for their slot to become known. */
	if (!subject_rtvar(l->s, RTVAR_GCBLACKENENABLED, &at, NULL))
		l->conf.blacken = at;
	ret = mem_u32(l->s->target->mem, l->conf.sweepgen, &l->gen, e);
	if (!ret && l->gen % 2)
		ret = err_set(e, -EBADMSG, "mheap_.sweepgen is %u, which is odd", l->gen);
	return ret;
}

static int fill_conf(struct heap_live *l, struct err *e)
{
	static const enum layout_field needed[] = {
		LAYOUT_mcache_alloc,	       LAYOUT_mspan_startaddr,	LAYOUT_mspan_freeindex,
		LAYOUT_mspan_nelems,	       LAYOUT_mspan_alloccache, LAYOUT_mspan_allocbits,
		LAYOUT_mspan_gcmarkbits,       LAYOUT_mspan_alloccount, LAYOUT_mspan_elemsize,
		LAYOUT_mspan_countbeforecache,
	};
	const int32_t *off = l->s->layout.off;

	for (size_t i = 0; i < ARRAY_LEN(needed); i++)
		if (off[needed[i]] < 0)
			return err_set(e, -ENOTSUP, "where this Go has %s is not known",
				       layout_field_name(needed[i]));
	l->conf.mcache_alloc = off[LAYOUT_mcache_alloc];
	l->conf.span_start = off[LAYOUT_mspan_startaddr];
	l->conf.span_freeindex = off[LAYOUT_mspan_freeindex];
	l->conf.span_nelems = off[LAYOUT_mspan_nelems];
	l->conf.span_cache = off[LAYOUT_mspan_alloccache];
	l->conf.span_bits = off[LAYOUT_mspan_allocbits];
	l->conf.span_marks = off[LAYOUT_mspan_gcmarkbits];
	l->conf.span_count = off[LAYOUT_mspan_alloccount];
	l->conf.span_before = off[LAYOUT_mspan_countbeforecache];
	l->conf.span_elemsize = off[LAYOUT_mspan_elemsize];
	l->conf.index_bytes = l->layout.index_bytes;
	l->conf.g_credit = off[LAYOUT_g_gcassistbytes];
	return 0;
}

/*
 * A plugin allocates through copies of these functions of its own, which return elsewhere. All
 * images are gone through, also after an error, which is the first one.
 */
static int find_images(struct heap_live *l, struct err *e)
{
	const struct images *im = &l->s->images;
	int ret = 0;

	for (; l->nimages < im->n; l->nimages++) {
		int one = heap_sites_find(&im->at[l->nimages], &l->sites[l->nimages],
					  ret ? NULL : e);

		ret = ret ? ret : one;
	}
	return ret;
}

int heap_live_find(struct heap_live *l, struct err *e)
{
	if (!l->sites)
		l->sites = calloc(GPB_IMAGES, sizeof(*l->sites));
	return l->sites ? find_images(l, e) : err_set(e, -ENOMEM, "no memory");
}

void heap_live_found(struct heap_live *l)
{
	free(l->sites);
	l->sites = NULL;
}

int heap_live_open(struct subject *s, struct heap_live_room *room, struct heap_live **out,
		   struct err *e)
{
	CLEANUP(heap_live_freep) struct heap_live *l = calloc(1, sizeof(*l));
	const struct gobin_info *info = gobin_info(s->bin);
	int ret;

	if (!l)
		return err_set(e, -ENOMEM, "no memory");
	l->s = s;
	l->room = room;
	l->timer = -1;
	l->wait_us = CLOSE_US;
	if (!vec_add(&l->weights, 1))
		return err_set(e, -ENOMEM, "no memory");
	l->weights.at[0] = 1;
	if (!layout_is_sure(&s->layout))
		return err_set(e, -ENOTSUP, "the structs of spans are not sure for %s",
			       info->version);
	ret = rtspan_layout(&s->layout, info->minor, info->experiments, &l->layout, e);
	if (!ret)
		ret = fill_conf(l, e);
	if (!ret)
		ret = find_vars(l, e);
	if (!ret && !room)
		ret = heap_live_find(l, e);
	if (ret)
		return ret;
	if (!room)
		l->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (!room && l->timer < 0)
		return err_sys(e, "timer");
	*out = TAKE(l);
	return 0;
}

void heap_live_free(struct heap_live *l)
{
	if (!l)
		return;
	uprobes_free(&l->probe);
	if (l->timer >= 0)
		close(l->timer);
	if (l->room)
		l->room->taken -= l->bytes;
	heap_live_found(l);
	vec_fini(&l->objects);
	vec_fini(&l->stacks);
	vec_fini(&l->cells);
	vec_fini(&l->weights);
	map_fini(&l->by_hash);
	map_fini(&l->by_cell);
	free(l);
}

const struct gpb_live *heap_live_conf(const struct heap_live *l)
{
	return &l->conf;
}

size_t heap_live_sites(struct heap_live *l, size_t image, struct uprobe_site sites[HEAP_LIVE_SITES])
{
	const struct heap_sites *of = &l->sites[image];

	/* What a plugin that came meanwhile lacks shows in the counts of objects without a slot. */
	(void)find_images(l, NULL);
	memcpy(sites, of->at, of->n * sizeof(*sites));
	return of->n;
}

/*
 * ---- the clock of GC cycles -------------------------------------------------------------------
 */

static void look_in(struct heap_live *l, uint32_t us)
{
	struct itimerspec t = { .it_value.tv_nsec = us * 1000l };

	l->wait_us = us;
	if (l->timer >= 0)
		timerfd_settime(l->timer, 0, &t, NULL);
	else
		heap_live_put_off(l, now_ns() + us * 1000ull);
}

/* The longest pause between two looks. */
static uint32_t longest_us(const struct heap_live *l)
{
	if (!l->watched)
		return CLOSE_US;
	return l->room ? MANY_IDLE_US : IDLE_US;
}

static uint32_t soon_us(const struct heap_live *l)
{
	return l->room ? MANY_SOON_US : SOON_US;
}

/*
 * A cycle that a goroutine ends while it allocates in a plugin ends in that plugin's copy of the
 * function.
 */
static int attach_cycle(struct heap_live *l, struct bpf_program *cycle, uint32_t slot, bool multi,
			struct err *e)
{
	const struct images *im = &l->s->images;
	struct uprobe_site at[GPB_IMAGES];
	struct uprobe_group g[GPB_IMAGES];
	size_t n = 0;
	int ret = 0;

	for (size_t i = 0; !ret && i < im->n; i++) {
		if (!heap_sites_needed(&im->at[i]))
			continue;
		g[n] = (struct uprobe_group){ .prog = cycle, .sites = &at[n], .n = 1 };
		image_path(&im->at[i], g[n].path);
		ret = heap_sites_cycle(&im->at[i], &at[n], e);
		at[n++].cookie |= (uint64_t)slot << GPB_COOKIE_SLOT_SHIFT;
	}
	uprobes_free(&l->probe);
	l->probe.all = l->s->attachers;
	if (!ret)
		ret = uprobes_hold(&l->probe, g, n, multi, l->s->target->pid, NULL, e);
	return ret ? ret : uprobes_attach_again(&l->probe, e);
}

int heap_live_attach(struct heap_live *l, struct bpf_program *cycle, uint32_t slot, bool multi,
		     struct err *e)
{
	int ret;

	if (l->cycle_images == l->s->images.n)
		return 0;
	l->cycle_images = l->s->images.n;
	ret = attach_cycle(l, cycle, slot, multi, e);
	/*
	 * When the function is missing, cycles are polled for; but a kernel that refuses this
	 * probe refuses all.
	 */
	if (ret && ret != -ENOENT && ret != -ENOTSUP)
		return ret;
	l->watched = !ret;
	look_in(l, longest_us(l));
	return 0;
}

void heap_live_watched(struct heap_live *l, bool watched)
{
	l->watched = watched;
}

/* ---- objects ---------------------------------------------------------------------------------- */

/* What entries take, with the maps that lead to them. */
enum {
	MAP_BYTES = 32,
	OBJECT_BYTES = sizeof(struct live_object),
	STACK_BYTES = sizeof(struct live_stack) + MAP_BYTES,
	CELL_BYTES = sizeof(struct live_cell) + MAP_BYTES,
};

static bool has_room(const struct heap_live *l)
{
	return !l->room || gpb_quota_allows(&l->room->quota, l->bytes, l->room->taken,
					    OBJECT_BYTES + STACK_BYTES + CELL_BYTES);
}

/* It has more objects than before, or fewer. */
static void account(struct heap_live *l)
{
	uint64_t now = l->objects.n * OBJECT_BYTES + l->stacks.n * STACK_BYTES +
		       l->cells.n * CELL_BYTES;

	if (!l->room)
		return;
	l->room->taken += now - l->bytes;
	l->bytes = now;
}

/* NULL when there is no room, and for two stacks with the same key. */
static struct live_stack *stack_of(struct heap_live *l, const struct gpb_rec_object *rec)
{
	uint64_t i, key = rec->stack.lo ^ (rec->stack.hi * 0x9e3779b97f4a7c15ull);
	struct live_stack *s;

	if (map_get(&l->by_hash, key, &i)) {
		s = &l->stacks.at[i];
		return s->size == rec->size && !memcmp(&s->hash, &rec->stack, sizeof(rec->stack)) ?
			       s :
			       NULL;
	}
	s = vec_add(&l->stacks, LIMIT_LIVE_STACKS);
	if (!s)
		return NULL;
	if (!map_put(&l->by_hash, key, l->stacks.n - 1)) {
		l->stacks.n--;
		return NULL;
	}
	*s = (struct live_stack){ .size = rec->size, .hash = rec->stack };
	return s;
}

/*
 * An index. It is 0 also when there is no room for more windows, and then the weight is not that
 * of a window.
 */
static uint32_t window_of(struct heap_live *l, uint64_t since)
{
	float *w;

	if (!since)
		return 0;
	if (since != l->window) {
		w = vec_add(&l->weights, LIMIT_LIVE_CELLS);
		if (!w)
			return 0;
		*w = 0;
		l->window = since;
	}
	return (uint32_t)l->weights.n - 1;
}

void heap_live_window(struct heap_live *l, uint64_t since, double weight)
{
	if (since == l->window && since)
		l->weights.at[l->weights.n - 1] = (float)weight;
}

void heap_live_fold(const struct heap_live *l, struct live_cell *c)
{
	c->count.followed += c->now * (double)l->weights.at[c->window];
	c->now = 0;
}

static struct live_cell *cell_of(struct heap_live *l, const struct live_stack *s, uint32_t group)
{
	uint32_t stack = (uint32_t)(s - l->stacks.at);
	uint64_t i, key = (uint64_t)stack << 8 | group;
	struct live_cell *c;

	if (map_get(&l->by_cell, key, &i))
		return &l->cells.at[i];
	c = vec_add(&l->cells, LIMIT_LIVE_CELLS);
	if (!c)
		return NULL;
	if (!map_put(&l->by_cell, key, l->cells.n - 1)) {
		l->cells.n--;
		return NULL;
	}
	*c = (struct live_cell){ .stack = stack, .count = { .stack = s->hash, .group = group } };
	return c;
}

static void add_object(struct heap_live *l, const struct gpb_rec_object *rec)
{
	struct live_stack *s = has_room(l) ? stack_of(l, rec) : NULL;
	uint32_t window = window_of(l, rec->window);
	uint32_t group = window ? (window - 1) % HEAP_LIVE_GROUPS + 1 : 0;
	struct live_cell *c = s ? cell_of(l, s, group) : NULL;
	struct live_object *o = c ? vec_add(&l->objects, LIMIT_LIVE_OBJECTS) : NULL;

	if (!o) {
		l->untold++;
		return;
	}
	*o = (struct live_object){ .span = rec->span,
				   .base = rec->base,
				   .marks = rec->marks,
				   .index = rec->index,
				   .cell = (uint32_t)(c - l->cells.at),
				   .window = window,
				   .gen = rec->sweepgen,
				   .sure = 1 };
	if (c->window != window)
		heap_live_fold(l, c);
	c->window = window;
	c->now++;
	c->count.objects++;
	l->followed++;
	account(l);
	if (l->room && !l->due_ns && !l->gone)
		look_in(l, longest_us(l));
}

void heap_live_record(struct heap_live *l, const void *rec, size_t len)
{
	uint64_t type;

	if (len < sizeof(type))
		return;
	memcpy(&type, rec, sizeof(type));
	if (type == GPB_REC_OBJECT && len >= sizeof(struct gpb_rec_object))
		add_object(l, rec);
	else if (type == GPB_REC_CYCLE && !l->gone && (!l->room || l->objects.n))
		look_in(l, soon_us(l));
}

/* ---- looking ---------------------------------------------------------------------------------- */

struct asked_objects {
	struct rtspan_object ask[BATCH];
	size_t at[BATCH]; /* indices of the objects */
	size_t n;
};

struct live_stack *heap_live_stack_at(const struct heap_live *l, const struct live_object *o)
{
	return &l->stacks.at[l->cells.at[o->cell].stack];
}

double heap_live_outlive(const struct heap_live *l, const struct live_stack *s, uint32_t cycles)
{
	double all = (double)(l->fate.lived + 1) / (double)(l->fate.lived + l->fate.died + 1);
	double one = ((double)s->fate.lived + all) / (double)(s->fate.lived + s->fate.died + 1);

	return pow(one, cycles);
}

static void note_missed(struct heap_live *l, struct live_object *o, const struct rtspan_object *a)
{
	struct live_stack *s = heap_live_stack_at(l, o);
	double lives = o->sure * heap_live_outlive(l, s, a->missed);

	s->expected += (float)lives;
	l->doubted = true;
	if (a->answer != RTSPAN_MISSED)
		return;
	s->taken += (float)lives;
	l->unconfirmed += o->sure == 1;
	o->sure = (float)lives;
	o->doubted = true;
}

/*
 * After missed cycles a slot that is in use has the object itself or another one, and one that is free has lost it. So those that
 * live are all among the first, and these live more often than all do (Bayes).
 */
static void settle_doubts(struct heap_live *l)
{
	for (size_t i = 0; l->doubted && i < l->objects.n; i++) {
		struct live_object *o = &l->objects.at[i];
		const struct live_stack *s = heap_live_stack_at(l, o);

		if (o->doubted)
			o->sure = fminf(1, o->sure * s->expected / s->taken);
		o->doubted = false;
	}
	for (size_t i = 0; l->doubted && i < l->stacks.n; i++)
		l->stacks.at[i].expected = l->stacks.at[i].taken = 0;
	l->doubted = false;
}

static void note_fate(struct heap_live *l, struct live_object *o, const struct rtspan_object *a)
{
	struct fate *one = &heap_live_stack_at(l, o)->fate, *all = &l->fate;
	uint32_t cycles = (a->gen - o->gen) / 2;

	if (a->missed)
		note_missed(l, o, a);
	if (a->answer == RTSPAN_MISSED)
		return;
	if (o->sure < 1) /* it may be another object */
		return;
	one->lived += cycles;
	all->lived += cycles;
	one->died += a->answer == RTSPAN_DEAD;
	all->died += a->answer == RTSPAN_DEAD;
}

/*
 * Writes the answers into the table; an object that is no longer followed gets span 0. Returns
 * how many are still without an answer.
 */
static size_t apply(struct heap_live *l, const struct asked_objects *k, uint32_t gen)
{
	size_t later = 0;

	for (size_t i = 0; i < k->n; i++) {
		const struct rtspan_object *a = &k->ask[i];
		struct live_object *o = &l->objects.at[k->at[i]];

		if (a->answer == RTSPAN_UNREADABLE) {
			/* The other objects of its stack stand for it. */
			l->cells.at[o->cell].count.followed -= (double)l->weights.at[o->window];
			l->unconfirmed++;
			o->span = 0;
			continue;
		}
		note_fate(l, o, a);
		if (a->answer == RTSPAN_DEAD) {
			o->span = 0;
			continue;
		}
		o->aged |= o->gen != a->gen;
		o->gen = a->gen;
		o->marks = a->marks;
		later += a->gen != gen;
	}
	return later;
}

static void sweep_up(struct heap_live *l)
{
	size_t n = 0;

	for (size_t i = 0; i < l->objects.n; i++)
		if (l->objects.at[i].span)
			l->objects.at[n++] = l->objects.at[i];
	l->objects.n = n;
}

/* Gathers the next objects that have not been asked about for cycle @gen, from *@from on. */
static void gather(const struct heap_live *l, struct asked_objects *k, uint32_t gen, size_t *from)
{
	k->n = 0;
	for (; *from < l->objects.n && k->n < BATCH; ++*from) {
		const struct live_object *o = &l->objects.at[*from];

		if (!o->span || o->gen == gen)
			continue;
		k->at[k->n] = *from;
		k->ask[k->n++] = (struct rtspan_object){ .span = o->span,
							 .base = o->base,
							 .size = heap_live_stack_at(l, o)->size,
							 .marks = o->marks,
							 .index = o->index,
							 .gen = o->gen };
	}
}

static void note_cycle(struct heap_live *l, uint32_t gen)
{
	l->cycles += (gen - l->gen) / 2;
	l->gen = gen;
}

/* Asks about @k as of the last cycle, whichever that is by then. */
static int ask(struct heap_live *l, bool last, struct asked_objects *k, size_t *later,
	       struct err *e)
{
	const struct rtspan_vars vars = { .sweepgen = l->conf.sweepgen,
					  .blacken = l->conf.blacken };
	uint32_t gen = l->gen;
	int ret = -EAGAIN;

	for (int i = 0; i < ASK_TRIES && ret == -EAGAIN; i++)
		ret = rtspan_ask(l->s->target->mem, &l->layout, &vars, last, k->ask, k->n, &gen, e);
	if (ret == -EAGAIN) { /* cycles come faster than we can ask */
		*later += k->n;
		return 0;
	}
	if (ret)
		return ret;
	note_cycle(l, gen);
	*later += apply(l, k, gen);
	return 0;
}

/* -ESRCH, -EFAULT, -EPERM when the target has gone. */
static int look_at(struct heap_live *l, bool last, size_t *later, struct err *e)
{
	CLEANUP(freep) struct asked_objects *k = malloc(sizeof(*k));
	size_t from = 0;
	uint32_t gen;
	int ret;

	if (!k)
		return err_set(e, -ENOMEM, "no memory to look at objects");
	ret = mem_u32(l->s->target->mem, l->conf.sweepgen, &gen, e);
	if (!ret)
		note_cycle(l, gen);
	while (!ret && from < l->objects.n) {
		gather(l, k, l->gen, &from);
		if (k->n)
			ret = ask(l, last, k, later, e);
	}
	return ret;
}

/* Returns 0 also when the target has gone: then what is known remains. */
static int look(struct heap_live *l, bool last, size_t *later, struct err *e)
{
	uint64_t start = now_ns(), took;
	size_t n = l->objects.n;
	int ret = 0;

	*later = 0;
	if (!l->gone)
		ret = look_at(l, last, later, e);
	settle_doubts(l);
	sweep_up(l);
	account(l);
	took = now_ns() - start;
	l->looks_ns += took;
	if (took > l->look_ns) {
		l->look_ns = took;
		l->look_n = n;
	}
	if (ret == -ESRCH || ret == -EFAULT || ret == -EPERM) {
		l->gone = true;
		return 0;
	}
	return ret;
}

int heap_live_fd(const struct heap_live *l)
{
	return l->timer;
}

int heap_live_look(struct heap_live *l, struct err *e)
{
	uint32_t longest = longest_us(l), next, before = l->gen;
	size_t later;
	int ret = look(l, false, &later, e);

	l->due_ns = 0;
	if (ret || l->gone || (l->room && !l->objects.n))
		return ret;
	/*
	 * After a cycle, spans are swept one by one. So the next look is soon, and later ones are
	 * less frequent.
	 */
	next = !later ? longest : before != l->gen ? soon_us(l) : l->wait_us * 2;
	look_in(l, next < longest ? next : longest);
	return 0;
}

int heap_live_poll(struct heap_live *l, struct err *e)
{
	uint64_t expired;
	int ret;

	if (l->gone || read(l->timer, &expired, sizeof(expired)) < 0)
		return 0;
	ret = uprobes_dead(&l->probe) ? uprobes_attach_again(&l->probe, e) : 0;
	return ret && ret != -ESRCH ? ret : heap_live_look(l, e);
}

uint64_t heap_live_due(const struct heap_live *l)
{
	return l->gone || l->ended ? 0 : l->due_ns;
}

void heap_live_put_off(struct heap_live *l, uint64_t until_ns)
{
	l->due_ns = until_ns;
	if (l->room && until_ns < l->room->first_ns)
		l->room->first_ns = until_ns;
}

uint64_t heap_live_took(const struct heap_live *l)
{
	return l->looks_ns;
}

void heap_live_gone(struct heap_live *l)
{
	l->gone = true;
}

int heap_live_last(struct heap_live *l, unsigned try, bool *again, struct err *e)
{
	size_t later = 0;
	int ret = 0;

	/* Spans that are swept are asked first, because in the others a finalizer may still set a mark. */
	if (!l->gone && !l->ended)
		ret = look(l, try > 0, &later, e);
	l->ended = l->ended || ret || !later || try + 1 >= END_TRIES;
	*again = !l->ended;
	return ret;
}

void heap_live_wait(void)
{
	const struct timespec wait = { .tv_nsec = END_WAIT_US * 1000l };

	nanosleep(&wait, NULL);
}
