/* tests/unit/test_gobin_shared.c - a file that processes share may be made so that looking into it never ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <elf.h>
#include <time.h>
#include <unistd.h>

#include "go/image/elf/elfimg.h"
#include "base/clock.h"
#include "base/limits.h"
#include "go/image/gobin.h"
#include "mkgobin.h"

/* The time is ours. */
static uint64_t clock_now = 1000 * NS_PER_S;

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	ts->tv_sec = (time_t)(clock_now / NS_PER_S);
	ts->tv_nsec = (long)(clock_now % NS_PER_S);
	return 0;
}

static struct mkgobin g;

static struct gobin *opened(int (*open)(int fd, const char *path, struct mem *live, uint64_t bias,
					struct gobin **out, struct err *e),
			    int *fd)
{
	struct mkopt o = { .minor = 27 };
	struct gobin *b = NULL;

	mkgobin(&g, &o);
	*fd = mkgobin_fd(g.b, g.n);
	assert_int_equal(ftruncate(*fd, 2 * ELFIMG_BLOCK), 0); /* only whole blocks are cached */
	assert_int_equal(open(*fd, "hand.elf", NULL, 0, &b, NULL), 0);
	return b;
}

/* So many questions are answered, up to @most; then the file is as good as unreadable. */
static unsigned answers(struct gobin *b, unsigned most)
{
	struct goframe f[16];
	struct err e = { "" };
	unsigned n = 0;
	int ret = 1;

	while (n < most && (ret = gobin_frames(b, gobin_info(b)->text, f, 16, &e)) > 0)
		n++;
	if (ret <= 0) {
		assert_int_equal(ret, -E2BIG);
		assert_non_null(strstr(e.msg, "looking into it takes more than"));
	}
	return n;
}

enum { ALL = 10000000 };

static void questions_end(void **state)
{
	unsigned first, each, later;
	int fd;
	CLEANUP(gobin_freep) struct gobin *b = opened(gobin_open_shared, &fd);

	(void)state;
	first = answers(b, ALL);
	assert_in_range(first, LIMIT_FILE_WORK / 100000, ALL - 1);
	assert_int_equal(answers(b, ALL), 0);
	gobin_one_more(b);
	each = answers(b, ALL);
	assert_in_range(each, first / 10, first / 4);
	clock_now += NS_PER_S; /* a day of it costs no more than a share of that day */
	later = answers(b, ALL);
	assert_in_range(later, first / 60, first / 15);
	close(fd);
}

/* So many reads of @n bytes are answered. */
static unsigned reads(size_t n)
{
	int fd;
	CLEANUP(gobin_freep) struct gobin *b = opened(gobin_open_shared, &fd);
	uint64_t at = gobin_info(b)->text;
	uint8_t buf[256];
	unsigned got = 0;

	while (got < ALL && !mem_read(gobin_mem(b), at, buf, n, NULL))
		got++;
	close(fd);
	return got;
}

/* A table of pc-values that has no end is read by its bytes, and each is decoded. */
static void bytes_are_counted_as_what_decodes_them(void **state)
{
	(void)state;
	/* a byte, and what reading it takes, is from 1 to 4 ns */
	assert_in_range(reads(256), LIMIT_FILE_WORK / 1024, LIMIT_FILE_WORK / 256);
}

/* What somebody asks of one file is his own affair. */
static void a_file_of_ones_own_has_no_bound(void **state)
{
	int fd;
	CLEANUP(gobin_freep) struct gobin *b = opened(gobin_open, &fd);

	(void)state;
	assert_int_equal(answers(b, ALL / 8), ALL / 8);
	close(fd);
}

/* Sections that say nothing, but each takes memory as long as the file is known. */
static void headers_end(void **state)
{
	enum { SECTIONS = 60000 };
	static uint8_t file[MK_BYTES + SECTIONS * sizeof(Elf64_Shdr)];
	struct mkopt o = { .minor = 27 };
	CLEANUP(gobin_freep) struct gobin *own = NULL;
	struct gobin *b = NULL;
	struct err e = { "" };
	Elf64_Ehdr h;
	int fd;

	(void)state;
	mkgobin(&g, &o);
	memcpy(file, g.b, g.n);
	memcpy(&h, file, sizeof(h));
	h.e_shoff = MK_BYTES;
	h.e_shnum = SECTIONS;
	h.e_shentsize = sizeof(Elf64_Shdr);
	h.e_shstrndx = SHN_UNDEF;
	memcpy(file, &h, sizeof(h));
	fd = mkgobin_fd(file, sizeof(file));
	assert_int_equal(gobin_open_shared(fd, "hand.elf", NULL, 0, &b, &e), -E2BIG);
	assert_non_null(strstr(e.msg, "headers take more than 2 MiB"));
	assert_int_equal(gobin_open(fd, "hand.elf", NULL, 0, &own, NULL), 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(questions_end),
		cmocka_unit_test(bytes_are_counted_as_what_decodes_them),
		cmocka_unit_test(a_file_of_ones_own_has_no_bound),
		cmocka_unit_test(headers_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
