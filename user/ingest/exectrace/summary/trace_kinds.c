/* user/ingest/exectrace/summary/trace_kinds.c - stretches that go on, and sums by name. */
#include "ingest/exectrace/summary/trace_kinds.h"

#include "base/limits.h"

struct trace_stretch {
	int64_t since_ns;
	uint32_t kind;
	uint32_t next; /* the one around it, or the next free one; 0: none */
	bool earlier;
};

void trace_kinds_fini(struct trace_kinds *k)
{
	for (size_t i = 0; i < k->all.n; i++)
		quantiles_fini(&k->all.at[i].q);
	vec_fini(&k->all);
	vec_fini(&k->stretches);
	map_fini(&k->by_name);
	map_fini(&k->open);
}

/* UINT32_MAX: there are too many names; *ok: there was memory. */
static uint32_t kind_of(struct trace_kinds *k, uint32_t name, bool *ok)
{
	struct trace_kind_sum *to;
	uint64_t at;

	*ok = true;
	if (map_get(&k->by_name, name, &at))
		return (uint32_t)at;
	if (k->all.n >= LIMIT_TRACE_KINDS)
		return UINT32_MAX;
	to = vec_add(&k->all, LIMIT_TRACE_KINDS);
	*ok = to && map_put(&k->by_name, name, k->all.n - 1);
	if (!*ok)
		return UINT32_MAX;
	to->name = name;
	return (uint32_t)(k->all.n - 1);
}

static struct trace_stretch *new_stretch(struct trace_kinds *k, uint32_t *number)
{
	struct trace_stretch *s;

	*number = k->free_stretches;
	if (*number) {
		s = &k->stretches.at[*number - 1];
		k->free_stretches = s->next;
		return s;
	}
	s = vec_add(&k->stretches, LIMIT_TRACE_IDS);
	*number = (uint32_t)k->stretches.n;
	return s;
}

bool trace_kinds_begin(struct trace_kinds *k, uint64_t key, uint32_t name, int64_t now_ns,
		       bool earlier)
{
	struct trace_stretch *s;
	uint64_t around = 0;
	uint32_t number;
	bool ok;
	uint32_t kind = kind_of(k, name, &ok);

	if (!ok)
		return false;
	(void)map_get(&k->open, key, &around);
	s = new_stretch(k, &number);
	if (!s)
		return false;
	*s = (struct trace_stretch){ now_ns, kind, (uint32_t)around, earlier };
	return map_put(&k->open, key, number);
}

bool trace_kinds_goes_on(const struct trace_kinds *k, uint64_t key)
{
	uint64_t number;

	return map_get(&k->open, key, &number);
}

/* False: there is none with this key. */
static bool take(struct trace_kinds *k, uint64_t key, struct trace_stretch *out)
{
	struct trace_stretch *s;
	uint64_t number;

	if (!map_get(&k->open, key, &number))
		return false;
	s = &k->stretches.at[number - 1];
	*out = *s;
	if (out->next)
		(void)map_put(&k->open, key, out->next); /* it is there already */
	else
		map_del(&k->open, key);
	s->next = k->free_stretches;
	k->free_stretches = (uint32_t)number;
	return true;
}

bool trace_kinds_end(struct trace_kinds *k, uint64_t key, uint32_t name, int64_t now_ns,
		     int64_t from_ns, bool before)
{
	struct trace_stretch s = { .since_ns = from_ns, .earlier = true };
	bool ok = true;

	if (!take(k, key, &s))
		s.kind = kind_of(k, name, &ok);
	if (!ok)
		return false;
	if (before)
		return true;
	if (s.kind == UINT32_MAX) {
		k->others++;
		return true;
	}
	k->all.at[s.kind].earlier += s.earlier;
	return quantiles_add(&k->all.at[s.kind].q,
			     now_ns > s.since_ns ? (uint64_t)(now_ns - s.since_ns) : 0);
}

/* Those that lie around it, too. */
static void unfinished(struct trace_kinds *k, struct trace_stretch s)
{
	if (s.kind == UINT32_MAX)
		k->others++;
	else
		k->all.at[s.kind].unfinished++;
}

void trace_kinds_gone(struct trace_kinds *k, uint64_t key)
{
	struct trace_stretch s;

	while (take(k, key, &s))
		unfinished(k, s);
}

static int by_sum(const void *a, const void *b)
{
	const struct trace_kind_sum *x = a, *y = b;

	if (x->q.sum != y->q.sum)
		return x->q.sum < y->q.sum ? 1 : -1;
	return x->name < y->name ? -1 : x->name > y->name;
}

/* All that was only before the time that counts. */
static void drop_empty(struct trace_kinds *k)
{
	size_t n = 0;

	for (size_t i = 0; i < k->all.n; i++) {
		if (k->all.at[i].q.n || k->all.at[i].unfinished)
			k->all.at[n++] = k->all.at[i];
		else
			quantiles_fini(&k->all.at[i].q);
	}
	k->all.n = n;
}

void trace_kinds_finish(struct trace_kinds *k)
{
	/* Each stretch that is not free goes on. */
	for (uint32_t i = k->free_stretches; i; i = k->stretches.at[i - 1].next)
		k->stretches.at[i - 1].since_ns = INT64_MIN;
	for (size_t i = 0; i < k->stretches.n; i++)
		if (k->stretches.at[i].since_ns != INT64_MIN)
			unfinished(k, k->stretches.at[i]);
	map_fini(&k->open);
	drop_empty(k);
	if (k->all.n)
		qsort(k->all.at, k->all.n, sizeof(*k->all.at), by_sum);
}
