/*
 * user/heapgraph/objects.h - which objects there are: an index for each, by its address.
 *
 * Go allocates objects of one size side by side, so they are kept as runs of slots with two bits for
 * each: less than a byte for a small object. Those that may hold pointers (here: nodes, for the graph
 * has a node for each) are also counted apart, and so are the others, which are leaves of the graph.
 */
#ifndef HEAPGRAPH_OBJECTS_H
#define HEAPGRAPH_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"

/* Slots of @size bytes from @addr on. */
struct object_run {
	uint64_t addr, size;
	uint32_t first; /* index of its first object */
	uint32_t node;	/* nodes before it */
	uint32_t bits;	/* index of its first words of bits, */
	uint32_t words; /* and how many they are */
};

/* Of 64 slots. */
struct object_bits {
	uint64_t taken, node;
};

/* A part of the address range; they are of one size. */
struct objects_part {
	uint32_t from; /* the first run that it may be in, by order */
	uint32_t sole; /* the only one, if there is one that begins before it or with it */
};
enum { OBJECTS_NOT_SOLE = UINT32_MAX };

enum { OBJECTS_WORD = 64 };

struct objects {
	VEC(struct object_run) runs; /* in the order in which objects were added */
	VEC(struct object_bits) bits;
	uint32_t n, nnodes;
	uint64_t bytes;	     /* of all objects */
	uint64_t last;	     /* address of the last one, */
	uint32_t slot;	     /* and its slot in the last run; */
	uint64_t next, size; /* what may follow it right away (size 0: nothing may) */
	uint32_t *order;     /* runs by address, when all have been added */
	struct objects_part *guide;
	uint64_t low, high;
	unsigned shift;
	uint64_t end; /* of the objects' address range; UINT64_MAX: or more */
	bool overlap; /* runs do, so that objects may, too */
};

struct object {
	uint64_t addr, size;
	uint32_t index;
	uint32_t nodes; /* before it: the number of its node, if it is one */
	bool node;
};

/* A leaf's number among the leaves. */
static inline uint32_t object_leaf(const struct object *o)
{
	return o->index - o->nodes;
}

/* Its index is the number of those that were added before. -E2BIG: there are more than 2^32. */
int objects_add(struct objects *o, uint64_t addr, uint64_t size, bool node, struct err *e);
/* The same where it comes right behind the last one in the same word of bits. False: nothing was added. */
static inline bool objects_add_next(struct objects *o, uint64_t addr, uint64_t size, bool node)
{
	unsigned bit = (o->slot + 1) % OBJECTS_WORD;
	struct object_bits *bits;

	if (!o->size || !bit || addr != o->next || size != o->size)
		return false;
	bits = &o->bits.at[o->bits.n - 1];
	bits->taken |= 1ull << bit;
	bits->node |= (uint64_t)node << bit;
	o->n++;
	o->nnodes += node;
	o->bytes += size;
	o->last = addr;
	o->next = addr + size;
	o->slot++;
	return true;
}
/* All have been added: they can be looked up. */
int objects_seal(struct objects *o, struct err *e);
void objects_fini(struct objects *o);

/* The object that an address lies in. */
bool objects_find(const struct objects *o, uint64_t addr, struct object *out);
/* By its index, by its number among the nodes, and by its number among the leaves. */
struct object objects_at(const struct objects *o, uint32_t index);
struct object objects_node(const struct objects *o, uint32_t node);
struct object objects_leaf(const struct objects *o, uint32_t leaf);

/* The beginnings of the objects that @n addresses lie in; 0: there is none. */
void objects_starts(const struct objects *o, const uint64_t *addrs, size_t n, uint64_t *out);

/* All of them, in their order: zero @walk first, or begin at a run. */
struct objects_walk {
	/* private: */
	size_t run;	     /* the next one */
	size_t word, end;    /* the next 64 slots of this one */
	uint64_t left, node; /* those that are to come of the last 64, from bit 0 on */
	uint64_t addr, size; /* of bit 0 */
	uint32_t index, nodes;
};
void objects_walk_run(const struct objects *o, struct objects_walk *walk, size_t run);
/* False: there are no more. */
bool objects_walk_on(const struct objects *o, struct objects_walk *walk);

static inline bool objects_next(const struct objects *o, struct objects_walk *w, struct object *out)
{
	unsigned bit;

	if (!w->left && !objects_walk_on(o, w))
		return false;
	bit = (unsigned)__builtin_ctzll(w->left);
	w->left &= w->left - 1;
	*out = (struct object){ w->addr + bit * w->size, w->size, w->index++, w->nodes,
				w->node >> bit & 1 };
	w->nodes += out->node;
	return true;
}

/* How many objects a run has, and how many of them are nodes. */
static inline uint32_t objects_in_run(const struct objects *o, size_t run)
{
	return (run + 1 < o->runs.n ? o->runs.at[run + 1].first : o->n) - o->runs.at[run].first;
}

static inline uint32_t objects_nodes_in_run(const struct objects *o, size_t run)
{
	return (run + 1 < o->runs.n ? o->runs.at[run + 1].node : o->nnodes) - o->runs.at[run].node;
}

/*
 * Whose record is this? For one who reads again, in the same order, what the objects were added
 * from: zero @f first. False: it is of none, or of one that comes later.
 */
struct objects_follow {
	struct objects_walk walk;
	struct object next;
	bool begun, more;
};
bool objects_follow(const struct objects *o, struct objects_follow *f, uint64_t addr, uint64_t size,
		    struct object *out);
/* Does its own address lead to it? Where objects overlap, which none of Go do, to one of them. */
bool objects_leads_to(const struct objects *o, const struct object *object);

#endif
