/*
 * tests/unit/test_exectrace.c - execution traces that are made here, event by event: what Go's readers cannot be
 * asked of. tests/e2e/trace_readers.sh compares with them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs those four first. */
#include <cmocka.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "ingest/exectrace/exectrace.h"
#include "ingest/exectrace/v2/generation.h"
#include "ingest/exectrace/heap.h"
#include "ingest/exectrace/ids.h"
#include "ingest/exectrace/summary/trace_profile.h"
#include "ingest/exectrace/summary/trace_summary.h"
#include "ingest/exectrace/v1/wire1.h"
#include "mktrace.h"

/* ---- a trace that is being made, and what it says ---- */

enum { NAMES = 64 };

struct made {
	struct mktrace t;
	char said[NAMES][64];
	size_t nsaid;
};

static struct made begin(const char *header)
{
	return (struct made){ .t = mktrace(header) };
}

static void say(struct made *m, const struct trace_event *ev)
{
	static const char *const states[] = { "?",	 "none",    "runnable",
					      "running", "syscall", "waiting" };
	char *to = m->said[m->nsaid];

	if (ev->kind == TRACE_SYNC || m->nsaid == NAMES)
		return;
	if (ev->kind == TRACE_GOROUTINE)
		snprintf(to, sizeof(m->said[0]), "%lld g%lld %s>%s", (long long)ev->time_ns,
			 (long long)ev->transition.id, states[ev->transition.from],
			 states[ev->transition.to]);
	else if (ev->kind == TRACE_METRIC)
		snprintf(to, sizeof(m->said[0]), "%lld heap %llu", (long long)ev->time_ns,
			 (unsigned long long)ev->metric.value);
	else
		return;
	m->nsaid++;
}

static int file_of(struct made *m)
{
	return mktrace_fd(&m->t);
}

/* Reads it all; what the last call answered, and why. */
static int read_all(struct made *m, struct err *e)
{
	CLEANUP(exectrace_freep) struct exectrace *t = NULL;
	int fd CLEANUP(closep) = file_of(m);
	struct trace_event ev;
	int ret = exectrace_open(fd, &t, e);

	m->nsaid = 0;
	while (!ret && (ret = exectrace_next(t, &ev, e)) > 0) {
		say(m, &ev);
		ret = 0;
	}
	return ret;
}

static void says(const struct made *m, const char *const *want)
{
	size_t i;

	for (i = 0; want[i]; i++) {
		assert_true(i < m->nsaid);
		assert_string_equal(m->said[i], want[i]);
	}
	assert_int_equal(i, m->nsaid);
}

#define SAYS(m, ...) says(m, (const char *const[]){ __VA_ARGS__, NULL })

static void done(struct made *m)
{
	mktrace_done(&m->t);
}

/* ---- version 2 ---- */

/*
 * One goroutine runs on each thread in turn. The sequence numbers tell the order, and the time stamps the
 * opposite one.
 */
static struct made relay(unsigned threads)
{
	struct made m = begin("go 1.22 trace");

	mktrace_clock(&m.t, 1);
	for (unsigned i = 0; i < threads; i++) {
		mktrace_batch(&m.t, 1, i, 10 * (threads - i));
		EVENT2(&m.t, EV_PROC_STATUS, 1, i, 1);
		if (i == 0)
			EVENT2(&m.t, EV_GO_STATUS, 0, 1, UINT64_MAX, 1);
		EVENT2(&m.t, EV_GO_START, 1, 1, i + 1);
		EVENT2(&m.t, EV_GO_STOP, 1, 0, 0);
	}
	return m;
}

/* Threads on which the goroutine started, in order. */
static unsigned runs_in_order(struct made *m)
{
	CLEANUP(exectrace_freep) struct exectrace *t = NULL;
	int fd CLEANUP(closep) = file_of(m);
	struct trace_event ev;
	unsigned n = 0;
	int64_t last = -1;
	struct err e;

	assert_int_equal(exectrace_open(fd, &t, &e), 0);
	while (exectrace_next(t, &ev, &e) == 1) {
		assert_true(ev.time_ns > last);
		last = ev.time_ns;
		if (ev.kind == TRACE_GOROUTINE && ev.transition.to == TRACE_G_RUNNING)
			assert_int_equal(ev.m, n++);
	}
	assert_int_equal(exectrace_next(t, &ev, &e), 0);
	return n;
}

static void sequence_numbers_beat_time_stamps(void **state)
{
	(void)state;
	for (unsigned threads = 1; threads <= 300; threads = threads * 3 + 1) {
		struct made m = relay(threads);

		assert_int_equal(runs_in_order(&m), threads);
		done(&m);
	}
}

/* Each of them waits for the one before: to ask all of them for each event takes minutes. */
static void time_does_not_follow_the_square_of_threads(void **state)
{
	enum { THREADS = 20000 };
	struct made m = relay(THREADS);
	clock_t start = clock();

	(void)state;
	assert_int_equal(runs_in_order(&m), THREADS);
	assert_true(clock() - start < 2 * CLOCKS_PER_SEC);
	done(&m);
}

/* While one thread must wait, the earliest of the others goes on. */
static void others_go_on_by_time(void **state)
{
	struct made m = begin("go 1.22 trace");
	struct err e;

	(void)state;
	mktrace_clock(&m.t, 1);
	for (uint64_t i = 0; i < 3; i++) {
		mktrace_batch(&m.t, 1, i, i == 1 ? 20 : 10);
		EVENT2(&m.t, EV_PROC_STATUS, i ? 10 : 0, i, 1);
		if (i == 0)
			EVENT2(&m.t, EV_GO_START, 0, 1, 1);
		else
			EVENT2(&m.t, EV_HEAP_ALLOC, 0, i);
	}
	EVENT2(&m.t, EV_GO_STATUS, 20, 1, UINT64_MAX, 1);
	assert_int_equal(read_all(&m, &e), 0);
	SAYS(&m, "21 heap 2", "31 heap 1", "40 g1 ?>runnable", "41 g1 runnable>running");
	done(&m);
}

static void a_start_that_never_can_be_is_told(void **state)
{
	struct made m = relay(2);
	struct err e;

	(void)state;
	mktrace_batch(&m.t, 1, 7, 5);
	EVENT2(&m.t, EV_PROC_STATUS, 1, 7, 1);
	EVENT2(&m.t, EV_GO_START, 1, 1, 9);
	assert_int_equal(read_all(&m, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "no event can come next; that of thread 7 is of kind 16"));
	assert_int_equal(m.nsaid, 5);
	done(&m);
}

static void what_a_table_does_not_have_is_told(void **state)
{
	struct made m = relay(1);
	struct err e;

	(void)state;
	EVENT2(&m.t, EV_GO_START, 1, 1, 2);
	EVENT2(&m.t, EV_GO_STOP, 1, 33, 0);
	assert_int_equal(read_all(&m, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "refers to a string"));
	SAYS(&m, "12 g1 ?>runnable", "13 g1 runnable>running", "14 g1 running>runnable",
	     "15 g1 runnable>running");
	done(&m);
}

/* A generation is followed by the next one and no other. What comes before is told. */
static void generations_come_in_order(void **state)
{
	static const struct {
		uint64_t number;
		const char *why;
	} wrong[] = { { 3, "a batch of generation 3 after 1" },
		      { UINT64_MAX, "a batch of generation 18446744073709551615 after 1" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		struct made m = relay(1);
		struct err e;

		mktrace_clock(&m.t, wrong[i].number);
		assert_int_equal(read_all(&m, &e), -EBADMSG);
		assert_non_null(strstr(e.msg, wrong[i].why));
		SAYS(&m, "12 g1 ?>runnable", "13 g1 runnable>running", "14 g1 running>runnable");
		done(&m);
	}
}

/* The rate of the clock is in the first generation, and the second one is cut: all its events come. */
static void a_cut_generation_gives_its_events(void **state)
{
	struct made m = relay(1);
	struct err e;

	(void)state;
	mktrace_batch(&m.t, 2, 0, 100);
	EVENT2(&m.t, EV_PROC_STATUS, 1, 0, 1);
	EVENT2(&m.t, EV_GO_START, 1, 5, 3); /* its status was in what is lost */
	EVENT2(&m.t, EV_GO_BLOCK, 1, 44, 55);
	mktrace_end_batch(&m.t);
	mktrace_byte(&m.t, EV_BATCH);
	assert_int_equal(read_all(&m, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "the head of a batch is cut"));
	assert_non_null(strstr(e.msg, "1 events before it came out of Go's order"));
	SAYS(&m, "12 g1 ?>runnable", "13 g1 runnable>running", "14 g1 running>runnable",
	     "102 g5 ?>running", "103 g5 running>waiting");
	done(&m);
}

/* Without a rate at all times are in ticks. */
static void a_trace_without_a_rate_is_in_ticks(void **state)
{
	CLEANUP(exectrace_freep) struct exectrace *t = NULL;
	struct made m = begin("go 1.23 trace");
	struct trace_event ev;
	struct err e;
	int fd;

	(void)state;
	mktrace_batch(&m.t, 1, 3, 1000);
	EVENT2(&m.t, EV_PROC_STATUS, 7, 0, 1);
	fd = file_of(&m);
	assert_int_equal(exectrace_open(fd, &t, &e), 0);
	assert_int_equal(exectrace_next(t, &ev, &e), 1);
	assert_int_equal(ev.kind, TRACE_SYNC);
	assert_int_equal(exectrace_next(t, &ev, &e), 1);
	assert_int_equal(ev.time_ns, 1007);
	assert_false(exectrace_has_clock(t));
	assert_int_equal(exectrace_next(t, &ev, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "does not tell its clock's rate"));
	close(fd);
	done(&m);
}

/* ---- version 1 ---- */

/* Two Ps; the goroutine begins on the first one, and its system call blocks at 40. */
static struct made blocked_call(void)
{
	struct made m = begin("go 1.21 trace");

	EVENT1(&m.t, EV1_BATCH, 0, 1000);
	EVENT1(&m.t, EV1_FREQUENCY, 1000000000);
	EVENT1(&m.t, EV1_PROC_START, 0, 7);
	EVENT1(&m.t, EV1_GOMAXPROCS, 1, 2, 0);
	EVENT1(&m.t, EV1_GO_CREATE, 9, 1, 0, 0);
	EVENT1(&m.t, EV1_GO_START_LOCAL, 10, 1);
	EVENT1(&m.t, EV1_GO_SYSCALL, 10, 0);
	EVENT1(&m.t, EV1_GO_SYS_BLOCK, 10);
	EVENT1(&m.t, EV1_HEAP_ALLOC, 10, 50);
	EVENT1(&m.t, EV1_HEAP_ALLOC, 10, 60);
	return m;
}

/* It ended at 55, between two events that were noted before it could tell. */
static void a_system_call_ends_when_it_ended(void **state)
{
	struct made m = blocked_call();
	struct err e;

	(void)state;
	EVENT1(&m.t, EV1_HEAP_ALLOC, 10, 70);
	EVENT1(&m.t, EV1_BATCH, 1, 1000);
	EVENT1(&m.t, EV1_PROC_START, 75, 8);
	EVENT1(&m.t, EV1_GO_SYS_EXIT, 5, 1, 2, 1055);
	EVENT1(&m.t, EV1_GO_START, 5, 1, 3);
	assert_int_equal(read_all(&m, &e), 0);
	SAYS(&m, "1 heap 2", "10 g1 none>runnable", "20 g1 runnable>running",
	     "30 g1 running>syscall", "50 heap 50", "55 g1 syscall>runnable", "60 heap 60",
	     "70 heap 70", "85 g1 runnable>running");
	done(&m);
}

/* Told much later than is read ahead, it comes where it was all the same. */
static void a_late_end_comes_in_time(void **state)
{
	struct made m = blocked_call();
	struct err e;

	(void)state;
	EVENT1(&m.t, EV1_HEAP_ALLOC, 1ull << 30, 70);
	EVENT1(&m.t, EV1_BATCH, 1, 1000);
	EVENT1(&m.t, EV1_PROC_START, 1ull << 31, 8);
	EVENT1(&m.t, EV1_GO_SYS_EXIT, 5, 1, 2, 1055);
	assert_int_equal(read_all(&m, &e), 0);
	SAYS(&m, "1 heap 2", "10 g1 none>runnable", "20 g1 runnable>running",
	     "30 g1 running>syscall", "50 heap 50", "55 g1 syscall>runnable", "60 heap 60",
	     "1073741884 heap 70");
	done(&m);
}

static void an_end_before_the_call_blocked_is_refused(void **state)
{
	struct made m = blocked_call();
	struct err e;

	(void)state;
	EVENT1(&m.t, EV1_BATCH, 1, 1000);
	EVENT1(&m.t, EV1_PROC_START, 75, 8);
	EVENT1(&m.t, EV1_GO_SYS_EXIT, 5, 1, 2, 1035);
	assert_int_equal(read_all(&m, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "goroutine 1 ends which had not blocked by then"));
	done(&m);
}

/* The goroutine runs on P 2 first, and on P 1 next, as its numbers say. */
static struct made runs_twice(uint64_t on_1, uint64_t on_2)
{
	struct made m = begin("go 1.21 trace");
	const uint64_t at[] = { 0, on_1, on_2 };

	EVENT1(&m.t, EV1_BATCH, 0, 0);
	EVENT1(&m.t, EV1_FREQUENCY, 1000000000);
	EVENT1(&m.t, EV1_PROC_START, 1, 7);
	EVENT1(&m.t, EV1_GO_CREATE, 1, 1, 0, 0);
	for (uint64_t p = 1; p <= 2; p++) {
		EVENT1(&m.t, EV1_BATCH, p, 0);
		EVENT1(&m.t, EV1_PROC_START, 5, 7 + p);
		EVENT1(&m.t, EV1_GO_START, at[p] - 5, 1, 3 - p);
		EVENT1(&m.t, EV1_HEAP_ALLOC, 0, p);
		EVENT1(&m.t, EV1_GO_SCHED, 0, 0);
	}
	return m;
}

static void numbers_decide_where_time_does_not(void **state)
{
	struct made m = runs_twice(20, 20);
	struct err e;

	(void)state;
	assert_int_equal(read_all(&m, &e), 0);
	SAYS(&m, "1 g1 ?>runnable", "19 g1 runnable>running", "19 heap 2", "19 g1 running>runnable",
	     "19 g1 runnable>running", "19 heap 1", "19 g1 running>runnable");
	done(&m);
}

/* Go's reader refuses it, too. What comes before is told. */
static void time_that_contradicts_numbers_is_refused(void **state)
{
	struct made m = runs_twice(10, 20);
	struct err e;

	(void)state;
	assert_int_equal(read_all(&m, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "time stamps contradict the order of events"));
	SAYS(&m, "1 g1 ?>runnable", "19 g1 runnable>running", "19 heap 2",
	     "19 g1 running>runnable");
	done(&m);
}

/* The goroutine was woken, ran, and waited again for the same: it waited all the time. */
static void a_wakeup_in_vain_is_left_out(void **state)
{
	struct made m = begin("go 1.7 trace");
	struct err e;

	(void)state;
	EVENT1(&m.t, EV1_BATCH, 0, 0);
	EVENT1(&m.t, EV1_FREQUENCY, 1000000000);
	EVENT1(&m.t, EV1_PROC_START, 1, 7);
	EVENT1(&m.t, EV1_GO_CREATE, 1, 1, 0, 0);
	EVENT1(&m.t, EV1_GO_CREATE, 1, 2, 0, 0);
	EVENT1(&m.t, EV1_GO_START_LOCAL, 1, 1);
	EVENT1(&m.t, EV1_GO_BLOCK_RECV, 1, 0);
	for (int in_vain = 1; in_vain >= 0; in_vain--) {
		EVENT1(&m.t, EV1_GO_START_LOCAL, 1, 2);
		EVENT1(&m.t, EV1_GO_UNBLOCK_LOCAL, 1, 1, 0);
		EVENT1(&m.t, EV1_GO_SCHED, 1, 0);
		EVENT1(&m.t, EV1_GO_START_LOCAL, 1, 1);
		if (in_vain)
			EVENT1(&m.t, EV1_FUTILE_WAKEUP, 1);
		EVENT1(&m.t, EV1_GO_BLOCK_RECV, 1, 0);
	}
	assert_int_equal(read_all(&m, &e), 0);
	SAYS(&m, "1 g1 ?>runnable", "2 g2 ?>runnable", "3 g1 runnable>running",
	     "4 g1 running>waiting", "5 g2 runnable>running", "7 g2 running>runnable",
	     "11 g2 runnable>running", "12 g1 waiting>runnable", "13 g2 running>runnable",
	     "14 g1 runnable>running", "15 g1 running>waiting");
	done(&m);
}

/* Each P's event waits for another one's: the last one in the file is the first that may come. */
static void time_does_not_follow_the_square_of_ps(void **state)
{
	enum { PS = 30000 };
	struct made m = begin("go 1.21 trace");
	clock_t start;
	struct err e;

	(void)state;
	EVENT1(&m.t, EV1_BATCH, 0, 0);
	EVENT1(&m.t, EV1_FREQUENCY, 1000000000);
	EVENT1(&m.t, EV1_PROC_START, 1, 1);
	EVENT1(&m.t, EV1_GO_CREATE, 1, 1, 0, 0);
	for (uint64_t p = PS; p > 0; p--) {
		EVENT1(&m.t, EV1_BATCH, p, 10);
		EVENT1(&m.t, EV1_PROC_START, p, p);
		EVENT1(&m.t, EV1_GO_START, PS, 1, p);
		EVENT1(&m.t, EV1_GO_SCHED, 0, 0);
	}
	start = clock();
	assert_int_equal(read_all(&m, &e), 0);
	assert_true(clock() - start < 5 * CLOCKS_PER_SEC);
	assert_int_equal(m.nsaid, NAMES);
	done(&m);
}

/* ---- hostile ones ---- */

/* Goroutines that come out of a system call, and run later or never: such a stretch is kept until that is known. */
static struct made early_stretches(uint64_t n)
{
	struct made m = begin("go 1.22 trace");

	mktrace_clock(&m.t, 1);
	for (uint64_t i = 0; i < n + n / 2; i++) {
		if (i % 2000 == 0)
			mktrace_batch(&m.t, 1, 1, 1 + i * 10);
		if (i < n) {
			EVENT2(&m.t, EV_GO_CREATE_SYSCALL, 1, i + 1);
			EVENT2(&m.t, EV_GO_SYSCALL_END_BLOCKED, 5);
			continue;
		}
		if (i == n)
			EVENT2(&m.t, EV_PROC_STATUS, 0, 0, 1);
		EVENT2(&m.t, EV_GO_START, 1, i - n + 1, 1);
		EVENT2(&m.t, EV_GO_DESTROY, 1);
	}
	return m;
}

/* The caller's. */
static struct prof *profile_of(struct made *m, enum trace_profile_kind kind)
{
	CLEANUP(exectrace_freep) struct exectrace *t = NULL;
	CLEANUP(trace_profile_freep) struct trace_profile *p = NULL;
	struct prof *out = NULL;
	int fd CLEANUP(closep) = file_of(m);
	struct trace_event ev;
	struct err e;

	assert_int_equal(exectrace_open(fd, &t, &e), 0);
	assert_int_equal(trace_profile_new(kind, exectrace_version(t), &p, &e), 0);
	while (exectrace_next(t, &ev, &e) == 1)
		assert_int_equal(trace_profile_event(p, t, &ev, &e), 0);
	assert_int_equal(exectrace_next(t, &ev, &e), 0);
	assert_int_equal(trace_profile_end(p, &out, &e), 0);
	return out;
}

static void first_runs_are_not_looked_for_among_all(void **state)
{
	enum { GOROUTINES = 150000 };
	struct made m = early_stretches(GOROUTINES);
	clock_t start = clock();
	CLEANUP(prof_freep) struct prof *p = profile_of(&m, TRACE_PROFILE_SYSCALL);

	(void)state;
	assert_true(clock() - start < 3 * CLOCKS_PER_SEC);
	/* of those that never run */
	assert_int_equal(prof_sample_at(p, 0).values[1], 5 * GOROUTINES / 2);
	done(&m);
}

/* Goroutine 1 is woken twice: by somebody whose stack is one frame of nothing, and by somebody without one. */
static struct made two_wakings(bool nothing_last)
{
	struct made m = begin("go 1.22 trace");

	mktrace_clock(&m.t, 1);
	mktrace_batch(&m.t, 1, TRACE_NONE, 0);
	mktrace_byte(&m.t, EV_STACKS);
	mktrace_byte(&m.t, EV_STACK);
	mktrace_numbers(&m.t, NUMBERS(7, 1, 0, 0, 0, 0));
	mktrace_batch(&m.t, 1, 1, 1);
	EVENT2(&m.t, EV_PROC_STATUS, 0, 0, 1);
	EVENT2(&m.t, EV_GO_STATUS, 0, 1, 1, 2);
	for (uint64_t i = 0; i < 2; i++) {
		EVENT2(&m.t, EV_GO_BLOCK, 10, 0, 0);
		EVENT2(&m.t, EV_GO_UNBLOCK, 1, 1, 2 * i + 1, (i == 1) == nothing_last ? 7 : 0);
		EVENT2(&m.t, EV_GO_START, 10, 1, 2 * i + 2);
	}
	return m;
}

/* One sample, as go tool trace has it: that frame is there where it was met last. */
static void frames_of_nothing_are_as_met_last(void **state)
{
	(void)state;
	for (unsigned last = 0; last < 2; last++) {
		struct made m = two_wakings(last);
		CLEANUP(prof_freep) struct prof *p = profile_of(&m, TRACE_PROFILE_SCHED);

		assert_int_equal(prof_nsamples(p), 1);
		assert_int_equal(prof_sample_at(p, 0).values[1], 20);
		assert_int_equal(prof_sample_at(p, 0).nlocs, last);
		done(&m);
	}
}

/* Each one is compared with all that go on. */
static void stops_of_one_goroutine_have_a_bound(void **state)
{
	struct made m = begin("go 1.22 trace");
	struct err e;

	(void)state;
	mktrace_clock(&m.t, 1);
	mktrace_batch(&m.t, 1, UINT64_MAX, 0);
	mktrace_byte(&m.t, EV_STRINGS);
	for (uint64_t i = 1; i <= LIMIT_TRACE_STOPS + 1; i++)
		EVENT2(&m.t, EV_STRING, i, 0);
	mktrace_batch(&m.t, 1, 1, 10);
	EVENT2(&m.t, EV_PROC_STATUS, 0, 0, 1);
	EVENT2(&m.t, EV_GO_STATUS, 0, 1, 1, 2);
	for (uint64_t i = 1; i <= LIMIT_TRACE_STOPS + 1; i++)
		EVENT2(&m.t, EV_STW_BEGIN, 1, i, 0);
	assert_int_equal(read_all(&m, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "stopped too many times"));
	done(&m);
}

/* Version 1 has names of up to 1,000,000 bytes, and each event and frame may have one. */
static struct made long_names(uint64_t n)
{
	enum { BYTES = 1000000, FRAMES = 1000 };
	struct made m = begin("go 1.21 trace");

	mktrace_byte(&m.t, EV1_STRING);
	mktrace_numbers(&m.t, NUMBERS(1, BYTES));
	for (int i = 0; i < BYTES; i++)
		mktrace_byte(&m.t, 'x');
	EVENT1(&m.t, EV1_BATCH, 0, 0);
	EVENT1(&m.t, EV1_FREQUENCY, 1000000000);
	mktrace_byte(&m.t, EV1_STACK | 3 << 6);
	mktrace_numbers(&m.t, NUMBERS(2 + 4 * FRAMES + 1, 1, FRAMES));
	for (int i = 0; i < FRAMES; i++)
		mktrace_numbers(&m.t, NUMBERS(1, 1, 1, (uint64_t)i % 100));
	EVENT1(&m.t, EV1_PROC_START, 1, 1);
	EVENT1(&m.t, EV1_GO_CREATE, 1, 1, 1, 0);
	EVENT1(&m.t, EV1_GO_START_LOCAL, 1, 1);
	for (uint64_t i = 0; i < n; i++) {
		EVENT1(&m.t, EV1_REGION, 1, 0, 0, 1, 1);
		EVENT1(&m.t, EV1_REGION, 1, 0, 1, 1, 1);
	}
	EVENT1(&m.t, EV1_GO_BLOCK_RECV, 1, 1);
	EVENT1(&m.t, EV1_GO_UNBLOCK_LOCAL, 1, 1, 0);
	EVENT1(&m.t, EV1_GO_START_LOCAL, 1, 1);
	return m;
}

static void long_names_are_not_looked_at_each_time(void **state)
{
	CLEANUP(exectrace_freep) struct exectrace *t = NULL;
	CLEANUP(trace_summary_freep) struct trace_summary *s = NULL;
	struct made m = long_names(10000);
	int fd CLEANUP(closep) = file_of(&m);
	clock_t start = clock();
	CLEANUP(prof_freep) struct prof *p = profile_of(&m, TRACE_PROFILE_SYNC);
	struct trace_event ev;
	struct err e;

	(void)state;
	assert_true(clock() - start < CLOCKS_PER_SEC);
	assert_int_equal(prof_sample_at(p, 0).values[1], 1);
	assert_int_equal(exectrace_open(fd, &t, &e), 0);
	assert_int_equal(trace_summary_new(&s, &e), 0);
	while (exectrace_next(t, &ev, &e) == 1)
		assert_int_equal(trace_summary_event(s, t, &ev, false, &e), 0);
	assert_int_equal(s->regions.all.at[0].q.n, 10000);
	assert_true(clock() - start < 2 * CLOCKS_PER_SEC);
	done(&m);
}

/* ---- all versions ---- */

/* No strict part of a trace is taken for the whole, or read past its end; what comes before is the same. */
static void every_truncation_is_told(void **state)
{
	struct made kinds[] = { relay(3), blocked_call() };

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
		struct made *m = &kinds[k];
		size_t whole, batches = 0;
		struct err e;

		mktrace_end_batch(&m->t);
		whole = m->t.bytes.n;
		for (size_t n = whole - 1; n > 0; n--) {
			m->t.bytes.n = n;
			batches += !read_all(m, &e); /* cut between batches, version 2 is whole */
			assert_true(e.msg[0] || batches);
		}
		assert_true(k || batches <= 3);
		done(m);
	}
}

static void headers_are_told_apart(void **state)
{
	static const struct {
		const char *header;
		int ret;
	} of[] = { { "go 1.4 trace", -ENOTSUP },  { "go 1.6 trace", -ENOTSUP },
		   { "go 1.99 trace", -ENOTSUP }, { "go 1.222 trace", -ENOTSUP },
		   { "go 1.x trace", -EBADMSG },  { "go 1.22 tracex", -EBADMSG },
		   { "go 2.22 trace", -EBADMSG }, { "go1.7 heap dump", -EBADMSG } };
	struct err e;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(of); i++) {
		struct made m = begin(of[i].header);

		assert_int_equal(read_all(&m, &e), of[i].ret);
		done(&m);
	}
}

/* Small and large numbers, those that share a place among the last ones, and one that comes back. */
static void numbers_are_found_again(void **state)
{
	static const uint64_t of[] = {
		0, 1, 63, 64, IDS_LOW - 1, IDS_LOW, IDS_LOW + IDS_RECENT, 1ull << 40, UINT64_MAX
	};
	struct ids x = { .nlow = 0 };
	uint64_t v;

	(void)state;
	for (uint64_t round = 0; round < 3; round++) {
		for (size_t i = 0; i < ARRAY_LEN(of); i++) {
			assert_int_equal(ids_get(&x, of[i], &v), false);
			assert_true(ids_put(&x, of[i], i + round));
		}
		for (size_t i = 0; i < 2 * ARRAY_LEN(of); i++) {
			assert_true(ids_get(&x, of[i % ARRAY_LEN(of)], &v));
			assert_int_equal(v, i % ARRAY_LEN(of) + round);
		}
		assert_true(ids_put(&x, of[6], 77) && ids_get(&x, of[6], &v) && v == 77);
		for (size_t i = 0; i < ARRAY_LEN(of); i++)
			ids_del(&x, of[i]);
	}
	ids_fini(&x);
}

static void a_heap_gives_the_least_first(void **state)
{
	struct heap h = { .items = { .n = 0 } };
	struct heap_item last = { .key = INT64_MIN };
	uint64_t rng = 7;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		rng = rng * 6364136223846793005ull + 1442695040888963407ull;
		assert_true(heap_push(&h, (struct heap_item){ (int64_t)(rng >> 56), i, 0 }));
	}
	for (int i = 0; i < 1000; i++) {
		struct heap_item it = heap_pop(&h);

		assert_true(it.key > last.key || (it.key == last.key && it.id > last.id));
		last = it;
	}
	assert_int_equal(h.items.n, 0);
	heap_fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sequence_numbers_beat_time_stamps),
		cmocka_unit_test(time_does_not_follow_the_square_of_threads),
		cmocka_unit_test(others_go_on_by_time),
		cmocka_unit_test(a_start_that_never_can_be_is_told),
		cmocka_unit_test(what_a_table_does_not_have_is_told),
		cmocka_unit_test(generations_come_in_order),
		cmocka_unit_test(a_cut_generation_gives_its_events),
		cmocka_unit_test(a_trace_without_a_rate_is_in_ticks),
		cmocka_unit_test(a_system_call_ends_when_it_ended),
		cmocka_unit_test(a_late_end_comes_in_time),
		cmocka_unit_test(an_end_before_the_call_blocked_is_refused),
		cmocka_unit_test(numbers_decide_where_time_does_not),
		cmocka_unit_test(time_that_contradicts_numbers_is_refused),
		cmocka_unit_test(a_wakeup_in_vain_is_left_out),
		cmocka_unit_test(time_does_not_follow_the_square_of_ps),
		cmocka_unit_test(first_runs_are_not_looked_for_among_all),
		cmocka_unit_test(frames_of_nothing_are_as_met_last),
		cmocka_unit_test(stops_of_one_goroutine_have_a_bound),
		cmocka_unit_test(long_names_are_not_looked_at_each_time),
		cmocka_unit_test(every_truncation_is_told),
		cmocka_unit_test(headers_are_told_apart),
		cmocka_unit_test(numbers_are_found_again),
		cmocka_unit_test(a_heap_gives_the_least_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
