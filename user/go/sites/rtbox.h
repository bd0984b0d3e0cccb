/*
 * user/go/sites/rtbox.h - which type a value has that was put into an interface.
 *
 * For numbers, strings and slices the runtime has one function for all types of the same shape,
 * and is not told the type. Its caller puts the type in front of what it gets back: as the
 * address of a type descriptor, or of an itab, which has the address of the descriptor behind
 * that of the interface.
 *
 * Source: dataWordFuncName in cmd/compile/internal/walk/convert.go; itab in runtime/runtime2.go,
 * internal/abi/iface.go, Go 1.18 to 1.27.
 */
#ifndef GO_SITES_RTBOX_H
#define GO_SITES_RTBOX_H

#include "go/image/gobin.h"
#include "go/runtime/types/rttype.h"
#include "go/sites/rtmaker.h"

/*
 * The live address of the type whose value was boxed by the call that returns to @ret (a live
 * address in @b, which is loaded with @bias). 0: it cannot be told, because the code is that of a
 * generic function that does not name it, or of a plugin.
 */
uint64_t rtbox_type(struct gobin *b, uint64_t bias, const struct rttypes *t, uint64_t ret,
		    enum made_box box);

#endif
