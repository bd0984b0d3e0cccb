/*
 * user/target/write/holders.h - which processes hold the locks that claims are made of, and whether
 * they are such as could be a goprof-bpf (target/write/claim.h).
 *
 * The kernel does not tell who holds a lock of an open file description: fcntl() says pid -1. But
 * each descriptor's text in /proc/PID/fdinfo lists the locks of its description (Linux 4.1). All
 * of this text is hostile: most processes are strangers, and they choose how much they have open.
 */
#ifndef TARGET_HOLDERS_H
#define TARGET_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* What a process may do. User ids are as the reader of /proc sees them. */
struct rights {
	uint64_t real_uid, uid; /* uid: the effective one */
	uint64_t caps;		/* effective, bits of CAP_* */
	uint64_t userns;	/* inode of its user namespace; 0: not known */
};

/* Of the directory /proc/PID. -ESRCH: it is gone; -EPERM, -EBADMSG. */
int rights_read(int pid_dir, struct rights *out, struct err *e);

/*
 * May it write to @target, so that it could be a goprof-bpf? It is of the same user, or it has
 * CAP_SYS_PTRACE in the target's user namespace or in @our_userns, which is taken to be one that
 * holds the target's. A process whose real user is another one than its effective one is a program
 * with the set-user-id bit, whose descriptors may be those of whoever has started it: it may not.
 */
bool rights_suffice(const struct rights *of, const struct rights *target, uint64_t our_userns);

/* A read lock of an open file description. */
struct held {
	uint64_t start, len; /* len 0: to the end of the file */
	bool able;	     /* its holder's rights suffice */
};

struct holders_ask {
	int proc;	/* borrowed: the directory /proc, or one like it */
	uint64_t ino;	/* of the file, as fstat() tells it */
	int but_fd;	/* a descriptor of this process whose locks are not asked about */
	bool able_only; /* those whose rights do not suffice are not asked about either */
	/*
	 * Nor are those with another name whose descriptors we may not see; NULL: all are. Only for who may
	 * look at every process as far as capabilities go.
	 */
	const char *comm;
	struct rights target;
	uint64_t our_userns;
	uint64_t end_ns;    /* CLOCK_MONOTONIC: no longer than that */
	bool (*stop)(void); /* asked often, may be NULL */
	void (*found)(void *arg, const struct held *h);
	void *arg;
};

/*
 * Tells each lock of the file to found(). Returns whether the descriptors of all processes in
 * @proc that are asked about were looked at: none was refused, no bound (base/limits.h) was hit,
 * nobody has stopped it.
 */
bool holders_find(const struct holders_ask *ask);

/* ---- for tests and the fuzzer: text of /proc ---- */

/* The text of /proc/PID/status; sets all but userns. -EBADMSG. */
int rights_parse(const char *text, size_t len, struct rights *out, struct err *e);

/*
 * One line of /proc/PID/fdinfo/FD, without its end. False: it is not one of a read lock of an open
 * file description.
 */
bool held_parse(const char *line, size_t len, uint64_t *ino, struct held *out);

#endif
