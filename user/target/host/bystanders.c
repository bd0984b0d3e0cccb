/* user/target/host/bystanders.c - /proc/PID/exe of all processes, a part at a time. */
#include "target/host/bystanders.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "target/host/exes.h"

#define AGAIN_NS 30000000000ull
enum { BETWEEN_CLOCKS = 32 };

/* Kernel threads and processes that have ended have no executable. */
static void look_at(struct bystanders *b, const char *name, const struct exe *file, pid_t pid)
{
	pid_t n = exe_pid(name);
	struct exe exe;
	char path[64];

	if (!n || n == pid)
		return;
	snprintf(path, sizeof(path), "%d/exe", n);
	if (!exe_of(dirfd(b->proc), path, 0, &exe))
		b->n_so_far += exe_same(&exe, file);
	else
		b->hidden_so_far += errno == EACCES || errno == EPERM;
}

static void stop(struct bystanders *b)
{
	closedir(b->proc);
	b->proc = NULL;
	b->next_ns = now_ns() + AGAIN_NS;
}

static bool start(struct bystanders *b, const char *proc, uint64_t now)
{
	b->n_so_far = b->hidden_so_far = 0;
	b->proc = opendir(proc);
	if (!b->proc)
		b->next_ns = now + AGAIN_NS;
	return b->proc;
}

void bystanders_look(struct bystanders *b, const char *proc, int fd, pid_t pid, uint64_t most_ns)
{
	uint64_t from = now_ns();
	const struct dirent *d;
	struct exe file;
	unsigned n = 0;

	if (!b->proc && (from < b->next_ns || !start(b, proc, from)))
		return;
	if (exe_of(fd, "", AT_EMPTY_PATH, &file)) {
		stop(b);
		return;
	}
	while ((errno = 0, d = readdir(b->proc)) != NULL) {
		look_at(b, d->d_name, &file, pid);
		if (++n % BETWEEN_CLOCKS == 0 && now_ns() - from > most_ns)
			return;
	}
	if (!errno) {
		b->known = true;
		b->n = b->n_so_far;
		b->hidden = b->hidden_so_far;
	}
	stop(b);
}

size_t bystanders_least(const struct bystanders *b)
{
	return b->proc && b->n_so_far > b->n ? b->n_so_far : b->n;
}

void bystanders_fini(struct bystanders *b)
{
	if (b->proc)
		closedir(b->proc);
	b->proc = NULL;
}
