/*
 * tests/unit/test_trace_cut.c - a part of an execution trace is a trace: what goes on where it begins is told
 * there, numbers count from there on, and what is told behind its end alone is in it. The e2e test trace_out
 * compares parts of real traces with the whole, and has them read by Go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs those four first. */
#include <cmocka.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "ingest/exectrace/exectrace.h"
#include "ingest/exectrace/v2/generation.h"
#include "ingest/exectrace/v1/wire1.h"
#include "mktrace.h"

static struct err e;

/* ---- parts ---- */

struct part {
	int fd;
	char *bytes;
	size_t n;
	int64_t from_ns, to_ns;
};

static void part_fini(struct part *p)
{
	closep(&p->fd);
	free(p->bytes);
}

/* What exectrace_cut() makes of a time, and what it answers in the end. */
static int cut(int fd, int64_t from_ns, int64_t to_ns, struct part *p)
{
	CLEANUP(exectrace_freep) struct exectrace *t = NULL;
	FILE *f = open_memstream(&p->bytes, &p->n);
	struct trace_event ev;
	int ret;

	assert_non_null(f);
	assert_int_equal(exectrace_open(fd, &t, &e), 0);
	assert_int_equal(exectrace_cut(t, f, from_ns, to_ns, &e), 0);
	while (!exectrace_cut_is_over(t) && exectrace_next(t, &ev, &e) > 0)
		;
	ret = exectrace_cut_finish(t, &p->from_ns, &p->to_ns, &e);
	fclose(f);
	p->fd = memfd_create("part", MFD_CLOEXEC);
	assert_int_equal(write(p->fd, p->bytes, p->n), p->n);
	return ret;
}

/* ---- what a trace says ---- */

enum { SAID = 8192 };

static void say(char *to, const struct trace_event *ev)
{
	static const char *const states[] = { "?",	 "none",    "runnable",
					      "running", "syscall", "waiting" };
	static const char *const procs[] = { "?", "none", "running", "idle" };
	const struct trace_transition *tr = &ev->transition;
	size_t at = strlen(to), left = SAID - at;

	to += at;
	if (ev->kind == TRACE_GOROUTINE)
		snprintf(to, left, "%lld m%lld g%lld %s>%s\n", (long long)ev->time_ns,
			 (long long)ev->m, (long long)tr->id, states[tr->from], states[tr->to]);
	else if (ev->kind == TRACE_PROC)
		snprintf(to, left, "%lld m%lld p%lld %s>%s\n", (long long)ev->time_ns,
			 (long long)ev->m, (long long)tr->id, procs[tr->from], procs[tr->to]);
	else if (ev->kind >= TRACE_RANGE_BEGIN && ev->kind <= TRACE_RANGE_END)
		snprintf(to, left, "%lld %s %.*s\n", (long long)ev->time_ns,
			 ev->kind == TRACE_RANGE_BEGIN	? "begin" :
			 ev->kind == TRACE_RANGE_ACTIVE ? "active" :
							  "end",
			 (int)ev->range.name.len, ev->range.name.at);
	else if (ev->kind == TRACE_CPU_SAMPLE)
		snprintf(to, left, "%lld sample\n", (long long)ev->time_ns);
}

static void says(int fd, const char *want)
{
	CLEANUP(exectrace_freep) struct exectrace *t = NULL;
	char said[SAID] = "";
	struct trace_event ev;
	int ret;

	assert_int_equal(exectrace_open(fd, &t, &e), 0);
	while ((ret = exectrace_next(t, &ev, &e)) > 0)
		say(said, &ev);
	assert_string_equal(said, want);
	assert_int_equal(ret, 0);
}

/* ---- one generation ---- */

enum { RUNNABLE = 1, RUNNING, SYSCALL, WAITING };
enum { P_RUNNING = 1, P_IDLE };

/* Thread 1: what goes on at 50, and ends before 100. */
static void busy_thread(struct mktrace *m)
{
	mktrace_batch(m, 1, 1, 10);
	EVENT2(m, EV_PROC_STATUS, 0, 0, P_RUNNING);
	EVENT2(m, EV_GO_STATUS, 0, 1, 1, RUNNING);
	EVENT2(m, EV_PROC_STATUS, 0, 2, P_IDLE);
	EVENT2(m, EV_GO_STATUS, 0, 3, UINT64_MAX, WAITING);
	EVENT2(m, EV_GO_UNBLOCK, 2, 3, 1, 0);
	EVENT2(m, EV_GC_BEGIN, 1, 7, 0);
	EVENT2(m, EV_GC_SWEEP_BEGIN, 1, 0);
	EVENT2(m, EV_GC_ASSIST_BEGIN, 1, 0);
	EVENT2(m, EV_STW_BEGIN, 1, 1, 0); /* at 16 */
	EVENT2(m, EV_STW_END, 44);	  /* at 60 */
	EVENT2(m, EV_GC_ASSIST_END, 1);
	EVENT2(m, EV_GC_SWEEP_END, 1, 0, 0);
	EVENT2(m, EV_GC_END, 1, 8);
	EVENT2(m, EV_GO_STOP, 1, 0, 0);
	EVENT2(m, EV_GO_START, 1, 3, 2);
	EVENT2(m, EV_GO_BLOCK, 1, 0, 0); /* at 66 */
	/* Who did nothing before 100 is told only now. */
	EVENT2(m, EV_GO_STATUS, 54, 4, UINT64_MAX, WAITING);
	EVENT2(m, EV_PROC_STATUS, 0, 3, P_IDLE);
	EVENT2(m, EV_GO_UNBLOCK, 0, 4, 1, 0);
	EVENT2(m, EV_GO_STATUS, 0, 3, UINT64_MAX, WAITING);
}

static void calling_thread(struct mktrace *m)
{
	mktrace_batch(m, 1, 2, 10);
	EVENT2(m, EV_PROC_STATUS, 0, 1, P_RUNNING);
	EVENT2(m, EV_GO_STATUS, 0, 2, 2, RUNNING);
	EVENT2(m, EV_GO_SYSCALL_BEGIN, 5, 1, 0); /* at 15 */
	EVENT2(m, EV_GO_SYSCALL_END, 55);
	EVENT2(m, EV_GO_SYSCALL_BEGIN, 1, 2, 0);
}

static void tables(struct mktrace *m, uint64_t gen, uint64_t string)
{
	mktrace_clock(m, gen);
	mktrace_batch(m, gen, UINT64_MAX, 10);
	mktrace_byte(m, EV_STRINGS);
	mktrace_string(m, EV_STRING, string, 'x', 3);
	mktrace_batch(m, gen, UINT64_MAX, 10);
	mktrace_byte(m, EV_CPU_SAMPLES);
	EVENT2(m, EV_CPU_SAMPLE, 20, 1, 0, 1, 0);
	EVENT2(m, EV_CPU_SAMPLE, 80, 1, 0, 1, 0);
	EVENT2(m, EV_CPU_SAMPLE, 110, 1, 0, 1, 0);
}

static void states_are_told_where_it_begins(void **state)
{
	struct mktrace m = mktrace("go 1.22 trace");
	CLEANUP(part_fini) struct part p = { .fd = -1 };
	int fd CLEANUP(closep) = -1;

	(void)state;
	tables(&m, 1, 1);
	busy_thread(&m);
	calling_thread(&m);
	fd = mktrace_fd(&m);
	assert_int_equal(cut(fd, 40, 90, &p), 0); /* the first event is at 10 */
	assert_int_equal(p.from_ns, 60);
	assert_int_equal(p.to_ns, 71);
	says(p.fd, "41 m1 p0 ?>running\n42 active GC incremental sweep\n43 m1 g1 ?>running\n"
		   "44 active GC mark assist\n45 begin stop-the-world (xxx)\n46 m1 p2 ?>idle\n"
		   "47 m1 g3 ?>runnable\n48 m2 p1 ?>running\n49 m2 g2 ?>syscall\n"
		   "50 active GC concurrent mark phase\n"
		   "60 end stop-the-world (xxx)\n61 end GC mark assist\n"
		   "62 end GC incremental sweep\n63 end GC concurrent mark phase\n"
		   "64 m1 g1 running>runnable\n65 m1 g3 runnable>running\n"
		   "66 m1 g3 running>waiting\n70 m2 g2 syscall>running\n"
		   "71 m2 g2 running>syscall\n72 m1 g4 ?>waiting\n73 m1 p3 ?>idle\n80 sample\n");
	mktrace_done(&m);
}

/* ---- several ---- */

/* What goes on from generation 1 to 2 is told in 2 once more, at 220; threads pass on goroutines and Ps. */
static struct mktrace two_generations(const char *header)
{
	struct mktrace m = mktrace(header);

	tables(&m, 1, 1);
	mktrace_batch(&m, 1, 1, 10);
	EVENT2(&m, EV_PROC_STATUS, 0, 0, P_RUNNING);
	EVENT2(&m, EV_GO_STATUS, 0, 1, 1, RUNNING);
	EVENT2(&m, EV_GO_STATUS, 0, 3, UINT64_MAX, WAITING);
	EVENT2(&m, EV_GO_STATUS, 0, 4, UINT64_MAX, WAITING);
	EVENT2(&m, EV_GC_BEGIN, 0, 1, 0);
	EVENT2(&m, EV_GC_ASSIST_BEGIN, 0, 0);
	EVENT2(&m, EV_STW_BEGIN, 0, 1, 0);
	tables(&m, 2, 5);
	mktrace_batch(&m, 2, 1, 200);
	EVENT2(&m, EV_PROC_STATUS, 0, 0, P_RUNNING);
	EVENT2(&m, EV_GO_STATUS, 0, 1, 1, RUNNING);
	EVENT2(&m, EV_GO_STATUS, 2, 3, UINT64_MAX, WAITING);
	EVENT2(&m, EV_GO_UNBLOCK, 8, 3, 1, 0);
	EVENT2(&m, EV_GC_ACTIVE, 10, 2);
	EVENT2(&m, EV_GC_ASSIST_ACTIVE, 0, 1);
	EVENT2(&m, EV_STW_END, 5); /* at 225 */
	EVENT2(&m, EV_GC_ASSIST_END, 1);
	EVENT2(&m, EV_GC_END, 1, 3);
	EVENT2(&m, EV_GO_SYSCALL_BEGIN, 3, 1, 0); /* at 230 */
	EVENT2(&m, EV_GO_SYSCALL_END_BLOCKED, 30);
	mktrace_batch(&m, 2, 2, 210);
	EVENT2(&m, EV_PROC_STEAL, 30, 0, 2, 1); /* at 240 */
	EVENT2(&m, EV_PROC_START, 1, 0, 3);
	EVENT2(&m, EV_GO_START, 1, 3, 2);
	EVENT2(&m, EV_GO_SWITCH, 8, 4, 1); /* at 250 */
	mktrace_batch(&m, 2, 3, 205);
	EVENT2(&m, EV_GO_STATUS, 0, 4, UINT64_MAX, WAITING);
	mktrace_end_batch(&m);
	return m;
}

static void numbers_count_from_where_it_begins(void **state)
{
	struct mktrace m = two_generations("go 1.23 trace");
	CLEANUP(part_fini) struct part p = { .fd = -1 }, q = { .fd = -1 };
	int fd CLEANUP(closep) = -1;

	(void)state;
	fd = mktrace_fd(&m);
	assert_int_equal(cut(fd, 214, 244, &p), 0);
	says(p.fd, "215 m1 p0 ?>running\n216 m1 g1 ?>running\n217 active GC mark assist\n"
		   "218 begin stop-the-world (xxx)\n219 m1 g3 ?>runnable\n220 m1 g4 ?>waiting\n"
		   "221 active GC concurrent mark phase\n225 end stop-the-world (xxx)\n"
		   "226 end GC mark assist\n227 end GC concurrent mark phase\n"
		   "230 m1 g1 running>syscall\n240 m2 p0 running>idle\n"
		   "241 m2 p0 idle>running\n242 m2 g3 runnable>running\n");
	assert_int_equal(cut(fd, 234, INT64_MAX, &q), 0);
	says(q.fd, "235 m1 p0 ?>running\n236 m1 g1 ?>syscall\n237 m1 g3 ?>runnable\n"
		   "238 m1 g4 ?>waiting\n240 m2 p0 running>idle\n241 m2 p0 idle>running\n"
		   "242 m2 g3 runnable>running\n250 m2 g4 waiting>runnable\n"
		   "251 m2 g3 running>waiting\n252 m2 g4 runnable>running\n"
		   "260 m1 g1 syscall>runnable\n");
	mktrace_done(&m);
}

/*
 * Goroutine 3 starts at 30, on thread 2, though what makes it runnable is noted at 70, on thread 1: that start is told
 * behind it. Goroutine 4 is what happens between them.
 */
static struct mktrace contradicted(void)
{
	struct mktrace m = mktrace("go 1.23 trace");

	mktrace_clock(&m, 1);
	mktrace_batch(&m, 1, 1, 10);
	EVENT2(&m, EV_PROC_STATUS, 0, 0, P_RUNNING);
	EVENT2(&m, EV_GO_STATUS, 0, 1, 1, RUNNING);
	EVENT2(&m, EV_GO_STATUS, 0, 3, UINT64_MAX, WAITING);
	EVENT2(&m, EV_GO_STATUS, 0, 4, UINT64_MAX, WAITING);
	EVENT2(&m, EV_GO_UNBLOCK, 46, 4, 1, 0); /* at 56 */
	EVENT2(&m, EV_GO_UNBLOCK, 14, 3, 1, 0); /* at 70 */
	EVENT2(&m, EV_GO_STOP, 30, 0, 0);	/* at 100 */
	mktrace_batch(&m, 1, 2, 20);
	EVENT2(&m, EV_PROC_STATUS, 0, 1, P_RUNNING);
	EVENT2(&m, EV_GO_START, 10, 3, 2); /* at 30 */
	EVENT2(&m, EV_GO_BLOCK, 3, 0, 0);
	EVENT2(&m, EV_GO_START, 5, 4, 2);
	mktrace_end_batch(&m);
	return m;
}

static void what_had_to_wait_stays_behind_the_beginning(void **state)
{
	struct mktrace m = contradicted();
	CLEANUP(part_fini) struct part p = { .fd = -1 }, q = { .fd = -1 };
	int fd CLEANUP(closep) = mktrace_fd(&m);

	(void)state;
	says(fd, "10 m1 p0 ?>running\n11 m1 g1 ?>running\n12 m1 g3 ?>waiting\n13 m1 g4 ?>waiting\n"
		 "20 m2 p1 ?>running\n56 m1 g4 waiting>runnable\n70 m1 g3 waiting>runnable\n"
		 "71 m2 g3 runnable>running\n72 m2 g3 running>waiting\n73 m2 g4 runnable>running\n"
		 "100 m1 g1 running>runnable\n");
	/* What it waits for is in the cut: the trace counts from 1 on. */
	assert_int_equal(cut(fd, 49, INT64_MAX, &p), 0);
	assert_int_equal(p.from_ns, 56);
	says(p.fd,
	     "50 m1 p0 ?>running\n51 m1 g1 ?>running\n52 m1 g3 ?>waiting\n53 m1 g4 ?>waiting\n"
	     "54 m2 p1 ?>running\n56 m1 g4 waiting>runnable\n70 m1 g3 waiting>runnable\n"
	     "71 m2 g3 runnable>running\n72 m2 g3 running>waiting\n"
	     "73 m2 g4 runnable>running\n100 m1 g1 running>runnable\n");
	/* And it is not. */
	assert_int_equal(cut(fd, 70, INT64_MAX, &q), 0);
	assert_int_equal(q.from_ns, 71);
	says(q.fd,
	     "71 m1 p0 ?>running\n72 m1 g1 ?>running\n73 m1 g3 ?>runnable\n"
	     "74 m1 g4 ?>runnable\n75 m2 p1 ?>running\n76 m2 g3 runnable>running\n77 m2 g3 running>waiting\n"
	     "78 m2 g4 runnable>running\n100 m1 g1 running>runnable\n");
	mktrace_done(&m);
}

/* Thread 1 notes in generation 2 from 200 on, while thread 3 does so in 1 up to 230. */
static void so_does_a_generation_that_began_before(void **state)
{
	struct mktrace m = mktrace("go 1.23 trace");
	CLEANUP(part_fini) struct part p = { .fd = -1 };
	int fd CLEANUP(closep) = -1;

	(void)state;
	mktrace_clock(&m, 1);
	mktrace_batch(&m, 1, 3, 10);
	EVENT2(&m, EV_PROC_STATUS, 0, 2, P_RUNNING);
	EVENT2(&m, EV_GO_STATUS, 0, 5, 3, RUNNING);
	EVENT2(&m, EV_GO_STOP, 220, 0, 0);
	mktrace_batch(&m, 1, 1, 20);
	EVENT2(&m, EV_PROC_STATUS, 0, 0, P_RUNNING);
	EVENT2(&m, EV_GO_STATUS, 0, 1, 1, RUNNING);
	mktrace_clock(&m, 2);
	mktrace_batch(&m, 2, 1, 200);
	EVENT2(&m, EV_PROC_STATUS, 0, 0, P_RUNNING);
	EVENT2(&m, EV_GO_STATUS, 0, 1, 1, RUNNING);
	EVENT2(&m, EV_GO_STOP, 50, 0, 0);
	fd = mktrace_fd(&m);
	assert_int_equal(cut(fd, 230, INT64_MAX, &p), 0);
	says(p.fd,
	     "231 m3 p2 ?>running\n232 m3 g5 ?>runnable\n233 m1 p0 ?>running\n234 m1 g1 ?>running\n"
	     "235 m1 p0 running>running\n236 m1 g1 running>running\n"
	     "250 m1 g1 running>runnable\n");
	mktrace_done(&m);
}

/* A whole generation stays as it is, byte by byte. */
static void whole_generations_are_copied(void **state)
{
	struct mktrace m = two_generations("go 1.23 trace");
	CLEANUP(part_fini) struct part all = { .fd = -1 };
	int fd CLEANUP(closep) = mktrace_fd(&m);

	(void)state;
	assert_int_equal(cut(fd, 0, INT64_MAX, &all), 0);
	assert_int_equal(all.n, m.bytes.n);
	assert_memory_equal(all.bytes, m.bytes.at, all.n);
	mktrace_done(&m);
}

/* What comes behind an event that cannot be is not in it, and all before it is. */
static void what_breaks_off_is_cut_there(void **state)
{
	struct mktrace m = mktrace("go 1.22 trace");
	CLEANUP(part_fini) struct part p = { .fd = -1 }, none = { .fd = -1 };
	int fd CLEANUP(closep) = -1;

	(void)state;
	tables(&m, 1, 1);
	mktrace_batch(&m, 1, 1, 10);
	EVENT2(&m, EV_PROC_STATUS, 0, 0, P_RUNNING);
	EVENT2(&m, EV_GO_STATUS, 0, 1, 1, RUNNING);
	EVENT2(&m, EV_GO_STOP, 40, 0, 0);
	EVENT2(&m, EV_GO_STOP, 10, 0, 0); /* nobody runs */
	fd = mktrace_fd(&m);
	assert_int_equal(cut(fd, 30, 200, &p), 0);
	says(p.fd,
	     "31 m1 p0 ?>running\n32 m1 g1 ?>running\n50 m1 g1 running>runnable\n80 sample\n110 sample\n");
	/* To its end a generation is there wholly, or not. */
	assert_int_equal(cut(fd, 0, INT64_MAX, &none), -ENOENT);
	mktrace_done(&m);
}

/* ---- where goroutines wait ---- */

/* The address at which a goroutine is when the trace begins; 0: not told. */
static uint64_t begins_at(int fd, int64_t g)
{
	CLEANUP(exectrace_freep) struct exectrace *t = NULL;
	struct trace_event ev;

	assert_int_equal(exectrace_open(fd, &t, &e), 0);
	while (exectrace_next(t, &ev, &e) > 0) {
		uint32_t stack = ev.transition.stack;

		if (ev.kind == TRACE_GOROUTINE && ev.transition.id == g)
			return stack ? exectrace_frame(t, stack, 0).pc : 0;
	}
	fail_msg("goroutine %lld is not told", (long long)g);
	return 0;
}

/* At 60: 1 runs, 2 waits where it blocked, 3 is in a system call, 4 waits as was told, 5 as is not told. */
static struct mktrace waiting(const char *header)
{
	struct mktrace m = mktrace(header);

	tables(&m, 1, 1);
	mktrace_batch(&m, 1, UINT64_MAX, 10);
	mktrace_byte(&m, EV_STACKS);
	for (uint64_t i = 1; i <= 4; i++)
		EVENT2(&m, EV_STACK, i, 1, 0x1000 * i, 1, 1, 7);
	mktrace_batch(&m, 1, 1, 10);
	EVENT2(&m, EV_PROC_STATUS, 0, 0, P_RUNNING);
	EVENT2(&m, EV_GO_STATUS, 0, 2, 1, RUNNING);
	EVENT2(&m, EV_GO_STATUS, 0, 1, UINT64_MAX, RUNNABLE);
	EVENT2(&m, EV_GO_STATUS_STACK, 0, 4, UINT64_MAX, WAITING, 4);
	EVENT2(&m, EV_GO_STATUS, 0, 5, UINT64_MAX, WAITING);
	EVENT2(&m, EV_GO_BLOCK, 10, 0, 2);
	EVENT2(&m, EV_GO_START, 1, 1, 1);
	EVENT2(&m, EV_GO_STOP, 1, 0, 1);
	EVENT2(&m, EV_GO_START, 1, 1, 2);
	EVENT2(&m, EV_GO_UNBLOCK, 50, 2, 1, 0);
	mktrace_batch(&m, 1, 2, 10);
	EVENT2(&m, EV_PROC_STATUS, 0, 1, P_RUNNING);
	EVENT2(&m, EV_GO_STATUS, 0, 3, 2, RUNNING);
	EVENT2(&m, EV_GO_SYSCALL_BEGIN, 5, 1, 3);
	mktrace_end_batch(&m);
	return m;
}

static void who_waits_is_told_with_its_stack(void **state)
{
	struct mktrace m = waiting("go 1.23 trace");
	CLEANUP(part_fini) struct part p = { .fd = -1 };
	int fd CLEANUP(closep) = mktrace_fd(&m);

	(void)state;
	assert_int_equal(cut(fd, 50, INT64_MAX, &p), 0);
	assert_int_equal(begins_at(p.fd, 1), 0);
	assert_int_equal(begins_at(p.fd, 2), 0x2000);
	assert_int_equal(begins_at(p.fd, 3), 0x3000);
	assert_int_equal(begins_at(p.fd, 4), 0x4000);
	assert_int_equal(begins_at(p.fd, 5), 0);
	mktrace_done(&m);
}

/* ---- version 1 ---- */

/* Until 130: what goes on there. */
static void first_p(struct mktrace *m)
{
	EVENT1(m, EV1_BATCH, 0, 100);
	for (uint64_t g = 1; g <= 5; g++)
		EVENT1(m, EV1_GO_CREATE, 0, g, 0, 0);
	EVENT1(m, EV1_GO_WAITING, 0, 2);
	EVENT1(m, EV1_GO_IN_SYSCALL, 0, 3);
	EVENT1(m, EV1_GOMAXPROCS, 0, 2, 0);
	EVENT1(m, EV1_PROC_START, 0, 7);
	EVENT1(m, EV1_GO_START, 0, 1, 1);
	EVENT1(m, EV1_GC_START, 10, 0, 0);
	EVENT1(m, EV1_STW_START, 0, 1);
	EVENT1(m, EV1_GO_UNBLOCK, 10, 2, 2, 0); /* at 120 */
	EVENT1(m, EV1_STW_DONE, 20);
	EVENT1(m, EV1_GO_BLOCK_RECV, 5, 0);
	EVENT1(m, EV1_GO_START_LOCAL, 5, 2); /* at 150 */
	EVENT1(m, EV1_GO_UNBLOCK_LOCAL, 5, 1, 0);
	EVENT1(m, EV1_GC_DONE, 5);
	EVENT1(m, EV1_GO_END, 5);
	EVENT1(m, EV1_GO_START_LABEL, 5, 1, 3, 1); /* at 170 */
	EVENT1(m, EV1_GC_START, 1, 1, 0);
}

/* A system call that has blocked ends at 135, which is told at 180. */
static void second_p(struct mktrace *m)
{
	EVENT1(m, EV1_BATCH, 1, 105);
	EVENT1(m, EV1_PROC_START, 0, 8);
	EVENT1(m, EV1_GO_START, 0, 5, 1);
	EVENT1(m, EV1_SWEEP_START, 10, 0);
	EVENT1(m, EV1_GO_SYSCALL, 5, 0); /* at 120 */
	EVENT1(m, EV1_GO_SYS_BLOCK, 32);
	EVENT1(m, EV1_SWEEP_DONE, 5, 0, 0);
	EVENT1(m, EV1_GO_SYS_EXIT, 23, 3, 2, 135); /* at 180 */
	EVENT1(m, EV1_GO_START, 0, 3, 3);
	EVENT1(m, EV1_GO_SCHED, 1, 0);
	EVENT1(m, EV1_PROC_STOP, 1);
}

static struct mktrace old_trace(void)
{
	struct mktrace m = mktrace("go 1.19 trace");

	first_p(&m);
	second_p(&m);
	EVENT1(&m, EV1_CPU_SAMPLE, 0, 125, 0, 1, 0);
	EVENT1(&m, EV1_CPU_SAMPLE, 0, 151, 0, 2, 0);
	mktrace_string(&m, EV1_STRING, 1, 'x', 3);
	EVENT1(&m, EV1_FREQUENCY, 1000000000);
	return m;
}

/* As the runtime does it where a trace begins. */
static void an_old_trace_begins_with_all_there_is(void **state)
{
	struct mktrace m = old_trace();
	CLEANUP(part_fini) struct part p = { .fd = -1 }, q = { .fd = -1 };
	int fd CLEANUP(closep) = mktrace_fd(&m);

	(void)state;
	assert_int_equal(cut(fd, 30, 55, &p), 0); /* the first event is at 100 */
	assert_int_equal(p.from_ns, 35);
	assert_int_equal(p.to_ns, 55);
	says(p.fd, "0 m-1 g1 ?>runnable\n0 m-1 g2 ?>runnable\n0 m-1 g3 ?>runnable\n"
		   "0 m-1 g3 runnable>syscall\n0 m-1 g4 ?>runnable\n"
		   "0 m-1 g5 ?>runnable\n0 begin GC concurrent mark phase\n"
		   "0 begin stop-the-world (GC sweep termination)\n"
		   "0 m7 p0 ?>running\n0 m7 g1 runnable>running\n0 m8 p1 ?>running\n"
		   "0 begin GC incremental sweep\n0 m8 g5 runnable>running\n"
		   "0 m8 g5 running>syscall\n5 m-1 g3 syscall>runnable\n"
		   "10 end stop-the-world (GC sweep termination)\n"
		   "15 m7 g1 running>waiting\n20 m7 g2 runnable>running\n21 sample\n"
		   "25 m7 g1 waiting>runnable\n");
	assert_int_equal(cut(fd, 60, INT64_MAX, &q), 0);
	says(q.fd, "0 m-1 g1 ?>runnable\n0 m-1 g2 ?>runnable\n0 m-1 g3 ?>runnable\n"
		   "0 m-1 g4 ?>runnable\n0 m-1 g5 ?>runnable\n"
		   "0 m-1 g5 runnable>syscall\n0 begin GC concurrent mark phase\n"
		   "0 m7 p0 ?>running\n0 m7 g2 runnable>running\n0 m8 p1 ?>running\n"
		   "1 end GC concurrent mark phase\n6 m7 g2 running>none\n"
		   "11 m7 g1 runnable>running\n12 begin GC concurrent mark phase\n"
		   "21 m8 g3 runnable>running\n22 m8 g3 running>runnable\n"
		   "23 m8 p1 running>idle\n");
	mktrace_done(&m);
}

static void a_damaged_old_trace_is_not_cut(void **state)
{
	struct mktrace m = mktrace("go 1.19 trace");
	CLEANUP(exectrace_freep) struct exectrace *t = NULL;
	int fd CLEANUP(closep) = -1;

	(void)state;
	first_p(&m);
	fd = mktrace_fd(&m);
	assert_int_equal(exectrace_open(fd, &t, &e), 0);
	assert_int_equal(exectrace_cut(t, stdout, 0, INT64_MAX, &e), -EBADMSG);
	assert_non_null(strstr(e.msg, "before it tells its clock's rate"));
	mktrace_done(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states_are_told_where_it_begins),
		cmocka_unit_test(numbers_count_from_where_it_begins),
		cmocka_unit_test(what_had_to_wait_stays_behind_the_beginning),
		cmocka_unit_test(so_does_a_generation_that_began_before),
		cmocka_unit_test(whole_generations_are_copied),
		cmocka_unit_test(what_breaks_off_is_cut_there),
		cmocka_unit_test(who_waits_is_told_with_its_stack),
		cmocka_unit_test(an_old_trace_begins_with_all_there_is),
		cmocka_unit_test(a_damaged_old_trace_is_not_cut),
	};

	return cmocka_run_group_tests_name("trace_cut", tests, NULL, NULL);
}
