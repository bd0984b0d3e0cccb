/*
 * user/target/target.h - one process we look at. Never stopped, never written.
 *
 * Held by pidfd and start time, so that a reused pid is not mistaken for it, and by an
 * open descriptor of its executable (/proc/PID/exe), which stays good when the file is
 * deleted or replaced. Reached through /proc/PID, so its mount namespace does not matter.
 */
#ifndef TARGET_TARGET_H
#define TARGET_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/loop/worker.h"

struct mapping {
	uint64_t start, end; /* [start, end) */
	uint64_t offset;     /* in the file */
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	bool read, write, exec;
	bool deleted;	  /* the kernel's " (deleted)" was cut off the name */
	const char *name; /* unescaped path, "[vdso]", or ""; borrowed from the list */
};

struct maps {
	struct mapping *at;
	size_t n;
	char *names; /* owned */
};

/* Parse the text of /proc/PID/maps. Hostile: names are the other process' choice. */
int maps_parse(const char *text, size_t len, struct maps *out, struct err *e);
void maps_fini(struct maps *m);
/* The mapping that holds @addr, or NULL. */
const struct mapping *maps_find(const struct maps *m, uint64_t addr);

/* What tells a file apart from others, and from a later one that has its inode. */
struct file_id {
	uint64_t dev, ino, size;
	int64_t mtime_ns;
};

struct stat;
struct file_id file_id_of(const struct stat *st);

/* At most so many files of a process' mappings are opened in advance. */
enum { TARGET_LIBS = 16 };

struct target_lib {
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	int fd;
};

struct target {
	pid_t pid;
	int pidfd;
	int exe_fd; /* -1 when it rests */
	struct file_id exe_id;
	char comm[16];	    /* printable ASCII; anything else became '_' */
	char exe[4096];	    /* the link's text without " (deleted)" */
	bool exe_deleted;   /* deleted or replaced on disk since it was started */
	struct maps maps;   /* as of target_open or the last target_maps */
	bool became;	    /* target_alive() has seen that it is another program now, by exec */
	uint64_t bias;	    /* live address = link-time address + bias, of the main executable */
	struct mem *mem;    /* the process' memory, live; owned */
	uint64_t opened_ns; /* monotonic: what called exec by then was seen */
	uint64_t
		exec_ns; /* monotonic: somebody saw its exec then; 0: it ran before anybody watched. Its owner sets it */

	int proc_fd; /* private: the directory /proc/PID of this very process; -1 once it has rested */
	uint64_t start_ticks; /* private: identity */
	uint64_t start_stack; /* mm.start_stack; changes on exec */
	bool resting;	      /* private: nothing else is open */
	/* private: the only files of its mappings that may be opened; as long as libs_only is set */
	struct target_lib libs[TARGET_LIBS];
	size_t nlibs;
	bool libs_only;
	bool had_exe; /* private: while it is handed over */
	/* private: its executable lies on a disk of this machine, whose pages always come */
	bool exe_local;
	/*
	 * target_by_worker(): what asks its memory and its files; borrowed; NULL: whoever asks waits himself. silent: they did not
	 * answer, and are not asked any more
	 */
	struct worker **worker;
	bool silent;
	struct target_pool *pool; /* private: target_in_pool() */
	uint64_t asked_ns;	  /* private: how long that took in all */
	uint64_t answered_ns;	  /* private: when its memory did so last, asked by the thread */
	unsigned
		refs; /* private: who frees it last: 0: its owner alone; one more for each that was left behind */
};

/*
 * -ESRCH: "no process with pid N". -EPERM: the message says which capability is missing.
 * A kernel thread, a zombie, or the id of a thread that is no process: -ENOENT, said so.
 * The process may exit or exec at any moment of this: -ESRCH, or the new program.
 */
int target_open(pid_t pid, struct target **out, struct err *e);
void target_free(struct target *t);
DEFINE_FREEP(struct target, target)

/*
 * Closes all that is open of @t but its pidfd. From now on each question about it opens what it needs
 * and closes it again, and its memory is read only where it is in memory or swapped out, or is its executable's
 * on a disk of this machine: a page that others (a file system, userfaultfd) would have to bring is -EFAULT, so
 * that no read waits for them. Its executable cannot be asked for any more, and it cannot be written to.
 *
 * An exec is noticed by the place of the stack, which the kernel chooses anew (ASLR). Where that is
 * switched off, only whoever hears of execs knows.
 */
void target_rest(struct target *t);
/* For many reads of its memory: opens what they need, until target_rest(). They wait for nobody all the same. -ESRCH. */
int target_wake(struct target *t, struct err *e);

/*
 * Of targets that are read now and then a few are awake: each has one descriptor more than at rest. Where more than these are asked in
 * turn, those that were there first stay, since whoever was asked last is the last to be asked again; one that was not asked while
 * TARGET_AWAKE_STALE others were is the first to go.
 */
enum { TARGET_AWAKE_MAX = 12, TARGET_AWAKE_STALE = 4 * TARGET_AWAKE_MAX };
struct target_pool {
	struct target
		*at[TARGET_AWAKE_MAX];	 /* borrowed; the one that was asked last is the first */
	uint64_t when[TARGET_AWAKE_MAX]; /* in asks of all */
	size_t n;
	uint64_t asks;
};
/* @p outlives @t. */
void target_in_pool(struct target *t, struct target_pool *p);
/* It may soon be asked again: it stays awake as long as its pool has room for it; where it is in none it rests. */
void target_linger(struct target *t);

/*
 * From now on a thread asks its memory and files, and is left behind where they do not answer: -ETIMEDOUT, then and ever after
 * (silent). What takes too long in all is -E2BIG. For a target that rests. @w: base/loop/worker.h; several targets may have one.
 */
void target_by_worker(struct target *t, struct worker **w);
/* 0; -ESRCH: "exited" or "became another program (exec)". Cheap enough to call each 100 ms. */
int target_alive(struct target *t, struct err *e);

/* It is there, dead or alive: up to now its number cannot have been given to another process. */
bool target_has_number(const struct target *t);

/*
 * Opens a file that the target has mapped (@m borrowed from its maps) for reading, through the
 * target's own root directory, and proves that it is that file. -ENOENT: it can no longer be
 * reached.
 */
int target_open_mapped(struct target *t, const struct mapping *m, int *fd, struct err *e);

/*
 * The same for a file that @is_go says yes to; others are -ENOENT. By a worker what lies on a file system that may not answer
 * comes as a copy, and target_open_mapped() refuses it.
 */
int target_open_lib(struct target *t, const struct mapping *m, bool (*is_go)(int fd), int *fd,
		    struct err *e);

/* How far from its link-time addresses the file behind @fd was loaded. -EBADMSG, -ENOENT. */
int target_bias(const struct target *t, int fd, const char *name, uint64_t *bias, struct err *e);

/* The first mapping of code from the executable; NULL when it has gone. */
const struct mapping *target_exe_mapping(const struct target *t);

/*
 * The pages of @m, a file that is mapped, which the process has of its own: somebody has written
 * there since. Ascending addresses; caller frees *pages. -E2BIG: it is huge (LIMIT_TEXT_PAGES).
 */
int target_own_pages(struct target *t, const struct mapping *m, uint64_t **pages, size_t *n,
		     struct err *e);

/* Who traces it (a debugger), or one of its threads; 0: nobody. */
int target_tracer(struct target *t, pid_t *tracer, struct err *e);

/* When the process began, in unix seconds; 0: not known. */
int64_t target_started(const struct target *t);

/*
 * The path of its cgroup: of the unified hierarchy, else of the first one that /proc/PID/cgroup has.
 * Foreign bytes; "" when it cannot be read.
 */
void target_cgroup(const struct target *t, char *buf, size_t cap);

/* Reads the maps again (because a plugin was loaded, or to look for the vdso). */
int target_maps(struct target *t, struct err *e);
/*
 * Reads the maps as they are now into *out, for maps_fini(). They change while the kernel writes
 * them: from Linux 6.17 on, it holds one region at a time and not all of them
 * (fs/proc/task_mmu.c), so that two may overlap. Then they are read again.
 */
int target_maps_now(struct target *t, struct maps *out, struct err *e);

/* Thread ids now, ascending; caller frees *tids. Bounded by LIMIT_THREADS. */
int target_threads(struct target *t, pid_t **tids, size_t *n, struct err *e);

/*
 * User plus system CPU time that the kernel charged to the whole process, in ns (at a resolution
 * of 10 ms).
 */
int target_cpu_ns(struct target *t, uint64_t *ns, struct err *e);

#endif
