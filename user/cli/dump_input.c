/* user/cli/dump_input.c - opens dumps, copies pipes, and shows how far reading is. */
#include "cli/dump_input.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "cli/stop.h"
#include "cli/tell.h"
#include "ingest/heapdump/header.h"
#include "ingest/stream.h"

enum { COPY_BYTES = 1 << 18 };

/* ---- a pipe that has nothing ---- */

/* After so long without a byte it is said, once: whoever waits may have forgotten to write. */
static void tell_stall(struct dump_input *in, uint64_t offset)
{
	uint64_t now = tell_clock_ns();

	if (offset != in->stall_off || !in->stall_ns) {
		in->stall_off = offset;
		in->stall_ns = now;
		return;
	}
	if (in->stall_told || now - in->stall_ns < STREAM_STALLS_MS * 1000000ull)
		return;
	in->stall_told = true;
	tell_bar(0, 0);
	tell("%s: nothing came for %d s, after %llu bytes: waiting for more", in->name,
	     STREAM_STALLS_MS / 1000, (unsigned long long)offset);
}

static void await_more(struct dump_input *in, uint64_t offset)
{
	struct pollfd p = { .fd = in->fd, .events = POLLIN };

	tell_stall(in, offset);
	while (!stop_asked_ms() && !poll(&p, 1, STREAM_STALLS_MS))
		tell_stall(in, offset);
}

/* ---- a pipe's copy ---- */

static const char *spool_dir(void)
{
	const char *dir = getenv("TMPDIR");

	return dir && *dir ? dir : "/tmp";
}

/* Not every file system has files without names from the start. */
static int spool_open(const char *dir, struct err *e)
{
	char path[4096];
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	if ((size_t)snprintf(path, sizeof(path), "%s/.goprof-bpf.XXXXXX", dir) >= sizeof(path))
		return err_set(e, -ENAMETOOLONG, "the name in TMPDIR is too long");
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return err_sys(e,
			       "a dump from a pipe is copied first, but in %s no file can be "
			       "made (set TMPDIR)",
			       dir);
	unlink(path);
	return fd;
}

static int no_room(const char *dir, uint64_t copied, struct err *e)
{
	char bytes[BYTES_TEXT];
	int ret = -errno;

	bytes_text(copied, bytes);
	if (ret == -ENOSPC || ret == -EDQUOT || ret == -EFBIG)
		return err_set(e, ret,
			       "no room in %s for the dump's copy after %s (%s): set TMPDIR to "
			       "a directory with more room, or give a file",
			       dir, bytes, strerror(-ret));
	return err_sys(e, "copying the dump to %s, after %s", dir, bytes);
}

static int write_all(int fd, const uint8_t *buf, size_t n)
{
	while (n) {
		ssize_t done = write(fd, buf, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -1;
		buf += done;
		n -= (size_t)done;
	}
	return 0;
}

/* What is no dump is not copied: it may have no end. */
static int read_header(struct dump_input *in, uint8_t to[HEAPDUMP_HEADER_BYTES], struct err *e)
{
	size_t n = 0;
	unsigned version;

	while (n < HEAPDUMP_HEADER_BYTES) {
		ssize_t got;

		await_more(in, n);
		got = read(in->fd, to + n, HEAPDUMP_HEADER_BYTES - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, "reading");
		if (!got)
			break;
		n += (size_t)got;
	}
	return heapdump_header(to, n, &version, e);
}

/* Behind the header. Returns how much the copy has, or a negative errno. */
static int64_t copy(struct dump_input *in, int to, struct err *e)
{
	CLEANUP(freep) uint8_t *buf = malloc(COPY_BYTES);
	uint64_t copied = HEAPDUMP_HEADER_BYTES;

	if (!buf)
		return err_set(e, -ENOMEM, "no memory to copy with");
	for (;;) {
		ssize_t got;

		await_more(in, copied);
		got = read(in->fd, buf, COPY_BYTES);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, "reading at offset %llu", (unsigned long long)copied);
		if (!got)
			return (int64_t)copied;
		if (write_all(to, buf, (size_t)got))
			return no_room(spool_dir(), copied, e);
		copied += (uint64_t)got;
		tell_progress(copied, 0, in->began_ns);
	}
}

static int spool(struct dump_input *in, struct err *e)
{
	CLEANUP(closep) int fd = -1;
	uint8_t header[HEAPDUMP_HEADER_BYTES];
	int64_t n = read_header(in, header, e);

	if (n < 0)
		return (int)n;
	fd = spool_open(spool_dir(), e);
	if (fd < 0)
		return fd;
	n = write_all(fd, header, sizeof(header)) ? no_room(spool_dir(), 0, e) : copy(in, fd, e);
	tell_bar(0, 0);
	if (n < 0)
		return (int)n;
	close(in->fd);
	in->fd = TAKE_FD(fd);
	in->size = (uint64_t)n;
	return 0;
}

/* ---- opening ---- */

static int open_file(const char *file, struct err *e)
{
	int fd = !strcmp(file, "-") ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) :
				      open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? err_sys(e, "cannot open it") : fd;
}

/* A new pass begins where it goes back. */
static void tick(void *arg, uint64_t offset)
{
	struct dump_input *in = arg;

	if (offset < in->last && in->last - offset > in->size / 2)
		in->pass++;
	in->last = offset;
	if (!in->size)
		tell_stall(in, offset);
	if (in->pass >= in->passes)
		in->passes = in->pass + 1;
	tell_progress(in->size ? in->pass * in->size + offset : offset, in->passes * in->size,
		      in->began_ns);
}

int dump_input_open(struct dump_input *in, const char *file, unsigned passes, struct err *e)
{
	struct stat *st = &in->was;
	int ret;

	*in = (struct dump_input){ .name = strcmp(file, "-") ? file : "stdin", .passes = passes };
	in->began_ns = tell_clock_ns();
	in->fd = open_file(file, e);
	if (in->fd < 0)
		return in->fd;
	if (fstat(in->fd, st))
		return err_sys(e, "fstat");
	if (S_ISDIR(st->st_mode))
		return err_set(e, -EISDIR, "it is a directory, and no heap dump");
	if (S_ISREG(st->st_mode))
		in->size = (uint64_t)st->st_size;
	ret = !S_ISREG(st->st_mode) && passes > 1 ? spool(in, e) : 0;
	if (!ret && !in->size && !S_ISREG(st->st_mode))
		await_more(in, 0);
	if (!ret)
		ret = heapdump_open(in->fd, &in->dump, e);
	if (!ret)
		heapdump_watch(in->dump, tick, in);
	return ret;
}

void dump_input_fini(struct dump_input *in)
{
	tell_bar(0, 0);
	heapdump_freep(&in->dump);
	closep(&in->fd);
	*in = (struct dump_input){ .fd = -1 };
}

int dump_input_unchanged(const struct dump_input *in, struct err *e)
{
	const struct stat *was = &in->was;
	struct stat now;

	if (!S_ISREG(was->st_mode))
		return 0;
	if (fstat(in->fd, &now))
		return err_sys(e, "fstat");
	if (now.st_size == was->st_size && now.st_mtim.tv_sec == was->st_mtim.tv_sec &&
	    now.st_mtim.tv_nsec == was->st_mtim.tv_nsec)
		return 0;
	return err_set(e, -EIO,
		       "the dump changed while it was read: it had %lld bytes, and has %lld",
		       (long long)was->st_size, (long long)now.st_size);
}

bool dump_input_is(int fd, const char *path)
{
	struct stat a, b;

	return fd >= 0 && !fstat(fd, &a) && S_ISREG(a.st_mode) && !stat(path, &b) &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}
