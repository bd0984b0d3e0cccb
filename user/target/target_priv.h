/* user/target/target_priv.h - what the files of target/ share, and the tests look into. */
#ifndef TARGET_TARGET_PRIV_H
#define TARGET_TARGET_PRIV_H

#include <dirent.h>
#include <sys/stat.h>

#include "base/cur.h"
#include "target/target.h"

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

/*
 * The directory /proc/PID of @t: its own, or, where it rests, one that is opened for the caller, who
 * closes *own (initially -1). -ESRCH when the process is gone.
 */
int target_dir(const struct target *t, int *own, struct err *e);
/* Is what runs behind @dir, the directory of the process @t, still what was opened? -ESRCH. */
int target_same(const struct target *t, int dir, struct err *e);

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

/* ---- maps ---- */

/*
 * Reads the maps as they are now into *out, for maps_fini(). They change while the kernel writes
 * them: from Linux 6.17 on, it holds one region at a time and not all of them
 * (fs/proc/task_mmu.c), so that two may overlap. Then they are read again.
 */
int target_maps_now(struct target *t, struct maps *out, struct err *e);

/* ---- memproc: a process' memory ---- */

/* @pid, @proc_fd: borrowed for the call only. -EPERM names the capability. */
int memproc_new(pid_t pid, int proc_fd, struct mem **out, struct err *e);
void memproc_free(struct mem *m);
/* Closes its files: each read opens them, and makes sure of @t (borrowed, as long as @m). */
void memproc_rest(struct mem *m, const struct target *t);
/* Opens them again, for good. */
void memproc_wake(struct mem *m, int proc_fd);
/* A memory of @t that rests from the start. */
int memproc_resting(const struct target *t, struct mem **out, struct err *e);
/* False when the memory that was opened exists no more: the process exited or called exec. */
bool memproc_alive(const struct mem *m);

/* ---- bias ---- */

/*
 * Where the kernel put the executable: from its first executable segment and the mapping
 * of the same file that holds it. 0 for ET_EXEC and for what is not a 64-bit ELF file
 * (which others will refuse with better words). -EBADMSG, -ENOENT.
 */
int bias_find(int exe_fd, const char *exe, const struct maps *m, uint64_t *bias, struct err *e);

/* The first mapping of code from the file @st, or else of that name; NULL for none. */
const struct mapping *file_mapping(const struct maps *m, const struct stat *st, const char *name);

/* "pid N: not allowed to @what: ..." with the capability and Yama's setting; -EPERM. */
int denied(pid_t pid, const char *what, struct err *e);

#endif
