/* tests/unit/test_opt.c - the command line: every wrong word has its sentence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "cli/opt.h"

enum { WORDS = 32 };

/* Splits @line at blanks ("''" is an empty word) and parses it as the words after the program. */
static int parse(const char *line, struct opts *o, struct err *e)
{
	static char copy[512], program[] = "goprof-bpf";
	char *argv[WORDS + 2] = { program }, *save = NULL;
	int argc = 1;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		assert_true(argc < WORDS);
		argv[argc++] = strcmp(w, "''") ? w : w + 2;
	}
	return opt_parse(argc, argv, o, e);
}

static struct opts good(const char *line)
{
	struct opts o = { 0 };
	struct err e = { "" };

	if (parse(line, &o, &e) != OPT_RUN)
		fail_msg("%s: %s", line, e.msg);
	return o;
}

static void bad(const char *line, const char *sentence)
{
	struct opts o = { .pid = 77 };
	struct err e = { "" };

	if (parse(line, &o, &e) != -EINVAL)
		fail_msg("not refused: %s", line);
	if (strcmp(e.msg, sentence))
		fail_msg("%s: '%s', not '%s'", line, e.msg, sentence);
	assert_int_equal(o.pid, 77);
}

static void defaults(void **state)
{
	struct opts o = good("-p 42");

	(void)state;
	assert_int_equal(o.pid, 42);
	assert_true(o.cpu && !o.heap && !o.verbose);
	assert_true(o.duration_ns == 10000000000);
	assert_string_equal(o.dir, ".");
	assert_int_equal(o.nformats, 1);
	assert_ptr_equal(o.formats[0], output_find("pprof"));
	assert_int_equal(o.collect.cpu.hz, 100);
	assert_int_equal(o.collect.heap.rate, 524288);
	assert_int_equal(o.collect.source, SOURCE_AUTO);
	assert_true(!o.collect.cpu.kernel && !o.collect.goid && !o.collect.say);
	assert_true(!o.block && !o.mutex && !o.wait && !o.goroutine && !o.collect.labels);
	assert_int_equal(o.collect.block.rate_ns, 10000);
	assert_int_equal(o.collect.mutex.fraction, 10);
	assert_int_equal(o.collect.wait.rate_ns, 1000000);
}

static void all_of_them(void **state)
{
	struct opts o;

	(void)state;
	o = good(
		"--pid=7 --cpu --heap -d 90s -F 10000 -o /x --source probe --heap-rate 64k --kernel "
		"--goid -v");
	assert_true(o.pid == 7 && o.cpu && o.heap && o.verbose);
	assert_true(o.duration_ns == 90000000000);
	assert_string_equal(o.dir, "/x");
	assert_int_equal(o.collect.cpu.hz, 10000);
	assert_int_equal(o.collect.heap.rate, 65536);
	assert_int_equal(o.collect.source, SOURCE_PROBE);
	assert_true(o.collect.cpu.kernel && o.collect.goid);

	o = good("--heap -p7 --source enable --heap-rate 1M -v");
	assert_true(o.collect.source == SOURCE_ENABLE && o.collect.heap.rate == 1 << 20);
	assert_true(o.verbose && o.collect.verbose);
	o = good("--heap -p7 --source read");
	assert_true(!o.cpu && o.heap && o.collect.source == SOURCE_READ);
	o = good("-p 7 --format text --format pprof --format text");
	assert_int_equal(o.nformats, 2);
	assert_ptr_equal(o.formats[0], output_find("text"));
	assert_ptr_equal(o.formats[1], output_find("pprof"));
	assert_int_equal(good("-p 2147483647 --").pid, INT32_MAX);
}

static void many(void **state)
{
	struct opts o = good("-p 7 -p 8 -p 7");

	(void)state;
	assert_true(o.cpu && !o.all && o.npids == 2 && o.pids[0] == 7 && o.pids[1] == 8);
	assert_int_equal(good("-p 7 -p 7").npids, 1);
	o = good("--all --match user=root --match x --exclude exe=*/y --dry-run");
	assert_true(o.all && o.cpu && o.dry_run && !o.npids);
	assert_int_equal(o.pick.nmatch, 2);
	assert_string_equal(o.pick.match[1], "x");
	assert_string_equal(o.pick.exclude[0], "exe=*/y");
	assert_true(o.duration_ns == 10000000000);
	good("-p 7 -p 7 --heap"); /* that is one process */
	assert_true(good("--all --heap --block --source=read").heap);
	assert_true(good("--all --heap --goroutine --source=probe").collect.source == SOURCE_PROBE);
	assert_true(good("--all --goroutine").duration_ns < 1000000000);
	o = good("--all");
	assert_true(o.collect.host.own_ppm == 20000 && o.collect.host.taken_ppm == 50000);
	o = good("-p 7 -p 8 --host-budget 0,0.5%");
	assert_true(!o.collect.host.own_ppm && o.collect.host.taken_ppm == 5000);
	bad("-p 7 --host-budget=2%,5%",
	    "--host-budget is for many processes: add --all or another -p");
	bad("--all --host-budget=2%",
	    "--host-budget: '2%' is not two shares of CPU time such as 2%,5% or 0 (no bound)");
	bad("--all --host-budget=x,5%",
	    "--host-budget: 'x,5%' is not two shares of CPU time such as 2%,5% or 0 (no bound)");
	assert_true(good("-p 7 -p 8 --mutex --source=probe").collect.source == SOURCE_PROBE);
	bad("--all --heap --budget=5%",
	    "--budget is for one process: with --all say --host-budget");
	bad("--all --source=probe", "--source is for heap, block and mutex profiles: add --heap");
}

static void what_many_cannot_have(void **state)
{
	(void)state;
	bad("--all --heap --source=enable",
	    "--source enable is not possible with --all: it is for one process, by one -p PID");
	assert_true(good("--all --wait --goid").collect.goid);
	assert_true(good("--all --heap --block --goid --labels").collect.labels);
	assert_true(good("--all --wait --labels").collect.labels);
	assert_true(good("-p 7 -p 8 --heap --types").collect.heap.types);
	assert_int_equal(good("--all --heap --heap-rate=1k").collect.heap.rate, 1024);
	assert_true(good("--all --cpu --wait").wait);
	assert_int_equal(good("-p 7 -p 8 --wait --wait-rate=2ms").collect.wait.rate_ns, 2000000);
	assert_int_equal(good("--all --block --block-rate=2ms").collect.block.rate_ns, 2000000);
	assert_int_equal(good("--all --mutex --mutex-fraction=3").collect.mutex.fraction, 3);
	bad("--all --block --source=read --block-rate=1",
	    "--block-rate is for --source enable or probe: what is read has its own rate");
	bad("--all --heap --source=read --heap-rate=1k",
	    "--heap-rate is for --source enable or probe: what is read has its own rate");
	bad("--all -p 7", "--all and -p PID at once: one or the other");
	bad("--all -- true", "--all and a COMMAND at once: one or the other");
	bad("-p 7 -p 8 --follow", "more than one -p and --follow at once: one or the other");
	bad("-p 7 --match x", "--match is for all processes: add --all");
	bad("-p 7 -p 8 --exclude x", "--exclude is for all processes: add --all");
	bad("-p 7 --dry-run", "--dry-run is for many processes: add --all or another -p");
	bad("--all --match ''", "--match: '' fits everything");
	bad("--all --exclude user=", "--exclude: 'user=' fits everything");
	bad("--all --match usr=x",
	    "--match: 'usr=x' does not begin with name=, exe=, cmd=, user=, cgroup=, container= or module=");
}

static void waits(void **state)
{
	struct opts o = good("-p 7 --block --mutex --wait --goroutine --labels --goid");

	(void)state;
	assert_true(o.block && o.mutex && o.wait && o.goroutine && !o.cpu && !o.heap);
	assert_true(o.collect.labels && o.collect.goid);
	o = good("-p 7 --goroutine");
	assert_true(o.goroutine && !o.cpu && !o.block && !o.mutex && !o.wait);
	/* One look needs no waiting, unless the user asks for it. */
	assert_int_equal(o.duration_ns, 10000000);
	assert_int_equal(good("-p 7 --goroutine -d 3s").duration_ns, 3000000000);
	assert_int_equal(good("-p 7 --goroutine --heap").duration_ns, 10000000000);
	assert_int_equal(good("--goroutine -- x").duration_ns, 0);
	o = good("-p 7 --block --block-rate 1 --mutex --mutex-fraction 1048576 --source enable");
	assert_true(o.collect.block.rate_ns == 1 && o.collect.mutex.fraction == 1 << 20);
	assert_true(o.collect.source == SOURCE_ENABLE);
	assert_true(good("-p 7 --block --block-rate 20us").collect.block.rate_ns == 20000);
	assert_true(good("-p 7 --block --block-rate=1000s").collect.block.rate_ns == 1000000000000);
	assert_true(good("-p 7 --wait --wait-rate 5ms").collect.wait.rate_ns == 5000000);
	assert_true(good("-p 7 --wait --wait-rate 700ns").collect.wait.rate_ns == 700);
	assert_true(good("-p 7 --mutex --source read").collect.source == SOURCE_READ);
	assert_true(good("--block -- prog").block);
}

static void commands(void **state)
{
	struct opts o = good("--heap -- prog -p 7 --cpu --help -- more");
	static const char *const words[] = { "prog", "-p", "7", "--cpu", "--help", "--", "more" };

	(void)state;
	assert_true(o.command && !o.pid && o.heap && !o.cpu && !o.follow);
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		assert_string_equal(o.command[i], words[i]);
	assert_null(o.command[ARRAY_LEN(words)]);
	assert_true(o.duration_ns == 0); /* until it ends */
	/* A short command is observed as a whole, unless a budget is given. */
	assert_true(o.collect.budget.ppm == 50000 && o.collect.budget.ahead_ns == 1000000000);
	assert_true(good("--heap --budget 5% -- prog").collect.budget.ahead_ns == 0);
	assert_true(good("-p 7 --heap").collect.budget.ahead_ns == 0);
	assert_true(good("-p 7").mode == 0600 && good("-p 7 --mode 0644").mode == 0644);
	assert_true(good("-p 7 --mode=440").mode == 0440);
	assert_true(good("-d 2s -- prog").duration_ns == 2000000000);
	assert_true(good("--follow -- prog").follow);
	assert_true(good("--follow -p 7").follow);
	assert_string_equal(good("-- -p").command[0], "-p");
	o = good("-o -- -- prog");
	assert_string_equal(o.dir, "--");
	assert_string_equal(o.command[0], "prog");
	assert_null(good("-p 7").command);
	assert_true(good("-p 7 --").duration_ns == 10000000000);
}

static void help_and_version_come_first(void **state)
{
	struct opts o;
	struct err e;

	(void)state;
	assert_int_equal(parse("-h", &o, &e), OPT_HELP);
	assert_int_equal(parse("--help extra", &o, &e), OPT_HELP);
	assert_int_equal(parse("--help -- prog", &o, &e), OPT_HELP);
	assert_int_equal(parse("-p 7 --version", &o, &e), OPT_VERSION);
	assert_int_equal(parse("-p x --version", &o, &e), -EINVAL);
}

static void wrong_usage(void **state)
{
	(void)state;
	bad("", "no process given: -p PID, --all or -- COMMAND");
	bad("--cpu", "no process given: -p PID, --all or -- COMMAND");
	bad("-p 7 --mode 0648", "--mode: '0648' is not an octal number such as 0600");
	bad("-p 7 --mode 0700", "--mode: '0700' is not between 0400 and 0666, for files");
	bad("-p 7 --mode 0200", "--mode: '0200' is not between 0400 and 0666, for files");
	bad("-p", "option '-p' needs a value");
	bad("-vp", "option '-p' needs a value");
	bad("--pid", "option '--pid' needs a value");
	bad("-p 1 --heap-rate", "option '--heap-rate' needs a value");
	bad("-p 1 --cpu=yes", "option '--cpu' takes no value");
	bad("-p 1 --verbose=3", "option '--verbose' takes no value");
	bad("-p 1 --blok", "unknown option '--blok'");
	bad("-p 1 --cpu -x", "unknown option '-x'");
	bad("-p 1 --cpu -xv", "unknown option '-x'");
	bad("-p 1 -vx", "unknown option '-x'");
	bad("-p 1 --he", "option '--he' is ambiguous");
	bad("-p 1 more", "unexpected argument 'more'");
	bad("-p 1 -- sleep", "-p PID and a COMMAND at once: one or the other");
	bad("--", "no process given: -p PID, --all or -- COMMAND");
	bad("--heap --source enable -- prog",
	    "--source enable is for a process that runs: with a COMMAND the runtime sets its rate "
	    "itself when it starts");
	bad("--cpu --", "no process given: -p PID, --all or -- COMMAND");
	bad("sleep 1", "unexpected argument 'sleep'");
	bad("sleep -- sleep", "unexpected argument 'sleep'");
	bad("-o -- sleep", "unexpected argument 'sleep'");
	bad("1", "unexpected argument '1'");
	bad("-p 1 --heap -F 10", "--frequency is for CPU profiles: add --cpu");
	bad("-p 1 --heap --kernel", "--kernel is for CPU profiles: add --cpu");
	bad("-p 1 --goroutine --goid",
	    "--goid is for CPU, heap, block, mutex and wait profiles: add --cpu");
	bad("-p 1 --source read", "--source is for heap, block and mutex profiles: add --heap");
	bad("-p 1 --heap --block-rate 10", "--block-rate is for block profiles: add --block");
	bad("-p 1 --block --mutex-fraction 5",
	    "--mutex-fraction is for mutex profiles: add --mutex");
	bad("-p 1 --cpu --wait-rate 5", "--wait-rate is for wait profiles: add --wait");
	bad("-p 1 --block --block-rate 0", "--block-rate: '0' is not between 1 ns and 1000s");
	bad("-p 1 --block --block-rate 0us", "--block-rate: '0us' is not between 1 ns and 1000s");
	bad("-p 1 --wait --wait-rate 1001s", "--wait-rate: '1001s' is not between 1 ns and 1000s");
	bad("-p 1 --wait --wait-rate 20000000000s",
	    "--wait-rate: '20000000000s' is not a time such as 10000 (nanoseconds), 10us or 1ms");
	bad("-p 1 --block --block-rate 5m",
	    "--block-rate: '5m' is not a time such as 10000 (nanoseconds), 10us or 1ms");
	bad("-p 1 --mutex --mutex-fraction 0",
	    "--mutex-fraction: '0' is not a number from 1 to 1048576");
	bad("-p 1 --cpu --heap-rate 1k", "--heap-rate is for heap profiles: add --heap");
	bad("-p 1 --heap --source read --heap-rate 1k",
	    "--heap-rate is for --source enable or probe: what is read has its own rate");
}

static void wrong_values(void **state)
{
	static const char *const pids[] = { "0",   "-1",	 "x",
					    "1x",  "''",	 "+1",
					    "0x1", "2147483648", "99999999999999999999" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
		char line[64], want[64];

		snprintf(line, sizeof(line), "-p %s", pids[i]);
		snprintf(want, sizeof(want), "--pid: '%s' is not a process id",
			 strcmp(pids[i], "''") ? pids[i] : "");
		bad(line, want);
	}
	bad("-p 1 -d x", "--duration: 'x' is not a duration such as 10s, 500ms, 2m or 1h");
	bad("-p 1 -d -1s", "--duration: '-1s' is not a duration such as 10s, 500ms, 2m or 1h");
	bad("-p 1 -d 0", "--duration: '0' is not between 10ms and 24h");
	bad("-p 1 -d 9ms", "--duration: '9ms' is not between 10ms and 24h");
	bad("-p 1 -d 25h", "--duration: '25h' is not between 10ms and 24h");
	bad("-p 1 -F 0", "--frequency: '0' is not a number from 1 to 10000");
	bad("-p 1 -F 10001", "--frequency: '10001' is not a number from 1 to 10000");
	bad("-p 1 -F 1e3", "--frequency: '1e3' is not a number from 1 to 10000");
	bad("-p 1 -o ''", "--output: the name of the directory is empty");
	bad("-p 1 --heap --source write", "--source: 'write' is not auto, read, enable or probe");
	bad("-p 1 --heap --heap-rate 0", "--heap-rate: '0' is not between 1 and 1G");
	bad("-p 1 --heap --heap-rate 2G", "--heap-rate: '2G' is not between 1 and 1G");
	bad("-p 1 --heap --heap-rate 1kb",
	    "--heap-rate: '1kb' is not a size such as 524288 or 512k");
	bad("-p 1 --format svg", "--format: 'svg' is not pprof, folded, text or flame");
	bad("-p 1 --format ''", "--format: '' is not pprof, folded, text or flame");
}

static void durations(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} ok[] = {
		{ "10s", 10000000000 },
		{ "10", 10000000000 },
		{ "500ms", 500000000 },
		{ "2m", 120000000000 },
		{ "1h", 3600000000000 },
		{ "1h30m", 5400000000000 },
		{ "1m1s1ms", 61001000000 },
		{ "0.5s", 500000000 },
		{ "2.5", 2500000000 },
		{ "1.5h", 5400000000000 },
		{ "0.0000000001s", 0 },
		{ "1.999999999999s", 1999999999 },
		{ "18446744073s", 18446744073000000000u },
	};
	static const char *const wrong[] = { "",
					     "s",
					     "10 s",
					     " 10",
					     "10S",
					     "1.s",
					     ".5s",
					     "1.2.3",
					     "1s2",
					     "1m30",
					     "1d",
					     "-5s",
					     "5s ",
					     "5sx",
					     "18446744074s",
					     "99999999999999999999s",
					     "18446744073s1s",
					     "5124095577h" };
	uint64_t ns;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(ok); i++) {
		ns = 1;
		if (!opt_duration(ok[i].text, &ns) || ns != ok[i].ns)
			fail_msg("%s: %llu", ok[i].text, (unsigned long long)ns);
	}
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		ns = 1;
		if (opt_duration(wrong[i], &ns) || ns != 1)
			fail_msg("not refused: '%s'", wrong[i]);
	}
}

static void sizes(void **state)
{
	static const char *const wrong[] = { "",
					     "k",
					     "-1",
					     "1 k",
					     "1kk",
					     "1.5k",
					     "0x10",
					     "18446744073709551616",
					     "18014398509481984k" };
	uint64_t v = 0;

	(void)state;
	assert_true(opt_size("524288", &v) && v == 524288);
	assert_true(opt_size("512k", &v) && v == 524288);
	assert_true(opt_size("512K", &v) && v == 524288);
	assert_true(opt_size("1M", &v) && v == 1048576);
	assert_true(opt_size("3g", &v) && v == 3ull << 30);
	assert_true(opt_size("18014398509481983k", &v) && v == 18014398509481983u * 1024);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		v = 1;
		if (opt_size(wrong[i], &v) || v != 1)
			fail_msg("not refused: '%s'", wrong[i]);
	}
}

static void shares(void **state)
{
	static const char *const wrong[] = { "",     "5",    "%",      "-1%",
					     "5%%",  "101%", "100.1%", "0.00001%",
					     "1e1%", "5 %",  "0.",     "18446744073709551616%" };
	uint64_t v = 0;

	(void)state;
	assert_true(opt_share("5%", &v) && v == 50000);
	assert_true(opt_share("0.5%", &v) && v == 5000);
	assert_true(opt_share("100%", &v) && v == 1000000);
	assert_true(opt_share("0", &v) && v == 0);
	assert_true(opt_share("0%", &v) && v == 0);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		v = 1;
		if (opt_share(wrong[i], &v) || v != 1)
			fail_msg("not refused: '%s'", wrong[i]);
	}
}

/* Each option of the help text exists, and each line fits a terminal. */
static void help_tells_the_truth(void **state)
{
	unsigned options = 0;

	(void)state;
	for (const char *line = opt_help; *line; line = strchr(line, '\n') + 1) {
		const char *dashes = strstr(line, "--");
		size_t len = strcspn(line, "\n"), n;
		char word[64];
		struct opts o;
		struct err e = { "" };

		assert_true(len < 80);
		if (strncmp(line, "  ", 2) || !dashes || dashes > line + 7)
			continue;
		n = strspn(dashes, "-abcdefghijklmnopqrstuvwxyz");
		snprintf(word, sizeof(word), "%.*s", (int)n, dashes);
		parse(word, &o, &e);
		if (strstr(e.msg, "unknown") || strstr(e.msg, "ambiguous"))
			fail_msg("%s: %s", word, e.msg);
		options++;
	}
	assert_int_equal(options, 32); /* "--" is one of them */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(all_of_them),
		cmocka_unit_test(many),
		cmocka_unit_test(what_many_cannot_have),
		cmocka_unit_test(waits),
		cmocka_unit_test(commands),
		cmocka_unit_test(help_and_version_come_first),
		cmocka_unit_test(wrong_usage),
		cmocka_unit_test(wrong_values),
		cmocka_unit_test(durations),
		cmocka_unit_test(sizes),
		cmocka_unit_test(shares),
		cmocka_unit_test(help_tells_the_truth),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
