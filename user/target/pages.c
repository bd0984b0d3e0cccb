/*
 * user/target/pages.c - which pages of a mapped file a process has made its own.
 *
 * Source: Documentation/admin-guide/mm/pagemap.rst: 8 bytes a page, bit 63 present, 62 swapped, 61
 * "file-page or shared-anon" (Linux 3.5 and newer). These bits need no capability beyond the right to
 * look at the process.
 */
#include <fcntl.h>

#include "base/sys/caps.h"
#include "base/limits.h"
#include "base/vec.h"
#include "target/target_priv.h"

#define PAGE_PRESENT (1ull << 63)
#define PAGE_SWAPPED (1ull << 62)
#define PAGE_FILE    (1ull << 61)

enum { ENTRIES = 4096 };

struct addrs {
	VEC(uint64_t) v;
};

static void addrsp(struct addrs *a)
{
	vec_fini(&a->v);
}

static bool is_own(uint64_t entry)
{
	return entry & (PAGE_PRESENT | PAGE_SWAPPED) && !(entry & PAGE_FILE);
}

/* Of @n pages from @addr on, whose entries are @at. */
static int add_own(struct addrs *out, const uint64_t *at, size_t n, uint64_t addr, uint64_t page,
		   struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t *slot;

		if (!is_own(at[i]))
			continue;
		slot = vec_add(&out->v, LIMIT_TEXT_PAGES);
		if (!slot)
			return err_set(e, -ENOMEM, "no memory for a list of pages");
		*slot = addr + i * page;
	}
	return 0;
}

/* The file is its owner's alone, and CAP_SYS_PTRACE does not open other people's files. */
static int pages_denied(pid_t pid, struct err *e)
{
	static const int others[] = { CAP_DAC_READ_SEARCH };
	const char *what = "see which of its pages it has written to";
	char refused[128];

	if (!caps_have(CAP_SYS_PTRACE) || caps_have(CAP_DAC_READ_SEARCH))
		return denied(pid, what, e);
	snprintf(refused, sizeof(refused), "pid %d: not allowed to %s", pid, what);
	return caps_refused(e, refused, others, ARRAY_LEN(others));
}

int target_own_pages_here(struct target *t, const struct mapping *m, uint64_t **pages, size_t *n,
			  struct err *e)
{
	CLEANUP(closep) int own = -1;
	int dir = target_dir(t, &own, e);
	CLEANUP(closep) int fd = dir < 0 ? -1 : openat(dir, "pagemap", O_RDONLY | O_CLOEXEC);
	CLEANUP(freep) uint64_t *buf = malloc(ENTRIES * sizeof(*buf));
	CLEANUP(addrsp) struct addrs out = { 0 };
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), addr = m->start;

	if (dir < 0)
		return dir;
	if (fd < 0 && (errno == EACCES || errno == EPERM))
		return pages_denied(t->pid, e);
	if (fd < 0)
		return err_sys(e, "pid %d: pagemap", t->pid);
	if (!buf)
		return err_set(e, -ENOMEM, "no memory for a list of pages");
	if ((m->end - m->start) / page > LIMIT_TEXT_PAGES)
		return err_set(e, -E2BIG, "pid %d: %s is mapped with more than %d pages", t->pid,
			       m->name, LIMIT_TEXT_PAGES);
	while (addr < m->end) {
		uint64_t left = (m->end - addr) / page;
		size_t want = left < ENTRIES ? (size_t)left : ENTRIES;
		ssize_t got = pread(fd, buf, want * sizeof(*buf), (off_t)(addr / page * 8));
		int ret;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < (ssize_t)sizeof(*buf))
			return err_set(e, -ESRCH, "pid %d exited or became another program",
				       t->pid);
		ret = add_own(&out, buf, (size_t)got / sizeof(*buf), addr, page, e);
		if (ret)
			return ret;
		addr += (uint64_t)got / sizeof(*buf) * page;
	}
	*n = out.v.n;
	*pages = TAKE(out.v.at);
	return 0;
}
