/*
 * user/collect/reading.h - profiles of many processes out of what their runtimes have recorded
 * themselves, for engine/engine.h: heap, block, mutex, and the goroutines that there are.
 *
 * A target is read when it is added and when the window ends; of one that has gone by then, the first
 * reading remains. Nothing is probed: a target that keeps no records of a kind is refused by it (of heaps,
 * collect/heap/heap_many.h probes those).
 */
#ifndef COLLECT_READING_H
#define COLLECT_READING_H

#include "engine/engine.h"

extern const struct engine_kind engine_heap_read, engine_block_read, engine_mutex_read,
	engine_goroutine;

#endif
