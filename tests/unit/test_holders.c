/* tests/unit/test_holders.c - who holds locks, in trees that look like /proc, and in lying ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <ftw.h>
#include <linux/capability.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/limits.h"
#include "target/write/holders.h"

#define START 4611686020574871552ull /* 1 << 62 | 1 << 31 */
#define LOCK \
	"lock:\t1: OFDLCK ADVISORY  READ -1 00:05:4711 4611686020574871552 4611686020575395839\n"
#define FDINFO "pos:\t0\nflags:\t02000002\nmnt_id:\t4\nino:\t4711\n"

enum { INO = 4711, OUR_NS = 77, SELF = 500, LENGTH = 524288 };

static char root[64];

/* ---- a tree ---- */

static void put(const char *text, size_t len, const char *name)
{
	char path[256], *slash;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (slash = path + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL;
	     *slash++ = '/') {
		*slash = 0;
		mkdir(path, 0700);
	}
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(text, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static void process(unsigned pid, unsigned real, unsigned uid, uint64_t caps, unsigned ns)
{
	char text[256], name[64], path[128];
	int n = snprintf(
		text, sizeof(text),
		"Name:\tx\\nUid:\t0\t0\nPid:\t%u\nUid:\t%u\t%u\t%u\t%u\nCapEff:\t%016llx\nX:\t1\n",
		pid, real, uid, uid, uid, (unsigned long long)caps);

	snprintf(name, sizeof(name), "%u/status", pid);
	put(text, (size_t)n, name);
	snprintf(name, sizeof(name), "%u/fdinfo/0", pid);
	put(FDINFO, strlen(FDINFO), name);
	snprintf(name, sizeof(name), "%u/ns/x", pid);
	put("", 0, name);
	snprintf(path, sizeof(path), "%s/%u/ns/user", root, pid);
	snprintf(text, sizeof(text), "user:[%u]", ns);
	assert_int_equal(symlink(text, path), 0);
}

static void locks(const char *text, const char *name)
{
	put(text, strlen(text), name);
}

static int remove_it(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	(void)st;
	(void)flag;
	(void)f;
	return remove(path);
}

static int set_up(void **state)
{
	char self[128];

	(void)state;
	snprintf(root, sizeof(root), "/tmp/test_holders.XXXXXX");
	if (!mkdtemp(root))
		return -1;
	snprintf(self, sizeof(self), "%s/self", root);
	if (symlink("500", self))
		return -1;
	process(SELF, 0, 0, UINT64_MAX, OUR_NS);
	process(1, 0, 0, UINT64_MAX, OUR_NS);
	locks("", "uptime");
	locks(LOCK, "1x/fdinfo/3"); /* not a process */
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return nftw(root, remove_it, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- what is found ---- */

struct result {
	unsigned able, strangers, other_range;
	bool whole;
};

static void found(void *arg, const struct held *h)
{
	struct result *r = arg;

	r->able += h->able;
	r->strangers += !h->able;
	r->other_range += h->start != START || h->len != LENGTH;
}

static bool stop_now(void)
{
	return true;
}

static struct holders_ask question(void)
{
	return (struct holders_ask){ .ino = INO,
				     .but_fd = 9,
				     .target = { .real_uid = 1000, .uid = 1000, .userns = 88 },
				     .our_userns = OUR_NS,
				     .end_ns = UINT64_MAX };
}

static struct result ask(struct holders_ask q)
{
	struct result r = { 0 };

	q.proc = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(q.proc >= 0);
	q.found = found;
	q.arg = &r;
	r.whole = holders_find(&q);
	close(q.proc);
	return r;
}

static void is(struct result r, unsigned able, unsigned strangers, bool whole)
{
	if (r.able != able || r.strangers != strangers || r.whole != whole || r.other_range)
		fail_msg("%u able, %u strangers, %u of another range, whole %d", r.able,
			 r.strangers, r.other_range, r.whole);
}

static void whose_locks(void **state)
{
	struct holders_ask q = question();

	(void)state;
	is(ask(q), 0, 0, true);
	process(20, 65534, 65534, 0, OUR_NS);
	locks(FDINFO LOCK, "20/fdinfo/3");
	is(ask(q), 0, 1, true);
	process(21, 1000, 1000, 0, OUR_NS);
	locks(FDINFO LOCK, "21/fdinfo/9");
	is(ask(q), 1, 1, true);
	locks(FDINFO LOCK LOCK, "500/fdinfo/8");
	locks(FDINFO LOCK, "500/fdinfo/9"); /* what the one who asks holds itself */
	is(ask(q), 3, 1, true);
	q.able_only = true;
	is(ask(q), 3, 0, true);
	q.ino++;
	is(ask(q), 0, 0, true);
}

static void whose_rights_suffice(void **state)
{
	static const uint64_t ptrace = 1ull << CAP_SYS_PTRACE;
	static const struct {
		struct rights of;
		bool suffice;
	} cases[] = {
		{ { 1000, 1000, 0, OUR_NS }, true },	 { { 1001, 1001, ptrace, OUR_NS }, true },
		{ { 0, 0, ptrace, 88 }, true },		 { { 1001, 1001, ~ptrace, OUR_NS }, false },
		{ { 1001, 1001, ptrace, 99 }, false },	 { { 1001, 1001, ptrace, 0 }, true },
		{ { 65534, 0, ptrace, OUR_NS }, false }, { { 0, 1000, ptrace, OUR_NS }, false },
		{ { 0, 0, 0, OUR_NS }, false },
	};
	struct rights target = { .real_uid = 1000, .uid = 1000, .userns = 88 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (rights_suffice(&cases[i].of, &target, OUR_NS) != cases[i].suffice)
			fail_msg("case %zu", i);
}

/* What cannot be read may hold a lock: then the look was not whole. */
static void what_cannot_be_read(void **state)
{
	char path[128], *much = calloc(1, 4 * LIMIT_FDINFO);

	(void)state;
	snprintf(path, sizeof(path), "%s/30", root);
	assert_int_equal(mkdir(path, 0700), 0); /* it has ended just now */
	is(ask(question()), 0, 0, true);
	process(31, 1000, 1000, 0, OUR_NS);
	snprintf(path, sizeof(path), "%s/31/fdinfo/3", root);
	assert_int_equal(mkdir(path, 0700), 0); /* reading fails */
	is(ask(question()), 0, 0, false);
	assert_int_equal(rmdir(path), 0);
	is(ask(question()), 0, 0, true);
	put(much, 4 * LIMIT_FDINFO, "31/fdinfo/4");
	is(ask(question()), 0, 0, false);
	locks("", "31/fdinfo/4");
	locks("Name:\tx\n", "31/status");
	is(ask(question()), 0, 0, false);
	free(much);
}

/*
 * Processes and descriptors end while they are looked at. None of them holds anything, and a machine
 * where many do so is still seen whole.
 */
static void what_ends_meanwhile(void **state)
{
	char path[128], away[128];

	(void)state;
	process(32, 1000, 1000, 0, OUR_NS);
	snprintf(path, sizeof(path), "%s/32/fdinfo/3", root);
	assert_int_equal(symlink("gone", path), 0);
	is(ask(question()), 0, 0, true);
	snprintf(path, sizeof(path), "%s/32/fdinfo", root);
	snprintf(away, sizeof(away), "%s/32/away", root);
	assert_int_equal(rename(path, away), 0);
	is(ask(question()), 0, 0, true);
	snprintf(path, sizeof(path), "%s/32/status", root);
	assert_int_equal(unlink(path), 0);
	is(ask(question()), 0, 0, true);
}

/* A security module refuses the descriptors of process 40 to everybody. */
static bool refuses;

int openat(int at, const char *name, int flags, ...)
{
	char link[64], dir[128] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", at);
	if (refuses && !strcmp(name, "fdinfo") && readlink(link, dir, sizeof(dir) - 1) > 3 &&
	    !strcmp(dir + strlen(dir) - 3, "/40")) {
		errno = EACCES;
		return -1;
	}
	return (int)syscall(SYS_openat, at, name, flags, 0);
}

static void who_may_not_be_looked_at(void **state)
{
	struct holders_ask q = question();

	(void)state;
	process(40, 0, 0, UINT64_MAX, OUR_NS);
	locks(FDINFO LOCK, "40/fdinfo/3");
	locks("supervisor\n", "40/comm");
	is(ask(q), 1, 0, true);
	refuses = true;
	is(ask(q), 0, 0, false);
	q.comm = "goprof-guardian";
	is(ask(q), 0, 0, true);
	locks("goprof-guardian\n", "40/comm");
	is(ask(q), 0, 0, false);
	locks("goprof-guardia\n", "40/comm");
	is(ask(q), 0, 0, true);
	refuses = false;
	is(ask(q), 1, 0, true);
}

/* An epoll descriptor that watches a thousand others. */
static void long_text_of_another_file(void **state)
{
	static const char other[] = "pos:\t0\nflags:\t02\nmnt_id:\t4\nino:\t1055\ntfd: 5";
	char *much = calloc(1, 4 * LIMIT_FDINFO);

	(void)state;
	memcpy(much, other, sizeof(other));
	process(31, 1000, 1000, 0, OUR_NS);
	put(much, 4 * LIMIT_FDINFO, "31/fdinfo/4");
	is(ask(question()), 0, 0, true);
	memcpy(much, FDINFO, strlen(FDINFO));
	put(much, 4 * LIMIT_FDINFO, "31/fdinfo/4");
	is(ask(question()), 0, 0, false);
	free(much);
}

static void bounds(void **state)
{
	struct holders_ask q = question();

	(void)state;
	locks(FDINFO LOCK, "1/fdinfo/3");
	q.end_ns = 1;
	is(ask(q), 0, 0, false);
	q = question();
	q.stop = stop_now;
	is(ask(q), 0, 0, false);
}

static void a_proc_of_others(void **state)
{
	char self[128];

	(void)state;
	snprintf(self, sizeof(self), "%s/self", root);
	assert_int_equal(unlink(self), 0);
	is(ask(question()), 0, 0, false);
}

/* ---- text ---- */

static bool parse(const char *line, struct held *h)
{
	uint64_t ino;

	return held_parse(line, strlen(line), &ino, h) && ino == INO;
}

static void lines(void **state)
{
	static const char *const bad[] = {
		"",
		"lock:",
		"pos:\t0",
		"lock:\t1: OFDLCK ADVISORY  WRITE -1 00:05:4711 5 11",
		"lock:\t1: POSIX  ADVISORY  READ 17 00:05:4711 5 11",
		"lock:\t1: OFDLCK ADVISORY  READ -1 00:05:4711 5",
		"lock:\t1: OFDLCK ADVISORY  READ -1 00:05:4711 5 ",
		"lock:\t1: OFDLCK ADVISORY  READ -1 00:05:4711 5 11 ",
		"lock:\t1: OFDLCK ADVISORY  READ -1 00:05:4711 5 EOFF",
		"lock:\t1: OFDLCK ADVISORY  READ -1 00:05:4711 5 4",
		"lock:\t1: OFDLCK ADVISORY  READ -1 00:05:4711 0 18446744073709551615",
		"lock:\t1: OFDLCK ADVISORY  READ -1 00:05:4711 0 99999999999999999999",
		"lock:\t1: OFDLCK ADVISORY  READ -1 00:05:99999999999999999999 5 11",
		"lock:\t1: OFDLCK *NOINODE* READ -1 00:05:4711 5 11",
	};
	struct held h;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		if (parse(bad[i], &h))
			fail_msg("%s", bad[i]);
	assert_true(parse("lock:\t1: OFDLCK ADVISORY  READ -1 00:05:4711 5 11", &h));
	assert_true(h.start == 5 && h.len == 7);
	assert_true(parse("lock:\t12: OFDLCK ADVISORY  READ  -1 fe:00:4711 0 EOF", &h));
	assert_true(h.start == 0 && h.len == 0);
	assert_true(
		parse("lock:\t1: OFDLCK ADVISORY  READ -1 00:05:4711 0 9223372036854775807", &h));
	assert_true(h.len == 1ull << 63);
}

static void status(void **state)
{
	static const char text[] = "Name:\tx\nUid:\t1\t2\t3\t4\nCapEff:\t000001ffffffffff\n";
	struct rights r;
	struct err e = { "" };

	(void)state;
	assert_int_equal(rights_parse(text, sizeof(text) - 1, &r, &e), 0);
	assert_true(r.real_uid == 1 && r.uid == 2 && r.caps == 0x1ffffffffff && !r.userns);
	for (size_t n = 0; n < sizeof(text) - 1; n++)
		assert_int_equal(rights_parse(text, n, &r, &e), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(whose_locks, set_up, tear_down),
		cmocka_unit_test(whose_rights_suffice),
		cmocka_unit_test_setup_teardown(what_cannot_be_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_ends_meanwhile, set_up, tear_down),
		cmocka_unit_test_setup_teardown(who_may_not_be_looked_at, set_up, tear_down),
		cmocka_unit_test_setup_teardown(long_text_of_another_file, set_up, tear_down),
		cmocka_unit_test_setup_teardown(bounds, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_proc_of_others, set_up, tear_down),
		cmocka_unit_test(lines),
		cmocka_unit_test(status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
