/* user/ingest/exectrace/ids.c - the array is as long as the largest small number needs. */
#include "ingest/exectrace/ids.h"

void ids_fini(struct ids *x)
{
	free(x->low);
	free(x->recent);
	map_fini(&x->high);
	*x = (struct ids){ .nlow = 0 };
}

static bool grow(struct ids *x, size_t id)
{
	size_t n = x->nlow ? x->nlow : 64;
	uint64_t *low;

	while (n <= id)
		n *= 2;
	low = realloc(x->low, n * sizeof(*low));
	if (!low)
		return false;
	memset(low + x->nlow, 0, (n - x->nlow) * sizeof(*low));
	x->low = low;
	x->nlow = n;
	return true;
}

bool ids_get_high(const struct ids *x, uint64_t id, uint64_t *val)
{
	struct recent_id *r = x->recent ? &x->recent[id % IDS_RECENT] : NULL;

	if (!r)
		return false;
	if (r->id != id) {
		if (!map_get(&x->high, id, val))
			return false;
		*r = (struct recent_id){ id, *val };
	}
	*val = r->val;
	return true;
}

static bool put_high(struct ids *x, uint64_t id, uint64_t val)
{
	if (!x->recent)
		x->recent = calloc(IDS_RECENT, sizeof(*x->recent));
	if (!x->recent || !map_put(&x->high, id, val))
		return false;
	x->recent[id % IDS_RECENT] = (struct recent_id){ id, val };
	return true;
}

bool ids_put(struct ids *x, uint64_t id, uint64_t val)
{
	if (id >= IDS_LOW)
		return put_high(x, id, val);
	if (id >= x->nlow && !grow(x, (size_t)id))
		return false;
	x->low[id] = val + 1;
	return true;
}

void ids_del(struct ids *x, uint64_t id)
{
	if (id < x->nlow)
		x->low[id] = 0;
	if (id < IDS_LOW)
		return;
	map_del(&x->high, id);
	if (x->recent && x->recent[id % IDS_RECENT].id == id)
		x->recent[id % IDS_RECENT].id = 0;
}
