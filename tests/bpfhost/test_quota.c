/*
 * tests/bpfhost/test_quota.c - how targets share a table: what one floods leaves the others their
 * parts, whatever the order in which they come.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define GPB_HOST
#include "goprof_abi.h"
#include "host.h"

#include "quota.bpf.h"

#include "collect/cpu/host.h"
#include "probe/quota.h"

enum { ROOM = 8192, CPUS = 4, TARGETS = 200, FLOODER = 7 };

static struct gpb_quota q;
static uint64_t has[TARGETS], all;

static int reset(void **state)
{
	(void)state;
	q = quota_of(ROOM, CPUS, TARGETS);
	memset(has, 0, sizeof(has));
	all = 0;
	return 0;
}

static bool take(unsigned who)
{
	if (!gpb_quota_allows(&q, has[who], all, 1))
		return false;
	has[who]++;
	all++;
	return true;
}

static void alone_it_may_have_half_of_the_room_and_its_part(void **state)
{
	(void)state;
	while (take(FLOODER))
		;
	assert_true(has[FLOODER] >= q.free);
	assert_true(has[FLOODER] <= ROOM / 2 + q.part);
}

static void after_a_flood_each_has_its_part(void **state)
{
	(void)state;
	assert_true(q.part >= 20);
	while (take(FLOODER))
		;
	for (unsigned t = 0; t < TARGETS; t++)
		for (uint64_t i = 0; t != FLOODER && i < q.part; i++)
			assert_true(take(t));
	assert_true(all <= ROOM - CPUS);
}

/* In any order, with what is taken out meanwhile. */
static void the_room_is_never_overdrawn(void **state)
{
	uint64_t x = 88172645463325252ull;

	(void)state;
	for (int i = 0; i < 2000000; i++) {
		unsigned who = x % 3 ? FLOODER : (unsigned)(x >> 20) % TARGETS;
		bool below = has[who] < q.part;

		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		if (x % 11 == 0 && has[who]) {
			has[who]--;
			all--;
			continue;
		}
		assert_true(take(who) || !below);
		assert_true(all <= ROOM - CPUS);
	}
	assert_true(has[FLOODER] > q.part);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(alone_it_may_have_half_of_the_room_and_its_part, reset),
		cmocka_unit_test_setup(after_a_flood_each_has_its_part, reset),
		cmocka_unit_test_setup(the_room_is_never_overdrawn, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
