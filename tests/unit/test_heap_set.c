/*
 * tests/unit/test_heap_set.c - the probes of files and the targets that share them: who is in which set, whose a loss is, and
 * what becomes of a set that its members leave. Probes, windows and processes are this file's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "collect/heap/heap_set.h"
#include "heap.skel.h"
#include "probe/bpf.h"

/* ---- probes ---- */

struct probing {
	struct probing_user u;
	int fd; /* readable */
	bool begun, ended;
};
static uint64_t deaths, unwatched;
static int nprobings, nfreed;

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
	assert_true(n);
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

/* Everything is observed from now on. */
int probing_poll(struct probing *p, struct err *e)
{
	if (p->begun)
		return 0;
	p->begun = true;
	return p->u.turn(p->u.arg, false, 1, 0, 0, e);
}

int probing_end(struct probing *p, struct err *e)
{
	const struct stretch s = { .opened = 1, .closed = 2, .weight = 1 };

	p->ended = true;
	return p->begun ? p->u.over(p->u.arg, &s, e) : 0;
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
	loss_at_least(to, LOSS_KEEPER_KILLED, deaths);
	to->n[LOSS_UNWATCHED] += unwatched;
}

void probing_file_at_once(struct probing *p, size_t n)
{
	(void)p;
	assert_true(n >= 1);
}

/* ---- a target's part ---- */

int heap_probe_entries(struct heap_probe *h, size_t i, struct err *e)
{
	(void)e;
	h->nentries[i] = 1;
	return 0;
}

void heap_probe_place(struct heap_probe *h, size_t i)
{
	assert_int_equal(h->nentries[i], 1);
}

void heap_probe_list(struct heap_probe *h, size_t i, uint32_t of, struct site_list *all,
		     struct site_list *large)
{
	(void)h;
	(void)i;
	(void)large;
	assert_true(of != GPB_PRICED);
	all->ngroups = 1;
}

int heap_probe_put(struct heap_probe *h, struct err *e)
{
	(void)h;
	(void)e;
	return 0;
}

int heap_probe_own(struct heap_probe *h, double ns, struct err *e)
{
	(void)h;
	(void)ns;
	(void)e;
	return 0;
}

int heap_probe_price(struct heap_bpf *obj, bool multi, const struct gpb_heap *like,
		     struct keeper_process **all, struct price *out, struct pricing **rest,
		     struct err *e)
{
	(void)obj;
	(void)multi;
	(void)like;
	(void)all;
	(void)out;
	(void)rest;
	return err_set(e, -ENOENT, "not here");
}

/* What windows were asked: by their slots. */
static int turned[GPB_CPU_TARGETS], before[GPB_CPU_TARGETS], after[GPB_CPU_TARGETS];
static bool awake[GPB_CPU_TARGETS];

int heap_probe_turn(void *w, bool windows, uint64_t since, double hit_ns, uint64_t window_ns,
		    struct err *e)
{
	uint32_t slot = ((struct heap_window *)w)->slot;

	(void)windows;
	(void)since;
	(void)hit_ns;
	(void)window_ns;
	(void)e;
	assert_true(awake[slot]); /* its runtime's counts are read */
	turned[slot]++;
	return 0;
}

bool heap_window_before(struct heap_window *w, const struct stretch *s)
{
	(void)s;
	before[w->slot]++;
	return true;
}

int heap_window_after(struct heap_window *w, const struct stretch *s, bool watched, struct err *e)
{
	(void)s;
	(void)e;
	assert_true(watched);
	after[w->slot]++;
	return 0;
}

void heap_window_turn(struct heap_window *w, bool windows, double hit_ns, double window_ns)
{
	(void)w;
	(void)windows;
	(void)hit_ns;
	(void)window_ns;
}

int heap_window_seen(struct heap_window *w, uint64_t *allocs, uint64_t *bytes, struct err *e)
{
	(void)w;
	(void)e;
	*allocs = *bytes = 0;
	return 0;
}

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

static struct heap_sets ss;
static struct heap_bpf obj;
static struct one {
	struct heap_member m;
	struct heap_probe h;
	struct engine_target t;
	struct subject s;
	struct target target;
	char exe[32];
	struct alloc_entry entries[ALLOC_ENTRIES_MAX];
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
	p->h.entries = p->entries;
	p->h.s = p->t.subject = &p->s;
	p->h.window.slot = (uint32_t)nall;
	p->t.clock = CLOCK_MONOTONIC;
	p->m.t = &p->t;
	p->m.h = &p->h;
	return p;
}

static int join(struct one *p, struct err *e)
{
	int ret = heap_set_of(&ss, &p->h, &p->m.set, e);

	return ret ? ret : heap_set_join(&p->m, e);
}

static void leave(struct one *p)
{
	heap_set_leave(&p->m);
	heap_set_forget(p->m.set);
	p->m.set = NULL;
}

static int set_up(void **state)
{
	(void)state;
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	obj.bss = calloc(1, sizeof(*obj.bss));
	ss = (struct heap_sets){ .obj = &obj, .drain = drain, .ep = epoll_create1(EPOLL_CLOEXEC) };
	memset(turned, 0, sizeof(turned));
	memset(before, 0, sizeof(before));
	memset(after, 0, sizeof(after));
	nprobings = nfreed = drains = 0;
	deaths = unwatched = 0;
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
	free(obj.bss);
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
	assert_int_equal(obj.bss->set_of[1], obj.bss->set_of[2]);
	assert_int_not_equal(obj.bss->set_of[1], obj.bss->set_of[3]);
	heap_sets_begin(&ss);
	assert_int_equal(nprobings, 2);
}

/* Do all allocations pass the probes? Each is asked, those that come later too. */
static void each_is_asked_what_its_runtime_counts(void **state)
{
	struct one *a = process(7), *b = process(7), *late;

	(void)state;
	assert_true(!join(a, NULL) && !join(b, NULL));
	heap_sets_begin(&ss);
	late = process(7);
	assert_int_equal(join(late, NULL), 0);
	assert_true(turned[1] == 1 && turned[2] == 1 && turned[3] == 1);
	heap_sets_end(&ss);
	for (int i = 1; i <= 3; i++)
		assert_true(before[i] == 1 && after[i] == 1);
}

static void one_that_ends_in_the_window_has_its_part_and_no_more(void **state)
{
	struct one *a = process(7), *b = process(7);

	(void)state;
	assert_true(!join(a, NULL) && !join(b, NULL));
	heap_sets_begin(&ss);
	heap_set_pause(&a->m);
	heap_set_leave(&a->m);
	assert_true(after[1] == 1 && after[2] == 0);
	heap_set_leave(&a->m); /* its profile and its end both ask for it */
	heap_sets_end(&ss);
	assert_true(after[1] == 1 && after[2] == 1);
}

static void the_last_one_takes_the_set_with_it(void **state)
{
	struct one *a = process(7), *b = process(7), *c;
	uint32_t index;

	(void)state;
	assert_true(!join(a, NULL) && !join(b, NULL));
	heap_sets_begin(&ss);
	index = a->m.set->index;
	obj.bss->open_for[index].bits = GPB_OPEN;
	leave(a);
	assert_int_equal(nfreed, 0);
	leave(b);
	assert_int_equal(nfreed, 1);
	assert_int_equal(obj.bss->open_for[index].bits, 0);
	assert_true(heap_sets_spent_ns(&ss) >= 1000); /* that is not forgotten */
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
	heap_sets_begin(&ss);
	heap_sets_end(&ss);
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
	/* All files' keepers are one process: whose death it is does not depend on a file. */
	assert_int_equal(ss.of_all.n[LOSS_KEEPER_KILLED], 1);
	assert_int_equal(loss_total(&ss.of_all), 1);
}

static void more_files_than_there_is_room_for_are_refused_with_a_way_out(void **state)
{
	struct err e = { "" };
	struct one *p;

	(void)state;
	for (uint64_t i = 0; i < HEAP_SETS; i++)
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
		cmocka_unit_test_setup_teardown(each_is_asked_what_its_runtime_counts, set_up,
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
