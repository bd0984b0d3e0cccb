/*
 * user/go/runtime/waitreason.h - why a goroutine is parked: g.waitreason, renumbered every few versions.
 *
 * Source: waitReasonStrings in runtime/runtime2.go of 34 releases from 1.15.15 to 1.27.4, point
 * releases too (tests/e2e/waitreasons.sh holds it to what real binaries have). Within a minor
 * version one reason was added, in 1.23.
 */
#ifndef GO_RUNTIME_WAITREASON_H
#define GO_RUNTIME_WAITREASON_H

#include "base/mem.h"
#include "go/image/gobin.h"

/*
 * The newest Go's name for what @value means in Go 1.@minor. @minor is at least 15; one above the
 * newest known, or -1, counts as the newest known. "" is the reason 0. NULL when that version has
 * no such value.
 */
const char *waitreason_name(int minor, unsigned value);

/* The value of that name; -1 when that version has no such reason. */
int waitreason_value(int minor, const char *name);

/* The name as that version itself spells it, in tracebacks. */
const char *waitreason_spelt(int minor, unsigned value);

/*
 * For a Go newer than any known: does the live process (@bias: what was added to link-time
 * addresses) spell every reason that we know as we do? -ENOTSUP with the first that differs.
 */
int waitreason_check(struct gobin *b, struct mem *live, uint64_t bias, struct err *e);

#endif
