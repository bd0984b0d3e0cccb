/*
 * user/collect/heap/live/types.h - the label "type" of a probed heap sample: what was allocated.
 *
 * It is the type's name as Go writes it. "[]T" stands for the memory of a slice, "string" for
 * that of a string, "chan T" for a channel with its buffer, "map[K]V" for the storage of a map's
 * keys and elements, and "interface T" for a value that a function of the runtime put into an
 * interface without being told the type. Unknown parts are replaced by '?', and such labels are
 * counted: "[]?", "?".
 */
#ifndef COLLECT_HEAP_LIVE_TYPES_H
#define COLLECT_HEAP_LIVE_TYPES_H

#include "base/map.h"
#include "base/strtab.h"
#include "goprof_abi.h"
#include "profile/profile.h"
#include "subject/subject.h"

struct types {
	struct subject *s;   /* borrowed */
	struct strtab *text; /* owned */
	struct map names;    /* address of a descriptor -> id of its name; 0: it has none */
	struct map boxed;    /* where a boxing call returns -> address of the type; 0: not known */
	char *buf;	     /* owned; for one label */
	uint64_t samples;    /* samples that were asked about */
	uint64_t partly;     /* how many of these have a '?' in the label */
	uint64_t unknown;    /* how many of these are just "?" */
};

/*
 * -ENOTSUP: the types of this Go are not known. types_fini() is called also after a failure, and
 * does nothing to a zeroed struct.
 */
int types_init(struct types *t, struct subject *s, struct err *e);
void types_fini(struct types *t);

/*
 * Adds the label of @st, which stands for st->count samples, to the @n labels that are there. A
 * label of the goroutine's own that is called "type" becomes "type (label)". Returns their
 * number. The text is borrowed until types_fini().
 */
size_t types_add(struct types *t, const struct gpb_stack *st, struct prof_label *labels, size_t n);

/* Writes into the profile's comments what was told, and what could not be. */
int types_comment(const struct types *t, struct prof *p, struct err *e);

#endif
