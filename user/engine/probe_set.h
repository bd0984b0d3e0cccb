/*
 * user/engine/probe_set.h - the probes of one file, and the processes that run it and are targets.
 *
 * The kernel visits each process that maps a file to put a probe into it, whoever the probe is for. So
 * there is one link for all targets of a file, and their windows are the same: one struct probing, which knows nothing of them, and whose
 * stretches are handed on to each. Its budget is a share of the CPU time of all of them; hits of others that run the file
 * (bystanders) are paid for from it.
 *
 * What is probed, and what a stretch means to a target, is a kind's (struct set_kind).
 */
#ifndef ENGINE_PROBE_SET_H
#define ENGINE_PROBE_SET_H

#include "base/vec.h"
#include "sampling/windows/budget.h"
#include "engine/engine.h"
#include "engine/probing.h"
#include "probe/demux.h"
#include "probe/uprobes/healing.h"
#include "probe/uprobes/hit_cost.h"
#include "target/host/exes.h"

struct probe_sets;
struct probe_set;

/* One target. */
struct set_member {
	struct probe_set *set;
	struct engine_target *t;
	void *part;		  /* the kind's */
	struct demux_target d;	  /* zero until it has a slot */
	uint64_t base_ns, cpu_ns; /* its CPU clock when it joined, and since then */
	bool on, done;		  /* done: its last stretch is over */
	bool still; /* it has not run since a stretch was over, when its CPU time was: */
	uint64_t over_cpu_ns;
};

/* What the last turn said: new members are told, too. */
struct set_turn {
	bool windows;
	uint64_t since, window_ns;
	double hit_ns;
};

/* Functions of a part are called while its target's memory can be read, unless the target has gone. */
struct set_kind {
	const char *what; /* "heap": for messages */
	struct window_parts parts;
	bool by_own;  /* as in struct probing_user */
	bool watched; /* in windows each target is looked at all the time: its files stay open */
	/*
	 * Finds what is to be probed in the file that this target runs: *list is freed when the probes are held, *groups and its
	 * sites lie in it, *sites is of each member's interest and freed with the set. Cookies have @index.
	 */
	int (*find)(void *part, uint32_t index, void **list, struct uprobe_group **groups,
		    size_t *n, void **sites, struct err *e);
	void (*found)(void *part, void *sites); /* that is known already */
	/*
	 * Of these sites the group that stays in when there are windows, since it is hit rarely, and what it tells may
	 * happen between them: all but its path is set. NULL: there is none. The function may be NULL.
	 */
	struct uprobe_group *(*stays)(void *sites);
	/* What a hit costs, by a process of our own in slot and set GPB_PRICED; @part: any target's. */
	int (*hit_cost)(void *part, struct attacher_process **attachers, struct hit_cost *out,
			struct cost_probes **rest, struct err *e);
	/* It is of @s from now on, for which there was no turn yet. */
	int (*joined)(void *part, struct err *e);
	int (*turn)(void *part, const struct probe_set *s, const struct set_turn *t, struct err *e);
	/* A stretch is over. Between the two all samples are taken. */
	void (*before)(void *part, const struct stretch *s);
	int (*after)(void *part, const struct stretch *s, struct err *e);
	/* All members were told of a turn or the end of a stretch: what they must agree on. May be NULL. */
	int (*settle)(struct probe_set *s, struct err *e);
	/* The last stretch is about to end. In windows its end is told; and no other one comes. */
	void (*ending)(void *part);
	/*
	 * The last stretches of all sets that are observed in full are over, and no probes are out yet, which takes the kernel
	 * long: what is to be known of all targets at the same moment. May be NULL.
	 */
	void (*closed)(struct probe_sets *ss);
	/* It leaves alone, and all of its samples were taken. @last: what it has of a stretch of full observation; NULL: there is none. */
	void (*leaves)(void *part, const struct stretch *last);
};

struct probe_set {
	struct probe_sets *of;
	dev_t dev;
	uint64_t inode;
	uint32_t index; /* in the tables by set */
	int fd;		/* of the file; owned, unless it is this one's: */
	struct binary *binary;
	void *list; /* owned, until its probes are held */
	struct uprobe_group *groups;
	size_t ngroups;
	void *sites;		 /* owned; the kind's */
	struct probing *probing; /* NULL: not yet */
	struct uprobes standing; /* the group of set_kind.stays(), once there were windows */
	bool stands;		 /* it is in */
	int failed;
	struct err why;
	bool turned; /* there was a turn: */
	struct set_turn turn;
	uint64_t full_ns;  /* when full observation began */
	uint64_t ended_ns; /* nothing counts any more; 0: not yet */
	double own_ns; /* of a kind by own time, in windows: that of the next one, of all members; 0: not known yet */
	VEC(struct set_member *) members; /* borrowed; none is done */
	size_t users;			  /* members, and those that are done */
	size_t joined;			  /* all that ever were members */
	char what[256];			  /* the program of the first */
	uint64_t gone_cpu_ns;		  /* of those that have left */
	uint64_t cpu_ns, cpu_at;	  /* the last sum, and when that was */
};

enum { PROBE_SETS_MAX = GPB_SETS - 1 }; /* GPB_PRICED is none */

/* What the BPF object has for sets, borrowed: bpf/sets.bpf.h. */
struct set_object {
	const struct bpf_map *sets, *bystanders, *bss;
	struct gpb_open *open_for; /* by set */
	__u32 *set_of;		   /* by slot */
};

/* What all sets share; the owner's (probed.h). */
struct probe_sets {
	const struct set_kind *kind;
	const struct collect_opts
		*o; /* its budget is the sets', and its attachers keep their probes */
	struct set_object obj;
	struct probe_set *at[GPB_SETS];
	int ep;
	bool multi; /* a set is one link of many probes; else each probe has one of its own, and there are no windows */
	bool begun;  /* sets that come now begin at once */
	bool closed; /* by probe_sets_close(), until they begin again */
	bool cost_known;
	struct hit_cost hit_cost;
	uint64_t gone_ns;		/* what sets that are gone have taken, */
	VEC(struct engine_shared) lost; /* and what members of one lost together in this window */
	struct loss of_all;		/* what all sets lost together, after probe_sets_end() */
	struct exes exes;		/* for all files */
	struct budget_least least;
	struct healing healing; /* what there was before we came */
	/* Takes all samples that there are. */
	int (*drain)(void *arg, struct err *e);
	void *arg;
};

/*
 * The set of the first image of @m's target, which may be new: then @m, whose part is set, finds its sites. -E2BIG: too
 * many files; -ENOTSUP.
 */
int probe_set_of(struct probe_sets *ss, struct set_member *m, struct err *e);
/* @m, whose set, slot and tables are set, is one of it from now on. */
int probe_set_join(struct set_member *m, struct err *e);
/* It is gone: no more hits are its own. */
void probe_set_pause(struct set_member *m);
/* Its last stretch ends, after all samples were taken, unless the set has ended. */
void probe_set_leave(struct set_member *m);
/* To be called for each target that has it: after the last one it is gone. */
void probe_set_forget(struct probe_set *s);

/* What the members of @s lost together; what all sets did goes to of_all, once. */
void probe_set_losses(struct probe_set *s, struct loss *out);
/* @what lost this together in the window, if it lost anything. */
void probe_sets_lost(struct probe_sets *ss, const char *what, size_t targets,
		     const struct loss *loss);

/* Puts the probes in, where they are not. What fails is the set's. */
void probe_sets_begin(struct probe_sets *ss);
void probe_sets_poll(struct probe_sets *ss);
/* Nothing counts any more. */
void probe_sets_close(struct probe_sets *ss);
/* Closes them, if that was not done, and takes the probes out. */
void probe_sets_end(struct probe_sets *ss);
double probe_sets_spent_ns(const struct probe_sets *ss);
/* Hits of processes that are no targets. */
uint64_t probe_set_bystanders(const struct probe_set *s);

#endif
