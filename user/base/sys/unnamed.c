/* user/base/sys/unnamed.c - O_TMPFILE, or a file whose name is removed at once. */
#include "base/sys/unnamed.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *unnamed_dir(void)
{
	const char *dir = getenv("TMPDIR");

	return dir && *dir ? dir : "/tmp";
}

/* Not every file system has files without names from the start. */
int unnamed_open(struct err *e)
{
	const char *dir = unnamed_dir();
	char path[4096];
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	if ((size_t)snprintf(path, sizeof(path), "%s/.goprof-bpf.XXXXXX", dir) >= sizeof(path))
		return err_set(e, -ENAMETOOLONG, "the name in TMPDIR is too long");
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return err_sys(e, "in %s no file can be made (set TMPDIR)", dir);
	unlink(path);
	return fd;
}
