/* user/target/host/exes.c - /proc/PID/exe of all processes, a part at a time. */
#include "target/host/exes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include "base/clock.h"

#define AGAIN_NS 30000000000ull
enum { BETWEEN_CLOCKS = 32, EXES_MAX = 1 << 22 };

/* What is cached is good enough: a file server that does not answer must not hold us up. */
int exe_of(int dir, const char *path, int flags, struct exe *out)
{
	struct statx s;
	int ret = statx(dir, path, flags | AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT,
			STATX_INO | STATX_SIZE | STATX_MTIME, &s);

	if (!ret)
		*out = (struct exe){ s.stx_ino, s.stx_size, s.stx_mtime.tv_sec,
				     s.stx_mtime.tv_nsec };
	return ret;
}

/*
 * Containers of one image run the same inode through overlay mounts of their own. Each of these
 * has a device number of its own, and shows the inode's number, size and time. Source:
 * Documentation/filesystems/overlayfs.rst, "Inode properties".
 */
bool exe_same(const struct exe *a, const struct exe *b)
{
	return a->ino == b->ino && a->size == b->size && a->mtime == b->mtime &&
	       a->mtime_ns == b->mtime_ns;
}

pid_t exe_pid(const char *name)
{
	char *end;
	long n = *name >= '1' && *name <= '9' ? strtol(name, &end, 10) : 0;

	return n <= 0 || n > INT32_MAX || *end ? 0 : (pid_t)n;
}

/* Kernel threads and processes that have ended have no executable. */
static void look_at(struct exes *x, const char *name)
{
	pid_t pid = exe_pid(name);
	struct exe exe, *at;
	char path[64];

	if (!pid)
		return;
	snprintf(path, sizeof(path), "%d/exe", pid);
	if (exe_of(dirfd(x->proc), path, 0, &exe)) {
		x->hidden += errno == EACCES || errno == EPERM;
		return;
	}
	at = vec_add(&x->at, EXES_MAX);
	if (at)
		*at = exe;
	else
		x->hidden++;
}

static void stop(struct exes *x, uint64_t now)
{
	if (x->proc)
		closedir(x->proc);
	x->proc = NULL;
	x->next_ns = now + AGAIN_NS;
}

void exes_look(struct exes *x, const char *proc, uint64_t most_ns)
{
	uint64_t from = now_ns();
	const struct dirent *d;
	unsigned n = 0;

	if (!x->proc && from < x->next_ns)
		return;
	if (!x->proc) {
		x->at.n = x->hidden = 0;
		x->known = false;
		x->proc = opendir(proc);
	}
	while (x->proc && (errno = 0, d = readdir(x->proc)) != NULL) {
		look_at(x, d->d_name);
		if (++n % BETWEEN_CLOCKS == 0 && now_ns() - from > most_ns)
			return;
	}
	x->known = x->proc && !errno;
	stop(x, from);
}

void exes_count(const struct exes *x, int fd, struct bystanders *out)
{
	struct exe file;
	size_t n = 0;

	if (exe_of(fd, "", AT_EMPTY_PATH, &file))
		return;
	for (size_t i = 0; i < x->at.n; i++)
		n += exe_same(&x->at.at[i], &file);
	if (!x->known && n <= out->n)
		return;
	out->n = n;
	out->hidden = x->hidden;
	out->known |= x->known;
}

void exes_fini(struct exes *x)
{
	stop(x, 0);
	vec_fini(&x->at);
}
