/* user/subject/calling.h - functions on a stack, and where Go's own traceback ends at them. */
#ifndef SUBJECT_CALLING_H
#define SUBJECT_CALLING_H

#include "subject/subject.h"

/* A function and the file that it belongs to. */
struct calling {
	struct gofunc f;
	struct gobin *bin;
};

struct calling calling_of(struct subject *s, uint64_t call_pc);

/*
 * Go's own traceback stops at such a frame: it is the stack's root, or its sp cannot be trusted.
 */
bool calling_ends_stack(const struct calling *p);

/*
 * This function was entered by the kernel, or is the way back to it, or was called by C on a
 * thread of C's: no return address in Go lies above it. Source: crosscall2 in
 * runtime/cgo/asm_amd64.s, Go 1.16 to 1.27.
 */
bool calling_from_outside(const struct calling *p);

#endif
