/*
 * user/ingest/exectrace/v2/cursor2.h - the events of one thread in a generation of version 2, in their order.
 */
#ifndef INGEST_EXECTRACE_V2_CURSOR2_H
#define INGEST_EXECTRACE_V2_CURSOR2_H

#include "ingest/exectrace/v2/generation.h"
#include "ingest/exectrace/v2/order.h"

/* Where all threads' events are. */
struct source2 {
	int fd;		    /* borrowed */
	double ns_per_tick; /* of the present generation */
	uint8_t arguments
		[256]; /* of each kind of event, behind the time stamp; 0xff: there is none */
};

/* A thread whose next event is known. */
struct cursor2 {
	const struct source2 *from;  /* borrowed, as */
	const struct gen_thread *of; /* its batches */
	struct raw_thread thread;
	uint32_t batch;		  /* the one that is read, */
	uint8_t *buf;		  /* its bytes; owned */
	uint32_t at, len;	  /* in buf */
	int64_t time_ns;	  /* of the event that was read last, */
	uint64_t ticks;		  /* as the trace has it */
	struct raw_event *events; /* of this batch: owned, room for */
	uint32_t room, first, n;  /* so many; the next one is @first */
	uint32_t other;		  /* for the caller: another cursor */
};

/* But the rate of the clock. */
void source2_init(struct source2 *s, int fd, unsigned version);

/*
 * @c: zeroed. 1: the next event is there, 0: there is none; -EBADMSG: it is damaged. cursor2_fini() also after
 * an error.
 */
int cursor2_open(struct cursor2 *c, const struct source2 *from, const struct gen_thread *of,
		 struct err *e);
void cursor2_fini(struct cursor2 *c);
/* The same for the one behind it, where no more are read. */
int cursor2_more(struct cursor2 *c, struct err *e);

static inline int cursor2_next(struct cursor2 *c, struct err *e)
{
	return ++c->first < c->n ? 1 : cursor2_more(c, e);
}

static inline const struct raw_event *cursor2_event(const struct cursor2 *c)
{
	return &c->events[c->first];
}

/* How many bytes of the file come before the end of that event. */
static inline uint64_t cursor2_offset(const struct cursor2 *c)
{
	return c->of->batches.at[c->batch].off + cursor2_event(c)->end;
}

#endif
