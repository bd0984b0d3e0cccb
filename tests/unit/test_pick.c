/* tests/unit/test_pick.c - which processes --match and --exclude mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "host/pick.h"

#define ID "4d1c8f6a0b7e9d2c4d1c8f6a0b7e9d2c4d1c8f6a0b7e9d2c4d1c8f6a0b7e9d2c"

static struct survey_build build = { .module = "example.com/shop",
				     .path = "example.com/shop/cmd/cart" };
static char exe[] = "/srv/cart/bin/cart";
static const struct survey_proc proc = {
	.uid = 0,
	.comm = "cart",
	.exe = exe,
	.command = "./cart -port 80 -mode=fast",
	.cgroups = "/system.slice/docker.service\n/system.slice/docker-" ID ".scope\n/user.slice\n",
	.where = { CONTAINER_IS, "docker", "4d1c8f6a0b7e" },
	.build = &build,
};

static bool wants(const char *match, const char *exclude)
{
	struct pick p = { 0 };

	if (match)
		p.match[p.nmatch++] = match;
	if (exclude)
		p.exclude[p.nexclude++] = exclude;
	return pick_judge(&p, &proc) == PICK_FITS;
}

static enum pick_fit judged(const char *match, const char *exclude, const struct survey_proc *one)
{
	struct pick p = { 0 };

	if (match)
		p.match[p.nmatch++] = match;
	if (exclude)
		p.exclude[p.nexclude++] = exclude;
	return pick_judge(&p, one);
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
					     "cgroup=4d1c8f6a0b7e", "module=shop",
					     "cgroup=docker.serv",  "cgroup=/user.*" };
	static const char *const wrong[] = { "name=shop",   "exe=4d1c",
					     "cmd=/srv",    "user=cart",
					     "cgroup=fast", "module=root",
					     "user=cart",   "cgroup=*docker*slice*" };

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
	assert_int_equal(pick_judge(&p, &proc), PICK_FITS);
	p.exclude[p.nexclude++] = "cmd=port";
	assert_int_equal(pick_judge(&p, &proc), PICK_NOT);
}

/* A process that could not be looked at: what is known of it may rule it out, and nothing else. */
static void what_is_not_known_may_fit(void **state)
{
	static const struct survey_proc closed = {
		.uid = 0, .comm = "cart", .command = "./cart -port 80", .cgroups = "/system.slice\n"
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
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(judged(cases[i].match, cases[i].exclude, &closed) != PICK_NOT,
				 cases[i].may);
	silent.command = NULL;
	assert_int_equal(judged("cmd=-mode", NULL, &silent), PICK_UNKNOWN);
	silent.cgroups = NULL;
	assert_int_equal(judged(NULL, "cgroup=x", &silent), PICK_UNKNOWN);
	assert_int_equal(judged(NULL, "container=x", &silent), PICK_UNKNOWN);
}

/* What is behind the end of what was read may fit, and may be what is not meant. */
static void a_cut_command_line_is_unknown_where_it_matters(void **state)
{
	struct survey_proc cut = proc;

	(void)state;
	cut.command_cut = true;
	assert_int_equal(judged("cmd=-port", NULL, &cut), PICK_FITS);
	assert_int_equal(judged("cmd=--env", NULL, &cut), PICK_UNKNOWN);
	assert_int_equal(judged(NULL, "cmd=-port", &cut), PICK_NOT);
	assert_int_equal(judged(NULL, "cmd=--env", &cut), PICK_UNKNOWN);
	assert_int_equal(judged("cmd=*fast", NULL, &cut), PICK_UNKNOWN);
	assert_int_equal(judged("name=shop", "cmd=--env", &cut), PICK_NOT);
}

static void containers_have_a_runtime_and_an_id(void **state)
{
	static const char *const right[] = { "container=docker", "container=4d1c8f",
					     "container=4d1c*",	 "container=docker 4d1c8f6a0b7e",
					     ("container=" ID),	 "container=*" };
	static const char *const wrong[] = { "container=podman", "container=4d1c",
					     "container=docker", "container=*" };
	struct survey_proc unit = proc;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(right); i++)
		assert_true(wants(right[i], NULL));
	assert_false(wants("container=4d1c8f6a0b7e9d2d", NULL));
	assert_false(wants("container=8f6a0b7e9d", NULL));
	/* dockerd is in none. */
	unit.where = (struct container){ CONTAINER_UNIT, "systemd", "docker.service" };
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		assert_int_equal(judged(wrong[i], NULL, &unit), PICK_NOT);
}

static void users_are_names_or_whole_numbers(void **state)
{
	struct survey_proc other = proc;

	(void)state;
	assert_true(wants("user=0", NULL));
	assert_false(wants(NULL, "user=0"));
	other.uid = 1000700;
	assert_int_equal(judged("user=0", NULL, &other), PICK_NOT);
	assert_int_equal(judged("user=1000700", NULL, &other), PICK_FITS);
	assert_int_equal(judged("user=10007*", NULL, &other), PICK_FITS);
	assert_int_equal(judged("user=1000", NULL, &other), PICK_NOT);
}

static void names_longer_than_the_kernels(void **state)
{
	static char path[] = "/usr/local/bin/inventory-reconciler",
		    gone[] = "/usr/local/bin/inventory-reconciler (deleted)";
	struct survey_proc long_one = proc;

	(void)state;
	memcpy(long_one.comm, "inventory-recon", 16);
	long_one.exe = path;
	assert_int_equal(judged("name=inventory-reconciler", NULL, &long_one), PICK_FITS);
	assert_int_equal(judged("name=inv*ler", NULL, &long_one), PICK_FITS);
	assert_int_equal(judged("name=bin", NULL, &long_one), PICK_NOT);
	long_one.build = NULL;
	long_one.exe = gone;
	assert_int_equal(judged("name=inv*ler", NULL, &long_one), PICK_FITS);
	long_one.exe = NULL;
	assert_int_equal(judged("name=inventory-reconciler", NULL, &long_one), PICK_UNKNOWN);
	assert_int_equal(judged("name=cart", NULL, &long_one), PICK_NOT);
}

static void mistakes_are_told(void **state)
{
	(void)state;
	assert_int_equal(pick_check("nam=x", NULL), -EINVAL);
	assert_int_equal(pick_check("", NULL), -EINVAL);
	assert_int_equal(pick_check("exe=", NULL), -EINVAL);
	assert_int_equal(pick_check("[", NULL), -EINVAL);
	assert_int_equal(pick_check("cmd=*[a-z", NULL), -EINVAL);
	assert_int_equal(pick_check("cmd=*[a-z]\\[", NULL), 0);
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
		cmocka_unit_test(a_cut_command_line_is_unknown_where_it_matters),
		cmocka_unit_test(containers_have_a_runtime_and_an_id),
		cmocka_unit_test(users_are_names_or_whole_numbers),
		cmocka_unit_test(names_longer_than_the_kernels),
		cmocka_unit_test(mistakes_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
