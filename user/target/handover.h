/*
 * user/target/handover.h - a target that a child of ours has opened, and its parent goes on with.
 *
 * Opening a process may wait for what never comes: a file system that does not answer, a lock of its memory.
 * A child can be left behind there. What the parent gets rests (target_rest()), and no file of it that the parent
 * reads lies on a file system that may not answer.
 */
#ifndef TARGET_HANDOVER_H
#define TARGET_HANDOVER_H

#include <stdio.h>

#include "target/target.h"

enum { HANDOVER_FDS = 2 + TARGET_LIBS };

/* Reads exactly @n bytes of what handover_send() wrote, in order. */
typedef bool handover_get(void *arg, void *buf, size_t n);

/*
 * Writes @t to the stream @to. Its descriptors are listed in fds[], and are the caller's to send, in that order:
 * the pidfd, the executable's unless @t has none (-1), then its libraries'.
 */
bool handover_send(const struct target *t, FILE *to, int fds[HANDOVER_FDS], size_t *n);

/*
 * The target, at rest, but for exe_fd and the libraries, and still without its descriptors. NULL: what came contradicts
 * itself, or there is no memory.
 */
struct target *handover_receive(handover_get *get, void *arg);
/* How many descriptors it has; and gives them to it. */
size_t handover_fds(const struct target *t);
void handover_adopt(struct target *t, const int *fds);

/*
 * Opens those of its libraries that are Go's, as @is_go says, and lets others not be opened any more. To be called before
 * handover_send().
 */
void handover_libs(struct target *t, bool (*is_go)(int fd));

/*
 * May reading this file wait for a server, or for another machine? Only file systems that are known to lie
 * on disks or in memory of this one do not. Source: statfs(2), include/uapi/linux/magic.h, Linux 6.18.
 */
bool handover_is_foreign(int fd);

/* A copy of that file in memory. -E2BIG: it is longer than LIMIT_COPY. */
int handover_copy(int fd, int *copy, struct err *e);

#endif
