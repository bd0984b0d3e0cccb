/*
 * user/go/runtime/types/gotypes.h - the types of a Go program, its global variables, and the variables in its
 * frames, from the program's DWARF.
 *
 * Everything refers to everything else by number, so that a process of its own can read the DWARF,
 * which nobody vouches for, and hand over tables that are checked once. All addresses are link-time
 * addresses; texts are offsets in gotypes.text.
 *
 * Source: cmd/link/internal/ld/dwarf.go (newtype, synthesizestringtypes ... synthesizechantypes) and
 * cmd/internal/dwarf/dwarf.go, Go 1.7 to 1.27: DWARF 4, and 5 from Go 1.25 on.
 */
#ifndef GO_RUNTIME_TYPES_GOTYPES_H
#define GO_RUNTIME_TYPES_GOTYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum gotype_kind {
	GOTYPE_PLAIN, /* has no pointers: numbers, bool, uintptr */
	GOTYPE_POINTER,
	GOTYPE_UNSAFE, /* unsafe.Pointer */
	GOTYPE_STRUCT,
	GOTYPE_ARRAY,
	GOTYPE_STRING,
	GOTYPE_SLICE,
	GOTYPE_EFACE, /* the type's address, and a pointer */
	GOTYPE_IFACE, /* an itab's address, and a pointer */
	GOTYPE_MAP,   /* a pointer to elem */
	GOTYPE_CHAN,  /* a pointer to elem */
	GOTYPE_FUNC,  /* a pointer to a closure */
	GOTYPE_KINDS,
};

/* Structs that the runtime makes for maps and channels: of is the map or channel. */
enum gotype_role {
	GOTYPE_NO_ROLE,
	GOTYPE_MAP_HEAD,   /* what a map points to */
	GOTYPE_MAP_BUCKET, /* up to Go 1.23 */
	GOTYPE_MAP_TABLE,  /* from Go 1.24 on, as the next one */
	GOTYPE_MAP_GROUP,
	GOTYPE_CHAN_HEAD,
	GOTYPE_CLOSURE, /* code, and the variables that it captured: made by the reader */
	GOTYPE_ROLES,
};

#define GOTYPE_NONE UINT32_MAX

struct gotype {
	uint32_t name;
	uint8_t kind, role;
	uint64_t size;
	uint64_t runtime; /* address of its descriptor (runtime._type); 0: it has none */
	uint32_t elem;	  /* what it consists of or points to; GOTYPE_NONE: not known */
	uint32_t of;	  /* by its role; of a channel the type of what is sent */
	uint64_t count;	  /* of an array */
	uint32_t first, nfields;
};

struct gofield {
	uint64_t offset;
	uint32_t name, type;
};

struct govar {
	uint64_t addr, size; /* size: 0, not known */
	uint32_t name, type; /* type: GOTYPE_NONE, it is known by the symbol table alone */
};

/* A part of a variable that is in the frame when it stands at a pc. */
struct goslot {
	uint32_t pc;	      /* index of the pc that was asked for */
	uint32_t name, type;  /* the variable's */
	uint64_t offset, len; /* in the variable */
	int64_t cfa;	      /* where in the frame: from the CFA, the caller's sp */
};

struct goclosure {
	uint64_t entry; /* of its code */
	uint32_t type;	/* a struct, its code pointer included */
};

struct gofuncname {
	uint64_t entry;
	uint32_t name;
};

struct gotypes {
	uint64_t word; /* bytes of a pointer, as was asked for */
	bool dwarf;    /* false: there is none, and only variables of the symbol table are known */
	const struct gotype *types;
	const struct gofield *fields;
	const struct govar *vars;	  /* by address; those with a type before those without */
	const struct goslot *slots;	  /* by pc, and by variable */
	const struct goclosure *closures; /* by entry */
	const struct gofuncname *funcs;	  /* of the symbol table, by entry; if wanted */
	size_t ntypes, nfields, nvars, nslots, nclosures, nfuncs, ntext;
	const char *text;
	void *data; /* private */
};

/* What of a program is asked for. */
struct gotypes_want {
	uint64_t word;	     /* bytes of a pointer: 4 or 8 */
	const uint64_t *pcs; /* rising; each is inside of the call instruction */
	size_t npcs;
	uint64_t data, edata;	/* [data, edata): where global variables are, */
	uint64_t bss, ebss;	/* and these */
	uint64_t types, etypes; /* moduledata's: the range of descriptors */
	bool functions;		/* names of those in the symbol table */
};

/*
 * @fd: borrowed, an ELF file. Works in a child within limits. -EBADMSG: it lies; -E2BIG, -ENOMEM:
 * more than is read (base/limits.h). What one unit or function lies about is left out.
 */
int gotypes_read(int fd, const struct gotypes_want *want, struct gotypes **out, struct err *e);
void gotypes_free(struct gotypes *t);
DEFINE_FREEP(struct gotypes, gotypes)

/* The same without a child: for tests. */
int gotypes_read_here(int fd, const struct gotypes_want *want, struct gotypes **out, struct err *e);

static inline const char *gotypes_text(const struct gotypes *t, uint32_t at)
{
	return t->text + at;
}

/* The variable that an address lies in; NULL: none. */
const struct govar *gotypes_var(const struct gotypes *t, uint64_t addr);
/* The captured variables of a function; NULL: not known, or there are none. */
const struct goclosure *gotypes_closure(const struct gotypes *t, uint64_t entry);
/* The name of the function that begins there; NULL: none does, or they were not wanted. */
const char *gotypes_function(const struct gotypes *t, uint64_t entry);

#endif
