/*
 * user/profile/loss.h - what was lost or guessed, carried with the data into every output.
 */
#ifndef PROFILE_LOSS_H
#define PROFILE_LOSS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One list: enum, text for people, key for machines. Add at the end. */
#define LOSSES(X)                                                                                                 \
	X(SAMPLES_DROPPED, "samples_dropped", "samples dropped: kernel buffer full")                              \
	X(STACKS_UNREADABLE, "stacks_unreadable", "stacks that could not be read whole")                          \
	X(STACKS_CUT, "stacks_cut", "stacks deeper than the limit, cut at the root")                              \
	X(CALLERS_UNKNOWN, "callers_unknown", "samples whose first caller could not be told")                     \
	X(PCS_UNRESOLVED, "pcs_unresolved", "pcs with no function, shown by address")                             \
	X(CLOCK_MISSED, "clock_missed",                                                                           \
	  "clock ticks the kernel did not deliver or threads did not reach")                                      \
	X(THREADS_MISSED, "threads_missed", "threads that could not be followed")                                 \
	X(LABELS_CUT, "labels_cut", "samples whose labels were cut or unreadable")                                \
	X(BUCKETS_SKIPPED, "buckets_skipped", "runtime buckets that could not be read")                           \
	X(BUCKETS_TORN, "buckets_torn", "runtime buckets that changed while being read")                          \
	X(PROBES_MISSED, "probes_missed", "probe hits the kernel did not run")                                    \
	X(TARGET_GONE, "target_gone", "the target exited or became another program")                              \
	X(LAYOUT_GUESSED, "layout_guessed",                                                                       \
	  "the Go version is not known here: it may be newer or older")                                           \
	X(STACKS_BROKEN, "stacks_broken", "stacks that end before their root")                                    \
	X(WINDOW_CUT, "window_cut",                                                                               \
	  "the runtime's sampling was changed before the window ended: numbers end there")                        \
	X(NOT_RESTORED, "not_restored", "the runtime's sampling could not be switched off again")                 \
	X(WAITS_UNKNOWN, "waits_unknown", "waits of more goroutines than there is room for")                      \
	X(GOROUTINES_TORN, "goroutines_torn", "goroutines that moved whenever they were read")                    \
	X(GOROUTINES_SKIPPED, "goroutines_skipped", "goroutines that could not be read")                          \
	X(WAITS_UNSEEN, "waits_unseen", "waits that ended where no probe saw it")                                 \
	X(OBJECTS_UNPLACED, "objects_unplaced",                                                                   \
	  "sampled objects whose place in memory could not be told: others stand for them")                       \
	X(OBJECTS_UNCONFIRMED, "objects_unconfirmed",                                                             \
	  "sampled objects of which it could not be confirmed that they still live")                              \
	X(ALLOCS_UNSEEN, "allocs_unseen",                                                                         \
	  "allocations of sizes that no window saw: take longer, or a larger --budget or --host-budget")          \
	X(STACKS_MANY, "stacks_many", "samples of more distinct stacks than there is room for")                   \
	X(BUDGET_CUT, "budget_cut",                                                                               \
	  "the budget was used up, and this kernel cannot probe in windows: numbers end there")                   \
	X(ALLOCS_MISSED, "allocs_missed",                                                                         \
	  "allocations that did not pass the probes, by the runtime's own count")                                 \
	X(UNWATCHED, "unwatched_ms",                                                                              \
	  "milliseconds in which nothing was observed: goprof-bpf was stopped, or had no time or no window")      \
	X(ATTACHER_KILLED, "attacher_killed",                                                                     \
	  "times somebody killed the process that keeps the probes: nothing was seen until another one had them") \
	X(RUNS_UNMET, "runs_unmet",                                                                               \
	  "runs of goroutines at a pace that no window met: take longer, or a larger --budget or --host-budget")  \
	X(CROWDED, "crowded",                                                                                     \
	  "the file came to be mapped so often that probes would hold up the machine: numbers end there")         \
	X(ALLOCS_UNMET, "allocs_unmet",                                                                           \
	  "allocations at a pace that no window met: take longer, or a larger --budget or --host-budget")         \
	X(UNCOUNTED, "uncounted_ms",                                                                              \
	  "milliseconds of which the runtime's own counts, and so all totals, are not known")                     \
	X(LOCKS_UNSEEN, "locks_unseen_ms",                                                                        \
	  "milliseconds waited for mutexes, and no window saw who made others wait")                              \
	X(UNFINISHED, "unfinished",                                                                               \
	  "samples that were still being taken at the end: the threads they are of had no CPU time")              \
	X(WAITS_UNPLACED, "waits_unplaced_ms",                                                                    \
	  "milliseconds of waits whose stacks could not be read: they are in no sample")                          \
	X(WAITS_LONG, "waits_long",                                                                               \
	  "waits that lasted longer than their window are not counted: in this program they cannot be told from outside")

enum loss_kind {
#define LOSS_ENUM(id, key, text) LOSS_##id,
	LOSSES(LOSS_ENUM)
#undef LOSS_ENUM
		LOSS_COUNT
};

struct loss {
	uint64_t n[LOSS_COUNT];
};

/* What several see of the same is counted once. */
static inline void loss_at_least(struct loss *to, enum loss_kind which, uint64_t n)
{
	if (to->n[which] < n)
		to->n[which] = n;
}

/* Is it a fact, and not a count? */
bool loss_is_fact(enum loss_kind k);
const char *loss_key(enum loss_kind k);
const char *loss_text(enum loss_kind k);
/* Sum of all kinds; 0 when nothing was lost. */
uint64_t loss_total(const struct loss *l);
void loss_merge(struct loss *into, const struct loss *from);

#endif
