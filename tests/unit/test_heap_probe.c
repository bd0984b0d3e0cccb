/*
 * tests/unit/test_heap_probe.c - a probed heap: how sizes are rounded, what the BPF side is told of a target and when, what one of many
 * owns and what it borrows, which probes of one target are held apart, and how samples become a profile.
 */
#include "heap_probe_fakes.h"

/* ---- how sizes are rounded ---- */

static uint8_t class_of(uint32_t size)
{
	const struct gpb_heap *t = &h->heap;

	return size <= GPB_SIZE_SMALL ? t->class8[(size + 7) / 8] :
					t->class128[(size - GPB_SIZE_SMALL + 127) / 128];
}

/* Source: runtime/sizeclasses.go. */
static void sizes_have_the_classes_of_the_runtime(void **state)
{
	static const struct {
		uint32_t size, class, slot;
	} known[] = {
		{ 0, 1, 8 },	    { 8, 1, 8 },	{ 9, 2, 16 },	      { 17, 3, 24 },
		{ 33, 5, 48 },	    { 64, 6, 64 },	{ 257, 19, 288 },     { 1024, 32, 1024 },
		{ 1025, 33, 1152 }, { 1153, 34, 1280 }, { 32768, 67, 32768 },
	};

	(void)state;
	takes_slot(3);
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		assert_int_equal(class_of(known[i].size), known[i].class);
		assert_int_equal(h->heap.class_size[known[i].class], known[i].slot);
	}
	assert_int_equal(h->heap.class_size[68], 0);
	/* Objects with pointers that are larger than 512 bytes have a header, so less fits. */
	assert_true(h->heap.header_over == 512 && h->heap.max_small == 32760);
	assert_true(h->heap.page == 8192 && h->heap.rate == 524288 && h->heap.round == 1);
}

/* The BPF side computes with 36 bits of it. */
static void rates_have_a_bound(void **state)
{
	struct err e = { "" };

	(void)state;
	opts.heap.rate = 1ull << 36;
	assert_int_equal(heap_probe_new(&one, &opts, &room, &h, &e), -E2BIG);
	assert_non_null(strstr(e.msg, "68719476736 is above 2^36"));
	assert_null(h);
	opts.heap.rate--;
	assert_int_equal(heap_probe_new(&one, &opts, &room, &h, &e), 0);
}

/* log2(1 + i/1024) in 1/2^26, from which the BPF side draws gaps between samples. */
static void the_object_has_the_logarithms(void **state)
{
	(void)state;
	takes_slot(3);
	assert_true(rodata.log2_table[0] == 0 && rodata.log2_table[1024] == 1 << 26);
	assert_int_equal(rodata.log2_table[512], 39256169); /* 0.5849625007 */
	assert_true(slots_asked == 128 && many_asked && rodata.many_targets);
}

/* ---- one of many ---- */

static void one_of_many_owns_only_what_is_its_own(void **state)
{
	(void)state;
	takes_slot(3);
	assert_true(!h->entries && !h->prof && use.room == &room);
	heap_probe_free(TAKE(h));
	assert_true(objects == 1 && large_detached == 0);
	assert_true(window.finis == 1 && use.finis == 1);
}

static void one_alone_owns_all(void **state)
{
	struct heap_probe *a = alone();

	(void)state;
	assert_true(a->entries && a->prof && !use.room && use.with_reports && !many_asked);
	assert_true(objects == 1 && nreports == 1 && nprobings == 1 && slots_asked == 2);
	by.source->free(by.at);
	by = (struct sourced){ 0 };
	assert_true(objects == 0 && nreports == 0 && nprobings == 0 && large_detached > 0);
}

static void what_is_not_understood_leaves_nothing(void **state)
{
	struct err e = { "" };

	(void)state;
	verify_fails = -EBADMSG;
	assert_int_equal(heap_probe_new(&one, &opts, &room, &h, &e), -EBADMSG);
	assert_string_equal(e.msg, "offsets are wrong");
	verify_fails = 0;
	use_fails = -ENOMEM;
	assert_int_equal(heap_probe_new(&one, &opts, NULL, &h, &e), -ENOMEM);
	assert_true(!h && use.finis == 2);
	opts.heap.types = true;
	types_fail = -EFAULT;
	assert_int_equal(heap_probe_new(&one, &opts, &room, &h, &e), -EFAULT);
}

static void where_types_are_not_known_it_goes_on_without(void **state)
{
	(void)state;
	opts.heap.types = true;
	types_fail = -ENOTSUP;
	takes_slot(3);
	assert_false(h->o.heap.types);
	assert_int_equal(heap_probe_put(h, NULL), 0);
	assert_false(target_of[3].flags & GPB_TARGET_TYPES);
}

static void its_window_is_of_its_slot(void **state)
{
	(void)state;
	followed = true;
	takes_slot(5);
	assert_true(h->window.slot == 5 && h->window.obj == object && h->window.keys);
	assert_true(h->window.s == &one && h->window.reports == &reports);
	assert_true(h->window.heap == &h->heap && h->window.weighed_arg == &h->use);
	assert_true(h->window.rate == 524288 && h->window.rate_most == 524288);
}

/* ---- what the BPF side is told ---- */

static void a_target_is_told_in_its_slot_alone(void **state)
{
	(void)state;
	followed = true;
	takes_slot(3);
	assert_int_equal(heap_probe_put(h, NULL), 0);
	assert_true(target_writes[3] == 1 && heap_writes[3] == 1);
	for (int i = 0; i < SLOTS; i++)
		assert_true(i == 3 || (!target_writes[i] && !heap_writes[i]));
	assert_true(target_of[3].flags & GPB_TARGET_LABELS && target_of[3].flags & GPB_TARGET_LIVE);
	assert_false(target_of[3].flags & GPB_TARGET_TYPES);
	assert_int_equal(heap_of[3].class_size[67], 32768);
}

static void only_what_was_asked_for_is_told_apart(void **state)
{
	(void)state;
	opts.labels = false;
	opts.heap.types = true;
	takes_slot(3);
	assert_int_equal(heap_probe_put(h, NULL), 0);
	assert_int_equal(target_of[3].flags, GPB_TARGET_REGABI | GPB_TARGET_TYPES);
}

static void what_cannot_be_told_is_an_error(void **state)
{
	struct err e = { "" };

	(void)state;
	takes_slot(3);
	refusing = heaps_fd;
	assert_int_equal(heap_probe_put(h, &e), -E2BIG);
	assert_non_null(strstr(e.msg, "target table"));
	refusing = targets_fd;
	assert_int_equal(heap_probe_put(h, &e), -E2BIG);
	refusing = 0;
	fill_fails = -EFAULT;
	assert_int_equal(heap_probe_put(h, &e), -EFAULT);
	assert_string_equal(e.msg, "an image has gone");
}

static int turn(bool windows)
{
	return heap_probe_turn(h, windows, now, 400, 8000000, NULL);
}

/* Another rate is another round, in which the kernel draws the next gap anew. */
static void a_turn_changes_rate_and_round(void **state)
{
	(void)state;
	takes_slot(3);
	h->probing = probing = calloc(1, sizeof(*probing));
	assert_int_equal(turn(false), 0);
	assert_true(heap_of[3].rate == 524288 && heap_of[3].own.ns == 0 && heap_of[3].round == 2);
	assert_true(window.watches == 1 && !window.begins && window.turns == 0);
	h->hit_cost.stepped_ns = 700;
	assert_int_equal(turn(true), 0);
	assert_true(heap_of[3].rate == 512 && heap_of[3].round == 3);
	assert_true(heap_of[3].own.ns == 5000000 && heap_of[3].own.hit_ns == 400);
	assert_int_equal(heap_of[3].own.stepped_ns, 700);
	assert_true(window.turns == 1 && window.windows && window.watches == 1);
	assert_true(heap_of[3].large_rate == 0 && !window.large); /* nothing is held apart */
	assert_int_equal(turn(false), 0);
	assert_true(heap_of[3].rate == 524288 && heap_of[3].own.ns == 0 && window.turns == 2);
	assert_true(!window.windows && window.lights == 0);
	free(h->probing);
}

/* Where nobody asked for a rate it becomes as fine as the budget allows, in full observation. */
static void a_rate_of_ours_becomes_finer(void **state)
{
	(void)state;
	opts.heap.fine = true;
	takes_slot(3);
	h->probing = probing = calloc(1, sizeof(*probing));
	assert_int_equal(turn(true), 0);
	assert_true(window.lights == 0 && heap_of[3].rate == 512);
	assert_int_equal(turn(false), 0);
	assert_true(window.lights == 1 && heap_of[3].rate == 4096);
	free(h->probing);
}

/* It was held before its first instruction: the runtime's counts begin at 0, unless hits count already. */
static void one_that_was_held_is_watched_from_its_beginning(void **state)
{
	(void)state;
	opts.held = true;
	takes_slot(3);
	h->probing = probing = calloc(1, sizeof(*probing));
	assert_int_equal(turn(false), 0);
	assert_true(window.begins);
	probing->since = now;
	assert_int_equal(turn(false), 0);
	assert_false(window.begins);
	free(h->probing);
}

static void own_time_is_told_for_the_next_window(void **state)
{
	(void)state;
	takes_slot(3);
	h->window.own = (struct undilated){ .own = 5e6, .hit = 400 };
	assert_int_equal(heap_probe_own(h, 3e6, NULL), 0);
	assert_true(heap_of[3].own.ns == 3000000 && heap_of[3].own.hit_ns == 400);
	h->window.own.own = 4e6; /* that is how long the next one is */
	assert_int_equal(h->window.next(h->window.next_arg, false, NULL), 0);
	assert_int_equal(heap_of[3].own.ns, 4000000);
	h->heap.own.ns = 0; /* there are no windows */
	assert_int_equal(h->window.next(h->window.next_arg, false, NULL), 0);
	assert_int_equal(heap_of[3].own.ns, 0);
}

/* In the slot that is nobody's, of an allocation that is never sampled: nobody's own numbers change. */
static void the_price_of_a_hit_is_nobodys(void **state)
{
	struct hit_cost cost = { 0 };
	struct cost_probes *rest = NULL;
	struct gpb_heap before;

	(void)state;
	takes_slot(3);
	before = h->heap;
	assert_int_equal(heap_probe_hit_cost(object, true, &h->heap, NULL, &cost, &rest, NULL), 0);
	assert_true(heap_of[GPB_PRICED].rate == 1ull << 36 && target_writes[3] == 0);
	assert_int_equal(heap_of[GPB_PRICED].class_size[67], 32768);
	assert_int_equal(cost_cookie, GPB_ALLOC_NOSCAN);
	assert_true((int)cost.hit_ns == 400 && !memcmp(&before, &h->heap, sizeof(before)));
	refusing = targets_fd;
	assert_true(heap_probe_hit_cost(object, true, &h->heap, NULL, &cost, &rest, NULL) < 0);
}

/* ---- a profile ---- */

/* A stack of an object of @size bytes of this type, of which @count were sampled. */
static struct tally_entry *stack_of(struct heap_probe *of, uint64_t pc, uint64_t size,
				    uint64_t type, uint64_t count)
{
	struct tally *t = &of->window.tally;
	struct gpb_stack st = { .count = 1, .nfirst = 1, .pc = { pc } };

	st.object.size = size;
	st.object.type = type;
	assert_int_equal(tally_add(t, &st, 0, NULL), 0);
	t->entries.at[t->entries.n - 1].count = count;
	return &t->entries.at[t->entries.n - 1];
}

/* @n objects of @size bytes. */
static struct heap_estimate estimate(double n, double size, double variance)
{
	return (struct heap_estimate){ .objects = n,
				       .variance = variance,
				       .of_all = variance,
				       .values.bytes = (int64_t)(n * size),
				       .parts = (int64_t)(n * HEAP_ONE) };
}

static bool says(const struct prof *p, const char *what)
{
	struct prof_header_view v = prof_header(p);

	for (size_t i = 0; i < v.ncomments; i++)
		if (strstr(strtab_get(prof_strings(p), v.comments[i]), what))
			return true;
	return false;
}

static void finish(uint64_t since, uint64_t until)
{
	h->probing = probing = calloc(1, sizeof(*probing));
	probing->windowed = true;
	nprobings++;
	h->start_ns = (int64_t)since;
	h->end_ns = (int64_t)until;
	h->start_unix_ns = 7;
	assert_int_equal(heap_probe_finish(h, NULL), 0);
	probing_free(probing);
}

static const char *text(const struct prof *p, uint32_t id)
{
	return strtab_get(prof_strings(p), id);
}

static void samples_have_what_was_allocated_and_its_size(void **state)
{
	struct prof_header_view v;
	struct prof_sample_view s;

	(void)state;
	takes_slot(3);
	stack_of(h, 0x1000, 64, 0, 3);
	stack_of(h, 0x2000, 1024, 0, 1);
	estimates[0] = estimate(10, 64, 4);
	estimates[1] = estimate(2.5, 1024, 0);
	finish(now, now + 2500 * NS_PER_MS);
	v = prof_header(h->prof);
	assert_true(v.ntypes == 2 && v.time_ns == 7 && v.duration_ns == 2500000000);
	assert_string_equal(text(h->prof, v.default_type), "alloc_space");
	assert_true(v.period == 524288 && prof_nsamples(h->prof) == 2);
	s = prof_sample_at(h->prof, 0);
	assert_true(s.values[0] == 10 && s.values[1] == 640 && s.nlabels == 1);
	assert_string_equal(text(h->prof, s.labels[0].key), "bytes");
	assert_int_equal(s.labels[0].num, 64);
	/* What was cut off is in the bytes. */
	s = prof_sample_at(h->prof, 1);
	assert_true(s.values[0] == 2 && s.values[1] == 2560 && s.labels[0].num == 1024);
	/* Two standard deviations of objects of 64 bytes. */
	assert_true(says(h->prof, "alloc_space 3200 +- 128"));
	assert_true(says(h->prof, "window: 2.500 s") && says(h->prof, "1234 allocations of 56789"));
	assert_true(says(h->prof, "outside of windows") && says(h->prof, "one multi link"));
}

/* Two stacks that are shown as one: halves of objects of both are an object. */
static void parts_of_objects_are_added_before_they_are_cut_off(void **state)
{
	struct prof_sample_view s;

	(void)state;
	opts.heap.types = true;
	takes_slot(3);
	stack_of(h, 0x1000, 64, 0x100, 1);
	stack_of(h, 0x1000, 64, 0x200, 1); /* types of one name */
	estimates[0] = estimate(1.5, 64, 0);
	estimates[1] = estimate(2.5, 64, 0);
	finish(now, now + 1);
	assert_int_equal(prof_nsamples(h->prof), 1);
	s = prof_sample_at(h->prof, 0);
	assert_true(s.values[0] == 4 && s.values[1] == 256 && s.nlabels == 2);
	assert_true(says(h->prof, "types: told"));
}

/* The number of all objects of a class is known better than those of each stack. */
static void the_error_of_all_is_its_own(void **state)
{
	(void)state;
	takes_slot(3);
	stack_of(h, 0x1000, 64, 0, 3);
	stack_of(h, 0x2000, 64, 0, 3);
	estimates[0] = estimates[1] = estimate(10, 64, 4);
	estimates[0].of_all = estimates[1].of_all = 0.5;
	finish(now, now + 1);
	assert_true(says(h->prof, "? alloc_space 1280 +- 256"));
	assert_true(says(h->prof, "all sites alloc_space 1280 +- 64"));
}

static void what_is_in_use_has_columns_where_it_is_followed(void **state)
{
	struct prof_header_view v;
	struct prof_sample_view s;

	(void)state;
	followed = true;
	takes_slot(3);
	stack_of(h, 0x1000, 64, 0, 3);
	estimates[0] = estimate(10, 64, 4);
	in_use[0] = estimate(5, 64, 9);
	finish(now, now + 1);
	v = prof_header(h->prof);
	s = prof_sample_at(h->prof, 0);
	assert_int_equal(v.ntypes, 4);
	assert_string_equal(text(h->prof, v.default_type), "alloc_space");
	assert_true(s.values[2] == 5 && s.values[3] == 320);
	assert_true(says(h->prof, "inuse_objects 5 +- 3") &&
		    says(h->prof, "inuse_space 320 +- 192"));
	assert_true(use.ends == 1 && says(h->prof, "in use: as told"));
}

/* Nobody knows how much more there was. */
static void the_error_of_what_no_window_saw_is_not_known(void **state)
{
	(void)state;
	takes_slot(3);
	stack_of(h, 0x1000, 64, 0, 3);
	estimates[0] = estimate(10, 64, 4);
	unseen.many = true;
	finish(now, now + 1);
	assert_true(says(h->prof, "alloc_space 640 +- unknown"));
}

static void losses_of_one_of_many_are_its_own(void **state)
{
	struct tally_entry *en;

	(void)state;
	takes_slot(3);
	en = stack_of(h, 0x1000, 64, 0, 3);
	en->sampled = 2;
	/* A set that never came: of three samples of full observation, and two of windows. */
	en->st->labels = 77;
	estimates[0] = estimate(10, 64, 4);
	h->window.crowded = 6;
	finish(now, now + 1);
	assert_true(h->loss.n[LOSS_LABELS_CUT] == 5 && h->loss.n[LOSS_STACKS_MANY] == 6);
	assert_true(h->loss.n[LOSS_OBJECTS_UNPLACED] == 1 && loss_total(&h->loss) == 12);
	/* Its owner tells them, with those of all. */
	assert_int_equal(prof_loss(h->prof)->n[LOSS_LABELS_CUT], 0);
	assert_int_equal(prof_loss(h->prof)->n[LOSS_STACKS_MANY], 0);
}

static void labels_are_told_where_they_can_be_found(void **state)
{
	(void)state;
	opts.goid = true;
	takes_slot(3);
	finish(now, now + 1);
	assert_true(says(h->prof, "as they were at the allocation") && says(h->prof, "goid: of"));
	heap_probe_free(TAKE(h));
	one.layout.off[LAYOUT_g_labels] = -1;
	assert_int_equal(heap_probe_new(&one, &opts, &room, &h, NULL), 0);
	h->obj = object;
	h->reports = &reports;
	heap_probe_window(h, 3);
	memset(&window, 0, sizeof(window));
	use.finis = 0;
	finish(now, now + 1);
	assert_true(says(h->prof, "where they cannot be found"));
}

static void without_its_last_look_there_is_no_profile(void **state)
{
	struct err e = { "" };

	(void)state;
	takes_slot(3);
	use_end_fails = -EIO;
	assert_int_equal(heap_probe_finish(h, &e), -EIO);
	assert_string_equal(e.msg, "no last look");
}

/* ---- one alone ---- */

/* Of many samples each object is told through the ring. */
static void the_ring_is_large_where_samples_are_dense(void **state)
{
	static const struct {
		uint64_t rate;
		bool fine;
		uint32_t bytes;
	} rings[] = { { 262144, false, 262144 },
		      { 262143, false, 1048576 },
		      { 524288, true, 1048576 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rings); i++) {
		opts.heap.rate = rings[i].rate;
		opts.heap.fine = rings[i].fine;
		alone();
		assert_int_equal(ring_bytes, rings[i].bytes);
		by.source->free(by.at);
		by = (struct sourced){ 0 };
	}
}

static void what_fails_at_the_start_leaves_nothing(void **state)
{
	static int *const failing[] = { &open_fails, &load_fails, &set_fails, &fill_fails };
	struct err e = { "" };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(failing); i++) {
		*failing[i] = -ENOSYS;
		assert_true(heap_probe_start(&one, &opts, &by, &e) < 0);
		assert_true(!by.source && objects == 0 && nreports == 0 && nprobings == 0);
		*failing[i] = 0;
	}
	assert_int_equal(use.opens, use.finis);
}

static void entries(size_t image, size_t n, enum alloc_kind a, enum alloc_kind b)
{
	nkinds[image] = n;
	kinds_of[image][0] = a;
	kinds_of[image][1] = b;
}

/* What only they pass is held apart, where there are windows: then they need none. */
static void large_objects_are_held_apart_if_nothing_else_passes_there(void **state)
{
	const struct {
		bool multi;
		uint32_t ppm;
		size_t n;
		enum alloc_kind a, b;
		int apart;
	} cases[] = {
		{ true, 50000, 2, ALLOC_NOSCAN, ALLOC_LARGE, 1 },
		{ false, 50000, 2, ALLOC_NOSCAN, ALLOC_LARGE, 0 }, /* no windows */
		{ true, 0, 2, ALLOC_NOSCAN, ALLOC_LARGE, 0 },	   /* no budget */
		{ true, 50000, 2, ALLOC_ANY, ALLOC_LARGE, 0 },	   /* others pass it, too */
		{ true, 50000, 2, ALLOC_NOSCAN, ALLOC_TINY, 0 },   /* up to Go 1.23 */
		{ true, 50000, 0, ALLOC_ANY, ALLOC_ANY, 0 },	   /* there is no entry at all */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		multi = cases[i].multi;
		opts.budget.ppm = cases[i].ppm;
		entries(0, cases[i].n, cases[i].a, cases[i].b);
		large_attached = 0;
		alone();
		assert_int_equal(large_attached, cases[i].apart);
		assert_int_equal(probing->sites, cases[i].n - (size_t)cases[i].apart);
		by.source->free(by.at);
		by = (struct sourced){ 0 };
	}
}

static void a_plugin_is_probed_when_it_comes(void **state)
{
	struct heap_probe *a;

	(void)state;
	entries(0, 2, ALLOC_NOSCAN, ALLOC_LARGE);
	entries(1, 2, ALLOC_NOSCAN, ALLOC_SCAN_HEADER);
	a = alone();
	assert_true(a->nimages == 1 && a->nsites == 2 && a->large.apart);
	assert_int_equal(by.source->tick(by.at, NULL), 0);
	assert_true(use.attaches == 1);
	one.images.n = 2;
	assert_int_equal(by.source->tick(by.at, NULL), 0);
	/* Its large objects pass what others pass: so they are all held together. */
	assert_true(a->nimages == 2 && a->nsites == 4 && !a->large.apart && use.attaches == 2);
	assert_true(probing->sites == 4 && a->heap.large_rate == 0);
	one.images.n = 1;
}

static void a_plugin_without_an_allocator_changes_nothing(void **state)
{
	struct heap_probe *a;

	(void)state;
	entries(0, 2, ALLOC_NOSCAN, ALLOC_LARGE);
	a = alone();
	one.images.n = 2;
	assert_int_equal(by.source->tick(by.at, NULL), 0);
	assert_true(a->nimages == 2 && a->nsites == 2 && a->large.apart && probing->sites == 1);
	one.images.n = 1;
}

static void large_objects_that_cannot_be_held_apart_do_not_count_apart(void **state)
{
	struct heap_probe *a;
	struct err e = { "" };

	(void)state;
	entries(0, 2, ALLOC_NOSCAN, ALLOC_LARGE);
	a = alone();
	assert_int_equal(a->window.next(a->window.next_arg, true, NULL),
			 0); /* a stretch of full observation is over */
	assert_true(a->large.always && window.large && heap_of[1].large_rate == 524288);
	large_fails = -ESRCH;
	one.images.n = 2;
	assert_int_equal(by.source->tick(by.at, &e), -ESRCH);
	assert_string_equal(e.msg, "the target exited");
	assert_true(!a->large.always && !window.large && a->heap.large_rate == 0);
	one.images.n = 1;
}

/* They go on in windows, with the rate of full observation, as long as they are not too dear. */
static void large_objects_are_seen_outside_of_windows_until_they_are_dear(void **state)
{
	struct heap_probe *a;

	(void)state;
	entries(0, 2, ALLOC_NOSCAN, ALLOC_LARGE);
	followed = true;
	a = alone();
	assert_int_equal(probing->u.turn(probing->u.arg, false, now, 400, 0, NULL), 0);
	assert_true(!a->large.always && heap_of[1].large_rate == 0);
	assert_int_equal(probing->u.turn(probing->u.arg, true, now, 400, 8000000, NULL), 0);
	assert_true(a->large.always && window.large && heap_of[1].large_rate == 524288);
	a->hit_cost.stepped_ns = 700;
	assert_int_equal(by.source->poll(by.at, NULL), 0);
	assert_int_equal((int)large_ns, 1500); /* entry, and where its address is told, stepped */
	assert_int_equal(probing->sites, 1);
	dear = true;
	assert_int_equal(by.source->poll(by.at, NULL), 0);
	assert_true(!a->large.always && !window.large && heap_of[1].large_rate == 0);
	assert_int_equal(probing->sites, 2);
	/* They are not held apart again. */
	dear = false;
	large_attached = 0;
	one.images.n = 2;
	entries(1, 2, ALLOC_NOSCAN, ALLOC_LARGE);
	assert_int_equal(by.source->tick(by.at, NULL), 0);
	assert_true(large_attached == 0 && probing->sites == 4);
	one.images.n = 1;
}

static void a_profile_begins_when_hits_count(void **state)
{
	struct heap_probe *a = alone();
	uint64_t began;

	(void)state;
	assert_int_equal(a->start_ns, 0);
	now += 5 * NS_PER_MS;
	began = now;
	assert_int_equal(by.source->begin(by.at, NULL), 0);
	assert_true(a->start_ns == (int64_t)began && a->start_unix_ns == (int64_t)began);
	now += 5 * NS_PER_MS;
	assert_int_equal(by.source->poll(by.at, NULL), 0);
	assert_true(a->start_ns == (int64_t)began && polls == 1);
	wall_ahead = 1000; /* somebody sets the clock */
	assert_int_equal(by.source->poll(by.at, NULL), 0);
	assert_int_equal(a->start_unix_ns, (int64_t)began);
}

/* Everything is out before the profile is made, and what was lost is told with it. */
static void at_the_end_all_that_was_seen_is_told(void **state)
{
	struct heap_probe *a;
	struct prof *p = NULL;

	(void)state;
	entries(0, 2, ALLOC_NOSCAN, ALLOC_LARGE);
	a = alone();
	assert_int_equal(by.source->begin(by.at, NULL), 0);
	assert_int_equal(probing->u.turn(probing->u.arg, true, now, 400, 8000000, NULL), 0);
	stack_of(a, 0x1000, 64, 0, 3);
	estimates[0] = estimate(10, 64, 4);
	unfinished = 4;
	a->large.probes.deaths = 1;
	now += 40 * NS_PER_MS;
	assert_int_equal(by.source->stop(by.at, &p, NULL), 0);
	/* While the last window ended no large object was sampled. */
	assert_int_equal(heap_of[1].large_rate, 1ull << 36);
	assert_true(probing->ended && window.rests == 1 && !window.windows && !a->large.apart);
	assert_int_equal(prof_header(p).duration_ns, 40000000);
	assert_true(prof_loss(p)->n[LOSS_UNFINISHED] == 4 && prof_loss(p)->n[LOSS_UNWATCHED] == 3);
	assert_int_equal(prof_loss(p)->n[LOSS_SAMPLES_DROPPED], 2);
	assert_int_equal(prof_loss(p)->n[LOSS_ATTACHER_KILLED], 1);
	assert_true(prof_sample_at(p, 0).values[0] == 10 && !a->prof);
	prof_free(p);
}

/* Of full observation only: no windows follow, for which large objects would go on. */
static void at_the_end_large_objects_do_not_go_on(void **state)
{
	struct prof *p = NULL;

	(void)state;
	entries(0, 2, ALLOC_NOSCAN, ALLOC_LARGE);
	alone();
	assert_int_equal(by.source->begin(by.at, NULL), 0);
	assert_int_equal(by.source->stop(by.at, &p, NULL), 0);
	assert_true(!window.large && heap_of[1].large_rate == 0);
	prof_free(p);
}

/* It was stopped before hits counted. */
static void a_profile_of_nothing_has_no_length(void **state)
{
	struct prof *p = NULL;

	(void)state;
	alone();
	now += NS_PER_MS;
	assert_int_equal(by.source->stop(by.at, &p, NULL), 0);
	assert_int_equal(prof_header(p).duration_ns, 0);
	assert_true(prof_header(p).time_ns > 0);
	prof_free(p);
}

/* Then it is taken to be what it is on most machines. */
static void a_price_that_cannot_be_measured_is_assumed(void **state)
{
	struct heap_probe *a = alone();
	struct cost_probes *rest = NULL;
	struct hit_cost cost = { 0 };

	(void)state;
	assert_int_equal(probing->u.hit_cost(probing->u.arg, &cost, &rest, NULL), 0);
	assert_true((int)a->hit_cost.hit_ns == 400 && (int)a->hit_cost.stepped_ns == 700);
	cost_fails = -EPERM;
	assert_int_equal(probing->u.hit_cost(probing->u.arg, &cost, &rest, NULL), -EPERM);
	assert_true((int)a->hit_cost.hit_ns == 0 && a->hit_cost.stepped_ns >= 100);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sizes_have_the_classes_of_the_runtime),
		TEST(rates_have_a_bound),
		TEST(the_object_has_the_logarithms),
		TEST(one_of_many_owns_only_what_is_its_own),
		TEST(one_alone_owns_all),
		TEST(what_is_not_understood_leaves_nothing),
		TEST(where_types_are_not_known_it_goes_on_without),
		TEST(its_window_is_of_its_slot),
		TEST(a_target_is_told_in_its_slot_alone),
		TEST(only_what_was_asked_for_is_told_apart),
		TEST(what_cannot_be_told_is_an_error),
		TEST(a_turn_changes_rate_and_round),
		TEST(a_rate_of_ours_becomes_finer),
		TEST(one_that_was_held_is_watched_from_its_beginning),
		TEST(own_time_is_told_for_the_next_window),
		TEST(the_price_of_a_hit_is_nobodys),
		TEST(samples_have_what_was_allocated_and_its_size),
		TEST(parts_of_objects_are_added_before_they_are_cut_off),
		TEST(the_error_of_all_is_its_own),
		TEST(what_is_in_use_has_columns_where_it_is_followed),
		TEST(the_error_of_what_no_window_saw_is_not_known),
		TEST(losses_of_one_of_many_are_its_own),
		TEST(labels_are_told_where_they_can_be_found),
		TEST(without_its_last_look_there_is_no_profile),
		TEST(the_ring_is_large_where_samples_are_dense),
		TEST(what_fails_at_the_start_leaves_nothing),
		TEST(large_objects_are_held_apart_if_nothing_else_passes_there),
		TEST(a_plugin_is_probed_when_it_comes),
		TEST(a_plugin_without_an_allocator_changes_nothing),
		TEST(large_objects_that_cannot_be_held_apart_do_not_count_apart),
		TEST(large_objects_are_seen_outside_of_windows_until_they_are_dear),
		TEST(a_profile_begins_when_hits_count),
		TEST(at_the_end_all_that_was_seen_is_told),
		TEST(at_the_end_large_objects_do_not_go_on),
		TEST(a_profile_of_nothing_has_no_length),
		TEST(a_price_that_cannot_be_measured_is_assumed),
	};

	return cmocka_run_group_tests(tests, open_subject, close_subject);
}
