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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_there_is_no_room_for_is_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
