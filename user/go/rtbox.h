/*
 * user/go/rtbox.h - of which type a value is that was put into an interface.
 *
 * For numbers, strings and slices the runtime has one function for all types of such a shape, and
 * is not told which. Its caller puts the type in front of what it gets: as the address of a
 * descriptor, or of an itab, which has the descriptor's behind the interface's.
 *
 * Source: dataWordFuncName in cmd/compile/internal/walk/convert.go; itab in runtime/runtime2.go,
 * internal/abi/iface.go, Go 1.18 to 1.27.
 */
#ifndef GO_RTBOX_H
#define GO_RTBOX_H

#include "go/gobin.h"
#include "go/rtmaker.h"
#include "go/rttype.h"

/*
 * The live address of the type whose value the call that returns to @ret (a live address in
 * @b, which is loaded with @bias) has boxed. 0: it cannot be told: a generic function that is not
 * told it by its code, a plugin, another machine than amd64.
 */
uint64_t rtbox_type(struct gobin *b, uint64_t bias, const struct rttypes *t, uint64_t ret,
		    enum made_box box);

#endif
