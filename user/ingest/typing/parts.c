/* user/ingest/typing/parts.c - ranges of values that were asked for, merged where they meet. */
#include "ingest/typing/parts.h"

#include <search.h>
#include <stdlib.h>

enum { TODO_MAX = 1 << 20, DONE_MAX = 1 << 19 };

/* Those of one type that are whole values away from each other. */
struct range {
	uint32_t type;
	uint64_t phase; /* address of a value modulo its size */
	uint64_t from, to;
};

/* No two of a tree overlap or touch, so that those which a new one meets are equal to it. */
static int compare(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	if (x->type != y->type)
		return x->type < y->type ? -1 : 1;
	if (x->phase != y->phase)
		return x->phase < y->phase ? -1 : 1;
	return (x->from > y->to) - (x->to < y->from);
}

static struct range *find(const struct typing_parts *p, const struct range *key)
{
	struct range **found = tfind(key, &p->done, compare);

	return found ? *found : NULL;
}

static bool push(struct typing_parts *p, const struct typing_part *part, const struct range *r,
		 uint64_t size)
{
	struct typing_part *last = p->todo.n ? &p->todo.at[p->todo.n - 1] : NULL, *to;
	uint64_t count = (r->to - r->from) / size;

	if (last && last->type == part->type && last->object == part->object &&
	    (last->addr == r->to || last->addr + last->count * size == r->from)) {
		last->addr = last->addr < r->from ? last->addr : r->from;
		last->count += count;
		return true;
	}
	to = vec_add(&p->todo, p->max ? p->max : TODO_MAX);
	if (to)
		*to = (struct typing_part){ r->from, count, part->type, part->object };
	return to;
}

/* What the ranges of the tree leave of one. The topmost one that is met is found, so it is not deep. */
static bool push_rest(struct typing_parts *p, const struct typing_part *part, const struct range *r,
		      uint64_t size)
{
	/* What touches it only is not met. */
	struct range key = { r->type, r->phase, r->from + 1, r->to - 1 }, rest = *r;
	const struct range *met;
	bool ok = true;

	if (r->from >= r->to)
		return true;
	met = find(p, &key);
	if (!met)
		return push(p, part, r, size);
	rest.to = met->from;
	ok = push_rest(p, part, &rest, size);
	rest.from = met->to;
	rest.to = r->to;
	return push_rest(p, part, &rest, size) && ok;
}

static bool keep(struct typing_parts *p, struct range r)
{
	struct range *met, *to;

	while ((met = find(p, &r))) {
		r.from = met->from < r.from ? met->from : r.from;
		r.to = met->to > r.to ? met->to : r.to;
		tdelete(met, &p->done, compare);
		free(met);
		p->ndone--;
	}
	to = malloc(sizeof(*to));
	if (!to)
		return false;
	*to = r;
	if (!tsearch(to, &p->done, compare)) {
		free(to);
		return false;
	}
	p->ndone++;
	return true;
}

bool typing_parts_add(struct typing_parts *p, const struct typing_part *part, uint64_t size)
{
	struct range r = { part->type, part->addr % size, part->addr, 0 };
	uint64_t bytes;

	if (__builtin_mul_overflow(part->count, size, &bytes) ||
	    __builtin_add_overflow(part->addr, bytes, &r.to))
		return false;
	/* What cannot be kept could be asked for again and again. */
	return p->ndone < DONE_MAX && push_rest(p, part, &r, size) && keep(p, r);
}

bool typing_parts_take(struct typing_parts *p, struct typing_part *out)
{
	if (!p->todo.n)
		return false;
	*out = p->todo.at[--p->todo.n];
	return true;
}

void typing_parts_fini(struct typing_parts *p)
{
	vec_fini(&p->todo);
	tdestroy(p->done, free);
	*p = (struct typing_parts){};
}
