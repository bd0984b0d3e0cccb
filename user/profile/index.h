/*
 * user/profile/index.h - from content to the number of what has it: open addressing.
 *
 * The content lies in arrays of struct prof, which appends what is new first and takes it out again where an equal one was there.
 */
#ifndef PROFILE_INDEX_H
#define PROFILE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct index_slot {
	uint32_t hash, id; /* id 1..n; 0: free */
};

/* Zeroed at first; the owner frees @at. */
struct index {
	struct index_slot *at;
	size_t n, cap; /* cap: a power of two */
	bool closed;   /* nothing is added */
};

struct prof;

/* Are the elements at @a and @b of one of its arrays equal? */
typedef bool index_same(const struct prof *p, size_t a, size_t b);

/*
 * The id of an element equal to the one at @fresh (0-based, the last of its array): an older
 * one's, or @fresh + 1 when it is the first of its kind. 0 when it may not be added, or there is no memory.
 */
uint32_t index_put(struct index *ix, const struct prof *p, uint64_t h, size_t fresh,
		   index_same *same);

#endif
