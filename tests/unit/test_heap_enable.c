/*
 * tests/unit/test_heap_enable.c - a made-up runtime whose sampler is switched on for a window: what the profile counts, what it
 * leaves out, and that the rate is 0 again whatever fails. The runtime is that of heap_enable_world.h.
 */
#include "heap_enable_world.h"

/* ---- a window ---- */

static struct sourced by;
static struct prof *prof;

static int set_up(void **state)
{
	(void)state;
	begin_world();
	make_runtime();
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

static int start(struct err *e)
{
	return heap_enable_start(&subject, &opts, &by, e);
}

static void begins(void)
{
	assert_int_equal(start(NULL), 0);
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

/* The profile has that of a bucket, in all four columns. */
static void counts(unsigned b, int64_t allocs, int64_t bytes, int64_t inuse, int64_t inuse_bytes)
{
	const int64_t *v = sampled(prof, PC_AT + b);

	assert_int_equal(prof_header(prof).ntypes, 4);
	assert_non_null(v);
	assert_int_equal(v[0], allocs);
	assert_int_equal(v[1], bytes);
	assert_int_equal(v[2], inuse);
	assert_int_equal(v[3], inuse_bytes);
}

/* The same where in-use columns are absent. */
static void allocated(unsigned b, int64_t allocs, int64_t bytes)
{
	const int64_t *v = sampled(prof, PC_AT + b);

	assert_int_equal(prof_header(prof).ntypes, 2);
	assert_non_null(v);
	assert_int_equal(v[0], allocs);
	assert_int_equal(v[1], bytes);
}

/* In-use columns are absent, and the profile says why. */
static void no_inuse(const char *why)
{
	assert_int_equal(prof_header(prof).ntypes, 2);
	assert_true(says(prof, "in-use columns are absent"));
	assert_true(says(prof, why));
}

/* ---- the order of things ---- */

/* Nothing is written before all is known; the first reading is a moment after the write; the last one before the end. */
static void it_is_written_between_two_readings(void **state)
{
	(void)state;
	begins();
	assert_string_equal(w.log, "find find find decode buckets write pause buckets ");
	assert_int_equal(w.word, RATE);
	assert_int_equal(w.guardian.job.addr, BIAS + RATE_ADDR);
	assert_int_equal(w.guardian.job.what, CLAIM_HEAP_RATE);
	w.log[0] = '\0';
	ends();
	assert_string_equal(w.log, "buckets end ");
	assert_int_equal(w.word, 0);
	sourced_fini(&by);
	assert_string_equal(w.log, "buckets end free ");
}

static void a_program_that_samples_itself_is_to_be_read(void **state)
{
	(void)state;
	w.word = PROGRAMS;
	assert_int_equal(start(NULL), 1);
	assert_null(by.source);
	assert_int_equal(w.word, PROGRAMS);
	assert_null(strstr(w.log, "free")); /* there is no guardian */
}

static void a_command_that_has_not_run_is_refused(void **state)
{
	struct err e = { "" };

	(void)state;
	opts.held = true;
	assert_int_equal(start(&e), -ENOTSUP);
	assert_non_null(strstr(e.msg, "source enable: "));
	assert_string_equal(w.log, "");
	assert_null(by.source);
}

/* The whole of a window, of which a step fails. 0, or what failed. */
static int whole(void)
{
	struct err e = { "" };
	int ret = start(&e);

	if (ret) {
		assert_null(by.source);
		assert_non_null(strstr(e.msg, "source enable: "));
		return ret;
	}
	takes(0, A, 5);
	ring(by.source->fd(by.at));
	by.source->poll(by.at, NULL);
	assert_int_equal(by.source->tick(by.at, NULL), 0);
	ret = by.source->stop(by.at, &prof, NULL);
	assert_int_equal(!ret, prof != NULL);
	return ret;
}

/* Each step of it in turn: what is in the target afterwards is what was there before. */
static void whatever_fails_the_rate_is_0_again(void **state)
{
	unsigned steps = 0, failed = 0;

	(void)state;
	for (unsigned k = 1; k <= steps + 1; k++) {
		assert_int_equal(set_up(NULL), 0);
		w.fault_at = k;
		failed += whole() != 0;
		assert_int_equal(tear_down(NULL), 0);
		assert_int_equal(w.word, 0);
		if (w.steps > steps)
			steps = w.steps;
	}
	assert_int_equal(set_up(NULL), 0);
	assert_int_equal(whole(), 0);
	assert_true(steps > 15 && failed > 10); /* steps are met */
}

/* The same where others have it on: it stays so. */
static void whatever_fails_what_others_use_stays(void **state)
{
	unsigned steps = 0;

	(void)state;
	for (unsigned k = 1; k <= steps + 1; k++) {
		assert_int_equal(set_up(NULL), 0);
		w.word = w.claimed = THEIRS;
		w.fault_at = k;
		(void)whole();
		assert_int_equal(tear_down(NULL), 0);
		assert_int_equal(w.word, THEIRS);
		if (w.steps > steps)
			steps = w.steps;
	}
	assert_int_equal(set_up(NULL), 0);
}

static void program_sets_it(void)
{
	w.word = PROGRAMS;
}

/* It does so between the write and the first reading: it wins. */
static void a_program_that_begins_to_sample_is_left_alone(void **state)
{
	struct err e = { "" };

	(void)state;
	w.meanwhile = program_sets_it;
	assert_int_equal(start(&e), -EBUSY);
	assert_null(by.source);
	assert_int_equal(w.guardians, 0);
	assert_int_equal(w.word, PROGRAMS);
}

/* Nothing of the window can be read: an error, and the rate is restored. */
static void a_window_without_a_reading_is_an_error(void **state)
{
	struct err e = { "" };

	(void)state;
	begins();
	w.gone = true;
	assert_int_equal(by.source->stop(by.at, &prof, &e), -ESRCH);
	assert_null(prof);
	assert_int_equal(w.guardians, 0);
}

/* ---- what was allocated ---- */

static void settles(void)
{
	takes(0, B, 3);
	takes(0, HUGE, 1);
}

/* Not before the first reading, and not before the write. */
static void what_the_window_gained_is_counted(void **state)
{
	(void)state;
	had(B, 100, 100);
	w.meanwhile = settles;
	begins();
	takes(0, A, 10); /* 10 * 1.58198 objects, each of 512 KiB */
	takes(0, HUGE, 2);
	ends();
	allocated(A, 15, 8294114);
	allocated(HUGE, 2, 2ll * HUGE_SIZE);
	assert_null(sampled(prof, PC_AT + B));
	assert_true(says(prof, "hits: 12 samples in 2 buckets"));
	assert_true(says(prof, "rate: one sample in 524288 bytes"));
	assert_int_equal(prof_header(prof).period, RATE);
	assert_int_equal(loss_total(prof_loss(prof)), 0);
}

static void a_window_of_nothing_is_empty(void **state)
{
	(void)state;
	had(A, 100, 50);
	begins();
	w.now += NS_PER_S;
	ends();
	assert_int_equal(prof_nsamples(prof), 0);
	assert_true(says(prof, "window: 1.000 s"));
	assert_true(says(prof, "hits: 0 samples in 0 buckets"));
	assert_true(says(prof, "it is 0 again"));
}

/* The program sets its own rate: what came then has another weight. */
static void numbers_end_where_the_program_sets_the_rate(void **state)
{
	(void)state;
	begins();
	takes(0, A, 10);
	polls();
	w.word = PROGRAMS;
	takes(0, A, 1000);
	ends();
	counts(A, 15, 8294114, 15, 8294114);
	assert_int_equal(w.word, PROGRAMS);
	assert_int_equal(prof_loss(prof)->n[LOSS_WINDOW_CUT], 1);
	assert_true(says(prof, "the program has set it to 4096 itself"));
}

static void what_was_read_of_a_program_that_went_stays(void **state)
{
	(void)state;
	begins();
	takes(0, A, 10);
	polls();
	takes(0, A, 1000);
	w.gone = true;
	ends();
	counts(A, 15, 8294114, 15, 8294114);
	assert_true(says(prof, "window: 0.020 s"));
	assert_true(says(prof, "until the program was gone"));
	assert_int_equal(prof_loss(prof)->n[LOSS_NOT_RESTORED], 0);
}

/* ---- what is shared ---- */

/* Their rate is in force, and what they sampled until now is not of this window. */
static void a_shared_rate_is_the_rate(void **state)
{
	(void)state;
	w.word = w.claimed = THEIRS;
	takes(0, A, 100);
	had(A, 100, 100);
	begins();
	takes(0, A, 10); /* each of 8 times their rate: 1.000335 objects */
	ends();
	assert_int_equal(prof_header(prof).period, THEIRS);
	allocated(A, 10, 5244639);
	assert_true(says(prof, "rate: one sample in 65536 bytes"));
	assert_true(says(prof, "of 2 processors 1 had theirs before the window"));
	assert_int_equal(w.word, THEIRS);
}

static void others_stop(void)
{
	takes(0, A, 5);
	w.word = 0;
}

/*
 * It was on when the buckets were first read, and 0 when it was written: what others sampled between the two is not in use of this
 * window.
 */
static void a_reading_under_another_rate_is_no_beginning(void **state)
{
	(void)state;
	w.word = THEIRS;
	go.after_reading = others_stop;
	begins();
	assert_int_equal(w.word, RATE);
	takes(0, HUGE, 2);
	ends();
	counts(HUGE, 2, 2ll * HUGE_SIZE, 2, 2ll * HUGE_SIZE);
	assert_null(sampled(prof, PC_AT + A));
}

static void others_begin(void)
{
	w.word = w.claimed = THEIRS;
	takes(0, A, 5);
}

/* The same where it was 0 when the buckets were read, and others were faster to write. */
static void what_others_were_first_to_switch_on_is_theirs(void **state)
{
	(void)state;
	go.after_reading = others_begin;
	begins();
	ends();
	assert_int_equal(prof_header(prof).period, THEIRS);
	assert_int_equal(prof_nsamples(prof), 0);
}

/* ---- the first sample of each P ---- */

static void both_ps_begin(void)
{
	takes(0, B, 1);
	takes(1, B, 1);
}

/* It comes whatever the object's size, so alone it stands for one object and not for 1.58. */
static void a_first_sample_counts_as_one_object(void **state)
{
	(void)state;
	begins();
	takes(0, A, 1);
	takes(1, A, 1);
	polls();
	takes(0, A, 10);
	ends(); /* 2 + 15.8198; of the 12 in use 2 in 12 are first ones: 18 * 10/12 + 12 * 2/12 */
	counts(A, 2 + 15, 2 * RATE + 8294114, 17, 9342689);
	assert_true(says(prof, "of 2 processors 0 had theirs before the window, 2 in it and known "
			       "(counted as one object each), 0 in it among others"));
}

static void a_first_sample_among_others_is_not_known(void **state)
{
	(void)state;
	begins();
	takes(0, A, 10);
	ends();
	counts(A, 15, 8294114, 15, 8294114);
	assert_true(says(prof, "of 2 processors 0 had theirs before the window, 0 in it and known "
			       "(counted as one object each), 1 in it among others (each counts "
			       "524288 bytes too much)"));
}

/* Right after the write, before the first reading: it is in no allocation of the window, but it is in use. */
static void a_first_sample_before_the_window_is_in_use(void **state)
{
	(void)state;
	w.meanwhile = both_ps_begin;
	begins();
	takes(0, A, 10);
	ends();
	counts(A, 15, 8294114, 15, 8294114);
	counts(B, 0, 0, 2, 2 * RATE);
	assert_true(says(prof, "of 2 processors 2 had theirs before the window, 0 in it and known "
			       "(counted as one object each), 0 in it among others"));
}

static void p1_begins(void)
{
	takes(1, A, 1);
}

/* One that comes while buckets are read belongs to no P yet: the next reading tells. */
static void a_first_sample_in_a_reading_is_known_by_the_next(void **state)
{
	(void)state;
	begins();
	go.in_reading = p1_begins;
	go.in = go.readings + 1;
	polls();
	ends();
	counts(A, 1, RATE, 1, RATE);
}

/* GOMAXPROCS changes, and no P is read from then on. */
static void ps_that_change_are_those_of_the_start(void **state)
{
	(void)state;
	begins();
	go.p[1].id = 7;
	ends();
	assert_true(says(prof, "first samples: of 2 processors 0 had theirs before the window"));
}

/* Where offsets do not tell where a P has its cache, nothing is corrected, and that is said. */
static void ps_that_cannot_be_read_are_told(void **state)
{
	(void)state;
	subject.layout.off[LAYOUT_p_mcache] = -1;
	begins();
	takes(0, A, 1);
	polls();
	takes(0, A, 9);
	ends();
	counts(A, 15, 8294114, 15, 8294114);
	assert_true(says(prof, "how many did is not known"));
}

/* Go 1.23 keeps a P's countdown when the rate changes: one of an earlier window goes on. */
static void countdowns_of_before_are_told(void **state)
{
	(void)state;
	binary.minor = 23;
	go.mcache[1].next_sample = 7000;
	begins();
	ends();
	assert_true(says(prof, "first samples: 1 processors went on with the countdown of an "
			       "earlier rate: the next after 7000 bytes in all"));
}

static void no_countdown_of_before_is_told_where_there_is_none(void **state)
{
	(void)state;
	binary.minor = 24; /* since this one a P begins anew with each rate that is another one */
	go.mcache[1].next_sample = 7000;
	go.mcache[1].rate = RATE;
	begins();
	ends();
	assert_false(says(prof, "countdown"));
	prof_free(prof);
	sourced_fini(&by);

	assert_int_equal(set_up(NULL), 0);
	binary.minor = 23;
	w.word = w.claimed = THEIRS; /* that of those who have it on */
	go.mcache[1].next_sample = 7000;
	begins();
	ends();
	assert_false(says(prof, "countdown"));
}

/* ---- what is in use ---- */

/* Two cycles publish what was sampled; what came since is not in it. */
static void in_use_is_as_of_a_collection(void **state)
{
	(void)state;
	had(A, 0, 0);
	begins();
	takes(0, A, 10);
	collects();
	collects();
	takes(0, A, 10);
	ends();
	assert_int_equal(prof_header(prof).ntypes, 4);
	counts(A, 31, 16588228, 15, 8294114); /* 20 * 1.58198 and 10 * 1.58198 */
	assert_true(says(prof, "as of GC cycle 4"));
}

static void before_two_collections_nothing_is_known(void **state)
{
	(void)state;
	had(A, 0, 0);
	begins();
	takes(0, A, 10);
	collects();
	ends();
	allocated(A, 15, 8294114);
	no_inuse("no garbage collection has published anything of the window");
}

/* Before a program's first collection nothing was ever freed. */
static void before_the_first_collection_all_is_in_use(void **state)
{
	(void)state;
	begins();
	takes(0, HUGE, 3);
	ends();
	counts(HUGE, 3, 3ll * HUGE_SIZE, 3, 3ll * HUGE_SIZE);
	assert_false(says(prof, "absent"));
}

/* The number of the cycle begins again at 0 after some 100 million. */
static void cycles_wrap(void **state)
{
	(void)state;
	had(A, 0, 0);
	go.cycle = CYCLE_WRAP - 1;
	begins();
	takes(0, HUGE, 3);
	collects();
	collects();
	assert_int_equal(go.cycle, 1);
	ends();
	counts(HUGE, 3, 3ll * HUGE_SIZE, 3, 3ll * HUGE_SIZE);
}

/* One collection is one, also then. */
static void a_cycle_that_wraps_is_one_cycle(void **state)
{
	(void)state;
	had(A, 0, 0);
	go.cycle = CYCLE_WRAP - 1;
	begins();
	takes(0, HUGE, 3);
	collects();
	ends();
	no_inuse("no garbage collection has published anything of the window");
}

static void settles_and_collects(void)
{
	takes(0, HUGE, 2);
	collects();
}

/* What was sampled since the write is published two cycles later, wherever the first reading lies between them. */
static void a_collection_before_the_first_reading_counts(void **state)
{
	(void)state;
	had(A, 0, 0);
	w.meanwhile = settles_and_collects;
	begins();
	collects();
	ends();
	counts(HUGE, 0, 0, 2, 2ll * HUGE_SIZE);
}

/* A bucket with older objects, and what becomes of it in the window. */
struct life {
	uint64_t older, older_freed; /* before the write */
	unsigned made;		     /* in it */
	uint64_t freed;		     /* in it, of whatever age */
};

static void lives(struct life l)
{
	had(HUGE, l.older, l.older_freed);
	begins();
	takes(0, HUGE, l.made);
	go.at[HUGE].all.frees += l.freed;
	collects();
	collects();
	ends();
}

static void frees_are_subtracted(void **state)
{
	(void)state;
	lives((struct life){ .older = 7, .older_freed = 7, .made = 5, .freed = 2 });
	counts(HUGE, 5, 5ll * HUGE_SIZE, 3, 3ll * HUGE_SIZE);
}

static void all_that_was_made_is_freed(void **state)
{
	(void)state;
	lives((struct life){ .made = 5, .freed = 5 });
	counts(HUGE, 5, 5ll * HUGE_SIZE, 0, 0);
}

static void older_objects_that_live_are_not_of_the_window(void **state)
{
	(void)state;
	lives((struct life){ .older = 7, .older_freed = 3, .made = 5 });
	counts(HUGE, 5, 5ll * HUGE_SIZE, 5, 5ll * HUGE_SIZE);
}

static void older_objects_that_are_freed_are_not_of_the_window(void **state)
{
	(void)state;
	lives((struct life){ .older = 7, .older_freed = 3, .freed = 2 });
	assert_int_equal(prof_header(prof).ntypes, 4);
	assert_int_equal(prof_nsamples(prof), 0);
}

/* Were the freed ones old or new? Nobody can tell, so that no column does. */
static void frees_among_old_and_new_are_not_told_apart(void **state)
{
	(void)state;
	lives((struct life){ .older = 7, .older_freed = 3, .made = 5, .freed = 2 });
	allocated(HUGE, 5, 5ll * HUGE_SIZE);
	no_inuse("objects sampled earlier were freed at the same places");
}

/* What was sampled, and freed, just before the write is published in the window, and not of it. */
static void what_is_published_late_is_not_of_the_window(void **state)
{
	(void)state;
	had(HUGE, 3, 1);
	go.at[HUGE].all.allocs = 7;
	go.at[HUGE].all.frees = 2;
	begins();
	takes(0, HUGE, 5);
	collects();
	collects();
	ends();
	counts(HUGE, 5, 5ll * HUGE_SIZE, 5, 5ll * HUGE_SIZE);
}

/* Nothing of it is published yet, and nothing was allocated: the bucket is not there. */
static void what_is_not_published_is_not_there(void **state)
{
	(void)state;
	had(HUGE, 7, 1);
	go.at[HUGE].all.frees = 4;
	go.at[A].published.allocs = 5;
	go.at[A].published.frees = 3;
	go.at[A].all.allocs = go.at[A].all.frees = 7;
	begins();
	ends();
	assert_int_equal(prof_nsamples(prof), 0);
}

/* ---- Ps that change while they are first read ---- */

static void one_p_cannot_be_read(void)
{
	both_ps_begin();
	go.p[1].id = 9;
}

/* The Ps are read again; only where they change in each attempt nobody knows who had its first sample. */
static void ps_that_change_are_read_again(void **state)
{
	(void)state;
	go.in_reading = p1_begins;
	go.in = 2;
	begins();
	takes(1, A, 1); /* no first one */
	polls();
	ends();
	assert_int_equal(sampled(prof, PC_AT + A)[1], 829411);
	assert_true(says(prof, "first samples: of 2 processors 1 had theirs before the window"));
}

static void ps_that_never_stand_still_are_not_known(void **state)
{
	(void)state;
	w.meanwhile = one_p_cannot_be_read;
	begins();
	go.p[1].id = 1;
	takes(0, A, 1);
	takes(1, A, 1); /* two ordinary ones: 3.16 objects */
	polls();
	ends();
	counts(A, 3, 1658822, 3, 1658822);
	assert_true(says(prof, "how many did is not known"));
}

/* ---- what is in use, and of what size ---- */

/* Older objects that are not known to be freed yet seem to have been made in the window, until no column tells of that. */
static void what_tells_nothing_is_no_sample(void **state)
{
	(void)state;
	had(HUGE, 7, 4);
	go.at[HUGE].all.frees = 7; /* the next cycle publishes it */
	begins();
	ends();
	assert_int_equal(prof_nsamples(prof), 0);
	assert_true(says(prof, "hits: 0 samples in 0 buckets"));
}

/* Up to Go 1.26 the label is the mean size: of those that are in use, where all were sampled before the first reading. */
static void what_is_only_in_use_has_a_size(void **state)
{
	(void)state;
	binary.minor = 26;
	subject.layout.off[LAYOUT_memcycle_sizeof] = 32;
	w.meanwhile = both_ps_begin;
	begins();
	ends();
	assert_int_equal(prof_sample_at(prof, 0).values[0], 0);
	assert_int_equal(prof_sample_at(prof, 0).nlabels, 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(it_is_written_between_two_readings),
		TEST(a_program_that_samples_itself_is_to_be_read),
		TEST(a_command_that_has_not_run_is_refused),
		TEST(whatever_fails_the_rate_is_0_again),
		TEST(whatever_fails_what_others_use_stays),
		TEST(a_program_that_begins_to_sample_is_left_alone),
		TEST(a_window_without_a_reading_is_an_error),
		TEST(what_the_window_gained_is_counted),
		TEST(a_window_of_nothing_is_empty),
		TEST(numbers_end_where_the_program_sets_the_rate),
		TEST(what_was_read_of_a_program_that_went_stays),
		TEST(a_shared_rate_is_the_rate),
		TEST(a_reading_under_another_rate_is_no_beginning),
		TEST(what_others_were_first_to_switch_on_is_theirs),
		TEST(a_first_sample_counts_as_one_object),
		TEST(a_first_sample_among_others_is_not_known),
		TEST(a_first_sample_before_the_window_is_in_use),
		TEST(a_first_sample_in_a_reading_is_known_by_the_next),
		TEST(ps_that_change_are_those_of_the_start),
		TEST(ps_that_cannot_be_read_are_told),
		TEST(countdowns_of_before_are_told),
		TEST(no_countdown_of_before_is_told_where_there_is_none),
		TEST(in_use_is_as_of_a_collection),
		TEST(before_two_collections_nothing_is_known),
		TEST(before_the_first_collection_all_is_in_use),
		TEST(cycles_wrap),
		TEST(a_cycle_that_wraps_is_one_cycle),
		TEST(a_collection_before_the_first_reading_counts),
		TEST(frees_are_subtracted),
		TEST(all_that_was_made_is_freed),
		TEST(older_objects_that_live_are_not_of_the_window),
		TEST(older_objects_that_are_freed_are_not_of_the_window),
		TEST(frees_among_old_and_new_are_not_told_apart),
		TEST(what_is_published_late_is_not_of_the_window),
		TEST(what_is_not_published_is_not_there),
		TEST(ps_that_change_are_read_again),
		TEST(ps_that_never_stand_still_are_not_known),
		TEST(what_tells_nothing_is_no_sample),
		TEST(what_is_only_in_use_has_a_size),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
