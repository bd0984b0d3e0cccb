/* user/target/host/pidns.h - the pid namespace that we are in: BPF programs count pids in another one. */
#ifndef TARGET_PIDNS_H
#define TARGET_PIDNS_H

#include <stdint.h>

#include "base/err.h"

/* Its inode; 0 when it is the initial one, where pids need no translation. */
int pidns_inode(uint32_t *ino, struct err *e);

#endif
