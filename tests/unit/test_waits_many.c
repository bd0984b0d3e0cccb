/*
 * tests/unit/test_waits_many.c - parts of waits that many targets have: whose goroutines are in the table that they share, who is looked
 * at and how often, and that what becomes of one is no matter of the others. The kind of waits is this file's.
 */
#include "collect/waits/engine/waits_many.h"

#include <math.h>

#include "waits_fakes.h"

enum { GOROUTINES = KINDS_OWN, SWEPT_AFTER = 50, KINDS_LOSS = 7 };

/* ---- a kind ---- */

static struct waits_many m;
static struct own_work own_work;
static int nthings, opens, closes, open_fails, hit_costs, add_fails;
static struct gpb_quota quota;
static __u64 waits_of[GPB_CPU_TARGETS], waits_all;

struct thing {
	struct wait_engine w;
	struct gpb_wait_terms terms;
	struct loss loss;
	__u64 from; /* as the BPF side is told */
	uint64_t added;
};

static int add_to(void *arg, const struct gpb_stack *st, struct err *e)
{
	struct thing *t = arg;

	t->added += st->count;
	return add_fails ? err_set(e, add_fails, "no") : 0;
}

static int measure(void *arg, struct hit_cost *out, struct cost_probes **rest, struct err *e)
{
	(void)arg;
	(void)rest;
	(void)e;
	hit_costs++;
	*out = (struct hit_cost){ .hit_ns = 123 };
	return 0;
}

static const struct wait_kind wait_kind = { .name = "thing", .add = add_to, .hit_cost = measure };

static struct probed_object object(void)
{
	static struct gpb_rounds rounds;
	static struct gpb_taken taken[GPB_CPU_TARGETS];
	static __u64 put_all, taken_all;
	static struct gpb_quota stacks_quota, ring_quota;
	static struct gpb_open open_for[GPB_SETS];
	static __u32 set_of[GPB_CPU_TARGETS];
	static struct gpb_tally tallies[GPB_CPU_TARGETS];

	rounds = (struct gpb_rounds){ 0 };
	put_all = taken_all = 0;
	return (struct probed_object){
		.demux = { .stacks = MAP(STACKS),
			   .ring = MAP(RING),
			   .rules = MAP(RULES),
			   .labelsets = MAP(LABELSETS),
			   .scratches = MAP(SCRATCHES),
			   .rounds = &rounds,
			   .taken = taken,
			   .put_all = &put_all,
			   .taken_all = &taken_all,
			   .stacks_quota = &stacks_quota,
			   .ring_quota = &ring_quota },
		.sets = { .sets = MAP(SETS),
			  .bystanders = MAP(BYSTANDERS),
			  .bss = MAP(BSS),
			  .open_for = open_for,
			  .set_of = set_of },
		.slot_of_tgid = MAP(SLOT_OF_TGID),
		.tallies = tallies,
	};
}

static int object_open(void *arg, struct probed *p, uint32_t slots, uint32_t pidns_ino,
		       struct err *e)
{
	(void)arg;
	(void)slots;
	(void)pidns_ino;
	opens++;
	if (open_fails)
		return err_set(e, open_fails, "the verifier says no");
	p->object = object();
	m.table = (struct wait_table){ .fd = GOROUTINES,
				       .bytes = sizeof(struct gpb_wait),
				       .last = wait_table_wait,
				       .of = waits_of,
				       .all = &waits_all };
	m.quota = &quota;
	return 0;
}

static void object_close(void *arg)
{
	(void)arg;
	closes++;
	m.quota = NULL;
}

static int slot_clear(void *arg, uint32_t at, struct err *e)
{
	(void)arg;
	(void)at;
	(void)e;
	return 0;
}

static int part_new(void *arg, struct engine_target *t, void **part, struct loss **loss,
		    struct err *e)
{
	struct thing *own = calloc(1, sizeof(*own));
	struct waits_part *k;

	(void)arg;
	assert_int_equal(waits_part_new(&m, t, part, e), 0);
	k = *part;
	assert_true(k->m == &m && k->t == t);
	own->w.kind = &wait_kind;
	own->w.arg = own;
	own->w.terms = &own->terms;
	k->own = own;
	k->engine = &own->w;
	*loss = &own->loss;
	nthings++;
	return 0;
}

static int part_slot(void *part, uint32_t at, struct err *e)
{
	return waits_part_slot(part, at, &((struct thing *)((struct waits_part *)part)->own)->from,
			       e);
}

static void part_free(void *part)
{
	struct waits_part *k = part;

	free(k->own);
	free(k);
	nthings--;
}

static int find(void *part, uint32_t index, void **list, struct uprobe_group **groups, size_t *n,
		void **sites, struct err *e)
{
	(void)part;
	(void)index;
	(void)e;
	*list = *groups = calloc(1, sizeof(**groups));
	*n = 1;
	*sites = calloc(1, 1);
	return 0;
}

static void found(void *part, void *sites)
{
	assert_non_null(part);
	assert_non_null(sites);
}

static const struct probed_kind things = {
	.set = { .what = "things", .find = find, .found = found },
	.open = object_open,
	.close = object_close,
	.clear = slot_clear,
	.part_new = part_new,
	.part_slot = part_slot,
	.part_free = part_free,
	.add = waits_part_add,
};

/* ---- the world ---- */

static struct collect_opts opts;

static int set_up(void **state)
{
	(void)state;
	new_waits_world(sizeof(struct gpb_wait));
	nthings = opens = closes = open_fails = hit_costs = add_fails = 0;
	quota = (struct gpb_quota){ 0 };
	memset(waits_of, 0, sizeof(waits_of));
	waits_all = count_ns = 0;
	own_work = (struct own_work){ 0 };
	opts = (struct collect_opts){ .host.own = &own_work };
	m = (struct waits_many){ 0 };
	return waits_many_open(&m, &things, &m, &opts, 10, NULL);
}

static int put(struct one *p, struct err *e)
{
	struct set_member *k = NULL;
	int ret = waits_many_add(&m, &p->t, &k, e);

	p->kept = k;
	return ret;
}

static struct one *joins(uint64_t file)
{
	struct one *p = process(file);

	assert_int_equal(put(p, NULL), 0);
	return p;
}

static struct set_member *member(const struct one *p)
{
	return p->kept;
}

static struct waits_part *part_of(const struct one *p)
{
	return member(p)->part;
}

static struct thing *thing(const struct one *p)
{
	return part_of(p)->own;
}

static struct told *told_by(const struct one *p)
{
	return &told[part_of(p)->at];
}

static void ends(struct one *p)
{
	waits_many_remove(&m, &p->t);
	p->t.until_ns = now;
}

static void forget(struct one *p)
{
	waits_many_forget(&m, TAKE(p->kept));
}

static int tear_down(void **state)
{
	(void)state;
	for (pid_t pid = 1; pid <= last_pid; pid++)
		if (ones[pid]->kept)
			forget(ones[pid]);
	waits_many_fini(&m);
	end_world();
	assert_int_equal(nthings, 0);
	return 0;
}

static void begin(void)
{
	assert_int_equal(waits_many_begin(&m, NULL), 0);
}

static void tick(int times)
{
	for (int i = 0; i < times; i++)
		assert_int_equal(waits_many_tick(&m, 1, NULL), 0);
}

static void poll_once(void)
{
	assert_int_equal(waits_many_poll(&m, NULL), 0);
}

static void take(void)
{
	assert_int_equal(probed_drain(&m.probed, NULL), 0);
}

static void windows(const struct one *p)
{
	assert_int_equal(turn_to(member(p)->set->probing, true, now), 0);
}

/* ---- whose samples are whose ---- */

static void a_slot_that_is_used_again_has_nothing_of_the_last_one(void **state)
{
	struct one *a = joins(7), *b;
	uint32_t slot = member(a)->d.slot, at = part_of(a)->at;

	(void)state;
	assert_int_equal(thing(a)->from, now);
	ends(a);
	forget(a);
	now += 5 * NS_PER_MS;
	b = joins(7);
	assert_int_equal(part_of(b)->at, at);
	assert_true(told[at].w == &thing(b)->w && told[at].reports == &m.probed.demux.reports);
	/* What began before it came is another one's: the BPF side is told, too. */
	assert_true(thing(b)->from == now && part_of(b)->from == now);
	sampled(slot, 3);
	sampled(member(b)->d.slot, 5);
	take();
	assert_int_equal(thing(b)->added, 5);
}

static void a_sample_that_is_not_taken_is_lost_to_its_target_alone(void **state)
{
	struct one *a = joins(7), *b = joins(7);

	(void)state;
	add_fails = -ENOMEM;
	sampled(member(a)->d.slot, KINDS_LOSS);
	take();
	assert_int_equal(thing(a)->loss.n[LOSS_STACKS_UNREADABLE], KINDS_LOSS);
	assert_int_equal(loss_total(&thing(b)->loss), 0);
}

static bool room_of(const struct one *p)
{
	struct wait_engine *w = &thing(p)->w;

	return w->room(w->room_arg);
}

static void keeps(struct one *p, size_t stacks)
{
	thing(p)->w.tally.entries.n = stacks;
	sampled(member(p)->d.slot, 1);
	take();
}

/*
 * There is room for 65,536 stacks in all profiles. Of two targets each may always have 16,384, and beyond that they have 32,768
 * together.
 */
static void one_with_many_stacks_leaves_the_others_their_parts(void **state)
{
	struct one *a = joins(7), *b = joins(7);

	(void)state;
	keeps(a, 49151);
	assert_true(room_of(a) && room_of(b));
	keeps(a, 49152);
	assert_true(!room_of(a) && room_of(b));
	keeps(b, 16383);
	assert_true(room_of(b));
	keeps(b, 16384);
	assert_false(room_of(b));
}

static int label_sets_of(const struct one *p, uint64_t id, size_t bytes)
{
	const struct labels_room *r = &thing(p)->w.labels_room;
	struct gpb_rec_labels rec = { .id = id };
	int n = 0;

	for (; r->fits(r->arg, &rec, bytes); n++)
		rec.id++;
	return n;
}

/* The same of 32 MB of label sets: half of it in equal parts, the other half for who comes first. */
static void one_with_many_labels_leaves_the_others_their_parts(void **state)
{
	struct one *a = joins(7), *b = joins(7);

	(void)state;
	assert_int_equal(label_sets_of(a, 1000, 1 << 20), 16);
	assert_int_equal(label_sets_of(b, 2000, 1 << 20), 8);
}

/* ---- the table of goroutines ---- */

/* It has 262,144 places, of which one CPU may overdraw one: half of the rest is in parts. */
static void parts_of_the_table_follow_the_targets(void **state)
{
	struct one *a, *b;

	(void)state;
	begin();
	a = joins(7);
	assert_true(quota.part == 131071 && quota.free == 131071);
	b = joins(8);
	joins(8);
	assert_int_equal(quota.part, 43690);
	ends(a);
	ends(b);
	assert_int_equal(quota.part,
			 43690); /* the BPF side adds for those that are there, meanwhile */
	tick(1);
	assert_int_equal(quota.part, 131071);
	a = joins(8);
	assert_int_equal(quota.part, 65535);
	ends(a);
	begin();
	assert_int_equal(quota.part, 131071);
}

static void in_the_table(uint32_t at, uint64_t since)
{
	goroutine(at, since);
	waits_of[at]++;
	waits_all++;
}

/* What the last target of a slot has left is told from what is the present one's by its time. */
static void goroutines_of_those_that_have_gone_are_taken_out(void **state)
{
	struct one *a = joins(7), *b = joins(7), *c;
	uint32_t at = part_of(a)->at, other = part_of(b)->at;

	(void)state;
	in_the_table(at, now);
	in_the_table(other, now);
	now += NS_PER_MS;
	begin();
	tick(SWEPT_AFTER);
	assert_int_equal(passes, 0); /* nobody has gone */
	ends(a);
	forget(a);
	c = joins(7);
	in_the_table(at, now);
	assert_int_equal(part_of(c)->at, at);
	tick(SWEPT_AFTER - 2); /* that it came was one, too */
	assert_true(passes == 0 && goroutines_of(at) == 2);
	tick(1);
	assert_int_equal(passes, 1);
	assert_true(goroutines_of(at) == 1 && goroutines[2].key);
	assert_int_equal(goroutines_of(other), 1);
	/* There is room for others again, in its own part and in that of all. */
	assert_true(waits_of[at] == 1 && waits_of[other] == 1 && waits_all == 2);
	tick(SWEPT_AFTER);
	assert_int_equal(passes, 1);
}

static void goroutines_in_a_free_slot_are_taken_out(void **state)
{
	struct one *a = joins(7), *b = joins(7);
	uint32_t at = part_of(a)->at, other = part_of(b)->at;

	(void)state;
	in_the_table(at, now + 1);
	in_the_table(other, now + 1);
	ends(a);
	tick(SWEPT_AFTER);
	assert_true(passes == 1 && goroutines_of(at) == 1); /* its profile is not made yet */
	forget(a);
	tick(SWEPT_AFTER - 1);
	assert_int_equal(passes, 1);
	tick(1);
	assert_true(goroutines_of(at) == 0 && goroutines_of(other) == 1);
}

/* ---- looks ---- */

static bool same(double a, double b)
{
	return fabs(a - b) < 1e-9;
}

static bool looked_at(const struct one *p, double share, uint64_t every)
{
	return same(told_by(p)->share, share) && told_by(p)->count_every_ns == every;
}

/* Two parts of 2 % of a CPU are theirs, and two are for the runtimes' counts. */
static void looks_are_shared_by_those_in_windows(void **state)
{
	struct one *a = joins(7), *b = joins(7), *c = joins(8);

	(void)state;
	own_work.part = 0.02;
	count_ns = 1e5;
	begin();
	assert_true(looked_at(a, 0, 0) && looked_at(c, 0, 0)); /* there are no windows */
	windows(a);
	tick(1);
	assert_true(looked_at(a, 0.02, 5000000) && looked_at(b, 0.02, 5000000) &&
		    looked_at(c, 0, 0));
	windows(c);
	joins(8);
	tick(1);
	for (pid_t pid = 1; pid <= 4; pid++)
		assert_true(looked_at(ones[pid], 0.01, 10000000));
	forget(a);
	forget(b);
	tick(1);
	assert_true(looked_at(c, 0.02, 5000000));
	/* They are full observation's again. */
	assert_int_equal(turn_to(member(c)->set->probing, false, 0), 0);
	*told_by(c) = (struct told){ .w = told_by(c)->w };
	tick(1);
	assert_true(looked_at(c, 0, 0));
}

/* Of one target they take 5 % of a CPU and no more, whatever all may take. */
static void looks_take_no_more_than_those_of_one(void **state)
{
	static const double parts[] = { 0, 0.0251, 0.9 };
	struct one *a = joins(7);

	(void)state;
	begin();
	windows(a);
	for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
		own_work.part = parts[i];
		tick(1);
		assert_true(looked_at(a, 0.05, 0));
	}
}

static void looks_are_shared_when_a_window_begins(void **state)
{
	struct one *a = joins(7);

	(void)state;
	begins_in_windows = true;
	begin();
	assert_true(looked_at(a, 0.05, 0));
}

static void only_in_windows_somebody_is_watched(void **state)
{
	struct one *a = joins(7), *b = joins(8);
	unsigned before;

	(void)state;
	poll_once();
	begin();
	poll_once();
	windows(a);
	poll_once();
	poll_once();
	assert_true(told_by(a)->watches == 2 && told_by(b)->watches == 0);
	told_by(a)->idle = true;
	before = wakes[a->t.id.pid];
	poll_once();
	assert_true(told_by(a)->watches == 2 && wakes[a->t.id.pid] == before);
	told_by(a)->idle = false;
	probed_stop(&m.probed);
	poll_once();
	assert_int_equal(told_by(a)->watches, 2);
}

static int finish(struct one *p, struct err *e)
{
	struct probed_part part;

	return waits_many_finish(&m, p->kept, &part, e);
}

/* Its profile says why. The others are watched on. */
static void one_that_cannot_be_looked_at_has_no_profile(void **state)
{
	struct one *a = joins(7), *b = joins(7), *c = joins(7);
	struct err e = { "" };

	(void)state;
	begin();
	windows(a);
	wake_fails[a->t.id.pid] = -EPERM;
	told_by(c)->watch_fails = -ENOMEM;
	for (int i = 0; i < 3; i++)
		poll_once();
	assert_true(told_by(a)->watches == 0 && told_by(a)->no_more == 1);
	assert_true(told_by(c)->watches == 1 && told_by(c)->no_more == 1);
	assert_true(told_by(b)->watches == 3 && told_by(b)->no_more == 0);
	assert_int_equal(finish(a, &e), -EPERM);
	assert_string_equal(e.msg, "pid 1 is deaf");
	assert_int_equal(finish(c, &e), -ENOMEM);
	assert_string_equal(e.msg, "looks saw too much");
	assert_int_equal(finish(b, &e), 0);
}

/* What was seen up to then is its profile. */
static void one_that_has_gone_is_no_failure(void **state)
{
	struct one *exits = joins(7), *silent = joins(7), *removed = joins(7);
	unsigned before;

	(void)state;
	begin();
	windows(exits);
	wake_fails[exits->t.id.pid] = -ESRCH;
	wake_fails[silent->t.id.pid] = -ETIMEDOUT;
	silent->target.silent = true;
	ends(removed);
	before = wakes[removed->t.id.pid];
	poll_once();
	assert_true(told_by(exits)->no_more == 1 && told_by(silent)->no_more == 1);
	assert_true(wakes[removed->t.id.pid] == before && told_by(removed)->watches == 0);
	assert_int_equal(told_by(removed)->no_more, 1);
	assert_true(!finish(exits, NULL) && !finish(silent, NULL) && !finish(removed, NULL));
}

/* A timer of looks that nobody reads would wake us until the end. */
static void one_that_has_gone_is_not_looked_at_again(void **state)
{
	struct one *stays = joins(7), *goes = joins(7);
	int before;

	(void)state;
	begin();
	before = told_by(goes)->turns;
	assert_int_equal(told_by(stays)->turns, before);
	ends(goes);
	assert_int_equal(told_by(goes)->no_more, 1);
	windows(stays);
	assert_true(told_by(stays)->turns == before + 1 && told_by(stays)->no_more == 0);
	assert_int_equal(told_by(goes)->turns, before);
}

/* ---- stretches ---- */

static void windows_of_a_target_begin_when_it_came(void **state)
{
	struct one *a = joins(7), *late;
	uint64_t began = now;

	(void)state;
	begin();
	now += 10 * NS_PER_MS;
	windows(a);
	now += 10 * NS_PER_MS;
	late = joins(7);
	assert_true(told_by(late)->windows && told_by(late)->since == now);
	assert_int_equal(turn_to(member(a)->set->probing, true, began), 0);
	assert_true(told_by(a)->since == began && told_by(late)->since == now);
}

static void a_stretch_is_told_to_all_of_its_file(void **state)
{
	const struct stretch st = { .window = true, .opened = now, .closed = now + 5, .weight = 3 };
	struct one *a = joins(7), *b = joins(7), *other = joins(8);
	struct probing *p;

	(void)state;
	assert_true(told_by(a)->puts == 1 && told_by(a)->turns == 0);
	begin();
	windows(a);
	p = member(a)->set->probing;
	assert_int_equal(p->u.over(p->u.arg, &st, NULL), 0);
	assert_true(told_by(a)->afters == 1 && told_by(b)->afters == 1);
	assert_true(told_by(b)->last.weight > 2 && told_by(other)->befores == 0);
	/* Looks read it all the time, so its files stay open. */
	assert_true(!a->target.resting && !b->target.resting);
	assert_true(thing(a)->w.probing == p && thing(b)->w.probing == p);
	assert_true(p->u.parts.begin_ns == 3000000 && p->u.parts.end_ns == 10000000);
}

/* What it has of full observation is whole; of windows it has those that are over. */
static void one_that_leaves_has_its_last_part_of_full_observation(void **state)
{
	struct one *full = joins(7), *windowed = joins(8);

	(void)state;
	begin();
	windows(windowed);
	now += 30 * NS_PER_MS;
	ends(full);
	ends(windowed);
	now += 30 * NS_PER_MS;
	assert_true(!finish(full, NULL) && !finish(windowed, NULL));
	assert_true(told_by(full)->unwatched == 1 && told_by(windowed)->unwatched == 1);
	assert_true(told_by(full)->afters == 1 && told_by(windowed)->befores == 0);
	assert_int_equal(told_by(full)->last.closed - told_by(full)->last.opened, 30 * NS_PER_MS);
	assert_true(thing(full)->w.probing == member(full)->set->probing);
}

/* Its probes were not in before the window ended. */
static void one_whose_probes_come_too_late_knows_its_probes(void **state)
{
	struct one *late;

	(void)state;
	begin();
	late = joins(7);
	assert_true(!finish(late, NULL) && told_by(late)->turns == 0);
	assert_true(thing(late)->w.probing && thing(late)->w.probing == member(late)->set->probing);
}

static void at_the_end_nobody_is_watched_before_probes_are_out(void **state)
{
	struct one *a = joins(7), *b = joins(8);

	(void)state;
	begin();
	now += 5 * NS_PER_MS;
	probed_stop(&m.probed);
	assert_true(told_by(a)->unwatched == 1 && told_by(b)->unwatched == 1);
	assert_true(told_by(a)->afters == 1 && told_by(b)->afters == 1);
	assert_true(!finish(a, NULL) && told_by(a)->unwatched == 1);
}

static void the_price_of_a_hit_is_measured_once(void **state)
{
	struct hit_cost cost = { 0 };
	struct cost_probes *rest = NULL;
	struct one *a = joins(7), *b = joins(8);

	(void)state;
	begin();
	for (int i = 0; i < 2; i++) {
		struct probing *p = member(i ? a : b)->set->probing;

		assert_int_equal(p->u.hit_cost(p->u.arg, &cost, &rest, NULL), 0);
		assert_true(same(cost.hit_ns, 123) && hit_costs == 1);
	}
}

/* ---- what fails half way ---- */

static void one_that_does_not_come_in_leaves_nothing(void **state)
{
	struct one *a = process(7), *b;
	struct err e = { "" };

	(void)state;
	target_fails = -ENOTSUP;
	assert_int_equal(put(a, &e), -ENOTSUP);
	assert_true(!a->kept && !nthings && !slot_of[a->t.id.pid]);
	assert_int_equal(quota.part, 0); /* nobody shares the table yet */
	target_fails = 0;
	b = joins(7);
	assert_int_equal(part_of(b)->at, GPB_PRICED + 1);
	assert_int_equal(quota.part, 131071);
	assert_int_equal(slot_of[b->t.id.pid], member(b)->d.slot);
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
	turn_fails = 0;
	assert_true(nthings == 1 && member(a)->set->members.n == 1 && m.probed.nprobed == 1);
	poll_once();
	tick(1);
	assert_true(told_by(a)->watches == 1 && looked_at(a, 0.05, 0));
}

/* It is not loaded for each anew; what all do meanwhile does not need it. */
static void without_its_object_each_is_refused_with_the_reason(void **state)
{
	struct one *a = process(7), *b = process(8);
	struct err e = { "" };

	(void)state;
	open_fails = -EINVAL;
	assert_int_equal(put(a, &e), -EINVAL);
	assert_int_equal(put(b, &e), -EINVAL);
	assert_string_equal(e.msg, "the verifier says no");
	assert_true(opens == 1 && closes == 1 && nthings == 0);
	begin();
	waits_many_remove(&m, &a->t);
	tick(SWEPT_AFTER);
	poll_once();
	assert_int_equal(passes, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_slot_that_is_used_again_has_nothing_of_the_last_one),
		TEST(a_sample_that_is_not_taken_is_lost_to_its_target_alone),
		TEST(one_with_many_stacks_leaves_the_others_their_parts),
		TEST(one_with_many_labels_leaves_the_others_their_parts),
		TEST(parts_of_the_table_follow_the_targets),
		TEST(goroutines_of_those_that_have_gone_are_taken_out),
		TEST(goroutines_in_a_free_slot_are_taken_out),
		TEST(looks_are_shared_by_those_in_windows),
		TEST(looks_take_no_more_than_those_of_one),
		TEST(looks_are_shared_when_a_window_begins),
		TEST(only_in_windows_somebody_is_watched),
		TEST(one_that_cannot_be_looked_at_has_no_profile),
		TEST(one_that_has_gone_is_no_failure),
		TEST(one_that_has_gone_is_not_looked_at_again),
		TEST(windows_of_a_target_begin_when_it_came),
		TEST(a_stretch_is_told_to_all_of_its_file),
		TEST(one_that_leaves_has_its_last_part_of_full_observation),
		TEST(one_whose_probes_come_too_late_knows_its_probes),
		TEST(at_the_end_nobody_is_watched_before_probes_are_out),
		TEST(the_price_of_a_hit_is_measured_once),
		TEST(one_that_does_not_come_in_leaves_nothing),
		TEST(one_that_comes_in_windows_and_fails_leaves_them_to_the_others),
		TEST(without_its_object_each_is_refused_with_the_reason),
	};

	return cmocka_run_group_tests(tests, open_subject, close_subject);
}
