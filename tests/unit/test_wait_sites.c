/*
 * tests/unit/test_wait_sites.c - which frame of a wait is the place in the program, and who asked for a semaphore. Names of
 * functions are this file's: there is one for each address that a stack has.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/cleanup.h"
#include "collect/waits/looks/wait_sites.h"

enum { TEXT = 0x401000, FUNC_BYTES = 64, FUNCS_MAX = 2 * GPB_MAX_PCS };

static const char *names[FUNCS_MAX]; /* NULL: it has none */
static size_t nnames, asked;
static struct gpb_stack st;

/* A call may be the last instruction of its function: where it returns to is the next one's. */
const char *subject_func_name(struct subject *s, uint64_t pc)
{
	size_t i = (pc - TEXT) / FUNC_BYTES;

	assert_null(s);
	asked++;
	return pc >= TEXT && i < nnames ? names[i] : NULL;
}

static uint64_t returns_to(const char *func)
{
	assert_true(nnames < FUNCS_MAX);
	names[nnames++] = func;
	return TEXT + nnames * FUNC_BYTES;
}

/* Its first part ends, and what follows is that of the goroutine, at "|". The list ends at NULL. */
static void stack_of(unsigned nkernel, const char *const *funcs)
{
	size_t n = nkernel;
	bool second = false;

	memset(&st, 0, sizeof(st));
	nnames = asked = 0;
	st.nkernel = (uint16_t)nkernel;
	for (size_t i = 0; i < nkernel; i++)
		st.pc[i] = returns_to("main.inKernel"); /* no function of the program's */
	for (; *funcs; funcs++) {
		if (!strcmp(*funcs, "|")) {
			second = true;
			continue;
		}
		st.pc[n++] = returns_to(strcmp(*funcs, "?") ? *funcs : NULL);
		*(second ? &st.nsecond : &st.nfirst) += 1;
	}
}

#define STACK(nkernel, ...) stack_of(nkernel, (const char *const[]){ __VA_ARGS__, NULL })

/* ---- the place ---- */

static void the_first_frame_that_is_no_machinery_is_the_place(void **state)
{
	(void)state;
	STACK(0, "runtime.gopark", "runtime.chanrecv", "runtime.chanrecv1", "main.wait",
	      "main.main");
	assert_int_equal(wait_site_depth(NULL, &st), 4);
	STACK(0, "runtime.gopark", "runtime.semacquire1", "sync.runtime_SemacquireMutex",
	      "internal/sync.(*Mutex).lockSlow", "sync.(*Mutex).Lock", "main.lock", "runtime.main");
	assert_int_equal(wait_site_depth(NULL, &st), 6);
	STACK(0, "main.busy", "runtime.goexit");
	assert_int_equal(wait_site_depth(NULL, &st), 1);
}

/* Packages whose names begin alike are a program's own. */
static void a_program_may_have_such_names(void **state)
{
	(void)state;
	STACK(0, "runtime.gopark", "runtime/trace.Stop", "main.main");
	assert_int_equal(wait_site_depth(NULL, &st), 2);
	STACK(0, "runtime.gopark", "synchro.Wait", "main.main");
	assert_int_equal(wait_site_depth(NULL, &st), 2);
	STACK(0, "runtime.gopark", "golang.org/x/sync/errgroup.(*Group).Wait", "main.main");
	assert_int_equal(wait_site_depth(NULL, &st), 2);
}

static void what_has_no_name_is_no_machinery(void **state)
{
	(void)state;
	STACK(0, "runtime.gopark", "?", "main.main");
	assert_int_equal(wait_site_depth(NULL, &st), 2);
}

/* Frames are counted without the kernel's. */
static void the_kernels_frames_are_not_counted(void **state)
{
	(void)state;
	STACK(3, "syscall.Syscall", "main.read");
	assert_int_equal(wait_site_depth(NULL, &st), 1);
	STACK(3, "internal/runtime/syscall.Syscall6", "runtime.exitsyscall", "os.(*File).Read");
	assert_int_equal(wait_site_depth(NULL, &st), 3);
}

/* On the system stack there is nothing but machinery; the goroutine's own stack follows. */
static void the_place_may_be_in_the_second_part(void **state)
{
	(void)state;
	STACK(0, "runtime.park_m", "runtime.mcall", "|", "runtime.gopark", "main.wait");
	assert_int_equal(wait_site_depth(NULL, &st), 4);
	STACK(2, "runtime.park_m", "runtime.mcall", "|", "runtime.gopark", "main.wait");
	assert_int_equal(wait_site_depth(NULL, &st), 4);
}

static void where_all_is_machinery_it_is_the_innermost(void **state)
{
	(void)state;
	STACK(0, "runtime.gopark", "runtime.bgsweep", "|", "runtime.goexit");
	assert_int_equal(wait_site_depth(NULL, &st), 1);
	STACK(1, "runtime.gopark", "runtime.bgsweep");
	assert_int_equal(wait_site_depth(NULL, &st), 1);
}

/* Numbers that no stack has: only what there is room for is looked at. */
static void a_stack_that_claims_too_much_is_not_followed(void **state)
{
	(void)state;
	STACK(4, "runtime.gopark");
	for (size_t i = 0; i < GPB_MAX_PCS; i++)
		st.pc[i] = st.pc[4];
	st.nfirst = st.nsecond = UINT16_MAX;
	assert_int_equal(wait_site_depth(NULL, &st), 1);
	assert_int_equal(asked, GPB_MAX_PCS - 4);
}

/* ---- semaphores ---- */

/* Source: runtime/sema.go, Go 1.27: each function that calls semacquire1 on behalf of a package. */
static void packages_ask_by_names_of_their_own(void **state)
{
	static const char *const askers[] = {
		"sync.runtime_Semacquire",
		"sync.runtime_SemacquireWaitGroup",
		"sync.runtime_SemacquireRWMutexR",
		"sync.runtime_SemacquireRWMutex",
		"internal/sync.runtime_SemacquireMutex",
		"internal/poll.runtime_Semacquire",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(askers); i++) {
		STACK(0, "runtime.gopark", "runtime.goparkunlock", "runtime.semacquire1", askers[i],
		      "runtime.main");
		if (!wait_site_asked(NULL, &st))
			fail_msg("%s is no package's", askers[i]);
	}
}

/* It waits for another to stop the world, say, and Go's block profile has none of that. */
static void the_runtime_asks_for_itself(void **state)
{
	(void)state;
	STACK(0, "runtime.gopark", "runtime.semacquire1", "runtime.semacquire",
	      "runtime.stopTheWorld", "runtime.GOMAXPROCS", "main.main");
	assert_false(wait_site_asked(NULL, &st));
	STACK(0, "runtime.semacquire1", "runtime.gcStart", "sync.runtime_Semacquire");
	assert_false(wait_site_asked(NULL, &st));
}

static void other_waits_are_no_semaphores(void **state)
{
	(void)state;
	STACK(0, "runtime.gopark", "runtime.chanrecv", "runtime.chanrecv1", "main.wait");
	assert_true(wait_site_asked(NULL, &st));
	STACK(0, "runtime.gopark", "runtime.semacquire", "runtime.gcStart", "main.wait");
	assert_true(wait_site_asked(NULL, &st)); /* its name only begins alike */
}

/* Nobody knows who asked. */
static void what_cannot_be_told_counts(void **state)
{
	(void)state;
	STACK(0, "runtime.gopark", "runtime.semacquire1", "?", "runtime.main");
	assert_true(wait_site_asked(NULL, &st));
	STACK(0, "?", "runtime.semacquire1", "|", "runtime.main");
	assert_true(wait_site_asked(NULL, &st)); /* it was cut there */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_frame_that_is_no_machinery_is_the_place),
		cmocka_unit_test(a_program_may_have_such_names),
		cmocka_unit_test(what_has_no_name_is_no_machinery),
		cmocka_unit_test(the_kernels_frames_are_not_counted),
		cmocka_unit_test(the_place_may_be_in_the_second_part),
		cmocka_unit_test(where_all_is_machinery_it_is_the_innermost),
		cmocka_unit_test(a_stack_that_claims_too_much_is_not_followed),
		cmocka_unit_test(packages_ask_by_names_of_their_own),
		cmocka_unit_test(the_runtime_asks_for_itself),
		cmocka_unit_test(other_waits_are_no_semaphores),
		cmocka_unit_test(what_cannot_be_told_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
