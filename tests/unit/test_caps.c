/* tests/unit/test_caps.c - what is missing is named, in one sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/sys/caps.h"

/* What is refused: so many capabilities of @caps or, without any, a clock at this paranoia. */
static int refused(struct err *e, const int *caps, size_t n)
{
	return caps ? caps_refused(e, "x", caps, n) : caps_refused_clock(e, "x", (int)n);
}

/* In a child that has only @keep: the message when all of @caps are needed. */
static void told(uint64_t keep, const int *caps, size_t n, char out[256])
{
	int fds[2], status;
	pid_t pid;
	ssize_t got;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
		struct __user_cap_data_struct d[2] = {
			{ .effective = (uint32_t)keep, .permitted = (uint32_t)keep },
			{ .effective = keep >> 32, .permitted = keep >> 32 },
		};
		struct err e = { "" };

		if (syscall(SYS_capset, &h, d) || refused(&e, caps, n) != -EPERM)
			_exit(1);
		_exit(write(fds[1], e.msg, strlen(e.msg) + 1) < 0);
	}
	close(fds[1]);
	got = read(fds[0], out, 256);
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(got > 0);
}

static const int three[] = { CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE };

static void none_there(void **state)
{
	char said[256];

	(void)state;
	told(0, three, 3, said);
	assert_string_equal(said, "x: run as root, or with CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE "
				  "(missing: CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE)");
	told(0, three, 2, said);
	assert_string_equal(said, "x: run as root, or with CAP_BPF and CAP_PERFMON "
				  "(missing: CAP_BPF and CAP_PERFMON)");
	told(0, three, 1, said);
	assert_string_equal(said, "x: run as root, or with CAP_BPF");
}

static void some_there(void **state)
{
	char said[256];

	(void)state;
	if (!caps_have(CAP_BPF) || !caps_have(CAP_SYS_PTRACE) || !caps_have(CAP_SYS_ADMIN))
		skip();
	told(1ull << CAP_BPF, three, 3, said);
	assert_non_null(strstr(said, "(missing: CAP_PERFMON and CAP_SYS_PTRACE)"));
	told(1ull << CAP_SYS_PTRACE, three, 3, said);
	assert_non_null(strstr(said, "(missing: CAP_BPF and CAP_PERFMON)"));
	/* The capability that covered BPF and perf before they had their own. */
	told(1ull << CAP_SYS_ADMIN, three, 3, said);
	assert_non_null(strstr(said, "(missing: CAP_SYS_PTRACE)"));
}

static void all_there(void **state)
{
	char said[256];

	(void)state;
	if (!caps_have(CAP_SYS_PTRACE))
		skip();
	told(1ull << CAP_SYS_PTRACE, three + 2, 1, said);
	assert_null(strstr(said, "run as root"));
	assert_non_null(strstr(said, "CAP_SYS_PTRACE"));
}

/* Where CAP_PERFMON is not enough, on some kernels, that is said; where it is not there, only this. */
static void clock_of_the_paranoid(void **state)
{
	const uint64_t perfmon = 1ull << CAP_PERFMON, admin = 1ull << CAP_SYS_ADMIN;
	char said[256];

	(void)state;
	told(0, NULL, 3, said);
	assert_string_equal(said, "x: run as root, or with CAP_PERFMON");
	if (!caps_have(CAP_SYS_ADMIN))
		skip();
	told(perfmon, NULL, 4, said);
	assert_string_equal(
		said, "x: kernel.perf_event_paranoid is 4, where Debian's and Ubuntu's "
		      "kernels want CAP_SYS_ADMIN: run as root, or with that, or set it to 2");
	told(perfmon, NULL, 2, said);
	assert_null(strstr(said, "paranoid"));
	told(perfmon | admin, NULL, 4, said);
	assert_null(strstr(said, "paranoid"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(none_there),
		cmocka_unit_test(some_there),
		cmocka_unit_test(all_there),
		cmocka_unit_test(clock_of_the_paranoid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
