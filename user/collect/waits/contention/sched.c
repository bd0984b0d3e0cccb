/*
 * user/collect/waits/contention/sched.c - loads the probes, attaches those that are needed, hands samples to the
 * profiles that they belong to.
 */
#include "base/clock.h"
#include "collect/waits/contention/sched_priv.h"

#include "base/cleanup.h"
#include "collect/waits/engine/wait_left.h"
#include "go/runtime/waitreason.h"
#include "go/sites/probesite.h"
#include "probe/bpf.h"
#include "subject/verify.h"

#define BLOCK (1u << GPB_WAIT_BLOCK)
#define MUTEX (1u << GPB_WAIT_MUTEX)

/* What is probed, and for which kinds of profile. */
static const struct probed_func {
	const char *func;
	unsigned at, kinds;
} places[SCHED_PLACES] = {
	{ "runtime.ready", GPB_AT_READY, BLOCK },
	{ "runtime.semacquire1", GPB_AT_SEMA, BLOCK | MUTEX },
	{ "runtime.park_m", GPB_AT_PARK, BLOCK | MUTEX },
	{ "runtime.(*semaRoot).dequeue", GPB_AT_DEQUEUE, MUTEX },
};

void sched_free(struct sched *c)
{
	bool shared = c && c->window.engine.shared;

	if (!c)
		return;
	sched_window_fini(&c->window);
	if (!shared)
		sched_bpf__destroy(c->obj);
	free(c);
}
DEFINE_FREEP(struct sched, sched)

/* ---- samples ---- */

size_t sched_labels(struct sched *c, const struct gpb_stack *st,
		    struct prof_label out[GPB_MAX_LABELS + 1], struct prof *p)
{
	return labelsets_of(&c->window.engine.reports->labels, st, GPB_COUNT_ONE, out,
			    prof_loss(p));
}

/* ---- what counts in this target ---- */

/* One bit for each of these reasons; a Go that lacks one never uses it. */
static uint64_t reasons_of(int minor, const char *const *names, size_t n)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < n; i++) {
		int v = waitreason_value(minor, names[i]);

		if (v >= 0 && v < 64)
			bits |= 1ull << v;
	}
	return bits;
}

/*
 * The reasons in Go's block profile. Source: the callers of blockevent in runtime/chan.go,
 * select.go and sema.go, Go 1.18 to 1.27.
 */
static void fill_reasons(struct sched *c)
{
	static const char *const channels[] = { "chan receive",
						"chan send",
						"select",
						"sync.Cond.Wait",
						"chan receive (durable)",
						"chan send (durable)",
						"select (durable)" };
	static const char *const semas[] = {
		"semacquire",	     "sync.Mutex.Lock",	    "sync.RWMutex.RLock",
		"sync.RWMutex.Lock", "sync.WaitGroup.Wait", "sync.WaitGroup.Wait (durable)"
	};
	/* For these, Go's mutex profile has the code that made others wait. */
	static const char *const mutexes[] = { "sync.Mutex.Lock", "sync.RWMutex.RLock",
					       "sync.RWMutex.Lock" };
	struct gpb_sched *conf = &c->window.conf;
	int minor = gobin_info(c->s->bin)->minor;

	conf->mutex_reasons = reasons_of(minor, mutexes, ARRAY_LEN(mutexes));
	if (conf->charge_all)
		c->window.mutexes = conf->mutex_reasons;
	conf->sema_reasons = reasons_of(minor, semas, ARRAY_LEN(semas));
	conf->reasons = conf->sema_reasons | reasons_of(minor, channels, ARRAY_LEN(channels));
	c->window.engine.looked = (struct looks_conf){ .reasons = conf->reasons,
						       .semas = conf->sema_reasons,
						       .apart = c->window.mutexes };
}

static void fill_conf(struct sched *c)
{
	const int32_t *off = c->s->layout.off;

	c->window.conf = (struct gpb_sched){
		.block_rate = c->o->block.rate_ns,
		.mutex_fraction = c->o->mutex.fraction,
		.charge_all = off[LAYOUT_sudog_waiters] >= 0,
		.g_waitreason = off[LAYOUT_g_waitreason],
		.sudog_g = off[LAYOUT_sudog_g],
		.sudog_next = off[LAYOUT_sudog_next],
		.sudog_prev = off[LAYOUT_sudog_prev],
		.sudog_elem = off[LAYOUT_sudog_elem],
		.sudog_waitlink = off[LAYOUT_sudog_waitlink],
		.sudog_waittail = off[LAYOUT_sudog_waittail],
		.sudog_waiters = off[LAYOUT_sudog_waiters],
		.semaroot_treap = off[LAYOUT_semaroot_treap],
	};
	fill_reasons(c);
}

/* ---- load and attach ---- */

struct wait_object sched_object_of(struct sched_bpf *o, bool multi)
{
	return (struct wait_object){
		.obj = o->obj,
		.probe = o->progs.sched_probe,
		.ring = o->maps.ring,
		.rules = o->maps.unwind_rules,
		.targets = o->maps.targets,
		.stacks = o->maps.stacks,
		.scratches = o->maps.scratches,
		.settings = o->maps.scheds,
		.seen = o->maps.seen,
		.waits = o->maps.waits,
		.bss = o->maps.bss,
		.rounds = &o->bss->rounds,
		.open = o->bss->open_for,
		.counted = (volatile uint64_t *)o->bss->sched_counted,
		.losses = &o->bss->tallies[WAIT_SLOT],
		.multi = multi,
	};
}

int sched_object_open(struct sched_bpf **out, bool multi, uint32_t slots, bool many, struct err *e)
{
	struct sched_bpf *obj;
	int ret = bpf_open_probes(sched, &obj, many, e);

	if (ret)
		return ret;
	bpf_size_slots(slots, obj->maps.targets, obj->maps.scheds, obj->maps.seen);
	uprobes_prepare(obj->progs.sched_probe, multi);
	*out = obj;
	return 0;
}

static int load(struct sched *c, struct err *e)
{
	bool multi = uprobes_have_multi();
	int ret = sched_object_open(&c->obj, multi, WAIT_SLOT + 1, false, e);

	if (ret)
		return ret;
	bpf_map__set_max_entries(c->obj->maps.ring, bpf_ring_bytes(c->s, c->o, GPB_RING_BYTES / 4));
	ret = sched_bpf__load(c->obj);
	if (ret)
		return bpf_load_error(e, ret, NULL);
	c->window.engine.object = sched_object_of(c->obj, multi);
	return 0;
}

static int find_site(struct gobin *bin, uint64_t bias, const struct probed_func *p, uint32_t of,
		     struct uprobe_site *out, struct err *e)
{
	struct probesite site;
	struct gofunc f = {};
	int ret = gobin_funcs_named(bin, &p->func, 1, &f, e);

	if (ret < 0)
		return ret;
	if (!f.entry)
		return err_set(e, -ENOENT, "%s is not in this program", p->func);
	ret = probesite_find(bin, &f, &site, e);
	if (ret)
		return ret;
	*out = (struct uprobe_site){ .file_off = site.file_off,
				     .addr = site.addr + bias,
				     .cookie = p->at | (uint64_t)of << GPB_COOKIE_SLOT_SHIFT };
	if (site.kind == SITE_NOSPLIT_ENTRY)
		out->cookie |= GPB_COOKIE_ENTRY;
	if (site.stepped)
		out->cookie |= GPB_COOKIE_STEPPED;
	return 0;
}

int sched_sites_in(const struct sched *c, size_t i, unsigned kinds, uint32_t of,
		   struct uprobe_site out[SCHED_PLACES], struct err *e)
{
	const struct image *img = &c->s->images.at[i];
	int n = 0;

	for (size_t k = 0; k < SCHED_PLACES; k++) {
		int ret = places[k].kinds & kinds ?
				  find_site(img->bin, img->bias, &places[k], of, &out[n], e) :
				  -ENOENT;

		if (!ret)
			n++;
		else if (places[k].kinds & kinds && !(ret == -ENOENT && i))
			return ret;
	}
	return n;
}

/* Attaches all sites of all images, as those of one program. */
static int attach(struct sched *c, struct err *e)
{
	struct uprobe_group groups[GPB_IMAGES];
	size_t n = 0;

	for (size_t i = 0; i < c->s->images.n; i++) {
		int ret = sched_sites_in(c, i, c->kinds, WAIT_SLOT, c->sites[i], e);

		if (ret < 0)
			return ret;
		c->nsites[i] = (size_t)ret;
		if (!c->nsites[i])
			continue;
		groups[n] = (struct uprobe_group){ .prog = c->obj->progs.sched_probe,
						   .sites = c->sites[i],
						   .n = c->nsites[i] };
		image_path(&c->s->images.at[i], groups[n++].path);
	}
	c->nimages = c->s->images.n;
	return probing_set(c->window.engine.probing, groups, n, e);
}

int sched_new(struct subject *s, const struct collect_opts *o, struct sched **out, struct err *e)
{
	CLEANUP(sched_freep) struct sched *c = calloc(1, sizeof(*c));
	int ret;

	if (!c)
		return err_set(e, -ENOMEM, "no memory");
	sched_window_init(&c->window);
	c->s = c->window.engine.s = s;
	c->window.engine.o = *o;
	c->o = &c->window.engine.o;
	ret = verify_structs(s, LAYOUT_USE_WAITS, e);
	if (ret)
		return ret;
	fill_conf(c);
	*out = TAKE(c);
	return 0;
}

static int sched_open(struct subject *s, const struct collect_opts *o, struct sched **out,
		      struct err *e)
{
	CLEANUP(sched_freep) struct sched *c = NULL;
	int ret = sched_new(s, o, &c, e);

	if (!ret)
		ret = load(c, e);
	if (!ret)
		ret = wait_engine_open(&c->window.engine, c->what, e);
	if (!ret)
		*out = TAKE(c);
	return ret;
}

/* Checks what a mutex profile needs beyond a block profile. */
static int check_queues(struct gobin *b, const struct golayout *l, struct err *e)
{
	static const enum layout_field fields[] = {
		LAYOUT_sudog_g,	       LAYOUT_sudog_next,     LAYOUT_sudog_prev,
		LAYOUT_sudog_elem,     LAYOUT_sudog_waitlink, LAYOUT_sudog_waittail,
		LAYOUT_semaroot_treap,
	};

	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (l->off[fields[i]] < 0)
			return err_set(e, -ENOTSUP,
				       "how %s queues waiters of a mutex is not known (%s)",
				       gobin_info(b)->version, l->from);
	return 0;
}

int sched_check(struct sched *c, unsigned kind, struct err *e)
{
	int ret = kind == GPB_WAIT_MUTEX ? verify_structs(c->s, LAYOUT_USE_SEMA, e) : 0;

	return ret || kind != GPB_WAIT_MUTEX ? ret : check_queues(c->s->bin, &c->s->layout, e);
}

int sched_possible(struct gobin *b, const struct golayout *l, unsigned kind, struct err *e)
{
	int ret = kind == GPB_WAIT_MUTEX ? check_queues(b, l, e) : 0;

	for (size_t i = 0; !ret && i < SCHED_PLACES; i++) {
		struct uprobe_site site;

		if (places[i].kinds & 1u << kind)
			ret = find_site(b, 0, &places[i], WAIT_SLOT, &site, e);
	}
	return ret ? ret : wait_check(b, kind == GPB_WAIT_MUTEX, e);
}

static void name_kinds(struct sched *c)
{
	snprintf(c->what, sizeof(c->what), "%s%s%s", c->kinds & BLOCK ? "block" : "",
		 c->kinds == (BLOCK | MUTEX) ? " and " : "", c->kinds & MUTEX ? "mutex" : "");
}

int sched_count(struct sched *c, unsigned kind, bool on, struct err *e)
{
	unsigned bit = 1u << kind;

	c->kinds = on ? c->kinds | bit : c->kinds & ~bit;
	c->window.conf.kinds = c->kinds;
	name_kinds(c);
	return wait_engine_put(&c->window.engine, e);
}

int sched_join(struct subject *s, const struct collect_opts *o, const struct sched_user *u,
	       struct sched **out, struct err *e)
{
	int ret = s->sched ? 0 : sched_open(s, o, &s->sched, e);
	struct sched *c = s->sched;

	if (ret)
		return ret;
	BUG_ON(u->kind >= GPB_WAIT_KINDS || (c->kinds & 1u << u->kind));
	if (!c->kinds)
		c->fd_kind = u->kind;
	c->users[u->kind] = *u;
	ret = wait_check(s->bin, u->kind == GPB_WAIT_MUTEX, e);
	if (!ret)
		ret = sched_check(c, u->kind, e);
	/*
	 * This is done before the first window: hits that nobody wants cost nothing, and would
	 * tell nothing about cost.
	 */
	if (!ret)
		ret = sched_count(c, u->kind, true, e);
	if (!ret)
		ret = attach(c, e);
	if (!ret)
		ret = sched_window_joined(&c->window, e);
	if (ret) {
		sched_leave(c, u->kind);
		return ret;
	}
	c->start_ns[u->kind] = now_ns();
	*out = c;
	return 0;
}

int sched_fd(struct sched *c, unsigned kind)
{
	return c->fd_kind == kind ? c->window.engine.ep : -1;
}

int sched_poll(struct sched *c, struct err *e)
{
	return wait_engine_poll(&c->window.engine, e);
}

int sched_begin(struct sched *c, struct err *e)
{
	return probing_begin(c->window.engine.probing, e);
}

int sched_tick(struct sched *c, struct err *e)
{
	int ret;

	if (c->s->images.n == c->nimages)
		return 0;
	ret = wait_engine_target(&c->window.engine, e);
	return ret ? ret : attach(c, e);
}

/* ---- the end ---- */

/* Ends all kinds, which end together. */
static int end_all(struct sched *c, struct err *e)
{
	int ret;

	if (c->window.engine.ended)
		return 0;
	c->end_ns = now_ns();
	ret = wait_engine_stop(&c->window.engine, e);
	sched_window_end(&c->window);
	return ret;
}

/*
 * Goroutines that waited when the window ended, without those that were seen to begin. For
 * semaphores it cannot be told whether Go's block profile leaves them out: the runtime's own are
 * counted, too.
 */
static int64_t count_through(struct sched *c, uint64_t waiting)
{
	struct wait_left left;
	uint64_t sum = 0;

	if (verify_structs(c->s, LAYOUT_USE_GOROUTINES, NULL) || wait_left(c->s, &left, NULL))
		return -1;
	for (unsigned i = 0; i < 64; i++)
		if (c->window.conf.reasons >> i & 1)
			sum += left.waiting[i];
	return sum > waiting ? (int64_t)(sum - waiting) : 0;
}

static size_t count_sites(const struct sched *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->nimages; i++)
		n += c->nsites[i];
	return n;
}

/* From when on this kind counted: it had joined, and hits counted. */
static uint64_t start_of(const struct sched *c, unsigned kind)
{
	uint64_t counted = probing_since(c->window.engine.probing);

	return counted > c->start_ns[kind] ? counted : c->start_ns[kind];
}

/*
 * Of many these are its own alone, but for what its slot lost, which is told with the profile. A goroutine that found no place
 * in the table is also unknown when it is woken: it is a loss, and did not begin early.
 */
static void fill_losses(const struct sched *c, struct sched_result *out)
{
	const struct wait_engine *en = &c->window.engine;
	struct loss slot = { 0 };
	uint64_t lost;

	bpf_losses(en->object.losses, &slot);
	lost = slot.n[LOSS_WAITS_UNKNOWN];
	if (en->shared)
		wait_engine_lost(en, c->left, &out->loss);
	else
		wait_engine_losses(en, &out->loss);
	out->begun_before -= lost < out->begun_before ? lost : out->begun_before;
	if (out->windowed)
		out->begun_before = 0;
	out->loss.n[LOSS_WAITS_UNKNOWN] += en->result.beyond;
}

static int result_of(struct sched *c, unsigned kind, struct sched_result *out, struct err *e)
{
	const struct sched_window *w = &c->window;
	const struct wait_engine *en = &w->engine;
	struct gpb_sched_seen seen;
	int ret = wait_engine_seen(en, &seen, e);

	if (ret)
		return ret;
	*out = (struct sched_result){
		.ended = seen.ended[kind],
		.sampled = seen.sampled[kind],
		.rate = kind == GPB_WAIT_BLOCK ? en->o.block.rate_ns : en->o.mutex.fraction,
		.begun_before = seen.begun_before,
		.nsites = count_sites(c),
		.multi = en->object.multi,
		.windowed = probing_windowed(en->probing),
		.looks = en->result,
		.no_looks = en->why.msg[0] ? en->why.msg : NULL,
		.part_known = w->cut,
		.cut = en->cut,
		.unmet = dilation_unmet(&en->slow),
		.maybe_yields = dilation_maybe_yields(&en->slow),
		.yields = dilation_yields(&en->slow),
		.unseen_ns = w->locked.known ? 0 : w->locked.delay,
		.start_ns = start_of(c, kind),
		.end_ns = c->end_ns,
	};
	fill_losses(c, out);
	return 0;
}

/* Waits that began in the window and had not ended when it did. */
static int count_waiting(const struct sched *c, uint64_t *out, struct err *e)
{
	if (!c->window.engine.shared)
		return sched_window_waiting(&c->window, c->window.engine.opened, out, e);
	*out = c->waiting;
	return 0;
}

int sched_drain(struct sched *c, unsigned kind, struct sched_result *out, struct err *e)
{
	const struct sched_user *u = &c->users[kind];
	int ret = end_all(c, e);

	if (!ret)
		ret = result_of(c, kind, out, e);
	if (ret)
		return ret;
	out->whole = sched_window_whole(&c->window, kind);
	ret = wait_estimates_each(&c->window.engine, kind, u->add, u->arg, &out->whole, e);
	if (ret || kind != GPB_WAIT_BLOCK)
		return ret;
	out->through = -1;
	if (out->windowed)
		return 0;
	ret = count_waiting(c, &out->waiting, e);
	if (!ret)
		out->through = count_through(c, out->waiting);
	return ret;
}

int sched_comment(struct sched *c, struct prof *prof, struct err *e)
{
	return probing_comment(c->window.engine.probing, prof, e);
}

void sched_leave(struct sched *c, unsigned kind)
{
	if (!c)
		return;
	(void)sched_count(c, kind, false, NULL);
	c->users[kind] = (struct sched_user){};
	if (c->kinds)
		return;
	c->s->sched = NULL;
	sched_free(c);
}
