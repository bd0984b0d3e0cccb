/*
 * user/probe/demux.h - one ring and one table of stacks for many targets (a demultiplexer): takes what is in them, and
 * hands each sample to the target that it is of.
 *
 * Targets share the table, the ring, the room for label sets and the room for distinct stacks in profiles by quotas
 * (struct gpb_quota), so that what one floods is lost to itself alone.
 */
#ifndef PROBE_DEMUX_H
#define PROBE_DEMUX_H

#include "probe/reports.h"

/* One target: a kind keeps it, and sets the first four fields. */
struct demux_target {
	uint32_t slot;	   /* with its generation */
	struct subject *s; /* borrowed, as the next two */
	struct loss *loss; /* its own */
	void *owner;
	uint64_t labels, stacks; /* what it has: bytes of label records, distinct stacks */
	uint64_t left;		 /* samples that the last demux_drain() could not take */
};

/* What the BPF object has for it, borrowed. */
struct demux_object {
	const struct bpf_map *stacks, *ring, *rules, *labelsets, *scratches;
	struct gpb_rounds *rounds;
	struct gpb_taken *taken; /* by index */
	__u64 *put_all, *taken_all;
	struct gpb_quota *stacks_quota, *ring_quota;
};
#define DEMUX_OBJECT(skel)                                                                      \
	((struct demux_object){ .stacks = (skel)->maps.stacks,                                  \
				.ring = (skel)->maps.ring,                                      \
				.rules = (skel)->maps.unwind_rules,                             \
				.labelsets = (skel)->maps.labelsets,                            \
				.scratches = (skel)->maps.scratches,                            \
				.rounds = &(skel)->bss->rounds,                                 \
				.taken = (skel)->bss->taken,                                    \
				.put_all = (__u64 *)&(skel)->bss->stacks_put,                   \
				.taken_all = (__u64 *)&(skel)->bss->stacks_taken,               \
				.stacks_quota = (struct gpb_quota *)&(skel)->bss->stacks_quota, \
				.ring_quota = (struct gpb_quota *)&(skel)->bss->ring_quota })

/*
 * Takes one sample. When it fails, the sample is a loss of that target, and no error of the others. @key: in the kernel's table, by
 * which the object may tell more of it; NULL: it had none.
 */
typedef int demux_add(void *arg, struct demux_target *t, const struct gpb_hash *key,
		      const struct gpb_stack *st);
/* Takes a record that is neither a sample nor of a label set. */
typedef void demux_other(void *arg, struct demux_target *t, const void *rec, size_t len);

struct demux {
	struct reports reports;
	struct demux_object o;
	demux_add *add;
	demux_other *other; /* set after demux_open(); NULL: there are none */
	void *arg;
	struct demux_target *at[GPB_CPU_TARGETS]; /* borrowed, by index */
	struct demux_target *current;		  /* whose record is being handled */
	uint64_t cut,
		broken;	 /* what rules and reports have counted that is some target's already */
	uint64_t labels; /* of all targets, also of those that have gone */
	uint64_t beyond; /* stacks that targets keep beyond their parts */
	uint32_t ring_bytes;
	size_t targets; /* for so many the quotas are; 0: they are not set yet */
	uint32_t
		keep_stacks; /* distinct stacks in all profiles; set before demux_open(), 0: 65,536 */
	struct gpb_quota labels_quota, keep_quota;
	unsigned ticks; /* since the table was emptied */
};

static inline uint32_t demux_index(uint32_t slot)
{
	return slot & (GPB_CPU_TARGETS - 1);
}

/* Before load: how large ring and table are, where @expected targets may come and half of them do. */
void demux_size(struct demux *d, struct bpf_map *ring, struct bpf_map *stacks, unsigned expected);
/* After load. demux_fini() is called also after a failure, and does nothing to a zeroed struct. */
int demux_open(struct demux *d, struct demux_object o, demux_add *add, void *arg, struct err *e);
void demux_fini(struct demux *d);

/* @t is in its slot from now on. */
void demux_put(struct demux *d, struct demux_target *t);
/* Its records are nobody's; nothing happens where it was not put. */
void demux_forget(struct demux *d, struct demux_target *t);
/* So many share from now on. */
void demux_share(struct demux *d, size_t targets);

/* Is there room for one more distinct stack in its profile? It is told when it has @n. */
bool demux_has_room(const struct demux *d, const struct demux_target *t);
void demux_keeps(struct demux *d, struct demux_target *t, uint64_t n);

/* Is there room for a label set that is a target's? It is counted as kept where it was not known. */
bool demux_labels_fit(struct demux *d, struct demux_target *t, const struct gpb_rec_labels *l,
		      size_t len);

/* Takes what is in the ring. */
int demux_poll(struct demux *d, struct err *e);
/* Is so much in the table that it is to be emptied now? */
bool demux_fills(const struct demux *d);
/* Takes what is in both. */
int demux_take(struct demux *d, struct err *e);
/* The same, when it is time or the table fills: to be called each 100 ms or so. */
int demux_tick(struct demux *d, struct err *e);
/* The same for the last time, of targets that have ended: what cannot be taken is told by demux_target.left. */
int demux_drain(struct demux *d, struct err *e);
/* The profiles are made: forgets label sets. */
int demux_done(struct demux *d, struct err *e);

#endif
