/* tests/unit/test_wait_probes.c - how a wait profile begins and ends: its settings, its BPF object, and where its probes are. */
#include "wait_fakes.h"

static void *at; /* the collector's state */
static struct prof *prof;
static const struct collector *const c = &collector_wait;

/* A program with two sites, of which the first is that of casgstatus. */
static int set_up(void **state)
{
	(void)state;
	begin_world();
	nfound[0] = 2;
	found[0][0] = (struct waitsite){ .site = { SITE_NOSPLIT_ENTRY, 0x5000, 0x1000, true },
					 .who = WAITSITE_ARGS };
	found[0][1] = (struct waitsite){ .site = { SITE_STACK_BRANCH, 0x6000, 0x2000, false },
					 .who = WAITSITE_ARG0,
					 .old = GPB_G_WAITING,
					 .new = GPB_G_RUNNABLE };
	subject.images.at[0] = (struct image){ .bias = 0x10000000, .fd = 3 };
	at = NULL;
	prof = NULL;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	prof_free(prof);
	c->free(at);
	assert_true(en.inits == 0 && open_profiles == 0 && bpf.open == 0);
	return 0;
}

static void start(void)
{
	if (c->start(&subject, &o, &at, &err))
		fail_msg("%s", err.msg);
}

static void refused(int rc, const char *why)
{
	assert_int_equal(c->start(&subject, &o, &at, &err), rc);
	assert_string_equal(err.msg, why);
	assert_null(at);
	assert_true(en.inits == 0 && open_profiles == 0 && bpf.open == 0);
}

static void plugin(uint64_t bias)
{
	struct image *img = &subject.images.at[subject.images.n++];

	*img = (struct image){ .bin = (struct gobin *)(uintptr_t)1, .bias = bias, .fd = 4 };
}

/* ---- settings ---- */

static const struct gpb_waiting *settings(void)
{
	c->free(at);
	assert_int_equal(wait_new(&subject, &o, (struct wait **)&at, NULL), 0);
	return &((struct wait *)at)->window.conf;
}

static void settings_are_those_of_the_program(void **state)
{
	(void)state;
	assert_int_equal(settings()->rate, 10000);
	assert_int_equal(settings()->g_waitreason, REASON_OFF);
	o.wait.rate_ns = 0; /* every wait; 0 would be none */
	assert_int_equal(settings()->rate, 1);
}

/* Reasons have other numbers in other versions. */
static void a_sleep_is_paced_by_a_clock(void **state)
{
	static const struct {
		int minor;
		unsigned sleep;
	} versions[] = { { 16, 19 }, { 24, 19 }, { 25, 20 }, { 27, SLEEP }, { -1, SLEEP } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
		t.minor = versions[i].minor;
		assert_int_equal(settings()->clocked, 1ull << versions[i].sleep);
	}
}

static void offsets_that_are_not_known_are_an_error(void **state)
{
	(void)state;
	t.unsure = -ENOTSUP;
	refused(-ENOTSUP, "offsets are not known");
}

/* ---- the BPF object ---- */

static size_t bit(const struct bpf_map *map)
{
	return (size_t)1 << ((uintptr_t)map - 1);
}

static void an_object_has_room_for_its_slots(void **state)
{
	struct wait_bpf *obj;

	(void)state;
	assert_int_equal(wait_object_open(&obj, true, 7, true, NULL), 0);
	assert_int_equal(bpf.slots, 7);
	assert_int_equal(bpf.sized,
			 bit(obj->maps.targets) | bit(obj->maps.waitings) | bit(obj->maps.seen));
	assert_true(bpf.prepared == obj->progs.wait_status && bpf.prepared_multi);
	assert_true(bpf.many && obj->rodata->many_targets == 1 && bpf.fitted);
	wait_bpf__destroy(obj);
	assert_int_equal(wait_object_open(&obj, false, 2, false, NULL), 0);
	assert_false(bpf.many || obj->rodata->many_targets || bpf.prepared_multi);
	wait_bpf__destroy(obj);
}

static void the_engine_has_the_tables_of_waits(void **state)
{
	struct wait_bpf *obj;
	struct wait_object k;

	(void)state;
	assert_int_equal(wait_object_open(&obj, true, 7, true, NULL), 0);
	k = wait_object_of(obj, true);
	assert_true(k.obj == obj->obj && k.probe == obj->progs.wait_status && k.multi);
	assert_true(k.ring == obj->maps.ring && k.rules == obj->maps.unwind_rules);
	assert_true(k.targets == obj->maps.targets && k.stacks == obj->maps.stacks);
	assert_true(k.scratches == obj->maps.scratches && k.bss == obj->maps.bss);
	assert_true(k.settings == obj->maps.waitings && k.seen == obj->maps.seen);
	assert_true(k.waits == obj->maps.standings);
	assert_true(k.rounds == &obj->bss->rounds && k.open == obj->bss->open_for);
	assert_ptr_equal(k.counted, obj->bss->wait_counted);
	assert_ptr_equal(k.losses, &obj->bss->tallies[WAIT_SLOT]);
	assert_false(wait_object_of(obj, false).multi);
	wait_bpf__destroy(obj);
}

static void what_the_kernel_refuses_is_an_error(void **state)
{
	(void)state;
	bpf.open_fails = -EPERM;
	refused(-EPERM, "the kernel refused it");
	bpf.open_fails = 0;
	bpf.old_fails = -ENOENT;
	refused(-ENOENT, "no namespace");
	bpf.old_fails = 0;
	bpf.load_fails = -EACCES;
	refused(-EACCES, "the kernel refused it");
	assert_int_equal(en.opens, 0);
}

/* ---- where probes are ---- */

static uint64_t cookie_of(struct waitsite site, uint32_t of)
{
	struct uprobe_site out[WAITSITES_MAX];

	nfound[0] = 1;
	found[0][0] = site;
	settings();
	assert_int_equal(wait_sites_in(at, 0, of, out, NULL), 1);
	return out[0].cookie;
}

/* Bits as the BPF side has them (goprof_abi.h). */
static void cookies_tell_what_changes(void **state)
{
	struct waitsite s = { .site.kind = SITE_NOSPLIT_ENTRY, .who = WAITSITE_ARGS };

	(void)state;
	assert_int_equal(cookie_of(s, 1), 0x10101);
	s.site.stepped = true;
	assert_int_equal(cookie_of(s, 0x1ff), 0x10001ff0101);
	s = (struct waitsite){ .site.kind = SITE_FRAMED_BRANCH, .who = WAITSITE_ARGS };
	assert_int_equal(cookie_of(s, 1), 0x10501);
	s = (struct waitsite){ .site.kind = SITE_STACK_BRANCH,
			       .who = WAITSITE_ARG0,
			       .old = GPB_G_WAITING,
			       .new = GPB_G_RUNNABLE };
	assert_int_equal(cookie_of(s, 1), 0x1400010002);
	s.who = WAITSITE_CURRENT;
	s.old = GPB_G_RUNNING;
	s.new = GPB_G_SYSCALL;
	assert_int_equal(cookie_of(s, 1), 0x3200010003);
}

static void all_sites_of_all_images_are_probed(void **state)
{
	const struct uprobe_group *g = en.groups;

	(void)state;
	plugin(0x20000000);
	nfound[1] = 1;
	found[1][0].site = (struct probesite){ SITE_NOSPLIT_ENTRY, 0x7000, 0x3000, false };
	start();
	assert_int_equal(en.ngroups, 2);
	assert_string_equal(g[0].path, "/file/3");
	assert_string_equal(g[1].path, "/file/4");
	assert_true(g[0].prog == bpf.prepared && g[1].prog == bpf.prepared);
	assert_true(g[0].n == 2 && g[1].n == 1);
	assert_int_equal(g[0].sites[0].addr, 0x10005000); /* where the process has it */
	assert_int_equal(g[0].sites[0].file_off, 0x1000);
	assert_int_equal(g[0].sites[1].addr, 0x10006000);
	assert_int_equal(g[1].sites[0].addr, 0x20007000);
	assert_int_equal(g[1].sites[0].file_off, 0x3000);
	assert_non_null(strstr(t.told, "wait: 3 probes, all waits of 10000 ns and longer"));
}

/* A plugin has the scheduler of the program that loads it. */
static void a_plugin_need_not_have_any(void **state)
{
	(void)state;
	plugin(0x20000000);
	nfound[1] = -ENOENT;
	start();
	assert_int_equal(en.ngroups, 1);
	assert_non_null(strstr(t.told, "wait: 2 probes"));
}

static void but_a_program_has_a_scheduler(void **state)
{
	(void)state;
	nfound[0] = -ENOENT;
	refused(-ENOENT, "no place for a probe");
}

static void what_is_not_as_expected_is_an_error_anywhere(void **state)
{
	(void)state;
	plugin(0x20000000);
	nfound[1] = -ENOTSUP;
	refused(-ENOTSUP, "no place for a probe");
	nfound[0] = -ENOTSUP;
	refused(-ENOTSUP, "no place for a probe");
}

/* ---- from start to stop ---- */

/* Without a budget samples come in bursts, each with the stack's memory. */
static void the_ring_is_larger_without_a_budget(void **state)
{
	(void)state;
	start();
	assert_ptr_equal(bpf.resized, ((struct wait *)at)->obj->maps.ring);
	assert_int_equal(bpf.size, 16 << 20);
	assert_int_equal(bpf.slots, WAIT_SLOT + 1);
	c->free(TAKE(at));
	bpf.resized = NULL;
	o.budget.ppm = 50000;
	start();
	assert_null(bpf.resized);
}

static void a_rate_that_may_become_finer_is_said_to(void **state)
{
	(void)state;
	o.wait.fine = true;
	o.budget.ppm = 50000;
	start();
	assert_non_null(strstr(t.told, "shorter ones in proportion, or more densely"));
}

static void the_object_fits_the_kernel(void **state)
{
	(void)state;
	bpf.has_multi = true;
	start();
	assert_true(bpf.prepared_multi && !bpf.many && bpf.loads == 1);
	assert_true(((struct wait *)at)->window.engine.object.multi);
}

static void what_does_not_open_is_closed(void **state)
{
	(void)state;
	en.open_fails = -ENOMEM;
	refused(-ENOMEM, "no ring");
	assert_int_equal(en.sets, 0);
}

static void the_engine_is_polled(void **state)
{
	(void)state;
	start();
	assert_int_equal(c->fd(at), 55);
	assert_int_equal(c->poll(at, NULL), 0);
	assert_true(en.polls == 1 && en.begins == 0);
	assert_int_equal(c->begin(at, NULL), 0);
	assert_int_equal(en.begins, 1);
}

/* Only when something has been loaded are probes put in anew: in all images. */
static void a_plugin_that_comes_later_is_probed(void **state)
{
	(void)state;
	start();
	assert_int_equal(c->tick(at, NULL), 0);
	assert_true(en.sets == 1 && en.targets == 0);
	plugin(0x20000000);
	nfound[1] = 1;
	assert_int_equal(c->tick(at, NULL), 0);
	assert_true(en.sets == 2 && en.targets == 1 && en.ngroups == 2);
	assert_true(en.groups[0].n == 2 && en.groups[1].n == 1);
	assert_int_equal(((struct wait *)at)->nsites, 3); /* each is counted once */
	assert_int_equal(c->tick(at, NULL), 0);
	assert_int_equal(en.sets, 2);
}

/* Not what prepared it is the window. */
static void a_window_lasts_from_the_first_probe_to_the_end(void **state)
{
	struct prof_header_view h;

	(void)state;
	start();
	en.since = 11 * SEC;
	t.now = 13 * SEC + SEC / 2;
	if (c->stop(at, &prof, &err))
		fail_msg("%s", err.msg);
	h = prof_header(prof);
	assert_true(says(prof, "window: 2.500 s"));
	assert_int_equal(h.duration_ns, 5 * SEC / 2);
	assert_int_equal(h.time_ns, (EPOCH + 11) * SEC);
	assert_true(en.stops == 1 && en.ends == 1);
}

static void one_that_never_began_has_no_window(void **state)
{
	(void)state;
	start();
	t.now = 13 * SEC;
	assert_int_equal(c->stop(at, &prof, &err), 0);
	assert_true(says(prof, "window: 0.000 s"));
	assert_int_equal(prof_header(prof).duration_ns, 0);
	assert_int_equal(prof_header(prof).time_ns, (EPOCH + 13) * SEC);
}

static void a_profile_has_its_samples_and_losses(void **state)
{
	struct gpb_stack st = { .count = 5 * GPB_COUNT_ONE / 2,
				.delay = 1000,
				.nfirst = 1,
				.wait.kind = GPB_G_SYSCALL,
				.pc = { TEXT + 1 } };

	(void)state;
	t.names[t.nnames++] = "main.read";
	en.seen.lost = 6;
	start();
	assert_int_equal(wait_window_add(&((struct wait *)at)->window, &st, NULL), 0);
	assert_int_equal(c->stop(at, &prof, &err), 0);
	assert_int_equal(prof_nsamples(prof), 1);
	assert_int_equal(prof_sample_at(prof, 0).values[0], 2); /* whole ones */
	assert_int_equal(prof_sample_at(prof, 0).values[1], 1000);
	assert_int_equal(prof_loss(prof)->n[LOSS_SAMPLES_DROPPED], 21); /* the engine's */
	assert_int_equal(prof_loss(prof)->n[LOSS_WAITS_UNSEEN], 6);
	assert_false(says(prof, "unseen:"));
}

static void probes_that_stay_are_an_error(void **state)
{
	(void)state;
	start();
	en.stop_fails = -EIO;
	assert_int_equal(c->stop(at, &prof, &err), -EIO);
	assert_string_equal(err.msg, "probes stay");
	assert_null(prof);
}

/* Of many the object is their owner's. */
static void what_is_borrowed_is_not_freed(void **state)
{
	struct wait *w;
	struct wait_bpf *obj;

	(void)state;
	assert_int_equal(wait_object_open(&obj, true, 7, true, NULL), 0);
	assert_int_equal(wait_new(&subject, &o, &w, NULL), 0);
	w->obj = obj;
	w->window.engine.shared = true;
	wait_free(w);
	assert_int_equal(bpf.open, 1);
	wait_bpf__destroy(obj);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(settings_are_those_of_the_program),
		TEST(a_sleep_is_paced_by_a_clock),
		TEST(offsets_that_are_not_known_are_an_error),
		TEST(an_object_has_room_for_its_slots),
		TEST(the_engine_has_the_tables_of_waits),
		TEST(what_the_kernel_refuses_is_an_error),
		TEST(cookies_tell_what_changes),
		TEST(all_sites_of_all_images_are_probed),
		TEST(a_plugin_need_not_have_any),
		TEST(but_a_program_has_a_scheduler),
		TEST(what_is_not_as_expected_is_an_error_anywhere),
		TEST(the_ring_is_larger_without_a_budget),
		TEST(a_rate_that_may_become_finer_is_said_to),
		TEST(the_object_fits_the_kernel),
		TEST(what_does_not_open_is_closed),
		TEST(the_engine_is_polled),
		TEST(a_plugin_that_comes_later_is_probed),
		TEST(a_window_lasts_from_the_first_probe_to_the_end),
		TEST(one_that_never_began_has_no_window),
		TEST(a_profile_has_its_samples_and_losses),
		TEST(probes_that_stay_are_an_error),
		TEST(what_is_borrowed_is_not_freed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
