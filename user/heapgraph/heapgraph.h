/*
 * user/heapgraph/heapgraph.h - a heap: its objects, who points to them, what holds them, and how
 * much each retains.
 *
 * It knows nothing of where it comes from. The source tells everything in three rounds, in the same
 * order each time: which objects there are; to whom those that may hold pointers, and the holders
 * (goroutines, frames, globals), point; and the same once more. The first two make the dominator tree
 * of what points to others; the third one hangs the leaves into it, objects without pointers, of which
 * there are many and whose edges are therefore not stored.
 *
 * Things are numbers: objects that may hold pointers; then the holders; then the program, which
 * points to all holders but frames, to which their goroutines do; then leaves. Holders that hold no
 * object, such as most frames, are not in the graph: they count as not reached.
 */
#ifndef HEAPGRAPH_HEAPGRAPH_H
#define HEAPGRAPH_HEAPGRAPH_H

#include "base/strtab.h"
#include "heapgraph/dominators.h"
#include "heapgraph/graph.h"
#include "heapgraph/objects.h"
#include "heapgraph/path.h"

enum holder_kind {
	HOLDER_GLOBAL, /* a variable, or a word that is in none that is known */
	HOLDER_GOROUTINE,
	HOLDER_FRAME,
	HOLDER_FINALIZER, /* what a registered one needs to run */
	HOLDER_QUEUED,	  /* a finalizer that is about to run */
	HOLDER_OTHER,
};

struct holder {
	enum holder_kind kind;
	uint8_t state; /* of a goroutine: 1 runnable, 2 running, 3 in a system call, 4 waiting */
	bool holds;    /* private: something in the heap */
	uint32_t name; /* in names: of a frame its function, of a goroutine why it waits */
	uint32_t up;   /* of a frame: the holder that is its goroutine */
	uint64_t addr; /* where it is; of a goroutine its id; of a frame its pc */
};

/* A global variable. */
struct heap_variable {
	uint64_t addr, size;
	const char *name; /* borrowed */
};

/* What is known of global variables; @arg is the first argument of both. */
struct heap_variables {
	void *arg;
	/* The one that an address lies in; false: none is known there. */
	bool (*find)(void *arg, uint64_t addr, struct heap_variable *out);
	/* What is at an address in it: ".items[3].next"; "": itself, or that is not known. */
	void (*part)(void *arg, uint64_t addr, char *to, size_t cap);
};

struct heapgraph {
	struct objects objects;
	VEC(struct holder) holders; /* of spill.h, as are the arrays below */
	struct strtab *names;
	uint32_t program;	/* the thing that points to all holders */
	struct heap_path *path; /* borrowed: to be found, if set before the second round */
	const struct heap_variables *variables; /* borrowed; NULL: each word is a holder */
	/* private: */
	struct graph graph;
	struct dominators dom;
	uint32_t *leaf;	    /* by number among the leaves: the number of its dominator; 0: none */
	uint64_t *retained; /* by number in the dominator tree: bytes */
};

int heapgraph_init(struct heapgraph *h, struct err *e);
void heapgraph_fini(struct heapgraph *h);

/* ---- telling ---- */

/* The first round: heapgraph_object() for each, heapgraph_objects_end(). */
int heapgraph_object(struct heapgraph *h, uint64_t addr, uint64_t size, bool pointers,
		     struct err *e);
int heapgraph_objects_end(struct heapgraph *h, struct err *e);
/*
 * The second: for each object that may hold pointers, in the order of the first round,
 * heapgraph_node(), and heapgraph_points() for each of its pointers; then the same for each holder
 * with heapgraph_holder(); then heapgraph_edges_end().
 */
int heapgraph_node(struct heapgraph *h, struct err *e);
int heapgraph_holder(struct heapgraph *h, const struct holder *holder, struct err *e);
int heapgraph_points(struct heapgraph *h, uint64_t addr, struct err *e);
/* From a goroutine to its frame. */
int heapgraph_has_frame(struct heapgraph *h, uint32_t frame, struct err *e);
int heapgraph_edges_end(struct heapgraph *h, struct err *e);
/* The third: for each pointer of each thing, and heapgraph_end(). */
void heapgraph_points_leaf(struct heapgraph *h, uint32_t thing, uint64_t addr);
int heapgraph_end(struct heapgraph *h, struct err *e);

/* ---- asking ---- */

uint32_t heapgraph_things(const struct heapgraph *h);
static inline uint32_t heapgraph_thing_of_holder(const struct heapgraph *h, uint32_t holder)
{
	return h->objects.nnodes + holder;
}
uint32_t heapgraph_thing_of(const struct heapgraph *h, const struct object *o);
/* False: the thing is no object. */
bool heapgraph_object_of(const struct heapgraph *h, uint32_t thing, struct object *out);
/* NULL: the thing is no holder. */
const struct holder *heapgraph_holder_of(const struct heapgraph *h, uint32_t thing);

/* Can it be reached? What cannot is garbage that was not collected yet. */
bool heapgraph_reached(const struct heapgraph *h, uint32_t thing);
/* Its dominator; GRAPH_NONE for the program and what cannot be reached. */
uint32_t heapgraph_dominator(const struct heapgraph *h, uint32_t thing);
/* Bytes that could be freed if it were gone, its own included. */
uint64_t heapgraph_retained(const struct heapgraph *h, uint32_t thing);

/*
 * The @max things with the most retained bytes among those that @thing dominates immediately, in
 * falling order. Returns how many there are in @out.
 */
size_t heapgraph_heaviest(const struct heapgraph *h, uint32_t thing, uint32_t *out, size_t max);
/* Calls @fn for each thing that only the program dominates, until it returns an error. */
int heapgraph_each_top(const struct heapgraph *h,
		       int (*fn)(void *arg, uint32_t thing, struct err *e), void *arg,
		       struct err *e);
/*
 * From @thing down, each time to the heaviest that it dominates, as long as that has at least
 * @share of what the one above it retains: where the chain ends much comes together. Returns how
 * many things there are in @out, @thing the first; leaves end no chain.
 */
int heapgraph_descend(const struct heapgraph *h, uint32_t thing, double share, uint32_t *out,
		      size_t max, size_t *n, struct err *e);

#endif
