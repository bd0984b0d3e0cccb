/*
 * user/ingest/heapdump/graph/sites.h - allocation sites of a heap dump, as a heap profile.
 *
 * A dump has the buckets of the runtime's memory profile, with their stacks, and after them a
 * record for each sampled object that is alive, which names its bucket. Allocations and frees of a
 * bucket are those that the runtime has published, as of the last garbage collection that was done;
 * live objects are those of the moment of the dump. So "in use" is the number of a bucket's live
 * samples, and not allocations less frees. Allocations are the larger one of two numbers that are
 * both too small when something was allocated since that collection: what was published, and what
 * was freed plus what is alive.
 *
 * Source: dumpmemprof() in runtime/heapdump.go, Go 1.4 to 1.27; scaling, hidden frames and the
 * label "bytes": runtime/pprof/protomem.go.
 *
 * One pass, nothing is looked up in the file again: this works on a pipe. The memory is bounded by
 * base/limits.h whatever the dump is like; what is beyond counts as LOSS_STACKS_MANY.
 */
#ifndef INGEST_HEAPDUMP_SITES_H
#define INGEST_HEAPDUMP_SITES_H

#include "ingest/heapdump/heapdump.h"
#include "profile/profile.h"

struct dumpsites;

int dumpsites_new(struct dumpsites **out, struct err *e);
void dumpsites_free(struct dumpsites *s);
DEFINE_FREEP(struct dumpsites, dumpsites)

/* Takes what it needs of the record that was read last. */
int dumpsites_record(struct dumpsites *s, const struct heapdump *d, const struct heapdump_record *r,
		     struct err *e);
/* All records, from where @d stands. -EBADMSG: damaged; what came before it was taken. */
int dumpsites_read(struct dumpsites *s, struct heapdump *d, struct err *e);

/* How many sites and live samples there are. */
size_t dumpsites_count(const struct dumpsites *s);
uint64_t dumpsites_live(const struct dumpsites *s);

/*
 * After dumpsites_profile(): can the rate not be the program's? So it is when the estimate for what is
 * in use is beyond what the runtime counted on its heap, or, in a whole dump, below half of that, by more
 * than chance explains. (Half: sizes that were asked for may be recorded, and not those of the slots.)
 * @none: it keeps no memory profile. There are no sites, or only the runtime's start has some, which ends
 * the sampling where the linker found that nobody asks for the profile; of such a heap the program's own
 * allocations would have been sampled, too.
 * Source: disableMemoryProfiling, schedinit() in runtime/proc.go, Go 1.17 to 1.27.
 */
struct dumpsites_check {
	uint64_t inuse, heap; /* bytes */
	bool wrong, none;
};
struct dumpsites_check dumpsites_check(const struct dumpsites *s);

/*
 * The profile, with the sample types of Go's own heap profile. @rate: runtime.MemProfileRate of the
 * program, which the dump does not tell; 1: every allocation was recorded. @whole: the dump was
 * read to its end. It hands its profile over, so nothing can be added after it.
 */
int dumpsites_profile(struct dumpsites *s, int64_t rate, bool whole, struct prof **out,
		      struct err *e);

#endif
