/*
 * user/cli/trace/trace_tracks.h - slices that are open, track by track, of a Perfetto trace.
 *
 * Before the time that is asked for slices are only remembered; trace_tracks_show() then has those
 * that are open begin. A slice that nobody began is not ended.
 */
#ifndef CLI_TRACE_TRACE_TRACKS_H
#define CLI_TRACE_TRACE_TRACKS_H

#include "base/map.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "output/perfetto.h"

struct open_slice {
	uint64_t track;
	uint64_t order; /* which began first */
	uint32_t name;	/* in names; 0 when it was shown */
	uint32_t below; /* the one around it, or the next free one; from 1 on, 0: none */
	const char *category;
	struct perfetto_note note; /* the first one, if it is a number; name NULL: there is none */
	bool used;
};

/* A zeroed struct, but for the first four, is ready. */
struct trace_tracks {
	struct perfetto *out; /* borrowed */
	struct strtab *names; /* borrowed */
	/* Tells of a track, with perfetto_track(), before the first event on it, which has this name. */
	int (*tell)(void *arg, uint64_t track, struct perfetto_text first, struct err *e);
	void *arg;
	bool shown;
	struct map told; /* tracks */
	struct map top;	 /* track -> its innermost open slice */
	VEC(struct open_slice) slices;
	uint32_t free_slices;
	uint64_t order;
};

void trace_tracks_fini(struct trace_tracks *t);

/* Tells of a track now, unless it was. */
int trace_tracks_need(struct trace_tracks *t, uint64_t track, struct perfetto_text first,
		      struct err *e);
/* Puts an event that is no PERFETTO_END; an instant or a counter only if it is in the time. */
int trace_tracks_put(struct trace_tracks *t, const struct perfetto_event *ev, struct err *e);
/* The innermost slice ends. *was: there was one. */
int trace_tracks_end(struct trace_tracks *t, uint64_t track, uint64_t time_ns, bool *was,
		     struct err *e);
/* All that are open on a track end, and nothing more comes there. */
int trace_tracks_close(struct trace_tracks *t, uint64_t track, uint64_t time_ns, struct err *e);
/* The time that is asked for begins. */
int trace_tracks_show(struct trace_tracks *t, uint64_t time_ns, struct err *e);

#endif
