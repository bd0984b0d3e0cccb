/*
 * user/sampling/windows/budget.h - the account that all probes of one target share: a token bucket.
 *
 * The target's CPU time fills it (at least that of a tenth of a CPU), and the cost of its probes
 * empties it.
 */
#ifndef SAMPLING_WINDOWS_BUDGET_H
#define SAMPLING_WINDOWS_BUDGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * CPUs that a program is assumed to use at least. A share of nothing would be nothing, and a
 * program that does next to nothing is not harmed by so much.
 */
#define BUDGET_CPUS_MIN 0.1

/*
 * Of accounts that many files have, all together are assumed to use that much: those whose probes take anything have equal
 * parts of it, and of what each account may take ahead. Zeroed at first.
 */
struct budget_least {
	size_t busy;
};

/* The probes of one profile. Whoever joins fills in the first two fields. */
struct budget_member {
	double hit_ns;	  /* what a hit costs the target */
	bool full;	  /* it observes everything now */
	double window_ns; /* what attaching and detaching once costs the target, beside hits */
	double spent;	  /* ns in all */
	uint64_t hits, windows;
	double stepped_ns; /* what a hit costs more where the kernel single-steps */
	uint64_t stepped;  /* so many of the hits */
	/* spent per ns, a decaying mean; and over how many ns that is known */
	double lately, lately_ns;
	double owed; /* the part of spent that is not in lately yet */
	uint64_t at; /* when the last payment was made */
};

struct budget;

/* Whose account it is. What is borrowed outlives it. */
struct budget_owner {
	/* CLOCK_MONOTONIC, and the CPU time of who pays, which only grows: less than before: they have gone. */
	uint64_t (*now_ns)(void *arg);
	uint64_t (*cpu_ns)(void *arg);
	void *arg;
	double share;		    /* of that CPU time which may be taken; 0: no bound */
	double ahead_ns;	    /* what may be taken before that bound holds */
	struct budget_least *least; /* of all such accounts; borrowed; NULL: it is alone */
};

/*
 * Members are borrowed until they leave; the last one to leave frees the budget. *@shared is the account of
 * all members with a bound, NULL at first; NULL there, or no bound: the member has an account of its own. Returns NULL when there is no memory.
 */
struct budget *budget_join(struct budget **shared, const struct budget_owner *o,
			   struct budget_member *m);
void budget_leave(struct budget **shared, struct budget *b, struct budget_member *m);

void budget_spend(struct budget *b, struct budget_member *m, double ns);
/* The same for a cost that does not repeat: attaching. It does not change @m->lately. */
void budget_spend_once(struct budget *b, struct budget_member *m, double ns);
/*
 * Is the credit used up, and is @m the most expensive member in full observation, and does it take
 * more than half of what the other such members leave?
 */
bool budget_exceeded(struct budget *b, const struct budget_member *m);
/* How far apart windows of @m must be when each costs @window ns. In ns, at most 1e12. */
double budget_stratum(struct budget *b, const struct budget_member *m, double window);
/* For how long @m may go on as it did lately while nobody watches: 1 to 3 s. */
double budget_lasts(const struct budget *b, const struct budget_member *m);
/* Would @m keep well within the budget at @rate (ns of cost per ns)? */
bool budget_allows(struct budget *b, const struct budget_member *m, double rate);
/* What the credit may be below zero before budget_exceeded(), in ns: so that one moment does not decide. */
double budget_lends(const struct budget *b);
/* Is the credit below zero by more than one or two windows cost? */
bool budget_in_debt(struct budget *b);
/* The target's CPU time since the first member joined. */
double budget_cpu_ns(struct budget *b);
/*
 * Have all members together taken more than their share of that time? Then *taken is the share that they
 * took, and this says what allowed it; else NULL.
 */
const char *budget_excess(struct budget *b, double *taken);

#endif
