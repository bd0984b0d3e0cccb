/* user/sampling/windows/budget.c - a token bucket that the target's CPU clock fills. */
#include "sampling/windows/budget.h"

#include "base/cleanup.h"
#include "base/clock.h"

enum { MEMBERS_MAX = 4 };

#define CREDIT_MIN_NS (10 * (double)NS_PER_MS)
/* A loan, so that one moment does not decide. Windows pay it back. */
#define LOAN_NS	  (10 * (double)NS_PER_MS)
#define CREDIT_NS 1e9 /* unused credit is saved up for at most so long */
/* with this part of the most credit saved, whoever can use it may take all that is left */
#define SAVED	  0.5
#define LATELY_NS 0.5e9 /* rates are over about the last half second */
#define FOREVER	  1e12	/* ns */

/* A collector that is late because the machine is busy must not be mistaken for a stopped one. */
#define LASTS_MIN_NS 1e9
#define LASTS_MAX_NS 3e9

struct budget {
	struct budget_owner of;
	bool busy;	     /* counted in of.least */
	double ahead;	     /* ns that may still be taken before the share holds */
	double spent;	     /* ns in all, by members that have left, too */
	double credit, rate; /* credit: ns; rate: CPU time per ns, over the last half second */
	double rate_ns;	     /* over how many ns that is known */
	uint64_t cpu_first, cpu, first, at;
	struct budget_member *members[MEMBERS_MAX];
	size_t n;
};

static uint64_t time_ns(const struct budget *b)
{
	return b->of.now_ns(b->of.arg);
}

/*
 * Moves *v, a decaying mean, towards @now, the mean over the last @ns. *known is the time that *v
 * covers. At first that is less than LATELY_NS, and then *v must not be mixed with a zero for the
 * time before.
 */
static void blend(double *v, double *known, double now, double ns)
{
	*known += ns;
	if (*known > LATELY_NS)
		*known = LATELY_NS;
	*v += (now - *v) * (ns < *known ? ns / *known : 1);
}

/* Of what is given away without CPU time of targets. */
static double part(const struct budget *b)
{
	size_t n = b->of.least ? b->of.least->busy + !b->busy : 1;

	return 1 / (double)n;
}

static double least_cpus(const struct budget *b)
{
	return BUDGET_CPUS_MIN * part(b);
}

double budget_lends(const struct budget *b)
{
	return LOAN_NS * part(b);
}

/* The cost that is allowed, in ns per ns. */
static double income(const struct budget *b)
{
	return b->of.share * (b->rate > least_cpus(b) ? b->rate : least_cpus(b));
}

static double most_credit(const struct budget *b)
{
	double most = income(b) * CREDIT_NS, least = CREDIT_MIN_NS * part(b);

	return most > least ? most : least;
}

static void earn(struct budget *b)
{
	uint64_t now = time_ns(b), cpu = b->of.cpu_ns(b->of.arg);
	double used, least;

	if (now <= b->at || cpu < b->cpu) /* the target has gone, and its clock too */
		return;
	blend(&b->rate, &b->rate_ns, (double)(cpu - b->cpu) / (double)(now - b->at),
	      (double)(now - b->at));
	used = (double)(cpu - b->cpu);
	least = least_cpus(b) * (double)(now - b->at);
	b->credit += b->of.share * (used > least ? used : least);
	if (b->credit > most_credit(b))
		b->credit = most_credit(b);
	b->cpu = cpu;
	b->at = now;
}

static struct budget *budget_new(const struct budget_owner *o)
{
	struct budget *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->of = *o;
	b->ahead = o->ahead_ns;
	b->first = b->at = time_ns(b);
	b->cpu = b->cpu_first = o->cpu_ns(o->arg);
	return b;
}

static void join(struct budget *b, struct budget_member *m)
{
	BUG_ON(b->n == MEMBERS_MAX);
	m->at = time_ns(b);
	b->members[b->n++] = m;
}

struct budget *budget_join(struct budget **shared, const struct budget_owner *o,
			   struct budget_member *m)
{
	bool shares = shared && o->share > 0;
	struct budget *b = shares && *shared ? *shared : budget_new(o);

	if (!b)
		return NULL;
	if (shares)
		*shared = b;
	join(b, m);
	return b;
}

void budget_leave(struct budget **shared, struct budget *b, struct budget_member *m)
{
	size_t i = 0;

	while (i < b->n && b->members[i] != m)
		i++;
	BUG_ON(i == b->n);
	b->members[i] = b->members[--b->n];
	if (b->n)
		return;
	if (shared && *shared == b)
		*shared = NULL;
	if (b->busy)
		b->of.least->busy--;
	free(b);
}

void budget_spend_once(struct budget *b, struct budget_member *m, double ns)
{
	double unbound = ns < b->ahead ? ns : b->ahead;

	earn(b);
	b->ahead -= unbound;
	b->credit -= ns - unbound;
	b->spent += ns;
	m->spent += ns;
}

void budget_spend(struct budget *b, struct budget_member *m, double ns)
{
	uint64_t now = time_ns(b);
	double since;

	if (b->of.least && !b->busy && ns > 0) {
		b->busy = true;
		b->of.least->busy++;
	}
	budget_spend_once(b, m, ns);
	m->owed += ns;
	if (now <= m->at)
		return;
	since = (double)(now - m->at);
	blend(&m->lately, &m->lately_ns, m->owed / since, since);
	m->owed = 0;
	m->at = now;
}

/* What the members that observe everything leave to @m and the others, in ns per ns. */
static double left_to(const struct budget *b, const struct budget_member *m)
{
	double left = income(b);

	for (size_t i = 0; i < b->n; i++)
		if (b->members[i]->full && b->members[i] != m)
			left -= b->members[i]->lately;
	return left;
}

bool budget_exceeded(struct budget *b, const struct budget_member *m)
{
	if (b->of.share <= 0 || b->credit >= -budget_lends(b))
		return false;
	for (size_t i = 0; i < b->n; i++)
		if (b->members[i]->full && b->members[i]->lately > m->lately)
			return false;
	/* Otherwise the debt is not its fault: the members in windows pay it back. */
	return m->lately + m->owed / LATELY_NS > left_to(b, m) / 2;
}

/* What is left for @m in windows, in ns per ns. */
static double left_each(const struct budget *b, const struct budget_member *m)
{
	double all = income(b), left = left_to(b, m), each, saved;
	size_t n = 0;

	for (size_t i = 0; i < b->n; i++)
		n += !b->members[i]->full || b->members[i] == m;
	/*
	 * Members that observe everything must not take more than half of what comes in. If they
	 * take more, the credit is soon used up, and one of them goes into windows, too.
	 */
	if (left < all / 2)
		left = all / 2;
	if (!n)
		return left;
	each = left / (double)n;
	/*
	 * What some members do not use is saved up. A member that can use more than its part may
	 * have it.
	 */
	saved = b->credit / (SAVED * most_credit(b));
	if (saved > 0)
		each += (left - each) * (saved < 1 ? saved : 1);
	return each;
}

double budget_stratum(struct budget *b, const struct budget_member *m, double window)
{
	double each, debt, ns;

	earn(b);
	each = left_each(b, m);
	debt = b->credit < 0 ? -b->credit : 0;
	/* An old debt is paid back slowly: with at most half of what comes in. */
	if (debt > window)
		debt = window;
	ns = (window + debt) / each;
	return ns < FOREVER ? ns : FOREVER;
}

double budget_lasts(const struct budget *b, const struct budget_member *m)
{
	double deficit = m->lately - income(b), ns;

	if (deficit <= 0)
		return LASTS_MAX_NS;
	ns = (b->ahead + b->credit + budget_lends(b)) / deficit;
	return ns > LASTS_MAX_NS ? LASTS_MAX_NS : ns > LASTS_MIN_NS ? ns : LASTS_MIN_NS;
}

bool budget_allows(struct budget *b, const struct budget_member *m, double rate)
{
	earn(b);
	/* The other half is enough for all members in windows, however many they are. */
	return rate < left_to(b, m) / 2;
}

bool budget_in_debt(struct budget *b)
{
	earn(b);
	return b->credit < -budget_lends(b) / 2;
}

double budget_cpu_ns(struct budget *b)
{
	earn(b);
	return (double)(b->cpu - b->cpu_first);
}

/* Hundredths of a percent are what people see. */
#define EXCESS 1.01

const char *budget_excess(struct budget *b, double *taken)
{
	double cpu = budget_cpu_ns(b);

	if (b->of.share <= 0 || cpu <= 0 || b->spent <= EXCESS * b->of.share * cpu)
		return NULL;
	*taken = b->spent / cpu;
	if (b->of.ahead_ns > 0)
		return "a command's first second of probes does not count";
	if (b->of.least && cpu < least_cpus(b) * (double)(b->at - b->first))
		return "all files that are probed count as using a tenth of a CPU at least, and some "
		       "10 ms are taken ahead of all, and more until that is noticed";
	if (cpu < least_cpus(b) * (double)(b->at - b->first))
		return "a program that uses less than a tenth of a CPU counts as using that much, and "
		       "some 10 ms are taken ahead, and more until that is noticed";
	return "some 10 ms are taken ahead, and more until that is noticed";
}
