/* user/cli/input.c - opens files, and copies pipes. */
#include "cli/input.h"

#include <fcntl.h>
#include <poll.h>

#include "base/clock.h"
#include "base/sys/unnamed.h"
#include "cli/stop.h"
#include "cli/tell.h"
#include "ingest/stream.h"

enum { COPY_BYTES = 1 << 18 };

/* ---- a pipe that has nothing ---- */

void input_stands(struct input_stall *s, uint64_t offset)
{
	uint64_t now = now_ns();

	if (offset != s->offset || !s->since_ns) {
		s->offset = offset;
		s->since_ns = now;
		return;
	}
	if (s->told || now - s->since_ns < STREAM_STALLS_MS * 1000000ull)
		return;
	s->told = true;
	tell_bar(0, 0);
	tell("%s: nothing came for %d s, after %llu bytes: waiting for more", s->name,
	     STREAM_STALLS_MS / 1000, (unsigned long long)offset);
}

void input_await(struct input_stall *s, int fd, uint64_t offset)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	input_stands(s, offset);
	while (!stop_asked_ms() && !poll(&p, 1, STREAM_STALLS_MS))
		input_stands(s, offset);
}

/* ---- a pipe's copy ---- */

static int no_room(const char *what, const char *dir, uint64_t copied, struct err *e)
{
	char bytes[BYTES_TEXT];
	int ret = -errno;

	bytes_text(copied, bytes);
	if (ret == -ENOSPC || ret == -EDQUOT || ret == -EFBIG)
		return err_set(e, ret,
			       "no room in %s for the %s's copy after %s (%s): set TMPDIR to "
			       "a directory with more room, or give a file",
			       dir, what, bytes, strerror(-ret));
	return err_sys(e, "copying the %s to %s, after %s", what, dir, bytes);
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

static int read_header(int fd, const struct input_kind *kind, struct input_stall *stall,
		       uint8_t *to, size_t *n, struct err *e)
{
	*n = 0;
	while (*n < kind->header_bytes) {
		ssize_t got;

		input_await(stall, fd, *n);
		got = read(fd, to + *n, kind->header_bytes - *n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, "reading");
		if (!got)
			break;
		*n += (size_t)got;
	}
	return kind->check(to, *n, e);
}

/* Behind the header. Returns how much the copy has, or a negative errno. */
static int64_t copy(int from, int to, const struct input_kind *kind, struct input_stall *stall,
		    uint64_t began_ns, struct err *e)
{
	CLEANUP(freep) uint8_t *buf = malloc(COPY_BYTES);
	uint64_t copied = kind->header_bytes;

	if (!buf)
		return err_set(e, -ENOMEM, "no memory to copy with");
	for (;;) {
		ssize_t got;

		input_await(stall, from, copied);
		got = read(from, buf, COPY_BYTES);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_sys(e, "reading at offset %llu", (unsigned long long)copied);
		if (!got)
			return (int64_t)copied;
		if (write_all(to, buf, (size_t)got))
			return no_room(kind->what, unnamed_dir(), copied, e);
		copied += (uint64_t)got;
		tell_progress(copied, 0, began_ns);
	}
}

int input_spool(int *fd, const struct input_kind *kind, struct input_stall *stall,
		uint64_t began_ns, uint64_t *size, struct err *e)
{
	CLEANUP(closep) int to = -1;
	uint8_t header[INPUT_HEADER_MAX];
	size_t n;
	int64_t copied = read_header(*fd, kind, stall, header, &n, e);

	if (copied < 0)
		return (int)copied;
	to = unnamed_open(e);
	if (to < 0)
		return err_wrap(e, to, "a %s from a pipe is copied first", kind->what);
	copied = write_all(to, header, n) ? no_room(kind->what, unnamed_dir(), 0, e) :
					    copy(*fd, to, kind, stall, began_ns, e);
	tell_bar(0, 0);
	if (copied < 0)
		return (int)copied;
	close(*fd);
	*fd = TAKE_FD(to);
	*size = (uint64_t)copied;
	return 0;
}

int input_open(const char *file, const struct input_kind *kind, struct stat *was, struct err *e)
{
	CLEANUP(closep)
	int fd = !strcmp(file, "-") ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) :
				      open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return err_sys(e, "cannot open it");
	if (fstat(fd, was))
		return err_sys(e, "fstat");
	if (S_ISDIR(was->st_mode))
		return err_set(e, -EISDIR, "it is a directory, and no %s", kind->named);
	return TAKE_FD(fd);
}

int input_unchanged(int fd, const struct input_kind *kind, const struct stat *was, struct err *e)
{
	struct stat now;

	if (!S_ISREG(was->st_mode))
		return 0;
	if (fstat(fd, &now))
		return err_sys(e, "fstat");
	if (now.st_size == was->st_size && now.st_mtim.tv_sec == was->st_mtim.tv_sec &&
	    now.st_mtim.tv_nsec == was->st_mtim.tv_nsec)
		return 0;
	return err_set(e, -EIO, "the %s changed while it was read: it had %lld bytes, and has %lld",
		       kind->what, (long long)was->st_size, (long long)now.st_size);
}

bool input_is(int fd, const char *path)
{
	struct stat a, b;

	return fd >= 0 && !fstat(fd, &a) && S_ISREG(a.st_mode) && !stat(path, &b) &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}
