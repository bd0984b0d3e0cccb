/*
 * tests/unit/probing_world.h - simulated programs under the closed loop of windows and budget, for
 * test_probing.c: clocks, timers and the attacher are replaced by functions of these names. What a
 * program does, and when, is decided before a run; probes only cost it CPU time.
 */
#ifndef TESTS_UNIT_PROBING_WORLD_H
#define TESTS_UNIT_PROBING_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>

#include "base/random.h"
#include "probe/uprobes/leftovers.h"
#include "engine/probing_priv.h"
#include "rates.h"

#define MS  1000000ull
#define SEC 1000000000ull

enum { CPU_CLOCK = 77, PROBES = 3, EP = 2000, TIMER = 2100, ATTACHER = 2200, PRICING = 2300 };
/* Of putting in and taking out, where no other process runs the file. */
#define WORK_NS (2 * MS)
enum { PROBED = 20 }; /* sites */

enum { STEP = 100000, SECONDS = 40, STEPS = SECONDS * 10000, SITES = 2 };

/* A program: how often it has passed each site by the end of each step. */
struct program {
	double done[SITES][STEPS + 1];
};

struct probes {
	struct probing *p;
	struct gpb_open open;
	const struct program *program;
	bool counts; /* the target itself counts what is probed */
	uint64_t timer;
	bool attached;
	uint64_t attached_ns;
	double attached_at; /* events up to then */
	struct gpb_spent spent;
	struct uprobe_windowed window;
	bool asked;
	uint64_t cost_probes; /* then those of a price are out; 0: there are none */
	bool keep;	      /* the window's probes stay in */
	uint64_t until;	      /* then the attacher lets go of them; 0: never */
	uint64_t let_go;      /* when it did so last */
	unsigned attachings;
	uint64_t paid;	  /* how many of them */
	uint64_t kill_at; /* somebody kills the attacher then; 0: nobody */
	uint64_t dead;	  /* since then; 0: it lives */
	unsigned kills;
	/* What epoll watches of it. A child may have these files open, so closing does not end that. */
	bool watched_attacher, watched_cost_probes;
	/* The results. */
	double estimate[SITES];
	uint64_t observed, windows, full, length, first_part;
	uint64_t gap_ns;
	uint64_t flips;	 /* from windows to full observation, and back */
	double weighted; /* ns: the lengths of all stretches, times their weights */
	bool was_window;
	bool turned;	      /* from windows to full observation, of which nothing came yet */
	uint64_t told_until;  /* of this time all was told, by windows or in full; 0: nothing yet */
	uint64_t at[1 << 14]; /* when windows opened */
	struct loss loss;
	char receipt[1024];
};

static struct {
	uint64_t now, begin;
	double cpus, cpu; /* CPUs that the target uses; ns */
	struct probes at[PROBES];
	uint64_t detach_ns, attach_ns; /* how long that takes; 0: as usual */
	bool refuses;		       /* the kernel puts no more probes in */
	uint64_t crowded;	       /* from then on that takes it too long; 0: never */
	uint64_t mapped_ns;	       /* what one probe, in and out, takes it longer than usual */
	uint64_t stall_ns;	       /* how much longer probes of a window stay in */
	int n, eps, timers, heals;     /* heals: how many times leftovers were looked for */
	uint64_t random;
	/* What is true of the host and the program, and told to nobody. */
	double stepped;		   /* share of hits that are single-stepped */
	double stepped_ns;	   /* what such a hit costs more */
	bool cost_known;	   /* the host's prices can be measured */
	uint64_t price_ns;	   /* how long that takes */
	double window_ns;	   /* what a window costs beside hits */
	double error;		   /* ns: how well that is said to be known */
	double cost, spent;	   /* ns: what probes took; what they were said to take */
	size_t others;		   /* processes that run the same file */
	uint64_t work_ns;	   /* what was done on their account */
	uint64_t kill_ns, deaf_ns; /* attachers are killed so often, and heard so late */
	/* Between the first window and what is decided by it: we are stopped for so long; the attacher dies. */
	uint64_t stop_ns;
	bool kill_first;
} w;

/* ---- clocks and timers ---- */

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	uint64_t ns = clock == CPU_CLOCK ? (uint64_t)w.cpu : w.now;

	*ts = (struct timespec){ (time_t)(ns / SEC), (long)(ns % SEC) };
	return 0;
}

int clock_getcpuclockid(pid_t pid, clockid_t *clock)
{
	(void)pid;
	*clock = CPU_CLOCK;
	return w.cpu < 0 ? ESRCH : 0; /* the target has exited */
}

int timerfd_create(clockid_t clock, int flags)
{
	(void)clock;
	(void)flags;
	return TIMER + w.timers++;
}

int timerfd_settime(int fd, int flags, const struct itimerspec *t, struct itimerspec *old)
{
	(void)flags;
	(void)old;
	w.at[fd - TIMER].timer = (uint64_t)t->it_value.tv_sec * SEC + (uint64_t)t->it_value.tv_nsec;
	return 0;
}

int epoll_create1(int flags)
{
	(void)flags;
	return EP + w.eps++;
}

int epoll_ctl(int ep, int op, int fd, struct epoll_event *ev)
{
	struct probes *s = &w.at[ep - EP];
	bool *watched = fd >= PRICING ? &s->watched_cost_probes : &s->watched_attacher;

	(void)ev;
	if (fd < ATTACHER)
		return 0;
	assert_true(op == EPOLL_CTL_ADD ? !*watched : *watched);
	*watched = op == EPOLL_CTL_ADD;
	return 0;
}

int epoll_wait(int ep, struct epoll_event *ev, int n, int timeout)
{
	const struct probes *s = &w.at[ep - EP];
	int got = 0;

	(void)timeout;
	if (got < n && s->watched_cost_probes && s->cost_probes <= w.now)
		ev[got++].data.fd = PRICING + (ep - EP);
	if (got < n && ((s->dead && s->dead + w.deaf_ns <= w.now) ||
			(s->asked && s->window.detached <= w.now)))
		ev[got++].data.fd = ATTACHER + (ep - EP);
	return got;
}

ssize_t read(int fd, void *to, size_t n)
{
	if (fd < TIMER || fd >= TIMER + PROBES)
		return syscall(SYS_read, fd, to, n);
	if (!w.at[fd - TIMER].timer || w.at[fd - TIMER].timer > w.now)
		return -1;
	w.at[fd - TIMER].timer = 0;
	return (ssize_t)n;
}

int close(int fd)
{
	return fd >= EP && fd < ATTACHER + PROBES ? 0 : (int)syscall(SYS_close, fd);
}

ssize_t getrandom(void *to, size_t n, unsigned flags)
{
	uint64_t seed = random_next(&w.random);

	(void)flags;
	memcpy(to, &seed, sizeof(seed) < n ? sizeof(seed) : n);
	return (ssize_t)n;
}

void say(const struct collect_opts *o, const char *fmt, ...)
{
	(void)o;
	(void)fmt;
}

void say_exposed(struct subject *s, const struct collect_opts *o, const char *helper)
{
	(void)helper;
	if (o->verbose)
		s->exposed_told = true;
}

/* ---- the program, and probes in it ---- */

static double site_by(const struct program *p, size_t site, uint64_t now)
{
	double steps = (double)(now - w.begin) / STEP, part;
	size_t i = (size_t)steps < STEPS ? (size_t)steps : STEPS - 1;

	part = steps - (double)i;
	return p->done[site][i] + part * (p->done[site][i + 1] - p->done[site][i]);
}

static double all_by(const struct program *p, uint64_t now)
{
	return site_by(p, 0, now) + site_by(p, 1, now);
}

static void attach(struct probes *s, bool yes, uint64_t when)
{
	double by = all_by(s->program, when), hit_ns = probing_hit_ns(s->p), hits, most;

	if (s->attached) {
		hits = by - s->attached_at;
		most = (double)(when - s->attached_ns) / hit_ns;
		if (hits > most) /* the hits of the CPU with most of them */
			hits = most;
		s->spent.hits += (uint64_t)hits;
		s->spent.stepped += (uint64_t)(hits * w.stepped);
		w.cpu += hits * (hit_ns + w.stepped * w.stepped_ns);
		w.cost += hits * (hit_ns + w.stepped * w.stepped_ns);
	}
	s->attached = yes;
	s->attached_ns = when;
	s->attached_at = by;
}

/* The kernel takes its probes out. */
static void attacher_dies(struct probes *s)
{
	s->dead = w.now;
	s->kills++;
	s->kill_at = 0;
	if (s->asked) {
		attach(s, true, s->window.asked);
		s->window.detached = w.now;
	}
	attach(s, false, w.now);
}

static void attacher_lets_go(struct probes *s)
{
	attach(s, false, s->until);
	s->let_go = s->until;
	s->open.bits = 0;
}

static void pass(uint64_t to)
{
	if (to <= w.now)
		return;
	for (int i = 0; i < w.n; i++) {
		struct probes *s = &w.at[i];

		if (s->attached && !s->asked && s->until && s->until <= to)
			attacher_lets_go(s);
	}
	w.cpu += (double)(to - w.now) * w.cpus;
	w.now = to;
	for (int i = 0; i < w.n; i++)
		if (w.at[i].kill_at && w.at[i].kill_at <= w.now)
			attacher_dies(&w.at[i]);
	for (int i = 0; i < w.n; i++)
		if (w.at[i].attached && !w.at[i].asked)
			attach(&w.at[i], true, w.now);
}

/* ---- the attacher ---- */

int uprobe_groups_copy(struct uprobe_group *to, struct uprobe_site **sites,
		       const struct uprobe_group *g, size_t n, struct err *e)
{
	(void)sites;
	(void)e;
	if (n)
		memcpy(to, g, n * sizeof(*g));
	return 0;
}

static struct probes *of(const struct uprobes *u)
{
	return &w.at[u->attacher.sock - ATTACHER];
}

static void next_kill(struct probes *s)
{
	if (w.kill_ns)
		s->kill_at = w.now + 1 + (uint64_t)(2 * random_part(&w.random) * (double)w.kill_ns);
}

struct uprobe_open uprobe_open_in(const struct bpf_map *map, volatile void *at)
{
	(void)map;
	return (struct uprobe_open){ .at = at };
}

int uprobes_hold(struct uprobes *u, const struct uprobe_group *g, size_t n, bool multi, pid_t pid,
		 const struct uprobe_open *open, struct err *e)
{
	(void)g;
	(void)n;
	(void)multi;
	(void)pid;
	(void)e;
	for (int i = 0; i < w.n; i++)
		if (open->at == &w.at[i].open)
			u->attacher.sock = ATTACHER + i;
	next_kill(of(u));
	return 0;
}

int uprobes_attach(struct uprobes *u, struct err *e)
{
	if (w.refuses)
		return err_set(e, -EINVAL, "no");
	if (w.crowded && w.now >= w.crowded)
		return err_set(e, -EUSERS, "it takes long");
	pass(w.now + (w.attach_ns ? w.attach_ns : 10 * MS));
	if (of(u)->dead)
		return err_set(e, -ECHILD, "it is dead");
	of(u)->attachings++;
	attach(of(u), true, w.now);
	return 0;
}

int uprobes_detach_soon(struct uprobes *u, struct err *e)
{
	struct probes *s = of(u);

	if (s->dead)
		return err_set(e, -ECHILD, "it is dead");
	assert_false(s->asked);
	s->asked = true;
	s->window.asked = w.now;
	s->window.detached = w.now + w.detach_ns;
	return 0;
}

int uprobes_detached(struct uprobes *u, uint64_t *work_ns, struct err *e)
{
	struct probes *s = of(u);

	if (work_ns)
		*work_ns = WORK_NS / 2;
	pass(s->window.detached);
	s->asked = false;
	if (s->dead)
		return err_set(e, -ECHILD, "it is dead");
	attach(s, false, w.now);
	return 0;
}

/*
 * A site counts as attached for half of the time that attaching takes, and half of the time that
 * detaching takes.
 */
int uprobes_window(struct uprobes *u, const struct uprobe_window *a, struct err *e)
{
	struct probes *s = of(u);
	struct uprobe_windowed *o = &s->window;
	uint64_t visits = w.others * (WORK_NS / 200); /* a part of what the target takes */

	if (s->dead)
		return err_set(e, -ECHILD, "it is dead");
	assert_false(s->asked || s->attached);
	s->asked = true;
	s->attachings++;
	s->keep = a->keep_until;
	if (s->keep)
		s->until = a->keep_until;
	o->asked = w.now;
	o->work_ns = (s->keep ? WORK_NS / 2 : WORK_NS) + visits + w.mapped_ns * PROBED;
	w.work_ns += visits;
	o->opened = a->open > w.now + 10 * MS ? a->open : w.now + 10 * MS;
	o->closed = o->opened + a->end;
	o->detached = o->closed + (s->keep ? 0 : 15 * MS + w.stall_ns);
	s->length = a->end;
	s->first_part = a->begin;
	return 0;
}

bool uprobes_answered(struct uprobes *u)
{
	(void)u;
	return true;
}

int uprobes_windowed(struct uprobes *u, struct uprobe_windowed *out, struct err *e)
{
	struct probes *s = of(u);

	pass(s->window.detached);
	s->asked = false;
	if (s->window.opened < w.now)
		s->open.since = s->window.opened;
	if (s->dead)
		return err_set(e, -ECHILD, "it is dead");
	if (w.crowded && s->window.asked >= w.crowded)
		return err_set(e, -EUSERS, "it takes long");
	attach(s, true, s->window.opened - 5 * MS);
	if (s->keep)
		attach(s, true, s->window.detached);
	else
		attach(s, false, s->window.detached - 7 * MS);
	w.cpu += w.window_ns;
	w.cost += w.window_ns;
	*out = s->window;
	out->detached = s->keep ? 0 : out->detached;
	return 0;
}

uint64_t uprobes_dead(const struct uprobes *u)
{
	return of(u)->dead;
}

/* What was left behind is put in and taken out again. */
int uprobes_mend(struct uprobes *u, struct err *e)
{
	struct probes *s = of(u);

	(void)e;
	assert_true(s->dead && !s->attached && !s->watched_attacher);
	s->dead = 0;
	u->deaths++;
	pass(w.now + 20 * MS);
	next_kill(s);
	return 0;
}

void bystanders_look(struct bystanders *b, const char *proc, int fd, pid_t pid, uint64_t most_ns)
{
	(void)proc;
	(void)fd;
	(void)pid;
	(void)most_ns;
	b->known = true;
	b->n = w.others;
}

size_t bystanders_least(const struct bystanders *b)
{
	return b->n;
}

void bystanders_fini(struct bystanders *b)
{
	(void)b;
}

void leftovers_begin(struct target *t, const struct collect_opts *o)
{
	(void)t;
	(void)o;
	w.heals++;
}

int uprobes_fd(struct uprobes *u)
{
	return u->attacher.sock ? u->attacher.sock : -1;
}

void uprobes_until(struct uprobes *u, uint64_t ns)
{
	of(u)->until = ns;
}

uint64_t uprobes_let_go(const struct uprobes *u)
{
	return of(u)->let_go;
}

void uprobes_free(struct uprobes *u)
{
	if (!u->attacher.sock)
		return;
	assert_false(of(u)->watched_attacher);
	if (of(u)->attached)
		attach(of(u), false, w.now);
	u->attacher.sock = 0;
}

/* ---- the owners of the probes ---- */

static bool count_now(void *arg, double *count)
{
	struct probes *s = arg;

	*count = all_by(s->program, w.now);
	return true;
}

static int hit_cost_now(void *arg, struct hit_cost *out, struct cost_probes **rest, struct err *e)
{
	struct probes *s = arg;

	pass(w.now + w.price_ns);
	if (!w.cost_known)
		return err_set(e, -ENOTSUP, "not here");
	s->cost_probes = w.now + 30 * MS;
	*rest = (struct cost_probes *)s;
	*out = (struct hit_cost){ .hit_ns = 400, .stepped_ns = w.stepped_ns };
	return 0;
}

int cost_probes_fd(struct cost_probes *p)
{
	return PRICING + (int)((const struct probes *)p - w.at);
}

void cost_probes_free(struct cost_probes *p)
{
	struct probes *s = (struct probes *)p;

	if (!s)
		return;
	assert_false(s->watched_cost_probes);
	pass(s->cost_probes);
	s->cost_probes = 0;
}

static int spent_so_far(void *arg, struct gpb_spent *out, struct err *e)
{
	struct probes *s = arg;

	(void)e;
	*out = s->spent;
	return 0;
}

/*
 * What goes with windows is told of all of the time between two stretches of full observation: looks
 * from outside, say, which are made only then.
 */
static int turn_now(void *arg, bool windows, uint64_t since, double hit_ns, uint64_t window_ns,
		    struct err *e)
{
	struct probes *s = arg;

	(void)hit_ns;
	(void)window_ns;
	(void)e;
	assert_true(since <= w.now);
	if (windows && s->told_until)
		assert_int_equal(since, s->told_until);
	s->told_until = windows ? since : w.now;
	s->turned = !windows;
	return 0;
}

/* At each change of mind all time up to then has been stood for, once. */
static void check_time(struct probes *s, const struct stretch *t)
{
	double since = (double)(t->opened - probing_since(s->p));
	double told = s->weighted + (double)(s->p->gap_ns + s->p->lost_ns);

	if (!t->weight || t->mass > 0)
		return;
	/* A window's stratum has just been settled: what was before it is what is told. */
	if (t->window && !s->was_window)
		since = (double)(s->p->stratum_ns - probing_since(s->p));
	if ((!t->window || !s->was_window) && s->weighted > 0) {
		s->flips++;
		if (fabs(told - since) > 10)
			fail_msg("%.0f ns stand for %.0f", told, since);
	}
	s->was_window = t->window;
	s->weighted += t->weight * (double)(t->closed - t->opened);
}

/* What may come between the first window and the decision. */
static void disturb(struct probes *s)
{
	if (w.kill_first)
		s->kill_at = w.now + 1;
	w.kill_first = false;
	pass(w.now + 2 + w.stop_ns);
}

static int over(void *arg, const struct stretch *t, struct err *e)
{
	struct probes *s = arg;
	double seen[SITES], all = 0;

	(void)e;
	if (!t->weight)
		disturb(s);
	if (!s->counts)
		check_time(s, t);
	for (int i = 0; i < SITES; i++) {
		seen[i] = site_by(s->program, (size_t)i, t->closed) -
			  site_by(s->program, (size_t)i, t->opened);
		all += seen[i];
	}
	if (t->weight > 0)
		s->observed += t->closed - t->opened;
	if (t->weight > 0 && !t->window) {
		s->full += t->closed - t->opened;
		if (s->turned)
			assert_int_equal(t->opened, s->told_until);
		s->turned = false;
		s->told_until = t->closed;
	}
	if (t->weight > 0 && t->window && s->windows < sizeof(s->at) / sizeof(*s->at))
		s->at[s->windows++] = t->opened;
	for (int i = 0; i < SITES; i++) {
		if (t->mass > 0)
			s->estimate[i] += all > 0 ? t->mass * seen[i] / all : 0;
		else
			s->estimate[i] += t->weight * seen[i];
	}
	return 0;
}

/* ---- runs ---- */

static void step_all(uint64_t until)
{
	uint64_t next = until;

	for (int i = 0; i < w.n; i++) {
		const struct probes *s = &w.at[i];

		if (s->timer && s->timer < next)
			next = s->timer;
		if (s->asked && s->window.detached < next)
			next = s->window.detached;
		if (s->cost_probes && s->cost_probes < next)
			next = s->cost_probes;
		if (s->kill_at && s->kill_at < next)
			next = s->kill_at;
		if (s->dead && s->dead + w.deaf_ns < next)
			next = s->dead + w.deaf_ns;
	}
	pass(next > w.now ? next : w.now);
	for (int i = 0; i < w.n; i++) {
		const struct probes *s = &w.at[i];

		assert_int_equal(probing_poll(s->p, NULL), 0);
		/* What is said to be observed in full is probed. */
		assert_true(s->p->state != FULL || s->attached || s->dead || s->let_go);
	}
}

/* The last comment of the profile. */
static void take_receipt(struct probes *s)
{
	struct prof_header_view v;
	struct prof *p;

	assert_int_equal(prof_new(&p, NULL), 0);
	assert_int_equal(probing_comment(s->p, p, NULL), 0);
	v = prof_header(p);
	assert_true(v.ncomments > 0);
	snprintf(s->receipt, sizeof(s->receipt), "%s",
		 strtab_get(prof_strings(p), v.comments[v.ncomments - 1]));
	prof_free(p);
}

static uint64_t kill_every, heard_late; /* as kill_ns, and deaf_ns */
static uint64_t lasts_ns; /* how long the profile lasts while hits count; 0: the run's seconds */
static bool told_lasts;	  /* it is told so beforehand */
static size_t others;	  /* as w.others */

#define ORDINARY_PARTS             \
	{                          \
		0, 8 * MS, 50 * MS \
	}
static struct window_parts parts = ORDINARY_PARTS;

/* The target uses @cpus; the budget is 5 % of that. */
static void begin_world(double cpus, uint64_t seed)
{
	memset(&w, 0, sizeof(w));
	w.now = w.begin = 5 * SEC;
	w.cpu = 1e9;
	w.cpus = cpus;
	w.random = seed;
	w.window_ns = 2e6;
	w.kill_ns = kill_every, w.deaf_ns = heard_late;
	w.others = others;
}

static void prepare(struct subject *subject, const struct program *const *programs,
		    const bool *counts, int n)
{
	static struct collect_opts o; /* it outlives the probes */

	o = (struct collect_opts){ .budget.ppm = 50000, .window_ns = told_lasts ? lasts_ns : 0 };
	for (int i = 0; i < n; i++) {
		struct probes *s = &w.at[w.n];
		const struct probing_user u = {
			.what = "test",
			.open = &s->open,
			.parts = parts,
			.look = counts[i] ? count_now : NULL,
			.hit_cost = hit_cost_now,
			.spent = spent_so_far,
			.turn = turn_now,
			.over = over,
			.arg = s,
		};

		s->program = programs[i];
		s->counts = counts[i];
		assert_int_equal(probing_new(subject, &o, &u, true, &s->p, NULL), 0);
		w.n++;
		assert_int_equal(probing_set(s->p, &(struct uprobe_group){ .n = PROBED }, 1, NULL),
				 0);
		/* Nothing is attached while others prepare. */
		assert_true(w.now == w.begin && !probing_since(s->p));
	}
}

static void run(const struct program *const *programs, const bool *counts, int n, uint64_t seconds)
{
	struct target target = { .pid = 1 };
	struct subject subject = { .target = &target };
	uint64_t until = w.begin + seconds * SEC;

	prepare(&subject, programs, counts, n);
	assert_int_equal(probing_begin(w.at[0].p, NULL), 0);
	if (lasts_ns)
		until = probing_since(w.at[0].p) + lasts_ns;
	while (w.now < until)
		step_all(until);
	for (int i = 0; i < n; i++)
		assert_int_equal(probing_end(w.at[i].p, NULL), 0);
	for (int i = 0; i < n; i++) {
		w.at[i].gap_ns = w.at[i].p->gap_ns;
		w.at[i].paid = w.at[i].p->nattached;
		w.spent += w.at[i].p->member.spent;
		w.error = window_cost_now(&w.at[i].p->cost).error * (double)w.at[i].p->nattached;
		probing_losses(w.at[i].p, &w.at[i].loss);
		take_receipt(&w.at[i]);
		probing_free(w.at[i].p);
		assert_int_equal(w.at[i].cost_probes, 0);
	}
}

/* @rate: events per second at a time, in seconds; site 1 has @share of them. */
static struct program *program(double (*rate)(double), double (*share)(double))
{
	struct program *p = calloc(1, sizeof(*p));

	assert_non_null(p);
	for (size_t i = 0; i < STEPS; i++) {
		double at = (double)i * STEP / 1e9, n = rate(at) * STEP / 1e9,
		       part = share ? share(at) : 0.5;

		p->done[0][i + 1] = p->done[0][i] + n * (1 - part);
		p->done[1][i + 1] = p->done[1][i] + n * part;
	}
	return p;
}

static inline void run_one(double (*rate)(double), bool counts, double cpus, uint64_t seconds)
{
	struct program *p = program(rate, NULL);

	begin_world(cpus, 1);
	run((const struct program *[]){ p }, &counts, 1, seconds);
	free(p);
}

static inline uint64_t windows_between(const struct probes *s, double from, double to)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < s->windows; i++) {
		double at = (double)(s->at[i] - w.begin) / 1e9;

		n += at >= from && at < to;
	}
	return n;
}

static inline double share_observed(const struct probes *s, uint64_t seconds)
{
	return (double)s->observed / 1e9 / (double)seconds;
}

#endif
