/* tests/unit/test_looks_sums.c - which stacks that looks find become entries of the tally. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sampling/looks_sums.h"

static bool room;

static bool has_room(void *arg)
{
	assert_ptr_equal(arg, &room);
	return room;
}

/* Many targets share the room for stacks: what finds none is counted, and what has an entry keeps it. */
static void what_there_is_no_room_for_is_counted(void **state)
{
	struct gpb_stack st[2] = { { .nfirst = 1, .pc = { 100 } }, { .nfirst = 1, .pc = { 200 } } };
	struct tally t = {};
	struct looks_sums u = { .tally = &t, .room = has_room, .room_arg = &room };
	bool known;
	int32_t at;

	(void)state;
	tally_init(&t);
	room = true;
	assert_int_equal(looks_sums_entry(&u, &st[0], 0, true, &known, &at, NULL), 0);
	assert_true(known && at == 0 && !u.crowded);
	room = false;
	assert_int_equal(looks_sums_entry(&u, &st[1], 0, true, &known, &at, NULL), 0);
	assert_true(known && at == LOOKS_NOT_COUNTED);
	assert_int_equal(u.crowded, 1);
	assert_int_equal(looks_sums_entry(&u, &st[0], 0, true, &known, &at, NULL), 0);
	assert_true(known && at == 0);
	assert_true(t.entries.n == 1 && u.crowded == 1);
	looks_sums_fini(&u);
	tally_fini(&t);
}

/* Waits without a stack are an error of each place where goroutines wait for the same, and of no other. */
static void lost_waits_may_be_of_any_such_place(void **state)
{
	enum { RECEIVE = 14, SLEEP = 19 };
	struct gpb_stack at[] = { { .nfirst = 1, .wait.reason = RECEIVE, .pc = { 100 } },
				  { .nfirst = 1, .wait.reason = SLEEP, .pc = { 200 } },
				  { .nfirst = 1, .wait.kind = GPB_G_RUNNABLE, .pc = { 300 } },
				  { .nfirst = 1, .wait.kind = GPB_G_SYSCALL, .pc = { 400 } } };
	struct tally t = {};
	struct looks_sums u = { .tally = &t, .reasons_apart = 1ull << SLEEP };
	size_t entry;

	(void)state;
	tally_init(&t);
	for (size_t i = 0; i < ARRAY_LEN(at); i++)
		assert_int_equal(tally_index(&t, &at[i], 0, &entry, NULL), 0);
	looks_sums_lost(&u, &(struct gpb_stack){ .wait.reason = RECEIVE }, 5);
	looks_sums_lost(&u, &(struct gpb_stack){ .wait.reason = RECEIVE }, 2);
	looks_sums_lost(&u, &(struct gpb_stack){ .wait.kind = GPB_G_SYSCALL }, 3);
	looks_sums_end(&u, 2000, 1000);
	assert_true(looks_site_lost(&u, 0) == 14 && looks_site_lost(&u, 1) == 0);
	assert_true(looks_site_lost(&u, 2) == 0 && looks_site_lost(&u, 3) == 6);
	assert_true(looks_all_lost(&u) == 20 && looks_apart_lost(&u) == 0);
	/* of a place that came later nothing is known */
	assert_true(looks_site_lost(&u, 4) == 20);
	looks_sums_fini(&u);
	tally_fini(&t);
}

/* What the probes of a target saw makes a stack known that looks find, though these do not know its slot. */
static void probes_make_stacks_known(void **state)
{
	struct gpb_stack probed = {
		.slot = 7 | 3u << 16, .nfirst = 1, .count = GPB_COUNT_ONE, .pc = { 100 }
	};
	struct gpb_stack looked = { .nfirst = 1, .pc = { 100 } };
	const struct tally_window w = { .weight = 1 };
	struct looks_sums u;
	struct tally t;
	bool known;
	int32_t at;

	(void)state;
	tally_init(&t);
	u = (struct looks_sums){ .tally = &t };
	assert_int_equal(looks_sums_entry(&u, &looked, 0, false, &known, &at, NULL), 0);
	assert_false(known);
	assert_int_equal(tally_add(&t, &probed, 0, NULL), 0);
	tally_window(&t, &w);
	assert_int_equal(looks_sums_entry(&u, &looked, 0, false, &known, &at, NULL), 0);
	assert_true(known && at == 0);
	assert_int_equal(t.entries.n, 1);
	looks_sums_fini(&u);
	tally_fini(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lost_waits_may_be_of_any_such_place),
		cmocka_unit_test(probes_make_stacks_known),
		cmocka_unit_test(what_there_is_no_room_for_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
