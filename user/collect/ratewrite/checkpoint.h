/*
 * user/collect/ratewrite/checkpoint.h - readings before the end, for a target that may go.
 *
 * A program that ends takes its memory along, and it cannot be made to wait at that moment
 * without being stopped at every signal before. So what is read from memory is read when the
 * window begins and, for a command that we start, from time to time. The last reading is what
 * remains.
 */
#ifndef COLLECT_RATEWRITE_CHECKPOINT_H
#define COLLECT_RATEWRITE_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "profile/profile.h"
#include "subject/subject.h"

struct checkpoint {
	struct subject *s;
	/* Makes one reading, as a profile. */
	int (*read)(void *arg, struct prof **out, struct err *e);
	void *arg;
	struct prof *prof; /* the last reading; owned */
	int timer;	   /* says when to read again; -1: only at the start */
	/* when the window began, and when the last reading was made; monotonic */
	uint64_t start_ns, read_ns;
};

void checkpoint_init(struct checkpoint *a, struct subject *s,
		     int (*read)(void *arg, struct prof **out, struct err *e), void *arg);
void checkpoint_fini(struct checkpoint *a);

/* Makes the first reading; @again: more of them follow, when the timer says so. */
int checkpoint_start(struct checkpoint *a, bool again, struct err *e);

/*
 * To be called when the timer can be read. The pause between readings is at most a tenth of the
 * window's life, and readings take at most a tenth of our time: the first pause is 10 ms, later
 * ones a second, or more where reading takes long. When nothing can be read now, the last reading
 * is kept.
 */
int checkpoint_again(struct checkpoint *a, struct err *e);

/* Hands over what remains of a target that has gone, with a comment on how old it is. */
int checkpoint_hand_over(struct checkpoint *a, struct prof **out, struct err *e);

#endif
