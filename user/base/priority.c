/* user/base/priority.c - nice values of the calling thread, and of its session. */
#include "base/priority.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/cleanup.h"

#define OF_SESSION "/proc/self/autogroup"

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

/* "/autogroup-12 nice 0" */
bool priority_prompt_session(void)
{
	CLEANUP(closep) int fd = open(OF_SESSION, O_RDONLY | O_CLOEXEC);
	char text[64] = "";

	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0 || !strstr(text, " nice 0\n"))
		return false;
	return set_session(PRIORITY_PROMPT);
}

void priority_session_back(void)
{
	(void)set_session(0);
}
