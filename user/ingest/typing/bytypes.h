/*
 * user/ingest/typing/bytypes.h - is it the program that wrote a dump, by the types that the dump names?
 *
 * A dump that breaks off before its segments has, in front of its objects, the addresses, sizes and
 * names of the types with methods that were in interfaces. The same build has these at the same
 * places. Source: dumpitabs() and dumptype() in runtime/heapdump.go, Go 1.5 to 1.27.
 */
#ifndef INGEST_TYPING_BYTYPES_H
#define INGEST_TYPING_BYTYPES_H

#include "ingest/typing/index.h"
#include "ingest/typing/program.h"

enum { BYTYPES_FEWEST = 8 };

/*
 * How many types agree, and *@bias: an address in the dump less the one in the file. Fewer than
 * BYTYPES_FEWEST prove nothing. -EINVAL: the program has another type in the place of one.
 */
int bytypes_check(const struct typing_index *ix, const struct strtab *names,
		  const struct typing_program *p, uint64_t *bias, struct err *e);

#endif
