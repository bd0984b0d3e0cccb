/*
 * tests/unit/test_reading.c - collectors that read, for each of many targets: when each target is read, what is told of
 * whose profile it is, and who frees what. The four collectors and the identity are replaced by what is here.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "collect/collect.h"
#include "collect/reading.h"

enum { PID = 7 };

/* What a collector has of one target. */
struct readings {
	struct subject *s;
	struct prof *first;
	unsigned kind;
};

static struct {
	int start, stop, identity; /* what these return */
	bool empty;		   /* there is no profile, and that is no error */
	struct collect_opts opts;  /* as start() got them */
	unsigned starts, stops, told;
	int kept; /* that are to be freed */
} w;

static int start(unsigned kind, struct subject *s, const struct collect_opts *o, void **state,
		 struct err *e)
{
	struct readings *r;

	w.starts++;
	w.opts = *o;
	if (w.start)
		return err_set(e, w.start, "it keeps no records");
	r = calloc(1, sizeof(*r));
	assert_non_null(r);
	r->s = s;
	r->kind = kind;
	assert_int_equal(prof_new(&r->first, e), 0);
	w.kept++;
	*state = r;
	return 0;
}

static int stop(void *state, struct prof **out, struct err *e)
{
	assert_non_null(state);
	w.stops++;
	if (w.stop)
		return err_set(e, w.stop, "it cannot be read");
	return w.empty ? 0 : prof_new(out, e);
}

static void free_readings(void *state)
{
	struct readings *r = state;

	prof_free(r->first);
	free(r);
	w.kept--;
}

static const struct prof *first(const void *state)
{
	return ((const struct readings *)state)->first;
}

#define COLLECTOR(name, at, first_of)                                                          \
	static int start_##name(struct subject *s, const struct collect_opts *o, void **state, \
				struct err *e)                                                 \
	{                                                                                      \
		return start(at, s, o, state, e);                                              \
	}                                                                                      \
	const struct collector collector_##name = {                                            \
		.start = start_##name, .stop = stop, .free = free_readings, .first = first_of  \
	}

enum { HEAP, BLOCK, MUTEX, GOROUTINE };
COLLECTOR(heap, HEAP, first);
COLLECTOR(block, BLOCK, first);
COLLECTOR(mutex, MUTEX, first);
COLLECTOR(goroutine, GOROUTINE, NULL);

int engine_tell_identity(const struct engine_target *t, struct prof *p, struct err *e)
{
	assert_int_equal(t->id.pid, PID);
	w.told++;
	return w.identity ? err_set(e, w.identity, "no room") : prof_comment(p, e, "pid 7");
}

/* ---- a kind, and one target of it ---- */

static const struct engine_kind *const kinds[] = { &engine_heap_read, &engine_block_read,
						   &engine_mutex_read, &engine_goroutine };
static const struct engine_kind *const k = &engine_heap_read;

static struct subject subject;
static struct engine_target target = { .id = { .pid = PID }, .subject = &subject };
static void *state_of, *kept;
static struct err err;

static void said(void *arg, const char *line)
{
	(void)arg;
	fail_msg("%s", line);
}

static void open_kind(const struct engine_kind *of)
{
	const struct collect_opts o = {
		.source = SOURCE_PROBE, .say = said, .heap.rate = 77, .text = true
	};

	assert_int_equal(of->open(of, &o, 100, &state_of, &err), 0);
}

static int set_up(void **state)
{
	(void)state;
	memset(&w, 0, sizeof(w));
	kept = NULL;
	err = (struct err){};
	open_kind(k);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	if (kept)
		k->forget(state_of, &target, kept);
	k->free(state_of);
	assert_int_equal(w.kept, 0);
	return 0;
}

static void each_kind_reads_its_own(void **state)
{
	static const char *const names[] = { "heap", "block", "mutex", "goroutine" };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(kinds); i++) {
		const struct engine_kind *kind = kinds[i];

		assert_string_equal(kind->name, names[i]);
		assert_true(kind->reads && !kind->probes && !kind->readers);
		k->free(state_of);
		open_kind(kind);
		assert_int_equal(kind->put(state_of, &target, &kept, &err), 0);
		assert_int_equal(((struct readings *)kept)->kind, i);
		assert_ptr_equal(((struct readings *)kept)->s, &subject);
		kind->forget(state_of, &target, kept);
		kept = NULL;
		assert_int_equal(w.kept, 0);
	}
}

/* Of many targets nothing is probed, whatever was asked for, and not each one's progress is told. */
static void targets_are_read_quietly(void **state)
{
	(void)state;
	assert_int_equal(k->put(state_of, &target, &kept, &err), 0);
	assert_int_equal(w.opts.source, SOURCE_READ);
	assert_null(w.opts.say);
	assert_int_equal(w.opts.heap.rate, 77);
	assert_true(w.opts.text);
}

/* It is put anew when its images change; what was read at first stays. */
static void a_target_is_taken_in_once(void **state)
{
	void *before;

	(void)state;
	assert_int_equal(k->put(state_of, &target, &kept, &err), 0);
	before = kept;
	assert_int_equal(k->put(state_of, &target, &kept, &err), 0);
	assert_ptr_equal(kept, before);
	assert_int_equal(w.starts, 1);
}

/* Of a target that has gone the first reading remains. */
static void a_target_that_went_keeps_what_was_read(void **state)
{
	struct prof *p = NULL;

	(void)state;
	assert_int_equal(k->put(state_of, &target, &kept, &err), 0);
	k->remove(state_of, &target);
	assert_int_equal(w.kept, 1);
	assert_int_equal(w.stops, 0);
	assert_int_equal(k->profile(state_of, &target, kept, &p, &err), 0);
	assert_non_null(p);
	prof_free(p);
}

static void what_cannot_be_read_is_refused(void **state)
{
	(void)state;
	w.start = -ENOTSUP;
	assert_int_equal(k->put(state_of, &target, &kept, &err), -ENOTSUP);
	assert_string_equal(err.msg, "it keeps no records");
	assert_null(kept);
}

/* The profile is what the collector has at the end, and says whose it is. */
static void a_profile_says_whose_it_is(void **state)
{
	struct prof_header_view h;
	struct prof *p = NULL;

	(void)state;
	assert_int_equal(k->put(state_of, &target, &kept, &err), 0);
	assert_int_equal(w.stops, 0);
	assert_int_equal(k->profile(state_of, &target, kept, &p, &err), 0);
	assert_int_equal(w.stops, 1);
	h = prof_header(p);
	assert_int_equal(h.ncomments, 1);
	assert_string_equal(strtab_get(prof_strings(p), h.comments[0]), "pid 7");
	prof_free(p);
}

static void there_may_be_no_profile(void **state)
{
	struct prof *p = NULL;

	(void)state;
	assert_int_equal(k->put(state_of, &target, &kept, &err), 0);
	w.empty = true;
	assert_int_equal(k->profile(state_of, &target, kept, &p, &err), 0);
	assert_null(p);
	assert_int_equal(w.told, 0);
}

/* A profile that does not say whose it is is none. */
static void a_profile_that_fails_is_none(void **state)
{
	struct prof *p = NULL;

	(void)state;
	assert_int_equal(k->put(state_of, &target, &kept, &err), 0);
	w.stop = -EBADMSG;
	assert_int_equal(k->profile(state_of, &target, kept, &p, &err), -EBADMSG);
	assert_string_equal(err.msg, "it cannot be read");
	assert_int_equal(w.told, 0);
	w.stop = 0;
	w.identity = -ENOMEM;
	assert_int_equal(k->profile(state_of, &target, kept, &p, &err), -ENOMEM);
	assert_string_equal(err.msg, "no room");
	assert_null(p);
}

/* Heaps and waits are since the program's start, goroutines are not. */
static void what_there_was_before_is_known(void **state)
{
	(void)state;
	assert_int_equal(k->put(state_of, &target, &kept, &err), 0);
	assert_ptr_equal(k->first(state_of, kept), ((struct readings *)kept)->first);
	k->free(state_of);
	open_kind(&engine_goroutine);
	assert_null(engine_goroutine.first(state_of, kept));
}

/* Between the first reading and the last one there is nothing to do. */
static void a_window_has_no_work(void **state)
{
	(void)state;
	assert_int_equal(k->put(state_of, &target, &kept, &err), 0);
	assert_int_equal(k->fd(state_of), -1);
	assert_int_equal(k->begin(state_of, &err), 0);
	assert_int_equal(k->poll(state_of, &err), 0);
	assert_int_equal(k->tick(state_of, 1, &err), 0);
	k->stop(state_of);
	assert_int_equal(k->drain(state_of, &err), 0);
	assert_int_equal(k->done(state_of, &err), 0);
	assert_int_equal(w.starts, 1);
	assert_int_equal(w.stops, 0);
	assert_int_equal(w.kept, 1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_kind_reads_its_own),	      TEST(targets_are_read_quietly),
		TEST(a_target_is_taken_in_once),      TEST(a_target_that_went_keeps_what_was_read),
		TEST(what_cannot_be_read_is_refused), TEST(a_profile_says_whose_it_is),
		TEST(there_may_be_no_profile),	      TEST(a_profile_that_fails_is_none),
		TEST(what_there_was_before_is_known), TEST(a_window_has_no_work),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
