/*
 * tests/support/deaf_main.c - a file system whose only file can be opened and mapped, and never read.
 *
 *	deaf DIR COMMAND [ARG...]	mounts it on DIR, in a mount namespace of its own, and runs COMMAND there. It
 *					serves until it is killed; then all who wait get an error
 *
 * The file is DIR/f. Source of the protocol: include/uapi/linux/fuse.h, version 7.31.
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

enum { FILE_NODE = 2, FILE_SIZE = 1 << 20, REQUEST_MAX = 1 << 18, FOREVER = 1000000 };

static int fuse;

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
				   .mode = dir ? S_IFDIR | 0755 : S_IFREG | 0644,
				   .size = dir ? 0 : FILE_SIZE,
				   .blksize = 4096 };
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

	if (h->opcode == FUSE_INIT)
		reply(h, 0, &init, sizeof(init));
	else if (h->opcode == FUSE_LOOKUP)
		reply(h, 0, &entry, sizeof(entry));
	else if (h->opcode == FUSE_GETATTR)
		reply(h, 0, &attr, sizeof(attr));
	else if (h->opcode == FUSE_OPEN)
		reply(h, 0, &opened, sizeof(opened));
	else if (h->opcode != FUSE_READ)
		reply(h, -ENOSYS, NULL, 0);
}

static int mount_it(const char *dir)
{
	char options[128];

	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (fuse < 0 || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return -errno;
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fuse);
	return mount("deaf", dir, "fuse", MS_NOSUID | MS_NODEV, options) ? -errno : 0;
}

int main(int argc, char **argv)
{
	static char buf[REQUEST_MAX] __attribute__((aligned(8)));
	int ret;

	if (argc < 3)
		return 2;
	ret = mount_it(argv[1]);
	if (ret) {
		fprintf(stderr, "deaf: %s: %s\n", argv[1], strerror(-ret));
		return 1;
	}
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv(argv[2], argv + 2);
		_exit(127);
	}
	while (read(fuse, buf, sizeof(buf)) >= (ssize_t)sizeof(struct fuse_in_header))
		serve((const struct fuse_in_header *)(const void *)buf);
	return 1;
}
