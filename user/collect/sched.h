/*
 * user/collect/sched.h - the probes on parking, waking and semaphores: one set per subject, which
 * its block and mutex profiles share (bpf/sched.bpf.c).
 *
 * The first profile attaches what it needs, later ones what they need more; the last to leave
 * detaches all.
 */
#ifndef COLLECT_SCHED_H
#define COLLECT_SCHED_H

#include <time.h>

#include "collect/labels.h"
#include "collect/sched_window.h"

struct sched;

/* One kind of profile. Each distinct stack is handed over once. */
struct sched_user {
	unsigned kind; /* GPB_WAIT_* */
	/* Variances in @est: with the first stack of each site, the site's. */
	int (*add)(void *arg, const struct gpb_stack *st, const struct sched_estimate *est,
		   struct err *e);
	void *arg;
};

/* What its window was. */
struct sched_result {
	uint64_t ended, sampled; /* waits of this kind; of GPB_WAIT_MUTEX: contentions */
	uint64_t early;		 /* waits that ended in the window and had begun before it */
	uint64_t waiting;	 /* that had not ended when the window did, and began in it */
	int64_t through;	 /* goroutines that waited all through it; -1: not known */
	size_t nsites;
	bool multi;	  /* one multi link for each file */
	struct loss loss; /* of all kinds that share the probes */
	/* Not all was observed: what is handed over are estimates; early and waiting are 0. */
	bool windowed;
	struct onlook_result looks;
	const char *no_looks; /* why there were none, or NULL */
	double outlasted;     /* contentions that no window saw end, about */
	/* What was waited for mutexes when no window saw who made others wait. */
	double unseen_ns;
	struct sched_error whole; /* variances of all together, but for what stacks do not share */
	uint64_t cut; /* waits under way when what was observed in full gave way to windows */
	struct timespec start, end; /* CLOCK_MONOTONIC: within these it was counted */
};

/* -ENOTSUP when this Go cannot be probed so, with why. @u is copied, its arg borrowed. */
int sched_join(struct subject *s, const struct collect_opts *o, const struct sched_user *u,
	       struct sched **out, struct err *e);
/*
 * Could this kind be probed in a program built as @b, with offsets @l? As far as its file tells:
 * whoever joins checks more. -ENOTSUP with why.
 */
int sched_possible(struct gobin *b, const struct golayout *l, unsigned kind, struct err *e);
/* To be polled; -1 for all users but the first. */
int sched_fd(struct sched *c, unsigned kind);
int sched_poll(struct sched *c, struct err *e);
int sched_begin(struct sched *c, struct err *e);
/* Libraries that came since. */
int sched_tick(struct sched *c, struct err *e);
/* Nothing is counted from now on, of no kind; hands over what was. */
int sched_drain(struct sched *c, unsigned kind, struct sched_result *out, struct err *e);
/* What the probes were given, and took. */
int sched_comment(struct sched *c, struct prof *prof, struct err *e);
/* The labels of a sample, "goid" among them if that was asked for; their number. */
size_t sched_labels(struct sched *c, const struct gpb_stack *st,
		    struct prof_label out[GPB_MAX_LABELS + 1], struct prof *p);
void sched_leave(struct sched *c, unsigned kind);

#endif
