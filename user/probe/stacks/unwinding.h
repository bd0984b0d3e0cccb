/*
 * user/probe/stacks/unwinding.h - how stacks of Go are walked: the rule of a pc for the BPF side, and what is left to do
 * of a walk that met a pc without one.
 */
#ifndef PROBE_STACKS_UNWINDING_H
#define PROBE_STACKS_UNWINDING_H

#include "goprof_abi.h"
#include "subject/subject.h"

/* Finds the rule of a live pc, as gpb_unwind_rule documents it. -ENOENT outside of Go text. */
int unwinding_rule(struct subject *s, uint64_t pc, struct gpb_unwind_rule *out);

/*
 * Finishes a stack of which a frame had no rule, from the memory that came with it, as far as
 * that reaches. @learn is told of every pc on the way. -EBADMSG when the record contradicts
 * itself.
 */
int unwinding_settle(struct subject *s, struct gpb_rec_raw *raw,
		     void (*learn)(void *arg, uint64_t pc, const struct gpb_unwind_rule *r),
		     void *arg, struct err *e);

#endif
