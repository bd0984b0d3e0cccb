/*
 * user/collect/waits/wait/wait_priv.h - what a wait profile of one target and those of many share: the target's part. Of one it
 * owns the BPF object, the ring and the probes, and of many it borrows them (wait_many.c).
 */
#ifndef COLLECT_WAITS_WAIT_WAIT_PRIV_H
#define COLLECT_WAITS_WAIT_WAIT_PRIV_H

#include "collect/waits/engine/wait_prof.h"
#include "collect/waits/wait/wait_window.h"
#include "go/sites/waitsite.h"
#include "profile/profile.h"
#include "wait.skel.h"

struct wait {
	struct subject *s;
	const struct collect_opts *o; /* the engine's */
	struct wait_bpf *obj;
	struct wait_window window;
	struct uprobe_site sites[GPB_IMAGES][WAITSITES_MAX];
	size_t nimages; /* how many of them were examined */
	size_t nsites;
	struct wait_prof out;
	struct wait_error whole; /* variances of all sites together */
	struct loss loss;
	uint64_t start, end; /* monotonic */
	int64_t start_unix_ns;
	struct err who_err; /* why goroutines cannot be read, when who_ret is not 0 */
	int who_ret;
};

/* The object, ready to be loaded, with tables for @slots targets. */
int wait_object_open(struct wait_bpf **out, bool multi, uint32_t slots, bool many, struct err *e);
struct wait_object wait_object_of(struct wait_bpf *o, bool multi);

/* A target of which nothing is probed yet. */
int wait_new(struct subject *s, const struct collect_opts *o, struct wait **out, struct err *e);
void wait_free(void *w);
/*
 * The sites of its i-th image, which are @of's: the slot, or of many targets the set. Returns their number; a plugin
 * need not contain a scheduler.
 */
int wait_sites_in(const struct wait *w, size_t i, uint32_t of,
		  struct uprobe_site out[WAITSITES_MAX], struct err *e);
/* Nothing is added any more, and start and end are set: fills the profile. Its losses are in loss. */
int wait_finish(struct wait *w, struct err *e);

#endif
