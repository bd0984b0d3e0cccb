/*
 * tests/unit/test_cpu_host.c - CPU profiles of many processes: whose a sample is, what CPU time it stands for, what is known of a process
 * that ended, and what a program with too many stacks loses. Ticks, clocks and ends are made up here.
 */
#include "cpu_host_fakes.h"

/* ---- the start ---- */

static void the_bpf_side_is_told_what_it_needs(void **state)
{
	(void)state;
	assert_true(rodata.many_targets == 1 && rodata.pidns_ino == PIDNS);
	assert_true(rodata.kernel_stack >= 16384);
	assert_int_equal(w.not_loaded, 1 << THREAD_CLOCK | 1 << ON_THREAD);
	assert_int_equal(w.not_made, 1 << OWN_CLOCK | 1 << PHASES);
	assert_true(sizes[RING] == 4 << 20 && sizes[STACKS] == 8192);
	assert_int_equal(w.period, PERIOD);
	assert_int_equal(w.links, 2);
	assert_int_equal(kind->fd(many), ring_fd);
	/* Four are expected: each has a part of one half. */
	assert_int_equal(bss.stacks_quota.free / bss.stacks_quota.part, 4);
}

static void fails_to_open(const char *why)
{
	int ret = open_kind(4);

	assert_true(ret < 0 && !many);
	assert_non_null(strstr(err.msg, why));
	assert_true(!w.objects && !w.clocks && !w.links && !nrings);
}

/* Whatever fails, what was there by then is freed, and nobody gets what is gone. */
static void what_fails_at_the_start_is_told(void **state)
{
	(void)state;
	w.pidns_fails = -EACCES;
	fails_to_open("no namespace");
	w.pidns_fails = 0;
	w.open_fails = -EINVAL;
	fails_to_open("Invalid argument");
	w.open_fails = 0;
	load_fails = -ENOTSUP;
	fails_to_open("not supported");
	load_fails = loads = 0;
	ring_fails = true;
	fails_to_open("ring buffer");
	ring_fails = false;
	loads = 0;
	w.clocks_fail = -EMFILE;
	fails_to_open("no clock");
	w.clocks_fail = loads = 0;
	assert_int_equal(open_kind(0), 0); /* nobody is expected: there may be one */
	assert_true(bss.stacks_quota.part > 0);
}

static void clocks_that_do_not_start_are_an_error(void **state)
{
	(void)state;
	w.start_fails = -EIO;
	assert_int_equal(kind->begin(many, &err), -EIO);
	assert_string_equal(err.msg, "it does not tick");
}

static void kernel_names_may_be_hidden(void **state)
{
	struct one *p;

	opts.cpu.kernel = w.hidden = true;
	assert_int_equal(open_kind(4), 0);
	assert_string_equal(w.said, "cpu: warning: kernel names are hidden");
	p = joins(1);
	is_met(p, 1);
	close_window();
	assert_true(says(profile(p), "kernel names are hidden"));
	assert_int_equal(tear_down(state), 0);
	assert_int_equal(set_up_closed(state), 0);
	w.hidden = true; /* nobody asks for them */
	assert_int_equal(open_kind(4), 0);
	assert_string_equal(w.said, "");
	p = joins(1);
	is_met(p, 1);
	close_window();
	assert_false(says(profile(p), "hidden"));
}

/* ---- targets ---- */

static void a_target_is_in_the_tables_until_it_is_removed(void **state)
{
	struct one *p = joins(5);

	(void)state;
	assert_int_equal(slot_of[p->t.id.pid], p->t.slot);
	assert_int_equal(written[TARGETS][5], 1);
	/* It loaded a plugin: what is kept of it stays. */
	is_met(p, 3);
	assert_int_equal(put(p), 0);
	assert_int_equal(written[TARGETS][5], 2);
	ends(p);
	assert_int_equal(slot_of[p->t.id.pid], 0);
	close_window();
	assert_non_null(profile(p));
	assert_int_equal(total(0), 3);
}

/* Its file's number may be another's then: no rule was filed under it. */
static void a_file_without_rules_is_forgotten(void **state)
{
	(void)state;
	joins(1);
	assert_true(kind->forget_file(many, 7));
}

/* Its slot is nobody's, and it may be asked for again. */
static void what_cannot_be_put_leaves_nothing(void **state)
{
	const int tables[] = { TARGETS, SLOT_OF_TGID };
	struct one *p = born(1);

	(void)state;
	w.verify_fails = -ENOTSUP;
	assert_true(put(p) == -ENOTSUP && !p->kept && !written[TARGETS][1]);
	assert_string_equal(err.msg, "no offsets");
	w.verify_fails = 0;
	for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
		refusing = tables[i];
		assert_true(put(p) == -ENOSPC && !p->kept);
		assert_non_null(strstr(err.msg, "target table"));
		kind->remove(many, &p->t);
		is_met(p, 1);
		drain();
	}
	refusing = 0;
	assert_int_equal(put(p), 0);
	is_met(p, 4);
	close_window();
	profile(p);
	assert_int_equal(total(0), 4);
}

/* What is kept of it belongs to the window, whatever the tables say meanwhile. */
static void one_that_cannot_be_written_anew_keeps_its_samples(void **state)
{
	struct one *p = joins(1);
	void *kept = p->kept;

	(void)state;
	is_met(p, 3);
	drain();
	refusing = TARGETS;
	assert_int_equal(put(p), -ENOSPC);
	assert_ptr_equal(p->kept, kept);
	profile(p);
	assert_int_equal(total(0), 3);
}

/* ---- samples ---- */

static void each_sample_is_of_who_has_its_slot(void **state)
{
	struct one *a = joins(1), *b = joins(2);

	(void)state;
	is_met(a, 3);
	is_met(b, 5);
	is_met(b, 7);
	sampled(1u << GPB_SLOT_GENERATION | 2, 9); /* of who had it before */
	sampled(4, 9);				   /* of nobody */
	close_window();
	profile(a);
	assert_true(prof_nsamples(prof) == 1 && total(0) == 3);
	assert_true(says(prof, "pid: 1") && says(prof, "hits: 3 samples, 0.030 s of CPU time"));
	profile(b);
	assert_true(prof_nsamples(prof) == 2 && total(0) == 12);
	assert_true(says(prof, "pid: 2") && says(prof, "hits: 12 samples, 0.120 s of CPU time"));
}

static void a_profile_tells_what_it_is_of(void **state)
{
	struct one *p = joins(1);
	struct prof_header_view h;

	(void)state;
	is_met(p, 1);
	close_window();
	h = prof_header(profile(p));
	assert_int_equal(h.ntypes, 2);
	assert_string_equal(strtab_get(prof_strings(prof), h.types[0].type), "samples");
	assert_string_equal(strtab_get(prof_strings(prof), h.types[1].type), "cpu");
	assert_string_equal(strtab_get(prof_strings(prof), h.types[1].unit), "nanoseconds");
	assert_string_equal(strtab_get(prof_strings(prof), h.period_type.type), "cpu");
	assert_int_equal(h.period, PERIOD);
	assert_true(says(prof, "rate: 100.00 Hz of each CPU"));
}

/* They are known until the window's profiles are made. */
static void samples_have_the_labels_of_their_goroutine(void **state)
{
	struct one *p = joins(1);
	struct prof_sample_view s;

	(void)state;
	send_labels(p->t.slot, 77);
	is_met_in(p, 1, 0x1000, 0x2000)->labels = 77;
	samples[0].goid = 9;
	close_window();
	profile(p);
	s = prof_sample_at(prof, 0);
	assert_int_equal(s.nlabels, 2);
	assert_true(s.labels[0].num == 9 || s.labels[1].num == 9);
	assert_int_equal(lost(LOSS_LABELS_CUT), 0);
	assert_int_equal(kind->done(many, &err), 0);
	forget(p);
	assert_int_equal(put(p), 0);
	is_met_in(p, 3, 0x1000, 0x2000)->labels = 77;
	close_window();
	profile(p);
	assert_int_equal(lost(LOSS_LABELS_CUT), 3);
}

/* It says what it is not, so nothing behind it can be trusted. */
static void a_record_that_contradicts_itself_is_an_error(void **state)
{
	struct gpb_rec_labels rec = { .type = GPB_REC_LABELS, .id = 5, .n = GPB_MAX_LABELS + 1 };
	struct one *p = joins(1);

	(void)state;
	rec.slot = p->t.slot;
	assert_int_equal(kind->poll(many, &err), 0);
	assert_int_equal(on_record(on_record_arg, &rec, sizeof(rec)), 0);
	assert_int_equal(kind->poll(many, &err), -EBADMSG);
	assert_int_equal(kind->drain(many, &err), -EBADMSG);
}

/* ---- what a sample stands for ---- */

/* The kernel's own clock is exact; ticks only tell how it is shared out. */
static void the_total_is_what_the_kernel_charged(void **state)
{
	struct one *a = joins(1), *b = joins(2);

	(void)state;
	is_met(a, 10);
	is_met(a, 20);
	is_met(b, 5);
	is_read(a, 450 * MS);
	is_read(b, 40 * MS);
	close_window();
	profile(a);
	assert_true(value(0, 1) == 150 * MS && value(1, 1) == 300 * MS);
	assert_true(value(0, 0) == 10 && value(1, 0) == 20);
	assert_true(says(prof, "hits: 30 samples, 0.300 s of CPU time"));
	assert_true(says(prof, "charged: 0.450 s of CPU time by the kernel: each sample stands for "
			       "15.000 ms of it"));
	profile(b);
	assert_true(is_worth(40 * MS));
	assert_true(says(prof, "each sample stands for 8.000 ms"));
}

/* Of ticks whose stacks were lost the share is lost, too: the others do not get it. */
static void lost_samples_keep_their_share(void **state)
{
	struct one *p = joins(1);

	(void)state;
	is_met(p, 30);
	tally(p)->samples += 10;
	tally(p)->lost[GPB_LOSS_DROPPED] += 10;
	is_read(p, 400 * MS);
	close_window();
	profile(p);
	assert_true(total(0) == 30 && is_worth(300 * MS));
	assert_int_equal(lost(LOSS_SAMPLES_DROPPED), 10);
	assert_true(says(prof, "hits: 40 samples"));
}

/* All of its stacks were lost: what it was charged is told all the same. */
static void one_without_a_stack_has_a_profile(void **state)
{
	struct one *a = joins(1), *b = joins(2);

	(void)state;
	tally(a)->samples += 3;
	is_read(a, 30 * MS);
	is_read(b, 30 * MS);
	close_window();
	assert_non_null(profile(a));
	assert_int_equal(prof_nsamples(prof), 0);
	assert_true(says(prof, "hits: 3 samples") && says(prof, "charged: 0.030 s"));
	assert_null(profile(b)); /* no tick has met it */
	opts.unmet = true;
	assert_non_null(profile(b));
	assert_true(says(prof, "charged: 0.030 s of CPU time by the kernel"));
	assert_false(says(prof, "stands for"));
}

/* A profile of one that was charged so much, where so many samples of @weight ticks came. */
static bool unclocked(void **state, uint64_t cpu_ns, uint64_t ticks, uint64_t weight,
		      const char *want)
{
	struct one *p;

	again(state);
	p = joins(1);
	data.tick_weight = weight;
	is_met(p, ticks);
	is_read(p, cpu_ns);
	close_window();
	profile(p);
	assert_true(!want || says(prof, want));
	return says(prof, "unclocked:");
}

/* It is told where it is more than 2 %, and more than chance would explain: four standard errors. */
static void time_that_no_tick_met_is_told(void **state)
{
	assert_false(unclocked(state, 2 * S, 144, 1, NULL)); /* 56 of 200; 56.6 is chance */
	assert_true(unclocked(state, 2 * S, 143, 1, "unclocked: 0.57 s of that"));
	assert_false(unclocked(state, 2 * S, 140, 4, NULL)); /* twice as much is */
	assert_false(unclocked(state, 2 * S, 300, 1, NULL));
	assert_false(unclocked(state, 1000 * S, 98000, 1, NULL));
	assert_true(unclocked(state, 1000 * S, 97999, 1, "unclocked: 20.01 s of that"));
}

/* ---- the end of a process ---- */

/* Since its start, of which the window has only a part. */
static void of_one_that_ended_the_kernel_tells(void **state)
{
	struct one *p = joins(1);

	(void)state;
	p->t.base_ns = 2 * S;
	begin();
	is_met(p, 10);
	assert_false(kind->awaits(many, &p->t)); /* it lives */
	is_read(p, 2 * S + 60 * MS);
	tick(1);
	ends_unread(p);
	assert_true(kind->awaits(many, &p->t));
	is_reaped(p, 2 * S + 130 * MS);
	bss.charges[1].slot -= 1u << GPB_SLOT_GENERATION; /* who had its slot before */
	assert_true(kind->awaits(many, &p->t));
	is_reaped(p, 2 * S + 130 * MS);
	assert_false(kind->awaits(many, &p->t));
	drain();
	profile(p);
	assert_true(is_worth(130 * MS));
	assert_true(says(prof, "charged: 0.130 s of CPU time by the kernel: each"));
}

/* Its clock could be read once more: nothing is awaited, and nothing is better. */
static void what_was_read_at_the_end_is_believed(void **state)
{
	struct one *p = joins(1);

	(void)state;
	begin();
	is_met(p, 10);
	is_read(p, 100 * MS);
	tick(1);
	is_met(p, 2);
	is_read(p, 110 * MS);
	ends(p);
	assert_false(kind->awaits(many, &p->t));
	is_reaped(p, 500 * MS);
	drain();
	profile(p);
	assert_true(is_worth(110 * MS));
}

/* 10 ticks before its clock was read last, and 3 until it ended; one CPU may have been a moment later. */
static struct one *ended_unread(void)
{
	struct one *p = joins(1);

	p->t.base_ns = 2 * S;
	begin();
	is_met(p, 10);
	is_read(p, 2 * S + 120 * MS);
	tick(1);
	is_met(p, 3);
	ends_unread(p);
	/* Budgets ask what it had before a profile is made. */
	assert_int_equal(p->t.cpu_ns, 150 * MS);
	is_met(p, 2);
	return p;
}

/* Where nobody tells, its samples since its clock was read last do, and each of them once. */
static void without_the_kernels_word_samples_tell(void **state)
{
	struct one *p;

	for (int without = ON_END; without <= ON_REAPED; without++) {
		w.untold = without;
		assert_int_equal(open_kind(4), 0);
		p = ended_unread();
		assert_false(kind->awaits(many, &p->t));
		drain();
		profile(p);
		assert_int_equal(p->t.cpu_ns, 170 * MS);
		assert_true(is_worth(170 * MS));
		assert_true(says(prof,
				 "charged: 0.170 s of CPU time by the kernel, and at its end by "
				 "its samples, +- 0.022 s: each sample stands for 11.333 ms"));
		assert_int_equal(tear_down(state), 0);
		assert_int_equal(set_up_closed(state), 0);
	}
}

/* What is told of its life cannot be less than what it had when the window began. */
static void a_charge_that_cannot_be_is_not_believed(void **state)
{
	struct one *p = ended_unread();

	(void)state;
	is_reaped(p, 2 * S - 1);
	drain();
	profile(p);
	assert_true(is_worth(170 * MS));
	assert_false(p->t.cpu_exact);
}

/* It lives on as another program, so nobody reaps it. What is there is of who had its slot, or of nobody. */
static void one_that_called_exec_is_not_awaited(void **state)
{
	struct one *p = ended_unread();

	(void)state;
	p->t.state = ENGINE_BECAME;
	assert_false(kind->awaits(many, &p->t));
	is_reaped(p, 9 * S);
	drain();
	profile(p);
	assert_true(is_worth(170 * MS));
}

/* A clock that could not be read at a tick tells of less than the samples by then. */
static void samples_count_from_where_its_clock_was_read(void **state)
{
	struct one *p = joins(1);

	(void)state;
	begin();
	is_met(p, 4);
	is_read(p, 50 * MS);
	tick(1);
	is_met(p, 6);
	p->t.cpu_exact = false;
	tick(1);
	ends_unread(p);
	is_met(p, 2);
	drain();
	profile(p);
	assert_true(is_worth(130 * MS));
}

/* In ticks of a larger weight, and at least one of them. */
static void guess_of(void **state, uint64_t ticks, uint64_t weight, const char *want)
{
	struct one *p;

	again(state);
	p = joins(1);
	begin();
	data.tick_weight = weight;
	is_met(p, 8);
	is_read(p, 80 * MS);
	tick(1);
	tally(p)->samples += ticks;
	ends_unread(p);
	drain();
	assert_true(says(profile(p), want));
}

static void a_guess_has_an_error(void **state)
{
	guess_of(state, 0, 1, "+- 0.010 s");
	guess_of(state, 1, 1, "+- 0.010 s");
	guess_of(state, 25, 1, "+- 0.050 s");
	guess_of(state, 0, 4, "+- 0.040 s");
	guess_of(state, 16, 4, "+- 0.080 s");
}

/* ---- windows ---- */

static void clocks_tick_in_windows(void **state)
{
	(void)state;
	assert_false(w.ticking);
	begin();
	assert_true(w.ticking);
	tick(7);
	assert_int_equal(w.turns, 1);
	/* As many as are on now share the table. */
	assert_int_equal(bss.stacks_quota.free / bss.stacks_quota.part, 7);
	kind->close(many);
	assert_false(w.ticking);
}

/* The table is emptied in a window now and then. */
static void samples_are_taken_in_the_window(void **state)
{
	struct one *p = joins(1);

	(void)state;
	begin();
	is_met(p, 1);
	for (int i = 0; i < 5; i++)
		tick(1);
	begin(); /* from here on it is counted */
	for (int i = 0; i < 9; i++)
		tick(1);
	assert_int_equal(bss.stacks_taken, 0);
	tick(1);
	assert_int_equal(bss.stacks_taken, 1);
}

/* The BPF side only ever adds. What it had by then is of the window before. */
static void the_next_window_begins_from_a_base(void **state)
{
	struct one *p = joins(1);

	(void)state;
	begin();
	is_met(p, 10);
	tally(p)->lost[GPB_LOSS_UNREADABLE] = 3;
	is_read(p, 100 * MS);
	close_window();
	profile(p);
	assert_true(total(0) == 10 && lost(LOSS_STACKS_UNREADABLE) == 3);
	forget(p);
	p->t.base_ns = 100 * MS;
	assert_int_equal(put(p), 0);
	begin();
	is_met(p, 4);
	tally(p)->lost[GPB_LOSS_UNREADABLE] += 2;
	is_read(p, 180 * MS);
	close_window();
	profile(p);
	assert_true(total(0) == 4 && is_worth(80 * MS));
	assert_true(says(prof, "hits: 4 samples") && says(prof, "stands for 20.000 ms"));
	assert_int_equal(lost(LOSS_STACKS_UNREADABLE), 2);
	forget(p);
	assert_int_equal(put(p), 0);
	assert_null(profile(p)); /* nor has it anything of both */
}

/* Of one that joined in a window, its samples before are another's that had the slot. */
static void a_guess_begins_from_a_base(void **state)
{
	struct one *p = born(1);

	(void)state;
	tally(p)->samples = 1000;
	assert_int_equal(put(p), 0);
	is_met(p, 2);
	ends(p);
	drain();
	profile(p);
	assert_true(is_worth(20 * MS) && says(prof, "hits: 2 samples"));
}

static void a_profile_tells_of_its_part_of_the_window(void **state)
{
	struct one *a = joins(1), *b = joins(2);

	(void)state;
	begin();
	is_met(a, 1);
	is_met(b, 1);
	now += 1500 * MS;
	ends(a);
	now += 500 * MS;
	close_window();
	now += 9 * S; /* profiles are made later */
	profile(a);
	assert_true(says(prof, "window: 1.500 s"));
	assert_int_equal(prof_header(prof).duration_ns, 1500 * MS);
	assert_int_equal(prof_header(prof).time_ns, a->t.since_unix_ns);
	profile(b);
	assert_true(says(prof, "window: 2.000 s"));
	assert_int_equal(prof_header(prof).duration_ns, 2 * S);
}

/* ---- what it costs ---- */

static void what_it_took_is_that_of_all_slots(void **state)
{
	(void)state;
	bss.tallies[0].taken_ns = 5;
	bss.tallies[GPB_CPU_TARGETS - 1].taken_ns = 7;
	assert_int_equal(kind->taken_ns(many), 12);
}

/* Half as many ticks, of which each stands for twice as many, until the window ends. */
static void it_slows_down_in_halves(void **state)
{
	struct one *p = joins(1);

	(void)state;
	begin();
	assert_true(w.weight == 1 && data.tick_weight == 1);
	is_met(p, 1);
	drain();
	assert_false(says(profile(p), "--host-budget"));
	for (uint64_t weight = 2; weight <= 64; weight *= 2) {
		assert_true(kind->slow_down(many));
		assert_true(w.weight == weight && data.tick_weight == weight);
	}
	assert_false(kind->slow_down(many));
	assert_int_equal(w.weight, 64);
	is_met(p, 64);
	forget(p);
	assert_int_equal(put(p), 0);
	is_met(p, 64);
	close_window();
	assert_true(says(profile(p), "rate: 1.56 Hz at the end, to keep to --host-budget"));
	begin();
	assert_true(w.weight == 1 && data.tick_weight == 1);
}

/* ---- losses ---- */

static void losses_are_of_who_has_the_slot(void **state)
{
	struct one *a = joins(1), *b = joins(2);

	(void)state;
	is_met(a, 1);
	is_met(b, 1);
	tally(a)->lost[GPB_LOSS_CUT] = 4;
	tally(b)->lost[GPB_LOSS_CALLER] = 5;
	is_met_in(b, 6, 0x1000, 0x2000)->labels = 99; /* which never came */
	is_met_in(a, 2, 0x1000, 0x2000)->nfirst = 0;
	close_window();
	profile(a);
	assert_int_equal(lost(LOSS_STACKS_UNREADABLE), 1);
	assert_true(lost(LOSS_STACKS_CUT) == 4 && lost(LOSS_CALLERS_UNKNOWN) == 0);
	assert_int_equal(lost(LOSS_LABELS_CUT), 0);
	profile(b);
	assert_true(lost(LOSS_STACKS_CUT) == 0 && lost(LOSS_CALLERS_UNKNOWN) == 5);
	assert_int_equal(lost(LOSS_STACKS_UNREADABLE), 0);
	assert_int_equal(lost(LOSS_LABELS_CUT), 6);
}

/* A program that files samples has not finished, and has been waited for. */
static void samples_that_are_still_being_taken_are_a_loss(void **state)
{
	struct one *a = joins(1), *b = joins(2);

	(void)state;
	bss.rounds = (struct gpb_rounds){ .filing = { 1 }, .late = 1 };
	is_met(a, 3);
	is_met(b, 8);
	close_window();
	profile(a);
	assert_true(prof_nsamples(prof) == 0 && lost(LOSS_UNFINISHED) == 3);
	profile(b);
	assert_true(prof_nsamples(prof) == 0 && lost(LOSS_UNFINISHED) == 8);
}

/* ---- room ---- */

/* What comes later adds to its innermost function: the total is right, and what is known is known. */
static void of_too_many_stacks_the_rest_keep_their_innermost_function(void **state)
{
	struct one *a = joins(1), *b = joins(2);

	(void)state;
	is_met_in_many(a, STACKS_MOST);
	is_met_in(a, 5, 0x1003, 0x900000);
	is_met_in(a, 2, 0x1003, 0x900001);
	is_met_in(a, 4, 0x1000, 0x100000); /* the first one */
	is_met_in(b, 1, 0x1003, 0x900000);
	is_read(a, 82030 * MS);
	close_window();
	profile(a);
	assert_int_equal(prof_nsamples(prof), STACKS_MOST + 1);
	assert_true(prof_sample_at(prof, STACKS_MOST).nlocs == 1 && value(STACKS_MOST, 0) == 7);
	assert_int_equal(address(STACKS_MOST, 0), 0x1002); /* the call, not where it returns to */
	assert_true(prof_sample_at(prof, 0).nlocs == 2 && value(0, 0) == 5);
	assert_int_equal(total(0), STACKS_MOST + 11);
	assert_true(is_worth(82030 * MS));
	assert_int_equal(lost(LOSS_STACKS_MANY), 7);
	profile(b);
	assert_true(lost(LOSS_STACKS_MANY) == 0 && prof_sample_at(prof, 0).nlocs == 2);
}

/* The kernel's frames are not the program's: its own innermost function is behind them. */
static void the_innermost_function_is_the_programs(void **state)
{
	struct one *p = joins(1);
	struct gpb_stack *st;

	(void)state;
	is_met_in_many(p, STACKS_MOST);
	st = is_met_in(p, 3, 0xffffffff81000000, 0x1007);
	st->nkernel = st->nfirst = st->nsecond = 1;
	st->pc[2] = 0x900000;
	close_window();
	profile(p);
	assert_true(prof_sample_at(prof, STACKS_MOST).nlocs == 1 && value(STACKS_MOST, 0) == 3);
	assert_int_equal(address(STACKS_MOST, 0), 0x1006);
	assert_int_equal(lost(LOSS_STACKS_MANY), 3);
	/* None of these has a root. That one is told once: what is left of it was cut. */
	assert_int_equal(lost(LOSS_STACKS_BROKEN), STACKS_MOST + 3);
}

/* 131,072 in all: one half in parts of 128, the other for whoever comes; 8 take 8,064 of that each. */
static void all_share_the_room_for_stacks(void **state)
{
	struct one *first = joins(1), *late, *last = joins(11);

	(void)state;
	begin();
	tick(512);
	is_met_in_many(first, STACKS_MOST);
	for (uint32_t i = 2; i <= 8; i++)
		is_met_in_many(joins(i), STACKS_MOST);
	late = joins(10);
	is_met_in_many(late, 1300);
	profile(late);
	assert_int_equal(prof_nsamples(prof), 128 + 1024 + 16);
	assert_true(total(0) == 1300 && lost(LOSS_STACKS_MANY) == 1300 - 128 - 1024);
	is_met_in_many(last, 130);
	forget(first); /* there is room again */
	is_met_in(last, 1, 0x1000, 0x900000);
	close_window();
	profile(last);
	assert_int_equal(prof_nsamples(prof), 128 + 2 + 1);
	assert_int_equal(lost(LOSS_STACKS_MANY), 2);
}

#define TEST(f)	       cmocka_unit_test_setup_teardown(f, set_up, tear_down)
#define TEST_CLOSED(f) cmocka_unit_test_setup_teardown(f, set_up_closed, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_bpf_side_is_told_what_it_needs),
		TEST_CLOSED(what_fails_at_the_start_is_told),
		TEST(clocks_that_do_not_start_are_an_error),
		TEST_CLOSED(kernel_names_may_be_hidden),
		TEST(a_target_is_in_the_tables_until_it_is_removed),
		TEST(a_file_without_rules_is_forgotten),
		TEST(what_cannot_be_put_leaves_nothing),
		TEST(one_that_cannot_be_written_anew_keeps_its_samples),
		TEST(each_sample_is_of_who_has_its_slot),
		TEST(a_profile_tells_what_it_is_of),
		TEST(samples_have_the_labels_of_their_goroutine),
		TEST(a_record_that_contradicts_itself_is_an_error),
		TEST(the_total_is_what_the_kernel_charged),
		TEST(lost_samples_keep_their_share),
		TEST(one_without_a_stack_has_a_profile),
		TEST(time_that_no_tick_met_is_told),
		TEST(of_one_that_ended_the_kernel_tells),
		TEST(what_was_read_at_the_end_is_believed),
		TEST_CLOSED(without_the_kernels_word_samples_tell),
		TEST(a_charge_that_cannot_be_is_not_believed),
		TEST(one_that_called_exec_is_not_awaited),
		TEST(samples_count_from_where_its_clock_was_read),
		TEST(a_guess_has_an_error),
		TEST(clocks_tick_in_windows),
		TEST(samples_are_taken_in_the_window),
		TEST(the_next_window_begins_from_a_base),
		TEST(a_guess_begins_from_a_base),
		TEST(a_profile_tells_of_its_part_of_the_window),
		TEST(what_it_took_is_that_of_all_slots),
		TEST(it_slows_down_in_halves),
		TEST(losses_are_of_who_has_the_slot),
		TEST(samples_that_are_still_being_taken_are_a_loss),
		TEST(of_too_many_stacks_the_rest_keep_their_innermost_function),
		TEST(the_innermost_function_is_the_programs),
		TEST(all_share_the_room_for_stacks),
	};

	return cmocka_run_group_tests(tests, open_subject, close_subject);
}
