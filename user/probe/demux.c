/* user/probe/demux.c - records by slot, and what one target's records lose is its own loss. */
#include "probe/demux.h"

#include <bpf/bpf.h>

#include "probe/bpf.h"
#include "probe/quota.h"

enum {
	STACKS = 8192,	  /* room of the kernel's table */
	DRAIN_TICKS = 10, /* it is emptied at least so often */
	/* as a part of one half, where half of those that are expected come: a record with 8 KiB of a stack */
	RING_PER_TARGET = 10 << 10,
	RING_MIN = 4 << 20, /* twice this is resident, since it is mapped twice */
	RING_MAX = 8 << 20,
	KEEP_STACKS = 1 << 16, /* where they are not set: some 64 MB of stacks that were probed */
	LABEL_BYTES =
		32 << 20, /* of records of label sets; kept, they take less, since words repeat */
};

/* What the CPUs may overdraw by together, each by one record. */
static size_t ring_slack(void)
{
	return (size_t)libbpf_num_possible_cpus() * GPB_RING_RECORD(sizeof(struct gpb_rec_raw));
}

void demux_size(struct demux *d, struct bpf_map *ring, struct bpf_map *stacks, unsigned expected)
{
	size_t want = ring_slack() + (size_t)expected * RING_PER_TARGET;

	d->ring_bytes = RING_MIN;
	while (d->ring_bytes < want && d->ring_bytes < RING_MAX)
		d->ring_bytes *= 2;
	bpf_map__set_max_entries(ring, d->ring_bytes);
	bpf_map__set_max_entries(stacks, STACKS);
}

/* The target that has this slot; NULL: its generation is over. */
static struct demux_target *target_in(const struct demux *d, uint32_t slot)
{
	struct demux_target *t = d->at[demux_index(slot)];

	return t && t->slot == slot ? t : NULL;
}

static void give(struct demux *d, const struct gpb_hash *key, const struct gpb_stack *st)
{
	struct demux_target *t = target_in(d, st->slot);

	if (t && d->add(d->arg, t, key, st))
		t->loss->n[LOSS_STACKS_UNREADABLE] += st->count;
}

static int add_stack(void *arg, const struct gpb_stack *st, struct err *e)
{
	struct demux *d = arg;

	(void)e;
	give(d, d->reports.key, st);
	return 0;
}

static int take_other(void *arg, const void *rec, size_t len, struct err *e)
{
	const struct gpb_rec_raw *r = rec;
	struct demux *d = arg;

	(void)e;
	if (d->other && d->current && r->type != GPB_REC_STACK)
		d->other(d->arg, d->current, rec, len);
	return 0;
}

/* What was lost of the record that was handled last is its target's loss. */
static void attribute(struct demux *d, struct demux_target *next)
{
	const struct reports *f = &d->reports;
	uint64_t broken = f->rules.broken + f->frameless;

	if (d->current) {
		d->current->loss->n[LOSS_STACKS_CUT] += f->rules.cut - d->cut;
		d->current->loss->n[LOSS_STACKS_UNREADABLE] += broken - d->broken;
	}
	d->cut = f->rules.cut;
	d->broken = broken;
	d->current = next;
}

bool demux_labels_fit(struct demux *d, struct demux_target *t, const struct gpb_rec_labels *l,
		      size_t len)
{
	uint64_t known;

	if (map_get(&d->reports.labels.by_id, l->id, &known))
		return true;
	/* What those have that are gone stays until the window's profiles are made. */
	if (d->labels + len > LABEL_BYTES ||
	    !gpb_quota_allows(&d->labels_quota, t->labels, d->labels, len))
		return false;
	t->labels += len;
	d->labels += len;
	return true;
}

static struct subject *whose(void *arg, uint32_t slot, const struct gpb_rec_labels *labels,
			     size_t len)
{
	struct demux *d = arg;
	struct demux_target *t = target_in(d, slot);

	attribute(d, t);
	d->o.taken[demux_index(slot)].bytes += GPB_RING_RECORD(len);
	if (t && labels && !demux_labels_fit(d, t, labels, len))
		return NULL; /* its samples will say that their labels are missing */
	return t ? t->s : NULL;
}

static int take_stack(void *arg, const struct gpb_hash *key, const struct gpb_stack *st,
		      struct err *e)
{
	struct demux *d = arg;
	struct demux_target *t = target_in(d, st->slot);
	int ret;

	d->o.taken[demux_index(st->slot)].stacks++;
	__atomic_store_n(d->o.taken_all, *d->o.taken_all + 1, __ATOMIC_RELAXED);
	if (!t)
		return 0;
	attribute(d, t);
	ret = unwind_rules_settle_bare(&d->reports.rules, t->s, st, &st, e);
	if (!ret && reports_whole(&d->reports, st))
		give(d, key, st);
	attribute(d, NULL);
	return ret;
}

int demux_open(struct demux *d, struct demux_object o, demux_add *add, void *arg, struct err *e)
{
	d->o = o;
	d->add = add;
	d->arg = arg;
	d->reports.whose = whose;
	d->reports.sent_fd = bpf_map__fd(o.labelsets);
	d->reports.other = take_other;
	d->reports.other_arg = d;
	demux_share(d, 1);
	return reports_open(&d->reports, NULL, o.ring, o.rules, add_stack, d, e);
}

void demux_fini(struct demux *d)
{
	reports_fini(&d->reports);
	memset(d, 0, sizeof(*d));
}

/* ---- targets ---- */

void demux_put(struct demux *d, struct demux_target *t)
{
	d->at[demux_index(t->slot)] = t;
}

void demux_forget(struct demux *d, struct demux_target *t)
{
	if (d->at[demux_index(t->slot)] != t)
		return;
	d->at[demux_index(t->slot)] = NULL;
	if (d->current == t)
		d->current = NULL;
	demux_keeps(d, t, 0);
}

/* What it keeps beyond its part. */
static uint64_t beyond(const struct demux *d, uint64_t stacks)
{
	return stacks > d->keep_quota.part ? stacks - d->keep_quota.part : 0;
}

void demux_share(struct demux *d, size_t targets)
{
	if (targets == d->targets)
		return;
	d->targets = targets;
	*d->o.stacks_quota = quota_of(STACKS, (size_t)libbpf_num_possible_cpus(), targets);
	*d->o.ring_quota = quota_of(d->ring_bytes, ring_slack(), targets);
	d->labels_quota = quota_of(LABEL_BYTES, 0, targets);
	d->keep_quota = quota_of(d->keep_stacks ?: KEEP_STACKS, 0, targets);
	d->beyond = 0;
	for (size_t i = 0; i < GPB_CPU_TARGETS; i++)
		d->beyond += d->at[i] ? beyond(d, d->at[i]->stacks) : 0;
}

bool demux_has_room(const struct demux *d, const struct demux_target *t)
{
	return t->stacks < d->keep_quota.part || d->beyond < d->keep_quota.free;
}

void demux_keeps(struct demux *d, struct demux_target *t, uint64_t n)
{
	d->beyond += beyond(d, n) - beyond(d, t->stacks);
	t->stacks = n;
}

/* ---- taking ---- */

int demux_poll(struct demux *d, struct err *e)
{
	int ret = reports_poll(&d->reports, e);

	attribute(d, NULL);
	return ret;
}

bool demux_fills(const struct demux *d)
{
	return *d->o.put_all - *d->o.taken_all >= STACKS / 4;
}

int demux_take(struct demux *d, struct err *e)
{
	int ret = demux_poll(d, e);

	d->ticks = 0;
	return ret ? ret : bpf_take_stacks(bpf_map__fd(d->o.stacks), d->o.rounds, take_stack, d, e);
}

int demux_tick(struct demux *d, struct err *e)
{
	return ++d->ticks < DRAIN_TICKS && !demux_fills(d) ? 0 : demux_take(d, e);
}

static void note_left(void *arg, uint32_t slot, uint64_t count)
{
	struct demux_target *t = target_in(arg, slot);

	if (t)
		t->left += count;
}

int demux_drain(struct demux *d, struct err *e)
{
	int ret = demux_take(d, e);

	for (size_t i = 0; i < GPB_CPU_TARGETS; i++)
		if (d->at[i])
			d->at[i]->left = 0;
	return ret ? ret : bpf_each_left(d->o.stacks, d->o.scratches, d->o.rounds, note_left, d, e);
}

/* The ids of label sets that the kernel takes to be known here: they are not any more. */
int demux_done(struct demux *d, struct err *e)
{
	uint64_t id;

	labelsets_fini(&d->reports.labels);
	d->labels = 0;
	for (size_t i = 0; i < GPB_CPU_TARGETS; i++)
		if (d->at[i])
			d->at[i]->labels = 0;
	while (!bpf_map_get_next_key(d->reports.sent_fd, NULL, &id) &&
	       !bpf_map_delete_elem(d->reports.sent_fd, &id))
		;
	return labelsets_init(&d->reports.labels, e);
}
