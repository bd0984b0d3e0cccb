/* user/base/err.c - the one place that formats error messages. */
#include "base/err.h"

#include <stdarg.h>

int err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	if (!e)
		return code;
	va_start(ap, fmt);
	vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	va_end(ap);
	return code;
}

int err_wrap(struct err *e, int code, const char *fmt, ...)
{
	char prefix[sizeof(e->msg)];
	size_t have, room, n;
	va_list ap;

	if (!e)
		return code;
	va_start(ap, fmt);
	vsnprintf(prefix, sizeof(prefix) - 2, fmt, ap);
	va_end(ap);
	n = strlen(prefix);
	memcpy(prefix + n, ": ", 2);
	n += 2;

	/* What does not fit is cut off at the end: the prefix says where to look. */
	room = sizeof(e->msg) - 1 - n;
	have = strnlen(e->msg, room);
	memmove(e->msg + n, e->msg, have);
	memcpy(e->msg, prefix, n);
	e->msg[n + have] = 0;
	return code;
}

int err_sys(struct err *e, const char *fmt, ...)
{
	int code = errno ? -errno : -EIO;
	char what[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return err_set(e, code, "%s: %s", what, strerror(-code));
}
