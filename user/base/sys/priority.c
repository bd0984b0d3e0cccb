/* user/base/sys/priority.c - nice values of the calling thread, and of its session. */
#include "base/sys/priority.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sys/process.h"

#define OF_SESSION "/proc/self/autogroup"

enum { ANCESTORS_MAX = 64, OTHERS_MAX = 4096 };
/* Who runs so long of so long is busy, also where many others are; whoever starts is for one such look alone. */
enum { LOOK_MS = 50, BUSY_NS = 1000000, LOOKS = 2 };

bool priority_prompt(void)
{
	errno = 0;
	return !getpriority(PRIO_PROCESS, 0) && !errno &&
	       !setpriority(PRIO_PROCESS, 0, PRIORITY_PROMPT);
}

static bool set_session(int nice)
{
	CLEANUP(closep) int fd = open(OF_SESSION, O_WRONLY | O_CLOEXEC);
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", nice);

	return fd >= 0 && write(fd, text, (size_t)n) == n;
}

static pid_t parent_of(pid_t pid)
{
	char path[32], text[512], *end;
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	if (f)
		fclose(f);
	text[n] = '\0';
	end = strrchr(text, ')'); /* its name may have anything */
	return end && strlen(end) > 4 ? (pid_t)strtol(end + 4, NULL, 10) : 0; /* ") S PPID" */
}

/* Did it start us, or somebody who did? */
static bool is_ancestor(pid_t pid)
{
	pid_t at = getppid();

	for (int i = 0; at > 1 && i < ANCESTORS_MAX; i++) {
		if (at == pid)
			return true;
		at = parent_of(at);
	}
	return at == pid;
}

struct others {
	size_t n;
	struct other {
		pid_t pid;
		uint64_t cpu_ns;
	} at[OTHERS_MAX];
};

/* Who is in our session but us and who started us. False: that cannot be told. */
static bool find_others(struct others *o)
{
	DIR *proc = opendir("/proc");
	pid_t ours = getsid(0), us = getpid();
	const struct dirent *d;

	while (proc && o->n < OTHERS_MAX && (d = readdir(proc)) != NULL) {
		pid_t pid = (pid_t)strtol(d->d_name, NULL, 10);

		if (pid > 0 && pid != us && getsid(pid) == ours && !is_ancestor(pid))
			o->at[o->n++] = (struct other){ pid, process_cpu_ns(pid) };
	}
	if (proc)
		closedir(proc);
	return proc && o->n < OTHERS_MAX;
}

/* None of them runs. */
static bool others_rest(void)
{
	CLEANUP(freep) struct others *o = calloc(1, sizeof(*o));

	if (!o || !find_others(o))
		return false;
	if (o->n)
		poll(NULL, 0, LOOK_MS);
	for (size_t i = 0; i < o->n; i++)
		if (process_cpu_ns(o->at[i].pid) >= o->at[i].cpu_ns + BUSY_NS)
			return false;
	return true;
}

static bool others_are_at_rest(void)
{
	for (int i = 0; i < LOOKS; i++)
		if (others_rest())
			return true;
	return false;
}

static _Noreturn void wait_for_end(pid_t of)
{
	sigset_t all, end;
	int got;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	prctl(PR_SET_NAME, "session-nice");
	setpgid(0, 0); /* who kills our process group does not mean it */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	close_range(0, ~0u, 0);
	if (getppid() == of)
		sigwait(&end, &got);
	(void)set_session(0);
	_exit(0);
}

/* A child that gives it back when we are killed; -1: it cannot be had. */
static pid_t restorer_new(void)
{
	pid_t us = getpid(), restorer = fork();

	if (!restorer)
		wait_for_end(us);
	return restorer;
}

/* One that was killed, and that nobody has waited for, gives nothing back. */
static bool is_restorer(pid_t pid)
{
	static const char name[] = " (session-nice) "; /* its state comes then */
	char path[32], text[64] = "";
	const char *at;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	(void)!fgets(text, sizeof(text), f);
	fclose(f);
	at = strstr(text, name);
	return at && !strchr("ZX", at[strlen(name)]);
}

/* "/autogroup-12 nice 0"; false: there is none. */
static bool session_nice(int *nice)
{
	CLEANUP(closep) int fd = open(OF_SESSION, O_RDONLY | O_CLOEXEC);
	static const char before[] = " nice ";
	char text[64] = "";
	const char *at;

	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0)
		return false;
	at = strstr(text, before);
	if (at)
		*nice = (int)strtol(at + strlen(before), NULL, 10);
	return at != NULL;
}

void priority_session_heal(void)
{
	CLEANUP(freep) struct others *o = calloc(1, sizeof(*o));
	int nice;

	if (!session_nice(&nice) || nice != PRIORITY_SESSION || !o || !find_others(o))
		return;
	for (size_t i = 0; i < o->n; i++)
		if (is_restorer(o->at[i].pid))
			return;
	(void)set_session(0);
}

pid_t priority_prompt_session(void)
{
	pid_t restorer;
	int nice;

	if (!others_are_at_rest() || !session_nice(&nice) || nice)
		return 0;
	restorer = restorer_new();
	if (restorer > 0 && set_session(PRIORITY_SESSION))
		return restorer;
	if (restorer > 0)
		priority_session_back(restorer);
	return 0;
}

void priority_session_back(pid_t restorer)
{
	(void)set_session(0);
	kill(restorer, SIGKILL);
	process_wait(restorer);
}
