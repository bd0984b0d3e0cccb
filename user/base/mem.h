/*
 * user/base/mem.h - "read N bytes at address A".
 *
 * A live process, an ELF file's load addresses, a cache in front of either, and a test's
 * array all look the same to the code above. Addresses are those of the space itself
 * (uint64_t, never pointers).
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct mem_piece {
	uint64_t addr;
	void *buf;
	size_t n;
	bool ok; /* out: all of it was read */
};

struct mem {
	/*
	 * All @n bytes or nothing. 0; -EFAULT with an address in the message when any byte is
	 * not readable; -ESRCH when the process is gone.
	 */
	int (*read)(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e);
	/* Reads many pieces at once, as mem_readv() says. NULL: they are read one by one. */
	int (*readv)(struct mem *m, struct mem_piece *v, size_t n, struct err *e);
};

static inline int mem_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	if (addr + n < addr)
		return err_set(e, -EFAULT, "address 0x%llx + %zu wraps", (unsigned long long)addr,
			       n);
	return n ? m->read(m, addr, buf, n, e) : 0;
}

static inline int mem_u8(struct mem *m, uint64_t addr, uint8_t *v, struct err *e)
{
	return mem_read(m, addr, v, sizeof(*v), e);
}

static inline int mem_u32(struct mem *m, uint64_t addr, uint32_t *v, struct err *e)
{
	return mem_read(m, addr, v, sizeof(*v), e);
}

static inline int mem_u64(struct mem *m, uint64_t addr, uint64_t *v, struct err *e)
{
	return mem_read(m, addr, v, sizeof(*v), e);
}

/*
 * Each piece is read for itself: one that cannot be read is not ok, and does not stop the others.
 * -ESRCH, -EPERM: none of them can be read.
 */
int mem_readv(struct mem *m, struct mem_piece *v, size_t n, struct err *e);

/* A NUL-terminated string of at most @cap - 1 bytes; -E2BIG when it is longer. */
int mem_cstr(struct mem *m, uint64_t addr, char *buf, size_t cap, struct err *e);

/*
 * A cache of whole blocks in front of another mem, for bytes that do not change (text, pclntab, a
 * file). It holds at most @blocks of @block bytes, a power of two. A read near the end of what is
 * readable works even though the rest of its block is not there. A block takes no memory before it is read.
 */
struct memcache;
int memcache_new(struct mem *under, size_t block, size_t blocks, struct memcache **out,
		 struct err *e);
struct mem *memcache_mem(struct memcache *c); /* borrowed: valid until memcache_free */
void memcache_drop(struct memcache *c);	      /* forget all blocks */
/* Of the blocks that it holds. */
size_t memcache_bytes(const struct memcache *c);
/* Forgets all blocks, and gives their memory back until the next read. */
void memcache_shrink(struct memcache *c);
void memcache_free(struct memcache *c);
DEFINE_FREEP(struct memcache, memcache)

#endif
