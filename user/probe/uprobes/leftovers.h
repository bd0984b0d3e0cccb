/*
 * user/probe/uprobes/leftovers.h - breakpoints that killed tracers left in a process' code.
 *
 * A breakpoint of a uprobe is in memory and not in the file. Which of them somebody still uses the
 * kernel does not tell, so that is found out in a way that disturbs nobody: a probe that does
 * nothing is put in at the same place and taken out again. The kernel keeps one uprobe for each
 * inode and offset and a list of who uses it; the instruction comes back when that list has nobody
 * left for this process. So what was left behind is freed, and what somebody uses stays, with all of
 * its hits. Source: insert_uprobe(), consumer_add(), filter_chain() and register_for_each_vma() in
 * kernel/events/uprobes.c, Linux 6.18; the same since uprobes came (3.5).
 *
 * A debugger's breakpoint is another thing: int3 as well on amd64, but written by ptrace, and the
 * kernel would take it out with the probe. So a process that is being traced is left alone.
 */
#ifndef PROBE_UPROBES_LEFTOVERS_H
#define PROBE_UPROBES_LEFTOVERS_H

#include "base/vec.h"
#include "subject/open.h"
#include "target/target.h"

struct leftover {
	uint64_t addr, file_off;
	bool comes_and_goes; /* leftovers_heal(): somebody's probe, in windows */
	bool barred;	     /* no probe may be put here, so it stays: arch/breakpoint.h */
	bool freed;
};

/* Those in one mapping: @n of struct leftovers' from @first on. */
struct leftover_file {
	int fd; /* owned */
	size_t first, n;
};

struct leftovers {
	VEC(struct leftover) at;	 /* breakpoints in Go code: left behind, or in use */
	VEC(struct leftover_file) files; /* private */
	size_t barred;			 /* of them */
	size_t freed;			 /* of them, by leftovers_heal() */
	size_t unseen; /* mappings of code that could not be compared, or are too many or too large */
};

/*
 * Looks only at pages of Go code that the process does not share with the file any more, so it
 * costs next to nothing where there are none. What a process maps to hold us up is bounded
 * (LIMIT_LEFTOVERS_PAGES, LIMIT_LEFTOVERS_MS); the rest is counted in @unseen. -EPERM, -ESRCH;
 * -ECANCELED (base/loop/cancel.h).
 */
int leftovers_find(struct target *t, struct leftovers *out, struct err *e);
/*
 * Those that nobody uses are gone afterwards, and counted; the barred ones are left alone. Where there are any it first watches them
 * for LIMIT_STAND_MS: one that goes by itself meanwhile is a probe of a profile in windows. (One that
 * stands all this time and whose owner takes it out in the milliseconds of the freeing is taken for freed.)
 * -EBUSY: the process is being traced.
 * -ETIMEDOUT: there are so many (LIMIT_FREE_MS) that some have not been tried. -ECANCELED.
 */
int leftovers_heal(struct target *t, struct leftovers *l, struct err *e);
void leftovers_fini(struct leftovers *l);

/* Before @t is probed: both of the above; what came of it is said. */
void leftovers_begin(struct target *t, const struct collect_opts *o);

/* What there was in one process; it is over when this is told. */
struct heal_found {
	pid_t pid;
	const char *comm;
	size_t found, freed, barred, unseen;
	const char *why; /* it could not be looked at or healed; else "" */
};
struct heal_opts {
	pid_t pid; /* 0: all Go processes */
	bool heal; /* else they are only counted */
	/* For each process with breakpoints, and each that could not be looked at. May be NULL. */
	void (*told)(void *arg, const struct heal_found *f);
	void *arg;
};
struct heal_sum {
	size_t processes;		     /* with breakpoints */
	size_t found, freed, barred, unseen; /* breakpoints; mappings */
	size_t denied;			     /* processes that we may not look at */
	size_t left_out;		     /* processes, when the others took LIMIT_HEAL_MS */
	size_t failed;			     /* that were to be healed, and could not be */
};

/* -ENOENT: no /proc. With a pid: also why that process cannot be looked at. */
int heal_run(const struct heal_opts *o, struct heal_sum *out, struct err *e);

#endif
