/*
 * tests/unit/heap_probe_fakes.h - what test_heap_probe.c has around a probed heap: the BPF object, probes, the numbers of a window and
 * the objects in use. They remember what they were told.
 */
#ifndef TESTS_UNIT_HEAP_PROBE_FAKES_H
#define TESTS_UNIT_HEAP_PROBE_FAKES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "collect/heap/heap_probe_priv.h"
#include "mksubject.h"
#include "probe/bpf.h"
#include "subject/verify.h"

enum { SLOTS = 8 }; /* as many targets are told of here */

static uint64_t now, wall_ahead; /* wall_ahead: of the other clocks */

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	uint64_t ns = now + (clock == CLOCK_REALTIME ? wall_ahead : 0);

	*ts = (struct timespec){ (time_t)(ns / NS_PER_S), (long)(ns % NS_PER_S) };
	return 0;
}

/* ---- the object ---- */

static struct heap_bpf__bss bss;
static struct heap_bpf__rodata rodata;
static int objects, open_fails, load_fails;
static uint32_t slots_asked, ring_bytes;
static bool many_asked;

/* A map is its number in the skeleton, from 1 on. */
static int targets_fd, heaps_fd, refusing;
static struct gpb_target target_of[SLOTS];
static struct gpb_heap heap_of[SLOTS];
static int target_writes[SLOTS], heap_writes[SLOTS];

static void place_map(const struct bpf_map_skeleton *m, int number)
{
	*m->map = (struct bpf_map *)(uintptr_t)number;
	if (!strcmp(m->name, "targets"))
		targets_fd = number;
	if (!strcmp(m->name, "heaps"))
		heaps_fd = number;
	if (m->mmaped)
		*m->mmaped = strstr(m->name, "rodata") ? (void *)&rodata : (void *)&bss;
}

int bpf_open_fitting(struct bpf_object_skeleton *s, const void *(*old_bytes)(size_t *n))
{
	assert_non_null(old_bytes);
	objects++;
	if (open_fails)
		return open_fails;
	memset(&bss, 0, sizeof(bss));
	for (int i = 0; i < s->map_cnt; i++)
		place_map(&s->maps[i], i + 1);
	for (int i = 0; i < s->prog_cnt; i++)
		*s->progs[i].prog = (struct bpf_program *)(uintptr_t)(100 + i);
	return 0;
}

void bpf_object__destroy_skeleton(struct bpf_object_skeleton *s)
{
	free(s->maps);
	free(s->progs);
	free(s);
	objects--;
}

int bpf_object__load_skeleton(struct bpf_object_skeleton *s)
{
	assert_non_null(s);
	return load_fails;
}

int bpf_old_pidns(volatile const uint32_t *ino, struct err *e)
{
	(void)e;
	assert_ptr_equal((const void *)(uintptr_t)ino, &rodata.pidns_ino);
	return 0;
}

void bpf_log_begin(void)
{
}

int bpf_load_error(struct err *e, int code, const char *what)
{
	assert_null(what);
	return err_set(e, code, "the kernel refuses it");
}

void bpf_fit_kernel(struct bpf_object *o)
{
	assert_null(o);
}

void bpf_of_many(bool many, struct bpf_map *slot_of_tgid, struct bpf_map *sets,
		 struct bpf_map *bystanders)
{
	assert_true(slot_of_tgid && sets && bystanders);
	many_asked = many;
}

void bpf_size_all(struct bpf_map *const *maps, uint32_t slots)
{
	size_t n = 0;

	while (maps[n])
		n++;
	assert_int_equal(n, 5);
	slots_asked = slots;
}

uint32_t bpf_ring_bytes(const struct subject *s, const struct collect_opts *o, uint32_t usual)
{
	assert_true(s && o);
	return usual;
}

static int fill_fails;

/* All flags that are asked for by options are set. */
int bpf_target_fill(struct subject *s, const struct collect_opts *o, struct gpb_target *t,
		    struct err *e)
{
	assert_true(s && o);
	*t = (struct gpb_target){ .flags = GPB_TARGET_LABELS | GPB_TARGET_REGABI };
	return fill_fails ? err_set(e, fill_fails, "an image has gone") : 0;
}

static uint64_t unfinished;

int bpf_count_left(const struct bpf_map *stacks, const struct bpf_map *scratches,
		   const struct gpb_rounds *rounds, uint64_t *sum, struct err *e)
{
	(void)e;
	assert_true(stacks && scratches && rounds == &bss.rounds);
	*sum = unfinished;
	return 0;
}

int bpf_map__fd(const struct bpf_map *map)
{
	return (int)(uintptr_t)map;
}

int bpf_map__set_max_entries(struct bpf_map *map, uint32_t n)
{
	assert_non_null(map);
	ring_bytes = n;
	return 0;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	uint32_t slot = *(const uint32_t *)key;

	(void)flags;
	assert_true(slot < SLOTS && (fd == targets_fd || fd == heaps_fd));
	if (fd == refusing) {
		errno = E2BIG;
		return -E2BIG;
	}
	if (fd == targets_fd)
		memcpy(&target_of[slot], value, sizeof(target_of[slot]));
	else
		memcpy(&heap_of[slot], value, sizeof(heap_of[slot]));
	(fd == targets_fd ? target_writes : heap_writes)[slot]++;
	return 0;
}

/* ---- its reports ---- */

static int nreports, report_fd, polls;

int reports_open_probed(struct reports *f, struct subject *s, const struct bpf_map *ring,
			const struct bpf_map *rules, reports_add *add, void *arg, struct err *e)
{
	(void)e;
	assert_true(f && s && ring && rules && add == heap_window_add && arg);
	nreports++;
	report_fd = eventfd(0, EFD_CLOEXEC);
	return 0;
}

void reports_fini(struct reports *f)
{
	assert_non_null(f);
	close(report_fd);
	nreports--;
}

int reports_fd(const struct reports *f)
{
	assert_non_null(f);
	return report_fd;
}

int reports_poll(struct reports *f, struct err *e)
{
	(void)e;
	assert_non_null(f);
	polls++;
	return 0;
}

void reports_losses(const struct reports *f, const struct gpb_tally *of,
		    const struct bpf_object *obj, struct loss *to)
{
	(void)obj;
	assert_true(f && of == &bss.tallies[1]);
	to->n[LOSS_SAMPLES_DROPPED] += 2;
}

/* ---- probes ---- */

struct probing {
	struct probing_user u;
	uint64_t since;
	size_t sites; /* that are held with the others */
	bool ended, windowed;
};
static int nprobings, set_fails, end_fails;
static struct probing *probing; /* the last one */

int probing_new(struct subject *s, const struct collect_opts *o, const struct probing_user *u,
		bool multi, struct probing **out, struct err *e)
{
	(void)multi;
	(void)e;
	assert_true(s && o);
	*out = probing = calloc(1, sizeof(*probing));
	probing->u = *u;
	nprobings++;
	return 0;
}

/* What they are is known to the BPF side already. */
int probing_set(struct probing *p, const struct uprobe_group *g, size_t n, struct err *e)
{
	assert_true(target_writes[1] && heap_writes[1]);
	p->sites = 0;
	for (size_t i = 0; i < n; i++)
		p->sites += g[i].n;
	return set_fails ? err_set(e, set_fails, "no probes") : 0;
}

int probing_begin(struct probing *p, struct err *e)
{
	(void)e;
	p->since = now;
	return 0;
}

int probing_poll(struct probing *p, struct err *e)
{
	(void)e;
	if (!p->since)
		p->since = now;
	return 0;
}

/* The last stretch is over, as heap_window_over() has it. */
int probing_end(struct probing *p, struct err *e)
{
	struct heap_window *w = &((struct heap_probe *)p->u.arg)->window;

	p->ended = true;
	assert_int_equal(w->next(w->next_arg, !p->windowed, e), 0);
	return end_fails ? err_set(e, end_fails, "it does not end") : 0;
}

void probing_free(struct probing *p)
{
	nprobings -= p != NULL;
	free(p);
}

int probing_fd(const struct probing *p)
{
	assert_non_null(p);
	return -1;
}

uint64_t probing_since(const struct probing *p)
{
	return p->since;
}

bool probing_windowed(const struct probing *p)
{
	return p->windowed;
}

double probing_hit_ns(const struct probing *p)
{
	assert_non_null(p);
	return 400;
}

void probing_losses(const struct probing *p, struct loss *to)
{
	assert_true(p->ended);
	to->n[LOSS_UNWATCHED] += 3;
}

int probing_comment(const struct probing *p, struct prof *prof, struct err *e)
{
	assert_non_null(p);
	return prof_comment(prof, e, "budget: none");
}

static bool multi = true;

bool uprobes_have_multi(void)
{
	return multi;
}

void uprobes_prepare(struct bpf_program *prog, bool as_multi)
{
	assert_true(prog && as_multi == multi);
}

static int cost_fails;
static uint64_t cost_cookie;

int hit_cost_measure(struct bpf_program *prog, bool as_multi, uint64_t cookie,
		     struct attacher_process **all, struct hit_cost *out, struct cost_probes **rest,
		     struct err *e)
{
	(void)all;
	(void)rest;
	assert_true(prog && as_multi == multi && bss.open_for[GPB_PRICED].bits == GPB_OPEN);
	cost_cookie = cookie;
	if (cost_fails)
		return err_set(e, cost_fails, "no process of our own");
	*out = (struct hit_cost){ .hit_ns = 400, .stepped_ns = 700 };
	return 0;
}

/* ---- the entries of an image ---- */

static enum alloc_kind kinds_of[GPB_IMAGES][4];
static size_t nkinds[GPB_IMAGES];

int heap_probe_entries(struct heap_probe *h, size_t i, struct err *e)
{
	(void)e;
	h->nentries[i] = nkinds[i];
	h->nsites += nkinds[i];
	for (size_t k = 0; k < nkinds[i]; k++)
		h->entries[i * ALLOC_ENTRIES_MAX + k].kind = kinds_of[i][k];
	return 0;
}

void heap_probe_list(struct heap_probe *h, size_t i, uint32_t of, struct site_list *all,
		     struct site_list *large)
{
	assert_int_equal(of, h->window.slot);
	for (size_t k = 0; k < h->nentries[i]; k++) {
		bool is_large = h->entries[i * ALLOC_ENTRIES_MAX + k].kind == ALLOC_LARGE;
		struct site_list *l = large && is_large ? large : all;

		l->groups[l->ngroups++] = (struct uprobe_group){ .n = 1 };
	}
}

/* ---- large objects ---- */

static int large_attached, large_fails, large_detached;
static bool dear;
static double large_ns;

int heap_large_attach(struct heap_large *l, struct subject *s, const struct uprobe_group *g,
		      size_t n, struct err *e)
{
	assert_true(s && g && n);
	l->apart = !large_fails;
	large_attached = (int)n;
	return large_fails ? err_set(e, large_fails, "the target exited") : 0;
}

int heap_large_hear(struct heap_large *l, struct err *e)
{
	(void)e;
	assert_non_null(l);
	return 0;
}

bool heap_large_dear(struct heap_large *l, uint64_t n, double hit_ns, uint32_t budget_ppm)
{
	assert_true(budget_ppm == 50000 && n == 9);
	large_ns = hit_ns;
	l->dear |= dear;
	return dear;
}

void heap_large_detach(struct heap_large *l)
{
	l->apart = l->always = false;
	large_detached++;
}

/* ---- the window's numbers ---- */

static struct {
	int inits, finis, watches, lights, turns, ends, rests;
	bool begins, windows, large;
} window;
static struct heap_estimate estimates[8], in_use[8];
static struct heap_unseen unseen;

void heap_window_init(struct heap_window *w)
{
	window.inits++;
	tally_init(&w->tally);
	w->large_seen = 9;
	w->rate_in_windows = 512;
}

void heap_window_fini(struct heap_window *w)
{
	window.finis++;
	tally_fini(&w->tally);
}

int heap_window_add(void *w, const struct gpb_stack *st, struct err *e)
{
	return tally_add(&((struct heap_window *)w)->tally, st, 0, e);
}

void heap_window_watch(struct heap_window *w, bool begins)
{
	assert_non_null(w);
	window.watches++;
	window.begins = begins;
}

void heap_window_light(struct heap_window *w, unsigned budget_ppm)
{
	assert_int_equal(budget_ppm, 50000);
	window.lights++;
	w->rate = 4096;
}

void heap_window_fresh(struct heap_window *w)
{
	(void)w;
}

void heap_window_turn(struct heap_window *w, bool windows, double hit_ns, double window_ns)
{
	(void)hit_ns;
	(void)window_ns;
	window.turns++;
	window.windows = windows;
	w->own = (struct undilated){ .own = 5e6, .hit = 400 };
}

void heap_window_large(struct heap_window *w, bool always)
{
	assert_non_null(w);
	window.large = always;
}

bool heap_window_look(void *w, double *count)
{
	(void)w;
	(void)count;
	return false;
}

int heap_window_spent(void *w, struct gpb_spent *out, struct err *e)
{
	(void)w;
	(void)out;
	(void)e;
	return 0;
}

int heap_window_over(void *w, const struct stretch *s, struct err *e)
{
	(void)w;
	(void)s;
	(void)e;
	return 0;
}

int heap_window_rest(struct heap_window *w, struct err *e)
{
	(void)e;
	assert_non_null(w);
	window.rests++;
	return 0;
}

void heap_window_end(struct heap_window *w)
{
	assert_non_null(w);
	window.ends++;
}

struct heap_estimate heap_window_estimate(const struct heap_window *w, const struct tally_entry *en)
{
	return estimates[en - w->tally.entries.at];
}

struct heap_unseen heap_window_unseen(const struct heap_window *w)
{
	assert_non_null(w);
	return unseen;
}

int heap_window_seen(struct heap_window *w, uint64_t *allocs, uint64_t *bytes, struct err *e)
{
	(void)e;
	assert_non_null(w);
	*allocs = 1234;
	*bytes = 56789;
	return 0;
}

int heap_window_comment(const struct heap_window *w, const struct collect_opts *o, struct prof *p,
			struct loss *to, struct err *e)
{
	assert_true(w && o && to);
	return prof_comment(p, e, "totals: known");
}

/* ---- what is in use ---- */

static struct {
	int opens, finis, begins, attaches, ends;
	const struct heap_live_room *room;
	bool with_reports;
} use;
static bool followed;
static int use_fails, use_end_fails;

int heap_use_open(struct heap_use *u, struct subject *s, struct heap_live_room *room, struct err *e)
{
	assert_non_null(s);
	use.opens++;
	use.room = room;
	u->live = followed ? (struct heap_live *)&use : NULL;
	return use_fails ? err_set(e, use_fails, "no memory to follow objects") : 0;
}

void heap_use_fini(struct heap_use *u)
{
	assert_non_null(u);
	use.finis++;
}

int heap_use_types(const struct heap_use *u, struct prof *p, struct err *e)
{
	int ret = u->live ? prof_add_type(p, "inuse_objects", "count", e) : 0;

	if (!ret && u->live)
		ret = prof_add_type(p, "inuse_space", "bytes", e);
	return ret || !u->live ? ret : prof_set_default_type(p, "inuse_space", e);
}

void heap_use_begin(struct heap_use *u, struct reports *f, struct tally *t)
{
	assert_true(u && t);
	use.begins++;
	use.with_reports = f != NULL;
}

int heap_use_attach(struct heap_use *u, const struct heap_window *w, bool as_multi, struct err *e)
{
	(void)e;
	assert_true(u && w && as_multi == multi);
	use.attaches++;
	return 0;
}

int heap_use_target(const struct heap_use *u, const struct heap_window *w, struct gpb_target *t,
		    struct err *e)
{
	(void)e;
	assert_non_null(w);
	if (u->live)
		t->flags |= GPB_TARGET_LIVE;
	return 0;
}

void heap_use_weighed(void *u, uint64_t opened, double weight)
{
	(void)opened;
	(void)weight;
	assert_non_null(u);
}

int heap_use_fd(const struct heap_use *u)
{
	assert_non_null(u);
	return -1;
}

int heap_use_poll(struct heap_use *u, struct err *e)
{
	(void)e;
	assert_non_null(u);
	return 0;
}

int heap_use_end(struct heap_use *u, const struct heap_window *w, struct err *e)
{
	assert_true(u && w && window.ends == 1);
	use.ends++;
	return use_end_fails ? err_set(e, use_end_fails, "no last look") : 0;
}

struct heap_estimate heap_use_of(const struct heap_use *u, const struct heap_window *w,
				 const struct tally_entry *en)
{
	assert_non_null(u->live);
	return in_use[en - w->tally.entries.at];
}

int heap_use_comments(const struct heap_use *u, const struct heap_window *w, struct prof *p,
		      struct err *e)
{
	assert_true(u && w);
	return prof_comment(p, e, "in use: as told");
}

void heap_use_losses(const struct heap_use *u, const struct heap_window *w, struct loss *to)
{
	assert_true(u && w);
	to->n[LOSS_OBJECTS_UNPLACED] += 1;
}

/* ---- types, and offsets that are not certain ---- */

static int types_fail, verify_fails;

int types_init(struct types *t, struct subject *s, struct err *e)
{
	assert_true(t && s);
	return types_fail ? err_set(e, types_fail, "how Go writes types is not known") : 0;
}

void types_fini(struct types *t)
{
	assert_non_null(t);
}

size_t types_add(struct types *t, const struct gpb_stack *st, struct prof_label *labels, size_t n)
{
	assert_true(t && st);
	labels[n++] = (struct prof_label){ .key = "type", .str = "main.T" };
	return n;
}

int types_comment(const struct types *t, struct prof *p, struct err *e)
{
	assert_non_null(t);
	return prof_comment(p, e, "types: told");
}

int verify_structs(struct subject *s, enum layout_use as, struct err *e)
{
	assert_true(s && as == LAYOUT_USE_PROBE);
	return verify_fails ? err_set(e, verify_fails, "offsets are wrong") : 0;
}

/* ---- one of many, and one alone ---- */

static struct collect_opts opts;
static struct subject one;
static struct target target;
static struct heap_live_room room;
static struct reports reports;
static struct heap_bpf *object; /* of many */
static struct heap_probe *h;	/* one of many */
static struct sourced by;	/* one alone */

static int set_up(void **state)
{
	(void)state;
	now = 1000 * NS_PER_MS;
	wall_ahead = 0;
	target = (struct target){ .pid = 42 };
	one = subject;
	one.target = &target;
	for (size_t i = 0; i < LAYOUT_COUNT; i++)
		one.layout.off[i] = 8;
	opts = (struct collect_opts){ .heap.rate = 524288, .budget.ppm = 50000, .labels = true };
	open_fails = load_fails = refusing = fill_fails = set_fails = end_fails = cost_fails = 0;
	large_attached = large_fails = large_detached = polls = types_fail = verify_fails = 0;
	use_fails = use_end_fails = 0;
	unfinished = 0;
	dear = followed = false;
	multi = true;
	memset(&window, 0, sizeof(window));
	memset(&use, 0, sizeof(use));
	memset(&unseen, 0, sizeof(unseen));
	memset(estimates, 0, sizeof(estimates));
	memset(in_use, 0, sizeof(in_use));
	memset(nkinds, 0, sizeof(nkinds));
	memset(target_writes, 0, sizeof(target_writes));
	memset(heap_writes, 0, sizeof(heap_writes));
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	heap_probe_free(TAKE(h));
	if (by.source)
		by.source->free(by.at);
	by = (struct sourced){ 0 };
	heap_bpf__destroy(TAKE(object));
	assert_true(objects == 0 && nreports == 0 && nprobings == 0);
	assert_int_equal(window.finis, use.finis);
	return 0;
}

/* Of many: in its slot, with what is lent to it. */
static void takes_slot(uint32_t slot)
{
	struct err e = { "" };

	assert_int_equal(heap_probe_open(&object, true, 128, true, NULL), 0);
	assert_int_equal(heap_probe_new(&one, &opts, &room, &h, &e), 0);
	h->obj = object;
	h->multi = true;
	h->reports = &reports;
	heap_probe_window(h, slot);
}

static struct heap_probe *alone(void)
{
	struct err e = { "" };

	assert_int_equal(heap_probe_start(&one, &opts, &by, &e), 0);
	return by.at;
}

#endif
