/*
 * tests/unit/test_bpf_old.c - the programs for kernels before 5.15 (user/probe/bpf_old.h): user
 * space reaches into both by one skeleton, so what it knows of one must be true of the other.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <string.h>

#include "goprof_abi.h" /* before the skeletons, which use its types */
#include "probe/bpf.h"
#include "probe/bpf_old.h"

#include "cpu.skel.h"
#include "exec_watch.skel.h"
#include "heap.skel.h"
#include "sched.skel.h"
#include "wait.skel.h"

typedef const void *bytes_fn(size_t *n);

static struct bpf_object *open_bytes(bytes_fn *bytes)
{
	size_t n;
	const void *at = bytes(&n);
	struct bpf_object *o = bpf_object__open_mem(at, n, NULL);

	assert_non_null(o);
	return o;
}

static const struct btf_type *section(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_DATASEC);

	return id < 0 ? NULL : btf__type_by_id(btf, (unsigned)id);
}

static const char *name_of(const struct btf *btf, const struct btf_var_secinfo *v)
{
	return btf__name_by_offset(btf, btf__type_by_id(btf, v->type)->name_off);
}

/* The variable @name of @sec. */
static const struct btf_var_secinfo *variable(const struct btf *btf, const struct btf_type *sec,
					      const char *name)
{
	for (int i = 0; sec && i < btf_vlen(sec); i++)
		if (!strcmp(name_of(btf, btf_var_secinfos(sec) + i), name))
			return btf_var_secinfos(sec) + i;
	return NULL;
}

/* Returns how many variables of section @name are where they are in the other object. */
static int same_section(const struct btf *is, const struct btf *old, const char *name)
{
	const struct btf_type *of = section(is, name), *in = section(old, name);
	int n = of ? btf_vlen(of) : 0;

	for (int i = 0; i < n; i++) {
		const struct btf_var_secinfo *v = btf_var_secinfos(of) + i;
		const struct btf_var_secinfo *w = variable(old, in, name_of(is, v));

		if (!w)
			fail_msg("%s: there is no %s", name, name_of(is, v));
		else if (v->offset != w->offset || v->size != w->size)
			fail_msg("%s: %s is at %u, %u bytes; and at %u, %u bytes", name,
				 name_of(is, v), v->offset, v->size, w->offset, w->size);
	}
	return n;
}

static void same_maps(const struct bpf_object *is, const struct bpf_object *old)
{
	struct bpf_map *m;

	bpf_object__for_each_map(m, is)
	{
		const struct bpf_map *o = bpf_object__find_map_by_name(old, bpf_map__name(m));

		if (bpf_map__is_internal(m)) /* a section, which is named after the object */
			continue;
		if (!o)
			fail_msg("there is no map %s", bpf_map__name(m));
		else if (bpf_map__type(m) != bpf_map__type(o) ||
			 bpf_map__key_size(m) != bpf_map__key_size(o) ||
			 bpf_map__value_size(m) != bpf_map__value_size(o))
			fail_msg("map %s is another one", bpf_map__name(m));
	}
}

static void same_programs(const struct bpf_object *is, const struct bpf_object *old)
{
	struct bpf_program *p;

	bpf_object__for_each_program(p, is)
		assert_non_null(bpf_object__find_program_by_name(old, bpf_program__name(p)));
}

static void same(bytes_fn *bytes, bytes_fn *old_bytes)
{
	struct bpf_object *is = open_bytes(bytes), *old = open_bytes(old_bytes);
	const struct btf *a = bpf_object__btf(is), *b = bpf_object__btf(old);

	assert_true(same_section(a, b, ".rodata") > 0);
	assert_true(same_section(a, b, ".bss") > 0);
	same_section(a, b, ".data");
	same_maps(is, old);
	same_programs(is, old);
	bpf_object__close(old);
	bpf_object__close(is);
}

#define SAME(kind)                                             \
	static void kind##_is_laid_out_alike(void **state)     \
	{                                                      \
		(void)state;                                   \
		same(kind##_bpf__elf_bytes, kind##_old_bytes); \
	}

SAME(cpu)
SAME(exec_watch)
SAME(heap)
SAME(sched)
SAME(wait)

/* ---- the table that stands in for cookies ---- */

/* NULL: this is not allowed. The smallest of the objects that probe. */
static struct bpf_object *loaded(bytes_fn *bytes)
{
	struct bpf_object *o = open_bytes(bytes);

	bpf_fit_kernel(o);
	if (!bpf_object__load(o))
		return o;
	bpf_object__close(o);
	return NULL;
}

static uint64_t cookie_in(const struct bpf_object *o, uint64_t addr)
{
	const struct bpf_map *table = bpf_object__find_map_by_name(o, "cookies");
	struct gpb_cookie_key key = { .addr = addr, .tgid = 7 };
	uint64_t cookie = 0;

	return bpf_map__lookup_elem(table, &key, sizeof(key), &cookie, sizeof(cookie), 0) ? 0 :
											    cookie;
}

/* Two targets of one run have an object each, and whatever one of them is told the other does not know. */
static void each_object_has_its_own_cookies(void **state)
{
	const struct uprobe_site sites[] = { { .addr = 0x1000, .cookie = 5 },
					     { .addr = 0x2000, .cookie = 6 } };
	struct bpf_object *one = loaded(wait_old_bytes), *two = loaded(wait_old_bytes);
	const struct bpf_program *prog;

	(void)state;
	if (!one || !two)
		skip();
	prog = bpf_object__find_program_by_name(one, "wait_status");
	assert_int_equal(cookies_put(prog, 7, sites, 2, NULL), 0);
	assert_int_equal(cookie_in(one, 0x1000), 5);
	assert_int_equal(cookie_in(one, 0x2000), 6);
	assert_int_equal(cookie_in(two, 0x1000), 0);
	bpf_object__close(two);
	bpf_object__close(one);
}

static void others_have_no_table(void **state)
{
	const struct uprobe_site site = { .addr = 0x1000, .cookie = 5 };
	struct bpf_object *o = loaded(wait_bpf__elf_bytes);

	(void)state;
	assert_int_equal(cookies_put(NULL, 7, &site, 1, NULL), 0);
	if (!o)
		skip();
	assert_int_equal(cookies_put(bpf_object__find_program_by_name(o, "wait_status"), 7, &site,
				     1, NULL),
			 0);
	bpf_object__close(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu_is_laid_out_alike),
		cmocka_unit_test(exec_watch_is_laid_out_alike),
		cmocka_unit_test(heap_is_laid_out_alike),
		cmocka_unit_test(sched_is_laid_out_alike),
		cmocka_unit_test(wait_is_laid_out_alike),
		cmocka_unit_test(each_object_has_its_own_cookies),
		cmocka_unit_test(others_have_no_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
