/*
 * tests/unit/test_bpf_maps.c - hash maps for a kernel that refuses those which allocate entry by
 * entry (Linux 5.15 to 6.0 for perf events): all programs must load with them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <bpf/libbpf.h>
#include <linux/bpf.h>
#include <sys/syscall.h>

#include "probe/bpf.h"
#include "probe/bpf_fit.h"

#include "cpu.skel.h"
#include "exec_watch.skel.h"
#include "heap.skel.h"
#include "sched.skel.h"
#include "wait.skel.h"

/* ---- a kernel as up to 6.0 ---- */

static bool old_kernel;
static bool grows[4096]; /* by descriptor: does the map allocate entry by entry? */
static int refused;

static bool uses_growing(const union bpf_attr *a)
{
	const struct bpf_insn *in = (const struct bpf_insn *)(uintptr_t)a->insns;

	for (uint32_t i = 0; i < a->insn_cnt; i++) {
		if (in[i].code != (BPF_LD | BPF_DW | BPF_IMM))
			continue;
		if (in[i].src_reg == BPF_PSEUDO_MAP_FD && grows[in[i].imm & 4095])
			return true;
		i++;
	}
	return false;
}

/*
 * Replaces the function that libbpf and our code call. It does not know how many arguments a call has, so it
 * takes six, some of which nobody has passed: AddressSanitizer must not look at that.
 */
__attribute__((no_sanitize("address"))) long syscall(long nr, ...)
{
	const union bpf_attr *a;
	long v[6], ret;
	va_list ap;

	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		v[i] = va_arg(ap, long);
	va_end(ap);
	a = (const union bpf_attr *)v[1];
	if (old_kernel && nr == SYS_bpf && v[0] == BPF_PROG_LOAD &&
	    a->prog_type == BPF_PROG_TYPE_PERF_EVENT && uses_growing(a)) {
		refused++;
		errno = EINVAL;
		return -1;
	}
	__asm__ volatile("mov %5, %%r10; mov %6, %%r8; mov %7, %%r9; syscall"
			 : "=a"(ret)
			 : "a"(nr), "D"(v[0]), "S"(v[1]), "d"(v[2]), "m"(v[3]), "m"(v[4]), "m"(v[5])
			 : "rcx", "r8", "r9", "r10", "r11", "memory");
	if (ret < 0) {
		errno = (int)-ret;
		return -1;
	}
	if (nr == SYS_bpf && v[0] == BPF_MAP_CREATE)
		grows[ret & 4095] = a->map_flags & BPF_F_NO_PREALLOC;
	return ret;
}

/* How many hash maps of this object allocate entry by entry. */
static unsigned growing(struct bpf_object *o)
{
	struct bpf_map *m;
	unsigned n = 0;

	bpf_object__for_each_map(m, o) n += bpf_map__type(m) == BPF_MAP_TYPE_HASH &&
					    (bpf_map__map_flags(m) & BPF_F_NO_PREALLOC);
	return n;
}

static void fit_and_load(struct bpf_object *o)
{
	int ret;

	assert_non_null(o);
	assert_true(growing(o) > 0);
	bpf_fit(o, false);
	assert_true(growing(o) > 0);
	bpf_fit(o, true);
	assert_int_equal(growing(o), 0);
	ret = bpf_object__load(o);
	if (ret != -EPERM && ret != -EACCES) /* an ordinary user is not allowed */
		assert_int_equal(ret, 0);
}

#define FITS(kind)                                         \
	static void kind##_fits(void **state)              \
	{                                                  \
		struct kind##_bpf *o = kind##_bpf__open(); \
                                                           \
		(void)state;                               \
		assert_non_null(o);                        \
		fit_and_load(o->obj);                      \
		kind##_bpf__destroy(o);                    \
	}

FITS(cpu)
FITS(exec_watch)
FITS(heap)
FITS(sched)
FITS(wait)

/*
 * The kernel answers as the verifier up to 6.0 does; one that allows growing maps does not
 * complain.
 */
static void is_found_by_trying(void **state)
{
	struct err e = { "" };
	int ret = bpf_try_growing(&e);

	(void)state;
	assert_true(!ret || ret == -EINVAL || ret == -EPERM || ret == -EACCES);
	assert_int_equal(!ret, !e.msg[0]);
}

static void an_old_kernel_has_its_way(void **state)
{
	struct cpu_bpf *o = cpu_bpf__open();

	(void)state;
	if (bpf_try_growing(NULL)) /* this is not allowed, or the kernel is one of these */
		skip();
	old_kernel = true;
	refused = 0;
	assert_int_equal(bpf_try_growing(NULL), -EINVAL);
	assert_int_equal(refused, 1);
	bpf_prepare(o);
	assert_int_equal(cpu_bpf__load(o), 0);
	assert_int_equal(refused, 2); /* by the attempt, and not by loading */
	cpu_bpf__destroy(o);
	old_kernel = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu_fits),
		cmocka_unit_test(exec_watch_fits),
		cmocka_unit_test(heap_fits),
		cmocka_unit_test(sched_fits),
		cmocka_unit_test(wait_fits),
		cmocka_unit_test(is_found_by_trying),
		cmocka_unit_test(an_old_kernel_has_its_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
