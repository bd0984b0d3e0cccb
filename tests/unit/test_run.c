/* tests/unit/test_run.c - profile_run with made-up collectors and a made-up subject. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>

#include "cli/cmd.h"
#include "cli/run/job.h"
#include "cli/run/outdir.h"
#include "cli/run/profile_run.h"
#include "cli/tell.h"

/* ---- the made-up world: set before a run, examined after it ---- */

static struct {
	/* what it does */
	int open_ret, alive_ret; /* alive_ret from the alive_from-th call on */
	unsigned alive_from;
	int pidfd;
	const char *comm;
	int start_ret[2], stop_ret[2], poll_ret[2], begin_ret[2], fd[2];
	uint64_t loss[LOSS_COUNT]; /* of each profile */
	bool empty;
	/* what was done to it */
	unsigned starts_before; /* the first begin */
	unsigned opens, frees, alives, starts, begins, stops, state_frees, polls;
} world;

static struct subject *const the_subject = (struct subject *)&world;

static int fake_open(pid_t pid, const struct collect_opts *o, struct subject **out, struct err *e)
{
	(void)o;
	if (world.open_ret)
		return err_set(e, world.open_ret, "no process with pid %d", pid);
	world.opens++;
	*out = the_subject;
	return 0;
}

static void fake_free(struct subject *s)
{
	assert_ptr_equal(s, the_subject);
	world.frees++;
}

static const char *fake_comm(const struct subject *s)
{
	(void)s;
	return world.comm;
}

static const char *fake_version(const struct subject *s)
{
	(void)s;
	return "go1.99.9";
}

static int fake_pidfd(const struct subject *s)
{
	(void)s;
	return world.pidfd;
}

static int fake_alive(struct subject *s, struct err *e)
{
	(void)s;
	if (++world.alives >= world.alive_from && world.alive_ret)
		return err_set(e, world.alive_ret, "pid 5 (fake) exited");
	return 0;
}

static void fake_refresh(struct subject *s)
{
	assert_ptr_equal(s, the_subject);
}

static bool fake_became(const struct subject *s)
{
	(void)s;
	return false;
}

static const struct run_subject fake_subject = {
	fake_open,  fake_free,	fake_comm,    fake_version,
	fake_pidfd, fake_alive, fake_refresh, fake_became
};

struct fake_state {
	int i;
};

static int start_i(int i, void **state, struct err *e)
{
	struct fake_state *st;

	if (world.start_ret[i])
		return err_set(e, world.start_ret[i], "cannot attach");
	st = calloc(1, sizeof(*st));
	assert_non_null(st);
	st->i = i;
	world.starts++;
	*state = st;
	return 0;
}

static int start_0(struct subject *s, const struct collect_opts *o, void **state, struct err *e)
{
	assert_ptr_equal(s, the_subject);
	assert_int_equal(o->cpu.hz, 99);
	return start_i(0, state, e);
}

static int start_1(struct subject *s, const struct collect_opts *o, void **state, struct err *e)
{
	assert_ptr_equal(s, the_subject);
	assert_int_equal(o->cpu.hz, 99);
	return start_i(1, state, e);
}

static int fake_fd(void *state)
{
	return world.fd[((struct fake_state *)state)->i];
}

static int fake_poll(void *state, struct err *e)
{
	int i = ((struct fake_state *)state)->i;
	char buf[64];

	world.polls++;
	if (world.poll_ret[i])
		return err_set(e, world.poll_ret[i], "cannot drain");
	(void)!read(world.fd[i], buf, sizeof(buf));
	return 0;
}

static int fake_stop(void *state, struct prof **out, struct err *e)
{
	CLEANUP(prof_freep) struct prof *p = NULL;
	int i = ((struct fake_state *)state)->i;
	struct prof_line line = { .func = "main.f", .file = "f.go", .line = 3 };
	uint32_t loc;
	int64_t v = 5;

	world.stops++;
	if (world.stop_ret[i])
		return err_set(e, world.stop_ret[i], "nothing to be had");
	assert_int_equal(prof_new(&p, e), 0);
	assert_int_equal(prof_add_type(p, "samples", "count", e), 0);
	loc = (uint32_t)prof_location(p, 0, 0x1000, &line, 1, e);
	if (!world.empty)
		assert_int_equal(prof_sample(p, &loc, 1, &v, NULL, 0, e), 0);
	memcpy(prof_loss(p)->n, world.loss, sizeof(world.loss));
	*out = TAKE(p);
	return 0;
}

static int fake_begin(void *state, struct err *e)
{
	int i = ((struct fake_state *)state)->i;

	assert_int_equal(world.polls, 0);
	if (!world.begins++)
		world.starts_before = world.starts;
	return world.begin_ret[i] ? err_set(e, world.begin_ret[i], "cannot begin") : 0;
}

static void fake_state_free(void *state)
{
	world.state_frees++;
	free(state);
}

static const struct collector fake_cpu = {
	"cpu", start_0, fake_fd, fake_poll, fake_stop, fake_state_free, NULL, fake_begin, NULL, NULL
};
static const struct collector fake_heap = { "heap",    start_1,	   fake_fd,
					    fake_poll, fake_stop,  fake_state_free,
					    NULL,      fake_begin, NULL,
					    NULL };
static const struct collector *const both[] = { &fake_cpu, &fake_heap };

/* ---- running it ---- */

static char dir[64], out_dir[80], paths[4096], said[8192];
static const struct output_format *formats[2];

static struct run_opts usual(void)
{
	return (struct run_opts){ .pid = 5,
				  .duration_ns = 20000000,
				  .to = { .dir = out_dir, .formats = formats, .nformats = 1 },
				  .subject = &fake_subject,
				  .kinds = both,
				  .nkinds = 2,
				  .collect = { .cpu.hz = 99 },
				  .stop_fd = -1 };
}

static void slurp(FILE *f, char *buf, size_t cap)
{
	size_t n;

	rewind(f);
	n = fread(buf, 1, cap - 1, f);
	buf[n] = 0;
	fclose(f);
}

/* Calls @f with stderr in memory. */
static int listen_to(int (*f)(struct run_opts *o), struct run_opts *o)
{
	FILE *err = tmpfile();
	int old = dup(STDERR_FILENO), status;

	assert_true(err && old >= 0);
	fflush(stderr);
	dup2(fileno(err), STDERR_FILENO);
	status = f(o);
	fflush(stderr);
	dup2(old, STDERR_FILENO);
	close(old);
	slurp(err, said, sizeof(said));
	return status;
}

static int profile(struct run_opts *o)
{
	return profile_run(o);
}

/* Runs with stderr and the paths in memory; every resource that was opened must be given back. */
static int run(struct run_opts *o)
{
	FILE *p = tmpfile();
	int status;

	assert_non_null(p);
	if (!o->to.paths)
		o->to.paths = p;
	status = listen_to(profile, o);
	slurp(p, paths, sizeof(paths));
	assert_int_equal(world.opens, world.frees);
	assert_int_equal(world.starts, world.state_frees);
	return status;
}

static bool there(const char *name)
{
	char path[512];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", out_dir, name);
	return !stat(path, &st) && st.st_size > 0;
}

static void has_said(const char *words)
{
	if (!strstr(said, words))
		fail_msg("'%s' is not in:\n%s", words, said);
}

static int make_dir(void **state)
{
	(void)state;
	memset(&world, 0, sizeof(world));
	world.pidfd = world.fd[0] = world.fd[1] = -1;
	world.comm = "svc";
	snprintf(dir, sizeof(dir), "/tmp/test_run.XXXXXX");
	formats[0] = output_find("pprof");
	formats[1] = output_find("folded");
	if (!mkdtemp(dir))
		return -1;
	snprintf(out_dir, sizeof(out_dir), "%s/out", dir);
	return 0;
}

static int drop_dir(void **state)
{
	char cmd[128];

	(void)state;
	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	return system(cmd);
}

/* ---- tests ---- */

static void delivers_every_kind_and_format(void **state)
{
	struct run_opts o = usual();
	char want[512];

	(void)state;
	o.to.nformats = 2;
	assert_int_equal(run(&o), EXIT_DONE);
	snprintf(want, sizeof(want),
		 "%s/svc.5.cpu.pb.gz\n%s/svc.5.cpu.folded\n%s/svc.5.heap.pb.gz\n"
		 "%s/svc.5.heap.folded\n",
		 out_dir, out_dir, out_dir, out_dir);
	assert_string_equal(paths, want);
	assert_true(there("svc.5.cpu.pb.gz") && there("svc.5.heap.folded"));
	assert_string_equal(said, "goprof-bpf: profiling pid 5 (svc, go1.99.9) for 20 ms: "
				  "cpu, heap\n");
	assert_int_equal(world.stops, 2);
}

static void replaces_what_was_there(void **state)
{
	struct run_opts o = usual();
	char path[256];
	struct stat before, after;

	(void)state;
	assert_int_equal(mkdir(out_dir, 0700), 0);
	snprintf(path, sizeof(path), "%s/svc.5.cpu.pb.gz", out_dir);
	close(open(path, O_WRONLY | O_CREAT, 0600));
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(run(&o), EXIT_DONE);
	assert_int_equal(stat(path, &after), 0);
	assert_true(before.st_ino != after.st_ino && after.st_size > 0);
}

static void no_target(void **state)
{
	struct run_opts o = usual();

	(void)state;
	world.open_ret = -ESRCH;
	assert_int_equal(run(&o), EXIT_FAILED);
	assert_string_equal(said, "goprof-bpf: no process with pid 5\n");
	assert_int_equal(access(out_dir, F_OK), -1); /* nothing was made */
}

static void directory_is_tried_before_the_window(void **state)
{
	struct run_opts o = usual();

	(void)state;
	close(open(out_dir, O_WRONLY | O_CREAT, 0600));
	assert_int_equal(run(&o), EXIT_FAILED);
	has_said("it is not a directory");
	assert_int_equal(world.starts, 0);
	unlink(out_dir);
	snprintf(out_dir, sizeof(out_dir), "%s/none/out", dir);
	assert_int_equal(run(&o), EXIT_FAILED);
	has_said("cannot make the directory");
	assert_int_equal(world.starts, 0);
}

static void carries_on_with_what_starts(void **state)
{
	struct run_opts o = usual();

	(void)state;
	world.start_ret[0] = -EPERM;
	assert_int_equal(run(&o), EXIT_FAILED);
	has_said("goprof-bpf: cpu: cannot attach\n");
	has_said("for 20 ms: heap\n");
	assert_true(there("svc.5.heap.pb.gz") && !there("svc.5.cpu.pb.gz"));
}

static void nothing_starts(void **state)
{
	struct run_opts o = usual();

	(void)state;
	world.start_ret[0] = world.start_ret[1] = -EPERM;
	o.duration_ns = 3600000000000;
	assert_int_equal(run(&o), EXIT_FAILED);
	assert_string_equal(paths, "");
	assert_int_equal(access(out_dir, F_OK), -1); /* it was made in vain, so it was removed */
}

static void carries_on_with_what_stops(void **state)
{
	struct run_opts o = usual();

	(void)state;
	world.stop_ret[1] = -EFAULT;
	assert_int_equal(run(&o), EXIT_FAILED);
	has_said("goprof-bpf: heap: nothing to be had\n");
	assert_true(there("svc.5.cpu.pb.gz") && !there("svc.5.heap.pb.gz"));
}

static void names_losses(void **state)
{
	struct run_opts o = usual();

	(void)state;
	o.nkinds = 1;
	world.loss[LOSS_STACKS_CUT] = 12;
	world.loss[LOSS_LAYOUT_GUESSED] = 1;
	assert_int_equal(run(&o), EXIT_LOSSES);
	has_said("goprof-bpf: cpu: 12 stacks deeper than the limit, cut at the root\n");
	has_said("goprof-bpf: cpu: the Go version is not known here: it may be newer or older\n");
	assert_true(there("svc.5.cpu.pb.gz"));
}

static void failure_outweighs_loss(void **state)
{
	struct run_opts o = usual();

	(void)state;
	world.loss[LOSS_STACKS_CUT] = 1;
	world.start_ret[1] = -EPERM;
	assert_int_equal(run(&o), EXIT_FAILED);
}

static void says_when_there_is_nothing(void **state)
{
	struct run_opts o = usual();

	(void)state;
	world.empty = true;
	assert_int_equal(run(&o), EXIT_DONE);
	has_said(
		"goprof-bpf: cpu: no samples: none was met; its comments say what was looked at\n");
}

static void target_goes(void **state)
{
	struct run_opts o = usual();
	const char *once;

	(void)state;
	o.duration_ns = 3600000000000;
	world.alive_ret = -ESRCH;
	world.alive_from = 2;
	assert_int_equal(run(&o), EXIT_LOSSES);
	has_said("goprof-bpf: pid 5 (fake) exited after ");
	once = strstr(said, "exited");
	assert_null(strstr(once + 1, "exited"));
	assert_true(there("svc.5.cpu.pb.gz") && there("svc.5.heap.pb.gz"));
}

static void target_goes_by_descriptor(void **state)
{
	struct run_opts o = usual();
	int p[2];

	(void)state;
	assert_int_equal(pipe(p), 0);
	world.pidfd = p[0];
	assert_int_equal(write(p[1], "", 1), 1); /* like a pidfd at exit: readable for ever */
	o.duration_ns = 3600000000000;
	assert_int_equal(run(&o), EXIT_LOSSES);
	has_said("the target exited after ");
	close(p[0]);
	close(p[1]);
}

static int finish_after_exec(struct run_opts *o)
{
	struct run_files files = { .to = &o->to };
	struct job *j;

	assert_int_equal(job_open(o, 5, JOB_HELD, NULL, &j, NULL), 0);
	j->became = j->gone = true;
	job_finish(j, &files);
	job_free(j);
	run_files_fini(&files);
	return 0;
}

/* Nobody is told of an option that was given. */
static void a_command_becomes_another_program(void **state)
{
	struct run_opts o = usual();

	(void)state;
	listen_to(finish_after_exec, &o);
	has_said("not in these profiles (--follow has it)");
	o.follow = true;
	listen_to(finish_after_exec, &o);
	has_said("not in these profiles (it has its own if it is a Go program)");
	assert_null(strstr(said, "--follow"));
}

static void heap_of_a_dead_target_is_a_failure(void **state)
{
	struct run_opts o = usual();

	(void)state;
	world.alive_ret = -ESRCH;
	world.stop_ret[1] = -ESRCH;
	assert_int_equal(run(&o), EXIT_FAILED);
	assert_true(there("svc.5.cpu.pb.gz"));
}

static void wish_ends_the_window(void **state)
{
	struct run_opts o = usual();
	int p[2];

	(void)state;
	assert_int_equal(pipe(p), 0);
	o.duration_ns = 3600000000000;
	o.stop_fd = p[0];
	/* The wish to stop comes before the start: nothing is started. */
	assert_int_equal(write(p[1], "", 1), 1);
	assert_int_equal(run(&o), EXIT_FAILED);
	has_said("stopped before anything was collected");
	assert_int_equal(world.starts, 0);
	close(p[0]);
	close(p[1]);
}

/* A collector's drain() makes the wish to stop, so that it comes in the middle of the window. */
static int wish_pipe[2];

static int poll_and_wish(void *state, struct err *e)
{
	(void)!write(wish_pipe[1], "", 1);
	return fake_poll(state, e);
}

static void wish_in_the_middle(void **state)
{
	static const struct collector wisher = { "cpu",		start_0,   fake_fd,
						 poll_and_wish, fake_stop, fake_state_free,
						 NULL,		NULL,	   NULL,
						 NULL };
	static const struct collector *const kinds[] = { &wisher };
	struct run_opts o = usual();
	int p[2];

	(void)state;
	assert_int_equal(pipe(p), 0);
	assert_int_equal(pipe(wish_pipe), 0);
	assert_int_equal(write(p[1], "abc", 3), 3);
	world.fd[0] = p[0];
	o.duration_ns = 3600000000000;
	o.stop_fd = wish_pipe[0];
	o.kinds = kinds;
	o.nkinds = 1;
	assert_int_equal(run(&o), EXIT_DONE);
	has_said("stopped after ");
	assert_true(there("svc.5.cpu.pb.gz"));
	assert_int_equal(world.polls, 1);
	for (int i = 0; i < 2; i++) {
		close(p[i]);
		close(wish_pipe[i]);
	}
}

static void begin_that_fails(void **state)
{
	struct run_opts o = usual();

	(void)state;
	world.begin_ret[0] = -EPERM;
	assert_int_equal(run(&o), EXIT_FAILED);
	has_said("goprof-bpf: cpu: cannot begin\n");
	assert_int_equal(world.begins, 2);
	assert_int_equal(world.starts_before, 2); /* all are ready when the first one begins */
	assert_int_equal(world.state_frees, 2);
	assert_true(!there("svc.5.cpu.pb.gz") && there("svc.5.heap.pb.gz"));
}

static void drain_that_fails(void **state)
{
	struct run_opts o = usual();
	int p[2];

	(void)state;
	assert_int_equal(pipe(p), 0);
	assert_int_equal(write(p[1], "abc", 3), 3);
	world.fd[0] = p[0];
	world.poll_ret[0] = -EIO;
	assert_int_equal(run(&o), EXIT_FAILED);
	has_said("goprof-bpf: cpu: cannot drain\n");
	assert_int_equal(world.polls, 1); /* it failed once, and is not asked again */
	assert_true(there("svc.5.cpu.pb.gz") && there("svc.5.heap.pb.gz"));
	close(p[0]);
	close(p[1]);
}

static void closed_source_does_not_spin(void **state)
{
	struct run_opts o = usual();
	int p[2];

	(void)state;
	assert_int_equal(pipe(p), 0);
	close(p[1]);
	world.fd[1] = p[0];
	assert_int_equal(run(&o), EXIT_DONE);
	assert_int_equal(world.polls, 0);
	close(p[0]);
}

static void paths_that_cannot_be_printed(void **state)
{
	struct run_opts o = usual();

	(void)state;
	o.to.paths = fopen("/dev/full", "w");
	assert_non_null(o.to.paths);
	assert_int_equal(run(&o), EXIT_FAILED);
	has_said("cannot write to stdout: No space left on device");
	assert_true(there("svc.5.cpu.pb.gz") && there("svc.5.heap.pb.gz"));
	fclose(o.to.paths);
}

static void hostile_comm_stays_in_the_directory(void **state)
{
	char path[256];

	(void)state;
	assert_int_equal(outdir_path("/d/", "../../etc", 1, "cpu", "txt", path, sizeof(path), NULL),
			 0);
	assert_string_equal(path, "/d/_._.._etc.1.cpu.txt");
	outdir_path("//", "a b\n$(x)", 1, "cpu", "txt", path, sizeof(path), NULL);
	assert_string_equal(path, "/a_b___x_.1.cpu.txt");
	outdir_path(".", "", 1, "cpu", "txt", path, sizeof(path), NULL);
	assert_string_equal(path, "./unnamed.1.cpu.txt");
	outdir_path("-d", "-rf", 1, "cpu", "txt", path, sizeof(path), NULL);
	assert_string_equal(path, "-d/-rf.1.cpu.txt");
	assert_int_equal(outdir_path("/d", "svc", 1, "cpu", "txt", path, 10, NULL), -ENAMETOOLONG);
}

static void messages_are_one_clean_line(void **state)
{
	struct run_opts o = usual();

	(void)state;
	world.comm = "a\033[2Jb\nc\xc2\x9b!";
	assert_int_equal(run(&o), EXIT_DONE);
	has_said("profiling pid 5 (a?[2Jb?c?!, go1.99.9)");
}

static void times_in_words(void **state)
{
	char b[NS_TEXT];

	(void)state;
	assert_string_equal(ns_text(0, b), "0 ms");
	assert_string_equal(ns_text(999999999, b), "999 ms");
	assert_string_equal(ns_text(1000000000, b), "1 s");
	assert_string_equal(ns_text(2540000000, b), "2.5 s");
	assert_string_equal(ns_text(86400000000000, b), "86400 s");
}

static void verbose_tells_steps(void **state)
{
	struct run_opts o = usual();

	(void)state;
	o.verbose = true;
	assert_int_equal(run(&o), EXIT_DONE);
	has_said("goprof-bpf: opened in ");
	has_said("goprof-bpf: attached in ");
	has_said("goprof-bpf: detached in ");
	has_said("goprof-bpf: written in ");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, make_dir, drop_dir)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(delivers_every_kind_and_format),
		TEST(replaces_what_was_there),
		TEST(no_target),
		TEST(directory_is_tried_before_the_window),
		TEST(carries_on_with_what_starts),
		TEST(nothing_starts),
		TEST(carries_on_with_what_stops),
		TEST(names_losses),
		TEST(failure_outweighs_loss),
		TEST(says_when_there_is_nothing),
		TEST(target_goes),
		TEST(target_goes_by_descriptor),
		TEST(a_command_becomes_another_program),
		TEST(heap_of_a_dead_target_is_a_failure),
		TEST(wish_ends_the_window),
		TEST(wish_in_the_middle),
		TEST(begin_that_fails),
		TEST(drain_that_fails),
		TEST(closed_source_does_not_spin),
		TEST(paths_that_cannot_be_printed),
		TEST(hostile_comm_stays_in_the_directory),
		TEST(messages_are_one_clean_line),
		TEST(times_in_words),
		TEST(verbose_tells_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
