/*
 * user/collect/waits/contention.h - block and mutex profiles: the two kinds of contention that Go's
 * runtime counts. A block profile charges waits to those who waited, a mutex profile to those who
 * unlocked.
 */
#ifndef COLLECT_WAITS_CONTENTION_H
#define COLLECT_WAITS_CONTENTION_H

enum contention { CONTENTION_BLOCK, CONTENTION_MUTEX };

/* "block", "mutex": the collector's kind. */
const char *contention_name(enum contention c);

#endif
