/* user/engine/probing_priv.h - what probing.c does and probing_say.c reports. */
#ifndef ENGINE_PROBING_PRIV_H
#define ENGINE_PROBING_PRIV_H

#include "base/clock.h"
#include "sampling/windows/budget.h"
#include "engine/probing.h"
#include "sampling/windows/burstiness.h"
#include "goprof_abi.h"
#include "sampling/windows/window_cost.h"
#include "sampling/windows/window_size.h"

enum state {
	UNSET,	 /* nothing has been attached yet */
	READY,	 /* the same, but the first poll begins, when all other kinds are ready, too */
	OPENING, /* attached; counts when the stratum of the last window is over */
	FULL,	 /* attached, everything counts */
	BROKEN,	 /* it was so until somebody killed the attacher */
	LEAVING, /* nothing counts any more; windows begin when the attacher has taken the probes out */
	BETWEEN, /* in windows: the timer tells when the next one is to be asked for */
	ASKED,	 /* in windows: the attacher is working on it */
	CLOSED,	 /* attached, nothing counts any more */
	ENDED,
};

/* Windows whose putting in and taking out was measured. */
struct registered {
	unsigned n;
	double work;   /* ns of the attacher's CPU time, a decaying mean */
	uint64_t most; /* the most of it in one window */
};

struct probing {
	struct subject *s; /* NULL: all processes that run a file: */
	struct probed_file file;
	struct bystanders of_file; /* who runs it */
	bool tried; /* its probes were put in, and the kernel did not take too long */
	const struct collect_opts *o; /* borrowed */
	struct probing_user u;
	struct budget *b; /* shared with the target's other probes */
	struct budget_member member;
	double cpu_ns;		/* at the end: the target's, since its first probe was asked for */
	double excess;		/* the share of it that all probes took, above the budget */
	const char *excess_why; /* NULL: it is not above */
	struct uprobes uprobes;
	struct uprobe_group groups[UPROBE_GROUPS_MAX];
	struct uprobe_site *sites; /* of all groups */
	size_t ngroups;
	bool cost_known, measured; /* measured: the price of a hit is measured and not assumed */
	struct cost_probes *cost_probes; /* how that is measured goes on: probes are taken out */
	bool dear;			 /* hits cost enough to be worth measuring their price */
	/*
	 * The probes of the first window are still in, or were let go of by their attacher; putting
	 * them in took the attacher so much CPU time.
	 */
	bool kept;
	uint64_t kept_work;
	bool first_asked;		   /* the answer for the first window is not read yet */
	struct budget_member before_first; /* when it was asked for */
	bool multi, cut; /* cut: ended early, because this kernel has no windows */
	bool crowded;	 /* ended early, because putting probes in takes the kernel too long */
	bool ending;	 /* no new window is planned */
	int ep, timer;
	enum state state;
	int failed; /* the error that kept it from beginning, or 0 */
	/* when it first counted; when this stretch ends and began */
	uint64_t set_ns, end_ns, opened_ns;
	uint64_t stratum_ns, stratum_len; /* begin and length of the present one */
	uint64_t attach_ns;		  /* how long attaching took lately */
	uint64_t window_ns;		  /* the longest that the next window lasts */
	uint64_t attached_ns;		  /* when attaching of everything was asked for last */
	uint64_t asked_ns;		  /* when the attacher was asked for a window */
	/* when the next action is due, and the next count; 0: never */
	uint64_t event_ns, count_ns;
	double look_ns; /* how long reading the count took lately */
	struct burstiness burstiness;
	/*
	 * The present stratum is to be cut here. That adds no bias: the decision did not depend on
	 * where its window lies.
	 */
	bool anew;
	/* the present stratum is measured in the target's count: */
	bool by_count;
	/* its beginning and length, and the place of its window */
	double mass_from, mass, mass_at;
	double asked_rate; /* when the window was asked for */
	uint64_t windows_since;
	struct gpb_spent seen;	 /* at the last call */
	struct window_cost cost; /* of a window beside its hits */
	struct registered registered;
	uint64_t nattached;	    /* how often all was attached, which was paid for */
	bool done_known;	    /* what the target had done at the last look, and */
	double done_cpu, done_work; /* its CPU time (ns) then, by its own count */
	struct window_size size;    /* of the next window */
	double adds_ns; /* what putting in and taking out adds to how long probes are in; a decaying mean */
	uint64_t longest; /* the longest window so far */
	/* in the time that windows were open, since windows_since */
	double recent_cost, recent_ns;
	uint64_t nwindows, observed_ns; /* over everything; observed: in windows and in full */
	uint64_t looked_ns,
		apart_ns; /* when the last stretch was over; the longest time between two */
	uint64_t lost_ns; /* not observed because we did not run */
	uint64_t windows_before, lost_before; /* nwindows and lost_ns, at windows_since */
	bool begun; /* probing_begin() was called: a target that was held before does nothing until then */
	uint64_t gap_ns;     /* not observed, because probes were being put in */
	uint64_t covered_ns; /* all time up to here is accounted for; 0: none yet */
	bool to_full;	     /* observe in full when the present stratum is over */
	uint64_t random;
};

/* Charges the account with what was spent since the last call: *cost. */
int probing_account(struct probing *p, double *cost, struct err *e);
/* A stretch is over: completes @s, and gives it to the owner. */
int probing_hand_over(struct probing *p, struct stretch s, struct err *e);

/*
 * probing_gauge.c. Opens a window before all others, to see whether the target can bear full
 * observation. If so, its probes stay in: probing_kept() until they are taken out.
 */
int probing_gauge(struct probing *p, bool *bears, struct err *e);
bool probing_kept(struct probing *p);

/*
 * What hits cost on this machine: measured once. Hits that were paid for before are paid for by
 * that, too.
 */
void probing_price_hits(struct probing *p);
/* For about how long sites were probed: they are attached and detached one by one. ns */
double probing_exposed_ns(const struct uprobe_windowed *w);
/*
 * Did the kernel take far longer than usual to put probes in or out, as it now and then does for a second? What hits took meanwhile is
 * a debt, which is paid back slowly, and says nothing of what windows cost.
 */
bool probing_stalled(struct probing *p, const struct uprobe_windowed *w);
/* Charges the budget with attaching, or attaching and detaching, apart from hits. */
void probing_pay_attaching(struct probing *p);
/* A window is asked for; one is over, whose hits took @hits ns: what the target did meanwhile tells its cost. */
void probing_learn_between(struct probing *p);
void probing_learn_window(struct probing *p, double hits);

/* Did enough windows show that full observation would keep to the budget? */
bool probing_could_be_full(const struct probing *p, uint64_t now);

/*
 * probing_bystanders.c. Counts other processes that run the same file, before the first window;
 * takes note of what putting all probes in and taking them out took the attacher: @work_ns, 0: not known.
 */
void probing_look_around(struct probing *p);
void probing_learn_registering(struct probing *p, uint64_t work_ns);
/* How long a stratum must be for their sake: ns. */
double probing_bystanders_ns(const struct probing *p);
/* What a window costs beside its hits is known anew: size.fixed. */
void probing_size_windows(struct probing *p);
/* The end of the receipt: how many they are, and what may have held them up. */
void probing_tell_bystanders(const struct probing *p, char *to, size_t size);
/* probing_say.c. On stderr: that probes took more than the budget, if they did, and why. */
void probing_say_excess(struct probing *p);
/* To be called when putting probes in has failed with -EUSERS in mid-profile: the profile ends there. */
int probing_crowded(struct probing *p, const char *why);

/*
 * probing_attacher.c. An attacher that was killed is followed by another one, which first frees what the
 * killed one left in the target's code (uprobes_mend): then nothing is attached and nothing open.
 */
int probing_watch(struct probing *p, int fd, struct err *e);
/* To be called before what probing_watch() was given is closed. */
void probing_unwatch(struct probing *p, int fd);
/* Takes all probes out and ends the attacher. */
void probing_release(struct probing *p);
int probing_mend(struct probing *p, struct err *e);
int probing_attach(struct probing *p, struct err *e);
int probing_detach(struct probing *p, struct err *e);
/* The end of it, after uprobes_detach_soon(). */
int probing_detached(struct probing *p, struct err *e);
/* probing->asked_ns tells when. Its answer may still be -ECHILD. */
int probing_ask_window(struct probing *p, const struct uprobe_window *w, struct err *e);
/* When that is the answer: *out is what can be told of the window; empty when it never opened. */
int probing_broken_window(struct probing *p, struct uprobe_windowed *out, struct err *e);
/* Has the attacher taken the probes off because it did not hear of us? */
bool probing_let_go(const struct probing *p);
/* Since when the probes have seen nothing, because they were let go or nobody keeps them; 0: they do. */
uint64_t probing_gone_since(const struct probing *p);
void probing_hear(struct probing *p, uint64_t now);
/* Once for each target, before its first probe. */
void probing_heal_first(struct subject *s, const struct collect_opts *o);

/* probing_strata.c. How long the stratum from @now on must be: ns. */
double probing_stratum_ns(const struct probing *p, uint64_t now);

#endif
