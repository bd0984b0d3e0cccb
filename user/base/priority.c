/* user/base/priority.c - setpriority(2) of the calling thread. */
#include "base/priority.h"

#include <errno.h>
#include <sys/resource.h>

void priority_prompt(void)
{
	errno = 0;
	if (!getpriority(PRIO_PROCESS, 0) && !errno)
		(void)setpriority(PRIO_PROCESS, 0, PRIORITY_PROMPT);
}
