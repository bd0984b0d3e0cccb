/* user/heapgraph/describe.c - names, and groups of goroutines. */
#include "heapgraph/describe.h"

#include "base/cleanup.h"
#include "base/hash.h"

const char *describe_state(uint8_t state)
{
	/* Source: runtime/runtime2.go, _Grunnable and the next ones, as of Go 1.3 to 1.27. */
	static const char *const states[] = { "idle", "runnable", "running", "in a system call",
					      "waiting" };

	return state < ARRAY_LEN(states) ? states[state] : "in an unknown state";
}

static const char *name_of(const struct heapgraph *h, uint32_t id)
{
	return strtab_get(h->names, id);
}

static void describe_holder(const struct heapgraph *h, const struct holder *r, char *to, size_t cap)
{
	const char *name = name_of(h, r->name);
	unsigned long long at = (unsigned long long)r->addr;

	switch (r->kind) {
	case HOLDER_GLOBAL:
		if (*name)
			snprintf(to, cap, "global %s", name);
		else
			snprintf(to, cap, "global 0x%llx", at);
		return;
	case HOLDER_GOROUTINE:
		snprintf(to, cap, "goroutine %llu (%s)", at,
			 *name && r->state == 4 ? name : describe_state(r->state));
		return;
	case HOLDER_FRAME:
		if (r->up < h->holders.n)
			snprintf(to, cap, "%s of goroutine %llu", name,
				 (unsigned long long)h->holders.at[r->up].addr);
		else
			snprintf(to, cap, "%s of a goroutine", name);
		return;
	case HOLDER_FINALIZER:
		snprintf(to, cap, "finalizer of 0x%llx", at);
		return;
	case HOLDER_QUEUED:
		snprintf(to, cap, "finalizer that is to run, of 0x%llx", at);
		return;
	default:
		snprintf(to, cap, "root %s at 0x%llx", name, at);
	}
}

void describe_part(const struct heapgraph *h, const struct holder *r, uint64_t offset, char *to,
		   size_t cap)
{
	char part[DESCRIBE_BYTES] = "";

	*to = 0;
	if (r->kind != HOLDER_GLOBAL || !h->variables)
		return;
	h->variables->part(h->variables->arg, r->addr + offset, part, sizeof(part));
	if (*part)
		snprintf(to, cap, "%s%s", name_of(h, r->name), part);
	else if (offset)
		snprintf(to, cap, "%s+%llu", name_of(h, r->name), (unsigned long long)offset);
}

void describe_thing(const struct heapgraph *h, const struct classes *c, uint32_t thing,
		    char to[DESCRIBE_BYTES])
{
	const struct holder *r = heapgraph_holder_of(h, thing);
	struct object o;

	if (r)
		describe_holder(h, r, to, DESCRIBE_BYTES);
	else if (heapgraph_object_of(h, thing, &o))
		snprintf(to, DESCRIBE_BYTES, "object 0x%llx: %s", (unsigned long long)o.addr,
			 name_of(h, c->all.at[c->of[o.index]].name));
	else
		snprintf(to, DESCRIBE_BYTES, "the program");
}

/* ---- what holds much together ---- */

struct tops {
	const struct heapgraph *h;
	const struct classes *c;
	VEC(struct held_group) named;
	struct map keys;
	struct held_group *best; /* by falling bytes */
	size_t n, max;
};

static void tops_fini(struct tops *t)
{
	vec_fini(&t->named);
	map_fini(&t->keys);
}

static bool is_before(const struct held_group *x, const struct held_group *y)
{
	return x->retained != y->retained ? x->retained > y->retained : x->example < y->example;
}

static void offer(struct tops *t, const struct held_group *g)
{
	size_t i;

	if (t->n == t->max && !is_before(g, &t->best[t->n - 1]))
		return;
	for (i = t->n < t->max ? t->n++ : t->n - 1; i && is_before(g, &t->best[i - 1]); i--)
		t->best[i] = t->best[i - 1];
	t->best[i] = *g;
}

/* Objects by their class's name; frames by their function; other holders are each alone: 0. */
static uint64_t top_key(const struct tops *t, uint32_t thing)
{
	const struct holder *r = heapgraph_holder_of(t->h, thing);
	struct object o;

	if (r && r->kind == HOLDER_FRAME)
		return 2ull * r->name + 1;
	if (r || !heapgraph_object_of(t->h, thing, &o))
		return 0;
	return 2ull * t->c->all.at[t->c->of[o.index]].name + 2;
}

static struct held_group *named_group(struct tops *t, uint64_t key)
{
	struct held_group *g;
	uint64_t at;

	if (map_get(&t->keys, key, &at))
		return &t->named.at[at];
	g = vec_add(&t->named, UINT32_MAX);
	return g && map_put(&t->keys, key, t->named.n - 1) ? g : NULL;
}

static int add_top(void *arg, uint32_t thing, struct err *e)
{
	struct tops *t = arg;
	uint64_t retained = heapgraph_retained(t->h, thing), key = top_key(t, thing);
	struct held_group *g;

	if (!retained)
		return 0;
	if (!key) {
		offer(t, &(struct held_group){ thing, 1, retained });
		return 0;
	}
	g = named_group(t, key);
	if (!g)
		return err_set(e, -ENOMEM, "no memory for what holds objects");
	if (!g->count || retained > heapgraph_retained(t->h, g->example))
		g->example = thing;
	g->count++;
	g->retained += retained;
	return 0;
}

int held_groups(const struct heapgraph *h, const struct classes *c, struct held_group *out,
		size_t max, size_t *n, struct err *e)
{
	CLEANUP(tops_fini) struct tops t = { .h = h, .c = c, .best = out, .max = max };
	int ret = heapgraph_each_top(h, add_top, &t, e);

	for (size_t i = 0; i < t.named.n; i++)
		offer(&t, &t.named.at[i]);
	*n = t.n;
	return ret;
}

/* ---- goroutines ---- */

/* The frames of a goroutine are the holders before it that name it. */
static uint32_t frames_of(const struct heapgraph *h, uint32_t goroutine)
{
	uint32_t n = 0;

	while (n < goroutine && h->holders.at[goroutine - n - 1].kind == HOLDER_FRAME &&
	       h->holders.at[goroutine - n - 1].up == goroutine)
		n++;
	return n;
}

static uint64_t key_of(const struct heapgraph *h, uint32_t goroutine, uint32_t frames)
{
	const struct holder *g = &h->holders.at[goroutine];
	uint64_t key = hash_pair(g->state, g->state == 4 ? g->name : 0);

	for (uint32_t i = goroutine - frames; i < goroutine; i++)
		key = hash_pair(key, h->holders.at[i].name);
	return key;
}

static int by_count(const void *a, const void *b)
{
	const struct goroutine_group *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return (x->first > y->first) - (x->first < y->first);
}

struct groups {
	VEC(struct goroutine_group) all;
	struct map keys;
};

static void groups_fini(struct groups *s)
{
	vec_fini(&s->all);
	map_fini(&s->keys);
}

static struct goroutine_group *group_of(struct groups *s, const struct heapgraph *h, uint32_t i)
{
	uint32_t frames = frames_of(h, i);
	uint64_t key = key_of(h, i, frames), at;
	struct goroutine_group *g;

	if (map_get(&s->keys, key, &at))
		return &s->all.at[at];
	g = vec_add(&s->all, UINT32_MAX);
	if (!g || !map_put(&s->keys, key, s->all.n - 1))
		return NULL;
	g->first = i;
	g->frames = frames;
	return g;
}

int goroutine_groups(const struct heapgraph *h, struct goroutine_group **out, size_t *n,
		     struct err *e)
{
	CLEANUP(groups_fini) struct groups s = {};

	for (uint32_t i = 0; i < h->holders.n; i++) {
		struct goroutine_group *g;

		spill_turn(i);
		if (h->holders.at[i].kind != HOLDER_GOROUTINE)
			continue;
		g = group_of(&s, h, i);
		if (!g)
			return err_set(e, -ENOMEM, "no memory for goroutines");
		g->count++;
		g->retained += heapgraph_retained(h, heapgraph_thing_of_holder(h, i));
	}
	if (s.all.n)
		qsort(s.all.at, s.all.n, sizeof(*s.all.at), by_count);
	*n = s.all.n;
	*out = TAKE(s.all.at);
	return 0;
}
