/*
 * user/ingest/exectrace/summary/trace_kinds.h - stretches that have a name, such as tasks, regions and ranges:
 * how many there were of each name, and how long they took.
 */
#ifndef INGEST_EXECTRACE_SUMMARY_TRACE_KINDS_H
#define INGEST_EXECTRACE_SUMMARY_TRACE_KINDS_H

#include "base/map.h"
#include "base/vec.h"
#include "ingest/exectrace/summary/quantiles.h"

struct trace_kind_sum {
	uint32_t name;
	uint64_t unfinished; /* that had not ended; not in q */
	uint64_t earlier;    /* that had begun before; in q they are shorter than they were */
	struct quantiles q;  /* ns */
};

struct trace_stretch;

struct trace_kinds {
	VEC(struct trace_kind_sum) all;
	uint64_t others; /* stretches of more names than LIMIT_TRACE_KINDS */
	/* private: */
	struct map by_name, open;	     /* key -> in stretches, from 1 on */
	VEC(struct trace_stretch) stretches; /* those that go on, and a list of free ones */
	uint32_t free_stretches;
};

void trace_kinds_fini(struct trace_kinds *k);

/*
 * Stretches with the same key lie within each other, as the regions of a goroutine do: the one that
 * began last ends first. False: no memory.
 */
bool trace_kinds_begin(struct trace_kinds *k, uint64_t key, uint32_t name, int64_t now_ns,
		       bool earlier);
/* Does one with this key go on? */
bool trace_kinds_goes_on(const struct trace_kinds *k, uint64_t key);
/*
 * The innermost one ends. When there is none, it had begun before @from_ns, when all that is known
 * begins. @before: it does not count.
 */
bool trace_kinds_end(struct trace_kinds *k, uint64_t key, uint32_t name, int64_t now_ns,
		     int64_t from_ns, bool before);
/* All that go on with this key are gone, without an end. */
void trace_kinds_gone(struct trace_kinds *k, uint64_t key);
/* What goes on did not end. Sorts them: those that took longest in all first. */
void trace_kinds_finish(struct trace_kinds *k);

#endif
