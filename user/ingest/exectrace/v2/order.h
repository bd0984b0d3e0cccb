/*
 * user/ingest/exectrace/v2/order.h - the model of Go's scheduler by which events of several threads are
 * put in order.
 *
 * Time stamps of threads only suggest an order. An event may come next if the states of its
 * goroutine, P and thread allow it, and the sequence numbers of those that others act on. Source:
 * internal/trace/order.go, Go 1.22 to 1.27.
 */
#ifndef INGEST_EXECTRACE_V2_ORDER_H
#define INGEST_EXECTRACE_V2_ORDER_H

#include "ingest/exectrace/v2/generation.h"

enum { ORDER_ARGS_MAX = 5, ORDER_REACHED = 4 };

/* An event as a batch has it. */
struct raw_event {
	uint8_t type;
	uint32_t end; /* the first byte behind it in its batch */
	int64_t time_ns;
	uint64_t ticks; /* the same as the trace has it */
	uint64_t args[ORDER_ARGS_MAX];
};

/* Whose events they are. */
struct raw_thread {
	int64_t m;     /* may be TRACE_NONE */
	uint32_t seat; /* where its state is, + 1; 0: not known yet; order_advance() finds it */
};

struct order;

int order_new(struct order **out, struct err *e);
void order_free(struct order *o);
DEFINE_FREEP(struct order, order)

/*
 * Events that come are of this generation; @g stays until the next one is begun. If it is damaged, events
 * may refer to strings and stacks that it does not have. @hashes: order_awaited() and order_reached() will be
 * asked.
 */
void order_begin(struct order *o, const struct generation *g, unsigned version, bool hashes);

/*
 * The event of @thread is next, and means so many events: *out is the first, and order_take() gives the others. 0: it must
 * wait for another thread; -EBADMSG: it can never come. @force: it comes all the same where what it waits
 * for is not in the trace, and its transition is from the state that is known.
 */
int order_advance(struct order *o, struct raw_thread *thread, const struct raw_event *ev,
		  bool force, struct trace_event *out, struct err *e);
/* After 0: for which state it must wait, as a hash that is not 0. */
uint64_t order_awaited(const struct order *o);
/* After events: which states are reached by it, as such hashes; how many is returned. */
size_t order_reached(const struct order *o, const uint64_t **out);
/* Before the next order_advance(), as often as it told. */
void order_take(struct order *o, struct trace_event *out);

#endif
