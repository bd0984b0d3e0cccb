/* user/cli/outdir.c - where profiles go. */
#include "cli/outdir.h"

#include <ctype.h>
#include <limits.h>
#include <sys/stat.h>

int outdir_prepare(const char *dir, bool *made, struct err *e)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	*made = mkdir(dir, 0777) == 0;
	if (!*made && errno != EEXIST)
		return err_sys(e, "cannot make the directory %s", dir);
	if (stat(dir, &st))
		return err_sys(e, "cannot write to %s", dir);
	if (!S_ISDIR(st.st_mode))
		return err_set(e, -ENOTDIR, "cannot write to %s: it is not a directory", dir);
	if ((size_t)snprintf(path, sizeof(path), "%s/.goprof-bpf.XXXXXX", dir) >= sizeof(path))
		return err_set(e, -ENAMETOOLONG, "the name of the directory is too long");
	/*
	 * A file is created as a test, because permission bits do not tell what a read-only or
	 * full file system will do.
	 */
	fd = mkstemp(path);
	if (fd < 0)
		return err_sys(e, "cannot write to %s", dir);
	close(fd);
	unlink(path);
	return 0;
}

static void safe_name(const char *comm, char *buf, size_t cap)
{
	snprintf(buf, cap, "%s", *comm ? comm : "unnamed");
	for (char *p = buf; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("._+-@", *p))
			*p = '_';
	if (buf[0] == '.')
		buf[0] = '_';
}

int outdir_path(const char *dir, const char *comm, pid_t pid, const char *kind, const char *ext,
		char *buf, size_t cap, struct err *e)
{
	size_t n = strlen(dir);
	char name[64];

	while (n > 1 && dir[n - 1] == '/')
		n--;
	safe_name(comm, name, sizeof(name));
	if ((size_t)snprintf(buf, cap, "%.*s%s%s.%d.%s.%s", (int)n, dir,
			     dir[n - 1] == '/' ? "" : "/", name, pid, kind, ext) >= cap)
		return err_set(e, -ENAMETOOLONG, "the name of the directory is too long");
	return 0;
}
