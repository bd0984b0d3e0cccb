/*
 * user/collect/waits/engine/waits_many.h - what wait profiles of many targets and block and mutex profiles of many share: a target's part
 * is a struct wait_engine, which a stretch of its file's probes is handed on to; they have one table of goroutines, and looks from
 * outside are shared out among those that are in windows.
 */
#ifndef COLLECT_WAITS_ENGINE_WAITS_MANY_H
#define COLLECT_WAITS_ENGINE_WAITS_MANY_H

#include "base/loop/wake_timer.h"
#include "collect/waits/engine/wait_engine.h"
#include "collect/waits/engine/wait_table.h"
#include "engine/probed.h"
#include "sampling/own_work.h"

/* engine_kind.readers */
enum { WAITS_READERS = 4 };

struct waits_many {
	struct probed probed; /* first */
	struct probed_kind kind;
	/* Of the object, borrowed; quota is NULL while it is not loaded. */
	struct wait_table table;
	struct gpb_quota *quota;
	size_t shared;	/* the quota of goroutines is for so many targets */
	bool gone;	/* goroutines of some that have gone may still be in the table */
	unsigned ticks; /* since those were taken out */
	struct wake_timer timer;
	uint64_t due_ns; /* nobody has anything to do before this time; 0: not known */
	double count_ns; /* to read the counts of all that are in windows takes so much CPU time */
};

/* What is probed of a target: set_member.part. */
struct waits_part {
	struct waits_many *m;
	struct engine_target *t;
	void *own;		    /* the kind's, which it frees */
	struct wait_engine *engine; /* in own */
	uint32_t at;		    /* its slot */
	uint64_t from;		    /* what began before this time is not its own */
	bool gone;		    /* nothing of it is looked at any more */
	int failed;		    /* why its looks, and with them its numbers, are broken: */
	struct err why;
};

/* For probed_kind.part_new(): *part is made at once, and own is for the kind to set. */
int waits_part_new(struct waits_many *m, struct engine_target *t, void **part, struct err *e);
/* For part_slot(): engine, object and settings are set, and *from is a part of the settings. */
int waits_part_slot(struct waits_part *k, uint32_t at, __u64 *from, struct err *e);
int64_t waits_part_add(void *part, const struct gpb_hash *key, const struct gpb_stack *st,
		       bool room);

/* As probed_open(), of whose kind the stretches, parts of windows and the price are set here; and as probed_fini(). */
int waits_many_open(struct waits_many *m, const struct probed_kind *kind, void *arg,
		    const struct collect_opts *o, unsigned expected, struct err *e);
void waits_many_fini(struct waits_many *m);
/* These are functions of a struct engine_kind, whose state begins with a struct waits_many. */
int waits_many_poll(void *state, struct err *e);
void waits_many_remove(void *state, struct engine_target *t);
int waits_many_begin(void *state, struct err *e);
int waits_many_tick(void *state, size_t targets, struct err *e);
/* As in probed.h. */
int waits_many_add(struct waits_many *m, struct engine_target *t, struct set_member **out,
		   struct err *e);
void waits_many_forget(struct waits_many *m, struct set_member *k);
/* As probed_finish(); what its engine has seen is whole, wait_engine_end() is the kind's. */
int waits_many_finish(struct waits_many *m, struct set_member *k, struct probed_part *part,
		      struct err *e);

#endif
