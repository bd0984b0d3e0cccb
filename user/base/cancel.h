/*
 * user/base/cancel.h - does somebody wait for us to stop?
 *
 * What looks at a target's files and memory may take seconds. Its loops ask this, and end with
 * -ECANCELED. For the whole process.
 */
#ifndef BASE_CANCEL_H
#define BASE_CANCEL_H

#include <stdbool.h>

/* From here on cancelled() answers what @asked does (NULL: no). @asked may be called very often. */
void cancel_when(bool (*asked)(void));
bool cancelled(void);

#endif
