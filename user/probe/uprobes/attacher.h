/*
 * user/probe/uprobes/attacher.h - a helper process that holds something for us, so that our death cannot come
 * in the middle of it.
 *
 * Uprobes are put into a target's code, and taken out of it, one by one in a system call. When
 * SIGKILL hits the caller meanwhile, the kernel gives up and leaves the rest where it is: "failed
 * to unregister, leaking uprobe" (uprobe_unregister_nosync() and get_user_pages_remote(), which
 * fails once a fatal signal is pending; seen on Linux 6.18). So a small process does both. It
 * is in a session of its own, blocks all signals and has nothing to do but wait for our word,
 * or for our end, which is the same to it. The kernel's OOM killer spares it, or at least takes us
 * first (base/sys/oom.h). When somebody kills it all the same, another one frees what it left behind
 * (uprobes_mend). Only SIGKILL to both at such a moment leaves something: breakpoints without a
 * handler, which cost time and change nothing, until `goprof-bpf heal` or the next profile.
 *
 * It is our executable once more (exec), and has nothing of our memory and of our descriptors but a
 * socket; what it is to hold, and the descriptors that this takes, come over that.
 */
#ifndef PROBE_UPROBES_ATTACHER_H
#define PROBE_UPROBES_ATTACHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/*
 * A process has a thread for each attacher, since windows last, the kernel takes its time, and no attacher may wait for another
 * one's. They die together: then each has been killed.
 */
struct attacher_process {
	pid_t pid;
	int sock;	  /* where attachers are asked for */
	size_t attachers; /* of ours, in it */
	bool left;	  /* one of them was not waited for */
	uint64_t dead_ns; /* when it was found that it was killed; 0: it was not */
	struct attacher_process *
		*of; /* where the next attacher finds it; NULL: it is for one alone */
};

struct attacher {
	pid_t pid;			  /* of its process; 0: there is none */
	struct attacher_process *process; /* private */
	int sock;
	int ready;    /* private: attacher_fd(); -1: nobody has asked for it */
	int timer;    /* private */
	int most_ms;  /* private */
	int late_ms;  /* private: for how long the answer has been overdue */
	bool exposed; /* the OOM killer may take it, after us */
	bool ending;  /* attacher_end() was called */
};

/*
 * What it does there. begin() may fail halfway; end() undoes all that was done. Each attacher has an @arg of its own, which is
 * this one until begin() sets it.
 */
struct attacher_job {
	int (*begin)(void **arg, struct err *e);
	void (*end)(void *arg);
	void *arg;
	/*
	 * Answers a question meanwhile: @n bytes at @ask, ATTACHER_WORDS at most and more than one, and
	 * @nfds descriptors that came along, ATTACHER_FDS at most, which it owns. The answer has
	 * ATTACHER_WORDS bytes of room; its length is returned. May be NULL.
	 */
	size_t (*serve)(void *arg, const void *ask, size_t n, const int *fds, size_t nfds,
			void *answer);
	/*
	 * Called before each wait for a question: does what is to be done when none comes.
	 * Returns for how many ms to wait until it is called again, -1 for ever. May be NULL.
	 */
	int (*idle)(void *arg);
};

enum { ATTACHER_WORDS = 2048, ATTACHER_FDS = 128 };

/*
 * To be called by main() before it does anything else, in every program that starts attachers: in a
 * process that attacher_start() made it does the job and exits. Elsewhere it just returns.
 */
void attacher_main(int argc, char **argv, const struct attacher_job *job);

/*
 * Starts an attacher in the process *@all, which is our own executable; NULL there: it is begun. *@all must outlive the attacher;
 * @all NULL: it has a process for itself.
 * An error of begin() is returned here. @most_ms: that an answer, and its end, may take; 0: LIMIT_ATTACHER_MS.
 */
int attacher_start(struct attacher *k, struct attacher_process **all, int most_ms, struct err *e);

/*
 * Asks one question; later reads its answer, when attacher_fd() is readable, which it is from
 * @due_ns (CLOCK_MONOTONIC; 0: never) on in any case. -ECHILD: the attacher is gone.
 *
 * Somebody may stop the attacher. While we wait for an answer, or for its end, it is woken up
 * (SIGCONT) once a second, and its process is killed when it has not answered for @most_ms: then it is as
 * if somebody else had killed that. From a second after we were asked to stop (base/loop/cancel.h) on, nobody
 * waits: -ECANCELED, after which only attacher_stop() may be called.
 */
int attacher_ask(struct attacher *k, const void *ask, size_t n, uint64_t due_ns, struct err *e);
/* The same, with descriptors, of which it gets copies: ATTACHER_FDS at most. */
int attacher_give(struct attacher *k, const void *ask, size_t n, const int *fds, size_t nfds,
		  struct err *e);
int attacher_answer(struct attacher *k, void *answer, size_t n, struct err *e);
/*
 * Where nobody wants to wait: when attacher_fd() is readable, is the answer there, or will it never come? When it is only
 * overdue, the attacher is treated as above, and attacher_fd() is readable again in a second.
 */
bool attacher_answered(struct attacher *k);
/* To be polled: an answer can be read, is overdue, or will never come. -1: there is none. */
int attacher_fd(struct attacher *k);

/*
 * Has it gone by itself? When that was found (CLOCK_MONOTONIC), which is of one attacher when it was of any in its process: whoever asks may
 * have waited meanwhile for another one to take its place. 0: it has not. To be asked while no answer is due.
 */
uint64_t attacher_dead(const struct attacher *k);

/* CPU time that a process of attachers has taken so far; NULL: none. What one that is gone took its maker has (getrusage()). */
uint64_t attacher_process_cpu_ns(const struct attacher_process *p);

/* Tells it to end, and does not wait for that: attacher_stop() does. Nothing may be asked any more. */
void attacher_end(struct attacher *k);
/*
 * On return it is no more, and neither is its process if it was the last one; end() has been called there; true: it was
 * killed, and perhaps in the middle of something. From a second after we were asked to stop on, it is not waited for: it calls
 * end() when it can, and exits by itself. Safe on a zeroed struct.
 */
bool attacher_stop(struct attacher *k);

#endif
