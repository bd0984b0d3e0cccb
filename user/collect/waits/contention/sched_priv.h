/*
 * user/collect/waits/contention/sched_priv.h - what the probes of one target and those of many share: the target's part. Of one it owns
 * the BPF object, the ring and the probes, and of many it borrows them (contention_many.c).
 */
#ifndef COLLECT_WAITS_CONTENTION_SCHED_PRIV_H
#define COLLECT_WAITS_CONTENTION_SCHED_PRIV_H

#include "collect/waits/contention/sched.h"
#include "sched.skel.h"

enum { SCHED_PLACES = 4 };

struct sched {
	struct subject *s;
	const struct collect_opts *o; /* the engine's */
	struct sched_bpf *obj;
	struct sched_window window;
	struct uprobe_site sites[GPB_IMAGES][SCHED_PLACES];
	size_t nsites[GPB_IMAGES];
	size_t nimages;			   /* how many are probed */
	uint64_t start_ns[GPB_WAIT_KINDS]; /* when each kind joined, monotonic, */
	uint64_t end_ns;		   /* and when counting ended */
	struct sched_user users[GPB_WAIT_KINDS];
	unsigned kinds;	  /* that have joined, 1 << GPB_WAIT_* */
	char what[16];	  /* their names */
	unsigned fd_kind; /* the kind that polls */
	/* Of many, set by their owner: waits that had not ended when the window did, and samples that were left unfinished. */
	uint64_t waiting, left;
};

/* The object, ready to be loaded, with tables for @slots targets. */
int sched_object_open(struct sched_bpf **out, bool multi, uint32_t slots, bool many, struct err *e);
struct wait_object sched_object_of(struct sched_bpf *o, bool multi);

/* A target of which nothing is probed yet. */
int sched_new(struct subject *s, const struct collect_opts *o, struct sched **out, struct err *e);
void sched_free(struct sched *c);
/* Could this kind be probed in the process itself? Its file is judged by sched_possible(). */
int sched_check(struct sched *c, unsigned kind, struct err *e);
/* From now on this kind counts, or does not: the BPF side is told. */
int sched_count(struct sched *c, unsigned kind, bool on, struct err *e);
/*
 * What @kinds need in the @i-th image, with cookies that are @of's: the slot, or of many targets the set. Returns the number
 * of sites; a plugin contains only what it uses.
 */
int sched_sites_in(const struct sched *c, size_t i, unsigned kinds, uint32_t of,
		   struct uprobe_site out[SCHED_PLACES], struct err *e);

#endif
