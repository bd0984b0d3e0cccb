/* user/probe/rules.c - learns rules pc by pc, and settles stacks that were met before. */
#include "probe/rules.h"

#include <bpf/bpf.h>

#include "probe/unwinding.h"
#include "profile/profile.h"

void rules_init(struct rules *r, int map_fd)
{
	*r = (struct rules){ .map_fd = map_fd };
}

void rules_fini(struct rules *r)
{
	map_fini(&r->known);
	vec_fini(&r->order);
}

/* Evicts the oldest rules: first in, first out. A pc that is met again costs one raw sample. */
static void make_room(struct rules *r)
{
	size_t n = r->order.n < RULES_EVICT ? r->order.n : RULES_EVICT;

	for (size_t i = 0; i < n; i++)
		bpf_map_delete_elem(r->map_fd, &r->order.at[i]);
	r->order.n -= n;
	memmove(r->order.at, r->order.at + n, r->order.n * sizeof(*r->order.at));
	map_fini(&r->known);
	for (size_t i = 0; i < r->order.n; i++)
		map_put(&r->known, r->order.at[i], 1);
	r->evicted += n;
}

uint64_t rules_key(const struct subject *s, uint64_t pc)
{
	const struct image *img = images_at(&s->images, pc);

	return (uint64_t)img->id << 48 | ((pc - img->bias) & ((1ull << 48) - 1));
}

bool rules_known(const struct rules *r, uint64_t key)
{
	uint64_t known;

	return map_get(&r->known, key, &known);
}

void rules_learn(struct rules *r, uint64_t key, const struct gpb_rule *rule)
{
	uint64_t *at;
	int ret;

	if (rules_known(r, key))
		return;
	ret = bpf_map_update_elem(r->map_fd, &key, rule, BPF_ANY);
	if (ret == -E2BIG && r->order.n) {
		make_room(r);
		ret = bpf_map_update_elem(r->map_fd, &key, rule, BPF_ANY);
	}
	if (ret) {
		r->refused++;
		return;
	}
	at = vec_add(&r->order, GPB_RULES);
	if (at)
		*at = key;
	map_put(&r->known, key, 1);
}

int rules_comment(const struct rules *r, struct prof *p, struct err *e)
{
	if (!r->evicted && !r->refused)
		return 0;
	return prof_comment(
		p, e, "rules: the kernel's table of %u was full: %llu made room, %llu found none",
		GPB_RULES, (unsigned long long)r->evicted, (unsigned long long)r->refused);
}

struct learning {
	struct rules *r;
	const struct subject *s;
};

static void learn_pc(void *arg, uint64_t pc, const struct gpb_rule *rule)
{
	struct learning *l = arg;

	rules_learn(l->r, rules_key(l->s, pc), rule);
}

int rules_settle_bare(struct rules *r, struct subject *s, const struct gpb_stack *st,
		      const struct gpb_stack **out, struct err *e)
{
	struct learning l = { .r = r, .s = s };
	bool second = st->flags & GPB_STACK_SECOND && st->nsecond;
	struct gpb_rec_raw *raw = &r->raw;
	uint32_t last = (uint32_t)st->nkernel + st->nfirst + (second ? st->nsecond : 0) - 1;

	*out = st;
	if (!(st->flags & GPB_STACK_UNRULED) || !gpb_stack_whole(st))
		return 0;
	raw->stack = *st;
	raw->second = second;
	raw->pc = st->pc[last] - 1;
	raw->sp = raw->ntop = 0;
	*out = &raw->stack;
	return unwinding_settle(s, raw, learn_pc, &l, e);
}

/* The ring hands out const memory, but settling moves words about, so the record is copied. */
int rules_settle(struct rules *r, struct subject *s, const void *data, size_t len,
		 const struct gpb_stack **out, struct err *e)
{
	struct learning l = { .r = r, .s = s };
	struct gpb_rec_raw *raw = &r->raw;
	uint32_t was;
	int ret;

	if (len < offsetof(struct gpb_rec_raw, top)) {
		r->broken++;
		return 0;
	}
	if (len > sizeof(*raw)) /* the ring rounds lengths up */
		len = sizeof(*raw);
	memcpy(raw, data, len);
	if (raw->ntop > (len - offsetof(struct gpb_rec_raw, top)) / 8 ||
	    !gpb_stack_whole(&raw->stack)) {
		r->broken++;
		return 0;
	}
	was = raw->stack.flags;
	ret = unwinding_settle(s, raw, learn_pc, &l, e);
	if (ret)
		return ret;
	r->cut += !(was & GPB_STACK_CUT) && (raw->stack.flags & GPB_STACK_CUT);
	*out = &raw->stack;
	return 0;
}
