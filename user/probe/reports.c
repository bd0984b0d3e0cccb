/* user/probe/reports.c - takes records from the ring and hands each to where it belongs. */
#include "probe/reports.h"

#include <bpf/bpf.h>

#include "goprof_abi.h"
#include "probe/bpf.h"
#include "profile/loss.h"

bool reports_whole(struct reports *f, const struct gpb_stack *st)
{
	bool whole = gpb_stack_whole(st);

	f->frameless += !whole;
	return whole;
}

/* Where each kind of record has its slot. False: it is too short to have one. */
static bool slot_of(const void *data, size_t len, uint32_t *slot)
{
	const struct gpb_rec_raw *rec = data;
	size_t least;

	switch (rec->type) {
	case GPB_REC_LABELS:
		least = offsetof(struct gpb_rec_labels, label);
		break;
	case GPB_REC_OBJECT:
		least = sizeof(struct gpb_rec_object);
		break;
	case GPB_REC_CYCLE:
		least = sizeof(struct gpb_rec_cycle);
		break;
	default:
		least = offsetof(struct gpb_rec_raw, stack.pc);
	}
	if (len < least)
		return false;
	*slot = rec->type == GPB_REC_LABELS ? ((const struct gpb_rec_labels *)data)->slot :
		rec->type == GPB_REC_OBJECT ? ((const struct gpb_rec_object *)data)->slot :
		rec->type == GPB_REC_CYCLE  ? (uint32_t)((const struct gpb_rec_cycle *)data)->slot :
					      rec->stack.slot;
	return true;
}

/* The target that a record is of; NULL: it is not wanted. A record that is too short tells none. */
static struct subject *subject_of(struct reports *f, const void *data, size_t len)
{
	const struct gpb_rec_labels *l = data;
	uint32_t slot;

	if (f->s)
		return f->s;
	if (!slot_of(data, len, &slot))
		return NULL;
	return f->whose(f->arg, slot, l->type == GPB_REC_LABELS ? l : NULL, len);
}

/* Another target may have the same label set, and is to send it: the kernel must not take it to be known. */
static void not_wanted(struct reports *f, const void *data, size_t len)
{
	const struct gpb_rec_labels *l = data;

	f->nobodys++;
	if (f->sent_fd > 0 && l->type == GPB_REC_LABELS &&
	    len >= offsetof(struct gpb_rec_labels, label))
		bpf_map_delete_elem(f->sent_fd, &l->id);
}

static int add_keyed(struct reports *f, const struct gpb_rec_raw *rec, const struct gpb_stack *st)
{
	const struct gpb_hash key = { .lo = rec->pc, .hi = rec->sp };
	int ret;

	f->key = rec->type == GPB_REC_STACK ? &key : NULL;
	ret = f->add(f->arg, st, &f->why);
	f->key = NULL;
	return ret;
}

static int on_record(void *arg, void *data, size_t len)
{
	struct reports *f = arg;
	const struct gpb_rec_raw *rec = data;
	const struct gpb_stack *st = NULL;
	struct subject *s;
	int ret = 0;

	if (len < sizeof(rec->type))
		return 0;
	s = subject_of(f, data, len);
	if (!s) {
		not_wanted(f, data, len);
		return 0;
	}
	if (rec->type == GPB_REC_LABELS)
		ret = labelsets_add(&f->labels, data, len, &f->why);
	else if (rec->type == GPB_REC_RAW)
		ret = unwind_rules_settle(&f->rules, s, data, len, &st, &f->why);
	else if (rec->type == GPB_REC_STACK && len >= offsetof(struct gpb_rec_raw, top))
		ret = unwind_rules_settle_bare(&f->rules, s, &rec->stack, &st, &f->why);
	if (st && !reports_whole(f, st))
		return 0;
	if (!ret && st)
		ret = add_keyed(f, rec, st);
	if (!ret && f->other && rec->type != GPB_REC_LABELS && rec->type != GPB_REC_RAW)
		ret = f->other(f->other_arg, data, len, &f->why);
	if (ret < 0 && !f->failed)
		f->failed = ret;
	return 0;
}

int reports_open(struct reports *f, struct subject *s, const struct bpf_map *ring,
		 const struct bpf_map *rules, reports_add *add, void *arg, struct err *e)
{
	int ret = labelsets_init(&f->labels, e);

	if (ret)
		return ret;
	f->add = add;
	f->arg = arg;
	f->s = s;
	unwind_rules_init(&f->rules, bpf_map__fd(rules));
	f->ring = ring_buffer__new(bpf_map__fd(ring), on_record, f, NULL);
	return f->ring ? 0 : err_sys(e, "ring buffer");
}

int reports_open_probed(struct reports *f, struct subject *s, const struct bpf_map *ring,
			const struct bpf_map *rules, reports_add *add, void *arg, struct err *e)
{
	int ret = reports_open(f, s, ring, rules, add, arg, e);

	if (!ret && bpf_stale_fp(s))
		unwind_rules_foresee(&f->rules, s, UNWIND_RULES_FORESEEN);
	return ret;
}

void reports_fini(struct reports *f)
{
	ring_buffer__free(f->ring);
	unwind_rules_fini(&f->rules);
	labelsets_fini(&f->labels);
}

int reports_fd(const struct reports *f)
{
	return ring_buffer__epoll_fd(f->ring);
}

int reports_poll(struct reports *f, struct err *e)
{
	ring_buffer__consume(f->ring);
	if (f->failed)
		return err_set(e, f->failed, "%s", f->why.msg);
	return 0;
}

static int add_whole(void *arg, const struct gpb_stack *st, struct err *e)
{
	struct reports *f = arg;

	return reports_whole(f, st) ? f->add(f->arg, st, e) : 0;
}

int reports_drain(struct reports *f, const struct bpf_map *stacks, struct err *e)
{
	int ret = reports_poll(f, e);

	return ret ? ret : bpf_each_stack(bpf_map__fd(stacks), add_whole, f, e);
}

uint64_t reports_missed(const struct bpf_object *obj)
{
	struct bpf_program *p;
	uint64_t sum = 0;

	bpf_object__for_each_program(p, obj)
	{
		struct bpf_prog_info info = {};
		uint32_t len = sizeof(info);

		if (!bpf_obj_get_info_by_fd(bpf_program__fd(p), &info, &len))
			sum += info.recursion_misses;
	}
	return sum;
}

void reports_losses(const struct reports *f, const struct gpb_tally *of,
		    const struct bpf_object *obj, struct loss *to)
{
	bpf_losses(of, to);
	to->n[LOSS_STACKS_CUT] += f->rules.cut;
	to->n[LOSS_STACKS_UNREADABLE] += f->rules.broken + f->frameless;
	if (obj)
		to->n[LOSS_PROBES_MISSED] += reports_missed(obj);
}
