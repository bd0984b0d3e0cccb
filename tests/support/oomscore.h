/* tests/support/oomscore.h - what the kernel's out-of-memory killer thinks of a process. */
#ifndef TESTS_OOMSCORE_H
#define TESTS_OOMSCORE_H

#include <stdbool.h>
#include <sys/types.h>

/* Its oom_score_adj; 12345 when that cannot be read. */
int oomscore_of(pid_t pid);

/* Gives up CAP_SYS_RESOURCE for good: to be called in a child. false: it could not. */
bool oomscore_drop_capability(void);

/* May a process that is forked here have itself spared? */
bool oomscore_may_be_spared(void);

#endif
