/*
 * bpf/clocks/phase.bpf.h - which steps of a CPU clock are samples: the first one that ends behind a random part of a
 * period, and from then on each first one that ends behind one more period.
 *
 * The account is in what the clock has counted, not in its steps. So the length of its steps may change at any
 * time, and a clock that is served late skips nothing.
 */
#ifndef BPF_PHASE_BPF_H
#define BPF_PHASE_BPF_H

#include "common.bpf.h"

/*
 * Whose step it is. A clock has an id that is never used again. Where it cannot be read: the thread and,
 * since ids of threads are used again, its start, ns since boot.
 */
struct phase_key {
	__u64 id, start;
};

struct phase {
	__u64 at;	/* where its last step ended (struct step) */
	__u64 switches; /* how often the thread had been switched out until then */
	__s64 left;	/* ns until its next sample */
	__u64 asked;	/* the round in which it was given long steps; 0: its steps are short */
};

/* The position of each clock between two samples. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct phase_key);
	__type(value, struct phase);
} phases SEC(".maps");

/* Clocks of all targets that ran for a step or longer. */
__u64 threads_seen = 0;

/* One step of a clock. @at: what the clock has counted, ns; where that cannot be read, the time, monotonic. */
struct step {
	struct phase_key key;
	__u64 at, switches;
	int counted; /* @at is what the clock has counted */
};

/* What a clock is set to, ns: the period of samples, and the shortest steps. */
struct pace {
	__u64 period, step;
};

/*
 * How much CPU time has passed since the last step. Where the count cannot be read, a step is taken to be as
 * long as it should be. A clock that is served late skips the steps that it missed then. If the thread was
 * never switched out since, the elapsed time tells how many these were.
 */
static __always_inline __u64 time_passed(const struct phase *p, const struct step *s,
					 const struct pace *c)
{
	__u64 n;

	if (s->counted)
		return s->at - p->at;
	n = (s->at - p->at + c->step / 2) / (c->step ?: 1);
	return (s->switches == p->switches && n > 1 ? n : 1) * c->step;
}

/*
 * The same at a step that is the first one that we know of. A clock that has counted much more than a period
 * is one that the table has forgotten.
 */
static __always_inline __u64 time_at_first(const struct step *s, const struct pace *c)
{
	return s->counted && s->at < 2 * c->period ? s->at : c->step;
}

/* Moves the position on: how many samples this step stands for: mostly none; one; or more when the clock was late. */
static __always_inline __u64 phase_move(struct phase *p, const struct step *s, __u64 passed,
					const struct pace *c)
{
	__u64 period = c->period ?: 1, due = 0;

	p->at = s->at;
	p->switches = s->switches;
	p->left -= passed;
	if (p->left <= 0)
		due = 1 + (__u64)-p->left / period;
	p->left += due * period;
	return due;
}

/*
 * At a sample, in a round in which steps may be long: should they become that, or short where they are long? Long
 * steps begin at a sample, so that each one ends where the next sample is due. But each time that the thread is
 * switched out its clock may run a little late, so by and by samples come later than they are due; what is due at the thread's
 * end is lost.
 */
static __always_inline int phase_asks(const struct phase *p, __u64 round, const struct pace *c)
{
	return p->asked != round || c->period - p->left > c->period / 4;
}

/* A step that does not count, because its thread has another clock that does. */
static __always_inline void phase_skip(const struct step *s)
{
	struct phase *p = bpf_map_lookup_elem(&phases, &s->key);

	if (p && s->counted)
		p->at = s->at;
}

/* How many samples this step stands for. *@at: its position from now on; NULL when there is no room for it. */
static __always_inline __u64 samples_due(const struct step *s, const struct pace *c,
					 struct phase **at)
{
	struct phase *p = bpf_map_lookup_elem(&phases, &s->key), fresh = {};
	__u64 due;

	*at = p;
	if (p)
		return phase_move(p, s, time_passed(p, s, c), c);
	fresh.left = bpf_get_prandom_u32() % (c->period ?: 1) + 1;
	due = phase_move(&fresh, s, time_at_first(s, c), c);
	if (!bpf_map_update_elem(&phases, &s->key, &fresh, BPF_NOEXIST))
		__sync_fetch_and_add(&threads_seen, 1);
	return due;
}

#endif
