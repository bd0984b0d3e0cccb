/*
 * user/target/host/exes.h - what all processes run, looked at once for several files: bystanders.h for many.
 *
 * A look takes a path walk in /proc for each process: for 20 files and 220 processes, some 50 ms of CPU time.
 */
#ifndef TARGET_EXES_H
#define TARGET_EXES_H

#include <dirent.h>

#include "base/vec.h"
#include "target/host/bystanders.h"

/* An executable, as far as processes of several overlay mounts run the same one. */
struct exe {
	uint64_t ino, size;
	int64_t mtime;
	uint32_t mtime_ns;
};

/* 0, or -1 and errno. It never waits for a file server. @flags: of statx(). */
int exe_of(int dir, const char *path, int flags, struct exe *out);
bool exe_same(const struct exe *a, const struct exe *b);
/* The process that has this name in /proc; 0: it is none. */
pid_t exe_pid(const char *name);

/* Zeroed at first. */
struct exes {
	VEC(struct exe) at; /* of the look that is under way, or of the last one */
	size_t hidden;	    /* processes that we may not look at */
	bool known;	    /* the last look came to its end */
	/* private: as in struct bystanders */
	DIR *proc;
	uint64_t next_ns;
};

/* As bystanders_look(), of all files. */
void exes_look(struct exes *x, const char *proc, uint64_t most_ns);
/* How many of them run the file behind @fd, as far as they were seen: *out, if that is more is known than before. */
void exes_count(const struct exes *x, int fd, struct bystanders *out);
void exes_fini(struct exes *x);

#endif
