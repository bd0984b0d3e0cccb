/*
 * tests/unit/test_reports.c - what is drained from the kernel's table of stacks: this file's libbpf has
 * the entries.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/bpf.h>

#include "probe/reports.h"

enum { TABLE = 77 };

static struct gpb_stack table[8];
static size_t nentries;

int bpf_map__fd(const struct bpf_map *map)
{
	(void)map;
	return TABLE;
}

int ring_buffer__consume(struct ring_buffer *rb)
{
	(void)rb;
	return 0;
}

int bpf_map_get_next_key(int fd, const void *key, void *next)
{
	const struct gpb_stack_key *at = key;
	struct gpb_stack_key k = { .round = at ? at->round + 1 : 0 };

	assert_int_equal(fd, TABLE);
	if (k.round == nentries)
		return -ENOENT;
	memcpy(next, &k, sizeof(k));
	return 0;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	const struct gpb_stack_key *at = key;

	assert_int_equal(fd, TABLE);
	memcpy(value, &table[at->round], sizeof(table[0]));
	return 0;
}

static uint64_t taken[8];
static size_t ntaken;

static int take(void *arg, const struct gpb_stack *st, struct err *e)
{
	(void)arg;
	(void)e;
	taken[ntaken++] = st->count;
	return 0;
}

static void entry(uint64_t count, unsigned nkernel, unsigned nfirst, unsigned nsecond)
{
	table[nentries++] = (struct gpb_stack){
		.count = count,
		.nkernel = (uint16_t)nkernel,
		.nfirst = (uint16_t)nfirst,
		.nsecond = (uint16_t)nsecond,
	};
}

/* Whoever takes a stack refuses one that is not whole, and the profile would be lost with it. */
static void stacks_that_are_not_whole_are_counted_not_taken(void **state)
{
	struct reports f = { .add = take };
	struct loss loss = { 0 };

	(void)state;
	entry(1, 0, 3, 0);
	entry(2, 0, 0, 0);
	entry(3, 0, GPB_MAX_USER, 1);
	entry(4, GPB_MAX_KERNEL + 1, 1, 0);
	entry(5, GPB_MAX_KERNEL, GPB_MAX_USER - 1, 1);
	assert_int_equal(reports_drain(&f, NULL, NULL), 0);
	assert_int_equal(ntaken, 2);
	assert_true(taken[0] == 1 && taken[1] == 5);
	reports_losses(&f, &(struct gpb_tally){ 0 }, NULL, &loss);
	assert_int_equal(loss.n[LOSS_STACKS_UNREADABLE], 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks_that_are_not_whole_are_counted_not_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
