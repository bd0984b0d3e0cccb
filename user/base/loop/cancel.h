/*
 * user/base/loop/cancel.h - does somebody wait for us to stop?
 *
 * What looks at a target's files and memory may take seconds. Its loops ask this, and end with
 * -ECANCELED. For the whole process.
 */
#ifndef BASE_LOOP_CANCEL_H
#define BASE_LOOP_CANCEL_H

#include <stdbool.h>
#include <stdint.h>

/*
 * From here on @since_ms says when we were asked to stop: the time of CLOCK_MONOTONIC in ms, or 0 if
 * nobody has asked. It may be called very often. NULL: nobody can ask.
 */
void cancel_when(uint64_t (*since_ms)(void));
bool cancelled(void);
/* How many ms ago we were asked to stop; 0 if nobody has asked. */
uint64_t cancelled_for_ms(void);

#endif
