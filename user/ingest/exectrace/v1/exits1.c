/* user/ingest/exectrace/v1/exits1.c - a second reading of each P, ahead of the first. */
#include "ingest/exectrace/v1/exits1.h"

#include "base/cleanup.h"
#include "base/limits.h"
#include "ingest/exectrace/heap.h"

struct exits1 {
	const struct index1 *index;
	int64_t window, reached; /* all that is told up to there was found */
	VEC(struct proc1) procs;
	struct heap ahead; /* procs by their next event */
	struct heap found; /* key, g, ticks */
};

static int no_memory(struct err *e)
{
	return err_set(e, -ENOMEM, "no memory for the ends of system calls");
}

static int add(struct exits1 *x, const struct exit1 *of, struct err *e)
{
	struct heap_item it = { .key = of->key, .id = of->g, .value = of->ticks };

	return heap_push(&x->found, it) ? 0 : no_memory(e);
}

/* Those that the index has are not found again. */
static int look(struct exits1 *x, const struct proc1 *p, struct err *e)
{
	int64_t key = proc1_key(p), late;
	struct exit1 of;

	if (!exit1_of(&p->ev, x->index->version, p->ticks, key, &of))
		return 0;
	if (__builtin_sub_overflow(key, of.key, &late) || late > x->window)
		return 0;
	return add(x, &of, e);
}

/* What is told up to @until. */
static int read_on(struct exits1 *x, uint32_t i, int64_t until, struct err *e)
{
	struct proc1 *p = &x->procs.at[i];
	int ret;

	do {
		ret = p->ev.type ? look(x, p, e) : 0;
		if (ret)
			return ret;
		ret = proc1_next(p, e);
		if (ret <= 0)
			return ret;
	} while (proc1_key(p) <= until);
	return heap_push(&x->ahead, (struct heap_item){ .key = proc1_key(p), .id = i }) ?
		       0 :
		       no_memory(e);
}

int exits1_reach(struct exits1 *x, int64_t key, struct err *e)
{
	int64_t until;

	if (__builtin_add_overflow(key, x->window, &until))
		until = INT64_MAX;
	if (until <= x->reached)
		return 0;
	/* Twice as far, so that each P's events are read in a row. */
	if (__builtin_add_overflow(until, x->window, &until))
		until = INT64_MAX;
	while (x->ahead.items.n && x->ahead.items.at[0].key <= until) {
		int ret = read_on(x, (uint32_t)heap_pop(&x->ahead).id, until, e);

		if (ret)
			return ret;
	}
	x->reached = until;
	return 0;
}

bool exits1_peek(const struct exits1 *x, struct exit1 *out)
{
	const struct heap_item *it = x->found.items.at;

	if (!x->found.items.n)
		return false;
	*out = (struct exit1){ it->key, it->value, it->id };
	return true;
}

void exits1_drop(struct exits1 *x)
{
	(void)heap_pop(&x->found);
}

int exits1_new(const struct index1 *index, struct exits1 **out, struct err *e)
{
	CLEANUP(exits1_freep) struct exits1 *x = calloc(1, sizeof(*x));
	int ret = 0;

	if (!x)
		return no_memory(e);
	x->index = index;
	x->reached = INT64_MIN;
	x->window = index->version < V1_7 ? EXIT1_WINDOW_SEQ : EXIT1_WINDOW;
	for (size_t i = 0; !ret && i < index->late.n; i++)
		ret = add(x, &index->late.at[i], e);
	for (uint32_t i = 0; !ret && i < index->procs.n; i++) {
		struct proc1 *p = vec_add(&x->procs, LIMIT_TRACE_IDS);

		ret = p ? proc1_open(p, index, i, e) : no_memory(e);
		if (!ret)
			ret = read_on(x, i, INT64_MIN, e);
	}
	if (!ret)
		*out = TAKE(x);
	return ret;
}

void exits1_free(struct exits1 *x)
{
	if (!x)
		return;
	for (size_t i = 0; i < x->procs.n; i++)
		proc1_fini(&x->procs.at[i]);
	vec_fini(&x->procs);
	heap_fini(&x->ahead);
	heap_fini(&x->found);
	free(x);
}
