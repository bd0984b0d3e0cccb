/*
 * tests/unit/test_heap_use.c - what is in use of what windows saw, and its error: sites whose objects were followed in as many windows
 * as a test says, of which so many objects live.
 */
#include "collect/heap/live/heap_use.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/cleanup.h"

/* ---- what heap_live.c and heap_window.c would say ---- */

enum { MADE = 1000000, SIZE = 64 }; /* what was allocated at each site in windows' time */

static struct heap_live_count counts[HEAP_LIVE_GROUPS];
static size_t ncounts;
static double unwatched;
static uint64_t turned_away;

size_t heap_live_ncounts(const struct heap_live *l)
{
	(void)l;
	return ncounts;
}
struct heap_live_count heap_live_count(const struct heap_live *l, size_t i)
{
	(void)l;
	return counts[i];
}
uint64_t heap_live_turned_away(const struct heap_live *l)
{
	(void)l;
	return turned_away;
}
int heap_live_end(struct heap_live *l, struct err *e)
{
	(void)l, (void)e;
	return 0;
}
void heap_live_free(struct heap_live *l)
{
	(void)l;
}
struct heap_made heap_window_made(const struct heap_window *w, const struct tally_entry *en)
{
	(void)w, (void)en;
	return (struct heap_made){ .seen = { MADE, 1e8 } };
}
double heap_window_unwatched(const struct heap_window *w)
{
	(void)w;
	return unwatched;
}
int64_t heap_in_parts(int64_t whole, double cut)
{
	return whole * HEAP_ONE + (int64_t)(cut * HEAP_ONE);
}
/* clang-format off */
int heap_live_open(struct subject *s, struct heap_live_room *r, struct heap_live **out, struct err *e) { (void)s, (void)r, (void)out, (void)e; abort(); }
const struct gpb_live *heap_live_conf(const struct heap_live *l) { (void)l; abort(); }
size_t heap_live_sites(struct heap_live *l, size_t i, struct uprobe_site s[HEAP_LIVE_SITES]) { (void)l, (void)i, (void)s; abort(); }
int heap_live_attach(struct heap_live *l, struct bpf_program *c, uint32_t s, bool m, struct err *e) { (void)l, (void)c, (void)s, (void)m, (void)e; abort(); }
void heap_live_record(struct heap_live *l, const void *r, size_t n) { (void)l, (void)r, (void)n; abort(); }
void heap_live_window(struct heap_live *l, uint64_t s, double w) { (void)l, (void)s, (void)w; abort(); }
int heap_live_fd(const struct heap_live *l) { (void)l; abort(); }
int heap_live_poll(struct heap_live *l, struct err *e) { (void)l, (void)e; abort(); }
void heap_live_losses(const struct heap_live *l, const struct heap_live_told *t, struct loss *to) { (void)l, (void)t, (void)to; abort(); }
int heap_live_comments(const struct heap_live *l, const struct heap_live_told *t, struct prof *p, struct err *e) { (void)l, (void)t, (void)p, (void)e; abort(); }
/* clang-format on */

/* ---- worlds ---- */

struct world {
	struct heap_window window;
	struct heap_bpf bpf;
	struct heap_use use;
};

static const struct gpb_hash key = { 1, 2 };

static void begin(struct world *w)
{
	struct gpb_stack st = { .count = 1, .nfirst = 1, .object.size = SIZE };
	struct err e = { "" };

	*w = (struct world){};
	ncounts = 0;
	unwatched = 0;
	turned_away = 0;
	tally_init(&w->window.tally);
	assert_int_equal(tally_key(&w->window.tally, &key, &st, &e), 0);
	w->bpf.bss = calloc(1, sizeof(*w->bpf.bss));
	assert_non_null(w->bpf.bss);
	w->window.obj = &w->bpf;
	w->window.rate = 4096;
	w->use.live = (struct heap_live *)&key; /* nobody looks into it */
	w->use.tally = &w->window.tally;
}

/* A window saw @objects, which stand for @weight each and of which so many live. */
static void window(uint64_t objects, double live, double weight)
{
	counts[ncounts] = (struct heap_live_count){ .stack = key,
						    .group = (uint32_t)ncounts + 1,
						    .objects = objects,
						    .followed = (double)objects * weight,
						    .live = live * weight };
	ncounts++;
}

/* Of its objects the part @once outlives a GC cycle, and @always all of them. */
static struct heap_estimate end(struct world *w, double once, double always)
{
	struct heap_estimate got;
	struct err e = { "" };

	for (size_t i = 0; i < ncounts; i++) {
		counts[i].once = once;
		counts[i].always = always;
	}
	assert_int_equal(heap_use_end(&w->use, &w->window, &e), 0);
	got = heap_use_of(&w->use, &w->window, &w->window.tally.entries.at[0]);
	heap_use_fini(&w->use);
	tally_fini(&w->window.tally);
	free(w->bpf.bss);
	return got;
}

/* ---- tests ---- */

static void test_share_by_weight(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	window(10, 10, 3);
	window(10, 0, 1);
	assert_int_equal(end(&w, 0.5, 0).values.objects, MADE * 3 / 4);
}

/* Twenty windows that all came before what lives was allocated: its objects outlive cycles, so later ones may live. */
static void test_none_lives_of_what_windows_saw(void **state)
{
	struct heap_estimate got;
	struct world w;

	(void)state;
	begin(&w);
	for (int i = 0; i < 20; i++)
		window(1000, 0, 1);
	got = end(&w, 0.7, 0);
	assert_int_equal(got.values.objects, 0);
	/* It is 0.05 of all, had one more window met it. */
	assert_true(sqrt(got.variance) > 0.04 * MADE);
	assert_true(sqrt(got.variance) < 0.1 * MADE);
}

/* GC cycles were missed: half of all may be other objects, and a tenth is taken to live. */
static void test_some_may_be_other_objects(void **state)
{
	struct heap_estimate sure = { 0 }, got = { 0 };
	struct world w;

	(void)state;
	for (int maybe = 0; maybe < 2; maybe++) {
		begin(&w);
		for (int i = 0; i < HEAP_LIVE_GROUPS; i++) {
			window(1000, 100, 1);
			counts[i].maybe = 500 * maybe;
			counts[i].maybe_live = 100 * maybe;
		}
		got = end(&w, 0.7, 0);
		if (!maybe)
			sure = got;
	}
	assert_int_equal(got.values.objects, sure.values.objects);
	assert_true(sqrt(sure.variance) < 0.1 * MADE);
	/* from none to half of all lives, with this distance from a tenth */
	assert_true(fabs(sqrt(got.variance - sure.variance) / MADE - sqrt(0.13 / 3)) < 0.001);
}

/* Garbage is garbage in all windows, however few they are. */
static void test_garbage(void **state)
{
	struct heap_estimate got;
	struct world w;

	(void)state;
	begin(&w);
	for (int i = 0; i < 20; i++)
		window(1000, 0, 1);
	unwatched = 0.5;
	got = end(&w, 0, 0);
	assert_int_equal(got.values.objects, 0);
	assert_true(sqrt(got.variance) < 0.001 * MADE);
}

/* What nobody watched may all live, as far as it outlives a cycle; the rest of the time is known. */
static void test_time_without_windows(void **state)
{
	struct heap_estimate got;
	struct world w;

	(void)state;
	begin(&w);
	for (int i = 0; i < HEAP_LIVE_GROUPS; i++)
		window(1000, 0, 1);
	unwatched = 0.5;
	got = end(&w, 1, 0);
	/* A uniform distribution from 0 to half of all has this root mean square. */
	assert_true(fabs(sqrt(got.variance) / MADE - 0.5 / sqrt(3)) < 0.01);
}

/* Windows of which one has nearly all are one, to what lives. */
static void test_one_window_has_nearly_all(void **state)
{
	struct heap_estimate few, many;
	struct world w;

	(void)state;
	begin(&w);
	for (int i = 0; i < HEAP_LIVE_GROUPS; i++)
		window(100, 0, 1);
	many = end(&w, 0.7, 0);
	begin(&w);
	window(100, 0, 10000);
	for (int i = 1; i < HEAP_LIVE_GROUPS; i++)
		window(100, 0, 1);
	few = end(&w, 0.7, 0);
	assert_true(sqrt(few.variance) > 8 * sqrt(many.variance));
}

/* From one window nothing is known of its error; nor where many objects at once were not followed. */
static void test_unknown_errors(void **state)
{
	struct world w;

	(void)state;
	begin(&w);
	window(100, 50, 1);
	assert_true(end(&w, 0.5, 0).variance < 0);
	begin(&w);
	window(100, 50, 1);
	window(100, 50, 1);
	w.window.tally.entries.at[0].count = 1; /* in full observation, and not followed */
	turned_away = 1;
	assert_true(end(&w, 0.5, 0).variance < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_share_by_weight),
		cmocka_unit_test(test_none_lives_of_what_windows_saw),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_some_may_be_other_objects),
		cmocka_unit_test(test_time_without_windows),
		cmocka_unit_test(test_one_window_has_nearly_all),
		cmocka_unit_test(test_unknown_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
