/* tests/unit/test_host_pick.c - which processes --match and --exclude mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "cli/host_pick.h"

static struct survey_build build = { .module = "example.com/shop",
				     .path = "example.com/shop/cmd/cart" };
static char exe[] = "/srv/cart/bin/cart";
static const struct survey_proc proc = {
	.uid = 0,
	.comm = "cart",
	.exe = exe,
	.command = "./cart -port 80 -mode=fast",
	.cgroup = "/system.slice/docker-4d1c8f6a0b7e.scope",
	.build = &build,
};

static bool wants(const char *match, const char *exclude)
{
	struct pick p = { 0 };

	if (match)
		p.match[p.nmatch++] = match;
	if (exclude)
		p.exclude[p.nexclude++] = exclude;
	return pick_wants(&p, &proc);
}

static void all_are_meant_without_a_pattern(void **state)
{
	(void)state;
	assert_true(wants(NULL, NULL));
}

static void each_field_can_be_asked_for(void **state)
{
	static const char *const right[] = { "name=cart",	    "exe=/srv",
					     "cmd=-port 80",	    "user=root",
					     "cgroup=4d1c8f6a0b7e", "module=shop" };
	static const char *const wrong[] = { "name=shop", "exe=4d1c",	 "cmd=/srv",
					     "user=cart", "cgroup=fast", "module=root" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(right); i++) {
		assert_true(wants(right[i], NULL));
		assert_false(wants(NULL, right[i]));
		assert_false(wants(wrong[i], NULL));
		assert_true(wants(NULL, wrong[i]));
	}
}

static void without_a_field_any_of_them_will_do(void **state)
{
	(void)state;
	assert_true(wants("example.com", NULL));
	assert_true(wants("docker-", NULL));
	assert_true(wants("-mode=fast", NULL));
	assert_false(wants("nobody", NULL));
}

static void patterns_of_a_shell_fit_the_whole(void **state)
{
	(void)state;
	assert_true(wants("exe=*/cart", NULL));
	assert_true(wants("name=c?rt", NULL));
	assert_true(wants("name=[ab-d]art", NULL));
	assert_false(wants("exe=*/car", NULL));
	assert_false(wants("name=?", NULL));
}

static void one_of_many_must_fit_and_none_of_the_others(void **state)
{
	struct pick p = { .match = { "name=x", "name=cart" },
			  .nmatch = 2,
			  .exclude = { "user=x" },
			  .nexclude = 1 };

	(void)state;
	assert_true(pick_wants(&p, &proc));
	p.exclude[p.nexclude++] = "cmd=port";
	assert_false(pick_wants(&p, &proc));
}

/* A process that could not be looked at: what is known of it may rule it out, and nothing else. */
static void what_is_not_known_may_fit(void **state)
{
	static const struct survey_proc closed = {
		.uid = 0, .comm = "cart", .command = "./cart -port 80", .cgroup = "/system.slice"
	};
	static const struct {
		const char *match, *exclude;
		bool may;
	} cases[] = {
		{ NULL, NULL, true },
		{ "user=root", NULL, true },
		{ "user=nobody", NULL, false },
		{ "cmd=-port", NULL, true },
		{ "cmd=-mode", NULL, false },
		{ "cgroup=docker", NULL, false },
		{ "exe=/srv", NULL, true },
		{ "module=shop", NULL, true },
		{ "anything", NULL, true },
		{ NULL, "user=root", false },
		{ NULL, "name=cart", false },
		{ NULL, "cart", false },
		{ NULL, "exe=/srv", true },
		{ NULL, "anything", true },
		{ "exe=/srv", "user=root", false },
		{ "user=nobody", "exe=/srv", false },
	};
	struct survey_proc silent = closed;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct pick p = { 0 };

		if (cases[i].match)
			p.match[p.nmatch++] = cases[i].match;
		if (cases[i].exclude)
			p.exclude[p.nexclude++] = cases[i].exclude;
		assert_int_equal(pick_may_want(&p, &closed), cases[i].may);
	}
	silent.command_unread = true;
	assert_true(
		pick_may_want(&(struct pick){ .match = { "cmd=-mode" }, .nmatch = 1 }, &silent));
	assert_false(pick_wants(&(struct pick){ .match = { "cmd=-mode" }, .nmatch = 1 }, &silent));
}

static void mistakes_are_told(void **state)
{
	(void)state;
	assert_int_equal(pick_check("nam=x", NULL), -EINVAL);
	assert_int_equal(pick_check("", NULL), -EINVAL);
	assert_int_equal(pick_check("exe=", NULL), -EINVAL);
	assert_int_equal(pick_check("exe=x", NULL), 0);
	assert_int_equal(pick_check("-mode=fast", NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_are_meant_without_a_pattern),
		cmocka_unit_test(each_field_can_be_asked_for),
		cmocka_unit_test(without_a_field_any_of_them_will_do),
		cmocka_unit_test(patterns_of_a_shell_fit_the_whole),
		cmocka_unit_test(one_of_many_must_fit_and_none_of_the_others),
		cmocka_unit_test(what_is_not_known_may_fit),
		cmocka_unit_test(mistakes_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
