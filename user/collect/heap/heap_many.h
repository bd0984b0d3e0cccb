/*
 * user/collect/heap/heap_many.h - heap profiles of many processes, for engine/engine.h: what programs
 * record is read, and those that record nothing are probed; --source=read and probe do one of the two.
 */
#ifndef COLLECT_HEAP_HEAP_MANY_H
#define COLLECT_HEAP_HEAP_MANY_H

#include "engine/engine.h"

extern const struct engine_kind engine_heap;

#endif
