/*
 * user/ingest/typing/shape.h - where a type has what leads on: pointers, strings, slices, maps, ...
 */
#ifndef INGEST_TYPING_SHAPE_H
#define INGEST_TYPING_SHAPE_H

#include "go/gotypes.h"

/* Beyond the kinds of types: words that only their struct gives a meaning to. */
enum {
	LEAF_MAP_DIR = GOTYPE_KINDS, /* of Go 1.24's maps: to a group, or to pointers to tables */
	LEAF_CHAN_BUF,
};

struct leaf {
	uint64_t offset;
	uint64_t
		pointer; /* where its pointer is: that of an interface is the second of its words */
	uint32_t type;	 /* its own; of LEAF_MAP_DIR and LEAF_CHAN_BUF: of what lies there */
	uint8_t kind;	 /* enum gotype_kind, or one of the above */
	bool optional;	 /* the garbage collector need not see it */
	int64_t length;	 /* from offset to the word with the number of elements */
};

struct shape {
	struct leaf *leaves; /* by offset */
	uint32_t n, required;
	bool cut; /* there are more */
};

struct shapes {
	const struct gotypes *t; /* borrowed */
	struct shape **of;	 /* by type; private */
};

int shapes_init(struct shapes *s, const struct gotypes *t, struct err *e);
void shapes_fini(struct shapes *s);

/* Borrowed. NULL: there is no memory. */
const struct shape *shapes_get(struct shapes *s, uint32_t type);

/*
 * Can it be that @n pointers at these (rising) offsets of an object are those of @count values of the
 * type, the first at @base? All must be where the type has some, and all that the type must have must
 * be there, up to the last value that has any. SHAPES_REPEAT: as many values as there are, the last
 * one perhaps not whole.
 */
#define SHAPES_REPEAT UINT64_MAX
struct heap_field;
bool shapes_fit(struct shapes *s, uint32_t type, uint64_t base, uint64_t count,
		const struct heap_field *at, size_t n);

/* Does the object have a pointer wherever the type must have one? It may have others. */
bool shapes_within(struct shapes *s, uint32_t type, const struct heap_field *at, size_t n);

/* What is at an offset of a type: ".a.b[3].next"; "" when it is the value itself. */
void shapes_path(const struct shapes *s, uint32_t type, uint64_t offset, char *to, size_t cap);

#endif
