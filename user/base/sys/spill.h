/*
 * user/base/sys/spill.h - large arrays that lie in files where they would take more memory than is wanted.
 *
 * Arrays lie in memory as long as all of them take no more than half of a bound. Further ones
 * are mapped from files without a name in TMPDIR. What the process has of them in memory is given back
 * each time that the process takes more than the bound: the pages stay in the kernel's cache, from which it
 * drops them when others need the memory. For the whole process, and for one thread.
 *
 * Where such a file cannot be made, or lies in memory itself (tmpfs), arrays stay in memory.
 */
#ifndef BASE_SYS_SPILL_H
#define BASE_SYS_SPILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "base/vec.h"

/* @bytes: the bound, of all that the process takes; 0: none, which is so at first. */
void spill_bound(uint64_t bytes);
/*
 * What is done where such a file fails while its array is used, since the disk broke, or is full though room was set
 * aside: it is called for a signal, and must end the process. NULL, which is so at first: SIGBUS does.
 */
void spill_on_loss(void (*lost)(void));
/* Bytes of the arrays that lie in files. */
uint64_t spill_in_files(void);
/* Why an array beyond the bound had to stay in memory, since spill_bound(); false: none had to. */
bool spill_refused(struct err *why);

/* Zeroed; NULL: there is no memory. */
void *spill_alloc(size_t n, size_t elem);
/* The same content with another length; what is new is not zeroed. NULL: @p stays as it is. */
void *spill_realloc(void *p, size_t n, size_t elem);
void spill_free(void *p);

static inline void spill_freep(void *p)
{
	spill_free(*(void **)p);
}

/* Keeps to the bound: loops call this as they go. */
void spill_rest(void);

/* The same in a loop's @i-th turn. */
static inline void spill_turn(uint64_t i)
{
	if (i % 1024 == 1023)
		spill_rest();
}

/* ---- a VEC() that is such an array ---- */

bool spill_reserve_(void **at, size_t n, size_t *cap, size_t elem, size_t max);

/* Address of one more, zeroed element, or NULL. */
#define spill_add(v, max)                                                                  \
	(((v)->n < (v)->cap ||                                                             \
	  spill_reserve_((void **)&(v)->at, (v)->n, &(v)->cap, sizeof(*(v)->at), (max))) ? \
		 memset(&(v)->at[(v)->n++], 0, sizeof(*(v)->at)) :                         \
		 NULL)

#define spill_fini(v)                  \
	do {                           \
		spill_free((v)->at);   \
		(v)->at = NULL;        \
		(v)->n = (v)->cap = 0; \
	} while (0)

#endif
