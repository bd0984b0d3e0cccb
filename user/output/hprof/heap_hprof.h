/*
 * user/output/hprof/heap_hprof.h - a heap graph as an HPROF file, for the tools that read heaps of Java.
 *
 * - Each object is an instance, with its address as identifier. What it points to are its fields;
 *   pointers into objects become pointers to them.
 * - Each class of objects is a class with the exact size of its objects. A tool adds nothing to it
 *   (but Eclipse MAT, which computes sizes itself). A class has at most 32,767 fields, so one with
 *   more has the rest in its superclass, and so on. Objects whose class does not tell where their
 *   pointers are, or tells less than they have, are in classes of their own, by size and by room for
 *   pointers, whose fields are numbered.
 * - Global variables, finalizers and other roots are static fields of classes that are roots:
 *   "(globals)", "(finalizers)", "(finalizers to run)", "(other roots)".
 * - Each goroutine is a thread with its stack; what its locals point to are roots of its frames,
 *   and what its deferred calls and panics need are roots of the thread (frame -1).
 * - An object that was sampled when it was allocated names that stack.
 * - What else is there are java.lang classes that readers look for, and for each goroutine a
 *   java.lang.Thread, its name and the name's characters.
 *
 * The order: heap_hprof_new(); looks, if wanted; sites; held pointers, for their names;
 * heap_hprof_roots(), the same held pointers; heap_hprof_classes(), and again;
 * heap_hprof_objects(), objects; heap_hprof_end(). Nothing is kept per object. Objects may be told
 * by several threads (below).
 */
#ifndef OUTPUT_HEAP_HPROF_H
#define OUTPUT_HEAP_HPROF_H

#include <stdio.h>

#include "heapgraph/classes.h"
#include "heapgraph/heapgraph.h"

struct heap_hprof;

struct heap_hprof_opts {
	uint64_t time_ms; /* of the heap, since 1970 */
	bool contents;	  /* objects without pointers get their bytes, as an array beside them */
};

/* What the format, or its readers, have no room for. */
struct heap_hprof_losses {
	uint64_t pointers; /* beyond those that an instance can have */
	uint64_t sizes;	   /* objects of 2 GiB and more, which count as 2 GiB less 1 */
	uint64_t contents; /* bytes: beyond that, and of objects of 1 byte or that others overlap */
	uint64_t frames;   /* of stacks that are deeper than a million */
	uint64_t
		unnamed; /* objects at address 0, which is no identifier, with what they point to */
};

/*
 * @f, @h and @c outlive it; of @h objects and holders are needed. -E2BIG: no identifiers are left
 * beside the objects' addresses.
 */
int heap_hprof_new(FILE *f, const struct heapgraph *h, const struct classes *c,
		   const struct heap_hprof_opts *opts, struct heap_hprof **out, struct err *e);
void heap_hprof_free(struct heap_hprof *x);
DEFINE_FREEP(struct heap_hprof, heap_hprof)

/*
 * Must somebody look at this object's pointers before it is told? Each such object of all is looked
 * at once in the beginning (wants_looks: there may be some), and again before it is told.
 */
bool heap_hprof_wants_looks(const struct heap_hprof *x);
bool heap_hprof_must_look(const struct heap_hprof *x, const struct object *o);
void heap_hprof_look(struct heap_hprof *x, const struct object *o);
void heap_hprof_look_pointer(struct heap_hprof *x, uint64_t offset);
int heap_hprof_looked(struct heap_hprof *x, struct err *e);

/* A place that allocates, with its stack from the innermost frame on. */
struct heap_hprof_line {
	const char *func, *file; /* not terminated */
	size_t nfunc, nfile;
	uint64_t line;
};
int heap_hprof_site(struct heap_hprof *x, uint64_t key, const struct heap_hprof_line *lines,
		    size_t n, struct err *e);

/* Names, classes and stacks are written, and the heap begins. */
int heap_hprof_roots(struct heap_hprof *x, struct err *e);
/* A pointer of a holder, at @offset of it; holders come in their order, each time. */
int heap_hprof_held(struct heap_hprof *x, uint32_t holder, uint64_t offset, uint64_t addr,
		    struct err *e);
int heap_hprof_classes(struct heap_hprof *x, struct err *e);
int heap_hprof_objects(struct heap_hprof *x, struct err *e);

/*
 * Has an object of this class and size that has pointers at these offsets exactly the fields of its
 * class? Nobody must look at it then, and it can be told at once.
 */
bool heap_hprof_fits(const struct heap_hprof *x, uint16_t class, uint64_t size,
		     const uint16_t *offsets, uint32_t n);
/*
 * One that fits, not at address 0, of less than 2 GiB, and whose contents are not wanted, with its
 * pointers; @site 0: not sampled.
 */
enum { HEAP_HPROF_WHOLE_MAX = 32 };
void heap_hprof_whole(struct heap_hprof *x, const struct object *o, uint64_t site,
		      const uint64_t *addrs, uint32_t n);
/* Some of them that have none and were not sampled, of one class, by their addresses. */
void heap_hprof_leaves(struct heap_hprof *x, uint16_t class, const uint64_t *addrs, size_t n);
/* Did a write fail? */
int heap_hprof_check(const struct heap_hprof *x, struct err *e);

/* Any object: @site as above. Then its pointers by rising offset. */
int heap_hprof_object(struct heap_hprof *x, const struct object *o, uint64_t site, struct err *e);
void heap_hprof_pointer(struct heap_hprof *x, uint64_t offset, uint64_t addr);
/* The bytes that follow: 0, none. */
uint32_t heap_hprof_object_end(struct heap_hprof *x);
void heap_hprof_bytes(struct heap_hprof *x, const void *bytes, size_t n);

/*
 * Several writers, as in output/hprof/hprof.h: heap_hprof_sections() after heap_hprof_objects(). @beside is
 * freed before @x, after it was joined: then its losses are @x's.
 */
void heap_hprof_sections(struct heap_hprof *x);
int heap_hprof_beside(const struct heap_hprof *x, struct heap_hprof **beside, struct err *e);
void heap_hprof_join(struct heap_hprof *x, const struct heap_hprof *beside);
void heap_hprof_section(struct heap_hprof *x, uint64_t n);
void heap_hprof_section_end(struct heap_hprof *x);
enum { HEAP_HPROF_SECTION_BYTES = 1 << 20 };
/*
 * What @n objects of @size bytes take at most, of which @nodes have pointers of @word bytes: those
 * of a section should take no more than HEAP_HPROF_SECTION_BYTES.
 */
uint64_t heap_hprof_room(const struct heap_hprof *x, uint64_t n, uint64_t nodes, uint64_t size,
			 uint64_t word);

int heap_hprof_end(struct heap_hprof *x, struct heap_hprof_losses *losses, struct err *e);

#endif
