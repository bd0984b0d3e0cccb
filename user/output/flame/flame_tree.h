/*
 * user/output/flame/flame_tree.h - the samples of a profile as a tree, from the root to the leaf.
 *
 * A frame is a function (name and file) and a line in it; inlined calls are frames like others. A
 * pc without function is a frame of its file ("[libc.so.6]") at its address. A sample without a
 * stack has the one frame "[no stack]". Samples that differ only in their addresses become one.
 * Only values below zero are left out, because they cannot be drawn: they are counted.
 */
#ifndef OUTPUT_FLAME_TREE_H
#define OUTPUT_FLAME_TREE_H

#include "base/map.h"
#include "base/vec.h"
#include "output/format.h"

/*
 * Ids of strtabs, in which 0 is the empty string. The bytes of these structs are the keys of
 * frames.
 */
struct flame_func {
	uint32_t name, file; /* in strings */
};
struct flame_frame {
	uint32_t func;	  /* in funcs */
	uint32_t address; /* in strings, "0x401000"; 0: it has a function */
	int64_t line;
};

struct flame_node {
	uint32_t frame;		      /* in frames; 0 only for node 0, which is above all stacks */
	uint32_t parent, first, next; /* nodes, 0 none */
	uint32_t order;		      /* 0-based position in tree order; node 0 has none */
};

/* The samples that end at a node and have these labels. */
struct flame_self {
	uint32_t node, labels;
	int64_t values[PROF_TYPES_MAX];
};

struct flame_tree {
	struct strtab *strings;
	struct strtab *funcs;  /* of struct flame_func */
	struct strtab *frames; /* of struct flame_frame */
	struct strtab *labels; /* rows of string ids: key, value, key, value */
	VEC(struct flame_node) nodes;
	VEC(struct flame_self) self; /* in tree order */
	struct map children;	     /* parent and frame -> node */
	struct map selves;	     /* node and labels -> index in self */
	int64_t total[PROF_TYPES_MAX];
	/* for each type: samples that are left out because they are negative */
	uint64_t negative[PROF_TYPES_MAX];
};

/* -ENOMEM. @t must be zeroed or finished. flame_tree_fini() is called also after a failure. */
int flame_tree_make(struct flame_tree *t, const struct prof *p, struct err *e);
void flame_tree_fini(struct flame_tree *t);

/*
 * The node after @node in tree order; 0 at the end. *up: how many levels the step went up before
 * it went down.
 */
uint32_t flame_tree_next(const struct flame_tree *t, uint32_t node, unsigned *up);

#endif
