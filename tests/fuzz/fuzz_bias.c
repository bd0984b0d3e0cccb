/*
 * tests/fuzz/fuzz_bias.c - the first 24 bytes place one mapping (start, length and offset in
 * pages), the rest is the executable that is mapped there.
 */
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "mkgobin.h"
#include "target/target_priv.h"

enum { PLACE = 24, PAGE = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t place[3], bias = 1;
	struct err e = { "" };
	struct mapping m = { .exec = true, .name = "/fuzz" };
	struct maps all = { .at = &m, .n = 1 };
	struct stat st;
	int ret;

	if (size < PLACE)
		return 0;
	memcpy(place, data, PLACE);
	m.start = place[0] << 12;
	m.offset = place[2] << 12;
	if (__builtin_add_overflow(m.start, (place[1] & 0xfffff) * PAGE + PAGE, &m.end))
		return 0;
	int fd CLEANUP(closep) = mkgobin_fd(data + PLACE, size - PLACE);

	BUG_ON(fstat(fd, &st));
	m.inode = st.st_ino;
	m.dev_major = major(st.st_dev);
	m.dev_minor = minor(st.st_dev);
	ret = bias_find(fd, m.name, &all, &bias, &e);
	BUG_ON(ret ? ret > 0 || !e.msg[0] : bias % PAGE != 0);
	return 0;
}
