/*
 * user/collect/budget.h - the account that all probes of one target share.
 *
 * Credit comes in with the target's CPU time (that of a tenth of a CPU at least), and goes out with what
 * probes cost it.
 */
#ifndef COLLECT_BUDGET_H
#define COLLECT_BUDGET_H

#include "collect/subject_priv.h"

/*
 * CPUs that a program is taken to use at least: a share of nothing would be nothing, and one that
 * does next to nothing has no harm from that much.
 */
#define BUDGET_CPUS_MIN 0.1

/* Probes of one profile. The first two are filled in by who joins. */
struct budget_member {
	double hit_ns;	  /* what a hit costs the target */
	bool full;	  /* it observes everything now */
	double window_ns; /* what attaching and detaching once costs it, beside hits */
	double spent;	  /* ns in all */
	uint64_t hits, windows;
	double stepped_ns;	  /* what a hit costs more where the kernel single-steps */
	uint64_t stepped;	  /* so many of the hits */
	double lately, lately_ns; /* spent per ns, decaying; and for how long that is known */
	double owed;		  /* of it, not yet in lately */
	uint64_t at;		  /* of the last payment */
};

struct budget;

/*
 * Members are borrowed until they leave; the last one to leave frees the budget. Who has no bound
 * has an account of its own.
 */
int budget_join(struct subject *s, const struct collect_opts *o, struct budget_member *m,
		struct budget **out, struct err *e);
void budget_leave(struct subject *s, struct budget *b, struct budget_member *m);

void budget_spend(struct budget *b, struct budget_member *m, double ns);
/* As that, of what does not go on: attaching. It says nothing of @m->lately. */
void budget_spend_once(struct budget *b, struct budget_member *m, double ns);
/* The credit is used up, @m costs most of those that observe everything, and more than it should. */
bool budget_exceeded(struct budget *b, const struct budget_member *m);
/* How far apart windows of @m must be that cost @window ns each. In ns, 1e12 at most. */
double budget_stratum(struct budget *b, const struct budget_member *m, double window);
/* For how long @m may go on as it did lately, unwatched: 1 to 3 s. */
double budget_lasts(const struct budget *b, const struct budget_member *m);
/* Would @rate (ns of cost per ns) of @m keep well within it? */
bool budget_allows(struct budget *b, const struct budget_member *m, double rate);
/* More was taken than has come in, and more than a window or two. */
bool budget_in_debt(struct budget *b);
/* The target's CPU time since the first one joined. */
double budget_cpu_ns(struct budget *b);

#endif
