/*
 * user/collect/goroutine/goroutine_stack.c - frames of goroutines, their calls and their locations.
 *
 * Source: runtime/traceback.go (tracebackPCs, isSystemGoroutine), runtime/mprof.go (saveg,
 * maxStack, maxProfStackDepth), Go 1.16 to 1.27.
 */
#include "collect/goroutine/goroutine_stack.h"
#include "symbolize/subject_logical.h"

#include "base/limits.h"
#include "profile/profile.h"

enum { DEPTH_FIXED = 32, DEPTH_DEFAULT = 128 };

int gstacks_init(struct gstacks *k, struct subject *s, struct prof *p, struct err *e)
{
	*k = (struct gstacks){ .s = s, .p = p, .minor = gobin_info(s->bin)->minor };
	return subject_logical(s, p, &k->logical, e);
}

void gstacks_fini(struct gstacks *k)
{
	logical_free(k->logical);
	map_fini(&k->by_key);
	map_fini(&k->origins);
	vec_fini(&k->frames);
	vec_fini(&k->calls);
	vec_fini(&k->pcs);
	vec_fini(&k->stack);
}

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory for the stacks of goroutines");
}

/* ---- frames ---- */

/* The instruction at which a frame's line is looked up: a return address lies behind its call. */
static uint64_t call_pc(uint64_t pc, uint64_t entry, bool trap)
{
	return !trap && pc > entry ? pc - 1 : pc;
}

static int add_calls(struct gstacks *k, struct gframe *f, bool trap, enum func_id callee,
		     struct err *e)
{
	uint64_t at = call_pc(f->pc, f->entry, trap);
	int n = subject_frames(k->s, at, k->buf, LIMIT_INLINE_DEPTH, NULL);

	f->first = (uint32_t)k->calls.n;
	for (int i = 0; i < n; i++) {
		const struct goframe *g = &k->buf[i];
		struct gcall *c = vec_add(&k->calls, UINT32_MAX);

		if (!c)
			return no_memory(e);
		*c = (struct gcall){ .pc = at + 1,
				     .elided = frame_elided(g->id, callee),
				     .inlined = g->parent_pc != 0,
				     .id = g->id,
				     .func = g->func,
				     .file = g->file,
				     .line = g->line };
		callee = g->id;
		at = g->parent_pc;
	}
	f->n = (uint32_t)k->calls.n - f->first;
	return 0;
}

static int new_frame(struct gstacks *k, uint64_t pc, bool trap, enum func_id callee,
		     struct gframe *f, struct err *e)
{
	const struct image *img;
	struct gofunc fn;
	struct err why = {};

	*f = (struct gframe){ .pc = pc };
	if (subject_func(k->s, pc, &fn, &img))
		return 0;
	f->entry = fn.entry + img->bias;
	f->flags = fn.flags;
	f->id = fn.id;
	/* In the function where all stacks end, the delta does not matter. */
	f->known = !gobin_spdelta(img->bin, pc - img->bias, &f->delta, &why) ||
		   fn.id == FUNC_GOEXIT;
	return f->known ? add_calls(k, f, trap, callee, e) : 0;
}

/* A key of everything in which two visits to a pc may differ. */
static uint64_t key_of(uint64_t pc, bool trap, enum func_id callee)
{
	bool panics = callee == FUNC_GOPANIC || callee == FUNC_SIGPANIC || callee == FUNC_PANICWRAP;

	return pc << 2 | (uint64_t)panics << 1 | trap;
}

static int look(void *arg, uint64_t pc, bool trap, enum func_id callee, struct unwind_frame *out)
{
	struct gstacks *k = arg;
	uint64_t key = key_of(pc, trap, callee), i;
	const struct gframe *f;

	if (pc >> 62) /* such bits of a pc are not in the key */
		return -ENOENT;
	if (!map_get(&k->by_key, key, &i)) {
		struct gframe fresh, *slot;
		int ret = new_frame(k, pc, trap, callee, &fresh, NULL);

		if (ret)
			return ret;
		slot = vec_add(&k->frames, UINT32_MAX);
		if (!slot || !map_put(&k->by_key, key, k->frames.n - 1))
			return -ENOMEM;
		*slot = fresh;
		i = k->frames.n - 1;
	}
	f = &k->frames.at[i];
	if (!f->known)
		return -ENOENT;
	*out = (struct unwind_frame){
		.delta = f->delta, .flags = f->flags, .id = f->id, .cookie = (uint32_t)i
	};
	return 0;
}

int gstacks_unwind(struct gstacks *k, struct unwind *u, enum unwind_end *end, struct err *e)
{
	int ret;

	u->look = look;
	u->arg = k;
	k->stack.n = 0;
	ret = unwind_stack(u, &k->stack, end, e);
	return ret == -ENOMEM ? no_memory(e) : ret;
}

/* ---- profiles ---- */

size_t gstacks_depth(const struct gstacks *k)
{
	return k->minor >= 0 && k->minor < 23 ? DEPTH_FIXED : DEPTH_DEFAULT;
}

int gstacks_locations(struct gstacks *k, const uint32_t **locs, size_t *nlocs, bool *cut,
		      struct err *e)
{
	size_t max = gstacks_depth(k);

	k->pcs.n = 0;
	*cut = false;
	for (size_t i = 0; !*cut && i < k->stack.n; i++) {
		const struct gframe *f = &k->frames.at[k->stack.at[i]];

		for (uint32_t c = f->first; !*cut && c < f->first + f->n; c++) {
			const struct gcall *call = &k->calls.at[c];
			uint64_t *slot;

			if (call->elided)
				continue;
			/* The root is never shown, so its absence is no cut. */
			*cut = k->pcs.n == max && call->id != FUNC_GOEXIT;
			if (k->pcs.n == max)
				break;
			slot = vec_add(&k->pcs, SIZE_MAX);
			if (!slot)
				return no_memory(e);
			*slot = call->pc;
		}
	}
	return logical_locations(k->logical, k->pcs.at, k->pcs.n, locs, nlocs, e);
}

int gstacks_entry(struct gstacks *k, uint64_t pc, const uint32_t **locs, size_t *nlocs,
		  struct err *e)
{
	return logical_locations(k->logical, &pc, pc != 0, locs, nlocs, e);
}

/* ---- who owns a goroutine ---- */

static enum gorigin origin_of(const char *name)
{
	static const char *const user[] = { "runtime.main", "runtime.corostart",
					    "runtime.handleAsyncEvent" };

	if (!name || strncmp(name, "runtime.", 8))
		return GORIGIN_USER;
	for (size_t i = 0; i < ARRAY_LEN(user); i++)
		if (!strcmp(name, user[i]))
			return GORIGIN_USER;
	if (!strcmp(name, "runtime.runfinq") || !strcmp(name, "runtime.runFinalizers"))
		return GORIGIN_FINALIZERS;
	if (!strcmp(name, "runtime.runCleanups"))
		return GORIGIN_CLEANUPS;
	return GORIGIN_SYSTEM;
}

enum gorigin gstacks_origin(struct gstacks *k, uint64_t startpc)
{
	const struct image *img;
	struct gofunc fn;
	uint64_t known;

	if (map_get(&k->origins, startpc, &known))
		return (enum gorigin)known;
	known = subject_func(k->s, startpc, &fn, &img) ? GORIGIN_USER :
							 origin_of(gobin_func_name(img->bin, &fn));
	map_put(&k->origins, startpc, known); /* when there is no memory it is looked up again */
	return (enum gorigin)known;
}

/* Finalizers are called through runtime.reflectcall, which is runtime.call16, call32, ... */
bool gstacks_in_finalizer(const struct gstacks *k)
{
	for (size_t i = 0; i < k->stack.n; i++) {
		const struct gframe *f = &k->frames.at[k->stack.at[i]];
		const char *name = f->n ? k->calls.at[f->first + f->n - 1].func : "";

		if (!strncmp(name, "runtime.call", 12) && name[12] >= '0' && name[12] <= '9')
			return true;
	}
	return false;
}
