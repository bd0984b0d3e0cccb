/*
 * user/base/again.h - when something that failed is tried again: at once, soon, and then less and less often
 * (exponential backoff). What a process that has just begun does not have yet may come after milliseconds
 * or, where a constructor runs first, after minutes; what never comes costs next to nothing.
 */
#ifndef BASE_AGAIN_H
#define BASE_AGAIN_H

#include <stdbool.h>
#include <stdint.h>

#define AGAIN_FIRST_NS 5000000ull
enum { AGAIN_AT_ONCE = 3 };

/* A struct that is zeroed is due. Times are CLOCK_MONOTONIC, in ns. */
struct again {
	uint64_t at, pause;
	unsigned failures;
};

static inline bool again_due(const struct again *a, uint64_t now)
{
	return now >= a->at;
}

static inline void again_later(struct again *a, uint64_t now)
{
	if (++a->failures < AGAIN_AT_ONCE)
		return;
	a->pause = a->pause ? 2 * a->pause : AGAIN_FIRST_NS;
	a->at = now + a->pause;
}

#endif
