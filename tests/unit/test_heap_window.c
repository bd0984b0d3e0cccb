/* tests/unit/test_heap_window.c - what full observation saw of a site, and windows did not. */
#include "base/clock.h"
#include "collect/heap/live/heap_use.h"
#include "collect/heap/window/heap_window.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { SIZE = 64, CLASS = 5, OTHER = 48, OTHER_CLASS = 4, LARGEST = 67 };

static const struct gpb_heap heap = { .class_size = { [CLASS] = SIZE, [OTHER_CLASS] = OTHER } };

static void see_of(struct heap_window *w, uint64_t pc, uint32_t size, uint8_t class, uint32_t count)
{
	struct gpb_stack st = { .nfirst = 1,
				.object = { .size = size, .class = class },
				.count = count };

	st.pc[0] = pc;
	assert_int_equal(heap_window_add(w, &st, NULL), 0);
}

static void see(struct heap_window *w, uint64_t pc, uint32_t size, uint32_t count)
{
	see_of(w, pc, size, size == SIZE ? CLASS : size == OTHER ? OTHER_CLASS : 0, count);
}

/* Both sites allocate while all is observed; windows see the first one only, and other classes. */
static void observe(struct heap_window *w)
{
	*w = (struct heap_window){ .heap = &heap, .rate = 1, .rate_in_windows = 1 };
	tally_init(&w->tally);
	see(w, 1, SIZE, 10);
	see(w, 2, SIZE, 10);
	see(w, 3, OTHER, 10);
	tally_full(&w->tally);
	for (unsigned i = 0; i < 12; i++) {
		const struct tally_window window = { .weight = 10 };

		see(w, 1, SIZE, 100 + i);
		tally_window(&w->tally, &window);
	}
	w->total[CLASS] = 20000;
	w->total[OTHER_CLASS] = 0;
	heap_window_end(w);
}

static struct heap_estimate of(const struct heap_window *w, uint64_t pc)
{
	for (size_t i = 0; i < w->tally.entries.n; i++)
		if (w->tally.entries.at[i].st->pc[0] == pc)
			return heap_window_estimate(w, &w->tally.entries.at[i]);
	fail();
	return (struct heap_estimate){};
}

/* Windows may have missed it: 10 +- 0 would be too sure of itself. */
static void test_missed_by_windows(void **state)
{
	struct heap_window w;

	(void)state;
	observe(&w);
	assert_true(of(&w, 1).variance >= 0);
	assert_int_equal(of(&w, 1).values.objects, 20010);
	assert_int_equal(of(&w, 2).values.objects, 10);
	assert_true(of(&w, 2).variance < 0);
	tally_fini(&w.tally);
}

/* Nothing of its class was allocated while there were windows: what was seen is all. */
static void test_nothing_to_miss(void **state)
{
	struct heap_window w;

	(void)state;
	observe(&w);
	assert_int_equal(of(&w, 3).values.objects, 10);
	assert_true(of(&w, 3).variance >= 0);
	tally_fini(&w.tally);
}

/*
 * Large objects differ in size, so that the number of all says little of their bytes; but one site
 * that was not met again leaves the sum of all as well known as it was.
 */
static void test_sum_of_large_objects(void **state)
{
	struct heap_window w;

	(void)state;
	w = (struct heap_window){ .heap = &heap, .rate = 1, .rate_in_windows = 1 };
	tally_init(&w.tally);
	see(&w, 1, 65536, 10);
	see(&w, 2, 40 << 20, 1);
	tally_full(&w.tally);
	for (unsigned i = 0; i < 12; i++) {
		const struct tally_window window = { .weight = 10 };

		see(&w, 1, 65536, 100 + i);
		tally_window(&w.tally, &window);
	}
	w.total[0] = 20000;
	heap_window_end(&w);
	assert_true(of(&w, 2).variance < 0);
	assert_true(of(&w, 2).of_all >= 0 && of(&w, 1).of_all >= 0);
	tally_fini(&w.tally);
}

/* Few large objects may have most of the bytes: how many that are the runtime counts as well. */
static void test_large_ones_that_no_window_saw(void **state)
{
	struct heap_window w = { .heap = &heap, .total = { [0] = 3, [1] = 1000 } };
	struct heap_unseen un;

	(void)state;
	w.met[1] = w.tally.groups[1].x = 1000;
	w.large_bytes = 600 << 20;
	un = heap_window_unseen(&w);
	assert_int_equal(un.allocs, 3);
	assert_int_equal(un.bytes, 600 << 20);
	assert_true(un.many && un.lost);
	w.rate_most = 600 << 20; /* little, but nearly all there is */
	un = heap_window_unseen(&w);
	assert_true(un.many && un.lost);
	w.total[CLASS] = 2e10 / SIZE;
	w.tally.groups[CLASS].x = 1;
	un = heap_window_unseen(&w);
	assert_true(un.many && !un.lost);
	w.rate_most = 1;
	assert_true(heap_window_unseen(&w).lost);
	w.large_bytes = 0; /* not known */
	assert_int_equal(heap_window_unseen(&w).bytes, 3 * GPB_SIZE_MEDIUM);
}

/* Pages of 32 KiB and slots of as much, allocated in one place, are of two classes; only pages are always observed. */
static void test_pages_as_large_as_slots(void **state)
{
	static const struct gpb_heap like = { .class_size = { [LARGEST] = GPB_SIZE_MEDIUM } };
	struct heap_window w = { .heap = &like, .rate = 1, .rate_in_windows = 1 };
	const struct tally_window window = { .weight = 10 };

	(void)state;
	tally_init(&w.tally);
	for (unsigned i = 0; i < 12; i++) {
		see_of(&w, 1, GPB_SIZE_MEDIUM, 0, 100);
		see_of(&w, 1, GPB_SIZE_MEDIUM, LARGEST, 50);
		see_of(&w, 2, GPB_SIZE_MEDIUM, LARGEST, 50);
		tally_window(&w.tally, &window);
	}
	w.large = true;
	see_of(&w, 1, GPB_SIZE_MEDIUM, 0, 7);
	w.total[0] = 9000;
	w.total[LARGEST] = 2000;
	heap_window_end(&w);
	assert_int_equal(w.tally.entries.n, 3);
	for (size_t i = 0; i < 3; i++) {
		const struct tally_entry *en = &w.tally.entries.at[i];

		assert_int_equal(heap_window_estimate(&w, en).values.objects,
				 en->group ? 1000 : 9007);
	}
	tally_fini(&w.tally);
}

/* One sampled object of @size, whose estimate is not a whole number. */
static struct heap_estimate of_one(struct heap_window *w, uint64_t pc, uint32_t size)
{
	*w = (struct heap_window){ .heap = &heap, .rate = 1024, .rate_in_windows = 1 };
	tally_init(&w->tally);
	see(w, pc, size, 1);
	tally_full(&w->tally);
	heap_window_end(w);
	return of(w, pc);
}

/* 5 objects of 448 bytes at one sample in 1,024 bytes stand for 14, also when each has its own stack. */
static void test_what_is_cut_adds_up(void **state)
{
	struct heap_window w;
	int64_t sum = 0;

	(void)state;
	for (uint64_t pc = 1; pc <= 5; pc++) {
		struct heap_estimate est = of_one(&w, pc, 448);

		assert_int_equal(est.values.objects, 2);
		assert_int_equal(est.parts / HEAP_ONE, 2);
		sum += est.parts;
		tally_fini(&w.tally);
	}
	assert_int_equal(sum / HEAP_ONE, 14);
}

/* The same of what is in use: all of it, or half. */
static void test_what_is_cut_in_use_adds_up(void **state)
{
	struct heap_share all = { .share = { 1, 1 } }, half = { .share = { 0.5, 0.5 } };
	struct heap_spread none = {};
	struct heap_use u = { .shares = &all, .spreads = &none },
			v = { .shares = &half, .spreads = &none };
	struct heap_window w;
	int64_t sum = 0, of_half = 0;

	(void)state;
	for (uint64_t pc = 1; pc <= 5; pc++) {
		struct heap_estimate est;

		(void)of_one(&w, pc, 448);
		est = heap_use_of(&u, &w, &w.tally.entries.at[0]);
		assert_int_equal(est.values.objects, 2);
		assert_int_equal(est.parts / HEAP_ONE, 2);
		sum += est.parts;
		of_half += heap_use_of(&v, &w, &w.tally.entries.at[0]).parts;
		tally_fini(&w.tally);
	}
	assert_int_equal(sum / HEAP_ONE, 14);
	assert_int_equal(of_half / HEAP_ONE, 7);
}

/* What is exact has no part of an object. */
static void test_nothing_is_cut(void **state)
{
	struct heap_window w;

	(void)state;
	assert_int_equal(of_one(&w, 1, 40 << 20).parts, HEAP_ONE);
	tally_fini(&w.tally);
}

/* Nobody reads counts any more; the window of one that is handed over later ends with it. */
static struct heap_window gone_after(uint64_t began, uint64_t gone)
{
	struct heap_window w = {
		.heap = &heap, .windows_since = began, .gone_ns = gone, .open_again.at = UINT64_MAX
	};

	heap_window_turn(&w, false, 0, 0);
	return w;
}

static void test_a_window_ends_with_its_target(void **state)
{
	const uint64_t began = now_ns() - 3 * NS_PER_S;
	struct heap_window w = gone_after(began, began + 600 * NS_PER_MS);

	(void)state;
	assert_true(w.windows_ns == 600e6 && w.uncounted_ns == 600e6);
	w = gone_after(began, began - 1); /* its file came to windows after that */
	assert_true(w.windows_ns == 0 && w.uncounted_ns == 0);
	w = gone_after(began, 0);
	assert_true(w.windows_ns >= 3e9 && w.uncounted_ns == w.windows_ns);
}

/* Its counts were read last in the middle of what it allocates: it may have gone on like that until it ended. */
static void test_what_came_after_the_last_reading(void **state)
{
	const uint64_t began = now_ns() - NS_PER_S;
	struct heap_window w = {
		.heap = &heap, .windows_since = began, .marked = true, .open_again.at = UINT64_MAX
	};
	uint64_t counts[GPB_CLASSES] = { 0 };

	(void)state;
	paces_step(&w.paces, counts, began);
	paces_step(&w.paces, counts, began + 500 * NS_PER_MS);
	counts[CLASS] = 100;
	paces_step(&w.paces, counts, began + 510 * NS_PER_MS);
	memcpy(w.last, counts, sizeof(counts));
	w.last_known = true;
	w.last_ns = began + 510 * NS_PER_MS;
	w.gone_ns = began + 516 * NS_PER_MS;
	heap_window_turn(&w, false, 0, 0);
	assert_true(w.total[CLASS] == 100 && w.uncounted_ns == 6e6);
	assert_true(w.counted_bytes == 100.0 * heap.class_size[CLASS]);
	assert_int_equal((int)(w.uncounted_bytes + 0.5), 60 * heap.class_size[CLASS]);
	assert_true(heap_window_lacks_counts(&w));
	paces_fini(&w.paces);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_missed_by_windows),
		cmocka_unit_test(test_nothing_to_miss),
		cmocka_unit_test(test_sum_of_large_objects),
		cmocka_unit_test(test_large_ones_that_no_window_saw),
		cmocka_unit_test(test_pages_as_large_as_slots),
		cmocka_unit_test(test_what_is_cut_adds_up),
		cmocka_unit_test(test_what_is_cut_in_use_adds_up),
		cmocka_unit_test(test_nothing_is_cut),
		cmocka_unit_test(test_a_window_ends_with_its_target),
		cmocka_unit_test(test_what_came_after_the_last_reading),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
