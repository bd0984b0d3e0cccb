/* user/ingest/typing/flow_priv.h - between who gets which type, and the classes of such objects. */
#ifndef INGEST_TYPING_FLOW_PRIV_H
#define INGEST_TYPING_FLOW_PRIV_H

#include <string.h>

#include "ingest/typing/flow.h"

enum {
	/* Source: runtime/malloc.go, maxSmallSize; mallocHeaderSize from Go 1.22 on. */
	FLOW_SMALL_MAX = 32768,
	FLOW_HEADER = 8,	    /* on 32 bits, too */
	FLOW_SIZES = 8,		    /* all sizes of slots are multiples of it */
	FLOW_ANSWERS_MAX = 1 << 20, /* answers that are kept, of each kind */
};

enum flow_form {
	FORM_NONE,
	FORM_ONE,
	FORM_MANY,    /* side by side, however many */
	FORM_BUFFER,  /* the same, of a channel */
	FORM_TABLES,  /* the same, pointers to a map's tables */
	FORM_BYTES,   /* of a string */
	FORM_TINY,    /* small values without pointers, which share a block */
	FORM_CLOSURE, /* whose variables are not known */
	FORM_NAMED,   /* of a type of which only the descriptor is known */
};

enum { FLOW_NAMED_MAX = 1 << 16 };

#define FLOW_EXACT (3ull << 60)
#define FLOW_FIT   (1ull << 60)

/* What an object may be. */
struct flow_candidate {
	uint32_t type; /* of FORM_CLOSURE: its name; of FORM_NAMED: its index */
	enum flow_form form;
	enum heap_certainty certainty;
	uint64_t rank;
};

/* A word of the program's. */
static inline uint64_t flow_word(const struct flow *x, const uint8_t *at)
{
	uint64_t v8;
	uint32_t v4;

	if (x->t->word == 8) {
		memcpy(&v8, at, 8);
		return x->big_endian ? __builtin_bswap64(v8) : v8;
	}
	memcpy(&v4, at, 4);
	return x->big_endian ? __builtin_bswap32(v4) : v4;
}

/* True: the object has this type, or a better one. */
bool flow_put(struct flow *x, const struct object *o, const struct flow_candidate *c);
/* The object, and how far into its values an address is. */
bool flow_find(const struct flow *x, uint64_t addr, struct object *o, uint64_t *offset);
/* What a pointer to a type leads to. */
void flow_pointer(struct flow *x, uint64_t addr, uint32_t type);

/*
 * Types that the DWARF does not have: *index is that in x->named. NULL: the descriptor is none, or is
 * not read. Where their values have pointers is known by the last one alone, so that nothing flows on.
 */
const struct flow_named *flow_described(struct flow *x, uint64_t descriptor, uint32_t *index);
bool flow_named_fits(const struct flow *x, const struct object *o, const struct heap_class *l,
		     const struct flow_named *n);
/* True: what the interface, or the value's place, leads to got a type. */
bool flow_named_interface(struct flow *x, uint64_t descriptor, uint64_t data);
bool flow_named_value(struct flow *x, uint64_t addr, uint64_t descriptor,
		      enum heap_certainty certainty);

/* Bytes at the beginning of an object that are not the program's. */
uint64_t flow_header_of(const struct flow *x, const struct object *o);
/* The largest size that the allocator would have put into a smaller slot, by the slots there are. */
uint64_t flow_next_smaller(const struct flow *x, uint64_t size);
/* Would the allocator take this slot for so many bytes? */
bool flow_takes_up(const struct flow *x, const struct object *o, uint64_t bytes);
/* Does the tiny allocator put so many bytes there, together with others? */
bool flow_is_tiny(const struct object *o, uint64_t bytes);
void flow_note_sizes(struct flow *x);

/* NULL: there is no such type. */
static inline const struct gotype *flow_type_at(const struct flow *x, uint32_t id)
{
	return id < x->t->ntypes ? &x->t->types[id] : NULL;
}

/* Does it consist of values of its type? */
static inline bool flow_has_values(enum flow_form form)
{
	return form >= FORM_ONE && form <= FORM_TABLES;
}

/* Does an object of this layout have pointers where the candidate has some? */
bool flow_fits(struct flow *x, const struct object *o, uint16_t layout,
	       const struct flow_candidate *c);
/* 0: the object cannot be that, or there are too many classes. */
uint16_t flow_class_of(struct flow *x, const struct object *o, uint16_t layout,
		       const struct flow_candidate *c);

#endif
