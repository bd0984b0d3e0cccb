/* tests/fuzz/fuzz_rtcontention.c - the bytes are the memory: flags, variables, then buckets. */
#include "go/layout/layout_check.h"
#include "go/runtime/rtcontention.h"

enum { BASE = 0x1000, HEAD = 16 };

struct image {
	struct mem mem; /* first */
	const uint8_t *bytes;
	size_t len;
};

static int image_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct image *i = (struct image *)m;

	if (addr < BASE || addr - BASE > i->len || n > i->len - (addr - BASE))
		return err_set(e, -EFAULT, "no memory at 0x%llx", (unsigned long long)addr);
	memcpy(buf, i->bytes + (addr - BASE), n);
	return 0;
}

/* A result that is handed out must be usable. */
static void use(const struct rtcontentions *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->at[i].stk + (size_t)b->at[i].nstk > b->npcs || !(b->at[i].count >= 0) ||
		    b->at[i].cycles < 0)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rtcontention_vars v = { .kind = BUCKET_BLOCK, .buckets = BASE, .rate = BASE + 8 };
	struct image i = { .mem.read = image_read, .bytes = data + 1, .len = size - 1 };
	struct golayout l = { 0 };
	struct rtcontentions out = { 0 };
	uint64_t heads[BUCKET_KINDS] = { [BUCKET_MEM] = BASE + 8 };
	struct err e;

	if (size < 1 + HEAD)
		return 0;
	v.kind = data[0] & 1 ? BUCKET_MUTEX : BUCKET_BLOCK;
	heads[v.kind] = v.buckets;
	v.minor = data[0] & 2 ? 16 : 22;
	l.off[LAYOUT_bucket_allnext] = 8;
	l.off[LAYOUT_bucket_typ] = 16;
	l.off[LAYOUT_bucket_hash] = 24;
	l.off[LAYOUT_bucket_size] = 32;
	l.off[LAYOUT_bucket_nstk] = 40;
	l.off[LAYOUT_bucket_sizeof] = 48;
	if (!rtcontentions_read(&i.mem, &l, &v, &out, &e)) {
		use(&out);
		rtcontentions_fini(&out);
	}
	layout_check_contention(&i.mem, &l, v.kind, heads, &e);
	return 0;
}
