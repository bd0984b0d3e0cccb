/* user/target/procfs.c - the text of /proc/PID, read whole and parsed without trust. */
#include <fcntl.h>

#include "target/target_priv.h"

static unsigned digit_of(uint8_t b)
{
	if (b >= '0' && b <= '9')
		return b - '0';
	if (b >= 'a' && b <= 'f')
		return b - 'a' + 10u;
	return 255;
}

bool text_u64(struct cur *c, const char *what, unsigned base, uint64_t *out)
{
	size_t from = c->off;
	uint64_t v = 0;

	while (!c->bad && cur_left(c)) {
		unsigned d = digit_of(c->buf[c->off]);

		if (d >= base)
			break;
		if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)d, &v))
			c->bad = what;
		c->off++;
	}
	if (c->off == from && !c->bad)
		c->bad = what;
	if (c->bad)
		return false;
	*out = v;
	return true;
}

bool text_char(struct cur *c, const char *what, char want)
{
	const uint8_t *p;

	if (!cur_take(c, what, 1, &p))
		return false;
	if (*p != (uint8_t)want) {
		c->off--;
		c->bad = what;
		return false;
	}
	return true;
}

void text_clean(char *s)
{
	for (; *s; s++)
		if (*s < ' ' || *s > '~')
			*s = '_';
}

/* Everything from @fd into a growing buffer with a NUL behind it. */
static int slurp(int fd, const char *name, size_t max, char **text, size_t *len, struct err *e)
{
	CLEANUP(freep) char *buf = NULL;
	size_t n = 0, cap = 0;

	for (;;) {
		ssize_t got;

		if (cap - n < 2) {
			char *more = n > max ? NULL : realloc(buf, cap ? cap * 2 : 4096);

			if (n > max)
				return err_set(e, -E2BIG, "%s is longer than %zu bytes", name, max);
			if (!more)
				return err_set(e, -ENOMEM, "no memory for %s", name);
			buf = more;
			cap = cap ? cap * 2 : 4096;
		}
		got = read(fd, buf + n, cap - n - 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && errno == ESRCH)
			return err_set(e, -ESRCH, "the process has exited");
		if (got < 0)
			return err_sys(e, "cannot read %s", name);
		if (got == 0)
			break;
		n += (size_t)got;
	}
	buf[n] = 0;
	*len = n;
	*text = TAKE(buf);
	return 0;
}

int procfs_read(int proc_fd, const char *name, size_t max, char **text, size_t *len, struct err *e)
{
	CLEANUP(closep) int fd = openat(proc_fd, name, O_RDONLY | O_CLOEXEC);

	if (fd < 0 && (errno == ENOENT || errno == ESRCH))
		return err_set(e, -ESRCH, "the process has exited");
	if (fd < 0 && (errno == EACCES || errno == EPERM))
		return err_set(e, -EPERM, "not allowed to read %s", name);
	if (fd < 0)
		return err_sys(e, "cannot open %s", name);
	return slurp(fd, name, max, text, len, e);
}

/* Skips one field, which may be negative. */
static bool skip_field(struct cur *c, const char *what)
{
	uint64_t v;

	if (cur_left(c) && c->buf[c->off] == '-')
		c->off++;
	return text_u64(c, what, 10, &v) && text_char(c, what, ' ');
}

/*
 * "PID (COMM) STATE PPID ...". COMM is the process' own choice and may hold blanks and
 * parentheses; no later field can hold one, so the last ')' ends it.
 * Source: do_task_stat() in fs/proc/array.c; fields counted from 1 as in proc(5).
 */
int procstat_parse(const char *text, size_t len, struct procstat *out, struct err *e)
{
	const char *paren = len ? memrchr(text, ')', len) : NULL;
	struct cur c = cur_of("stat", text, len);
	struct procstat st = { 0 };
	const uint8_t *state;

	if (!paren)
		return err_set(e, -EBADMSG, "stat has no command name in its %zu bytes", len);
	cur_seek(&c, "state", (size_t)(paren - text) + 1);
	if (!text_char(&c, "state", ' ') || !cur_take(&c, "state", 1, &state) ||
	    !text_char(&c, "state", ' '))
		return cur_fail(&c, e);
	st.state = (char)*state;

	for (unsigned field = 4; field <= 28; field++) {
		uint64_t *want = field == 9  ? &st.flags :
				 field == 14 ? &st.utime_ticks :
				 field == 15 ? &st.stime_ticks :
				 field == 22 ? &st.start_ticks :
				 field == 26 ? &st.start_code :
				 field == 28 ? &st.start_stack :
					       NULL;
		bool ok = want ? text_u64(&c, "a field of 28", 10, want) &&
					  text_char(&c, "a field of 28", ' ') :
				 skip_field(&c, "a field of 28");

		if (!ok)
			return cur_fail(&c, e);
	}
	*out = st;
	return 0;
}

/* The name in the first line cannot imitate a key, because the kernel escapes newlines in it. */
static int status_pid(const char *text, size_t len, const char *key, pid_t *out, struct err *e)
{
	const char *at = memmem(text, len, key, strlen(key));
	struct cur c = cur_of("status", text, len);
	uint64_t v;

	if (!at)
		return err_set(e, -EBADMSG, "status has no %s in its %zu bytes", key + 1, len);
	cur_seek(&c, key + 1, (size_t)(at - text) + strlen(key));
	if (!text_u64(&c, key + 1, 10, &v) || !text_char(&c, key + 1, '\n'))
		return cur_fail(&c, e);
	if (v > INT32_MAX)
		return err_set(e, -EBADMSG, "status says %s %llu", key + 1, (unsigned long long)v);
	*out = (pid_t)v;
	return 0;
}

int procstatus_tgid(const char *text, size_t len, pid_t *tgid, struct err *e)
{
	return status_pid(text, len, "\nTgid:\t", tgid, e);
}

int procstatus_tracer(const char *text, size_t len, pid_t *tracer, struct err *e)
{
	return status_pid(text, len, "\nTracerPid:\t", tracer, e);
}
