/* user/target/handover.c - a target as bytes and descriptors; copies of files that may never be read again. */
#include "target/handover.h"

#include <sys/mman.h>
#include <sys/vfs.h>

#include "base/limits.h"
#include "target/target_priv.h"

enum { COPY_STEP = 1 << 18 };

/* ---- files ---- */

bool handover_is_foreign(int fd)
{
	static const uint32_t here[] = {
		0xef53,	    /* ext2, 3, 4 */
		0x58465342, /* xfs */
		0x9123683e, /* btrfs */
		0xf2f52010, /* f2fs */
		0xca451a4e, /* bcachefs */
		0x2fc12fc1, /* zfs */
		0x01021994, /* tmpfs, memfd */
		0x858458f6, /* ramfs */
		0x794c7630, /* overlayfs */
		0x73717368, /* squashfs */
		0xe0f5e1e2, /* erofs */
		0x9660,	    /* iso9660 */
	};
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return true;
	for (size_t i = 0; i < ARRAY_LEN(here); i++)
		if ((uint32_t)fs.f_type == here[i])
			return false;
	return true;
}

static bool write_all(int fd, const uint8_t *at, size_t n)
{
	while (n) {
		ssize_t put = write(fd, at, n);

		if (put < 0 && errno != EINTR)
			return false;
		at += put > 0 ? put : 0;
		n -= put > 0 ? (size_t)put : 0;
	}
	return true;
}

int handover_copy(int fd, int *copy, struct err *e)
{
	CLEANUP(closep) int to = memfd_create("executable", MFD_CLOEXEC);
	CLEANUP(freep) uint8_t *buf = malloc(COPY_STEP);
	off_t at = 0;

	if (to < 0 || !buf)
		return err_set(e, -ENOMEM, "no memory for a copy of the file");
	for (;;) {
		ssize_t got = pread(fd, buf, COPY_STEP, at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, "reading the file at offset %lld", (long long)at);
		if (!got)
			break;
		at += got;
		if (at > LIMIT_COPY)
			return err_set(
				e, -E2BIG,
				"its file lies on a file system that may not answer, and is longer "
				"than %d MiB",
				LIMIT_COPY >> 20);
		if (!write_all(to, buf, (size_t)got))
			return err_sys(e, "copying the file");
	}
	*copy = TAKE_FD(to);
	return 0;
}

/* ---- libraries ---- */

static bool is_first(const struct target *t, size_t at)
{
	const struct mapping *m = &t->maps.at[at];

	if (!m->exec || !m->inode || *m->name != '/' || !strncmp(m->name, "/dev/", 5))
		return false;
	for (size_t i = at; i-- > 0 && t->maps.at[i].inode == m->inode;)
		if (t->maps.at[i].exec)
			return false;
	return true;
}

/* The file, or its copy; -1: it is not Go's, or cannot be read. */
static int open_lib(struct target *t, const struct mapping *m, bool (*is_go)(int fd))
{
	CLEANUP(closep) int fd = -1;
	int copy = -1;

	if (target_open_mapped(t, m, &fd, NULL) || !is_go(fd))
		return -1;
	if (!handover_is_foreign(fd))
		return TAKE_FD(fd);
	return handover_copy(fd, &copy, NULL) ? -1 : copy;
}

void handover_libs(struct target *t, bool (*is_go)(int fd))
{
	const struct mapping *exe = target_exe_mapping(t);

	for (size_t i = 0; i < t->maps.n && t->nlibs < TARGET_LIBS; i++) {
		const struct mapping *m = &t->maps.at[i];
		int fd = is_first(t, i) && m != exe ? open_lib(t, m, is_go) : -1;

		if (fd >= 0)
			t->libs[t->nlibs++] = (struct target_lib){ .inode = m->inode,
								   .dev_major = m->dev_major,
								   .dev_minor = m->dev_minor,
								   .fd = fd };
	}
	t->libs_only = true;
}

/* ---- sending ---- */

static bool put(FILE *to, const void *p, size_t n)
{
	return !n || fwrite(p, n, 1, to) == 1;
}

static bool put_mapping(FILE *to, const struct mapping *m)
{
	size_t n = strlen(m->name);

	return put(to, m, sizeof(*m)) && put(to, &n, sizeof(n)) && put(to, m->name, n);
}

bool handover_send(const struct target *t, FILE *to, int fds[HANDOVER_FDS], size_t *n)
{
	bool ok = put(to, t, sizeof(*t));

	for (size_t i = 0; ok && i < t->maps.n; i++)
		ok = put_mapping(to, &t->maps.at[i]);
	*n = 0;
	fds[(*n)++] = t->pidfd;
	if (t->exe_fd >= 0)
		fds[(*n)++] = t->exe_fd;
	for (size_t i = 0; i < t->nlibs; i++)
		fds[(*n)++] = t->libs[i].fd;
	return ok;
}

/* ---- receiving ---- */

struct incoming {
	handover_get *get;
	void *arg;
	struct maps maps;
	size_t names, cap; /* bytes of maps.names */
};

static bool room_for(struct incoming *in, size_t n)
{
	size_t cap = in->cap ? in->cap : 4096;
	char *more;

	while (cap - in->names < n)
		cap *= 2;
	if (cap == in->cap)
		return true;
	more = realloc(in->maps.names, cap);
	if (!more)
		return false;
	in->maps.names = more;
	in->cap = cap;
	return true;
}

/* The name's offset stands in for it, until all of them have come. */
static bool get_mapping(struct incoming *in, struct mapping *m)
{
	size_t n;

	if (!in->get(in->arg, m, sizeof(*m)) || !in->get(in->arg, &n, sizeof(n)) ||
	    n > LIMIT_MAPS_BYTES || in->names > LIMIT_MAPS_BYTES || !room_for(in, n + 1) ||
	    !in->get(in->arg, in->maps.names + in->names, n))
		return false;
	m->name = (const char *)(uintptr_t)in->names;
	in->names += n;
	in->maps.names[in->names++] = 0;
	return true;
}

static bool get_maps(struct incoming *in, size_t n)
{
	bool ok = n <= LIMIT_MAPS;

	in->maps.at = ok ? calloc(n ? n : 1, sizeof(*in->maps.at)) : NULL;
	ok = in->maps.at != NULL;
	for (; ok && in->maps.n < n; in->maps.n += ok)
		ok = get_mapping(in, &in->maps.at[in->maps.n]);
	for (size_t i = 0; i < in->maps.n; i++)
		in->maps.at[i].name = in->maps.names + (uintptr_t)in->maps.at[i].name;
	if (!ok)
		maps_fini(&in->maps);
	return ok;
}

struct target *handover_receive(handover_get *get, void *arg)
{
	CLEANUP(freep) struct target *t = calloc(1, sizeof(*t));
	struct incoming in = { .get = get, .arg = arg };
	size_t nmaps;

	if (!t || !get(arg, t, sizeof(*t)) || t->nlibs > TARGET_LIBS)
		return NULL;
	nmaps = t->maps.n;
	t->comm[sizeof(t->comm) - 1] = t->exe[sizeof(t->exe) - 1] = 0;
	t->maps = (struct maps){ 0 };
	t->mem = NULL;
	t->pidfd = t->proc_fd = -1;
	t->had_exe = t->exe_fd >= 0;
	t->exe_fd = -1;
	for (size_t i = 0; i < t->nlibs; i++)
		t->libs[i].fd = -1;
	t->resting = true;
	t->worker = NULL;
	t->silent = false;
	t->refs = 0;
	t->asked_ns = 0;
	if (memproc_resting(t, &t->mem, NULL))
		return NULL;
	if (!get_maps(&in, nmaps)) {
		memproc_free(t->mem);
		return NULL;
	}
	t->maps = in.maps;
	return TAKE(t);
}

size_t handover_fds(const struct target *t)
{
	return 1 + t->had_exe + t->nlibs;
}

void handover_adopt(struct target *t, const int *fds)
{
	size_t at = 0;

	t->pidfd = fds[at++];
	if (t->had_exe)
		t->exe_fd = fds[at++];
	for (size_t i = 0; i < t->nlibs; i++)
		t->libs[i].fd = fds[at++];
}
