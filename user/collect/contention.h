/*
 * user/collect/contention.h - block and mutex profiles: the two kinds of contention that Go's
 * runtime counts. A block profile has the waits by who waited, a mutex profile by who unlocked.
 */
#ifndef COLLECT_CONTENTION_H
#define COLLECT_CONTENTION_H

enum contention { CONTENTION_BLOCK, CONTENTION_MUTEX };

/* "block", "mutex": the collector's kind. */
const char *contention_name(enum contention c);

#endif
