/*
 * user/go/runtime/types/rttype.h - the name of a Go type, from the address of its descriptor.
 *
 * The name is that of the runtime's own type.string(): "main.node", "[]string", "*http.Request",
 * with the name of the package and not its path. Descriptors that the linker made lie between
 * moduledata's types and etypes of one image, and their names are offsets from types: stripping
 * leaves them in place. Descriptors that package reflect makes while the program runs lie on its
 * heap, and their names in a map of the runtime: these names are put together from the types they
 * are made of, as far as those have names.
 *
 * Source: internal/abi/type.go (runtime/type.go up to Go 1.20), resolveNameOff and rtype.string
 * in runtime/type.go; the same layout from Go 1.17 to 1.27.
 */
#ifndef GO_RUNTIME_TYPES_RTTYPE_H
#define GO_RUNTIME_TYPES_RTTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "go/layout/layout.h"

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
	struct mem *live; /* borrowed; the process, for types that reflect made */
};

enum { RTTYPE_FIRST_MINOR = 18 }; /* the first Go whose types are supported */

/*
 * The name of the type whose descriptor is at the live address @addr, with a NUL in
 * buf[@cap]. -ENOENT: made at run time, and its name cannot be told; -EBADMSG: no
 * descriptor; -E2BIG: the name is longer than @cap or nested too deeply; -EFAULT, -ESRCH: it
 * cannot be read.
 */
int rttype_name(const struct rttypes *t, uint64_t addr, char *buf, size_t cap, struct err *e);

/* What a descriptor says of the values of its type. Errors as for rttype_name, without -ENOENT. */
struct rttype_shape {
	uint64_t size, ptrdata; /* bytes; ptrdata 0: it has no pointers */
	uint8_t kind;		/* reflect.Kind */
};
enum { RTTYPE_INTERFACE = 20, RTTYPE_SLICE = 23, RTTYPE_STRING = 24 };
int rttype_shape(const struct rttypes *t, uint64_t addr, struct rttype_shape *out, struct err *e);

/* Does the descriptor lie among those that the linker made? */
bool rttype_linked(const struct rttypes *t, uint64_t addr);

/*
 * Code that several instances of a generic function share may name a type by the shape that the
 * instances have in common: "main.list[go.shape.*uint8]" is a list of pointers to anything. In
 * place, such type arguments become "main.list[...]", and a shape elsewhere "?". The result is
 * never longer. Source: cmd/compile/internal/noder/reader.go, shapify, Go 1.18 to 1.27.
 */
void rttype_hide_shapes(char *name);

#endif
