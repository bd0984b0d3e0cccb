/* tests/unit/test_order.c - who comes first where there may not be room for all: the busiest. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "host/order.h"

enum { GONE = 9 };

/* This file's processes: the one with number P has had P ns, but 30 has had as much as 20. */
int clock_getcpuclockid(pid_t pid, clockid_t *clock)
{
	*clock = pid;
	return pid == GONE ? ESRCH : 0;
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	*ts = (struct timespec){ .tv_nsec = clock == 30 ? 20 : clock };
	return 0;
}

static void the_busiest_come_first(void **state)
{
	static const pid_t pids[] = { 5, 30, GONE, 20, 7 }, want[] = { 20, 30, 7, 5, GONE };
	struct survey_proc at[6] = { 0 };
	struct order *o;
	size_t n;

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		at[i].pid = pids[i];
		at[i].target = (struct target *)&at[i];
	}
	at[5].pid = 100; /* it is not held: it is not meant */
	o = order_busiest(at, 6, &n);
	assert_int_equal(n, 5);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(o[i].proc->pid, want[i]);
	free(o);
	o = order_busiest(at, 0, &n);
	assert_int_equal(n, 0);
	free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_busiest_come_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
