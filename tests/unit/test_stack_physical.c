/*
 * tests/unit/test_stack_physical.c - joins two segments into one stack, over an executable made by
 * hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "probe/reports.h"
#include "symbolize/stack_physical.h"
#include "probe/stacks/unwinding.h"
#include "mkgobin.h"

/* Return addresses inside the functions of tests/support/mkgobin.h. */
#define TEXT0 (MK_TEXT + 0x08)
#define MAIN  (MK_TEXT + 0x48) /* nothing is inlined there */
#define LAST  (MK_TEXT + 0xd8)

/* Numbers of internal/abi/symtab.go, Go 1.27, and where _func has them. */
enum {
	ID_MCALL = 12,
	ID_MORESTACK = 13,
	ID_SYSTEMSTACK = 21,
	ID_SIGPANIC = 20,
	ID_WRAPPER = 23,
	OFF_ID = 40,
	OFF_FLAG = 41
};

static struct mkgobin g;
static struct target target;
static struct subject subject;
static struct prof *prof;
static struct stack_physical ph;
static int fd;
static bool pushes; /* main.main begins with a push of one byte */

/* text0 gets @id, last gets @last_id and @last_flag. */
static void open_subject(uint8_t id, uint8_t last_id, uint8_t last_flag)
{
	struct mkopt o = { .minor = 27 };
	struct err e = {};

	mkgobin(&g, &o);
	g.b[g.rec[0] + OFF_ID] = id;
	g.b[g.rec[3] + OFF_ID] = last_id;
	g.b[g.rec[3] + OFF_FLAG] = last_flag;
	if (pushes) { /* the lengths of the ranges of delta 0 and 8 */
		g.b[g.pcsp + 1] -= 3;
		g.b[g.pcsp + 3] += 3;
	}
	fd = mkgobin_fd(g.b, g.n);
	target = (struct target){ .exe_fd = fd };
	subject = (struct subject){ .target = &target };
	assert_int_equal(gobin_open(fd, "hand.elf", NULL, 0, &subject.bin, &e), 0);
	subject.images.at[0].bin = subject.bin;
	subject.images.n = 1;
	assert_int_equal(prof_new(&prof, &e), 0);
	assert_int_equal(prof_add_type(prof, "samples", "count", &e), 0);
	stack_physical_init(&ph, &subject, prof, HIDE_NONE);
}

static int close_subject(void **state)
{
	(void)state;
	stack_physical_fini(&ph);
	prof_free(prof);
	gobin_free(subject.bin);
	close(fd);
	return 0;
}

static void add(const uint64_t *first, size_t nfirst, const uint64_t *second, size_t nsecond)
{
	struct gpb_stack st = { .count = 1,
				.nfirst = (uint16_t)nfirst,
				.nsecond = (uint16_t)nsecond };
	int64_t one = 1;
	struct err e = {};

	for (size_t i = 0; i < nfirst; i++)
		st.pc[i] = first[i];
	for (size_t i = 0; i < nsecond; i++)
		st.pc[nfirst + i] = second[i];
	assert_int_equal(stack_physical_add(&ph, &st, &one, NULL, 0, &e), 0);
}

/* The one sample's addresses; a location's address is the return address minus one. */
static void expect(const uint64_t *pcs, size_t n)
{
	struct prof_sample_view s = prof_sample_at(prof, 0);

	assert_int_equal(prof_nsamples(prof), 1);
	assert_int_equal(s.nlocs, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(prof_location_at(prof, s.locs[i] - 1).address, pcs[i] - 1);
}

#define PCS(...) (const uint64_t[]){ __VA_ARGS__ }, sizeof((uint64_t[]){ __VA_ARGS__ }) / 8

/* systemstack is shown, the made-up sched.pc is not, and the goroutine's frames follow. */
static void systemstack_goes_on_to_the_goroutine(void **state)
{
	(void)state;
	open_subject(ID_SYSTEMSTACK, 0, 0);
	add(PCS(MAIN, TEXT0), PCS(LAST, LAST + 1, MAIN + 1));
	expect(PCS(MAIN, TEXT0, LAST + 1, MAIN + 1));
}

/*
 * The runtime's own allocations on the system stack, for a heap profile: only CPU profiles cross
 * over.
 */
static void allocations_end_at_systemstack(void **state)
{
	(void)state;
	open_subject(ID_SYSTEMSTACK, 0, 0);
	ph.hide = HIDE_RUNTIME;
	add(PCS(MAIN, TEXT0), PCS(LAST, LAST + 1, MAIN + 1));
	expect(PCS(MAIN, TEXT0));
}

/* morestack itself is not shown: the function whose stack grows takes its place. */
static void morestack_is_replaced(void **state)
{
	(void)state;
	open_subject(ID_MORESTACK, 0, 0);
	add(PCS(MAIN, TEXT0), PCS(LAST, MAIN + 1));
	expect(PCS(MAIN, LAST, MAIN + 1));
}

/* A wrapper is left out, but a goroutine that has not begun may have nothing else. */
static void a_wrapper_alone_is_shown(void **state)
{
	(void)state;
	open_subject(ID_WRAPPER, 0, 0);
	ph.hide = HIDE_PARKED;
	add(PCS(TEXT0), PCS());
	expect(PCS(TEXT0));
	close_subject(NULL);
	open_subject(ID_WRAPPER, 0, 0);
	add(PCS(MAIN, TEXT0), PCS());
	expect(PCS(MAIN));
}

static void mcall_is_the_end(void **state)
{
	(void)state;
	open_subject(ID_MCALL, 0, 0);
	add(PCS(MAIN, TEXT0, LAST), PCS(LAST, MAIN + 1));
	expect(PCS(MAIN, TEXT0));
}

/* There is nothing at the seam, so the goroutine has nothing to do with what the thread does. */
static void unrelated_goroutine_is_left_out(void **state)
{
	(void)state;
	open_subject(0, 0, 0);
	add(PCS(MAIN, TEXT0), PCS(LAST, MAIN + 1));
	expect(PCS(MAIN, TEXT0));
}

/* funcflag 2: sp is written, and Go shows nothing above. */
static void sp_writers_end_a_stack(void **state)
{
	(void)state;
	open_subject(0, 0, 2);
	add(PCS(MAIN, LAST, TEXT0), NULL, 0);
	expect(PCS(MAIN, LAST));
}

static void outside_of_text_is_an_address(void **state)
{
	(void)state;
	open_subject(0, 0, 0);
	add(PCS(0x1235, MAIN), NULL, 0);
	expect(PCS(0x1235, MAIN));
	assert_int_equal(prof_loss(prof)->n[LOSS_PCS_UNRESOLVED], 1);
}

static struct gpb_rec_raw raw;
static size_t nlearnt;
static struct gpb_unwind_rule last_learnt;

static void learn(void *arg, uint64_t pc, const struct gpb_unwind_rule *r)
{
	(void)arg;
	(void)pc;
	nlearnt++;
	last_learnt = *r;
}

/* A stack that the BPF side left at its leaf, with four words of memory. */
static void raw_at(uint64_t pc)
{
	raw = (struct gpb_rec_raw){ .pc = pc, .sp = 0x1000, .ntop = 4 };
	raw.stack.flags = GPB_STACK_UNRULED;
	raw.stack.nfirst = 1;
	raw.stack.pc[0] = pc + 1;
	nlearnt = 0;
}

static int settle(void)
{
	struct err e = {};

	return unwinding_settle(&subject, &raw, learn, NULL, &e);
}

/* main.main: delta 0 at its entry, 8 from +4 on. text0: 0. last ends the stack. */
static void settles_by_the_deltas(void **state)
{
	(void)state;
	open_subject(0, 0, 1);
	raw_at(MK_TEXT + 0x40);
	raw.top[0] = MAIN; /* sp + 0: called from main.main, whose frame is 8 + 8 bytes */
	raw.top[2] = LAST;
	assert_int_equal(settle(), 0);
	assert_int_equal(raw.stack.flags, 0);
	assert_int_equal(raw.stack.nfirst, 3);
	assert_int_equal(raw.stack.pc[1], MAIN);
	assert_int_equal(raw.stack.pc[2], LAST);
	assert_int_equal(nlearnt, 3);
	assert_int_equal(last_learnt.flags, GPB_UNWIND_RULE_END);
}

/* Right behind a push the return address is where the memory says: a breakpoint on the push may not be handled yet. */
static void a_push_is_done_or_not(void **state)
{
	static const uint64_t top[][4] = { { MAIN, 0, LAST }, { 0x7ffe1238, MAIN, 0, LAST } };

	(void)state;
	pushes = true;
	open_subject(0, 0, 1);
	pushes = false;
	for (size_t i = 0; i < 2; i++) {
		raw_at(MK_TEXT + 0x41);
		memcpy(raw.top, top[i], sizeof(top[i]));
		assert_int_equal(settle(), 0);
		assert_int_equal(raw.stack.nfirst, 3);
		assert_int_equal(raw.stack.pc[1], MAIN);
		assert_int_equal(raw.stack.pc[2], LAST);
		assert_int_equal(nlearnt, 2); /* not this one */
	}
}

/* The goroutine's frames, which lie behind in pc[], stay where they belong. */
static void settles_in_front_of_the_goroutine(void **state)
{
	(void)state;
	open_subject(ID_SYSTEMSTACK, 0, 0);
	raw_at(MK_TEXT + 0x40);
	raw.stack.nsecond = 1;
	raw.stack.pc[1] = LAST;
	raw.top[0] = TEXT0;
	assert_int_equal(settle(), 0);
	assert_int_equal(raw.stack.nfirst, 2);
	assert_int_equal(raw.stack.nsecond, 1);
	assert_int_equal(raw.stack.pc[1], TEXT0);
	assert_int_equal(raw.stack.pc[2], LAST);
	assert_int_equal(last_learnt.flags, GPB_UNWIND_RULE_SEAM);
	assert_int_equal(last_learnt.delta, 0);
}

/* Words that are no return addresses, or that were not kept: the frames so far are kept. */
static void ends_where_the_memory_does(void **state)
{
	(void)state;
	open_subject(0, 0, 1);
	raw_at(MK_TEXT + 0x48);
	raw.top[1] = 0x1234;
	assert_int_equal(settle(), 0);
	assert_int_equal(raw.stack.nfirst, 1);
	raw_at(MK_TEXT + 0x48);
	raw.top[1] = MAIN;
	raw.ntop = 1;
	assert_int_equal(settle(), 0);
	assert_int_equal(raw.stack.nfirst, 1);
}

/*
 * A frame is larger than the memory that came with the stack: the frame pointers know what is
 * above.
 */
static void hints_reach_over_large_frames(void **state)
{
	(void)state;
	open_subject(0, 0, 1);
	raw_at(MK_TEXT + 0x40);
	raw.top[0] = MAIN;
	raw.ntop = 1;
	raw.stack.hints = 3;
	raw.stack.pc[1] = TEXT0;
	raw.stack.pc[2] = MAIN;
	raw.stack.pc[3] = LAST;
	assert_int_equal(settle(), 0);
	assert_int_equal(raw.stack.nfirst, 3);
	assert_int_equal(raw.stack.pc[1], MAIN);
	assert_int_equal(raw.stack.pc[2], LAST);
}

/*
 * newstack gave the processor away at the entry of a recursion's next call: the frame pointers begin
 * at its caller's frame, and the calls above that have its return address, too.
 */
static void hints_begin_at_the_large_frame(void **state)
{
	(void)state;
	open_subject(0, 0, 1);
	raw_at(MK_TEXT + 0x40);
	raw.top[0] = MAIN;
	raw.ntop = 1;
	raw.stack.hints = 3;
	raw.stack.pc[1] = MAIN;
	raw.stack.pc[2] = MAIN;
	raw.stack.pc[3] = LAST;
	assert_int_equal(settle(), 0);
	assert_int_equal(raw.stack.nfirst, 5);
	assert_int_equal(raw.stack.pc[3], MAIN);
	assert_int_equal(raw.stack.pc[4], LAST);
	raw_at(MK_TEXT + 0x40);
	raw.top[0] = MAIN;
	raw.ntop = 1;
	raw.stack.hints = 2;
	raw.stack.pc[1] = TEXT0;
	raw.stack.pc[2] = LAST;
	assert_int_equal(settle(), 0);
	assert_int_equal(raw.stack.nfirst, 4);
	assert_int_equal(raw.stack.pc[2], TEXT0);
}

/* The large frame was interrupted, and has not called the one before: its pc is in the frame pointers as it is. */
static void hints_reach_over_an_interrupted_frame(void **state)
{
	(void)state;
	open_subject(ID_SIGPANIC, 0, 1);
	raw_at(MK_TEXT + 0x40);
	raw.ntop = 0;
	raw.stack.nfirst = 3;
	raw.stack.hints = 3;
	memcpy(raw.stack.pc,
	       (uint64_t[]){ MAIN, TEXT0, MK_TEXT + 0x41, TEXT0, MK_TEXT + 0x40, LAST },
	       6 * sizeof(uint64_t));
	assert_int_equal(settle(), 0);
	assert_int_equal(raw.stack.nfirst, 4);
	assert_int_equal(raw.stack.pc[2], MK_TEXT + 0x41);
	assert_int_equal(raw.stack.pc[3], LAST);
}

/* The ring had no room for a stack's memory: it was counted with what frame pointers suggest. */
static void bare_stacks_go_on_by_frame_pointers(void **state)
{
	struct gpb_stack st = { .count = 3,
				.flags = GPB_STACK_UNRULED | GPB_STACK_CALLER,
				.nfirst = 1,
				.hints = 2,
				.pc = { MK_TEXT + 0x41, MAIN, LAST } };
	const struct gpb_stack *out = NULL;
	struct unwind_rules rules;

	(void)state;
	open_subject(0, 0, 1);
	unwind_rules_init(&rules, -1);
	assert_int_equal(unwind_rules_settle_bare(&rules, &subject, &st, &out, NULL), 0);
	assert_int_equal(out->nfirst, 3);
	assert_int_equal(out->count, 3);
	assert_int_equal(out->hints, 0);
	assert_true(out->pc[1] == MAIN && out->pc[2] == LAST);
	assert_int_equal(out->flags, GPB_STACK_CALLER);
	/* the same on the goroutine's stack, behind a whole system stack */
	st = (struct gpb_stack){ .flags = GPB_STACK_UNRULED | GPB_STACK_SECOND,
				 .nfirst = 1,
				 .nsecond = 1,
				 .hints = 1,
				 .pc = { TEXT0, MAIN, LAST } };
	assert_int_equal(unwind_rules_settle_bare(&rules, &subject, &st, &out, NULL), 0);
	assert_int_equal(out->nfirst, 1);
	assert_int_equal(out->nsecond, 2);
	assert_int_equal(out->pc[2], LAST);
	/* one that is finished, and one that is none */
	st.flags = 0;
	assert_int_equal(unwind_rules_settle_bare(&rules, &subject, &st, &out, NULL), 0);
	assert_ptr_equal(out, &st);
	st.flags = GPB_STACK_UNRULED;
	st.nfirst = 0;
	assert_int_equal(unwind_rules_settle_bare(&rules, &subject, &st, &out, NULL), 0);
	assert_ptr_equal(out, &st);
	unwind_rules_fini(&rules);
}

/* A stack that ends before its root is counted. */
static void stacks_that_break_off_are_counted(void **state)
{
	(void)state;
	open_subject(0, 0, 1);
	add(PCS(MAIN, TEXT0), NULL, 0);
	assert_int_equal(prof_loss(prof)->n[LOSS_STACKS_BROKEN], 1);
	add(PCS(MAIN, LAST), NULL, 0);
	assert_int_equal(prof_loss(prof)->n[LOSS_STACKS_BROKEN], 1);
}

/* Above sigpanic lies the pc that faulted, not a return address. */
static void injected_calls_are_exact(void **state)
{
	struct gpb_unwind_rule r;

	(void)state;
	open_subject(ID_SIGPANIC, 0, 0);
	assert_int_equal(unwinding_rule(&subject, TEXT0, &r), 0);
	assert_int_equal(r.flags, GPB_UNWIND_RULE_EXACT);
	raw_at(TEXT0);
	raw.top[0] = MK_TEXT + 0x40;
	assert_int_equal(settle(), 0);
	assert_int_equal(raw.stack.pc[1], MK_TEXT + 0x41);
}

/* A table that cannot be written to refuses each rule, and that is counted; not those that it has already. */
static uint64_t foreseen_but(uint64_t known)
{
	struct unwind_rules rules;

	unwind_rules_init(&rules, -1);
	if (known)
		assert_true(map_put(&rules.known, unwind_rules_key(&subject, known), 1));
	unwind_rules_foresee(&rules, &subject, UNWIND_RULES_FORESEEN);
	unwind_rules_fini(&rules);
	return rules.refused;
}

static uint64_t foreseen(void)
{
	return foreseen_but(0);
}

static void put_word(uint64_t at, uint32_t word)
{
	assert_int_equal(pwrite(fd, &word, sizeof(word), (off_t)(at - MK_BASE)), sizeof(word));
	gobin_shrink(subject.bin); /* it has read the file already */
}

/* What the calls of arm64 in a program return to has rules before it is met. */
static void calls_are_foreseen(void **state)
{
	(void)state;
	open_subject(0, 0, 0);
	assert_int_equal(foreseen(), 0);
	put_word(MK_TEXT, 0x94000100);	      /* bl */
	put_word(MK_TEXT + 0x44, 0xd63f0340); /* blr x26 */
	put_word(MK_ETEXT - 4, 0x97ffff00);   /* bl, a function's last word */
	put_word(MK_TEXT + 0x48, 0x14000100); /* b */
	put_word(MK_TEXT + 0x4c, 0xd61f0340); /* br x26 */
	put_word(MK_TEXT + 0x50, 0xd65f03c0); /* ret */
	assert_int_equal(foreseen(), 3);
	assert_int_equal(foreseen_but(MK_TEXT + 3), 2);
}

static void full_stacks_are_cut(void **state)
{
	(void)state;
	open_subject(0, 0, 0);
	raw_at(MK_TEXT + 0x40);
	raw.stack.nfirst = GPB_MAX_USER;
	raw.top[0] = TEXT0;
	assert_int_equal(settle(), 0);
	assert_int_equal(raw.stack.nfirst, GPB_MAX_USER);
	assert_true(raw.stack.flags & GPB_STACK_CUT);
}

static void sp_writers_stand_alone(void **state)
{
	struct gpb_unwind_rule r;

	(void)state;
	open_subject(ID_MORESTACK, 0, 2);
	assert_int_equal(unwinding_rule(&subject, LAST, &r), 0);
	assert_int_equal(r.flags, GPB_UNWIND_RULE_END);
	assert_int_equal(unwinding_rule(&subject, TEXT0, &r), 0);
	assert_int_equal(r.flags, GPB_UNWIND_RULE_SEAM);
	assert_int_equal(r.delta, -1);
	assert_true(unwinding_rule(&subject, 0x10, &r) < 0);
}

static void records_that_lie_are_refused(void **state)
{
	struct gpb_stack st = { .count = 1, .nfirst = GPB_MAX_PCS, .nsecond = 1 };
	int64_t one = 1;
	struct err e = {};

	(void)state;
	open_subject(0, 0, 0);
	raw_at(MK_TEXT + 0x40);
	raw.stack.nfirst = 0;
	assert_int_equal(settle(), -EBADMSG);
	raw_at(MK_TEXT + 0x40);
	raw.stack.nkernel = GPB_MAX_KERNEL + 1;
	assert_int_equal(settle(), -EBADMSG);
	raw_at(0x10);
	assert_int_equal(settle(), 0);
	assert_int_equal(raw.stack.nfirst, 1);
	assert_int_equal(stack_physical_add(&ph, &st, &one, NULL, 0, &e), -EBADMSG);
}

/* One of them must not cost the rest of the profile: it is lost, and said to be. */
static void a_lying_record_is_a_loss(void **state)
{
	const struct gpb_stack *st = NULL;
	struct loss loss = {};
	struct gpb_tally none = {};
	struct reports f = {};

	(void)state;
	open_subject(0, 0, 0);
	unwind_rules_init(&f.rules, -1);
	raw_at(MK_TEXT + 0x40);
	raw.stack.nfirst = 0;
	assert_int_equal(unwind_rules_settle(&f.rules, &subject, &raw, sizeof(raw), &st, NULL), 0);
	raw_at(MK_TEXT + 0x40);
	assert_int_equal(unwind_rules_settle(&f.rules, &subject, &raw, 100, &st, NULL), 0);
	raw.ntop = GPB_TOP_WORDS + 1;
	assert_int_equal(unwind_rules_settle(&f.rules, &subject, &raw, sizeof(raw), &st, NULL), 0);
	assert_null(st);
	raw.stack.nfirst = 0;
	assert_false(reports_whole(&f, &raw.stack));
	raw.stack.nfirst = 1;
	assert_true(reports_whole(&f, &raw.stack));
	reports_losses(&f, &none, NULL, &loss);
	assert_int_equal(loss.n[LOSS_STACKS_UNREADABLE], 4);
	unwind_rules_fini(&f.rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(systemstack_goes_on_to_the_goroutine, close_subject),
		cmocka_unit_test_teardown(allocations_end_at_systemstack, close_subject),
		cmocka_unit_test_teardown(morestack_is_replaced, close_subject),
		cmocka_unit_test_teardown(a_wrapper_alone_is_shown, close_subject),
		cmocka_unit_test_teardown(mcall_is_the_end, close_subject),
		cmocka_unit_test_teardown(unrelated_goroutine_is_left_out, close_subject),
		cmocka_unit_test_teardown(sp_writers_end_a_stack, close_subject),
		cmocka_unit_test_teardown(outside_of_text_is_an_address, close_subject),
		cmocka_unit_test_teardown(settles_by_the_deltas, close_subject),
		cmocka_unit_test_teardown(a_push_is_done_or_not, close_subject),
		cmocka_unit_test_teardown(settles_in_front_of_the_goroutine, close_subject),
		cmocka_unit_test_teardown(ends_where_the_memory_does, close_subject),
		cmocka_unit_test_teardown(hints_reach_over_large_frames, close_subject),
		cmocka_unit_test_teardown(hints_begin_at_the_large_frame, close_subject),
		cmocka_unit_test_teardown(hints_reach_over_an_interrupted_frame, close_subject),
		cmocka_unit_test_teardown(bare_stacks_go_on_by_frame_pointers, close_subject),
		cmocka_unit_test_teardown(stacks_that_break_off_are_counted, close_subject),
		cmocka_unit_test_teardown(injected_calls_are_exact, close_subject),
		cmocka_unit_test_teardown(calls_are_foreseen, close_subject),
		cmocka_unit_test_teardown(full_stacks_are_cut, close_subject),
		cmocka_unit_test_teardown(sp_writers_stand_alone, close_subject),
		cmocka_unit_test_teardown(records_that_lie_are_refused, close_subject),
		cmocka_unit_test_teardown(a_lying_record_is_a_loss, close_subject),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
