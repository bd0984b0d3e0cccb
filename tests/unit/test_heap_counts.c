/*
 * tests/unit/test_heap_counts.c - the runtime's own counts cannot always be read: totals must not be lost by that, and
 * where they are, it must be said. Clocks, counters and what probes saw are replaced by functions of these names.
 */
#include "collect/heap/window/heap_window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <bpf/bpf.h>
#include <cmocka.h>

#include "probe/bpf.h"

#define MS 1000000ull

enum { CLASSES = 1, COUNTDOWNS, STACKS }; /* descriptors */
enum { CLASS = 5, SIZE = 64, PER_MS = 100 };

static struct {
	uint64_t now, begun; /* the target allocates from then on */
	uint64_t not_before; /* the counters cannot be found until then */
	int fails;	     /* what reading them returns; 0: it works */
	unsigned opens;
	int stops; /* the next readings end 60 ms after they began: we did not run meanwhile */
} w;

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	(void)clock;
	*ts = (struct timespec){ (time_t)(w.now / 1000000000), (long)(w.now % 1000000000) };
	return 0;
}

static uint64_t allocated(void)
{
	return w.now > w.begun ? (w.now - w.begun) / MS * PER_MS : 0;
}

int rtcounters_open(struct gobin *b, const struct golayout *l, struct mem *m, uint64_t bias,
		    struct rtcounters **out, struct err *e)
{
	(void)b;
	(void)l;
	(void)m;
	(void)bias;
	(void)e;
	w.opens++;
	*out = (struct rtcounters *)&w;
	return 0;
}

static unsigned rests;

void rtcounters_rest(struct rtcounters *c)
{
	assert_non_null(c);
	rests++;
}

int rtcounters_allocs(struct rtcounters *c, struct rtalloc_counts *out, struct err *e)
{
	(void)c;
	if (w.now < w.not_before)
		return err_set(e, -ENOTSUP, "nothing is there yet");
	if (w.fails)
		return err_set(e, w.fails, "it moved");
	if (w.stops > 0) {
		w.stops--;
		w.now += 60 * MS;
	}
	*out = (struct rtalloc_counts){ .n = 68 };
	out->small[CLASS] = allocated();
	return 0;
}

void rtcounters_free(struct rtcounters *c)
{
	(void)c;
}

/* What probes saw by class is all there was since it began; the other map that is read has nothing in it. */
int bpf_map__fd(const struct bpf_map *map)
{
	return (int)(intptr_t)map;
}

int libbpf_num_possible_cpus(void)
{
	return 1;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	struct gpb_classes *seen = value;

	(void)key;
	if (fd == CLASSES)
		seen->n[CLASS] = allocated();
	return 0;
}

int bpf_map_get_next_key(int fd, const void *key, void *next)
{
	(void)fd;
	(void)key;
	(void)next;
	return -ENOENT;
}

int ring_buffer__consume(struct ring_buffer *ring)
{
	(void)ring;
	return 0;
}

static const struct gpb_heap heap = { .class_size = { [CLASS] = SIZE } };
static struct heap_bpf__bss bss;
static struct heap_bpf obj = { .bss = &bss,
			       .maps = { .classes = (struct bpf_map *)CLASSES,
					 .countdowns = (struct bpf_map *)COUNTDOWNS,
					 .stacks = (struct bpf_map *)STACKS } };
static struct reports reports;
static struct target target;
static struct subject subject = { .target = &target };

static void begin(struct heap_window *h)
{
	w.now = 1000 * MS;
	w.begun = w.now;
	w.not_before = 0;
	w.fails = 0;
	w.opens = w.stops = 0;
	*h = (struct heap_window){ .s = &subject,
				   .obj = &obj,
				   .reports = &reports,
				   .heap = &heap,
				   .rate = 1,
				   .rate_most = 1 };
	heap_window_init(h);
}

static void pass(struct heap_window *h, uint64_t ms)
{
	double n;

	for (uint64_t end = w.now + ms * MS; w.now < end;) {
		w.now += 5 * MS;
		(void)heap_window_look(h, &n);
	}
}

/* 100 ms are observed in full, which the counts were told of before. */
static void full(struct heap_window *h)
{
	struct stretch s = { .opened = w.now, .weight = 1 };

	heap_window_watch(h, w.now == w.begun);
	w.now += 100 * MS;
	s.closed = w.now;
	assert_int_equal(heap_window_over(h, &s, NULL), 0);
}

static void end(struct heap_window *h)
{
	heap_window_turn(h, false, 0, 0);
	heap_window_end(h);
}

static void fini(struct heap_window *h)
{
	h->counters = NULL;
	heap_window_fini(h);
}

/* Reading them fails when full observation ends, and when windows begin: what the probes saw up to then is known. */
static void test_fails_at_the_turn(void **state)
{
	struct heap_window h;

	(void)state;
	begin(&h);
	w.fails = -EAGAIN;
	full(&h);
	heap_window_turn(&h, true, 400, 8e6);
	w.fails = 0;
	pass(&h, 1000);
	end(&h);
	assert_true(heap_window_counted(&h) && h.uncounted_ns == 0);
	assert_int_equal((int)h.total[CLASS], 1000 * PER_MS);
	fini(&h);
}

/* We do not run while they are read: the counts are those of the time that is told, at the begin as at the end. */
static void test_reading_is_interrupted(void **state)
{
	for (int stops = 0; stops < 3; stops++) {
		struct heap_window h;

		(void)state;
		begin(&h);
		w.stops = stops;
		heap_window_turn(&h, true, 400, 8e6);
		assert_int_equal(h.windows_since, w.now);
		pass(&h, 1000);
		w.stops = stops;
		end(&h);
		assert_true(h.end_ns == w.now && h.uncounted_ns == 0);
		assert_int_equal(h.windows_ns / 1e6, 1000 + stops * 60);
		assert_int_equal((int)h.total[CLASS], (1000 + stops * 60) * PER_MS);
		fini(&h);
	}
}

/* It worked when full observation ended, and fails a moment later. */
static void test_fails_after_the_turn(void **state)
{
	struct heap_window h;

	(void)state;
	begin(&h);
	full(&h);
	w.fails = -EAGAIN;
	w.now += 20 * MS;
	heap_window_turn(&h, true, 400, 8e6);
	w.fails = 0;
	pass(&h, 1000);
	end(&h);
	assert_true(heap_window_counted(&h) && h.uncounted_ns == 0);
	assert_int_equal((int)h.total[CLASS], 1020 * PER_MS);
	fini(&h);
}

static uint64_t uncounted(struct heap_window *h)
{
	const struct collect_opts o = {};
	struct loss loss = {};
	struct prof *p;

	assert_int_equal(prof_new(&p, NULL), 0);
	assert_int_equal(heap_window_comment(h, &o, p, &loss, NULL), 0);
	prof_free(p);
	return loss.n[LOSS_UNCOUNTED];
}

/* Windows from the start, and the counts come later: that part of the time is in no total, and it is told. */
static void test_comes_late(void **state)
{
	struct heap_window h;

	(void)state;
	begin(&h);
	w.fails = -EAGAIN;
	heap_window_turn(&h, true, 400, 8e6);
	pass(&h, 100);
	w.fails = 0;
	pass(&h, 900);
	end(&h);
	assert_true(heap_window_counted(&h));
	assert_int_equal((int)h.total[CLASS], 895 * PER_MS);
	assert_int_equal(uncounted(&h), 106);
	fini(&h);
}

/*
 * It called exec while windows went on, and its runtime begins later: it is all in the totals from its first moment on, even where it
 * was asked only once before it ended.
 */
static void test_called_exec(void **state)
{
	struct heap_window h;

	(void)state;
	begin(&h);
	w.fails = -EAGAIN;
	heap_window_fresh(&h);
	heap_window_turn(&h, true, 400, 8e6);
	w.fails = 0;
	pass(&h, 100);
	w.fails = -ESRCH;
	end(&h);
	assert_true(heap_window_counted(&h) && uncounted(&h) == 0);
	assert_int_equal((int)h.total[CLASS], 100 * PER_MS);
	fini(&h);
}

/* Nobody asked it before it ended: how much is missing is not known. */
static void test_ends_before_it_is_asked(void **state)
{
	struct heap_window h;

	(void)state;
	begin(&h);
	heap_window_fresh(&h);
	heap_window_turn(&h, true, 400, 8e6);
	w.now += 100 * MS;
	w.fails = -ESRCH;
	end(&h);
	assert_true(!heap_window_counted(&h));
	assert_int_equal(uncounted(&h), 101);
	fini(&h);
}

/* It exits after we had no time to look for a while: that part of the time is in no total, either. */
static void test_exits_unseen(void **state)
{
	struct heap_window h;

	(void)state;
	for (uint64_t ms = 10; ms <= 310; ms += 300) {
		begin(&h);
		full(&h);
		heap_window_turn(&h, true, 400, 8e6);
		pass(&h, 1000);
		w.now += ms * MS;
		w.fails = -ESRCH;
		end(&h);
		assert_int_equal((int)h.total[CLASS], 1000 * PER_MS);
		assert_int_equal(uncounted(&h), ms < 100 ? 0 : ms + 1);
		fini(&h);
	}
}

/* A constructor runs for seconds before the runtime begins. It is not asked ten times and never again. */
static void test_slow_start(void **state)
{
	struct heap_window h;

	(void)state;
	begin(&h);
	w.not_before = w.begun = w.now + 3000 * MS;
	pass(&h, 3000);
	assert_true(w.opens < 20);
	w.now += 3000 * MS;
	heap_window_turn(&h, true, 400, 8e6);
	pass(&h, 1000);
	end(&h);
	assert_true(heap_window_counted(&h));
	assert_int_equal((int)h.total[CLASS], 1000 * PER_MS);
	fini(&h);
}

static bool says(const struct prof *p, const char *what)
{
	struct prof_header_view v = prof_header(p);

	for (size_t i = 0; i < v.ncomments; i++)
		if (strstr(strtab_get(prof_strings(p), v.comments[i]), what))
			return true;
	return false;
}

static void over(struct heap_window *h, bool still)
{
	const struct stretch s = { .window = true,
				   .still = still,
				   .opened = w.now - 8 * MS,
				   .closed = w.now,
				   .weight = 5 };

	assert_int_equal(heap_window_over(h, &s, NULL), 0);
}

/* One that has not run is not read, but for one of which nothing was read lately. */
static void test_still(void **state)
{
	struct heap_window h;

	(void)state;
	begin(&h);
	full(&h);
	heap_window_turn(&h, true, 400, 8e6);
	w.now += 10 * MS;
	over(&h, true); /* it was not read since it ran */
	assert_int_equal(h.last[CLASS], 110 * PER_MS);
	w.now += 10 * MS;
	rests = 0;
	over(&h, true);
	assert_int_equal(h.last[CLASS], 110 * PER_MS);
	assert_int_equal(rests, 1); /* and what reading it again quickly would take is given back */
	over(&h, false);
	assert_int_equal(h.last[CLASS], 120 * PER_MS);
	w.fails = -EAGAIN;
	over(&h, false);
	w.fails = 0;
	w.now += 10 * MS;
	over(&h, true);
	assert_int_equal(h.last[CLASS], 130 * PER_MS);
	end(&h);
	fini(&h);
}

/* They are never known: it is said, and why. */
static void test_never(void **state)
{
	const struct collect_opts o = {};
	struct loss loss = {};
	struct heap_window h;
	struct prof *p;

	(void)state;
	begin(&h);
	w.not_before = UINT64_MAX;
	full(&h);
	h.rate_in_windows = 0;
	heap_window_turn(&h, true, 400, 8e6);
	h.marked = false; /* as after windows from the start */
	pass(&h, 1000);
	end(&h);
	assert_false(heap_window_counted(&h));
	assert_true(h.total[CLASS] < 0);
	assert_int_equal(prof_new(&p, NULL), 0);
	assert_int_equal(heap_window_comment(&h, &o, p, &loss, NULL), 0);
	assert_true(says(p, "totals: not known") && says(p, "nothing is there yet"));
	prof_free(p);
	fini(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fails_at_the_turn),
		cmocka_unit_test(test_reading_is_interrupted),
		cmocka_unit_test(test_fails_after_the_turn),
		cmocka_unit_test(test_comes_late),
		cmocka_unit_test(test_called_exec),
		cmocka_unit_test(test_ends_before_it_is_asked),
		cmocka_unit_test(test_exits_unseen),
		cmocka_unit_test(test_slow_start),
		cmocka_unit_test(test_still),
		cmocka_unit_test(test_never),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
