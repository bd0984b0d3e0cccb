/* user/base/oom.c - one word to the kernel. */
#include "base/oom.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"

void oom_spare(void)
{
	CLEANUP(closep) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd >= 0)
		(void)!write(fd, "-1000", 5);
}
