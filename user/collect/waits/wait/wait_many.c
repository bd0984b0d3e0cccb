/* user/collect/waits/wait/wait_many.c - the part that each of many targets has of the probes on changes of a goroutine's status. */
#include "collect/waits/wait/wait_many.h"

#include "collect/waits/wait/wait_priv.h"
#include "collect/waits/engine/waits_many.h"
#include "probe/bpf.h"

struct many {
	struct waits_many waits; /* first */
	struct wait_bpf *obj;
};

static struct wait *wait_of(void *part)
{
	return ((struct waits_part *)part)->own;
}

static struct wait_bpf *object_of(const struct waits_part *k)
{
	return ((const struct many *)k->m->probed.arg)->obj;
}

/* ---- the object ---- */

static int object_open(void *arg, struct probed *p, uint32_t slots, uint32_t pidns_ino,
		       struct err *e)
{
	struct many *m = arg;
	int ret = wait_object_open(&m->obj, p->sets.multi, slots, true, e);

	if (ret)
		return ret;
	m->obj->rodata->pidns_ino = pidns_ino;
	probed_size(p, m->obj->maps.ring, m->obj->maps.stacks);
	ret = wait_bpf__load(m->obj);
	if (ret)
		return bpf_load_error(e, ret, NULL);
	p->object = PROBED_OBJECT(m->obj);
	m->waits.table = (struct wait_table){ .fd = bpf_map__fd(m->obj->maps.standings),
					      .bytes = sizeof(struct gpb_standing),
					      .last = wait_table_standing,
					      .of = m->obj->bss->standings_of,
					      .all = (__u64 *)&m->obj->bss->standings_all };
	m->waits.quota = &m->obj->bss->standings_quota;
	return 0;
}

static void object_close(void *arg)
{
	struct many *m = arg;

	m->waits.quota = NULL;
	wait_bpf__destroy(m->obj);
	m->obj = NULL;
}

/* Goroutines of the slot's last target are told from new ones by gpb_waiting.from. */
static int slot_clear(void *arg, uint32_t at, struct err *e)
{
	struct many *m = arg;

	m->obj->bss->wait_counted[at] = 0;
	return probed_zero(m->obj->maps.seen, at, e);
}

/* ---- a target's part ---- */

static int part_new(void *arg, struct engine_target *t, void **part, struct loss **loss,
		    struct err *e)
{
	struct many *m = arg;
	int ret = waits_part_new(&m->waits, t, part, e);
	struct waits_part *k = *part;
	struct wait *w;

	if (!ret)
		ret = wait_new(t->subject, &m->waits.probed.o, &w, e);
	if (ret)
		return ret;
	k->own = w;
	k->engine = &w->window.engine;
	*loss = &w->loss;
	return 0;
}

static int part_slot(void *part, uint32_t at, struct err *e)
{
	struct waits_part *k = part;
	struct wait *w = wait_of(part);

	w->obj = object_of(part);
	k->engine->object = wait_object_of(w->obj, k->m->probed.sets.multi);
	return waits_part_slot(k, at, &w->window.conf.from, e);
}

static void part_free(void *part)
{
	if (part)
		wait_free(wait_of(part));
	free(part);
}

/* ---- the sites of a file ---- */

struct site_list {
	struct uprobe_group group;
	struct uprobe_site at[WAITSITES_MAX];
};

static int find(void *part, uint32_t index, void **list, struct uprobe_group **groups, size_t *n,
		void **sites, struct err *e)
{
	struct wait *w = wait_of(part);
	struct site_list *l = *list = calloc(1, sizeof(*l));
	size_t *nsites = *sites = calloc(1, sizeof(*nsites));
	int ret;

	if (!l || !nsites)
		return err_set(e, -ENOMEM, "no memory for probes");
	ret = wait_sites_in(w, 0, index, l->at, e);
	if (ret < 0)
		return ret;
	*nsites = w->nsites = (size_t)ret;
	l->group = (struct uprobe_group){ .prog = w->obj->progs.wait_status,
					  .sites = l->at,
					  .n = *nsites };
	*groups = &l->group;
	*n = 1;
	return 0;
}

static void found(void *part, void *sites)
{
	wait_of(part)->nsites = *(const size_t *)sites;
}

static const struct probed_kind waits = {
	.set = { .what = "wait", .find = find, .found = found },
	.open = object_open,
	.close = object_close,
	.clear = slot_clear,
	.part_new = part_new,
	.part_slot = part_slot,
	.part_free = part_free,
	.add = waits_part_add,
};

/* ---- the kind ---- */

static void many_free(void *state)
{
	struct many *m = state;

	waits_many_fini(&m->waits);
	free(m);
}

static void many_freep(struct many **m)
{
	if (*m)
		many_free(*m);
}

static int many_open(const struct engine_kind *kind, const struct collect_opts *o,
		     unsigned expected, void **state, struct err *e)
{
	CLEANUP(many_freep) struct many *m = calloc(1, sizeof(*m));
	int ret;

	(void)kind;
	if (!m)
		return err_set(e, -ENOMEM, "no memory");
	ret = waits_many_open(&m->waits, &waits, m, o, expected, e);
	if (ret)
		return ret;
	*state = TAKE(m);
	return 0;
}

static int many_put(void *state, struct engine_target *t, void **kept, struct err *e)
{
	struct many *m = state;
	struct set_member *k = *kept;
	int ret;

	if (k) /* a plugin came, whose stacks are walked, too */
		return wait_engine_target(((struct waits_part *)k->part)->engine, e);
	ret = waits_many_add(&m->waits, t, &k, e);
	if (!ret)
		*kept = k;
	return ret;
}

static void many_forget(void *state, struct engine_target *t, void *kept)
{
	(void)t;
	waits_many_forget(&((struct many *)state)->waits, kept);
}

static int many_profile(void *state, struct engine_target *t, void *kept, struct prof **out,
			struct err *e)
{
	struct many *m = state;
	struct set_member *k = kept;
	struct wait *w = wait_of(k->part);
	struct probed_part part;
	int ret = waits_many_finish(&m->waits, k, &part, e);

	(void)t;
	if (ret)
		return ret;
	w->start = (uint64_t)part.start_ns;
	w->end = (uint64_t)part.end_ns;
	w->start_unix_ns = part.start_unix_ns;
	wait_engine_end(&w->window.engine);
	ret = wait_finish(w, e);
	if (ret)
		return ret;
	wait_engine_lost(&w->window.engine, k->d.left, &w->loss);
	ret = probed_tell(&m->waits.probed, k, w->out.prof, e);
	if (!ret)
		*out = wait_prof_take(&w->out);
	return ret;
}

const struct engine_kind engine_wait = {
	.name = "wait",
	.reads = true,
	.probes = true,
	.readers = WAITS_READERS,
	.open = many_open,
	.free = many_free,
	.fd = probed_fd,
	.poll = waits_many_poll,
	.put = many_put,
	.remove = waits_many_remove,
	.forget = many_forget,
	.begin = waits_many_begin,
	.tick = waits_many_tick,
	.taken_ns = probed_taken_ns,
	.close = probed_close,
	.stop = probed_stop,
	.drain = probed_drain,
	.profile = many_profile,
	.done = probed_done,
	.forget_file = probed_forget_file,
	.shared = probed_shared,
};
