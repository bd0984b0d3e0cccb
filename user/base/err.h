/*
 * user/base/err.h - why something did not work.
 *
 * A function that can fail returns 0 or more on success and a negative errno on
 * failure, and takes a struct err last. The place that finds the problem writes the
 * message once: what, where, what was found. Callers may put context in front of it.
 * Only cli/ prints.
 *
 * One meaning per code: -EBADMSG bytes contradict their format; -ENOTSUP well-formed
 * but unknown to us; -EFAULT an address of the target is not readable; -ESRCH the
 * process is gone or is another one now; -EPERM a privilege is missing (the message
 * names it); -ENOENT the thing asked for is not there; -E2BIG a limit of
 * base/limits.h was hit; -ENOMEM. Others pass through from the system.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <errno.h>

#include "base/banned.h"
#include "base/cleanup.h"

struct err {
	char msg[1024]; /* one sentence, no newline; "" until something failed */
};

/* Writes the message and returns @code (negative). @e may be NULL. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "context: " in front of the message and returns @code. @e may be NULL. */
int err_wrap(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* "what: strerror(errno)"; returns -errno. */
int err_sys(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
