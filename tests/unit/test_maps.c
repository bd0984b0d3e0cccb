/* tests/unit/test_maps.c - the parsers of target/: maps, stat, status, against hostile text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/limits.h"
#include "target/target_priv.h"

static int parse(const char *text, struct maps *m, struct err *e)
{
	return maps_parse(text, strlen(text), m, e);
}

static const char usual[] =
	"00400000-00465000 r-xp 00001000 fe:01 1442 /srv/my app\n"
	"7f0000000000-7f0000021000 rw-p 00000000 00:00 0 \n"
	"7f0000100000-7f0000101000 r--s 00002000 103:fffff 18446744073709551615    /x (deleted)\n"
	"7ffd1c9e8000-7ffd1c9ea000 r-xp 00000000 00:00 0                          [vdso]\n"
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n";

static void reads_every_field(void **state)
{
	struct maps m = { 0 };
	struct err e = { "" };

	(void)state;
	assert_int_equal(parse(usual, &m, &e), 0);
	assert_int_equal(m.n, 5);
	assert_true(m.at[0].start == 0x400000 && m.at[0].end == 0x465000);
	assert_true(m.at[0].offset == 0x1000 && m.at[0].inode == 1442);
	assert_true(m.at[0].dev_major == 0xfe && m.at[0].dev_minor == 1);
	assert_true(m.at[0].read && !m.at[0].write && m.at[0].exec && !m.at[0].deleted);
	assert_string_equal(m.at[0].name, "/srv/my app");
	assert_string_equal(m.at[1].name, "");
	assert_true(m.at[2].deleted && m.at[2].inode == UINT64_MAX);
	assert_true(m.at[2].dev_major == 0x103 && m.at[2].dev_minor == 0xfffff);
	assert_string_equal(m.at[2].name, "/x");
	assert_string_equal(m.at[3].name, "[vdso]");
	assert_true(m.at[4].exec && !m.at[4].read);
	maps_fini(&m);
	maps_fini(&m);
}

static void finds_by_address(void **state)
{
	struct maps m = { 0 };

	(void)state;
	assert_int_equal(parse(usual, &m, NULL), 0);
	assert_null(maps_find(&m, 0));
	assert_null(maps_find(&m, 0x3fffff));
	assert_ptr_equal(maps_find(&m, 0x400000), &m.at[0]);
	assert_ptr_equal(maps_find(&m, 0x464fff), &m.at[0]);
	assert_null(maps_find(&m, 0x465000));
	assert_ptr_equal(maps_find(&m, 0xffffffffff600000), &m.at[4]);
	assert_null(maps_find(&m, UINT64_MAX));
	maps_fini(&m);
	assert_null(maps_find(&m, 0x400000));
}

static void keeps_hostile_names_apart(void **state)
{
	struct maps m = { 0 };
	char *text;

	(void)state;
	/* A newline in a name comes as \012 and ends no line; nothing else is an escape. */
	assert_int_equal(parse("1000-2000 r--p 0 0:0 1 /a\\0121000-2000 rwxp 0 0:0 0 /b\n"
			       "3000-4000 r--p 0 0:0 1 /c\\134\\012\n"
			       "5000-6000 r--p 0 0:0 1 /d\\01\n"
			       "7000-8000 r--p 0 0:0 1 (deleted)\n"
			       "9000-a000 r--p 0 0:0 1 /e (deleted) (deleted)\n",
			       &m, NULL),
			 0);
	assert_int_equal(m.n, 5);
	assert_string_equal(m.at[0].name, "/a\n1000-2000 rwxp 0 0:0 0 /b");
	assert_string_equal(m.at[1].name, "/c\\134\n");
	assert_string_equal(m.at[2].name, "/d\\01");
	assert_string_equal(m.at[3].name, "(deleted)");
	assert_false(m.at[3].deleted);
	assert_string_equal(m.at[4].name, "/e (deleted)");
	maps_fini(&m);

	text = malloc(1 << 20);
	assert_non_null(text);
	memset(text, 'x', 1 << 20);
	memcpy(text, "1000-2000 r--p 0 0:0 1 /", 24);
	text[(1 << 20) - 1] = '\n';
	assert_int_equal(maps_parse(text, 1 << 20, &m, NULL), 0);
	assert_int_equal(strlen(m.at[0].name), (1 << 20) - 24);
	maps_fini(&m);
	free(text);
}

static void refuses_every_truncation(void **state)
{
	(void)state;
	for (size_t n = 0; n < sizeof(usual) - 1; n++) {
		bool whole_lines = n == 0 || usual[n - 1] == '\n';
		struct maps m = { 0 };
		struct err e = { "" };
		/* an exact copy, so that the sanitizer sees a byte too far */
		char *exact = malloc(n ? n : 1);
		int ret;

		assert_non_null(exact);
		memcpy(exact, usual, n);
		ret = maps_parse(exact, n, &m, &e);
		assert_int_equal(ret, whole_lines ? 0 : -EBADMSG);
		if (ret)
			assert_non_null(strstr(e.msg, "maps+0x"));
		maps_fini(&m);
		free(exact);
	}
}

static void refuses_wrong_lines(void **state)
{
	static const char *const bad[] = {
		"\n",
		"-2000 r--p 0 0:0 1 /a\n",
		"1000 2000 r--p 0 0:0 1 /a\n",
		"1000-1000 r--p 0 0:0 1 /a\n",
		"2000-1000 r--p 0 0:0 1 /a\n",
		"+1000-2000 r--p 0 0:0 1 /a\n",
		"1000-2000 s--p 0 0:0 1 /a\n",
		"1000-2000 r--p  0:0 1 /a\n",
		"1000-2000 r--p 0 0-0 1 /a\n",
		"1000-2000 r--p 0 0:0 1/a\n",
		"1000-2000 r--p 0 0:0 -1 /a\n",
		"1000-2000 r--p 0 100000000:0 1 /a\n",
		"1000-10000000000000000 r--p 0 0:0 1 /a\n",
		"1000-2000 r--p 10000000000000000 0:0 1 /a\n",
		"1000-2000 r--p 0 0:0 18446744073709551616 /a\n",
		"1000-3000 r--p 0 0:0 1 /a\n2000-4000 r--p 0 0:0 1 /a\n",
		"3000-4000 r--p 0 0:0 1 /a\n1000-2000 r--p 0 0:0 1 /a\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct maps m = { 0 };
		struct err e = { "" };

		if (parse(bad[i], &m, &e) != -EBADMSG)
			fail_msg("not refused: %s", bad[i]);
		assert_true(e.msg[0] && !strchr(e.msg, '\n'));
		assert_null(m.at);
	}
	assert_int_equal(maps_parse("1000-2000\0 r--p 0 0:0 1 /a\n", 27, &(struct maps){ 0 }, NULL),
			 -EBADMSG);
}

static void bounds_lines(void **state)
{
	size_t cap = (size_t)(LIMIT_MAPS + 1) * 40, n = 0;
	char *text = malloc(cap);
	struct maps m = { 0 };
	struct err e = { "" };

	(void)state;
	assert_non_null(text);
	for (uint64_t i = 1; i <= LIMIT_MAPS; i++)
		n += (size_t)snprintf(text + n, cap - n, "%llx000-%llx001 r--p 0 0:0 0\n",
				      (unsigned long long)i, (unsigned long long)i);
	assert_int_equal(maps_parse(text, n, &m, &e), 0);
	assert_int_equal(m.n, LIMIT_MAPS);
	maps_fini(&m);
	n += (size_t)snprintf(text + n, cap - n, "f0000000-f0000001 r--p 0 0:0 0\n");
	assert_int_equal(maps_parse(text, n, &m, &e), -E2BIG);
	assert_int_equal(maps_parse(text, (size_t)LIMIT_MAPS_BYTES + 1, &m, &e), -E2BIG);
	free(text);
}

static const char stat_line[] =
	"4242 (a) R 1 (b) S) R 1 2 3 -1 -1 4194560 9 10 11 12 130 14 15 16 20 -5 18 19 "
	"2222 23 24 18446744073709551615 26 27 140721000000000 29 30\n";

static void stat_ends_the_name_at_the_last_paren(void **state)
{
	struct procstat st = { 0 };

	(void)state;
	/*
	 * The fields behind the name are numbers, so a name can hide text only before the last
	 * ')'.
	 */
	assert_int_equal(procstat_parse(stat_line, sizeof(stat_line) - 1, &st, NULL), 0);
	assert_int_equal(st.state, 'R');
	assert_true(st.flags == 4194560 && st.utime_ticks == 130 && st.stime_ticks == 14);
	assert_true(st.start_ticks == 2222 && st.start_code == 26 &&
		    st.start_stack == 140721000000000);
}

static void stat_refuses_every_truncation(void **state)
{
	size_t need = (size_t)(strstr(stat_line, "140721000000000 ") - stat_line) + 16;

	(void)state;
	for (size_t n = 0; n < sizeof(stat_line); n++) {
		struct procstat st = { 0 };
		struct err e = { "" };
		char *exact = malloc(n ? n : 1);
		int ret;

		assert_non_null(exact);
		memcpy(exact, stat_line, n);
		ret = procstat_parse(exact, n, &st, &e);
		/*
		 * Cut inside the name it may end at an earlier ')': but never with a number
		 * missing.
		 */
		assert_int_equal(ret, n < need ? -EBADMSG : 0);
		assert_true(!ret || e.msg[0]);
		free(exact);
	}
}

static void stat_refuses_wrong_lines(void **state)
{
	static const char *const bad[] = {
		"1 (a) R\n",
		"1 (a)R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 \n",
		"1 (a) R 1 2 3 4 5 -6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 \n",
		"1 (a) R 1 2 3 4 5 99999999999999999999 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21\n",
		"1 (a) R 1  2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 \n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (procstat_parse(bad[i], strlen(bad[i]), &(struct procstat){ 0 }, NULL) !=
		    -EBADMSG)
			fail_msg("not refused: %s", bad[i]);
}

static void status_finds_tgid(void **state)
{
	static const char good[] =
		"Name:\tTgid:\t9\\nTgid:\t8\nUmask:\t0022\nTgid:\t77\nPid:\t78\n";
	pid_t tgid = 0;

	(void)state;
	assert_int_equal(procstatus_tgid(good, sizeof(good) - 1, &tgid, NULL), 0);
	assert_int_equal(tgid, 77);
	assert_int_equal(procstatus_tgid("", 0, &tgid, NULL), -EBADMSG);
	assert_int_equal(procstatus_tgid("\nTgid:\t7", 8, &tgid, NULL), -EBADMSG);
	assert_int_equal(procstatus_tgid("\nTgid:\t-7\n", 10, &tgid, NULL), -EBADMSG);
	assert_int_equal(procstatus_tgid("\nTgid:\t9999999999\n", 18, &tgid, NULL), -EBADMSG);
	assert_int_equal(procstatus_tracer("\nTgid:\t7\nTracerPid:\t12\n", 23, &tgid, NULL), 0);
	assert_int_equal(tgid, 12);
	assert_int_equal(procstatus_tracer(good, sizeof(good) - 1, &tgid, NULL), -EBADMSG);
}

enum { PAGE = 4096, REGION = 64 /* pages */ };

/*
 * Parts of a region are mapped, unmapped and protected all the time, so regions split and merge.
 */
static void remap(void)
{
	char *at = mmap(NULL, REGION * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	srand(1);
	for (;;) {
		size_t i = (size_t)rand() % REGION, n = 1 + (size_t)rand() % (REGION - i);

		switch (rand() % 3) {
		case 0:
			munmap(at + i * PAGE, n * PAGE);
			break;
		case 1:
			mmap(at + i * PAGE, n * PAGE, PROT_NONE,
			     MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			break;
		default:
			mprotect(at + i * PAGE, n * PAGE, rand() % 2 ? PROT_READ : PROT_NONE);
		}
	}
}

/* What /proc reports of regions that change meanwhile may overlap. */
static void changes_while_it_is_read(void **state)
{
	struct target *t = NULL;
	struct err e = { "" };
	pid_t pid = fork();

	(void)state;
	if (!pid)
		remap();
	assert_true(pid > 0);
	if (target_open(pid, &t, &e))
		fail_msg("target_open: %s", e.msg);
	for (int i = 0; i < 20000; i++)
		if (target_maps(t, &e))
			fail_msg("%d: %s", i, e.msg);
	target_free(t);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_every_field),
		cmocka_unit_test(finds_by_address),
		cmocka_unit_test(keeps_hostile_names_apart),
		cmocka_unit_test(refuses_every_truncation),
		cmocka_unit_test(refuses_wrong_lines),
		cmocka_unit_test(bounds_lines),
		cmocka_unit_test(stat_ends_the_name_at_the_last_paren),
		cmocka_unit_test(stat_refuses_every_truncation),
		cmocka_unit_test(stat_refuses_wrong_lines),
		cmocka_unit_test(status_finds_tgid),
		cmocka_unit_test(changes_while_it_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
