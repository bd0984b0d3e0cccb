/*
 * user/output/perfetto.h - writes traces in Perfetto's own format, packet by packet.
 *
 * Tracks hold slices, instants and counters, in a tree. All packets are of one sequence, and in the
 * order in which they are put, and compressed. Names are interned, and forgotten when perfetto_forget() is called, so that
 * memory has a bound: no name of before is referred to after that, and no number is used again.
 *
 * Source: protos/perfetto/trace/ and src/trace_processor/importers/proto/ (proto_trace_reader.cc,
 * track_event_tokenizer.cc, track_event_tracker.cc) of the Perfetto project, 2023 to 2026.
 */
#ifndef OUTPUT_PERFETTO_H
#define OUTPUT_PERFETTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

struct perfetto;

/* @f: borrowed; the caller flushes and checks it. */
int perfetto_new(FILE *f, struct perfetto **out, struct err *e);
void perfetto_free(struct perfetto *p);
DEFINE_FREEP(struct perfetto, perfetto)

/* Foreign bytes: what is no UTF-8 in them becomes U+FFFD. Borrowed. */
struct perfetto_text {
	const char *at;
	size_t len;
};

enum perfetto_unit { PERFETTO_NO_COUNTER, PERFETTO_COUNT, PERFETTO_BYTES };

struct perfetto_track {
	uint64_t id;	 /* not 0; of no other track */
	uint64_t parent; /* told before; 0: none */
	struct perfetto_text name;
	enum perfetto_unit counter;
	int32_t rank; /* its place among those with the same parent */
};

/* Once for each track, before the first event on it. */
int perfetto_track(struct perfetto *p, const struct perfetto_track *t, struct err *e);

/* A slice ends before those that it began in do. */
enum perfetto_type {
	PERFETTO_BEGIN = 1,
	PERFETTO_END,
	PERFETTO_INSTANT,
	PERFETTO_COUNTER,
};

/*
 * @key: not 0: the caller's number of the text, by which it is known without being looked for;
 * see perfetto_knows(). Then @text may be anything but NULL.
 */
struct perfetto_note {
	const char *name;
	struct perfetto_text text; /* at NULL: it is a number */
	int64_t number;
	uint32_t key;
};

enum { PERFETTO_NOTES = 6 };

struct perfetto_event {
	enum perfetto_type type;
	uint64_t time_ns, track;
	struct perfetto_text name; /* of what begins, and of an instant */
	const char *category;	   /* of the same */
	int64_t value;		   /* of a counter */
	uint64_t flow_out;	   /* a flow begins here; 0: none */
	uint64_t flow_in;	   /* one ends here, that began at another event; 0: none */
	size_t nnotes;
	struct perfetto_note notes[PERFETTO_NOTES];
};

int perfetto_event(struct perfetto *p, const struct perfetto_event *ev, struct err *e);

/* Was a note with this key put since the last perfetto_forget()? */
bool perfetto_knows(const struct perfetto *p, uint32_t key);

/* What the trace's clock said at some moment, the monotonic clock, and the time since 1970. */
int perfetto_clock(struct perfetto *p, uint64_t time_ns, uint64_t mono_ns, uint64_t unix_ns,
		   struct err *e);

/* Writes what is not written yet. Nothing comes after it. */
int perfetto_end(struct perfetto *p, struct err *e);

/* How many names are known: since the beginning, or the last perfetto_forget(). */
size_t perfetto_names(const struct perfetto *p);
/* Names that follow are told anew. */
int perfetto_forget(struct perfetto *p, struct err *e);

#endif
