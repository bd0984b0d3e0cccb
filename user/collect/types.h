/*
 * user/collect/types.h - the label "type" of a probed heap sample: what was allocated.
 *
 * The type's name as Go writes it; "[]T" for the memory of a slice, "string" for that of a
 * string, "chan T" for a channel with its buffer, "map[K]V" for the places of a map's keys and
 * elements; "interface T" for what is put into an interface by a function of the runtime that
 * is not told the type. What is not known has a '?' in its place and is counted: "[]?", "?".
 */
#ifndef COLLECT_TYPES_H
#define COLLECT_TYPES_H

#include "base/map.h"
#include "base/strtab.h"
#include "collect/subject_priv.h"

struct types {
	struct subject *s;   /* borrowed */
	struct strtab *text; /* owned */
	struct map names;    /* address of a descriptor -> id of its name; 0: it has none */
	struct map boxed;    /* where a boxing call returns -> address of the type; 0: not known */
	char *buf;	     /* owned; for one label */
	uint64_t samples;    /* asked for */
	uint64_t partly;     /* of these, a '?' in the label */
	uint64_t unknown;    /* and no more than that */
};

/* -ENOTSUP: the types of this Go are not known. types_fini also after a failure, or when all zero. */
int types_init(struct types *t, struct subject *s, struct err *e);
void types_fini(struct types *t);

/*
 * Adds the label of @st, which stands for st->count samples, to the @n that there are; one of the
 * goroutine's own that is called "type" becomes "type (label)". Their number. The text is
 * borrowed until types_fini.
 */
size_t types_add(struct types *t, const struct gpb_stack *st, struct prof_label *labels, size_t n);

/* Into the profile's comments: what was told, and what could not be. */
int types_comment(const struct types *t, struct prof *p, struct err *e);

#endif
