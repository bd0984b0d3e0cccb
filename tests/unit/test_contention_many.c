/*
 * tests/unit/test_contention_many.c - block and mutex profiles of many processes: who is read and who is probed, and that the two kinds
 * have one object, one set of sites for each file and one part for each target, which one may leave to the other.
 */
#include "collect/waits/contention/contention_many.h"

#include "contention_fakes.h"

/* ---- the world ---- */

static const struct engine_kind *const block = &engine_block, *const mutex = &engine_mutex;
static void *blocks, *mutexes; /* their states */
static struct collect_opts opts;
static struct own_work own_work;

static void reset(void)
{
	new_waits_world(sizeof(struct gpb_wait));
	memset(added, 0, sizeof(added));
	memset(window_ends, 0, sizeof(window_ends));
	opens = new_fails = finds = add_fails = asked = read_fails = open_fails = 0;
	found_for = impossible = unchecked = uncounted = 0;
	nread = 0;
	records = -ENOENT; /* so they are probed */
	opts = (struct collect_opts){ .source = SOURCE_AUTO, .host.own = &own_work };
	blocks = mutexes = NULL;
}

static int open_kinds(void)
{
	int ret = block->open(block, &opts, 10, &blocks, NULL);

	mutexes = blocks;
	return ret ? ret : mutex->open(mutex, &opts, 10, &mutexes, NULL);
}

static int set_up(void **state)
{
	(void)state;
	reset();
	return open_kinds();
}

static int set_up_probe(void **state)
{
	(void)state;
	reset();
	opts.source = SOURCE_PROBE;
	return open_kinds();
}

static int set_up_read(void **state)
{
	(void)state;
	reset();
	opts.source = SOURCE_READ;
	return open_kinds();
}

static int set_up_mutex_alone(void **state)
{
	(void)state;
	reset();
	return mutex->open(mutex, &opts, 10, &mutexes, NULL);
}

static int set_up_nothing(void **state)
{
	(void)state;
	reset();
	return 0;
}

/* What the two kinds keep of one. */
struct both {
	struct one *p;
	void *block, *mutex;
	uint32_t slot; /* that it had last */
};
static struct both all[PROCESSES];

static uint32_t at(struct both *b)
{
	if (slot_of[b->p->t.id.pid])
		b->slot = slot_of[b->p->t.id.pid];
	return demux_index(b->slot);
}

static struct both *starts(uint64_t file)
{
	struct one *p = process(file);
	struct both *b = &all[p->t.id.pid];

	*b = (struct both){ .p = p };
	return b;
}

static int put_block(struct both *b, struct err *e)
{
	return block->put(blocks, &b->p->t, &b->block, e);
}

static int put_mutex(struct both *b, struct err *e)
{
	return mutex->put(mutexes, &b->p->t, &b->mutex, e);
}

static struct both *joins(uint64_t file)
{
	struct both *b = starts(file);

	assert_int_equal(put_block(b, NULL), 0);
	assert_int_equal(put_mutex(b, NULL), 0);
	return b;
}

static void forget_block(struct both *b)
{
	block->forget(blocks, &b->p->t, TAKE(b->block));
}

static void forget_mutex(struct both *b)
{
	mutex->forget(mutexes, &b->p->t, TAKE(b->mutex));
}

static void ends(struct both *b)
{
	(void)at(b);
	block->remove(blocks, &b->p->t);
	mutex->remove(mutexes, &b->p->t);
	b->p->t.until_ns = now;
}

static int tear_down(void **state)
{
	(void)state;
	for (pid_t pid = 1; pid <= last_pid; pid++) {
		if (all[pid].block)
			forget_block(&all[pid]);
		if (all[pid].mutex)
			forget_mutex(&all[pid]);
	}
	if (mutexes)
		mutex->free(mutexes);
	if (blocks)
		block->free(blocks);
	end_world();
	assert_true(!nscheds && !nread && !read_opens && !nprofiles);
	return 0;
}

static struct wait_engine *engine(struct both *b)
{
	return told[at(b)].w;
}

static struct sched *sched(struct both *b)
{
	return engine(b)->arg;
}

static struct set_member *member(struct both *b)
{
	const struct waits_part *k = engine(b)->room_arg;

	return probed_member(&k->m->probed, at(b));
}

/* As the engine does it: both kinds, the first one first. */
static void begin(void)
{
	assert_int_equal(block->begin(blocks, NULL), 0);
	assert_int_equal(mutex->begin(mutexes, NULL), 0);
}

static void stop(void)
{
	block->stop(blocks);
	mutex->stop(mutexes);
}

static void drain(void)
{
	assert_int_equal(block->drain(blocks, NULL), 0);
	assert_int_equal(mutex->drain(mutexes, NULL), 0);
}

static bool block_says(struct both *b, const char *what)
{
	struct prof *p = NULL;
	bool so;

	assert_int_equal(block->profile(blocks, &b->p->t, b->block, &p, NULL), 0);
	so = says(p, what);
	prof_free(p);
	return so;
}

static bool mutex_says(struct both *b, const char *what)
{
	struct prof *p = NULL;
	bool so;

	assert_int_equal(mutex->profile(mutexes, &b->p->t, b->mutex, &p, NULL), 0);
	so = says(p, what);
	prof_free(p);
	return so;
}

/* ---- who is read ---- */

static void what_is_recorded_is_read(void **state)
{
	struct both *a = starts(7);

	(void)state;
	records = 0;
	first_read = (struct prof *)&records;
	assert_true(!put_block(a, NULL) && !put_mutex(a, NULL));
	assert_true(asked == 2 && nread == 2 && opens == 0 && nscheds == 0);
	assert_true(!block->probed(a->block) && !mutex->probed(a->mutex));
	assert_true(block_says(a, "read: block") && mutex_says(a, "read: mutex"));
	assert_ptr_equal(block->first(blocks, a->block), first_read);
	assert_int_equal(put_block(a, NULL), 0); /* a plugin is no matter of what is read */
	assert_int_equal(nread, 2);
}

static void what_is_not_recorded_is_probed(void **state)
{
	struct both *a = joins(7);

	(void)state;
	assert_true(asked == 2 && nread == 0 && nscheds == 1);
	assert_true(block->probed(a->block) && mutex->probed(a->mutex));
	assert_null(block->first(blocks, a->block));
}

/* One that records and cannot be read is probed; of one that has gone there is nothing. */
static void who_cannot_be_read_is_probed_if_it_is_there(void **state)
{
	struct both *a = starts(7), *b = starts(7);

	(void)state;
	records = 0;
	read_fails = -EFAULT;
	assert_true(!put_block(a, NULL) && block->probed(a->block));
	read_fails = -ESRCH;
	assert_int_equal(put_block(b, NULL), -ESRCH);
	assert_true(!b->block && nscheds == 1);
}

static void probes_that_were_asked_for_are_taken(void **state)
{
	struct both *a;

	(void)state;
	records = 0;
	a = joins(7);
	assert_true(asked == 0 && block->probed(a->block) && mutex->probed(a->mutex));
}

/* What was recorded earlier is read, too, so nobody asks whether it records now. */
static void reading_that_was_asked_for_is_all(void **state)
{
	struct both *a;
	struct err e = { "" };

	(void)state;
	a = joins(7);
	assert_true(asked == 0 && nread == 2 && opens == 0 && !block->probed(a->block));
	read_fails = -EFAULT;
	assert_int_equal(put_block(starts(7), &e), -EFAULT);
	assert_string_equal(e.msg, "its memory cannot be read");
	assert_int_equal(opens, 0);
}

/* ---- one part for both kinds ---- */

static void both_kinds_share_all_that_is_probed(void **state)
{
	struct both *a = joins(7), *b = joins(7);

	(void)state;
	assert_true(opens == 1 && loads == 1 && nscheds == 2);
	assert_true(finds == 1 && found_for == (BLOCK | MUTEX));
	assert_true(sched(a)->kinds == (BLOCK | MUTEX) && sched(b)->kinds == (BLOCK | MUTEX));
	/* Sites that were found for the first one are told to the second. */
	assert_true(sched(a)->nsites[0] == 3 && sched(b)->nsites[0] == 3);
	assert_true(sched(a)->nimages == 1 && sched(b)->nimages == 1);
	assert_ptr_not_equal(sched(a), sched(b));
	assert_true(sizes[RING] == 4 << 20 && engine(a)->object.multi);
	assert_ptr_equal(engine(b)->object.losses, &bss.tallies[at(b)]);
	/* One of them does what is done once. */
	assert_true(block->fd(blocks) >= 0 && mutex->fd(mutexes) == -1);
	assert_true(mutex->with == block && !block->with);
}

static void sites_are_told_apart_by_their_files(void **state)
{
	struct both *a = joins(7), *b = joins(8);
	const struct probe_set *s = member(a)->set, *other = member(b)->set;

	(void)state;
	assert_true(s->ngroups == 1 && s->groups->n == 3 && s->groups->prog == prog);
	assert_true(s->index != other->index && finds == 2);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(s->groups->sites[i].cookie, s->index);
		assert_int_equal(other->groups->sites[i].cookie, other->index);
	}
}

static void a_kind_alone_has_no_sites_of_the_other(void **state)
{
	struct both *a = starts(7);

	(void)state;
	assert_int_equal(put_mutex(a, NULL), 0);
	assert_true(found_for == MUTEX && sched(a)->nsites[0] == 2 && sched(a)->kinds == MUTEX);
	assert_true(mutex->fd(mutexes) >= 0);
	assert_int_equal(mutex->begin(mutexes, NULL), 0);
	assert_int_equal(mutex->taken_ns(mutexes), 1000);
}

static void what_one_kind_cannot_have_the_other_has(void **state)
{
	struct both *a = starts(7), *b = starts(7);
	struct err e = { "" };

	(void)state;
	impossible = MUTEX;
	assert_int_equal(put_block(a, NULL), 0);
	assert_int_equal(put_mutex(a, &e), -ENOTSUP);
	assert_string_equal(e.msg, "kind 1: not in its file");
	assert_true(!a->mutex && found_for == BLOCK && sched(a)->kinds == BLOCK);
	/* That is known of its file: of one that comes later, too. */
	impossible = 0;
	assert_int_equal(put_mutex(b, &e), -ENOTSUP);
	assert_int_equal(put_block(b, NULL), 0);
	assert_true(finds == 1 && nscheds == 2);
}

static void a_file_in_which_nothing_can_be_probed_leaves_nothing(void **state)
{
	struct both *a = starts(7), *b;
	struct err e = { "" };

	(void)state;
	impossible = BLOCK | MUTEX;
	assert_int_equal(put_block(a, &e), -ENOTSUP);
	assert_string_equal(e.msg, "kind 0: not in its file");
	assert_int_equal(put_mutex(a, NULL), -ENOTSUP);
	assert_true(!a->block && !a->mutex && nscheds == 0 && finds == 0);
	impossible = 0;
	b = joins(7);
	assert_int_equal(at(b), 1);
}

static void of_a_kind_alone_its_own_reason_is_told(void **state)
{
	struct err e = { "" };

	(void)state;
	impossible = MUTEX;
	assert_int_equal(put_mutex(starts(7), &e), -ENOTSUP);
	assert_string_equal(e.msg, "kind 1: not in its file");
}

/* The kind that came first goes on; one that came alone leaves no part behind. */
static void a_kind_that_fails_half_way_leaves_the_other_alone(void **state)
{
	struct both *a = starts(7), *b = starts(7);
	struct err e = { "" };

	(void)state;
	assert_int_equal(put_block(a, NULL), 0);
	unchecked = MUTEX;
	assert_int_equal(put_mutex(a, &e), -ENOTSUP);
	assert_string_equal(e.msg, "kind 1: not in it");
	assert_true(nscheds == 1 && sched(a)->kinds == BLOCK);
	assert_int_equal(put_mutex(b, NULL), -ENOTSUP);
	assert_true(nscheds == 1 && !slot_of[b->p->t.id.pid]);
	unchecked = 0;
	uncounted = MUTEX;
	assert_int_equal(put_mutex(a, &e), -ENOSPC);
	assert_true(nscheds == 1 && sched(a)->kinds == BLOCK);
	uncounted = 0;
	assert_true(!put_mutex(a, NULL) && !put_mutex(b, NULL));
	assert_true(nscheds == 2 && sched(a)->kinds == (BLOCK | MUTEX) && sched(b)->kinds == MUTEX);
}

static void the_last_kind_takes_the_part_with_it(void **state)
{
	struct both *a = joins(7), *b = joins(7);
	uint32_t was = at(a);

	(void)state;
	forget_block(a);
	assert_true(nscheds == 2 && sched(a)->kinds == MUTEX);
	sampled(a->slot, 3);
	drain();
	assert_int_equal(added[was], 3);
	forget_mutex(a);
	assert_true(nscheds == 1 && !slot_of[a->p->t.id.pid]);
	forget_mutex(b);
	forget_block(b);
	assert_int_equal(nscheds, 0);
}

static void one_that_is_not_understood_leaves_nothing(void **state)
{
	struct both *a = starts(7), *b;
	struct err e = { "" };

	(void)state;
	new_fails = -EBADMSG;
	assert_int_equal(put_block(a, &e), -EBADMSG);
	assert_string_equal(e.msg, "its structs are not known");
	assert_true(!a->block && finds == 0);
	new_fails = 0;
	b = joins(7);
	assert_true(at(b) == 1 && nscheds == 1);
}

static void a_plugin_is_told_to_the_object(void **state)
{
	struct both *a = joins(7), *b = joins(7);

	(void)state;
	assert_int_equal(told[at(a)].targets, 1);
	assert_int_equal(put_block(a, NULL), 0);
	assert_true(told[at(a)].targets == 2 && told[at(b)].targets == 1 && nscheds == 2);
}

/* ---- slots and the object ---- */

static void what_another_has_counted_in_a_slot_is_forgotten(void **state)
{
	struct both *a = joins(7), *b;

	(void)state;
	assert_int_equal(written[SEEN][at(a)], 1);
	bss.sched_counted[at(a)] = 99;
	ends(a);
	forget_block(a);
	forget_mutex(a);
	now += NS_PER_MS;
	b = joins(7);
	assert_true(at(b) == demux_index(a->slot) && b->slot != a->slot);
	assert_true(written[SEEN][at(b)] == 2 && !bss.sched_counted[at(b)]);
	assert_int_equal(sched(b)->window.conf.from, now);
}

static void goroutines_that_have_gone_leave_the_objects_table(void **state)
{
	struct both *a = joins(7), *b;

	(void)state;
	assert_int_equal(bss.waits_quota.part, 131071); /* of 262,144, less one of the only CPU */
	goroutine(at(a), now);
	ends(a);
	forget_block(a);
	forget_mutex(a);
	now += NS_PER_MS;
	b = joins(7);
	goroutine(at(b), now);
	goroutine(at(b), now);
	bss.waits_of[at(b)] = bss.waits_all = 3;
	/* Both kinds tick, and the first one does it. */
	for (int i = 0; i < 49; i++) {
		assert_int_equal(passes, 0);
		assert_true(!block->tick(blocks, 1, NULL) && !mutex->tick(mutexes, 1, NULL));
	}
	assert_true(passes == 1 && goroutines_of(at(b)) == 2);
	assert_true(bss.waits_of[at(b)] == 2 && bss.waits_all == 2);
}

static void where_there_is_no_object_nobody_is_probed(void **state)
{
	struct both *a = starts(7);

	(void)state;
	ring_fails = true;
	assert_true(put_block(a, NULL) < 0 && put_mutex(a, NULL) < 0);
	assert_true(opens == 1 && !a->block && !a->mutex);
	ends(a);
	for (int i = 0; i < 60; i++)
		assert_int_equal(block->tick(blocks, 0, NULL), 0);
	begin();
	stop();
	drain();
	assert_int_equal(passes, 0);
	/* What is recorded is read all the same. */
	records = 0;
	assert_true(!put_block(a, NULL) && nread == 1);
}

/* ---- profiles ---- */

/* Each stands for the time of its target. What looks and windows have seen is whole once, for both. */
static void both_profiles_are_of_the_same_time(void **state)
{
	struct both *a = joins(7);

	(void)state;
	begin();
	now += 40 * NS_PER_MS;
	ends(a);
	now += 10 * NS_PER_MS;
	drain();
	assert_true(block_says(a, "block: from 1000000000 (unix 1000000000) to 1040000000"));
	assert_true(mutex_says(a, "mutex: from 1000000000 (unix 1000000000) to 1040000000"));
	assert_true(window_ends[at(a)] == 1 && told[at(a)].unwatched == 1);
	assert_true(block_says(a, "pid: 1") && mutex_says(a, "for all that run it"));
	assert_true(engine(a)->probing == member(a)->set->probing);
}

/* Those that began before, and another one's, are no waits of this target. */
static void who_waits_at_the_end_is_counted_for_each(void **state)
{
	struct both *a = joins(7), *b = joins(8), *c = joins(8);

	(void)state;
	goroutine(at(a), now);
	now += NS_PER_MS;
	begin();
	goroutine(at(a), now);
	goroutine(at(b), now + 1);
	goroutine(at(b), now + 2);
	now += NS_PER_MS;
	stop();
	drain();
	assert_true(block_says(a, "1 waiting") && mutex_says(a, "1 waiting"));
	assert_true(block_says(b, "2 waiting") && block_says(c, "0 waiting"));
	assert_int_equal(passes, 1); /* over the table, for all of them */
}

/* A target that ends earlier has its profile earlier: of the others it is not known yet. */
static void who_waits_is_counted_anew_after_more_was_taken(void **state)
{
	struct both *a = joins(7), *b = joins(8);

	(void)state;
	begin();
	goroutine(at(b), now);
	ends(a);
	drain();
	assert_true(block_says(a, "0 waiting"));
	goroutine(at(b), now + 1);
	now += NS_PER_MS;
	stop();
	drain();
	assert_true(block_says(b, "2 waiting"));
	assert_int_equal(passes, 2);
}

/* Looks tell that. */
static void in_windows_nobody_counts_who_waits(void **state)
{
	struct both *a = joins(7);

	(void)state;
	begins_in_windows = true;
	begin();
	assert_true(!block->poll(blocks, NULL) && !mutex->poll(mutexes, NULL));
	assert_int_equal(told[at(a)].watches, 1); /* by one of the kinds */
	goroutine(at(a), now + 1);
	stop();
	drain();
	assert_true(block_says(a, "0 waiting"));
	assert_int_equal(passes, 0);
}

/* Nothing of its time was observed, so what its probes saw tells nothing of who waits. */
static void of_one_whose_probes_came_too_late_nobody_waits(void **state)
{
	struct both *late;

	(void)state;
	begin();
	late = joins(8);
	goroutine(at(late), now);
	stop();
	drain();
	assert_true(block_says(late, "0 waiting"));
}

/* What was lost in its slot, and what could not be taken. */
static void losses_are_of_whose_they_are(void **state)
{
	struct both *a = joins(7), *b = joins(7);
	struct prof *p = NULL;

	(void)state;
	begin();
	bss.tallies[at(a)].lost[GPB_LOSS_DROPPED] = 4;
	sampled(slot_of[b->p->t.id.pid], 5);
	bss.rounds.filing[0] = 1; /* some program still files in this round, */
	bss.rounds.late = 1;	  /* and was waited for already */
	drain();
	assert_true(block_says(a, "0 left") && block_says(b, "5 left"));
	assert_int_equal(mutex->profile(mutexes, &a->p->t, a->mutex, &p, NULL), 0);
	assert_int_equal(prof_loss(p)->n[LOSS_SAMPLES_DROPPED], 4);
	assert_int_equal(loss_total(prof_loss(p)), 4);
	prof_free(p);
	p = NULL;
	assert_int_equal(block->profile(blocks, &b->p->t, b->block, &p, NULL), 0);
	assert_int_equal(loss_total(prof_loss(p)), 0);
	prof_free(p);
}

static void a_sample_that_is_not_taken_is_lost_to_its_target_alone(void **state)
{
	struct both *a = joins(7), *b = joins(7);
	struct prof *p = NULL, *q = NULL;

	(void)state;
	begin();
	add_fails = -ENOMEM;
	sampled(slot_of[a->p->t.id.pid], 6);
	drain();
	assert_int_equal(block->profile(blocks, &a->p->t, a->block, &p, NULL), 0);
	assert_int_equal(block->profile(blocks, &b->p->t, b->block, &q, NULL), 0);
	assert_int_equal(prof_loss(p)->n[LOSS_STACKS_UNREADABLE], 6);
	assert_int_equal(loss_total(prof_loss(q)), 0);
	prof_free(p);
	prof_free(q);
}

/* Of the two kinds one tells what they take and lose together. */
static void what_all_probes_take_and_lose_is_told_once(void **state)
{
	struct both *a = joins(7), *b = joins(7);
	const struct engine_shared *lost;
	size_t n = 0;

	(void)state;
	unwatched = 3;
	begin();
	assert_true(block->taken_ns(blocks) == 1000 && mutex->taken_ns(mutexes) == 0);
	stop();
	forget_block(a);
	forget_mutex(a);
	forget_block(b);
	forget_mutex(b);
	lost = block->shared(blocks, &n);
	assert_true(n == 1 && lost->targets == 2 && lost->loss.n[LOSS_UNWATCHED] == 3);
	assert_true(!mutex->shared(mutexes, &n) && n == 0);
	assert_true(block->forget_file(blocks, 1) && mutex->forget_file(mutexes, 1));
}

/* One alone has 16 of the 32 MB that there are for label sets, and has them again in the next window. */
static void label_sets_are_those_of_a_window(void **state)
{
	const struct labels_room *r = &engine(joins(7))->labels_room;
	struct gpb_rec_labels rec = { .id = 5 };

	(void)state;
	for (int i = 0; i < 2; i++) {
		assert_true(r->fits(r->arg, &rec, 16 << 20));
		assert_false(r->fits(r->arg, &rec, 1));
		assert_true(!block->done(blocks, NULL) && !mutex->done(mutexes, NULL));
	}
}

static void where_looks_failed_there_is_no_profile(void **state)
{
	struct both *a = joins(7);
	struct err e = { "" };
	struct prof *p = NULL;

	(void)state;
	begins_in_windows = true;
	begin();
	told[at(a)].watch_fails = -EFAULT;
	assert_true(!block->poll(blocks, NULL) && !mutex->poll(mutexes, NULL));
	assert_int_equal(told[at(a)].watches, 1);
	stop();
	assert_int_equal(mutex->profile(mutexes, &a->p->t, a->mutex, &p, &e), -EFAULT);
	assert_string_equal(e.msg, "looks saw too much");
	assert_true(!p && window_ends[at(a)] == 0);
}

/* ---- opening ---- */

static void without_its_reading_a_kind_is_not_there(void **state)
{
	struct both *a = starts(7);

	(void)state;
	open_fails = -EIO;
	assert_int_equal(block->open(block, &opts, 10, &blocks, NULL), -EIO);
	assert_true(!blocks && !read_opens);
	open_fails = 0;
	assert_int_equal(block->open(block, &opts, 10, &blocks, NULL), 0);
	/* What the other kind has of it stays; and it is asked for alone. */
	open_fails = -EIO;
	mutexes = blocks;
	assert_int_equal(mutex->open(mutex, &opts, 10, &mutexes, NULL), -EIO);
	mutexes = NULL;
	assert_int_equal(put_block(a, NULL), 0);
	assert_int_equal(found_for, BLOCK);
}

#define TEST_AFTER(name, before) cmocka_unit_test_setup_teardown(name, before, tear_down)
#define TEST(name)		 TEST_AFTER(name, set_up)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_recorded_is_read),
		TEST(what_is_not_recorded_is_probed),
		TEST(who_cannot_be_read_is_probed_if_it_is_there),
		TEST_AFTER(probes_that_were_asked_for_are_taken, set_up_probe),
		TEST_AFTER(reading_that_was_asked_for_is_all, set_up_read),
		TEST(both_kinds_share_all_that_is_probed),
		TEST(sites_are_told_apart_by_their_files),
		TEST_AFTER(a_kind_alone_has_no_sites_of_the_other, set_up_mutex_alone),
		TEST(what_one_kind_cannot_have_the_other_has),
		TEST(a_file_in_which_nothing_can_be_probed_leaves_nothing),
		TEST_AFTER(of_a_kind_alone_its_own_reason_is_told, set_up_mutex_alone),
		TEST(a_kind_that_fails_half_way_leaves_the_other_alone),
		TEST(the_last_kind_takes_the_part_with_it),
		TEST(one_that_is_not_understood_leaves_nothing),
		TEST(a_plugin_is_told_to_the_object),
		TEST(what_another_has_counted_in_a_slot_is_forgotten),
		TEST(goroutines_that_have_gone_leave_the_objects_table),
		TEST(where_there_is_no_object_nobody_is_probed),
		TEST(both_profiles_are_of_the_same_time),
		TEST(who_waits_at_the_end_is_counted_for_each),
		TEST(who_waits_is_counted_anew_after_more_was_taken),
		TEST(in_windows_nobody_counts_who_waits),
		TEST(of_one_whose_probes_came_too_late_nobody_waits),
		TEST(losses_are_of_whose_they_are),
		TEST(a_sample_that_is_not_taken_is_lost_to_its_target_alone),
		TEST(what_all_probes_take_and_lose_is_told_once),
		TEST(label_sets_are_those_of_a_window),
		TEST(where_looks_failed_there_is_no_profile),
		TEST_AFTER(without_its_reading_a_kind_is_not_there, set_up_nothing),
	};

	return cmocka_run_group_tests(tests, open_subject, close_subject);
}
