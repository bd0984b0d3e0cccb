/*
 * user/collect/heap_live.h - which of the sampled objects still live.
 *
 * The BPF side tells the place of each sampled object (bpf/heap_slot.bpf.h); after each GC cycle
 * the bitmaps of its span tell whether it survived (go/rtspan.h). An object is looked at in
 * every cycle, for a slot is used again. One that was not looked at in time and whose slot is
 * taken may be another's: it counts in part, as far as objects of its stack outlive as many cycles
 * (all objects, where its stack has none), and how many do is said.
 *
 * What lives is what the last GC cycle that ended found reachable, as in the runtime's own
 * profile, which publishes frees by cycle; what was allocated since has not been judged and is
 * left out. When no cycle has ended yet nothing can have been freed, and all of it counts, in
 * the runtime's as in ours. Only objects that were allocated while we watched are known.
 *
 * Order of calls: open, conf to the BPF side's table, attach, record/poll, end, counts.
 */
#ifndef COLLECT_HEAP_LIVE_H
#define COLLECT_HEAP_LIVE_H

#include <bpf/libbpf.h>

#include "collect/subject_priv.h"
#include "collect/uprobes.h"
#include "profile/loss.h"

struct heap_live;

/*
 * -ENOTSUP with the reason where objects cannot be followed: Go before 1.19, offsets or
 * variables that are not known or not sure, no place where allocLarge returns.
 */
int heap_live_open(struct subject *s, struct heap_live **out, struct err *e);
void heap_live_free(struct heap_live *l);
DEFINE_FREEP(struct heap_live, heap_live)

/* For the BPF side's table of gpb_live. */
const struct gpb_live *heap_live_conf(const struct heap_live *l);

/*
 * To be probed with the allocator's entries, by the same program and in the same image (that with
 * the runtime): cookies are complete but for the target's slot. Number of sites, at most
 * HEAP_LIVE_SITES.
 */
enum { HEAP_LIVE_SITES = 32 };
size_t heap_live_sites(const struct heap_live *l, struct uprobe_site sites[HEAP_LIVE_SITES]);

/*
 * Watch the GC's cycles with @cycle (heap_cycle), until heap_live_free. What cannot be probed is
 * polled for.
 */
int heap_live_attach(struct heap_live *l, struct bpf_program *cycle, bool multi, struct err *e);

/* One record of the ring: GPB_REC_OBJECT and GPB_REC_CYCLE; others are left alone. */
void heap_live_record(struct heap_live *l, const void *rec, size_t len);

/* The window opened at @since is over, all of its records were taken: what it stands for. */
void heap_live_window(struct heap_live *l, uint64_t since, double weight);

/* A timer to be polled; then the ring is to be drained first and heap_live_poll called. */
int heap_live_fd(const struct heap_live *l);
int heap_live_poll(struct heap_live *l, struct err *e);

/* The last look. After the ring has been drained. Also when the target has gone. */
int heap_live_end(struct heap_live *l, struct err *e);

/*
 * Of the samples counted under one hash, in one group of windows: by turns each window is of the
 * next one. So each of them has seen all of the time.
 */
enum { HEAP_LIVE_GROUPS = 64 };
struct heap_live_count {
	struct gpb_hash stack;
	uint32_t group;	  /* 0: observed in full; else 1 to HEAP_LIVE_GROUPS */
	uint64_t objects; /* whose place became known */
	/* By the weights of their windows: those whose fate became known, too, and those in use. */
	double followed, live;
};
size_t heap_live_ncounts(const struct heap_live *l);
struct heap_live_count heap_live_count(const struct heap_live *l, size_t i);

/* Objects for which there was no room any more. */
uint64_t heap_live_turned_away(const struct heap_live *l);

struct heap_live_told {
	/* The BPF side's counters, see heap_slot.bpf.h; and samples that still wait for their place. */
	uint64_t told, waited, large, settled, unknown, waiting;
	uint64_t dropped; /* told, and then lost: a loss of the BPF side's */
};
/*
 * How it went, as comments. Others stand for the objects whose place or life could not be told. So
 * these are losses only when they are more than one in twenty, and if they were all alike would
 * change what is in use by more than a standard error.
 */
void heap_live_losses(const struct heap_live *l, const struct heap_live_told *t, struct loss *to);
int heap_live_comments(const struct heap_live *l, const struct heap_live_told *t, struct prof *p,
		       struct err *e);

#endif
