/*
 * user/ingest/typing/program.h - the program that wrote a dump: where it has what.
 *
 * go/image/gobin.h understands Go 1.16 and newer on amd64 and arm64. Of all else the symbol table tells the
 * few things that are needed here.
 */
#ifndef INGEST_TYPING_PROGRAM_H
#define INGEST_TYPING_PROGRAM_H

#include "base/map.h"
#include "go/image/elf/elfimg.h"
#include "go/image/gobin.h"
#include "go/runtime/types/gotypes.h"

enum { TYPING_NAME_MAX = 1024 };

struct typing_program {
	struct gobin *bin;  /* NULL: older than Go 1.16, or of another processor, */
	struct elfimg *img; /* then this one */
	struct gomodule module;
	uint64_t word; /* bytes of a pointer */
	bool big_endian;
	bool moves;		 /* position-independent: it is loaded anywhere */
	bool names_long;	 /* set it: is it older than Go 1.17? typing_program_type() */
	const char *arch;	 /* as Go calls it */
	const struct gotypes *t; /* borrowed; set it once it was read */
	struct map names;	 /* of types, without paths: private */
};

/* @fd, @path: borrowed. Errors as of gobin_open(), but -EINVAL: it is no Go program. */
int typing_program_open(int fd, const char *path, struct typing_program *p, struct err *e);
void typing_program_fini(struct typing_program *p);

/* Must the symbol table's functions be among the types? */
bool typing_program_wants_functions(const struct typing_program *p);

/* The function that begins at a link-time address; NULL: none does. Borrowed. */
const char *typing_program_function(struct typing_program *p, uint64_t entry);

/*
 * The type whose descriptor is at a link-time address, by the name in it, where the DWARF does not tell
 * the address of its descriptor: up to Go 1.16 of none, later of those that are only put into
 * interfaces. GOTYPE_NONE: not known.
 * Source: runtime/type.h, Go 1.4; runtime/type.go, Go 1.5 to 1.20; internal/abi/type.go, Go 1.21 to 1.27.
 */
uint32_t typing_program_type(struct typing_program *p, uint64_t descriptor);

/* What a descriptor itself says. */
struct typing_described {
	uint64_t size, ptrdata; /* ptrdata: bytes up to the end of its last pointer */
	uint8_t kind;		/* reflect.Kind */
	/* Of a pointer, or of what consists of one: the descriptor it leads to; 0: none, or not known. */
	uint64_t elem;
	char name[TYPING_NAME_MAX];
};

/*
 * Of Go 1.7 and newer. False: no descriptor is there, or the DWARF has types of that name, and it is
 * not known which of them it is.
 */
bool typing_program_describe(struct typing_program *p, uint64_t descriptor,
			     struct typing_described *out);

#endif
