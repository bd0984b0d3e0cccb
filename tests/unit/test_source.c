/*
 * tests/unit/test_source.c - a collector that is nothing but the source that was chosen: each call is that source's, what a
 * source does not have does nothing, and it is freed once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/source.h"

/* What a source works on: which of its functions were called, and what they return. */
struct work {
	unsigned fds, polls, stops, frees, ticks, begins, firsts;
	int ret;
};

static struct work work;
static struct prof *const some = (struct prof *)&work; /* nobody looks into it */

static int work_fd(void *at)
{
	((struct work *)at)->fds++;
	return 42;
}

static int work_poll(void *at, struct err *e)
{
	struct work *to = at;

	to->polls++;
	return to->ret ? err_set(e, to->ret, "poll") : 0;
}

static int work_stop(void *at, struct prof **out, struct err *e)
{
	struct work *to = at;

	to->stops++;
	*out = some;
	return to->ret ? err_set(e, to->ret, "stop") : 0;
}

static void work_free(void *at)
{
	((struct work *)at)->frees++;
}

static int work_tick(void *at, struct err *e)
{
	struct work *to = at;

	to->ticks++;
	return to->ret ? err_set(e, to->ret, "tick") : 0;
}

static int work_begin(void *at, struct err *e)
{
	struct work *to = at;

	to->begins++;
	return to->ret ? err_set(e, to->ret, "begin") : 0;
}

static const struct prof *work_first(const void *at)
{
	assert_ptr_equal(at, &work);
	work.firsts++;
	return some;
}

static const struct source whole = { .fd = work_fd,
				     .poll = work_poll,
				     .stop = work_stop,
				     .free = work_free,
				     .tick = work_tick,
				     .begin = work_begin,
				     .first = work_first };
static const struct source least = {
	.fd = work_fd, .poll = work_poll, .stop = work_stop, .free = work_free
};

static void *chosen(const struct source *source)
{
	struct sourced by = { .source = source, .at = &work };
	void *state = NULL;

	work = (struct work){};
	assert_int_equal(sourced_new(&by, &state, NULL), 0);
	assert_non_null(state);
	/* It is the collector's from now on. */
	assert_true(!by.source && !by.at);
	sourced_fini(&by);
	assert_int_equal(work.frees, 0);
	return state;
}

static void each_call_is_the_sources(void **state)
{
	void *k = chosen(&whole);
	struct prof *out = NULL;

	(void)state;
	assert_int_equal(sourced_fd(k), 42);
	assert_int_equal(sourced_begin(k, NULL), 0);
	assert_int_equal(sourced_poll(k, NULL), 0);
	assert_int_equal(sourced_tick(k, NULL), 0);
	assert_int_equal(sourced_stop(k, &out, NULL), 0);
	assert_ptr_equal(out, some);
	assert_ptr_equal(sourced_first(k), some);
	assert_true(work.fds == 1 && work.begins == 1 && work.polls == 1 && work.ticks == 1);
	assert_true(work.stops == 1 && work.firsts == 1 && work.frees == 0);
	sourced_free(k);
	assert_int_equal(work.frees, 1);
}

static void failed(int ret, struct err *e, const char *where)
{
	assert_int_equal(ret, -EIO);
	assert_string_equal(e->msg, where);
}

static void what_fails_is_the_sources(void **state)
{
	void *k = chosen(&whole);
	struct prof *out = NULL;
	struct err e = {};

	(void)state;
	work.ret = -EIO;
	failed(sourced_begin(k, &e), &e, "begin");
	failed(sourced_poll(k, &e), &e, "poll");
	failed(sourced_tick(k, &e), &e, "tick");
	failed(sourced_stop(k, &out, &e), &e, "stop");
	sourced_free(k);
}

static void a_source_need_not_have_all(void **state)
{
	void *k = chosen(&least);
	struct prof *out = NULL;

	(void)state;
	work.ret = -EIO;
	assert_int_equal(sourced_begin(k, NULL), 0);
	assert_int_equal(sourced_tick(k, NULL), 0);
	assert_null(sourced_first(k));
	assert_int_equal(sourced_poll(k, NULL), -EIO);
	assert_int_equal(sourced_stop(k, &out, NULL), -EIO);
	sourced_free(k);
	assert_int_equal(work.frees, 1);
}

/* One that was chosen and not taken is freed once. */
static void a_source_that_nobody_took_is_freed(void **state)
{
	struct sourced by = { .source = &least, .at = &work };

	(void)state;
	work = (struct work){};
	sourced_fini(&by);
	assert_int_equal(work.frees, 1);
	assert_true(!by.source && !by.at);
	sourced_fini(&by);
	assert_int_equal(work.frees, 1);
	sourced_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_call_is_the_sources),
		cmocka_unit_test(what_fails_is_the_sources),
		cmocka_unit_test(a_source_need_not_have_all),
		cmocka_unit_test(a_source_that_nobody_took_is_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
