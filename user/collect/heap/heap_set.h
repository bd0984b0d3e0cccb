/*
 * user/collect/heap/heap_set.h - the probes of one file, and the processes that run it and are targets.
 *
 * The kernel visits each process that maps a file to put a probe into it, whoever the probe is for. So
 * there is one link for all targets of a file, and their windows are the same: one struct probing, which knows nothing of them, and whose
 * stretches are handed on to each. Its budget is a share of the CPU time of all of them; hits of others that run the file
 * (bystanders) are paid for from it.
 */
#ifndef COLLECT_HEAP_HEAP_SET_H
#define COLLECT_HEAP_HEAP_SET_H

#include "base/vec.h"
#include "collect/heap/heap_probe_priv.h"
#include "engine/engine.h"
#include "probe/demux.h"
#include "target/exes.h"

struct heap_sets;
struct heap_set;

/* One target. */
struct heap_member {
	struct heap_set *set;
	struct heap_probe *h; /* owned */
	struct engine_target *t;
	struct demux_target d;	  /* zero until it has a slot */
	uint64_t base_ns, cpu_ns; /* its CPU clock when it joined, and since then */
	bool on, done, watched; /* done: its last stretch is over; watched: heap_window_before() */
};

struct heap_set {
	struct heap_sets *of;
	dev_t dev;
	uint64_t inode;
	uint32_t index; /* in the tables by set */
	int fd;		/* of the file; owned */
	struct alloc_entry entries[ALLOC_ENTRIES_MAX];
	struct maker_site makers[MAKER_SITES_MAX];
	size_t nentries, nmakers;
	struct site_list *list;	 /* owned, until they are held */
	struct probing *probing; /* NULL: not yet */
	int failed;
	struct err why;
	/* as the last turn said; turned: there was one */
	bool turned, windows;
	uint64_t since, window_ns, full_ns; /* full_ns: when full observation began */
	uint64_t ended_ns;		    /* nothing counts any more; 0: not yet */
	double hit_ns;
	double own_ns; /* in windows: the own time of the next one, of all members; 0: not known yet */
	VEC(struct heap_member *) members; /* borrowed; none is done */
	size_t users;			   /* members, and those that are done */
	size_t joined;			   /* all that ever were members */
	char what[256];			   /* the program of the first */
	uint64_t gone_cpu_ns;		   /* of those that have left */
	uint64_t cpu_ns, cpu_at;	   /* the last sum, and when that was */
};

enum { HEAP_SETS = GPB_SETS - 1 }; /* GPB_PRICED is none */

/* What all sets share; the owner's (heap_many.c). */
struct heap_sets {
	struct collect_opts o; /* its budget is the sets' */
	struct heap_bpf *obj;
	struct heap_set *at[GPB_SETS];
	int ep;
	bool begun; /* sets that come now begin at once */
	bool priced;
	struct price price;
	uint64_t gone_ns;		/* what sets that are gone have taken, */
	VEC(struct engine_shared) lost; /* and what members of one lost together in this window */
	struct loss of_all;		/* what all sets lost together, after heap_sets_end() */
	struct keeper_process *keepers; /* probe/keeper.h */
	struct exes exes;		/* for all files */
	/* Takes all samples that there are. */
	int (*drain)(void *arg, struct err *e);
	void *arg;
};

/*
 * The set of @h's first image, which may be new; and @h's entries. -E2BIG: too many files; -ENOTSUP.
 */
int heap_set_of(struct heap_sets *ss, struct heap_probe *h, struct heap_set **out, struct err *e);
/* @m, whose set, slot and tables are set, is one of it from now on. */
int heap_set_join(struct heap_member *m, struct err *e);
/* It is gone: no more hits are its own. */
void heap_set_pause(struct heap_member *m);
/* Its last stretch ends, after all samples were taken, unless the set has ended. */
void heap_set_leave(struct heap_member *m);
/* To be called for each target that has it: after the last one it is gone. */
void heap_set_forget(struct heap_set *s);

/* What the members of @s lost together; what all sets did goes to of_all, once. */
void heap_set_losses(struct heap_set *s, struct loss *out);
/* @what lost this together in the window, if it lost anything. */
void heap_sets_lost(struct heap_sets *ss, const char *what, size_t targets,
		    const struct loss *loss);

/* Puts the probes in, where they are not. What fails is the set's. */
void heap_sets_begin(struct heap_sets *ss);
void heap_sets_poll(struct heap_sets *ss);
void heap_sets_end(struct heap_sets *ss);
double heap_sets_spent_ns(const struct heap_sets *ss);
/* Hits of processes that are no targets. */
uint64_t heap_set_bystanders(const struct heap_set *s);

#endif
