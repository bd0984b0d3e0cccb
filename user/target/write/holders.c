/* user/target/write/holders.c - /proc/PID/fdinfo of all processes, for locks on one file. */
#include "target/write/holders.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <time.h>

#include "base/clock.h"
#include "base/limits.h"
#include "target/procfs.h"

enum { STATUS_MAX = 65536, TEXT_MAX = 64 };

/* ---- text ---- */

/* The cursor behind "\n@key", or at the end of a text without it. */
static struct cur behind(const char *text, size_t len, const char *key)
{
	const char *at = memmem(text, len, key, strlen(key));
	struct cur c = cur_of("status", text, len);

	cur_seek(&c, key + 1, at ? (size_t)(at - text) + strlen(key) : len);
	return c;
}

/*
 * The name in the first line cannot imitate a key, because the kernel escapes newlines in it.
 * Source: proc_pid_status() in fs/proc/array.c.
 */
int rights_parse(const char *text, size_t len, struct rights *out, struct err *e)
{
	struct cur uid = behind(text, len, "\nUid:\t"), caps = behind(text, len, "\nCapEff:\t");
	struct rights r = { 0 };

	if (!text_u64(&uid, "Uid", 10, &r.real_uid) || !text_char(&uid, "Uid", '\t') ||
	    !text_u64(&uid, "Uid", 10, &r.uid) || !text_char(&uid, "Uid", '\t'))
		return cur_fail(&uid, e);
	if (!text_u64(&caps, "CapEff", 16, &r.caps) || !text_char(&caps, "CapEff", '\n'))
		return cur_fail(&caps, e);
	*out = r;
	return 0;
}

/* A blank in @word stands for one or more, because the columns are padded, on some kernels more. */
static bool text_word(struct cur *c, const char *word)
{
	for (; *word; word++) {
		if (!text_char(c, "lock", *word))
			return false;
		while (*word == ' ' && cur_left(c) && c->buf[c->off] == ' ')
			c->off++;
	}
	return true;
}

/*
 * "lock:\t1: OFDLCK ADVISORY  READ -1 00:05:4711 4611686018427387904 EOF": its number, device and
 * inode, first and last byte. The device is not compared: a file system may show another one here
 * than in stat() (btrfs). Source: lock_get_status() in fs/locks.c, Linux 5.15 to 6.18.
 */
bool held_parse(const char *line, size_t len, uint64_t *ino, struct held *out)
{
	struct cur c = cur_of("fdinfo", line, len);
	struct held h = { 0 };
	uint64_t v, end;

	if (!text_word(&c, "lock:\t") || !text_u64(&c, "number", 10, &v) ||
	    !text_word(&c, ": OFDLCK ADVISORY READ -1 ") || !text_u64(&c, "major", 16, &v) ||
	    !text_word(&c, ":") || !text_u64(&c, "minor", 16, &v) || !text_word(&c, ":") ||
	    !text_u64(&c, "inode", 10, ino) || !text_word(&c, " ") ||
	    !text_u64(&c, "start", 10, &h.start) || !text_word(&c, " "))
		return false;
	if (cur_left(&c) == 3 && text_word(&c, "EOF")) {
		*out = h;
		return true;
	}
	if (!text_u64(&c, "end", 10, &end) || cur_left(&c) || end < h.start || end > INT64_MAX)
		return false;
	h.len = end - h.start + 1;
	*out = h;
	return true;
}

/* ---- rights ---- */

/* The number in a link such as "user:[4026531837]"; 0: not known. */
static uint64_t userns_of(int pid_dir)
{
	char text[TEXT_MAX];
	ssize_t n = readlinkat(pid_dir, "ns/user", text, sizeof(text));
	struct cur c = cur_of("ns/user", text, n > 0 ? (size_t)n : 0);
	uint64_t v;

	return text_word(&c, "user:[") && text_u64(&c, "inode", 10, &v) && text_word(&c, "]") ? v :
												0;
}

int rights_read(int pid_dir, struct rights *out, struct err *e)
{
	CLEANUP(freep) char *text = NULL;
	size_t len;
	int ret = procfs_read(pid_dir, "status", STATUS_MAX, &text, &len, e);

	if (!ret)
		ret = rights_parse(text, len, out, e);
	if (!ret)
		out->userns = userns_of(pid_dir);
	return ret;
}

bool rights_suffice(const struct rights *of, const struct rights *target, uint64_t our_userns)
{
	bool may_trace = of->caps >> CAP_SYS_PTRACE & 1;

	if (of->real_uid != of->uid)
		return false;
	if (of->uid == target->real_uid)
		return true;
	/* Anybody can have all capabilities in a user namespace that he has made. */
	return may_trace &&
	       (!of->userns || of->userns == target->userns || of->userns == our_userns);
}

/* ---- the look through all processes ---- */

struct search {
	const struct holders_ask *ask;
	uint64_t self; /* our number in ask->proc */
	uint64_t files;
	bool whole; /* nothing was left out so far */
	bool over;  /* it ends here */
};

/* To be asked before each file. */
static bool ends_here(struct search *s)
{
	if (++s->files > LIMIT_HOLDERS_FILES || now_ns() >= s->ask->end_ns ||
	    (s->ask->stop && s->ask->stop()))
		s->over = true;
	if (s->over)
		s->whole = false;
	return s->over;
}

/* The inode in the first lines of an fdinfo (Linux 5.14); false: it is not told. */
static bool is_other_file(int fdinfo, const char *name, uint64_t ino)
{
	CLEANUP(closep) int fd = openat(fdinfo, name, O_RDONLY | O_CLOEXEC);
	char text[256];
	ssize_t n = fd >= 0 ? read(fd, text, sizeof(text)) : -1;
	struct cur c = behind(text, n > 0 ? (size_t)n : 0, "\nino:\t");
	uint64_t v;

	return text_u64(&c, "ino", 10, &v) && text_char(&c, "ino", '\n') && v != ino;
}

/*
 * What is gone holds nothing; what cannot be read may. A process or a descriptor is gone by ENOENT
 * when it is opened, and by ESRCH when it ends after that.
 */
static void missed(struct search *s, int why)
{
	if (why != -ESRCH && why != -ENOENT)
		s->whole = false;
}

static bool number_of(const char *name, uint64_t *v)
{
	struct cur c = cur_of("name", name, strlen(name));

	return text_u64(&c, "number", 10, v) && !cur_left(&c);
}

static void look_at_fd(struct search *s, int fdinfo, const char *name, bool able)
{
	CLEANUP(freep) char *text = NULL;
	char *line, *rest;
	size_t len;
	int ret = procfs_read(fdinfo, name, LIMIT_FDINFO, &text, &len, NULL);

	/* An epoll or inotify descriptor lists all that it watches, which is as much as somebody likes. */
	if (ret == -E2BIG && is_other_file(fdinfo, name, s->ask->ino))
		return;
	if (ret) {
		missed(s, ret);
		return;
	}
	for (line = rest = text; rest; line = rest) {
		struct held h;
		uint64_t ino;

		rest = memchr(line, '\n', len - (size_t)(line - text));
		if (rest)
			*rest++ = 0;
		if (!held_parse(line, strlen(line), &ino, &h) || ino != s->ask->ino)
			continue;
		h.able = able;
		s->ask->found(s->ask->arg, &h);
	}
}

/* As readdir(); the directories of processes end while they are read. */
static const char *next_name(struct search *s, DIR *d)
{
	struct dirent *de;

	errno = 0;
	de = readdir(d);
	if (!de && errno)
		missed(s, -errno);
	return de ? de->d_name : NULL;
}

static DIR *open_dir(struct search *s, int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

	if (d)
		return d;
	missed(s, -errno);
	closep(&fd);
	return NULL;
}

static bool is_named(int pid_dir, const char *name)
{
	CLEANUP(freep) char *text = NULL;
	size_t len;

	return procfs_read(pid_dir, "comm", TEXT_MAX, &text, &len, NULL) ||
	       (len == strlen(name) + 1 && !strncmp(text, name, len - 1));
}

/*
 * A security module may refuse a process to everybody, whatever their capabilities: one that
 * protects itself, for example. Were it always counted, then one such process would make every lock
 * of this machine count whose holder is not found.
 */
static DIR *open_fdinfo(struct search *s, int pid_dir)
{
	int fd = openat(pid_dir, "fdinfo", O_RDONLY | O_DIRECTORY | O_CLOEXEC), why = errno;
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

	if (d)
		return d;
	if (fd >= 0)
		why = ENOMEM;
	closep(&fd);
	if ((why == EACCES || why == EPERM) && s->ask->comm && !is_named(pid_dir, s->ask->comm))
		return NULL;
	missed(s, -why);
	return NULL;
}

static void look_at_process(struct search *s, const char *name, uint64_t number)
{
	CLEANUP(closep) int dir = openat(s->ask->proc, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	CLEANUP(closedirp) DIR *fdinfo = NULL;
	struct rights r = { 0 };
	const char *fd;
	bool able;
	int ret;

	if (dir < 0) {
		missed(s, -errno);
		return;
	}
	ret = rights_read(dir, &r, NULL);
	if (ret) {
		missed(s, ret);
		return;
	}
	able = rights_suffice(&r, &s->ask->target, s->ask->our_userns);
	if (!able && s->ask->able_only)
		return;
	fdinfo = open_fdinfo(s, dir);
	while (fdinfo && (fd = next_name(s, fdinfo)) != NULL && !ends_here(s)) {
		uint64_t v;

		if (number_of(fd, &v) && (number != s->self || v != (uint64_t)s->ask->but_fd))
			look_at_fd(s, dirfd(fdinfo), fd, able);
	}
}

static uint64_t self_in(int proc)
{
	char text[TEXT_MAX];
	ssize_t n = readlinkat(proc, "self", text, sizeof(text) - 1);
	uint64_t v;

	if (n <= 0)
		return 0;
	text[n] = 0;
	return number_of(text, &v) ? v : 0;
}

bool holders_find(const struct holders_ask *ask)
{
	struct search s = { .ask = ask, .self = self_in(ask->proc), .whole = true };
	CLEANUP(closedirp) DIR *proc = open_dir(&s, ask->proc, ".");
	const char *name;
	uint64_t number;

	if (!proc || !s.self)
		return false;
	while ((name = next_name(&s, proc)) != NULL && !ends_here(&s))
		if (number_of(name, &number))
			look_at_process(&s, name, number);
	return s.whole;
}
