/* user/target/mapped.c - opens files that a target has mapped. */
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>

#include "target/handover.h"
#include "target/target_priv.h"

/*
 * A file is only found and not opened until it is known to be the right one: opening what the
 * target has put there instead (a device, a pipe) may have an effect.
 */
enum { FIND = O_PATH | O_CLOEXEC };

/*
 * The path is resolved as the target sees it: links in it are followed inside of the target's
 * root. Without openat2 (before Linux 5.6) a link may lead out of it; the file is compared
 * afterwards in any case.
 */
static int find_in_root(struct target *t, const char *name)
{
	struct open_how how = { .flags = FIND, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	CLEANUP(closep) int own = -1;
	char inside[4096 + 8];
	int dir = target_dir(t, &own, NULL), root, fd;

	root = dir < 0 ? -1 : openat(dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -1;
	fd = (int)syscall(SYS_openat2, root, name, &how, sizeof(how));
	close(root);
	if (fd >= 0 || errno != ENOSYS)
		return fd;
	snprintf(inside, sizeof(inside), "root%s", name);
	return openat(dir, inside, FIND);
}

/* This also finds a deleted file, but only with CAP_SYS_ADMIN or CAP_CHECKPOINT_RESTORE. */
static int find_map_file(struct target *t, const struct mapping *m)
{
	CLEANUP(closep) int own = -1;
	int dir = target_dir(t, &own, NULL);
	char name[64];

	snprintf(name, sizeof(name), "map_files/%llx-%llx", (unsigned long long)m->start,
		 (unsigned long long)m->end);
	return dir < 0 ? -1 : openat(dir, name, FIND);
}

/*
 * The device is not compared, because overlays show another one in the maps. The inode is the
 * same.
 */
static bool is_mapped(int fd, const struct mapping *m)
{
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_ino == m->inode;
}

/* Opens what was found for reading if it is the right file; else returns -1. */
static int open_found(int found, const struct mapping *m)
{
	char path[64];
	int fd = -1;

	if (found < 0)
		return -1;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", found);
	if (is_mapped(found, m))
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	else
		errno = ENOENT;
	close(found);
	return fd;
}

/* One of the files that were opened in advance. */
static int find_lib(const struct target *t, const struct mapping *m)
{
	for (size_t i = 0; i < t->nlibs; i++) {
		const struct target_lib *l = &t->libs[i];

		if (l->inode == m->inode && l->dev_major == m->dev_major &&
		    l->dev_minor == m->dev_minor)
			return fcntl(l->fd, F_DUPFD_CLOEXEC, 0);
	}
	errno = ENOENT;
	return -1;
}

static int open_mapped(struct target *t, const struct mapping *m)
{
	int got = m->deleted || *m->name != '/' ? -1 : open_found(find_in_root(t, m->name), m);

	return got < 0 ? open_found(find_map_file(t, m), m) : got;
}

int target_open_here(struct target *t, const struct mapping *m, bool (*is_go)(int fd))
{
	CLEANUP(closep) int fd = open_mapped(t, m);
	int copy = -1;

	if (fd < 0)
		return -1;
	errno = ENOENT;
	if (is_go && !is_go(fd))
		return -1;
	if (!handover_is_foreign(fd))
		return TAKE_FD(fd);
	errno = EAGAIN;
	return !is_go || handover_copy(fd, &copy, NULL) ? -1 : copy;
}

/* Its executable, which lies on a file system of this machine: whoever looks for breakpoints in its code compares that with it. */
static bool is_exe(const struct target *t, const struct mapping *m)
{
	return t->exe_local && m->inode == t->exe_id.ino && !strcmp(m->name, t->exe);
}

/* @is_go: NULL: any file. */
static int open_one(struct target *t, const struct mapping *m, bool (*is_go)(int fd), int *fd,
		    struct err *e)
{
	int got = t->libs_only && !is_exe(t, m) ? find_lib(t, m) :
		  t->worker			? target_open_by_worker(t, m, is_go) :
						  open_mapped(t, m);

	if (got < 0)
		return err_set(e, -ENOENT, "pid %d: %s cannot be opened: %s", t->pid, m->name,
			       strerror(errno));
	*fd = got;
	return 0;
}

int target_open_mapped(struct target *t, const struct mapping *m, int *fd, struct err *e)
{
	return open_one(t, m, NULL, fd, e);
}

int target_open_lib(struct target *t, const struct mapping *m, bool (*is_go)(int fd), int *fd,
		    struct err *e)
{
	CLEANUP(closep) int got = -1;
	int ret = open_one(t, m, is_go, &got, e);

	if (ret)
		return ret;
	if (!is_go(got))
		return err_set(e, -ENOENT, "%s is not Go's", m->name);
	*fd = TAKE_FD(got);
	return 0;
}

int target_bias(const struct target *t, int fd, const char *name, uint64_t *bias, struct err *e)
{
	return bias_find(fd, name, &t->maps, bias, e);
}

const struct mapping *target_exe_mapping(const struct target *t)
{
	struct stat st = { .st_dev = t->exe_id.dev, .st_ino = t->exe_id.ino };

	return file_mapping(&t->maps, &st, t->exe);
}
