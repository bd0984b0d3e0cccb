/*
 * user/base/vec.h - a growing array: struct { T *at; size_t n, cap; }.
 *
 * VEC(T) declares one inside a struct; vec_grow() makes room for one more and yields its
 * address or NULL when memory or the bound @max is exhausted. Sizes cannot overflow.
 */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define VEC(type)              \
	struct {               \
		type *at;      \
		size_t n, cap; \
	}

static inline bool vec_reserve_(void **at, size_t n, size_t *cap, size_t elem, size_t max)
{
	size_t want, bytes;
	void *p;

	if (n < *cap)
		return true;
	if (n >= max)
		return false;
	want = *cap ? *cap * 2 : 16;
	if (want > max)
		want = max;
	if (__builtin_mul_overflow(want, elem, &bytes))
		return false;
	p = realloc(*at, bytes);
	if (!p)
		return false;
	*at = p;
	*cap = want;
	return true;
}

/* Address of one more, zeroed element, or NULL. */
#define vec_add(v, max)                                                                \
	(vec_reserve_((void **)&(v)->at, (v)->n, &(v)->cap, sizeof(*(v)->at), (max)) ? \
		 memset(&(v)->at[(v)->n++], 0, sizeof(*(v)->at)) :                     \
		 NULL)

#define vec_fini(v)                    \
	do {                           \
		free((v)->at);         \
		(v)->at = NULL;        \
		(v)->n = (v)->cap = 0; \
	} while (0)

#endif
