/* user/go/image/elf/scan.c - chunked reading with overlap. */
#include "go/image/elf/scan.h"

#include "base/limits.h"

enum { KEEP_MAX = 4096 };

int scan_init(struct scan *s, struct mem *m, uint64_t addr, uint64_t len, size_t keep,
	      struct err *e)
{
	*s = (struct scan){ .m = m, .next = addr, .left = len, .keep = keep, .at = addr };
	BUG_ON(keep > KEEP_MAX);
	if (addr + len < addr)
		return err_set(e, -EFAULT, "address 0x%llx + 0x%llx wraps",
			       (unsigned long long)addr, (unsigned long long)len);
	if (len > LIMIT_SCAN_BYTES)
		return err_set(e, -E2BIG, "%llu bytes at 0x%llx would have to be searched",
			       (unsigned long long)len, (unsigned long long)addr);
	s->own = malloc(SCAN_CHUNK + keep);
	if (!s->own)
		return err_set(e, -ENOMEM, "no memory for a scan buffer");
	s->buf = s->own;
	return 0;
}

void scan_fini(struct scan *s)
{
	free(s->own);
	*s = (struct scan){ 0 };
}

int scan_next(struct scan *s, struct err *e)
{
	size_t keep = s->n < s->keep ? s->n : s->keep;
	size_t step = s->left < SCAN_CHUNK ? (size_t)s->left : SCAN_CHUNK;
	int ret;

	if (!step)
		return 0;
	memmove(s->own, s->own + s->n - keep, keep);
	ret = mem_read(s->m, s->next, s->own + keep, step, e);
	if (ret)
		return ret;
	s->at = s->next - keep;
	s->n = keep + step;
	s->next += step;
	s->left -= step;
	return 1;
}
