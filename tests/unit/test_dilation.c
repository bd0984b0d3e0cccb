/*
 * tests/unit/test_dilation.c - whose waits windows stand for: a runtime that counts, and begins, exits and is
 * observed in full at moments that the test chooses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "collect/waits/dilation.h"

/* The runtime's count; found: its counters can be found; alive: it can be read. */
static struct {
	uint64_t count;
	bool found, alive;
	int opens;
} runtime;

int rtcounters_open(struct gobin *b, const struct golayout *l, struct mem *m, uint64_t bias,
		    struct rtcounters **out, struct err *e)
{
	(void)b;
	(void)l;
	(void)m;
	(void)bias;
	runtime.opens++;
	if (!runtime.found)
		return err_set(e, -ENOTSUP, "not yet");
	*out = malloc(1);
	return 0;
}

int rtcounters_switches(struct rtcounters *c, uint64_t *out, struct err *e)
{
	(void)c;
	if (!runtime.alive)
		return err_set(e, -ESRCH, "it has exited");
	*out = runtime.count;
	return 0;
}

void rtcounters_free(struct rtcounters *c)
{
	free(c);
}

static struct target target = { .pid = -1 };
static struct subject subject = { .target = &target };

static struct dilation begun(void)
{
	runtime.count = 1000;
	runtime.found = runtime.alive = true;
	runtime.opens = 0;
	return (struct dilation){ .s = &subject };
}

/* What happens while probes are taken out and a price is measured belongs to windows. */
static void windows_begin_where_full_observation_ended(void **state)
{
	struct dilation w = begun();

	(void)state;
	dilation_mark(&w);
	runtime.count += 300;
	dilation_begin(&w, 500);
	runtime.count += 50;
	dilation_end(&w);
	assert_true(w.switches == 350);
	/* Where nothing was observed in full, they begin now. */
	runtime.count += 1000;
	dilation_begin(&w, 500);
	runtime.count += 25;
	dilation_end(&w);
	assert_true(w.switches == 375);
	dilation_fini(&w);
}

static void an_exit_leaves_what_was_read_last(void **state)
{
	const struct gpb_wait_clock clock = {};
	struct dilation w = begun();

	(void)state;
	dilation_begin(&w, 500);
	runtime.count += 4000;
	dilation_learn(&w, &clock, &(struct stretch){ .window = true }, 1, 1);
	runtime.count += 10;
	runtime.alive = false;
	dilation_end(&w);
	assert_true(w.switches == 4000);
	dilation_fini(&w);
}

/* A process that has just begun has no counters; one that never has any is not asked for ever. */
static void counters_are_looked_for_again(void **state)
{
	struct dilation w = begun();

	(void)state;
	runtime.found = false;
	dilation_mark(&w);
	runtime.found = true;
	dilation_begin(&w, 500);
	runtime.count += 7;
	dilation_end(&w);
	assert_true(w.switches == 7);
	dilation_fini(&w);
	w = begun();
	runtime.found = false;
	for (int i = 0; i < 1000; i++)
		dilation_mark(&w);
	assert_in_range(runtime.opens, 2, 20);
	dilation_begin(&w, 500);
	dilation_end(&w);
	assert_true(w.switches < 0);
	dilation_fini(&w);
}

/*
 * Full observation counts parks and nothing that tells how they follow each other. Taken for a window's,
 * they say that the program is as fast as without probes.
 */
static void full_observation_tells_nothing_of_windows(void **state)
{
	const struct gpb_wait_clock full = { .parks = 600000 };
	const struct gpb_wait_clock window = { .shorts = 12000,
					       .short_ns = 7200000,
					       .parks = full.parks + 6000 };
	struct dilation w = begun();

	(void)state;
	dilation_skip(&w, &full);
	dilation_begin(&w, 500);
	dilation_learn(&w, &window, &(struct stretch){ .window = true }, 1, 1);
	/* 600 ns from hit to hit, of which 500 are ours. */
	assert_true(w.now > 5.9 && w.now < 6.1);
	dilation_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_begin_where_full_observation_ended),
		cmocka_unit_test(an_exit_leaves_what_was_read_last),
		cmocka_unit_test(counters_are_looked_for_again),
		cmocka_unit_test(full_observation_tells_nothing_of_windows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
