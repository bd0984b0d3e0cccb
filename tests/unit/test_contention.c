/*
 * tests/unit/test_contention.c - where a block or mutex profile comes from, and which reading of the runtime's own records is
 * handed over. The program is this file's, as are the two other sources; readings say which one they are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "collect/collect.h"
#include "collect/waits/contention/contention_enable.h"
#include "collect/waits/contention/contention_probe.h"
#include "collect/waits/contention/contention_read.h"
#include "collect/waits/contention/sched.h"
#include "symbolize/subject_prof.h"
#include "target/write/claim.h"

enum { BUCKETS_AT = 0x601000, MEASURED = 2000000000 };

/* ---- a program ---- */

static struct {
	struct mem mem; /* first */
	int minor;
	uint64_t rate, head; /* what it records by now; the first of its buckets, 0: none */
	int unknown,
		unread;	 /* why its variables or its buckets are not found, its rate is not read */
	int dead;	 /* what asking for it returns; 0: it lives */
	unsigned claims; /* who else writes to it */
	enum contention what;
	int readings;
	int torn; /* what reading it returns; 0: it works */
	double per_second;
	int unmeasured;
} p;

static int read_head(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	(void)m;
	if (addr != BUCKETS_AT || n != sizeof(p.head))
		return err_set(e, -EFAULT, "nothing there");
	memcpy(buf, &p.head, n);
	return 0;
}

const char *contention_name(enum contention c)
{
	return c == CONTENTION_BLOCK ? "block" : "mutex";
}

const char *contention_rate_name(enum contention c)
{
	return c == CONTENTION_BLOCK ? "blockrate" : "mutexrate";
}

int contention_read_find(struct subject *s, enum contention c, struct rtcontention_vars *out,
			 struct err *e)
{
	(void)s;
	assert_int_equal(c, p.what);
	*out = (struct rtcontention_vars){
		.kind = c == CONTENTION_BLOCK ? BUCKET_BLOCK : BUCKET_MUTEX,
		.buckets = BUCKETS_AT,
		.minor = p.minor,
	};
	return p.unknown ? err_set(e, p.unknown, "it is nowhere") : 0;
}

int contention_read_rate(struct subject *s, const struct rtcontention_vars *v, uint64_t *rate,
			 struct err *e)
{
	(void)s;
	assert_int_equal(v->buckets, BUCKETS_AT);
	if (p.unread)
		return err_set(e, p.unread, "no rate");
	*rate = p.rate;
	return 0;
}

bool contention_scales_at_read(const struct rtcontention_vars *v)
{
	return v->kind == BUCKET_MUTEX && v->minor < 20;
}

int contention_read_profile(struct subject *s, const struct rtcontention_vars *v, double measured,
			    struct prof *prof, struct err *e)
{
	(void)s;
	assert_int_equal(v->minor, p.minor);
	p.per_second = measured;
	if (p.torn)
		return err_set(e, p.torn, "no list");
	return prof_comment(prof, e, "reading %d", ++p.readings);
}

int ticks_measure(double *per_second, struct err *e)
{
	if (p.unmeasured)
		return err_set(e, p.unmeasured, "no clock");
	*per_second = MEASURED;
	return 0;
}

int subject_prof(struct subject *s, const char *source, struct prof **out, struct err *e)
{
	int ret = prof_new(out, e);

	(void)s;
	return ret ? ret : prof_comment(*out, e, "source: %s", source);
}

int target_alive(struct target *t, struct err *e)
{
	(void)t;
	return p.dead ? err_set(e, p.dead, "it has exited") : 0;
}

bool claims_any(struct target *t, unsigned what)
{
	(void)t;
	return p.claims >> what & 1;
}

/* ---- the two other sources ---- */

static struct other {
	int starts, fails, open; /* fails: what starting it returns */
	int ticks, begins;
	struct source source;
} probing, enabling;

static int other_fd(void *at)
{
	return at == &probing ? 71 : 72;
}

static int other_poll(void *at, struct err *e)
{
	(void)at;
	(void)e;
	return 0;
}

static int other_stop(void *at, struct prof **out, struct err *e)
{
	int ret = prof_new(out, e);

	return ret ? ret : prof_comment(*out, e, at == &probing ? "probed" : "enabled");
}

static void other_free(void *at)
{
	((struct other *)at)->open--;
}

static int other_tick(void *at, struct err *e)
{
	(void)e;
	((struct other *)at)->ticks++;
	return 0;
}

static int other_begin(void *at, struct err *e)
{
	(void)e;
	((struct other *)at)->begins++;
	return 0;
}

static int start_other(struct other *o, struct sourced *out, struct err *e)
{
	o->starts++;
	if (o->fails < 0)
		return err_set(e, o->fails, "not in this one");
	if (o->fails)
		return o->fails;
	o->open++;
	*out = (struct sourced){ &o->source, o };
	return 0;
}

int contention_probe_start(struct subject *s, const struct collect_opts *o, enum contention kind,
			   struct sourced *out, struct err *e)
{
	(void)s;
	(void)o;
	assert_int_equal(kind, p.what);
	return start_other(&probing, out, e);
}

int contention_enable_start(struct subject *s, const struct collect_opts *o, enum contention what,
			    struct sourced *out, struct err *e)
{
	(void)s;
	(void)o;
	assert_int_equal(what, p.what);
	return start_other(&enabling, out, e);
}

static unsigned possible_kind;

int sched_possible(struct gobin *b, const struct golayout *l, unsigned kind, struct err *e)
{
	(void)b;
	(void)l;
	possible_kind = kind;
	return err_set(e, -ENOTSUP, "not in this one");
}

/* ---- a profile of it ---- */

static char told[512];

/* One after the other. */
void say(const struct collect_opts *opts, const char *fmt, ...)
{
	size_t n = strlen(told);
	va_list ap;

	(void)opts;
	va_start(ap, fmt);
	vsnprintf(told + n, sizeof(told) - n, fmt, ap);
	va_end(ap);
}

static struct target target = { .mem = &p.mem };
static struct subject subject = { .target = &target };
static struct collect_opts o;
static const struct collector *c;
static void *at;
static struct prof *prof;
static struct err err;

static void is_of(enum contention what)
{
	p.what = what;
	c = what == CONTENTION_BLOCK ? &collector_block : &collector_mutex;
}

/* One that records nothing, of Go 1.27. */
static int set_up(void **state)
{
	const struct source as_probes = { true,	      other_fd,	  other_poll,  other_stop,
					  other_free, other_tick, other_begin, NULL };

	(void)state;
	memset(&p, 0, sizeof(p));
	p.mem.read = read_head;
	p.minor = 27;
	probing = (struct other){ .source = as_probes };
	enabling = (struct other){ .source = as_probes };
	enabling.source.probes = false;
	o = (struct collect_opts){ .source = SOURCE_AUTO };
	told[0] = err.msg[0] = 0;
	at = NULL;
	prof = NULL;
	is_of(CONTENTION_BLOCK);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	prof_free(prof);
	c->free(at);
	assert_int_equal(probing.open, 0);
	assert_int_equal(enabling.open, 0);
	return 0;
}

static void start(void)
{
	if (c->start(&subject, &o, &at, &err))
		fail_msg("%s", err.msg);
}

static void stop(void)
{
	if (c->stop(at, &prof, &err))
		fail_msg("%s", err.msg);
}

static bool says_in(const struct prof *of, const char *what)
{
	struct prof_header_view h = prof_header(of);

	for (size_t i = 0; i < h.ncomments; i++)
		if (strstr(strtab_get(prof_strings(of), h.comments[i]), what))
			return true;
	return false;
}

static bool says(const char *what)
{
	return says_in(prof, what);
}

static void is_probed(const char *why)
{
	start();
	assert_true(probing.open == 1 && enabling.open == 0 && p.readings == 0);
	assert_int_equal(c->fd(at), 71);
	if (!strstr(told, why))
		fail_msg("\"%s\" not in \"%s\"", why, told);
	stop();
	assert_true(says("probed"));
}

static void is_read(const char *why)
{
	start();
	assert_true(probing.open == 0 && enabling.open == 0 && p.readings == 1);
	if (!strstr(told, why))
		fail_msg("\"%s\" not in \"%s\"", why, told);
}

static void refused(int rc, const char *why)
{
	assert_int_equal(c->start(&subject, &o, &at, &err), rc);
	if (!strstr(err.msg, why))
		fail_msg("\"%s\" not in \"%s\"", why, err.msg);
	assert_null(at);
	assert_true(p.readings == 0 && probing.open + enabling.open == 0);
}

/* ---- which source ---- */

static void what_the_program_records_is_read(void **state)
{
	(void)state;
	p.rate = 1;
	is_read("block: source read: the target records it itself");
	assert_int_equal(c->fd(at), -1); /* not again before the end */
	stop();
	assert_true(says("source: read (the runtime's own buckets)") && says("reading 2"));
}

static void one_that_records_nothing_is_probed(void **state)
{
	(void)state;
	p.head = 0xc000; /* and what it has recorded before is of another time */
	is_probed("block: source probe: the target does not record it (blockrate is 0)");
}

static void one_that_cannot_be_read_is_probed(void **state)
{
	(void)state;
	p.rate = 1;
	p.unknown = -ENOENT;
	is_of(CONTENTION_MUTEX);
	is_probed("mutex: source probe: it is nowhere");
}

static void a_rate_that_cannot_be_one_is_a_reason_to_probe(void **state)
{
	(void)state;
	p.rate = 1;
	p.unread = -EBADMSG;
	is_probed("block: source probe: no rate");
}

static void who_asks_for_probes_has_them(void **state)
{
	(void)state;
	p.rate = 1;
	o.source = SOURCE_PROBE;
	is_probed("block: source probe, as asked for");
	assert_int_equal(c->tick(at, NULL), 0);
	assert_int_equal(c->begin(at, NULL), 0);
	assert_true(probing.ticks == 1 && probing.begins == 1);
}

static void mutexes_are_probed_as_well(void **state)
{
	(void)state;
	is_of(CONTENTION_MUTEX);
	is_probed("mutex: source probe: the target does not record it (mutexrate is 0)");
	assert_int_equal(c->tick(at, NULL), 0);
	assert_true(probing.ticks == 1 && probing.begins == 0);
	assert_int_equal(c->begin(at, NULL), 0);
	assert_true(probing.ticks == 1 && probing.begins == 1);
}

static void probes_that_do_not_come_are_an_error(void **state)
{
	(void)state;
	probing.fails = -ENOTSUP;
	refused(-ENOTSUP, "not in this one");
	assert_int_equal(probing.starts, 1);
}

/* Each obstacle is an error, and what else could be done is said. */
static void who_asks_for_reading_has_nothing_else(void **state)
{
	(void)state;
	o.source = SOURCE_READ;
	refused(-ENOTSUP, "(blockrate is 0); --source=enable or probe works without");
	p.unknown = -ENOENT;
	refused(-ENOENT, "it is nowhere; --source=enable or probe works without");
	assert_int_equal(probing.starts, 0);
}

static void who_asks_for_reading_has_what_was_recorded_before(void **state)
{
	(void)state;
	o.source = SOURCE_READ;
	p.head = 0xc000;
	is_read("source read: what the target has recorded; it does not any more");
	p.rate = 10;
	stop(); /* it does again: nothing of what is there is wrong */
	assert_true(says("reading 2") && !says("meanwhile"));
}

/* Their numbers were multiplied by the rate that is there now, and it is 0. */
static void what_old_mutex_profiles_are_worth_is_not_known(void **state)
{
	(void)state;
	is_of(CONTENTION_MUTEX);
	o.source = SOURCE_READ;
	p.head = 0xc000;
	p.minor = 19;
	refused(-ENOTSUP, "(mutexrate is 0)");
	p.minor = 20;
	is_read("what the target has recorded");
}

/* Another goprof-bpf has it record, for its own window. */
static void what_another_has_it_record_is_not_its_own(void **state)
{
	(void)state;
	p.rate = 1;
	p.claims = 1 << CLAIM_BLOCK_RATE;
	o.source = SOURCE_READ;
	refused(-EBUSY, "another goprof-bpf has it record now");
	o.source = SOURCE_AUTO;
	is_probed("another goprof-bpf");
}

static void of_another_kind_it_may_record(void **state)
{
	(void)state;
	p.rate = 1;
	p.claims = 1 << CLAIM_MUTEX_FRACTION;
	is_read("the target records it itself");
}

static void mutexes_have_a_claim_of_their_own(void **state)
{
	(void)state;
	is_of(CONTENTION_MUTEX);
	p.rate = 1;
	p.claims = 1 << CLAIM_BLOCK_RATE;
	assert_int_equal(contention_records(&subject, CONTENTION_MUTEX, &err), 0);
	p.claims = 1 << CLAIM_MUTEX_FRACTION;
	assert_int_equal(contention_records(&subject, CONTENTION_MUTEX, &err), -EBUSY);
}

static void a_program_records_now_or_it_does_not(void **state)
{
	(void)state;
	p.head = 0xc000;
	assert_int_equal(contention_records(&subject, CONTENTION_BLOCK, &err), -ENOTSUP);
	p.rate = 1;
	assert_int_equal(contention_records(&subject, CONTENTION_BLOCK, &err), 0);
	p.unread = -EFAULT;
	assert_int_equal(contention_records(&subject, CONTENTION_BLOCK, &err), -EFAULT);
	assert_int_equal(p.readings, 0);
}

/* ---- with --source=enable ---- */

static void it_is_made_to_record(void **state)
{
	(void)state;
	o.source = SOURCE_ENABLE;
	start();
	assert_true(enabling.open == 1 && probing.open == 0 && p.readings == 0);
	assert_int_equal(c->fd(at), 72);
	stop();
	assert_true(says("enabled"));
}

static void one_that_records_by_itself_is_read(void **state)
{
	(void)state;
	o.source = SOURCE_ENABLE;
	enabling.fails = 1;
	p.rate = 1;
	is_read("source read: the target records it itself");
}

/* It said that the program records, and by now it does not: nobody asked for probes. */
static void who_asks_for_writing_is_not_probed(void **state)
{
	(void)state;
	o.source = SOURCE_ENABLE;
	enabling.fails = 1;
	refused(-ENOTSUP, "(blockrate is 0)");
	enabling.fails = -EPERM;
	refused(-EPERM, "not in this one");
	assert_int_equal(probing.starts, 0);
}

/* ---- a command that has not begun ---- */

static void what_a_command_will_record_is_not_known(void **state)
{
	(void)state;
	o.held = true;
	p.rate = 1; /* as its file has it */
	is_probed("source probe: whether the command will record it is not known yet");
}

/* Its memory goes when it ends, so it is read again and again. */
static void a_command_is_read_from_time_to_time(void **state)
{
	int timer;

	(void)state;
	o.held = true;
	o.source = SOURCE_READ;
	is_read("source read: what the command records when it asks its runtime to");
	timer = c->fd(at);
	assert_true(timer >= 0);
	assert_int_equal(c->poll(at, NULL), 0);
	assert_int_equal(p.readings, 2);
	p.dead = -ESRCH;
	stop();
	assert_true(says("reading 2") && says("state: as of"));
	assert_int_equal(p.readings, 2);
	c->free(TAKE(at));
	assert_int_equal(fcntl(timer, F_GETFD), -1);
}

/* It asks for it when it runs; that is no change of what was recorded. */
static void a_command_begins_to_record(void **state)
{
	(void)state;
	is_of(CONTENTION_MUTEX);
	p.minor = 19;
	o.held = true;
	o.source = SOURCE_READ;
	start();
	p.rate = 5;
	stop();
	assert_true(says("reading 2") && !says("went from"));
	assert_int_equal(prof_loss(prof)->n[LOSS_WINDOW_CUT], 0);
}

/* ---- which reading ---- */

static void the_first_reading_is_kept(void **state)
{
	(void)state;
	p.rate = 1;
	start();
	stop();
	assert_true(says_in(c->first(at), "reading 1") && says("reading 2"));
	assert_int_equal(prof_loss(prof)->n[LOSS_WINDOW_CUT], 0);
	assert_false(says("went from"));
}

static void of_one_that_has_gone_the_first_reading_is_handed_over(void **state)
{
	(void)state;
	p.rate = 1;
	start();
	p.dead = -ESRCH;
	stop();
	assert_true(says("reading 1") && says("the target went"));
	assert_null(c->first(at)); /* there is none but that */
}

/* Between the question and the reading. */
static void one_may_go_while_it_is_read(void **state)
{
	(void)state;
	p.rate = 1;
	start();
	p.torn = -ESRCH;
	stop();
	assert_true(says("reading 1") && says("the target went"));
}

static void other_errors_are_errors(void **state)
{
	(void)state;
	p.rate = 1;
	start();
	p.torn = -EFAULT;
	assert_int_equal(c->stop(at, &prof, &err), -EFAULT);
	assert_null(prof);
	p.torn = 0;
	p.unread = -EBADMSG;
	assert_int_equal(c->stop(at, &prof, &err), -EBADMSG);
	assert_string_equal(err.msg, "no rate");
}

/* What was recorded under another rate stays right. */
static void a_new_rate_is_told(void **state)
{
	(void)state;
	p.rate = 5;
	is_of(CONTENTION_MUTEX);
	start();
	p.rate = 20;
	stop();
	assert_true(says("reading 2") && says("rate: mutexrate went from 5 to 20 meanwhile"));
	assert_int_equal(prof_loss(prof)->n[LOSS_WINDOW_CUT], 0);
}

/* To Go 1.19 all that was recorded would be multiplied by the new one. */
static void a_new_rate_makes_old_mutex_profiles_wrong(void **state)
{
	(void)state;
	p.rate = 5;
	p.minor = 19;
	is_of(CONTENTION_MUTEX);
	start();
	p.rate = 0;
	stop();
	assert_true(says("reading 1"));
	assert_true(says("state: as of the start of the window; since then mutexrate went from 5 "
			 "to 0"));
	assert_int_equal(prof_loss(prof)->n[LOSS_WINDOW_CUT], 1);
	assert_int_equal(p.readings, 1);
	assert_null(c->first(at));
}

static void old_mutex_profiles_are_read_while_the_rate_stays(void **state)
{
	(void)state;
	p.rate = 5;
	p.minor = 19;
	is_of(CONTENTION_MUTEX);
	start();
	stop();
	assert_true(says("reading 2"));
	assert_int_equal(prof_loss(prof)->n[LOSS_WINDOW_CUT], 0);
}

/* ---- what else it needs ---- */

static void the_clock_is_measured_once(void **state)
{
	(void)state;
	p.rate = 1;
	start();
	assert_true(p.per_second == MEASURED);
	c->free(TAKE(at));
	o.ticks_per_second = 3e9;
	p.unmeasured = -EBADMSG; /* nobody measures it again */
	start();
	assert_true(p.per_second == 3e9);
}

static void without_a_clock_it_is_not_read(void **state)
{
	(void)state;
	p.rate = 1;
	p.unmeasured = -EBADMSG;
	refused(-EBADMSG, "no clock");
}

static void a_first_reading_that_fails_is_an_error(void **state)
{
	(void)state;
	p.rate = 1;
	p.torn = -EFAULT;
	refused(-EFAULT, "no list");
}

static void the_runtimes_records_have_no_labels(void **state)
{
	(void)state;
	p.rate = 1;
	o.labels = true;
	is_read("block: the runtime's own records have no goroutine labels and no goid");
	stop();
	assert_true(says("labels: the runtime's own records have none"));
}

static void nor_have_they_goids(void **state)
{
	(void)state;
	p.rate = 1;
	o.goid = true;
	is_read("block: the runtime's own records have no goroutine labels and no goid");
	stop();
	assert_true(says("and no goid"));
}

/* Nobody who did not ask is told; and probed samples have labels. */
static void only_who_asked_is_told_of_labels(void **state)
{
	(void)state;
	p.rate = 1;
	start();
	stop();
	assert_false(says("labels:") || strstr(told, "labels"));
	c->free(TAKE(at));
	prof_free(TAKE(prof));
	o.labels = true;
	o.source = SOURCE_PROBE;
	start();
	assert_null(strstr(told, "labels"));
}

static void each_kind_may_be_possible_for_itself(void **state)
{
	(void)state;
	assert_string_equal(collector_block.kind, "block");
	assert_int_equal(collector_block.possible(NULL, NULL, &err), -ENOTSUP);
	assert_int_equal(possible_kind, GPB_WAIT_BLOCK);
	assert_string_equal(collector_mutex.kind, "mutex");
	assert_int_equal(collector_mutex.possible(NULL, NULL, &err), -ENOTSUP);
	assert_int_equal(possible_kind, GPB_WAIT_MUTEX);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_the_program_records_is_read),
		TEST(one_that_records_nothing_is_probed),
		TEST(one_that_cannot_be_read_is_probed),
		TEST(a_rate_that_cannot_be_one_is_a_reason_to_probe),
		TEST(who_asks_for_probes_has_them),
		TEST(mutexes_are_probed_as_well),
		TEST(probes_that_do_not_come_are_an_error),
		TEST(who_asks_for_reading_has_nothing_else),
		TEST(who_asks_for_reading_has_what_was_recorded_before),
		TEST(what_old_mutex_profiles_are_worth_is_not_known),
		TEST(what_another_has_it_record_is_not_its_own),
		TEST(of_another_kind_it_may_record),
		TEST(mutexes_have_a_claim_of_their_own),
		TEST(a_program_records_now_or_it_does_not),
		TEST(it_is_made_to_record),
		TEST(one_that_records_by_itself_is_read),
		TEST(who_asks_for_writing_is_not_probed),
		TEST(what_a_command_will_record_is_not_known),
		TEST(a_command_is_read_from_time_to_time),
		TEST(a_command_begins_to_record),
		TEST(the_first_reading_is_kept),
		TEST(of_one_that_has_gone_the_first_reading_is_handed_over),
		TEST(one_may_go_while_it_is_read),
		TEST(other_errors_are_errors),
		TEST(a_new_rate_is_told),
		TEST(a_new_rate_makes_old_mutex_profiles_wrong),
		TEST(old_mutex_profiles_are_read_while_the_rate_stays),
		TEST(the_clock_is_measured_once),
		TEST(without_a_clock_it_is_not_read),
		TEST(a_first_reading_that_fails_is_an_error),
		TEST(the_runtimes_records_have_no_labels),
		TEST(nor_have_they_goids),
		TEST(only_who_asked_is_told_of_labels),
		TEST(each_kind_may_be_possible_for_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
