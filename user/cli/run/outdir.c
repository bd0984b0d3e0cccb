/* user/cli/run/outdir.c - where profiles go. */
#include "cli/run/outdir.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "cli/opt.h"
#include "cli/tell.h"

static bool id_in(const char *name, uint64_t max, uint64_t *id)
{
	const char *s = getenv(name);

	return s && opt_number(s, 1, max, id);
}

void outdir_asked_by(struct output_access *access)
{
	uint64_t uid, gid;

	if (getuid() || geteuid() || !id_in("SUDO_UID", UINT32_MAX - 1, &uid) ||
	    !id_in("SUDO_GID", UINT32_MAX - 1, &gid))
		return;
	access->uid = (uid_t)uid;
	access->gid = (gid_t)gid;
}

/* The directory that was just made. Where somebody has put another in its place, it stays as it is. */
static void give_dir(const char *dir, const struct output_access *access)
{
	CLEANUP(closep) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st) && st.st_uid == geteuid())
		(void)!fchown(fd, access->uid, access->gid);
}

int outdir_prepare(const char *dir, const struct output_access *access, bool *made, struct err *e)
{
	char path[PATH_MAX];
	struct stat st;
	int fd;

	*made = mkdir(dir, 0777) == 0;
	if (!*made && errno != EEXIST)
		return err_sys(e, "cannot make the directory %s", dir);
	if (*made && access && access->uid)
		give_dir(dir, access);
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

void outdir_tell_kept(struct output_access *access)
{
	if (!access || !access->kept || access->told || (access->mode & 0004))
		return;
	access->told = true;
	tell("only root can read the files: the directory is root's; give another one with -o, or --mode 0644");
}
