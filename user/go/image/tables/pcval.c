/* user/go/image/tables/pcval.c - the pc-value run decoder. */
#include "go/image/tables/pcval.h"

#include "base/limits.h"

enum {
	PCVAL_CHUNK = 256, /* most tables are shorter */
	PCVAL_PAIR = 10,   /* bytes of the longest pair: two 32-bit varints */
};

int pcval_step(struct pcval *t, uint64_t *start, struct err *e)
{
	uint32_t zz, dpc;

	if (t->steps >= LIMIT_PCVALUE_STEPS)
		return err_set(e, -E2BIG, "%s: more than %d runs", t->c.name, LIMIT_PCVALUE_STEPS);
	if (!cur_uvarint32(&t->c, "value delta", &zz))
		return cur_fail(&t->c, e);
	if (zz == 0 && t->steps)
		return 0;
	if (!cur_uvarint32(&t->c, "pc delta", &dpc))
		return cur_fail(&t->c, e);
	if ((uint64_t)dpc * t->quantum > t->end - t->pc)
		return err_set(e, -EBADMSG, "%s+0x%zx: pc delta %u leaves the function", t->c.name,
			       t->c.off, dpc);
	t->steps++;
	*start = t->pc;
	t->pc += (uint64_t)dpc * t->quantum;
	/* Wraps on purpose, as the runtime's int32 does. */
	t->val = (int32_t)((uint32_t)t->val + ((zz >> 1) ^ -(zz & 1)));
	return 1;
}

/*
 * Refills the window over the table: the bytes from @addr on. The window moves along as they are
 * used up.
 */
static int refill(struct pcval *t, struct mem *m, uint64_t *addr, uint64_t limit, uint8_t *buf,
		  struct err *e)
{
	uint64_t left;
	size_t n;
	int ret;

	if (cur_left(&t->c) >= PCVAL_PAIR || *addr + t->c.len >= limit)
		return 0;
	*addr += t->c.off;
	left = limit - *addr;
	n = left < PCVAL_CHUNK ? (size_t)left : PCVAL_CHUNK;
	ret = mem_read(m, *addr, buf, n, e);
	t->c = cur_of("pc-value table", buf, ret ? 0 : n);
	return ret;
}

int pcval_at(struct mem *m, uint64_t addr, uint64_t limit, uint64_t entry, uint64_t end,
	     uint32_t quantum, uint64_t pc, int32_t *val, struct err *e)
{
	uint8_t buf[PCVAL_CHUNK];
	struct pcval t = { .pc = entry, .end = end, .quantum = quantum, .val = -1 };
	uint64_t start, first = addr;
	int ret;

	t.c = cur_of("pc-value table", buf, 0);
	if (addr >= limit)
		return err_set(e, -EBADMSG, "pc-value table at 0x%llx is beyond pctab's end 0x%llx",
			       (unsigned long long)addr, (unsigned long long)limit);
	do {
		ret = refill(&t, m, &addr, limit, buf, e);
		if (!ret)
			ret = pcval_step(&t, &start, e);
		if (ret < 0)
			return err_wrap(e, ret, "table at 0x%llx", (unsigned long long)first);
	} while (ret && t.pc <= pc);
	if (ret)
		*val = t.val;
	return ret;
}
