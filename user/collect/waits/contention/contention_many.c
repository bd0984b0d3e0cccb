/*
 * user/collect/waits/contention/contention_many.c - block and mutex profiles of many: which are read, and the part that each has of what is
 * probed. Both kinds have one object, one set of probes for each file, and one part for each target.
 */
#include "collect/waits/contention/contention_many.h"

#include <bpf/libbpf.h>

#include "collect/collect.h"
#include "collect/reading.h"
#include "collect/waits/contention/contention_probe.h"
#include "collect/waits/contention/contention_read.h"
#include "collect/waits/contention/sched_priv.h"
#include "collect/waits/engine/waits_many.h"
#include "probe/bpf.h"

struct many {
	struct waits_many waits;
	struct sched_bpf *obj;
	unsigned kinds; /* that are asked for, 1 << GPB_WAIT_* */
	bool counted;	/* waiting is of now: */
	uint64_t waiting[GPB_CPU_TARGETS];
};

/* One of the two kinds: what open() gives. */
struct asking {
	enum contention what;
	unsigned kind; /* GPB_WAIT_* */
	enum source_wanted source;
	struct many *m;
	bool first; /* it does what is to be done once for both, and owns m */
	const struct engine_kind *read;
	void *reading; /* read's */
};

/* What is probed in a file, and why not more. */
struct file_sites {
	size_t n;
	unsigned kinds;
	struct err why[GPB_WAIT_KINDS];
};

/* What is probed of a target: waits_part.own. */
struct own {
	struct sched *c; /* owned */
	struct file_sites file;
	struct loss loss;
	bool ended;
};

/* What a kind keeps of a target: one of the two. */
struct many_kept {
	void *read;
	struct set_member *probed;
};

static struct own *own_of(void *part)
{
	return ((struct waits_part *)part)->own;
}

/* ---- the object ---- */

static int object_open(void *arg, struct probed *p, uint32_t slots, uint32_t pidns_ino,
		       struct err *e)
{
	struct many *m = arg;
	int ret = sched_object_open(&m->obj, p->sets.multi, slots, true, e);

	if (ret)
		return ret;
	m->obj->rodata->pidns_ino = pidns_ino;
	probed_size(p, m->obj->maps.ring, m->obj->maps.stacks);
	ret = sched_bpf__load(m->obj);
	if (ret)
		return bpf_load_error(e, ret, NULL);
	p->object = PROBED_OBJECT(m->obj);
	m->waits.table = (struct wait_table){ .fd = bpf_map__fd(m->obj->maps.waits),
					      .bytes = sizeof(struct gpb_wait),
					      .last = wait_table_wait,
					      .of = m->obj->bss->waits_of,
					      .all = (__u64 *)&m->obj->bss->waits_all };
	m->waits.quota = &m->obj->bss->waits_quota;
	return 0;
}

static void object_close(void *arg)
{
	struct many *m = arg;

	m->waits.quota = NULL;
	sched_bpf__destroy(m->obj);
	m->obj = NULL;
}

/* Goroutines of the slot's last target are told from new ones by gpb_sched.from. */
static int slot_clear(void *arg, uint32_t at, struct err *e)
{
	struct many *m = arg;

	m->obj->bss->sched_counted[at] = 0;
	return probed_zero(m->obj->maps.seen, at, e);
}

/* ---- a target's part ---- */

static int part_new(void *arg, struct engine_target *t, void **part, struct loss **loss,
		    struct err *e)
{
	struct many *m = arg;
	int ret = waits_part_new(&m->waits, t, part, e);
	struct own *own = ret ? NULL : calloc(1, sizeof(*own));

	if (ret)
		return ret;
	if (!own)
		return err_set(e, -ENOMEM, "no memory for a target");
	((struct waits_part *)*part)->own = own;
	*loss = &own->loss;
	ret = sched_new(t->subject, &m->waits.probed.o, &own->c, e);
	if (!ret)
		((struct waits_part *)*part)->engine = &own->c->window.engine;
	return ret;
}

static int part_slot(void *part, uint32_t at, struct err *e)
{
	struct waits_part *k = part;
	struct sched *c = own_of(part)->c;

	c->obj = ((struct many *)k->m->probed.arg)->obj;
	k->engine->object = sched_object_of(c->obj, k->m->probed.sets.multi);
	k->engine->object.losses = &c->obj->bss->tallies[at];
	return waits_part_slot(k, at, &c->window.conf.from, e);
}

static void part_free(void *part)
{
	struct own *own = part ? own_of(part) : NULL;

	if (own)
		sched_free(own->c);
	free(own);
	free(part);
}

/* ---- the sites of a file ---- */

struct site_list {
	struct uprobe_group group;
	struct uprobe_site at[SCHED_PLACES];
};

/* Which of the kinds that are asked for could be probed in this file? */
static void judge(const struct many *m, const struct sched *c, struct file_sites *f)
{
	for (unsigned kind = 0; kind < GPB_WAIT_KINDS; kind++)
		if (m->kinds >> kind & 1 &&
		    !sched_possible(c->s->bin, &c->s->layout, kind, &f->why[kind]))
			f->kinds |= 1u << kind;
}

static int find(void *part, uint32_t index, void **list, struct uprobe_group **groups, size_t *n,
		void **sites, struct err *e)
{
	const struct many *m = ((struct waits_part *)part)->m->probed.arg;
	struct sched *c = own_of(part)->c;
	struct site_list *l = *list = calloc(1, sizeof(*l));
	struct file_sites *f = *sites = calloc(1, sizeof(*f));
	int ret;

	if (!l || !f)
		return err_set(e, -ENOMEM, "no memory for probes");
	judge(m, c, f);
	if (!f->kinds)
		return err_set(
			e, -ENOTSUP, "%s",
			f->why[m->kinds & 1u << GPB_WAIT_BLOCK ? GPB_WAIT_BLOCK : GPB_WAIT_MUTEX]
				.msg);
	ret = sched_sites_in(c, 0, f->kinds, index, l->at, e);
	if (ret < 0)
		return ret;
	f->n = (size_t)ret;
	own_of(part)->file = *f;
	l->group = (struct uprobe_group){ .prog = c->obj->progs.sched_probe,
					  .sites = l->at,
					  .n = f->n };
	*groups = &l->group;
	*n = 1;
	return 0;
}

static void found(void *part, void *sites)
{
	own_of(part)->file = *(const struct file_sites *)sites;
}

static const struct probed_kind contentions = {
	.set = { .what = "block and mutex", .find = find, .found = found },
	.open = object_open,
	.close = object_close,
	.clear = slot_clear,
	.part_new = part_new,
	.part_slot = part_slot,
	.part_free = part_free,
	.add = waits_part_add,
};

/* ---- a target ---- */

/* The other kind may have it already. */
static struct set_member *member_of(const struct many *m, const struct engine_target *t)
{
	for (uint32_t i = 0; i < m->waits.probed.slots; i++) {
		struct set_member *k = probed_member(&m->waits.probed, i);

		if (k && k->t == t)
			return k;
	}
	return NULL;
}

static void leave(struct many *m, struct set_member *k, unsigned kind)
{
	struct sched *c = own_of(k->part)->c;

	(void)sched_count(c, kind, false, NULL);
	if (!c->kinds)
		waits_many_forget(&m->waits, k);
}

static int allowed(const struct own *own, unsigned kind, struct err *e)
{
	return own->file.kinds >> kind & 1 ? sched_check(own->c, kind, e) :
					     err_set(e, -ENOTSUP, "%s", own->file.why[kind].msg);
}

static int join(struct asking *a, struct engine_target *t, struct set_member **out, struct err *e)
{
	struct set_member *k = member_of(a->m, t);
	int ret = k ? 0 : waits_many_add(&a->m->waits, t, &k, e);
	struct own *own;

	if (ret)
		return ret;
	own = own_of(k->part);
	own->c->nimages = 1;
	own->c->nsites[0] = own->file.n;
	ret = allowed(own, a->kind, e);
	if (!ret)
		ret = sched_count(own->c, a->kind, true, e);
	if (ret)
		leave(a->m, k, a->kind);
	else
		*out = k;
	return ret;
}

/* What is recorded now is read, unless probes were asked for; --source=read has what was recorded earlier, too. */
static int choose(struct asking *a, struct engine_target *t, struct many_kept *k, struct err *e)
{
	int ret = a->source == SOURCE_PROBE ? -ENOTSUP :
		  a->source == SOURCE_READ  ? 0 :
					      contention_records(t->subject, a->what, e);

	if (!ret)
		ret = a->read->put(a->reading, t, &k->read, e);
	if (!ret || ret == -ESRCH || a->source == SOURCE_READ)
		return ret;
	return join(a, t, &k->probed, e);
}

static int many_put(void *state, struct engine_target *t, void **kept, struct err *e)
{
	struct many_kept *k = *kept;
	int ret;

	if (k) /* a plugin came, whose stacks are walked, too */
		return k->probed ?
			       wait_engine_target(((struct waits_part *)k->probed->part)->engine,
						  e) :
			       0;
	k = calloc(1, sizeof(*k));
	if (!k)
		return err_set(e, -ENOMEM, "no memory for a target");
	ret = choose(state, t, k, e);
	if (ret)
		free(k);
	else
		*kept = k;
	return ret;
}

static void many_remove(void *state, struct engine_target *t)
{
	waits_many_remove(&((struct asking *)state)->m->waits, t);
}

static void many_forget(void *state, struct engine_target *t, void *kept)
{
	struct asking *a = state;
	struct many_kept *k = kept;

	if (k->probed)
		leave(a->m, k->probed, a->kind);
	else
		a->read->forget(a->reading, t, k->read);
	free(k);
}

/* ---- what is done once for both ---- */

static void asking_free(void *state)
{
	struct asking *a = state;

	if (a->first && a->m)
		waits_many_fini(&a->m->waits);
	if (a->first)
		free(a->m);
	if (a->reading)
		a->read->free(a->reading);
	free(a);
}

static void asking_freep(struct asking **a)
{
	if (*a)
		asking_free(*a);
}

static int open_probes(struct asking *a, const struct collect_opts *o, unsigned expected,
		       struct err *e)
{
	a->first = true;
	a->m = calloc(1, sizeof(*a->m));
	if (!a->m)
		return err_set(e, -ENOMEM, "no memory");
	return waits_many_open(&a->m->waits, &contentions, a->m, o, expected, e);
}

static int many_open(const struct engine_kind *kind, const struct collect_opts *o,
		     unsigned expected, void **state, struct err *e)
{
	CLEANUP(asking_freep) struct asking *a = calloc(1, sizeof(*a));
	const struct asking *other = *state;
	int ret = 0;

	if (!a)
		return err_set(e, -ENOMEM, "no memory");
	a->what = kind == &engine_mutex ? CONTENTION_MUTEX : CONTENTION_BLOCK;
	a->kind = a->what == CONTENTION_MUTEX ? GPB_WAIT_MUTEX : GPB_WAIT_BLOCK;
	a->source = o->source;
	a->read = kind->arg;
	if (other)
		a->m = other->m;
	else
		ret = open_probes(a, o, expected, e);
	if (!ret)
		ret = a->read->open(a->read, o, expected, &a->reading, e);
	if (ret)
		return ret;
	a->m->kinds |= 1u << a->kind;
	*state = TAKE(a);
	return 0;
}

static int many_fd(void *state)
{
	const struct asking *a = state;

	return a->first ? probed_fd(&a->m->waits.probed) : -1;
}

static int many_poll(void *state, struct err *e)
{
	struct asking *a = state;

	return a->first ? waits_many_poll(&a->m->waits, e) : 0;
}

static int many_begin(void *state, struct err *e)
{
	struct asking *a = state;

	return a->first ? waits_many_begin(&a->m->waits, e) : 0;
}

static int many_tick(void *state, size_t targets, struct err *e)
{
	struct asking *a = state;

	return a->first ? waits_many_tick(&a->m->waits, targets, e) : 0;
}

static uint64_t many_taken_ns(void *state)
{
	struct asking *a = state;

	return a->first ? probed_taken_ns(&a->m->waits.probed) : 0;
}

static void many_close(void *state)
{
	struct asking *a = state;

	if (a->first)
		probed_close(&a->m->waits.probed);
}

static void many_stop(void *state)
{
	struct asking *a = state;

	if (a->first)
		probed_stop(&a->m->waits.probed);
}

static int many_drain(void *state, struct err *e)
{
	struct asking *a = state;

	a->m->counted = false;
	return a->first ? probed_drain(&a->m->waits.probed, e) : 0;
}

static int many_done(void *state, struct err *e)
{
	struct asking *a = state;

	return a->first ? probed_done(&a->m->waits.probed, e) : 0;
}

static const struct engine_shared *many_shared(void *state, size_t *n)
{
	struct asking *a = state;

	*n = 0;
	return a->first ? probed_shared(&a->m->waits.probed, n) : NULL;
}

/* ---- profiles ---- */

/* Has a wait that this target's probes saw begin, while they saw everything, not ended? */
static bool waits_still(void *arg, uint32_t slot, const void *goroutine)
{
	const struct many *m = arg;
	struct set_member *k = probed_member(&m->waits.probed, slot);
	const struct wait_engine *w = k ? ((struct waits_part *)k->part)->engine : NULL;

	return w && w->opened && w->kind->since(goroutine) >= w->opened;
}

/* One pass for all whose profiles are made now. */
static uint64_t waiting_of(struct many *m, const struct waits_part *k)
{
	if (!m->counted)
		wait_table_count(&m->waits.table, waits_still, m, m->waiting);
	m->counted = true;
	return m->waiting[k->at];
}

/* What both kinds have of it is whole. */
static void end_part(struct many *m, struct set_member *k, const struct probed_part *part)
{
	struct own *own = own_of(k->part);
	struct sched *c = own->c;

	if (own->ended)
		return;
	own->ended = true;
	for (unsigned kind = 0; kind < GPB_WAIT_KINDS; kind++)
		c->start_ns[kind] = (uint64_t)part->start_ns;
	c->end_ns = (uint64_t)part->end_ns;
	c->left = k->d.left;
	sched_window_end(&c->window);
	if (!probing_windowed(c->window.engine.probing))
		c->waiting = waiting_of(m, k->part);
}

static int profile(struct asking *a, struct set_member *k, struct prof **out, struct err *e)
{
	CLEANUP(contention_probe_freep) struct contention_probe *c = NULL;
	struct waits_many *w = &a->m->waits;
	struct probed_part part;
	int ret = waits_many_finish(w, k, &part, e);

	if (ret)
		return ret;
	end_part(a->m, k, &part);
	ret = contention_probe_finish(own_of(k->part)->c, a->what, part.start_unix_ns, &c, e);
	if (!ret)
		ret = probed_tell(&w->probed, k, contention_probe_prof(c), e);
	if (!ret)
		*out = contention_probe_take(c);
	return ret;
}

static int many_profile(void *state, struct engine_target *t, void *kept, struct prof **out,
			struct err *e)
{
	struct asking *a = state;
	struct many_kept *k = kept;

	return k->probed ? profile(a, k->probed, out, e) :
			   a->read->profile(a->reading, t, k->read, out, e);
}

static bool many_probed(const void *kept)
{
	return ((const struct many_kept *)kept)->probed;
}

static bool many_forget_file(void *state, uint16_t number)
{
	return probed_forget_file(&((struct asking *)state)->m->waits.probed, number);
}

static const struct prof *many_first(void *state, const void *kept)
{
	const struct asking *a = state;
	const struct many_kept *k = kept;

	return k->probed ? NULL : a->read->first(a->reading, k->read);
}

#define KIND(kind, other, reader)                                                                 \
	{                                                                                         \
		.name = kind, .reads = true, .probes = true, .readers = WAITS_READERS,            \
		.with = other, .open = many_open, .free = asking_free, .fd = many_fd,             \
		.poll = many_poll, .put = many_put, .remove = many_remove, .forget = many_forget, \
		.begin = many_begin, .tick = many_tick, .taken_ns = many_taken_ns,                \
		.close = many_close, .stop = many_stop, .drain = many_drain,                      \
		.profile = many_profile, .probed = many_probed, .first = many_first,              \
		.done = many_done, .forget_file = many_forget_file, .shared = many_shared,        \
		.arg = reader,                                                                    \
	}

const struct engine_kind engine_block = KIND("block", NULL, &engine_block_read);
const struct engine_kind engine_mutex = KIND("mutex", &engine_block, &engine_mutex_read);
