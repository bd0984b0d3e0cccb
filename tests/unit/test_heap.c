/*
 * tests/unit/test_heap.c - which source a heap profile takes of which program, and what the source read hands over when the program
 * lives, goes, or samples at another rate than before. The program's memory and the other sources are made up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <time.h>

#include "base/clock.h"
#include "collect/collect.h"
#include "collect/heap/heap_enable.h"
#include "collect/heap/heap_probe.h"
#include "collect/heap/heap_read.h"
#include "symbolize/subject_prof.h"
#include "target/write/claim.h"

enum { BIAS = 0x700000, DISABLE_AT = 0x1000, ALLGLEN_AT = 0x2000 };
enum { FIRST = 512 << 10, OTHER = 4096 };

static struct {
	uint64_t now;
	/* The program: what it samples at now, and from the second look on where that is not -1. */
	int64_t rate, then;
	unsigned looks;	  /* at the rate */
	bool gone;	  /* or it is another program now */
	bool claimed;	  /* a goprof-bpf has it sample its heap */
	bool no_disable;  /* there is no disableMemoryProfiling */
	uint8_t disable;  /* its value */
	uint64_t allglen; /* goroutines that it ever had */
	int find_fails, rate_fails, read_fails, disable_fails;
	unsigned readings;
	/* The other sources. */
	int enable, probe; /* what their start returns */
	unsigned enabled, probed, freed;
	char said[4096];
} w;

static struct gobin_info binary;
static struct collect_opts opts;

/* ---- the program ---- */

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	*ts = (struct timespec){ (time_t)(w.now / NS_PER_S), (long)(w.now % NS_PER_S) };
	return 0;
}

static int memory_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	(void)m;
	if (w.gone)
		return err_set(e, -ESRCH, "it has exited");
	if (addr == BIAS + DISABLE_AT && n == 1 && !w.disable_fails)
		memcpy(buf, &w.disable, n);
	else if (addr == BIAS + ALLGLEN_AT && n == sizeof(w.allglen))
		memcpy(buf, &w.allglen, n);
	else
		return err_set(e, -EFAULT, "nothing at 0x%llx", (unsigned long long)addr);
	return 0;
}

static struct mem memory = { .read = memory_read };
static struct target target = { .mem = &memory };
static struct subject subject = { .target = &target, .bias = BIAS };

const struct gobin_info *gobin_info(const struct gobin *b)
{
	(void)b;
	return &binary;
}

int target_alive(struct target *t, struct err *e)
{
	assert_ptr_equal(t, &target);
	return w.gone ? err_set(e, -ESRCH, "it became another program") : 0;
}

int rtvar_find(struct gobin *b, enum rtvar v, uint64_t *addr, struct err *e)
{
	(void)b;
	assert_int_equal(v, RTVAR_DISABLEMEMORYPROFILING);
	if (w.no_disable)
		return err_set(e, -ENOENT, "no such variable");
	*addr = DISABLE_AT;
	return 0;
}

int subject_rtvar(struct subject *s, enum rtvar v, uint64_t *addr, struct err *e)
{
	assert_ptr_equal(s, &subject);
	if (v == RTVAR_DISABLEMEMORYPROFILING && w.no_disable)
		return err_set(e, -ENOENT, "no such variable");
	*addr = BIAS + (v == RTVAR_ALLGLEN ? ALLGLEN_AT : DISABLE_AT);
	return 0;
}

bool claims_any(struct target *t, unsigned what)
{
	assert_ptr_equal(t, &target);
	assert_int_equal(what, CLAIM_HEAP_RATE);
	return w.claimed;
}

void say(const struct collect_opts *o, const char *fmt, ...)
{
	size_t n = strlen(w.said);
	va_list ap;

	assert_ptr_equal(o, &opts);
	va_start(ap, fmt);
	vsnprintf(w.said + n, sizeof(w.said) - n, fmt, ap);
	va_end(ap);
}

/* ---- its buckets ---- */

int heap_read_find(struct subject *s, struct rtbucket_vars *out, struct err *e)
{
	assert_ptr_equal(s, &subject);
	if (w.find_fails)
		return err_set(e, w.find_fails, "it cannot be found");
	out->mbuckets = 1;
	return 0;
}

int heap_read_rate(struct subject *s, const struct rtbucket_vars *v, int64_t *rate, struct err *e)
{
	assert_ptr_equal(s, &subject);
	assert_int_equal(v->mbuckets, 1);
	if (w.gone || w.rate_fails)
		return err_set(e, w.gone ? -ESRCH : w.rate_fails, "no rate");
	*rate = w.looks++ && w.then >= 0 ? w.then : w.rate;
	return 0;
}

int heap_read_profile(struct subject *s, const struct rtbucket_vars *v, struct prof *p,
		      struct err *e)
{
	assert_ptr_equal(s, &subject);
	assert_int_equal(v->mbuckets, 1);
	w.readings++;
	if (w.gone || w.read_fails)
		return err_set(e, w.gone ? -ESRCH : w.read_fails, "it cannot be read");
	return prof_comment(p, e, "reading %u", w.readings);
}

int subject_prof(struct subject *s, const char *source, struct prof **out, struct err *e)
{
	assert_ptr_equal(s, &subject);
	if (prof_new(out, e))
		return -ENOMEM;
	return prof_comment(*out, e, "source: %s", source);
}

/* ---- the other sources ---- */

static void other_free(void *at)
{
	assert_ptr_equal(at, &w);
	w.freed++;
}

static const struct source probe = { .probes = true, .free = other_free };
static const struct source enable = { .free = other_free };

int heap_probe_start(struct subject *s, const struct collect_opts *o, struct sourced *out,
		     struct err *e)
{
	assert_ptr_equal(s, &subject);
	assert_ptr_equal(o, &opts);
	w.probed++;
	if (w.probe)
		return err_set(e, w.probe, "no probes");
	*out = (struct sourced){ &probe, &w };
	return 0;
}

int heap_enable_start(struct subject *s, const struct collect_opts *o, struct sourced *out,
		      struct err *e)
{
	assert_ptr_equal(s, &subject);
	assert_ptr_equal(o, &opts);
	w.enabled++;
	if (w.enable < 0)
		return err_set(e, w.enable, "it cannot be switched on");
	if (!w.enable)
		*out = (struct sourced){ &enable, &w };
	return w.enable;
}

/* ---- a window ---- */

static void *at; /* the collector's state */
static struct prof *prof;

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	w.now = 1000 * NS_PER_S;
	w.rate = FIRST;
	w.then = -1;
	w.allglen = 5;
	binary = (struct gobin_info){ .minor = 27 };
	opts = (struct collect_opts){ .source = SOURCE_AUTO };
	at = NULL;
	prof = NULL;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	collector_heap.free(at);
	prof_free(prof);
	return 0;
}

static int start(struct err *e)
{
	return collector_heap.start(&subject, &opts, &at, e);
}

/* It is read: once when the window begins, and nobody else is asked. */
static void is_read(void)
{
	assert_int_equal(start(NULL), 0);
	assert_int_equal(w.readings, 1);
	assert_int_equal(w.probed, 0);
	assert_non_null(collector_heap.first(at));
}

/* It is probed, and @why is said. */
static void is_probed(const char *why)
{
	assert_int_equal(start(NULL), 0);
	assert_int_equal(w.probed, 1);
	assert_int_equal(w.readings, 0);
	assert_non_null(strstr(w.said, "heap: source probe"));
	assert_non_null(strstr(w.said, why));
}

/* There is no profile: nothing was probed or read, and nothing is left. */
static void is_refused(int code, const char *why)
{
	struct err e = { "" };

	assert_int_equal(start(&e), code);
	assert_non_null(strstr(e.msg, why));
	assert_null(at);
	assert_int_equal(w.probed, 0);
	assert_int_equal(w.readings, 0);
}

static void ends(void)
{
	assert_int_equal(collector_heap.stop(at, &prof, NULL), 0);
	assert_non_null(prof);
}

static bool says(const struct prof *p, const char *what)
{
	struct prof_header_view v = prof_header(p);

	for (size_t i = 0; i < v.ncomments; i++)
		if (strstr(strtab_get(prof_strings(p), v.comments[i]), what))
			return true;
	return false;
}

/* ---- which source: a program that runs ---- */

static void a_program_that_samples_itself_is_read(void **state)
{
	(void)state;
	w.rate = OTHER;
	is_read();
	assert_non_null(strstr(w.said, "the target samples its heap itself, every 4096 bytes"));
	assert_int_equal(collector_heap.fd(at), -1); /* there is nothing to poll */
}

static void a_program_that_does_not_is_probed(void **state)
{
	(void)state;
	w.rate = 0;
	is_probed("the target does not sample its heap (runtime.MemProfileRate is 0)");
}

/* Go samples at no rate below 0, and some programs say "never" so. */
static void a_rate_below_0_is_none(void **state)
{
	(void)state;
	w.rate = -1;
	is_probed("runtime.MemProfileRate is -1");
}

static void who_asks_for_probes_gets_them(void **state)
{
	(void)state;
	opts.source = SOURCE_PROBE;
	is_probed("as asked for");
	assert_int_equal(w.looks, 0);
}

/* With --source=read an obstacle is the end. */
static void who_asks_to_read_gets_nothing_else(void **state)
{
	(void)state;
	opts.source = SOURCE_READ;
	w.rate = 0;
	is_refused(-ENOTSUP, "--source=enable or probe works without");
	w.rate_fails = -EBADMSG;
	is_refused(-EBADMSG, "no rate");
	w.find_fails = -ENOENT;
	is_refused(-ENOENT, "it cannot be found");
}

static void what_cannot_be_read_is_probed(void **state)
{
	(void)state;
	w.find_fails = -ENOENT;
	is_probed("it cannot be found");
}

static void a_program_that_has_gone_is_not_probed(void **state)
{
	(void)state;
	w.gone = true;
	is_refused(-ESRCH, "no rate");
}

static void no_probes_is_an_error(void **state)
{
	struct err e = { "" };

	(void)state;
	w.rate = 0;
	w.probe = -EPERM;
	assert_int_equal(start(&e), -EPERM);
	assert_string_equal(e.msg, "no probes");
	assert_null(at);
}

/* The rate is that of another goprof-bpf, and its buckets are no profile of the program's own. */
static void what_another_switched_on_is_not_read(void **state)
{
	(void)state;
	w.claimed = true;
	opts.source = SOURCE_READ;
	is_refused(-EBUSY, "another goprof-bpf has it sample its heap now");
	opts.source = SOURCE_AUTO;
	is_probed("another goprof-bpf has it sample its heap now");
}

/* It has just been switched off: there is nothing to wait for. */
static void a_claim_on_what_is_off_is_no_obstacle(void **state)
{
	(void)state;
	w.claimed = true;
	w.rate = 0;
	opts.source = SOURCE_READ;
	is_refused(-ENOTSUP, "the target does not sample its heap");
}

/* ---- which source: enable ---- */

static void what_is_switched_on_is_neither_read_nor_probed(void **state)
{
	(void)state;
	opts.source = SOURCE_ENABLE;
	assert_int_equal(start(NULL), 0);
	assert_int_equal(w.enabled, 1);
	assert_int_equal(w.probed + w.readings, 0);
	assert_null(collector_heap.first(at));
	collector_heap.free(TAKE(at));
	assert_int_equal(w.freed, 1); /* which restores */
}

/* It may have been switched on and off again: nothing else is tried. */
static void what_cannot_be_switched_on_is_an_error(void **state)
{
	(void)state;
	opts.source = SOURCE_ENABLE;
	w.enable = -EBUSY;
	is_refused(-EBUSY, "it cannot be switched on");
	assert_int_equal(w.freed, 0);
}

static void a_program_that_has_it_on_is_read(void **state)
{
	(void)state;
	opts.source = SOURCE_ENABLE;
	w.enable = 1;
	is_read();
}

/* It has switched it off meanwhile. Who asked for no probes gets none. */
static void a_program_that_had_it_on_is_not_probed(void **state)
{
	(void)state;
	opts.source = SOURCE_ENABLE;
	w.enable = 1;
	w.rate = 0;
	is_refused(-ENOTSUP, "the target does not sample its heap");
}

/* Only who asks for it has the target written to. */
static void nobody_else_switches_it_on(void **state)
{
	static const enum source_wanted wanted[] = { SOURCE_AUTO, SOURCE_PROBE, SOURCE_READ };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++) {
		assert_int_equal(set_up(NULL), 0);
		opts.source = wanted[i];
		w.rate = 0;
		(void)start(NULL);
		assert_int_equal(w.enabled, 0);
		assert_int_equal(tear_down(NULL), 0);
	}
	assert_int_equal(set_up(NULL), 0);
}

/* ---- which source: a program that begins ---- */

/* Up to the end of schedinit the rate is 512 KiB, also in programs that are linked not to sample. */
static void the_first_rate_is_not_that_of_one_that_will_not_sample(void **state)
{
	(void)state;
	w.disable = 1;
	w.allglen = 0;
	is_probed("runtime.MemProfileRate is 0");
	assert_int_equal(w.looks, 1);
}

/* schedinit ended between the look at the rate and that at the goroutines. */
static void the_first_rate_is_looked_at_again(void **state)
{
	(void)state;
	w.disable = 1;
	w.then = 0;
	is_probed("runtime.MemProfileRate is 0");
}

/* The program has set the rate itself, though it is linked not to sample. */
static void a_rate_that_stands_after_the_start_is_the_programs(void **state)
{
	(void)state;
	w.disable = 1;
	is_read();
}

static void another_rate_is_the_programs_from_the_start(void **state)
{
	(void)state;
	w.disable = 1;
	w.allglen = 0;
	w.rate = OTHER;
	is_read();
}

/* The linker has decided that it samples; or it is of Go 1.16, which has no such variable. */
static void the_first_rate_of_one_that_will_sample_stands(void **state)
{
	(void)state;
	w.allglen = 0;
	is_read();
	assert_int_equal(tear_down(NULL), 0);
	assert_int_equal(set_up(NULL), 0);
	w.allglen = 0;
	w.no_disable = true;
	is_read();
}

/* ---- which source: a command that has not run ---- */

/* What is in MemProfileRate says nothing yet: the linker's word does. */
static void of_a_command_the_linker_tells(void **state)
{
	(void)state;
	opts.held = true;
	w.rate = 0;
	is_read();
	assert_non_null(strstr(w.said, "the command will sample its heap itself"));
	assert_true(collector_heap.fd(at) >= 0); /* it may end before we ask */
	assert_int_equal(w.looks, 0);
	assert_int_equal(tear_down(NULL), 0);

	assert_int_equal(set_up(NULL), 0);
	opts.held = true;
	w.disable = 1;
	is_probed("the command is linked not to sample its heap");
}

static void a_command_that_will_not_sample_is_not_read(void **state)
{
	(void)state;
	opts.held = true;
	opts.source = SOURCE_READ;
	w.disable = 1;
	is_refused(-ENOTSUP, "is linked not to sample its heap; --source=probe works without");
	w.disable_fails = 1;
	is_refused(-EFAULT, "nothing at 0x701000");
	w.no_disable = true;
	is_refused(-ENOENT, "no such variable");
	w.find_fails = -EBADMSG;
	is_refused(-EBADMSG, "it cannot be found");
}

/* Go 1.16 has no such variable, and all its programs sample. One whose version is not known is asked. */
static void commands_of_old_versions_sample(void **state)
{
	(void)state;
	opts.held = true;
	w.no_disable = true;
	binary.minor = 16;
	is_read();
	assert_int_equal(tear_down(NULL), 0);

	assert_int_equal(set_up(NULL), 0);
	opts.held = true;
	w.disable = 1;
	binary.minor = 17;
	is_probed("is linked not to sample");
	assert_int_equal(tear_down(NULL), 0);

	assert_int_equal(set_up(NULL), 0);
	opts.held = true;
	w.no_disable = true;
	binary.minor = -1;
	is_probed("no such variable");
}

/* ---- what is handed over ---- */

static void one_that_lives_is_read_at_the_end(void **state)
{
	(void)state;
	is_read();
	ends();
	assert_true(says(prof, "reading 2"));
	assert_true(says(collector_heap.first(at), "reading 1"));
	assert_false(says(prof, "state:"));
	assert_int_equal(loss_total(prof_loss(prof)), 0);
}

static void of_one_that_has_gone_the_start_is_left(void **state)
{
	(void)state;
	is_read();
	w.gone = true;
	ends();
	assert_int_equal(w.readings, 1); /* another program's memory is not read */
	assert_true(says(prof, "reading 1"));
	assert_true(says(prof, "state: as of the start of the window"));
	assert_null(collector_heap.first(at)); /* it is handed over */
}

/* It exits while it is read for the last time. */
static void of_one_that_goes_at_the_end_the_start_is_left(void **state)
{
	(void)state;
	is_read();
	w.read_fails = -ESRCH;
	ends();
	assert_int_equal(w.readings, 2);
	assert_true(says(prof, "reading 1"));
	assert_true(says(prof, "state: as of the start of the window"));
}

/* Buckets that make no sense are no reason to show old ones as if they were those of the end. */
static void what_cannot_be_read_at_the_end_is_an_error(void **state)
{
	struct err e = { "" };

	(void)state;
	is_read();
	w.read_fails = -EBADMSG;
	assert_int_equal(collector_heap.stop(at, &prof, &e), -EBADMSG);
	assert_null(prof);
	assert_string_equal(e.msg, "it cannot be read");
}

static void what_cannot_be_read_at_the_start_is_an_error(void **state)
{
	struct err e = { "" };

	(void)state;
	w.read_fails = -EBADMSG;
	assert_int_equal(start(&e), -EBADMSG);
	assert_null(at);
	assert_int_equal(w.probed, 0);
}

/* What was sampled at one rate would be scaled with another. */
static void numbers_end_where_the_rate_changes(void **state)
{
	(void)state;
	is_read();
	w.rate = OTHER;
	ends();
	assert_int_equal(w.readings, 1);
	assert_true(says(prof, "reading 1"));
	assert_true(says(prof, "state: as of the start of the window; since then "
			       "runtime.MemProfileRate went from 524288 to 4096"));
	assert_int_equal(prof_loss(prof)->n[LOSS_WINDOW_CUT], 1);
	assert_null(collector_heap.first(at));
}

static void a_rate_that_is_0_at_the_end_scales_nothing(void **state)
{
	(void)state;
	is_read();
	w.rate = 0;
	ends();
	assert_true(says(prof, "went from 524288 to 0"));
	assert_int_equal(prof_loss(prof)->n[LOSS_WINDOW_CUT], 1);
}

/* A command sets its rate when it begins: that is no change. */
static void a_command_may_set_its_rate(void **state)
{
	(void)state;
	opts.held = true;
	is_read();
	w.rate = OTHER;
	ends();
	assert_true(says(prof, "reading 2"));
	assert_int_equal(loss_total(prof_loss(prof)), 0);
}

static void of_a_command_that_has_ended_the_last_reading_is_left(void **state)
{
	(void)state;
	opts.held = true;
	is_read();
	w.now += 2 * NS_PER_S;
	assert_int_equal(collector_heap.poll(at, NULL), 0);
	w.now += NS_PER_S;
	w.gone = true;
	ends();
	assert_true(says(prof, "reading 2"));
	assert_true(says(prof, "state: as of 2.000 s after its start, its last 1.000 s are not "
			       "in here"));
}

/* ---- labels, types ---- */

static void records_without_labels_and_types_are_told(void **state)
{
	(void)state;
	opts.labels = opts.heap.types = true;
	is_read();
	assert_non_null(strstr(w.said, "have no goroutine labels and no goid"));
	assert_non_null(strstr(w.said, "have no types; --source=probe has"));
	ends();
	assert_true(says(prof, "labels: the runtime's own records have none, and no goid"));
	assert_true(says(prof, "types: the runtime's own records have none"));
}

static void a_goid_is_a_label_too(void **state)
{
	(void)state;
	opts.goid = true;
	is_read();
	assert_non_null(strstr(w.said, "have no goroutine labels and no goid"));
	ends();
	assert_true(says(prof, "labels: "));
	assert_false(says(prof, "types: "));
}

static void probes_have_labels_and_types(void **state)
{
	(void)state;
	opts.labels = opts.heap.types = true;
	w.rate = 0;
	is_probed("");
	assert_null(strstr(w.said, "labels"));
	assert_null(strstr(w.said, "types"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_program_that_samples_itself_is_read),
		TEST(a_program_that_does_not_is_probed),
		TEST(a_rate_below_0_is_none),
		TEST(who_asks_for_probes_gets_them),
		TEST(who_asks_to_read_gets_nothing_else),
		TEST(what_cannot_be_read_is_probed),
		TEST(a_program_that_has_gone_is_not_probed),
		TEST(no_probes_is_an_error),
		TEST(what_another_switched_on_is_not_read),
		TEST(a_claim_on_what_is_off_is_no_obstacle),
		TEST(what_is_switched_on_is_neither_read_nor_probed),
		TEST(what_cannot_be_switched_on_is_an_error),
		TEST(a_program_that_has_it_on_is_read),
		TEST(a_program_that_had_it_on_is_not_probed),
		TEST(nobody_else_switches_it_on),
		TEST(the_first_rate_is_not_that_of_one_that_will_not_sample),
		TEST(the_first_rate_is_looked_at_again),
		TEST(a_rate_that_stands_after_the_start_is_the_programs),
		TEST(another_rate_is_the_programs_from_the_start),
		TEST(the_first_rate_of_one_that_will_sample_stands),
		TEST(of_a_command_the_linker_tells),
		TEST(a_command_that_will_not_sample_is_not_read),
		TEST(commands_of_old_versions_sample),
		TEST(one_that_lives_is_read_at_the_end),
		TEST(of_one_that_has_gone_the_start_is_left),
		TEST(of_one_that_goes_at_the_end_the_start_is_left),
		TEST(what_cannot_be_read_at_the_end_is_an_error),
		TEST(what_cannot_be_read_at_the_start_is_an_error),
		TEST(numbers_end_where_the_rate_changes),
		TEST(a_rate_that_is_0_at_the_end_scales_nothing),
		TEST(a_command_may_set_its_rate),
		TEST(of_a_command_that_has_ended_the_last_reading_is_left),
		TEST(records_without_labels_and_types_are_told),
		TEST(a_goid_is_a_label_too),
		TEST(probes_have_labels_and_types),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
