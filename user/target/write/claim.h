/*
 * user/target/write/claim.h - who has switched something on in a target: agreed among all
 * goprof-bpf processes of this kernel, and forgotten by the kernel when one of them dies.
 *
 * Claims are read locks on ranges of one file that is the same inode for everybody, whatever
 * namespaces they are in: the target's pidfd (pidfs, Linux 6.9 and newer: one inode per
 * process); before that its executable, opened through /proc/PID/exe, where the place in the
 * file tells processes apart. Locks of an open file description (F_OFD_SETLK, Linux 3.15)
 * go away with it, also by SIGKILL; read locks need no right to write; they lie beyond the end
 * of any file and concern nobody else, in particular no flock(2) of the program on itself.
 *
 * A range's length is the value that was written into the target. So whoever comes second
 * knows what the first one wrote, and can tell it from what the program wrote itself.
 *
 * Anybody who can open that file can lock it. A lock of another type, start or length than ours is
 * nobody's claim. One that looks like a claim counts when a process holds it that could be a
 * goprof-bpf (target/write/holders.h), and also when its holder cannot be found, unless every process is
 * to be seen here: goprof-bpf runs in the initial pid namespace with CAP_SYS_PTRACE. Whoever has
 * hidden a descriptor, in a message on its way for example, then claims nothing. A process that a
 * security module hides all the same may hold a claim if it is named CLAIM_HOLDER, as those are that do. Where not every
 * process is to be seen, a stranger's lock can hide that of an unseen goprof-bpf in the same place:
 * that one's window ends early, which it notices.
 *
 * Mutual exclusion with read locks alone: announce (lock the gate's byte), then look whether
 * somebody else announced; if so withdraw and try again after a random pause. Of two, the
 * later to look sees the other: never are both in.
 *
 * On an executable two processes of the same program share the places when 23 bits of a hash
 * of their start time, stack address and own number agree: one pair in eight million.
 */
#ifndef TARGET_CLAIM_H
#define TARGET_CLAIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "target/target.h"

enum {
	CLAIM_HEAP_RATE, /* what is claimed: switches that are independent of each other */
	CLAIM_BLOCK_RATE,
	CLAIM_MUTEX_FRACTION,
	CLAIM_WHATS = 4,
	CLAIM_VALUE_MAX = 1 << 30,
	CLAIM_SLOTS = 63, /* claims at once, for each switch */
};

/* The name (comm) of a process that holds claims for a longer time. */
#define CLAIM_HOLDER "goprof-guardian"

struct claims;

/*
 * Opens a file description of its own, which must not be shared with a child. -ESRCH, -EPERM.
 * @force_exe: as on a kernel without pidfs; for tests.
 */
int claims_open(struct target *t, unsigned what, bool force_exe, struct claims **out,
		struct err *e);
void claims_free(struct claims *c); /* also gives up what is held */
DEFINE_FREEP(struct claims, claims)

/*
 * Alone from here to claims_leave. -EBUSY when others were there for @timeout_ms; another error
 * when the kernel gave that for as long; -EINTR when give_up says so (asked after each try; may be
 * NULL).
 */
int claims_enter(struct claims *c, unsigned timeout_ms, bool (*give_up)(void *arg), void *arg,
		 struct err *e);
void claims_leave(struct claims *c);

/* ---- between enter and leave ---- */

/*
 * @wanted when somebody else claims that, else the value of any other claim; 0: there is none.
 * Where locks stand in the way, this takes up to LIMIT_HOLDERS_MS for each of a few looks through
 * all processes; @stop (may be NULL) ends that early, and then all locks count whose holders have
 * not been found.
 */
int claims_others(struct claims *c, uint64_t wanted, bool (*stop)(void), uint64_t *value,
		  struct err *e);
/* Did the last claims_others() meet a lock like a claim that counts for nothing? */
bool claims_imitated(const struct claims *c);
/* @value: 1 to CLAIM_VALUE_MAX. -E2BIG when there are CLAIM_SLOTS already. */
int claims_take(struct claims *c, uint64_t value, struct err *e);
void claims_drop(struct claims *c);

int claims_fd(const struct claims *c); /* borrowed, for code that closes all other descriptors */

/* Has some goprof-bpf, this one or another, switched it on? @what: CLAIM_HEAP_RATE, ... */
bool claims_any(struct target *t, unsigned what);

#endif
