/* user/probe/bpf_fit.c - what differs between kernels in how a BPF object is loaded. */
#include "probe/bpf_fit.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "probe/uprobes/uprobes.h"
#include "try.skel.h"

/*
 * The functions that hand memory which they were given to a map as a value: the second by the first,
 * where there are many targets.
 */
static const char *const mapping[] = { "sample_count", "sample_raw" };

static void try_freep(struct try_bpf **o)
{
	try_bpf__destroy(*o);
}

/* May global functions do so? What cannot be tried is taken to be possible. */
static bool globals_may_map(void)
{
	CLEANUP(try_freep) struct try_bpf *o = NULL;
	int ret;

	/* All kernels that have these links allow it: nothing need be loaded. */
	if (uprobes_have_multi())
		return true;
	o = try_bpf__open();
	ret = o ? try_bpf__load(o) : 0;
	return ret != -EINVAL && ret != -EACCES;
}

static bool maps_memory(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(mapping); i++)
		if (!strcmp(name, mapping[i]))
			return true;
	return false;
}

/* What a function is, is told by its type: these are the types that libbpf hands over. */
static void make_static(struct bpf_object *o)
{
	struct btf *btf = bpf_object__btf(o);
	uint32_t n = btf ? btf__type_cnt(btf) : 0;

	for (uint32_t id = 1; id < n; id++) {
		struct btf_type *t = (struct btf_type *)(uintptr_t)btf__type_by_id(btf, id);

		if (t && btf_is_func(t) && btf_vlen(t) == BTF_FUNC_GLOBAL &&
		    maps_memory(btf__name_by_offset(btf, t->name_off)))
			t->info = (uint32_t)BTF_KIND_FUNC << 24 | BTF_FUNC_STATIC;
	}
}

void bpf_fit(struct bpf_object *o, bool whole)
{
	struct bpf_map *m;

	bpf_object__for_each_map(m, o)
	{
		uint32_t flags = bpf_map__map_flags(m);

		if (whole && bpf_map__type(m) == BPF_MAP_TYPE_HASH && (flags & BPF_F_NO_PREALLOC))
			bpf_map__set_map_flags(m, flags & ~(uint32_t)BPF_F_NO_PREALLOC);
	}
	if (!globals_may_map())
		make_static(o);
}
