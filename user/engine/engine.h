/*
 * user/engine/engine.h - many processes observed by one set of BPF objects, window after window.
 *
 *	engine_open -> [engine_add]* -> engine_begin -> poll and tick -> engine_end -> engine_begin ...
 *	-> engine_free
 *
 * A target has a slot in the tables of all BPF objects. Targets may be added before and in a
 * window; one that ends or calls exec in it still has the profile of its part. What happens to one
 * target is never an error of the engine: engine_add() says why that one cannot be observed, and
 * its state says how it ended.
 *
 * What is observed is a kind's (struct engine_kind); collect/ has them. Several kinds share targets and
 * windows. A kind that cannot observe a target leaves it to the others.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "goprof_abi.h"
#include "profile/profile.h"
#include "sampling/looks/look_times.h"
#include "subject/binary.h"
#include "subject/subject.h"

enum engine_state {
	ENGINE_ON,
	ENGINE_ENDED,  /* the process exited */
	ENGINE_BECAME, /* it lives on as another program (exec) */
};

enum { ENGINE_KINDS_MAX = 6 };

/* Who it was. Strings of the subject are valid as long as the target is. */
struct engine_identity {
	pid_t pid;
	int64_t started; /* unix seconds; 0: unknown */
	const char *comm, *exe, *build_id, *module, *go_version;
	char cgroup[512]; /* the path of its cgroup; "": unknown; foreign bytes */
};

struct engine_target {
	struct engine_identity id;
	uint32_t slot;		 /* with its generation: gpb_stack.slot */
	struct subject *subject; /* owned */
	size_t nimages;		 /* how many of its images the kind knows */
	enum engine_state state;
	/* its part of the window; monotonic, and since_ns also as unix time */
	uint64_t since_ns, until_ns;
	int64_t since_unix_ns;
	/*
	 * The CPU time that the kernel charged to the process in that part, by its own clock, exact to
	 * the nanosecond; of one that is gone, up to 100 ms before its end, where no kind knows better.
	 */
	uint64_t cpu_ns;
	bool cpu_exact;		 /* it was read at the end, too */
	struct look_pair looked; /* kinds that look at it from outside do so at once */

	/* private */
	struct engine_part {
		bool on;	 /* the kind observes it, or did until it ended */
		void *kept;	 /* the kind's, for this target */
		struct err *why; /* owned: why it is not on; NULL: nothing to say */
		bool for_good;	 /* that does not pass: no later window tries it again */
	} part[ENGINE_KINDS_MAX];
	clockid_t clock;
	bool handed_over;
	uint64_t base_ns; /* of its clock, when its part of the window began */
};

/* What targets lost together, of which nobody knows whose it is: @what names what they share. */
struct engine_shared {
	char what[256]; /* foreign bytes */
	size_t targets;
	struct loss loss;
};

struct engine_kind {
	bool reads;  /* put() and profile() read much of the target's memory */
	bool probes; /* and open() gets, as budget.ppm, its part of what probes may take */
	unsigned
		readers; /* so many parts of host.own are its own: it reads targets that are in windows all the time */
	/* A kind before it that has the same probes: they have these parts together. May be NULL, and may not be there. */
	const struct engine_kind *with;
	const char *name; /* "cpu": also the file name's part */
	/*
	 * Loads what it needs, for @expected targets or so, at most GPB_CPU_TARGETS. @kind is this struct. *state: that
	 * of the kind in @with, which is freed later; NULL where that is not there.
	 */
	int (*open)(const struct engine_kind *kind, const struct collect_opts *o, unsigned expected,
		    void **state, struct err *e);
	void (*free)(void *state);
	/* To be polled for reading; poll() drains without blocking. -1: there is nothing to poll. */
	int (*fd)(void *state);
	int (*poll)(void *state, struct err *e);
	/*
	 * Puts @t into the tables, or writes it anew when its images changed. *kept is the kind's, NULL at
	 * first; where that fails at first, nothing of it stays.
	 */
	int (*put)(void *state, struct engine_target *t, void **kept, struct err *e);
	/* No more samples of its process; what there is stays until the window ends. */
	void (*remove)(void *state, struct engine_target *t);
	/*
	 * Of @t, which has ended, the kernel has yet to tell something, which takes some ms: profile() is called later, but
	 * not much. May be NULL.
	 */
	bool (*awaits)(void *state, const struct engine_target *t);
	/* Releases @kept. */
	void (*forget)(void *state, struct engine_target *t, void *kept);
	int (*begin)(void *state, struct err *e);
	/* Each 100 ms or so in a window; @targets are on now. */
	int (*tick)(void *state, size_t targets, struct err *e);
	/* What it took of all targets' CPU time since it was opened. May be NULL, and so may the next one. */
	uint64_t (*taken_ns)(void *state);
	/* Takes half as much from now on, until the window ends. False: it cannot take less. */
	bool (*slow_down)(void *state);
	/* The end of a window, for all kinds at once: from here on nothing counts. Takes no time that depends on the kernel. May be NULL. */
	void (*close)(void *state);
	/* After that: on return nothing is added any more. May be NULL. */
	void (*stop)(void *state);
	/*
	 * Takes everything that is there: of a target that has ended, and of all after stop(), nothing is
	 * left.
	 */
	int (*drain)(void *state, struct err *e);
	/* After drain(): the profile of @t, which has ended or was stopped, which the caller frees; NULL when there are no samples. */
	int (*profile)(void *state, struct engine_target *t, void *kept, struct prof **out,
		       struct err *e);
	/* Of a kind that reads some and probes others: is that one probed? May be NULL: all are told alike. */
	bool (*probed)(const void *kept);
	/*
	 * After profile(), of a kind whose numbers are since the program's start: what they were when it was taken in, borrowed until @kept
	 * is released; NULL: not known. May be NULL: it has no such numbers.
	 */
	const struct prof *(*first)(void *state, const void *kept);
	/* After all profiles were taken: forgets the window. */
	int (*done)(void *state, struct err *e);
	/*
	 * The file with this number (image.id) is no target's any more, and another one may get it: nothing is to be filed under it
	 * on return. False: something is. May be NULL.
	 */
	bool (*forget_file)(void *state, uint16_t number);
	/* What targets lost together in the last window; *n: how many. May be NULL. */
	const struct engine_shared *(*shared)(void *state, size_t *n);
	const void *arg; /* for open() */
};

/* Which process it was, as a comment of its profile @p. */
int engine_tell_identity(const struct engine_target *t, struct prof *p, struct err *e);

struct engine;

/* @n kinds, 1 to ENGINE_KINDS_MAX. */
int engine_open(const struct collect_opts *o, const struct engine_kind *const *kinds, size_t n,
		unsigned expected, struct engine **out, struct err *e);
void engine_free(struct engine *en);
DEFINE_FREEP(struct engine, engine)

/*
 * Observes @t, which is at rest (survey.hold; target/handover.h), too, from now on when a window is open; it is taken over, also on error. An error is this target's:
 * -ESRCH: it is gone; -ENOENT: no Go program; -EEXIST: it is observed already; -E2BIG: there is no
 * slot; others as subject_adopt(); where no kind can observe it, the first one's. *out is borrowed,
 * until it is handed over as one that ended. @known: the offsets that somebody has found out for its
 * executable: they are not looked for again, which may mean reading DWARF; NULL: nobody has.
 */
int engine_add(struct engine *en, struct target *t, const struct golayout *known,
	       const struct engine_target **out, struct err *e);

/*
 * Somebody has seen that @pid called exec at @when_ns (monotonic). When that was a target it is one no more, and is
 * told by its state.
 */
void engine_exec(struct engine *en, pid_t pid, uint64_t when_ns);

int engine_begin(struct engine *en, struct err *e);
int engine_fd(const struct engine *en); /* to be polled for reading */
/* An error is the kind's: the window must be ended. */
int engine_poll(struct engine *en, struct err *e);
/* To be called each 100 ms or so in a window. */
int engine_tick(struct engine *en, struct err *e);

/*
 * What the window has cost, at its last tick or its end. Where kinds take more than collect_opts.host.taken_ppm of the targets'
 * CPU time, they are slowed down. What our own work is, the caller knows.
 */
struct engine_cost {
	uint64_t
		lasted_ns; /* up to its end, which own_ns goes beyond: probes are taken out after it */
	uint64_t
		own_ns; /* CPU time of this process, of its children that have ended, and of the helper that keeps probes */
	uint64_t cpu_ns;   /* of all targets */
	uint64_t taken_ns; /* of that, by kinds */
	unsigned slowed;   /* how often something took half as much */
};
struct engine_cost engine_cost(const struct engine *en);

/* There is no slot: those that ended have theirs until they are handed over. */
bool engine_is_full(const struct engine *en);
/* How many are on. */
size_t engine_targets(const struct engine *en);
/* How many there are, those that ended in this window included, and the i-th. */
size_t engine_ntargets(const struct engine *en);
const struct engine_target *engine_target_at(const struct engine *en, size_t i);

/* What one kind has of a target. */
struct engine_result {
	struct prof *prof;	  /* borrowed; NULL when it has no samples, or failed */
	const struct err *failed; /* why there is no profile; NULL: it did not fail */
	bool refused; /* and it failed since this kind cannot observe this target at all */
	bool probed;  /* engine_kind.probed */
	const struct prof *first; /* engine_kind.first, borrowed */
};

/*
 * Ends the window. @sink gets each target once, with the results of all kinds, in the order of
 * engine_open(). Then targets that ended are forgotten.
 */
typedef void engine_sink(void *arg, const struct engine_target *t,
			 const struct engine_result *results);
int engine_end(struct engine *en, engine_sink *sink, void *arg, struct err *e);

/* After that: what the targets of the @kind-th kind lost together, and is in none of their profiles' losses. */
const struct engine_shared *engine_shared(const struct engine *en, size_t kind, size_t *n);

/*
 * To be called in a window now and then: hands over targets that have ended, when they are @least (1 or more), so
 * that their slots and memory are free again: each time all that there is in the tables is taken. An error is that of engine_poll().
 */
enum { ENGINE_REAP = 16 };
int engine_reap(struct engine *en, size_t least, engine_sink *sink, void *arg, struct err *e);

#endif
