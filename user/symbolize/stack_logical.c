/*
 * user/symbolize/stack_logical.c - folds logical return pcs into locations as runtime/pprof does.
 *
 * It follows the rules of runtime/pprof exactly, so that locations come out equal:
 * - each pc stands for the innermost call at pc - 1 (at pc where that is its function's entry);
 * - the last pc of a stack is expanded into all its calls, for the stack may have been cut there;
 * - a pc joins the ones before it when the last of these is an inlined call in the same physical
 *   function and has another name (an inlined function cannot call itself);
 * - a location is remembered by its first pc; when that pc comes again, the location is taken
 *   as it is and as many pcs are skipped as it was made of.
 */
#include "symbolize/stack_logical.h"

#include "base/limits.h"
#include "base/map.h"
#include "base/vec.h"
#include "subject/subject.h"

/* The one call that a logical pc stands for. */
struct call {
	uint64_t pc;	/* live call pc */
	uint64_t entry; /* of the physical function; 0: not Go code */
	bool inlined;
	const char *func, *file; /* borrowed from the binary; NULL: not Go code */
	uint32_t line, start_line;
};

/* A location that was made before, found by its first return pc. */
struct known {
	uint32_t id;
	uint32_t npcs;
	struct call first;
};

struct logical {
	struct logical_source src;
	struct map by_pc;   /* return pc -> index of known */
	struct map call_of; /* return pc -> index of calls */
	struct map hidden;  /* return pc -> is it in a function of the runtime? */
	VEC(struct known) known;
	VEC(struct call) calls;
	/* The pcs that are waiting to become one location. */
	uint64_t deck_pc;
	VEC(struct call) deck;
	VEC(uint64_t) stack;   /* a copy of the pcs, its last one expanded */
	VEC(uint64_t) callers; /* of logical_callers */
	VEC(uint32_t) locs;
	VEC(struct prof_line) lines;
	struct goframe frames[LIMIT_INLINE_DEPTH];
};

int logical_new(const struct logical_source *src, struct logical **out, struct err *e)
{
	struct logical *l = calloc(1, sizeof(*l));

	if (!l)
		return err_set(e, -ENOMEM, "no memory for the stacks of a profile");
	l->src = *src;
	*out = l;
	return 0;
}

void logical_free(struct logical *l)
{
	if (!l)
		return;
	map_fini(&l->by_pc);
	map_fini(&l->call_of);
	map_fini(&l->hidden);
	vec_fini(&l->known);
	vec_fini(&l->calls);
	vec_fini(&l->deck);
	vec_fini(&l->stack);
	vec_fini(&l->callers);
	vec_fini(&l->locs);
	vec_fini(&l->lines);
	free(l);
}

/* Puts the calls at a live address into l->frames; 0 where there is no Go function. */
static int frames_at(struct logical *l, uint64_t addr, uint64_t *entry)
{
	int n = l->src.frames(l->src.arg, addr, l->frames, LIMIT_INLINE_DEPTH, entry);

	return n < 0 ? 0 : n;
}

/* As CallersFrames does for a single return pc. */
static struct call look_up(struct logical *l, uint64_t addr)
{
	uint64_t entry, pc = addr - 1;

	if (!frames_at(l, addr, &entry))
		return (struct call){ .pc = pc };
	if (addr == entry)
		pc = addr;
	else if (!frames_at(l, pc, &entry))
		return (struct call){ .pc = pc };
	return (struct call){
		.pc = pc,
		.entry = entry,
		.inlined = l->frames[0].parent_pc != 0,
		.func = l->frames[0].func,
		.file = l->frames[0].file,
		.line = l->frames[0].line,
		.start_line = l->frames[0].start_line,
	};
}

/* The same, with a memory. */
static struct call call_at(struct logical *l, uint64_t addr)
{
	struct call c, *slot;
	uint64_t i;

	if (map_get(&l->call_of, addr, &i))
		return l->calls.at[i];
	c = look_up(l, addr);
	slot = vec_add(&l->calls, UINT32_MAX);
	if (slot)
		*slot = c;
	if (slot && !map_put(&l->call_of, addr, l->calls.n - 1))
		l->calls.n--; /* when there is no memory it is looked up again */
	return c;
}

static bool runtime_name(const struct logical *l, const char *name)
{
	if (!strncmp(name, "runtime.", 8))
		return true;
	/* A version that is not understood is treated as newer than any we know. */
	return (l->src.minor < 0 || l->src.minor >= 24) && !strncmp(name, "internal/runtime/", 17);
}

static bool is_hidden(struct logical *l, uint64_t pc)
{
	uint64_t hidden, entry;

	if (map_get(&l->hidden, pc, &hidden))
		return hidden;
	hidden = frames_at(l, pc, &entry) && runtime_name(l, l->frames[0].func);
	map_put(&l->hidden, pc, hidden); /* when there is no memory it is looked up again */
	return hidden;
}

size_t logical_hidden(struct logical *l, const uint64_t *pcs, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_hidden(l, pcs[i]))
			return i;
	return 0;
}

/*
 * Equal names mean "maybe recursion". Go 1.21 compared the names without their type arguments,
 * later versions with them; before 1.21 the names never had any.
 */
static bool same_name(const struct logical *l, const char *a, const char *b)
{
	size_t na = strcspn(a, "["), nb = strcspn(b, "[");
	const char *ra = strrchr(a, ']'), *rb = strrchr(b, ']');

	if (l->src.minor != 21 || !ra || !rb)
		return !strcmp(a, b);
	return na == nb && !strncmp(a, b, na) && !strcmp(ra, rb);
}

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory for the stacks of a profile");
}

/* Returns 1 when the pc joined the waiting ones, 0 when these must become a location first. */
static int deck_add(struct logical *l, uint64_t addr, const struct call *c, struct err *e)
{
	struct call *slot;

	if (l->deck.n) {
		const struct call *last = &l->deck.at[l->deck.n - 1];

		if (!last->inlined || last->entry != c->entry || same_name(l, last->func, c->func))
			return 0;
	} else {
		l->deck_pc = addr;
	}
	slot = vec_add(&l->deck, LIMIT_BUCKET_STACK + LIMIT_INLINE_DEPTH);
	if (!slot)
		return no_memory(e);
	*slot = *c;
	return 1;
}

static int push_loc(struct logical *l, uint32_t id, struct err *e)
{
	uint32_t *slot = vec_add(&l->locs, SIZE_MAX);

	if (!slot)
		return no_memory(e);
	*slot = id;
	return 0;
}

static int make_lines(struct logical *l, struct err *e)
{
	l->lines.n = 0;
	for (size_t i = 0; i < l->deck.n; i++) {
		const struct call *c = &l->deck.at[i];
		struct prof_line *line;

		if (!c->func)
			continue;
		line = vec_add(&l->lines, SIZE_MAX);
		if (!line)
			return no_memory(e);
		*line = (struct prof_line){ .func = c->func,
					    .file = c->file,
					    .line = c->line,
					    .start_line = c->start_line };
	}
	if (!l->lines.n)
		prof_loss(l->src.prof)->n[LOSS_PCS_UNRESOLVED]++;
	return 0;
}

/* Makes a location of the waiting pcs, if there are any, pushes it and remembers it. */
static int deck_flush(struct logical *l, struct err *e)
{
	struct known *k;
	int mapping, id, ret;

	if (!l->deck.n)
		return 0;
	mapping = l->src.mapping(l->src.arg, l->src.prof, l->deck_pc, e);
	if (mapping < 0)
		return mapping;
	ret = make_lines(l, e);
	if (ret)
		return ret;
	id = prof_location(l->src.prof, mapping, l->deck.at[0].pc, l->lines.at, l->lines.n, e);
	if (id < 0)
		return id;
	k = vec_add(&l->known, UINT32_MAX);
	if (!k || !map_put(&l->by_pc, l->deck_pc, l->known.n - 1))
		return no_memory(e);
	*k = (struct known){ .id = (uint32_t)id,
			     .npcs = (uint32_t)l->deck.n,
			     .first = l->deck.at[0] };
	l->deck.n = 0;
	return push_loc(l, (uint32_t)id, e);
}

/* Handles a pc that begins a known location. Returns how many pcs are done, or an error. */
static int take_known(struct logical *l, uint64_t addr, const struct known *k, struct err *e)
{
	uint32_t id = k->id, npcs = k->npcs;
	int ret;

	/* From Go 1.19 on it may also be an inlined call of the waiting ones. */
	if (l->deck.n && (l->src.minor < 0 || l->src.minor >= 19)) {
		struct call first = k->first;

		ret = deck_add(l, addr, &first, e);
		if (ret)
			return ret;
	}
	ret = deck_flush(l, e); /* may move what k points to */
	if (!ret)
		ret = push_loc(l, id, e);
	return ret ? ret : (int)npcs;
}

/* Takes one step along the stack. Returns how many pcs are done (at least 1), or an error. */
static int take_pc(struct logical *l, uint64_t addr, struct err *e)
{
	struct call c;
	uint64_t i;
	int ret;

	if (map_get(&l->by_pc, addr, &i))
		return take_known(l, addr, &l->known.at[i], e);
	c = call_at(l, addr);
	if (c.func && !strcmp(c.func, "runtime.goexit")) {
		ret = deck_flush(l, e);
		return ret ? ret : 1;
	}
	ret = deck_add(l, addr, &c, e);
	if (ret)
		return ret;
	ret = deck_flush(l, e);
	if (ret)
		return ret;
	/* The location that was just remembered may begin with this very pc. */
	if (map_get(&l->by_pc, addr, &i))
		return take_known(l, addr, &l->known.at[i], e);
	return deck_add(l, addr, &c, e);
}

static bool push_pc(struct logical *l, uint64_t pc)
{
	uint64_t *slot = vec_add(&l->stack, LIMIT_BUCKET_STACK + LIMIT_INLINE_DEPTH);

	if (slot)
		*slot = pc;
	return slot;
}

/* Pushes the last pc, with the calls around it that a cut stack lost. */
static bool push_last(struct logical *l, uint64_t pc)
{
	uint64_t call_pc = pc - 1, entry;
	enum func_id callee = FUNC_NORMAL;
	struct call c = call_at(l, pc);
	int n;

	if (c.entry && !c.inlined && c.pc == call_pc)
		return push_pc(l, pc);
	n = frames_at(l, call_pc, &entry);
	if (!n || !l->frames[0].parent_pc)
		return push_pc(l, pc);
	for (int i = 0; i < n; i++) {
		const struct goframe *f = &l->frames[i];

		if (!frame_elided(f->id, callee) && !push_pc(l, call_pc + 1))
			return false;
		callee = f->id;
		call_pc = f->parent_pc;
	}
	return true;
}

static int copy_stack(struct logical *l, const uint64_t *pcs, size_t n, struct err *e)
{
	l->stack.n = 0;
	if (n > LIMIT_BUCKET_STACK)
		return err_set(e, -E2BIG, "a stack of %zu pcs", n);
	for (size_t i = 0; i + 1 < n; i++)
		if (!push_pc(l, pcs[i]))
			return no_memory(e);
	return n && !push_last(l, pcs[n - 1]) ? no_memory(e) : 0;
}

int logical_locations(struct logical *l, const uint64_t *pcs, size_t n, const uint32_t **locs,
		      size_t *nlocs, struct err *e)
{
	size_t i = 0;
	int ret;

	l->locs.n = 0;
	l->deck.n = 0;
	ret = copy_stack(l, pcs, n, e);
	if (ret)
		return ret;
	while (i < l->stack.n) {
		ret = take_pc(l, l->stack.at[i], e);
		if (ret < 0)
			return ret;
		i += (size_t)ret;
	}
	ret = deck_flush(l, e);
	if (ret)
		return ret;
	*locs = l->locs.at;
	*nlocs = l->locs.n;
	return 0;
}

/* ---- stacks of physical pcs ---- */

/*
 * Puts the calls at the return pc @addr into l->frames, and the pc of the innermost into
 * *call_pc; 0 where there is no Go function. As in look_up(), a pc at the entry of a function
 * stands for itself.
 */
static int calls_at(struct logical *l, uint64_t addr, uint64_t *call_pc)
{
	uint64_t entry;
	int n = frames_at(l, addr, &entry);

	*call_pc = n && addr > entry ? addr - 1 : addr;
	return *call_pc == addr ? n : frames_at(l, *call_pc, &entry);
}

/*
 * The return pc of the call around the innermost one of @n in l->frames, when the list does not
 * continue with it; 0 when it does, or when there is none.
 */
static uint64_t missing_caller(const struct logical *l, int n, const uint64_t *next, size_t left)
{
	for (int i = 1; i < n && left; i++) {
		uint64_t pc = l->frames[i - 1].parent_pc + 1;

		if (*next == pc)
			return 0;
		if (!frame_elided(l->frames[i].id, l->frames[0].id))
			return pc;
	}
	return 0;
}

int logical_callers(struct logical *l, const uint64_t *pcs, size_t n, size_t max,
		    const uint64_t **out, size_t *nout, struct err *e)
{
	uint64_t inserted = 0;
	size_t i = 0;

	if (n > LIMIT_BUCKET_STACK)
		return err_set(e, -E2BIG, "a stack of %zu pcs", n);
	l->callers.n = 0;
	while (l->callers.n < max && (inserted || i < n)) {
		uint64_t addr = inserted ? inserted : pcs[i++], call_pc, *slot;
		int calls = calls_at(l, addr, &call_pc);

		inserted = 0;
		if (!calls)
			continue;
		slot = vec_add(&l->callers, LIMIT_BUCKET_STACK);
		if (!slot)
			return no_memory(e);
		*slot = call_pc + 1;
		inserted = missing_caller(l, calls, pcs + i, n - i);
	}
	if (!l->callers.n && max) {
		/* No frame at all: Go uses the zero Frame that it gets, and adds 1. */
		uint64_t *slot = vec_add(&l->callers, LIMIT_BUCKET_STACK);

		if (!slot)
			return no_memory(e);
		*slot = 1;
	}
	*out = l->callers.at;
	*nout = l->callers.n;
	return 0;
}
