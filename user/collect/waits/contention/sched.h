/*
 * user/collect/waits/contention/sched.h - the probes on parking, waking and semaphores: one set for each subject,
 * which its block and mutex profiles share (bpf/sched.bpf.c).
 *
 * The first profile attaches what it needs, later ones what they need in addition; the last one
 * to leave detaches everything.
 */
#ifndef COLLECT_WAITS_CONTENTION_SCHED_H
#define COLLECT_WAITS_CONTENTION_SCHED_H

#include <time.h>

#include "collect/waits/contention/sched_window.h"
#include "goprof_abi.h"
#include "probe/stacks/labels.h"
#include "profile/profile.h"

struct sched;

/* One kind of profile. Each distinct stack is handed over once. */
struct sched_user {
	unsigned kind; /* GPB_WAIT_* */
	wait_take *add;
	void *arg;
};

/* What a profile's window was like. */
struct sched_result {
	uint64_t ended, sampled; /* waits of this kind; of GPB_WAIT_MUTEX: contentions */
	uint64_t rate;		 /* of full observation: block_rate or mutex_fraction */
	uint64_t begun_before;	 /* waits that ended in the window and had begun before it */
	uint64_t waiting;	 /* waits that began in the window and had not ended when it did */
	int64_t through;	 /* goroutines that waited during all of it; -1: not known */
	size_t nsites;
	bool multi;	  /* one multi link for each file */
	struct loss loss; /* of all kinds that share the probes */
	/*
	 * Not everything was observed: what is handed over are estimates; early and waiting are
	 * 0.
	 */
	bool windowed;
	struct looks_result looks;
	const char *no_looks; /* why there were no looks, or NULL */
	double unmet; /* about how many runs were at a pace that no window met; 0: few (dilation.h) */
	bool maybe_yields; /* these may be yields of the runtime's sweeper */
	double yields;	   /* so many more are */
	double part_known; /* about how many contentions were longer than their window */
	/* Total time waited for mutexes of which no window saw who made others wait. */
	double unseen_ns;
	struct wait_error whole; /* variances of all together, but for what stacks do not share */
	uint64_t cut; /* waits that were under way when full observation was replaced by windows */
	uint64_t start_ns, end_ns; /* monotonic: the time that was counted */
};

/*
 * -ENOTSUP when this Go cannot be probed in this way; *e says why. @u is copied, its arg is
 * borrowed.
 */
int sched_join(struct subject *s, const struct collect_opts *o, const struct sched_user *u,
	       struct sched **out, struct err *e);
/*
 * Could this kind be probed in a program built as @b, with offsets @l? This is judged by its file
 * alone; sched_join() checks more. -ENOTSUP with the reason.
 */
int sched_possible(struct gobin *b, const struct golayout *l, unsigned kind, struct err *e);
/* To be polled; -1 for all users except the first. */
int sched_fd(struct sched *c, unsigned kind);
int sched_poll(struct sched *c, struct err *e);
int sched_begin(struct sched *c, struct err *e);
/* Probes libraries that were loaded since. */
int sched_tick(struct sched *c, struct err *e);
/* From now on nothing is counted, for no kind; hands over what was counted. */
int sched_drain(struct sched *c, unsigned kind, struct sched_result *out, struct err *e);
/* Writes what the probes were given, and what they took. */
int sched_comment(struct sched *c, struct prof *prof, struct err *e);
/* The labels of a sample, with "goid" if that was asked for. Returns their number. */
size_t sched_labels(struct sched *c, const struct gpb_stack *st,
		    struct prof_label out[GPB_MAX_LABELS + 1], struct prof *p);
void sched_leave(struct sched *c, unsigned kind);

#endif
