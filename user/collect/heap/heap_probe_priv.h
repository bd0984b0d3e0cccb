/*
 * user/collect/heap/heap_probe_priv.h - what a probed heap profile of one target and those of many
 * share: the target's part. Of one it owns the BPF object, the ring and the probes, and
 * of many it borrows them (heap_many.c).
 */
#ifndef COLLECT_HEAP_HEAP_PROBE_PRIV_H
#define COLLECT_HEAP_HEAP_PROBE_PRIV_H

#include "collect/heap/window/heap_large.h"
#include "collect/heap/heap_probe.h"
#include "collect/heap/live/heap_use.h"
#include "collect/heap/window/heap_window.h"
#include "collect/heap/live/types.h"
#include "engine/probing.h"
#include "go/sites/probesite.h"
#include "go/sites/rtmaker.h"
#include "goprof_abi.h"
#include "probe/reports.h"
#include "probe/uprobes/hit_cost.h"
#include "profile/profile.h"
#include "symbolize/stack_physical.h"

struct heap_probe {
	struct subject *s;
	struct collect_opts o;
	struct heap_bpf *obj;
	struct reports *reports;     /* NULL until it is known whose */
	struct reports *own_reports; /* owned; NULL of many */
	struct probing *probing;
	int ep; /* the ring and the budget behind one descriptor */
	/* ALLOC_ENTRIES_MAX for each image; of many they are their file's */
	struct alloc_entry *entries;
	size_t nentries[GPB_IMAGES];
	struct maker_site makers[GPB_IMAGES][MAKER_SITES_MAX];
	size_t nmakers[GPB_IMAGES];
	size_t nimages; /* how many are probed */
	struct heap_window window;
	struct hit_cost hit_cost; /* of a hit: zeros until it is measured */
	struct heap_use use;
	struct heap_large large;
	struct gpb_heap heap;
	struct prof *prof;
	struct stack_physical ph;
	struct types types;
	struct loss loss;
	int64_t start_ns, end_ns; /* monotonic; start: from when on hits counted, 0: not yet */
	int64_t start_unix_ns;
	size_t nsites;
	bool multi, ending;
};

/* The object, ready to be loaded, with tables for @slots targets. */
int heap_probe_open(struct heap_bpf **out, bool multi, uint32_t slots, bool many, struct err *e);
/* What a hit costs: @like any target's. As hit_cost_measure(). */
int heap_probe_hit_cost(struct heap_bpf *obj, bool multi, const struct gpb_heap *like,
			struct attacher_process **all, struct hit_cost *out,
			struct cost_probes **rest, struct err *e);

/*
 * A target of which nothing is probed yet. @room: of many, for what they follow. Their plugins are not probed, and their
 * profiles are made at the end.
 */
int heap_probe_new(struct subject *s, const struct collect_opts *o, struct heap_live_room *room,
		   struct heap_probe **out, struct err *e);
/* Prepares its numbers. obj and reports are set. */
void heap_probe_window(struct heap_probe *h, uint32_t slot);
/* Tells the BPF side of it. */
int heap_probe_put(struct heap_probe *h, struct err *e);
/* For struct probing_user: @probe is a struct heap_probe. Changes to windows, or back to full observation. */
int heap_probe_turn(void *probe, bool windows, uint64_t since, double hit_ns, uint64_t window_ns,
		    struct err *e);
/* In windows: the next one has so much own time, and not as much as the target's own windows tell. */
int heap_probe_own(struct heap_probe *h, double ns, struct err *e);
/* The profile ends no earlier than the counts that its windows are scaled by. */
static inline void heap_probe_ends(struct heap_probe *h)
{
	if ((int64_t)h->window.end_ns > h->end_ns)
		h->end_ns = (int64_t)h->window.end_ns;
}

/* Nothing is added any more: fills the profile. Its losses are in loss. */
int heap_probe_finish(struct heap_probe *h, struct err *e);

/* ---- heap_entries.c ---- */

/* Finds what is to be probed in image @i. In a plugin nothing is no error, in the program it is -ENOENT. */
int heap_probe_entries(struct heap_probe *h, size_t i, struct err *e);
/* Those are known: sets the live addresses that GPB_COOKIE_NOT_FROM needs. */
void heap_probe_place(struct heap_probe *h, size_t i);

/* The sites of several images, in groups. */
struct site_list {
	struct uprobe_site
		sites[GPB_IMAGES * (ALLOC_ENTRIES_MAX + MAKER_SITES_MAX + HEAP_LIVE_SITES)];
	struct uprobe_group groups[GPB_IMAGES];
	size_t n, ngroups;
};
/*
 * Lists the sites of one image: all except those that @large takes, which may be NULL. @of: the slot, or of
 * many targets the set.
 */
void heap_probe_list(struct heap_probe *h, size_t i, uint32_t of, struct site_list *all,
		     struct site_list *large);

#endif
