/*
 * user/collect/waits/contention/contention.h - block and mutex profiles: the two kinds of contention that Go's
 * runtime counts. A block profile charges waits to those who waited, a mutex profile to those who
 * unlocked.
 */
#ifndef COLLECT_WAITS_CONTENTION_CONTENTION_H
#define COLLECT_WAITS_CONTENTION_CONTENTION_H

enum contention { CONTENTION_BLOCK, CONTENTION_MUTEX };

/* "block", "mutex": the collector's kind. */
const char *contention_name(enum contention c);

/* Does the program record it now, and could that be read? 0, or why not: -ENOTSUP, and others. */
struct subject;
struct err;
int contention_records(struct subject *s, enum contention what, struct err *e);

#endif
