/* user/target/pool.c - which targets stay awake. */
#include "target/target_priv.h"

void target_in_pool(struct target *t, struct target_pool *p)
{
	t->pool = p;
}

static void take_out(struct target_pool *p, size_t i)
{
	p->n--;
	memmove(&p->at[i], &p->at[i + 1], (p->n - i) * sizeof(*p->at));
	memmove(&p->when[i], &p->when[i + 1], (p->n - i) * sizeof(*p->when));
}

static void put_first(struct target_pool *p, struct target *t)
{
	memmove(&p->at[1], &p->at[0], p->n * sizeof(*p->at));
	memmove(&p->when[1], &p->when[0], p->n * sizeof(*p->when));
	p->at[0] = t;
	p->when[0] = ++p->asks;
	p->n++;
}

void target_pool_leave(struct target *t)
{
	struct target_pool *p = t->pool;

	for (size_t i = 0; p && i < p->n; i++)
		if (p->at[i] == t) {
			take_out(p, i);
			return;
		}
}

static struct target *next_to_go(const struct target_pool *p)
{
	size_t last = p->n - 1;

	return p->at[p->asks - p->when[last] > TARGET_AWAKE_STALE ? last : 0];
}

void target_linger(struct target *t)
{
	struct target_pool *p = t->pool;

	if (!p)
		target_rest(t);
	if (!p || t->resting)
		return;
	target_pool_leave(t);
	if (p->n == TARGET_AWAKE_MAX)
		target_rest(next_to_go(p));
	put_first(p, t);
}
