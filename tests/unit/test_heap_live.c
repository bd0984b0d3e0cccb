/*
 * tests/unit/test_heap_live.c - objects of many targets that are followed: the room that they share, when each target is looked at,
 * and what its last look tells. The heap is one span of this file's, of Go 1.27.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "collect/heap/live/heap_live_priv.h"
#include "collect/heap/live/heap_looks.h"
#include "probe/quota.h"

enum { SWEEPGEN = 0x1000, SPAN = 0x2000, ALLOC = 0x3000, MARK = 0x4000, BASE = 0x10000, GEN = 40 };

/* ---- a heap ---- */

static struct fake {
	struct mem mem; /* first: casts back */
	uint8_t span[160], alloc[128], mark[128];
	uint32_t gen;
	unsigned reads;
	bool exited;
} fake;

static int fake_read(struct mem *m, uint64_t addr, void *buf, size_t n, struct err *e)
{
	struct fake *f = (struct fake *)m;
	const struct {
		uint64_t at;
		const void *bytes;
		size_t n;
	} regions[] = { { SWEEPGEN, &f->gen, sizeof(f->gen) },
			{ SPAN, f->span, sizeof(f->span) },
			{ ALLOC, f->alloc, sizeof(f->alloc) },
			{ MARK, f->mark, sizeof(f->mark) } };

	f->reads++;
	if (f->exited)
		return err_set(e, -ESRCH, "it has exited");
	for (size_t i = 0; i < ARRAY_LEN(regions); i++) {
		if (addr < regions[i].at || addr - regions[i].at > regions[i].n ||
		    n > regions[i].n - (addr - regions[i].at))
			continue;
		memcpy(buf, (const uint8_t *)regions[i].bytes + (addr - regions[i].at), n);
		return 0;
	}
	return err_set(e, -EFAULT, "no memory at 0x%llx", (unsigned long long)addr);
}

static void put(int off, uint64_t v, size_t n)
{
	memcpy(fake.span + off, &v, n);
}

/* A GC cycle ends; the span is swept for it, or not yet. */
static void cycle(uint8_t lives, bool swept)
{
	fake.gen += 2;
	fake.alloc[0] = lives;
	if (swept)
		put(88, fake.gen, 4);
}

static struct rtspan_layout layout(void)
{
	struct rtspan_layout out;
	struct golayout l;

	for (size_t i = 0; i < LAYOUT_COUNT; i++)
		l.off[i] = -1;
	l.off[LAYOUT_mspan_startaddr] = 24;
	l.off[LAYOUT_mspan_freeindex] = 48;
	l.off[LAYOUT_mspan_nelems] = 50;
	l.off[LAYOUT_mspan_allocbits] = 64;
	l.off[LAYOUT_mspan_gcmarkbits] = 72;
	l.off[LAYOUT_mspan_sweepgen] = 88;
	l.off[LAYOUT_mspan_state] = 99;
	l.off[LAYOUT_mspan_elemsize] = 104;
	assert_int_equal(rtspan_layout(&l, 27, "", &out, NULL), 0);
	return out;
}

/* ---- targets ---- */

static struct target_pool pool;
static struct target target = { .pool = &pool };
static struct subject subject = { .target = &target };
static struct heap_live_room room;

static struct heap_live *follow(struct heap_live_room *of)
{
	struct heap_live *l = calloc(1, sizeof(*l));

	l->s = &subject;
	l->layout = layout();
	l->conf.sweepgen = SWEEPGEN;
	l->room = of;
	l->timer = -1;
	l->watched = true;
	l->gen = fake.gen;
	assert_non_null(vec_add(&l->weights, 1));
	l->weights.at[0] = 1;
	return l;
}

static int set_up(void **state)
{
	(void)state;
	fake = (struct fake){ .mem = { .read = fake_read }, .gen = GEN };
	target.mem = &fake.mem;
	put(24, BASE, 8);
	put(50, 64, 2);
	put(64, ALLOC, 8);
	put(72, MARK, 8);
	put(88, GEN, 4);
	put(99, 1, 1);
	put(104, 128, 8);
	room = (struct heap_live_room){ .quota = quota_of(1 << 20, 0, 2) };
	return 0;
}

static void object(struct heap_live *l, uint64_t stack, uint32_t index)
{
	const struct gpb_rec_object rec = { .type = GPB_REC_OBJECT,
					    .stack = { .lo = stack, .hi = 1 },
					    .size = 128,
					    .span = SPAN,
					    .base = BASE,
					    .index = index,
					    .sweepgen = fake.gen };

	heap_live_record(l, &rec, sizeof(rec));
}

static void report(struct heap_live *l)
{
	const struct gpb_rec_cycle rec = { .type = GPB_REC_CYCLE };

	heap_live_record(l, &rec, sizeof(rec));
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + (uint64_t)ts.tv_nsec;
}

/* Is it to be looked at in about @ms? */
static bool due_in(const struct heap_live *l, uint64_t since, uint64_t ms)
{
	uint64_t due = heap_live_due(l);

	return due >= since + ms * 1000000 && due <= now_ns() + ms * 1000000;
}

/* ---- tests ---- */

/* One that floods leaves the other its part; what finds no room is counted; who goes gives back what it had. */
static void many_share_the_room(void **state)
{
	struct heap_live *a = follow(&room), *b = follow(&room);
	uint64_t had;

	(void)state;
	for (uint64_t i = 0; i < 20000; i++)
		object(a, i, 1);
	had = heap_live_ncounts(a);
	assert_true(had > 1000 && had < 20000);
	assert_int_equal(heap_live_turned_away(a), 20000 - had);
	assert_true(room.taken <= room.quota.free + 1000 && room.taken == a->bytes);
	for (uint64_t i = 0; i < 1000; i++)
		object(b, i, 2);
	assert_true(heap_live_ncounts(b) == 1000 && !heap_live_turned_away(b));
	heap_live_free(a);
	assert_int_equal(room.taken, b->bytes);
	heap_live_free(b);
	assert_int_equal(room.taken, 0);
}

/* Objects that are dead take no more room. */
static void the_dead_give_room_back(void **state)
{
	struct heap_live *l = follow(&room);
	uint64_t had;

	(void)state;
	for (uint32_t i = 0; i < 60; i++)
		object(l, 1, i);
	had = room.taken;
	cycle(0, true);
	assert_int_equal(heap_live_look(l, NULL), 0);
	assert_int_equal(l->objects.n, 0);
	assert_true(room.taken < had && room.taken == l->bytes);
	heap_live_free(l);
}

/* Nobody looks where there is nothing to see. */
static void looks_are_due_after_cycles(void **state)
{
	struct heap_live *l = follow(&room);
	uint64_t began = now_ns();

	(void)state;
	report(l);
	assert_int_equal(heap_live_due(l), 0);
	object(l, 1, 3);
	assert_true(due_in(l, began, 1000));
	began = now_ns();
	cycle(1 << 3, false);
	report(l);
	assert_true(due_in(l, began, 1));
	began = now_ns();
	assert_int_equal(heap_live_look(l, NULL), 0); /* it is not swept: soon again, */
	assert_true(due_in(l, began, 1));
	began = now_ns();
	assert_int_equal(heap_live_look(l, NULL), 0); /* and then less often */
	assert_true(due_in(l, began, 2));
	put(88, fake.gen, 4);
	began = now_ns();
	assert_int_equal(heap_live_look(l, NULL), 0);
	assert_true(due_in(l, began, 1000));
	cycle(0, true);
	assert_int_equal(heap_live_look(l, NULL), 0); /* nothing is left */
	assert_int_equal(heap_live_due(l), 0);
	heap_live_free(l);
}

/* Where nobody reports cycles they are polled for. */
static void without_reports_looks_are_due_often(void **state)
{
	struct heap_live *l = follow(&room);
	uint64_t began = now_ns();

	(void)state;
	heap_live_watched(l, false);
	object(l, 1, 3);
	assert_true(due_in(l, began, 2));
	began = now_ns();
	assert_int_equal(heap_live_look(l, NULL), 0);
	assert_true(due_in(l, began, 2));
	heap_live_free(l);
}

/* What the last look has seen is what is told, however long it takes until the profile is made. */
static void after_the_last_look_nothing_changes(void **state)
{
	struct heap_live *l = follow(&room);
	unsigned reads;
	bool again;

	(void)state;
	object(l, 1, 3);
	object(l, 1, 4);
	cycle(1 << 3, true);
	assert_int_equal(heap_live_last(l, 0, &again, NULL), 0);
	assert_false(again);
	reads = fake.reads;
	cycle(0, true);
	object(l, 1, 5); /* of the last window: it is younger */
	assert_int_equal(heap_live_due(l), 0);
	assert_int_equal(heap_live_last(l, 1, &again, NULL), 0);
	assert_int_equal(heap_live_end(l, NULL), 0);
	assert_int_equal(fake.reads, reads);
	assert_true(l->young == 1 && heap_live_count(l, 0).live == 1);
	assert_true(heap_live_count(l, 0).followed == 3);
	heap_live_free(l);
}

/*
 * Half of a stack's objects outlive a cycle, so one in four outlives the two that were missed: one of four. Two of their slots are free,
 * so it has one of the two others.
 */
static void free_slots_tell_of_those_in_use(void **state)
{
	struct heap_live *l = follow(&room);

	(void)state;
	for (uint32_t i = 0; i < 8; i++)
		object(l, 1, i);
	cycle(0x0f, true);
	assert_int_equal(heap_live_look(l, NULL), 0);
	cycle(0x03, true);
	cycle(0x03, true);
	l->objects.at[0].marks = l->objects.at[1].marks = 0;
	l->objects.at[2].marks = l->objects.at[3].marks =
		0; /* nothing tells of the cycle between */
	assert_int_equal(heap_live_end(l, NULL), 0);
	assert_true(fabs(heap_live_count(l, 0).live - 1) < 0.05);
	assert_true(heap_live_count(l, 0).maybe == 2 && l->unconfirmed == 2);
	heap_live_free(l);
}

/* A span that is just being swept is waited for, but not for ever: then its marks tell. */
static void the_last_look_waits_for_sweeps(void **state)
{
	struct heap_live *l = follow(&room);
	unsigned tries = 0;
	bool again = true;

	(void)state;
	object(l, 1, 3);
	cycle(0, false);
	put(88, fake.gen - 1, 4);
	while (again)
		assert_int_equal(heap_live_last(l, tries++, &again, NULL), 0);
	assert_true(tries > 2 && tries < 100);
	heap_live_free(l);
}

static void one_that_has_gone_is_not_asked(void **state)
{
	struct heap_live *l = follow(&room);
	unsigned reads;

	(void)state;
	object(l, 1, 3);
	heap_live_gone(l);
	report(l);
	assert_int_equal(heap_live_due(l), 0);
	reads = fake.reads;
	assert_int_equal(heap_live_end(l, NULL), 0);
	assert_true(fake.reads == reads && heap_live_count(l, 0).live == 1);
	heap_live_free(l);

	l = follow(&room);
	object(l, 1, 3);
	fake.exited = true;
	assert_int_equal(heap_live_look(l, NULL), 0);
	assert_int_equal(heap_live_due(l), 0);
	heap_live_free(l);
}

/* ---- looks at several ---- */

static struct probed probed;
static struct probe_set set = { .turn.windows = true }; /* files stay open */
static struct engine_target engine_target = { .subject = &subject };
static struct set_member members[3];

static struct heap_live *part_is_live(void *part)
{
	return part;
}

static struct heap_looks k;
static struct own_work own;

static void looks_at(struct heap_live *const *lives, size_t n, double part)
{
	own = (struct own_work){ .part = part };
	k = (struct heap_looks){
		.probed = &probed, .live_of = part_is_live, .timer.fd = -1, .own = &own
	};
	probed.slots = 8;
	for (size_t i = 0; i < n; i++) {
		if (lives[i])
			lives[i]->room = &k.room;
		members[i] = (struct set_member){
			.set = &set, .t = &engine_target, .part = lives[i], .on = true
		};
		members[i].d.owner = &members[i];
		probed.demux.at[i + 1] = &members[i].d;
	}
	heap_looks_share(&k, n);
	heap_looks_begin(&k);
}

static bool looked(struct heap_live *l)
{
	bool seen = l->gen == fake.gen;

	l->gen = GEN;
	return seen;
}

/* One that has used up what there is for all waits, and the others do not. */
static void one_that_collects_all_the_time_costs_the_others_no_look(void **state)
{
	struct heap_live *lives[] = { follow(&room), follow(&room) };
	uint64_t began = now_ns();

	(void)state;
	looks_at(lives, 2, 0.01);
	for (size_t i = 0; i < 2; i++) {
		object(lives[i], 1, 3);
		heap_live_put_off(lives[i], 1); /* it is due */
	}
	cycle(1 << 3, true);
	lives[0]->looks_ns = k.took_ns = 1000000000;
	heap_looks_poll(&k);
	assert_true(!looked(lives[0]) && looked(lives[1]));
	assert_true(due_in(lives[0], began, 20));
	assert_true(k.took_ns > 1000000000 && own.read_ns == k.took_ns - 1000000000);

	own.part = 0; /* no bound */
	heap_live_put_off(lives[0], 1);
	heap_looks_poll(&k);
	assert_true(looked(lives[0]) && !looked(lives[1]));

	own.part = 0.01; /* there is some for whoever comes */
	k.took_ns = 0;
	heap_live_put_off(lives[0], 1);
	heap_looks_poll(&k);
	assert_true(looked(lives[0]));
	for (size_t i = 0; i < 2; i++)
		heap_live_free(lives[i]);
}

/* We are woken for others, too: then nobody is asked, unless one has come, or has to be looked at sooner than all. */
static void nobody_is_asked_before_one_is_due(void **state)
{
	struct heap_live *lives[] = { follow(&room), follow(&room) };
	uint64_t now = now_ns(), later = now + 3600000000000ull;

	(void)state;
	looks_at(lives, 2, 0);
	for (size_t i = 0; i < 2; i++) {
		object(lives[i], 1, 3);
		heap_live_put_off(lives[i], later + i);
	}
	cycle(1 << 3, true);
	heap_looks_poll(&k);
	assert_true(k.room.first_ns == later && k.timer.at_ns == later);
	lives[1]->due_ns = 1; /* nobody tells */
	heap_looks_poll(&k);
	assert_true(!looked(lives[1]) && k.timer.at_ns == later);
	heap_looks_share(&k, 2);
	heap_looks_poll(&k);
	assert_true(looked(lives[1]) && !looked(lives[0]));
	heap_live_put_off(lives[0], 1);
	assert_int_equal(k.room.first_ns, 1);
	heap_looks_poll(&k);
	assert_true(looked(lives[0]) && k.timer.at_ns > now);
	for (size_t i = 0; i < 2; i++)
		heap_live_free(lives[i]);
	assert_int_equal(k.room.taken, 0);
}

/* At the end all are looked at, whatever they have used; those that have gone are left as they were. */
static void all_have_a_last_look(void **state)
{
	struct heap_live *lives[] = { follow(&room), follow(&room), NULL };

	(void)state;
	looks_at(lives, 3, 1);
	k.took_ns = 1000000000;
	members[1].on = false;
	for (size_t i = 0; i < 2; i++)
		object(lives[i], 1, 3);
	cycle(1 << 3, true);
	heap_looks_last(&k);
	assert_true(looked(lives[0]) && !looked(lives[1]));
	assert_true(lives[0]->ended && lives[1]->gone);
	for (size_t i = 0; i < 2; i++)
		heap_live_free(lives[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(many_share_the_room, set_up),
		cmocka_unit_test_setup(the_dead_give_room_back, set_up),
		cmocka_unit_test_setup(looks_are_due_after_cycles, set_up),
		cmocka_unit_test_setup(without_reports_looks_are_due_often, set_up),
		cmocka_unit_test_setup(after_the_last_look_nothing_changes, set_up),
		cmocka_unit_test_setup(free_slots_tell_of_those_in_use, set_up),
		cmocka_unit_test_setup(the_last_look_waits_for_sweeps, set_up),
		cmocka_unit_test_setup(one_that_has_gone_is_not_asked, set_up),
		cmocka_unit_test_setup(one_that_collects_all_the_time_costs_the_others_no_look,
				       set_up),
		cmocka_unit_test_setup(nobody_is_asked_before_one_is_due, set_up),
		cmocka_unit_test_setup(all_have_a_last_look, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
