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
#include "probe/bpf_old.h"

#include "cpu.skel.h"
#include "family.skel.h"
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
SAME(family)
SAME(heap)
SAME(sched)
SAME(wait)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu_is_laid_out_alike),
		cmocka_unit_test(family_is_laid_out_alike),
		cmocka_unit_test(heap_is_laid_out_alike),
		cmocka_unit_test(sched_is_laid_out_alike),
		cmocka_unit_test(wait_is_laid_out_alike),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
