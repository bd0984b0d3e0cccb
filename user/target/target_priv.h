/* user/target/target_priv.h - what the files of target/ share, and the tests look into. */
#ifndef TARGET_TARGET_PRIV_H
#define TARGET_TARGET_PRIV_H

#include <sys/stat.h>

#include "target/procfs.h"
#include "target/target.h"

/*
 * The directory /proc/PID of @t: its own, or, where it rests, one that is opened for the caller, who
 * closes *own (initially -1). -ESRCH when the process is gone.
 */
int target_dir(const struct target *t, int *own, struct err *e);
/* Is what runs behind @dir, the directory of the process @t, still what was opened? -ESRCH. */
int target_same(const struct target *t, int dir, struct err *e);

/* ---- awake targets (pool.c) ---- */

/* It is awake for other reasons, or not at all. */
void target_pool_leave(struct target *t);

/* ---- what a thread may do for us (by_worker.c), and what it is that it does then ---- */

struct target_job {
	struct worker_job job; /* first: cast back */
	struct target *t;
};

/* Not 0: @j is gone. -ETIMEDOUT: it is silent; -E2BIG: it has taken too long. */
int target_ask(struct target *t, struct target_job *j, struct err *e);
/* The end of worker_job.drop: frees the job, and the target where everybody else has left it. */
void target_drop(struct worker_job *j);
/* Has it not taken too long in all (LIMIT_ASKED_MS)? */
bool target_may_ask(const struct target *t);

/* What is open of a target that does not rest. */
struct target_files {
	int dir, mem, pages; /* its directory, and two files there; -1 */
};
#define TARGET_NO_FILES ((struct target_files){ -1, -1, -1 })

void target_files_close(struct target_files *f);
/* Of a target that rests. -ESRCH. */
int target_files(struct target *t, struct target_files *out, struct err *e);
int target_files_open(const struct target *t, struct target_files *out, struct err *e);

/* As procfs_read(). @name is constant where a worker reads. */
int target_read(struct target *t, const char *name, size_t max, char **text, size_t *len,
		struct err *e);
int target_read_here(struct target *t, const char *name, size_t max, char **text, size_t *len,
		     struct err *e);
/* -1 and errno. What lies on a foreign file system is copied if @is_go, which may be NULL, says yes to it; else it is refused. */
int target_open_here(struct target *t, const struct mapping *m, bool (*is_go)(int fd));
int target_open_by_worker(struct target *t, const struct mapping *m, bool (*is_go)(int fd));
int target_own_pages_here(struct target *t, const struct mapping *m, uint64_t **pages, size_t *n,
			  struct err *e);

/* ---- memproc: a process' memory ---- */

/* @pid, @proc_fd: borrowed for the call only. -EPERM names the capability. */
int memproc_new(pid_t pid, int proc_fd, struct mem **out, struct err *e);
void memproc_free(struct mem *m);
/* Closes its files: each read opens them, and makes sure of @t (borrowed, as long as @m). */
void memproc_rest(struct mem *m, struct target *t);
/* Awake: takes over that of the pages. Its memory's file is opened where that is needed, which is rare. */
void memproc_wake(struct mem *m, struct target_files *f);
/* A memory of @t that rests from the start. */
int memproc_resting(struct target *t, struct mem **out, struct err *e);
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

#endif
