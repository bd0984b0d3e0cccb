/*
 * user/collect/waits/wait/wait_many.h - wait profiles of many processes, for engine/engine.h. All of them are probed.
 */
#ifndef COLLECT_WAITS_WAIT_WAIT_MANY_H
#define COLLECT_WAITS_WAIT_WAIT_MANY_H

#include "engine/engine.h"

extern const struct engine_kind engine_wait;

#endif
