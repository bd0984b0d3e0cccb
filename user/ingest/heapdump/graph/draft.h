/*
 * user/ingest/heapdump/graph/draft.h - the stacks in a dump of the draft of Go 1.3's format.
 *
 * There, frames name their parents, goroutines their innermost frame, and pointers on a stack are
 * records with the frame that they are in; nothing says in which order all these come.
 */
#ifndef INGEST_HEAPDUMP_DRAFT_H
#define INGEST_HEAPDUMP_DRAFT_H

#include "base/vec.h"
#include "heapgraph/heapgraph.h"

struct draft_frame {
	uint64_t sp, parent_sp;
	struct holder holder;
	bool taken; /* a goroutine has it */
};

struct draft_root {
	uint64_t sp, addr;
	bool taken;
};

struct draft_goroutine {
	uint64_t sp; /* of its innermost frame */
	struct holder holder;
};

/* A zeroed struct is empty. */
struct dumpdraft {
	VEC(struct draft_frame) frames;
	VEC(struct draft_root) roots;
	VEC(struct draft_goroutine) goroutines;
};

void dumpdraft_fini(struct dumpdraft *s);
/* All have been added: frames and roots are sorted by sp. */
void dumpdraft_seal(struct dumpdraft *s);
/* The frame with this sp that no goroutine has yet; NULL: there is none. It is then taken. */
struct draft_frame *dumpdraft_take(struct dumpdraft *s, uint64_t sp);
/* The first of the roots in the frame with this sp; all of them stand side by side. */
size_t dumpdraft_roots(const struct dumpdraft *s, uint64_t sp);

#endif
