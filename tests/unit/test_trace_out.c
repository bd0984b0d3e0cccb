/*
 * tests/unit/test_trace_out.c - what is made of execution traces that real programs seldom write: hostile
 * ones take no more than linear room, and events that contradict each other fit on tracks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs those four first. */
#include <cmocka.h>
#include <malloc.h>
#include <unistd.h>
#include <zlib.h>

#include "base/vec.h"
#include "cli/trace/trace_events.h"
#include "cli/trace/trace_to_perfetto.h"
#include "ingest/exectrace/v1/wire1.h"
#include "mktrace.h"
#include "output/perfetto.h"
#include "perfetto.pb-c.h"

static struct err e;

static struct exectrace *open_made(struct mktrace *m, int *fd)
{
	struct exectrace *t;

	*fd = mktrace_fd(m);
	assert_int_equal(exectrace_open(*fd, &t, &e), 0);
	return t;
}

/* ---- hostile traces ---- */

/* Regions with the longest name that there may be, none of which ends. */
static struct mktrace long_names(uint64_t regions)
{
	struct mktrace m = mktrace("go 1.21 trace");

	mktrace_string(&m, EV1_STRING, 1, 'x', 1000000);
	EVENT1(&m, EV1_BATCH, 0, 0);
	EVENT1(&m, EV1_FREQUENCY, 1000000000);
	EVENT1(&m, EV1_GOMAXPROCS, 1, 1, 0);
	EVENT1(&m, EV1_PROC_START, 1, 1);
	EVENT1(&m, EV1_GO_CREATE, 1, 1, 0, 0);
	EVENT1(&m, EV1_GO_START, 1, 1, 1);
	for (uint64_t i = 0; i < regions; i++)
		EVENT1(&m, EV1_REGION, 1, 0, 0, 1, 0);
	return m;
}

/* Slices that are open before the time that is asked for share their names. */
static void room_does_not_follow_names_times_slices(void **state)
{
	enum { REGIONS = 100000 };
	struct mktrace m = long_names(REGIONS);
	CLEANUP(trace_to_perfetto_freep) struct trace_to_perfetto *p = NULL;
	CLEANUP(exectrace_freep) struct exectrace *t = NULL;
	FILE *f = fopen("/dev/null", "w");
	struct trace_event ev;
	size_t before;
	int fd CLEANUP(closep) = -1, ret;

	(void)state;
	assert_non_null(f);
	t = open_made(&m, &fd);
	assert_int_equal(trace_to_perfetto_new(f, "test", &p, &e), 0);
	before = mallinfo2().uordblks;
	while ((ret = exectrace_next(t, &ev, &e)) > 0)
		assert_int_equal(trace_to_perfetto_event(p, t, &ev, 0, true, &e), 0);
	assert_int_equal(ret, 0);
	assert_true(mallinfo2().uordblks - before < (size_t)REGIONS * 512);
	fclose(f);
	mktrace_done(&m);
}

/* A stack of 1,000 names of 1 KiB each, in a line. */
static void a_line_has_a_bound(void **state)
{
	enum { FRAMES = 1000 };
	struct mktrace m = mktrace("go 1.21 trace");
	CLEANUP(exectrace_freep) struct exectrace *t = NULL;
	CLEANUP(freep) char *lines = NULL;
	uint64_t stack[2 + 4 * FRAMES] = { 1, FRAMES };
	struct trace_event ev;
	size_t n = 0;
	FILE *f = open_memstream(&lines, &n);
	int fd CLEANUP(closep) = -1;

	(void)state;
	for (size_t i = 2; i < ARRAY_LEN(stack); i++)
		stack[i] = 1;
	mktrace_string(&m, EV1_STRING, 1, 'x', 1024);
	EVENT1(&m, EV1_BATCH, 0, 0);
	EVENT1(&m, EV1_FREQUENCY, 1000000000);
	mktrace_event1(&m, EV1_STACK, stack, ARRAY_LEN(stack));
	EVENT1(&m, EV1_PROC_START, 1, 1);
	EVENT1(&m, EV1_GO_CREATE, 1, 1, 0, 1);
	t = open_made(&m, &fd);
	while (exectrace_next(t, &ev, &e) > 0)
		trace_events_put(f, t, &ev, 0);
	fclose(f);
	assert_non_null(strstr(lines, " more\""));
	assert_in_range(n, 64 << 10, 128 << 10);
	mktrace_done(&m);
}

/* ---- tracks of a Perfetto trace ---- */

enum { THREAD_3 = 3 << 4 | 4, P_2 = 2 << 4 | 2, G_1 = 1 << 4 | 5 };

struct track_events {
	uint64_t track;
	unsigned told, instants;
	char said[256]; /* "(" for each slice that begins, ")" for one that ends */
};

static void see_packets(const ProtobufCBinaryData *block, struct track_events *of)
{
	static uint8_t bytes[1 << 20];
	uLongf n = sizeof(bytes);
	Goprof__Perfetto__Trace *t;

	assert_int_equal(uncompress(bytes, &n, block->data, block->len), Z_OK);
	t = goprof__perfetto__trace__unpack(NULL, n, bytes);
	assert_non_null(t);
	for (size_t i = 0; i < t->n_packet; i++) {
		const Goprof__Perfetto__TrackEvent *ev = t->packet[i]->track_event;
		size_t len = strlen(of->said);

		const Goprof__Perfetto__TrackDescriptor *d = t->packet[i]->track_descriptor;

		of->told += d && d->uuid == of->track;
		of->instants += ev && ev->track_uuid == of->track && ev->type == PERFETTO_INSTANT;
		if (!ev || ev->track_uuid != of->track || len + 1 == sizeof(of->said))
			continue;
		if (ev->type == PERFETTO_BEGIN || ev->type == PERFETTO_END)
			of->said[len] = ev->type == PERFETTO_BEGIN ? '(' : ')';
	}
	goprof__perfetto__trace__free_unpacked(t, NULL);
}

static void perfetto_of(struct mktrace *m, struct track_events *of)
{
	CLEANUP(trace_to_perfetto_freep) struct trace_to_perfetto *p = NULL;
	CLEANUP(exectrace_freep) struct exectrace *t = NULL;
	CLEANUP(freep) char *bytes = NULL;
	Goprof__Perfetto__Trace *out;
	struct trace_event ev;
	size_t n = 0;
	FILE *f = open_memstream(&bytes, &n);
	int fd CLEANUP(closep) = -1, ret;

	t = open_made(m, &fd);
	assert_int_equal(trace_to_perfetto_new(f, "test", &p, &e), 0);
	while ((ret = exectrace_next(t, &ev, &e)) > 0)
		assert_int_equal(trace_to_perfetto_event(p, t, &ev, 0, false, &e), 0);
	assert_int_equal(ret, 0);
	assert_int_equal(trace_to_perfetto_end(p, &e), 0);
	fclose(f);
	out = goprof__perfetto__trace__unpack(NULL, n, (const uint8_t *)bytes);
	assert_non_null(out);
	for (size_t i = 0; i < out->n_packet; i++)
		see_packets(&out->packet[i]->compressed_packets, of);
	goprof__perfetto__trace__free_unpacked(out, NULL);
}

/*
 * The system call of goroutine 1 lasts, so its thread loses P 2; it is told with P 1 and goroutine 2 before
 * the event that ends the call, whose own time is later.
 */
static struct mktrace thread_goes_on_early(void)
{
	struct mktrace m = mktrace("go 1.21 trace");

	EVENT1(&m, EV1_BATCH, 2, 0);
	EVENT1(&m, EV1_FREQUENCY, 1000000000);
	EVENT1(&m, EV1_GOMAXPROCS, 1, 3, 0);
	EVENT1(&m, EV1_PROC_START, 1, 3);
	EVENT1(&m, EV1_GO_CREATE, 1, 1, 0, 0);
	EVENT1(&m, EV1_GO_CREATE, 1, 2, 0, 0);
	EVENT1(&m, EV1_GO_START, 1, 1, 1);
	EVENT1(&m, EV1_GO_SYSCALL, 1, 0);
	EVENT1(&m, EV1_GO_SYS_BLOCK, 1);
	EVENT1(&m, EV1_PROC_STOP, 1);
	EVENT1(&m, EV1_BATCH, 1, 20);
	EVENT1(&m, EV1_PROC_START, 1, 3);
	EVENT1(&m, EV1_GO_START, 1, 2, 1);
	EVENT1(&m, EV1_GO_SYS_EXIT, 10, 1, 2, 30);
	EVENT1(&m, EV1_GO_SCHED, 10, 0);
	EVENT1(&m, EV1_GO_START, 1, 1, 3);
	EVENT1(&m, EV1_GO_END, 1);
	return m;
}

static void a_thread_has_one_slice_at_a_time(void **state)
{
	struct mktrace m = thread_goes_on_early();
	struct track_events thread = { .track = THREAD_3 }, p = { .track = P_2 };

	(void)state;
	perfetto_of(&m, &thread);
	/* goroutine 1, its call, goroutine 2, goroutine 1: none lies in another one */
	assert_string_equal(thread.said, "()()()()");
	perfetto_of(&m, &p);
	assert_string_equal(p.said, "()");
	mktrace_done(&m);
}

/* The last sample of goroutine 1 is on its P: the track of one that has ended would be told again, without its name. */
static void a_late_sample_tells_no_track_again(void **state)
{
	struct mktrace m = mktrace("go 1.21 trace");
	struct track_events g = { .track = G_1 }, p = { .track = P_2 };

	(void)state;
	EVENT1(&m, EV1_BATCH, 2, 0);
	EVENT1(&m, EV1_FREQUENCY, 1000000000);
	EVENT1(&m, EV1_GOMAXPROCS, 1, 3, 0);
	EVENT1(&m, EV1_PROC_START, 1, 3);
	EVENT1(&m, EV1_GO_CREATE, 1, 1, 0, 0);
	EVENT1(&m, EV1_GO_START, 1, 1, 1);
	EVENT1(&m, EV1_GO_END, 10);
	EVENT1(&m, EV1_GO_CREATE, 10, 2, 0, 0);
	EVENT1(&m, EV1_CPU_SAMPLE, 0, 8, 2, 1, 0);
	EVENT1(&m, EV1_CPU_SAMPLE, 0, 16, 2, 1, 0);
	perfetto_of(&m, &g);
	perfetto_of(&m, &p);
	assert_true(g.told == 1 && g.instants == 1);
	assert_int_equal(p.instants, 3); /* two that are created, and the late one */
	mktrace_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(room_does_not_follow_names_times_slices),
		cmocka_unit_test(a_line_has_a_bound),
		cmocka_unit_test(a_thread_has_one_slice_at_a_time),
		cmocka_unit_test(a_late_sample_tells_no_track_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
