/*
 * user/ingest/typing/flow.h - types flow along pointers from what has one to what it points to.
 *
 * Of each object its class alone is kept, which knows its type, and one bit: that it is to be looked
 * through. A stack of bounded size says which one comes next; what it has no room for is found by its
 * bit. An object is given a type only if that takes up its slot, and has pointers exactly where the
 * dump says that the object has some. Later, better ones replace it: exact ones inferred ones, and
 * larger ones smaller ones, so that a struct wins over its first field.
 */
#ifndef INGEST_TYPING_FLOW_H
#define INGEST_TYPING_FLOW_H

#include "heapgraph/classes.h"
#include "ingest/typing/index.h"
#include "ingest/typing/parts.h"
#include "ingest/typing/program.h"
#include "ingest/typing/shape.h"

enum { FLOW_WINDOW = 1 << 16 };

/* What a class of typed objects is. */
struct flow_class {
	uint32_t type;	 /* GOTYPE_NONE: none; of some forms another number */
	uint8_t form;	 /* private; 0: this class has no type */
	uint16_t layout; /* the class that the dump alone told */
	uint64_t rank;	 /* the higher one wins */
};

/* A type by its descriptor alone. */
struct flow_named {
	uint32_t name;
	uint8_t kind;		/* reflect.Kind */
	uint64_t size, ptrdata; /* ptrdata: where its last pointer ends; 0: it has none */
	uint64_t elem; /* of what is a pointer: the descriptor in the dump of what it leads to */
};

struct flow {
	struct classes *c; /* borrowed, as the next ones */
	struct dumpgraph *g;
	const struct gotypes *t;
	struct typing_index *ix;
	struct typing_program *program;
	uint64_t bias; /* an address in the dump less the one in the file */
	bool headers;  /* objects of some sizes begin with their type */
	bool big_endian;
	bool untyped; /* only objects without a type get one */
	/* What does not work out as it should. */
	uint64_t unknown; /* interfaces and objects whose descriptors the DWARF does not know */
	uint64_t lost; /* objects that were not looked through: no record, or no room for parts */
	/* private: */
	struct shapes shapes;
	struct map runtime;   /* by link-time address of a descriptor: type */
	struct map described; /* the same, of those that the DWARF lacks: index in named */
	VEC(struct flow_named) named;
	/* Structs that begin with one: by the key of a type's name the first, of that one the next. */
	struct map begins;
	uint32_t *next_of;
	bool *shared;	  /* by type: several instances of generic code share it */
	struct map whole; /* by layout and type of the first field: the struct, or GOTYPE_NONE */
	struct map fit;	  /* by layout, type and form: class; 0: they do not fit */
	struct map code;  /* by address of a closure's code: type, or name | 1 << 32 */
	VEC(struct flow_class) of; /* by class */
	uint8_t *small;		   /* by size / 8: do objects have it? */
	uint64_t *pending;	   /* a bit for each object */
	size_t npending, cursor;
	VEC(uint32_t) stack;
	uint32_t stack_max; /* 0 when flow_init() is called: as many as are right */
	/* Of objects whose type is not known, while that of a part is. */
	struct typing_parts parts;
	uint64_t *missed; /* a bit for each object: it was not looked through */
	/* Bytes of the file that are being looked through. */
	uint8_t *window; /* FLOW_WINDOW bytes */
	uint64_t at, end;
	size_t n;
};

/* Set the borrowed ones, bias, headers and big_endian before. */
int flow_init(struct flow *x, struct err *e);
void flow_fini(struct flow *x);

/* The type whose descriptor is at this address in the dump; GOTYPE_NONE: not known. */
uint32_t flow_type(struct flow *x, uint64_t descriptor);

/* Values of a type in the file from @off to @end, @count of them. */
void flow_scan(struct flow *x, uint32_t type, uint64_t off, uint64_t count, uint64_t end);
/* What one leaf of a value leads to, @base being where the value has it. */
void flow_leaf(struct flow *x, const struct leaf *l, uint64_t base);
/* The @n bytes at x->window are at offset 0, and nothing is read from the file. */
void flow_window(struct flow *x, size_t n);

/* An interface's words; a closure; an object that is known to be exactly of the type. */
void flow_interface(struct flow *x, uint64_t descriptor, uint64_t data);
void flow_closure(struct flow *x, uint64_t addr);
void flow_exact(struct flow *x, uint64_t addr, uint32_t type);
/* All objects that begin with their type (headers). */
void flow_headers(struct flow *x);

/* Looks through all that was given a type, until nothing is left. */
void flow_run(struct flow *x);

#endif
