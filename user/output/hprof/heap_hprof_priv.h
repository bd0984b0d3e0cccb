/* user/output/hprof/heap_hprof_priv.h - what the parts of heap_hprof share. */
#ifndef OUTPUT_HEAP_HPROF_PRIV_H
#define OUTPUT_HEAP_HPROF_PRIV_H

#include "output/hprof/heap_hprof.h"
#include "output/hprof/hprof.h"

/* Identifiers that are no addresses: so many of each kind, beside the range of the objects. */
enum id_kind {
	ID_STRING,
	ID_CLASS,
	ID_CLASS_NAME,
	ID_FRAME,
	ID_THREAD,
	ID_THREAD_NAME,
	ID_THREAD_CHARS,
	ID_STATIC_NAME,
	ID_KINDS,
};
#define ID_EACH (1ull << 32)

/* Frames of a stack. */
enum { STACK_FRAMES_MAX = 1 << 20 };
/* Bytes of an array: the length of its record fits, too. */
#define HPROF_COUNT_MAX ((uint32_t)INT32_MAX - 64)

/* Classes that each file has, by their number. */
enum java_class {
	JAVA_NONE,
	JAVA_OBJECT,
	JAVA_CLASS,
	JAVA_STRING,
	JAVA_THREAD,
	JAVA_REFERENCE,
	JAVA_SOFT,
	JAVA_WEAK,
	JAVA_FINAL,
	JAVA_PHANTOM,
	JAVA_ARRAYS, /* the first of those of eight primitive types */
	JAVA_OBJECTS = JAVA_ARRAYS + 8,
	JAVA_END,
};

/* Objects of a class whose pointers are not at its fields: numbered fields, in their order. */
struct variant {
	uint32_t class;
	uint64_t size;
	uint32_t room; /* for pointers */
	uint32_t number;
};

/* What kinds of holders are static fields, by enum holder_kind. */
struct statics {
	VEC(struct hprof_static) all; /* those that come into the next class */
	uint32_t number, classes;     /* its number, and how many come from it on */
	uint64_t n;		      /* in all */
};

struct heap_hprof {
	struct hprof *w;
	const struct heap_hprof *of; /* whose tables are borrowed, and not changed any more */
	const struct heapgraph *h;
	const struct classes *c;
	struct heap_hprof_opts opts;
	struct heap_hprof_losses losses;
	uint64_t base; /* of identifiers that are no addresses */
	/* names */
	struct strtab *strings; /* those that were written; ids are theirs */
	bool heap;		/* it begun: no strings any more */
	uint64_t named, told;	/* static fields: their names are numbered */
	bool no_memory;		/* for one of them, or for another part of a file */
	char *text;
	size_t room; /* of text */
	/* classes */
	uint32_t nclasses; /* their numbers begin with 1, and are their serial numbers */
	uint32_t *number;  /* by heap class: its class; 0: no object is in it */
	uint8_t *unsure;   /* by heap class: its objects may have other pointers than it tells */
	VEC(struct variant) variants;
	struct map variant_of;
	struct map packages; /* by string: the class */
	struct statics statics[HOLDER_OTHER + 1];
	struct hprof_field *fields; /* of one class */
	/* stacks */
	uint32_t nthreads, nsites, nframes;
	struct map frames, sites;
	VEC(uint64_t) stack;
	/* the holder that was told last */
	struct {
		uint32_t holder;
		uint32_t thread; /* goroutines before it */
		uint32_t frame;	 /* the first one of its goroutine */
	} at;
	bool classes;	      /* are being told: held pointers become static fields */
	struct object looked; /* the object that is looked at */
	/* that, or the one that is told */
	struct {
		const struct heap_field *field, *end; /* of its class, to come */
		bool misses; /* looking: it has a pointer that is not among them */
		bool unnamed;
		uint64_t n;	   /* looking: pointers */
		uint64_t room;	   /* telling: fields to come, if they are numbered */
		uint64_t bytes_id; /* of the array of its bytes */
		uint32_t trace, bytes;
	} object;
};

static inline uint64_t hprof_id(const struct heap_hprof *x, enum id_kind kind, uint64_t n)
{
	return x->base + (uint64_t)kind * ID_EACH + n;
}

/* The id of a string, which is written if it is new. What is no UTF-8 is replaced. */
uint64_t heap_hprof_string(struct heap_hprof *x, const char *text, size_t n);
/* One that is written without being kept. */
void heap_hprof_name(struct heap_hprof *x, uint64_t id, const char *text);

/* Names a class. */
void heap_hprof_load_class(struct heap_hprof *x, uint32_t number, const char *name);
/* Numbers and names all classes but those of packages. */
int heap_hprof_load_classes(struct heap_hprof *x, struct err *e);
void heap_hprof_dump_classes(struct heap_hprof *x);
/* The class of objects of which heap_hprof_must_look() is true, after the look. NULL: the usual. */
const struct variant *heap_hprof_variant(const struct heap_hprof *x, const struct object *o);
int heap_hprof_add_variant(struct heap_hprof *x, const struct object *o, struct err *e);

/* Stacks of all goroutines. */
int heap_hprof_load_threads(struct heap_hprof *x, struct err *e);

#endif
