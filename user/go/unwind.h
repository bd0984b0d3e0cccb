/*
 * user/go/unwind.h - the frames of a goroutine that does not run, from a copy of its stack.
 *
 * By the tables that Go's own traceback uses (how far sp is from the return address, at each
 * pc) and by its rules, so that the frames are those that it would give; a frame pointer is
 * not needed. Pure: it sees bytes and asks for what is known of a pc.
 * Source: unwinder in runtime/traceback.go (1.21 to 1.27), gentraceback (1.16 to 1.20).
 */
#ifndef GO_UNWIND_H
#define GO_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "go/gobin.h"

/* What is known of a pc. */
struct unwind_frame {
	int32_t delta;	 /* bytes between sp and the return address, see gobin_spdelta */
	uint8_t flags;	 /* gofunc.flags */
	enum func_id id; /* of the physical function */
	uint32_t cookie; /* the caller's own name for it, handed over for each frame */
};

struct unwind {
	enum gobin_arch arch;
	int minor;	 /* of the Go version; -1 newer than any known */
	uint64_t pc, sp; /* where it begins */
	bool syscall;	 /* pc and sp are those of g.syscallpc and g.syscallsp */
	const uint8_t *stack;
	size_t n; /* of stack, which begins at sp */
	/*
	 * 0, or -ENOENT where no Go function is. @trap: @pc was not reached by a call, the
	 * instruction at it is the one that matters. @callee: the function inward of it,
	 * FUNC_NORMAL for the first.
	 */
	int (*look)(void *arg, uint64_t pc, bool trap, enum func_id callee,
		    struct unwind_frame *out);
	void *arg;
};

enum unwind_end {
	UNWIND_WHOLE,  /* at the function that every goroutine begins in */
	UNWIND_CUT,    /* at the end of the bytes */
	UNWIND_BROKEN, /* at something that no stack has */
};

typedef VEC(uint32_t) unwind_cookies;

/* Appends the cookies of the frames, leaf first. -ENOMEM, or what look() said. */
int unwind_stack(const struct unwind *u, unwind_cookies *out, enum unwind_end *end, struct err *e);

#endif
