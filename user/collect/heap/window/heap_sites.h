/*
 * user/collect/heap/window/heap_sites.h - where in one image the runtime tells more of the heap than where it
 * allocates: the places where the slot of an object becomes known, and the place where a GC cycle
 * ends.
 *
 * A plugin has copies of these functions of its own, beside the program's, and its code calls
 * those; so each image with an allocator has such sites.
 */
#ifndef COLLECT_HEAP_WINDOW_HEAP_SITES_H
#define COLLECT_HEAP_WINDOW_HEAP_SITES_H

#include "probe/uprobes/uprobes.h"
#include "subject/images.h"

/* Sites for heap_alloc; their cookies lack only the target's slot. */
enum { HEAP_LIVE_SITES = 32 };
struct heap_sites {
	struct uprobe_site at[HEAP_LIVE_SITES];
	size_t n;
};

/* Does it have an allocator? Otherwise it has no sites. */
bool heap_sites_needed(const struct image *img);

/*
 * Fills @out, which is empty, with the instructions where allocLarge, refill and gcAssistAlloc
 * return. Large objects cannot be followed without those of allocLarge: -ENOTSUP, with the reason.
 * Without the others (a profile-guided build may have copies of them elsewhere) more objects
 * become known late or not at all, which is counted.
 */
int heap_sites_find(const struct image *img, struct heap_sites *out, struct err *e);

/* Where a cycle ends, for heap_cycle. -ENOENT, -ENOTSUP: no such place is known. */
int heap_sites_cycle(const struct image *img, struct uprobe_site *out, struct err *e);

#endif
