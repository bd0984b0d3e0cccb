/* tests/unit/test_run_files.c - the files of a run: names, formats, what is told on stdout, and the page of all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/run/run_files.h"

static char dir[] = "/tmp/test_run_files.XXXXXX";
static const struct output_format *formats[2];
static struct run_files_to o;
static struct run_files files;
static char *said;
static size_t said_len;

static int set_up(void **state)
{
	(void)state;
	formats[0] = output_find("text");
	formats[1] = output_find("flame");
	said = NULL;
	o = (struct run_files_to){ .dir = dir, .formats = formats, .nformats = 2 };
	o.paths = open_memstream(&said, &said_len);
	files = (struct run_files){ .to = &o };
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	run_files_fini(&files);
	fclose(o.paths);
	free(said);
	return 0;
}

static struct prof *one(const char *func)
{
	struct prof_line line = { .func = func, .file = "a.go", .line = 1 };
	struct prof *p = NULL;
	int64_t n = 7;
	uint32_t loc;

	assert_int_equal(prof_new(&p, NULL), 0);
	assert_int_equal(prof_add_type(p, "samples", "count", NULL), 0);
	loc = (uint32_t)prof_location(p, 0, 0x10, &line, 1, NULL);
	assert_int_equal(prof_sample(p, &loc, 1, &n, NULL, 0, NULL), 0);
	return p;
}

/* Takes the file away; -1: it is not there, else whether @text is in it. */
static int had(const char *name, const char *text)
{
	static char buf[1 << 20];
	char path[128];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "r");
	if (!f)
		return -1;
	n = fread(buf, 1, sizeof(buf) - 1, f);
	fclose(f);
	assert_int_equal(unlink(path), 0);
	return memmem(buf, n, text, strlen(text)) != NULL;
}

static void each_format_has_a_file_and_a_line(void **state)
{
	const struct engine_identity id = { .pid = 12, .comm = "api" };
	struct prof *p = one("main.work");
	char want[256];

	(void)state;
	run_files_write(&files, &id, run_files_life(&files, 12), "cpu", p);
	assert_false(files.broken);
	assert_int_equal(files.n, 2);
	snprintf(want, sizeof(want), "%s/api.12.cpu.txt\n%s/api.12.cpu.html\n", dir, dir);
	assert_string_equal(said, want);
	assert_int_equal(had("api.12.cpu.txt", "main.work"), 1);
	assert_int_equal(had("api.12.cpu.html", "main.work"), 1);
	prof_free(p);
}

/* A pid that has come again, as another program, does not replace the files of the one before it. */
static void each_life_has_its_own(void **state)
{
	const struct engine_identity id = { .pid = 12, .comm = "api" };
	struct prof *a = one("main.first"), *b = one("main.second");
	uint64_t life;

	(void)state;
	o.nformats = 1;
	assert_int_equal(run_files_life(&files, 12), 1);
	run_files_write(&files, &id, 1, "cpu", a);
	assert_int_equal(run_files_life(&files, 13), 1);
	life = run_files_life(&files, 12);
	assert_int_equal(life, 2);
	run_files_write(&files, &id, life, "cpu", b);
	run_files_write(&files, &id, life, "heap", b);
	assert_int_equal(files.n, 3);
	assert_int_equal(had("api.12.cpu.txt", "main.first"), 1);
	assert_int_equal(had("api.12.2.cpu.txt", "main.second"), 1);
	assert_int_equal(had("api.12.2.heap.txt", "main.second"), 1);
	prof_free(a);
	prof_free(b);
}

static void a_page_has_all_processes(void **state)
{
	const struct engine_identity api = { .pid = 12, .comm = "api" },
				     web = { .pid = 13, .comm = "web" };
	struct prof *p = one("main.work"), *page = NULL;

	(void)state;
	assert_true(run_files_paged(&files));
	run_files_page(&files, page, "cpu", false); /* nobody had samples */
	assert_int_equal(files.n, 0);
	run_files_add(&files, &page, &api, "cpu", p);
	run_files_add(&files, &page, &web, "cpu", p);
	assert_int_equal(prof_nsamples(page), 2);
	run_files_page(&files, page, "cpu", false);
	run_files_page(&files, page, "cpu", true);
	assert_int_equal(files.n, 2);
	assert_int_equal(had("host.cpu.html", "api [12]"), 1);
	assert_int_equal(had("host.cpu.probed.html", "web [13]"), 1);
	prof_free(page);
	prof_free(p);
	o.nformats = 1; /* text alone */
	assert_false(run_files_paged(&files));
}

static void what_cannot_be_written_is_told(void **state)
{
	const struct engine_identity id = { .pid = 12, .comm = "api" };
	struct prof *p = one("main.work");

	(void)state;
	o.dir = "/nowhere/at/all";
	run_files_write(&files, &id, 1, "cpu", p);
	assert_true(files.broken);
	assert_int_equal(files.n, 0);
	fflush(o.paths);
	assert_int_equal(said_len, 0);
	prof_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_format_has_a_file_and_a_line, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(each_life_has_its_own, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_page_has_all_processes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_cannot_be_written_is_told, set_up, tear_down),
	};
	int ret;

	if (!mkdtemp(dir))
		return 1;
	ret = cmocka_run_group_tests(tests, NULL, NULL);
	rmdir(dir); /* a file that is left there is a failure's */
	return ret;
}
