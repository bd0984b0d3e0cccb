/*
 * tests/support/rusage_main.c - run a command and write what it used.
 *
 *	rusage OUT COMMAND [ARG...]
 *
 * OUT gets one line: user ms, system ms, peak resident kB, wall ms, of the command and of the
 * children it waited for. The exit status is the command's, 128 + signal when one ended it.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pid_t child;

/* The command decides what a signal means; we stay to see its end. */
static void pass_on(int sig)
{
	if (child > 0)
		kill(child, sig);
}

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static double ms(struct timeval t)
{
	return (double)t.tv_sec * 1e3 + (double)t.tv_usec / 1e3;
}

static int write_usage(const char *path, double wall)
{
	struct rusage u;
	FILE *f = fopen(path, "w");

	if (!f || getrusage(RUSAGE_CHILDREN, &u)) {
		perror(path);
		return -1;
	}
	fprintf(f, "%.1f %.1f %ld %.1f\n", ms(u.ru_utime), ms(u.ru_stime), u.ru_maxrss, wall);
	return fclose(f);
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = pass_on, .sa_flags = SA_RESTART };
	double start = now_ms();
	int status = 0;

	if (argc < 3) {
		fprintf(stderr, "usage: rusage OUT COMMAND [ARG...]\n");
		return 2;
	}
	child = fork();
	if (!child) {
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	if (child < 0 || waitpid(child, &status, 0) != child) {
		perror("rusage");
		return 126;
	}
	if (write_usage(argv[1], now_ms() - start))
		return 126;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
