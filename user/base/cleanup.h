/* user/base/cleanup.h - scope guards: CLEANUP(fn) on an owning local, TAKE(p) to hand it over. */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(fn) __attribute__((cleanup(fn)))

/* Hand ownership over: yields the pointer and forgets it here. */
#define TAKE(p)                             \
	({                                  \
		__typeof__(p) taken_ = (p); \
		(p) = NULL;                 \
		taken_;                     \
	})

/* Defines NAME_freep for CLEANUP from a NAME_free that takes a pointer. */
#define DEFINE_FREEP(type, name)                  \
	static inline void name##_freep(type **p) \
	{                                         \
		if (*p)                           \
			name##_free(*p);          \
	}

static inline void freep(void *p)
{
	free(*(void **)p);
}

static inline void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/* Yields the descriptor and forgets it here. */
#define TAKE_FD(fd)                \
	({                         \
		int taken_ = (fd); \
		(fd) = -1;         \
		taken_;            \
	})

static inline void fclosep(FILE **f)
{
	if (*f)
		fclose(*f);
}

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Aborts when we broke a promise of our own; bad input never leads here. */
#define BUG_ON(c)                                                                    \
	do {                                                                         \
		if (c) {                                                             \
			fprintf(stderr, "BUG: %s:%d: %s\n", __FILE__, __LINE__, #c); \
			abort();                                                     \
		}                                                                    \
	} while (0)

#endif
