/* user/target/host/samefile.c - two files, by the page of memory that both begin with. */
#include "target/host/samefile.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

/* Source: Documentation/admin-guide/mm/pagemap.rst. */
#define PAGE_PRESENT (1ull << 63)
#define PAGE_FRAME   ((1ull << 55) - 1)

/* The page is there afterwards, unless it cannot be: it is not touched, since a file may be cut at any time. */
static void *first_page(int fd, size_t page)
{
	return mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
}

/* 0: it is not there, or we may not know. */
static uint64_t frame(int pagemap, const void *at, size_t page)
{
	uint64_t word = 0;

	if (pread(pagemap, &word, sizeof(word), (off_t)((uintptr_t)at / page * sizeof(word))) !=
	    sizeof(word))
		return 0;
	return word & PAGE_PRESENT ? word & PAGE_FRAME : 0;
}

/* A page that is mapped is nobody else's, but the kernel may move it: so the first is asked again after the second. */
static bool one_frame(const void *a, const void *b, size_t page)
{
	CLEANUP(closep) int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t before, other;

	if (pagemap < 0)
		return false;
	before = frame(pagemap, a, page);
	other = frame(pagemap, b, page);
	return before && before == other && before == frame(pagemap, a, page);
}

bool same_page(int a, int b)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *first = first_page(a, page), *second = first_page(b, page);
	bool same = first != MAP_FAILED && second != MAP_FAILED && one_frame(first, second, page);

	if (first != MAP_FAILED)
		munmap(first, page);
	if (second != MAP_FAILED)
		munmap(second, page);
	return same;
}

static bool same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

/* A copy that an overlay makes of a file when it is changed has a ctime of its own, whatever an open descriptor maps. */
bool same_file(int a, int b)
{
	struct stat x, y;

	if (fstat(a, &x) || fstat(b, &y))
		return false;
	return x.st_size == y.st_size && same_time(x.st_mtim, y.st_mtim) &&
	       same_time(x.st_ctim, y.st_ctim) && same_page(a, b);
}
