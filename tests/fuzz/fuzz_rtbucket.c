/* tests/fuzz/fuzz_rtbucket.c - the bytes are the memory: flags, variables, then buckets. */
#include "go/runtime/rtbucket.h"

enum { BASE = 0x1000, HEAD = 24 };

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rtbucket_vars v = {
		.mbuckets = BASE, .memprofilerate = BASE + 8, .mprofcycle = BASE + 16, .minor = 22
	};
	struct image i = { .mem.read = image_read, .bytes = data + 1, .len = size - 1 };
	struct golayout l = { 0 };
	struct rtbuckets out = { 0 };
	struct err e;
	int32_t words;

	if (size < 1 + HEAD)
		return 0;
	words = data[0] & 1 ? 2 : 4;
	v.minor = data[0] & 2 ? 18 : 22;
	l.off[LAYOUT_bucket_allnext] = 8;
	l.off[LAYOUT_bucket_typ] = 16;
	l.off[LAYOUT_bucket_size] = 32;
	l.off[LAYOUT_bucket_nstk] = 40;
	l.off[LAYOUT_bucket_sizeof] = 48;
	l.off[LAYOUT_memcycle_sizeof] = words * 8;
	l.off[LAYOUT_memrecord_sizeof] = words * 32;
	if (!rtbuckets_read(&i.mem, &l, &v, &out, &e))
		rtbuckets_fini(&out);
	return 0;
}
