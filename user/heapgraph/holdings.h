/*
 * user/heapgraph/holdings.h - who holds what: the dominator tree, with things of one name at one
 * place merged.
 *
 * A holding is a name below another holding, and all the things that have this name there: its
 * bytes, with those of the holdings below it, are what these things retain. The first step is a
 * root, or "shared: TYPE" for objects that several roots lead to; then each step is the field that
 * points to the next object and that one's type, or "shared: TYPE" where the one above is the
 * nearest that all ways lead through but does not point there itself.
 *
 *	main.cache
 *	  map.buckets: map.bucket[string]main.entry
 *	    shared: main.entry
 *	      main.entry.next ...
 *
 * Objects that one of their own type dominates are one holding, however long the list or deep the
 * tree that they make ("TYPE.FIELD ..."). Elements of arrays have one name, "[*]". How deep and how
 * many holdings are is bounded; what is beyond counts to the holding above, so that no sum is wrong:
 * when half of the room is taken, things that retain little get no new ones.
 *
 * The source tells all pointers twice more, each time in the same order as before.
 */
#ifndef HEAPGRAPH_HOLDINGS_H
#define HEAPGRAPH_HOLDINGS_H

#include "base/map.h"
#include "heapgraph/classes.h"
#include "heapgraph/heapgraph.h"

enum { HOLDINGS_DEPTH = 96 };

struct holding {
	uint32_t parent;	 /* index of the one above, which is lower; of the first one: 0 */
	uint32_t name;		 /* in names */
	uint32_t what;		 /* in names: the type of its objects, 0 for other things */
	uint16_t depth;		 /* of the first one: 0 */
	uint32_t key;		 /* private: how its objects are held */
	bool again;		 /* its objects are dominated by others of their type */
	uint32_t things;	 /* of this name, at this place */
	uint64_t objects, bytes; /* its own; after holdings_sum() those below it, too */
};

struct holdings {
	VEC(struct holding) all; /* all.at[0]: the program */
	uint64_t squeezed;	 /* things without a holding of their own: there are too many */
	/* private: */
	const struct heapgraph *heap;
	const struct classes *classes;
	uint32_t *of;  /* by number in the dominator tree: first the field, then the holding */
	uint8_t *seen; /* a bit for each leaf */
	struct map keys, plain; /* plain: by name of a field, that without indexes */
	size_t max;
	uint64_t least; /* bytes; what retains less gets a holding only while there is much room */
	bool failed;
	uint32_t thing; /* whose class is known: */
	uint16_t class;
};

/* @h and @c outlive it. */
int holdings_init(struct holdings *x, struct heapgraph *h, const struct classes *c, struct err *e);
void holdings_fini(struct holdings *x);

/* The first round: each pointer of each thing. */
void holdings_points(struct holdings *x, uint32_t thing, uint64_t offset, uint64_t addr);
int holdings_points_end(struct holdings *x, struct err *e);
/* The second one, for what holds no pointers. */
int holdings_leaf(struct holdings *x, uint32_t thing, uint64_t offset, uint64_t addr,
		  struct err *e);
int holdings_end(struct holdings *x, struct err *e);

/* Adds to each holding what is below it. */
void holdings_sum(struct holdings *x);

/*
 * What points to an object at @offset of one of @class, as text: "main.node.next", "+8", "[*]"
 * (an element), or "" where the class says nothing.
 */
void holdings_field(const struct heapgraph *h, const struct classes *c, uint16_t class,
		    uint64_t offset, char *to, size_t cap);

#endif
