/*
 * tests/unit/test_wait_many.c - wait profiles of many processes: one object for all, sites that are found once for each file, what is
 * counted in a slot that was another's, and whose a profile is. What a wait profile is made of is this file's.
 */
#include "collect/waits/wait/wait_many.h"

#include "collect/waits/wait/wait_priv.h"
#include "collect/waits/engine/waits_many.h"
#include "target/host/pidns.h"
#include "waits_fakes.h"

enum { STANDINGS = KINDS_OWN, SEEN, NO_SCHEDULER = 13 /* a file */ };

/* ---- the object ---- */

static struct wait_bpf__bss bss;
static struct wait_bpf__rodata rodata;
static int opens;
static uint32_t slots_asked;
static struct bpf_program *const prog = (struct bpf_program *)&bss;

int wait_object_open(struct wait_bpf **out, bool multi, uint32_t slots, bool many, struct err *e)
{
	(void)e;
	assert_true(multi && many);
	opens++;
	slots_asked = slots;
	memset(&bss, 0, sizeof(bss));
	*out = calloc(1, sizeof(**out));
	(*out)->bss = &bss;
	(*out)->rodata = &rodata;
	HAS_TABLES(*out);
	(*out)->maps.standings = MAP(STANDINGS);
	(*out)->maps.seen = MAP(SEEN);
	(*out)->progs.wait_status = prog;
	return 0;
}

struct wait_object wait_object_of(struct wait_bpf *o, bool multi)
{
	return (struct wait_object){ .bss = o->maps.bss, .multi = multi };
}

/* ---- a target's wait profile ---- */

static int nwaits, new_fails, finds, finish_fails;
static uint64_t added[GPB_CPU_TARGETS]; /* by slot */

static int add_to(void *arg, const struct gpb_stack *st, struct err *e)
{
	const struct wait *w = arg;

	(void)e;
	added[w->window.engine.slot] += st->count;
	return 0;
}

static const struct wait_kind wait_kind = { .name = "wait", .add = add_to };

int wait_new(struct subject *s, const struct collect_opts *o, struct wait **out, struct err *e)
{
	struct wait *w;

	assert_non_null(o);
	if (new_fails)
		return err_set(e, new_fails, "its structs are not known");
	w = calloc(1, sizeof(*w));
	w->s = s;
	w->window.engine.kind = &wait_kind;
	w->window.engine.arg = w;
	w->window.engine.terms = &w->window.conf.terms;
	nwaits++;
	*out = w;
	return 0;
}

void wait_free(void *w)
{
	nwaits -= w != NULL;
	if (w)
		prof_free(((struct wait *)w)->out.prof);
	free(w);
}

/* A file has as many sites as its number says. */
int wait_sites_in(const struct wait *w, size_t i, uint32_t of,
		  struct uprobe_site out[WAITSITES_MAX], struct err *e)
{
	int n = (int)w->s->images.at[i].inode;

	assert_true(!i && w->obj);
	finds++;
	if (n == NO_SCHEDULER)
		return err_set(e, -ENOTSUP, "it has no scheduler");
	for (int k = 0; k < n; k++)
		out[k] = (struct uprobe_site){ .file_off = (uint64_t)k, .cookie = of };
	return n;
}

int wait_finish(struct wait *w, struct err *e)
{
	assert_int_equal(told_of(&w->window.engine)->ends, 1); /* results of looks are there */
	if (finish_fails)
		return err_set(e, finish_fails, "no profile");
	return prof_new(&w->out.prof, e);
}

struct prof *wait_prof_take(struct wait_prof *p)
{
	return TAKE(p->prof);
}

/* ---- the world ---- */

static const struct engine_kind *const kind = &engine_wait;
static void *many;
static struct own_work own_work;
static struct collect_opts opts = { .host.own = &own_work };

static int set_up(void **state)
{
	(void)state;
	new_waits_world(sizeof(struct gpb_standing));
	memset(added, 0, sizeof(added));
	nwaits = new_fails = finds = finish_fails = opens = 0;
	rodata.pidns_ino = 77;
	many = NULL;
	return kind->open(kind, &opts, 300, &many, NULL);
}

static int put(struct one *p, struct err *e)
{
	return kind->put(many, &p->t, &p->kept, e);
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

static struct wait *wait_of(const struct one *p)
{
	return part_of(p)->own;
}

static void ends(struct one *p)
{
	kind->remove(many, &p->t);
	p->t.until_ns = now;
	p->t.state = ENGINE_ENDED;
}

static void forget(struct one *p)
{
	kind->forget(many, &p->t, TAKE(p->kept));
}

static int tear_down(void **state)
{
	(void)state;
	for (pid_t pid = 1; pid <= last_pid; pid++)
		if (ones[pid]->kept)
			forget(ones[pid]);
	kind->free(many);
	end_world();
	assert_int_equal(nwaits, 0);
	return 0;
}

static int profile(struct one *p, struct prof **out, struct err *e)
{
	return kind->profile(many, &p->t, p->kept, out, e);
}

/* ---- the object ---- */

/* It has room for those that are expected and one, in powers of two: none is loaded for each. */
static void all_have_one_object(void **state)
{
	struct one *a = joins(7), *b = joins(8);
	uint32_t ino = 0;

	(void)state;
	assert_int_equal(pidns_inode(&ino, NULL), 0);
	assert_true(opens == 1 && loads == 1 && slots_asked == 512);
	assert_int_equal(rodata.pidns_ino, ino);
	assert_true(sizes[RING] == 4 << 20 && sizes[STACKS] == 8192);
	assert_ptr_equal(wait_of(a)->obj, wait_of(b)->obj);
	assert_ptr_equal(wait_of(a)->window.engine.object.bss, MAP(BSS));
	assert_true(wait_of(b)->window.engine.object.multi);
	assert_int_equal(bss.standings_quota.part, 65535); /* of 262,144 goroutines */
}

static void where_it_cannot_be_loaded_each_is_refused(void **state)
{
	struct one *a = process(7), *b = process(7);
	struct err e = { "" };

	(void)state;
	load_fails = -EINVAL;
	assert_true(put(a, &e) < 0 && put(b, &e) < 0);
	assert_true(opens == 1 && loads == 1 && !a->kept && !b->kept);
	/* Nobody finds what is gone. */
	assert_int_equal(kind->begin(many, NULL), 0);
	assert_true(!kind->poll(many, NULL) && !kind->tick(many, 2, NULL));
	kind->stop(many);
	assert_true(!kind->drain(many, NULL) && !kind->done(many, NULL));
}

/* The object was loaded, and its ring could not be had: its table is gone with it. */
static void where_it_has_no_ring_nobody_looks_into_its_tables(void **state)
{
	struct one *a = process(7);

	(void)state;
	ring_fails = true;
	assert_true(put(a, NULL) < 0);
	kind->remove(many, &a->t);
	for (int i = 0; i < 60; i++)
		assert_int_equal(kind->tick(many, 0, NULL), 0);
	assert_true(loads == 1 && passes == 0 && !a->kept);
}

static void goroutines_that_have_gone_leave_the_objects_table(void **state)
{
	struct one *a = joins(7);
	uint32_t at = part_of(a)->at;

	(void)state;
	goroutine(at, now);
	bss.standings_of[at] = bss.standings_all = 3;
	ends(a);
	forget(a);
	now += NS_PER_MS;
	joins(7);
	goroutine(at, now);
	goroutine(at, now);
	for (int i = 0; i < 50; i++)
		assert_int_equal(kind->tick(many, 0, NULL), 0);
	assert_true(passes == 1 && goroutines_of(at) == 2 && goroutines[1].key);
	assert_true(bss.standings_of[at] == 2 && bss.standings_all == 2);
}

/* ---- the sites of a file ---- */

static void sites_are_found_once_for_all_that_run_a_file(void **state)
{
	struct one *a = joins(7), *b = joins(7), *c = joins(5);
	const struct probe_set *s = member(a)->set;

	(void)state;
	assert_int_equal(finds, 2);
	assert_true(wait_of(a)->nsites == 7 && wait_of(b)->nsites == 7 && wait_of(c)->nsites == 5);
	assert_true(s->ngroups == 1 && s->groups->n == 7 && s->groups->prog == prog);
	assert_ptr_equal(member(b)->set, s);
	/* A hit tells which file's probes it is of. */
	for (size_t i = 0; i < 7; i++)
		assert_int_equal(s->groups->sites[i].cookie, s->index);
	assert_int_equal(member(c)->set->groups->sites[4].cookie, member(c)->set->index);
	assert_int_not_equal(member(c)->set->index, s->index);
}

/* The next one may have its slot and its place among files. */
static void a_file_without_sites_leaves_nothing(void **state)
{
	struct one *a = process(NO_SCHEDULER), *b = process(NO_SCHEDULER), *c;
	struct err e = { "" };

	(void)state;
	assert_int_equal(put(a, &e), -ENOTSUP);
	assert_string_equal(e.msg, "it has no scheduler");
	assert_int_equal(put(b, &e), -ENOTSUP);
	assert_true(nwaits == 0 && !slot_of[1] && !slot_of[2] && !a->kept);
	c = joins(7);
	assert_true(part_of(c)->at == 1 && member(c)->set->index == 1);
}

/* ---- slots ---- */

static void what_another_has_counted_in_a_slot_is_forgotten(void **state)
{
	struct one *a = joins(7), *b;
	uint32_t at = part_of(a)->at, slot = member(a)->d.slot;

	(void)state;
	assert_int_equal(written[SEEN][at], 1);
	bss.wait_counted[at] = 99;
	bss.tallies[at].lost[GPB_LOSS_WAITS] = 4;
	ends(a);
	forget(a);
	now += NS_PER_MS;
	b = joins(7);
	assert_true(part_of(b)->at == at && member(b)->d.slot != slot);
	assert_int_equal(written[SEEN][at], 2);
	assert_true(!bss.wait_counted[at] && !bss.tallies[at].lost[GPB_LOSS_WAITS]);
	assert_int_equal(wait_of(b)->window.conf.from, now);
	assert_int_equal(slot_of[b->t.id.pid], member(b)->d.slot);
}

static void a_slot_that_cannot_be_cleared_is_nobodys(void **state)
{
	struct one *a = process(7);

	(void)state;
	refusing = SEEN;
	assert_true(put(a, NULL) < 0);
	assert_true(!a->kept && nwaits == 0 && !slot_of[1]);
	refusing = 0;
	assert_int_equal(put(a, NULL), 0);
	assert_int_equal(part_of(a)->at, 1);
}

static void one_that_is_not_understood_leaves_nothing(void **state)
{
	struct one *a = process(7), *b;
	struct err e = { "" };

	(void)state;
	new_fails = -EBADMSG;
	assert_int_equal(put(a, &e), -EBADMSG);
	assert_string_equal(e.msg, "its structs are not known");
	assert_true(!a->kept && finds == 0);
	new_fails = 0;
	b = joins(7);
	assert_true(part_of(b)->at == 1 && nwaits == 1);
}

static void samples_go_to_whose_slot_it_is(void **state)
{
	struct one *a = joins(7), *b = joins(7);

	(void)state;
	sampled(member(a)->d.slot, 2);
	sampled(member(b)->d.slot, 5);
	assert_int_equal(kind->drain(many, NULL), 0);
	assert_true(added[part_of(a)->at] == 2 && added[part_of(b)->at] == 5);
}

/* Its stacks are walked there, too; it is no other target by that. */
static void a_plugin_is_told_to_the_object(void **state)
{
	struct one *a = joins(7), *b = joins(7);
	void *kept = a->kept;

	(void)state;
	assert_int_equal(told[part_of(a)->at].targets, 1);
	assert_int_equal(put(a, NULL), 0);
	assert_true(told[part_of(a)->at].targets == 2 && told[part_of(b)->at].targets == 1);
	assert_true(a->kept == kept && nwaits == 2);
}

/* ---- profiles ---- */

/* From when probes were in, or it came, to its end. */
static void a_profile_lasts_as_long_as_its_target_was_probed(void **state)
{
	struct one *a = joins(7), *late;
	struct prof *p = NULL, *q = NULL;
	uint64_t began;

	(void)state;
	now += 3 * NS_PER_MS;
	began = now;
	assert_int_equal(kind->begin(many, NULL), 0);
	now += 10 * NS_PER_MS;
	late = joins(7);
	now += 10 * NS_PER_MS;
	ends(a);
	now += 10 * NS_PER_MS;
	kind->stop(many);
	now += 10 * NS_PER_MS;
	assert_true(!kind->drain(many, NULL) && !profile(a, &p, NULL) && !profile(late, &q, NULL));
	assert_true(wait_of(a)->start == began && wait_of(a)->end == began + 20 * NS_PER_MS);
	assert_int_equal(wait_of(a)->start_unix_ns, a->t.since_unix_ns + 3000000);
	assert_int_equal(wait_of(late)->start, began + 10 * NS_PER_MS);
	assert_int_equal(wait_of(late)->end, began + 30 * NS_PER_MS);
	assert_true(says(p, "pid: 1") && says(q, "pid: 2") && says(p, "for all that run it"));
	prof_free(p);
	prof_free(q);
}

/* What the kernel had no room for, and samples that were left unfinished. */
static void losses_are_of_whose_they_are(void **state)
{
	struct one *a = joins(7), *b = joins(7);
	struct prof *p = NULL, *q = NULL;

	(void)state;
	bss.tallies[part_of(a)->at].lost[GPB_LOSS_WAITS] = 4;
	sampled(member(b)->d.slot, 5);
	bss.rounds.filing[0] = 1; /* some program still files in this round, */
	bss.rounds.late = 1;	  /* and was waited for already */
	assert_int_equal(kind->drain(many, NULL), 0);
	assert_true(!profile(a, &p, NULL) && !profile(b, &q, NULL));
	assert_true(prof_loss(p)->n[LOSS_WAITS_UNKNOWN] == 4 && loss_total(prof_loss(p)) == 4);
	assert_true(prof_loss(q)->n[LOSS_UNFINISHED] == 5 && loss_total(prof_loss(q)) == 5);
	prof_free(p);
	prof_free(q);
}

/* Whose it is nobody knows: it is told once, of the file. */
static void what_a_files_probes_take_and_lose_is_told_of_all(void **state)
{
	struct one *a = joins(7), *b = joins(7);
	const struct engine_shared *lost;
	size_t n = 0;

	(void)state;
	joins(8);
	unwatched = 3;
	assert_int_equal(kind->begin(many, NULL), 0);
	assert_int_equal(kind->taken_ns(many), 2000);
	kind->stop(many);
	forget(a);
	forget(b);
	lost = kind->shared(many, &n);
	assert_true(n == 1 && lost->targets == 2 && lost->loss.n[LOSS_UNWATCHED] == 3);
	assert_string_equal(lost->what, "/bin/file7");
	assert_true(kind->forget_file(many, 1)); /* no rule is filed under it */
}

static void one_without_a_profile_is_no_matter_of_the_others(void **state)
{
	struct one *a = joins(7), *b = joins(7);
	struct err e = { "" };
	struct prof *p = NULL;

	(void)state;
	finish_fails = -ENOMEM;
	assert_int_equal(profile(a, &p, &e), -ENOMEM);
	assert_string_equal(e.msg, "no profile");
	assert_null(p);
	finish_fails = 0;
	assert_int_equal(profile(b, &p, &e), 0);
	assert_non_null(p);
	prof_free(p);
}

/* Looks of a target were broken: numbers that lack them are not told. */
static void where_looks_failed_there_is_no_profile(void **state)
{
	struct one *a = joins(7);
	struct err e = { "" };
	struct prof *p = NULL;

	(void)state;
	begins_in_windows = true;
	assert_int_equal(kind->begin(many, NULL), 0);
	told[part_of(a)->at].watch_fails = -EFAULT;
	assert_int_equal(kind->poll(many, NULL), 0);
	kind->stop(many);
	assert_int_equal(profile(a, &p, &e), -EFAULT);
	assert_string_equal(e.msg, "looks saw too much");
	assert_true(!p && told[part_of(a)->at].ends == 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(all_have_one_object),
		TEST(where_it_cannot_be_loaded_each_is_refused),
		TEST(where_it_has_no_ring_nobody_looks_into_its_tables),
		TEST(goroutines_that_have_gone_leave_the_objects_table),
		TEST(sites_are_found_once_for_all_that_run_a_file),
		TEST(a_file_without_sites_leaves_nothing),
		TEST(what_another_has_counted_in_a_slot_is_forgotten),
		TEST(a_slot_that_cannot_be_cleared_is_nobodys),
		TEST(one_that_is_not_understood_leaves_nothing),
		TEST(samples_go_to_whose_slot_it_is),
		TEST(a_plugin_is_told_to_the_object),
		TEST(a_profile_lasts_as_long_as_its_target_was_probed),
		TEST(losses_are_of_whose_they_are),
		TEST(what_a_files_probes_take_and_lose_is_told_of_all),
		TEST(one_without_a_profile_is_no_matter_of_the_others),
		TEST(where_looks_failed_there_is_no_profile),
	};

	return cmocka_run_group_tests(tests, open_subject, close_subject);
}
