/*
 * tests/unit/test_take_stacks.c - stacks are taken from the kernel's table while programs file into it, of which one is
 * preempted: this file's libbpf has the table.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdlib.h>
#include <time.h>

#include "probe/bpf.h"

enum { CPUS = 2, PLACES = 3, ROOM = 32, SCRATCH = 64 };

static const struct bpf_map *const stacks = (void *)0x10, *const scratches = (void *)0x20;
static struct gpb_rounds rounds;
static struct {
	struct gpb_stack_key key;
	struct gpb_stack st;
} table[ROOM];
static size_t ntable;
static struct gpb_claim claims[PLACES][CPUS];

int bpf_map__fd(const struct bpf_map *map)
{
	return (int)(uintptr_t)map;
}

uint32_t bpf_map__value_size(const struct bpf_map *map)
{
	return map == scratches ? SCRATCH : sizeof(struct gpb_stack);
}

uint32_t bpf_map__max_entries(const struct bpf_map *map)
{
	return map == scratches ? PLACES : ROOM;
}

int libbpf_num_possible_cpus(void)
{
	return CPUS;
}

static size_t index_of(const void *key)
{
	size_t i = 0;

	while (i < ntable && memcmp(&table[i].key, key, sizeof(table[i].key)))
		i++;
	return i;
}

int bpf_map_get_next_key(int fd, const void *key, void *next)
{
	size_t i = key ? index_of(key) + 1 : 0;

	assert_int_equal(fd, 0x10);
	if (i >= ntable)
		return -ENOENT;
	memcpy(next, &table[i].key, sizeof(table[i].key));
	return 0;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	uint32_t place;
	size_t i;

	if (fd == 0x20) {
		memcpy(&place, key, sizeof(place));
		for (i = 0; i < CPUS; i++)
			memcpy((char *)value + i * SCRATCH, &claims[place][i],
			       sizeof(claims[0][0]));
		return 0;
	}
	i = index_of(key);
	assert_true(i < ntable);
	memcpy(value, &table[i].st, sizeof(table[i].st));
	return 0;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	size_t i = index_of(key);

	assert_int_equal(fd, 0x10);
	for (ntable--; i < ntable; i++)
		table[i] = table[i + 1];
	return 0;
}

/* ---- programs ---- */

static void file(uint32_t slot, uint64_t count)
{
	static uint64_t n;

	assert_true(ntable < ROOM);
	table[ntable].key = (struct gpb_stack_key){ .hash.lo = ++n, .round = rounds.now };
	table[ntable++].st = (struct gpb_stack){ .slot = slot, .count = count };
}

/* It is preempted in the middle of its sample. */
static uint64_t begin(uint32_t slot, size_t cpu)
{
	claims[1][cpu] = (struct gpb_claim){ .busy = 1, .round = rounds.now, .slot = slot };
	rounds.filing[rounds.now & 1]++;
	return rounds.now;
}

static void finish(uint64_t round, size_t cpu)
{
	claims[1][cpu].busy = 0;
	rounds.filing[round & 1]--;
}

static uint64_t taken;

static int add(void *arg, const struct gpb_hash *key, const struct gpb_stack *st, struct err *e)
{
	(void)arg;
	(void)key;
	(void)e;
	taken += st->count;
	return 0;
}

static uint64_t take(void)
{
	taken = 0;
	assert_int_equal(bpf_take_stacks(bpf_map__fd(stacks), &rounds, add, NULL, NULL), 0);
	return taken;
}

static uint64_t left_of[4];

static void leave(void *arg, uint32_t slot, uint64_t count)
{
	(void)arg;
	left_of[slot] += count;
}

static uint64_t left(void)
{
	uint64_t sum = 0;

	memset(left_of, 0, sizeof(left_of));
	assert_int_equal(bpf_each_left(stacks, scratches, &rounds, leave, NULL, NULL), 0);
	assert_int_equal(bpf_count_left(stacks, scratches, &rounds, &sum, NULL), 0);
	for (size_t i = 0; i < 4; i++)
		sum -= left_of[i];
	assert_int_equal(sum, 0);
	return left_of[0] + left_of[1] + left_of[2] + left_of[3];
}

static int reset(void **state)
{
	(void)state;
	rounds = (struct gpb_rounds){ 0 };
	memset(claims, 0, sizeof(claims));
	ntable = 0;
	return 0;
}

static void what_is_filed_is_taken_once(void **state)
{
	(void)state;
	file(1, 5);
	assert_int_equal(take(), 5);
	file(2, 7);
	assert_int_equal(take(), 7);
	assert_int_equal(take(), 0);
	assert_int_equal(left(), 0);
}

static void what_is_in_flight_at_the_end_is_told_of_its_target(void **state)
{
	uint64_t round;

	(void)state;
	file(1, 5);
	assert_int_equal(take(), 5);
	file(2, 7);
	round = begin(3, 1);
	assert_int_equal(take(), 0);
	assert_int_equal(left(), 8);
	assert_true(left_of[2] == 7 && left_of[3] == 1);
	/* It comes to its end: nothing is left, and nothing was told twice. */
	finish(round, 1);
	assert_int_equal(take(), 7);
	assert_int_equal(left(), 0);
}

static uint64_t calls;

/* Replaces libc's: each pause of the code under test is one call. */
int nanosleep(const struct timespec *time, struct timespec *rest)
{
	(void)rest;
	calls++;
	return clock_nanosleep(CLOCK_MONOTONIC, 0, time, NULL);
}

static void who_is_preempted_is_waited_for_once(void **state)
{
	uint64_t round;

	(void)state;
	round = begin(3, 0);
	calls = 0;
	take();
	assert_true(calls > 0);
	calls = 0;
	for (int i = 0; i < 20; i++) {
		file(1, 1);
		take();
	}
	assert_int_equal(calls, 0);
	finish(round, 0);
	assert_int_equal(take(), 20);
	/* The next one is waited for again. */
	begin(3, 0);
	take();
	assert_true(calls > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_is_filed_is_taken_once, reset),
		cmocka_unit_test_setup(what_is_in_flight_at_the_end_is_told_of_its_target, reset),
		cmocka_unit_test_setup(who_is_preempted_is_waited_for_once, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
