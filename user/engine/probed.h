/*
 * user/engine/probed.h - many targets that are probed, as the most of a kind (struct engine_kind): one BPF object, one ring and
 * one table of stacks for all of them. The object is loaded when the first target needs it.
 *
 * A target has a slot here (not the engine's), with a generation, since slots are used again. Targets share table and
 * ring by quotas (probe/demux.h), and the probes of a file with all that run it (probe_set.h).
 */
#ifndef ENGINE_PROBED_H
#define ENGINE_PROBED_H

#include "engine/probe_set.h"

/* What the BPF object has, borrowed. */
struct probed_object {
	struct bpf_object *obj;
	struct demux_object demux;
	struct set_object sets;
	const struct bpf_map *slot_of_tgid;
	struct gpb_tally *tallies; /* by slot */
};
#define PROBED_OBJECT(skel)                                                       \
	((struct probed_object){ .obj = (skel)->obj,                              \
				 .demux = DEMUX_OBJECT(skel),                     \
				 .sets = { .sets = (skel)->maps.sets,             \
					   .bystanders = (skel)->maps.bystanders, \
					   .bss = (skel)->maps.bss,               \
					   .open_for = (skel)->bss->open_for,     \
					   .set_of = (skel)->bss->set_of },       \
				 .slot_of_tgid = (skel)->maps.slot_of_tgid,       \
				 .tallies = (skel)->bss->tallies })

struct probed;

/* @arg: probed.arg. */
struct probed_kind {
	struct set_kind set;
	/*
	 * Opens and loads the object, for @slots targets: probed_size() in between. *obj is set also where it fails, when there
	 * is something to be closed.
	 */
	int (*open)(void *arg, struct probed *p, uint32_t slots, uint32_t pidns_ino, struct err *e);
	void (*close)(void *arg);
	/* Forgets what was counted in the slot @at, which is free. */
	int (*clear)(void *arg, uint32_t at, struct err *e);
	/* *part, which add() gets; *loss lies in it. It is not freed where the next one fails. */
	int (*part_new)(void *arg, struct engine_target *t, void **part, struct loss **loss,
			struct err *e);
	/* Its slot is known, and the object is loaded. */
	int (*part_slot)(void *part, uint32_t at, struct err *e);
	void (*part_free)(void *part);
	/*
	 * Takes a sample. @key: as in demux_add(); @room: for one more distinct stack. Returns how many it has now, or a
	 * negative error.
	 */
	int64_t (*add)(void *part, const struct gpb_hash *key, const struct gpb_stack *st,
		       bool room);
	/* Takes what its object reports beside samples. May be NULL. */
	void (*other)(void *part, const void *rec, size_t len);
};

struct probed {
	const struct probed_kind *kind;
	void *arg; /* the kind's */
	struct collect_opts o;
	struct probed_object object;
	bool loaded;
	struct probe_sets sets;
	struct demux demux;
	int failed; /* why nothing can be probed: */
	struct err why;
	unsigned expected;
	uint32_t slots;
	uint16_t generation[GPB_CPU_TARGETS];
	size_t nprobed, joined; /* joined: in this window, those that have gone, too */
	uint64_t missed;	/* hits whose program never ran, before this window */
};

/* probed_fini() is called also after a failure, and does nothing to a zeroed struct. */
int probed_open(struct probed *p, const struct probed_kind *kind, void *arg,
		const struct collect_opts *o, unsigned expected, struct err *e);
void probed_fini(struct probed *p);
/* For probed_kind.open(), between the object's open and its load. */
void probed_size(struct probed *p, struct bpf_map *ring, struct bpf_map *stacks);

/* The rest as in struct engine_kind. */
int probed_add(struct probed *p, struct engine_target *t, struct set_member **out, struct err *e);
void probed_forget(struct probed *p, struct set_member *m);
/* @fd, which is the kind's, wakes whoever polls, too. */
int probed_watch(struct probed *p, int fd, struct err *e);
int probed_poll(struct probed *p, struct err *e);
void probed_begin(struct probed *p);
int probed_tick(struct probed *p, struct err *e);
/* These are functions of a struct engine_kind, whose state begins with a struct probed. */
int probed_fd(void *state);
void probed_remove(void *state, struct engine_target *t);
uint64_t probed_taken_ns(void *state);
void probed_close(void *state);
void probed_stop(void *state);
int probed_drain(void *state, struct err *e);
int probed_done(void *state, struct err *e);
bool probed_forget_file(void *state, uint16_t number);
const struct engine_shared *probed_shared(void *state, size_t *n);

/* CLOCK_MONOTONIC, and unix time: from when to when this target was probed in the window. */
struct probed_part {
	int64_t start_ns, end_ns, start_unix_ns;
};
/*
 * The profile of a target is made: its last stretch ends here, and its part is *part. An error is that of its set. Then its kind
 * fills the profile, also its loss with what demux_target.left tells, and probed_tell() writes what is said of a process among many,
 * and what it lost. Where there are two profiles of one target, both are called for each.
 */
int probed_finish(struct probed *p, struct set_member *m, struct probed_part *part, struct err *e);
int probed_tell(struct probed *p, struct set_member *m, struct prof *prof, struct err *e);

/* The i-th slot's, or NULL; for all i below probed.slots. */
struct set_member *probed_member(const struct probed *p, uint32_t i);
/* A table by slot that each CPU has for itself: zeros. */
int probed_zero(const struct bpf_map *map, uint32_t at, struct err *e);

#endif
