/*
 * tests/unit/test_poke.c - one word of a child of this test, and words that must not be written.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "target/write/poke.h"

static volatile uint64_t word __attribute__((aligned(8)));

/* A child that waits; at SIGUSR1 its exit status says what the word is. */
static void on_usr1(int sig)
{
	(void)sig;
	_exit((int)word);
}

static pid_t child(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGUSR1, on_usr1);
		for (;;)
			pause();
	}
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static struct target *open_target(pid_t pid)
{
	struct target *t;
	struct err e = { "" };

	if (target_open(pid, &t, &e))
		fail_msg("%s", e.msg);
	return t;
}

static struct poke *open_poke(struct target *t)
{
	struct poke *p;
	struct err e = { "" };

	if (poke_open(t, (uint64_t)(uintptr_t)&word, &p, &e))
		fail_msg("%s", e.msg);
	return p;
}

static void writes_and_reads_back(void **state)
{
	pid_t pid = child();
	struct target *t = open_target(pid);
	struct poke *p = open_poke(t);
	struct err e = { "" };
	uint64_t v = 99;
	int status;

	(void)state;
	assert_int_equal(poke_get(p, &v, &e), 0);
	assert_int_equal(v, 0);
	assert_int_equal(poke_put(p, 0, 42, &e), 0);
	assert_int_equal(poke_get(p, &v, &e), 0);
	assert_int_equal(v, 42);
	assert_int_equal(word, 0); /* the child's, not ours */
	usleep(50000);		   /* its handler is set */
	kill(pid, SIGUSR1);
	waitpid(pid, &status, 0);
	assert_int_equal(WEXITSTATUS(status), 42);
	poke_free(p);
	target_free(t);
}

static void leaves_another_value_alone(void **state)
{
	pid_t pid = child();
	struct target *t = open_target(pid);
	struct poke *p = open_poke(t);
	struct err e = { "" };
	uint64_t v;

	(void)state;
	assert_int_equal(poke_put(p, 0, 5, &e), 0);
	assert_int_equal(poke_put(p, 4, 0, &e), -EAGAIN);
	assert_non_null(strstr(e.msg, "is 5, not 4"));
	assert_int_equal(poke_get(p, &v, &e), 0);
	assert_int_equal(v, 5);
	poke_free(p);
	target_free(t);
	end(pid);
}

static void expect_refused(struct target *t, uint64_t addr, const char *why)
{
	struct poke *p = (struct poke *)&word;
	struct err e = { "" };

	assert_int_equal(poke_open(t, addr, &p, &e), -EBADMSG);
	assert_ptr_equal(p, &word);
	if (!strstr(e.msg, why))
		fail_msg("\"%s\" not in \"%s\"", why, e.msg);
}

static void refuses_what_is_no_data(void **state)
{
	void *rx = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *rwx = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *none = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pid_t pid = child();
	struct target *t = open_target(pid);

	(void)state;
	expect_refused(t, (uint64_t)(uintptr_t)&word + 1, "no aligned address");
	expect_refused(t, (uint64_t)1 << 63, "no aligned address");
	expect_refused(t, (uint64_t)(uintptr_t)rx, "not in data it may write");
	expect_refused(t, (uint64_t)(uintptr_t)none, "not in data it may write");
	expect_refused(t, 8, "not in data it may write");
	if (rwx != MAP_FAILED) /* some systems do not give such memory */
		expect_refused(t, (uint64_t)(uintptr_t)rwx, "not in data it may write");
	target_free(t);
	end(pid);
	munmap(rx, 4096);
	munmap(none, 4096);
	if (rwx != MAP_FAILED)
		munmap(rwx, 4096);
}

static void gone_after_exit(void **state)
{
	pid_t pid = child();
	struct target *t = open_target(pid);
	struct poke *p = open_poke(t), *again;
	struct err e = { "" };
	uint64_t v;

	(void)state;
	end(pid);
	assert_int_equal(poke_get(p, &v, &e), -ESRCH);
	assert_int_equal(poke_put(p, 0, 1, &e), -ESRCH);
	assert_int_equal(poke_open(t, (uint64_t)(uintptr_t)&word, &again, &e), -ESRCH);
	poke_free(p);
	target_free(t);
}

/*
 * After exec the pid and the start time are the same, and here even the program and the address.
 * The old descriptor must reach nothing of it.
 */
static void gone_after_exec(void **state)
{
	int go[2];
	struct target *t;
	struct poke *p, *again;
	struct err e = { "" };
	uint64_t v;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(go), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		char c;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)!read(go[0], &c, 1);
		execl("/proc/self/exe", "test_poke", "wait", NULL);
		_exit(9);
	}
	t = open_target(pid);
	p = open_poke(t);
	assert_int_equal(poke_get(p, &v, &e), 0);
	(void)!write(go[1], "", 1);
	for (int i = 0; i < 500 && !poke_get(p, &v, &e); i++)
		usleep(10000);
	assert_int_equal(poke_get(p, &v, &e), -ESRCH);
	assert_int_equal(poke_put(p, 0, 1, &e), -ESRCH);
	assert_int_equal(poke_open(t, (uint64_t)(uintptr_t)&word, &again, &e), -ESRCH);
	poke_free(p);
	target_free(t);
	end(pid);
	close(go[0]);
	close(go[1]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_and_reads_back),
		cmocka_unit_test(leaves_another_value_alone),
		cmocka_unit_test(refuses_what_is_no_data),
		cmocka_unit_test(gone_after_exit),
		cmocka_unit_test(gone_after_exec),
	};

	if (argc > 1 && !strcmp(argv[1], "wait"))
		for (;;)
			pause();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
