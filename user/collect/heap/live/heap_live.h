/*
 * user/collect/heap/live/heap_live.h - which of the sampled objects still live.
 *
 * The BPF side reports the slot of each sampled object (bpf/go/heap_slot.bpf.h), and after each GC
 * cycle the bitmaps of its span tell whether it survived (go/runtime/rtspan.h). An object is looked at in
 * every cycle, because slots are used again. When an object was not looked at in time and its
 * slot is taken, the slot may hold another object. Then it counts in part: with the share of its
 * stack's objects that outlive as many cycles (the share of all objects, where its stack has
 * none), and the profile says how many these are.
 *
 * An object lives if the last GC cycle that ended found it reachable, as in the runtime's own
 * profile, which publishes frees by cycle. What was allocated since has not been judged and is
 * left out. Until the first cycle has ended nothing can have been freed, and all of it counts, in
 * the runtime's profile and in ours. Only objects that were allocated while we watched are known.
 *
 * Order of calls: open, conf to the BPF side's table, attach, record/poll, end, counts. Of many targets the probes that
 * report cycles are their file's, and whoever has all of them looks: open, conf, watched, record/look, last, end, counts.
 */
#ifndef COLLECT_HEAP_LIVE_HEAP_LIVE_H
#define COLLECT_HEAP_LIVE_HEAP_LIVE_H

#include <bpf/libbpf.h>

#include "collect/heap/window/heap_sites.h"
#include "goprof_abi.h"
#include "probe/uprobes/uprobes.h"
#include "profile/loss.h"
#include "profile/profile.h"
#include "subject/subject.h"

struct heap_live;

/* What many targets share: room for their followed objects, in bytes. */
struct heap_live_room {
	struct gpb_quota quota; /* of each, and for whoever comes */
	uint64_t taken;		/* by all */
	uint64_t first_ns;	/* no look is due before this time */
};

/*
 * -ENOTSUP with the reason where objects cannot be followed: Go before 1.19, offsets or variables
 * that are unknown or unsure, no place where allocLarge returns. @room: of many targets; borrowed. Then no
 * sites are searched for: those of a file are found by its first target, heap_live_find().
 */
int heap_live_open(struct subject *s, struct heap_live_room *room, struct heap_live **out,
		   struct err *e);
void heap_live_free(struct heap_live *l);
DEFINE_FREEP(struct heap_live, heap_live)

/* Finds the sites that heap_live_sites() tells; -ENOTSUP: as above. heap_live_found(): they are not wanted any more. */
int heap_live_find(struct heap_live *l, struct err *e);
void heap_live_found(struct heap_live *l);

/* For the BPF side's table of gpb_live. */
const struct gpb_live *heap_live_conf(const struct heap_live *l);

/*
 * The sites in this image of the subject that are to be probed together with the allocator's
 * entries there, by the same program. Returns their number. The image may be one that came after
 * heap_live_open().
 */
size_t heap_live_sites(struct heap_live *l, size_t image,
		       struct uprobe_site sites[HEAP_LIVE_SITES]);

/*
 * Watches GC cycles with @cycle (heap_cycle), for the target in @slot, until heap_live_free(). Where no probe is possible,
 * cycles are polled for. To be called again when there are more images: then it watches them, too.
 */
int heap_live_attach(struct heap_live *l, struct bpf_program *cycle, uint32_t slot, bool multi,
		     struct err *e);

/* Of many: is each cycle reported? If not, they are polled for. */
void heap_live_watched(struct heap_live *l, bool watched);

/* Takes one record of the ring: GPB_REC_OBJECT and GPB_REC_CYCLE; others are ignored. */
void heap_live_record(struct heap_live *l, const void *rec, size_t len);

/*
 * To be called when the window opened at @since is over and all of its records were taken.
 * @weight: what an object seen in it stands for.
 */
void heap_live_window(struct heap_live *l, uint64_t since, double weight);

/*
 * A timer to be polled. When it is readable, the ring is to be drained first, then
 * heap_live_poll() called.
 */
int heap_live_fd(const struct heap_live *l);
int heap_live_poll(struct heap_live *l, struct err *e);

/* Of many: CLOCK_MONOTONIC: when it is to be looked at; 0: there is nothing to look at. The ring is to be drained first. */
uint64_t heap_live_due(const struct heap_live *l);
int heap_live_look(struct heap_live *l, struct err *e);
/* It is not looked at before @until_ns. */
void heap_live_put_off(struct heap_live *l, uint64_t until_ns);
/* How long all looks took: ns. */
uint64_t heap_live_took(const struct heap_live *l);
/* It cannot be looked at any more: what is known remains. */
void heap_live_gone(struct heap_live *l);
/*
 * Of many: their last looks are taken together, before their profiles are made one by one. @try: 0 and up; @again: a
 * further one is needed, after heap_live_wait(). What comes later is younger than the last look.
 */
int heap_live_last(struct heap_live *l, unsigned try, bool *again, struct err *e);
void heap_live_wait(void);

/*
 * Takes the last look, unless it was taken, after the ring has been drained. Also to be called when the target has
 * gone.
 */
int heap_live_end(struct heap_live *l, struct err *e);

/*
 * The samples counted under one hash, in one group of windows. Windows belong to the groups in
 * turn, so each group has seen all of the time.
 */
enum { HEAP_LIVE_GROUPS = 64 };
struct heap_live_count {
	struct gpb_hash stack;
	uint32_t group;	  /* 0: full observation; else 1 to HEAP_LIVE_GROUPS */
	uint64_t objects; /* objects whose slot became known */
	/* Weighted with their windows: objects whose fate became known, too, and those in use. */
	double followed, live;
	/* Of them those that may be other objects, because GC cycles were missed, and what of live is theirs. */
	float maybe, maybe_live;
	/* The part of the stack's objects that outlives a GC cycle, and as many as ended. */
	double once, always;
};
size_t heap_live_ncounts(const struct heap_live *l);
struct heap_live_count heap_live_count(const struct heap_live *l, size_t i);

/* Objects that there was no room for. */
uint64_t heap_live_turned_away(const struct heap_live *l);

struct heap_live_told {
	/*
	 * The BPF side's counters, see heap_slot.bpf.h; and samples that still wait for their
	 * slot.
	 */
	uint64_t told, waited, large, settled, unknown, waiting;
	uint64_t dropped; /* reported and then lost: a loss of the BPF side */
};
/*
 * Writes the result as comments and losses. Objects whose slot or fate could not be told are
 * replaced by others that stand for them. So they are losses only when they are more than one in
 * twenty and, if all had the same fate, would change what is in use by more than a standard
 * error.
 */
void heap_live_losses(const struct heap_live *l, const struct heap_live_told *t, struct loss *to);
int heap_live_comments(const struct heap_live *l, const struct heap_live_told *t, struct prof *p,
		       struct err *e);

#endif
