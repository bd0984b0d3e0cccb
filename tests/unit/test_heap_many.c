/*
 * tests/unit/test_heap_many.c - heaps of many processes: who is read and who is probed, what a file's first target finds for all that run
 * it, what is left in a slot, and what windows and the end mean to each of them.
 */
#include <math.h>

#include "heap_fakes.h"
#include "target/host/pidns.h"

/* ---- who is read ---- */

static void what_is_recorded_is_read(void **state)
{
	struct one *a = process(7);
	struct prof *p = NULL;

	(void)state;
	read_fails = 0;
	first_read = (struct prof *)&opts;
	assert_int_equal(put(a, NULL), 0);
	assert_true(nread == 1 && nparts == 0 && opens == 0 && !kind->probed(a->kept));
	assert_ptr_equal(kind->first(many, a->kept), first_read);
	assert_true(!profile(a, &p, NULL) && says(p, "read"));
	prof_free(p);
	assert_int_equal(put(a, NULL), 0); /* a plugin is no matter of what is read */
	assert_true(nread == 1 && writes == 0);
}

static void what_is_not_recorded_is_probed(void **state)
{
	struct one *a = joins(7);

	(void)state;
	first_read = (struct prof *)&opts;
	assert_true(read_puts == 1 && nread == 0 && nparts == 1 && kind->probed(a->kept));
	assert_null(kind->first(many, a->kept));
}

/* It has recorded nothing yet, and what it records may go with it. */
static void what_has_just_started_is_probed(void **state)
{
	struct one *a = process(7), *b = process(8);

	(void)state;
	read_fails = 0;
	a->t.subject->target->exec_ns = 5;
	assert_int_equal(put(a, NULL), 0);
	assert_true(read_puts == 0 && nparts == 1 && kind->probed(a->kept));
	assert_int_equal(put(b, NULL), 0);
	assert_true(read_puts == 1 && nparts == 1 && !kind->probed(b->kept));
}

static void one_that_has_gone_is_not_probed(void **state)
{
	struct one *a = process(7);

	(void)state;
	read_fails = -ESRCH;
	assert_int_equal(put(a, NULL), -ESRCH);
	assert_true(!a->kept && opens == 0);
}

static void probes_that_were_asked_for_are_taken(void **state)
{
	struct one *a;

	(void)state;
	read_fails = 0;
	a = joins(7);
	assert_true(read_puts == 0 && kind->probed(a->kept));
}

static void reading_that_was_asked_for_is_all(void **state)
{
	struct one *a = process(7);
	struct err e = { "" };

	(void)state;
	assert_int_equal(put(a, &e), -ENOTSUP);
	assert_string_equal(e.msg, "it records nothing");
	assert_true(!a->kept && opens == 0 && nparts == 0);
}

/* ---- the object and its slots ---- */

static void all_have_one_object(void **state)
{
	struct one *a = joins(7), *b = joins(8);
	uint32_t ino = 0;

	(void)state;
	assert_int_equal(pidns_inode(&ino, NULL), 0);
	assert_true(opens == 1 && loads == 1 && rodata.pidns_ino == ino);
	assert_ptr_equal(heap(a)->obj, heap(b)->obj);
	/* Of one target 1,024 samples may wait for their objects' places. */
	assert_true(sizes[PLACINGS] == 4096 && sizes[RING] == 4 << 20);
	assert_true(heap(a)->window.slot == at(a) && heap(b)->window.slot == at(b));
	assert_ptr_equal(heap(a)->use.tally, &heap(a)->window.tally);
	assert_ptr_equal(heap(a)->reports, heap(b)->reports);
}

static void where_it_cannot_be_loaded_each_is_refused(void **state)
{
	struct one *a = process(7), *b = process(8);

	(void)state;
	load_fails = -EINVAL;
	assert_true(put(a, NULL) < 0 && put(b, NULL) < 0);
	assert_true(opens == 1 && loads == 1 && !a->kept && nparts == 0);
	begin();
	assert_true(!kind->poll(many, NULL) && !kind->tick(many, 2, NULL));
	kind->stop(many);
	drain();
	read_fails = 0;
	assert_int_equal(put(a, NULL), 0); /* it has begun to record */
}

static void what_another_has_counted_in_a_slot_is_forgotten(void **state)
{
	struct one *a = joins(7), *b;
	uint32_t i = at(a), old = slot(a);

	(void)state;
	assert_true(written[COUNTDOWNS][i] == 1 && written[CLASSES][i] == 1);
	bss.object_counts[i].told = bss.object_counts[i].unknown = 9;
	bss.nplacing[i] = 3;
	ends(a);
	forget(a);
	b = joins(7);
	assert_true(at(b) == i && slot(b) != old);
	assert_true(written[COUNTDOWNS][i] == 2 && written[CLASSES][i] == 2);
	assert_true(!bss.object_counts[i].told && !bss.object_counts[i].unknown);
	assert_int_equal(bss.nplacing[i], 0);
}

static void a_slot_that_cannot_be_cleared_is_nobodys(void **state)
{
	static const int tables[] = { COUNTDOWNS, CLASSES, SLOT_OF_TGID };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		struct one *a = process(7);

		refusing = tables[i];
		assert_true(put(a, NULL) < 0);
		assert_true(!a->kept && nparts == 0 && !slot_of[a->t.id.pid]);
	}
	refusing = 0;
	assert_int_equal(at(joins(7)), GPB_PRICED + 1);
}

/* The table is for all, and the kernel's entries of one that has gone would stay for ever. */
static void samples_that_wait_for_their_places_go_with_their_target(void **state)
{
	struct one *a = joins(7), *b = joins(7), *c = joins(7);
	uint32_t gone = slot(a), stays = slot(b);

	(void)state;
	waits_for_its_place(gone);
	waits_for_its_place(stays);
	waits_for_its_place(gone);
	forget(c);
	assert_int_equal(placings_read, 0); /* it has none */
	ends(a);
	forget(a);
	assert_true(placings_of(gone) == 0 && placings_of(stays) == 1);
}

static void one_that_is_not_understood_leaves_nothing(void **state)
{
	struct one *a = process(7), *b;
	struct err e = { "" };

	(void)state;
	new_fails = -ENOTSUP;
	assert_int_equal(put(a, &e), -ENOTSUP);
	assert_string_equal(e.msg, "its size classes are not known");
	assert_true(!a->kept && nparts == 0 && entries_found == 0);
	new_fails = 0;
	b = joins(7);
	assert_true(at(b) == 1 && nparts == 1);
}

static void a_plugin_is_told_to_the_object(void **state)
{
	struct one *a = joins(7);
	int before = writes;

	(void)state;
	assert_int_equal(put(a, NULL), 0);
	assert_true(writes == before + 1 && nparts == 1 && read_puts == 1);
}

/* ---- samples ---- */

static void samples_go_to_whose_slot_it_is(void **state)
{
	struct one *a = joins(7), *b = joins(7);

	(void)state;
	sampled(slot(a), 2);
	sampled(slot(a), 3);
	sampled(slot(b), 5);
	drain();
	assert_true(heap(a)->window.tally.entries.n == 2 && heap(b)->window.tally.entries.n == 1);
	assert_true(heap(a)->window.sampled == 0 && heap(b)->window.crowded == 0);
	/* How many each keeps is known to all: what is left of the room depends on it. */
	assert_true(member(a)->d.stacks == 2 && member(b)->d.stacks == 1);
}

/* Where there is no room for more stacks those that are known count on; what the others had is told. */
static void without_room_only_new_stacks_are_lost(void **state)
{
	struct one *a = joins(7), *b = joins(7);
	struct probed *all = many;

	(void)state;
	sampled(slot(a), 2);
	drain();
	all->demux.keep_quota = (struct gpb_quota){ .part = 1 }; /* each has no more than one */
	samples[nsamples++] = samples[0];			 /* once more */
	sampled(slot(a), 7);
	sampled(slot(b), 3);
	drain();
	assert_true(heap(a)->window.crowded == 7 && heap(a)->window.sampled == 7);
	assert_int_equal(heap(a)->window.tally.entries.n, 1);
	assert_int_equal(heap(a)->window.tally.seen.at[0].count, 4);
	assert_true(heap(b)->window.crowded == 0 && heap(b)->window.tally.entries.n == 1);
}

/* An object names its stack as the kernel does. Where none is followed nobody asks. */
static void keys_of_stacks_are_kept_for_followed_objects(void **state)
{
	const struct gpb_hash first = { .lo = 0 }, second = { .lo = 1 };
	struct one *a = joins(7), *b;

	(void)state;
	not_followed = true;
	b = joins(8);
	sampled(slot(a), 1);
	sampled(slot(b), 1);
	drain();
	assert_non_null(tally_find(&heap(a)->window.tally, &first));
	assert_null(tally_find(&heap(a)->window.tally, &second));
	assert_null(tally_find(&heap(b)->window.tally, &second));
}

static void record_of(uint32_t of)
{
	struct gpb_rec_object rec = { .type = GPB_REC_OBJECT, .slot = of };

	assert_int_equal(on_record(on_record_arg, &rec, sizeof(rec)), 0);
}

static void objects_are_told_to_their_target(void **state)
{
	struct one *a = joins(7), *b = joins(7), *c;

	(void)state;
	not_followed = true;
	c = joins(8);
	record_of(slot(b));
	record_of(slot(b));
	record_of(slot(c)); /* it follows none */
	assert_true(live(a)->records == 0 && live(b)->records == 2);
}

/* ---- the sites of a file ---- */

static void entries_are_found_once_for_all_that_run_a_file(void **state)
{
	struct one *a = joins(7), *b = joins(7), *c = joins(5);

	(void)state;
	assert_true(entries_found == 2 && live_finds == 2);
	assert_ptr_equal(heap(a)->entries, heap(b)->entries);
	assert_ptr_not_equal(heap(a)->entries, heap(c)->entries);
	assert_true(heap(b)->nsites == 7 && heap(b)->nentries[0] == 7 && heap(c)->nsites == 5);
	assert_true(heap(b)->nmakers[0] == 2 && heap(b)->makers[0][1].arg == 1);
	/* Calls from there count elsewhere: each has its code somewhere else. */
	assert_int_equal(heap(b)->heap.not_from[0].hi, 100);
	forget(a); /* who found them may go first */
	assert_int_equal(heap(b)->entries[6].not_from_hi, 106);
	assert_int_equal(live(b)->found, 0);
}

/* The end of a GC cycle is probed by the other program, in the same set. It stays in windows. */
static void where_cycles_end_is_a_group_of_its_own(void **state)
{
	struct one *a = joins(7), *b = joins(5);
	const struct probe_set *s = set(b);
	struct uprobe_group *stays = s->of->kind->stays(s->sites);
	uint64_t cookie = (uint64_t)s->index << GPB_COOKIE_SLOT_SHIFT;

	(void)state;
	assert_true(s->ngroups == 2 && set(a)->index != s->index);
	assert_true(s->groups[0].prog == alloc && s->groups[0].n == 5);
	assert_true(s->groups[1].prog == cycle && s->groups[1].n == 1);
	assert_int_equal(s->groups[0].sites[4].cookie, cookie | 4);
	assert_true(s->groups[1].sites->cookie == cookie && s->groups[1].sites->file_off == 0xc0);
	assert_true(stays->prog == cycle && stays->n == 1 && stays->sites->cookie == cookie);
	assert_true(stays->sites != s->groups[1].sites); /* the list goes when it is held */
	assert_int_equal(live(a)->found, 1);
}

static void without_a_place_where_cycles_end_nothing_stays(void **state)
{
	struct one *a, *b;

	(void)state;
	no_cycle_site = 1;
	a = joins(7);
	not_followed = true;
	no_cycle_site = 0;
	b = joins(8);
	assert_true(set(a)->ngroups == 1 && set(b)->ngroups == 1);
	assert_null(set(a)->of->kind->stays(set(a)->sites));
	assert_null(set(b)->of->kind->stays(set(b)->sites));
}

/* All that run it are refused alike, and what was allocated is told all the same. */
static void a_file_whose_objects_cannot_be_followed_has_its_allocations(void **state)
{
	struct one *a, *b;

	(void)state;
	live_find_fails = -ENOTSUP;
	a = joins(7);
	live_find_fails = 0;
	b = joins(7);
	assert_true(!live(a) && !live(b) && live_finds == 1);
	assert_true(!heap(a)->window.keys && !heap(b)->window.keys);
	assert_string_equal(heap(a)->use.why_not.msg, "allocLarge returns nowhere");
	assert_string_equal(heap(b)->use.why_not.msg, "allocLarge returns nowhere");
	/* The other file's can. */
	b = joins(8);
	assert_true(live(b) && heap(b)->window.keys && live(b)->found == 1);
}

/* Its sites were not searched for, so nobody else has them. */
static void where_the_first_ones_are_not_followed_nobodys_are(void **state)
{
	struct one *a, *b;

	(void)state;
	not_followed = true;
	a = joins(7);
	not_followed = false;
	b = joins(7);
	assert_true(!live(a) && !live(b) && live_finds == 0);
	assert_string_equal(heap(b)->use.why_not.msg, "offsets of mspan are not known");
	assert_false(heap(b)->window.keys);
}

static void a_file_that_cannot_be_probed_leaves_nothing(void **state)
{
	struct one *a = process(NO_ALLOCATOR), *b = process(7), *c = process(7), *d;
	struct err e = { "" };

	(void)state;
	assert_int_equal(put(a, &e), -ENOENT);
	assert_string_equal(e.msg, "no function runtime.mallocgc");
	entries_fails = -EBADMSG;
	assert_int_equal(put(b, &e), -EBADMSG);
	entries_fails = 0;
	live_find_fails = -ENOMEM;
	assert_int_equal(put(c, &e), -ENOMEM);
	assert_string_equal(e.msg, "allocLarge returns nowhere");
	live_find_fails = 0;
	assert_true(!a->kept && !b->kept && !c->kept && nparts == 0 && nlives == 0);
	d = joins(7);
	assert_true(at(d) == 1 && set(d)->index == 1 && entries_found == 4);
}

/* ---- windows ---- */

static void own(const struct one *p, double ns)
{
	heap(p)->window.own.own = ns;
}

/* One is over for all that run this one's file. */
static void stretch(const struct one *p, bool window)
{
	const struct stretch st = {
		.window = window, .opened = now, .closed = now + 1, .weight = window ? 4 : 1
	};

	assert_int_equal(set(p)->probing->u.over(set(p)->probing->u.arg, &st, NULL), 0);
}

static bool same(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

/* A window is as long as that of the one which is slowed down most. */
static void all_of_a_file_have_the_same_own_time(void **state)
{
	struct one *a = joins(7), *b = joins(7), *other = joins(8), *late;

	(void)state;
	begin();
	own(a, 5e6);
	own(b, 3e6);
	own(other, 1e6);
	assert_int_equal(turn_to(set(a)->probing, false, now), 0);
	assert_true(owns == 0 && same(heap(a)->window.own.own, 5e6));
	windows(a);
	assert_true(same(heap(a)->window.own.own, 3e6) && same(heap(b)->window.own.own, 3e6));
	assert_true(same(heap(other)->window.own.own, 1e6));
	/* The others have agreed on that already. */
	late = joins(7);
	assert_true(same(heap(late)->window.own.own, 3e6));
	/* It may become longer again. */
	own(a, 8e6);
	own(b, 9e6);
	own(late, 7e6);
	stretch(a, true);
	assert_true(same(heap(a)->window.own.own, 7e6) && same(heap(b)->window.own.own, 7e6));
}

/* One of which nobody saw an allocation would be sampled as rarely as in full observation. */
static void one_that_has_not_allocated_is_sampled_densely_in_windows(void **state)
{
	struct one *quiet = joins(7), *busy = joins(7), *rare = joins(7), *set_rate = joins(7),
		   *unknown = joins(7);

	(void)state;
	begin();
	told[at(busy)].seen = 1;
	told[at(unknown)].unknown = true;
	heap(rare)->window.rate_most = 1 << 20;
	heap(set_rate)->window.rate_in_windows = 77;
	assert_int_equal(heap(quiet)->window.rate_in_windows, 0);
	windows(quiet);
	assert_int_equal(heap(quiet)->window.rate_in_windows, 512); /* no denser than Go itself */
	assert_int_equal(heap(rare)->window.rate_in_windows, 1024);
	assert_int_equal(heap(busy)->window.rate_in_windows, 0);
	assert_int_equal(heap(unknown)->window.rate_in_windows, 0);
	assert_int_equal(heap(set_rate)->window.rate_in_windows, 77);
}

/* In windows by what stays in, if that could be put in. */
static void cycles_are_watched_where_their_end_is_probed(void **state)
{
	struct one *a = joins(7), *b;

	(void)state;
	no_cycle_site = 1;
	b = joins(8);
	begin();
	assert_true(live(a)->watched && !live(b)->watched);
	windows(a);
	windows(b);
	assert_true(set(a)->stands && live(a)->watched && !live(b)->watched);
	member(a)->set->stands = false; /* its attacher was killed */
	member(a)->set->standing.plan = (void *)&opts;
	windows(a);
	assert_false(live(a)->watched);
	assert_int_equal(turn_to(set(a)->probing, false, now), 0);
	assert_true(live(a)->watched);
}

/* In windows they are read each few ms, and else when a stretch ends. */
static void counters_rest_in_full_observation(void **state)
{
	struct one *a = joins(7), *b = joins(7);

	(void)state;
	heap(a)->window.counters = (struct rtcounters *)&opts;
	begin();
	assert_int_equal(rests, 1); /* b's are not known */
	stretch(a, false);
	assert_int_equal(rests, 2);
	windows(b);
	stretch(a, true);
	assert_int_equal(rests, 2);
	assert_int_equal(turn_to(set(a)->probing, false, now), 0);
	assert_int_equal(rests, 3);
}

static void the_price_and_the_probes_are_those_of_the_set(void **state)
{
	struct hit_cost cost = { 0 };
	struct cost_probes *rest = NULL;
	struct one *a = joins(7);
	struct probing *p;

	(void)state;
	begin();
	p = set(a)->probing;
	assert_int_equal(p->u.hit_cost(p->u.arg, &cost, &rest, NULL), 0);
	assert_true(same(cost.hit_ns, 100));
	windows(a);
	assert_true(heap(a)->probing == p && same(heap(a)->hit_cost.stepped_ns, 300));
	assert_true(p->u.by_own && p->u.parts.begin_ns == 0 && p->u.parts.end_ns == 8000000);
	assert_int_equal(p->u.parts.most_ns, 50000000);
}

static void one_that_comes_in_windows_and_fails_leaves_them_to_the_others(void **state)
{
	struct one *a = joins(7), *late = process(7);
	struct err e = { "" };

	(void)state;
	begin();
	windows(a);
	turn_fails = -EIO;
	assert_int_equal(put(late, &e), -EIO);
	assert_string_equal(e.msg, "it does not turn");
	assert_true(nparts == 1 && set(a)->members.n == 1 && !late->kept);
}

/* ---- the end ---- */

/* All are looked at at the same moment, after what is in the ring. */
static void the_last_looks_come_when_all_are_closed(void **state)
{
	struct one *a = joins(7), *b = joins(8);

	(void)state;
	begin();
	windows(b);
	now += 5 * NS_PER_MS;
	assert_int_equal(looks_last, 0);
	sampled(slot(a), 1);
	kind->stop(many);
	assert_true(looks_last == 1 && looks_last_drained);
	assert_true(heap(a)->window.ending && heap(b)->window.ending);
	/* The end of windows is told, and full observation has its last stretch. */
	assert_true(told[at(a)].ends == 0 && told[at(a)].afters == 1);
	assert_true(told[at(b)].ends == 1 && told[at(b)].afters == 0);
	assert_true(live(a)->lasts == 1 && !live(a)->gone && !live(b)->gone);
}

static void samples_of_the_last_window_are_taken_before_the_last_looks(void **state)
{
	struct one *a = joins(7);

	(void)state;
	begins_in_windows = true;
	begin();
	sampled(slot(a), 1);
	kind->stop(many);
	assert_true(looks_last == 1 && looks_last_drained);
}

/* Its memory could be read just then, if at all. */
static void one_that_cannot_be_looked_at_any_more_has_gone(void **state)
{
	struct one *a = joins(7), *b = joins(7);

	(void)state;
	begin();
	live(b)->fails = true;
	stretch(a, false);
	assert_int_equal(live(a)->lasts, 0); /* others follow */
	kind->stop(many);
	assert_true(live(a)->lasts == 1 && live(b)->lasts == 1);
	assert_true(!live(a)->gone && live(b)->gone);
}

static void one_that_leaves_has_its_last_part_of_full_observation(void **state)
{
	struct one *full = joins(7), *windowed = joins(8), *stays = joins(7);
	struct prof *p = NULL, *q = NULL;

	(void)state;
	begin();
	windows(windowed);
	now += 30 * NS_PER_MS;
	ends(full);
	ends(windowed);
	drain();
	assert_true(!profile(full, &p, NULL) && !profile(windowed, &q, NULL));
	assert_true(live(full)->gone && live(windowed)->gone && !live(stays)->gone);
	assert_true(told[at(full)].afters == 1 && told[at(windowed)].befores == 0);
	assert_true(told[at(full)].ends == 0 && told[at(windowed)].ends == 1);
	assert_true(told[at(full)].gone == 1 && told[at(windowed)].gone == 1);
	assert_int_equal(told[at(stays)].gone, 0);
	assert_int_equal(told[at(full)].last.closed - told[at(full)].last.opened, 30 * NS_PER_MS);
	prof_free(p);
	prof_free(q);
}

static void a_profile_lasts_as_long_as_its_target_was_probed(void **state)
{
	struct one *a = joins(7);
	struct prof *p = NULL;
	int64_t began;

	(void)state;
	now += 3 * NS_PER_MS;
	began = (int64_t)now;
	begin();
	now += 20 * NS_PER_MS;
	kind->stop(many);
	now += 10 * NS_PER_MS;
	drain();
	assert_int_equal(profile(a, &p, NULL), 0);
	assert_true(heap(a)->start_ns == began && heap(a)->end_ns == began + 20000000);
	assert_int_equal(heap(a)->start_unix_ns, a->t.since_unix_ns + 3000000);
	assert_true(heap(a)->probing == set(a)->probing && !heap(a)->prof);
	assert_true(says(p, "pid: 1") && says(p, "for all that run it"));
	prof_free(p);
}

/* Its probes were not in before the window ended. */
static void one_whose_probes_come_too_late_has_an_empty_profile(void **state)
{
	struct one *late;
	struct prof *p = NULL;

	(void)state;
	begin();
	late = joins(7);
	now += NS_PER_MS;
	kind->stop(many);
	assert_int_equal(profile(late, &p, NULL), 0);
	assert_true(heap(late)->probing && heap(late)->probing == set(late)->probing);
	assert_true(heap(late)->start_ns == (int64_t)now && heap(late)->end_ns == (int64_t)now);
	prof_free(p);
}

static void losses_are_of_whose_they_are(void **state)
{
	struct one *a = joins(7), *b = joins(7);
	struct prof *p = NULL, *q = NULL;

	(void)state;
	bss.tallies[at(a)].lost[GPB_LOSS_OBJECTS] = 4;
	heap(a)->window.crowded = 2;
	sampled(slot(b), 5);
	bss.rounds.filing[0] = 1; /* some program still files in this round, */
	bss.rounds.late = 1;	  /* and was waited for already */
	drain();
	assert_true(!profile(a, &p, NULL) && !profile(b, &q, NULL));
	assert_int_equal(prof_loss(p)->n[LOSS_OBJECTS_UNPLACED], 4);
	assert_true(prof_loss(p)->n[LOSS_STACKS_MANY] == 2 && loss_total(prof_loss(p)) == 6);
	assert_true(prof_loss(q)->n[LOSS_UNFINISHED] == 5 && loss_total(prof_loss(q)) == 5);
	prof_free(p);
	prof_free(q);
}

static void one_without_a_profile_is_no_matter_of_the_others(void **state)
{
	struct one *a = joins(7), *b = joins(7);
	struct err e = { "" };
	struct prof *p = NULL;

	(void)state;
	finish_fails = -ENOMEM;
	assert_int_equal(profile(a, &p, &e), -ENOMEM);
	assert_true(!p && !strcmp(e.msg, "no profile"));
	finish_fails = 0;
	assert_true(!profile(b, &p, &e) && p);
	prof_free(p);
}

/* ---- all of them ---- */

static void looks_are_shared_by_those_that_are_probed(void **state)
{
	struct one *a = joins(7);

	(void)state;
	joins(8);
	begin();
	assert_true(looks_shared == 2 && looks_begun == 1);
	ends(a);
	assert_int_equal(looks_shared, 2);
	assert_int_equal(kind->tick(many, 1, NULL), 0);
	assert_int_equal(looks_shared, 1);
	assert_int_equal(kind->poll(many, NULL), 0);
	assert_true(looks_polled == 1 && looks_begun == 1 && counts_polled == 1);
}

static void what_a_files_probes_take_and_lose_is_told_of_all(void **state)
{
	struct one *a = joins(7), *b = joins(7);
	const struct engine_shared *lost;
	size_t n = 0;

	(void)state;
	unwatched = 3;
	begin();
	assert_int_equal(kind->taken_ns(many), 1000);
	kind->stop(many);
	forget(a);
	forget(b);
	lost = kind->shared(many, &n);
	assert_true(n == 1 && lost->targets == 2 && lost->loss.n[LOSS_UNWATCHED] == 3);
	assert_true(kind->forget_file(many, 1) && !kind->done(many, NULL) && kind->fd(many) >= 0);
}

static void without_what_it_needs_the_kind_is_not_there(void **state)
{
	(void)state;
	looks_open_fails = -EMFILE;
	assert_int_equal(kind->open(kind, &opts, 10, &many, NULL), -EMFILE);
	looks_open_fails = 0;
	read_open_fails = -EIO;
	assert_int_equal(kind->open(kind, &opts, 10, &many, NULL), -EIO);
	assert_true(!many && !read_opens);
}

#define TEST_AFTER(name, before) cmocka_unit_test_setup_teardown(name, before, tear_down)
#define TEST(name)		 TEST_AFTER(name, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_recorded_is_read),
		TEST(what_is_not_recorded_is_probed),
		TEST(what_has_just_started_is_probed),
		TEST(one_that_has_gone_is_not_probed),
		TEST_AFTER(probes_that_were_asked_for_are_taken, set_up_probe),
		TEST_AFTER(reading_that_was_asked_for_is_all, set_up_read),
		TEST(all_have_one_object),
		TEST(where_it_cannot_be_loaded_each_is_refused),
		TEST(what_another_has_counted_in_a_slot_is_forgotten),
		TEST(a_slot_that_cannot_be_cleared_is_nobodys),
		TEST(samples_that_wait_for_their_places_go_with_their_target),
		TEST(one_that_is_not_understood_leaves_nothing),
		TEST(a_plugin_is_told_to_the_object),
		TEST(samples_go_to_whose_slot_it_is),
		TEST(without_room_only_new_stacks_are_lost),
		TEST(keys_of_stacks_are_kept_for_followed_objects),
		TEST(objects_are_told_to_their_target),
		TEST(entries_are_found_once_for_all_that_run_a_file),
		TEST(where_cycles_end_is_a_group_of_its_own),
		TEST(without_a_place_where_cycles_end_nothing_stays),
		TEST(a_file_whose_objects_cannot_be_followed_has_its_allocations),
		TEST(where_the_first_ones_are_not_followed_nobodys_are),
		TEST(a_file_that_cannot_be_probed_leaves_nothing),
		TEST(all_of_a_file_have_the_same_own_time),
		TEST(one_that_has_not_allocated_is_sampled_densely_in_windows),
		TEST(cycles_are_watched_where_their_end_is_probed),
		TEST(counters_rest_in_full_observation),
		TEST(the_price_and_the_probes_are_those_of_the_set),
		TEST(one_that_comes_in_windows_and_fails_leaves_them_to_the_others),
		TEST(the_last_looks_come_when_all_are_closed),
		TEST(samples_of_the_last_window_are_taken_before_the_last_looks),
		TEST(one_that_cannot_be_looked_at_any_more_has_gone),
		TEST(one_that_leaves_has_its_last_part_of_full_observation),
		TEST(a_profile_lasts_as_long_as_its_target_was_probed),
		TEST(one_whose_probes_come_too_late_has_an_empty_profile),
		TEST(losses_are_of_whose_they_are),
		TEST(one_without_a_profile_is_no_matter_of_the_others),
		TEST(looks_are_shared_by_those_that_are_probed),
		TEST(what_a_files_probes_take_and_lose_is_told_of_all),
		TEST_AFTER(without_what_it_needs_the_kind_is_not_there, set_up_nothing),
	};

	return cmocka_run_group_tests(tests, open_subject, close_subject);
}
