/* user/inspect/survey_build.c - one Go file: its kind, and where the runtime keeps its rates. */
#include <elf.h>

#include "collect/collect.h"
#include "go/image/gobin.h"
#include "go/layout/layout.h"
#include "go/runtime/vars/rtvar.h"
#include "go/sites/probesite.h"
#include "go/sites/waitsite.h"
#include "inspect/survey_priv.h"

static void fill_kind(const struct gobin_info *i, struct survey_build *b)
{
	snprintf(b->version, sizeof(b->version), "%s", i->version);
	snprintf(b->path, sizeof(b->path), "%s", i->path);
	snprintf(b->module, sizeof(b->module), "%s", i->module);
	snprintf(b->module_version, sizeof(b->module_version), "%s", i->module_version);
	b->pie = i->pie;
	b->dynamic = i->dynamic;
	b->cgo = i->cgo;
	b->stripped = !i->has_symtab;
	b->dwarf = i->has_dwarf;
	b->race = i->race;
}

/* Finds out by functions that only these packages put into a program. */
static void fill_linked(struct gobin *bin, struct survey_build *b)
{
	static const char *const names[] = { "net/http/pprof.Index", "runtime.racecall" };
	struct gofunc f[ARRAY_LEN(names)] = {};

	b->endpoint = -1;
	if (gobin_funcs_named(bin, names, ARRAY_LEN(names), f, NULL) < 0)
		return;
	b->endpoint = f[0].entry != 0;
	if (b->race < 0)
		b->race = f[1].entry != 0;
}

/* When it is false, the reason is in @why. */
static bool find_var(struct gobin *bin, enum rtvar v, uint64_t *addr, char why[SURVEY_WHY])
{
	struct err e = { "" };

	if (!rtvar_find(bin, v, addr, &e))
		return true;
	keep_why(why, e.msg);
	return false;
}

static void fill_vars(struct gobin *bin, unsigned wants, struct survey_build *b)
{
	static const enum rtvar vars[SURVEY_RATES] = {
		[SURVEY_RATE_HEAP] = RTVAR_MEMPROFILERATE,
		[SURVEY_RATE_BLOCK] = RTVAR_BLOCKPROFILERATE,
		[SURVEY_RATE_MUTEX] = RTVAR_MUTEXPROFILERATE,
	};
	static const enum rtvar buckets[SURVEY_RATES] = {
		[SURVEY_RATE_HEAP] = RTVAR_MBUCKETS,
		[SURVEY_RATE_BLOCK] = RTVAR_BBUCKETS,
		[SURVEY_RATE_MUTEX] = RTVAR_XBUCKETS,
	};

	for (size_t i = 0; i < SURVEY_RATES; i++) {
		if (!(wants & 1u << i))
			continue;
		b->rate[i].found = find_var(bin, vars[i], &b->rate[i].addr, b->rate[i].why);
		b->buckets[i].found = find_var(bin, buckets[i], &b->buckets[i].addr,
					       b->buckets[i].why);
	}
	if (wants & SURVEY_GOROUTINE)
		b->allgs.found = find_var(bin, RTVAR_ALLGS, &b->allgs.addr, b->allgs.why);
	if (wants & SURVEY_HEAP)
		b->mprofcycle.found = find_var(bin, RTVAR_MPROFCYCLE, &b->mprofcycle.addr,
					       b->mprofcycle.why);
}

static void fill_alloc(struct gobin *bin, struct survey_build *b)
{
	struct alloc_entry *entries = calloc(ALLOC_ENTRIES_MAX, sizeof(*entries));
	struct err e = { "no memory" };

	b->alloc.yes = entries && alloc_entries(bin, entries, &e) > 0;
	if (!b->alloc.yes)
		keep_why(b->alloc.why, e.msg);
	free(entries);
}

static void fill_possible(struct gobin *bin, const struct golayout *l, const struct collector *c,
			  struct survey_answer *out)
{
	struct err e = { "" };

	out->yes = !c->possible(bin, l, &e);
	if (!out->yes)
		keep_why(out->why, e.msg);
}

static void fill_status(struct gobin *bin, const struct golayout *l, struct survey_build *b)
{
	struct waitsite at[WAITSITES_MAX];
	struct err e = { "" };

	b->status.yes = waitsites_find(bin, l->off[LAYOUT_g_atomicstatus], at, &e) > 0;
	if (!b->status.yes)
		keep_why(b->status.why, e.msg);
}

static bool find_layout(struct gobin *bin, struct golayout *l, struct survey_build *b)
{
	struct err e = { "" };

	b->layout.yes = !layout_find(bin, l, &e);
	if (!b->layout.yes) {
		keep_why(b->layout.why, e.msg);
		return false;
	}
	b->offsets = *l;
	b->layout_guessed = l->how == LAYOUT_GUESSED || l->newer;
	return true;
}

static void fill_sites(struct gobin *bin, const struct golayout *l, unsigned wants,
		       struct survey_build *b)
{
	if (wants & SURVEY_BLOCK)
		fill_possible(bin, l, &collector_block, &b->park);
	if (wants & SURVEY_MUTEX)
		fill_possible(bin, l, &collector_mutex, &b->queue);
	if (wants & SURVEY_WAIT)
		fill_status(bin, l, b);
}

int survey_understand(int fd, const char *name, struct target *t, uint64_t bias, unsigned wants,
		      struct survey_build *b)
{
	CLEANUP(gobin_freep) struct gobin *bin = NULL;
	struct golayout l;
	struct err e = { "" };
	int ret = gobin_open_shared(fd, name, t ? t->mem : NULL, bias, &bin, &e);

	*b = (struct survey_build){ .race = -1, .endpoint = -1 };
	if (ret == -ENOENT)
		return ret;
	if (ret) {
		keep_why(b->broken, e.msg);
		return 0;
	}
	fill_kind(gobin_info(bin), b);
	if (wants & SURVEY_LINKED)
		fill_linked(bin, b);
	if (find_layout(bin, &l, b))
		fill_sites(bin, &l, wants, b);
	fill_vars(bin, wants, b);
	if (wants & SURVEY_HEAP)
		fill_alloc(bin, b);
	return 0;
}

/* An impossible rate is not believed. Source of the bounds: user/go/runtime/vars/rtvar.h. */
void survey_read_rate(struct target *t, uint64_t bias, const struct survey_build *b,
		      enum survey_rate r, struct survey_value *out)
{
	static const enum rtvar vars[SURVEY_RATES] = { RTVAR_MEMPROFILERATE, RTVAR_BLOCKPROFILERATE,
						       RTVAR_MUTEXPROFILERATE };
	struct golayout none = { .how = LAYOUT_GUESSED };
	struct err e = { "" };
	uint64_t at = b->rate[r].addr + bias;

	*out = (struct survey_value){ 0 };
	if (*b->broken || !b->rate[r].found) {
		keep_why(out->why, *b->broken ? b->broken : b->rate[r].why);
		return;
	}
	out->known = !rtvar_plausible(t->mem, &none, -1, vars[r], at, &e) &&
		     !mem_read(t->mem, at, &out->value, sizeof(out->value), &e);
	if (!out->known)
		keep_why(out->why, e.msg);
}
