/*
 * tests/support/deaf_main.c - a file system that falls silent.
 *
 *	deaf DIR COMMAND [ARG...]	mounts it on DIR, in a mount namespace of its own, and runs COMMAND there. Its only
 *					file DIR/f can be opened and mapped, and never read
 *	deaf -c DIR COMMAND [ARG...]	the same, and whoever closes it waits, too
 *	deaf -f FILE -n N DIR ARG...	DIR/f has the content of FILE, and is run with ARG. After N requests of other processes
 *					nothing is answered to others any more
 *
 * It serves until it is killed; then all who wait get an error. Source of the protocol: include/uapi/linux/fuse.h,
 * version 7.31.
 */
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/err.h"

enum {
	FILE_NODE = 2,
	FILE_SIZE = 1 << 20,
	REQUEST_MAX = 1 << 18,
	FOREVER = 1000000,
	CLOSE_WAITS_S = 40
};

static int fuse, content = -1;
static bool close_waits;
static uint64_t size = FILE_SIZE;
static unsigned long left; /* requests of others that are answered; where there is content */
static pid_t child;

static void reply(const struct fuse_in_header *to, int error, void *data, size_t n)
{
	struct fuse_out_header h = { .len = (uint32_t)(sizeof(h) + n),
				     .error = error,
				     .unique = to->unique };
	struct iovec v[] = { { &h, sizeof(h) }, { data, n } };

	(void)!writev(fuse, v, n ? 2 : 1);
}

static struct fuse_attr attr_of(uint64_t node)
{
	bool dir = node == FUSE_ROOT_ID;

	return (struct fuse_attr){ .ino = node,
				   .nlink = 1,
				   .mode = dir ? S_IFDIR | 0755 : S_IFREG | 0755,
				   .size = dir ? 0 : size,
				   .blksize = 4096 };
}

static void serve_read(const struct fuse_in_header *h)
{
	static char data[REQUEST_MAX];
	const struct fuse_read_in *in = (const void *)(h + 1);
	ssize_t got = -1;

	if (content < 0)
		return;
	if (in->size <= sizeof(data))
		got = pread(content, data, in->size, (off_t)in->offset);
	reply(h, got < 0 ? -EIO : 0, data, got < 0 ? 0 : (size_t)got);
}

/* Of a thread of the program that runs on it? */
static bool is_own(const struct fuse_in_header *h)
{
	char task[64];

	snprintf(task, sizeof(task), "/proc/%d/task/%u", child, h->pid);
	return !access(task, F_OK);
}

static bool is_silent(const struct fuse_in_header *h)
{
	if (content < 0 || h->opcode == FUSE_INIT || is_own(h))
		return false;
	if (!left)
		return true;
	left--;
	return false;
}

static void serve(const struct fuse_in_header *h)
{
	struct fuse_init_out init = { .major = 7, .minor = 31, .max_write = 4096 };
	struct fuse_entry_out entry = { .nodeid = FILE_NODE,
					.attr_valid = FOREVER,
					.entry_valid = FOREVER,
					.attr = attr_of(FILE_NODE) };
	struct fuse_attr_out attr = { .attr_valid = FOREVER, .attr = attr_of(h->nodeid) };
	struct fuse_open_out opened = { .fh = 1 };

	if (is_silent(h))
		return;
	if (h->opcode == FUSE_INIT)
		reply(h, 0, &init, sizeof(init));
	else if (h->opcode == FUSE_LOOKUP)
		reply(h, 0, &entry, sizeof(entry));
	else if (h->opcode == FUSE_GETATTR)
		reply(h, 0, &attr, sizeof(attr));
	else if (h->opcode == FUSE_OPEN)
		reply(h, 0, &opened, sizeof(opened));
	else if (h->opcode == FUSE_READ)
		serve_read(h);
	else if (content >= 0 && (h->opcode == FUSE_FLUSH || h->opcode == FUSE_RELEASE))
		reply(h, 0, NULL, 0);
	else if (!close_waits || h->opcode != FUSE_FLUSH)
		reply(h, -ENOSYS, NULL, 0);
}

static int mount_it(const char *dir)
{
	char options[128];

	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fuse < 0 || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -errno;
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other",
		 fuse);
	return mount("deaf", dir, "fuse", MS_NOSUID | MS_NODEV, options) ? -errno : 0;
}

/* -c, or -f FILE -n N; how many words these are. */
static int options(int argc, char **argv)
{
	struct stat st;

	close_waits = argc > 1 && !strcmp(argv[1], "-c");
	if (close_waits) {
		/* ps waits for such a process, too: whatever becomes of the test, that ends. */
		alarm(CLOSE_WAITS_S);
		return 1;
	}
	if (argc < 6 || strcmp(argv[1], "-f") || strcmp(argv[3], "-n"))
		return 0;
	content = open(argv[2], O_RDONLY | O_CLOEXEC);
	if (content < 0 || fstat(content, &st)) {
		perror(argv[2]);
		exit(1);
	}
	size = (uint64_t)st.st_size;
	left = strtoul(argv[4], NULL, 10);
	return 4;
}

static void run(char **argv)
{
	char path[4096];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(path, sizeof(path), "%s/f", argv[0]);
	if (content >= 0)
		argv[0] = path;
	else
		argv++;
	execv(argv[0], argv);
	_exit(127);
}

int main(int argc, char **argv)
{
	static char buf[REQUEST_MAX] __attribute__((aligned(8)));
	int ret;

	argv += options(argc, argv);
	if (!argv[1] || (content < 0 && !argv[2]))
		return 2;
	ret = mount_it(argv[1]);
	if (ret) {
		fprintf(stderr, "deaf: %s: %s\n", argv[1], strerror(-ret));
		return 1;
	}
	child = fork();
	if (!child)
		run(argv + 1);
	while (read(fuse, buf, sizeof(buf)) >= (ssize_t)sizeof(struct fuse_in_header))
		serve((const struct fuse_in_header *)(const void *)buf);
	return 1;
}
