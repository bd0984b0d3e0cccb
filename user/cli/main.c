/* user/cli/main.c - the process: its descriptors, its signals, its command, its exit status. */
#include <fcntl.h>
#include <signal.h>

#include "base/err.h"
#include "cli/cmd.h"
#include "cli/run/spawn.h"
#include "cli/tell.h"
#include "probe/uprobes/uprobes.h"

/*
 * Whoever starts us without a standard descriptor must not get one of our files under that
 * number. So a closed stdin is filled with something that can only be written to, and a closed
 * output with something that can only be read: using it fails, and that is noticed. A command
 * gets it closed, as we did.
 */
static void fill_standard_fds(void)
{
	static const int mode[3] = { O_WRONLY, O_RDONLY, O_RDONLY };

	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)!open("/dev/null", mode[fd] | O_CLOEXEC);
}

/*
 * A full disk may be noticed only now, when stdio writes what it still holds; a text longer than
 * its buffer met it before.
 */
static int close_stdout(int status)
{
	int lost = status == EXIT_DONE && ferror(stdout) ? errno : 0;

	if (fclose(stdout))
		lost = errno;
	if (!lost)
		return status;
	tell("cannot write to stdout: %s", strerror(lost));
	return status == EXIT_USAGE ? status : EXIT_FAILED;
}

/* What was told is a part of the answer: losses, and what a run cost. Who closed stderr does not want it. */
static int told(int status)
{
	int mode = fcntl(STDERR_FILENO, F_GETFL);

	if (status != EXIT_DONE || !ferror(stderr) || (mode & O_ACCMODE) == O_RDONLY)
		return status;
	return EXIT_LOSSES;
}

/* The first word of the command line; help.c has a line for each. */
static const struct {
	const char *word;
	int (*run)(int argc, char **argv);
} commands[] = {
	{ "ps", cmd_ps },	{ "doctor", cmd_doctor },
	{ "heal", cmd_heal },	{ "heapdump", cmd_heapdump },
	{ "trace", cmd_trace },
};

static int run(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < ARRAY_LEN(commands); i++)
		if (!strcmp(argv[1], commands[i].word))
			return commands[i].run(argc - 1, argv + 1);
	return cmd_profile(argc, argv);
}

int main(int argc, char **argv)
{
	uprobes_main(argc, argv);
	fill_standard_fds();
	spawn_remember_signals();
	/* a reader that left shows as an error of the write instead of ending us */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	return told(close_stdout(run(argc, argv)));
}
