/*
 * user/collect/waits/contention/contention_many.h - block and mutex profiles of many processes, for engine/engine.h: read where the program
 * records them, and probed where it does not, by probes that both kinds share.
 */
#ifndef COLLECT_WAITS_CONTENTION_CONTENTION_MANY_H
#define COLLECT_WAITS_CONTENTION_CONTENTION_MANY_H

#include "engine/engine.h"

extern const struct engine_kind engine_block, engine_mutex;

#endif
