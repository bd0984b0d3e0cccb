/*
 * tests/unit/test_contention_enable.c - a made-up runtime that is made to record contention for a window: which rate is written,
 * what the profile counts, and that the rate is 0 again whatever fails. The rest of its world is enable_world.h.
 */
#include "enable_world.h"

#include "collect/waits/contention/contention_enable.h"
#include "collect/waits/contention/contention_read.h"
#include "subject/verify.h"
#include "target/environ.h"

enum { BUCKETS = 2, A = 0, B = 1, BUCKET_AT = 0x9000, STRIDE = 0x100, PC_AT = 0x40100 };
enum { THEIRS = 5000, PROGRAMS = 77, FRACTION = 10 };

/* ---- the runtime ---- */

static struct {
	struct {
		double count;
		int64_t cycles;
	} at[BUCKETS];
	double per_second; /* ticks */
	uint64_t takes;	   /* ns: to read all buckets */
	unsigned readings;
	void (*after_reading)(void); /* what happens after the first one; NULL: nothing */
} go;

/* So many waits end, of so many ticks in all. They are recorded while the rate is on. */
static void waits(unsigned b, double count, int64_t cycles)
{
	if (!w.word)
		return;
	go.at[b].count += count;
	go.at[b].cycles += cycles;
}

/* A bucket is there once something was recorded in it, and the newest is the first of the list. */
int rtcontentions_read(struct mem *m, const struct golayout *l, const struct rtcontention_vars *v,
		       struct rtcontentions *out, struct err *e)
{
	int ret = w.gone ? err_set(e, -ESRCH, "it has exited") : may_fail(e);

	(void)l;
	assert_ptr_equal(m, &memory);
	assert_int_equal(v->rate, BIAS + RATE_ADDR);
	did("buckets");
	w.now += go.takes;
	if (ret)
		return ret;
	*out = (struct rtcontentions){ .at = calloc(BUCKETS, sizeof(*out->at)),
				       .pcs = calloc(BUCKETS, sizeof(*out->pcs)),
				       .rate = w.word };
	for (unsigned b = BUCKETS; b-- > 0;)
		if (go.at[b].count > 0)
			out->at[out->n++] = (struct rtcontention){ .count = go.at[b].count,
								   .cycles = go.at[b].cycles,
								   .addr = BUCKET_AT + b * STRIDE,
								   .nstk = 1,
								   .stk = b };
	for (unsigned b = 0; b < BUCKETS; b++)
		out->pcs[out->npcs++] = PC_AT + b;
	if (!go.readings++ && go.after_reading)
		go.after_reading();
	return 0;
}

void rtcontentions_fini(struct rtcontentions *b)
{
	free(b->at);
	free(b->pcs);
	*b = (struct rtcontentions){ 0 };
}

int verify_contention(struct subject *s, enum bucket_kind kind, uint64_t buckets, struct err *e)
{
	(void)s;
	(void)kind;
	assert_int_equal(buckets, BIAS + RATE_ADDR + 0x100);
	return may_fail(e);
}

static bool is_rate(enum rtvar v)
{
	return v == RTVAR_BLOCKPROFILERATE || v == RTVAR_MUTEXPROFILERATE;
}

int subject_rtvar(struct subject *s, enum rtvar v, uint64_t *addr, struct err *e)
{
	assert_ptr_equal(s, &subject);
	did("find");
	*addr = BIAS + RATE_ADDR + (is_rate(v) ? 0 : 0x100);
	return may_fail(e);
}

int rtvar_plausible(struct mem *live, const struct golayout *l, int minor, enum rtvar v,
		    uint64_t addr, struct err *e)
{
	(void)live;
	(void)l;
	(void)minor;
	(void)addr;
	assert_true(is_rate(v));
	return w.gone ? err_set(e, -ESRCH, "it has exited") : 0;
}

int ticks_measure(double *per_second, struct err *e)
{
	did("measure");
	*per_second = go.per_second;
	return may_fail(e);
}

struct ticks ticks_of(struct subject *s, double measured)
{
	assert_ptr_equal(s, &subject);
	return (struct ticks){ TICKS_MEASURED, measured, measured, 0 };
}

int ticks_comment(const struct ticks *t, struct prof *p, struct err *e)
{
	return prof_comment(p, e, "clock: %.0f", t->per_second);
}

int logical_callers(struct logical *l, const uint64_t *pcs, size_t n, size_t max,
		    const uint64_t **out, size_t *nout, struct err *e)
{
	assert_non_null(l);
	assert_true(n <= max);
	*out = pcs;
	*nout = n;
	return may_fail(e);
}

int target_environ(struct target *t, const char *name, char *value, size_t cap)
{
	assert_ptr_equal(t, &target);
	assert_string_equal(name, "GODEBUG");
	(void)value;
	(void)cap;
	return -ENOENT;
}

/* ---- a window ---- */

static struct sourced by;
static struct prof *prof;

static int set_up(void **state)
{
	(void)state;
	begin_world();
	memset(&go, 0, sizeof(go));
	go.per_second = 2e9; /* two ticks are 1 ns */
	opts.block.rate_ns = 10000;
	opts.mutex.fraction = FRACTION;
	by = (struct sourced){ 0 };
	prof = NULL;
	return 0;
}

/* Whatever a test did: no guardian is left. */
static int tear_down(void **state)
{
	(void)state;
	sourced_fini(&by);
	prof_free(prof);
	return w.guardians;
}

static int start(enum contention what, struct err *e)
{
	return contention_enable_start(&subject, &opts, what, &by, e);
}

static void begins(enum contention what)
{
	assert_int_equal(start(what, NULL), 0);
	assert_non_null(by.source);
	assert_false(by.source->probes);
}

static void polls(void)
{
	ring(by.source->fd(by.at));
	assert_int_equal(by.source->poll(by.at, NULL), 0);
}

static void ends(void)
{
	assert_int_equal(by.source->stop(by.at, &prof, NULL), 0);
	assert_non_null(prof);
}

static void counts(unsigned b, int64_t contentions, int64_t delay_ns)
{
	const int64_t *v = sampled(prof, PC_AT + b);

	assert_non_null(v);
	assert_int_equal(v[0], contentions);
	assert_int_equal(v[1], delay_ns);
}

/* ---- the order of things ---- */

static void it_is_written_between_two_readings(void **state)
{
	(void)state;
	begins(CONTENTION_BLOCK);
	assert_string_equal(w.log, "measure find find decode buckets write ");
	assert_int_equal(w.guardian.job.addr, BIAS + RATE_ADDR);
	assert_int_equal(w.guardian.job.what, CLAIM_BLOCK_RATE);
	assert_string_equal(w.guardian.job.name, "runtime.blockprofilerate");
	w.log[0] = '\0';
	ends();
	assert_string_equal(w.log, "buckets end ");
	assert_int_equal(w.word, 0);
	sourced_fini(&by);
	assert_string_equal(w.log, "buckets end free ");
}

static void a_mutex_rate_is_another_switch(void **state)
{
	(void)state;
	begins(CONTENTION_MUTEX);
	assert_int_equal(w.guardian.job.what, CLAIM_MUTEX_FRACTION);
	assert_string_equal(w.guardian.job.name, "runtime.mutexprofilerate");
	ends();
	assert_int_equal(w.word, 0);
}

static void a_program_that_records_itself_is_to_be_read(void **state)
{
	(void)state;
	w.word = PROGRAMS;
	assert_int_equal(start(CONTENTION_BLOCK, NULL), 1);
	assert_null(by.source);
	assert_int_equal(w.word, PROGRAMS);
	assert_null(strstr(w.log, "free")); /* there is no guardian */
}

static void a_command_that_has_not_run_is_refused(void **state)
{
	struct err e = { "" };

	(void)state;
	opts.held = true;
	assert_int_equal(start(CONTENTION_MUTEX, &e), -ENOTSUP);
	assert_non_null(strstr(e.msg, "source enable: "));
	assert_string_equal(w.log, "");
	assert_null(by.source);
}

/* The whole of a window, of which a step fails. 0, or what failed. */
static int whole(enum contention what)
{
	struct err e = { "" };
	int ret = start(what, &e);

	if (ret) {
		assert_null(by.source);
		assert_non_null(strstr(e.msg, "source enable: "));
		return ret;
	}
	waits(A, 5, 5000);
	ring(by.source->fd(by.at));
	by.source->poll(by.at, NULL);
	assert_int_equal(by.source->tick(by.at, NULL), 0);
	ret = by.source->stop(by.at, &prof, NULL);
	assert_int_equal(!ret, prof != NULL);
	return ret;
}

/* Each step of it in turn, with @word and a claim on it: what is in the target afterwards is what was there before. */
static void each_step_fails(enum contention what, uint64_t word)
{
	unsigned steps = 0, failed = 0;

	for (unsigned k = 1; k <= steps + 1; k++) {
		assert_int_equal(set_up(NULL), 0);
		w.word = w.claimed = word;
		w.fault_at = k;
		failed += whole(what) != 0;
		assert_int_equal(tear_down(NULL), 0);
		assert_int_equal(w.word, word);
		if (w.steps > steps)
			steps = w.steps;
	}
	assert_int_equal(set_up(NULL), 0);
	assert_true(steps > 12 && failed > 8); /* steps are met */
}

static void whatever_fails_the_rate_is_as_before(void **state)
{
	(void)state;
	each_step_fails(CONTENTION_BLOCK, 0);
	each_step_fails(CONTENTION_MUTEX, 0);
	each_step_fails(CONTENTION_BLOCK, THEIRS);
}

static void program_sets_it(void)
{
	w.word = PROGRAMS;
}

/* Others had it on, and while their buckets are read the program sets it: it wins. */
static void others_have_it_on(void)
{
	w.word = w.claimed = THEIRS;
	go.readings = 0;
	go.after_reading = program_sets_it;
}

static void a_program_that_begins_to_record_is_left_alone(void **state)
{
	struct err e = { "" };

	(void)state;
	go.after_reading = others_have_it_on;
	w.claimed = THEIRS;
	assert_int_equal(start(CONTENTION_BLOCK, &e), -EBUSY);
	assert_null(by.source);
	assert_int_equal(w.guardians, 0);
	assert_int_equal(w.word, PROGRAMS);
}

static void a_window_without_a_reading_is_an_error(void **state)
{
	struct err e = { "" };

	(void)state;
	begins(CONTENTION_BLOCK);
	w.gone = true;
	assert_int_equal(by.source->stop(by.at, &prof, &e), -ESRCH);
	assert_null(prof);
	assert_int_equal(w.guardians, 0);
}

/* ---- which rate ---- */

/* SetBlockProfileRate: 1 ns is every wait; else ticks, rounded down, and 1 rather than 0, which would be off. */
static void a_block_rate_is_written_in_ticks(void **state)
{
	static const struct {
		double per_second;
		uint64_t rate_ns, word;
	} cases[] = { { 2e9, 10000, 20000 },
		      { 2e9, 1, 1 },
		      { 2e9, 2, 4 },
		      { 24e6, 10, 1 },
		      { 24e6, 1000, 24 },
		      { 24e6, 1041, 24 },
		      { 2e9, 536870912, CLAIM_VALUE_MAX } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_int_equal(set_up(NULL), 0);
		go.per_second = cases[i].per_second;
		opts.block.rate_ns = cases[i].rate_ns;
		begins(CONTENTION_BLOCK);
		assert_int_equal(w.word, cases[i].word);
		assert_int_equal(tear_down(NULL), 0);
	}
	assert_int_equal(set_up(NULL), 0);
}

static void a_rate_that_has_no_room_is_not_written(void **state)
{
	struct err e = { "" };

	(void)state;
	opts.block.rate_ns = NS_PER_S;
	assert_int_equal(start(CONTENTION_BLOCK, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "--block-rate: at most 537 ms"));
	assert_non_null(strstr(e.msg, "not 1000 ms"));
	assert_null(strstr(w.log, "write"));
	assert_null(by.source);
}

static void a_mutex_fraction_is_written_as_it_is(void **state)
{
	(void)state;
	opts.block.rate_ns = NS_PER_S; /* is that of another kind */
	begins(CONTENTION_MUTEX);
	assert_int_equal(w.word, FRACTION);
}

/* ---- what the profile counts ---- */

static void what_the_window_gained_is_counted(void **state)
{
	(void)state;
	go.at[A].count = 100; /* of a time when the program recorded */
	go.at[A].cycles = 1000000;
	go.at[B].count = 1;
	go.at[B].cycles = 2000;
	begins(CONTENTION_BLOCK);
	waits(A, 3, 6000);
	waits(B, 2, 500000);
	ends();
	counts(A, 3, 3000);
	counts(B, 2, 250000);
	assert_true(says(prof, "hits: 2 buckets grew"));
	assert_true(says(prof, "rate: waits of 10000 ns (20000 ticks), shorter ones in "
			       "proportion"));
	assert_int_equal(loss_total(prof_loss(prof)), 0);
}

static void what_did_not_grow_is_not_there(void **state)
{
	(void)state;
	go.at[A].count = 100;
	go.at[A].cycles = 1000000;
	begins(CONTENTION_BLOCK);
	w.now += NS_PER_S;
	ends();
	assert_int_equal(prof_nsamples(prof), 0);
	assert_true(says(prof, "window: 1.000 s"));
	assert_true(says(prof, "hits: 0 buckets grew"));
	assert_true(says(prof, "it is 0 again"));
}

/* A short wait adds less than one to the count, and Go shows no bucket with a count of 0. */
static void a_part_of_a_wait_is_shown_as_one(void **state)
{
	(void)state;
	begins(CONTENTION_BLOCK);
	waits(A, 0.25, 20000);
	ends();
	counts(A, 1, 10000);
}

/* A record whose count was read before an event and whose delay before another one. */
static void what_seems_to_shrink_is_left_out(void **state)
{
	(void)state;
	go.at[A].count = go.at[B].count = 100;
	go.at[A].cycles = go.at[B].cycles = 1000000;
	begins(CONTENTION_BLOCK);
	waits(A, 1, -10);
	waits(B, -1, 10);
	ends();
	assert_int_equal(prof_nsamples(prof), 0);
}

/* Up to Go 1.19 a mutex bucket counts samples: one for each @fraction of contentions. */
static void fractions_of_old_versions_are_scaled(void **state)
{
	(void)state;
	binary.minor = 19;
	begins(CONTENTION_MUTEX);
	waits(A, 3, 6000);
	polls();
	w.word = PROGRAMS; /* their worth stays that of when they were taken */
	ends();
	counts(A, 3 * FRACTION, 3000 * FRACTION);
	assert_true(says(prof, "rate: one contention in 10"));
}

static void fractions_of_new_versions_are_scaled_by_go(void **state)
{
	(void)state;
	begins(CONTENTION_MUTEX);
	waits(A, 3, 6000);
	ends();
	counts(A, 3, 3000);
	assert_true(says(prof, "a lock that was waited for when the window began is not in here"));
}

static void only_a_mutex_profile_speaks_of_locks(void **state)
{
	(void)state;
	begins(CONTENTION_BLOCK);
	ends();
	assert_false(says(prof, "a lock that was waited for"));
	assert_true(says(prof, "waits that began before the window, or did not end in it"));
}

static void numbers_end_where_the_program_sets_the_rate(void **state)
{
	(void)state;
	begins(CONTENTION_BLOCK);
	waits(A, 3, 6000);
	polls();
	w.word = PROGRAMS;
	waits(A, 1000, 1000000);
	ends();
	counts(A, 3, 3000);
	assert_int_equal(w.word, PROGRAMS);
	assert_int_equal(prof_loss(prof)->n[LOSS_WINDOW_CUT], 1);
	assert_true(says(prof, "the program has set it to 77 itself"));
	assert_true(says(prof, "rate: waits of 10000 ns"));
}

static void what_was_read_of_a_program_that_went_stays(void **state)
{
	(void)state;
	begins(CONTENTION_BLOCK);
	waits(A, 3, 6000);
	polls();
	waits(A, 1000, 1000000);
	w.gone = true;
	ends();
	counts(A, 3, 3000);
	assert_true(says(prof, "until the program was gone"));
}

/* ---- when the window begins ---- */

/* While it was 0 nothing changed: it begins with the write, and ends when the last reading is over. */
static void the_window_begins_with_the_write(void **state)
{
	struct prof_header_view v;

	(void)state;
	go.takes = 100 * MS;
	w.answer_ns = 5 * MS;
	begins(CONTENTION_BLOCK);
	w.now += NS_PER_S;
	ends();
	v = prof_header(prof);
	assert_int_equal(v.duration_ns, 1105 * MS);
	assert_int_equal(v.time_ns, UNIX_NS + 1000 * NS_PER_S + 100 * MS);
}

/* What others made it record until then is not of this window. */
static void a_shared_window_begins_with_its_own_reading(void **state)
{
	(void)state;
	go.takes = 100 * MS;
	w.word = w.claimed = THEIRS;
	waits(A, 7, 7000);
	begins(CONTENTION_BLOCK);
	assert_string_equal(w.log, "measure find find decode buckets share buckets ");
	waits(A, 3, 6000);
	w.now += NS_PER_S;
	ends();
	counts(A, 3, 3000);
	assert_int_equal(prof_header(prof).duration_ns, 1100 * MS);
	assert_true(says(prof, "rate: waits of 2500 ns (5000 ticks)"));
	assert_int_equal(w.word, THEIRS);
}

static void others_stop(void)
{
	waits(A, 7, 7000);
	w.word = 0;
}

/* It was on when the buckets were read, and 0 when it was written: they had gone on meanwhile. */
static void a_reading_under_another_rate_is_no_beginning(void **state)
{
	(void)state;
	w.word = THEIRS;
	go.after_reading = others_stop;
	begins(CONTENTION_BLOCK);
	assert_string_equal(w.log, "measure find find decode buckets write buckets ");
	waits(A, 3, 6000);
	ends();
	counts(A, 3, 3000);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(it_is_written_between_two_readings),
		TEST(a_mutex_rate_is_another_switch),
		TEST(a_program_that_records_itself_is_to_be_read),
		TEST(a_command_that_has_not_run_is_refused),
		TEST(whatever_fails_the_rate_is_as_before),
		TEST(a_program_that_begins_to_record_is_left_alone),
		TEST(a_window_without_a_reading_is_an_error),
		TEST(a_block_rate_is_written_in_ticks),
		TEST(a_rate_that_has_no_room_is_not_written),
		TEST(a_mutex_fraction_is_written_as_it_is),
		TEST(what_the_window_gained_is_counted),
		TEST(what_did_not_grow_is_not_there),
		TEST(a_part_of_a_wait_is_shown_as_one),
		TEST(what_seems_to_shrink_is_left_out),
		TEST(fractions_of_old_versions_are_scaled),
		TEST(fractions_of_new_versions_are_scaled_by_go),
		TEST(only_a_mutex_profile_speaks_of_locks),
		TEST(numbers_end_where_the_program_sets_the_rate),
		TEST(what_was_read_of_a_program_that_went_stays),
		TEST(the_window_begins_with_the_write),
		TEST(a_shared_window_begins_with_its_own_reading),
		TEST(a_reading_under_another_rate_is_no_beginning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
