/* user/go/sites/rtmaker.c - knows the makers by name, and where three of them are called. */
#include "go/sites/rtmaker.h"

static const struct {
	const char *func;
	enum made_kind kind;
	const char *name;
} makers[] = {
	{ "runtime.newobject", MADE_ONE, NULL },

	{ "runtime.makeslice", MADE_SLICE, NULL },
	{ "runtime.growslice", MADE_SLICE, NULL },
	{ "runtime.makeslicecopy", MADE_SLICE, NULL },
	{ "runtime.moveSlice", MADE_SLICE, NULL },
	{ "runtime.moveSliceNoScan", MADE_SLICE, NULL },
	{ "runtime.moveSliceNoCap", MADE_SLICE, NULL },
	{ "runtime.moveSliceNoCapNoScan", MADE_SLICE, NULL },
	{ "runtime.newarray", MADE_SLICE, NULL },

	{ "runtime.makechan", MADE_CHAN, NULL },

	{ "runtime.rawstring", MADE_KNOWN, "string" },
	{ "runtime.slicebytetostring", MADE_KNOWN, "string" },
	{ "runtime.rawbyteslice", MADE_KNOWN, "[]uint8" },
	{ "runtime.gobytes", MADE_KNOWN, "[]uint8" },
	{ "runtime.bytealg_MakeNoZero", MADE_KNOWN, "[]uint8" },
	{ "internal/bytealg.MakeNoZero", MADE_KNOWN, "[]uint8" },
	{ "runtime.rawruneslice", MADE_KNOWN, "[]int32" },

	{ "runtime.itabAdd", MADE_KNOWN, "runtime.itabTableType" },
	{ "runtime.buildTypeAssertCache", MADE_KNOWN, "abi.TypeAssertCache" },
	{ "runtime.buildInterfaceSwitchCache", MADE_KNOWN, "abi.InterfaceSwitchCache" },
};

/*
 * These take a value whose type is not known here (any type of 2 bytes, any slice, ...), and pass the
 * allocator one type that stands for all of them.
 */
static const struct {
	const char *func, *name;
	enum made_box box;
} boxers[] = {
	{ "runtime.convT16", "interface ?", BOX_2 },
	{ "runtime.convT32", "interface ?", BOX_4 },
	{ "runtime.convT64", "interface ?", BOX_8 },
	{ "runtime.convTslice", "interface []?", BOX_SLICE },
	{ "runtime.convTstring", "interface string?", BOX_STRING },
};

struct made rtmaker_of(const char *func)
{
	static const char allocator[] = "runtime.mallocgc";

	if (!strncmp(func, allocator, sizeof(allocator) - 1))
		return (struct made){ .kind = MADE_ALLOCATOR };
	for (size_t i = 0; i < ARRAY_LEN(makers); i++)
		if (!strcmp(func, makers[i].func))
			return (struct made){ .kind = makers[i].kind, .name = makers[i].name };
	for (size_t i = 0; i < ARRAY_LEN(boxers); i++)
		if (!strcmp(func, boxers[i].func))
			return (struct made){ MADE_BOXED, boxers[i].name, boxers[i].box };
	return (struct made){ .kind = MADE_OTHER };
}

/*
 * growslice(et, old, cap) up to Go 1.19, growslice(oldPtr, newLen, oldCap, num, et) since. A Go
 * that does not say its version is treated as a new one.
 */
static unsigned int arg_of(size_t i, int minor)
{
	return !i && (minor < 0 || minor >= 20) ? 4 : 0;
}

int rtmaker_sites(struct gobin *b, struct maker_site out[MAKER_SITES_MAX], struct err *e)
{
	static const char *const names[MAKER_SITES_MAX] = { "runtime.growslice", "runtime.makechan",
							    "runtime.makeslicecopy" };
	struct gofunc f[MAKER_SITES_MAX] = { { 0 } };
	int n = 0, ret = gobin_funcs_named(b, names, MAKER_SITES_MAX, f, e);

	for (size_t i = 0; ret >= 0 && i < MAKER_SITES_MAX; i++) {
		struct maker_site s = { .arg = arg_of(i, gobin_info(b)->minor) };

		if (!f[i].entry || probesite_find(b, &f[i], &s.site, NULL) ||
		    s.site.kind != SITE_STACK_BRANCH)
			continue;
		out[n++] = s;
	}
	return ret < 0 ? ret : n;
}
