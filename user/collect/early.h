/*
 * user/collect/early.h - readings before the end, of a target that may go.
 *
 * A program that ends takes its memory along, and nobody can be made to wait at that moment
 * without being stopped at every signal before it. So what is read from memory is read when the
 * window begins and, of a command that we start, from time to time; the last reading is what is
 * left.
 */
#ifndef COLLECT_EARLY_H
#define COLLECT_EARLY_H

#include <stdbool.h>
#include <stdint.h>

#include "collect/subject_priv.h"

struct early {
	struct subject *s;
	/* One reading as a profile. */
	int (*read)(void *arg, struct prof **out, struct err *e);
	void *arg;
	struct prof *prof;	    /* the last one; owned */
	int timer;		    /* to read again; -1: only at the start */
	uint64_t start_ns, read_ns; /* of the window, of the last reading; monotonic */
};

void early_init(struct early *a, struct subject *s,
		int (*read)(void *arg, struct prof **out, struct err *e), void *arg);
void early_fini(struct early *a);

/* The first reading; @again: more of them follow, when the timer says so. */
int early_start(struct early *a, bool again, struct err *e);

/*
 * To be called when the timer can be read. At most a tenth of the window's life, and of our
 * time, lies between readings: first 10 ms, later a second, more where reading takes long. What
 * cannot be read now stays as it was.
 */
int early_again(struct early *a, struct err *e);

/* What is left of a target that has gone, with a comment on how old it is. */
int early_hand_over(struct early *a, struct prof **out, struct err *e);

#endif
