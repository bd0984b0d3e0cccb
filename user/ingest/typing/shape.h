/*
 * user/ingest/typing/shape.h - where a type has what leads on: pointers, strings, slices, maps, ...
 */
#ifndef INGEST_TYPING_SHAPE_H
#define INGEST_TYPING_SHAPE_H

#include "base/limits.h"
#include "go/runtime/types/gotypes.h"

/* Beyond the kinds of types: */
enum {
	/* words that only their struct gives a meaning to, */
	LEAF_MAP_DIR = GOTYPE_KINDS, /* of Go 1.24's maps: to a group, or to pointers to tables */
	LEAF_CHAN_BUF,
	LEAF_VALUES, /* to so many values of a type */
	/* and a shape several times side by side: of arrays that are too long to be told one by one. */
	LEAF_REPEAT,
};

struct leaf {
	uint64_t offset;
	uint64_t
		pointer; /* where its pointer is: that of an interface is the second of its words */
	uint32_t type;	 /* its own; of such a word: of what lies there */
	uint8_t kind;	 /* enum gotype_kind, or one of the above */
	bool optional;	 /* the garbage collector need not see it */
	int64_t length;	 /* from offset to the word with the number of elements */
	/* Of LEAF_REPEAT: the shape, so many times. */
	const struct shape *of;
	uint64_t count;
};

struct shape {
	struct leaf *leaves; /* by offset */
	uint32_t n;
	uint64_t required; /* pointers, those of all repeats */
	uint64_t size;	   /* of a value */
	bool cut;	   /* there are more */
	/* private: */
	bool made;
	unsigned depth;	     /* of repeats in repeats */
	uint64_t leaves_all; /* those of all repeats */
};

enum { SHAPE_DEPTH = 2 * LIMIT_TYPE_DEPTH };

/* Goes over all leaves of a value, those of repeats as well. */
struct shape_walk {
	/* private: */
	struct {
		const struct shape *of;
		uint64_t base, left;
		uint32_t i;
	} at[SHAPE_DEPTH + 1];
	unsigned depth;
};

void shape_walk(struct shape_walk *w, const struct shape *s);
/* No repeat; its offsets are from @base on, in the value. NULL: there are no more. */
const struct leaf *shape_next(struct shape_walk *w, uint64_t *base);

struct shapes {
	const struct gotypes *t; /* borrowed */
	uint64_t cut;		 /* types that are cut */
	uint32_t pool_local;	 /* sync.poolLocal, or GOTYPE_NONE; private */
	struct shape **of;	 /* by type; private */
	unsigned nested;	 /* private */
};

int shapes_init(struct shapes *s, const struct gotypes *t, struct err *e);
void shapes_fini(struct shapes *s);

/* Borrowed. NULL: there is no memory, or the type is within itself. */
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
