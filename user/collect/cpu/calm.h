/*
 * user/collect/cpu/calm.h - may the clocks of a program's threads take long steps, because no thread is born?
 *
 * Threads inherit the steps of their makers' clocks, and those that end soon are seen in short steps only. So
 * steps are long only while no thread was born for some time. A birth makes them short again, and each time that
 * it does, the next calm has to last twice as long: a program that makes a thread now and then soon has short
 * steps for good.
 */
#ifndef COLLECT_CPU_CALM_H
#define COLLECT_CPU_CALM_H

#include <stdbool.h>
#include <stdint.h>

struct calm {
	uint64_t births;   /* up to now */
	uint64_t since_ns; /* since then none was born */
	uint64_t least_ns; /* so long calm has to last until steps are long */
	bool is;	   /* they may be */
};

void calm_begin(struct calm *c, uint64_t births, uint64_t now_ns);

/* @births: how many threads have been born up to now. Returns whether c->is has changed. */
bool calm_look(struct calm *c, uint64_t births, uint64_t now_ns);

#endif
