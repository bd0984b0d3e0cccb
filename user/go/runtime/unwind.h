/*
 * user/go/runtime/unwind.h - the frames of a goroutine that does not run, from a copy of its stack.
 *
 * It uses the tables that Go's own traceback uses (the distance of sp from the return address at
 * each pc), and its rules, so that the frames are those that Go would give; a frame pointer is
 * not needed. It does no I/O: it sees bytes and asks a callback about each pc. Source: unwinder
 * in runtime/traceback.go (1.21 to 1.27), gentraceback (1.16 to 1.20).
 */
#ifndef GO_RUNTIME_UNWIND_H
#define GO_RUNTIME_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "go/image/gobin.h"

/* What is known of a pc. */
struct unwind_frame {
	int32_t delta;	 /* bytes between sp and the return address, see gobin_spdelta */
	uint8_t flags;	 /* gofunc.flags */
	enum func_id id; /* of the physical function */
	uint32_t cookie; /* the caller's own name for the frame, which it gets back for each one */
};

struct unwind {
	enum arch_id arch;
	int minor;	 /* of the Go version; -1 newer than any known */
	uint64_t pc, sp; /* where the walk begins */
	bool syscall;	 /* pc and sp are g.syscallpc and g.syscallsp */
	const uint8_t *stack;
	size_t n; /* bytes of stack, which begins at sp */
	/*
	 * Returns 0, or -ENOENT where there is no Go function. @trap: @pc was not reached by a
	 * call, so the instruction at it is the one that matters. @callee: the function that it
	 * called, FUNC_NORMAL for the leaf.
	 */
	int (*look)(void *arg, uint64_t pc, bool trap, enum func_id callee,
		    struct unwind_frame *out);
	void *arg;
};

enum unwind_end {
	UNWIND_WHOLE,  /* the walk ended at the function that every goroutine begins in */
	UNWIND_CUT,    /* it ended at the end of the bytes */
	UNWIND_BROKEN, /* it ended at something that no stack has */
};

typedef VEC(uint32_t) unwind_cookies;

/* Appends the cookies of the frames, leaf first. -ENOMEM, or the error of look(). */
int unwind_stack(const struct unwind *u, unwind_cookies *out, enum unwind_end *end, struct err *e);

#endif
