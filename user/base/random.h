/* user/base/random.h - the random numbers that windows and looks are drawn with. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>

/* splitmix64: any state will do. Source: Steele, Lea, Flood, OOPSLA 2014. */
static inline uint64_t random_next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* Uniform in [0, n); 0 when n is 0. */
static inline uint64_t random_below(uint64_t *state, uint64_t n)
{
	return n ? random_next(state) % n : 0;
}

/* Uniform in [0, 1). */
static inline double random_part(uint64_t *state)
{
	return (double)(random_next(state) >> 11) / (double)(1ull << 53);
}

#endif
