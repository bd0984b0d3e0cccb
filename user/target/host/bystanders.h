/*
 * user/target/host/bystanders.h - how many other processes run the file that is probed.
 *
 * To put one probe in or out, the kernel visits each process that maps the file and takes its
 * mmap_lock for writing; until all are visited no process of the machine can fork (dup_mmap_sem).
 * So the work grows with their number. Source: register_for_each_vma() in kernel/events/uprobes.c,
 * Linux 5.8 to 6.18.
 *
 * Those whose executable it is are counted, with one statx() for each process in /proc. Those that
 * map it otherwise (a library) are not: finding them takes the maps of all processes.
 */
#ifndef TARGET_BYSTANDERS_H
#define TARGET_BYSTANDERS_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Zeroed at first. */
struct bystanders {
	/* Of the last count that came to its end: */
	bool known;
	size_t n;      /* other processes that run the file */
	size_t hidden; /* processes that we may not look at */
	/* private: the count that is under way (NULL: none), and when the next one is to begin */
	DIR *proc;
	size_t n_so_far, hidden_so_far;
	uint64_t next_ns;
};

/*
 * Counts processes other than @pid that run the file behind @fd, or goes on with that, for about
 * @most_ns; does nothing where the last count is recent. @proc: "/proc". It never waits for a
 * file server.
 */
void bystanders_look(struct bystanders *b, const char *proc, int fd, pid_t pid, uint64_t most_ns);
/* As far as known, also from a count that is under way. */
size_t bystanders_least(const struct bystanders *b);
/* Safe on a zeroed struct. */
void bystanders_fini(struct bystanders *b);

#endif
