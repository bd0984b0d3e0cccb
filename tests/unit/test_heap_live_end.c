/*
 * tests/unit/test_heap_live_end.c - which of the followed objects count as in use, for how much, and what is said of the
 * others. The table is filled by hand; whoever looks at the heap is replaced by functions of these names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "collect/heap/live/heap_live_priv.h"

enum { GEN = 40, ONE_CYCLE = 2 }; /* the runtime adds two to mheap_.sweepgen for each GC cycle */
enum { HALF, ALL };		  /* stacks: what outlives a cycle of their objects */

/* ---- what looks at the heap ---- */

static unsigned looks, waits, looks_needed;
static int look_fails;

int heap_live_last(struct heap_live *l, unsigned try, bool *again, struct err *e)
{
	(void)l;
	assert_int_equal(try, looks);
	assert_int_equal(waits, looks);
	looks++;
	*again = looks < looks_needed && !look_fails;
	return look_fails ? err_set(e, look_fails, "it cannot be read") : 0;
}

void heap_live_wait(void)
{
	waits++;
}

void heap_live_fold(const struct heap_live *l, struct live_cell *c)
{
	(void)l;
	c->count.followed += c->now;
	c->now = 0;
}

struct live_stack *heap_live_stack_at(const struct heap_live *l, const struct live_object *o)
{
	return &l->stacks.at[l->cells.at[o->cell].stack];
}

double heap_live_outlive(const struct heap_live *l, const struct live_stack *s, uint32_t cycles)
{
	return s - l->stacks.at == HALF ? pow(0.5, cycles) : 1;
}

/* ---- the table ---- */

static struct live_stack stacks[] = {
	[HALF] = { .size = 64, .hash = { .lo = 11 } }, [ALL] = { .size = 64, .hash = { .lo = 22 } }
};
static struct live_cell cells[2];
static struct live_object objects[8];
static float weights[] = { 1, 5 };
static struct heap_live l;
static const struct heap_live_told nothing_told;

static int set_up(void **state)
{
	(void)state;
	looks = waits = 0;
	looks_needed = 1;
	look_fails = 0;
	for (uint32_t i = HALF; i <= ALL; i++)
		cells[i] = (struct live_cell){ .stack = i, .count = { .stack = stacks[i].hash } };
	l = (struct heap_live){ .gen = GEN,
				.cycles = 3,
				.objects = { .at = objects },
				.stacks = { .at = stacks, .n = 2 },
				.cells = { .at = cells, .n = 2 },
				.weights = { .at = weights, .n = 2 } };
	return 0;
}

/* One that survived the last cycle, and of which it is certain that it is this object. */
static struct live_object *add(uint32_t stack)
{
	struct live_object *o = &objects[l.objects.n++];

	*o = (struct live_object){
		.span = 1, .cell = stack, .gen = GEN, .window = 0, .aged = true, .sure = 1
	};
	return o;
}

static void end(void)
{
	assert_int_equal(heap_live_end(&l, NULL), 0);
}

static double live_of(uint32_t stack)
{
	return heap_live_count(&l, stack).live;
}

/* ---- what is in use ---- */

/* One that a window saw stands for others that none saw. */
static void survivors_count_with_their_window(void **state)
{
	(void)state;
	add(ALL);
	add(ALL)->window = 1;
	end();
	assert_true(live_of(ALL) == 6 && live_of(HALF) == 0);
	assert_int_equal(l.live, 2); /* sampled ones */
	assert_int_equal(l.young, 0);
}

/* As in the runtime's own profile, which publishes frees by cycle. */
static void what_came_after_the_last_cycle_is_not_judged(void **state)
{
	(void)state;
	add(ALL)->aged = false;
	end();
	assert_true(live_of(ALL) == 0 && l.live == 0);
	assert_int_equal(l.young, 1);
	assert_int_equal(l.unconfirmed, 0);
}

static void before_any_cycle_nothing_can_have_been_freed(void **state)
{
	(void)state;
	l.cycles = 0;
	add(ALL)->aged = false;
	end();
	assert_true(live_of(ALL) == 1 && l.live == 1);
	assert_int_equal(l.young, 0);
}

/* The target has gone before it could be asked for a cycle that one of its objects has met. */
static void objects_may_be_younger_than_the_last_look(void **state)
{
	(void)state;
	l.cycles = 0;
	add(ALL)->gen = GEN + ONE_CYCLE;
	end();
	assert_true(live_of(ALL) == 0 && l.young == 1);

	set_up(NULL);
	l.cycles = 0;
	l.gen = UINT32_MAX - 1; /* the next one is 0 */
	add(ALL)->gen = 0;
	end();
	assert_true(live_of(ALL) == 0 && l.young == 1 && l.unconfirmed == 0);
}

/* Half of its stack's objects outlive a cycle, so a quarter outlives two. */
static void after_missed_cycles_a_part_counts(void **state)
{
	(void)state;
	add(HALF)->gen = GEN - 2 * ONE_CYCLE;
	add(ALL)->gen = GEN - 2 * ONE_CYCLE;
	end();
	assert_true(live_of(HALF) == 0.25 && live_of(ALL) == 1);
	assert_true(heap_live_count(&l, HALF).maybe == 1 &&
		    heap_live_count(&l, HALF).maybe_live == 0.25);
	assert_true(heap_live_count(&l, ALL).maybe == 0); /* it cannot be another one */
	assert_int_equal(l.unconfirmed, 2);
}

/* Cycles were missed before the last look, too: it was told then that this is not certain. */
static void doubt_is_kept_and_counted_once(void **state)
{
	struct live_object *o;

	(void)state;
	l.unconfirmed = 2;
	add(HALF)->sure = 0.5;
	o = add(HALF);
	o->sure = 0.5;
	o->gen = GEN - ONE_CYCLE;
	end();
	assert_true(live_of(HALF) == 0.75);
	assert_true(heap_live_count(&l, HALF).maybe == 2 &&
		    heap_live_count(&l, HALF).maybe_live == 0.75);
	assert_int_equal(l.unconfirmed, 2);
	assert_int_equal(l.live, 1);
}

/* ---- the last look ---- */

/* Spans that are just being swept are asked again, after a pause. */
static void it_looks_until_all_is_known(void **state)
{
	(void)state;
	looks_needed = 3;
	end();
	assert_int_equal(looks, 3);
	assert_int_equal(waits, 2);
}

static void a_look_that_fails_is_an_error(void **state)
{
	struct err e = {};

	(void)state;
	look_fails = -EIO;
	looks_needed = 3;
	add(ALL);
	assert_int_equal(heap_live_end(&l, &e), -EIO);
	assert_string_equal(e.msg, "it cannot be read");
	assert_int_equal(looks, 1);
	assert_true(live_of(ALL) == 0);
}

/* ---- counts ---- */

static void counts_tell_what_their_stack_outlives(void **state)
{
	struct heap_live_count c;

	(void)state;
	cells[HALF].now = 4; /* of the window that was open last */
	cells[HALF].count.objects = 7;
	l.untold = 9;
	end();
	assert_int_equal(heap_live_ncounts(&l), 2);
	c = heap_live_count(&l, HALF);
	assert_true(c.followed == 4 && c.objects == 7 && c.stack.lo == 11);
	assert_true(c.once == 0.5 && c.always == 0.125); /* three cycles */
	c = heap_live_count(&l, ALL);
	assert_true(c.stack.lo == 22 && c.once == 1 && c.always == 1);
	assert_int_equal(heap_live_turned_away(&l), 9);
}

/* ---- losses ---- */

static uint64_t unplaced(uint64_t followed, uint64_t unknown)
{
	const struct heap_live_told t = { .unknown = unknown };
	struct loss to = { 0 };

	l.followed = followed;
	heap_live_losses(&l, &t, &to);
	assert_int_equal(loss_total(&to), to.n[LOSS_OBJECTS_UNPLACED]);
	return to.n[LOSS_OBJECTS_UNPLACED];
}

/*
 * More than one in twenty, and more than a standard error of the number, which is 10 of 100 objects and 32 of 1000: of few
 * objects chance hides more, and of many it hides less.
 */
static void a_few_unplaced_objects_are_no_loss(void **state)
{
	(void)state;
	assert_int_equal(unplaced(1000, 50), 0);
	assert_int_equal(unplaced(1000, 51), 51);
	assert_int_equal(unplaced(100, 10), 0);
	assert_int_equal(unplaced(100, 11), 11);
	assert_int_equal(unplaced(0, 1), 1);
	assert_int_equal(unplaced(0, 0), 0);
}

static void all_objects_without_a_place_are_lost_alike(void **state)
{
	/* What was reported and then dropped is a loss of its own already. */
	const struct heap_live_told t = { .unknown = 20, .waiting = 30, .dropped = 1000 };
	struct loss to = { .n[LOSS_OBJECTS_UNPLACED] = 1 };

	(void)state;
	l.followed = 1000;
	l.untold = 40;
	heap_live_losses(&l, &t, &to);
	assert_int_equal(to.n[LOSS_OBJECTS_UNPLACED], 91);
	assert_int_equal(loss_total(&to), 91);
}

static void many_unconfirmed_objects_are_a_loss(void **state)
{
	struct loss to = { .n[LOSS_OBJECTS_UNCONFIRMED] = 1 };

	(void)state;
	l.followed = 1000;
	l.unconfirmed = 50;
	heap_live_losses(&l, &nothing_told, &to);
	assert_int_equal(to.n[LOSS_OBJECTS_UNCONFIRMED], 1);
	l.unconfirmed = 60;
	heap_live_losses(&l, &nothing_told, &to);
	assert_int_equal(to.n[LOSS_OBJECTS_UNCONFIRMED], 61);
}

/* The same process keeps the probes of cycles and all others, and whoever has those tells its deaths, too. */
static void a_death_that_was_told_is_not_told_again(void **state)
{
	struct loss to = { .n[LOSS_ATTACHER_KILLED] = 3 };

	(void)state;
	l.probe.deaths = 2;
	heap_live_losses(&l, &nothing_told, &to);
	assert_int_equal(to.n[LOSS_ATTACHER_KILLED], 3);
	l.probe.deaths = 5;
	heap_live_losses(&l, &nothing_told, &to);
	assert_int_equal(to.n[LOSS_ATTACHER_KILLED], 5);
}

/* ---- comments ---- */

static struct prof *p;

static int set_up_comments(void **state)
{
	set_up(state);
	return prof_new(&p, NULL);
}

static int tear_down(void **state)
{
	(void)state;
	prof_free(p);
	return 0;
}

static bool says(const char *what)
{
	struct prof_header_view v = prof_header(p);

	for (size_t i = 0; i < v.ncomments; i++)
		if (strstr(strtab_get(prof_strings(p), v.comments[i]), what))
			return true;
	return false;
}

static void comments_tell_where_places_are_from(void **state)
{
	const struct heap_live_told t = { .told = 101,
					  .waited = 102,
					  .large = 103,
					  .settled = 104,
					  .unknown = 1,
					  .waiting = 20,
					  .dropped = 300 };

	(void)state;
	l.followed = 50;
	l.live = 40;
	l.young = 6;
	l.untold = 4000;
	l.unconfirmed = 7;
	l.look_ns = 1500000;
	l.look_n = 49;
	assert_int_equal(heap_live_comments(&l, &t, p, NULL), 0);
	assert_int_equal(prof_header(p).ncomments, 4);
	assert_true(says("50 sampled objects followed, 40 in use"));
	assert_true(says("3 GC cycles ended; 6 sampled objects are younger"));
	assert_true(says("4321 sampled objects without a known slot"));
	assert_true(says("; 7 not confirmed after missed GC cycles"));
	assert_true(says("101 objects known immediately, 102 after a wait, 103 from allocLarge, "
			 "104 at the next allocation"));
	assert_true(says("longest look 1.5 ms, at 49 objects"));
}

static void comments_tell_what_was_judged(void **state)
{
	(void)state;
	assert_int_equal(heap_live_comments(&l, &nothing_told, p, NULL), 0);
	assert_true(says("what the last GC cycle found reachable"));
	l.gone = true;
	assert_int_equal(heap_live_comments(&l, &nothing_told, p, NULL), 0);
	assert_true(says("what the last GC cycle that was seen found reachable"));
}

/* Then it is no matter whether the target has gone. */
static void without_a_cycle_comments_say_so(void **state)
{
	(void)state;
	l.cycles = 0;
	l.gone = true;
	assert_int_equal(heap_live_comments(&l, &nothing_told, p, NULL), 0);
	assert_true(says("all, for no GC cycle ended in it"));
	assert_false(says("GC cycles ended"));
	assert_int_equal(prof_header(p).ncomments, 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(survivors_count_with_their_window, set_up),
		cmocka_unit_test_setup(what_came_after_the_last_cycle_is_not_judged, set_up),
		cmocka_unit_test_setup(before_any_cycle_nothing_can_have_been_freed, set_up),
		cmocka_unit_test_setup(objects_may_be_younger_than_the_last_look, set_up),
		cmocka_unit_test_setup(after_missed_cycles_a_part_counts, set_up),
		cmocka_unit_test_setup(doubt_is_kept_and_counted_once, set_up),
		cmocka_unit_test_setup(it_looks_until_all_is_known, set_up),
		cmocka_unit_test_setup(a_look_that_fails_is_an_error, set_up),
		cmocka_unit_test_setup(counts_tell_what_their_stack_outlives, set_up),
		cmocka_unit_test_setup(a_few_unplaced_objects_are_no_loss, set_up),
		cmocka_unit_test_setup(all_objects_without_a_place_are_lost_alike, set_up),
		cmocka_unit_test_setup(many_unconfirmed_objects_are_a_loss, set_up),
		cmocka_unit_test_setup(a_death_that_was_told_is_not_told_again, set_up),
		cmocka_unit_test_setup_teardown(comments_tell_where_places_are_from,
						set_up_comments, tear_down),
		cmocka_unit_test_setup_teardown(comments_tell_what_was_judged, set_up_comments,
						tear_down),
		cmocka_unit_test_setup_teardown(without_a_cycle_comments_say_so, set_up_comments,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
