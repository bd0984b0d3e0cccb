/* user/base/sys/oom.c - writes /proc/self/oom_score_adj. */
#include "base/sys/oom.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { NEVER = -1000, FIRST = 1000 }; /* OOM_SCORE_ADJ_MIN, _MAX in include/uapi/linux/oom.h */

static int raised_by;

static int get(const char *file, int *score)
{
	CLEANUP(closep) int fd = open(file, O_RDONLY | O_CLOEXEC);
	char text[16] = "";
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (n < 0)
		return -errno;
	*score = (int)strtol(text, NULL, 10);
	return 0;
}

static int put(const char *file, int score)
{
	CLEANUP(closep) int fd = open(file, O_WRONLY | O_CLOEXEC);
	char text[16];
	int n = snprintf(text, sizeof(text), "%d", score);

	return fd < 0 || write(fd, text, (size_t)n) != n ? -errno : 0;
}

int oom_raised(void)
{
	return raised_by;
}

int oom_spare(const char *file, int raised)
{
	int ret = put(file, NEVER), score;

	if (ret && raised && !get(file, &score))
		(void)put(file, score - raised);
	return ret;
}

int oom_above(const char *file)
{
	int score, above, ret;

	if (raised_by)
		return 0;
	ret = get(file, &score);
	if (ret)
		return ret;
	above = score + OOM_ABOVE < FIRST ? score + OOM_ABOVE : FIRST;
	ret = put(file, above);
	if (!ret)
		raised_by = above - score;
	return ret;
}
