/*
 * user/probe/reports.h - what a BPF object reports while it runs: label sets, stacks with a frame
 * that has no rule yet, stacks that its table has no room for. The rest is drained from the table
 * when the window ends.
 */
#ifndef PROBE_REPORTS_H
#define PROBE_REPORTS_H

#include <bpf/libbpf.h>

#include "goprof_abi.h"
#include "probe/stacks/labels.h"
#include "probe/stacks/unwind_rules.h"
#include "profile/loss.h"

/* Takes one finished stack. */
typedef int reports_add(void *arg, const struct gpb_stack *st, struct err *e);

struct reports {
	struct subject *s; /* the only target; NULL: whose() tells them apart */
	/*
	 * Of many targets: the one in @slot, or NULL when its records are not wanted. Its record of @len bytes has
	 * been taken out of the ring; @labels: the head of one of a label set, or NULL.
	 */
	struct subject *(*whose)(void *arg, uint32_t slot, const struct gpb_rec_labels *labels,
				 size_t len);
	int sent_fd; /* of many targets: the table of label sets that are not sent again; not owned */
	struct ring_buffer *ring;
	struct unwind_rules rules;
	struct labelsets labels;
	reports_add *add;
	/* While add() is called for a GPB_REC_STACK: the key that it would have in the kernel's table; else NULL. */
	const struct gpb_hash *key;
	/*
	 * Also called for records of other kinds and, after add, for GPB_REC_STACK. May be NULL.
	 */
	int (*other)(void *other_arg, const void *rec, size_t len, struct err *e);
	void *other_arg;
	void *arg;
	uint64_t frameless; /* stacks without frames, or with more than there can be: lost */
	uint64_t nobodys;   /* records that whose() did not want */
	struct err why;	    /* the first error in a callback of the ring */
	int failed;
};

/*
 * @ring and @rules: the object's maps. @s NULL: the caller sets whose() before it polls. reports_fini() is
 * called also after a failure, and does nothing to a zeroed struct.
 */
int reports_open(struct reports *f, struct subject *s, const struct bpf_map *ring,
		 const struct bpf_map *rules, reports_add *add, void *arg, struct err *e);
/* The same for probes, whose stacks are walked by frame pointers where these are of use. */
int reports_open_probed(struct reports *f, struct subject *s, const struct bpf_map *ring,
			const struct bpf_map *rules, reports_add *add, void *arg, struct err *e);
void reports_fini(struct reports *f);

/* Does it have frames, and no more than there can be? Others are counted as lost. */
bool reports_whole(struct reports *f, const struct gpb_stack *st);

int reports_fd(const struct reports *f); /* to be polled for reading */
int reports_poll(struct reports *f, struct err *e);
/* Drains everything that is left: the ring, then the table. */
int reports_drain(struct reports *f, const struct bpf_map *stacks, struct err *e);
uint64_t reports_missed(const struct bpf_object *obj); /* hits whose program never ran */
/*
 * Adds up what was lost: in the BPF side's tally, stacks cut here and, with @obj, hits that never
 * ran.
 */
void reports_losses(const struct reports *f, const struct gpb_tally *of,
		    const struct bpf_object *obj, struct loss *to);

#endif
