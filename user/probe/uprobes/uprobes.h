/*
 * user/probe/uprobes/uprobes.h - BPF programs on sites of executables, in one process.
 *
 * On Linux 6.10 and newer the sites of one program in one file are one uprobe-multi link: it
 * attaches and detaches all of them in some ten milliseconds. Older kernels get one perf uprobe
 * for each site, which detach slowly: too slowly for windows.
 */
#ifndef PROBE_UPROBES_UPROBES_H
#define PROBE_UPROBES_UPROBES_H

#include <bpf/libbpf.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "goprof_abi.h"
#include "probe/uprobes/attacher.h"

struct uprobe_site {
	uint64_t file_off;
	uint64_t addr; /* where the process has it: for kernels without cookies */
	uint64_t cookie;
};

/* One program on sites of one file. */
struct uprobe_group {
	/* NULL: nothing runs there; the probes are put in and taken out for what that does. */
	struct bpf_program *prog;
	/* "/proc/PID/exe" also reaches a deleted file and one in another mount namespace. */
	char path[64];
	const struct uprobe_site *sites;
	size_t n;
};
enum { UPROBE_GROUPS_MAX = 32, UPROBE_SETS_MAX = 1024 };

/*
 * Makes @to, which has room for UPROBE_GROUPS_MAX, a copy with sites of its own: one array, which
 * replaces *@sites and which the caller frees.
 */
int uprobe_groups_copy(struct uprobe_group *to, struct uprobe_site **sites,
		       const struct uprobe_group *g, size_t n, struct err *e);

/* Where BPF programs look which hits count: in memory of a map that can be mapped (.bss). */
struct uprobe_open {
	volatile struct gpb_open *at;
	int map_fd;
	size_t off; /* of @at in the map */
};
/* @at lies in @map. */
struct uprobe_open uprobe_open_in(const struct bpf_map *map, volatile void *at);

/* Shared memory between us and the attacher. */
struct uprobe_watch {
	uint64_t until;	 /* CLOCK_MONOTONIC: at this time it takes the probes off; 0: never */
	uint64_t let_go; /* when it did so last; 0: never */
};

struct uprobe_plan; /* private: what a new attacher needs to know */

/* To be called by main() before all else in every program that uses what follows: attacher_main(). */
void uprobes_main(int argc, char **argv);

struct uprobes {
	struct attacher_process *
		*all; /* set by the owner: it shares a process with these; NULL: with none */
	struct attacher attacher;   /* what puts the probes in and takes them out */
	struct uprobe_watch *watch; /* NULL: nothing is held */
	struct uprobe_plan *plan;   /* owned: the journal of what it is to hold */
	unsigned deaths;	    /* how many attachers were killed so far */
	bool tried; /* set by the owner: others have just put probes into these files, in time */
};

/*
 * To put one probe in, the kernel visits every mapping of the file, and anybody who may read the file
 * can make 65,530 of them in each process, for nothing. It takes the attacher some 0.25 us for each;
 * no process of the machine can fork meanwhile (bystanders.h). So the attacher's CPU time for a probe
 * is measured, for the first one before others are put in unless uprobes.tried: when it is above this limit twice, all come
 * off, and the answer is -EUSERS. Probes without a program free what was left behind, and are never refused.
 */
#define UPROBE_WORK_MOST_NS 20000000ull

/* Does this kernel know multi links? This decides how the program must be loaded. */
bool uprobes_have_multi(void);

/* To be called before @prog is loaded. */
void uprobes_prepare(struct bpf_program *prog, bool multi);

/*
 * The attacher was killed when a function below says -ECHILD, or uprobes_dead() says so. SIGKILL in
 * the middle of a registration makes the kernel leave breakpoints behind that have no handler and
 * that cost the target some microseconds each time it passes one. A breakpoint that is registered
 * again and taken out again is gone: the kernel keeps one uprobe for each inode and offset, counts
 * who uses it, and writes the instruction back when nobody does. Source: insert_uprobe(),
 * filter_chain() and register_for_each_vma() in kernel/events/uprobes.c, Linux 6.18.
 */

/*
 * Ready to attach: nothing is attached yet. The groups and their sites are copied; their programs
 * and the files behind their paths must stay until uprobes_free(). *@open tells the BPF side which
 * hits count; windows set and clear it. NULL: there will be none. @pid 0: every process that maps
 * the files; with multi links only.
 */
int uprobes_hold(struct uprobes *u, const struct uprobe_group *g, size_t n, bool multi, pid_t pid,
		 const struct uprobe_open *open, struct err *e);
/* Holds one group, and attaches it immediately. */
int uprobes_put(struct uprobes *u, struct bpf_program *prog, bool multi, pid_t pid,
		const char *path, const struct uprobe_site *sites, size_t n, struct err *e);
/*
 * Another set of groups, in the same attacher: where probes are attached it is attached at once. When
 * that fails the set is not held, and the others stay as they were; -ECHILD: it is held when mended.
 */
int uprobes_add(struct uprobes *u, const struct uprobe_group *g, size_t n, pid_t pid, unsigned *set,
		struct err *e);
/* Takes its probes out, and forgets it. Of uprobes_add() only. */
int uprobes_drop(struct uprobes *u, unsigned set, struct err *e);
/* An added set that cannot be attached any more is left out from then on: its error, or 0. */
int uprobes_failed(struct uprobes *u, unsigned set, struct err *e);
/* Attaches all of them, or none, and says why; -EUSERS: it takes the kernel too long. */
int uprobes_attach(struct uprobes *u, struct err *e);
/*
 * The process that attached them may be stopped (SIGSTOP, a debugger), and the target would go on
 * paying with nobody to watch the cost. So they are attached until @ns (CLOCK_MONOTONIC), unless
 * a later time is set before: otherwise the attacher takes them off, and nothing counts any more.
 * To be called before uprobes_attach() for the first time; windows end by themselves.
 */
void uprobes_until(struct uprobes *u, uint64_t ns);
/* When the attacher has done so last, 0: never. Then they can be attached again. */
uint64_t uprobes_let_go(const struct uprobes *u);
/*
 * Takes all of them off; they can be attached again later. *work_ns: as in struct uprobe_windowed;
 * it may be NULL.
 */
int uprobes_detach(struct uprobes *u, uint64_t *work_ns, struct err *e);
/*
 * The same in the background: where its threads get no CPU it takes the kernel seconds, up to 11 s seen. uprobes_fd() and
 * uprobes_answered() tell when it is done, uprobes_detached() waits for that.
 */
int uprobes_detach_soon(struct uprobes *u, struct err *e);
int uprobes_detached(struct uprobes *u, uint64_t *work_ns, struct err *e);

/* A short period in which hits count; CLOCK_MONOTONIC. */
struct uprobe_window {
	uint64_t open;	/* when to begin to count, or as soon afterwards as they are attached */
	uint64_t begin; /* ns from then on in which beginning events count; 0 for allocations */
	uint64_t end;	/* ns from then on in which ending events count */
	bool by_own;	/* it also ends when no CPU has own time left: gpb_open.until */
	/*
	 * The probes stay attached when it closes, until this time (CLOCK_MONOTONIC) as if by
	 * uprobes_until(); 0: they are taken off.
	 */
	uint64_t keep_until;
};
/* What the window was like. */
struct uprobe_windowed {
	uint64_t asked, opened, closed, detached; /* CLOCK_MONOTONIC; detached 0: they stay */
	/* the attacher's CPU time in attaching and, unless they stay, detaching: without waits */
	uint64_t work_ns;
};

/*
 * Attaches, counts for a while, and detaches unless they are to stay, in the background. Nothing
 * may be attached when it is called. The answer may be -EUSERS, as that of uprobes_attach().
 */
int uprobes_window(struct uprobes *u, const struct uprobe_window *w, struct err *e);
/* To be polled: readable when the window is over, and the probes are off unless they stay. */
int uprobes_fd(struct uprobes *u);
/* To be asked then: is it over indeed? When it is only overdue, uprobes_fd() tells again in a second. */
bool uprobes_answered(struct uprobes *u);
/* Waits for that. */
int uprobes_windowed(struct uprobes *u, struct uprobe_windowed *out, struct err *e);

/* Was the attacher killed? Since when that is known (attacher_dead()); 0: it was not. To be asked while no answer is due. */
uint64_t uprobes_dead(const struct uprobes *u);
/* So many attachers in a row may be killed before that is an error: -ECHILD. */
enum { UPROBES_MENDS = 100 };
/*
 * After the attacher's death: a new one puts all probes in and takes them out, which frees what the
 * old one left behind. Then nothing is attached, and uprobes_fd() is another one. Tries again when
 * that one is killed, too.
 */
int uprobes_mend(struct uprobes *u, struct err *e);
/*
 * The same of what others have left at the same places, in the background: it is over when uprobes_windowed() is. Nothing is
 * attached then; a set that could not be is told by uprobes_failed().
 */
int uprobes_come_and_go(struct uprobes *u, struct err *e);
/* uprobes_attach() that mends first, if need be, and after each death. */
int uprobes_attach_again(struct uprobes *u, struct err *e);

/* Begins to detach all for good. That goes on in the attacher; uprobes_free() waits for it. */
void uprobes_leave(struct uprobes *u);
/* Detach all for good, and free what an attacher left behind; safe on a zeroed struct. */
void uprobes_free(struct uprobes *u);

#endif
