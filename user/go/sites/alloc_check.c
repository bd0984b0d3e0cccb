/*
 * user/go/sites/alloc_check.c - are the allocator's entries that we know all that there are?
 *
 * This is asked for a Go newer than any known. Every way to allocate ends in a call of
 * runtime.profilealloc when the allocation is to be sampled. So the functions that call it are
 * the allocator: each of them must be an entry that is probed, or be called by one. This check
 * cannot see a new allocator that never samples. Source: runtime/malloc.go, malloc_generated.go,
 * malloc_stubs.go, arena.go, Go 1.24 to 1.27.
 */
#include "arch/arch.h"
#include "base/vec.h"
#include "go/image/calls.h"
#include "go/sites/probesite.h"

/*
 * Functions that entries call; and arenas, which do not belong to this profile: there a whole
 * chunk counts.
 */
static const char *const behind[] = {
	"runtime.mallocgcTinySlowPath",
	"runtime.mallocgcSmallScanSlowPath",
	"runtime.mallocgcSmallNoScanSlowPath",
	"runtime.mallocgcSmallNoscanReuse",
	"runtime.mallocgcSmallNoScanReuse",
	"runtime.newUserArenaChunk",
	"runtime.profilealloc",
	"runtime.mProf_Malloc",
};

static bool is_known(const char *name, const struct alloc_entry *entries, size_t n)
{
	for (size_t i = 0; i < ARRAY_LEN(behind); i++)
		if (!strcmp(name, behind[i]))
			return true;
	for (size_t i = 0; i < n; i++)
		if (!strcmp(name, entries[i].name))
			return true;
	return false;
}

static int check_callers(struct gobin *b, struct arch *a, const struct alloc_entry *entries,
			 size_t n, const struct gofunc *to, size_t nto, struct err *e)
{
	CLEANUP(freep) uint8_t *code = malloc(CALLS_CODE_MAX);
	size_t found = 0;

	if (!code)
		return err_set(e, -ENOMEM, "no memory to look through the allocator");
	for (size_t i = 0; i < gobin_nfuncs(b); i++) {
		struct gofunc f;
		const char *name;
		int rc = gobin_func_index(b, i, &f, e);

		if (rc < 0)
			return rc;
		name = gobin_func_name(b, &f);
		if (!name || strncmp(name, "runtime.", 8) || !calls_any(b, a, &f, to, nto, code))
			continue;
		if (!is_known(name, entries, n))
			return err_set(
				e, -ENOTSUP,
				"%s allocates, and how is not known of %s: its objects would "
				"be missing",
				name, gobin_info(b)->version);
		found++;
	}
	if (found < 2)
		return err_set(e, -ENOTSUP,
			       "which functions of %s allocate cannot be told: %zu call "
			       "runtime.profilealloc",
			       gobin_info(b)->version, found);
	return 0;
}

int alloc_check(struct gobin *b, const struct alloc_entry *entries, size_t n, struct err *e)
{
	static const char *const samplers[] = { "runtime.profilealloc", "runtime.mProf_Malloc" };
	struct gofunc to[ARRAY_LEN(samplers)] = { { 0 } };
	CLEANUP(arch_freep) struct arch *a = NULL;
	int rc;

	for (size_t i = 0; i < n; i++)
		if (entries[i].kind == ALLOC_ANY)
			return err_set(e, -ENOTSUP,
				       "how %s of %s sorts its allocations is not known",
				       entries[i].name, gobin_info(b)->version);
	rc = gobin_funcs_named(b, samplers, ARRAY_LEN(samplers), to, e);
	if (rc >= 0)
		rc = arch_open(gobin_info(b)->arch, &a, e);
	return rc < 0 ? rc : check_callers(b, a, entries, n, to, ARRAY_LEN(to), e);
}
