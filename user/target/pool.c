/* user/target/pool.c - which targets stay awake: those that were asked last. */
#include "target/target_priv.h"

void target_in_pool(struct target *t, struct target_pool *p)
{
	t->pool = p;
}

static void take_out(struct target_pool *p, size_t i)
{
	p->n--;
	memmove(&p->at[i], &p->at[i + 1], (p->n - i) * sizeof(*p->at));
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

void target_linger(struct target *t)
{
	struct target_pool *p = t->pool;

	if (!p)
		target_rest(t);
	if (!p || t->resting)
		return;
	target_pool_leave(t);
	if (p->n == TARGET_AWAKE_MAX)
		target_rest(p->at[p->n - 1]);
	memmove(&p->at[1], &p->at[0], p->n++ * sizeof(*p->at));
	p->at[0] = t;
}
