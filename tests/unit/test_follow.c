/*
 * tests/unit/test_follow.c - programs that a run follows: what is looked at, what the engine gets, what is written and told. Processes,
 * files and kinds of profile are engine_fakes.h's; execs and looks are made up here.
 */
#include "engine_fakes.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/sys/priority.h"
#include "cli/run/follow.h"
#include "cli/run/host/host_table.h"
#include "inspect/survey.h"

/* ---- execs ---- */

static struct {
	struct exec_seen next[PIDS];
	size_t n, taken;
	uint64_t lost;
	bool open;
	pid_t root;
} execs;

int exec_watch_open(pid_t root, struct exec_watch **out, struct err *e)
{
	(void)e;
	execs.open = true;
	execs.root = root;
	*out = (struct exec_watch *)&execs;
	return 0;
}

int exec_watch_fd(const struct exec_watch *f)
{
	(void)f;
	return -1;
}

bool exec_watch_next(struct exec_watch *f, struct exec_seen *out)
{
	(void)f;
	if (execs.taken == execs.n)
		return false;
	*out = execs.next[execs.taken++];
	return true;
}

uint64_t exec_watch_lost(const struct exec_watch *f)
{
	(void)f;
	return execs.lost;
}

void exec_watch_free(struct exec_watch *f)
{
	if (f)
		execs.open = false;
}

/* ---- looks: those that are looked at are told of in the next step ---- */

enum what { ENDED, OTHER, GO, BROKEN, CLOSED, NOT_HELD };

static struct {
	enum what what[PIDS];
	pid_t pids[PIDS];
	size_t n, looks;
	bool on;
	int fd;
} world;

int survey_begin(struct survey *s, const pid_t *pids, size_t n, struct err *e)
{
	(void)s;
	(void)e;
	memcpy(world.pids, pids, n * sizeof(*pids));
	world.n = n;
	world.looks++;
	world.on = true;
	return 0;
}

int survey_fd(const struct survey *s)
{
	(void)s;
	return world.on ? world.fd : -1;
}

static void found(struct survey *s, pid_t pid)
{
	static const struct survey_build build;
	struct survey_proc p = { .pid = pid, .comm = "child", .build = &build }, *at;
	enum what what = world.what[pid];

	if (what == ENDED)
		return;
	s->seen++;
	if (what == OTHER)
		return;
	p.cpu.yes = what == GO || what == NOT_HELD;
	snprintf(p.cpu.why, sizeof(p.cpu.why), "it cannot be");
	if (what == GO && s->hold(s->arg, &p)) {
		p.target = calloc(1, sizeof(*p.target));
		p.target->pid = pid;
		p.target->opened_ns = now_ns();
	}
	at = what == CLOSED ? vec_add(&s->closed, PIDS) : vec_add(&s->at, PIDS);
	*at = p;
}

size_t survey_to_come(const struct survey *s)
{
	(void)s;
	return 0;
}

int survey_step(struct survey *s, struct err *e)
{
	(void)e;
	for (size_t i = 0; i < world.n; i++)
		found(s, world.pids[i]);
	return 1;
}

void survey_stop(struct survey *s)
{
	(void)s;
	world.on = false;
}

void survey_rest(struct survey *s)
{
	survey_stop(s);
}

uint64_t survey_child_ns(const struct survey *s)
{
	(void)s;
	return 0;
}

void survey_forget(struct survey *s)
{
	for (size_t i = 0; i < s->at.n; i++)
		if (s->at.at[i].target)
			target_free(s->at.at[i].target);
	s->at.n = s->closed.n = 0;
}

void survey_fini(struct survey *s)
{
	survey_forget(s);
	vec_fini(&s->at);
	vec_fini(&s->closed);
}

/* ---- what else it asks ---- */

const struct engine_kind engine_cpu = { .name = "cpu" };

unsigned table_wants(const struct host_opts *o)
{
	return o->nkinds ? SURVEY_HEAP : 0;
}

bool table_works(const struct host_opts *o, const struct survey_proc *p)
{
	assert_true(o->nkinds == 2 && o->kinds[0] == &kind && o->collect.load_ahead);
	return p->cpu.yes;
}

bool priority_prompt(void)
{
	return false;
}

/* ---- running it ---- */

static char dir[64], said[16384];
static const struct output_format *formats[1];
static const struct engine_kind *kinds[2] = { &kind, &other_kind };
static struct run_opts run;
static struct run_files files;
static struct loop *loop;
static struct follow *f;
static pid_t root_execs;
static int saved_stderr;
static FILE *err;

static bool wants(void *arg, const struct exec_seen *x)
{
	assert_ptr_equal(arg, &run);
	return x->pid != root_execs;
}

static int setup(void **state)
{
	struct follow_opts o = { .run = &run, .files = &files, .wants = wants, .arg = &run };

	(void)state;
	memset(procs, 0, sizeof(procs));
	memset(&execs, 0, sizeof(execs));
	memset(&world, 0, sizeof(world));
	k = other = (struct kind){ 0 };
	world.fd = eventfd(0, EFD_CLOEXEC);
	root_execs = 0;
	formats[0] = output_find("folded");
	snprintf(dir, sizeof(dir), "/tmp/test_follow.XXXXXX");
	if (!mkdtemp(dir) || loop_new(&loop, NULL))
		return -1;
	err = tmpfile();
	fflush(stderr);
	saved_stderr = dup(STDERR_FILENO);
	dup2(fileno(err), STDERR_FILENO);
	run = (struct run_opts){ .pid = 7,
				 .follow = true,
				 .to = { .dir = dir, .formats = formats, .nformats = 1 },
				 .many = kinds,
				 .nmany = 2 };
	run.to.paths = stderr;
	files = (struct run_files){ .to = &run.to };
	o.loop = loop;
	return follow_open(&o, &f, NULL) || follow_begin(f, 7, NULL);
}

static int teardown(void **state)
{
	char cmd[128];

	(void)state;
	follow_free(f);
	close(world.fd);
	loop_free(loop);
	run_files_fini(&files);
	for (int i = 0; i < PIDS; i++)
		if (procs[i].opened)
			close(procs[i].fd);
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	return system(cmd) || open_subjects || execs.open;
}

/* Gives stderr back. */
static struct follow_sum end(void)
{
	size_t n;

	follow_end(f);
	fflush(stderr);
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	rewind(err);
	n = fread(said, 1, sizeof(said) - 1, err);
	said[n] = 0;
	fclose(err);
	return follow_sum(f);
}

static void calls_exec(pid_t pid, enum what what)
{
	world.what[pid] = what;
	execs.next[execs.n++] = (struct exec_seen){ .pid = pid, .when_ns = now_ns() };
}

static void goes_on(void)
{
	follow_step(f, false);
	follow_step(f, true);
}

static void has_said(const char *words)
{
	if (!strstr(said, words))
		fail_msg("'%s' is not in:\n%s", words, said);
}

static bool there(const char *name)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return !access(path, F_OK);
}

/* ---- tests ---- */

static void programs_of_children_have_profiles(void **state)
{
	struct follow_sum sum;

	(void)state;
	assert_int_equal(execs.root, 7);
	assert_true(k.opened == 1 && k.begun == 1); /* before there is any */
	calls_exec(11, GO);
	calls_exec(12, OTHER);
	goes_on();
	assert_int_equal(world.looks, 1);
	assert_int_equal(k.put, 1);
	calls_exec(13, GO);
	goes_on();
	assert_int_equal(k.put, 2);
	sum = end();
	assert_true(sum.n == 2 && !sum.failed && !sum.lossy);
	assert_int_equal(files.n, 4);
	has_said("pid 11 (fake): fake: no samples");
	assert_int_equal(k.stopped, 1);
}

static void one_that_ends_is_written_within_a_tick(void **state)
{
	(void)state;
	calls_exec(11, GO);
	goes_on();
	procs[11].became = true; /* the engine finds out at its tick */
	goes_on();
	assert_int_equal(files.n, 2);
	end();
	assert_int_equal(files.n, 2);
}

static void what_the_process_is_held_for_is_not_followed(void **state)
{
	(void)state;
	root_execs = 7;
	calls_exec(7, GO);
	goes_on();
	assert_int_equal(world.looks, 0);
	assert_int_equal(end().n, 0);
}

static void another_program_has_a_profile_of_its_own(void **state)
{
	struct follow_sum sum;

	(void)state;
	calls_exec(11, GO);
	goes_on();
	calls_exec(11, GO);
	goes_on();
	sum = end();
	assert_true(sum.n == 2 && sum.lossy && !sum.failed);
	assert_int_equal(files.n, 4);
	has_said("it became another program (exec)");
	assert_true(there("fake.11.fake.folded") && there("fake.11.2.other.folded"));
}

static void what_is_missing_is_told(void **state)
{
	struct follow_sum sum;

	(void)state;
	calls_exec(11, ENDED);
	calls_exec(12, NOT_HELD);
	goes_on();
	execs.lost = 3;
	sum = end();
	assert_true(!sum.n && sum.lossy && !sum.failed);
	has_said("2 programs of children ended before they could be looked at");
	has_said("3 programs of children were not noticed");
}

static void what_cannot_be_profiled_is_a_failure(void **state)
{
	struct follow_sum sum;

	(void)state;
	calls_exec(11, BROKEN);
	calls_exec(12, CLOSED);
	goes_on();
	sum = end();
	assert_true(!sum.n && sum.failed);
	has_said("pid 11 (child): it is not profiled: it cannot be");
	has_said("pid 12 (child): it is not profiled: it cannot be");
}

static void a_kind_that_cannot_is_a_failure_and_the_other_is_written(void **state)
{
	struct follow_sum sum;

	(void)state;
	k.refuses = 11;
	calls_exec(11, GO);
	goes_on();
	sum = end();
	assert_true(sum.n == 1 && sum.failed);
	assert_int_equal(files.n, 1);
	has_said("fake: pid 11: not this one");
}

/* That is no refusal: it is counted as a loss. */
static void a_kind_that_came_too_late_is_told(void **state)
{
	struct follow_sum sum;

	(void)state;
	other.ended = 11;
	calls_exec(11, GO);
	goes_on();
	sum = end();
	assert_true(sum.n == 1 && !sum.failed && sum.lossy);
	has_said("it ended before more than 1 of 2 kinds could begin");
}

static void there_is_room_for_so_many(void **state)
{
	struct follow_sum sum;

	(void)state;
	for (pid_t pid = 1; pid <= GPB_CPU_TARGETS + 2; pid++)
		calls_exec(pid + 100, GO);
	goes_on();
	sum = end();
	assert_int_equal(sum.n, GPB_CPU_TARGETS);
	assert_true(sum.lossy && !sum.failed);
	has_said("more than 512 programs at once: later ones are not profiled");
}

static void an_engine_that_fails_ends_only_the_following(void **state)
{
	struct follow_sum sum;

	(void)state;
	calls_exec(11, GO);
	goes_on();
	procs[11].became = true;
	k.drain_fails = 1;
	goes_on();
	calls_exec(12, GO);
	goes_on();
	sum = end();
	assert_true(sum.n == 1 && sum.failed);
	has_said("it does not drain: programs of children are followed no longer");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(programs_of_children_have_profiles),
		TEST(one_that_ends_is_written_within_a_tick),
		TEST(what_the_process_is_held_for_is_not_followed),
		TEST(another_program_has_a_profile_of_its_own),
		TEST(what_is_missing_is_told),
		TEST(what_cannot_be_profiled_is_a_failure),
		TEST(a_kind_that_cannot_is_a_failure_and_the_other_is_written),
		TEST(a_kind_that_came_too_late_is_told),
		TEST(there_is_room_for_so_many),
		TEST(an_engine_that_fails_ends_only_the_following),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
