/*
 * user/go/rttype.h - the name of a Go type, from the address of its descriptor.
 *
 * As the runtime's own type.string() has it: "main.node", "[]string", "*http.Request": a type
 * is told with the name of its package, not with its path. Descriptors that the linker made
 * lie between moduledata's types and etypes of one image, their names are offsets from types:
 * stripping leaves them in place. Those that package reflect makes while the program runs
 * lie on its heap and their names in a map of the runtime: these are put together from what
 * they are made of, as far as that has names.
 *
 * Source: internal/abi/type.go (runtime/type.go up to Go 1.20), resolveNameOff and
 * rtype.string in runtime/type.go; the same layout from Go 1.17 to 1.27.
 */
#ifndef GO_RTTYPE_H
#define GO_RTTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "go/layout.h"

/* One image's descriptors. */
struct rttype_module {
	struct mem *mem;	/* borrowed; the file, at its link-time addresses */
	uint64_t types, etypes; /* moduledata's: link-time addresses */
	uint64_t bias;		/* live address = link-time address + bias */
};

struct rttypes {
	const struct golayout *layout;	    /* borrowed */
	const struct rttype_module *module; /* borrowed */
	size_t n;
	struct mem *live; /* borrowed; the process, for what reflect made */
};

enum { RTTYPE_FIRST_MINOR = 18 }; /* the first Go whose types are asked for */

/*
 * The name of the type whose descriptor is at the live address @addr, with a NUL in
 * buf[@cap]. -ENOENT: made at run time, and its name cannot be told; -EBADMSG: no
 * descriptor; -E2BIG: the name is longer than @cap or nested too deeply; -EFAULT, -ESRCH: it
 * cannot be read.
 */
int rttype_name(const struct rttypes *t, uint64_t addr, char *buf, size_t cap, struct err *e);

/* What a descriptor says of the values of its type. Errors as of rttype_name, but -ENOENT. */
struct rttype_shape {
	uint64_t size, ptrdata; /* bytes; ptrdata 0: it has no pointers */
	uint8_t kind;		/* reflect.Kind */
};
enum { RTTYPE_INTERFACE = 20, RTTYPE_SLICE = 23, RTTYPE_STRING = 24 };
int rttype_shape(const struct rttypes *t, uint64_t addr, struct rttype_shape *out, struct err *e);

/* Does it lie among the descriptors that the linker made? */
bool rttype_linked(const struct rttypes *t, uint64_t addr);

/*
 * Code that several instances of a generic function share may name a type by the shape that
 * they have in common: "main.list[go.shape.*uint8]" is a list of pointers to anything. In
 * place: such type arguments become "main.list[...]", a shape elsewhere "?". Never longer.
 * Source: cmd/compile/internal/noder/reader.go, shapify, Go 1.18 to 1.27.
 */
void rttype_hide_shapes(char *name);

#endif
