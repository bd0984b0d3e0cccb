/*
 * tests/unit/test_probe_set.c - the probes of files and the targets that share them: who is in which set, whose a loss is, and
 * what becomes of a set that its members leave. Probes, what a kind does with stretches, and processes are this file's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <time.h>
#include <signal.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "engine/probe_set.h"
#include "probe/bpf.h"
#include "target/host/samefile.h"

/* ---- files ---- */

/* What containers show under several numbers: in memory it is one. */
bool same_file(int a, int b)
{
	struct stat x, y;

	return !fstat(a, &x) && !fstat(b, &y) && S_ISREG(x.st_mode) && x.st_ino == y.st_ino;
}

/* ---- what was there before ---- */

static int looked, healings;

void healing_look(struct healing *h, struct target *t, struct healing_found *out)
{
	(void)t;
	assert_false(h->asked);
	*out = (struct healing_found){ .n = 3 };
	looked++;
}

void healing_begin(struct healing *h)
{
	h->asked = looked;
	healings += h->asked;
}

int healing_fd(struct healing *h)
{
	(void)h;
	return -1;
}

bool healing_over(struct healing *h)
{
	return h->asked;
}

void healing_end(struct healing *h)
{
	h->asked = false;
}

/* ---- probes ---- */

struct probing {
	struct probing_user u;
	int fd; /* readable */
	bool begun, ended;
};
static uint64_t deaths, unwatched;
static int nprobings, nfreed, nopen, nended;

int probing_new_file(const struct probed_file *f, const struct collect_opts *o,
		     const struct probing_user *u, struct probing **out, struct err *e)
{
	(void)o;
	(void)e;
	assert_true(f->at_once >= 1);
	*out = calloc(1, sizeof(**out));
	(*out)->u = *u;
	(*out)->fd = eventfd(1, EFD_CLOEXEC);
	nprobings++;
	return 0;
}

int probing_set(struct probing *p, const struct uprobe_group *groups, size_t n, struct err *e)
{
	(void)groups;
	(void)e;
	assert_non_null(p);
	assert_true(n && healings == (looked > 0)); /* no probe of ours is in when that begins */
	return 0;
}

int probing_begin_soon(struct probing *p, struct err *e)
{
	(void)p;
	(void)e;
	return 0;
}

bool probing_beginning(const struct probing *p)
{
	return !p->begun;
}

/* Everything is observed from now on, until it is closed: of all before one is ended. */
int probing_poll(struct probing *p, struct err *e)
{
	if (p->begun)
		return 0;
	p->begun = true;
	nopen++;
	return p->u.turn(p->u.arg, false, 1, 0, 0, e);
}

int probing_close(struct probing *p, struct err *e)
{
	const struct stretch s = { .opened = 1, .closed = 2, .weight = 1 };

	assert_false(p->ended);
	nopen -= p->begun;
	return p->begun ? p->u.over(p->u.arg, &s, e) : 0;
}

int probing_end(struct probing *p, struct err *e)
{
	(void)e;
	assert_int_equal(nopen, 0);
	p->ended = true;
	nended++;
	return 0;
}

void probing_free(struct probing *p)
{
	nfreed += p != NULL;
	if (p)
		close(p->fd);
	free(p);
}

int probing_fd(const struct probing *p)
{
	return p->fd;
}

uint64_t probing_since(const struct probing *p)
{
	return p->begun;
}

double probing_spent_ns(const struct probing *p)
{
	(void)p;
	return 1000;
}

void probing_losses(const struct probing *p, struct loss *to)
{
	assert_non_null(p);
	loss_at_least(to, LOSS_ATTACHER_KILLED, deaths);
	to->n[LOSS_UNWATCHED] += unwatched;
}

void probing_file_at_once(struct probing *p, size_t n)
{
	(void)p;
	assert_true(n >= 1);
}

/* Probes that stay in. */
static struct uprobe_group stay_group = { .n = 1 };
static int nstanding;
static bool refused, killed;

int uprobes_hold(struct uprobes *u, const struct uprobe_group *g, size_t n, bool multi, pid_t pid,
		 const struct uprobe_open *open, struct err *e)
{
	(void)e;
	assert_true(multi && !pid && !open && n == 1 && g == &stay_group);
	assert_non_null(strstr(g->path, "/proc/self/fd/"));
	u->plan = (struct uprobe_plan *)&nstanding;
	return 0;
}

int uprobes_attach_again(struct uprobes *u, struct err *e)
{
	assert_non_null(u->plan);
	if (refused)
		return err_set(e, -EUSERS, "too many");
	nstanding++;
	killed = false;
	return 0;
}

uint64_t uprobes_dead(const struct uprobes *u)
{
	assert_non_null(u->plan);
	return killed;
}

void uprobes_free(struct uprobes *u)
{
	u->plan = NULL;
}

/* ---- the kind ---- */

/* A target's part is its slot. */
struct part {
	uint32_t slot;
	int found; /* what its file has was known already */
};

/* What parts were asked: by their slots. */
static int turned[GPB_CPU_TARGETS], before[GPB_CPU_TARGETS], after[GPB_CPU_TARGETS];
static int lasts[GPB_CPU_TARGETS], endings[GPB_CPU_TARGETS], settled;
static bool awake[GPB_CPU_TARGETS], in_windows[GPB_CPU_TARGETS], still[GPB_CPU_TARGETS];
static uint64_t opened[GPB_CPU_TARGETS];

static int kind_find(void *part, uint32_t index, void **list, struct uprobe_group **groups,
		     size_t *n, void **sites, struct err *e)
{
	(void)part;
	(void)e;
	assert_true(index != GPB_PRICED);
	*list = *groups = calloc(1, sizeof(**groups));
	*n = 1;
	*sites = calloc(1, 1);
	return 0;
}

static void kind_found(void *part, void *sites)
{
	assert_non_null(sites);
	((struct part *)part)->found++;
}

static int kind_hit_cost(void *part, struct attacher_process **attachers, struct hit_cost *out,
			 struct cost_probes **rest, struct err *e)
{
	(void)part;
	(void)attachers;
	(void)out;
	(void)rest;
	return err_set(e, -ENOENT, "not here");
}

static int kind_joined(void *part, struct err *e)
{
	(void)part;
	(void)e;
	return 0;
}

static int kind_turn(void *part, const struct probe_set *s, const struct set_turn *t, struct err *e)
{
	uint32_t slot = ((struct part *)part)->slot;

	(void)e;
	assert_true(awake[slot]); /* its runtime's counts are read */
	assert_true(s->probing != NULL);
	turned[slot]++;
	in_windows[slot] = t->windows;
	return 0;
}

static void kind_before(void *part, const struct stretch *s)
{
	uint32_t slot = ((struct part *)part)->slot;

	opened[slot] = s->opened;
	still[slot] = s->still;
	before[slot]++;
}

static int kind_after(void *part, const struct stretch *s, struct err *e)
{
	uint32_t slot = ((struct part *)part)->slot;

	(void)e;
	assert_int_equal(s->opened, opened[slot]);
	assert_true(awake[slot] || (s->window && s->still));
	assert_int_equal(before[slot], ++after[slot]);
	return 0;
}

static int kind_settle(struct probe_set *s, struct err *e)
{
	(void)s;
	(void)e;
	settled++;
	return 0;
}

static void kind_ending(void *part)
{
	endings[((struct part *)part)->slot]++;
}

static struct uprobe_group *kind_stays(void *sites)
{
	assert_non_null(sites);
	return &stay_group;
}

static int closed_at = -1; /* how many had ended by then */

static void kind_closed(struct probe_sets *of)
{
	assert_int_equal(nopen, 0);
	assert_non_null(of);
	closed_at = nended;
}

static void kind_leaves(void *part, const struct stretch *last)
{
	kind_ending(part);
	lasts[((struct part *)part)->slot] += last != NULL;
}

static const struct set_kind kind = {
	.what = "things",
	.find = kind_find,
	.found = kind_found,
	.stays = kind_stays,
	.hit_cost = kind_hit_cost,
	.joined = kind_joined,
	.turn = kind_turn,
	.before = kind_before,
	.after = kind_after,
	.settle = kind_settle,
	.ending = kind_ending,
	.closed = kind_closed,
	.leaves = kind_leaves,
};

/* ---- processes and the kernel ---- */

int target_wake(struct target *t, struct err *e)
{
	(void)e;
	awake[t->pid] = true;
	return 0;
}

void target_rest(struct target *t)
{
	awake[t->pid] = false;
}

void target_linger(struct target *t)
{
	target_rest(t);
}

int bpf_sum_cpus(int fd, uint32_t slot, size_t words, uint64_t *out, struct err *e)
{
	(void)fd;
	(void)slot;
	(void)e;
	memset(out, 0, words * sizeof(*out));
	return 0;
}

int libbpf_num_possible_cpus(void)
{
	return 1;
}

uint32_t bpf_map__value_size(const struct bpf_map *map)
{
	(void)map;
	return sizeof(struct gpb_spent);
}

int bpf_map__fd(const struct bpf_map *map)
{
	(void)map;
	return -1;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	(void)fd;
	(void)key;
	(void)value;
	(void)flags;
	return 0;
}

/* ---- the world ---- */

static struct probe_sets ss;
static struct gpb_open open_for[GPB_SETS];
static __u32 set_of[GPB_CPU_TARGETS];
static struct one {
	struct set_member m;
	struct part part;
	struct engine_target t;
	struct subject s;
	struct target target;
	char exe[32];
} * all[GPB_SETS + 8];
static size_t nall;
static int drains, fd;

static int drain(void *arg, struct err *e)
{
	(void)arg;
	(void)e;
	drains++;
	return 0;
}

/* A process that runs the file @inode; its slot is its number. */
static struct one *process(uint64_t inode)
{
	struct one *p = calloc(1, sizeof(*p));

	all[nall++] = p;
	p->target.pid = (pid_t)nall;
	snprintf(p->exe, sizeof(p->exe), "/bin/file%llu", (unsigned long long)inode);
	snprintf(p->target.exe, sizeof(p->target.exe), "%s", p->exe);
	p->s.target = &p->target;
	p->s.images.at[0].inode = inode;
	p->s.images.at[0].fd = fd;
	p->t.subject = &p->s;
	p->part.slot = p->m.d.slot = (uint32_t)nall;
	p->t.clock = CLOCK_MONOTONIC;
	p->m.t = &p->t;
	p->m.part = &p->part;
	return p;
}

static int join(struct one *p, struct err *e)
{
	int ret = probe_set_of(&ss, &p->m, e);

	return ret ? ret : probe_set_join(&p->m, e);
}

static void leave(struct one *p)
{
	probe_set_leave(&p->m);
	probe_set_forget(p->m.set);
	p->m.set = NULL;
}

static int set_up(void **state)
{
	(void)state;
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	memset(open_for, 0, sizeof(open_for));
	memset(set_of, 0, sizeof(set_of));
	static const struct collect_opts none;
	ss = (struct probe_sets){ .kind = &kind,
				  .o = &none,
				  .obj = { .open_for = open_for, .set_of = set_of },
				  .drain = drain,
				  .multi = true,
				  .ep = epoll_create1(EPOLL_CLOEXEC) };
	memset(turned, 0, sizeof(turned));
	memset(before, 0, sizeof(before));
	memset(after, 0, sizeof(after));
	memset(lasts, 0, sizeof(lasts));
	memset(endings, 0, sizeof(endings));
	nprobings = nfreed = drains = settled = nopen = nended = nstanding = 0;
	refused = killed = false;
	closed_at = -1;
	deaths = unwatched = looked = healings = 0;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	while (nall) {
		if (all[--nall]->m.set)
			leave(all[nall]);
		free(all[nall]);
	}
	vec_fini(&ss.lost);
	close(ss.ep);
	close(fd);
	assert_int_equal(nprobings, nfreed);
	return 0;
}

static void processes_of_a_file_share_its_probes(void **state)
{
	struct one *a = process(7), *b = process(7), *c = process(8);

	(void)state;
	assert_true(!join(a, NULL) && !join(b, NULL) && !join(c, NULL));
	assert_ptr_equal(a->m.set, b->m.set);
	assert_ptr_not_equal(a->m.set, c->m.set);
	assert_int_equal(set_of[1], set_of[2]);
	assert_int_not_equal(set_of[1], set_of[3]);
	assert_true(!a->part.found && b->part.found && !c->part.found);
	probe_sets_begin(&ss);
	assert_int_equal(nprobings, 2);
}

/* One to the kernel: one link has the hits of all. Where it is not known, a file is one of its own. */
static void containers_of_an_image_share_its_probes(void **state)
{
	struct one *a = process(7), *b = process(8), *c = process(9), *d = process(0);
	int image = memfd_create("image", MFD_CLOEXEC), other = memfd_create("other", MFD_CLOEXEC);

	(void)state;
	a->s.images.at[0].fd = b->s.images.at[0].fd = d->s.images.at[0].fd = image;
	c->s.images.at[0].fd = other;
	assert_true(!join(a, NULL) && !join(b, NULL) && !join(c, NULL) && !join(d, NULL));
	assert_ptr_equal(a->m.set, b->m.set);
	assert_true(b->part.found);
	assert_ptr_not_equal(a->m.set, c->m.set);
	assert_ptr_not_equal(a->m.set, d->m.set);
	leave(a); /* the file is reached by its mount, and stays open */
	assert_int_equal(join(a, NULL), 0);
	assert_ptr_equal(a->m.set, b->m.set);
	close(image);
	close(other);
}

/* Each process is looked at once, before the first probe; what comes later is new. Nobody waits for what is done about it. */
static void what_was_left_is_freed_meanwhile(void **state)
{
	struct one *a = process(7), *b = process(8), *late;

	(void)state;
	b->s.healed = true; /* another kind has seen to it */
	assert_true(!join(a, NULL) && !join(b, NULL));
	assert_true(looked == 1 && a->s.leftovers == 3 && !b->s.leftovers && !healings);
	probe_sets_begin(&ss);
	late = process(8);
	assert_int_equal(join(late, NULL), 0);
	assert_true(looked == 1 && healings == 1 && late->s.healed && !late->s.leftovers);
	probe_sets_poll(&ss);
	assert_false(ss.healing.asked);
	probe_sets_end(&ss);
	probe_sets_begin(&ss);
}

/* Do all allocations pass the probes? Each is asked, those that come later too. */
static void each_is_asked_what_its_runtime_counts(void **state)
{
	struct one *a = process(7), *b = process(7), *late;

	(void)state;
	assert_true(!join(a, NULL) && !join(b, NULL));
	probe_sets_begin(&ss);
	late = process(7);
	assert_int_equal(join(late, NULL), 0);
	assert_true(turned[1] == 1 && turned[2] == 1 && turned[3] == 1);
	probe_sets_end(&ss);
	for (int i = 1; i <= 3; i++)
		assert_true(before[i] == 1 && after[i] == 1);
}

/* Of a stretch that began before it was there, it has the rest; a window stands for all of its stratum. */
static void one_that_comes_later_has_a_part_of_full_observation(void **state)
{
	const struct stretch full = { .opened = 100, .closed = 900, .weight = 1 };
	const struct stretch window = { .window = true, .opened = 100, .closed = 900, .weight = 9 };
	struct one *a = process(7), *late;
	struct probing *p;

	(void)state;
	assert_int_equal(join(a, NULL), 0);
	probe_sets_begin(&ss);
	late = process(7);
	late->t.since_ns = 500;
	assert_int_equal(join(late, NULL), 0);
	p = a->m.set->probing;
	assert_int_equal(p->u.over(p->u.arg, &full, NULL), 0);
	assert_true(opened[1] == 100 && opened[2] == 500 && drains == 1);
	assert_int_equal(p->u.over(p->u.arg, &window, NULL), 0);
	assert_true(opened[1] == 100 && opened[2] == 100);
	assert_true(settled >= 3);
}

/* It leaves no part of full observation behind where there are windows; and it is told to stay in them. */
static void in_windows_nobody_has_a_last_part(void **state)
{
	struct one *a = process(7), *b = process(7), *late;
	struct probing *p;

	(void)state;
	assert_true(!join(a, NULL) && !join(b, NULL));
	probe_sets_begin(&ss);
	p = a->m.set->probing;
	assert_int_equal(p->u.turn(p->u.arg, true, 5, 1, 1, NULL), 0);
	assert_true(in_windows[1] && in_windows[2]);
	late = process(7);
	assert_int_equal(join(late, NULL), 0);
	assert_true(in_windows[3]);
	leave(a);
	assert_true(!lasts[1] && endings[1] == 1);
}

static const struct stretch brief = { .window = true, .opened = 1, .closed = 9, .weight = 9 };

/* Of many most do not run: nothing of them is read or opened. */
static void one_that_has_not_run_is_not_read_in_windows(void **state)
{
	struct one *runs = process(7), *sleeps = process(7);
	pid_t pid = fork();

	(void)state;
	if (!pid)
		pause();
	usleep(100000);
	assert_int_equal(clock_getcpuclockid(pid, &sleeps->t.clock), 0);
	assert_true(!join(runs, NULL) && !join(sleeps, NULL));
	probe_sets_begin(&ss);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(runs->m.set->probing->u.over(runs->m.set, &brief, NULL), 0);
		assert_true(!still[1] && still[2] == i);
	}
	kill(pid, SIGKILL);
}

/* What stays in windows is put in when they begin, once for all that run the file, and again when its attacher was killed. */
static void what_stays_is_in_only_when_there_are_windows(void **state)
{
	struct one *a = process(7), *b = process(7);
	struct probing *p;

	(void)state;
	assert_true(!join(a, NULL) && !join(b, NULL));
	probe_sets_begin(&ss);
	assert_true(nstanding == 0 && !a->m.set->stands);
	p = a->m.set->probing;
	assert_int_equal(p->u.turn(p->u.arg, true, 5, 1, 1, NULL), 0);
	assert_true(nstanding == 1 && a->m.set->stands);
	assert_int_equal(p->u.over(p->u.arg, &brief, NULL), 0);
	assert_int_equal(nstanding, 1);
	killed = true;
	assert_int_equal(p->u.over(p->u.arg, &brief, NULL), 0);
	assert_true(nstanding == 2 && a->m.set->stands);
	probe_sets_end(&ss);
	assert_true(!a->m.set->stands && !a->m.set->standing.plan);
}

/* The kind does without, and it is not tried again and again. */
static void what_cannot_stay_is_no_error(void **state)
{
	struct one *a = process(7);
	struct probing *p;

	(void)state;
	assert_int_equal(join(a, NULL), 0);
	probe_sets_begin(&ss);
	p = a->m.set->probing;
	refused = true;
	assert_int_equal(p->u.turn(p->u.arg, true, 5, 1, 1, NULL), 0);
	assert_true(!a->m.set->stands && !a->m.set->failed);
	refused = false;
	assert_int_equal(p->u.turn(p->u.arg, true, 5, 1, 1, NULL), 0);
	assert_int_equal(nstanding, 0);
}

/* All targets are asked at the same moment: when nothing counts any more, and no probe is out yet. */
static void all_are_closed_before_one_is_ended(void **state)
{
	struct one *a = process(7), *b = process(8);

	(void)state;
	assert_true(!join(a, NULL) && !join(b, NULL));
	probe_sets_begin(&ss);
	assert_int_equal(closed_at, -1);
	probe_sets_end(&ss);
	assert_true(closed_at == 0 && nended == 2);
}

static void one_that_ends_in_the_window_has_its_part_and_no_more(void **state)
{
	struct one *a = process(7), *b = process(7);

	(void)state;
	assert_true(!join(a, NULL) && !join(b, NULL));
	probe_sets_begin(&ss);
	probe_set_pause(&a->m);
	probe_set_leave(&a->m);
	assert_true(lasts[1] == 1 && endings[1] == 1 && endings[2] == 0);
	probe_set_leave(&a->m); /* its profile and its end both ask for it */
	probe_sets_end(&ss);
	assert_true(lasts[1] == 1 && after[1] == 0 && endings[1] == 1);
	assert_true(lasts[2] == 0 && after[2] == 1 && endings[2] == 1);
}

static void the_last_one_takes_the_set_with_it(void **state)
{
	struct one *a = process(7), *b = process(7), *c;
	uint32_t index;

	(void)state;
	assert_true(!join(a, NULL) && !join(b, NULL));
	probe_sets_begin(&ss);
	index = a->m.set->index;
	open_for[index].bits = GPB_OPEN;
	leave(a);
	assert_int_equal(nfreed, 0);
	leave(b);
	assert_int_equal(nfreed, 1);
	assert_int_equal(open_for[index].bits, 0);
	assert_true(probe_sets_spent_ns(&ss) >= 1000); /* that is not forgotten */
	/* The same file again is a set of its own, and begins at once. */
	c = process(7);
	assert_int_equal(join(c, NULL), 0);
	assert_int_equal(nprobings, 2);
}

/* What the probes of a file lost is told once, and not of each of those that share them. */
static void a_loss_of_many_is_told_once(void **state)
{
	struct one *a = process(7), *b = process(7), *c = process(8);

	(void)state;
	assert_true(!join(a, NULL) && !join(b, NULL) && !join(c, NULL));
	probe_sets_begin(&ss);
	probe_sets_end(&ss);
	deaths = 1;
	unwatched = 2;
	leave(a);
	assert_int_equal(ss.lost.n, 0);
	leave(b);
	leave(c); /* one alone has it in its own profile */
	assert_int_equal(ss.lost.n, 1);
	assert_string_equal(ss.lost.at[0].what, "/bin/file7");
	assert_int_equal(ss.lost.at[0].targets, 2);
	assert_int_equal(ss.lost.at[0].loss.n[LOSS_UNWATCHED], 2);
	assert_int_equal(loss_total(&ss.lost.at[0].loss), 2);
	/* All files' attachers are one process: whose death it is does not depend on a file. */
	assert_int_equal(ss.of_all.n[LOSS_ATTACHER_KILLED], 1);
	assert_int_equal(loss_total(&ss.of_all), 1);
}

static void more_files_than_there_is_room_for_are_refused_with_a_way_out(void **state)
{
	struct err e = { "" };
	struct one *p;

	(void)state;
	for (uint64_t i = 0; i < PROBE_SETS_MAX; i++)
		assert_int_equal(join(process(100 + i), &e), 0);
	p = process(99);
	assert_int_equal(join(p, &e), -E2BIG);
	assert_non_null(strstr(e.msg, "--match"));
	/* One of a file that is probed has room, and so has another file when one is free. */
	assert_int_equal(join(process(100), &e), 0);
	leave(all[5]);
	assert_int_equal(join(p, &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(processes_of_a_file_share_its_probes, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(containers_of_an_image_share_its_probes, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_was_left_is_freed_meanwhile, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(each_is_asked_what_its_runtime_counts, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(one_that_comes_later_has_a_part_of_full_observation,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(one_that_has_not_run_is_not_read_in_windows, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(in_windows_nobody_has_a_last_part, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(what_stays_is_in_only_when_there_are_windows,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_cannot_stay_is_no_error, set_up, tear_down),
		cmocka_unit_test_setup_teardown(all_are_closed_before_one_is_ended, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(
			one_that_ends_in_the_window_has_its_part_and_no_more, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_last_one_takes_the_set_with_it, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_loss_of_many_is_told_once, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			more_files_than_there_is_room_for_are_refused_with_a_way_out, set_up,
			tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
