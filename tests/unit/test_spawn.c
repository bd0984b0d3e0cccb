/* tests/unit/test_spawn.c - commands that are held at exec, and how they end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "cli/run/spawn.h"
#include "cli/stop.h"

static struct spawn *start(char **argv)
{
	struct spawn *s = NULL;
	struct err e = { "" };
	bool failed_exec;

	if (spawn_start(argv, &s, &failed_exec, &e))
		fail_msg("%s", e.msg);
	if (spawn_not_held(s)) {
		print_message("not held: %s\n", spawn_not_held(s));
		skip();
	}
	return s;
}

static enum spawn_state next(struct spawn *s)
{
	struct pollfd p = { .fd = spawn_fd(s), .events = POLLIN };
	enum spawn_state state;

	while ((state = spawn_step(s)) == SPAWN_RUNS)
		if (poll(&p, 1, 20000) == 0)
			fail_msg("nothing happens");
	return state;
}

/* The program that the process runs; the last part of its path. */
static void runs(const struct spawn *s, const char *want)
{
	char link[64], path[PATH_MAX];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/%d/exe", spawn_pid(s));
	n = readlink(link, path, sizeof(path) - 1);
	assert_true(n > 0);
	path[n] = 0;
	if (!strstr(path, want))
		fail_msg("it runs %s, not %s", path, want);
}

static void end(struct spawn *s, int status)
{
	assert_int_equal(next(s), SPAWN_ENDED);
	assert_int_equal(spawn_status(s), status);
	assert_int_equal(kill(spawn_pid(s), 0), 0); /* a zombie keeps its number */
	spawn_reap(s);
	assert_int_equal(waitpid(spawn_pid(s), NULL, WNOHANG), -1);
	spawn_free(s);
}

static void held_before_its_first_instruction(void **state)
{
	char sh[] = "/bin/sh", c[] = "-c", text[64], *argv[] = { sh, c, text, NULL };
	struct spawn *s;
	char got[8];
	int p[2];

	(void)state;
	assert_int_equal(pipe2(p, O_NONBLOCK), 0);
	snprintf(text, sizeof(text), "echo x >&%d; exit 7", p[1]);
	s = start(argv);
	assert_int_equal(spawn_step(s), SPAWN_HELD);
	assert_true(spawn_traces(s));
	usleep(50000);
	assert_int_equal(read(p[0], got, sizeof(got)), -1); /* nothing has run */
	spawn_release(s);
	assert_false(spawn_traces(s));
	end(s, 7);
	assert_int_equal(read(p[0], got, sizeof(got)), 2);
	close(p[0]);
	close(p[1]);
}

static void held_at_each_exec(void **state)
{
	char sh[] = "/bin/sh", c[] = "-c", text[] = "exec env A=1 sleep 0",
	     *argv[] = { sh, c, text, NULL };
	struct spawn *s = start(argv);

	(void)state;
	assert_int_equal(spawn_step(s), SPAWN_HELD);
	spawn_continue(s);
	assert_int_equal(next(s), SPAWN_HELD);
	runs(s, "env");
	spawn_continue(s);
	assert_int_equal(next(s), SPAWN_HELD);
	runs(s, "sleep");
	assert_false(spawn_lost_setid(s));
	spawn_continue(s);
	end(s, 0);
}

/* Stops for signals are answered as if nobody traced the process. */
static void signals_before_the_release(void **state)
{
	char sh[] = "/bin/sh", c[] = "-c",
	     text[] = "trap 'n=1' USR1; kill -USR1 $$; test $n = 1 && kill -TERM $$",
	     *argv[] = { sh, c, text, NULL };
	struct spawn *s = start(argv);

	(void)state;
	spawn_continue(s);
	end(s, 128 + SIGTERM);
}

static void killed_while_held(void **state)
{
	char name[] = "true", *argv[] = { name, NULL };
	struct spawn *s = start(argv);

	(void)state;
	kill(spawn_pid(s), SIGKILL);
	spawn_release(s);
	end(s, 128 + SIGKILL);
}

static void freed_while_held_it_runs_on(void **state)
{
	char sh[] = "/bin/sh", c[] = "-c", text[] = "exit 9", *argv[] = { sh, c, text, NULL };
	struct spawn *s = start(argv);
	pid_t pid = spawn_pid(s);
	int status;

	(void)state;
	spawn_free(s);
	stop_pass_to(0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 9);
}

static void cannot_be_run(void **state)
{
	static const struct {
		const char *name;
		int code;
	} all[] = { { "no-such-command-anywhere", -ENOENT },
		    { "/none/at/all", -ENOENT },
		    { "/etc/passwd", -EACCES },
		    { "/", -EACCES } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		char name[64], *argv[] = { name, NULL };
		struct spawn *s = NULL;
		struct err e = { "" };
		bool failed_exec = false;

		snprintf(name, sizeof(name), "%s", all[i].name);
		assert_int_equal(spawn_start(argv, &s, &failed_exec, &e), all[i].code);
		assert_true(failed_exec && !s);
		assert_non_null(strstr(e.msg, name));
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombie */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(held_before_its_first_instruction),
		cmocka_unit_test(held_at_each_exec),
		cmocka_unit_test(signals_before_the_release),
		cmocka_unit_test(killed_while_held),
		cmocka_unit_test(freed_while_held_it_runs_on),
		cmocka_unit_test(cannot_be_run),
	};

	spawn_remember_signals();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
