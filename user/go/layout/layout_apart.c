/* user/go/layout/layout_apart.c - the reader of struct offsets in a process of its own. */
#include <sys/mman.h>

#include "base/limits.h"
#include "go/image/elf/apart.h"
#include "go/layout/layout_priv.h"

enum { APART_MS = 3000 };

struct answer {
	uint32_t header_over;
	int32_t off[LAYOUT_COUNT];
};

static int work(void *arg, int out, struct err *e)
{
	struct answer a = { 0 };
	int rc = layout_dwarf_read(*(int *)arg, a.off, &a.header_over, e);

	if (rc < 0)
		return rc;
	return pwrite(out, &a, sizeof(a), 0) == (ssize_t)sizeof(a) ? 0 :
								     err_sys(e, "writing offsets");
}

int layout_dwarf_within(int fd, uint64_t most_bytes, int32_t off[LAYOUT_COUNT],
			uint32_t *header_over, struct err *e)
{
	CLEANUP(closep) int out = memfd_create("offsets", MFD_CLOEXEC);
	struct apart run = { "reading the DWARF", work, &fd, APART_MS, most_bytes };
	struct answer a;
	int rc;

	if (out < 0)
		return err_sys(e, "memory for the DWARF reader's answer");
	rc = apart_run(&run, out, e);
	if (rc < 0)
		return rc;
	if (pread(out, &a, sizeof(a), 0) != (ssize_t)sizeof(a))
		return err_set(e, -EBADMSG, "reading the DWARF gave no answer");
	memcpy(off, a.off, sizeof(a.off));
	*header_over = a.header_over;
	return 0;
}

int layout_dwarf_apart(int fd, int32_t off[LAYOUT_COUNT], uint32_t *header_over, struct err *e)
{
	return layout_dwarf_within(fd, (uint64_t)LIMIT_DWARF_IMAGE + LIMIT_DWARF_HEAP, off,
				   header_over, e);
}
