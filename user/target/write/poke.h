/*
 * user/target/write/poke.h - one word of a target's memory, to be read and written: the only place
 * in the project that writes to another process.
 *
 * The word is reached through a descriptor of /proc/PID/mem. That descriptor belongs to the
 * address space that was there when it was opened (mem_open() in fs/proc/base.c holds the mm,
 * mem_rw() takes mmget_not_zero()), not to the pid: after exit or exec every access yields
 * nothing, so that neither the program that came by exec nor the next owner of the pid can be
 * hit through it, however late a write comes. It survives in a forked child of ours.
 *
 * Opening it needs what ptrace needs (PTRACE_MODE_ATTACH_FSCREDS): the same user and Yama's
 * scope 0, or CAP_SYS_PTRACE, and for another user's process CAP_DAC_OVERRIDE too, for the file
 * is its owner's; Yama's scope 3 refuses everybody. The target is not stopped.
 * The page is writable in the target, so the kernel's proc_mem.force_override does not matter.
 */
#ifndef TARGET_POKE_H
#define TARGET_POKE_H

#include <stdint.h>

#include "base/err.h"
#include "target/target.h"

struct poke;

/*
 * @addr must be aligned to 8 bytes and lie in memory that the target itself may write and not
 * execute: -EBADMSG when not. -ESRCH when @t is no longer the program that was opened, -EPERM.
 */
int poke_open(struct target *t, uint64_t addr, struct poke **out, struct err *e);
void poke_free(struct poke *p);
DEFINE_FREEP(struct poke, poke)

/* -ESRCH: the address space exists no more (exit, exec). */
int poke_get(struct poke *p, uint64_t *v, struct err *e);

/*
 * Writes @to if @from is read immediately before, and reads it back. -EAGAIN with the value in
 * the message when it was another one: then nothing was written. One aligned word is stored by
 * one instruction or, where the kernel's memcpy goes by bytes, in ascending order. When a value
 * changes between 0 and a power of two, only one byte differs, so nobody can see it half done.
 */
int poke_put(struct poke *p, uint64_t from, uint64_t to, struct err *e);

int poke_fd(const struct poke *p); /* borrowed, for code that closes all other descriptors */

#endif
