/* user/base/mem.c - string reads, and the direct-mapped block cache. */
#include "base/mem.h"

#include <stdbool.h>
#include <sys/mman.h>

struct block {
	uint64_t addr; /* of its first byte; a multiple of memcache.block */
	bool valid;
};

struct memcache {
	struct mem mem; /* first: mem_of() casts back */
	struct mem *under;
	size_t block, nblocks;
	struct block *blocks;
	/* nblocks * block, mapped: what is given back is given back to the system, and malloc would keep it; NULL after it was shrunk */
	uint8_t *data;
};

int mem_readv(struct mem *m, struct mem_piece *v, size_t n, struct err *e)
{
	if (m->readv)
		return m->readv(m, v, n, e);
	for (size_t i = 0; i < n; i++) {
		int ret = mem_read(m, v[i].addr, v[i].buf, v[i].n, e);

		v[i].ok = !ret;
		if (ret == -ESRCH || ret == -EPERM)
			return ret;
	}
	return 0;
}

int mem_cstr(struct mem *m, uint64_t addr, char *buf, size_t cap, struct err *e)
{
	size_t have = 0;

	while (have < cap) {
		/*
		 * A step never crosses a page for a few bytes, because the next page may not be
		 * there.
		 */
		size_t step = 4096 - (addr + have) % 4096;
		const char *nul;
		int ret;

		if (step > 64)
			step = 64;
		if (step > cap - have)
			step = cap - have;
		ret = mem_read(m, addr + have, buf + have, step, e);
		if (ret)
			return ret;
		nul = memchr(buf + have, 0, step);
		if (nul)
			return 0;
		have += step;
	}
	return err_set(e, -E2BIG, "string at 0x%llx is longer than %zu bytes",
		       (unsigned long long)addr, cap - 1);
}

static uint8_t *room_for(const struct memcache *c)
{
	void *p = mmap(NULL, c->nblocks * c->block, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* The cached block that holds @addr, filled if need be; NULL when it is not readable whole. */
static const uint8_t *block_get(struct memcache *c, uint64_t addr)
{
	uint64_t base = addr & ~(uint64_t)(c->block - 1);
	size_t i = (size_t)(base / c->block) % c->nblocks;
	uint8_t *data;

	if (!c->data)
		c->data = room_for(c);
	if (!c->data)
		return NULL;
	data = c->data + i * c->block;
	if (c->blocks[i].valid && c->blocks[i].addr == base)
		return data;
	c->blocks[i].valid = false;
	if (mem_read(c->under, base, data, c->block, NULL))
		return NULL;
	c->blocks[i] = (struct block){ .addr = base, .valid = true };
	return data;
}

static int memcache_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct memcache *c = (struct memcache *)m;
	uint8_t *out = buf;

	while (n) {
		size_t off = (size_t)(addr & (c->block - 1));
		size_t step = c->block - off;
		const uint8_t *data = block_get(c, addr);
		int ret;

		if (step > n)
			step = n;
		if (data) {
			memcpy(out, data + off, step);
		} else {
			ret = mem_read(c->under, addr, out, step, e);
			if (ret)
				return ret;
		}
		addr += step;
		out += step;
		n -= step;
	}
	return 0;
}

int memcache_new(struct mem *under, size_t block, size_t blocks, struct memcache **out,
		 struct err *e)
{
	CLEANUP(memcache_freep) struct memcache *c = calloc(1, sizeof(*c));

	if (!c)
		return err_set(e, -ENOMEM, "no memory for a cache");
	c->mem.read = memcache_read;
	BUG_ON(!block || block & (block - 1));
	c->under = under;
	c->block = block;
	c->nblocks = blocks ? blocks : 1;
	c->blocks = calloc(c->nblocks, sizeof(*c->blocks));
	if (!c->blocks)
		return err_set(e, -ENOMEM, "no memory for a cache of %zu blocks", blocks);
	*out = TAKE(c);
	return 0;
}

struct mem *memcache_mem(struct memcache *c)
{
	return &c->mem;
}

void memcache_drop(struct memcache *c)
{
	memset(c->blocks, 0, c->nblocks * sizeof(*c->blocks));
}

size_t memcache_bytes(const struct memcache *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->nblocks; i++)
		n += c->blocks[i].valid;
	return n * c->block;
}

void memcache_shrink(struct memcache *c)
{
	memcache_drop(c);
	if (c->data)
		munmap(c->data, c->nblocks * c->block);
	c->data = NULL;
}

void memcache_free(struct memcache *c)
{
	if (!c)
		return;
	if (c->blocks)
		memcache_shrink(c);
	free(c->blocks);
	free(c);
}
