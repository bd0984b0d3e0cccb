/* user/target/procfs.h - the text of /proc/PID, read whole and parsed without trust. */
#ifndef TARGET_PROCFS_H
#define TARGET_PROCFS_H

#include <dirent.h>
#include <sys/types.h>

#include "base/cur.h"
#include "base/err.h"

/* ---- text: numbers and single characters in the text of /proc files, through a cursor ---- */

/* At least one digit, no sign, no overflow; stops at the first byte that is no digit. */
bool text_u64(struct cur *c, const char *what, unsigned base, uint64_t *out);
/* The next byte is @want, and is consumed. */
bool text_char(struct cur *c, const char *what, char want);

static inline void closedirp(DIR **d)
{
	if (*d)
		closedir(*d);
}

/* ---- procfs: files of one process, through a descriptor of its directory ---- */

/*
 * The whole file, at most @max bytes; NUL-terminated after *len; caller frees.
 * -ESRCH when the process is gone, -EPERM when it may not be read, -E2BIG.
 */
int procfs_read(int proc_fd, const char *name, size_t max, char **text, size_t *len, struct err *e);

/* The fields of /proc/PID/stat that we need. */
struct procstat {
	char state;	/* 'R', 'S', 'Z', ... */
	uint64_t flags; /* PF_* */
	uint64_t utime_ticks, stime_ticks;
	uint64_t start_ticks; /* since boot */
	uint64_t start_code;  /* 0: nothing is loaded yet; 1: we are not allowed to know */
	uint64_t start_stack; /* 0: there is no memory any more, or we are not allowed to know */
};

enum { PROCSTAT_KTHREAD = 0x00200000 }; /* PF_KTHREAD, include/linux/sched.h, since 2.6.27 */

/* -EBADMSG when it is not such a line. The command's name in it may hold anything. */
int procstat_parse(const char *text, size_t len, struct procstat *out, struct err *e);

/* Value of "Tgid:" or "TracerPid:" in the text of /proc/PID/status. */
int procstatus_tgid(const char *text, size_t len, pid_t *tgid, struct err *e);
int procstatus_tracer(const char *text, size_t len, pid_t *tracer, struct err *e);

/* Replaces what could move a terminal's cursor or end a line: all but printable ASCII. */
void text_clean(char *s);

/* "pid N: not allowed to @what: ..." with the capability and Yama's setting; -EPERM. */
int denied(pid_t pid, const char *what, struct err *e);

#endif
