/* tests/unit/test_unwind_rules_learn.c - what happens when the kernel's table of rules is full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include <bpf/bpf.h>

#include "base/cleanup.h"
#include "probe/stacks/unwind_rules.h"

/* Replaces the kernel's table, behind libbpf's calls: it takes so many entries and no more. */
static struct map table;
static size_t room = GPB_UNWIND_RULES, deleted;
static int refuse, refuse_delete;

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	const uint64_t *k = key;
	uint64_t was;

	(void)fd;
	(void)value;
	(void)flags;
	if (refuse)
		return refuse;
	if (!map_get(&table, *k, &was) || !was) {
		if (!room)
			return -E2BIG;
		room--;
	}
	return map_put(&table, *k, 1) ? 0 : -ENOMEM;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	const uint64_t *k = key;
	uint64_t was = 0;

	(void)fd;
	if (refuse_delete)
		return refuse_delete;
	if (!map_get(&table, *k, &was) || !was)
		return -ENOENT;
	map_put(&table, *k, 0);
	room++;
	deleted++;
	return 0;
}

static bool has(uint64_t pc)
{
	uint64_t v = 0;

	return map_get(&table, pc, &v) && v;
}

enum { EIGHTH = GPB_UNWIND_RULES / 8 };
static struct unwind_rules r;

static const struct unwind_rules_file *file(uint16_t id)
{
	for (size_t i = 0; i < r.files.n; i++)
		if (r.files.at[i].id == id)
			return &r.files.at[i];
	return NULL;
}

static uint64_t evicted(uint16_t id)
{
	return file(id)->evicted;
}

static size_t count(uint16_t id)
{
	return file(id)->order.n;
}

static int setup(void **state)
{
	(void)state;
	map_fini(&table);
	room = GPB_UNWIND_RULES;
	deleted = 0;
	refuse = 0;
	unwind_rules_init(&r, -1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unwind_rules_fini(&r);
	map_fini(&table);
	return 0;
}

static void learn_range(uint64_t from, uint64_t to)
{
	static const struct gpb_unwind_rule rule = { .delta = 8 };

	for (uint64_t pc = from; pc < to; pc++)
		unwind_rules_learn(&r, pc, &rule);
}

static void a_full_table_takes_the_next_one(void **state)
{
	(void)state;
	learn_range(1, GPB_UNWIND_RULES + 1);
	assert_int_equal(room, 0);
	assert_int_equal(evicted(0), 0);
	learn_range(GPB_UNWIND_RULES + 1, GPB_UNWIND_RULES + 2);
	assert_true(has(GPB_UNWIND_RULES + 1));
	assert_int_equal(r.refused, 0);
	assert_int_equal(evicted(0), EIGHTH);
}

static void the_oldest_go_and_come_back(void **state)
{
	(void)state;
	learn_range(1, GPB_UNWIND_RULES + 2);
	assert_false(has(1));
	assert_false(has(EIGHTH));
	assert_true(has(EIGHTH + 1));
	learn_range(1, 2);
	assert_true(has(1));
}

/* Many times as many rules: none is refused, and the table has the latest ones. */
static void it_never_ends(void **state)
{
	const uint64_t last = 3 * (uint64_t)GPB_UNWIND_RULES;

	(void)state;
	learn_range(1, last + 1);
	assert_int_equal(r.refused, 0);
	assert_int_equal(evicted(0), deleted);
	assert_int_equal(GPB_UNWIND_RULES - room, count(0));
	for (uint64_t pc = last - GPB_UNWIND_RULES + EIGHTH + 1; pc <= last; pc++)
		assert_true(has(pc));
}

static void what_is_known_is_not_told_again(void **state)
{
	(void)state;
	learn_range(1, 100);
	learn_range(1, 100);
	assert_int_equal(count(0), 99);
}

static void learn_of(uint16_t id, uint64_t from, uint64_t to)
{
	learn_range((uint64_t)id << 48 | from, (uint64_t)id << 48 | to);
}

/* One that has no end takes from itself, and the others have what they had. */
static void a_flood_takes_nothing_from_others(void **state)
{
	(void)state;
	for (uint16_t id = 1; id < 32; id++)
		learn_of(id, 0, UNWIND_RULES_PART - 1);
	learn_of(40, 0, 3 * (uint64_t)GPB_UNWIND_RULES);
	for (uint16_t id = 1; id < 32; id++)
		assert_true(!evicted(id) && count(id) == UNWIND_RULES_PART - 1);
	assert_int_equal(evicted(40), deleted);
	assert_int_equal(r.refused, 0);
}

/* Where all are small but many, those that came first go; one of them that is still there comes last. */
static void the_files_that_came_first_go(void **state)
{
	const uint16_t all = GPB_UNWIND_RULES / 1024;

	(void)state;
	for (uint16_t id = 0; id < all; id++)
		learn_of(id, 0, 1024);
	learn_of(all, 0, 1024);
	assert_true(evicted(0) == 1024 && !count(0) && !evicted(1));
	learn_of(0, 0, 1024);
	assert_true(count(0) == 1024 && evicted(1) == 1024 && !evicted(2));
	learn_of(all + 1, 0, 1024);
	assert_true(count(0) == 1024 && evicted(2) == 1024);
}

static bool has_any(uint16_t id)
{
	for (uint64_t pc = 0; pc < 100; pc++)
		if (has((uint64_t)id << 48 | pc) || unwind_rules_known(&r, (uint64_t)id << 48 | pc))
			return true;
	return false;
}

/* Its number is another file's now: nothing of it may be applied to that. */
static void a_file_that_is_forgotten_leaves_nothing(void **state)
{
	(void)state;
	for (uint16_t id = 1; id < 5; id++)
		learn_of(id, 0, 100);
	assert_true(unwind_rules_forget(&r, 2));
	assert_true(unwind_rules_forget(&r, 4));
	assert_true(unwind_rules_forget(&r, 9)); /* nothing was known of it */
	for (uint16_t id = 1; id < 5; id++)
		assert_int_equal(has_any(id), id % 2);
	assert_int_equal(room, GPB_UNWIND_RULES - 200);
	learn_of(2, 50, 60);
	learn_of(3, 100, 150);
	assert_true(count(1) == 100 && count(2) == 10 && count(3) == 150);
	assert_int_equal(r.files.n, 3);
}

static void what_stays_in_the_table_is_told(void **state)
{
	(void)state;
	learn_of(1, 0, 100);
	refuse_delete = -EBUSY;
	assert_false(unwind_rules_forget(&r, 1));
	refuse_delete = 0;
}

static size_t ncomments(const struct prof *p)
{
	return prof_header(p).ncomments;
}

/* Each is told of its own. */
static void whose_they_were_is_told(void **state)
{
	CLEANUP(prof_freep) struct prof *p = NULL;
	struct subject s = { .images = { .n = 1 } };

	(void)state;
	learn_of(1, 0, UNWIND_RULES_PART);
	learn_of(2, 0, GPB_UNWIND_RULES);
	assert_int_equal(prof_new(&p, NULL), 0);
	s.images.at[0].id = 1;
	assert_int_equal(unwind_rules_comment(&r, &s, p, NULL), 0);
	s.images.at[0].id = 3;
	assert_int_equal(unwind_rules_comment(&r, &s, p, NULL), 0);
	assert_int_equal(ncomments(p), 0);
	s.images.at[0].id = 2;
	assert_int_equal(unwind_rules_comment(&r, &s, p, NULL), 0);
	assert_int_equal(ncomments(p), 1);
}

static void what_is_refused_is_counted(void **state)
{
	(void)state;
	refuse = -ENOMEM;
	learn_range(1, 11);
	assert_int_equal(r.refused, 10);
	refuse = -E2BIG; /* and there is nothing to evict */
	learn_range(1, 11);
	assert_int_equal(r.refused, 20);
	refuse = 0;
	learn_range(1, 11);
	assert_true(has(10));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_full_table_takes_the_next_one, setup, teardown),
		cmocka_unit_test_setup_teardown(the_oldest_go_and_come_back, setup, teardown),
		cmocka_unit_test_setup_teardown(it_never_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_known_is_not_told_again, setup, teardown),
		cmocka_unit_test_setup_teardown(a_flood_takes_nothing_from_others, setup, teardown),
		cmocka_unit_test_setup_teardown(the_files_that_came_first_go, setup, teardown),
		cmocka_unit_test_setup_teardown(a_file_that_is_forgotten_leaves_nothing, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_stays_in_the_table_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(whose_they_were_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_refused_is_counted, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
