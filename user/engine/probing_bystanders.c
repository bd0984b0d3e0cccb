/*
 * user/engine/probing_bystanders.c - what windows take from other processes that run the same
 * file (bystanders.h), and how rare that makes them.
 *
 * At each moment of putting probes in and out the kernel holds the mmap_lock of at most one of
 * them. So all of them together are held up, and forks of any process are, for no longer than that
 * work takes; the attacher's CPU clock measures it in every window. From beginning to end it takes
 * up to 75 ms, but nearly all of that is waiting, mostly for RCU grace periods, and forks took at
 * most 8 ms meanwhile (docs/costs.md).
 */
#include <math.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "engine/probing_priv.h"
#include "target/host/exes.h"

/*
 * For each kind of profile: the largest share of the time that the kernel may work on account of
 * bystanders.
 */
#define SHARE 0.01
/*
 * A visit to a process in which nothing is to be changed takes this part of what one probe takes
 * in the target. Measured (tests/bench/bystanders.sh): a window's work was 1.4 ms with 1 of them,
 * 1.8 ms with 50 and 2.6 ms with 200; Linux 6.18, 2 CPUs, 18 probes.
 */
#define VISIT_PART 0.005
/*
 * Putting one probe in and out takes the attacher no more than this where the file is mapped by those
 * who run it: 80 us on the machine above with none, 150 with 200.
 */
#define ORDINARY_NS 300e3
/* And closing the link of a program's probes, which takes a thread, no more than this: 0.1 to 0.2 ms there. */
#define ORDINARY_LINK_NS 1e6
/* The weight of the newest window in the mean, at least. */
#define LATELY	 0.1

#define FIRST_NS (20 * NS_PER_MS)
#define NEXT_NS	 (NS_PER_MS / 2)

static size_t least(const struct probing *p)
{
	return bystanders_least(p->s ? &p->s->bystanders : &p->of_file);
}

/* Of a file everybody who runs it counts: each of them is visited. */
static void look(struct probing *p, uint64_t most_ns)
{
	if (p->s) {
		bystanders_look(&p->s->bystanders, "/proc", p->s->images.at[0].fd,
				p->s->target->pid, most_ns);
		return;
	}
	exes_look(p->file.exes, "/proc", most_ns);
	exes_count(p->file.exes, p->file.fd, &p->of_file);
}

void probing_look_around(struct probing *p)
{
	look(p, FIRST_NS);
}

/*
 * What is more than probes in and out take on a slow machine is due to mappings of the file, even if
 * nobody was counted: a process need not run the file to map it, and may do so many times.
 */
static double for_mappings(const struct probing *p, double work_ns)
{
	double ordinary = ORDINARY_LINK_NS * (double)p->ngroups;

	for (size_t i = 0; i < p->ngroups; i++)
		ordinary += (double)p->groups[i].n * ORDINARY_NS;
	return work_ns > ordinary ? work_ns - ordinary : 0;
}

/* The part of a window's work that other processes are the reason for. ns */
static double for_bystanders(const struct probing *p)
{
	double visits = VISIT_PART * (double)least(p);

	return fmax(p->registered.work * visits / (1 + visits),
		    for_mappings(p, p->registered.work));
}

double probing_bystanders_ns(const struct probing *p)
{
	return for_bystanders(p) / SHARE;
}

void probing_size_windows(struct probing *p)
{
	p->size.fixed = p->member.window_ns + for_bystanders(p);
}

void probing_learn_registering(struct probing *p, uint64_t work_ns)
{
	struct registered *r = &p->registered;
	double part;

	look(p, NEXT_NS);
	if (!work_ns) /* the attacher was killed, or the probes are still in */
		return;
	part = 1 / (double)++r->n;
	r->work += ((double)work_ns - r->work) * (part > LATELY ? part : LATELY);
	if (work_ns > r->most)
		r->most = work_ns;
	budget_spend_once(p->b, &p->member, for_mappings(p, (double)work_ns));
	probing_size_windows(p);
}

int probing_crowded(struct probing *p, const char *why)
{
	p->crowded = true;
	p->state = ENDED;
	p->u.open->bits = 0;
	say(p->o, "%s: %s: no more is observed", p->u.what, why);
	probing_release(p);
	return 0;
}

/* Is it the executable, and no library? Of those that map a library nothing is known. */
static bool is_executable(const struct subject *s)
{
	struct stat file;

	if (!s)
		return true;
	return !fstat(s->images.at[0].fd, &file) && file.st_ino == s->target->exe_id.ino;
}

void probing_tell_bystanders(const struct probing *p, char *to, size_t size)
{
	const struct bystanders *b = p->s ? &p->s->bystanders : &p->of_file;
	size_t n = least(p);

	*to = '\0';
	if (!p->registered.n)
		return;
	if (for_mappings(p, p->registered.work) > 0)
		snprintf(
			to, size,
			"; the file is mapped so often that putting probes in and out took the kernel "
			"%.2g ms a time (at most %.2g ms), in which no process could fork",
			p->registered.work / 1e6, (double)p->registered.most / 1e6);
	else if (!is_executable(p->s) || (!b->known && !n))
		snprintf(to, size, "; not counted: other processes that map this %s",
			 is_executable(p->s) ? "binary" : "library");
	else if (n)
		snprintf(
			to, size,
			"; %s%zu %sprocess%s this binary: putting probes in and out held up %s mmap "
			"calls, and any process's fork, for %.2g ms a window (at most %.2g ms)",
			(b->known && !b->hidden) || (!p->s && n == 1) ? "" : "at least ", n,
			p->s ? "other " : "",
			n == 1 && !p->s && b->hidden ? " that we may look at runs" :
			n == 1			     ? " runs" :
						       "es run",
			n == 1 ? "its" : "their", p->registered.work / 1e6,
			(double)p->registered.most / 1e6);
	else
		snprintf(to, size, "; no other process %sruns this binary",
			 b->hidden ? "that we may look at " : "");
}
