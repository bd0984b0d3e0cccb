/* user/probe/rules.c - learns rules pc by pc, and settles stacks that were met before. */
#include "probe/rules.h"

#include <bpf/bpf.h>

#include "probe/unwinding.h"
#include "profile/profile.h"

void rules_init(struct rules *r, struct subject *s, int map_fd)
{
	*r = (struct rules){ .s = s, .map_fd = map_fd };
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

void rules_learn(void *arg, uint64_t pc, const struct gpb_rule *rule)
{
	struct rules *r = arg;
	uint64_t key = pc & ((1ull << 48) - 1), known, *at;
	int ret;

	if (map_get(&r->known, key, &known))
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

/* The ring hands out const memory, but settling moves words about, so the record is copied. */
int rules_settle(struct rules *r, const void *data, size_t len, const struct gpb_stack **out,
		 struct err *e)
{
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
	ret = unwinding_settle(r->s, raw, rules_learn, r, e);
	if (ret)
		return ret;
	r->cut += !(was & GPB_STACK_CUT) && (raw->stack.flags & GPB_STACK_CUT);
	*out = &raw->stack;
	return 0;
}
